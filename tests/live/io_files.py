#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""io: what files are called, where that is not plain; and calls seen where tracefs cannot be read.

io_files.py STACKBPF

The program is this one, with a directory: it writes a number of bytes of its own to each file, and
asks the kernel what it is called (readlink of /proc/self/fd).
"""
import collections
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

DEPTHS = (1, 40, 63, 64, 70)
MESSAGES = 40  # of one call


class Vector(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('bytes', ctypes.c_size_t)]


class Message(ctypes.Structure):
    """struct mmsghdr."""
    _fields_ = [('name', ctypes.c_void_p), ('name_bytes', ctypes.c_uint), ('vector', ctypes.c_void_p),
                ('nr_vectors', ctypes.c_size_t), ('control', ctypes.c_void_p),
                ('control_bytes', ctypes.c_size_t), ('flags', ctypes.c_long), ('moved', ctypes.c_uint)]


def write(facts, fd, count):
    assert os.write(fd, b'x' * count) == count
    facts['write'][os.readlink(f'/proc/self/fd/{fd}')] = count


def mount(*args):
    subprocess.run(['mount', *args], check=True)


def write_deep(facts, directory):
    for depth in DEPTHS:
        os.chdir(directory)
        for level in range(depth):
            os.mkdir(f'level {depth} {level}')
            os.chdir(f'level {depth} {level}')
        fd = os.open('leaf', os.O_CREAT | os.O_WRONLY)
        write(facts, fd, 100 + depth)
        os.close(fd)
    os.chdir(directory)
    for _ in range(17):
        os.mkdir('long' * 60)
        os.chdir('long' * 60)
    fd = os.open('end', os.O_CREAT | os.O_WRONLY)
    facts['long'] = os.write(fd, b'x' * 77)
    os.close(fd)
    os.chdir(directory)


def write_odd(facts, directory):
    write(facts, os.memfd_create('memory'), 201)
    write(facts, os.open(directory, os.O_TMPFILE | os.O_WRONLY), 202)
    write(facts, os.open('/proc/self/comm', os.O_WRONLY), 3)
    main, other = os.openpty()
    write(facts, other, 204)
    write(facts, main, 205)
    fd = os.open(f'{directory}/removed', os.O_CREAT | os.O_WRONLY)
    write(facts, fd, 206)
    os.unlink(f'{directory}/removed')
    write(facts, fd, 207)
    os.mkdir(f'{directory}/mounted')
    mount('-t', 'tmpfs', 'none', f'{directory}/mounted')
    os.mkdir(f'{directory}/mounted/inner')
    mount('--bind', f'{directory}/mounted/inner', f'{directory}/mounted')
    write(facts, os.open(f'{directory}/mounted/file', os.O_CREAT | os.O_WRONLY), 208)


def send_messages(facts):
    libc = ctypes.CDLL(None)
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    data = ctypes.create_string_buffer(1000)
    vectors, messages = (Vector * MESSAGES)(), (Message * MESSAGES)()
    for i in range(MESSAGES):
        vectors[i] = Vector(ctypes.addressof(data), 10 + i)
        messages[i].vector, messages[i].nr_vectors = ctypes.addressof(vectors[i]), 1
    ends[0].setblocking(False)  # as many as the queue takes
    sent = libc.sendmmsg(ends[0].fileno(), messages, MESSAGES, 0)
    facts['sendmmsg'] = sum(messages[i].moved for i in range(sent))
    received = libc.recvmmsg(ends[1].fileno(), messages, sent, 0, None)
    facts['recvmmsg'] = sum(messages[i].moved for i in range(received))


def work(directory):
    facts = {'write': {}}
    write_deep(facts, directory)
    write_odd(facts, directory)
    send_messages(facts)
    with open(f'{directory}.json', 'w', encoding='utf-8') as file:
        json.dump(facts, file)


def run(binary, *options, before=()):
    """Return: bytes by (call, file), what the program says, the run."""
    with tempfile.TemporaryDirectory() as parent:
        directory = os.path.realpath(parent) + '/work'
        os.mkdir(directory)
        # In a namespace of its own, in which its mounts end with it.
        command = ['unshare', '-m', '--propagation', 'private', *before, binary, 'io', '--file=full', *options,
                   '--', os.path.realpath(sys.executable), os.path.abspath(__file__), '--work', directory]
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 timeout=240, check=False)
        result = Result(process.returncode, process.stdout, process.stderr)
        check(result.status == 0, f'exit status {result.status}: {result.err[-300:]}')
        with open(f'{directory}.json', encoding='utf-8') as file:
            facts = json.load(file)
    sums = collections.Counter()
    for stack, weight in result.stacks.items():
        call = next((f for f in stack if f.startswith('sys_')), None)
        sums[call, ';'.join(stack[stack.index(call) + 1:]) if call else ''] += weight
    return sums, facts, result


def check_names(binary):
    sums, facts, _ = run(binary)
    wrong = {path: (count, sums['sys_write', path]) for path, count in facts['write'].items()
             if sums['sys_write', path] != count}
    check(len(facts['write']) == len(DEPTHS) + 8 and not wrong, f'bytes of {len(facts["write"])} names: {wrong}')
    cut = [path for (call, path), count in sums.items() if count == facts['long'] and path.startswith('[...]/')]
    check(len(cut) == 1 and cut[0].endswith('long/end') and len(cut[0]) > 4000, f'a long path is cut: {len(cut)}')
    for call in ('sendmmsg', 'recvmmsg'):
        have = sum(count for (name, _), count in sums.items() if name == f'sys_{call}')
        check(facts[call] > 0 and have == facts[call], f'{call}: {have} of {facts[call]}')


def check_without_tracefs(binary):
    umount = 'umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; exec "$@"'
    sums, facts, result = run(binary, '--stats', '-w', before=('sh', '-c', umount, 'sh'))
    check('tracefs is unreadable' in result.err, '--stats says how calls were seen')
    wrong = {path: (count, sums['sys_write', path]) for path, count in facts['write'].items()
             if sums['sys_write', path] != count}
    check(not wrong, f'without tracefs: {wrong}')


if sys.argv[1] == '--work':
    work(sys.argv[2])
    sys.exit()

from live import Result, check, done, need_root, skip  # noqa: E402 pylint: disable=wrong-import-position

need_root()
if not shutil.which('unshare'):
    skip('no unshare')
check_names(sys.argv[1])
check_without_tracefs(sys.argv[1])
done()
