#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What stackbpf still may do while it samples. The truth is /proc/PID/task/*/status. What becomes of system calls that
a debugger has it make is in attacks.py.

privileges.py STACKBPF SPLIT
"""
import contextlib
import ctypes
import os
import signal
import stat
import subprocess
import sys
import tempfile

import live
from live import check, done, is_in_loop, need_root, running, wait_for, wait_until_old

need_root()
BINARY, SPLIT = (os.path.abspath(path) for path in sys.argv[1:3])
NOBODY, USER = 65534, 12321
OWN, OWN_USERS = 'a user of its own', 0x70000000  # and the process ID: workers/privileges.h
# By number; capability.h.
KILL, DAC_READ_SEARCH, SYS_PTRACE, SYSLOG, PERFMON, BPF, CHECKPOINT = 5, 2, 19, 34, 38, 39, 40
SESSION = {DAC_READ_SEARCH, SYS_PTRACE, SYSLOG, PERFMON, BPF, CHECKPOINT}
THREADS = {
    'stackbpf-unwind': {DAC_READ_SEARCH, SYS_PTRACE, BPF, CHECKPOINT},
    'stackbpf-interp': {DAC_READ_SEARCH, SYS_PTRACE, BPF, CHECKPOINT},
    'stackbpf-drain': {DAC_READ_SEARCH, SYS_PTRACE, BPF, CHECKPOINT},
    'stackbpf-pool': {DAC_READ_SEARCH, SYS_PTRACE, BPF, CHECKPOINT},
    'stackbpf-touch': {DAC_READ_SEARCH, SYS_PTRACE, CHECKPOINT},
    'stackbpf-watch': {DAC_READ_SEARCH, SYS_PTRACE, CHECKPOINT},
}
HAS_SECCOMP = 'libseccomp' in subprocess.run([BINARY, '--version'], stdout=subprocess.PIPE, text=True,
                                             check=True).stdout


def status(path):
    with open(f'{path}/status', encoding='utf-8', errors='replace') as file:
        return {key: value.split() for key, value in (line.split(':', 1) for line in file)}


def caps(words):
    return {bit for bit in range(64) if int(words[0], 16) >> bit & 1}


def tasks(pid):
    """Status of all threads, the thread of the session first; one that brings pages in may end meanwhile."""
    found = []
    for tid in sorted(map(int, os.listdir(f'/proc/{pid}/task'))):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append(status(f'/proc/{pid}/task/{tid}'))
    return found


@contextlib.contextmanager
def sampling(*args, env=None, **kwargs):
    """stackbpf, once it has begun and laid down what it lays down."""
    with subprocess.Popen([BINARY, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **(env or {})}, **kwargs) as process:
        try:
            wait_for(lambda: is_in_loop(process.pid) or process.poll() is not None, 'the loop')
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=240)


def check_task(what, task, want, uid):
    uid = OWN_USERS + int(task['Tgid'][0]) if uid == OWN else uid
    name = ''.join(task['Name'])
    if 'Seccomp' in task and HAS_SECCOMP:
        check(task['Seccomp'] == ['2'], f'{what}: {name}: system calls are filtered')
    check(task['NoNewPrivs'] == ['1'], f'{what}: {name}: no new privileges')
    for kind in 'CapPrm', 'CapEff':
        check(caps(task[kind]) <= want, f'{what}: {name}: {kind} {sorted(caps(task[kind]))}, at most {sorted(want)}')
    for kind in 'CapInh', 'CapBnd', 'CapAmb':
        check(not caps(task[kind]), f'{what}: {name}: {kind} is empty')
    check(set(task['Uid']) == {str(uid)} and set(task['Gid']) == {str(uid)}, f'{what}: {name}: user {task["Uid"]}')
    check(not set(task['Groups']) - {str(uid)}, f'{what}: {name}: groups {task["Groups"]}')


def named_tasks(pid):
    """None: a thread has just begun; it has the name of the one that made it for a moment."""
    found = tasks(pid)
    return found if all(task['Name'][0] in THREADS for task in found[1:]) else None


def check_tasks(what, pid, uid=OWN, session=frozenset(SESSION)):
    first, *others = wait_for(lambda: named_tasks(pid), 'all threads are known by name')
    check_task(what, first, session, uid)
    for task in others:
        check_task(what, task, THREADS[task['Name'][0]], uid)
    return {task['Name'][0] for task in others}


def each_view(target):
    one = ['-p', str(target.pid)]
    for view, args in (('oncpu', []), ('oncpu', one), ('offcpu', one), ('io', one), ('wall', one)):
        with sampling(view, '-q', *args) as process:
            seen = check_tasks(f'{view} {" ".join(args)}', process.pid)
        check({'stackbpf-watch', 'stackbpf-unwind', 'stackbpf-interp'} <= seen, f'{view}: all threads were seen: {seen}')
    wait_until_old(target.pid)
    with sampling('oncpu', '-q', *one) as process:
        loaders = [pid for pid in children(process.pid) if status(f'/proc/{pid}')['Name'] == ['stackbpf-load']]
        check(len(loaders) == 1, f'one process waits to load programs: {loaders}')
        check_task('loads', status(f'/proc/{loaders[0]}'), {BPF, PERFMON}, OWN_USERS + process.pid)


def sudo_user(tmp):
    """The user behind sudo; files in a place where only root may write."""
    env = {'SUDO_UID': str(USER), 'SUDO_GID': str(USER)}
    closed = f'{tmp}/closed'
    os.mkdir(closed, 0o700)
    path = f'{closed}/a.folded'
    with running(SPLIT) as target, \
            sampling('oncpu', '-p', str(target.pid), '-F', '999', '-o', path, env=env,
                     extra_groups=[0, 4, 6]) as process:
        check_tasks('sudo', process.pid, USER)
        process.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.path.exists(path), 'the snapshot')
        os.truncate(path, 0)
        process.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.stat(path).st_size, 'the next one in its place')
    check(owner_and_mode(path) == (0, 0, 0o600), f'where the sudo user may not write, root makes files: {owner_and_mode(path)}')
    check(os.listdir(closed) == ['a.folded'], 'nothing else is left')
    sudo_results(tmp, closed, env)


def owner_and_mode(path):
    found = os.stat(path)
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def sudo_results(tmp, closed, env):
    """Files below sudo: made with the rights of the user, never in the place of what they could not replace."""
    theirs, sticky = f'{tmp}/theirs', f'{tmp}/sticky'
    for path, mode in ((theirs, 0o755), (sticky, 0o1777)):
        os.mkdir(path)
        os.chmod(path, mode)
    os.chown(theirs, USER, USER)

    def write(path):
        done_ = subprocess.run([BINARY, 'oncpu', '-q', '-F', '999', '--format', 'folded', '-o', path, '--', 'sh', '-c',
                                'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'],
                               env={**os.environ, **env}, stderr=subprocess.PIPE, text=True, timeout=240, check=False)
        return done_.returncode, done_.stderr

    os.symlink(f'{closed}/linked', f'{theirs}/link')
    for name in 'new', 'new', 'link':
        check(write(f'{theirs}/{name}')[0] == 0 and owner_and_mode(f'{theirs}/{name}') == (USER, USER, 0o600), f'{name}: theirs alone')
    check(not os.path.exists(f'{closed}/linked'), 'a link is not followed')
    for path in f'{closed}/root', f'{sticky}/root':
        with open(path, 'w', encoding='ascii') as file:
            file.write('what root has')
        status_, said = write(path)
        check(status_ == 1 and 'may not replace' in said and said.count('\n') == 1, f'{path}: {status_} {said}')
        with open(path, encoding='ascii') as file:
            check(file.read() == 'what root has' and os.stat(path).st_uid == 0, f'{path}: is left')


def planted(tmp):
    """A FIFO of another user at the place of the result: nothing is written to it, as root and below sudo."""
    place = f'{tmp}/planted'
    os.mkdir(place)
    os.chmod(place, 0o1777)
    os.mkfifo(f'{place}/a.folded')
    os.chmod(f'{place}/a.folded', 0o666)
    os.chown(f'{place}/a.folded', NOBODY, NOBODY)
    with open(os.open(f'{place}/a.folded', os.O_RDONLY | os.O_NONBLOCK), 'rb') as reader:
        for env in ({}, {'SUDO_UID': str(USER), 'SUDO_GID': str(USER)}):
            ended = subprocess.run([BINARY, 'oncpu', '-a', '-q', '-t', '0.2', '-o', f'{place}/a.folded'], timeout=240, check=False,
                                   env={**os.environ, **env}, stderr=subprocess.PIPE, text=True)
            check(ended.returncode == 1 and f'user {NOBODY} owns this FIFO' in ended.stderr, f'{env}: {ended.returncode} {ended.stderr}')
            check(not reader.read(), 'its reader got nothing')


def write_by_another(tmp):
    """The end: nothing is taken back to write. A FIFO whose reader reads slowly shows the moment."""
    fifo = f'{tmp}/fifo'
    os.mkfifo(fifo, 0o600)
    with running(SPLIT) as target:
        with subprocess.Popen([BINARY, 'oncpu', '-p', str(target.pid), '-F', '999', '-t', '0.5', '-q', '-o', fifo,
                               '--format', 'svg']) as process:
            with open(fifo, 'rb') as reader:
                # It writes now, or waits until we read: more than a pipe holds.
                wait_for(lambda: reader.read(1), 'the first byte')
                check_tasks('while it writes', process.pid)
                check(b'</svg>' in reader.read(), 'the FIFO got all')
            check(process.wait() == 0, 'exit status 0')


def children(pid):
    return [int(word) for word in subprocess.run(['ps', '-o', 'pid=', '--ppid', str(pid)], stdout=subprocess.PIPE, text=True,
                                                 check=False).stdout.split()]


def stats():
    """What is said of it, by somebody who could not ask the kernel any more."""
    has_landlock = ctypes.CDLL(None).syscall(444, None, 0, 1) > 0  # landlock_create_ruleset(): its version
    with running(SPLIT) as target, live.sampling(BINARY, 'oncpu', '-p', str(target.pid), '-F', '999', '--stats') as run:
        begin = live.ran_seconds(target.pid)
        wait_for(lambda: live.ran_seconds(target.pid) > begin + 0.1, 'something to sample')
    said = run.result.err
    row = next(line for line in said.splitlines() if 'privileges left' in line)
    check(('which cannot open files' in row) == has_landlock and 'user 18' in row, f'Landlock {has_landlock}: {row}')
    check(row.endswith('a separate process'), f'no row is cut: {row}')


def killed(tmp):
    """kill -9 amid writing: the process that makes files goes as well, and takes what is half done along."""
    place = f'{tmp}/killed'
    os.mkdir(place)
    with running(SPLIT) as target, \
            sampling('oncpu', '-p', str(target.pid), '-o', f'{place}/a.folded') as process:
        children = subprocess.run(['ps', '-o', 'pid=,comm=', '--ppid', str(process.pid)], stdout=subprocess.PIPE,
                                  text=True, check=False).stdout.splitlines()
        children = [line.split()[0] for line in children if line.split()[1] == 'stackbpf-write']
        check(len(children) == 1, f'one process makes files: {children}')
        writer = int(children[0])
        check(status(f'/proc/{writer}')['NoNewPrivs'] == ['1'], 'it gets no new privileges either')
        process.kill()
        process.wait()
        wait_for(lambda: not os.path.exists(f'/proc/{writer}'), 'its end')
    check(not os.listdir(place), f'left: {os.listdir(place)}')


def commands(tmp):
    """What we run for the user has what the user has."""
    report = f'{tmp}/status'
    ours = status('/proc/self')
    for env, uid in (({}, 0), ({'SUDO_UID': str(NOBODY), 'SUDO_GID': str(NOBODY)}, NOBODY)):
        with open(report, 'w', encoding='utf-8') as out:
            subprocess.run([BINARY, 'oncpu', '-q', '-o', f'{tmp}/{uid}.folded', '--', 'cat', '/proc/self/status'], stdout=out,
                           check=False, env={**os.environ, **env}, timeout=240)
        with open(report, encoding='utf-8') as file:
            theirs = {key: value.split() for key, value in (line.split(':', 1) for line in file)}
        for key in 'NoNewPrivs', 'Seccomp', 'CapBnd', 'CapInh', 'CapAmb':
            check(theirs[key] == ours[key], f'command of {uid}: {key} {theirs[key]}')
        check(theirs['Uid'] == [str(uid)] * 4, f'command of {uid}: {theirs["Uid"]}')
    # A command of another user's gets the signal that we got. The file of a run as root is not the user's to replace.
    with subprocess.Popen([BINARY, 'oncpu', '-q', '-o', f'{tmp}/c.folded', '--', 'sh', '-c',
                           'trap "exit 9" TERM; echo up; while :; do sleep 0.01; done'], stdout=subprocess.PIPE,
                          env={**os.environ, 'SUDO_UID': str(NOBODY), 'SUDO_GID': str(NOBODY)}) as process:
        process.stdout.readline()
        wait_for(lambda: is_in_loop(process.pid), 'the loop')
        check_tasks('with a command', process.pid, NOBODY)
        signaller = [pid for pid in children(process.pid) if status(f'/proc/{pid}')['Name'] == ['stackbpf-signal']]
        check(len(signaller) == 1, f'one process passes signals on: {signaller}')
        check_task('signals', status(f'/proc/{signaller[0]}'), {KILL}, OWN)
        process.send_signal(signal.SIGTERM)
        check(process.wait(timeout=240) == 9, 'the signal came to the command')


os.umask(0o022)
with tempfile.TemporaryDirectory() as directory:
    os.chmod(directory, stat.S_IRWXU | stat.S_IXOTH)
    with running(SPLIT) as split:
        each_view(split)
    sudo_user(directory)
    planted(directory)
    write_by_another(directory)
    killed(directory)
    commands(directory)
    stats()
done()
