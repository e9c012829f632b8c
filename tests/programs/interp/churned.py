# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Maps a file that looks like an interpreter, writes over it, cuts it off and makes it longer while it is
mapped, and maps it again, without end. churned.py NAME FILE COPY SEED"""
import mmap
import os
import random
import sys
import time


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def spoil(fd, text):
    """Its head, its tables, or anything; short, or long with nothing in it."""
    for _ in range(random.choice((0, 1, 8, 64))):
        at = random.choice((random.randrange(64), random.randrange(len(text)), len(text) - random.randrange(4096)))
        os.pwrite(fd, random.choice((bytes(8), b'\xff' * 8, random.randbytes(8))), at)
    if random.random() < 0.7:
        os.ftruncate(fd, random.choice((0, 63, 4096, random.randrange(len(text)), 1 << 40)))


def churn(text, path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.pwrite(fd, text, 0)
    if random.random() < 0.5:
        spoil(fd, text)
        if os.fstat(fd).st_size == 0:
            os.ftruncate(fd, 1)
    with mmap.mmap(fd, min(os.fstat(fd).st_size, len(text)), mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC):
        spin(0.002)
        spoil(fd, text)
        spin(0.002)
    os.close(fd)
    if random.random() < 0.1:
        os.unlink(path)


def main():
    with open('/proc/self/comm', 'w', encoding='ascii') as comm:
        comm.write(sys.argv[1])
    random.seed(sys.argv[4])
    with open(sys.argv[2], 'rb') as file:
        text = file.read()
    print('ready', flush=True)
    while True:
        churn(text, sys.argv[3])


main()
