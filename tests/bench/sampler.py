#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What sampling costs, beside perf and bpftrace in the same run, every CPU busy.

sampler.py STACKBPF DEEP [SECONDS [ROUNDS]]

Two loads: DEEP, whose stacks are 22 frames deep with frame pointers; and programs of the distribution, which have
none, each of them at least once. For each tool and rate: time in its BPF program per sample (the kernel's own
statistics), CPU time of the process and its children as a share of one CPU, bytes written. The tools run in turns,
ROUNDS times each, and a figure is the median; the lowest and the highest stand behind it. The share is that of SECONDS
in the midst of a run, by the CPU clocks of the processes. "Steady" is the share in the median second of these, which
has no work that is done now and then, such as reading debug information; "once" is the rest of the CPU time: start,
names, output. Where others work beside it, only the row with `-p` of the load is comparable, since all other rows
sample the others, too. BPF time of ours is also given as the ratio to each of its rows in the same round, as a
median: of `--unwind none --interp off`, which takes the leaf alone, and of bpftrace. To compare two builds: ticks.py.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from costs import bpf_stats_on, run

BINARY, DEEP = sys.argv[1:3]
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 10.0
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 5
SETTLE = 2.0  # before the share is measured: start, first tables and names
REST = 1.0  # behind it, so that the end of the run is outside
BPFTRACE = 'profile:hz:%d {@[kstack,ustack,comm]=count()} interval:s:%d {exit()}'
LOADS = {
    'deep, with frame pointers': [[DEEP, '20']],
    'programs of the distribution': [
        ['/usr/bin/python3', '-c', 'import json\nwhile True: json.loads(json.dumps(list(range(300)), indent=1))'],
        ['/usr/bin/perl', '-e', 'while (1) { my %h = map { $_ => join ",", 1..$_ } 1..99; join "", sort values %h }'],
        ['/usr/bin/ruby', '-e', 'loop { (1..300).map { |i| i.to_s * 3 }.sort.each_slice(7).to_a.inspect }'],
        ['/usr/bin/openssl', 'speed', '-seconds', '1000', 'rsa2048'],
    ],
}


def spread(values, scale, digits):
    """Median, and in parentheses the lowest and the highest."""
    return (f'{statistics.median(values) / scale:{digits + 4}.{digits}f} ({min(values) / scale:.{digits}f} to '
            f'{max(values) / scale:.{digits}f})')


def show(name, hz, runs, ours):
    """One line: medians of all runs of a tool. OURS: the runs of `stackbpf oncpu` in the same rounds."""
    shares = [got['share'] for got in runs]
    if None in shares:
        print(f'{name:30} {hz:5} Hz  ended before it could be measured')
        return
    share, steady = statistics.median(shares), statistics.median(got['steady'] for got in runs)
    once = statistics.median(got['cpu'] - got['steady'] * (SETTLE + SECONDS + REST) for got in runs)
    # A program that began beside perf is somebody else's.
    in_bpf = [got['ns'] for got in runs if got['ns'] and not name.startswith('perf')]
    per_sample = f'{spread(in_bpf, 1000, 2)} us' if in_bpf else '-'
    ratios = [a['ns'] / b['ns'] for a, b in zip(ours, runs) if a['ns'] and b['ns']] if in_bpf else []
    if ratios and runs is not ours:
        per_sample += f', ours {spread(ratios, 1, 2).strip()}'
    whole = ''
    if name.startswith('stackbpf') and in_bpf:
        bpf = statistics.median(got['ns'] * got['calls'] for got in runs if got['ns']) / 1e9
        bpf /= SETTLE + SECONDS + REST
        whole = f'  in all {100 * (bpf + share):6.3f} %, steady {100 * (bpf + steady):6.3f} %'
    print(f"{name:30} {hz:5} Hz  BPF/sample {per_sample:40}  own CPU {100 * share:7.3f} % of one "
          f"({100 * min(shares):.3f} to {100 * max(shares):.3f}), steady {100 * steady:7.3f} %  once {once:6.3f} s  "
          f"peak {statistics.median(got['rss'] for got in runs):6.1f} MiB  "
          f"wrote {statistics.median(got['bytes'] for got in runs) / 1024:9.1f} KiB{whole}", flush=True)


def tools(hz, seconds, perf_data, busy):
    whole = max(1, round(seconds))
    ours = [BINARY, 'oncpu', '-t', str(seconds), '-F', str(hz), '-q']
    yield 'stackbpf oncpu', ours, None
    yield 'stackbpf oncpu -p', ours + [word for process in busy for word in ('-p', str(process.pid))], None
    yield 'stackbpf oncpu --unwind fp', ours + ['--unwind', 'fp'], None
    yield 'stackbpf oncpu, leaf only', ours + ['--unwind', 'none', '--interp', 'off'], None
    if shutil.which('perf'):
        yield 'perf record -g', ['perf', 'record', '-q', '-a', '-g', '-e', 'cpu-clock', '-F', str(hz), '-o',
                                 perf_data, '--', 'sleep', str(seconds)], perf_data
        yield ('perf record --call-graph dwarf',
               ['perf', 'record', '-q', '-a', '--call-graph', 'dwarf', '-e', 'cpu-clock', '-F', str(hz), '-o',
                perf_data, '--', 'sleep', str(seconds)], perf_data)
    if shutil.which('bpftrace'):
        yield 'bpftrace kstack,ustack,comm', ['bpftrace', '-e', BPFTRACE % (hz, whole)], None


def measure(work, busy):
    seconds = SETTLE + SECONDS + REST
    for hz in (99, 999):
        runs = {}
        for _ in range(ROUNDS):
            for name, command, output in tools(hz, seconds, f'{work}/perf.data', busy):
                got = run(command, output, (SETTLE, SETTLE + SECONDS))
                runs.setdefault(name, []).append(got)
        for name, got in runs.items():
            show(name, hz, got, runs['stackbpf oncpu'])


def main():
    with bpf_stats_on(), tempfile.TemporaryDirectory() as work:
        for load, commands in LOADS.items():
            print(f'\n{load}:')
            here = [c for c in commands if shutil.which(c[0])]
            busy = [subprocess.Popen(here[i % len(here)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    for i in range(max(os.cpu_count(), len(here)))]
            try:
                time.sleep(0.5)
                measure(work, busy)
            finally:
                for process in busy:
                    process.kill()
                    process.wait()


if os.geteuid() != 0:
    print('skipped: sampling needs root')
    sys.exit(77)
print(f"{os.cpu_count()} CPUs, Linux {os.uname().release}, {re.sub(' +', ' ', ' '.join(sys.argv))}")
main()
