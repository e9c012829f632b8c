#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every caller has the address that glibc's backtrace() finds, and there are as many.

selfunwind.py STACKBPF PROGRAMS [OPTION...]

SELFCHECK: the program, built already, where there is no compiler. The machine may be slow, then.
"""
import collections
import os
import resource
import shutil
import subprocess
import sys
import tempfile

import frames
from live import check, done, need_root, running, stackbpf

need_root()
BINARY, PROGRAMS = sys.argv[1], os.path.abspath(sys.argv[2])
BUILT = os.environ.get('SELFCHECK')
NO_FP = ('-O2', '-fomit-frame-pointer', '-pthread')
# A stripped program at fixed addresses has frames that are nothing but addresses.
BUILDS = {
    'static': ('gcc', *NO_FP, '-static', '-no-pie', '-s'),
    'pie': ('gcc', *NO_FP, '-pie', '-fPIE', '-s'),
    'static-pie': ('gcc', *NO_FP, '-static-pie', '-fPIE', '-s'),
    'frame-pointers': ('gcc', '-O1', '-fno-omit-frame-pointer', '-pthread'),
    'clang': ('clang', *NO_FP),
}
# Levels at which there are about 35, 65, 205 and 400 frames.
LEVELS = (8, 15, 50, 99)
SAMPLES_MIN = 20
RUNS_MAX = 10  # on a machine that has others to serve
# What bounds a stack that is seen before there are tables.
FIRST_SIGHT = {'[truncated: longer than its first piece]', '[truncated: unreadable stack]'}


class Module:
    """An ELF file as binutils sees it, and where it lies."""

    def __init__(self, path, start):
        # Fixed addresses are those of the file; everything else here is linked to 0.
        self.bias = 0 if 'EXEC' in frames.output('readelf', '-hW', path) else start
        self.symbols = frames.symbols(path)

    def is_at(self, frame, address):
        address -= self.bias
        if not frame.name:
            return frame.offset == address
        return any(at + frame.offset == address for at in self.symbols.get(frame.name, ()))


class Vdso:
    """On arm64 it has the signal trampoline, which is no function and so has no name."""

    def __init__(self, start):
        self.start = start

    def is_at(self, frame, address):
        return not frame.name and self.start + frame.offset == address


_modules = {}


def mapped(pid):
    """Module of each executable range."""
    ranges, starts = [], {}
    with open(f'/proc/{pid}/maps', encoding='utf-8') as maps:
        for line in maps:
            fields = line.split()
            if fields[-1] == '[vdso]':
                start, end = (int(x, 16) for x in fields[0].split('-'))
                ranges.append((start, end, 'vdso', Vdso(start)))
            if len(fields) < 6 or not fields[5].startswith('/'):
                continue
            start, end = (int(x, 16) for x in fields[0].split('-'))
            first = starts.setdefault(fields[5], start)
            if 'x' in fields[1]:
                key = fields[5], first
                if key not in _modules:
                    _modules[key] = Module(*key)
                ranges.append((start, end, os.path.basename(fields[5]), _modules[key]))
    return ranges


def is_same(frame, address, ranges):
    for start, end, name, module in ranges:
        if start <= address < end:
            return frame.module == name and module.is_at(frame, address)
    return False


def difference(stack, callers, ranges):
    """What differs first, from the leaf to the root; '' if nothing does, None if some are missing
    because all there was of the stack is its first piece."""
    user = frames.split(stack)[0][-2::-1]  # without the leaf, which goes on
    for i, (frame, address) in enumerate(zip(user, callers)):
        if i == len(user) - 1 and frame.name in FIRST_SIGHT:
            return None
        if not is_same(frame, address, ranges):
            return f'frame {i + 1} is {frame} +{frame.offset:#x}, not at {address:#x}'
    if len(user) != len(callers):
        return f'{len(user)} callers, not {len(callers)}'
    return ''


def compare(what, *command):
    seconds = 300 if BUILT else 20
    bound = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))}
    with running(*command, stdout=subprocess.PIPE, text=True, **bound) as target:
        callers = []
        for line in target.stdout:
            if line == 'ready\n':
                break
            callers.append(int(line, 16))
        ranges = mapped(target.pid)
        found = collections.Counter()
        for _ in range(RUNS_MAX):
            result = stackbpf(BINARY, 'oncpu', '-p', str(target.pid), '-t', '3s' if BUILT else '300ms', '-F', '999',
                              '-u', *frames.OPTIONS, *sys.argv[3:])
            for stack, weight in result.stacks.items():
                found[difference(stack, callers[1:], ranges)] += weight
            if found[''] >= SAMPLES_MIN:
                break
    equal, cut = found.pop('', 0), found.pop(None, 0)
    check(len(callers) > 20 and equal >= SAMPLES_MIN and equal >= cut and not found,
          f'{what}: {len(callers)} frames: {equal} samples equal backtrace(), {cut} as far as they '
          f'reach, {found.total()} differ')
    for differs in list(found)[:3]:
        print('   ', differs)


if BUILT:
    for where in ('main', 'thread', 'signal'):
        compare(f'{os.path.basename(BUILT)}, {where}', BUILT, str(LEVELS[1]), where)
    done()
with tempfile.TemporaryDirectory() as work:
    for build, (compiler, *flags) in BUILDS.items():
        if not shutil.which(compiler):
            print(f'without {build}: there is no {compiler}')
            continue
        program = f'{work}/selfcheck-{build}'
        subprocess.run([compiler, *flags, '-o', program, f'{PROGRAMS}/selfcheck.c'], check=True)
        for where in ('main', 'thread', 'signal'):
            for levels in LEVELS if build in ('static', 'pie') else LEVELS[1:2]:
                compare(f'{build}, {where}, {levels} levels', program, str(levels), where)
done()
