#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""alloc, heap, leak: what programs allocate, hold and leak, beside the account that they keep themselves.

alloc.py STACKBPF LIBRARY LEAKS_C LEAKS_CC LEAKS_PY KERNELKEEPER_PY LEAKS_JS LEAKS_JAVA LEAKS_GO LEAKS_PHP AGES_C
         [PART...]
"""
import concurrent.futures
import contextlib
import functools
import glob
import gzip
import math
import mmap
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import heap_peers
from live import build_program, check, done, need_root, run_parts, sampling, stackbpf, wait_for
from recorder import ask, recording, written

need_root()
BINARY, LIBRARY, SOURCE, SOURCE_CC, SOURCE_PY, KERNEL_PY = sys.argv[1:7]
SOURCE_JS, SOURCE_JAVA, SOURCE_GO, SOURCE_PHP, SOURCE_AGES = sys.argv[7:12]
WORK = tempfile.TemporaryDirectory()
C = build_program(f'{WORK.name}/leaks', SOURCE, '-O1', '-g')
SHARES = {'much': 0.6, 'some': 0.3, 'little': 0.1}
SAMPLED = {'LD_PRELOAD': LIBRARY, 'STACKBPF_ALLOC_BYTES': '2000'}


@functools.cache
def cxx():
    return build_program(f'{WORK.name}/leaks++', SOURCE_CC, '-O1', '-g', compiler='g++')


class Leaks:
    """A program that leaks when it is told to."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **env})
        self.process.stdout.readline()
        self.pid = str(self.process.pid)
        self.said = [0] * 8

    def work(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()
        self.said = [int(word) for word in self.process.stdout.readline().split()]

    @property
    def leaked(self):
        """Bytes, and pieces."""
        return sum(self.said[0:6:2]), sum(self.said[1:6:2])

    @property
    def all(self):
        return sum(self.said[0::2]), sum(self.said[1::2])


@contextlib.contextmanager
def leaking(*command, nr=40, env=None):
    target = Leaks([*command, str(nr)], env or {})
    try:
        yield target
    finally:
        target.process.kill()
        target.process.communicate()


def ran(view, *args, command=(C,), nr=40, env=None, rounds=1):
    """One run over what a program does in the meantime."""
    with leaking(*command, nr=nr, env=env) as target:
        with sampling(BINARY, view, '-p', target.pid, *args) as run:
            for _ in range(rounds):
                target.work()
        return run.result, target


def of(result, *frames):
    return sum(weight for stack, weight in result.stacks.items() if set(frames) <= {name.removeprefix('main.') for name in stack})


def are_shares(result, bound=0.02):
    """Of what is kept."""
    kept = of(result, 'keep')
    return kept and all(abs(of(result, 'keep', name) / kept - share) <= bound for name, share in SHARES.items())


def is_near(weight, truth, nr):
    """An estimate by @nr samples, most of which weigh about the same."""
    return abs(weight - truth) <= 5 * truth / math.sqrt(nr)


def exact():
    """Every call is seen, once."""
    result, target = ran('alloc')
    check(result.total == target.all[0] and result.facts['lost'] == '0' and result.facts['unit'] == 'bytes',
          f'each byte: {result.total} of {target.all[0]}, {result.facts}, {result.err}')
    check(of(result, 'keep', 'much') == target.said[0], f'by caller: {of(result, "keep", "much")} of {target.said[0]}')
    check('are probed, which costs' in result.err and 'programs came to probes' in result.err, f'costs are told: {result.err}')
    result, target = ran('alloc', '--objects')
    check(result.total == target.all[1] and result.facts['unit'] == 'objects', f'each object: {result.total} of {target.all[1]}')


def held():
    """What is given back is not held; nor is what realloc() moved."""
    result, target = ran('heap')
    check(result.total == target.leaked[0] and are_shares(result, 0.001),
          f'what is held: {result.total} of {target.leaked[0]}, {result.stacks}, {result.err}')


def operator_new():
    """As malloc(), also by the view of what is allocated."""
    result, target = ran('alloc', '--live', '--objects', command=(cxx(),))
    check(result.total == target.leaked[1] and result.facts['kind'] == 'heap',
          f'by operator new: {result.total} of {target.leaked[1]}, {result.stacks}')


def other_allocators():
    for library in 'libjemalloc.so.2', 'libtcmalloc_minimal.so.4', 'libmimalloc.so.2':
        path = next(iter(glob.glob(f'/usr/lib/*/{library}')), None)
        if not path:
            print(f'skip: other_allocators: there is no {library}')
            continue
        result, target = ran('heap', command=(cxx(),), env={'LD_PRELOAD': path})
        check(result.total == target.leaked[0] and 'and 1 more' in result.err,
              f'{library}: {result.total} of {target.leaked[0]}, {result.stacks}, {result.err}')
        # Operators that jump to others, such as operator new[] of jemalloc, are seen once.
        result, target = ran('alloc', command=(cxx(),), env={'LD_PRELOAD': path})
        check(result.total == target.all[0], f'{library}, all: {result.total} of {target.all[0]}, {result.stacks}')
    if shutil.which('musl-gcc'):
        subprocess.run(['musl-gcc', '-O1', '-g', '-static', '-o', f'{C}.musl', SOURCE], check=True)
        subprocess.run(['musl-gcc', '-O1', '-g', '-o', f'{C}.musl-so', SOURCE], check=True)
        for kind in 'musl', 'musl-so':
            result, target = ran('heap', command=(f'{C}.{kind}',))
            check(result.total == target.leaked[0], f'{kind}: {result.total} of {target.leaked[0]}, {result.err}')
    else:
        print('skip: other_allocators: there is no musl-gcc')
    subprocess.run(['gcc', '-O1', '-g', '-static', '-o', f'{C}.static', SOURCE], check=True)
    result, target = ran('alloc', command=(f'{C}.static',))
    check(result.total == target.all[0], f'glibc, static: {result.total} of {target.all[0]}, {result.err}')


def python():
    result, target = ran('heap', command=(sys.executable, SOURCE_PY))
    kept = of(result, 'keep')
    check(are_shares(result) and abs(kept / target.leaked[0] - 1) < 0.02,
          f'Python: {kept} of {target.leaked[0]}, {list(result.stacks)[:3]}, {result.err}')


def runtimes():
    """PHP's heap is followed; of those that are not, it is told what the source does not see."""
    if shutil.which('php'):
        result, target = ran('heap', command=('php', SOURCE_PHP))
        kept = of(result, 'keep')
        check(are_shares(result) and abs(kept / target.leaked[0] - 1) < 0.1 and of(result, 'churn') < 0.02 * kept,
              f'PHP: {kept} of {target.leaked[0]}, {result.stacks}, {result.err}')
    own = []
    if shutil.which('node'):
        result, target = ran('heap', command=('node', SOURCE_JS))
        check('V8 keeps objects of JavaScript in a heap of its own' in result.err, f'Node.js: {result.err}')
        # New objects, by V8's pages: most of some 270 samples are of the code that allocates most.
        result, target = ran('alloc', nr=400, command=('node', SOURCE_JS))
        new, churn = of(result, 'work'), of(result, 'churn')
        check(new and abs(churn / new - target.said[6] / target.all[0]) < 0.1 and 0.6 < new / target.all[0] < 1.6 and
              'in pages of 256 KiB' in result.err, f'Node.js by pages: {churn} of {new}, {target.said}, {result.err}')
        own.append(('V8', ['node', SOURCE_JS]))
    if shutil.which('javac'):
        subprocess.run(['javac', '-g', '-d', WORK.name, SOURCE_JAVA], check=True)
        own.append(('Java', ['java', '-cp', WORK.name, 'Leaks']))
    if shutil.which('go'):
        subprocess.run(['go', 'build', '-o', f'{WORK.name}/leaks_go', SOURCE_GO], check=True)
        result, target = ran('alloc', command=(f'{WORK.name}/leaks_go',))
        churn = of(result, 'churn')
        # Go's runtime may allocate a little in the function, too.
        check(abs(churn / target.said[6] - 1) < 0.02 and are_shares(result, 0.1) and 'in a heap of its own' not in result.err,
              f'Go: {churn} of {target.said[6]}, {result.stacks}, {result.err}')
        own.append(('Go', [f'{WORK.name}/leaks_go']))
        subprocess.run(['go', 'build', '-ldflags=-s', '-o', f'{WORK.name}/stripped_go', SOURCE_GO], check=True)
        with leaking(f'{WORK.name}/stripped_go') as target:
            result = stackbpf(BINARY, 'alloc', '-t', '1', '-p', target.pid)
        check(result.status == 2 and 'is a Go program without symbols' in result.err, f'stripped: {result.status}, {result.err}')
    if not own:
        print('skip: runtimes: there are no node, javac and go')
        return
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(leaking(*command)) for _, command in own]
        pids = [word for target in targets for word in ('-p', target.pid)]
        with sampling(BINARY, 'heap', '--max-overhead=50', *pids) as run:
            for target in targets:
                target.work()
    for name, _ in own:
        check(f'{name} keeps' in run.result.err and 'can rank above the code that leaks' in run.result.err, f'{name}: {run.result.err}')
    check(run.result.err.count('can rank above') == 1, f'one sentence before the run is of all runtimes: {run.result.err}')


