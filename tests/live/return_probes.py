#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stacks reach main() through functions whose returns are probed by somebody else.

return_probes.py STACKBPF PROGRAMS
"""
import collections
import contextlib
import ctypes
import os
import re
import struct
import subprocess
import sys
import tempfile

import frames
import interp
from live import check, done, need_root, ready, skip, stackbpf, ungoverned, wait_for

BINARY, PROGRAMS = sys.argv[1], sys.argv[2]
PMU = '/sys/bus/event_source/devices/uprobe'
NR_PERF_EVENT_OPEN = {'x86_64': 298, 'aarch64': 241}[os.uname().machine]
PERF_FLAG_FD_CLOEXEC = 8
NR_SLEEP = {'x86_64': ('35', '230'), 'aarch64': ('101', '115')}[os.uname().machine]  # nanosleep, clock_nanosleep
# struct perf_event_attr of 112 bytes: type, size, config; config1 and config2 are at byte 56.
ATTR_BYTES = 112
MARK = '[truncated: return probe]'
SAMPLES_MIN = 200
BUILDS = {
    'tables': ('-O2', '-fomit-frame-pointer'),
    'fp': ('-O1', '-fno-omit-frame-pointer', '-fno-shrink-wrap', '-fno-optimize-sibling-calls'),
}
CHAINS = {
    ('outer', 'middle', 'inner', 'leaf'),
    ('outer_recursive', 'recurse', 'recurse', 'recurse', 'leaf'),
    ('outer_jump', 'jump_over', 'inner', 'leaf'),
}


def file_offset(path, function):
    """Where a function begins in its file."""
    address, = frames.symbols(path)[function]
    for line in frames.output('readelf', '-lW', path).splitlines():
        fields = line.split()
        if fields[:1] == ['LOAD']:
            offset, start, length = (int(fields[i], 16) for i in (1, 2, 4))
            if start <= address < start + length:
                return address - start + offset
    raise AssertionError(f'{function} is in no segment of {path}')


@contextlib.contextmanager
def return_probe(pid, path, function):
    """Nobody reads what it counts."""
    with open(f'{PMU}/type', encoding='ascii') as file:
        pmu = int(file.read())
    name = ctypes.create_string_buffer(path.encode())
    attr = bytearray(ATTR_BYTES)
    struct.pack_into('=IIQ', attr, 0, pmu, ATTR_BYTES, 1)  # config: bit 0 is retprobe
    struct.pack_into('=QQ', attr, 56, ctypes.addressof(name), file_offset(path, function))
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(NR_PERF_EVENT_OPEN, (ctypes.c_char * ATTR_BYTES).from_buffer(attr), pid, -1, -1,
                      PERF_FLAG_FD_CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), function)
    try:
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def probed(program, mode, **kwargs):
    with ready(program, mode, **kwargs) as target, contextlib.ExitStack() as probes:
        for function in ('inner', 'recurse', 'empty'):
            probes.enter_context(return_probe(target.pid, program, function))
        yield target


def stacks_of(view, target, *options):
    return stackbpf(BINARY, view, '-p', str(target.pid), '-t', '2s', *options)


def nr_waits(target):
    """How often each stack waited."""
    command = (BINARY, *ungoverned(('offcpu', '-u', '-p', str(target.pid), '-t', '2s', '--distr')))
    nr, stack = collections.Counter(), ()
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        row = re.fullmatch(r' .* : (\d+) +\|.*', line)
        if row and stack:  # the first rows are of all stacks
            nr[stack] += int(row[1])
        elif ';' in line and not line.startswith('#'):
            stack = tuple(line.rpartition(' ')[0].split(';'))
            nr[stack] += 0  # a wait that has not ended has no duration
    return nr


def chain_of(stack):
    """From below main() to leaf(); what computes or waits there does not matter."""
    if 'main' not in stack or 'leaf' not in stack:
        return None
    return stack[stack.index('main') + 1:stack.index('leaf') + 1]


def cut_stacks(stacks, what):
    """Those that do not begin at main(); all chains must be among the others."""
    leaves = {stack: weight for stack, weight in stacks.items() if 'leaf' in stack}
    cut = {stack: weight for stack, weight in leaves.items() if chain_of(stack) not in CHAINS}
    check(CHAINS <= {chain_of(stack) for stack in leaves}, f'{what}: all chains, {sum(leaves.values())} with leaf()')
    for stack in list(cut)[:3]:
        print('   ', ';'.join(stack))
    return cut


def computing(program, build, *options):
    what = f'oncpu {" ".join(options)} of {build}'
    with probed(program, 'work') as target:
        result = stacks_of('oncpu', target, '-u', '-F', '999', *options)
    cut = cut_stacks(result.stacks, what)
    check(not cut, f'{what}: {sum(cut.values())} of {result.total} without a chain')


def waiting(program, build):
    """Whoever sleeps when the run begins is looked at from user space. That is one sleep; where the thread then waits
    for a CPU, however long, it still has the stack of the sleep, and that is one wait, too."""
    with probed(program, 'wait') as target:
        nr = nr_waits(target)
    cut = cut_stacks(nr, f'offcpu of {build}')
    queued = sum(times for stack, times in cut.items() if stack[0] == '[runqueue]')
    slept = sum(cut.values()) - queued
    check(slept <= 1 and queued <= 1 and all(MARK in stack for stack in cut),
          f'offcpu of {build}: {slept} sleeps and {queued} waits for a CPU of {sum(nr.values())} without a chain')


def returning(program, build):
    """The probe of an empty function takes most of the time: also on its way back the caller is known."""
    with probed(program, 'return') as target:
        result = interp.enough(lambda: stacks_of('oncpu', target, '-F', '999'),
                               lambda result: result.total >= SAMPLES_MIN)
    cut = {stack: weight for stack, weight in result.stacks.items() if 'main' not in stack}
    # Between what it does to the stack and what it notes down about it, the kernel cannot be asked.
    check(result.total >= SAMPLES_MIN and interp.are_few(sum(cut.values()), result.total, 0.05),
          f'returning in {build}: {sum(cut.values())} of {result.total} without main()')
    for stack in list(cut)[:3]:
        print('   ', ';'.join(stack))


def asleep(program, build):
    """Who sleeps when the run begins is looked at from user space, which cannot know the return address."""
    with probed(program, 'long', stdin=subprocess.PIPE) as target:
        target.stdin.write('\n')
        target.stdin.flush()
        wait_for(lambda: is_in_sleep(target.pid), 'the sleep')
        result = stacks_of('offcpu', target, '-u')
    check(list(result.stacks) and all(MARK in stack and 'inner' in stack
                                      for stack in result.stacks), f'asleep in {build}: {list(result.stacks)}')


def is_in_sleep(pid):
    with open(f'/proc/{pid}/syscall', encoding='ascii') as file:
        return file.read().split()[0] in NR_SLEEP


def main():
    need_root()
    if not os.path.exists(f'{PMU}/type'):
        skip('this kernel has no probes of user functions')
    with tempfile.TemporaryDirectory() as work:
        for build, flags in BUILDS.items():
            program = f'{work}/probed-{build}'
            subprocess.run(['gcc', *flags, '-o', program, f'{PROGRAMS}/probed.c'], check=True)
            computing(program, build)
            waiting(program, build)
            returning(program, build)
            asleep(program, build)
        computing(program, build, '--unwind', 'fp')
    done()


main()
