#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames of CPython, in every version that can be had here: names, order, lines and shares, of threads that
run and of threads that wait. What is true says the program itself, from sys._getframe() and
sys._current_frames(). As many versions run at once as there are CPUs, told apart by their names."""
import collections
import contextlib
import glob
import json
import os
import re
import subprocess
import sys

import beside
import interp
import live

HZ, SECONDS = 1999, 2
# Of each program; fewer would not say a share to 3 points. Rounds bound it.
SAMPLES_MIN, ROUNDS_MAX = 3000, 4
SHARES = {'seventy': 0.7, 'twenty': 0.2, 'ten': 0.1}
# Suite, package, program.
BESIDE = (('bionic', 'python3', 'python3.6'), ('bionic', 'python3.7', 'python3.7'),
          ('jammy', 'python3.11', 'python3.11'),
          ('focal', 'python3', 'python3.8'),
          ('jammy', 'python3', 'python3.10'), ('noble', 'python3', 'python3.12'),
          ('bullseye', 'python2', 'python2.7'), ('bullseye', 'python3', 'python3.9'),
          ('trixie', 'python3', 'python3.13'), ('sid', 'python3.13', 'python3.13'),
          ('sid', 'python3.14', 'python3.14'), ('sid', 'python3.15', 'python3.15'))
PYENV = os.path.expanduser('~/.pyenv/versions')
ANNOTATION = '_[p]'


def here(binary, name, *before):
    return subprocess.Popen([*before, binary, TREE, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)


def starters():
    """Name of a version, and how it is started, or why it cannot be."""
    if os.path.exists('/usr/bin/python3'):
        yield 'system', lambda name: here('/usr/bin/python3', name)
    for directory in sorted(glob.glob(PYENV + '/[23].*')):
        version = os.path.basename(directory)
        python = directory + '/bin/python'
        if not os.path.exists(python):
            continue
        yield 'env' + version, lambda name, python=python: here(python, name)
        # Two of them embedded: before and after the loop had frames of its own.
        for library in glob.glob(directory + '/lib/libpython3.1[03].so.1.0'):
            yield 'emb' + version, lambda name, library=library: here(library, name, EMBED)
    for suite, package, program in BESIDE:
        def start(name, suite=suite, package=package, program=program):
            root = beside.unpack(suite, [package])
            return beside.start(root, ['/usr/bin/' + program, '/tree.py', name], files={'/tree.py': TREE})
        yield suite[:5] + program[6:], start


def start_some(stack, some):
    """Return: {name: (process, what it says of itself)}."""
    programs = {}
    for name, start in some:
        try:
            process = start(name)
        except beside.Missing as why:
            print(f'skipped: {name}: {why}')
            continue
        stack.callback(process.wait)
        stack.callback(process.kill)
        line = process.stdout.readline()
        live.check(line, f'{name}: it runs')
        if line:
            programs[name] = process, json.loads(line)
    return programs


def python_part(stack):
    """Frames of Python as [name, file, line]."""
    frames = []
    for frame in stack:
        if frame.endswith(ANNOTATION):
            match = re.fullmatch(r'(.*?)(?: (\S+):(\d+))?', frame[:-len(ANNOTATION)])
            frames.append([match[1], match[2], int(match[3] or 0)])
    return frames


def check_running(name, truth, stacks):
    total = sum(stacks.values())
    live.check(total > 300, f'{name}: {total} samples')
    shares = dict.fromkeys(SHARES, 0)
    odd, framed, cut = {}, 0, 0
    for stack, weight in stacks.items():
        part = python_part(stack)
        framed += weight if part else 0
        cut += weight if any('truncated' in frame for frame in stack) else 0
        # What is no loop's line is the way there and back.
        for which in SHARES:
            if [f[0] for f in part[:len(truth[which])]] == [f[0] for f in truth[which]]:
                shares[which] += weight
        leaf = next((which for which in SHARES if part and part[-1] == truth[which][-1]), None)
        if leaf and part != truth[leaf]:
            odd[str(part)] = truth[leaf]
    live.check(interp.are_most(framed, total, 0.99), f'{name}: {framed} of {total} samples have frames of Python')
    live.check(interp.are_few(cut, total, 0.005), f'{name}: {cut} of {total} stacks are cut')
    live.check(not odd, f'{name}: names, order and lines are those of sys._getframe() {odd}')
    live.check(interp.are_most(sum(shares.values()), total, 0.95), f'{name}: {shares} of {total}')
    interp.check_shares(name, shares, SHARES)


def check_waiting(name, truth, stacks):
    found = {str(python_part(stack)) for stack in stacks if not stack[0].startswith('[runqueue]')}
    live.check(str(truth['waits']) in found,
               f'{name}: the thread that waits is where sys._current_frames() has it')


def add_by_name(result, stacks, at):
    for stack, weight in result.stacks.items():
        if len(stack) > at and stack[at] in stacks:
            stacks[stack[at]][stack] += weight


def look_at(programs):
    pids = ','.join(str(process.pid) for process, _ in programs.values())
    options = ['-p', pids, '--lines', '--annotate']
    waits = {name: collections.Counter() for name in programs}
    stacks = {name: collections.Counter() for name in programs}
    waiting = live.stackbpf(STACKBPF, 'offcpu', '-t', '0.5', *options)
    for at in (0, 1):
        add_by_name(waiting, waits, at)
    for _ in range(ROUNDS_MAX):
        running = interp.sample(STACKBPF, 'oncpu', [process for process, _ in programs.values()], '-F', str(HZ), seconds=SECONDS)
        add_by_name(running, stacks, 0)
        if min(sum(found.values()) for found in stacks.values()) >= SAMPLES_MIN:
            break
    for name, (_, truth) in programs.items():
        print(f'{name}: {truth["version"]}')
        check_running(name, truth, stacks[name])
        check_waiting(name, truth, waits[name])


LATE = """
import time
def unit():
    while time.process_time() < 1.5:
        pass
unit()
"""


def check_late():
    """A program that was known to have no interpreter when it was sampled first."""
    library = next(iter(sorted(glob.glob(PYENV + '/3.*/lib/libpython3.*.so.1.0'))), None)
    if not library:
        print('not tried: late: no libpython')
        return
    result = live.stackbpf(STACKBPF, 'oncpu', '-F', '999', '--', EMBED, 'late', library, '-c', LATE)
    before = sum(weight for stack, weight in result.stacks.items() if 'late' in stack)
    units = sum(weight for stack, weight in result.stacks.items() if 'unit' in stack)
    live.check(before > 100, f'late: {before} of {result.total} samples before there was an interpreter')
    # The rest begins and ends it.
    live.check(units >= 0.9 * (result.total - before), f'late: {units} of {result.total} samples in unit()')


def main():
    live.need_root()
    check_late()
    todo, nr_seen = list(starters()), 0
    nr_cpus = len(os.sched_getaffinity(0))
    while todo:
        some, todo = todo[:nr_cpus], todo[nr_cpus:]
        with contextlib.ExitStack() as stack:
            programs = start_some(stack, some)
            nr_seen += len(programs)
            if programs:
                look_at(programs)
    if not nr_seen:
        live.skip('there is no Python')
    live.done()


STACKBPF, TREE, EMBED = sys.argv[1:4]
main()
