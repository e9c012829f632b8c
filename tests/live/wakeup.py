#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""wakeup and offwake: who wakes whom, by threads that measure how long they were asleep.

wakeup.py STACKBPF WAITS
"""
import sys

from live import check, done, need_root, run_parts, stackbpf
from truth import at_work, check_near, dur_us, waits, weight

need_root()
BINARY, WAITS = sys.argv[1:3]


def woken(result, waker, sleeper):
    """Weight of stacks through the function `waker` that woke a thread of this name."""
    return sum(us for s, us in result.stacks.items() if waker in s and s[-1] == sleeper)


def pair():
    result, truth = waits(BINARY, WAITS, 'wakeup', 'pair')
    check(result.facts.get('kind') == 'wakeup' and result.facts.get('unit') == 'us',
          f'unit and kind of the header: {result.facts}')
    check_near(woken(result, 'pong_writes', 'ping'), truth.of_function('ping_reads'), 'pong wakes ping')
    check_near(woken(result, 'ping_writes', 'pong'), truth.of_function('pong_reads'), 'ping wakes pong')
    names = {s[0] for s in result.stacks if 'pong_writes' in s}
    check(names == {'pong'}, f'the root is who wakes: {names}')
    # While it writes, the interrupt of a timer may wake anybody.
    check(woken(result, 'pong_writes', 'pong') <= 0.01 * result.total, 'and nobody wakes itself')
    stacks = [s for s in result.stacks if 'pong_writes' in s]
    check(all('run' in s and s.index('run') < s.index('pong_writes') for s in stacks),
          'callers are there, root first')
    leaves = {s[-2] for s in stacks}
    check(leaves == {'try_to_wake_up'}, f'what wakes is the leaf, and no program of ours: {leaves}')


def convoy():
    result, truth = waits(BINARY, WAITS, 'wakeup', 'convoy', seconds=4, nr=4)
    check_near(woken(result, 'release_lock', 'rival'), truth.of_function('wait_for_lock'),
               'who releases the lock wakes who waits for it')


def timers():
    """Nobody wakes a sleeper but its timer: an interrupt, wherever it hits."""
    result, truth = waits(BINARY, WAITS, 'wakeup', 'sleeps')
    have = sum(us for s, us in result.stacks.items() if s[-1] == 'sleeper')
    want = sum(truth.of_function(f) for f in ('sleep_30ms', 'sleep_50ms', 'sleep_20ms'))
    check_near(have, want, 'timers wake sleepers')
    # Without kernel frames, too, the waker must not be whatever the timer interrupted.
    result, truth = waits(BINARY, WAITS, 'wakeup', 'sleeps', '-u')
    want = sum(truth.of_function(f) for f in ('sleep_30ms', 'sleep_50ms', 'sleep_20ms'))
    have = sum(us for s, us in result.stacks.items()
               if s[-1] == 'sleeper' and (s[0] == '[interrupt]' or 'end_all' in s))
    check_near(have, want, 'timers wake sleepers, by user stacks')


def attached():
    """-p names those who are woken; waits that began before the window count from its start."""
    with at_work(WAITS, 'pair', 3) as process:
        result = stackbpf(BINARY, 'wakeup', '-p', str(process.pid), '-t', '4')
    for waker, sleeper, share in (('pong_writes', 'ping', 0.6), ('ping_writes', 'pong', 0.4)):
        check_near(woken(result, waker, sleeper), share * dur_us(result),
                   f'{sleeper} in a window', 0.06)


def bounds():
    result, truth = waits(BINARY, WAITS, 'wakeup', 'sleeps', '-m', '40ms')
    have = sum(us for s, us in result.stacks.items() if s[-1] == 'sleeper')
    check_near(have, truth.of_function('sleep_50ms'), '-m 40ms', 0.2)


def chain():
    """offwake: comm, the blocked stack, '--', the waker's stack the other way round, its comm."""
    result, truth = waits(BINARY, WAITS, 'offwake', 'pair')
    check(result.facts.get('kind') == 'offwake', f'kind of the header: {result.facts}')
    known = {s: us for s, us in result.stacks.items() if 'ping_reads' in s and 'pong_writes' in s}
    check_near(sum(known.values()), truth.of_function('ping_reads'), 'offwake: pong wakes ping')
    for stack in known:
        check(stack[0] == 'ping' and stack[-1] == 'pong' and stack.count('--') == 1,
              f'offwake: comm, stack, --, stack, comm: {";".join(stack)}')
        if stack.count('--') != 1:
            continue
        at = stack.index('--')
        check('ping_reads' in stack[:at] and 'pong_writes' in stack[at:], 'offwake: sides of --')
        check(stack.index('run') < stack.index('ping_reads'), 'offwake: blocked stack, root first')
        outer = len(stack) - 1 - stack[::-1].index('run')
        check(stack.index('pong_writes') < outer, 'offwake: waker stack, leaf first')
    check_near(weight(result, 'ping_writes', 'pong_reads'), truth.of_function('pong_reads'),
               'offwake: ping wakes pong')


def chain_of_convoy():
    result, truth = waits(BINARY, WAITS, 'offwake', 'convoy', '--annotate', nr=4)
    have = sum(us for s, us in result.stacks.items() if 'release_lock_[w]' in s and 'wait_for_lock' in s)
    check_near(have, truth.of_function('wait_for_lock'), 'offwake: the convoy')
    for stack in result.stacks:
        if 'release_lock_[w]' in stack:
            at = stack.index('--')
            check(all(f.endswith('_[w]') for f in stack[at + 1:-1]) and
                  not any(f.endswith('_[w]') for f in stack[:at]),
                  f'offwake: what is marked as the waker\'s: {";".join(stack)}')


def never_woken():
    """Who was asleep all the time was woken by nobody, and is in the picture of offwake."""
    with at_work(WAITS, 'pause', 2) as process:
        result = stackbpf(BINARY, 'offwake', '-p', str(process.pid), '-t', '2')
    check_near(weight(result, 'wait_forever'), dur_us(result), 'offwake: not woken yet')


# What is compared with fixed shares, or has timers for its subject, has the CPUs to itself.
run_parts((attached, timers), sys.argv[3:], (convoy, pair, bounds, chain, chain_of_convoy, never_woken))
done()
