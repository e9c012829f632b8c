#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `record` costs where processes come and go: CPU time and memory of each of its processes and threads.

recorder.py [--rate N] [--seconds N] [--kinds LIST] [--alone] [--ungoverned] STACKBPF...

N short programs a second are started, in turns; 0: none. Several STACKBPF run side by side, so that they
see the same; with --alone each kind's own command, too: what sampling costs without a recorder; --ungoverned: at
any cost, so that all take the same samples. Figures are of the seconds in the midst, without start and end.
"""
import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

from costs import Load, family

TICKS = os.sysconf('SC_CLK_TCK')
SETTLE_SECONDS = 12


def stat(path):
    with open(path, encoding='ascii', errors='replace') as file:
        text = file.read()
    name, fields = text[text.index('(') + 1:text.rindex(')')], text[text.rindex(')') + 2:].split()
    return name, (int(fields[11]) + int(fields[12])) / TICKS


def rss_mib(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmRSS')) / 1024


def nr_forks():
    """Of the whole machine, threads as well."""
    with open('/proc/stat', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('processes'))


def look_at(process):
    threads = {}
    for tid in os.listdir(f'/proc/{process}/task'):
        name, seconds = stat(f'/proc/{process}/task/{tid}/stat')
        threads[int(tid), name] = seconds
    return stat(f'/proc/{process}/stat')[1], rss_mib(process), threads


def look(pid):
    """{pid: (CPU seconds, MiB, {(tid, name): CPU seconds})}"""
    seen = {}
    for process in family(pid):
        # A reader or a worker may end, or be none but a zombie by now.
        with contextlib.suppress(OSError, StopIteration):
            seen[process] = look_at(process)
    return seen


def show(command, before, after, seconds, nr_begun):
    print(f'\n{" ".join(command[:2])}')
    total = 0
    for pid, (cpu, rss, threads) in after.items():
        if pid not in before:
            print(f'  {pid}: it was started in the midst')
            continue
        share = 100 * (cpu - before[pid][0]) / seconds
        total += share
        parts = sorted(((100 * (cpu - before[pid][2].get(key, 0)) / seconds, key[1])
                        for key, cpu in threads.items()), reverse=True)
        print(f'  {share:5.2f} % {rss:6.1f} MiB  ' + ', '.join(f'{name} {part:.2f}' for part, name in parts if part >= 0.01))
    print(f'  {total:5.2f} % in all; {total / 100 * seconds / max(1, nr_begun) * 1e6:.0f} us for each process or thread')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rate', type=float, default=90)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--kinds', default='oncpu,offcpu,io')
    parser.add_argument('--alone', action='store_true')
    parser.add_argument('--ungoverned', action='store_true')
    parser.add_argument('binaries', nargs='+', metavar='STACKBPF')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        commands = [[binary, 'record', '--store', f'{work}/{i}', '--kinds', args.kinds, '-a', '-q']
                    for i, binary in enumerate(args.binaries)]
        if args.alone:
            commands += [[binary, kind, '--no-inline', '-q']
                         for binary in args.binaries for kind in args.kinds.split(',')]
        if args.ungoverned:
            commands = [command + ['--max-overhead', 'off'] for command in commands]
        recorders = [subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
                     for command in commands]
        load = Load(args.rate)
        load.start()
        try:
            time.sleep(SETTLE_SECONDS)
            nr, forks, begin = load.nr, nr_forks(), time.monotonic()
            before = [look(recorder.pid) for recorder in recorders]
            time.sleep(args.seconds)
            after = [look(recorder.pid) for recorder in recorders]
            seconds, forks = time.monotonic() - begin, nr_forks() - forks
            print(f'{(load.nr - nr) / seconds:.0f} processes a second for {seconds:.0f} s, {forks / seconds:.0f} processes '
                  f'and threads began on this machine, its load was {os.getloadavg()[0]:.1f}')
            for command, *looks in zip(commands, before, after):
                show(command, *looks, seconds, forks)
        finally:
            load.is_ending = True
            load.join()
            for recorder in recorders:
                os.kill(recorder.pid, signal.SIGINT)
            for recorder in recorders:
                recorder.wait()


if os.geteuid() != 0:
    print('skipped: sampling needs root')
    sys.exit(77)
main()