def sampled():
    """A program that samples by itself."""
    result, target = ran('alloc', nr=400, env=SAMPLED)
    nr = int(result.facts['n'])
    check(1000 < nr < target.all[1] / 2 and is_near(result.total, target.all[0], nr),
          f'an estimate: {result.total} of {target.all[0]} by {nr} samples, {result.err}')
    check('that programs sample by' in result.err, f'the source is told: {result.err}')
    result, target = ran('heap', '--max-overhead=1', '--objects', nr=400, env=SAMPLED, command=(cxx(),))
    nr = int(result.facts['n'])
    check(nr > 300 and is_near(result.total, target.leaked[1], nr) and are_shares(result, 3 / math.sqrt(nr)),
          f'held: {result.total} of {target.leaked[1]} by {nr} samples, {result.stacks}, {result.err}')
    check(all(stack[-1] == 'malloc' for stack in result.stacks), f'the leaf is what was called: {list(result.stacks)}')


def leaks_early(view, *args, command, nr, env=None):
    """A run in whose first part a program leaks, and again at its end. Return: the result, the bytes of the first part, and
    the program."""
    with leaking(*command, nr=nr, env=env) as target:
        with sampling(BINARY, view, '-p', target.pid, *args) as run:
            began = time.monotonic()
            target.work()
            early = target.leaked[0]
            time.sleep(2 * (time.monotonic() - began) + 0.3)
            target.work()
        return run.result, early, target


