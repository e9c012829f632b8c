#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""More than one stackbpf at a time: each has what it would have alone, and ends.

chaos_two.py STACKBPF CHAOS WAITS [PART...]
"""
import contextlib
import os
import signal
import subprocess
import sys

from live import Result, check, done, need_root, ran_seconds, ready, run_parts, sampling, wait_for
from truth import at_work, check_near, dur_us, weight

need_root()
BINARY, CHAOS, WAITS = sys.argv[1:4]
END_SECONDS_MAX = 100
HZ = 499
WORK_SECONDS = 1
SLEEPS = {'sleep_30ms': 0.3, 'sleep_50ms': 0.5, 'sleep_20ms': 0.2}


def together(*commands):
    """Run them at once. Return: their results."""
    with contextlib.ExitStack() as stack:
        runs = [stack.enter_context(subprocess.Popen([BINARY, *command], stdout=subprocess.PIPE,
                                                     stderr=subprocess.PIPE, text=True)) for command in commands]
        results = []
        for run, command in zip(runs, commands):
            out, err = run.communicate(timeout=END_SECONDS_MAX)
            results.append(Result(run.returncode, out, err))
            check(run.returncode == 0, f'{" ".join(command)}: exit status {run.returncode} {err[-200:]}')
            check(results[-1].facts.get('lost') == '0', f'{" ".join(command)}: nothing is lost')
        return results


def sleeps(what, result):
    """That of a thread which sleeps for 30, 50, and 20 ms in turn."""
    blocked = weight(result, comm='sleeper')
    for function, share in SLEEPS.items():
        check_near(weight(result, function) / blocked, share, f'{what}: {function}', 0.15)


def same_view():
    """The same target in both. While it is stopped, both are asked what they have."""
    with ready(CHAOS, 'busy') as process:
        command = (BINARY, 'oncpu', '-F', str(HZ), '-p', str(process.pid))
        with sampling(*command) as one, sampling(*command) as other:
            os.kill(process.pid, signal.SIGSTOP)
            before = (one.snapshot().total, other.snapshot().total, ran_seconds(process.pid))
            os.kill(process.pid, signal.SIGCONT)
            wait_for(lambda: ran_seconds(process.pid) >= before[2] + WORK_SECONDS, 'it works')
            os.kill(process.pid, signal.SIGSTOP)
            after = (one.snapshot().total, other.snapshot().total, ran_seconds(process.pid))
    ran = after[2] - before[2]
    for i, run in enumerate((one, other)):
        check_near(after[i] - before[i], HZ * ran, f'oncpu: samples of {ran:.2f} s', 0.25)
        check(run.result.status == 0, f'oncpu: exit status {run.result.status} {run.result.err[-200:]}')
        check(run.result.share('work_here') >= 0.99, 'oncpu: in one function')
    for view in ('offcpu', 'wakeup'):
        with at_work(WAITS, 'sleeps', 2) as process:
            command = (view, '-p', str(process.pid), '-t', '2')
            both = together(command, command)
        check_near(both[0].total, both[1].total, f'{view}: the one and the other', 0.05)
        if view == 'offcpu':
            for result in both:
                sleeps(view, result)


def eight_views():
    with at_work(WAITS, 'sleeps', 2) as process:
        target = ('-p', str(process.pid), '-t', '3')
        views = (('offcpu',), ('offcpu', '--every', '1ms'), ('wall',), ('offwake',), ('wakeup',), ('offcpu', '-u'),
                 ('wall', '-k'), ('offcpu', '--idle', 'dim'))
        results = together(*[(*view, *target) for view in views])
    for view, result in zip(views, results):
        if view[0] in ('offcpu', 'offwake'):
            sleeps(' '.join(view), result)
        elif view[0] == 'wall':
            check_near(result.total, 2 * dur_us(result), f'{" ".join(view)}: threads x time', 0.02)


run_parts((same_view, eight_views), sys.argv[4:])
done()
