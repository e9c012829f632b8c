#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""memory: who brought what is resident, to the page, as programs say themselves and as smaps_rollup says.

memory.py STACKBPF KEEPER_C KEEPER_PY FAULT [PART...]
"""
import collections
import contextlib
import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest.mock

import fault
from live import build_program, check, done, need_root, run_parts, sampling, stackbpf, wait_for
from recorder import recording, written

need_root()
BINARY, SOURCE, SCRIPT, FAULT = sys.argv[1:5]
WORK = tempfile.TemporaryDirectory(dir='/var/tmp')  # of a file system whose files have a page cache
PROGRAM, FILE = f'{WORK.name}/keeper', f'{WORK.name}/file'
ROUNDS = 8
KINDS = ('anon', 'file', 'shmem,stack', 'heap')
HAS_SCAN = tuple(map(int, re.match(r'(\d+)\.(\d+)', os.uname().release).groups())) >= (6, 7)
build_program(PROGRAM, SOURCE, '-O1', '-g')
with open(FILE, 'wb') as out:
    out.write(os.urandom(256 * mmap.PAGESIZE))


@contextlib.contextmanager
def keeping(*command):
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def go(process, what=''):
    """Return: what it says of its pages."""
    process.stdin.write(f'{what}\n')
    process.stdin.flush()
    said = {}
    for line in iter(process.stdout.readline, 'done\n'):
        assert line, 'it has ended'
        name, nr = line.split()
        said[name] = int(nr)
    return said


def rss(pid):
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as file:
        return int(re.search(r'^Rss: +(\d+) kB', file.read(), re.M)[1]) * 1024


def of(result, root, frame, but=None):
    """Bytes of stacks with a frame, without those whose leaf is `but`."""
    return sum(weight for stack, weight in result.stacks.items()
               if stack[0] == root and frame in stack and stack[-1] != but)


def shares(result, root):
    kept = [of(result, root, f'keep_{name}') for name in ('sixty', 'thirty', 'ten')]
    return [100 * each / max(1, sum(kept)) for each in kept]


def near(have, want, bound):
    return all(abs(x - y) <= bound for x, y in zip(have, want))


def adds_up(err, process):
    """What the closing lines say of a process, in MiB: its Rss, and what it is made up of."""
    text = ' '.join(line.removeprefix('stackbpf:').strip() for line in err.splitlines())
    found = re.search(rf'process {process.pid} \(\S+\): ([\d.]+) MiB resident = ([\d.]+) before the run \+ ([\d.]+) held \+ '
                      r'(-?[\d.]+) unaccounted; ([\d.]+) %', text)
    assert found, text
    return [float(number) for number in found.groups()]


def are_zeros_resident():
    """Whether memory that was only read has pages of its own: some kernels do not share the page of zeros."""
    nr, before = 1024, rss('self')
    with mmap.mmap(-1, nr * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        assert not any(memory[::mmap.PAGESIZE])
        return rss('self') - before > nr * mmap.PAGESIZE / 2


def to_the_page(result, said):
    # Older kernels do not tell the page of zeros from others.
    zeros = ['read_zeros'] if HAS_SCAN and not are_zeros_resident() else []
    for name in 'keep_sixty', 'keep_thirty', 'keep_ten', 'read_file', 'map_file', 'sparse', 'move_away', 'move_aligned', *zeros:
        # A page of the stack may be new in it, and the code of a function of the C library.
        weight, want = of(result, 'keeper', name), said[name] * mmap.PAGESIZE
        if name in ('sparse', 'move_away', 'move_aligned'):
            weight -= of(result, 'keeper', name, but='touch')
        check(0 <= weight - want <= 2 * mmap.PAGESIZE, f'{name}: {weight} of {want} bytes, to the page')


def held():
    with keeping(PROGRAM, FILE, str(ROUNDS)) as program, keeping(sys.executable, SCRIPT, str(ROUNDS)) as python:
        with sampling(BINARY, 'memory', '-p', f'{program.pid},{python.pid}') as run:
            said = go(program)
            go(python)
        result = run.result
        check(result.status == 0 and result.facts.get('kind') == 'memory' and result.facts.get('unit') == 'bytes',
              f'it runs: {result.status} {result.facts} {result.err}')
        check(result.facts.get('of') == 'held' and 80 < float(result.facts.get('accounted', 0)) < 99.9 and
              'came without a page fault' in ' '.join(result.err.split()), f'what is not known is told: {result.facts} {result.err}')
        to_the_page(result, said)
        check(of(result, 'keeper', 'churn') <= mmap.PAGESIZE, 'what is gone is not held')
        check(of(result, 'keeper', '[unaccounted]') == said['populate'] * mmap.PAGESIZE,
              f'what came without a fault has a name: {of(result, "keeper", "[unaccounted]")}')
        touched, holds = of(result, 'keeper', 'first_toucher'), of(result, 'keeper', 'later_holder')
        check(touched >= 300 * mmap.PAGESIZE and holds <= 2 * mmap.PAGESIZE,
              f'memory that the heap recycles is that of who made it grow: {touched}, {holds}')
        check(near(shares(result, 'python3'), (60, 30, 10), 2), f'Python: {shares(result, "python3")} %')
        kept = of(result, 'python3', 'make')
        check(0.98 <= kept / (100 * ROUNDS * 50000) <= 1.1, f'Python: {kept} bytes are kept')
        check(of(result, 'python3', 'churn') < 0.02 * kept, 'Python: what is gone is not held')
        for process in program, python:
            whole, before, brought, rest, known = adds_up(result.err, process)
            zeros = 0 if HAS_SCAN or process is python else 100 * mmap.PAGESIZE / 2**20
            check(abs(whole - zeros - rss(process.pid) / 2**20) < 0.06, f'{whole} MiB is Rss: {rss(process.pid)}')
            unknown = 2.0 if process is program else 0
            check(abs(rest - unknown) < 0.06 and abs(before + brought + rest - whole) < 0.2,
                  f'it adds up: {before} + {brought} + {rest} = {whole}')
            check(process is program or known >= 99.9, f'{known} % of what came is accounted for')


# It maps and moves more addresses, and more often, than anybody can follow.
RESTLESS = """import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
def new(size):
    return libc.mmap(None, ctypes.c_size_t(size), 0, 0x4022, -1, ctypes.c_long(0))
