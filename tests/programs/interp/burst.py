# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""As tests/programs/burst.c, mode "paths", without the mode: reads of one byte, each by another stack of Python's functions."""
import os
import signal
import sys

NR, FILE = int(sys.argv[1]), os.open(sys.argv[2], os.O_RDONLY)
DEPTH = 16


def left(i, depth):
    return walk(i >> 1, depth - 1)


def right(i, depth):
    return walk(i >> 1, depth - 1)


def walk(i, depth):
    if not depth:
        return len(os.pread(FILE, 1, 0))
    return right(i, depth) if i & 1 else left(i, depth)


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print('ready', flush=True)
at = 0
while True:
    signal.sigwait({signal.SIGUSR1})
    did = sum(walk(i, DEPTH) for i in range(at, at + NR))
    at += NR
    print('did', did, flush=True)
