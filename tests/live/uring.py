#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""io on a program that moves known bytes through io_uring.

uring.py STACKBPF URING
"""
import json
import os
import subprocess
import sys
import tempfile

from live import check, done, need_root, skip, stackbpf
from truth import check_near

need_root()
BINARY, URING = sys.argv[1:3]


def try_it():
    """The kernel may not have it, or not let us: the program says so."""
    try:
        with open('/proc/sys/kernel/io_uring_disabled', encoding='ascii') as file:
            if file.read().strip() != '0':
                skip('io_uring is off: sysctl kernel.io_uring_disabled')
    except FileNotFoundError:
        pass
    with tempfile.TemporaryDirectory() as work:
        tried = subprocess.run([URING, work, f'{work}/truth'], stderr=subprocess.PIPE, text=True, timeout=240,
                               check=False)
    if tried.returncode == 77:
        skip(tried.stderr.strip())
    check(tried.returncode == 0, f'the program: {tried.returncode} {tried.stderr}')


def io(*options):
    """Return: what stackbpf says, and what the program says."""
    with tempfile.TemporaryDirectory() as work:
        work = os.path.realpath(work)
        os.mkdir(f'{work}/dir')
        result = stackbpf(BINARY, 'io', '--file=full', '--stats', *options, '--', URING, f'{work}/dir',
                          f'{work}/truth', timeout=240)
        with open(f'{work}/truth', encoding='ascii') as file:
            items = json.load(file)['items']
    if 'io_uring observed by         not' in result.err:
        skip(next(line for line in result.err.splitlines() if 'io_uring observed by' in line))
    return result, items


def of(result, item):
    """The poller has no stack of the program's; it is the one who uses that file."""
    return sum(w for s, w in result.stacks.items()
               if (item['function'] in s or (item['function'] == 'by_poller' and s[0].startswith('iou-sqp'))) and
               s[-2:] == (item['call'], item['file']))


def check_items(result, items, what, field='bytes'):
    wrong = {(i['function'], i['call']): (of(result, i), i[field]) for i in items if of(result, i) != i[field]}
    check(items and not wrong, f'{what}: {len(items)} ways, these differ: {wrong}')
    have = sum(w for s, w in result.stacks.items() if any(f.startswith('uring_') for f in s))
    want = sum(i[field] for i in items)
    check(have == want, f'{what}: in all {have} of {want}')


def moved():
    result, items = io()
    check_items(result, [i for i in items if i['direction'] != 'n'], 'bytes')
    check('lost' not in result.err.splitlines()[-1], 'nothing lost')
    for option, direction in (('-r', 'r'), ('-w', 'w')):
        result, items = io(option)
        check_items(result, [i for i in items if i['direction'] == direction], option)
    result, items = io('--kind', 'sock')
    check_items(result, [i for i in items if i['file'].startswith('socket:')], '--kind sock')


def counted():
    """By count, those that move nothing as well; one that has two files counts for what it reads."""
    result, items = io('--count')
    opened = [w for s, w in result.stacks.items() if 'uring_openat' in s]
    chained = next(i for i in items if i['function'] == 'by_chain')
    check(sum(opened) == chained['calls'], f'--count: files opened: {opened}')
    for stack in [s for s in result.stacks if 'uring_openat' in s]:
        del result.stacks[stack]
    check_items(result, items, '--count', 'calls')


def waited():
    """From where it is asked for to its end, whoever brings it about."""
    result, items = io('--latency')
    item = next(i for i in items if i['function'] == 'by_waiting')
    check_near(of(result, item), item['ns'] / 1000, '--latency: reads of a pipe', 0.05)
    result, items = io('--layer', 'fsync', '--count')
    check_items(result, [i for i in items if i['direction'] == 'n'], '--layer fsync', 'calls')


try_it()
for part in (moved, counted, waited):
    part()
done()
