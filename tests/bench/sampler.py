#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What sampling costs, beside perf and bpftrace in the same run, every CPU busy.

sampler.py STACKBPF DEEP [SECONDS]

For each tool and rate: time in its BPF program per sample (the kernel's own statistics), CPU time of
the process itself as a share of one CPU, bytes written. What a run costs once (start, first names,
output) is told apart from what each second costs by a second run that is SECONDS longer.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

BINARY, DEEP = sys.argv[1:3]
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 10.0
SHORT = 2.0
STATS = '/proc/sys/kernel/bpf_stats_enabled'
BPFTRACE = 'profile:hz:%d {@[kstack,ustack,comm]=count()} interval:s:%d {exit()}'


def bpf_stats():
    """Time and calls of each perf_event program there is now."""
    out = subprocess.run(['bpftool', '-j', 'prog', 'show'], capture_output=True, text=True, check=False,
                         env={**os.environ, 'PATH': os.environ['PATH'] + ':/usr/sbin'}).stdout
    return [(p.get('run_time_ns', 0), p.get('run_cnt', 0)) for p in json.loads(out or '[]')
            if p.get('type') == 'perf_event']


def run(command, output=None):
    """CPU seconds of the command, bytes it wrote, ns per call of its BPF program."""
    best = [(0, 0)]
    stop = threading.Event()

    def watch():
        while not stop.wait(0.2):
            best.extend(bpf_stats())

    with tempfile.TemporaryFile() as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=subprocess.DEVNULL)
        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        stop.set()
        watcher.join()
        size = os.stat(output).st_size if output else sink.seek(0, 2)
    time_ns, calls = max(best, key=lambda s: s[1])
    return {'status': status, 'cpu': usage.ru_utime + usage.ru_stime, 'rss': usage.ru_maxrss / 1024,
            'bytes': size, 'ns': time_ns / calls if calls else None, 'calls': calls}


def show(name, hz, got, base):
    per_second = (got['cpu'] - base['cpu']) / SECONDS
    once = base['cpu'] - per_second * SHORT
    per_sample = f"{got['ns'] / 1000:6.2f} us" if got['ns'] else '        -'
    print(f"{name:28} {hz:5} Hz  BPF/sample {per_sample}  own CPU {100 * per_second:7.3f} % of one  "
          f"once {once:6.3f} s  peak {got['rss']:6.1f} MiB  wrote {got['bytes'] / 1024:9.1f} KiB")


def tools(hz, seconds, perf_data):
    whole = max(1, round(seconds))
    yield 'stackbpf oncpu', [BINARY, 'oncpu', '-t', str(seconds), '-F', str(hz), '-q'], None
    if shutil.which('perf'):
        yield 'perf record -g', ['perf', 'record', '-q', '-a', '-g', '-e', 'cpu-clock', '-F', str(hz), '-o',
                                 perf_data, '--', 'sleep', str(seconds)], perf_data
        yield ('perf record --call-graph dwarf',
               ['perf', 'record', '-q', '-a', '--call-graph', 'dwarf', '-e', 'cpu-clock', '-F', str(hz), '-o',
                perf_data, '--', 'sleep', str(seconds)], perf_data)
    if shutil.which('bpftrace'):
        yield 'bpftrace kstack,ustack,comm', ['bpftrace', '-e', BPFTRACE % (hz, whole)], None


def main():
    with open(STATS, encoding='ascii') as file:
        old = file.read()
    with open(STATS, 'w', encoding='ascii') as file:
        file.write('1')
    load = [subprocess.Popen([DEEP, '20']) for _ in range(os.cpu_count())]
    with tempfile.TemporaryDirectory() as work:
        try:
            time.sleep(0.5)
            for hz in (99, 999):
                for (name, command, output), (_, empty, _) in zip(tools(hz, SHORT + SECONDS, f'{work}/perf.data'),
                                                                  tools(hz, SHORT, f'{work}/perf.data')):
                    show(name, hz, run(command, output), run(empty, output))
        finally:
            for process in load:
                process.kill()
            with open(STATS, 'w', encoding='ascii') as file:
                file.write(old)


if os.geteuid() != 0:
    print('skipped: sampling needs root')
    sys.exit(77)
print(f"{os.cpu_count()} CPUs, Linux {os.uname().release}, {re.sub(' +', ' ', ' '.join(sys.argv))}")
main()
