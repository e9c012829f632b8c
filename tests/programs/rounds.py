# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A bit of everything, see rounds.c."""
import sys
import time

CHUNK = 1500


def spin(nr):
    while nr:
        nr -= 1


def seventy():
    spin(7 * CHUNK)


def twenty():
    spin(2 * CHUNK)


def ten():
    spin(CHUNK)


def nap():
    time.sleep(0.02)


def fetch(path):
    with open(path, 'rb', buffering=0) as file:
        file.read()


def store(path):
    with open(path, 'wb', buffering=0) as file:
        file.write(b'x' * 4096)


def tell():
    sys.stdout.write('round\n')
    sys.stdout.flush()


def round_of():
    seventy()
    twenty()
    ten()
    nap()
    fetch(sys.argv[1])
    store(sys.argv[2])
    tell()


while True:
    round_of()
