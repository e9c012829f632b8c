#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a page fault costs more while 'stackbpf memory' looks at it.

faultcost.py STACKBPF CALLS [ROUNDS [SECONDS]]

A loop touches fresh memory, 8 and 40 functions deep, of C and of Python. The figure: ns of CPU time for each fault, less those in the same
round without any tool; and ns for each run of the programs at faults, by the kernel's own statistics, which are switched
on for one more run of each, because they cost something themselves.
"""
import json
import os
import statistics
import subprocess
import sys

from beside import beside, figures_of, paired, rounds
from costs import bpf_stats_on

BINARY, CALLS = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
SECONDS = sys.argv[4] if len(sys.argv) > 4 else '2'
NONE = 'nothing'
MEMORY = [BINARY, 'memory', '-q', '--max-overhead=off']
TOOLS = {
    NONE: None,
    'stackbpf memory': MEMORY,
    'stackbpf memory --unwind fp': [*MEMORY, '--unwind', 'fp'],
    'stackbpf memory --interp off': [*MEMORY, '--interp', 'off'],
    'stackbpf memory of another process': [*MEMORY, '-p', str(os.getpid())],
    'bpftrace, user stacks': ['bpftrace', '-e', 'tracepoint:exceptions:page_fault_user { @[ustack, comm] = count(); }'],
}
PYTHON = [sys.executable, os.path.join(os.path.dirname(__file__), 'faultload.py')]
LOADS = {f'{nr} functions{of}': [*command, SECONDS, nr]
         for of, command in (('', [CALLS, 'faults']), (' of Python', PYTHON)) for nr in ('8', '40')}


def runs():
    """{ID: (ns, runs)} of the programs at page faults."""
    out = subprocess.run(['bpftool', '-j', 'prog', 'show'], capture_output=True, text=True, check=False,
                         env={**os.environ, 'PATH': os.environ['PATH'] + ':/usr/sbin'}).stdout
    return {p['id']: (p.get('run_time_ns', 0), p.get('run_cnt', 0)) for p in json.loads(out or '[]')
            if p.get('name') in ('memory_user', 'memory_counter')}


def by_statistics(command, load):
    """ns for each run of its program at faults; None: it has none by that name."""
    with bpf_stats_on(), beside(command):
        before = runs()
        figures_of(load)
        after = runs()
    ns, nr = (sum(after[prog][i] - before.get(prog, (0, 0))[i] for prog in after) for i in (0, 1))
    return ns / nr if nr else None


def main():
    figures, _, failed = rounds(TOOLS, LOADS, ROUNDS)
    for name, load in LOADS.items():
        print(f'\n{name}: {statistics.median(f[0] for f in figures[NONE][name]):.0f} ns a fault')
        print(f'{"beside":36} {"added ns":>9} {"range":>16} {"program":>9}')
        for tool, command in TOOLS.items():
            if tool in failed or not command:
                print(f'{tool:36} {failed.get(tool, "")[:150]}'.rstrip())
                continue
            added, least, most = paired(figures, (tool, NONE), name, lambda a, b: a - b)
            ran = by_statistics(command, load) if command[0] == BINARY else None
            print(f'{tool:36} {added:9.0f} {least:8.0f}..{most:6.0f} {"" if ran is None else f"{ran:9.0f}"}', flush=True)


if os.geteuid() != 0:
    print('skipped: tracing needs root')
    sys.exit(77)
print(f'{os.cpu_count()} CPUs, Linux {os.uname().release}, {ROUNDS} rounds of {SECONDS} s')
main()
