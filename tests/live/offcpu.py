#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""offcpu on threads that measure themselves how long they wait.

offcpu.py STACKBPF WAITS
"""
import collections
import os
import re
import signal
import sys
import tempfile
import time

from live import check, done, need_root, run_parts, stackbpf, wait_for
from truth import at_work, by_comm, cgroup_with_quota, check_near, dur_us, is_near, waits, weight

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
        before = schedstat_us(process.pid, 'sleeper')
        result = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '6')
        after = schedstat_us(process.pid, 'sleeper')
    window = dur_us(result)
    blocked = weight(result, comm='sleeper')
    for function, share in zip(SLEEPS, (0.3, 0.5, 0.2)):
        check_near(weight(result, function) / blocked, share, f'{function} in a window')
    ran, queued = after[0] - before[0], after[1] - before[1]
    have = blocked + weight(result, comm='sleeper', queue=True)
    check_near(have, 2 * window - ran, 'all that two threads did not run', 0.01)
    check_near(blocked, 2 * window - ran - queued, 'all that they were blocked')
    check_near(weight(result, comm='waits'), window, 'the main thread, which only waits', 0.01)


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
        check_near(us, window, 'pause: a whole window', 0.01)
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
        begin, before = time.monotonic(), schedstat_us(process.pid, 'burner')
        result = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '4')
        after = schedstat_us(process.pid, 'burner')
        outside = (time.monotonic() - begin) * 1e6 - dur_us(result)
    # What they ran is of a longer time: stackbpf has to begin and to end; and all three have one CPU. They
    # wait in all of their functions: on a slow machine, reading their clocks is a part that counts.
    have, most = weight(result, comm='burner', queue=True), after[0] - before[0]
    least = max(0, most - outside)
    check(0.97 * (3 * dur_us(result) - most) <= have <= 1.03 * (3 * dur_us(result) - least),
          f'runqueue in a window: {have} of {3 * dur_us(result)}, of which they ran {least:.0f} to {most:.0f}')
    check_burners(result, have, 'runqueue in a window')


def check_burners(result, all_us, what):
    """The stacks of threads that burn, and that read their clocks between."""
    known = weight(result, 'burn', queue=True) + weight(result, 'run', 'note', queue=True)
    others = [f'{us} {";".join(s)}' for s, us in result.stacks.items() if 'burn' not in s and 'note' not in s]
    check(known >= 0.97 * all_us, f'{what}: {known} of {all_us} where the threads burn; others: {others}')


def throttled():
    """A thread that wants all of a CPU, and gets a twentieth of it by the quota of its cgroup."""
    with cgroup_with_quota(5000, 100000) as cgroup:
        if not cgroup:
            print('not here: a cgroup with a quota')
            return
        with at_work(WAITS, 'queue', 2, nr=1) as process:
            with open(f'{cgroup}/cgroup.procs', 'w', encoding='ascii') as file:
                file.write(str(process.pid))
            before = throttled_us(cgroup)
            result = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '4')
            after = throttled_us(cgroup)
    have = sum(us for s, us in result.stacks.items() if s[0] == '[throttled]' and 'burn' in s)
    both = weight(result, comm='burner', queue=True)
    # The cgroup does not count the wait for a CPU that follows, of which the thread is not told.
    check(have >= 0.75 * (after - before), f'throttled: {have}, the cgroup says {after - before:.0f}')
    check(0.9 * dur_us(result) <= both <= 1.02 * dur_us(result), f'throttled, or waiting: {both}')
    check_burners(result, both, 'throttled, or waiting')


def throttled_us(cgroup):
    with open(f'{cgroup}/cpu.stat', encoding='ascii') as file:
        stat = dict(line.split() for line in file)
    return int(stat['throttled_time']) / 1000 if 'throttled_time' in stat else int(stat['throttled_usec'])


def stopped():
    """By a signal: state T, whatever it did before."""
    with at_work(WAITS, 'queue', 2, nr=1) as process:
        os.kill(process.pid, signal.SIGSTOP)
        wait_for(lambda: state_of(process.pid) == 'T', 'it is stopped')
        result = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '2', '--state', 'T')
        others = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '1', '--state', 'S,D,R')
    check_near(weight(result, 'run', comm='burner'), dur_us(result), 'stopped')
    check(not others.stacks, f'stopped: no other state: {list(others.stacks)[:2]}')


def state_of(pid):
    """Of the last of its threads to have that state."""
    states = set()
    for tid in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{tid}/stat', encoding='ascii') as file:
            states.add(file.read().rpartition(')')[2].split()[0])
    return states.pop() if len(states) == 1 else ''


def schedstat_us(pid, name):
    """Of all threads of this name: time they ran, time they waited for a CPU."""
    ran = queued = 0
    for tid in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{tid}/comm', encoding='ascii') as comm, \
                open(f'/proc/{pid}/task/{tid}/schedstat', encoding='ascii') as file:
            if comm.read().strip() == name:
                fields = file.read().split()
                ran += int(fields[0]) / 1000
                queued += int(fields[1]) / 1000
    return ran, queued


def bounds():
    for options, names in ((('-m', '40ms'), {'sleep_50ms'}), (('-m', '40000'), {'sleep_50ms'}),
                           (('--max', '25ms'), {'sleep_20ms'}),
                           (('--min', '25ms', '-M', '45000'), {'sleep_30ms'})):
        result, truth = waits(BINARY, WAITS, 'offcpu', 'sleeps', *options, seconds=2)
        for function in SLEEPS:
            want = truth.of_function(function) if function in names else 0
            have = weight(result, function)
            # The last one is cut short by the end. Where the machine is busy, some are too long.
            check(have <= 0.1 * truth.of_function(function) if not want else is_near(have, want, 0.2),
                  f'{" ".join(options)}: {function}: {have} of {want:.0f}')


def idle():
    """Idle is what its caller says, or a system call that serves nothing else; poll() and a condition say nothing."""
    marks = {'wait_in_epoll': '[idle: epoll]', 'wait_for_work': '[idle: worker]', 'wait_forever': '[idle: signal]'}
    plain = ('wait_in_poll', 'wait_for_condition')
    result, truth = waits(BINARY, WAITS, 'offcpu', 'idle')
    for function, mark in marks.items():
        check_near(weight(result, function, mark), truth.of_function(function),
                   f'idle: {function} is marked {mark}')
    for function in plain:
        unmarked = sum(us for s, us in result.stacks.items() if function in s and not s[-1].startswith('[idle: '))
        check_near(unmarked, truth.of_function(function), f'idle: {function} is not')
    result, truth = waits(BINARY, WAITS, 'offcpu', 'idle', '--idle', 'dim')
    for function in marks:
        have = sum(us for s, us in result.stacks.items() if s[0] == '[idle]' and function in s)
        check_near(have, truth.of_function(function), f'--idle dim: {function}')
    check(not any(f.startswith('[idle: ') for s in result.stacks for f in s), 'dim: no other mark')
    result, truth = waits(BINARY, WAITS, 'offcpu', 'idle', '--idle', 'drop')
    check(not any(weight(result, function) for function in marks), '--idle drop: they are gone')
    for function in plain:
        check_near(weight(result, function), truth.of_function(function), f'--idle drop: {function} is left')
    want = sum(truth.of_function(function) for function in marks)
    check(float(result.facts.get('idle', 0)) >= 0.97 * want, f'--idle drop: and counted: {result.facts}')


def locks():
    """A wait for a lock is a state of its own, which --idle drop does not touch."""
    marks = {'wait_for_lock': '[lock: mutex]', 'wait_for_semaphore': '[lock: semaphore]',
             'wait_for_rwlock': '[lock: rwlock]'}
    for options in ((), ('--idle', 'drop')):
        result, truth = waits(BINARY, WAITS, 'offcpu', 'locks', *options)
        for function, mark in marks.items():
            check_near(weight(result, function, mark), truth.of_function(function),
                       f'locks: {function} is marked {mark} {" ".join(options)}')
        marked = sum(us for s, us in result.stacks.items() if s[-1].startswith('[lock: '))
        check_near(marked, sum(truth.of_function(function) for function in marks), 'locks: and nothing else is')


def every():
    """A sample for each so much waiting: fewer, and unbiased."""
    result, truth = waits(BINARY, WAITS, 'offcpu', 'sleeps', '--every', '1ms', seconds=5, nr=4)
    for function in SLEEPS:
        check_near(weight(result, function), truth.of_function(function), f'--every 1ms: {function}', 0.05)
    # Each wait is shorter than what one sample stands for; of the shorter ones there are some 800.
    result, truth = waits(BINARY, WAITS, 'offcpu', 'naps', '--every', '10ms', seconds=4, nr=8)
    for function in ('nap_1ms', 'nap_3ms'):
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
        elif ';' in line:
            stack = line if not line.startswith('[') else ''
    check(result.status == 0 and text.startswith('#stackbpf;'), f'--distr: {text[:200]}')
    # The stack of a wait that was cut short by a moment on a run queue is another one.
    check(all(nr[f] <= have[f] <= 1.1 * nr[f] + 1 for f in SLEEPS), f'--distr: {dict(have)} of {nr}')
    # Powers of two, in ns: 2^24 is 16.8 ms, and 2^25 is 33.6 ms.
    for function, at in (('sleep_20ms', '16.8 ms'), ('sleep_30ms', '16.8 ms'), ('sleep_50ms', '33.6 ms')):
        check(bucket[function, at] >= 0.8 * nr[function], f'--distr: {function} from {at}: {dict(bucket)}')


def everybody():
    """The whole machine: two programs at a time, others beside them; idle CPUs are not threads."""
    with at_work(WAITS, 'pause', 2) as pausing, at_work(WAITS, 'sleeps', 2) as sleeping:
        result = stackbpf(BINARY, 'offcpu', '-t', '3', '--by', 'pid')
    check(result.status == 0, f'everybody: exit status {result.status}')
    check_near(weight(result, 'wait_forever', pid=pausing.pid), dur_us(result), 'everybody: wait_forever', 0.03)
    blocked = weight(result, comm='sleeper', pid=sleeping.pid)
    for function, share in zip(SLEEPS, (0.3, 0.5, 0.2)):
        check_near(weight(result, function, pid=sleeping.pid) / blocked, share, f'everybody: {function}', 0.05)
    roots = {name for name, _ in by_comm(result)}
    check(not any(r.startswith('swapper') for r in roots), 'everybody: idle CPUs are left out')


WAITING = (every, bounds, uninterruptible, sleeps, convoy, idle, locks, everybody, stopped, pair, pause, distribution)
run_parts((sleeps_attached, runqueue, throttled), sys.argv[3:], WAITING)
done()
