#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""snap: a stack of each thread, held against what the program itself and gdb say."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from live import check, done, need_root, running, wait_for

STACKBPF, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SPLIT = os.path.abspath(sys.argv[3])


def snap(*args, status=0):
    ended = subprocess.run([STACKBPF, 'snap', *map(str, args)], capture_output=True, text=True, timeout=240)
    check(ended.returncode == status, f'snap {args}: {ended.returncode}: {ended.stderr}')
    return ended.stdout


def stacks_of(pid, *args):
    """{tid: its stack}, a stack having one thread."""
    return {stack['threads'][0]['tid']: stack
            for stack in json.loads(snap('-p', pid, '--format', 'json', *args))['stacks']}


def interp_names(stack):
    return [frame['name'] for frame in stack['frames'] if frame['kind'] == 'interp']


def said_by(process, ident):
    """Names of the functions of the thread, leaf first, as faulthandler writes them."""
    parts = re.split(r'^(?:Current thread|Thread) 0x', process, flags=re.M)
    part = next(part for part in parts if part.startswith(f'{ident:016x}'))
    return re.findall(r'^  File .* in (\S+)$', part, re.M)


def nr_switches(pid, tid):
    with open(f'/proc/{pid}/task/{tid}/status', encoding='ascii', errors='replace') as file:
        return sum(int(nr) for nr in re.findall(r'ctxt_switches:\s+(\d+)', file.read()))


def sleeps(pid, tid):
    """It is past waiting for the lock of the interpreter."""
    with open(f'/proc/{pid}/task/{tid}/stack', encoding='ascii', errors='replace') as file:
        return 'nanosleep' in file.read()


def test_python():
    with tempfile.TemporaryFile('w+') as err:
        with running(sys.executable, PROGRAM, stdout=subprocess.PIPE, stderr=err, text=True) as process:
            threads = [part.split('=') for part in process.stdout.readline().split()[1:]]
            asleep = [int(tid) for name, tid, _ in threads if name != 'work']
            wait_for(lambda: all(sleeps(process.pid, tid) for tid in asleep[:3]), 'they sleep')
            before = [nr_switches(process.pid, tid) for tid in asleep]
            stacks = stacks_of(process.pid)
            check([nr_switches(process.pid, tid) for tid in asleep] == before, 'nobody was woken by it')
            with open(f'/proc/{process.pid}/status', encoding='ascii') as file:
                check(re.search(r'^State:\s+S', file.read(), re.M), 'nor stopped')
            process.stdout.close()
        check(len(stacks) == 6, f'six threads: {len(stacks)}')
        for name, tid, ident in threads:
            stack = stacks[int(tid)]
            check(stack['state'] in (('running', 'runnable', 'sleeping') if name == 'work' else ('sleeping',)),
                  f'{name}: {stack["state"]}')
            check(name in interp_names(stack), f'{name}: {interp_names(stack)}')
        for tid in asleep[:3]:
            names = interp_names(stacks[tid])
            check(names[:2] == ['sleep_below', 'sleep_here'], f'its leaf first: {names}')
            modules = [frame['module'] for frame in stacks[tid]['frames']]
            check('[kernel]' in modules and modules.index('[kernel]') == 0, f'the kernel\'s before: {modules[:3]}')


def test_faulthandler():
    """The same threads, by the program's own words."""
    # Read by a descriptor of its own: where one reads, the other would write.
    with tempfile.NamedTemporaryFile('w') as err, open(err.name, encoding='utf-8', errors='replace') as out:
        with running(sys.executable, PROGRAM, stdout=subprocess.PIPE, stderr=err, text=True) as process:
            threads = [part.split('=') for part in process.stdout.readline().split()[1:]]
            wait_for(lambda: all(sleeps(process.pid, tid) for name, tid, _ in threads if name == 'sleep_here'),
                     'they sleep')
            stacks = stacks_of(process.pid)
            process.send_signal(signal.SIGUSR1)
            end = time.monotonic() + 30
            said = ''
            while 'Current thread' not in said or 'in <module>' not in said:
                assert time.monotonic() < end, f'nothing was said: {said}'
                said += out.read()
            process.stdout.close()
        for name, tid, ident in threads:
            if name == 'work':
                continue
            mine = [part.split('.')[-1] for part in interp_names(stacks[int(tid)])]
            theirs = said_by(said, int(ident))
            check(mine == theirs, f'{name}: {mine}, faulthandler: {theirs}')


