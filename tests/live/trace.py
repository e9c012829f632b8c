#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""trace: as many events as the program, the shell or getrusage(2) counts, with the stacks that they have.

trace.py STACKBPF TRACED_C [PART...]
"""
import os
import re
import resource
import subprocess
import sys
import tempfile

from live import check, done, need_root, run_parts, stackbpf

need_root()
BINARY, SOURCE = sys.argv[1], sys.argv[2]
WORK = tempfile.TemporaryDirectory()
PROGRAM = f'{WORK.name}/traced'
subprocess.run(['gcc', '-O2', '-g', '-o', PROGRAM, SOURCE], check=True)
NR = 1000


def trace(*args):
    return stackbpf(BINARY, 'trace', *args)


def of(result, *frames):
    """The weight of stacks that have all of these frames."""
    return sum(weight for stack, weight in result.stacks.items() if set(frames) <= set(stack))


def user():
    result = trace(f'{PROGRAM}:traced', '--', PROGRAM, str(NR))
    check((of(result, 'often', 'traced'), of(result, 'seldom', 'traced'), result.total) == (NR * 7 // 10, NR * 3 // 10, NR),
          f'a function is called as often as the program does, by its callers: {dict(result.stacks)}')
    check(result.facts.get('unit') == 'events' and result.facts.get('lost') == '0', f'facts: {result.facts}')
    result = trace(f'r:{PROGRAM}:traced', '--', PROGRAM, str(NR))
    check({stack[-1]: weight for stack, weight in result.stacks.items()} == {'often': NR * 7 // 10, 'seldom': NR * 3 // 10},
          f'it returns as often, to its callers: {dict(result.stacks)}')


def several():
    one, two = f'{PROGRAM}:traced', f'{PROGRAM}:traced_too'
    result = trace(one, two, '--stats', '--', PROGRAM, str(NR))
    leaves = {stack[-1] for stack in result.stacks}
    check(leaves == {f'[{one}]', f'[{two}]'}, f'events are told apart by the leaf: {leaves}')
    check((of(result, f'[{one}]'), of(result, f'[{two}]')) == (NR, 1), 'each is counted')
    check(re.search(rf'{re.escape(one)} +{NR}\n', result.err), f'--stats has how often each happened: {result.err[-200:]}')
    result = trace(f'{PROGRAM}:traced*', one, '--', PROGRAM, str(NR))
    check(result.total == NR + 1, f'what a pattern and a name both match is traced once: {result.total}')


def usdt():
    result = trace(f'u:{PROGRAM}:traced:turn', '--', PROGRAM, str(NR))
    check((result.total, of(result, 'probed')) == (NR, NR), f'a USDT probe, with its semaphore: {dict(result.stacks)}')
    listed = subprocess.run([BINARY, 'trace', '--list', f'u:{PROGRAM}:*'], capture_output=True, text=True, check=False).stdout
    check(listed == f'u:{PROGRAM}:traced:turn\t8@%rdi\n', f'it is listed as it is spelled: {listed!r}')


def tracepoint():
    nr = 20
    shell = ('sh', '-c', f'i=0; while [ $i -lt {nr} ]; do /bin/true; i=$((i+1)); done; :')
    result = trace('sched:sched_process_exec', '-s', '--', *shell)
    execs = of(result, 'true')
    check(execs == nr, f'each command that a shell runs: {execs} of {nr}')
    result = trace('tracepoint:sched:sched_process_fork', '--', *shell)
    check(result.total == nr, f'each fork: {result.total} of {nr}')


def counter():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([PROGRAM, '10'], check=True)
    faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before.ru_minflt
    result = trace('page-faults', '--', PROGRAM, '10')
    check(0.5 * faults <= result.total <= 1.2 * faults,
          f'page faults from exec on, those of fork and exec aside: {result.total}, getrusage has {faults} with them')


def bad_input():
    for args, status, said in (
            ((), 2, 'no event'),
            ((f'{PROGRAM}:trased',), 2, "did you mean 'traced'"),
            ((f'{PROGRAM}:trace',), 2, "did you mean 'traced'"),
            ((f'{PROGRAM}.none:f',), 2, 'No such file'),
            ((f'{SOURCE}:main',), 2, 'neither a program nor a library'),
            (('sched:sched_swich',), 2, "did you mean 'sched_switch'"),
            (('nonsense:x',), 2, 'no category of tracepoints'),
            (('a:b:c',), 2, 'no kind of event'),
            ((f'u:{PROGRAM}:turm',), 2, "did you mean 'turn'"),
            (('software:page-fault',), 2, "did you mean 'page-faults'"),
            (('c:*',), 2, 'more than the 1000 places'),
            (('c:memcpy',), 2, 'IFUNC'),
            (('c:malloc', '-p', '4194000'), 5, '4194000'),
            (('nosuchpmu/event=1/',), 2, 'no PMU'),
    ):
        result = trace(*args, '-t', '1')
        lines = result.err.splitlines()
        check(result.status == status and said in result.err and result.err.startswith('stackbpf: ') and len(lines) == 1,
              f'{args}: {result.status}, {result.err.strip()}')
    if not os.path.exists('/sys/bus/event_source/devices/kprobe'):
        result = trace('vfs_read', '-t', '1')
        check(result.status == 4 and 'CONFIG_KPROBE_EVENTS' in result.err, f'a kernel without kprobes: {result.err.strip()}')


def listing():
    def listed(*patterns):
        return subprocess.run([BINARY, 'trace', '--list', *patterns], capture_output=True, text=True, check=False).stdout.splitlines()
    check({'page-faults', 'sched:sched_process_exec'} <= set(listed()), 'everything')
    check(set(listed(f'{PROGRAM}:traced*')) == {f'{PROGRAM}:traced', f'{PROGRAM}:traced_too'}, 'functions of a file')
    mutexes = listed('c:pthread_mutex*')
    check(mutexes and len(mutexes) == len(set(mutexes)), f'a symbol with versions is listed once: {mutexes}')
    check('sched:sched_process_exec' in listed('sched:*exec'), 'tracepoints of a category')
    words = subprocess.run([BINARY, 'completion', '--', 'trace', 'sched:sched_process_e'], capture_output=True, text=True,
                           check=False).stdout
    check('sched:sched_process_exec\n' in words, f'the shell completes events: {words!r}')


run_parts([user, several, usdt, tracepoint, counter, bad_input, listing], sys.argv[3:])
done()
