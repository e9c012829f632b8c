#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pids that are used again by another program, one pid for all or as they come round when all were used;
paths behind which is another file in each mount namespace: no frame is of the wrong program.

chaos_files.py STACKBPF CHAOS PROGRAMS [PART...]
"""
import collections
import contextlib
import os
import re
import subprocess
import sys
import tempfile

from live import Result, build_turns, check, done, need_own_machine, need_root, run_parts, stackbpf

need_root()
BINARY, CHAOS, PROGRAMS = sys.argv[1:4]
NAMED = 0.9  # of the samples of main(); the others are the loader's
WHOLE = 0.99  # of those with names
ENOUGH = 300
NR_WRAPS, NR_PROGRAMS = 5, 16  # chaos.c
TOLD_APART = 0.95
PID_MAX = 1000  # in a guest; tens of thousands are too many for an emulated machine
PID_MAX_HERE = 65536
ROUNDS = 300_000_000  # 100 ms: files without a build ID are opened within 20 ms or so


def owners(stack):
    return {word for frame in stack for word in ('alpha', 'beta') if frame.startswith(word + '_')}


def has_begun(stack):
    """Not the loader, nor the end. What has no names may be anything."""
    return 'main' in stack or any('[' in frame for frame in stack)


def is_whole(stack, owner):
    """Frames of the two programs differ in size, so the rules of the one lead astray in the other."""
    chain = ['main', f'{owner}_run', f'{owner}_middle', f'{owner}_inner']
    return [frame.removesuffix('.constprop.0') for frame in stack[-len(chain):]] == chain


def judge(what, result, owner_of):
    """owner_of: of a stack, whose it has to be, or None."""
    check(result.status == 0, f'{what}: exit status {result.status} {result.err[-300:]}')
    total, named, whole, wrong, other = (collections.Counter() for _ in range(5))
    for stack, nr in result.stacks.items():
        owner = owner_of(stack)
        if not owner:
            continue
        total[owner] += nr if has_begun(stack) else 0
        if owners(stack) - {owner}:
            wrong[';'.join(stack)] += nr
        elif any(frame.startswith(f'{owner}_inner') for frame in stack):
            named[owner] += nr
            whole[owner] += nr if is_whole(stack, owner) else 0
            other[';'.join(stack)] += 0 if is_whole(stack, owner) else nr
        elif has_begun(stack):
            other[';'.join(stack)] += nr
    check(not wrong, f'{what}: {wrong.total()} of {total.total()} samples with frames of the other program')
    for stack in list(wrong)[:3]:
        print('   ', stack)
    check(total.total() >= ENOUGH, f'{what}: {total.total()} samples')
    for owner in ('alpha', 'beta'):
        check(named[owner] >= NAMED * total[owner] > 0, f'{what}: {owner}: {named[owner]} of {total[owner]} named')
        check(whole[owner] >= WHOLE * named[owner], f'{what}: {owner}: {whole[owner]} of {named[owner]} by its own rules')
    for stack, nr in other.most_common(5):
        print('   ', nr, stack)
    print('  ', result.err.strip().splitlines()[-1])


def same_pid():
    """The programs lie at one address; the pid is that of the one before, which ended a moment ago."""
    with tempfile.TemporaryDirectory() as work:
        build_turns(PROGRAMS, work, 'alpha', '-static', rounds=3_000_000)
        build_turns(PROGRAMS, work, 'beta', '-static', size=2048, rounds=3_000_000)
        result = stackbpf(BINARY, 'oncpu', '-F', '1999', '-u', '-s', '--', CHAOS, 'same-pid', '600',
                          f'{work}/alpha', f'{work}/beta')
    judge('same pid', result, lambda stack: stack[0] if stack[0] in ('alpha', 'beta') else None)


@contextlib.contextmanager
def few_pids():
    """So that they come round soon. It is the machine's setting, which is changed in a guest only."""
    path = '/proc/sys/kernel/pid_max'
    with open(path, encoding='ascii') as file:
        before = int(file.read())
    if before > PID_MAX_HERE:
        need_own_machine(f'pid_max is {before}, and to make it smaller')
    own = 'STACKBPF_IN_VM' in os.environ
    try:
        if own:
            with open(path, 'w', encoding='ascii') as file:
                file.write(str(PID_MAX))
        yield
    finally:
        if own:
            with open(path, 'w', encoding='ascii') as file:
                file.write(str(before))


