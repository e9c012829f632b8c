#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that are gone at once, programs that become others, libraries that take turns: their
stacks are complete from the first sample on, and no frame is from a file that was not there.

churn.py STACKBPF PROGRAMS [OPTION...]
"""
import collections
import math
import os
import subprocess
import sys
import tempfile
import time

import frames
from live import check, done, need_root, stackbpf

need_root()
BINARY, PROGRAMS = sys.argv[1], os.path.abspath(sys.argv[2])
BUILD = ('gcc', '-O2', '-fomit-frame-pointer')
FIRST_GATE = 0.95  # of what is known from its first sample on, or not at all
SAMPLES_MIN = 500
SECONDS, RUNS_MAX = 4, 6
RUN = ('oncpu', '-F', '999', '-s', *frames.OPTIONS, *sys.argv[3:])


def capture(names, *command):
    """Stacks of the endless command and its children that have these names. On a machine that has others to
    serve, it is run again until there are enough of them."""
    stacks = collections.Counter()
    for _ in range(RUNS_MAX):
        result = stackbpf(BINARY, *RUN, '--', 'timeout', str(SECONDS), *command)
        check(result.status in (0, 124), f'exit status {result.status}: {result.err[-200:]}')
        stacks.update({stack: weight for stack, weight in result.stacks.items() if stack[0] in names})
        if stacks.total() >= 2 * SAMPLES_MIN:
            break
    return stacks


def check_complete(what, stacks, paths=()):
    reasons = collections.Counter()
    for stack, weight in stacks.items():
        reasons[frames.why_incomplete(stack, paths)] += weight
    without, complete = reasons.pop(None, 0), reasons.pop('', 0)
    total = complete + reasons.total()
    check(total >= SAMPLES_MIN, f'{what}: {total} samples, and {without} without a user stack')
    check(complete >= FIRST_GATE * total, f'{what}: {100 * complete / max(total, 1):.2f} % complete')
    for why, weight in reasons.most_common(8):
        print(f'   {weight} {why}')


def processes_so_far():
    with open('/proc/stat', encoding='ascii') as stat:
        return next(int(line.split()[1]) for line in stat if line.startswith('processes'))


def short_processes(work):
    """Two ways to start them; in both, none of them lives for 100 ms."""
    subprocess.run([*BUILD, '-o', f'{work}/mix', f'{PROGRAMS}/mix.c', '-pthread'], check=True)
    subprocess.run([*BUILD, '-o', f'{work}/brief', f'{PROGRAMS}/mix.c', '-pthread'], check=True)
    before, begin = processes_so_far(), time.monotonic()
    stacks = capture({'brief'}, f'{work}/mix', 'spawn', f'{work}/brief', 'once')
    print(f'{(processes_so_far() - before) / (time.monotonic() - begin):.0f} processes/s on the machine')
    check_complete('spawned', stacks, (f'{work}/brief',))
    stacks = capture({'ls', 'perl', 'expr', 'date', 'od'}, 'sh', '-c', 'while :; do ls -l /usr/lib; '
                     'perl -e "for (1..10000) {}"; expr 1 + 1; date; od /usr/bin/date; done >/dev/null')
    check_complete('from a shell', stacks)


def families(stack):
    return {word for frame in frames.split(stack)[0] for word in ('alpha', 'beta')
            if frame.name.startswith(word + '_') or frame.module.split('.')[0] == word}


def check_apart(what, stacks, clock, chain):
    """No stack of both; from the place named to the leaf, the calls are those of the source; and each has the share
    of the time that the programs measured themselves."""
    mixed = {s: w for s, w in stacks.items() if len(families(s)) > 1}
    check(not mixed, f'{what}: {sum(mixed.values())} samples with frames of both files')
    wrong = collections.Counter()
    seen = collections.Counter()
    for stack, weight in stacks.items():
        names = [frame.name.partition('.')[0] for frame in frames.split(stack)[0]]
        for word in families(stack):
            seen[word] += weight if f'{word}_inner' in names else 0
            at = [f'{word}_{step}' for step in ('run', 'middle', 'inner')]
            if f'{word}_inner' in names and names[-4:] != [chain, *at]:
                wrong[';'.join(names)] += weight
    total = seen.total()
    check(total >= SAMPLES_MIN, f'{what}: {total} samples in them')
    check(wrong.total() <= (1 - FIRST_GATE) * total, f'{what}: {wrong.total()} with other calls')
    for stack in [';'.join(s) for s in mixed][:3] + list(wrong)[:3]:
        print('   ', stack)
    took_ns = collections.Counter()
    with open(clock, encoding='ascii') as lines:
        for word, ns in map(str.split, lines):
            took_ns[word] += int(ns)
    share, truth = seen['alpha'] / max(total, 1), took_ns['alpha'] / max(took_ns.total(), 1)
    # Four standard deviations of what chance does to independent samples, and what starts and page faults take.
    bound = 0.01 + 4 * math.sqrt(truth * (1 - truth) / max(total, 1))
    check(abs(share - truth) < bound, f'{what}: alpha has {share:.3f}, {truth:.3f} by its own clock, within {bound:.3f}')


def new_clock(work):
    """A file for the programs of turns.c to say in how long they worked."""
    os.environ['TURNS'] = f'{work}/clock'
    with open(os.environ['TURNS'], 'w', encoding='ascii'):
        return os.environ['TURNS']


def turns(work, name, size, rounds, *flags):
    subprocess.run([*BUILD, *flags, f'-DNAME={name}', f'-DSIZE={size}', f'-DROUNDS={rounds}',
                    f'{PROGRAMS}/turns.c'], check=True, cwd=work)


def exec_storm(work):
    """Both programs lie at the same fixed address."""
    for name, size, rounds in (('alpha', 256, 9_000_000), ('beta', 2048, 3_000_000)):
        turns(work, name, size, rounds, '-no-pie', '-o', name)
    paths = (f'{work}/alpha', f'{work}/beta')
    clock = new_clock(work)
    stacks = capture({'alpha', 'beta'}, paths[0], '1000000', paths[1], paths[0])
    check_complete('exec storm', stacks, paths)
    foreign = {s: w for s, w in stacks.items()
               if families(s) - {s[0]} and frames.why_incomplete(s) is not None}
    check(not foreign, f'exec storm: {sum(foreign.values())} samples with the other program in it')
    for stack in list(foreign)[:3]:
        print('   ', ';'.join(stack))
    check_apart('exec storm', stacks, clock, 'main')


def libraries_in_turn(work):
    """Two libraries of one size at one address, of which each has a frame layout of its own."""
    subprocess.run([*BUILD, '-DLOADER', '-o', f'{work}/loader', f'{PROGRAMS}/turns.c', '-ldl'],
                   check=True)
    for speed, unit in (('slow', 40_000_000), ('fast', 3_000_000)):
        for name, size, rounds in (('alpha', 256, 3 * unit), ('beta', 2048, unit)):
            turns(work, name, size, rounds, '-fPIC', '-shared', '-DLIBRARY', '-o', f'{name}.so')
        clock = new_clock(work)
        stacks = capture({'loader'}, f'{work}/loader', f'{work}/alpha.so', 'alpha', f'{work}/beta.so', 'beta')
        check_complete(f'libraries, {speed}', stacks, (f'{work}/loader',))
        check_apart(f'libraries, {speed}', stacks, clock, 'main')


for case in (short_processes, exec_storm, libraries_in_turn):
    with tempfile.TemporaryDirectory() as directory:
        case(directory)
done()
