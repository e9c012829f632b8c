#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--max-overhead: less is sampled while the run costs too much, and what is said stays true.

governor.py STACKBPF SPLIT CALLS WAITS

The truth is the kernel's: CPU time of processes by /proc/PID/schedstat, time of BPF programs by its own
statistics, bytes by those who move them. The limits here are far below what the runs cost, so that
they are governed on machines of any size.
"""
import contextlib
import glob
import math
import os
import re
import signal
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../bench'))
from costs import bpf_stats_on
from live import Result, check, done, need_root, running, wait_for
from truth import check_near, waits, weight

need_root()
BINARY, SPLIT, CALLS, WAITS = sys.argv[1:5]


def cpu_ns(pid):
    """Of all threads; none of them ends."""
    total = 0
    for path in glob.glob(f'/proc/{pid}/task/*/schedstat'):
        with open(path, encoding='ascii') as file:
            total += int(file.read().split()[0])
    return total


def is_stopped(pid):
    """All of its threads, none of which has blanks in its name."""
    states = []
    for path in glob.glob(f'/proc/{pid}/task/*/stat'):
        with open(path, encoding='ascii') as file:
            states.append(file.read().split()[2])
    return set(states) == {'T'}


def fdinfo(pid):
    """What the kernel says of each descriptor of a process."""
    for path in glob.glob(f'/proc/{pid}/fdinfo/*'):
        with contextlib.suppress(OSError), open(path, encoding='ascii') as file:
            yield dict(line.split(':', 1) for line in file.read().splitlines() if ':' in line)


def bpf_ns(pid):
    """Time of the programs that the process holds; each is held by one descriptor."""
    return {info['prog_id']: int(info['run_time_ns']) for info in fdinfo(pid) if 'run_time_ns' in info}


def has_timers(pid):
    return sum(info.get('link_type', '').strip().startswith('perf') for info in fdinfo(pid)) >= os.cpu_count()


@contextlib.contextmanager
def sampling(*args):
    with subprocess.Popen([BINARY, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sampler:
        try:
            yield sampler
        finally:
            sampler.kill()


def check_governed(result, what):
    check(result.status == 0, f'{what}: exit status {result.status}')
    check(int(result.facts.get('governed_us', 0)) > 0, f'{what}: the header says so: {result.facts}')
    check('lowered to' in result.err and '(--max-overhead)' in result.err,
          f'{what}: the last line says so: {result.err.strip()}')


def timer():
    """The target runs from after the begin of the run until before its end, and its CPU time is known. The rate is
    asked for, so that only the cost of its samples lowers it."""
    hertz = 4999
    with running(SPLIT, str(os.cpu_count())) as target:
        target.send_signal(signal.SIGSTOP)
        wait_for(lambda: is_stopped(target.pid), 'it is stopped')
        before = cpu_ns(target.pid)
        with sampling('oncpu', '-u', '-p', str(target.pid), '-F', str(hertz), '--max-overhead', '0.1') as sampler:
            wait_for(lambda: has_timers(sampler.pid), 'all CPUs have a timer')
            target.send_signal(signal.SIGCONT)
            wait_for(lambda: cpu_ns(target.pid) - before > 12e9, 'the target ran for twelve seconds')
            target.send_signal(signal.SIGSTOP)
            wait_for(lambda: is_stopped(target.pid), 'it is stopped')
            truth = (cpu_ns(target.pid) - before) / 1e9 * hertz
            sampler.send_signal(signal.SIGINT)
            out, err = sampler.communicate(timeout=240)
    result = Result(sampler.returncode, out, err)
    check_governed(result, 'oncpu')
    lowest = float(result.facts['rate_hz'].split('..')[0])
    check(lowest < 0.6 * hertz, f'oncpu: rate lowered to {lowest} of {hertz}')
    check(int(result.facts['n']) < 0.8 * result.total, f'oncpu: {result.facts["n"]} samples weigh {result.total}')
    # The samples at the lowest rate, if they were all by chance: three times their standard deviation.
    noise = 3 * math.sqrt(hertz / lowest / truth)
    check_near(result.total, truth, 'oncpu: weight, of CPU time times rate', max(0.03, noise))
    for name, want in (('seventy', 0.7), ('twenty', 0.2), ('ten', 0.1)):
        have = result.share(name)
        check(abs(have - want) < max(0.03, noise / 2), f'oncpu: {name}: {100 * have:.1f} % of {100 * want:.0f} %')


def switches(seconds, *options):
    """Two pairs that pass a byte to and fro. Return: the run; time in BPF as the kernel has it, at each of some
    moments. Switching itself is much of their time, and on the CPU or off it by where one draws the line."""
    moments = []
    with sampling('offcpu', '-s', *options, '--', CALLS, 'switches', str(seconds), '2') as sampler:
        while sampler.poll() is None:
            moments.append((time.monotonic(), bpf_ns(sampler.pid)))
            time.sleep(0.25)
        out, err = sampler.communicate()
    folded = '\n'.join(line for line in out.splitlines() if not re.fullmatch(r'\d+ \d+', line))
    return Result(sampler.returncode, folded, err), moments


def in_bpf(moments):
    """Time in our programs, in ns, as the kernel has it."""
    return sum(max((at.get(i, 0) for _, at in moments), default=0) for i in set().union(*(at for _, at in moments)))


def cost():
    with bpf_stats_on():
        result, moments = switches(4, '--max-overhead', '0.1', '--stats')
    own = float(re.search(r'BPF programs +([\d.]+) % of a CPU', result.err)[1]) / 100 * int(result.facts['dur_us']) * 1e3
    theirs = in_bpf(moments)
    check(0.6 * theirs < own < 1.3 * theirs, f'offcpu: own time in BPF {own / 1e6:.0f} ms, the kernel says '
                                             f'{theirs / 1e6:.0f} ms')


def naps(limit, seconds):
    """Threads of which each knows how long it did not run. Their waits are a thousand times as long as a switch."""
    result, truth = waits(BINARY, WAITS, 'offcpu', 'naps', '-s', '--max-overhead', limit, '--stats', seconds=seconds,
                          nr=16 * os.cpu_count())
    want = truth.of_threads('napper') - truth.of_threads('napper', 'cpu')
    have = weight(result, comm='napper') + weight(result, queue=True, comm='napper')
    check_near(have, want, f'offcpu, at most {limit}: time that was not spent on a CPU', 0.01)
    # Samples of one weight: the share of one kind of them is as sure as their number makes it.
    share, n = truth.of_function('nap_3ms', 'wall') / truth.of_threads('napper'), int(result.facts['n'])
    noise = 4 * math.sqrt(share * (1 - share) / n)
    check_near(weight(result, 'nap_3ms') + weight(result, 'nap_3ms', queue=True), share * want,
               f'offcpu, at most {limit}: of it in one place, {n} samples', max(0.03, noise / share))
    return result


def all_waits():
    result = naps('0.1', 6)
    check(int(result.facts.get('governed_us', 0)) > 0, f'offcpu: the header says so: {result.facts}')
    check(re.search(r'lowered +to one sample per \d+ us', result.err), 'offcpu: --stats says so')
    result = naps('off', 3)
    check('governed_us' not in result.facts, 'offcpu: off is off')


def calls():
    """Two kinds of read in turn, one 75 times the other; who makes them counts their bytes."""
    script = ('import os, time\n'
              'end = time.monotonic() + 6\n'
              'zero, sums = os.open("/dev/zero", 0), [0, 0]\n'
              'def large(): sums[0] += len(os.read(zero, 3000))\n'
              'def small(): sums[1] += len(os.read(zero, 40))\n'
              'while time.monotonic() < end: large(); small()\n'
              'print("moved", *sums)')
    with sampling('io', '-r', '--max-overhead', '0.05', '--path', '/dev/zero', '--', sys.executable, '-S', '-c',
                  script) as sampler:
        out, err = sampler.communicate(timeout=240)
    moved = re.search(r'^moved (\d+) (\d+)\n', out, re.M)
    large, small = map(int, moved.groups())
    result = Result(sampler.returncode, out.replace(moved[0], ''), err)
    check_governed(result, 'io')
    check_near(result.total, large + small, 'io: bytes')
    have = sum(w for s, w in result.stacks.items() if 'small' in ' '.join(s))
    check(abs(have / small - 1) < 0.2, f'io: bytes of small reads: {have} of {small}')


timer()
cost()
all_waits()
calls()
done()
