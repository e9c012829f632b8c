# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""kernelkeeper.py NR: for each line that it reads, keep NR files, NR eventfds and NR pages, and have ten times as many
come and go."""
import mmap
import os
import resource
import sys

NR = int(sys.argv[1])
kept = []
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def hold_files():
    for _ in range(NR):
        kept.append(os.open('/dev/null', os.O_RDONLY))


def hold_eventfds():
    for _ in range(NR):
        kept.append(os.eventfd(0))


def hold_pages():
    area = mmap.mmap(-1, NR * mmap.PAGESIZE)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range(NR):
        area[i * mmap.PAGESIZE] = 1
    kept.append(area)


def churn():
    for _ in range(10 * NR):
        os.close(os.open('/dev/null', os.O_RDONLY))
        os.close(os.eventfd(0))
    for _ in range(10):
        with mmap.mmap(-1, NR * mmap.PAGESIZE) as area:
            area.madvise(mmap.MADV_NOHUGEPAGE)
            for i in range(NR):
                area[i * mmap.PAGESIZE] = 1


print('ready', flush=True)
for _ in sys.stdin:
    hold_files()
    hold_eventfds()
    hold_pages()
    churn()
    print(*[0] * 8, flush=True)
