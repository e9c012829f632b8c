#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The stacks of `perf record --call-graph dwarf`, which copies 64 KB of stack at each sample and
unwinds them later by another library, taken of the same process at the same time.

perf_agree.py STACKBPF PROGRAMS [OPTION...]

The two sample at different moments, so no sample of one is to be found at the other. Compared are
distributions over stacks, a stack being the functions from the thread's root to the leaf, by name:

	overlap		sum over stacks of the smaller of the two shares; 1 if they are equal
	known		share of our samples whose stack perf has seen, and the other way round

Both are lowered by rare stacks, which one of them meets and the other does not, even if all are
right. So the same figures of two halves of perf's own samples stand beside them: what agreement
looks like between equals, with as many samples. Where the leaf is entered and left there is no
difference either, since both use the same tables.
"""
import collections
import functools
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

import frames
from live import check, done, need_root, running, skip, stackbpf, wait_for

need_root()
BINARY, PROGRAMS = sys.argv[1], os.path.abspath(sys.argv[2])
SECONDS = 4
STACK_BYTES = 65528
# Lower than between equals by this at most.
SLACK = 0.05
SAMPLES_MIN = 500
RUNS_MAX = 5


def bounded():
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


@functools.lru_cache(maxsize=None)
def first_names(path):
    """One function has several names; who takes which one is a matter of taste. Name: first one."""
    at = collections.defaultdict(list)
    found = frames.symbols(path)
    for name, addresses in found.items():
        at[min(addresses)].append(name)
    return {name: min(at[min(addresses)]) for name, addresses in found.items()}


def function(name, path):
    name = name.partition('@')[0]
    return first_names(path).get(name, name) if path.startswith('/') else name


def perf_stacks(data):
    """Of a recording: the functions of each sample, and the files that they are from."""
    script = frames.output('perf', 'script', '-i', data, '--no-inline', '--no-demangle',
                           '-F', 'comm,ip,sym,dso', '--max-stack', '512')
    stacks, names, paths = [], [], {}
    for line in [*script.splitlines(), '']:
        frame = re.match(r'\s+([0-9a-f]+) (.*) \((.*)\)', line)
        if frame:
            paths[os.path.basename(frame[3])] = frame[3]
            if int(frame[1], 16) < 1 << 63:
                names.append(function(frame[2], frame[3]))
        elif not line and names:
            stacks.append(tuple(reversed(names)))
            names = []
    return stacks, paths


def our_stacks(result, paths):
    stacks = collections.Counter()
    for stack, weight in result.stacks.items():
        stacks[tuple(function(frame.name or '[unknown]', paths.get(frame.module, ''))
                     for frame in frames.split(stack)[0])] += weight
    return stacks


def overlap(a, b):
    return sum(min(a[s] / a.total(), b[s] / b.total()) for s in a.keys() & b.keys())


def known(a, b):
    return sum(weight for stack, weight in a.items() if stack in b) / a.total()


def both(command, work):
    data = f'{work}/perf.data'
    with running(*command, stdout=subprocess.DEVNULL, preexec_fn=bounded) as target:
        recorder = subprocess.Popen(
            ['perf', 'record', '-q', '-o', data, '-e', 'cpu-clock', '-F', '499', '-m', '64M',
             '--call-graph', f'dwarf,{STACK_BYTES}', '-p', str(target.pid), '--',
             'sleep', str(SECONDS)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(data) and os.path.getsize(data) > 1 << 20, 'perf records')
        result = stackbpf(BINARY, 'oncpu', '-p', str(target.pid), '-t', str(SECONDS - 1), '-F', '999',
                          '-u', '--demangle=off', *frames.OPTIONS, '--interp=off', *sys.argv[3:])
        recorder.wait()
    samples, paths = perf_stacks(data)
    return samples, our_stacks(result, paths)


def compare(what, *command):
    samples, ours = [], collections.Counter()
    for _ in range(RUNS_MAX):
        with tempfile.TemporaryDirectory() as work:
            of_perf, of_ours = both(command, work)
        samples += of_perf
        ours += of_ours
        if min(len(samples), ours.total()) >= SAMPLES_MIN:
            break
    perf = collections.Counter(samples)
    odd, even = collections.Counter(samples[::2]), collections.Counter(samples[1::2])
    check(ours.total() >= SAMPLES_MIN and perf.total() >= SAMPLES_MIN,
          f'{what}: {ours.total()} samples in {len(ours)} stacks, perf has {perf.total()} in {len(perf)}')
    if not ours or not perf:
        return
    print(f'{what}: weighted Jaccard {overlap(ours, perf) / (2 - overlap(ours, perf)):.3f}')
    for name, measure in ('overlap', overlap), ('known', known):
        have, back, equals = measure(ours, perf), measure(perf, ours), measure(odd, even)
        check(min(have, back) >= equals - SLACK,
              f'{what}: {name}: {have:.3f} and {back:.3f}; perf with itself: {equals:.3f}')
    for title, a, b in ('only we have', ours, perf), ('only perf has', perf, ours):
        print(f'   {title}:')
        for stack, weight in [x for x in a.most_common() if x[0] not in b][:4]:
            print(f'      {weight}', ';'.join(stack))


if not shutil.which('perf'):
    skip('there is no perf')
with tempfile.TemporaryDirectory() as directory:
    program = f'{directory}/mix'
    subprocess.run(['g++', '-O2', '-fomit-frame-pointer', '-o', program, f'{PROGRAMS}/mix.cc'],
                   check=True)
    compare('C++', program)
    compare('python', '/usr/bin/python3', f'{PROGRAMS}/mix.py')
done()
