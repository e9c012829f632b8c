#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What sampling costs, beside perf and bpftrace in the same run, every CPU busy.

sampler.py STACKBPF DEEP [SECONDS]

Two loads: DEEP, whose stacks are 22 frames deep with frame pointers; and programs of the
distribution, which have none. For each tool and rate: time in its BPF program per sample (the
kernel's own statistics), CPU time of the process itself as a share of one CPU, bytes written. What a
run costs once (start, first names, output) is told apart from what each second costs by a second run
that is SECONDS longer.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from costs import bpf_stats_on, run

BINARY, DEEP = sys.argv[1:3]
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 10.0
SHORT = 2.0
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


def show(name, hz, got, base):
    per_second = (got['cpu'] - base['cpu']) / SECONDS
    once = base['cpu'] - per_second * SHORT
    per_sample = f"{got['ns'] / 1000:6.2f} us" if got['ns'] else '        -'
    whole = ''
    if name.startswith('stackbpf') and got['ns']:
        in_bpf = got['ns'] * got['calls'] / 1e9 / (SECONDS + SHORT)
        whole = f'  in all {100 * (in_bpf + per_second):6.3f} %'
    print(f"{name:30} {hz:5} Hz  BPF/sample {per_sample}  own CPU {100 * per_second:7.3f} % of one  "
          f"once {once:6.3f} s  peak {got['rss']:6.1f} MiB  wrote {got['bytes'] / 1024:9.1f} KiB{whole}",
          flush=True)


def tools(hz, seconds, perf_data):
    whole = max(1, round(seconds))
    ours = [BINARY, 'oncpu', '-t', str(seconds), '-F', str(hz), '-q']
    yield 'stackbpf oncpu', ours, None
    yield 'stackbpf oncpu --unwind fp', ours + ['--unwind', 'fp'], None
    if shutil.which('perf'):
        yield 'perf record -g', ['perf', 'record', '-q', '-a', '-g', '-e', 'cpu-clock', '-F', str(hz), '-o',
                                 perf_data, '--', 'sleep', str(seconds)], perf_data
        yield ('perf record --call-graph dwarf',
               ['perf', 'record', '-q', '-a', '--call-graph', 'dwarf', '-e', 'cpu-clock', '-F', str(hz), '-o',
                perf_data, '--', 'sleep', str(seconds)], perf_data)
    if shutil.which('bpftrace'):
        yield 'bpftrace kstack,ustack,comm', ['bpftrace', '-e', BPFTRACE % (hz, whole)], None


def measure(work):
    for hz in (99, 999):
        for (name, command, output), (_, empty, _) in zip(tools(hz, SHORT + SECONDS, f'{work}/perf.data'),
                                                          tools(hz, SHORT, f'{work}/perf.data')):
            base = run(empty, output)
            show(name, hz, run(command, output), base)


def main():
    with bpf_stats_on(), tempfile.TemporaryDirectory() as work:
        for load, commands in LOADS.items():
            print(f'\n{load}:')
            here = [c for c in commands if shutil.which(c[0])]
            busy = [subprocess.Popen(here[i % len(here)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    for i in range(os.cpu_count())]
            try:
                time.sleep(0.5)
                measure(work)
            finally:
                for process in busy:
                    process.kill()
                    process.wait()


if os.geteuid() != 0:
    print('skipped: sampling needs root')
    sys.exit(77)
print(f"{os.cpu_count()} CPUs, Linux {os.uname().release}, {re.sub(' +', ' ', ' '.join(sys.argv))}")
main()
