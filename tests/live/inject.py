# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""System calls that a debugger has a process make, as code of an attacker in it would. x86-64 only."""
import os
import re
import shutil
import subprocess

NUMBERS = {
    'open': 2, 'dup2': 33, 'ioctl': 16, 'socket': 41, 'clone': 56, 'fork': 57, 'execve': 59, 'kill': 62, 'fcntl': 72,
    'truncate': 76, 'rename': 82, 'unlink': 87, 'chmod': 90, 'ptrace': 101, 'prctl': 157, 'tkill': 200, 'tgkill': 234,
    'openat': 257, 'unshare': 272, 'dup3': 292, 'perf_event_open': 298, 'prlimit64': 302, 'process_vm_writev': 311, 'bpf': 321,
    'pidfd_send_signal': 424, 'io_uring_setup': 425, 'pidfd_open': 434, 'openat2': 437, 'pidfd_getfd': 438,
    'landlock_create_ruleset': 444,
}


def why_not(binary):
    """Why nothing can be made to call; None: it can."""
    said = subprocess.run([binary, '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout
    if 'libseccomp' not in said:
        return 'no libseccomp'
    if not shutil.which('gdb'):
        return 'no gdb'
    return None if os.uname().machine == 'x86_64' else 'not x86-64'


def _argument(value, at):
    """As gdb has it. A list is an array of 64-bit words in memory; it is made first."""
    if isinstance(value, str) and not value.startswith('$'):
        return [], f'"{value}"'
    if isinstance(value, list):
        words = [f'set var $array{at} = (long *)((void *(*)(unsigned long))malloc)({8 * len(value)})']
        words += [f'set var $array{at}[{i}] = {word}' for i, word in enumerate(value)]
        return words, f'$array{at}'
    return [], str(value)


def _lines_of(call):
    """`call`: a name and its arguments; ('fd', CALL...): what the last call returned is '$r'."""
    name, *args = call
    lines, words = [], []
    for at, value in enumerate(args):
        before, word = _argument(value, at)
        lines += before
        words.append(word)
    words = ', '.join([str(NUMBERS[name]), *words])
    return [*lines, f'set var $r = ((long (*)(long, ...))syscall)({words})',
            'printf "RESULT %ld %d\\n", $r, *((int *(*)(void))__errno_location)()']


def call_in(pid, calls, tid=None):
    """Return: for each call, 0 or the errno with which it failed."""
    commands = ['set confirm off', 'set print thread-events off']
    if tid:
        commands.append(f'python [t.switch() for t in gdb.selected_inferior().threads() if t.ptid[1] == {tid}]')
    for call in calls:
        commands += _lines_of(call)
    args = [word for command in commands for word in ('-ex', command)]
    # The symbol tables have the three functions that are called; to read debug data would take a second each time.
    done = subprocess.run(['gdb', '-q', '-nx', '-batch', '--readnever', '-p', str(pid), *args], capture_output=True, text=True, check=False,
                          timeout=240, errors='replace')
    got = [tuple(map(int, pair)) for pair in re.findall(r'RESULT (-?\d+) (\d+)', done.stdout)]
    assert len(got) == len(calls), f'{len(got)} of {len(calls)} calls: {done.stdout[-1500:]} {done.stderr[-1500:]}'
    return [errno if value == -1 else 0 for value, errno in got]
