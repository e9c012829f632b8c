#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a store costs: bytes a block and a day, CPU time of a put, of a question, of opening it.

store.py STACKBPF STORE_MODEL [HOURS]

The data are a model of a host, see store_model.c; the times are CPU times, which other work on the machine makes
worse, but not by its share. Folded text, pprof and SQLite have the same rows in the same run. A day has 24 hours
unless HOURS says less; a week is six days of 10-minute blocks before it; a year is 366 daily blocks, which is what
is left of it.
"""
import gzip
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

STACKBPF, MODEL = sys.argv[1:3]
HOURS = int(sys.argv[3]) if len(sys.argv) > 3 else 24
DAY = 86400
BEGIN = 2208988800  # 2040-01-01: nothing is late
NR_ASKED = 100


def model(*args):
    return subprocess.run([MODEL, *map(str, args)], check=True, capture_output=True, text=True).stdout


def size(path):
    return sum(file.stat().st_size for file in pathlib.Path(path).rglob('*.sb'))


def percentile(values, percent):
    values = sorted(values)
    return values[min(len(values) - 1, len(values) * percent // 100)]


def ask(what, store, begin, end, length, *rules):
    """Percentiles of whole profiles, of those of 8,192 nodes, and of as many as `serve` asks for to choose 8,192; of the
    second alone with RULES in turns."""
    for nodes in (8192,) if rules else (0, 8192, 32768):
        answers = model('ask', store, begin, end, length, NR_ASKED, nodes, *rules)
        lines = [line.split() for line in answers.splitlines()]
        times = [int(line[0]) / 1000 for line in lines]
        print(f'  {what:14} {f"{nodes:,}" if nodes else "whole":6} p50 {percentile(times[1:], 50):7.1f} ms  '
              f'p99 {percentile(times[1:], 99):7.1f} ms  first {times[0]:7.1f} ms  '
              f'at most {max(int(line[1]) for line in lines)} blocks, {max(int(line[2]) for line in lines)} stacks')


def sqlite(store, work):
    """The rows of the last hour: a row each, and a blob of the same numbers for each block."""
    begin = BEGIN + 6 * DAY + (HOURS - 1) * 3600
    rows = [tuple(map(int, line.split())) for line in model('rows', store, begin, begin + 3600).splitlines()]
    path = work / 'rows.db'
    before = time.process_time()
    with sqlite3.connect(path) as db:
        db.execute('CREATE TABLE rows (time INTEGER, row INTEGER, weight INTEGER, PRIMARY KEY (time, row)) WITHOUT ROWID')
        db.executemany('INSERT INTO rows VALUES (?, ?, ?)', rows)
    db.commit()
    spent = time.process_time() - before
    before = time.process_time()
    total = db.execute('SELECT COUNT(*), SUM(w) FROM (SELECT row, SUM(weight) w FROM rows GROUP BY row)').fetchone()[1]
    asked = time.process_time() - before
    db.close()
    assert total == sum(row[2] for row in rows)
    print(f'  SQLite, an hour, without the dictionary: {os.path.getsize(path) / 360:,.0f} bytes/block, '
          f'{spent * 1e6 / 360:,.0f} us/block, its sum {asked * 1e3:.1f} ms')


def peers(store, work):
    begin = BEGIN + 6 * DAY + (HOURS - 1) * 3600
    folded, pprof, nr = 0, 0, 6
    for i in range(nr):
        base = [STACKBPF, 'query', '--store', store, '--from', f'@{begin + 600 * i}', '--to', f'@{begin + 600 * i + 10}']
        folded += len(subprocess.run([*base, '--format', 'folded'], check=True, capture_output=True).stdout)
        path = work / 'block.pb.gz'
        subprocess.run([*base, '-o', path], check=True, capture_output=True)
        assert gzip.open(path).read(1)
        pprof += path.stat().st_size
    print(f'  folded text: {folded // nr:,} bytes/block; pprof.gz: {pprof // nr:,} bytes/block')
    sqlite(store, work)


def main():
    with tempfile.TemporaryDirectory(prefix='sb-bench-store-') as name:
        work = pathlib.Path(name)
        week, year, mixed = work / 'week', work / 'year', work / 'mixed'
        model('make', week, BEGIN, 6 * DAY, 600)
        before = size(week)
        made = json.loads(model('make', week, BEGIN + 6 * DAY, HOURS * 3600 + 600, 10))
        nr, fine = made['blocks'], sum(f.stat().st_size for f in (week / '10s').iterdir() if f.name >= '20400107')
        print(f'{HOURS} h of blocks of 10 s: {nr} blocks, {made["rows"] // nr:,} rows and {made["samples"] // nr:,} '
              'samples each')
        print(f'  {fine / nr:,.0f} bytes/block with its dictionary; {(size(week) - before) * 8640 / nr / 1e6:.1f} MB/day '
              'with all levels')
        print(f'  put: {made["put_us"]:,.0f} us of CPU a block, at most {made["put_max_us"]:,.0f} (with the sums of a period)')
        print(f'  open for writing, after any end: {min(int(model("open", week)) for _ in range(3)) / 1000:.1f} ms')
        peers(week, work)
        print(f'questions, {NR_ASKED} random ranges each, of a store that is open:')
        end = BEGIN + 6 * DAY + HOURS * 3600
        ask('1 hour', week, end - min(HOURS, 24) * 3600, end, 3600)
        ask('1 day', week, BEGIN, end, DAY)
        ask('7 days', week, BEGIN, end, end - BEGIN - 3600)
        made = json.loads(model('make', year, BEGIN, 366 * DAY, DAY))
        print(f'a year of days: {size(year / "1d") / 1e6:.1f} MB, {made["rows"] // made["blocks"]:,} rows each')
        ask('1 year', year, BEGIN, BEGIN + 366 * DAY, 365 * DAY)
        # As the page asks: one kind after the other.
        kinds = 'oncpu', 'offcpu', 'io'
        model('make', mixed, BEGIN, 366 * DAY, DAY, 1, *kinds)
        rules = [f'kind={kind}' for kind in kinds]
        ask('year, by turns', mixed, BEGIN, BEGIN + 366 * DAY, 365 * DAY, *rules)


main()
