#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The program looked at is stopped by a signal, or frozen by its cgroup, and goes on after a while: that
time is counted once, as state T, and nothing is sampled in it.

chaos_stop.py STACKBPF CHAOS [PART...]
"""
import contextlib
import os
import signal
import sys
import time

from live import check, done, need_root, ran_seconds, ready, run_parts, sampling, skip, wait_for
from truth import check_near, dur_us, try_rmdir

need_root()
BINARY, CHAOS = sys.argv[1:3]
NR_THREADS = 3  # one works, two sleep
STOPPED_SECONDS = 1
WORKED_SECONDS = 0.2
# stackbpf says how long it ran; when a thread stops is known to a few ms, on a machine that is busy.
NEAR = 0.05


class ByCgroup:
    """A cgroup of the first hierarchy that there is of those, in which processes can be frozen."""

    def __init__(self, places):
        self.path = next((f'{root}/stackbpf-test-{os.getpid()}' for root, name in places
                          if self._can(root, name)), None)
        if not self.path:
            skip('no cgroup can be frozen here')
        os.mkdir(self.path)

    @staticmethod
    def _can(root, name):
        path = f'{root}/stackbpf-test-can-{os.getpid()}'
        with contextlib.suppress(OSError):
            os.mkdir(path)
            try:
                return os.path.exists(f'{path}/{name}')
            finally:
                os.rmdir(path)
        return False

    def write(self, name, text):
        with open(f'{self.path}/{name}', 'w', encoding='ascii') as file:
            file.write(text)

    def says(self, name, text):
        with open(f'{self.path}/{name}', encoding='ascii') as file:
            return text in file.read()

    def remove(self):
        wait_for(lambda: try_rmdir(self.path), f'{self.path} is empty')


class Freezer2(ByCgroup):
    def __init__(self, pid):
        super().__init__([('/sys/fs/cgroup', 'cgroup.freeze'), ('/sys/fs/cgroup/unified', 'cgroup.freeze')])
        self.write('cgroup.procs', str(pid))

    def stop(self):
        self.write('cgroup.freeze', '1')
        wait_for(lambda: self.says('cgroup.events', 'frozen 1'), 'it is frozen')

    def go_on(self):
        self.write('cgroup.freeze', '0')


class Freezer1(ByCgroup):
    def __init__(self, pid):
        super().__init__([('/sys/fs/cgroup/freezer', 'freezer.state')])
        self.write('cgroup.procs', str(pid))

    def stop(self):
        self.write('freezer.state', 'FROZEN')
        wait_for(lambda: self.says('freezer.state', 'FROZEN'), 'it is frozen')

    def go_on(self):
        self.write('freezer.state', 'THAWED')


class Signal:
    def __init__(self, pid):
        self.pid = pid

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)
        wait_for(lambda: all(self._state(tid) == 'T' for tid in os.listdir(f'/proc/{self.pid}/task')), 'it is stopped')

    def _state(self, tid):
        with open(f'/proc/{self.pid}/task/{tid}/stat', encoding='ascii') as file:
            return file.read().rpartition(')')[2].split()[0]

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def remove(self):
        pass


class Stopped:
    """What happened to the program while it was looked at."""

    def __init__(self, how, *view):
        with ready(CHAOS, 'busy') as process:
            stopper = how(process.pid)
            try:
                begin = ran_seconds(process.pid)
                with sampling(BINARY, *view, '-p', str(process.pid)) as run:
                    begun = ran_seconds(process.pid)
                    self._work(process.pid)
                    stopper.stop()
                    since, ran = time.monotonic(), ran_seconds(process.pid)
                    before = run.snapshot()
                    wait_for(lambda: time.monotonic() >= since + STOPPED_SECONDS, 'time goes by')
                    after = run.snapshot()
                    self.did_run = ran_seconds(process.pid) - ran
                    stopper.go_on()
                    self.us = (time.monotonic() - since) * 1e6
                    self._work(process.pid)
                    ended = ran_seconds(process.pid)
                # The run begins and ends between two looks at the clocks.
                self.ran_least, self.ran_most = ended - begun, ran_seconds(process.pid) - begin
                self.result, self.gained = run.result, after.total - before.total
            finally:
                stopper.go_on()
                process.kill()
                process.wait()
                stopper.remove()

    @staticmethod
    def _work(pid):
        since = ran_seconds(pid)
        wait_for(lambda: ran_seconds(pid) >= since + WORKED_SECONDS, 'it works')


def judge(what, how, has_state=True):
    stopped = Stopped(how, 'oncpu', '-F', '499')
    check(not stopped.did_run and not stopped.gained,
          f'{what}: no sample while it was stopped: {stopped.gained}')
    check(stopped.result.total > 0.2 * 499 * 2 * WORKED_SECONDS,
          f'{what}: samples before and after: {stopped.result.total}')

    if has_state:
        stopped = Stopped(how, 'offcpu', '--state', 'T')
        check_near(stopped.result.total, NR_THREADS * stopped.us, f'{what}: time in state T', NEAR)

    stopped = Stopped(how, 'offcpu')
    whole = NR_THREADS * dur_us(stopped.result)
    waited, least, most = stopped.result.total, 1e6 * stopped.ran_least, 1e6 * stopped.ran_most
    check(waited + least <= (1 + NEAR) * whole and waited + most >= (1 - NEAR) * whole,
          f'{what}: waited {waited}, and ran {least:.0f} to {most:.0f}, of {whole}')

    stopped = Stopped(how, 'wall')
    check_near(stopped.result.total, NR_THREADS * dur_us(stopped.result), f'{what}: wall', 0.01)
    blocked = sum(us for stack, us in stopped.result.stacks.items()
                  if stack[-1] in ('[blocked]', '[stopped]'))
    check(blocked >= (1 - NEAR) * NR_THREADS * stopped.us, f'{what}: wall: blocked for {blocked / 1e6:.3f} s')


def by_signal():
    judge('signal', Signal)


def frozen():
    judge('cgroup2', Freezer2)


def frozen_1():
    # It leaves threads asleep where they are, so that time stays what it was.
    judge('cgroup 1', Freezer1, has_state=False)


run_parts((by_signal, frozen, frozen_1), sys.argv[3:])
done()
