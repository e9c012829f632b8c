#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labels that programs set on their threads, by include/stackbpf-labels.h and others: --label.

labels.py STACKBPF SOURCE [PART...]

Programs of tests/programs/labels.c spend 70 % of their time as "car", 20 % as "bike", 10 % as "scooter", by
clocks of their own.

LABELS: a folder with these, built already, where there is no compiler. The machine may be slow, then.
"""
import collections
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import labels_programs
from live import check, done, need_root, ready, running, run_parts, skip, stackbpf, wait_for

need_root()
BINARY, SOURCE = sys.argv[1:3]
PROGRAMS = f'{SOURCE}/tests/programs'
SPLIT = {'car': 0.7, 'bike': 0.2, 'scooter': 0.1}
BUILT = os.environ.get('LABELS')
# Where this is emulated: how much longer to look, how far a share may be off, who has been found to have labels.
SLOWNESS, ROOM, FOUND = (8, 0.1, 0.9) if BUILT else (1, 0.03, 0.97)
KEYS_SAMPLES = 500  # of 40 keys, which take turns of 4 ms: five rounds at 499 Hz
os.environ['LABELS_SLOWNESS'] = str(SLOWNESS)


def build(work, name):
    if BUILT:
        return f'{BUILT}/{name}'
    subprocess.run(labels_programs.commands(('gcc',), SOURCE, work, platform.machine())[name], check=True)
    return f'{work}/{name}'


def labelled(result, key):
    """Weight by value of the label, among samples that have it."""
    sums = {}
    for stack, weight in result.stacks.items():
        for frame in stack:
            if frame.startswith(key + '='):
                value = frame[len(key) + 1:]
                sums[value] = sums.get(value, 0) + weight
                break
    return sums


def sample(pid, *args, view='oncpu', seconds='0.7', rate='997'):
    how = ('-F', str(int(rate) // SLOWNESS)) if view == 'oncpu' else ()
    return stackbpf(BINARY, view, '-p', str(pid), '-t', str(float(seconds) * SLOWNESS), *how, '--label', 'vehicle', '--label', 'region', *args)


def check_split(result, what, split=None, bound=None):
    """Within 3 points (ROOM); where there are few samples on a busy machine, within 4.4 standard deviations."""
    split = split or SPLIT
    sums = labelled(result, 'vehicle')
    total = sum(sums.values())
    check(result.total > 50 and total >= FOUND * result.total, f'{what}: {total} of {result.total} have a label')
    for value, share in split.items():
        have = sums.get(value, 0) / total if total else 0
        room = bound or max(ROOM, 4.4 * math.sqrt(share * (1 - share) / max(total, 1)))
        check(abs(have - share) <= room, f'{what}: {value} {have:.3f}, is {share}, +- {room:.3f}')
    check(set(sums) <= set(split), f'{what}: no other value: {set(sums)}')


def programs():
    """The variable in the program itself: as gcc makes it, static, stripped but for the dynamic symbol."""
    with tempfile.TemporaryDirectory() as work:
        for name in ('static', 'stripped'):
            with ready(build(work, name), 'shares') as process:
                result = sample(process.pid)
            check_split(result, name)
            check(set(labelled(result, 'region')) == {'eu-north'}, f'{name}: the other label')
            check(all(s[0].startswith('vehicle=') and s[1] == 'region=eu-north' and s[2] == name
                      for s in result.stacks if '=' in s[0]), f'{name}: labels stand outside, as asked for')
            check(result.facts.get('labels') == 'vehicle,region', f'{name}: the header says so')


def libraries():
    """Loaded when the program runs: its block is found by relocations of each kind."""
    with tempfile.TemporaryDirectory() as work:
        program = build(work, 'plain')
        for name in ('dynamic', 'descriptor', 'initial'):
            with ready(program, 'shares', build(work, f'{name}.so')) as process:
                check_split(sample(process.pid), f'library, {name}')


def musl():
    """Another libc has its blocks of thread-local variables otherwise."""
    if not shutil.which('musl-gcc'):
        print('without musl: there is no musl-gcc (Debian: apt install musl-tools)')
        return
    with tempfile.TemporaryDirectory() as work:
        flags, program, lib = ('-O1', f'-I{SOURCE}/include'), f'{work}/musl', f'{work}/musl.so'
        subprocess.run(['musl-gcc', *flags, '-o', program, f'{PROGRAMS}/labels.c'], check=True)
        subprocess.run(['musl-gcc', *flags, '-fPIC', '-shared', '-o', lib, f'{PROGRAMS}/labels_lib.c'], check=True)
        with ready(program, 'shares', lib) as process:
            check_split(sample(process.pid), 'library, musl')


def waits(program):
    """By what the program itself measures: on a busy machine it wakes up late, so that its times asleep are not those
    that it asked for, and it is not asleep while it waits for a CPU."""
    result = stackbpf(BINARY, 'offcpu', '--label', 'vehicle', '--', program, 'waits')
    spent = {value: int(ns) / 1000 for value, ns in re.findall(r'^spent (\w+) (\d+)$', result.err, re.M)}
    sums = labelled(result, 'vehicle')
    check(set(sums) == set(spent) == set(SPLIT), f'waits: all have a label: {sums} {spent}')
    # Where the machine is idle, both threads begin their first wait, of 35 ms, before the program is known to have labels.
    first = {'car': 2 * 35000 * SLOWNESS}
    for value, us in spent.items():
        check(-ROOM * us - first.get(value, 0) <= sums[value] - us <= ROOM * us, f'waits: {value} {sums[value]:.0f} us, is {us:.0f}')
    # The main thread waits for the others, and has none.
    check(0.6 < sum(sums.values()) / result.total < 0.7, f'two of three wait with a label: {sums} of {result.total}')


def shares():
    """The shares, within 3 points; by several ways to ask."""
    with tempfile.TemporaryDirectory() as work:
        program = build(work, 'shares')
        with ready(program, 'shares') as process:
            check_split(sample(process.pid, seconds='2', rate='1999'), 'two seconds')
            check_split(sample(process.pid, '-k'), 'kernel stacks only')
            plain = stackbpf(BINARY, 'oncpu', '-p', str(process.pid), '-t', '0.3')
            check(not any('=' in frame for stack in plain.stacks for frame in stack), 'nobody asked: none')
        waits(program)
        with ready(program, 'asleep') as process:
            result = sample(process.pid, view='offcpu')
            sums = labelled(result, 'vehicle')
            check(set(sums) == {'asleep'} and sums['asleep'] > 1.9 * int(result.facts['dur_us']), f'asleep before the run: {sums}')


def custom():
    """The other form, in the program."""
    with tempfile.TemporaryDirectory() as work, ready(build(work, 'custom'), 'custom') as process:
        check_split(sample(process.pid, '--interp', 'off'), 'custom labels', {'car': 0.7, 'bike': 0.3})


def python():
    """ctypes, with the library; threads of Python's."""
    with tempfile.TemporaryDirectory() as work:
        lib = build(work, 'labels.so')
        example = f'{SOURCE}/docs/examples/labels/labels.py'
        with running(sys.executable, example, lib, stdout=subprocess.DEVNULL) as process:
            wait_for(lambda: 'OTEL_CTX' in open(f'/proc/{process.pid}/maps', encoding='ascii').read(), 'labels')
            result = sample(process.pid, seconds='1')
        check_split(result, 'python', bound=1 if BUILT else None)  # its turns are as long everywhere
        with_frames = [s for s in result.stacks if any('work' in frame for frame in s)]
        check(len(with_frames) > 0 and all(s[0].startswith('vehicle=') for s in with_frames),
              'frames of Python stand below them')


