#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two programs of one build ID and one size, of root and of nobody, whose functions have other names.

owners.py STACKBPF SBSYM STUCK_FS [PART...]

Whoever is seen first, the process of root has root's names; and each has its own, unless both are one path in two
mount namespaces: then the kernel's records do not tell them apart, and root's names serve both.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, ready, run_parts, running, sampling, skip

need_root()
BINARY, SBSYM, STUCK_FS = sys.argv[1:4]
PROGRAM = '''
static volatile unsigned long sink;
__attribute__((noinline)) void NAME(void) { for (int i = 0; i < 1000000; i++) sink += i; }
int main(void) { for (;;) NAME(); }
'''
SPLIT = '''
static inline __attribute__((always_inline)) int inner(int a)
{
	__asm__ volatile(".globl probe\\nprobe: nop" : "+r"(a));
	return a;
}
__attribute__((noinline)) int outer(int a) { return inner(a) + 1; }
int main(int argc, char **argv) { return outer(argc); }
'''
MINE, STRANGER = 54321, 54322
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


def judge_split(what, work, is_believed):
    with open(f'{work}/address', encoding='ascii') as file:
        said = subprocess.run([SBSYM, f'{work}/program', file.read()], stdout=subprocess.PIPE, text=True, check=True).stdout
    check('outer' in said and ('inner' in said) == is_believed, f'split: {what}: {said!r}')


def split_debug():
    """What is inlined stands in a .dwo file, beside the program: that of a stranger is not believed."""
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        subprocess.run(['gcc', '-O1', '-g', '-gsplit-dwarf', '-c', '-x', 'c', '-', '-o', f'{work}/program.o'], input=SPLIT,
                       text=True, check=True, cwd=work)
        subprocess.run(['gcc', f'{work}/program.o', '-o', f'{work}/program'], check=True)
        os.mkdir(f'{work}/mnt')
        dwos = glob.glob(f'{work}/*.dwo')
        symbols = subprocess.run(['nm', f'{work}/program'], stdout=subprocess.PIPE, text=True, check=True).stdout
        with open(f'{work}/address', 'w', encoding='ascii') as file:
            file.write(re.search(r'(?m)^([0-9a-f]+) . probe$', symbols)[1])
        check(len(dwos) == 1, f'split: one .dwo file: {dwos}')
        for program, dwo, is_believed in ((MINE, STRANGER, False), (0, STRANGER, False), (MINE, MINE, True), (MINE, 0, True)):
            os.chown(f'{work}/program', program, program)
            os.chown(dwos[0], dwo, dwo)
            judge_split(f'of user {dwo}, for a program of user {program}', work, is_believed)
        # A FUSE server says that its file is root's.
        dwo = f'{work}/of-fuse'
        os.rename(dwos[0], dwo)
        with ready(STUCK_FS, f'{work}/mnt', f'dwo={dwo}') as server:
            os.symlink(f'{work}/mnt/dwo', dwos[0])
            check(os.stat(dwos[0]).st_uid == 0, 'split: the server says that the file is of root')
            judge_split('of a FUSE server', work, False)
            server.kill()
            subprocess.run(['umount', '-l', f'{work}/mnt'], check=True)


def judge_link(what, work, is_believed):
    with open(f'{work}/address', encoding='ascii') as file:
        said = subprocess.run([SBSYM, f'{work}/program', file.read()], stdout=subprocess.PIPE, text=True, check=True).stdout
    check(('outer' in said) == is_believed, f'debug link: {what}: {said!r}')


def debug_link():
    """A stripped program has its names in a file beside it: that of a stranger is not believed."""
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        debug = f'{work}/program.debug'
        subprocess.run(['gcc', '-O1', '-g', '-Wl,--build-id=none', '-x', 'c', '-', '-o', f'{work}/program'], input=SPLIT,
                       text=True, check=True)
        symbols = subprocess.run(['nm', f'{work}/program'], stdout=subprocess.PIPE, text=True, check=True).stdout
        with open(f'{work}/address', 'w', encoding='ascii') as file:
            file.write(re.search(r'(?m)^([0-9a-f]+) . probe$', symbols)[1])
        subprocess.run(['objcopy', '--only-keep-debug', 'program', debug], check=True, cwd=work)
        subprocess.run(['objcopy', '--strip-all', f'--add-gnu-debuglink={debug}', 'program'], check=True, cwd=work)
        for program, owner, is_believed in ((MINE, STRANGER, False), (0, STRANGER, False), (MINE, MINE, True), (MINE, 0, True)):
            os.chown(f'{work}/program', program, program)
            os.chown(debug, owner, owner)
            judge_link(f'of user {owner}, for a program of user {program}', work, is_believed)
        # A FUSE server says that its file is root's, but it may speak for its own programs only.
        os.rename(debug, f'{work}/of-fuse')
        shutil.copy(f'{work}/program', f'{work}/own')
        os.mkdir(f'{work}/mnt')
        with ready(STUCK_FS, f'{work}/mnt', f'program.debug={work}/of-fuse', f'program={work}/own') as server:
            os.symlink(f'{work}/mnt/program.debug', debug)
            check(os.stat(debug).st_uid == 0, 'debug link: the server says that the file is of root')
            judge_link('of a FUSE server', work, False)
            os.rename(f'{work}/program', f'{work}/program-of-root')
            os.symlink(f'{work}/mnt/program', f'{work}/program')
            judge_link('of a FUSE server, for a program of its own', work, True)
            server.kill()
            subprocess.run(['umount', '-l', f'{work}/mnt'], check=True)


run_parts((two_paths, one_path, split_debug, debug_link), sys.argv[4:])
done()