def test_gdb():
    """Functions of C, in a program whose threads wait; stopped by gdb afterwards."""
    if not shutil.which('gdb'):
        print('no gdb: not compared with it')
        return
    with running(sys.executable, '-c', 'import threading, time\n'
                 'for _ in range(4): threading.Thread(target=time.sleep, args=(1000,)).start()\n'
                 'print("ready", flush=True)\ntime.sleep(1000)', stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        stacks = stacks_of(process.pid, '--interp', 'off', '--no-inline', '-u')
        said = subprocess.run(['gdb', '-p', str(process.pid), '-batch', '-ex', 'thread apply all bt'],
                              capture_output=True, text=True, timeout=240).stdout
        process.stdout.close()
    parts = re.split(r'^Thread \d+ ', said, flags=re.M)[1:]
    check(len(parts) == len(stacks), f'as many threads as gdb sees: {len(stacks)}, {len(parts)}')
    for part in parts:
        tid = int(re.search(r'LWP (\d+)', part)[1])
        theirs = [name for name in re.findall(r'^#\d+\s+(?:0x\w+ in )?(\S+) \(', part, re.M) if name != '??']
        mine = [frame['name'] for frame in stacks[tid]['frames'] if not frame['name'].startswith('[')]
        # Both may see inlined functions that the other does not, and names of one address differ.
        common = sum((collections.Counter(theirs) & collections.Counter(mine)).values())
        check(common >= 0.6 * len(mine) and common >= 3, f'{tid}: {common} of {mine}, gdb: {theirs}')


def test_formats(tmp):
    with running(sys.executable, PROGRAM, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        process.stdout.readline()
        pid = process.pid
        text = snap('-p', pid, '--group')
        check(re.search(r'^3 threads \(\S+\): \d+ \d+ \d+: sleeping', text, re.M), f'three are one:\n{text[:300]}')
        check(text.count('sleep_below') == 1, 'and stand there once')
        lines = snap('-p', pid, '--format', 'folded', '-o', f'{tmp}/x', '-o', '-').splitlines()
        with open(f'{tmp}/x', encoding='utf-8') as file:
            check(file.read().splitlines() == lines, 'a file has the same')
        check(len(lines) == 6 and all(line.endswith(' 1') for line in lines), f'a line for each thread: {len(lines)}')
        grouped = snap('-p', pid, '--format', 'folded', '--group').splitlines()
        check(sum(int(line.rsplit(' ', 1)[1]) for line in grouped) == 6 and len(grouped) < 6, 'fewer, of the same sum')
        check(any(re.search(r';sleep_here;sleep_below;.*;\[sleeping\] 3$', line) for line in grouped), 'root first')
        lines = snap('-p', pid, '--lines')
        check(re.search(r'sleep_below \(\S*threads\.py:\d+\)', lines), 'files and lines')
        tid = min(int(tid) for tid in os.listdir(f'/proc/{pid}/task') if int(tid) != pid)
        check(len(json.loads(snap('-L', tid, '--format', 'json'))['stacks']) == 1, 'a single thread')
        process.stdout.close()


def test_many():
    """All of many threads, each with a stack."""
    with running(sys.executable, '-c', 'import threading\nthreading.stack_size(65536)\n'
                 'go = threading.Event()\nfor _ in range(400): threading.Thread(target=go.wait, daemon=True).start()\n'
                 'print("ready", flush=True)\ngo.wait()', stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        stacks = json.loads(snap('-p', process.pid, '--format', 'json', '--group'))['stacks']
        process.stdout.close()
    waiting = [stack for stack in stacks if 'Event.wait' in interp_names(stack) or 'wait' in interp_names(stack)]
    check(sum(len(stack['threads']) for stack in stacks) == 401, 'all threads')
    check(sum(len(stack['threads']) for stack in waiting) >= 400, 'with what they wait in')


def test_running():
    """A thread that works is found where it is."""
    with running(SPLIT) as process:
        stacks = [stacks_of(process.pid)[process.pid] for _ in range(3)]
    names = [{frame['name'] for frame in stack['frames']} for stack in stacks]
    check(all(stack['state'] in ('running', 'runnable') for stack in stacks), f'it runs: {[stack["state"] for stack in stacks]}')
    check(all({'main', 'work', 'spin'} <= of for of in names), f'what it does: {names[0]}')


def test_wrong():
    for args, status in (((), 2), (('-p', 4194303), 5), (('-p', os.getpid(), '--format', 'svg'), 2)):
        snap(*args, status=status)


def main():
    need_root()
    with tempfile.TemporaryDirectory() as tmp:
        test_python()
        test_faulthandler()
        test_gdb()
        test_formats(tmp)
        test_many()
        test_running()
        test_wrong()
    done()


main()
