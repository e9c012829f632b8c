#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables and rings that overflow: what a program says it did is what was delivered and what was lost.

overflow.py STACKBPF BURST BURST.PY FAULT [PART...]

The library FAULT makes maps small. stackbpf is stopped while the program does its work, so that nothing is
drained, and goes on when the program is done.
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile

import fault
from live import Result, check, done, need_root, wait_for

need_root()
STACKBPF, BURST, PYTHON_BURST, FAULT = (os.path.abspath(path) for path in sys.argv[1:5])
PAGE = os.sysconf('SC_PAGESIZE')
# Until there are unwind tables, first stacks take pieces of 64 KiB through the same ring.
fault.need_libraries(STACKBPF)
BY_FP = '--unwind=fp'


class Burst:
    """The program; see burst.c."""

    def __init__(self, mode, nr, path):
        command = [sys.executable, PYTHON_BURST] if mode == 'python' else [BURST, mode]
        self.process = subprocess.Popen([*command, str(nr), path], stdout=subprocess.PIPE, text=True)
        self.pid, self.did = self.process.pid, 0
        assert self.process.stdout.readline() == 'ready\n'
        self.rest()

    def go(self):
        self.process.send_signal(signal.SIGUSR1)
        self.did += int(self.process.stdout.readline().split()[1])
        self.rest()

    def rest(self):
        """When it has said so, it waits for the next signal."""
        wait_for(lambda: state_of(self.pid) == 'S', 'the wait of the program')

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def burst(mode, nr, path):
    program = Burst(mode, nr, path)
    try:
        yield program
    finally:
        program.end()


