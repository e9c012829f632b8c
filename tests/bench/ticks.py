#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Nanoseconds of a sample of `oncpu`, of two builds in turns. Quick and quiet: for work on the walks.

ticks.py OLD NEW DEEP [ROUNDS [LOAD...]]

One process of each load (all of LOADS, unless some are named) is sampled at 999 Hz. A run yields WINDOWS figures by the
kernel's statistics of the program that is attached to the timers, read from /proc/PID/fdinfo, and its figure is their
median, so a window in which the host took the CPU away does not count. Ticks that met other processes are taken off: how
many there were is in the program's own counters, and what one costs is measured first, on a process that sleeps. The
builds run in turns, ROUNDS times each. A line has the median of the runs of each build, and the median, lowest and
highest ratio of the pairs. Differences between the rows of one load tell what user stacks, native callers and frames of
interpreters cost.
"""
import contextlib
import ctypes
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import time

from costs import bpf, bpf_stats_on, programs_of

OLD, NEW, DEEP = sys.argv[1:4]
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 5
HZ = 999
SETTLE = 0.6  # from its first tick on: first tables and names
WINDOWS, WINDOW = 5, 0.2
START_SECONDS_MAX = 20
TICKS_MAX = 4  # for each sample: where more ticks met others, these are most of the figure
PERL = 'sub f { my $n = shift; return f($n - 1) if $n; my $x = 0; $x += $_ for 1..900; $x } f(12) while 1'
RUBY = 'def f(n) n > 0 ? f(n - 1) : (1..300).each { |x| x * x } end; loop { f(12) }'
PYTHON = 'def f(n):\n return f(n - 1) if n else sum(x * x for x in range(300))\nwhile True: f(12)'
CALLS = 'import json\nwhile True: json.loads(json.dumps(list(range(300)), indent=1))'
LOADS = {
    'deep': [DEEP, '20'],
    'perl': ['/usr/bin/perl', '-e', PERL],
    'python': ['/usr/bin/python3', '-c', PYTHON],
    'ruby': ['/usr/bin/ruby', '-e', RUBY],
    'json': ['/usr/bin/python3', '-c', CALLS],
    'openssl': ['/usr/bin/openssl', 'speed', '-seconds', '1000', 'rsa2048'],
}
MODES = {
    'all': [],
    '--interp off': ['--interp', 'off'],
    '--unwind none': ['--interp', 'off', '--unwind', 'none'],
    '-k': ['-k'],
}
INTERPRETED = ('perl', 'python', 'ruby', 'json')


class Counters:
    """The programs of type perf_event of a process, and its map `stats`."""
    def __init__(self, pid):
        self.pid, self.stats, self.nr_bytes = pid, -1, 0

    def find_stats(self):
        for fd in os.listdir(f'/proc/{self.pid}/fdinfo'):
            with contextlib.suppress(OSError), open(f'/proc/{self.pid}/fdinfo/{fd}', encoding='ascii') as file:
                map_id = re.search(r'^map_id:\t(\d+)$', file.read(), re.M)
                if not map_id:
                    continue
                found = bpf(14, ctypes.create_string_buffer(struct.pack('III', int(map_id[1]), 0, 0), 12))
                info = ctypes.create_string_buffer(88)
                bpf(15, ctypes.create_string_buffer(struct.pack('IIQ', found, 88, ctypes.addressof(info)), 16))
                if info.raw[24:40].rstrip(b'\0') == b'stats':
                    self.stats = found
                    self.nr_bytes = struct.unpack_from('I', info.raw, 12)[0]
                    return
                os.close(found)

    def nr_samples(self):
        with open('/sys/devices/system/cpu/possible', encoding='ascii') as file:
            nr_cpus = int(re.split('[-,]', file.read())[-1]) + 1
        key, values = ctypes.create_string_buffer(4), ctypes.create_string_buffer(self.nr_bytes * nr_cpus)
        where = struct.pack('IIQQQ', self.stats, 0, ctypes.addressof(key), ctypes.addressof(values), 0)
        bpf(1, ctypes.create_string_buffer(where, 32))
        return sum(struct.unpack_from('Q', values.raw, self.nr_bytes * i)[0] for i in range(nr_cpus))

    def read(self):
        """(ns, ticks, samples) so far."""
        ns, ticks = programs_of(self.pid)
        if ticks and self.stats < 0:
            self.find_stats()
        return ns, ticks, self.nr_samples() if self.stats >= 0 else 0

    def close(self):
        if self.stats >= 0:
            os.close(self.stats)


def windows(binary, pid, mode):
    """[(ns, ticks, samples)] of each window of a run."""
    command = [binary, 'oncpu', '-p', str(pid), '-F', str(HZ), '-q', '-t', str(START_SECONDS_MAX)] + mode
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    counters = Counters(process.pid)
    try:
        end = time.monotonic() + START_SECONDS_MAX
        while not counters.read()[1]:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f'no tick: {" ".join(command)}')
            time.sleep(0.02)
        time.sleep(SETTLE)
        seen = [counters.read()]
        for _ in range(WINDOWS):
            time.sleep(WINDOW)
            seen.append(counters.read())
    finally:
        counters.close()
        process.terminate()
        process.wait()
    return [tuple(after - before for before, after in zip(a, b)) for a, b in zip(seen, seen[1:])]


def others_ns():
    """What a tick costs that meets a process that is not asked for."""
    with subprocess.Popen(['sleep', '1000']) as asleep, subprocess.Popen(['sh', '-c', 'while :; do :; done']) as busy:
        try:
            return statistics.median(ns / ticks for ns, ticks, _ in windows(OLD, asleep.pid, []) if ticks)
        finally:
            asleep.kill()
            busy.kill()


def measure(binary, pid, mode, others):
    figures = [(ns - others * (ticks - samples)) / samples
               for ns, ticks, samples in windows(binary, pid, mode) if samples and ticks <= TICKS_MAX * samples]
    if not figures:
        raise RuntimeError('the machine is too busy: nearly all ticks met other processes')
    return statistics.median(figures)


def compare(name, pid, mode, others):
    old, new = [], []
    try:
        for i in range(ROUNDS):
            for binary, to in ((OLD, old), (NEW, new)) if i % 2 == 0 else ((NEW, new), (OLD, old)):
                to.append(measure(binary, pid, MODES[mode], others))
    except RuntimeError as error:
        print(f'{name:8} {mode:14} {error}', flush=True)
        return
    ratios = sorted(b / a for a, b in zip(old, new))
    print(f'{name:8} {mode:14} {statistics.median(old):7.0f} {statistics.median(new):7.0f} ns  '
          f'{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})', flush=True)


def main():
    names = sys.argv[5:] or list(LOADS)
    with bpf_stats_on():
        others = others_ns()
        print(f'others   {others:30.0f} ns')
        for name in names:
            if not shutil.which(LOADS[name][0]):
                print(f'{name:8} not here')
                continue
            load = subprocess.Popen(LOADS[name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                time.sleep(0.3)
                for mode in MODES:
                    if mode != '--interp off' or name in INTERPRETED:
                        compare(name, load.pid, mode, others)
            finally:
                load.kill()
                load.wait()


if os.geteuid() != 0:
    print('skipped: sampling needs root')
    sys.exit(77)
main()
