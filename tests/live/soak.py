#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All views for a long time, of a group of processes at work: they, threads, libraries and files come and go,
interpreters run. What each run of stackbpf holds - memory, descriptors, mappings, threads, BPF maps and
programs - has to be flat once the first third of the time is over. Only that group is looked at: each new
stack of the machine's own would be a line more in the result. (Without cgroup2: all of the machine.)

soak.py STACKBPF PROGRAMS [MINUTES [HZ]]

Prints a table of each view; by itself, or by scripts/soak. No part of any suite."""
import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from live import Result, check, done, need_root, wait_for

need_root()
BINARY, PROGRAMS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SECONDS = 60 * float(sys.argv[3] if len(sys.argv) > 3 else 60)
HZ = sys.argv[4] if len(sys.argv) > 4 else '99'
VIEWS = (('oncpu', '-F', HZ), ('oncpu', '-F', HZ, '--lines', '--unwind', 'fp'), ('offcpu', '--every', '1ms'),
         ('offcpu',), ('wakeup',), ('offwake',), ('wall',), ('io',), ('io', '--layer', 'block', '--latency'))
END_SECONDS_MAX = 180
NR_LOOKS = 180
# What may be between the middle third and the last one of a flat line: a sawtooth's height. Files of new
# programs are kept open until they are twice as many as those that run; one for each process would be thousands.
GROWTH_MAX = {'RSS MiB': 1.10, 'fds': 2.0, 'maps': 1.10, 'threads': 1.0, 'bpf': 1.0}
SLACK = {'RSS MiB': 4, 'fds': 16, 'maps': 32, 'threads': 0, 'bpf': 0}

THREADS = """
import threading, time, zlib
def work():
    data = b'x' * 100000
    for _ in range(20):
        zlib.compress(data)
while True:
    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    time.sleep(1)
"""
LIBRARIES = """
import ctypes, _ctypes, time
while True:
    for name in ('libz.so.1', 'libssl.so.3', 'liblzma.so.5', 'libbz2.so.1.0'):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        _ctypes.dlclose(library._handle)
    time.sleep(0.2)
"""


def work_of(folder):
    """Commands, each of which goes on until it is killed, and rests in between."""
    yield ['sh', '-c', 'while :; do /bin/true; sh -c "exec /bin/ls /usr/bin" >/dev/null; sleep 0.2; done']
    yield ['sh', '-c', f'while :; do dd if=/dev/zero of={folder}/a bs=4k count=200 conv=fsync 2>/dev/null; '
                       f'cat {folder}/a >{folder}/b; cp {folder}/b {folder}/c; rm {folder}/c; sleep 0.5; done']
    yield ['sh', '-c', 'while :; do python3 -c "import json, email, http.client"; perl -e "use POSIX; 1"; '
                       'sleep 1; done']
    yield ['python3', '-c', THREADS]
    yield ['python3', '-c', LIBRARIES]
    for name, command in (('mix.pl', 'perl'), ('mix.rb', 'ruby'), ('mix.lua', 'luajit'), ('mix.php', 'php'),
                          ('mix.js', 'node')):
        # A tenth of a CPU each: the machine is to stay usable.
        yield ['sh', '-c', f'{command} {PROGRAMS}/{name} & pid=$!; while kill -STOP $pid; '
                           'do sleep 0.18; kill -CONT $pid; sleep 0.02; done']


@contextlib.contextmanager
def group(command, cgroup):
    """A command and what it starts, in the cgroup, for as long as the block."""
    command = ['sh', '-c', 'echo $$ >"$0" && exec "$@"', f'{cgroup}/cgroup.procs' if cgroup else '/dev/null', *command]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def new_cgroup():
    """Its directory; or None where there is no cgroup2."""
    with open('/proc/self/mounts', encoding='utf-8') as file:
        mounts = [line.split()[1] for line in file if line.split()[2] == 'cgroup2']
    path = f'{mounts[0]}/soak.{os.getpid()}' if mounts else None
    if path:
        os.mkdir(path)
    try:
        yield path
    finally:
        if path:
            wait_for(lambda: not open(f'{path}/cgroup.procs', encoding='ascii').read(), 'all have ended')
            os.rmdir(path)


def count(path):
    try:
        return len(os.listdir(path))
    except OSError:
        return 0


def held_by(pid):
    """What a process holds now; None when it is gone."""
    try:
        with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as file:
            rss = re.search(r'^VmRSS:\s+(\d+)', file.read(), re.M)
        with open(f'/proc/{pid}/maps', encoding='utf-8', errors='replace') as file:
            maps = sum(1 for _ in file)
        links = [os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')]
    except OSError:
        return None
    return {'RSS MiB': int(rss[1]) / 1024 if rss else 0, 'fds': len(links), 'maps': maps,
            'threads': count(f'/proc/{pid}/task'), 'bpf': sum('bpf-' in link for link in links)}


class Watched:
    def __init__(self, view, folder, only):
        self.name = ' '.join(view)
        self.looks = []
        self.paths = [f'{folder}/{self.name.replace(" ", "_")}.{end}' for end in ('folded', 'err')]
        with open(self.paths[0], 'w', encoding='utf-8') as out, open(self.paths[1], 'w', encoding='utf-8') as err:
            self.process = subprocess.Popen([BINARY, *view, *only, '-t', str(SECONDS)], stdout=out, stderr=err)

    def look(self):
        held = held_by(self.process.pid)
        if held:
            self.looks.append(held)

    def thirds(self, what):
        nr = len(self.looks) // 3
        return [statistics.median(look[what] for look in self.looks[i * nr:(i + 1) * nr]) for i in range(3)]

    def judge(self):
        try:
            status = self.process.wait(timeout=END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = f'none: it had to be killed {self.process.wait()}'
        text, said = (open(path, encoding='utf-8', errors='replace').read() for path in self.paths)
        check(status == 0, f'{self.name}: exit status {status} {said[-300:]}')
        check(Result(status, text, said).total > 0, f'{self.name}: {said.strip().splitlines()[-1] if said else ""}')
        for what, growth in GROWTH_MAX.items():
            first, middle, last = self.thirds(what)
            check(last <= max(growth * middle, middle + SLACK[what]),
                  f'{self.name}: {what}: {first:.0f}, {middle:.0f}, {last:.0f}, '
                  f'at most {max(look[what] for look in self.looks):.0f}')


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started ends with us
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as stack:
        cgroup = stack.enter_context(new_cgroup())
        for command in work_of(folder):
            stack.enter_context(group(command, cgroup))
        runs = [Watched(view, folder, ('-G', cgroup) if cgroup else ()) for view in VIEWS]
        for run in runs:
            stack.callback(run.process.kill)
        begin, rest = time.monotonic(), threading.Event()
        while time.monotonic() < begin + SECONDS - 1:
            rest.wait(max(0.1, SECONDS / NR_LOOKS))
            for run in runs:
                run.look()
        for run in runs:
            run.judge()


main()
done()
