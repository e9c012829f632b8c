#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The clock of the machine is set forth and back by hours while we sample: durations are what they were.

chaos_clock.py STACKBPF CHAOS
"""
import re
import subprocess
import sys
import time

from live import Result, check, done, need_own_machine, need_root, ready, wait_for
from truth import check_near, dur_us

need_root()
BINARY, CHAOS = sys.argv[1:3]
HOUR = 3600
NR_THREADS = 3
# Emulated machines take seconds to begin and to end. The steps are hours.
MORE_SECONDS_MAX = 60


def step(seconds):
    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + seconds)


def run(view, seconds, *target):
    """While it runs, the clock is set again and again. Return: its result; how long it took."""
    begin = time.monotonic()
    with subprocess.Popen([BINARY, view, '-t', str(seconds), *target], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        steps = [5 * HOUR, -9 * HOUR, 4 * HOUR]
        nr = 0

        def goes_on():
            nonlocal nr
            step(steps[nr % len(steps)])
            nr += 1
            return process.poll() is not None
        wait_for(goes_on, 'it ends', MORE_SECONDS_MAX)
        out, err = process.communicate()
    while nr % len(steps):
        step(steps[nr % len(steps)])
        nr += 1
    return Result(process.returncode, out, err), time.monotonic() - begin


need_own_machine('setting the clock')
with ready(CHAOS, 'busy') as busy:
    for name in ('oncpu', 'offcpu', 'wall'):
        result, took = run(name, 3, '-p', str(busy.pid))
        check(result.status == 0, f'{name}: exit status {result.status} {result.err[-300:]}')
        check(took >= 3, f'{name}: -t 3 took {took:.1f} s')
        check_near(dur_us(result), 3e6, f'{name}: duration', 0.01)
        said = re.search(r'in (\d+\.\d) s', result.err)
        check(said and said[1] == '3.0', f'{name}: as it says: {said and said[0]}')
        if name == 'offcpu':
            asleep = sum(us for stack, us in result.stacks.items() if 'sleep_here' in stack)
            check_near(asleep, (NR_THREADS - 1) * 3e6, f'{name}: those that sleep', 0.02)
        if name == 'wall':
            check_near(result.total, NR_THREADS * 3e6, f'{name}: threads x time', 0.02)
done()
