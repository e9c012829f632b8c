#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files that others made are parsed by a process that may do nothing else. The truth is its /proc/PID, and
what becomes of a run when it crashes, hangs or lies over one library of two.

parser.py STACKBPF FAULT
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import fault
from live import Result, check, done, is_in_loop, need_root, running, wait_for

need_root()
BINARY, FAULT = (os.path.abspath(path) for path in sys.argv[1:3])
OWN_USERS = 0x70000000  # users of one process each: workers/privileges.h
SAMPLED, EMPTY = 0, 3
TRIES, ENOUGH = 5, 20
WAITING = {'7', '47'} if os.uname().machine == 'x86_64' else {'73', '212'}  # poll(), ppoll(), recvmsg()
NAMES = ('stackbpf-superv', 'stackbpf-parse')
HAS_SECCOMP = 'libseccomp' in subprocess.run([BINARY, '--version'], stdout=subprocess.PIPE, text=True,
                                             check=True).stdout
FLAGS = ('-O2', '-fomit-frame-pointer', '-fno-optimize-sibling-calls')
# Frames of 200 bytes, so that frame pointers lead nowhere.
LIBRARY = """
    static __attribute__((noinline)) void WHO_inner(long nr)
    {
        char room[200];
        for (volatile long i = 0; i < nr; i++)
            __asm__ volatile("" : : "r"(room) : "memory", "rbp");
    }
    __attribute__((noinline)) void WHO_spin(long nr)
    {
        char room[200];
        __asm__ volatile("" : : "r"(room) : "memory");
        WHO_inner(nr);
        __asm__ volatile("");
    }
    """
MAIN = """
    void good_spin(long nr);
    void bad_spin(long nr);
    int main(void)
    {
        for (;;) {
            good_spin(1000000);
            bad_spin(1000000);
        }
    }
    """


def build(work):
    for who in ('good', 'bad'):
        source = f'{work}/{who}.c'
        with open(source, 'w', encoding='ascii') as file:
            file.write(LIBRARY.replace('WHO', who))
        subprocess.run(['gcc', *FLAGS, '-shared', '-fPIC', '-o', f'{work}/lib{who}.so', source], check=True)
    with open(f'{work}/main.c', 'w', encoding='ascii') as file:
        file.write(MAIN)
    subprocess.run(['gcc', *FLAGS, '-o', f'{work}/main', f'{work}/main.c', f'-L{work}', '-lgood', '-lbad',
                    f'-Wl,-rpath,{work}'], check=True)
    return f'{work}/main'


