#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record: the clock is set, forth and back, and all of the recorder stands still, as in a suspend: what was sampled is
in the store once, at the time that the clock said, and nowhere else.

record_clock.py STACKBPF SPLIT
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from live import check, done, need_own_machine, need_root, ran_seconds, running, wait_for
from recorder import BINARY, below, recording, written

need_root()
SPLIT = sys.argv[2]
HOUR, DAY = 3600, 86400
RAN = 0.5  # of a CPU, before the clock is set again
BLOCK = 10


def now():
    return time.clock_gettime(time.CLOCK_REALTIME)


def step(seconds):
    time.clock_settime(time.CLOCK_REALTIME, now() + seconds)


def ask(store, begin, end):
    """Return: samples of these times, rounded to blocks."""
    out = subprocess.run([BINARY, 'query', '--store', store, '--from', f'@{int(begin)}', '--to', f'@{int(end)}',
                          '--format', 'folded'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    check(out.returncode in (0, 3) and 'damaged' not in out.stderr, f'it can be read: {out.returncode} {out.stderr}')
    return sum(int(line.rpartition(' ')[2]) for line in out.stdout.splitlines() if line and line[0] != '#')


def empty_steps(store, begin, end):
    """Return: (steps of a block, those that nothing was recorded in)."""
    out = subprocess.run([BINARY, 'timeline', '--store', store, '--from', f'@{int(begin)}', '--to', f'@{int(end)}',
                          '--step', f'{BLOCK}s', '--format', 'tsv'], stdout=subprocess.PIPE, text=True, check=False)
    rows = [line.split('\t') for line in out.stdout.splitlines() if line and line[0].isdigit()]
    return len(rows), sum(not row[-1] for row in rows)


def run(split):
    ran = ran_seconds(split.pid)
    wait_for(lambda: ran_seconds(split.pid) > ran + RAN, 'it runs')


def sampled(recorder):
    """Samples that the sampler says it has taken, at its end."""
    return int(re.search(r'oncpu: (\d+) samples', recorder.said)[1])


def stand_still(recorder, split, seconds):
    """As long as all of us are stopped the clock goes on by more than a block: a suspend, by what can be seen of it.
    Return: when it went on, from and to."""
    everybody = below(recorder.process.pid)
    for sig in (signal.SIGSTOP, signal.SIGCONT):
        for pid in everybody:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
        if sig == signal.SIGSTOP:
            run(split)
            before = now()
            step(seconds)
            after = now()
            run(split)
    return before, after


need_own_machine('setting the clock')
with tempfile.TemporaryDirectory() as work, running(SPLIT) as split_:
    store_ = f'{work}/store'
    eras = []  # (from, to) by the clock, of each time that it was not set in
    with recording(store_, '-p', str(split_.pid), '-F', '99') as recorder_:
        # Forth beyond all that is kept of 10 s, for so long that it is looked for; back behind the beginning, and to
        # where it was.
        for seconds_ in (5 * HOUR, 400 * DAY, HOUR, -400 * DAY - 10 * HOUR, 4 * HOUR):
            begin_ = now()
            run(split_)
            written(recorder_)
            eras.append((begin_, now()))
            if len(eras) == 1:
                day = time.strftime('%Y%m%d', time.gmtime(begin_))
                kept = os.open(f'{store_}/10s/{day}.sb', os.O_RDONLY)
            step(seconds_)
        begin_ = now()
        written(recorder_)
        still_ = stand_still(recorder_, split_, HOUR)
        run(split_)
        eras.append((begin_, now()))
        written(recorder_)
        check(recorder_.end() == 0, f'it ends as it should {recorder_.said}')
    said = sampled(recorder_)
    for begin_, end_ in eras:
        print('   ', time.strftime('%F %T', time.gmtime(begin_)), f'{end_ - begin_:.1f} s')
    first, last = min(begin for begin, _ in eras) - BLOCK, max(end for _, end in eras) + BLOCK
    have = ask(store_, first, last)
    check(have == said > 0, f'nothing is lost, nothing counted twice: {have} of {said} samples')
    # Some were at about the same time. What begins just before a block does is its.
    parts = {(int(begin) // BLOCK * BLOCK, int(end) // BLOCK * BLOCK + 2 * BLOCK) for begin, end in eras}
    merged = []
    for begin_, end_ in sorted(parts):
        if merged and begin_ <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end_, merged[-1][1]))
        else:
            merged.append((begin_, end_))
    each = [ask(store_, begin, end) for begin, end in merged]
    check(sum(each) == said and all(each), f'each at its time: {dict(zip(merged, each))}')
    gap = ask(store_, merged[0][1], merged[1][0])
    check(gap == 0, f'a gap is a gap: {gap}')
    nr, nr_empty = empty_steps(store_, merged[0][0], merged[0][1] + 10 * BLOCK)
    check(nr > nr_empty >= 10, f'not zero, but nothing: {nr_empty} of {nr} steps')
    # It was stopped in one block, and goes on in one an hour later.
    still = ask(store_, still_[0] + BLOCK, still_[1] - BLOCK)
    check(still == 0, f'nothing was recorded in the hour that it did not see: {still}')
    check(os.fstat(kept).st_nlink == 1, f'{day} was too old by a clock that was wrong, and is still there')
    out_ = subprocess.run([BINARY, 'store', 'check', '--store', store_], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    check(out_.returncode == 0, f'nothing is damaged, and sums are what they are of: {out_.stdout}')
done()
