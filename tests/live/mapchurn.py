#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program of another user that maps and unmaps code without end: it costs us a part of what it costs the program,
nobody else loses names by it, what was left alone is said, and it has its names again some time after it became quiet.

mapchurn.py STACKBPF MAPCHURN SPLIT [NUMBER OF MAPPINGS...]
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from live import check, done, need_root, ran_seconds, running, runs_for, sampling, wait_for

need_root()
BINARY, MAPCHURN, SPLIT = sys.argv[1:4]
NOBODY = 65534
HZ = 99
# Seconds of CPU time that the program has while it maps, and after it has its names again.
CHURNING, QUIET = 2, 1
# A record that it makes is skipped for a part of what it costs the program. What is read again, for names, unwinding and
# interpreters, has shares of the time that goes by: a twentieth each.
OWN_OF_ITS, OWN_OF_TIME = 0.35, 0.15
NAMED_MIN = 0.95
# Seconds; a machine whose CPUs are shared takes longer for the same.
RESTS_MAX = 30
# Other tests that run meanwhile have programs of the same files.
CHURNER, OTHER = f'churner{os.getpid()}', f'other{os.getpid()}'


def family(pid):
    """A process and those below it."""
    parents = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{name}/stat', encoding='utf-8', errors='replace') as file:
            parents[int(name)] = int(file.read().rpartition(')')[2].split()[1])
    found = [pid]
    for parent in found:
        found += [child for child, of in parents.items() if of == parent]
    return found


def tree_seconds(pid):
    total = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            total += ran_seconds(member)
    return total


@contextlib.contextmanager
def churning(nr):
    with running(CHURNER, str(nr), SPLIT, executable=f'{work}/{CHURNER}', stdout=subprocess.PIPE, user=NOBODY,
                 text=True) as churner:
        check(churner.stdout.readline() == 'ready\n', f'{nr} mappings: it maps')
        yield churner


def cost(nr):
    """Of a run that samples nothing else, so that others on this machine do not count."""
    with churning(nr) as churner, sampling(BINARY, 'oncpu', '-p', str(churner.pid), '-F', str(HZ)) as run:
        runs_for(churner.pid, 1)  # what is read once is read
        own, its, begin = tree_seconds(run.process.pid), ran_seconds(churner.pid), time.monotonic()
        runs_for(churner.pid, CHURNING)
        own, its = tree_seconds(run.process.pid) - own, ran_seconds(churner.pid) - its
        passed = time.monotonic() - begin
    check(own <= OWN_OF_ITS * its + OWN_OF_TIME * passed,
          f'{nr} mappings: {own:.2f} s of our CPU time beside {its:.2f} s of the program, in {passed:.2f} s')


def quiet_samples(result):
    """Samples of the quiet program: all, and those with names."""
    of_it = [(stack, weight) for stack, weight in result.stacks.items() if stack[0] == CHURNER]
    return (sum(weight for _, weight in of_it), sum(weight for stack, weight in of_it if 'quiet_work' in stack))


def unwrapped(result):
    """What the run said, without the line breaks."""
    return ' '.join(result.err.replace('stackbpf:', '').split())


def truth(nr):
    what = f'{nr} mappings'
    with churning(nr) as churner, sampling(BINARY, 'oncpu', '-a', '-F', str(HZ)) as run:
        # What it maps is told among the other's records.
        with running(OTHER, executable=f'{work}/{OTHER}'):
            runs_for(churner.pid, CHURNING)
        churner.send_signal(signal.SIGUSR1)
        begin = time.monotonic()
        # It is read again when the rest after the last reading is over. That is 20 times as long as the reading took:
        # two seconds for 60,000 mappings. The samples up to then have no names.
        wait_for(lambda: quiet_samples(run.snapshot())[1], f'{what}: the quiet program has names', RESTS_MAX)
        passed = time.monotonic() - begin
        before = quiet_samples(run.snapshot())
        runs_for(churner.pid, QUIET)
    result = run.result
    check(result.status == 0, f'{what}: exit status {result.status}')
    named = sum(result.share(name, OTHER) for name in ('seventy', 'twenty', 'ten'))
    check(named >= NAMED_MIN, f'{what}: another program has its names: {named:.3f}')
    said = re.search(rf"(\d+) mapping records skipped, because process (\d+) \('{CHURNER}'\) changes its mappings too often",
                     unwrapped(result))
    check(said and int(said[2]) == churner.pid and int(said[1]) > 0, f'{what}: {said and said[0]}')
    samples, named = (after - then for after, then in zip(quiet_samples(result), before))
    check(named >= NAMED_MIN * samples > 0,
          f'{what}: names {passed:.1f} s after it became quiet; from then on, {named} of {samples} samples have them')


def foreign():
    """It is said in a run that samples it, and not in one that samples another process."""
    with churning(1000) as churner, running(OTHER, executable=f'{work}/{OTHER}') as other, \
            sampling(BINARY, 'oncpu', '-p', str(churner.pid)) as its, \
            sampling(BINARY, 'oncpu', '-p', str(other.pid)) as others:
        runs_for(churner.pid, CHURNING)
    for run, is_said in ((its, True), (others, False)):
        check(('changes its mappings too often' in unwrapped(run.result)) == is_said,
              f'foreign: said {is_said}: {"" if is_said else run.result.err}')


with tempfile.TemporaryDirectory() as work:
    os.chmod(work, 0o755)
    os.symlink(os.path.abspath(MAPCHURN), f'{work}/{CHURNER}')
    os.symlink(os.path.abspath(SPLIT), f'{work}/{OTHER}')
    foreign()
    for number in sys.argv[4:] or (1000, 60000):
        cost(int(number))
        truth(int(number))
done()
