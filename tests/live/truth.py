# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that measure themselves, and what stackbpf says about them.

waits.c tells for each function how long it took, ran, and waited for a CPU; what is left is the time
it was blocked. These are sums over the life of the program, so it is run by stackbpf: `-- waits ...`.
"""
import collections
import contextlib
import json
import os
import signal
import subprocess
import tempfile

from live import apart, check, stackbpf, wait_for

ROOT_MARKS = {'[runqueue]', '[throttled]', '[idle]'}
NEAR = 0.03


def is_near(have, want, tolerance=NEAR):
    return abs(have - want) <= tolerance * want


def check_near(have, want, what, tolerance=NEAR):
    off = f'{100 * (have / want - 1):+.2f} %' if want else 'of nothing'
    check(is_near(have, want, tolerance), f'{what}: {have:.9g} of {want:.9g} ({off})')


class Truth:
    """What the program said: sums in us, by function and by name of thread."""

    def __init__(self, path):
        with open(path, encoding='ascii') as file:
            truth = json.load(file)
        self.threads, self.main_us = truth['threads'], truth['main_ns'] / 1000  # main(): from its begin to its end

    @staticmethod
    def _us(clocks, what):
        if what == 'blocked':
            return (clocks['wall_ns'] - clocks['cpu_ns'] - clocks['queue_ns']) / 1000
        return clocks[what + '_ns'] / 1000

    def of_function(self, function, what='blocked', name=None):
        """what: 'wall', 'cpu', 'queue', 'blocked'. name: of the threads; all, if there is none."""
        return sum(self._us(thread['functions'][function], what) for thread in self.threads
                   if function in thread['functions'] and name in (None, thread['name']))

    def of_threads(self, name, what='wall'):
        return sum(self._us(thread, what) for thread in self.threads if thread['name'] == name)

    @property
    def names(self):
        return sorted({thread['name'] for thread in self.threads})


def waits(binary, program, view, mode, *options, seconds=2, nr=0, is_apart=False):
    """Run the program from its start to its end. Return: what stackbpf says, and what it says. @is_apart: on another
    CPU than stackbpf, so that no wake-up is missed."""
    with tempfile.TemporaryDirectory() as work:
        command = (program, mode, str(seconds), f'{work}/truth', str(nr))
        result = apart(binary, view, *options, command=command) if is_apart else stackbpf(binary, view, *options, '--', *command)
        check(result.status == 0, f'{view} of {mode}: exit status {result.status} {result.err[-300:]}')
        return result, Truth(f'{work}/truth')


@contextlib.contextmanager
def at_work(program, mode, nr_threads, nr=0):
    """The program, once all of its threads (the main one too) are there and have their names."""
    with tempfile.TemporaryDirectory() as work:
        with subprocess.Popen([program, mode, '1000', f'{work}/truth', str(nr)]) as process:
            try:
                wait_for(lambda: named_threads(process.pid) >= nr_threads, f'{mode} is at work')
                yield process
            finally:
                process.kill()


def named_threads(pid):
    """The main thread, once it has become the program, and those that have a name of their own."""
    names = {}
    for tid in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(OSError), \
                open(f'/proc/{pid}/task/{tid}/comm', encoding='ascii') as file:
            names[tid] = file.read().strip()
    if names.pop(str(pid), '') != 'waits':
        return 0
    return 1 + sum(name != 'waits' for name in names.values())


def weight(result, *functions, queue=False, comm=None, pid=None):
    """Of stacks that have all these functions; those below the root "[runqueue]", or the others. pid: with --by pid."""
    total = 0
    for stack, us in result.stacks.items():
        is_queue = stack[0] in ('[runqueue]', '[throttled]')
        name = stack[1] if stack[0] in ROOT_MARKS else stack[0]
        if pid is not None:
            name, _, of = name.rpartition('-')
            if of != str(pid):
                continue
        if is_queue == queue and comm in (None, name) and all(f in stack for f in functions):
            total += us
    return total


def by_comm(result):
    """Sums by the root, and by the mark at the leaf where there is one."""
    sums = collections.Counter()
    for stack, us in result.stacks.items():
        sums[stack[0], stack[-1] if stack[-1].startswith('[') else ''] += us
    return sums


@contextlib.contextmanager
def cgroup_with_quota(us, period_us):
    """A cgroup whose processes get so much of a CPU; None if there cannot be one here."""
    places = (('/sys/fs/cgroup/cpu', 'cpu.cfs_quota_us', f'{us}', 'cpu.cfs_period_us', f'{period_us}'),
              ('/sys/fs/cgroup', 'cpu.max', f'{us} {period_us}', '', ''))
    for root, quota, value, period, period_value in places:
        path = f'{root}/stackbpf-test-{os.getpid()}'
        with contextlib.suppress(OSError):
            os.mkdir(path)
            try:
                if not os.path.exists(f'{path}/{quota}'):
                    continue
                for name, text in ((period, period_value), (quota, value)):
                    if name:
                        with open(f'{path}/{name}', 'w', encoding='ascii') as file:
                            file.write(text)
                yield path
            finally:
                # It cannot be removed before the last of its processes is gone.
                wait_for(lambda at=path: try_rmdir(at), f'{path} is empty')
            return
    yield None


def try_rmdir(path):
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return not os.path.exists(path)


def dur_us(result):
    return int(result.facts['dur_us'])


def end(process):
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=240)
