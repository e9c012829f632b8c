# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Keeps memory in three functions, and drops ten times as much; as keeper.c."""
import mmap
import sys

SIZE = 50000
kept = []


def make():
    return bytearray(b'x') * SIZE


def keep_sixty():
    for _ in range(60):
        kept.append(make())


def keep_thirty():
    for _ in range(30):
        kept.append(make())


def keep_ten():
    for _ in range(10):
        kept.append(make())


def churn():
    memory = mmap.mmap(-1, SIZE * 1000)
    for at in range(0, SIZE * 1000, 4096):
        memory[at] = 1
    memory.close()


sys.stdin.readline()
for i in range(int(sys.argv[1])):
    keep_sixty()
    churn()
    keep_thirty()
    keep_ten()
print('done', flush=True)
sys.stdin.readline()