kept = mmap.mmap(-1, 128 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
input()
for at in range(0, len(kept), mmap.PAGESIZE):
    kept[at] = 1
size = 16 << 40
addr = new(size)
for _ in range(20000):
    other = new(64 << 30)
    libc.munmap(ctypes.c_void_p(other), ctypes.c_size_t(64 << 30))
    addr = libc.mremap(ctypes.c_void_p(addr), ctypes.c_size_t(size), ctypes.c_size_t(size + 4096), 1)
    size += 4096
print('done', flush=True)
input()
"""


def restless():
    """A process that changes its mappings all the time does not keep the run from ending, and it is said."""
    with keeping(sys.executable, '-c', RESTLESS) as process:
        with sampling(BINARY, 'memory', '-p', str(process.pid)) as run:
            go(process)
    check(run.result.status == 0, f'it ends: exit status {run.result.status}')
    check('mappings were not followed' in ' '.join(run.result.err.split()), 'what was not followed is told')


WORKING = """import mmap
text, kept = b'x' * (20 << 20), []
def bring(size):
    piece = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    piece.write(text[:size])
    return piece
print('ready', flush=True)
while True:
    kept = kept[-50:] + [bring(1 << 20)]
    bring(20 << 20)
"""


# It has all of its memory before it says so, and then it only gives back.
FREEING = """import mmap, time
size, step = 512 << 20, 128 << 10
kept = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
print('ready', flush=True)
input()
new = mmap.mmap(-1, step, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
new.write(bytes(step))
print('done', flush=True)
for at in range(0, size, step):
    kept.madvise(mmap.MADV_DONTNEED, at, step)
    time.sleep(0.0005)
input()
"""


def told_some(*args):
    """Return: the result; None: nothing was sampled."""
    result = stackbpf(BINARY, *args)
    return result if result.status != 3 else None


def at_work():
    """Of a process that takes and gives back memory while it is looked at, the sum is of one moment."""
    for _ in range(3):
        with keeping(sys.executable, '-c', FREEING) as process:
            process.stdout.readline()
            with sampling(BINARY, 'memory', '-p', str(process.pid), '--max-overhead=off') as run:
                go(process)
            whole, before, brought, rest, _ = adds_up(run.result.err, process)
            check(rest >= 0 and abs(before + brought + rest - whole) < 0.2, f'it gives back: {before} + {brought} + {rest} = {whole}')
    with keeping(sys.executable, '-c', WORKING) as process:
        process.stdout.readline()
        for _ in range(5):
            # It may get no CPU for so long.
            result = wait_for(lambda: told_some('memory', '-p', str(process.pid), '-t', '0.3'), 'memory that came')
            whole, before, brought, rest, known = adds_up(result.err, process)
            check(abs(before + brought + rest - whole) < 0.2 and 99.9 <= known <= 100,
                  f'it adds up: {before} + {brought} + {rest} = {whole}, {known} %')


def kinds_of(pid):
    """Bytes by kind, as smaps has them."""
    found = dict.fromkeys(','.join(KINDS).split(','), 0)
    with open(f'/proc/{pid}/smaps', encoding='ascii') as file:
        for part in re.split(r'^(?=[0-9a-f]+-[0-9a-f]+ )', file.read(), flags=re.M)[1:]:
            name = part.splitlines()[0][73:]
            rss, of_none = (int(re.search(rf'^{field}: +(\d+) kB', part, re.M)[1]) * 1024 for field in ('Rss', 'Anonymous'))
            # Of shared memory, smaps counts pages of no file only where they are copies, too.
            found['shmem' if name.startswith('/dev/zero') else 'file'] += rss - of_none
            found[name[1:-1] if name in ('[heap]', '[stack]') else 'anon'] += of_none
    return found


def kinds():
    with keeping(PROGRAM, FILE, str(ROUNDS)) as program, contextlib.ExitStack() as stack:
        runs = {kind: stack.enter_context(sampling(BINARY, 'memory', '-p', str(program.pid), '--kind', kind, '--stats'))
                for kind in KINDS}
        before = kinds_of(program.pid)
        go(program)
        after = kinds_of(program.pid)
        stack.close()
    after['shmem,stack'], before['shmem,stack'] = (sum(of[kind] for kind in ('shmem', 'stack')) for of in (after, before))
    for kind, run in runs.items():
        weight, came = sum(run.result.stacks.values()), after[kind] - before[kind]
        resident = int(re.search(r'bytes resident +(\d+)', run.result.err)[1])
        # A page of the stack or of the C library may come between the two looks.
        zeros = 0 if HAS_SCAN or kind != 'anon' else 100 * mmap.PAGESIZE
        check(abs(resident - after[kind] - zeros) <= 4 * mmap.PAGESIZE and came and
              0 <= weight - came - zeros <= 16 * mmap.PAGESIZE,
              f'{kind}: {resident} of {after[kind]} bytes are resident, {weight} of {came} came')
    # A page of the stack may be new in it.
    shared = of(runs['shmem,stack'].result, 'keeper', 'share')
    check(0 <= shared - 90 * mmap.PAGESIZE <= 2 * mmap.PAGESIZE, f'shared memory has its stack: {shared} bytes')
    refused = stackbpf(BINARY, 'memory', '--churn', '--kind', 'anon', '-t', '1')
    check(refused.status and 'do not go together' in refused.err, f'of what is gone no kind is known: {refused.err}')


# A thread with a name of its own, which alone brings memory.
NAMED = '''
import ctypes, sys, threading
def bring():
    ctypes.CDLL(None).prctl(15, b'bringer', 0, 0, 0)
    print('done', flush=True)
    for line in sys.stdin:
        kept.append(b'x' * (8 << 20))
        print('done', flush=True)
kept = []
threading.Thread(target=bring).start()
'''


def named():
    """A process has its own name, and not that of the thread whose fault came first."""
    with keeping(sys.executable, '-c', NAMED) as process:
        assert process.stdout.readline() == 'done\n'
        with open(f'/proc/{process.pid}/comm', encoding='utf-8') as file:
            comm = file.read().strip()
        with sampling(BINARY, 'memory', '-p', str(process.pid)) as run:
            go(process)
        check(of(run.result, 'bringer', 'bring') >= 8 << 20 and f'process {process.pid} ({comm}): ' in run.result.err,
              f'{comm}: {run.result.stacks.most_common(3)} {run.result.err}')


def churned():
    """Of a command that ends, everything came and went."""
    result = stackbpf(BINARY, 'memory', '--churn', '-s', '--', 'sh', '-c', f'yes "" | head -2 | {PROGRAM} {FILE} {ROUNDS} >&2')
    said = dict(line.split() for line in result.err.splitlines() if re.fullmatch(r'\w+ \d+', line))
    weight, want = of(result, 'keeper', 'churn'), int(said['churn']) * mmap.PAGESIZE
    check(0 <= weight - want <= 2 * mmap.PAGESIZE,
          f'churn: {weight} of {want} bytes came and went; {result.stacks.most_common(5)} {result.err}')
    told = ' '.join(result.err.replace('stackbpf:', '').split())
    check('all of 4 processes that ended and of 3 programs that execve(2) replaced' in told,
          f'a process that runs another program has not ended: {told}')


def ended():
    """What a process held when it ended is told, by the same stacks."""
    result = stackbpf(BINARY, 'memory', '-s', '--stats', '--', 'sh', '-c', f'yes "" | head -2 | {PROGRAM} {FILE} {ROUNDS} >&2')
    said = dict(line.split() for line in result.err.splitlines() if re.fullmatch(r'\w+ \d+', line))
    for name in 'keep_sixty', 'keep_thirty', 'keep_ten', 'read_file', 'move_away', 'move_aligned':
        weight, want = of(result, 'keeper', name, but='touch'), int(said[name]) * mmap.PAGESIZE
        check(0 <= weight - want <= 2 * mmap.PAGESIZE, f'{name}: {weight} of {want} bytes at its end, to the page')
    check(all(stack[-1] == '[held at its end]' for stack in result.stacks if stack[0] == 'keeper'), 'and a frame of their own')
    whole, most = (int(re.search(rf'bytes {what} +(\d+)', result.err)[1]) for what in ('held at their end', 'at the most'))
    check(sum(result.stacks.values()) == whole <= most, f'{whole} bytes, and {most} at the most')


def empty():
    """Why there is nothing to show is said of what was asked for."""
    with keeping('sleep', '30') as process:
        for what, why in ('--churn', 'no memory of the targets came and went'), ('--swapped', 'was in swap at its end'):
            result = stackbpf(BINARY, 'memory', what, '-p', str(process.pid), '-t', '500ms')
            check(result.status == 3 and why in result.err, f'{what}: {result.err}')


# Two thousand processes, one after the other, each of which holds a page for each of 40 stacks.
MANY = r'''
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char *memory;
__attribute__((noinline)) static void hold(int n)
{
	memory[n * 4096L] = 1;
	if (n)
		hold(n - 1);
	__asm__ volatile("" ::: "memory");
}
int main(void)
{
	for (int i = 0; i < 2000; i++) {
		if (fork()) {
			wait(NULL);
			continue;
		}
		memory = mmap(NULL, 40 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		hold(39);
		_exit(0);
	}
}
'''


def many():
    """What processes held that have ended is in the result, also if they have more stacks than are remembered at a time."""
    with open(f'{WORK.name}/many.c', 'w', encoding='ascii') as file:
        file.write(MANY)
    subprocess.run(['gcc', '-O1', '-g', '-o', f'{WORK.name}/many', file.name], check=True)
    result = stackbpf(BINARY, 'memory', '-s', '--max-overhead', 'off', '--', f'{WORK.name}/many')
    weight, want = of(result, 'many', 'hold'), 2000 * 40 * 4096
    check(0 <= weight - want <= 2000 * 2 * mmap.PAGESIZE, f'{weight} of {want} bytes: {result.facts} {result.err}')
    check(result.facts.get('lost') == '0', f'nothing is lost: {result.facts}')


# Its main thread ends, and another one goes on.
WITHOUT_MAIN = r'''
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noinline)) static void hold(void)
{
	char *memory = mmap(NULL, 1000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(memory, 1000 * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < 1000; i++)
		*(volatile char *)(memory + i * 4096) = 1;
}
static void *go_on(void *arg)
{
	getchar();
	hold();
	puts("done");
	fflush(stdout);
	getchar();
	return arg;
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, go_on, NULL);
	pthread_exit(NULL);
}
'''


def without_main():
    """A process whose main thread has ended has not ended itself."""
    with open(f'{WORK.name}/orphan.c', 'w', encoding='ascii') as file:
        file.write(WITHOUT_MAIN)
    subprocess.run(['gcc', '-O1', '-g', '-pthread', '-o', f'{WORK.name}/orphan', file.name], check=True)
    with keeping(f'{WORK.name}/orphan') as process:
        with sampling(BINARY, 'memory', '-p', str(process.pid)) as run:
            go(process)
        weight = of(run.result, 'orphan', 'hold', but='[held at its end]')
        check(0 <= weight - 1000 * 4096 <= 2 * mmap.PAGESIZE, f'{weight} bytes are held: {run.result.err}')
        adds_up(run.result.err, process)


# Has more mappings of a file with a long name than are read of /proc/PID/maps, and below all of them
# nothing of what comes later.
CROWD = '''
import ctypes, mmap, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
shared = mmap.mmap(-1, 90 * mmap.PAGESIZE)
with open(sys.argv[1], 'rb') as file:
    for _ in range(int(sys.argv[2])):
        assert libc.mmap(None, ctypes.c_size_t(mmap.PAGESIZE), 1, 2, file.fileno(), ctypes.c_long(0)) != 2**64 - 1
print('done', flush=True)
input()
for page in range(90):
    shared[page * mmap.PAGESIZE] = 1
kept = bytearray(4 << 20)
print('done', flush=True)
input()
'''


def crowded():
    """Where not all mappings are read, pages in the others are told, and not silently of another kind."""
    long = f'{WORK.name}/{"x" * 250}'
    os.mkdir(long)
    shutil.copy(FILE, f'{long}/{"y" * 250}')
    with keeping(sys.executable, '-c', CROWD, f'{long}/{"y" * 250}', '30000') as process:
        assert process.stdout.readline() == 'done\n'
        with (sampling(BINARY, 'memory', '-p', str(process.pid), '--kind', 'anon,shmem', '--stats') as run,
              sampling(BINARY, 'memory', '-p', str(process.pid), '--kind', 'anon') as told,
              sampling(BINARY, 'memory', '-p', str(process.pid), '--kind', 'shmem') as empty):
            go(process)
        unsorted = int(re.search(r'bytes of unknown kind +(\d+)', run.result.err)[1])
        with open(f'/proc/{process.pid}/smaps_rollup', encoding='ascii') as file:
            shared = int(re.search(r'^Pss_Shmem: +(\d+) kB', file.read(), re.M)[1]) * 1024
        for each in told, empty:
            said = ' '.join(each.result.err.replace('stackbpf:', '').split())
            check('resident in mappings that were not read' in said, f'it is said: {said}')
        check(unsorted >= shared >= 90 * mmap.PAGESIZE, f'{unsorted} bytes are of unknown kind, with {shared} of shared memory')


def counted():
    """Without the tracepoints of page faults, by perf events. None of them is missing, however fast they come."""
    env = fault.environment(FAULT, BINARY, types='page_fault_user,page_fault_kernel')
    with keeping(PROGRAM, FILE, str(ROUNDS)) as program, unittest.mock.patch.dict(os.environ, env):
        with sampling(BINARY, 'memory', '-p', str(program.pid)) as run:
            said = go(program)
            # At the end of a run there is little time for names.
            wait_for(lambda: of(run.snapshot(), 'keeper', 'sparse'), 'its functions have their names')
        check('no tracepoints of page faults' in run.result.err.replace('\nstackbpf:', ''), f'it is said: {run.result.err}')
        to_the_page(run.result, said)
        whole, before, brought, rest, _ = adds_up(run.result.err, program)
        check(abs(before + brought + rest - whole) < 0.2, f'by perf events: {before} + {brought} + {rest} = {whole}')


# Leaks by three functions, among what comes and goes, behind what any program has.
LEAK = '''
import mmap, sys
kept = []
def keep_sixty(nr):
    kept.append(bytearray(6000 * nr))
def keep_thirty(nr):
    kept.append(bytearray(3000 * nr))
def keep_ten(nr):
    kept.append(bytearray(1000 * nr))
def warm_up():
    kept.append(bytearray(20 << 20))
def churn():
    # Little at a time: what is there when a block ends is held.
    for _ in range(16):
        with mmap.mmap(-1, 256 << 10) as gone:
            for at in range(0, len(gone), mmap.PAGESIZE):
                gone[at] = 1
print('done', flush=True)
for line in sys.stdin:
    for _ in range(100 if line == 'leak\\n' else 0):
        keep_sixty(100)
        keep_thirty(100)
        keep_ten(100)
        churn()
    if line == 'warm\\n':
        warm_up()
    print('done', flush=True)
'''


def recorded():
    """Of a store, the difference of two ranges of time names what leaks, by its parts."""
    with keeping(sys.executable, '-c', LEAK) as process, tempfile.TemporaryDirectory() as work:
        assert process.stdout.readline() == 'done\n'
        with recording(f'{work}/store', '-p', str(process.pid), '--kinds', 'memory') as recorder:
            go(process, 'warm')
            written(recorder)
            begin = (int(time.time()) // 10 + 1) * 10
            # Which are of 10 s; on a busy machine it may begin late, and has to begin before what leaks.
            wait_for(lambda: time.time() >= begin + 1, 'another block')
            go(process, 'leak')
            written(recorder)
            check(recorder.end() == 0, 'it records')
        run = subprocess.run([BINARY, 'diff', '--store', f'{work}/store', '--kind', 'memory', '--norm', 'rate', '--sort', 'total',
                              '--format', 'json', '--from', '-1d', '--to', f'@{begin}', '--vs-from', f'@{begin}',
                              '--vs-to', 'now+1h'], capture_output=True, text=True, check=False)
        check(run.returncode == 0, f'diff: {run.returncode} {run.stderr}')
        diff = json.loads(run.stdout)
        # The blocks before the leak are longer or shorter than those with it, as the clock has it.
        seconds = [diff[side]['per'] for side in 'ab']
        functions = {each['name']: each['total'] for each in diff['functions'] if each['kind'] == 'interp'}
        grew = {name: total[1] / seconds[1] - total[0] / seconds[0] for name, total in functions.items() if name != '<module>'}
        first = sorted(grew, key=grew.get, reverse=True)[:3]
        check(first == ['keep_sixty', 'keep_thirty', 'keep_ten'], f'what leaks comes first: {grew}')
        whole = sum(grew[name] for name in first)
        check(near([100 * grew[name] / whole for name in first], (60, 30, 10), 2) and grew.get('churn', 0) < 0.02 * whole,
              f'by its parts: {grew}')


# Functions that differ only in what calls them, one page each in turn: the frames are at the same addresses, and the native
# stack is the same.
BENEATH = '''
import mmap, sys, types
NR, PAGE = 600, mmap.PAGESIZE
def touch(memory, at):
    memory[at] = 1
def one(memory, at):
    touch(memory, at)
def two(memory, at):
    touch(memory, at)
def deep(memory, at, nr, last):
    if nr:
        deep(memory, at, nr - 1, last)
    else:
        last(memory, at)
def made_0(memory, at): touch(memory, at)
def made_1(memory, at): touch(memory, at)
def made(memory, at, nr):
    # The code is freed at the end, and the next one is made at its address.
    code = (made_0, made_1)[nr].__code__.replace()
    types.FunctionType(code, globals())(memory, at)
def odd(memory):
    while True:
        touch(memory, (yield))
def even(memory):
    while True:
        touch(memory, (yield))
def lines(memory, at, nr):
    if nr:
        touch(memory, at)
    else:
        touch(memory, at)
def new():
    memory = mmap.mmap(-1, NR * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory
memories, at = [new() for _ in range(6)], 0
print('done', flush=True)
while sys.stdin.readline() != 'begin\\n':
    touch(memories[5], at)
    at += PAGE
    print('done', flush=True)
generators = odd(memories[3]), even(memories[3])
for each in generators:
    next(each)
for at in range(0, NR * PAGE, PAGE):
    nr = at // PAGE % 2
    (one, two)[nr](memories[0], at)
for at in range(0, NR * PAGE, PAGE):
    deep(memories[1], at, 9, (one, two)[at // PAGE % 2])
for at in range(0, NR * PAGE, PAGE):
    made(memories[2], at, at // PAGE % 2)
for at in range(0, NR * PAGE, PAGE):
    generators[at // PAGE % 2].send(at)
for at in range(0, NR * PAGE, PAGE):
    lines(memories[4], at, at // PAGE % 2)
print('done', flush=True)
sys.stdin.readline()
'''


def beneath():
    """A thread that faults at one place again and again, below other frames each time."""
    with keeping(sys.executable, '-c', BENEATH) as process:
        assert process.stdout.readline() == 'done\n'
        with sampling(BINARY, 'memory', '-p', str(process.pid), '--lines', '--max-overhead=off') as run:
            # On a busy machine it may take long until frames of Python are known.
            wait_for(lambda: go(process) or any('touch ' in ';'.join(stack) for stack in run.snapshot().stacks), 'its frames')
            go(process, 'begin')
        result = run.result
    pages = collections.Counter()
    for stack, weight in result.stacks.items():
        callers = [each for each in stack if re.match(r'(one|two|deep|made_|odd|even|lines)', each)]
        if callers and any(each.startswith('touch ') for each in stack):
            pages[f'{len(callers)} {callers[-1]}'] += weight // mmap.PAGESIZE
    # The code of made_0 and made_1 may be gone when its name is read.
    made = {name: pages.pop(name) for name in list(pages) if name.startswith('1 made')}
    check(all(nr <= 300 for nr in made.values()), f'no code has the name of what replaced it: {made}')
    check(len(pages) == 8 and set(pages.values()) == {300}, f'half of the pages each: {pages}')


run_parts((beneath, held, at_work, without_main, named, kinds, crowded, counted, recorded, ended, churned, restless, many, empty), sys.argv[5:])
done()
