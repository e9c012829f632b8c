#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A process that is sampled by its process ID gets an interpreter later. The program that takes the samples was loaded
without the walker of that interpreter, and is replaced: from then on there are frames of Python, no sample is missing,
and none counts twice. What is true says the kernel, by the CPU time that the program has used.
In a run of any process, the same holds for a program whose name does not tell its interpreter.

interp_later.py STACKBPF EMBED_PYTHON"""
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import live
from live import check, done, need_root, ran_seconds, running, wait_for, wait_until_old

STACKBPF, EMBED = sys.argv[1:3]
HZ = 999
BEFORE, AFTER = 0.3, 2  # seconds of CPU: without an interpreter, and in unit()
UNIT = """
def unit():
    while True:
        pass
unit()
"""
PYTHON = '/usr/bin/python3'


def library():
    found = glob.glob('/usr/lib/*/libpython3.*.so.1.0') + glob.glob(os.path.expanduser('~/.pyenv/versions/3.*/lib/libpython3.*.so.1.0'))
    return sorted(found)[0] if found else None


def loaders(pid):
    said = subprocess.run(['ps', '-o', 'pid=,stat=,comm=', '--ppid', str(pid)], stdout=subprocess.PIPE, text=True, check=False).stdout
    return [int(line.split()[0]) for line in said.splitlines() if line.split()[2] == 'stackbpf-load' and line.split()[1][0] != 'Z']


def with_name(stacks, name):
    return sum(weight for stack, weight in stacks.items() if name in stack)


def run_for(pid, seconds):
    begin = ran_seconds(pid)
    wait_for(lambda: ran_seconds(pid) >= begin + seconds, f'{seconds} s of CPU')


def aged(stack, command):
    """A program that has begun, and stands still until it is looked at: all of them become old at the same time."""
    program = stack.enter_context(running(*command, stdin=subprocess.PIPE))
    wait_for(lambda: os.path.realpath(f'/proc/{program.pid}/exe') == os.path.realpath(shutil.which(command[0])), 'it runs')
    wait_for(lambda: ran_seconds(program.pid) > 0, 'it runs')
    program.send_signal(signal.SIGSTOP)
    return program


def sample(program, before, meanwhile, is_done, target=None):
    """Run @meanwhile when the program has run for @before, tell it to go on, wait for is_done(stacks so far), and then for
    some time more. @target: options; None: the program by its ID. Return: the result, what is new in it since is_done()."""
    if not target:
        wait_until_old(program.pid)
    program.send_signal(signal.SIGCONT)
    begin = ran_seconds(program.pid)
    with live.sampling(STACKBPF, 'oncpu', '-F', str(HZ), *(target or ['-p', str(program.pid)])) as run:
        run_for(program.pid, before)
        meanwhile(run)
        program.stdin.write(b'\n')
        program.stdin.flush()
        wait_for(lambda: is_done(run.snapshot().stacks), 'what is to come')
        first = run.snapshot()
        run_for(program.pid, AFTER)
        end = ran_seconds(program.pid)
        program.kill()
        program.wait()
        if not target:
            wait_for(lambda: run.process.poll() is not None, 'the run ends with its target')
    check(run.result.status == 0, f'exit status {run.result.status}')
    # A machine that has others to serve skips ticks: a guest, up to four of five.
    check(run.result.total <= 1.05 * (end - begin) * HZ + 10, f'no sample counts twice: {run.result.total} in {end - begin:.2f} s')
    later = run.result.stacks - first.stacks
    check(later.total() >= 0.1 * AFTER * HZ, f'samples go on: {later.total()} in {AFTER} s')
    return run.result, later


def check_later(what, program, before):
    def has_loader(run):
        check(len(loaders(run.process.pid)) == 1, f'{what}: a process waits to load the other walkers')

    result, later = sample(program, before, has_loader, lambda stacks: with_name(stacks, 'unit'))
    check(with_name(later, 'unit') >= 0.98 * later.total(), f'{what}: {with_name(later, "unit")} of {later.total()} samples in unit()')
    told = with_name(result.stacks, 'told')
    check(told >= 0.1 * before * HZ, f'{what}: {told} samples before')


def check_killed(program):
    """The process that loads has died: samples go on, and what is missing is said."""
    result, _ = sample(program, BEFORE, lambda run: os.kill(loaders(run.process.pid)[0], signal.SIGKILL),
                       lambda stacks: with_name(stacks, '_PyEval_EvalFrameDefault'))
    check('cannot load the walkers' in result.err, 'killed: the run says so')
    check(not with_name(result.stacks, 'unit'), 'killed: there are no frames of Python')


def check_at_once(what, program):
    """What is there at the start is loaded at the start."""
    result, _ = sample(program, 0, lambda run: None, lambda stacks: with_name(stacks, 'unit'))
    units = with_name(result.stacks, 'unit')
    check(units >= 0.98 * result.total, f'{what}: {units} of {result.total} samples in unit()')


def check_disguised():
    """Its name says nothing, so its walker is not loaded at the start of a run of any process."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        program = shutil.copy('/usr/bin/perl', os.path.join(folder, 'disguised'))
        program = aged(stack, [program, '-e', '<STDIN>; sub unit { while (1) {} } unit()'])
        _, later = sample(program, 0, lambda run: None, lambda stacks: with_name(stacks, 'main::unit'), ['--comm', 'disguised'])
    units = with_name(later, 'main::unit')
    check(units >= 0.98 * later.total(), f'disguised: {units} of {later.total()} samples in main::unit')


def main():
    need_root()
    path = library()
    embedded = [[EMBED, 'told', path, '-c', UNIT]] * 2 if path else []
    commands = [*embedded, ['sh', '-c', f'read word; exec {PYTHON} -c "$0"', UNIT], [PYTHON, '-c', 'input()\n' + UNIT]]
    with contextlib.ExitStack() as stack:
        *programs, shell, python = [aged(stack, command) for command in commands]
        if programs:
            check_later('dlopen', programs[0], BEFORE)
            check_killed(programs[1])
        else:
            print('not tried: dlopen: no libpython')
        check_later('exec', shell, 0)
        check_at_once('python', python)
    check_disguised()
    done()


main()
