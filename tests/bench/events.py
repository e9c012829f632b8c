#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an event costs the program at which it happens: the CPU time that a call of a function takes longer with a probe.

events.py STACKBPF FIRED_C [ROUNDS [CALLS [WORD...]]]      with words, only loads that have them in their name

The program has frame pointers, so that bpftrace has complete stacks, too. All tools take their turns in each round; of
a turn the fastest of three counts, of the rounds the median. Ratios are to the row of bpftrace that is named, whose
events have the same probe; both with the trap itself, which costs the same for all.
"""
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BINARY, SOURCE = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
CALLS = int(sys.argv[4]) if len(sys.argv) > 4 else 50_000
WORDS = sys.argv[5:]
NONE = 'nothing'
# What is called, below how many frames, in how many stacks; whether it makes a system call.
LOADS = (('12 frames, one stack', '10', '1'), ('42 frames, one stack', '40', '1'), ('12 frames, 512 stacks', '10', '512'),
         ('tracepoint, 13 frames', '10', '1', 'call'))
TRAPPED_NS = 300  # a call takes longer than that once it is hooked
SECONDS_MAX = 20


def at_tracepoint(pid):
    event = 'raw_syscalls:sys_enter'
    ours = (BINARY, 'trace', event, '--max-overhead=off', '-t', '600', '-p', str(pid))
    # bpftrace looks for tracepoints where tracefs is mounted.
    theirs = ('unshare', '-m', 'sh', '-c', 'mount -t tracefs none /sys/kernel/tracing; mount -t debugfs none /sys/kernel/debug; '
              'exec bpftrace -e "$0"')
    return {
        NONE: (None, None),
        'bpftrace @[ustack] = count()':
            ([*theirs, f'tracepoint:{event} /pid == {pid}/ {{ @[ustack] = count(); }}'], None),
        'stackbpf trace -u': ([*ours, '-u'], 'bpftrace @[ustack] = count()'),
        'bpftrace @[ustack, kstack]':
            ([*theirs, f'tracepoint:{event} /pid == {pid}/ {{ @[ustack, kstack] = count(); }}'], None),
        'stackbpf trace': ([*ours], 'bpftrace @[ustack, kstack]'),
    }


def tools(program, pid):
    begin, end = f'uprobe:{program}:fired', f'uretprobe:{program}:fired'
    ours = (f'{program}:fired', '--max-overhead=off', '-t', '600')
    return {
        NONE: (None, None),
        'bpftrace count()': (['bpftrace', '-e', f'{begin} {{ @ = count(); }}'], None),
        'bpftrace @[ustack] = count()': (['bpftrace', '-e', f'{begin} {{ @[ustack] = count(); }}'], None),
        'stackbpf trace': ([BINARY, 'trace', *ours], 'bpftrace @[ustack] = count()'),
        'stackbpf trace -p': ([BINARY, 'trace', *ours, '-p', str(pid)], 'bpftrace @[ustack] = count()'),
        'bpftrace, funclatency': (['bpftrace', '-e', f'{begin} {{ @b[tid] = nsecs; }} {end} /@b[tid]/ '
                                   '{ @ = hist(nsecs - @b[tid]); delete(@b[tid]); }'], None),
        'bpftrace, time by ustack': (['bpftrace', '-e', f'{begin} {{ @b[tid] = nsecs; @s[tid] = ustack; }} {end} /@b[tid]/ '
                                      '{ @[@s[tid]] = sum(nsecs - @b[tid]); delete(@b[tid]); delete(@s[tid]); }'], None),
        'stackbpf latency': ([BINARY, 'latency', *ours], 'bpftrace, time by ustack'),
        'stackbpf oncpu --in': ([BINARY, 'oncpu', '--in', *ours, '--slower-than', '1h'], 'bpftrace, funclatency'),
    }


class Program:
    def __init__(self, path, *args):
        self.process = subprocess.Popen([path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, times):
        """Return: CPU nanoseconds of a call."""
        print(times, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


@contextlib.contextmanager
def beside(command, program):
    """The tool, from when its probe works and its first stacks are known."""
    if not command:
        yield
        return
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tool:
        end = time.monotonic() + SECONDS_MAX
        while program.call(20) < TRAPPED_NS:
            if time.monotonic() > end or tool.poll() is not None:
                sys.exit(f'{command[0]} hooks nothing')
            time.sleep(0.05)
        program.call(2000)
        time.sleep(1)
        yield
        tool.send_signal(signal.SIGINT)
        try:
            tool.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:  # as bpftrace 0.17 does at times
            tool.kill()


def measure(path, *load):
    program = Program(path, *load)
    rows = at_tracepoint(program.process.pid) if 'call' in load else tools(path, program.process.pid)
    figures = {name: [] for name in rows}
    for _ in range(ROUNDS):
        for name, (command, _) in rows.items():
            with beside(command, program):
                program.call(2000)
                figures[name].append(min(program.call(CALLS) for _ in range(3)))
    program.process.kill()
    program.process.wait()
    return figures, {name: to for name, (_, to) in rows.items()}


def main():
    if os.geteuid() != 0 or not shutil.which('bpftrace'):
        sys.exit('needs root and bpftrace')
    with tempfile.TemporaryDirectory() as work:
        path = f'{work}/fired'
        subprocess.run(['gcc', '-O2', '-g', '-fno-omit-frame-pointer', '-fno-optimize-sibling-calls', '-o', path, SOURCE],
                       check=True)
        for name, *load in [load for load in LOADS if set(WORDS) <= set(load[0].split())]:
            figures, peers = measure(path, *load)
            print(f'{name:32} {"ns a call":>10} {"range":>15} {"to its peer":>12} {"range":>13}')
            for tool, values in figures.items():
                line = f'{tool:32} {statistics.median(values):10.0f} {min(values):7.0f}..{max(values):6.0f}'
                if peers[tool]:
                    ratios = [a / b for a, b in zip(values, figures[peers[tool]])]
                    line += f' {statistics.median(ratios):11.2f}x {min(ratios):6.2f}..{max(ratios):4.2f}x'
                print(line, flush=True)


main()
