# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What 'calls faults SECONDS FRAMES' does, by Python: prints ns of CPU time for each page of fresh memory that it touches, below
so many functions."""
import mmap
import sys
import time

PAGES = 4096


def touch(memory):
    for at in range(0, PAGES * mmap.PAGESIZE, mmap.PAGESIZE):
        memory[at] = 1


def below(memory, nr):
    if nr:
        below(memory, nr - 1)
    else:
        touch(memory)


def main():
    end, frames = time.monotonic() + float(sys.argv[1]), int(sys.argv[2])
    nr = cpu_ns = 0
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        while time.monotonic() < end:
            begin = time.thread_time_ns()
            below(memory, frames)
            cpu_ns += time.thread_time_ns() - begin
            nr += PAGES
            memory.madvise(mmap.MADV_DONTNEED)
    print(f'{cpu_ns / nr:.2f}')


main()
