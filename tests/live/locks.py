#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waits for locks in Java, Python and Ruby are marked as such, and --idle drop does not delete them.

locks.py STACKBPF PROGRAMS

The programs measure their own waits. What they measure includes the wait for a CPU, and for the interpreter's lock
after they were woken, which the stacks have elsewhere: so what is compared is a bit less.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, stackbpf

need_root()
BINARY, PROGRAMS = sys.argv[1], pathlib.Path(sys.argv[2])
NEAR = 0.1
SKIPPED = []


def observe(command, *options):
    """Return: what stackbpf says, and what the program said of itself in us."""
    result = stackbpf(BINARY, 'offcpu', '--max-overhead', 'off', *options, '--', *command)
    check(result.status == 0, f'{command[0]}: exit status {result.status}: {result.err[-300:]}')
    truth = json.loads(re.search(r'^\{.*\}$', result.err, re.M)[0])
    return result, {name: ns / 1000 for name, ns in truth.items()}


def marked(result, function, mark):
    """Time below the function that ends in such a mark."""
    return sum(us for s, us in result.stacks.items() if s[0] != '[runqueue]' and s[-1].startswith(mark) and
               any(re.fullmatch(rf'(?:.*[#.])?{re.escape(function)}', re.sub(r'_\[\w\]$', '', f)) for f in s))


def check_locks(what, result, truth, functions):
    for function in functions:
        have = marked(result, function, '[lock: ')
        check(abs(have / truth[function] - 1) < NEAR,
              f'{what}: {function} waits for a lock: {have:.0f} of {truth[function]:.0f}')
        check(not marked(result, function, '[idle: '), f'{what}: {function} is not idle')


def python():
    """The GIL is waited for in the functions, too, after they have the lock."""
    command = [sys.executable, str(PROGRAMS / 'locks.py'), '2']
    for options in ((), ('--idle', 'drop')):
        result, truth = observe(command, *options)
        check_locks(f'Python {options}', result, truth, ('lock_work', 'rlock_work', 'semaphore_work'))
        check(not marked(result, 'take_work', '[idle: '), 'Python: Queue.get() is no worker')
        if not options:
            check(marked(result, '_worker', '[idle: worker]') > 0.9 * truth['_worker'], 'Python: a pool is idle')
    result, truth = observe([*command, 'burn'])
    off = sum(us for s, us in result.stacks.items() if s[0] != '[runqueue]' and any(f.startswith('burn') for f in s))
    gil = marked(result, 'burn', '[lock: gil]') + marked(result, 'burn', '[lock: mutex]')
    check(off > 0 and gil > 0.98 * off, f'Python: what computes waits for the GIL: {gil} of {off}')


def java():
    javac = shutil.which('javac')
    if not javac or not shutil.which('java'):
        SKIPPED.append('Java: no JDK')
        return
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([javac, '-d', work, str(PROGRAMS / 'Locks.java')], check=True)
        result, truth = observe(['java', '-XX:TieredStopAtLevel=1', '-cp', work, 'Locks', '2500'], '--idle', 'drop')
    check_locks('Java', result, truth, [f'Locks.{kind}Work' for kind in ('monitor', 'lock', 'semaphore', 'rwlock')])
    # To hand the task over to the pool takes a lock, too, hardly ever held.
    latch = sum(us for s, us in result.stacks.items() if s[0] != '[runqueue]' and not s[-1].startswith('[') and
                any(f.startswith('java.util.concurrent.CountDownLatch.await') for f in s))
    check(abs(latch / truth['Locks.latchWork'] - 1) < NEAR,
          f'Java: an answer is neither a lock nor left out: {latch:.0f} of {truth["Locks.latchWork"]:.0f}')
    check(not any('java.util.concurrent.ThreadPoolExecutor.getTask' in f for s in result.stacks
                  for f in s if s[0] != '[runqueue]' and s[-1].startswith('schedule')), 'Java: a pool is left out')


def ruby():
    if not shutil.which('ruby'):
        SKIPPED.append('Ruby: not installed')
        return
    result, truth = observe(['ruby', str(PROGRAMS / 'locks.rb'), '2'], '--idle', 'drop')
    check_locks('Ruby', result, truth, ('lock_work',))
    waits = sum(us for s, us in result.stacks.items() if s[0] != '[runqueue]' and any(f.startswith('Object#take_work')
                                                                                      for f in s))
    check(waits > 0 and marked(result, 'take_work', '[') < 0.02 * waits, f'Ruby: Queue#pop is neither: {waits}')


python()
java()
ruby()
for reason in SKIPPED:
    print(f'without {reason}')
done()
