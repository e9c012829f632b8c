#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How much a storm of context switches is slowed down by those that look at each of them.

switches.py STACKBPF CALLS [ROUNDS [SECONDS]]

The storm: as many pairs of processes as there are CPUs, each passing a byte to and fro through pipes.
Figures, beside those in the same round without any tool: CPU time of the two processes for a round
trip, which is what the tools add to a switch, and hardly depends on what else the machine does; and
round trips per second, which does.
"""
import os
import re
import shutil
import sys
import tempfile

from beside import paired, rounds

BINARY, CALLS = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
SECONDS = sys.argv[4] if len(sys.argv) > 4 else '3'
NONE = 'nothing'
# As bpftrace's own offcputime.bt, with the tracepoint in the place of its kprobe.
BPFTRACE = '''tracepoint:sched:sched_switch {
    if (args->prev_state != 0) {
        @start[args->prev_pid] = nsecs; @kernel[args->prev_pid] = kstack; @user[args->prev_pid] = ustack;
    }
    if (@start[args->next_pid]) {
        @off[args->next_comm, @kernel[args->next_pid], @user[args->next_pid]] = sum(nsecs - @start[args->next_pid]);
        delete(@start[args->next_pid]);
    } }
END { clear(@start); clear(@kernel); clear(@user); }'''


def nr_switches():
    with open('/proc/stat', encoding='ascii') as file:
        return int(re.search(r'^ctxt (\d+)', file.read(), re.M)[1])


def tools(work):
    return {
        NONE: None,
        'stackbpf offcpu': [BINARY, 'offcpu', '-q'],
        'stackbpf offcpu --every 1ms': [BINARY, 'offcpu', '--every', '1ms', '-q'],
        'stackbpf offcpu --unwind fp': [BINARY, 'offcpu', '--unwind', 'fp', '-q'],
        'stackbpf wall': [BINARY, 'wall', '-q'],
        'stackbpf wakeup': [BINARY, 'wakeup', '-q'],
        'stackbpf offwake': [BINARY, 'offwake', '-q'],
        'bpftrace, offcputime': ['bpftrace', '-e', BPFTRACE],
        'libbpf-tools offcputime': [shutil.which('offcputime', path='/usr/sbin:/usr/bin') or 'offcputime'],
        'perf sched record': ['perf', 'sched', 'record', '-q', '-a', '-o', f'{work}/perf.data', '--',
                              'sleep', '1000'],
    }


def main():
    pairs = str(os.cpu_count())
    load = {'storm': [CALLS, 'switches', SECONDS, pairs]}
    with tempfile.TemporaryDirectory() as work:
        before = nr_switches()
        alone, _, _ = rounds({NONE: None}, load, 1)
        per_second = (nr_switches() - before) / float(SECONDS)
        trips, cpu_ns = alone[NONE]['storm'][0]
        print(f'{pairs} pairs: {trips:.0f} round trips and {per_second:.0f} switches a second, '
              f'{cpu_ns:.0f} ns of CPU for a round trip', flush=True)
        figures, cpu, failed = rounds(tools(work), load, ROUNDS)
    print(f'{"beside":30} {"CPU per trip":>13} {"range":>13} {"throughput":>11} {"range":>17} {"own CPU s":>10}')
    for tool in figures:
        if tool in failed or not figures[tool]['storm']:
            print(f'{tool:30} {failed.get(tool, "no figure")[:150]}')
            continue
        cost, least, most = paired(figures, (tool, NONE), 'storm', lambda a, b: a / b, 1)
        share, low, high = paired(figures, (tool, NONE), 'storm', lambda a, b: a / b, 0)
        own = sorted(cpu[tool])[len(cpu[tool]) // 2]
        print(f'{tool:30} {cost:12.2f}x {least:6.2f}..{most:4.2f}x {100 * share:9.1f} % '
              f'{100 * low:7.1f}..{100 * high:5.1f} % {own:10.2f}')


if os.geteuid() != 0:
    print('skipped: tracing needs root')
    sys.exit(77)
print(f'{os.cpu_count()} CPUs, Linux {os.uname().release}, {ROUNDS} rounds of {SECONDS} s')
main()
