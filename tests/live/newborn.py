#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The stack of a thread at each of its first instructions, behind the system call that made it.

newborn.py STACKBPF NEWBORN

There it has its maker's registers, but a stack of its own. It ends where the thread began, and nothing of its maker's
is in it; the maker's own stack is whole.
"""
import json
import subprocess
import sys

import frames
from live import check, done, need_root, running

need_root()
STACKBPF, NEWBORN = sys.argv[1:3]
STEPS = 8  # through the rest of clone() or clone3(), and into what it calls


def stacks_of(pid):
    """{tid: names of its frames, leaf first}, without the kernel's."""
    said = subprocess.run([STACKBPF, 'snap', '-p', str(pid), '--no-inline', '--format', 'json'], stdout=subprocess.PIPE,
                          check=True, timeout=240).stdout
    return {stack['threads'][0]['tid']: [frame['name'] for frame in stack['frames'] if frame['kind'] != 'kernel']
            for stack in json.loads(said)['stacks']}


def is_root(name):
    """On arm64 the code where a thread begins lies behind clone(), and has no name in a library without its symbols."""
    return name in frames.ROOTS or name.startswith('[libc.so.6+')


with running(NEWBORN, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
    pid, tid = map(int, process.stdout.readline().split())
    at = 'where it was born'
    for _ in range(STEPS):
        stacks = stacks_of(pid)
        mine, makers = stacks[tid], stacks[pid]
        check(mine and is_root(mine[-1]) and 'traced' not in mine, f'the thread, {at}: {mine}')
        check('traced' in makers and makers[-1] == '_start', f'its maker, {at}: {makers}')
        process.stdin.write('\n')
        process.stdin.flush()
        at = process.stdout.readline().strip()
    process.stdin.close()
    process.stdout.close()
done()