def leak():
    """What is older than half of the run, and was not given back; what came later is none, however much it is."""
    result, early, _ = leaks_early('leak', command=(C,), nr=40)
    check(result.total == early and are_shares(result, 0.001), f'leaks: {result.total} of {early}, {result.stacks}, {result.err}')
    check('much' in max(result.stacks, key=result.stacks.get), f'the leak first: {result.stacks}')
    check('a minute' in result.err, f'with its growth: {result.err}')


# It allocates and computes for some microseconds, in turns. Its account is as that of leaks.c.
COMPUTING = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(void)
{
	static volatile unsigned long sum, nr;

	setlinebuf(stdout);
	puts("ready");
	while (getchar() != EOF) {
		for (time_t end = time(NULL) + 7; time(NULL) < end;)
			for (int i = 0; i < 100; i++, nr++) {
				free(malloc(1000));
				for (int k = 0; k < 10000; k++)
					sum += k;
			}
		printf("0 0 0 0 0 0 %lu %lu\\n", 1000 * nr, nr);
	}
	return 0;
}
"""


def slices_of(*command, nr=40):
    """Return: the result by slices, and the target; the standard error of the sum, and the part that is said to be missing in
    it if one thread allocates that has a CPU for itself; what was said; the seconds, and the part of them for which the
    target ran. None: slices are not possible."""
    with leaking(*command, nr=nr) as target:
        with sampling(BINARY, 'alloc', '-p', target.pid, f'--max-overhead={2 / os.cpu_count()}') as run:
            began = time.monotonic()
            target.work()
            seconds = time.monotonic() - began
        with open(f'/proc/{target.pid}/schedstat', encoding='ascii') as file:
            ran_s = int(file.read().split()[0]) / 1e9
    text = ' '.join(line.removeprefix('stackbpf:').strip() for line in run.result.err.splitlines())
    if 'slices' not in text:
        return None
    error = float(re.search(r'standard error of the sum of ([\d.]+) %', text)[1]) / 100
    missing = re.search(r'sums too low, by about (\d+) % if one thread', text)
    return run.result, target, error, int(missing[1]) / 100 if missing else 0, text, seconds, ran_s / seconds


def sliced():
    """Under a limit probes are attached for a part of the time: sums are right on average, and little is trapped."""
    slices = slices_of(C, '1500', '200', nr=3000)
    if not slices:
        print('skip: sliced: this kernel attaches probes one by one')
        return
    result, target, error, missing, text, seconds, _ = slices
    part = float(result.facts.get('attached', 1))
    hits = int(re.search(r'came to probes (\d+) times', text)[1])
    # Until they are detached, which can take longer than a slice, functions go on to trap.
    check(part < 0.5 and hits < target.all[1] / 3, f'part of the time: {part}, {hits} of {target.all[1]} calls')
    # A program that keeps its pace allocates as much as ever.
    low = 0 if seconds < 1500 * 0.003 * 1.05 else missing
    check(1 - low - max(5 * error, 0.1) < result.total / target.all[0] < 1 + max(5 * error, 0.1),
          f'the sum: {result.total} of {target.all[0]} in {seconds} s, {text}')
    share = of(result, 'keep') / result.total / (target.leaked[0] / target.all[0])
    check(abs(share - 1) < 0.2, f'a share: {of(result, "keep")} of {result.total}, {target.said}')


def slowed():
    """What is missing in the sums of a program that slices slow down."""
    program = f'{WORK.name}/computing'
    subprocess.run(['gcc', '-O1', '-x', 'c', '-o', program, '-'], input=COMPUTING, text=True, check=True)
    slices = slices_of(program)
    if not slices:
        print('skip: slowed: this kernel attaches probes one by one')
        return
    result, target, error, missing, text, _, ran_part = slices
    # Beside other programs, which make it wait for a CPU, more is missing.
    whole, bound = result.total / (1 - missing) / target.all[0], max(5 * error, 0.15)
    check(missing > 0.02 and whole < 1 + bound and (whole > 1 - bound or ran_part < 0.9),
          f'slowed: {result.total}, {missing} is missing, of {target.all[0]}; it ran {ran_part} of the time, {text}')


def leak_sliced():
    """Of a program that allocates too often to trace each call, in slices: the leak comes first, and what comes and goes is
    not in the result."""
    for program, nr in ((C,), 40), ((sys.executable, SOURCE_PY), 4):
        said = leak_of_busy(program, nr)
        # It depends on the kernel, not on the program.
        if program == (C,) and not said:
            print('skip: leak_sliced: this kernel attaches probes one by one')
            return
        check(program == (C,) or (said and 'half of the pages, or in slices less than a quarter, the source is pages' in said),
              f'{program}: when pages are the source: {said}')


def leak_of_busy(program, nr):
    """Return: what was said; None if slices were not possible, and nothing is judged."""
    limit, seconds = 4 / os.cpu_count(), 15
    with leaking(*program, nr=nr) as target:
        with sampling(BINARY, 'leak', '-p', target.pid, f'--max-overhead={limit}') as run:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                target.work()
                time.sleep(0.02)
    result = run.result
    said = ' '.join(line.removeprefix('stackbpf:').strip() for line in result.err.splitlines())
    if 'slices of time, or the source is pages' not in said:
        return None
    # On a busy machine, the program may get so little time that each call is traced. A burst may cost 5 s at the limit.
    cost = re.search(r'source: each call, traced; .* us each cost ([\d.e+-]+) % of all CPUs', said)
    is_cheap = cost and float(cost[1]) <= limit * (1 + 5 / seconds)
    check(('only in slices of time' in said or is_cheap) and of(result, 'churn') < 0.1 * result.total and
          of(result, 'much') > max(of(result, 'some'), of(result, 'little')) and float(result.facts.get('attached', 0)) < 0.5,
          f'{program}: the leak first: {result.stacks}, {result.facts}, {said}')
    return said


def of_ages(part, seconds, *rates):
    """Return: the result of slices for a program with memory of several ages, and what was said; None: there are no slices."""
    ages = f'{WORK.name}/{part}'
    subprocess.run(['gcc', '-O1', '-g', '-o', ages, SOURCE_AGES], check=True)
    with subprocess.Popen([ages, *rates], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as target:
        target.stdout.readline()
        time.sleep(1.5)
        result = stackbpf(BINARY, 'leak', '-p', str(target.pid), '-t', seconds, f'--max-overhead={4 / os.cpu_count()}', timeout=120)
        target.stdin.close()
    said = ' '.join(line.removeprefix('stackbpf:').strip() for line in result.err.splitlines())
    if 'slices' not in said:
        print(f'skip: {part}: this kernel attaches probes one by one')
        return None, said
    return result, said


def leak_ages():
    """Beside memory that is given back at once, after 2 ms, and after a second, which is longer than a slice: little of it is in
    the result of slices, and the shares of what leaks are right."""
    result, said = of_ages('leak_ages', '20', '4000', '10000', '10000', '20000', '1')
    if not result:
        return
    churn = of(result, 'churn') + of(result, 'churn_in')
    # A share that is estimated from n pieces, and that pieces of one slice have in common.
    by = 0.02 + 3 * math.sqrt(0.6 * 0.4 / max(int(result.facts.get('n', 0)), 1))
    leaked = result.total - churn
    # Without the estimate, churn has 70 to 75 % of the result. On a busy machine, the program may get so little time that each
    # call is traced.
    check('source: pages' not in said and churn < 0.1 * result.total and
          all(abs(of(result, name) - share * leaked) < by * leaked for name, share in SHARES.items()),
          f'within {by}: {result.stacks}, {result.facts}, {said}')


def leak_nothing():
    """Of a program that keeps each piece for a second, or not at all, and gives all of them back: that nothing leaks is the
    result, in place of the pages, whose first code is named."""
    for rates in ('0', '0', '0', '20000'), ('0', '20000', '0', '0'):
        result, said = of_ages('leak_nothing', '12', *rates, '1')
        check(not result or (result.status == 3 and not result.stacks and 'nothing that leaks was seen' in said and
                             'source: pages' not in said), f'nothing leaks: {rates}: {result}, {said}')
        # 20,000 pieces a second of 6 s, or what a busy machine leaves time for, in slices that take a part of that.
        seen = re.search(r'saw about (\d+) pieces of memory, so that a leak of less than one piece in (\d+) may', said)
        check(not seen or (25 <= int(seen[1]) <= 150000 and int(seen[2]) == int(seen[1]) // 3 + 1), f'a rare leak: {said}')
        check(not result or seen or 'source: each call' in said, f'what is not seen is told: {said}')


BURST = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static char *kept[40];
static __attribute__((noinline)) void keep(int i)
{
	kept[i] = malloc(1 << 18);
	memset(kept[i], 1, 1 << 18);
}
int main(int argc, char **argv)
{
	int i, nr = argc > 1 ? atoi(argv[1]) : 0;
	setlinebuf(stdout);
	puts("ready");
	getchar();
	for (i = 0; i < 40; i++)
		keep(i);
	puts("10485760 40 0 0 0 0 0 0");
	getchar();
	for (clock_t end = clock() + CLOCKS_PER_SEC * 2 / 5; clock() < end;)
		for (i = 0; i < 100; i++)
			free(malloc(1000));
	for (i = 0; i < nr; i++)
		free(kept[i]);
	puts("0 0 0 0 0 0 0 0");
	pause();
}
"""


