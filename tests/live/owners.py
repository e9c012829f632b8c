#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two programs of one build ID and one size, of root and of nobody, whose functions have other names.

owners.py STACKBPF

Whoever is seen first, the process of root has root's names; and each has its own, unless both are one path in two
mount namespaces: then the kernel's records do not tell them apart, and root's names serve both.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, run_parts, running, sampling, skip

need_root()
BINARY = sys.argv[1]
PROGRAM = '''
static volatile unsigned long sink;
__attribute__((noinline)) void NAME(void) { for (int i = 0; i < 1000000; i++) sink += i; }
int main(void) { for (;;) NAME(); }
'''
AS_NOBODY = 'setpriv --reuid 65534 --regid 65534 --clear-groups'
if not all(shutil.which(tool) for tool in ('setpriv', 'unshare')):
    skip('no setpriv, no unshare')


def build(path, name, owner):
    subprocess.run(['gcc', '-O1', '-w', '-x', 'c', '-', f'-DNAME={name}', '-Wl,--build-id=0x' + '5b' * 20, '-o', path],
                   input=PROGRAM, text=True, check=True)
    os.chown(path, owner, owner)
    os.chmod(path, 0o755)
    return shlex.quote(path)


def sample(first, second, *by):
    """Each begins when the other has been sampled for more than a drain."""
    script = f'read go; {first} & a=$!; sleep 1.2; {second} & b=$!; sleep 1.2; kill $a $b; echo over; read go'
    with running('sh', '-c', script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        with sampling(BINARY, 'oncpu', '-F', '199', '-s', '-p', str(shell.pid), *by) as run:
            shell.stdin.write('go\n')
            shell.stdin.flush()
            shell.stdout.readline()
    return run.result


def judge(what, first, second):
    result = sample(first, second)
    for comm, name, other in (('honest', 'name_of_root', 'name_of_mine'), ('forged', 'name_of_mine', 'name_of_root')):
        check(result.share(name, comm) > 0.9 and result.share(other, comm) == 0,
              f'{what}: {comm}: {name} {result.share(name, comm):.2f}, {other} {result.share(other, comm):.2f}')


def two_paths():
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        honest = build(f'{work}/honest', 'name_of_root', 0)
        forged = f'{AS_NOBODY} {build(f"{work}/forged", "name_of_mine", 65534)}'
        judge('root first', honest, forged)
        judge('nobody first', forged, honest)


def one_path():
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        honest = build(f'{work}/honest', 'name_of_root', 0)
        forged = build(f'{work}/forged', 'name_of_mine', 65534)
        inside = shlex.quote(f'mount --bind {forged} {honest}; exec {AS_NOBODY} {honest}')
        result = sample(f'unshare -m sh -c {inside}', honest, '--by', 'pid')
        roots = {}
        for stack, weight in result.stacks.items():
            if stack[0].startswith('honest'):
                roots.setdefault(stack[0], set()).update(f for f in stack if f.startswith('name_of_'))
        check(len(roots) == 2, f'one path: two processes: {roots}')
        check(any(names == {'name_of_root'} for names in roots.values()),
              f'one path: the process of root has names of root only: {roots}')


run_parts((two_paths, one_path), sys.argv[2:])
done()
