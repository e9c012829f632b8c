#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""kill -9 of stackbpf at any time: nothing of it is left in the kernel, in the output's folder, or of its command.

killed.py STACKBPF FAULT

The library FAULT makes it stop itself at a known point; what it holds then is asked of the kernel by number after
it was killed.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import fault
from live import check, done, need_root, skip, wait_for

need_root()
STACKBPF, FAULT = (os.path.abspath(path) for path in sys.argv[1:3])
fault.need_libraries(STACKBPF)
KINDS = ('prog', 'map', 'link')
# Where it stops: the phase, the view and the settings of FAULT.
POINTS = (('load', 'oncpu', {'bpf': 'load:oncpu_tick:0'}),
          ('attach', 'oncpu', {'bpf': 'link:*:0'}),
          ('timers', 'oncpu', {'perf': f'{os.cpu_count() + 2}:0'}),
          ('iterator', 'offcpu', {'bpf': 'iter:*:0'}),
          ('drain', 'oncpu', {'bpf': 'batch:*:0'}),
          ('detach', 'offcpu', {'bpf': 'pin:*:0', 'nth': 4}),  # three links are pinned then
          ('writing', 'oncpu', {'stop': 'flush'}),
          ('naming', 'oncpu', {'stop': 'linkat'}))


def bpftool(kind):
    tool = next((path for path in ('/usr/sbin/bpftool', '/usr/bin/bpftool', '/sbin/bpftool') if os.path.exists(path)), None)
    if not tool:
        skip('there is no bpftool')
    ran = subprocess.run([tool, '-j', kind, 'list'], stdout=subprocess.PIPE, check=False, text=True)
    return {item['id'] for item in json.loads(ran.stdout or '[]')}


def held(pid):
    """Numbers of all that the process has a descriptor of."""
    numbers = {kind: set() for kind in KINDS}
    for name in os.listdir(f'/proc/{pid}/fdinfo'):
        with contextlib.suppress(FileNotFoundError), open(f'/proc/{pid}/fdinfo/{name}', encoding='ascii') as file:
            text = file.read()
            for kind in KINDS:
                numbers[kind] |= {int(n) for n in re.findall(rf'^{kind}_id:\s+(\d+)', text, re.M)}
    return numbers


def state_of(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as file:
            return file.read().rsplit(')', 1)[1].split()[0]
    except FileNotFoundError:
        return None


def mounts():
    with open('/proc/self/mountinfo', encoding='utf-8') as file:
        return [line for line in file if ' - bpf ' in line]


def await_stop(process, log, phase):
    """Return: whether it stopped, and did not end."""
    def has_stopped():
        with contextlib.suppress(FileNotFoundError), open(log, encoding='ascii', errors='replace') as file:
            return 'stopped' in file.read()
        return False
    wait_for(lambda: has_stopped() or state_of(process.pid) == 'Z', f'the stop at {phase}')
    return has_stopped()


def kill_at(phase, view, settings):
    before = mounts()
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as logs:
        log = f'{logs}/log'
        with open(f'{work}/out.folded', 'w', encoding='ascii') as old:
            old.write('old\n')
        process = subprocess.Popen([STACKBPF, view, '-a', '-t', '0.3', '-o', f'{work}/out.folded'],
                                   env=fault.environment(FAULT, STACKBPF, log, **settings), stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        stopped = await_stop(process, log, phase)
        numbers = held(process.pid) if stopped else {}
        # The process that makes files is the one that stopped, and does not see that the other has gone.
        os.killpg(process.pid, signal.SIGKILL)
        _, err = process.communicate(timeout=240)
        check(stopped and (numbers['prog'] or numbers['map']),
              f'{phase}: killed with { {kind: len(ids) for kind, ids in numbers.items()} } {err}')
        for kind in KINDS:
            left = set()

            def gone():
                left.clear()
                left.update(numbers.get(kind, set()) & bpftool(kind))
                return not left
            with contextlib.suppress(AssertionError):
                wait_for(gone, f'the end of all {kind}s')
            check(not left, f'{phase}: {kind}s that are left: {left}')
        with open(f'{work}/out.folded', encoding='ascii') as old:
            check(old.read() == 'old\n' and os.listdir(work) == ['out.folded'],
                  f'{phase}: the old result is there, and nothing else: {os.listdir(work)}')
        check(mounts() == before, f'{phase}: no BPF filesystem is mounted')


def kill_with_command(settings, runs):
    """Before it was let go, the command never runs; after that, it goes on as if nothing had been."""
    with tempfile.TemporaryDirectory() as work:
        line = f'echo $$ >{work}/pid; read x; echo ended >{work}/end'
        process = subprocess.Popen([STACKBPF, 'oncpu', '-o', f'{work}/out.folded', '--', 'sh', '-c', line],
                                   env=fault.environment(FAULT, STACKBPF, f'{work}/log', **settings), stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        if runs:
            wait_for(lambda: os.path.exists(f'{work}/pid') and os.path.getsize(f'{work}/pid'), 'the command')
        else:
            await_stop(process, f'{work}/log', 'load')
        with open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='ascii') as file:
            children = [int(pid) for pid in file.read().split()]
        process.kill()
        process.wait()
        check(len(children) >= 1, f'command: {children}')
        if runs:
            with open(f'{work}/pid', encoding='ascii') as file:
                command = int(file.read())
            check(command in children and state_of(command) in ('S', 'R', 'D'), 'command: it goes on')
            process.stdin.write('x\n')
            process.stdin.flush()
            wait_for(lambda: os.path.exists(f'{work}/end'), 'the end of the command')
        wait_for(lambda: all(state_of(pid) in (None, 'Z') for pid in children), 'the end of all its processes')
        check(os.path.exists(f'{work}/pid') == runs, f'command: it {"ran" if runs else "never ran"}')
        process.stdin.close()
        process.stderr.close()


# Something has to run: of an idle machine nothing is written.
with subprocess.Popen([sys.executable, '-c', 'while True: pass']) as busy:
    try:
        for point in POINTS:
            kill_at(*point)
    finally:
        busy.kill()
kill_with_command({'bpf': 'load:oncpu_tick:0'}, False)
kill_with_command({}, True)
done()
