# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a sampling tool costs: its BPF program by the kernel's own statistics, its process, its output."""
import contextlib
import json
import os
import subprocess
import tempfile
import threading

STATS = '/proc/sys/kernel/bpf_stats_enabled'


@contextlib.contextmanager
def bpf_stats_on():
    """The kernel counts time and calls of BPF programs, which costs a little."""
    with open(STATS, encoding='ascii') as file:
        old = file.read()
    with open(STATS, 'w', encoding='ascii') as file:
        file.write('1')
    try:
        yield
    finally:
        with open(STATS, 'w', encoding='ascii') as file:
            file.write(old)


def bpf_stats():
    """Time and calls of each perf_event program there is now."""
    out = subprocess.run(['bpftool', '-j', 'prog', 'show'], capture_output=True, text=True, check=False,
                         env={**os.environ, 'PATH': os.environ['PATH'] + ':/usr/sbin'}).stdout
    return [(p.get('run_time_ns', 0), p.get('run_cnt', 0)) for p in json.loads(out or '[]')
            if p.get('type') == 'perf_event']


def run(command, output=None):
    """CPU seconds of the command, bytes it wrote, ns per call of its BPF program, what it said."""
    best = [(0, 0)]
    stop = threading.Event()

    def watch():
        while not stop.wait(0.2):
            best.extend(bpf_stats())

    with tempfile.TemporaryFile() as sink, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=sink, stderr=said)
        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        stop.set()
        watcher.join()
        size = os.stat(output).st_size if output else sink.seek(0, 2)
        said.seek(0)
        text = said.read().decode(errors='replace')
    time_ns, calls = max(best, key=lambda s: s[1])
    return {'status': status, 'cpu': usage.ru_utime + usage.ru_stime, 'rss': usage.ru_maxrss / 1024,
            'bytes': size, 'ns': time_ns / calls if calls else None, 'calls': calls, 'said': text}