def status(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8', errors='replace') as file:
        return {key: value.split() for key, value in (line.split(':', 1) for line in file)}


def below(pid):
    """Processes that `pid` made, and they: name -> pids."""
    found = {}
    for child in subprocess.run(['ps', '-o', 'pid=', '--ppid', str(pid)], stdout=subprocess.PIPE, text=True,
                                check=False).stdout.split():
        with contextlib.suppress(OSError):
            found.setdefault(status(child)['Name'][0], []).append(int(child))
            for name, pids in below(child).items():
                found.setdefault(name, []).extend(pids)
    return found


@contextlib.contextmanager
def sampling(target):
    """stackbpf, once a worker has nothing to do but wait; and what is below it."""
    with subprocess.Popen([BINARY, 'oncpu', '-q', '-p', str(target.pid)], stdout=subprocess.DEVNULL) as process:
        try:
            # Tables of the target stand.
            wait_for(lambda: is_in_loop(process.pid), 'the loop')
            wait_for(lambda: set(NAMES) <= set(below(process.pid)), 'the process that parses')
            wait_for(lambda: all(is_waiting(pid) for name in NAMES for pid in below(process.pid).get(name, [])),
                     'that they wait')
            yield process, below(process.pid)
        finally:
            process.terminate()
            process.wait(timeout=240)


def is_waiting(pid):
    """For what it is asked: it has laid down all that it does."""
    with contextlib.suppress(OSError), open(f'/proc/{pid}/syscall', encoding='ascii') as file:
        return file.read().split()[0] in WAITING
    return False


def fds(pid):
    return {int(fd): os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')}


def what_it_may(target):
    with sampling(target) as (_, found):
        for name in NAMES:
            for pid in found[name]:
                has = status(pid)
                check(len({*has['Uid'], *has['Gid']}) == 1 and int(has['Uid'][0]) > OWN_USERS, f'{name}: user {has["Uid"]}')
                check(set(has['Groups']) <= {has['Gid'][0]}, f'{name}: groups {has["Groups"]}')
                for kind in 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb':
                    check(int(has[kind][0], 16) == 0, f'{name}: {kind} {has[kind][0]}')
                check(has['NoNewPrivs'] == ['1'], f'{name}: no new privileges')
                check(not HAS_SECCOMP or has['Seccomp'] == ['2'], f'{name}: system calls are filtered')
                files = fds(pid)
                check(all(files[fd] == '/dev/null' for fd in range(3)), f'{name}: no terminal: {files}')
                others = [path for fd, path in files.items() if fd > 2]
                check(all(path.startswith('socket:') for path in others), f'{name}: nothing but sockets: {others}')
                check(name != NAMES[1] or len(others) == 1, f'{name}: one socket: {others}')
                with open(f'/proc/{pid}/maps', encoding='utf-8') as file:
                    shared = [line for line in file if 'rw-s' in line]
                check(name != NAMES[1] or len(shared) == 1, f'{name}: memory of its own seat only: {shared}')


# What a debugger has the process call; all is refused, but for the last.
CALLS = (
    'open("/dev/null", 0)',
    'socket(2, 1, 0)',
    'execve("/nonexistent", 0, 0)',
    'ptrace(0, 0, 0, 0)',
    'process_vm_readv(KEEPER, 0, 0, 0, 0, 0)',
    'kill(KEEPER, 0)',
    'fork()',
    'unshare(0)',
    'stat("/", 0)',
    'syscall(321, 1, 0, 0)',  # bpf()
    'syscall(257, -100, "/dev/null", 0)',  # openat()
    'syscall(262, -100, "/", 0, 0)',  # newfstatat() of a name
    'syscall(317, 1, 0, 0)',  # seccomp()
    'mmap(0, 4096, 4, 34, -1, 0)',  # PROT_EXEC
)


def filtered(target):
    if not HAS_SECCOMP or not shutil.which('gdb') or os.uname().machine != 'x86_64':
        print('the filter is not looked at: no libseccomp, no gdb, or not x86-64')
        return
    lines = []
    with sampling(target) as (_, found):
        for call in (*CALLS, 'mmap(0, 4096, 3, 34, -1, 0)'):
            name, args = call.replace('KEEPER', str(found[NAMES[0]][0])).split('(', 1)
            lines += ['-ex', f'set var $r = ((long (*)()) {name})({args}',
                      '-ex', 'printf "RESULT %ld %d\\n", $r, *((int *(*)(void)) __errno_location)()']
        out = subprocess.run(['gdb', '-q', '-nx', '-batch', '--readnever', '-p', str(found[NAMES[1]][0]), *lines],
                             capture_output=True, text=True, check=False, timeout=240)
    got = re.findall(r'RESULT (-?\d+) (\d+)', out.stdout)
    if len(got) != len(CALLS) + 1:
        print(out.stdout[-2000:], out.stderr[-2000:])
    check(len(got) == len(CALLS) + 1, f'gdb made {len(got)} of {len(CALLS) + 1} calls')
    for call, (value, errno) in zip(CALLS, got):
        check((int(value) & 0xffffffff) == 0xffffffff and errno == '1', f'{call}: {value}, errno {errno}')
    check((int(got[-1][0]) & 0xffffffff) != 0xffffffff, 'memory it may have')


def killed(target):
    """kill -9: nobody is left. Of a worker: another one takes its place."""
    with sampling(target) as (process, found):
        process.kill()
        process.wait()
        pids = [pid for name in NAMES for pid in found[name]]
        wait_for(lambda: not any(os.path.exists(f'/proc/{pid}') for pid in pids), f'the end of {found}')


def samples(result, who):
    return {stack: weight for stack, weight in result.stacks.items() if f'{who}_inner' in stack}


def cut(result, who):
    """Share of the stacks of a library that do not come from the root."""
    stacks = samples(result, who)
    return sum(weight for stack, weight in stacks.items() if '_start' not in stack) / max(sum(stacks.values()), 1)


def run(target, **settings):
    """Until there is enough of both libraries: the machine may be busy with others."""
    for _ in range(TRIES):
        outcome = fault.run(FAULT, [BINARY, 'oncpu', '-p', str(target.pid), '-F', '999', '-t', '2',
                                    '--max-overhead', 'off'], **settings)
        result = Result(outcome.status, outcome.out, outcome.err)
        if outcome.status != EMPTY and all(sum(samples(result, who).values()) >= ENOUGH for who in ('good', 'bad')):
            break
    check(not outcome.hung and outcome.status == SAMPLED, f'{settings}: status {outcome.status} {outcome.err[:500]}')
    for who in 'good', 'bad':
        check(sum(samples(result, who).values()) >= ENOUGH, f'{settings}: samples of {who}')
    return result


def faults(target, bad):
    result = run(target)
    check(cut(result, 'good') < 0.02 and cut(result, 'bad') < 0.02,
          f'unharmed: cut {cut(result, "good"):.2f} {cut(result, "bad"):.2f}')
    check('parsing a file failed' not in result.err, f'unharmed: {result.err}')
    for what, words in (('crash', r'crashed \([1-9]'), ('lie', r'invalid answer \([1-9]'), ('hang', r'after 10 s \([1-9]')):
        result = run(target, parse=f'{what}:{os.stat(bad).st_ino}')
        check(re.search('parsing a file failed [1-9].*' + words, result.err), f'{what}: said: {result.err}')
        check(cut(result, 'bad') > 0.9, f'{what}: {cut(result, "bad"):.2f} of the stacks in that file are cut')
        check(cut(result, 'good') < 0.1, f'{what}: {cut(result, "good"):.2f} of those in the other one')


with tempfile.TemporaryDirectory() as directory:
    os.chmod(directory, 0o755)
    with running(build(directory)) as program:
        what_it_may(program)
        filtered(program)
        killed(program)
        fault.need_libraries(BINARY)
        faults(program, f'{directory}/libbad.so')
done()