def leak_burst():
    """A program gives all of its memory back, or nothing, right after it became too costly to trace it, and then the run ends: no
    slice has seen that, and what is given back is no leak."""
    program = f'{WORK.name}/burst'
    subprocess.run(['gcc', '-O0', '-g', '-x', 'c', '-o', program, '-'], input=BURST, text=True, check=True)
    for gives in 40, 0:
        with leaking(program, nr=gives) as target:
            with sampling(BINARY, 'leak', '-p', target.pid, f'--max-overhead={1 / os.cpu_count()}') as run:
                target.work()
                time.sleep(5)
                target.work()
        said = ' '.join(run.result.err.replace('stackbpf:', '').split())
        want = (40 - gives) << 18
        check('source: ' in said and 'above' in said and abs(of(run.result, 'keep') - want) < 1 << 20,
              f'of {want} bytes: {run.result.stacks}, {said}')
        check(gives or 'slices of time, or' not in said or ('source: calls of the first' in said and 'before the first slice' in said),
              f'no slice: {said}')


# Of what a program takes that is busy with allocating, however many CPUs there are.
BUSY_LIMIT = f'--max-overhead={60 / os.cpu_count()}'


def until_slice(target, is_so):
    """Slices are far apart if others allocate much. Return: whether it became so."""
    began, result = time.monotonic(), False
    while not result and time.monotonic() < began + 20:
        target.work()
        result = is_so()
    return result


