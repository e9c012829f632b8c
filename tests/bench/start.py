#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a short run costs from its start to its end, and when it takes its first sample.

start.py [--pairs N] [--rate N] [--sleepers N] [--busy] [--args 'ARGUMENT...'] NEW [OLD]

Runs `STACKBPF ARGUMENT...` (oncpu -t 100ms -F 999) N times, NEW and OLD in turns. Beside them RATE short programs a
second are started, N processes sleep, a fourth of them Python with five threads, and with --busy one process keeps a
CPU busy; without these options there is nothing. The CPU time is that of the whole tree of processes, until the last of
them has ended. PID in the arguments stands for a Python process that sleeps.
"""
import argparse
import ctypes
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from costs import Load

PR_SET_CHILD_SUBREAPER = 36
ROWS = {'CPU': 'ms', 'of that in user mode': 'ms', 'context switches': '', 'first sample after': 'ms', 'reads': ''}
SAID = {'first sample after': r'first sample after +([\d.]+) ms', 'reads': r'reads of other processes +(\d+)'}
PYTHON = ['/usr/bin/python3', '-c', 'import threading, time\n'
          'for _ in range(5): threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n'
          'time.sleep(1e6)']
BUSY = ['/usr/bin/python3', '-c', 'while True: pass']


def run_below(command):
    """To be called in a process of its own: what the command starts falls to it. Return: {row: figure}."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryFile() as said:
        status = subprocess.run([*command, '--stats'], stdout=subprocess.DEVNULL, stderr=said, check=False).returncode
        try:
            while True:
                os.wait()
        except ChildProcessError:
            said.seek(0)
            text = said.read().decode(errors='replace')
    if status and 'nothing was sampled' not in text:
        sys.exit(text[-1000:])
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {row: re.search(pattern, text) for row, pattern in SAID.items()}
    return {'CPU': (usage.ru_utime + usage.ru_stime) * 1e3, 'of that in user mode': usage.ru_utime * 1e3,
            'context switches': usage.ru_nvcsw + usage.ru_nivcsw,
            **{row: float(match[1]) if match else 0.0 for row, match in found.items()}}


def measure(command):
    end, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, repr(run_below(command)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(end) as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
    return {row: float(number) for row, number in re.findall(r"'([\w ]+)': ([\d.]+)", text)}


def show(binaries, figures):
    for row, unit in ROWS.items():
        values = [[run[row] for run in runs] for runs in figures]
        line = f'{row:22}' + ''.join(f' {statistics.median(of):9.1f} ({min(of):.1f} to {max(of):.1f}) {unit}'
                                     for of in values)
        ratios = [new / old for new, old in zip(*values) if old] if len(binaries) == 2 else []
        if ratios:
            line += f'   {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})'
        print(line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--pairs', type=int, default=9)
    parser.add_argument('--rate', type=float, default=0)
    parser.add_argument('--sleepers', type=int, default=0)
    parser.add_argument('--busy', action='store_true')
    parser.add_argument('--args', default='oncpu -t 100ms -F 999')
    parser.add_argument('binaries', nargs='+', metavar='STACKBPF')
    args = parser.parse_args()
    commands = [PYTHON if i % 4 == 3 else ['/bin/sleep', '1000000'] for i in range(args.sleepers)]
    beside = [subprocess.Popen(command) for command in commands + [BUSY] * args.busy + [PYTHON]]
    if 'PID' in args.args:
        time.sleep(11)  # for a process that was just started, all walkers of interpreters are loaded
    arguments = [str(beside[-1].pid) if word == 'PID' else word for word in args.args.split()]
    load = Load(args.rate)
    load.start()
    figures = [[] for _ in args.binaries]
    try:
        for i in range(args.pairs):
            turns = list(zip(figures, args.binaries))
            for runs, binary in turns[::-1] if i % 2 else turns:
                runs.append(measure([binary, *arguments]))
        print(f'{args.args}: {args.pairs} turns, {args.rate:.0f} processes a second, load {os.getloadavg()[0]:.1f}; '
              f'median (lowest to highest) of {" and of ".join(args.binaries)}; ratio of the pairs')
        show(args.binaries, figures)
    finally:
        load.is_ending = True
        load.join()
        for process in beside:
            process.kill()


if os.geteuid() != 0:
    print('skipped: sampling needs root')
    sys.exit(77)
main()
