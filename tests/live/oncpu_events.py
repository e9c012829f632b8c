#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""oncpu -e: as many events as getrusage(2) and perf-stat(1) count, in the functions that cause them.

oncpu_events.py STACKBPF FAULTS_C
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, stackbpf

need_root()
BINARY, SOURCE = sys.argv[1:3]
WORK = tempfile.TemporaryDirectory()
PROGRAM = f'{WORK.name}/faults'
subprocess.run(['gcc', '-O2', '-g', '-o', PROGRAM, SOURCE], check=True)
PAGES = 20000


def oncpu(event, *args, program=(PROGRAM, str(PAGES))):
    return stackbpf(BINARY, 'oncpu', '-e', event, *args, '--', *program)


def of(result, function):
    return sum(weight for stack, weight in result.stacks.items() if function in stack)


def own(result):
    """What the program says of itself."""
    return int(re.search(r'^faults (\d+)$', result.err, re.M).group(1))


def software():
    result = oncpu('page-faults:1')
    check(of(result, 'touch') == own(result) >= PAGES, f'each event is a sample: {of(result, "touch")} of {own(result)}')
    check(result.facts['unit'] == 'page-faults' and 'hz' not in result.facts, f'its unit is said: {result.facts}')
    for event in ('software:faults:100', 's:page-faults:100', 'faults:100'):
        result = oncpu(event)
        check(abs(of(result, 'touch') - own(result)) <= 100 * (os.cpu_count() or 1) + 100,
              f'{event}: weighed by its period: {of(result, "touch")} of {own(result)}')
    result = oncpu('cpu-clock:2000000')
    check(result.facts['unit'] == 'samples' and result.facts['hz'] == '500', f'a clock with a period is a rate: {result.facts}')


def governed():
    """Samples become fewer and heavier, whatever was counted between two of them."""
    result = oncpu('page-faults:2', '--max-overhead=0.1', program=(PROGRAM, '4000', '50', '100'))
    samples = int(result.facts['n'])
    check('governed_us' in result.facts, f'it was throttled: {result.facts}')
    check(abs(of(result, 'touch') / own(result) - 1) < 0.1 and samples < own(result) * 0.4,
          f'{of(result, "touch")} of {own(result)} by {samples} samples')


def hardware():
    event = 'instructions:u'
    perf = shutil.which('perf')
    counted = subprocess.run([perf, 'stat', '-x,', '-e', event, PROGRAM, str(PAGES)], capture_output=True, text=True,
                             check=False).stderr if perf else ''
    result = oncpu(f'{event}:5000000')
    match = re.search(r'^(\d+),.*instructions:u', counted, re.M)
    if result.status == 4:
        check("does not count 'instructions:u:5000000': it has no PMU" in ' '.join(result.err.split()), f'without a PMU: {result.err}')
    elif match:
        check(abs(of(result, 'count') / int(match[1]) - 1) < 0.1, f'{of(result, "count")} of {match[1]} instructions')
        check(result.facts['unit'] == 'instructions', f'facts: {result.facts}')


def refused():
    for args, status, why in (
            (('c:malloc',), 2, "the event 'c:malloc' is no counter"),
            (('pagefaults',), 2, "there is no counter 'pagefaults'; did you mean 'page-faults'?"),
            (('nosuchpmu/event=1/',), 2, "there is no PMU 'nosuchpmu'"),
            (('cs:10', '-F', '99'), 2, "'cs:10' has a period, and -F is a rate"),
            (('cpu-clock:10',), 2, 'has a period of 10 ns'),
            (('alignment-faults:1',), 3, "too few events of 'alignment-faults:1' for its period")):
        result = oncpu(*args)
        check(result.status == status and why in ' '.join(result.err.split()), f'{args}: {result.status} {result.err}')
    result = stackbpf(BINARY, 'wall', '-e', 'page-faults', '-t', '1')
    check(result.status == 2 and 'wall divides the time of threads' in ' '.join(result.err.split()), f'wall: {result.status} {result.err}')


software()
governed()
hardware()
refused()
done()