def unhooked():
    """In slices, the file of the functions that give memory back cannot be hooked again: the source is pages from then on."""
    library = f'{WORK.name}/libc.so.6'
    shutil.copy(libc_path(), library)
    with leaking(C, nr=40, env={'LD_LIBRARY_PATH': WORK.name}) as target:
        with sampling(BINARY, 'leak', '-p', target.pid, f'--max-overhead={4 / os.cpu_count()}') as run:
            if 'slices' not in run.snapshot().err:
                print('skip: unhooked: this kernel attaches probes one by one')
                return
            end = time.monotonic() + 4
            while time.monotonic() < end:
                target.work()
            # It cannot run without its library.
            target.process.send_signal(signal.SIGSTOP)
            os.truncate(library, 0)
            wait_for(lambda: 'any more' in run.snapshot().err, 'the library is hooked again', 60)
        target.process.kill()
    said = ' '.join(run.result.err.replace('stackbpf:', '').split())
    check(run.result.status == 0 and 'source: pages' in said and 'because functions that give memory back cannot be probed any more' in said,
          f'unhooked: {run.result.status}, {run.result.facts}, {said}')


def machine():
    """Of all programs, in slices."""
    with leaking(C, '10', nr=3000) as target:
        with sampling(BINARY, 'alloc', '-a', BUSY_LIMIT) as run:
            until_slice(target, lambda: run.snapshot().total)
    result = stackbpf(BINARY, 'alloc', '-a', '--allocator', 'c', BUSY_LIMIT, '-t', '0.2')
    check('for a part of the time' in ' '.join(result.err.split()), f'-a --allocator: {result.status}, {result.err}')
    said = ' '.join(run.result.err.replace('stackbpf:', '').split())
    check(run.result.status == 0 and 'for a part of the time' in said and 'slices at random times' in said and
          run.result.total and 0 < float(run.result.facts['attached']) <= 1, f'-a: {run.result.status}, {run.result.facts}, {said}')
    said = ' '.join(stackbpf(BINARY, 'leak', '-a', '-t', '0.5', '--max-overhead=1').err.replace('stackbpf:', '').split())
    check('which reuses freed memory' in said and 'can tell more' not in said, f'-a: of no runtime of all programs what it can tell: {said}')


def stays(path, over):
    """Whether a mapping of a file's code has its bytes until the run is over: a breakpoint would be one that differs."""
    with open(path, 'rb') as file:
        want = file.read()
        mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    while not over.wait(0.001):
        if mapped[:] != want:
            return False
    return True


def libc_path():
    with open('/proc/self/maps', encoding='ascii') as file:
        return next(line.split()[-1] for line in file if '/libc.so' in line)


def replaced():
    """A program's file gives way to another one during the run, or is deleted: what was found in it is hooked nowhere else,
    and seen on."""
    program, other = f'{WORK.name}/gives_way', f'{WORK.name}/other'
    for how in 'replaced', 'deleted':
        subprocess.run(['gcc', '-O1', '-g', '-static', '-o', program, SOURCE], check=True)
        over = threading.Event()
        with leaking(program, '10', nr=3000) as target, concurrent.futures.ThreadPoolExecutor() as pool:
            with sampling(BINARY, 'alloc', '-a', BUSY_LIMIT) as run:
                if how == 'replaced':
                    shutil.copy(libc_path(), other)
                    os.rename(other, program)
                    looking = pool.submit(stays, program, over)
                else:
                    os.unlink(program)
                    looking = None
                is_seen = until_slice(target, lambda run=run: of(run.snapshot(), 'keep'))
                over.set()
        check(run.result.status == 0 and is_seen, f'{how}: {run.result.status}, {run.result.facts}, {run.result.err}')
        check(not looking or looking.result(), f'{how}: the other file has its bytes')


def cut():
    """A file that cannot be hooked again is left out, which is told, and the run goes on."""
    library = f'{WORK.name}/libc.so.cut'
    shutil.copy(libc_path(), library)
    with open(library, 'rb') as file:
        mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    with leaking(C, '10', nr=3000) as target:
        # Below what the target costs on an idle machine, too: else the probes stay, and none is attached again.
        with sampling(BINARY, 'alloc', '-a', '--max-overhead=3') as run:
            mapped.close()
            os.truncate(library, 0)
            until_slice(target, lambda: 'any more' in run.snapshot().err)
    said = ' '.join(run.result.err.replace('stackbpf:', '').split())
    check(run.result.status == 0 and said.count('are not traced any more') == 1,
          f'cut: {run.result.status}, {run.result.facts}, {said}')


def recorded():
    """What programs with the library allocate is in the store, as an estimate of the bytes and with their stacks."""
    store = f'{WORK.name}/recorded'
    with leaking(C, nr=400, env=SAMPLED) as target:
        with recording(store, '--kinds', 'alloc', '-p', target.pid) as recorder:
            target.work()
            written(recorder)
            status = recorder.end()
    result = ask(store, 'comm', kind='alloc')
    nr = int(result.facts['n'])
    check(status == 0 and result.facts['unit'] == 'bytes' and nr > 1000 and is_near(result.total, target.all[0], nr),
          f'record: {status}, {result.total} of {target.all[0]} by {nr} samples, {result.facts}, {recorder.said}')
    check(is_near(of(result, 'churn'), target.said[6] - 400 * (256 + 200 * 10), nr / 2) and are_shares(result, 0.1),
          f'record: by caller: {result.stacks}')


