#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The first stacks of a command are whole, on a busy machine, too, whatever else is looked at.

first.py STACKBPF
"""
import contextlib
import os
import re
import shutil
import sys
import tempfile

from live import check, done, need_root, running, stackbpf

need_root()
BINARY = sys.argv[1]
CUT = '[truncated: unwind table not ready]'
# A program's first stack begins below its environment; a piece of it is to be small nevertheless.
ENVIRONMENT = os.environ | {'STACKBPF_LARGE': 'x' * 30000}
CALLS = 4000
TRIES_MAX = 3


def files_with_code(path):
    with open(path, encoding='utf-8') as file:
        lines = [line.split() for line in file]
    return {line[5] for line in lines if len(line) > 5 and 'x' in line[1] and line[5] != '[vsyscall]'}


def tables():
    """Those of all that a command maps stand before it begins, whatever is sampled of it."""
    with tempfile.TemporaryDirectory() as work:
        result = stackbpf(BINARY, 'io', '--stats', '--', 'dd', 'if=/proc/self/maps',
                          f'of={work}/maps', 'bs=64k')
        files = files_with_code(f'{work}/maps')
    found = re.search(r'unwind tables\s+(\d+), built (\d+)', result.err)
    check(found and int(found[1]) >= len(files), f'{found and found[0]}; of dd: {sorted(files)}')


def burst(program, *args):
    """A program that does nothing but calls, from its first millisecond on. Return: how many were cut, and what
    to say of it."""
    result = stackbpf(BINARY, 'io', '--count', *args, '--', program, 'if=/dev/zero', 'of=/dev/null', 'bs=1',
                      f'count={CALLS}', env=ENVIRONMENT)
    own = {stack: weight for stack, weight in result.stacks.items() if stack[0] == os.path.basename(program)}
    calls, cut = sum(own.values()), sum(weight for stack, weight in own.items() if CUT in stack)
    check(calls >= 2 * CALLS, f'{" ".join(["io", *args])}: {calls} calls')
    return cut, f'{cut} of {calls} cut; {result.err.splitlines()[-1]}'


def alone(program):
    cut, what = burst(program)
    check(not cut, f'io: {what}')


def among_all(program):
    """With -a, others' stacks go through the same ring. Where they fill it, that is said, and tried again."""
    for _ in range(TRIES_MAX):
        cut, what = burst(program, '-a')
        if not cut:
            break
    check(not cut, f'io -a: {what}')


def bursts():
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as load:
        program = shutil.copy(shutil.which('dd'), f'{work}/first-calls')
        os.chmod(work, 0o755)
        for _ in range(3):
            alone(program)
        among_all(program)
        for _ in range(2 * os.cpu_count()):
            load.enter_context(running('sh', '-c', 'while :; do :; done'))
        for _ in range(2):
            alone(program)


tables()
bursts()
done()
