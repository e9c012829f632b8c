# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""leaks.py NR: as leaks.c. Bytes are those of the objects, which are too large for Python's own arenas."""
import sys

PIECE = 1000
kept = []
account = [0, 0, 0, 0, 0, 0, 0, 0]


def count(of, piece):
    account[2 * of] += sys.getsizeof(piece)
    account[2 * of + 1] += 1


def keep(of, nr):
    piece = bytes(PIECE * (1 + nr % 3))
    kept.append(piece)
    count(of, piece)


def much(nr):
    keep(0, nr)


def some(nr):
    keep(1, nr)


def little(nr):
    keep(2, nr)


def churn():
    for piece in [bytes(2 * PIECE) for _ in range(10)]:
        count(3, piece)


def work(nr):
    for i in range(nr):
        for k in range(10):
            much(i) if k < 6 else some(i) if k < 9 else little(i)
            churn()


print('ready', flush=True)
for _ in sys.stdin:
    work(int(sys.argv[1]))
    print(*account, flush=True)