def kernel():
    """Memory of the kernel: objects by kmem_cache_alloc() and kmalloc(), and pages."""
    nr = 600  # an eventfd is a file, too
    for view, layer, name in (('heap', 'slab', 'hold_files'), ('heap', 'kmalloc', 'hold_eventfds'), ('leak', 'pages', 'hold_pages')):
        with leaking(sys.executable, KERNEL_PY, nr=nr) as target:
            with sampling(BINARY, view, '-p', target.pid, '--layer', layer, '--objects', '--max-overhead=off') as run:
                began, before = time.monotonic(), len(os.listdir(f'/proc/{target.pid}/fd'))
                target.work()
                files = len(os.listdir(f'/proc/{target.pid}/fd'))
                if view == 'leak':
                    time.sleep(3 * (time.monotonic() - began) + 0.3)
            result = run.result
        kept, gone = of(result, name), of(result, 'churn')
        # A file has an object of the security modules, too; pages and slabs are taken for other objects. What
        # is closed last is given back a while later (RCU), and what is given back within a probe is lost, and told.
        each = round(kept / nr)
        check(1 <= each <= 3 and abs(kept / nr / each - 1) < 0.2 and gone < 0.05 * 10 * nr,
              f'{view} --layer {layer}: {kept} of {nr}, {gone} of {10 * nr} that went, {result.facts}, {result.err}')
        if layer == 'slab':
            check(files - before == 2 * nr, f'it has {files - before} more files')
    with leaking(sys.executable, KERNEL_PY, nr=nr) as target:
        with sampling(BINARY, 'alloc', '-p', target.pid, '--layer', 'kmalloc', '--objects') as run:
            target.work()
    call = f"__{'arm64' if platform.machine() == 'aarch64' else 'x64'}_sys_eventfd2"
    ratio = of(run.result, 'churn', call) / max(1, of(run.result, 'hold_eventfds', call))
    check(9 < ratio < 11, f'what is allocated: {ratio} times as many come and go, {run.result.err}')


SMALL = """
import sys
kept = []
print('ready', flush=True)
for _ in sys.stdin:
    kept.append([float(i) for i in range(200000)])
    print(*[0] * 8, flush=True)
"""


def traced():
    """Under a limit: each call, as long as that costs less."""
    result, early, target = leaks_early('leak', '--max-overhead=1', command=(C, '10', '200'), nr=50000)
    said = ' '.join(result.err.replace('stackbpf:', '').split())
    check(result.total == early and are_shares(result, 0.001), f'each call: {result.total} of {early}, {result.stacks}, {said}')
    hits = int(re.search(r'came to probes (\d+) times,', said)[1])
    rate, each, cost = map(float, re.search(r'came to probes (\d+) times a second, which at ([\d.]+) us each cost ([\d.]+) % of', said).groups())
    seconds = int(result.facts['dur_us']) / 1e6
    check(abs(rate * seconds / hits - 1) < 0.2 and abs(rate * each / 1e4 / os.cpu_count() / cost - 1) < 0.1 and hits >= target.all[1],
          f'its cost: {hits} in {seconds} s, {rate} a second, {each} us each, {cost} %')
    check('source: each call, traced' in said and 'not seen' in said, f'the source is told: {said}')