def torn():
    """Two sets, changed as fast as it goes: never half of each."""
    with tempfile.TemporaryDirectory() as work:
        program = build(work, 'torn')
        with ready(program, 'torn') as process:
            result = sample(process.pid, seconds='2', rate='4999')
        pairs = {}
        for stack, weight in result.stacks.items():
            pair = tuple(frame for frame in stack[:2] if '=' in frame)
            pairs[pair] = pairs.get(pair, 0) + weight
        whole = {('vehicle=aaaaaaaa', 'region=aaaaaaaa'), ('vehicle=b', 'region=b')}
        check(set(pairs) - {()} == whole and all(pairs[p] > 300 for p in whole), f'whole sets only: {pairs}')
        check(pairs.get((), 0) <= 0.001 * result.total, 'and hardly a moment without')


def keys():
    """Keys that come up while the run goes on have their names."""
    with tempfile.TemporaryDirectory() as work:
        program = build(work, 'keys')
        stacks = collections.Counter()
        with ready(program, 'keys') as process:
            while stacks.total() < KEYS_SAMPLES:
                stacks += stackbpf(BINARY, 'oncpu', '-p', str(process.pid), '-t', '1.2', '-F', '499', '--label', 'key20',
                                   '--label', 'key39').stacks
        roots = {s[0] for s in stacks}
        check(roots == {'key20=yes', 'key39=yes', 'keys'}, f'those that were asked for: {roots}')
        have = sum(w for s, w in stacks.items() if s[0] == 'key20=yes') / stacks.total()
        check(0.005 < have < 0.08, f'for a fortieth of the time: {have:.3f}')


def hostile():
    """Forged records, and more values than anybody can keep."""
    with tempfile.TemporaryDirectory() as work:
        program = build(work, 'forged')
        with ready(program, 'forged') as process:
            result = sample(process.pid, '--stats', rate='4999')
        check(result.status == 0 and result.total > 300, f'forged: {result.total} samples')
        check(not labelled(result, 'vehicle'), 'forged: what has no names is not shown')
        program = build(work, 'many')
        with ready(program, 'many') as process:
            result = sample(process.pid, rate='4999')
        values = labelled(result, 'vehicle')
        check(result.status == 0 and len(values) > 100, f'many: {len(values)} values of {sum(values.values())} samples')
        check(sum(values.values()) >= 0.99 * result.total, 'many: none is lost')


if not BUILT and not shutil.which('gcc'):
    skip('there is no gcc')
run_parts((programs, libraries, musl, shares, custom, python, torn, keys, hostile), sys.argv[3:])
done()
