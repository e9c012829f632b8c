#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A cgroup has no memory left: that of the program looked at, which is killed for it, and our own.

chaos_memory.py STACKBPF CHAOS [PART...]
"""
import contextlib
import os
import subprocess
import sys

from live import Result, check, done, need_own_machine, need_root, ready, run_parts, sampling, skip, wait_for
from truth import try_rmdir

need_root()
BINARY, CHAOS = sys.argv[1:3]
MIB = 1 << 20
ROOT = '/sys/fs/cgroup'
END_SECONDS_MAX = 120
LIMITS_MIB = (8, 16, 24, 32, 64, 128, 256)
ENOUGH_MIB = 128


@contextlib.contextmanager
def cgroup_of(nr_bytes):
    path = f'{ROOT}/stackbpf-test-{os.getpid()}'
    with open(f'{ROOT}/cgroup.subtree_control', 'w', encoding='ascii') as file:
        file.write('+memory')
    os.mkdir(path)
    try:
        for name, value in (('memory.max', nr_bytes), ('memory.swap.max', 0)):
            with contextlib.suppress(FileNotFoundError), open(f'{path}/{name}', 'w', encoding='ascii') as file:
                file.write(str(value))
        yield path
    finally:
        wait_for(lambda: try_rmdir(path), f'{path} is empty')


def in_cgroup(path, *command):
    return ('sh', '-c', f'echo $$ >{path}/cgroup.procs; exec "$@"', 'sh', *command)


def target():
    """It is killed while it is sampled; what was sampled has names, and others are sampled on."""
    with cgroup_of(200 * MIB) as path, ready(CHAOS, 'busy') as other:
        with sampling(BINARY, 'oncpu', '-a', '-F', '199') as run:
            status = subprocess.run(in_cgroup(path, CHAOS, 'memory'), check=False).returncode
            run.snapshot()
            wait_for(lambda: run.snapshot().share('work_here') > 0, 'others are sampled')
        check(status in (-9, 137), f'target: it was killed: {status}')
        check(other.poll() is None, 'target: nobody else was')
    check(run.result.status == 0, f'target: exit status {run.result.status} {run.result.err[-300:]}')
    among = {stack: nr for stack, nr in run.result.stacks.items() if stack[0] == 'chaos'}
    took = sum(nr for stack, nr in among.items() if 'take_memory' in stack)
    total = sum(nr for stack, nr in among.items() if 'memory' in ' '.join(stack) or 'main' in stack)
    check(took > 0, f'target: {took} samples in the function that takes it')
    check(not any('[unknown]' in stack for stack in among), f'target: all have names ({total})')


def own():
    """Whatever the limit: a result; or a sentence, and no more, of what there was no memory for. Maps of
    BPF are charged to the cgroup when they are made, so what is too small for them is said at once; what
    is too small for the program itself, or for what comes behind the maps, is the kernel's to end."""
    enough, nr_sentences = None, 0
    for mib in LIMITS_MIB:
        with cgroup_of(mib * MIB) as path, ready(CHAOS, 'busy') as busy:
            run = subprocess.run(in_cgroup(path, BINARY, 'oncpu', '-p', str(busy.pid), '-t', '1'),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                 timeout=END_SECONDS_MAX)
        result = Result(run.returncode, run.stdout, run.stderr)
        said = run.stderr.strip().splitlines()
        print(f'   {mib} MiB: status {run.returncode}: {run.stderr.strip()}')
        if run.returncode == 0:
            enough = enough or mib
            check(result.share('work_here') > 0, f'own: {mib} MiB: a result')
        elif run.returncode != -9:
            check(run.returncode == 1 and len(said) == 1 and 'memory' in said[0], f'own: {mib} MiB: a sentence: {said}')
            nr_sentences += 1
        check(run.returncode == 0 or not enough, f'own: {mib} MiB: more is enough, too')
    check(nr_sentences, 'own: some limit was refused with a sentence')
    check(enough and enough <= ENOUGH_MIB, f'own: enough are {enough} MiB')


need_own_machine('a machine short of memory')
if not os.path.exists(f'{ROOT}/cgroup.controllers'):
    skip('no cgroup2 here')
run_parts((target, own), sys.argv[3:])
done()
