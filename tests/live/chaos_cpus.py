#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPUs go offline and come back while we sample: what runs on them then is sampled, and has names.

chaos_cpus.py STACKBPF CHAOS [PART...]
"""
import os
import re
import subprocess
import sys
import tempfile

from live import check, done, need_own_machine, need_root, ran_seconds, ready, run_parts, sampling, skip, wait_for

need_root()
BINARY, CHAOS = sys.argv[1:3]
CPU = 1
ONLINE = f'/sys/devices/system/cpu/cpu{CPU}/online'
PARANOID = '/proc/sys/kernel/perf_event_paranoid'
HZ = 199
ENOUGH = 0.2  # clocks of emulated machines tick now and then


def set_online(is_online):
    with open(ONLINE, 'w', encoding='ascii') as file:
        file.write(str(int(is_online)))


def busy_on_cpu(seconds):
    """A program that comes to that CPU now, as a file that was never seen, and works so long there."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(['cp', CHAOS, f'{work}/comer'], check=True)
        with ready('taskset', '-c', str(CPU), f'{work}/comer', 'busy') as process:
            wait_for(lambda: ran_seconds(process.pid) >= seconds, 'it has worked')
            return ran_seconds(process.pid)


def judge(what, result, ran, nr_went, nr_came):
    check(result.status in (0, 130, 143), f'{what}: exit status {result.status} {result.err[-300:]}')
    have = sum(nr for stack, nr in result.stacks.items() if 'work_here' in stack) / HZ
    check(ENOUGH * ran <= have <= ran / ENOUGH, f'{what}: sampled {have:.2f} s of {ran:.2f} s')
    known = sum(nr for stack, nr in result.stacks.items() if '[unknown]' not in stack)
    check(known >= 0.95 * result.total, f'{what}: {known} of {result.total} with names')
    for nr, text in ((nr_went, 'went offline'), (nr_came, 'came online')):
        said = re.search(rf'(\d+) CPUs? {text}', result.err)
        check(int(said[1] if said else 0) == nr, f'{what}: {nr} {text}: {said and said[0]}')


def offline_and_online():
    """Faster than the list of CPUs is looked at: its events are gone all the same."""
    with sampling(BINARY, 'oncpu', '-F', str(HZ), '-n', 'comer') as run:
        set_online(False)
        set_online(True)
        run.snapshot()
        ran = busy_on_cpu(2)
    judge('off and on at once', run.result, ran, 1, 1)


def online_later():
    set_online(False)
    with sampling(BINARY, 'oncpu', '-F', str(HZ), '-n', 'comer') as run:
        set_online(True)
        run.snapshot()
        ran = busy_on_cpu(2)
    judge('online later', run.result, ran, 0, 1)


def again_and_again():
    """While a program works that has to move each time."""
    with ready(CHAOS, 'busy') as process:
        with sampling(BINARY, 'wall', '-p', str(process.pid)) as run:
            for _ in range(5):
                set_online(False)
                set_online(True)
    result = run.result
    check(result.status in (0, 130, 143), f'again and again: exit status {result.status} {result.err[-300:]}')
    share = float(re.search(r'([\d.]+) % of threads x time', result.err)[1])
    check(99 <= share <= 101, f'again and again: {share} % of the time of all threads')


def without_privilege():
    """Debian's kernels let only CAP_SYS_ADMIN open events at level 3, which is laid down: that is said."""
    with open(PARANOID, 'r+', encoding='ascii') as file:
        file.write('3')
    try:
        with ready(CHAOS, 'busy') as process, sampling(BINARY, 'oncpu', '-p', str(process.pid)) as run:
            set_online(False)
            set_online(True)
            run.snapshot()
    finally:
        with open(PARANOID, 'r+', encoding='ascii') as file:
            file.write('2')
    check(run.result.status == 0, f'without privilege: exit status {run.result.status} {run.result.err[-300:]}')
    said = 'CPUs could not be sampled' in run.result.err
    check(said or 'work_here' in str(run.result.stacks), f'without privilege: {run.result.err[-300:]}')
    print(f'   not sampled, and said: {said}')


need_own_machine('taking CPUs offline')
if not os.path.exists(ONLINE):
    skip(f'CPU {CPU} cannot be taken offline')
with open(PARANOID, 'r+', encoding='ascii') as level:
    level.write('2')
run_parts((offline_and_online, online_later, again_and_again, without_privilege), sys.argv[3:])
done()
