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

from live import check, need_root, ready, run_parts, stackbpf
from live import done as end
from truth import check_near, dur_us

need_root()
BINARY, CHAOS = sys.argv[1:3]
FACTOR = float(os.environ.get('STACKBPF_CHAOS_FACTOR', '1'))
NR_THREADS, NR_PROCESSES = int(10_000 * FACTOR), int(5_000 * FACTOR)
WHOLE = 0.95  # a thread that was found asleep may run before it is looked at: its first wait is cut then
NR_REGIONS = 65_000  # vm.max_map_count is 65,530
# What a run may take beyond its own time, on a machine that does ten other things.
END_SECONDS_MAX = 60
RESIDENT_MAX_KIB = 512 * 1024  # as storm.py has it


def run(what, *args):
    """Return: the result; and how much more memory than before the largest run so far had."""
    begin = time.monotonic()
    result = stackbpf(BINARY, *args, timeout=END_SECONDS_MAX)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f'   {what}: {time.monotonic() - begin:.1f} s, at most {peak} KiB')
    print('  ', result.err.strip().splitlines()[-1] if result.err else '')
    check(peak <= RESIDENT_MAX_KIB, f'{what}: memory is bounded')
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


def regions():
    """A program changes its mappings all the time, some of them executable; nobody else's stacks suffer,
    and of its own no more than those which it changes."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(['cp', CHAOS, f'{work}/other'], check=True)
        with ready(CHAOS, 'regions', str(NR_REGIONS)) as process, ready(f'{work}/other', 'busy') as other:
            target = ('-p', f'{process.pid},{other.pid}', '-t', '2')
            for view in (('oncpu', '-F', '499'), ('wall', '-F', '499')):
                result = run(f'regions, {view[0]}', *view, *target)
                check(result.status == 0, f'regions, {view[0]}: exit status {result.status} {result.err[-200:]}')
                for root in ('other', 'chaos'):
                    among = {s: w for s, w in result.stacks.items() if s[0] == root and 'work_here' in s}
                    whole = sum(w for s, w in among.items() if s[1] in ('clone3', '__clone', 'clone'))
                    total = sum(among.values())
                    check(total and whole >= WHOLE * total, f'regions, {view[0]}: {root}: {whole} of {total} complete')


run_parts((threads, processes, regions), sys.argv[3:])
end()