def state_of(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as file:
        return file.read().rsplit(')', 1)[1].split()[0]


class Recorder:
    """stackbpf, which can be stopped."""

    def __init__(self, *args, maps=''):
        self.dir = tempfile.TemporaryDirectory()
        self.path = f'{self.dir.name}/out.folded'
        self.process = subprocess.Popen([STACKBPF, *args, '--max-overhead=off', '--stats', '-o', self.path], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, errors='replace',
                                        env=fault.environment(FAULT, STACKBPF, map=maps))
        self.await_start()

    def await_start(self):
        """Its timer of ticks is armed when everything is attached and the loop begins."""
        def ticks():
            assert self.process.poll() is None, self.process.stderr.read()
            directory = f'/proc/{self.process.pid}/fdinfo'
            for name in os.listdir(directory):
                with contextlib.suppress(FileNotFoundError), open(f'{directory}/{name}', encoding='ascii') as file:
                    if re.search(r'^it_interval: \(1, 0\)', file.read(), re.M):
                        return True
            return False
        wait_for(ticks, 'the start of sampling')

    @contextlib.contextmanager
    def stopped(self):
        self.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: state_of(self.process.pid) == 'T', 'the stop')
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def drain(self):
        """A snapshot is written when all that there is has been drained."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.path.exists(self.path), 'a snapshot')

    def end(self):
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=240)
        with self.dir, open(self.path, encoding='utf-8', errors='replace') as out:
            return Result(self.process.returncode, out.read(), err)


def stat(result, name):
    row = re.search(rf'^stackbpf:   {re.escape(name)} +(\d+)', result.err, re.M)
    return int(row[1]) if row else 0


def record(mode, nr, *args, maps, path='/bin/true', times=1):
    """Return: the result of a run during which the program did nr things, and how many it says it did."""
    with burst(mode, nr, path) as program:
        recorder = Recorder(*args, '-p', str(program.pid), maps=maps)
        with recorder.stopped():
            for _ in range(times):
                program.go()
        result = recorder.end()
        check(result.status == 0, f'{mode}: exit status {result.status} {result.err[-500:] if result.status else ""}')
        return result, program.did


def part_counts():
    """More keys than the table has room for."""
    room = 64
    result, did = record('names', 1000, 'io', '-r', '--count', BY_FP, maps=f'counts_first={room},counts_second={room}')
    lost = int(result.facts['lost'])
    check(result.total == int(result.facts['n']) >= room, f'counts: {result.total} reads delivered')
    check(result.total + lost == did, f'counts: {result.total} delivered and {lost} lost, of {did}')
    check(lost == stat(result, 'lost: table full') > 0, 'counts: what was lost is said to be for a full table')


def nr_left(pid):
    """How often the process left its CPU by itself, as the kernel counts."""
    with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as file:
        return int(re.search(r'^voluntary_ctxt_switches:\s+(\d+)', file.read(), re.M)[1])


def part_waits():
    """The same for the parts of waits, in a table that is written from within the scheduler."""
    room = 64
    with burst('sleeps', 1000, '/bin/true') as program:
        recorder = Recorder('offcpu', '--state=S', BY_FP, '-p', str(program.pid),
                            maps=f'counts_first={room},counts_second={room}')
        before = nr_left(program.pid)
        with recorder.stopped():
            program.go()
        left = nr_left(program.pid) - before
        result = recorder.end()
    delivered, lost = int(result.facts['n']), int(result.facts['lost'])
    # One more: when the run began, it waited already.
    check(lost > 0 and delivered + lost == left + 1, f'waits: {delivered} delivered and {lost} lost, of {left} and 1')


def part_stacks():
    """A ring with no room for all stacks that are new: samples are kept, and their stacks said to be lost."""
    result, did = record('paths', 1000, 'io', '-r', '--count', BY_FP, maps=f'events={PAGE}')
    whole = sum(w for s, w in result.stacks.items() if 'main' in s)
    lost = sum(w for s, w in result.stacks.items() if '[lost stack]' in s)
    check(result.total == did and result.facts['lost'] == '0', f'stacks: {result.total} reads delivered of {did}')
    check(whole + lost == did and whole and lost, f'stacks: {whole} with their stack, {lost} without')
    check(lost == stat(result, 'stack lost') <= int(result.facts['trunc']), 'stacks: those without are counted as cut')
    check(stat(result, 'ring full, stack retried') == lost, 'stacks: the ring was full as often')


def part_pieces():
    """The same ring carries pieces of stacks until there are unwind tables, and there is room for a few."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b'x')
        file.flush()
        # Of a process that was not there when the run began there are none.
        recorder = Recorder('io', '-r', '--count', '-n', 'burst', '--path', file.name, maps=f'events={PAGE}')
        with recorder.stopped(), burst('paths', 300, file.name) as program:
            program.go()
        result, did = recorder.end(), program.did
    taken, over, full = (stat(result, name) for name in
                         ('first stacks copied raw', 'not copied: over budget', 'not copied: ring full'))
    check(result.total == did, f'pieces: {result.total} reads delivered of {did}')
    others = stat(result, 'left out: other paths')
    check(taken + over + full == did + others and full,
          f'pieces: {taken} taken, {over} over budget, {full} without room, of {did} and {others} of other files')
    cut = stat(result, 'unwind table not ready') + stat(result, 'stack lost')
    check(did - taken <= cut <= did and taken < did / 10, f'pieces: {cut} stacks are marked for it')


