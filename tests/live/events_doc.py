#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The commands in the tables of docs/events.md, each on a program whose truth is known.

events_doc.py STACKBPF SOURCES DOC [WORD...]

With words, only commands that have one of them.
"""
import collections
import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, stackbpf

need_root()
BINARY, SOURCES, DOC = sys.argv[1:4]
WORK = tempfile.TemporaryDirectory(dir='/var/tmp')  # on a disk
FILE = f'{WORK.name}/file'
for name in ('asked', 'happens', 'traced'):
    subprocess.run(['gcc', '-O2', '-g', '-pthread', '-o', f'{WORK.name}/{name}', f'{SOURCES}/{name}.c'], check=True)


def asked(what, nr):
    return [f'{WORK.name}/asked', what, str(nr), FILE]


def of(result, *frames):
    return sum(weight for stack, weight in result.stacks.items() if set(frames) <= set(stack))


def leaves(result):
    counts = collections.Counter()
    for stack, weight in result.stacks.items():
        counts[stack[-1]] += weight
    return dict(counts)


def half_in_memory(nr):
    """A file of so many pages, of which every second one is in the page cache."""
    with open(FILE, 'wb') as file:
        file.write(bytes(4096 * nr))
        file.flush()
        os.fsync(file.fileno())
    fd = os.open(FILE, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    for page in range(0, nr, 2):
        os.pread(fd, 4096, page * 4096)
    os.close(fd)


HAPPENS, SHELL = [f'{WORK.name}/happens', '200'], ['sh', '-c', '/bin/true; /bin/true; :']
LOOP, SHARE, NAPS = asked('loop', 100), asked('share', 20), 20
ALONE = ('store', 'load', 'compute', 'contend')  # they share a file, or need a CPU
# By the beginning of a command: the program to run, and what is true of the result.
TRUTH = {
    'trace c:malloc': (asked('allocate', 100), lambda r: of(r, 'allocate') == 100),
    "trace 'c:pthread_mutex_*' --rate": (SHARE, lambda r: 40 <= of(r, '[c:pthread_mutex_lock]') <= 60 and
                                         of(r, '[c:pthread_mutex_unlock]') >= 40 and 'pthread_mutex_lock: ' in r.err),
    'latency c:fsync --distr': (asked('store', 100), lambda r: 'fsync' in r.out and ' us, 1 times' in r.out),
    "trace c:write --value '(int)arg0' --rate": (asked('store', 100), lambda r: sorted(leaves(r).values()) == [10, 90]),
    'trace c:write --weight arg2 --distr': (asked('store', 100), lambda r: re.search(r' 4 k  -> +8 k  : 100 ', r.out)),
    'trace uprobe:libc:write --weight arg2 --distr': (asked('store', 100), lambda r: re.search(r' 4 k  -> +8 k  : 100 ', r.out)),
    'trace uprobe:libc:malloc': (asked('allocate', 100), lambda r: of(r, 'allocate') == 100),
    'trace uretprobe:libc:pread --weight retval': (asked('load', 100), lambda r: of(r, 'load') == 100 * 4096),
    'trace sched:sched_switch': (HAPPENS, lambda r: of(r, 'nap') > 0),
    'trace page-faults': (HAPPENS, lambda r: r.total > 20),
    'oncpu -e cache-misses': (None, lambda r: r.status in (0, 4)),
    "trace 'tracepoint:syscalls:sys_enter_*' --rate": (HAPPENS, lambda r: leaves(r)['[syscalls:sys_enter_getppid]'] == 200),
    "latency --from raw_syscalls:sys_enter --to raw_syscalls:sys_exit --value 'syscall(id)'":
        (HAPPENS, lambda r: of(r, 'nap', '[syscall=clock_nanosleep]') > 0),
    "latency --from raw_syscalls:sys_enter --to raw_syscalls:sys_exit --value 'syscall(id)' --distr":
        (HAPPENS, lambda r: '[syscall=clock_nanosleep]' in r.out and ' -> ' in r.out),
    # More of these is in alloc.py: what has ended holds nothing.
    'leak': (asked('allocate', 100), lambda r: r.status == 3 and 'hold nothing' in r.err),
    'leak --layer kmalloc': (asked('allocate', 100), lambda r: r.status in (0, 3) and 'in the kernel are sampled' in r.err),
    "trace c:open --value 'str(arg0)'": (asked('store', 10), lambda r: leaves(r).get(f'[str(arg0)={FILE}]') == 1),
    'latency --from lock:contention_begin': (asked('contend', 50), lambda r: of(r, 'append', 'vfs_write') > 0),
    'offwake': (SHARE, lambda r: of(r, 'hold', '[lock: mutex]') > 0 and of(r, 'hold', 'rest') >= NAPS * 500),
    'offcpu': (SHARE, lambda r: of(r, 'hold', 'rest') >= 2 * NAPS * 500),
    'offcpu -u': (SHARE, lambda r: of(r, 'hold', 'rest') >= 2 * NAPS * 500 and not of(r, 'do_syscall_64')),
    'wakeup': (SHARE, lambda r: r.total > 0),
    'oncpu': (asked('compute', 300), lambda r: 20 <= of(r, 'compute') <= 40),
    'oncpu -u': (asked('compute', 300), lambda r: 20 <= of(r, 'compute') <= 40 and not of(r, 'do_syscall_64')),
    'io --layer block --latency --distr': (asked('store', 100), lambda r: 'all stacks' in r.out or r.status == 3),
    'io --latency --min 1ms': (asked('store', 10), lambda r: r.status in (0, 3)),
    'io --layer cache': (asked('load', 100), lambda r: of(r, 'load', 'cache_miss') == 50 * 4096),
    'io --layer cache --count': (asked('load', 100), lambda r: of(r, 'load', 'cache_miss') == 50),
    'trace syscalls --rate': (HAPPENS, lambda r: leaves(r)['[syscall=getppid]'] == 200),
    'trace syscall-errors': (HAPPENS, lambda r: of(r, 'fail', '[syscall=close]') == 200),
    'trace syscalls:sys_enter_openat': (['head', '-c0', DOC], lambda r: leaves(r).get(f'[str(filename)={DOC}]') == 1),
    'trace exec': (SHELL, lambda r: leaves(r).get('[filename=/bin/true]') == 2),
    'trace signals': (HAPPENS, lambda r: of(r, 'notify') == 200),
    'trace c:pthread_create': (SHARE, lambda r: of(r, 'share') == 1),
    # More of these is in presets.py.
    'trace tcp-retransmits': (None, lambda r: r.status in (0, 3)),
    'trace softirq --rate': (None, lambda r: r.total > 0 and all(re.fullmatch(r'\[softirq=[A-Z_]+\]', leaf) for leaf in leaves(r))),
    'latency --from irq:softirq_entry': (None, lambda r: r.total > 0 and '[softirq=' in next(iter(leaves(r)))),
    'trace oom': (None, lambda r: r.status in (0, 3)),
    'trace u:FILE:PROVIDER:NAME': ([f'{WORK.name}/traced', '100'], lambda r: of(r, 'probed') == 100),
    'latency c:nanosleep --distr': (LOOP, lambda r: ' us, 100 times' in r.out),
    'trace c:nanosleep --rate': (LOOP, lambda r: r.total == 100 and 'c:nanosleep: 100 times' in r.err),
    'wall --in epoll-loop': (LOOP, lambda r: 10 * 5000 <= of(r, 'handle', 'rest') and 'spans: 100 ended' in ' '.join(r.err.split())),
    'trace context-switches': (HAPPENS, lambda r: of(r, 'nap') > 0),
    "trace sched:sched_switch --when 'prev_state == 0'": (asked('compute', 200), lambda r: all(
        leaf.startswith('[next_comm=') for leaf in leaves(r))),
}


def documented():
    """The commands of the tables, without 'stackbpf'."""
    with open(DOC, encoding='utf-8') as file:
        return list(dict.fromkeys(re.findall(r'^\| [^|]+ \| `stackbpf ([^`]+)` \|', file.read(), re.M)))


def truth_of(command):
    """That of the longest beginning."""
    found = [begin for begin in TRUTH if command == begin or command.startswith(f'{begin} ')]
    return TRUTH[max(found, key=len)] if found else None


def run(command):
    args = shlex.split(command.replace('FILE:PROVIDER:NAME', f'{WORK.name}/traced:traced:turn').replace('-p PID -t 60', ''))
    program, is_true = truth_of(command)
    if 'load' in (program or ()):
        half_in_memory(100)
    target = ('--', *program) if program else ('-t', '0.5')
    if program == SHELL:
        target = ('-s', *target)
    if 'distr' in command:
        done_ = subprocess.run([BINARY, *args, '--max-overhead=off', *target], capture_output=True, text=True, check=False)
        result = type('Printed', (), {'status': done_.returncode, 'out': done_.stdout, 'err': done_.stderr})
        said = result.out[:200]
    else:
        result = stackbpf(BINARY, *args, *target)
        said = str(result.stacks.most_common(3))[:400]
    if 'there is no tracepoint' in result.err:
        print(f'not here: {command}: {result.err}')
        return
    check(is_true(result), f'stackbpf {command}: {said} {result.err[-200:]}')


def ratio():
    """The two commands for the ratio of hits, of a file of which one half is in memory."""
    with open(DOC, encoding='utf-8') as file:
        commands = re.findall(r'^    stackbpf (io .*?)  +#', file.read(), re.M)
    results = []
    for command in commands:
        half_in_memory(100)
        results.append(stackbpf(BINARY, *command.split(), '--', *asked('load', 100)))
    read, missed = of(results[0], 'load', FILE), of(results[1], 'load', 'cache_miss', FILE)
    check((read, missed) == (100 * 4096, 50 * 4096), f'one half of what is read was in memory: {read}, {missed}')


def witness():
    """bpftrace counts the same."""
    if not shutil.which('bpftrace'):
        return
    libc = re.search(r'libc\S* => (\S+)', subprocess.run(['ldd', f'{WORK.name}/asked'], capture_output=True, text=True,
                                                         check=True).stdout)[1]
    counted = subprocess.run(['bpftrace', '-e', f'uprobe:{libc}:pthread_mutex_lock /pid == cpid/ {{ @ = count(); }}', '-c',
                              ' '.join(SHARE)], capture_output=True, text=True, check=False).stdout
    result = stackbpf(BINARY, 'trace', 'c:pthread_mutex_lock', '--rate', '--', *SHARE)
    check(f'@: {result.total}\n' in counted, f'bpftrace: {counted!r}, {result.total}')


def main():
    commands, words = documented(), sys.argv[4:]
    unknown = [command for command in commands if not truth_of(command)]
    check(len(commands) > 30 and not unknown, f'each has its truth: {unknown}')
    used = {id(truth_of(command)) for command in commands}
    check(all(id(truth) in used for truth in TRUTH.values()), 'and no truth is without a command')
    wanted = [command for command in commands if not words or any(word in command for word in words)]
    alone = [command for command in wanted if not truth_of(command)[0] or set(ALONE) & set(truth_of(command)[0])]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(run, command) for command in wanted if command not in alone]:
            future.result()
    for command in alone:
        run(command)
    if not words:
        ratio()
        witness()


main()
done()
