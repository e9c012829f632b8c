#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What code of an attacker in a process of stackbpf can do to other processes and to files: nothing. A debugger
makes the processes call what an attacker would; processes and files beside them are looked at afterwards.

attacks.py STACKBPF SPLIT [PART...]
"""
import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import urllib.request

import inject
from live import check, done, is_in_loop, need_root, run_parts, running, skip, wait_for, wait_until_old

need_root()
BINARY, SPLIT = (os.path.abspath(path) for path in sys.argv[1:3])
USER, UNIT = 12321, 12322
EPERM, EACCES, ENOSYS = 1, 13, 38
AT_FDCWD = -100
O_WRONLY, O_RDWR, O_TRUNC, O_NONBLOCK, O_ASYNC, O_DIRECTORY = 1, 2, 0o1000, 0o4000, 0o20000, 0o200000
F_SETFD, F_SETFL, F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY = 2, 4, 8, 10, 15, 1024, 1026
TIOCSTI, RLIMIT_NOFILE, PR_SET_DUMPABLE, PR_SET_PTRACER, KILL = 0x5412, 7, 4, 0x59616d61, 9
CLONE_NEW_USER_THREAD = 0x10000000 | 0x100 | 0x10000
READERS = ('stackbpf-sample', 'stackbpf-read', 'stackbpf-spawn')  # who is there to read files, and who makes those
SECRETS = ('/etc/passwd', '/proc/self/status')
CAPS = '+bpf,+perfmon,+sys_ptrace,+syslog,+dac_read_search,+checkpoint_restore'
AS_UNIT = ('setpriv', f'--reuid={UNIT}', f'--regid={UNIT}', '--clear-groups', '--no-new-privs', f'--bounding-set=-all,{CAPS}',
           f'--inh-caps={CAPS}', f'--ambient-caps={CAPS}')


def status(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8', errors='replace') as file:
        return {key: value.split() for key, value in (line.split(':', 1) for line in file)}


def below(pid):
    """`pid` and processes that it made: name -> pids."""
    found = {status(pid)['Name'][0]: [pid]}
    for child in subprocess.run(['ps', '-o', 'pid=', '--ppid', str(pid)], stdout=subprocess.PIPE, text=True,
                                check=False).stdout.split():
        with contextlib.suppress(OSError):
            for name, pids in below(int(child)).items():
                found.setdefault(name, []).extend(pids)
    return found


def signals(victim):
    """Calls that end or change another process of the same user."""
    return (
        ('open', f'/proc/{victim}', O_DIRECTORY), ('pidfd_send_signal', '$r', KILL, 0, 0),
        ('pidfd_open', victim, 0), ('pidfd_getfd', 3, 1, 0),
        ('tgkill', victim, victim, KILL), ('tkill', victim, KILL), ('kill', victim, KILL), ('kill', 0, 0), ('kill', -1, 0),
        ('prlimit64', victim, RLIMIT_NOFILE, [0, 0], 0),
        ('ptrace', 16, victim, 0, 0), ('process_vm_writev', victim, 0, 0, 0, 0, 0),
    )


def sigtrap(victim):
    """An event of perf in another process that ends it with SIGTRAP when it has used some CPU."""
    flags = 1 << 5 | 1 << 6 | 1 << 36 | 1 << 37  # exclude_kernel, exclude_hv, remove_on_exec, sigtrap
    task_clock = [1 | 136 << 32, 1, 100000, 0, 0, flags] + [0] * 11
    return (('perf_event_open', task_clock, victim, -1, -1, 0),)


def descriptors(victim):
    """Signals by way of a descriptor that is open, 0 here; and what descriptors may not do besides."""
    return (
        ('fcntl', 0, F_SETOWN, victim), ('fcntl', 0, F_SETOWN_EX, [f'(long){victim} << 32 | 1']), ('fcntl', 0, F_SETSIG, KILL),
        ('fcntl', 0, F_SETFL, O_ASYNC), ('fcntl', 0, F_SETLEASE, 1), ('fcntl', 0, F_NOTIFY, 2),
        ('ioctl', 0, TIOCSTI, 0), ('ioctl', 0, 0x5452, 0),  # FIOASYNC
    )


def ourselves():
    return (
        ('prctl', PR_SET_DUMPABLE, 1, 0, 0, 0), ('prctl', PR_SET_PTRACER, -1, 0, 0, 0),
        ('clone', CLONE_NEW_USER_THREAD, 0, 0, 0, 0), ('unshare', 0x10000000), ('execve', '/nonexistent', 0, 0),
        ('socket', 2, 1, 0), ('io_uring_setup', 1, 0), ('bpf', 5, 0, 0),
    )


def starting(pid):
    """What the one that starts the others never needs, though it is root."""
    return (
        ('execve', '/nonexistent', 0, 0), ('ptrace', 16, pid, 0, 0), ('process_vm_writev', pid, 0, 0, 0, 0, 0),
        ('unshare', 0), ('pidfd_getfd', 3, 1, 0), ('io_uring_setup', 1, 0),
    )


def writing(paths):
    calls = []
    for path in paths:
        calls += [
            ('openat2', AT_FDCWD, path, [O_WRONLY | O_TRUNC, 0, 0], 24), ('openat2', AT_FDCWD, path, [O_RDWR, 0, 0], 24),
            ('open', path, O_WRONLY), ('openat', AT_FDCWD, path, O_RDWR | O_TRUNC), ('truncate', path, 0),
            ('rename', path, path + '.new'), ('unlink', path), ('chmod', path, 0o777),
        ]
    return tuple(calls)


def reading(paths):
    return tuple(('openat', AT_FDCWD, path, 0) for path in paths)


def is_harmless(call):
    """It gives a descriptor only, which the next call is to use."""
    return call[0] == 'open' and call[2] == O_DIRECTORY


def attack(what, pid, paths, others=(), tid=None, secrets=(), but=()):
    """All calls, in process `pid`. `paths`: files that its user may write; `others`: processes whose memory it tries;
    `secrets`: files that it must not even read; `but`: calls that are its work."""
    uid = int(status(pid)['Uid'][0])
    for path in paths:
        os.chown(path, uid, -1)
    with running('setpriv', f'--reuid={uid}', '--clear-groups', 'yes', stdout=subprocess.DEVNULL) as victim:
        wait_for(lambda: status(victim.pid)['Name'] == ['yes'], 'the victim')
        memory = [f'/proc/{other}/mem' for other in (victim.pid, *others)]
        calls = [*sigtrap(victim.pid), *signals(victim.pid), *descriptors(victim.pid), *ourselves(), *writing([*paths, *memory]), *reading(secrets)]
        calls = [call for call in calls if call[0] not in but]
        before = [(os.stat(path).st_ino, os.stat(path).st_size, os.stat(path).st_mode) for path in paths]
        results = inject.call_in(pid, calls, tid)
        bad = [f'{call}: {os.strerror(errno) if errno else "done"}' for call, errno in zip(calls, results)
               if errno not in (EPERM, EACCES, ENOSYS) and not is_harmless(call)]
        check(not bad, f'{what} (user {uid}): {len(calls)} calls are refused, but for {bad}')
        check(victim.poll() is None, f'{what}: another process of its user lives')
        check([(os.stat(path).st_ino, os.stat(path).st_size, os.stat(path).st_mode) for path in paths] == before,
              f'{what}: the files of its user are as they were')


def is_gone(pid):
    try:
        return status(pid)['State'][0] in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return True


@contextlib.contextmanager
def asked_nothing(parent, pid):
    """Those who sample, but for `pid`, wait meanwhile: a reader that a debugger has stopped would be ended by them."""
    samplers = [sampler for sampler in (parent, *below(parent).get('stackbpf-sample', [])) if sampler != pid]
    for sampler in samplers:
        os.kill(sampler, signal.SIGSTOP)
    try:
        yield
    finally:
        for sampler in samplers:
            os.kill(sampler, signal.SIGCONT)


def attack_any(what, parent, name, *args, **kwargs):
    """A process of that name below `parent`. One that parses may be replaced by another before it has made all calls."""
    for _ in range(5):
        pid = wait_for(lambda: below(parent).get(name), name)[-1]
        try:
            with asked_nothing(parent, pid):
                attack(what, pid, *args, **kwargs)
            return
        except (FileNotFoundError, ProcessLookupError, AssertionError):
            if not is_gone(pid):
                raise
    check(False, f'{what}: none lives for long enough')


def is_hidden(what, pids):
    """Nobody of the same user looks into it: /proc/PID belongs to root where a process is not dumpable."""
    for pid in pids:
        # One that parses may have been replaced.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            check(os.stat(f'/proc/{pid}/mem').st_uid == 0, f'{what}: {pid} is not dumpable')


def is_settled(pid, nr_filters=1):
    """It samples, and each of its threads has installed its filter."""
    return is_in_loop(pid) and all(int(status(f'{pid}/task/{tid}')['Seccomp_filters'][0]) >= nr_filters
                                   for tid in os.listdir(f'/proc/{pid}/task'))


@contextlib.contextmanager
def started(*command, ready, **kwargs):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kwargs) as process:
        try:
            wait_for(lambda: ready(process.pid) or process.poll() is not None, 'that it goes')
            assert process.poll() is None, f'{command}: {process.returncode}'
            yield process
        finally:
            process.terminate()
            process.wait(timeout=240)


def session(tmp):
    """Below sudo: the session and each of its threads, the processes that parse, the one that signals the command."""
    env = {**os.environ, 'SUDO_UID': str(USER), 'SUDO_GID': str(USER)}
    with started(BINARY, 'oncpu', '-q', '-o', f'{tmp}/o.folded', '--', SPLIT, ready=is_settled, env=env) as process:
        names = below(process.pid)
        threads = {int(tid): status(f'{process.pid}/task/{tid}')['Name'][0] for tid in os.listdir(f'/proc/{process.pid}/task')}
        for tid, name in threads.items():
            attack(f'below sudo: {name}', process.pid, [f'{tmp}/theirs'], tid=tid)
        for name in sorted(set(names) - {'stackbpf', 'split', 'stackbpf-write'}):
            attack_any(f'below sudo: {name}', process.pid, name, [f'{tmp}/theirs'], [process.pid],
                       secrets=() if name in READERS else SECRETS)
        for name in sorted(set(names) - {'split'}):
            is_hidden(f'below sudo: {name}', names[name])
        refuses('below sudo: stackbpf-write', names['stackbpf-write'][0])


def loader(tmp):
    """The process that loads the walkers of interpreters which the target has not."""
    env = {**os.environ, 'SUDO_UID': str(USER), 'SUDO_GID': str(USER)}
    with running(SPLIT) as target:
        wait_until_old(target.pid)
        with started(BINARY, 'oncpu', '-q', '-p', str(target.pid), ready=is_settled, env=env) as process:
            attack_any('below sudo: stackbpf-load', process.pid, 'stackbpf-load', [f'{tmp}/theirs'], [process.pid], but=('bpf',))
            is_hidden('below sudo: stackbpf-load', below(process.pid)['stackbpf-load'])


def refuses(what, pid):
    calls = starting(pid)
    results = inject.call_in(pid, calls)
    check(set(results) <= {EPERM, ENOSYS}, f'{what}: {list(zip(calls, results))}')


def debuginfod(tmp):
    """What a session with a network is left in addition does not signal, nor type on a terminal."""
    env = {**os.environ, 'SUDO_UID': str(USER), 'SUDO_GID': str(USER), 'DEBUGINFOD_URLS': '', 'HOME': tmp}
    with started(BINARY, 'oncpu', '-q', '--debuginfod', '-o', f'{tmp}/o.folded', '--', SPLIT, ready=is_settled, env=env) as process, \
            running('setpriv', f'--reuid={USER}', '--clear-groups', 'sleep', '1000') as victim:
        wait_for(lambda: status(victim.pid)['Name'] == ['sleep'], 'the victim')
        calls = [('fcntl', 0, F_SETFL, O_NONBLOCK), *signals(victim.pid), *descriptors(victim.pid)]
        first, *results = inject.call_in(process.pid, calls)
        bad = [(call, errno) for call, errno in zip(calls[1:], results) if errno not in (EPERM, EACCES) and not is_harmless(call)]
        check(not bad and victim.poll() is None, f'--debuginfod: {len(calls)} calls are refused, but for {bad}')
        check(first == 0, f'--debuginfod: sockets can be made not to wait: {first}')


def has_sampler(pid):
    # It has that of the one that started it from the beginning on.
    return any(is_settled(sampler, 2) for sampler in below(pid).get('stackbpf-sampl', []) + below(pid).get('stackbpf-sample', []))


def recorder(tmp, prefix, what, uid):
    store = f'{tmp}/store-{uid}'
    os.mkdir(store, 0o750)
    os.chown(store, uid, uid)
    with started(*prefix, BINARY, 'record', '-q', '--store', store, ready=has_sampler) as process:
        names = below(process.pid)
        writer = names['stackbpf-store'][0]
        files = [f'{store}/{name}' for name in os.listdir(store) if os.path.isfile(f'{store}/{name}')]
        for name in sorted(set(names) - {'stackbpf'}):
            inside = [] if name == 'stackbpf-store' else files[:1]
            attack_any(f'{what}: {name}', process.pid, name, [f'{tmp}/theirs', *inside], [process.pid, writer],
                       secrets=() if name in READERS else (f'{tmp}/theirs', *SECRETS))
        for name, pids in names.items():
            is_hidden(f'{what}: {name}', pids)
        refuses(f'{what}: the process that starts the others', process.pid)
        users = [status(names[name][0])['Uid'][0] for name in ('stackbpf-sample', 'stackbpf-superv')]
        check(uid or len({*users, '0'}) == 3, f'{what}: the sampler and the parsers have users of their own: {users}')
    server(prefix, what, tmp, store)


def server(prefix, what, tmp, store):
    with subprocess.Popen([*prefix, BINARY, 'serve', '--no-token', '--listen', '127.0.0.1:0', '--store', store],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stderr.readline()
            url = re.search(r'http://[^/]+/', said)[0]
            # The answer needs a process that makes it.
            with urllib.request.urlopen(f'{url}api/info', timeout=240) as reply:
                check(reply.status == 200, f'{what}: it answers')
            names = below(process.pid)
            for name in sorted(names):
                attack(f'{what}: serve: {name}', names[name][0], [f'{tmp}/theirs', f'{store}/stackbpf-store'], [process.pid],
                       secrets=(f'{tmp}/theirs', *SECRETS))
                is_hidden(f'{what}: serve: {name}', names[name])
            with urllib.request.urlopen(f'{url}api/info', timeout=240) as reply:
                check(reply.status == 200, f'{what}: it goes on')
        finally:
            process.terminate()
            process.communicate(timeout=240)


def record_as_root(tmp):
    recorder(tmp, (), 'as root', 0)


def record_as_unit(tmp):
    recorder(tmp, AS_UNIT, 'as the unit', UNIT)


def store_user(tmp):
    """A store of root's becomes that of the user who is there for it, and goes on working."""
    store, passwd, user = f'{tmp}/store', f'{tmp}/passwd', 12323
    record = [BINARY, 'record', '-q', '-t', '1', '-F', '49', '--store', store]
    check(subprocess.run(record, timeout=240, check=False).returncode == 0 and os.stat(store).st_uid == 0, 'root makes a store')
    shutil.copy('/etc/passwd', passwd)
    os.chmod(passwd, 0o644)
    with open(passwd, 'a', encoding='ascii') as file:
        file.write(f'stackbpf-store:x:{user}:{user}::/nonexistent:/usr/sbin/nologin\n')
    os.symlink('/etc/hostname', f'{store}/link')
    before = os.stat('/etc/hostname').st_uid
    in_namespace = ['unshare', '-m', 'sh', '-c', f'mount --bind {passwd} /etc/passwd && exec "$@"', 'sh']
    if subprocess.run([*in_namespace, 'true'], check=False).returncode:
        print('not looked at: nothing can be mounted here')
        return
    done_ = subprocess.run([*in_namespace, *record], timeout=240, check=False)
    check(done_.returncode == 0, f'it goes on: {done_.returncode}')
    names = [store] + [os.path.join(where, name) for where, *found in os.walk(store) for name in sum(found, [])]
    others = [name for name in names if os.lstat(name).st_uid != user]
    check(not others, f'all of it is the user\'s, but for {others}')
    check(os.stat('/etc/hostname').st_uid == before, 'what a link in it leads to is not')
    out = subprocess.run([BINARY, 'query', '--store', store, '--from', '-1h'], stdout=subprocess.PIPE, text=True, check=False)
    check(out.returncode == 0 and out.stdout, 'what was recorded before and since is there')