def part_announced():
    """A process that is older than the run is announced with its first sample: again, if there was no room."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(burst('paths', 200, '/bin/true'))
        # Their announcements are smaller than a stack: the first ones still have room.
        others = [stack.enter_context(burst('names', 10, '/bin/true')) for _ in range(50)]
        programs = [first, *others]
        recorder = Recorder('io', '-r', '--count', '--by=pid', BY_FP, '-p', ','.join(str(p.pid) for p in programs),
                            maps=f'events={PAGE}')
        with recorder.stopped():
            for program in programs:
                program.go()
        recorder.drain()
        for i, program in enumerate(others):
            program.go()
            if i % 5 == 4:
                recorder.drain()
        result = recorder.end()
    did = sum(program.did for program in programs)
    named = {s[0].rsplit('-')[-1] for s in result.stacks if 'by_name' in s}
    check(result.total == did, f'announced: {result.total} reads delivered of {did}')
    check(stat(result, 'ring full, stack retried') > 0, 'announced: the ring was full')
    check(len(named) == len(others), f'announced: {len(named)} of {len(others)} processes have names')


def part_seen():
    """More stacks than can be remembered: each is shipped with its sample."""
    room = 16
    result, did = record('paths', 1000, 'io', '-r', '--count', BY_FP, maps=f'stacks_seen={room}')
    whole = sum(w for s, w in result.stacks.items() if 'main' in s)
    check(whole == result.total == did, f'seen: {whole} reads with their stack, of {did}')
    check(stat(result, 'stacks shipped again') == did - room,
          f'seen: {stat(result, "stacks shipped again")} of {did} were not remembered, {room} were')


def part_objects():
    """A ring with no room for all files that are new."""
    with tempfile.TemporaryDirectory() as work:
        result, did = record('files', 1000, 'io', '-r', '--count', '--file=full', BY_FP, maps=f'events={PAGE}', path=work)
        known = sum(w for s, w in result.stacks.items() if s[-1].startswith(work))
    lost = sum(w for s, w in result.stacks.items() if s[-1] == '[lost object]')
    check(result.total == did, f'objects: {result.total} reads delivered of {did}')
    check(known + lost == did and known and lost, f'objects: {known} of known files, {lost} of lost ones')
    check(lost == stat(result, 'objects lost'), 'objects: those that were lost are counted')


def part_sideband():
    """Rings of what processes map."""
    nr = 20000
    with tempfile.TemporaryDirectory() as work:
        path = f'{work}/file'
        with open(path, 'wb') as file:
            file.write(bytes(PAGE))
        result, did = record('maps', nr, 'io', BY_FP, maps='', path=path)
    records, lost = stat(result, 'process records'), stat(result, 'process records lost')
    check(did == nr and lost > 0 and records + lost >= nr, f'side-band: {records} records and {lost} lost, of {did}')


def part_children():
    """More children than the table of targets has room for."""
    room = 4
    with burst('children', 20, '/bin/true') as program:
        recorder = Recorder('offcpu', '-s', BY_FP, '-p', str(program.pid), maps=f'target_tgids={room}')
        program.go()
        result = recorder.end()
    lost, followed = stat(result, 'child processes not followed'), stat(result, 'processes') - 1
    # stackbpf's own processes inherit the rule that they are left out, and find no room either.
    check(program.did <= lost + followed <= program.did + 10 and lost >= program.did - room,
          f'children: {followed} followed and {lost} not, of {program.did}')


def part_needs():
    """A ring with no room for all requests for unwind tables: waits are counted, and it is asked again."""
    nr = 300
    with burst('children', nr, '/bin/true') as program:
        recorder = Recorder('offcpu', '--state=S', '-s', '-p', str(program.pid), maps=f'uw_needs={PAGE}')
        with recorder.stopped():
            program.go()
            with open(f'/proc/{program.pid}/task/{program.pid}/children', encoding='ascii') as file:
                children = file.read().split()
            wait_for(lambda: all(state_of(pid) == 'S' for pid in children), 'the waits of all children')
        result = recorder.end()
    lost = stat(result, 'table requests lost')
    check(lost > 0, f'needs: {lost} requests had no room')
    waits = int(result.facts['n']) + int(result.facts['lost'])
    # Each child waits for one thing, and their parent for two.
    check(waits == program.did + 2, f'needs: {waits} waits of {program.did} children and their parent')


def part_interp():
    """A ring with no room for all new stacks of an interpreter."""
    result, did = record('python', 300, 'io', '-r', '--count', maps=f'interp_events={PAGE}')
    row = re.search(r'their stacks lost +(\d+) ring full', result.err)
    whole = sum(w for s, w in result.stacks.items() if 'walk' in s)
    check(result.total == did, f'interp: {result.total} reads delivered of {did}')
    check(row and int(row[1]) == did - whole > 0, f'interp: {whole} with frames of Python, of {did} {row and row[0]}')


PARTS = {name[len('part_'):]: part for name, part in list(globals().items()) if name.startswith('part_')}
for chosen in sys.argv[5:] or PARTS:
    PARTS[chosen]()
done()
