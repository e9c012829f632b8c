#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What allocations cost while they are looked at, and what each tool says of a program that leaks.

allocs.py STACKBPF LIBRARY CALLS LEAKS_C [ROUNDS [SECONDS]]

The cost: ns of CPU time for malloc(64) and free() of an older piece in a loop, the best of all rounds, which go through
the rows in turn. The shares: LEAKS_C keeps 60, 30 and 10 parts by three functions, and ten times as much comes and
goes; the shares of what a tool says is held, and the CPU time of the program with the tool in it.
"""
import collections
import glob
import os
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(__file__), '..', 'live'))
import heap_peers  # noqa: E402
from heap_peers import NAMES, shares_of  # noqa: E402
from live import sampling  # noqa: E402

BINARY, LIBRARY, CALLS, SOURCE = sys.argv[1:5]
ROUNDS = int(sys.argv[5]) if len(sys.argv) > 5 else 7
SECONDS = sys.argv[6] if len(sys.argv) > 6 else '1'
WORK = tempfile.TemporaryDirectory()
LEAKS = f'{WORK.name}/leaks'
NR = '4000'
NONE = ('-q', '--max-overhead=off', '-o', '/dev/null', '--format', 'folded', '--')


def library(name):
    return next(iter(glob.glob(f'/usr/lib/*/{name}')), None)


JEMALLOC, TCMALLOC = library('libjemalloc.so.2'), library('libtcmalloc.so.4')
OURS = {'LD_PRELOAD': LIBRARY}
COSTS = [
    ('plain', {}, ()),
    ('libstackbpf-alloc.so, nobody listens', OURS, ()),
    ('the same, stackbpf alloc, 512 KiB', OURS, (BINARY, 'alloc', *NONE)),
    ('the same, stackbpf heap', OURS, (BINARY, 'heap', *NONE)),
    ('jemalloc', {'LD_PRELOAD': JEMALLOC}, ()),
    ('jemalloc, its profiler, 512 KiB', {'LD_PRELOAD': JEMALLOC, 'MALLOC_CONF': 'prof:true,lg_prof_sample:19'}, ()),
    ('tcmalloc', {'LD_PRELOAD': TCMALLOC}, ()),
    ('tcmalloc, its profiler', {'LD_PRELOAD': TCMALLOC, 'HEAPPROFILE': f'{WORK.name}/tc'}, ()),
    ('stackbpf alloc, functions of glibc', {}, (BINARY, 'alloc', *NONE)),
    ('stackbpf heap, functions of glibc', {}, (BINARY, 'heap', *NONE)),
]


def costs():
    found = collections.defaultdict(list)
    for _ in range(ROUNDS):
        for name, env, tool in COSTS:
            if env.get('LD_PRELOAD', '') is None:
                continue
            # The status is not 0 if nothing is held in the end.
            out = subprocess.run([*tool, CALLS, 'mallocs', SECONDS, '64'], env={**os.environ, **env}, check=False,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            found[name].append(float(out.split()[0]))
    print(f'{"":40} {"ns":>9} {"worst":>9}')
    for name, ns in found.items():
        print(f'{name:40} {min(ns):9.1f} {max(ns):9.1f}')


def leak(prefix=(), **env):
    """A run of the program that ends by itself. Return: its CPU seconds, with those of what runs it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*prefix, LEAKS, NR], input='\n', text=True, env={**os.environ, **env}, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_of(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        fields = file.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def by_stackbpf(*args, **env):
    target = subprocess.Popen([LEAKS, NR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
    target.stdout.readline()
    with sampling(BINARY, 'heap', '-p', str(target.pid), *args) as run:
        before = cpu_of(target.pid)
        target.stdin.write('\n')
        target.stdin.flush()
        target.stdout.readline()
        cpu = cpu_of(target.pid) - before
    target.kill()
    target.communicate()
    return cpu, shares_of(run.result.stacks.items())


def by_tool(tool, name):
    command, account = tool(f'{WORK.name}/{name}')
    cpu = leak(command)
    return cpu, account()


def by_jemalloc():
    path = f'{WORK.name}/je'
    cpu = leak(**heap_peers.jemalloc(JEMALLOC, path, 12))
    return cpu, heap_peers.by_jemalloc(LEAKS, path, 12)


def shares():
    subprocess.run(['gcc', '-O1', '-g', '-o', LEAKS, SOURCE], check=True)
    print(f'\n{"":40} ' + ' '.join(f'{name:>7}' for name in NAMES) + f' {"MB":>7} {"CPU s":>7}')
    print(f'{"truth; no tool":40} {60:7.2f} {30:7.2f} {10:7.2f} {0:7.2f} {0.4 * int(NR) * 10 / 1000:7.2f} {leak():7.2f}')
    tools = [('stackbpf heap, the library, 4 KiB', lambda: by_stackbpf('--max-overhead=1', LD_PRELOAD=LIBRARY, STACKBPF_ALLOC_BYTES='4096')),
             ('stackbpf heap --max-overhead off', lambda: by_stackbpf('--max-overhead=off')),
             ('stackbpf heap, pages', lambda: by_stackbpf('--max-overhead=5'))]
    tools += [('heaptrack', lambda: by_tool(heap_peers.heaptrack, 'heaptrack'))] if shutil.which('heaptrack') else []
    tools += [('massif', lambda: by_tool(heap_peers.massif, 'massif'))] if shutil.which('valgrind') else []
    tools += [('jemalloc, its profiler, 4 KiB', by_jemalloc)] if JEMALLOC else []
    for name, tool in tools:
        cpu, found = tool()
        total = sum(found.values()) or 1
        print(f'{name:40} ' + ' '.join(f'{100 * found[one] / total:7.2f}' for one in NAMES) +
              f' {total / 1e6:7.2f} {cpu:7.2f}')


costs()
shares()