TOUCH = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(void)
{
	const size_t size = 256 << 20;
	char *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	madvise(mapped, size, MADV_NOHUGEPAGE);
	setlinebuf(stdout);
	puts("ready");
	while (getchar() != EOF) {
		char *volatile piece = malloc(1000);

		piece[0] = 1;
		for (i = 0; i < 4; i++) {
			for (size_t at = 0; at < size; at += 4096)
				mapped[at] = 1;
			madvise(mapped, size, MADV_DONTNEED);
		}
		puts("1000 1 0 0 0 0 0 0");
	}
	return 0;
}
"""


def command():
    """Of a command and what it starts: what each process held when it ended."""
    script = f'for i in 1 2; do echo | {C} 40; done'
    for view, limit in ('heap', 'off'), ('leak', 'off'), ('heap', '0.001'), ('leak', '0.001'):
        result = stackbpf(BINARY, view, f'--max-overhead={limit}', '-s', '--', 'sh', '-c', f'({script}) > {WORK.name}/said; sleep {limit == "off" and 2.5 or 0}')
        with open(f'{WORK.name}/said', encoding='ascii') as said:
            leaked = sum(int(word) for line in said if line[0].isdigit() for word in line.split()[0:6:2])
        kept = of(result, 'keep')
        is_right = kept == leaked if view == 'heap' else 0 <= kept <= leaked
        check(is_right if limit == 'off' else view == 'leak' or of(result, '[held at its end]') > 0,
              f'{view} of a command, limit {limit}: {kept} of {leaked}, {result.stacks}, {result.err}')


def command_alone():
    """Functions are hooked in the address space of the command, which execve(2) gives it: others do not trap."""
    path = f'{WORK.name}/line'
    with open(path, 'w', encoding='ascii') as line:
        line.write('\n')
    with subprocess.Popen([C, '1', '10', '0', str(1 << 40)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as busy:
        busy.stdin.write(b'\n')
        busy.stdin.flush()
        result = stackbpf(BINARY, 'heap', '--', 'sh', '-c', f'exec {C} 40 < {path} > {WORK.name}/said')
        busy.kill()
    with open(f'{WORK.name}/said', encoding='ascii') as said:
        words = [int(word) for word in said.read().split()[1:]]
    hits = int(re.search(r'came to probes (\d+) times,', ' '.join(result.err.replace('stackbpf:', '').split()))[1])
    check(of(result, 'keep') == sum(words[0:6:2]) and hits < 3 * sum(words[1::2]),
          f'heap of a command: {of(result, "keep")}, {hits} hits of {words}, {result.err}')
    # With its children, and of two processes, all programs trap, which is said.
    two = f'{os.getpid()},{os.getppid()}'
    for said, options in (False, ('--', 'true')), (True, ('-s', '--', 'true')), (False, ('-p', str(os.getpid()))), (True, ('-p', two)):
        result = stackbpf(BINARY, 'heap', '-t', '100ms', *options)
        check(('programs that are no targets' in ' '.join(result.err.split())) == said, f'heap {options}: {result.err}')


def told_early():
    """A run that ends before its time, and one that is asked before its end."""
    for time_s in ('60',), ():
        with leaking(C, nr=40) as target:
            with sampling(BINARY, 'heap', *time_s and ('-t', *time_s), '-p', target.pid) as run:
                target.work()
                middle = run.snapshot()
                target.work()
            check(middle.total == 0 and 'when the run ends' in middle.err, f'-t {time_s}: a snapshot: {middle.total}, {middle.err}')
            check(run.result.total == target.leaked[0], f'-t {time_s}: {run.result.total} of {target.leaked}')
    result, early, _ = leaks_early('leak', '-t', '60', command=(C,), nr=40)
    check(result.total == early and are_shares(result, 0.001), f'half of a run that ended early: {result.total} of {early}')


def touching():
    """What pages cost that are followed beside is no cost of calls."""
    program = f'{WORK.name}/touch'
    subprocess.run(['gcc', '-O1', '-g', '-x', 'c', '-o', program, '-'], input=TOUCH, text=True, check=True)
    result, _ = ran('heap', '--max-overhead=1', command=(program,))
    said = ' '.join(result.err.replace('stackbpf:', '').split())
    check(result.total == 1000 and 'source: each call, traced' in said, f'1 GiB touched: {result.total}, {said}')


# 6,000 pairs a second, of which each costs 5 us: for a short run, that is not too much for so long that it is given up.
BUSY = """
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	for (;;) {
		for (int i = 0; i < 300; i++)
			free(malloc(1000));
		(void)!malloc(1000);
		usleep(50000);
	}
}
"""


def above_for_a_while():
    """What tracing cost is compared with the limit as it was."""
    program = f'{WORK.name}/busy'
    subprocess.run(['gcc', '-O0', '-x', 'c', '-o', program, '-'], input=BUSY, text=True, check=True)
    with subprocess.Popen([program]) as target:
        result = stackbpf(BINARY, 'heap', '--max-overhead=1', '-p', str(target.pid), '-t', '1500ms')
        target.kill()
    said = ' '.join(result.err.replace('stackbpf:', '').split())
    cost, is_so = re.search(r'us each costs? ([\d.e-]+) % of all CPUs, (above|below) 1 %', said).groups()
    check((float(cost) > 1) == (is_so == 'above'), f'{cost} % is {is_so} 1 %: {said}')


def traced_in_vain():
    """Pages take over if calls become too many, or explain too little."""
    with leaking(sys.executable, '-c', SMALL) as target:
        with sampling(BINARY, 'heap', '--max-overhead=5', '--stats', '-p', target.pid) as run:
            target.work()
    said = ' '.join(run.result.err.replace('stackbpf:', '').split())
    calls, pages = map(float, re.search(r'were traced explain ([\d.]+) MB, and pages ([\d.]+) MB', said).groups())
    check(1 < calls < 3 and 6 < pages < 12 and abs(run.result.total / 1e6 / pages - 1) < 0.02 and run.result.share('<listcomp>') > 0.9,
          f'objects of Python: {calls} of {pages} MB, {run.result.total}, {said}')
    check('Python keeps objects of up to 512 bytes in a heap of its own; the runtime itself can tell more, by' in said and
          'tracemalloc' in said and 'pages do not show which code holds' in said and '--max-overhead off to trace' not in said,
          f'what to do instead: {said}')


def peers():
    """Other tools' accounts of runs in which the program does the same: heaptrack and massif see each call, jemalloc's profiler
    takes samples. It has a run of its own because it walks stacks while a probed function's return address is the kernel's."""
    path, nr = f'{WORK.name}/peer', 500
    result, target = ran('heap', '--max-overhead=off', nr=nr)
    ours = heap_peers.shares_of(result.stacks.items())
    check(sum(ours.values()) == target.leaked[0], f'peers: {ours} of {target.said}')
    for name, tool, bound in ('heaptrack', heap_peers.heaptrack, 0), ('valgrind', heap_peers.massif, 0.01):
        if not shutil.which(name):
            print(f'skip: peers: there is no {name}')
            continue
        command, account = tool(f'{WORK.name}/{name}')
        once(*command, C, str(nr))
        agrees(name, ours, account(), bound)
    library = next(iter(glob.glob('/usr/lib/*/libjemalloc.so.2')), None)
    if library:
        once(C, str(nr), env=heap_peers.jemalloc(library, path, 10))
    if glob.glob(f'{path}*.heap'):
        # Two thousand samples, and sizes of classes, which are up to a quarter more than what was asked for.
        agrees('jemalloc', ours, heap_peers.by_jemalloc(C, path, 10), 0.25)
    else:
        print('skip: peers: there is no libjemalloc.so.2 with its profiler')


def once(*command, env=None):
    subprocess.run(command, input='\n', text=True, env={**os.environ, **(env or {})}, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def agrees(name, ours, theirs, bound):
    shares = [(ours[one] / sum(ours.values()), theirs[one] / max(1, sum(theirs.values()))) for one in heap_peers.NAMES]
    check(abs(sum(theirs.values()) / sum(ours.values()) - 1) <= bound and all(abs(a - b) <= min(bound, 0.05) for a, b in shares),
          f'{name}: {dict(theirs)}, and by us {dict(ours)}')


def settled():
    """By pages: a heap that has its size does not grow any more."""
    result, _, _ = leaks_early('leak', '--max-overhead=5', command=(sys.executable, '-c', SMALL.replace('200000', '200000 * (not kept)')), nr=1)
    said = ' '.join(result.err.replace('stackbpf:', '').split())
    rate = float(re.search(r'grows by ([\d.]+) MB a minute', said)[1]) * 1e6 / 60e6
    grown = rate * int(result.facts['dur_us'])
    check('source: pages' in said and abs(grown / result.total - 1) < 0.25, f'settled: {grown} of {result.total}, {said}')


def by_pages():
    """When calls cost too much: what is told then, and that pages are right where a heap recycles nothing."""
    env = {'MALLOC_MMAP_THRESHOLD_': '65536'}
    for view in 'leak', 'heap':
        result, early, target = leaks_early(view, '--max-overhead=2', command=(C, '10', '100000', '0'), nr=100000, env=env)
        want = early if view == 'leak' else target.leaked[0]
        # Where the run was thinned, one in so many windows of 64 KiB was followed, and all else is chance.
        thinned = re.search(r'one in (\d+) windows', ' '.join(result.err.replace('stackbpf:', '').split()))
        chance = 5 * math.sqrt(0.25 * int(thinned[1]) * 65536 / want) if thinned else 0
        check(abs(result.total / want - 1) < max(0.03, 2 * chance) and result.facts['kind'] == view and
              are_shares(result, max(0.02, chance)) and of(result, 'churn') < 0.02 * result.total,
              f'{view} by pages: {result.total} of {want}, {result.stacks}, {result.err}')
        said = ' '.join(result.err.replace('stackbpf:', '').split())
        cost, limit = map(float, re.search(r'us each costs ([\d.]+) % of all CPUs, above ([\d.]+) %', said).groups())
        check(limit == 2 and cost > limit and 'who holds it now is not seen' in said and '--max-overhead off' in said,
              f'the source is told: {said}')
        check(('slices of time, or the source is pages' in said) == ('saw too little of what is held: sample longer' in said),
              f'{view}: why not slices: {said}')
        check((view == 'leak') == ('a minute' in result.err), f'{view}: its growth: {result.err}')
    result = stackbpf(BINARY, 'top', '--kind', 'leak', '-b', '-p', str(os.getpid()), '--max-overhead=1')
    check(result.status == 2 and 'amounts and no rates' in result.err, f'top: {result.status}, {result.err}')


def refused():
    with leaking(C) as target:
        for view, args, why in (('heap', ('-p', target.pid, '--objects'), 'needs allocations'),
                                ('heap', ('-p', target.pid, '--allocator', 'c'), 'libstackbpf-alloc.so preloaded')):
            result = stackbpf(BINARY, view, '--max-overhead=1', '-t', '1', *args)
            check(result.status == 2 and why in result.err, f'{view} {args}: {result.status}, {result.err}')
    result = stackbpf(BINARY, 'record', '--store', f'{WORK.name}/store', '--kinds', 'heap')
    check(result.status == 2 and 'known at the end of a run' in result.err, f'record: {result.status}, {result.err}')
    # Where nothing samples allocations, the other kinds are recorded.
    with recording(f'{WORK.name}/others', '--kinds', 'alloc,offcpu', '-p', str(os.getpid())) as recorder:
        written(recorder)
        check(recorder.end() == 0 and "'alloc' is not recorded: no process has" in recorder.said, f'record: {recorder.said}')
    check(ask(f'{WORK.name}/others', 'comm', kind='offcpu').total > 0, 'record: the other kind')
    result = stackbpf(BINARY, 'alloc', '-t', '1', '--allocator', '/bin/true', '-p', str(os.getpid()))
    check(result.status == 2 and '--allocator FILE' in result.err, f'a file without allocator: {result.status}, {result.err}')


def formats():
    """By the names that pprof has for them."""
    for view, args, kind in (('alloc', (), b'alloc_space'), ('alloc', ('--objects',), b'alloc_objects'),
                             ('heap', (), b'inuse_space'), ('heap', ('--objects',), b'inuse_objects')):
        path = f'{WORK.name}/{view}{len(args)}.pb.gz'
        ran(view, '-o', path, *args, env=SAMPLED, nr=200)
        with gzip.open(path) as file:
            check(kind in file.read(), f'{view} {args}: {kind}')


run_parts((refused, exact, held, operator_new, other_allocators, python, runtimes, sampled, command, command_alone, told_early, touching, above_for_a_while, traced_in_vain, sliced, slowed, leak_sliced, leak_nothing, leak_burst, unhooked, machine, replaced, cut, kernel, formats, peers), sys.argv[12:],
          waiting=(leak, leak_ages, traced, settled, by_pages, recorded))
done()