def wrap():
    """All pids have been used, several times, while one run goes on; what was known of them is not of those now."""
    with tempfile.TemporaryDirectory() as work, few_pids():
        build_turns(PROGRAMS, work, 'alpha', '-static', rounds=30_000_000)
        build_turns(PROGRAMS, work, 'beta', '-static', size=2048, rounds=20_000_000)
        result = stackbpf(BINARY, 'oncpu', '-F', '999', '-u', '-s', '-o', f'{work}/out.folded', '--',
                          'sh', '-c', f'{CHAOS} wrap {NR_WRAPS} {work}/alpha {work}/beta >{work}/nr_both')
        with open(f'{work}/nr_both', encoding='ascii') as file:
            nr_both = int(file.read())
        with open(f'{work}/out.folded', encoding='utf-8') as file:
            result = Result(result.status, file.read(), result.err)
    check(nr_both > 0, f'wrap: {nr_both} pids were of both programs')
    nr = int(re.search(r' (\d+) processes ', result.err)[1])
    check(nr >= TOLD_APART * NR_WRAPS * NR_PROGRAMS, f'wrap: {nr} processes are told apart')
    judge('wrap', result, lambda stack: stack[0] if stack[0] in ('alpha', 'beta') else None)


# In a mount namespace of its own, DIR/prog is FILE; the pid of whoever runs it goes to TRUTH.
SCRIPTS = {
    'tmpfs': 'mount -t tmpfs none $DIR; cp $FILE $DIR/prog; echo $$ $NAME >>$TRUTH; exec $DIR/prog 0 - -',
    'deleted': 'mount -t tmpfs none $DIR; cp $FILE $DIR/prog; $DIR/prog 0 - - & echo $! $NAME >>$TRUTH; '
               'while [ "$(cat /proc/$!/comm)" = sh ]; do :; done; rm $DIR/prog; wait',
    'overlay': 'mount -t tmpfs none $DIR; mkdir $DIR/l $DIR/u $DIR/w $DIR/m; cp $FILE $DIR/l/prog; '
               'mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w none $DIR/m; '
               'echo $$ $NAME >>$TRUTH; exec $DIR/m/prog 0 - -',
    'chroot': 'mount -t tmpfs none $DIR; cp $FILE $DIR/prog; echo $$ $NAME >>$TRUTH; '
              'exec chroot $DIR /prog 0 - -',
}


def has_overlay():
    with open('/proc/filesystems', encoding='ascii') as file:
        return 'overlay' in file.read().split()


def namespaces():
    """Static programs, so that they run where there is nothing else; with and without a build ID."""
    kinds = [kind for kind in SCRIPTS if kind != 'overlay' or has_overlay()]
    for build_id in ('sha1', 'none'):
        with tempfile.TemporaryDirectory() as work:
            flags = ('-static', f'-Wl,--build-id={build_id}')
            build_turns(PROGRAMS, work, 'alpha', *flags, rounds=ROUNDS)
            build_turns(PROGRAMS, work, 'beta', *flags, size=2048, rounds=ROUNDS)
            subprocess.run(['mkdir', f'{work}/dir'], check=True)
            lines = [f"FILE={work}/{name} NAME={name} unshare -m sh -c '{SCRIPTS[kind]}'"
                     for _ in range(2) for kind in kinds for name in ('alpha', 'beta')]
            with open(f'{work}/script', 'w', encoding='ascii') as file:
                file.write(f'export DIR={work}/dir TRUTH={work}/truth\n' + '\n'.join(lines))
            result = stackbpf(BINARY, 'oncpu', '-F', '999', '-u', '-T', '-s', '--', 'sh', f'{work}/script')
            with open(f'{work}/truth', encoding='ascii') as file:
                truth = dict(line.split() for line in file)
        check(len(truth) == len(lines), f'build ID {build_id}: {len(truth)} of {len(lines)} have run')
        judge(f'namespaces ({" ".join(kinds)}), build ID {build_id}', result,
              lambda stack, truth=truth: truth.get(stack[0].rpartition('/')[2])
              if stack[0].startswith('prog') else None)


run_parts((same_pid, wrap, namespaces), sys.argv[4:])
done()