SWAP = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/stat.h>
    #include <unistd.h>
    int mkdir(const char *path, mode_t mode)
    {
        int ret = mkdirat(AT_FDCWD, path, mode);
        if (!ret && strstr(path, "/swapped") && !rmdir(path))
            ret = rename(getenv("SWAP_FOR"), path);
        return ret;
    }
    """


def swapped(tmp):
    """Below sudo, a directory that was made is another one, by a symbolic link, when it is given to the user."""
    os.mkdir(f'{tmp}/precious', 0o700)
    os.symlink(f'{tmp}/precious', f'{tmp}/link')
    with open(f'{tmp}/swap.c', 'w', encoding='ascii') as file:
        file.write(SWAP)
    subprocess.run(['gcc', '-shared', '-fPIC', '-o', f'{tmp}/swap.so', f'{tmp}/swap.c'], check=True)
    ended = subprocess.run([BINARY, 'record', '-t', '0.1', '--store', f'{tmp}/swapped'], timeout=240, check=False,
                           stderr=subprocess.PIPE, text=True,
                           env={**os.environ, 'LD_PRELOAD': f'{tmp}/swap.so', 'SWAP_FOR': f'{tmp}/link',
                                'SUDO_UID': str(USER), 'SUDO_GID': str(USER)})
    check(os.path.islink(f'{tmp}/swapped') and os.stat(f'{tmp}/precious').st_uid == 0,
          f'what the link leads to remains root\'s: {ended.returncode} {ended.stderr}')


@contextlib.contextmanager
def sandbox():
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, stat.S_IRWXU | stat.S_IXOTH | stat.S_IXGRP)
        with open(f'{tmp}/theirs', 'w', encoding='ascii') as file:
            file.write('what must remain\n')
        yield tmp


def part(function):
    def run():
        with sandbox() as tmp:
            function(tmp)
    run.__name__ = function.__name__
    return run


reason = inject.why_not(BINARY)
if reason or not shutil.which('setpriv'):
    skip(reason or 'no setpriv')
run_parts([part(one) for one in (session, loader, debuginfod, record_as_root, record_as_unit, store_user, swapped)], sys.argv[3:])
done()
