#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""wall: running, runnable and blocked time of all threads, which add up to threads x time.

wall.py STACKBPF WAITS
"""
import collections
import re
import sys

from live import check, done, need_root, run_parts, stackbpf
from truth import NEAR, at_work, check_near, dur_us, waits

need_root()
BINARY, WAITS = sys.argv[1:3]
MARKS = ('[running]', '[runqueue]', '[throttled]', '[blocked]', '[running: not sampled]')
# Less than this part of a thread's life, a state is told with less precision than 3 %.
ENOUGH = 0.05
# Of a thread's life: where a wake-up goes to another CPU, the kernel and we differ by when that hears of it.
WAKE_UPS = 0.005
# Of the lives of threads that come and go: how long they can have waited for a CPU when they were gone for all others. The
# kernel's release_task() takes a thread out of all lists, and the next place where it can be preempted is in there.
UNSEEN = 0.05


def states(result):
    """Sums by root and state; with -T the root is the thread. What is residual is nobody's."""
    sums = collections.Counter()
    for stack, us in result.stacks.items():
        mark, root = stack[-1], stack[0].rpartition('/')[2]
        if stack == ('[residual]',):
            sums['', 'residual'] += us
        elif mark in ('[running]', '[running: not sampled]'):
            sums[root, 'cpu'] += us
        elif mark in ('[runqueue]', '[throttled]'):
            sums[root, 'queue'] += us
        else:
            sums[root, 'blocked'] += us
        sums['', 'all'] += us
    return sums


def accounted(result, want):
    """Of threads x time: what the graph has, without its residual, and what the tool says of it."""
    sums = states(result)
    share = (sums['', 'all'] - sums['', 'residual']) / want
    check(0.99 <= share <= 1.01, f'accounted for by the program\'s clock: {100 * share:.2f} %')
    said = re.search(r'(\d+(?:\.\d+)?) % of threads x time accounted', result.err)
    check(said and float(said[1]) >= 99, f'accounted for, as it says: {said and said[0]}')
    others = {s[-1] for s in result.stacks if s != ('[residual]',)} - set(MARKS)
    check(not others, f'each stack ends in a state: {others}')
    return sums


def mixed():
    """All ways to wait, threads that come and go, from start to end; each thread has its clock."""
    result, truth = waits(BINARY, WAITS, 'wall', 'mixed', '-F', '499', '-T', seconds=5, is_apart=True)
    check(result.facts.get('kind') == 'wall' and result.facts.get('unit') == 'us',
          f'unit and kind of the header: {result.facts}')
    known = {str(thread['tid']) for thread in truth.threads}
    main = sum(us for s, us in result.stacks.items()
               if s[0].rpartition('/')[2] not in known and s != ('[residual]',))
    # It lives longer than main() takes, and less than the run by what we wait for a CPU before and after.
    check(0.99 * truth.main_us <= main <= 1.01 * dur_us(result),
          f'the main thread lives all the time: {main}, main() took {truth.main_us:.0f}, of {dur_us(result)}')
    sums = accounted(result, sum(truth.of_threads(name) for name in truth.names) + main)
    for name in truth.names:
        # By number: before it has a name, a thread has the one of whoever made it.
        tids = [str(thread['tid']) for thread in truth.threads if thread['name'] == name]
        want = {what: truth.of_threads(name, what) for what in ('wall', 'cpu', 'queue')}
        want['blocked'] = want['wall'] - want['cpu'] - want['queue']
        have = {state: sum(sums[tid, state] for tid in tids) for state in ('cpu', 'queue', 'blocked')}
        # What a thread takes to end after its last look at the clocks is much for those with short lives, the more so where
        # it has to wait for a CPU.
        ending = truth.of_threads(name, 'ending')
        unseen = UNSEEN * want['wall'] if ending else 0
        check(-NEAR <= sum(have.values()) / want['wall'] - 1 <= NEAR + (ending + unseen) / want['wall'],
              f'{name}: {sum(have.values())} of {want["wall"]:.0f}, and {ending:.0f} at its end')
        for state, us in have.items():
            if want[state] >= ENOUGH * want['wall']:
                near = max(NEAR, WAKE_UPS * want['wall'] / want[state])
                late = ending + (unseen if state == 'queue' else 0)
                check(-near <= us / want[state] - 1 <= near + late / want[state],
                      f'{name}: {state}: {us} of {want[state]:.0f}, and {ending:.0f} at its end')


