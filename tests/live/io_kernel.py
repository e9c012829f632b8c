#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""io on what a thread of the kernel reads and writes: the file behind a loop device.

io_kernel.py STACKBPF
"""
import os
import subprocess
import sys
import tempfile

from live import check, done, need_root, sampling, skip, stackbpf

need_root()
BINARY = sys.argv[1]
BLOCK = 65536
READS, WRITES = 16, 8


def of(result, frame, path):
    return sum(w for s, w in result.stacks.items() if s[-2:] == (frame, path))


def append(path, text):
    """Not by open(): it seeks to the end, which these files refuse."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def nr_calls(function, command):
    """How often the kernel calls a function meanwhile, by a probe of its own; None if it has no such probes."""
    tracing, event = '/sys/kernel/tracing', f'stackbpf_{os.getpid()}'
    try:
        append(f'{tracing}/kprobe_events', f'p:{event} {function}\n')
    except OSError:
        return None
    try:
        append(f'{tracing}/events/kprobes/{event}/enable', '1')
        subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
        with open(f'{tracing}/kprobe_profile', encoding='ascii') as profile:
            return next(int(line.split()[1]) for line in profile if line.split()[0] == event)
    finally:
        append(f'{tracing}/events/kprobes/{event}/enable', '0')
        append(f'{tracing}/kprobe_events', f'-:{event}\n')


tried = stackbpf(BINARY, 'io', '--stats', '--', 'true')
state = next((line for line in tried.err.splitlines() if 'kernel threads observed by' in line), None)
assert state, f'status {tried.status}: {tried.err}'
if ' not: ' in state:
    skip(state.split(' not: ')[1])
with tempfile.TemporaryDirectory() as work:
    image = os.path.realpath(work) + '/image'
    with open(image, 'wb') as file:
        file.truncate(4 << 20)
    made = subprocess.run(['losetup', '--find', '--show', image], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode:
        skip('no loop devices')
    device = made.stdout.strip()
    try:
        read = ('dd', f'if={device}', 'of=/dev/null', f'bs={BLOCK}', 'count=4', 'iflag=direct')
        if nr_calls('vfs_iter_read', read) == 0:
            skip('loop devices of this kernel do not call vfs_iter_read() (Linux 6.15, and updates of older ones)')
        with sampling(BINARY, 'io', '-a') as run:
            for command in (('dd', f'if={device}', 'of=/dev/null', f'bs={BLOCK}', f'count={READS}', 'iflag=direct'),
                            ('dd', 'if=/dev/zero', f'of={device}', f'bs={BLOCK}', f'count={WRITES}', 'oflag=direct')):
                subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
        result = run.result
    finally:
        subprocess.run(['losetup', '-d', device], check=True)
check(of(result, 'kernel_read', image) >= READS * BLOCK, f"read: {of(result, 'kernel_read', image)}")
check(of(result, 'kernel_write', image) == WRITES * BLOCK, f"written: {of(result, 'kernel_write', image)}")
check(any(s[0].startswith('kworker') and 'kthread' in s for s in result.stacks if s[-1] == image), 'by its thread')
done()
