#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""run: the name of the picture, what is in it, the command's status, who shows it."""
import os
import re
import stat
import subprocess
import sys
import tempfile

from live import check, done, need_root, wait_for

STACKBPF, FLAMEGRAPH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
COUNT = 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'


def run(*args, cwd, **kwargs):
    return subprocess.run([STACKBPF, 'run', *args], cwd=cwd, capture_output=True, text=True, timeout=240, **kwargs)


def folded(picture):
    """The stacks that the picture carries."""
    return subprocess.run([FLAMEGRAPH, '--extract', picture], capture_output=True, text=True, check=True).stdout


def test_name_and_status(tmp):
    command = f'{tmp}/-odd name;$x'
    with open(command, 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\n{COUNT}\nexit 7\n')
    os.chmod(command, 0o755)
    ended = run('--', command, cwd=tmp)
    check(ended.returncode == 7, f'the status is the command\'s: {ended.returncode}: {ended.stderr}')
    names = [name for name in os.listdir(tmp) if name.endswith('.svg')]
    check(len(names) == 1 and re.fullmatch(r'_odd_name__x-\d{8}-\d{6}\.svg', names[0]), f'the name: {names}')
    check(f'file://{os.path.realpath(tmp)}/{names[0]}' in ended.stderr, f'it says where: {ended.stderr}')
    check(stat.S_ISREG(os.stat(f'{tmp}/{names[0]}').st_mode), 'it is there')


def test_children(tmp):
    """The shell waits for another shell, which works."""
    ended = run('-o', 'x.svg', '--', 'sh', '-c', f"cp /bin/sh ./worker; ./worker -c '{COUNT}'; :", cwd=tmp)
    check(ended.returncode == 0 and re.search('^worker;', folded(f'{tmp}/x.svg'), re.M),
          f'children are in it: {ended.stderr}')


def test_kind(tmp):
    ended = run('--kind', 'offcpu', '-o', 'x.folded', '--', 'sleep', '0.2', cwd=tmp)
    with open(f'{tmp}/x.folded', encoding='utf-8') as file:
        text = file.read()
    us = sum(int(line.rsplit(' ', 1)[1]) for line in text.splitlines() if 'nanosleep' in line)
    check(ended.returncode == 0 and 'kind=offcpu' in text and 200000 <= us, f'waits, in us: {us}')


def test_spans(tmp):
    """Of four waits, the one in a call that is slow enough, which the program measures. A thread that is preempted in the
    call, or wakes up late, waits for a CPU, too: that time is part of the call, wherever the stack is. What it took of a
    CPU is no wait. Each stack is rounded."""
    waits = """import select, sys, time
begin, cpu = time.monotonic_ns(), time.thread_time_ns(); time.sleep(.2)
print('slept', time.monotonic_ns() - begin, time.thread_time_ns() - cpu, file=sys.stderr)
time.sleep(.01); select.select([], [], [], .3)"""
    ended = run('--kind', 'offcpu', '--in', 'c:clock_nanosleep', '--slower-than', '50ms', '-o', 'x.folded', '--', sys.executable, '-c', waits, cwd=tmp)
    with open(f'{tmp}/x.folded', encoding='utf-8') as file:
        stacks = [line for line in file.read().splitlines() if not line.startswith('#')]
    us, slept = sum(int(line.rsplit(' ', 1)[1]) for line in stacks), re.search(r'^slept (\d+) (\d+)$', ended.stderr, re.M)
    check(ended.returncode == 0 and slept and 200000 - int(slept[2]) // 1000 - len(stacks) <= us <= int(slept[1]) // 1000 and any('nanosleep' in line for line in stacks),
          f'{us} us: {stacks} {ended.stderr}')


def test_no_overwrite(tmp):
    """As many as come in one second have as many names."""
    for _ in range(4):
        run('--kind', 'offcpu', '--', 'sleep', '0.01', cwd=tmp)
    check(len([name for name in os.listdir(tmp) if name.endswith('.svg')]) == 4, f'each its own: {os.listdir(tmp)}')


def test_open(tmp):
    """A program of that name notes down who it is and what it was given."""
    said = f'{tmp}/said'
    os.mkdir(f'{tmp}/bin')
    os.chmod(tmp, 0o777)
    with open(f'{tmp}/bin/xdg-open', 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\necho "$(id -u) $(id -G) $1 $(test -s "$1" && echo there)" >{said}.new && mv {said}.new {said}\n')
    os.chmod(f'{tmp}/bin/xdg-open', 0o755)
    env = {**os.environ, 'PATH': f'{tmp}/bin:{os.environ["PATH"]}', 'DISPLAY': ':7', 'SUDO_UID': '65534',
           'SUDO_GID': '65534'}
    ended = run('--open', '-o', 'x.svg', '--', 'sh', '-c', COUNT, cwd=tmp, env=env, extra_groups=[0, 4, 6])
    check(ended.returncode == 0, f'it ran: {ended.stderr}')
    wait_for(lambda: os.path.exists(said), 'xdg-open')
    with open(said, encoding='utf-8') as file:
        text = file.read()
    check(text == '65534 65534 x.svg there\n', f'as the sudo user, in none of our groups, when it is written: {text!r}')
    os.unlink(said)
    ended = run('--open', '-o', 'x.svg', '--', 'sh', '-c', COUNT, cwd=tmp,
                env={name: value for name, value in env.items() if name != 'DISPLAY'})
    check('neither $DISPLAY nor' in ended.stderr and not os.path.exists(said), f'no screen: {ended.stderr}')
    os.unlink(f'{tmp}/bin/xdg-open')
    ended = run('--open', '-o', 'x.svg', '--', '/bin/sh', '-c', COUNT, cwd=tmp, env={**env, 'PATH': f'{tmp}/bin'})
    check("the file is written, but not shown, because 'xdg-open' cannot be run: No such file" in ended.stderr,
          f'no program that shows it: {ended.stderr}')


def test_wrong(tmp):
    for args, sentence in (((), 'the command is missing'), (('--kind', 'x', '--', 'true'), 'is not one of oncpu'),
                           (('--kind', 'io', '-F', '9', '--', 'true'), '--freq has no effect on --kind=io'),
                           (('--kind', 'oncpu', '--idle', 'drop', '--', 'true'), '--idle has no effect')):
        ended = run(*args, cwd=tmp)
        check(ended.returncode == 2 and sentence in ended.stderr, f'{args}: {ended.stderr}')
    ended = run('--', 'no-such-program', cwd=tmp)
    check(ended.returncode == 127 and not os.listdir(tmp), f'no command, no picture: {ended.stderr}')


def main():
    need_root()
    for test in (test_name_and_status, test_children, test_kind, test_spans, test_no_overwrite, test_open, test_wrong):
        with tempfile.TemporaryDirectory() as tmp:
            test(tmp)
    done()


main()
