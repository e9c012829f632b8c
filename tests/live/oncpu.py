#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""oncpu on programs whose use of time is known.

oncpu.py STACKBPF SPLIT DEEP
"""
import math
import os
import re
import signal
import subprocess
import sys
import tempfile

from live import check, done, need_root, running, stackbpf

need_root()
BINARY, SPLIT, DEEP = sys.argv[1:4]
TRUTH = {'seventy': 0.70, 'twenty': 0.20, 'ten': 0.10}


def check_split(result, of):
    total = sum(weight for stack, weight in result.stacks.items() if of is None or stack[0] == of)
    for name, want in TRUTH.items():
        have, chance = result.share(name, of), 4 * math.sqrt(want * (1 - want) / max(total, 1))
        check(abs(have - want) <= max(0.02, chance), f'{name}: {100 * have:.1f} % of {100 * want:.0f} %, {total} samples')


def one_process():
    with running(SPLIT) as target:
        result = stackbpf(BINARY, 'oncpu', '-p', str(target.pid), '-t', '4', '-F', '999', '-u')
    check(result.status == 0, f'exit status {result.status}')
    check(all(s[0] == 'split' for s in result.stacks), 'nothing but the target was sampled')
    check(result.total > 200, f'{result.total} samples')
    check_split(result, None)
    main = sum(w for s, w in result.stacks.items() if 'main' in s and 'work' in s)
    check(main > 0.98 * result.total, f'callers: main and work in {main} of {result.total}')


def whole_machine():
    with running(SPLIT), running(DEEP, '20'), running('sh', '-c', 'while :; do /bin/true; done'):
        result = stackbpf(BINARY, 'oncpu', '-t', '4', '-F', '999')
    check(result.status == 0, f'exit status {result.status}')
    check_split(result, 'split')
    check(result.share('descend', 'deep') > 0.98, 'another program beside it is seen as well')
    roots = {s[0] for s in result.stacks}
    check(not any(r.startswith('swapper') for r in roots), 'idle CPUs are left out')


def leaves_itself_out():
    """By pid: another stackbpf may run on this machine. Helpers of its helper processes are in its session, too."""
    own = set()
    with tempfile.TemporaryDirectory() as work, running('sh', '-c', 'while :; do /bin/true; done'):
        out = f'{work}/out.folded'
        with subprocess.Popen([BINARY, 'oncpu', '--max-overhead=off', '-t', '2', '-F', '4999', '--by', 'pid', '-q',
                               '-o', out], start_new_session=True) as sampler:
            while sampler.poll() is None:
                own.update(subprocess.run(['pgrep', '-s', str(sampler.pid)], stdout=subprocess.PIPE, text=True,
                                          check=False).stdout.split())
        with open(out, encoding='utf-8', errors='replace') as file:
            roots = {line.split(';', 1)[0] for line in file}
    check(len(own) > 3, f'it has helper processes: {sorted(own)}')
    sampled = sorted(root for root in roots if root.rsplit('-', 1)[-1] in own)
    check(not sampled, f'the sampler leaves itself and its helpers out: {sampled}')


def leaves_its_helpers_out():
    """The children of this process are targets, and so would stackbpf and its helper processes be."""
    with running('sh', '-c', 'while :; do /bin/true; done'):
        result = stackbpf(BINARY, 'trace', 'raw_syscalls:sys_enter', '-s', '-p', str(os.getpid()), '-t', '1')
    roots = {s[0] for s in result.stacks}
    check('sh' in roots and 'true' in roots, f'children of this process: {sorted(roots)}')
    check(not any(r.startswith('stackbpf') for r in roots), f'its helper processes are left out: {sorted(roots)}')


def samples_what_is_no_helper():
    """The command of a run on all processes, and a child that ran before stackbpf took the place of its shell."""
    for options in ((), ('-s',)):
        result = stackbpf('sh', '-c', '"$0" >/dev/null 2>&1 & echo $! >&2; exec "$@"', SPLIT, BINARY, 'oncpu', '-a',
                          '--max-overhead=off', '-F', '499', *options, '--', 'timeout', '1', DEEP, '20')
        os.kill(int(result.err.split()[0]), signal.SIGKILL)
        roots = {s[0] for s in result.stacks}
        check(result.status == 124, f'{options}: the exit status of timeout: {result.status}')
        check('deep' in roots, f'{options}: a child of the command is sampled: {sorted(roots)}')
        check('split' in roots, f'{options}: a child that is no helper is sampled: {sorted(roots)}')


def threads_and_children():
    with running(SPLIT, '3') as target:
        result = stackbpf(BINARY, 'oncpu', '-p', str(target.pid), '-t', '2', '-F', '499', '-T')
        tids = {int(t) for t in os.listdir(f'/proc/{target.pid}/task')}
    seen = {int(s[0].rsplit('/', 1)[1]) for s in result.stacks}
    check(seen == tids, f'threads {sorted(seen)} of {sorted(tids)}')
    shell = subprocess.Popen(['sh', '-c', f'{SPLIT} & {SPLIT} & wait'])
    result = stackbpf(BINARY, 'oncpu', '-p', str(shell.pid), '-s', '-t', '2', '-F', '499', '--by', 'pid')
    subprocess.run(['pkill', '-P', str(shell.pid)], check=False)
    shell.wait()
    children = {s[0] for s in result.stacks if s[0].startswith('split-')}
    check(len(children) == 2, f'children that ran before we came: {sorted(children)}')


def compared(result):
    """Most frames stand as they stood at the last sample. One walk a second and CPU is by the tables alone."""
    found, same = (int(re.search(rf'{row} +(\d+)', result.err)[1])
                   for row in ('frames by unwind tables', 'frames as they were before'))
    check(result.total < 50 or found / 2 < same < found, f'{same} of {found} frames are as they were before')


def depth():
    for calls, truncated in ((100, False), (800, True)):
        with running(DEEP, str(calls)) as target:
            result = stackbpf(BINARY, 'oncpu', '-p', str(target.pid), '-t', '2', '-F', '499', '-u', '--stats')
        if not truncated:
            compared(result)
        deepest = max((s.count('descend') for s in result.stacks), default=0)
        marks = any('[truncated: too deep]' in s for s in result.stacks)
        check(marks == truncated, f'{calls} calls: marked as cut: {marks}')
        check(deepest >= 500 if truncated else deepest == calls + 1, f'{calls} calls: {deepest} frames')


one_process()
whole_machine()
leaves_itself_out()
leaves_its_helpers_out()
samples_what_is_no_helper()
threads_and_children()
depth()
done()