def functions():
    """Blocked time by function."""
    result, truth = waits(BINARY, WAITS, 'wall', 'sleeps', seconds=5)
    for function in ('sleep_30ms', 'sleep_50ms', 'sleep_20ms'):
        have = sum(us for s, us in result.stacks.items() if function in s and s[-1] == '[blocked]')
        check_near(have, truth.of_function(function), f'{function}: blocked')


def bursts():
    """A thread that runs about as long as the period of the timer, and then sleeps: a tick may not have more for
    coming late in the run."""
    result, truth = waits(BINARY, WAITS, 'wall', 'bursts', '-F', '999', seconds=8)
    have = {name: sum(us for s, us in result.stacks.items() if name in s and s[-1] == '[running]')
            for name in ('run_first', 'run_second')}
    want = {name: truth.of_function(name, 'cpu') for name in have}
    share, known = (100 * sums['run_first'] / sum(sums.values()) for sums in (have, want))
    check(abs(share - known) < 5, f'the first half of each run: {share:.1f} % of {known:.1f} %')


def window():
    """Attached to threads that sleep, or run, all the time."""
    with at_work(WAITS, 'pause', 4, nr=3) as process:
        result = stackbpf(BINARY, 'wall', '-p', str(process.pid), '-t', '2')
    sums = accounted(result, 4 * dur_us(result))
    check_near(sums['pauser', 'blocked'], 3 * dur_us(result), 'three threads blocked all the time')
    with at_work(WAITS, 'queue', 4, nr=3) as process:
        result = stackbpf(BINARY, 'wall', '-p', str(process.pid), '-t', '4', '-F', '999')
    sums = accounted(result, 4 * dur_us(result))
    both = sums['burner', 'cpu'] + sums['burner', 'queue']
    check_near(both, 3 * dur_us(result), 'three threads that want one CPU')
    check(sums['burner', 'cpu'] <= 1.01 * dur_us(result), f"they have one: {sums['burner', 'cpu']}")
    burning = sum(us for s, us in result.stacks.items() if 'burn' in s and s[-1] == '[running]')
    check(burning >= 0.9 * sums['burner', 'cpu'], f'by samples, in the function that runs: {burning}')


def one_thread():
    """-L names one thread of several."""
    with at_work(WAITS, 'pause', 4, nr=3) as process:
        result = stackbpf(BINARY, 'wall', '-L', str(process.pid), '-t', '1')
    accounted(result, dur_us(result))


def brief():
    """Nothing beyond the end counts, however late we come to look at the time."""
    with at_work(WAITS, 'queue', 4, nr=3):
        result = stackbpf(BINARY, 'wall', '-a', '-t', '10ms')
    said = re.search(r'(\d+(?:\.\d+)?) % of threads x time accounted', result.err)
    check(said and 99 <= float(said[1]) <= 101, f'accounted for, as it says: {said and said[0]}')


def execs():
    """execve(2) waits after it has removed the old program: there is no user stack then, and nothing is cut off it, also
    if it is preempted right before it sets the registers of the new program."""
    result = stackbpf(BINARY, 'wall', '-s', '--', 'sh', '-c', 'i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done')
    within = {stack: us for stack, us in result.stacks.items() if 'bprm_execve' in stack}
    cut = {stack: us for stack, us in within.items() if any(frame.startswith('[truncated') for frame in stack)}
    total, lost = sum(within.values()), sum(cut.values())
    check(total and not lost, f'within execve(2) {lost} of {total} us have cut stacks: {list(cut)[:3]}')


run_parts((mixed, bursts, window, brief, execs), sys.argv[3:], (functions, one_thread))
done()
