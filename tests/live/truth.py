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

from live import check, stackbpf, wait_for

ROOT_MARKS = {'[runqueue]', '[throttled]', '[idle]'}
NEAR = 0.03


def is_near(have, want, tolerance=NEAR):
    return abs(have - want) <= tolerance * want


def check_near(have, want, what, tolerance=NEAR):
    off = f'{100 * (have / want - 1):+.2f} %' if want else 'of nothing'
    check(is_near(have, want, tolerance), f'{what}: {have:.0f} of {want:.0f} ({off})')


class Truth:
    """What the program said: sums in us, by function and by name of thread."""

    def __init__(self, path):
        with open(path, encoding='ascii') as file:
            self.threads = json.load(file)['threads']

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


def waits(binary, program, view, mode, *options, seconds=3, nr=0):
    """Run the program from its start to its end. Return: what stackbpf says, and what it says."""
    with tempfile.TemporaryDirectory() as work:
        result = stackbpf(binary, view, *options, '--', program, mode, str(seconds), f'{work}/truth',
                          str(nr))
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
    """Threads that do what they are for: they have another name than the main thread, which is one."""
    names = []
    for tid in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(OSError), \
                open(f'/proc/{pid}/task/{tid}/comm', encoding='ascii') as file:
            names.append(file.read().strip())
    return sum(name != 'waits' for name in names) + 1


def weight(result, *functions, queue=False, comm=None):
    """Of stacks that have all these functions; those below the root "[runqueue]", or the others."""
    total = 0
    for stack, us in result.stacks.items():
        is_queue = stack[0] in ('[runqueue]', '[throttled]')
        name = stack[1] if stack[0] in ROOT_MARKS else stack[0]
        if is_queue == queue and comm in (None, name) and all(f in stack for f in functions):
            total += us
    return total


def by_comm(result):
    """Sums by the root, and by the mark at the leaf where there is one."""
    sums = collections.Counter()
    for stack, us in result.stacks.items():
        sums[stack[0], stack[-1] if stack[-1].startswith('[') else ''] += us
    return sums


def dur_us(result):
    return int(result.facts['dur_us'])


def end(process):
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
