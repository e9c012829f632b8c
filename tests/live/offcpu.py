#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""offcpu on threads that measure themselves how long they wait.

offcpu.py STACKBPF WAITS
"""
import collections
import os
import re
import sys
import tempfile

from live import check, done, need_root, stackbpf
from truth import at_work, by_comm, check_near, dur_us, waits, weight

need_root()
BINARY, WAITS = sys.argv[1:3]
SLEEPS = ('sleep_30ms', 'sleep_50ms', 'sleep_20ms')
# What is left of the kernel where it is all cut that is not what blocked.
LEAVES = re.compile(r'schedule\w*|preempt_schedule\w*|\w*resched\w*')


def sleeps():
    """Three functions, from start to end; the program knows to the microsecond."""
    result, truth = waits(BINARY, WAITS, 'offcpu', 'sleeps', seconds=5)
    check(result.facts.get('unit') == 'us' and result.facts.get('kind') == 'offcpu',
          f'unit and kind of the header: {result.facts}')
    for function in SLEEPS:
        check_near(weight(result, function), truth.of_function(function), function)
    check(not any('__schedule' in s for s in result.stacks), '__schedule is cut off')
    leaves = {s[-1] for s in result.stacks if 'doze' in s and s[0] == 'sleeper'}
    check(leaves and all(LEAVES.fullmatch(leaf) or leaf.startswith('[idle: ') for leaf in leaves),
          f'what is left ends in {leaves}')
    check(all('run' in s for s in result.stacks if 'doze' in s and 'main_waits' not in s),
          'callers are there')


def sleeps_attached():
    """A window that begins and ends in the middle of waits: none is lost, none is longer."""
    with at_work(WAITS, 'sleeps', 3, nr=2) as process:
        result = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '6')
    window = dur_us(result)
    for function, share in zip(SLEEPS, (0.3, 0.5, 0.2)):
        check_near(weight(result, function) / 2, share * window, f'{function} in a window')
    each = weight(result, comm='sleeper') / 2
    check(0.97 * window <= each <= window * 1.001, f'each thread: {each:.0f} of {window}')
    check_near(weight(result, comm='waits'), window, 'the main thread, which only waits')


def convoy():
    result, truth = waits(BINARY, WAITS, 'offcpu', 'convoy', seconds=4, nr=4)
    for function in ('wait_for_lock', 'hold_lock', 'stay_away'):
        check_near(weight(result, function), truth.of_function(function), f'convoy: {function}')
    result, truth = waits(BINARY, WAITS, 'offcpu', 'convoy', '-T', nr=4)
    for thread in truth.threads:
        span = thread['functions']['wait_for_lock']
        have = sum(us for s, us in result.stacks.items()
                   if 'wait_for_lock' in s and s[0].endswith(f"/{thread['tid']}"))
        check_near(have, (span['wall_ns'] - span['cpu_ns'] - span['queue_ns']) / 1000,
                   f"convoy: thread {thread['tid']}")


def pair():
    result, truth = waits(BINARY, WAITS, 'offcpu', 'pair')
    for function in ('ping_reads', 'pong_reads', 'ping_thinks', 'pong_thinks'):
        check_near(weight(result, function), truth.of_function(function), f'pair: {function}')


def pause():
    """Blocked before the start and after the end: the whole window, with the whole stack."""
    with at_work(WAITS, 'pause', 4, nr=3) as process:
        result = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '2', '-T')
    window = dur_us(result)
    pausers = {s: us for s, us in result.stacks.items() if 'wait_forever' in s}
    check(len({s[0] for s in pausers}) == 3, f'pause: {len(pausers)} stacks of 3 threads')
    for stack, us in pausers.items():
        check(0.99 * window <= us <= 1.001 * window, f'pause: {us} of {window}')
        check('run' in stack and any('pause' in f for f in stack[stack.index('wait_forever'):]),
              f'pause: the stack is whole: {";".join(stack)}')


def uninterruptible():
    result, truth = waits(BINARY, WAITS, 'offcpu', 'dstate')
    want = truth.of_function('wait_for_vfork')
    def parents(result):
        return weight(result, 'wait_for_vfork') - weight(result, 'child_naps')
    check_near(parents(result), want, 'D: parent of a vfork')
    result, truth = waits(BINARY, WAITS, 'offcpu', 'dstate', '--state', 'D')
    check_near(parents(result), truth.of_function('wait_for_vfork'), 'D: with --state D')
    check(not weight(result, 'child_naps') and not weight(result, 'main_waits'),
          'D: nothing else with --state D')
    with at_work(WAITS, 'dstate', 2) as process:
        result = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '4', '--state', 'D')
    check_near(parents(result), dur_us(result), 'D: in a window')
    result, _ = waits(BINARY, WAITS, 'offcpu', 'dstate', '--state', 'S')
    check(parents(result) < 0.05 * want and weight(result, 'main_waits'), 'D: not with --state S')


def runqueue():
    """Three threads that want all of one CPU; schedstat(5) has what they waited for it."""
    result, truth = waits(BINARY, WAITS, 'offcpu', 'queue', nr=3)
    check_near(weight(result, 'burn', queue=True), truth.of_function('burn', 'queue'), 'runqueue')
    check(weight(result, 'burn') <= 0.01 * truth.of_function('burn', 'queue'),
          'runqueue: who waits for a CPU is not blocked')
    result, truth = waits(BINARY, WAITS, 'offcpu', 'queue', '--state', 'R', nr=3)
    check_near(weight(result, 'burn', queue=True), truth.of_function('burn', 'queue'), '--state R')
    check(all(s[0] in ('[runqueue]', '[throttled]') for s in result.stacks), '--state R: no other')
    with at_work(WAITS, 'queue', 4, nr=3) as process:
        before = run_delay_us(process.pid)
        result = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '4')
        after = run_delay_us(process.pid)
    have = weight(result, 'burn', queue=True)
    check(0.9 * 2 * dur_us(result) <= have <= 1.03 * (after - before),
          f'runqueue in a window: {have} of {2 * dur_us(result)} to {after - before:.0f}')


def run_delay_us(pid):
    total = 0
    for tid in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{tid}/schedstat', encoding='ascii') as file:
            total += int(file.read().split()[1]) / 1000
    return total


def bounds():
    for options, names in ((('-m', '40ms'), {'sleep_50ms'}), (('-m', '40000'), {'sleep_50ms'}),
                           (('--max', '25ms'), {'sleep_20ms'}),
                           (('--min', '25ms', '-M', '45000'), {'sleep_30ms'})):
        result, truth = waits(BINARY, WAITS, 'offcpu', 'sleeps', *options, seconds=2)
        for function in SLEEPS:
            want = truth.of_function(function) if function in names else 0
            # Where the machine is busy, some waits are longer than they should be.
            check_near(weight(result, function), want, f'{" ".join(options)}: {function}', 0.2)


def idle():
    marks = {'wait_in_poll': '[idle: poll]', 'wait_for_condition': '[idle: condvar]',
             'wait_forever': '[idle: signal]'}
    result, truth = waits(BINARY, WAITS, 'offcpu', 'idle')
    for function, mark in marks.items():
        check_near(weight(result, function, mark), truth.of_function(function),
                   f'idle: {function} is marked {mark}')
    result, truth = waits(BINARY, WAITS, 'offcpu', 'idle', '--idle', 'dim')
    for function in marks:
        have = sum(us for s, us in result.stacks.items() if s[0] == '[idle]' and function in s)
        check_near(have, truth.of_function(function), f'--idle dim: {function}')
    check(not any(f.startswith('[idle: ') for s in result.stacks for f in s), 'dim: no other mark')
    result, truth = waits(BINARY, WAITS, 'offcpu', 'idle', '--idle', 'drop')
    check(not any(weight(result, function) for function in marks), '--idle drop: they are gone')
    want = sum(truth.of_function(function) for function in marks)
    check(float(result.facts.get('idle', 0)) >= 0.97 * want, f'--idle drop: and counted: {result.facts}')
    result, truth = waits(BINARY, WAITS, 'offcpu', 'convoy', '--idle', 'drop')
    check_near(weight(result, 'wait_for_lock'), truth.of_function('wait_for_lock'),
               'a lock is no idle wait')


def every():
    """A sample for each so much waiting: fewer, and unbiased."""
    result, truth = waits(BINARY, WAITS, 'offcpu', 'sleeps', '--every', '1ms', seconds=5, nr=4)
    for function in SLEEPS:
        check_near(weight(result, function), truth.of_function(function), f'--every 1ms: {function}', 0.05)
    # Each wait is shorter than what one sample stands for.
    result, truth = waits(BINARY, WAITS, 'offcpu', 'pair', '--every', '10ms', seconds=20)
    for function in ('ping_reads', 'pong_reads', 'ping_thinks', 'pong_thinks'):
        check_near(weight(result, function), truth.of_function(function), f'--every 10ms: {function}', 0.15)


def distribution():
    """A histogram for each stack; the program counted its waits."""
    with tempfile.TemporaryDirectory() as work:
        result, truth = waits(BINARY, WAITS, 'offcpu', 'sleeps', '--distr', '--format', 'distr', '-o',
                              f'{work}/distr')
        with open(f'{work}/distr', encoding='utf-8') as file:
            text = file.read()
    nr = {f: sum(t['functions'][f]['nr'] for t in truth.threads) for f in SLEEPS}
    have, bucket = collections.Counter(), collections.Counter()
    stack = ''
    for line in text.splitlines():
        row = re.fullmatch(r' +(\S+ \S+) +-> +\S+ \S+ +: (\d+) +\|.*', line)
        if row and (function := next((f for f in SLEEPS if f in stack), None)):
            have[function] += int(row[2])
            bucket[function, row[1]] += int(row[2])
        elif not row:
            stack = line
    check(result.status == 0 and text.startswith('#stackbpf;'), f'--distr: {text[:200]}')
    # The stack of a wait that was cut short by a moment on a run queue is another one.
    check(all(nr[f] <= have[f] <= 1.1 * nr[f] + 1 for f in SLEEPS), f'--distr: {dict(have)} of {nr}')
    # Powers of two, in ns: 2^24 is 16.8 ms, and 2^25 is 33.6 ms.
    for function, at in (('sleep_20ms', '16.8 ms'), ('sleep_30ms', '16.8 ms'), ('sleep_50ms', '33.6 ms')):
        check(bucket[function, at] >= 0.8 * nr[function], f'--distr: {function} from {at}: {dict(bucket)}')


def everybody():
    """The whole machine: two programs at a time; idle CPUs are not threads."""
    with at_work(WAITS, 'pause', 2), at_work(WAITS, 'sleeps', 2):
        result = stackbpf(BINARY, 'offcpu', '-t', '3')
    check(result.status == 0, f'everybody: exit status {result.status}')
    for function, share in zip(('wait_forever', *SLEEPS), (1, 0.3, 0.5, 0.2)):
        check_near(weight(result, function), share * dur_us(result), f'everybody: {function}', 0.05)
    roots = {name for name, _ in by_comm(result)}
    check(not any(r.startswith('swapper') for r in roots), 'everybody: idle CPUs are left out')


PARTS = (sleeps, sleeps_attached, convoy, pair, pause, uninterruptible, runqueue, bounds, idle, every,
         distribution, everybody)
for part in PARTS:
    if len(sys.argv) < 4 or part.__name__ in sys.argv[3:]:
        part()
done()
