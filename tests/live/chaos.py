#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Many threads, many processes, many mappings: all are counted, in bounded time and memory.

chaos.py STACKBPF CHAOS [PART...]

STACKBPF_CHAOS_FACTOR multiplies the numbers.
"""
import os
import resource
import subprocess
import sys
import tempfile
import time

from live import check, need_root, ran_seconds, ready, run_parts, sampling, stackbpf, wait_for
from live import done as end
from truth import check_near, dur_us

need_root()
BINARY, CHAOS = sys.argv[1:3]
FACTOR = float(os.environ.get('STACKBPF_CHAOS_FACTOR', '1'))
NR_THREADS, NR_PROCESSES = int(10_000 * FACTOR), int(5_000 * FACTOR)
WHOLE = 0.95  # a thread that was found asleep may run before it is looked at: its first wait is cut then
NR_REGIONS = 65_000  # vm.max_map_count is 65,530
WORK_SECONDS = 0.5
LISTS_SHARE = 0.25  # a twentieth, and tables; half of it or more without rests
# What a run may take beyond its own time, on a machine that does ten other things.
END_SECONDS_MAX = 60
RESIDENT_MAX_KIB = 512 * 1024  # as storm.py has it


def check_memory(what):
    """Of the largest run so far."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check(peak <= RESIDENT_MAX_KIB, f'{what}: memory is bounded: {peak} KiB')


def run(what, *args):
    begin = time.monotonic()
    result = stackbpf(BINARY, *args, timeout=END_SECONDS_MAX)
    print(f'   {what}: {time.monotonic() - begin:.1f} s')
    print('  ', result.err.strip().splitlines()[-1] if result.err else '')
    check_memory(what)
    return result


def all_asleep(what, nr, *target):
    """Nothing runs: oncpu says so, and the views of waits have all of the time of each."""
    result = run(f'{what}, oncpu', 'oncpu', '-t', '1', *target)
    check(result.status == 3 and 'idle' in result.err, f'{what}: oncpu: {result.status} {result.err[-200:]}')
    for view in (('offcpu',), ('offcpu', '--every', '10ms'), ('wall',)):
        name = f'{what}, {" ".join(view)}'
        result = run(name, *view, '-t', '1', *target)
        check(result.status == 0, f'{name}: exit status {result.status} {result.err[-200:]}')
        check(result.facts.get('lost') == '0', f'{name}: nothing is lost: {result.facts}')
        check_near(result.total, nr * dur_us(result), f'{name}: time of all', 0.002)
        asleep = sum(us for stack, us in result.stacks.items() if 'sleep_here' in stack)
        check_near(asleep, nr * dur_us(result), f'{name}: with complete stacks', 0.002)


def threads():
    with ready(CHAOS, 'threads', str(NR_THREADS)) as process:
        all_asleep(f'{NR_THREADS} threads', NR_THREADS + 1, '-p', str(process.pid))


def processes():
    with ready(CHAOS, 'processes', str(NR_PROCESSES)) as process:
        all_asleep(f'{NR_PROCESSES} processes', NR_PROCESSES + 1, '-s', '-p', str(process.pid))


def lists_seconds(pid):
    """Of the thread that reads lists of mappings and makes unwind tables: CPU time, and how long it waited for one."""
    for tid in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{tid}/comm', encoding='ascii') as comm:
            if comm.read().strip() == 'stackbpf-unwind':
                with open(f'/proc/{pid}/task/{tid}/schedstat', encoding='ascii') as file:
                    return [int(word) / 1e9 for word in file.read().split()[:2]]
    raise AssertionError('no thread reads lists')


def regions():
    """A program changes its mappings all the time, some of them executable; nobody else's stacks suffer,
    and of its own no more than those which it changes. What it has mapped is not read all the time."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(['cp', CHAOS, f'{work}/other'], check=True)
        with ready(CHAOS, 'regions', str(NR_REGIONS)) as process, ready(f'{work}/other', 'busy') as other:
            for view in ('oncpu', 'wall'):
                with sampling(BINARY, view, '-F', '499', '-p', f'{process.pid},{other.pid}') as sampled:
                    pid, worked = sampled.process.pid, ran_seconds(other.pid)
                    begin, had = time.monotonic(), lists_seconds(pid)
                    wait_for(lambda until=worked + WORK_SECONDS: ran_seconds(other.pid) >= until, 'it works',
                             END_SECONDS_MAX)
                    ran, queued = (now - then for now, then in zip(lists_seconds(pid), had))
                    share = ran / (time.monotonic() - begin - queued)
                check_memory(f'regions, {view}')
                check(share <= LISTS_SHARE, f'regions, {view}: lists are read {100 * share:.1f} % of the time')
                result = sampled.result
                check(result.status == 0, f'regions, {view}: exit status {result.status} {result.err[-200:]}')
                for root in ('other', 'chaos'):
                    among = {s: w for s, w in result.stacks.items() if s[0] == root and 'work_here' in s}
                    whole = sum(w for s, w in among.items() if s[1] in ('clone3', '__clone', 'clone'))
                    total = sum(among.values())
                    check(total and whole >= WHOLE * total, f'regions, {view}: {root}: {whole} of {total} complete')


run_parts((threads, processes, regions), sys.argv[3:])
end()
