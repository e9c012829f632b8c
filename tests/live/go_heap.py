#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""leak and heap of programs of Go, by the profile that these keep themselves, beside what that says in the programs' own words.

go_heap.py STACKBPF LEAKS_GO LEAKS_PROFILE_GO [PART...]
"""
import contextlib
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import beside
from live import Result, check, done, need_root, run_parts, sampling, skip, stackbpf, wait_for

need_root()
if not shutil.which('go'):
    skip('there is no go')
BINARY, SOURCE, PROFILE = sys.argv[1:4]
WORK = tempfile.TemporaryDirectory()
SHARES = {'much': 0.6, 'some': 0.3, 'little': 0.1}
RATE = 4096  # bytes of a sample, on average


def built(name, *args, goroot=''):
    path = f'{WORK.name}/{name}'
    env = {**os.environ, 'GOROOT': goroot, 'GOTOOLCHAIN': 'local', 'GO111MODULE': 'off'} if goroot else None
    subprocess.run([f'{goroot}/bin/go' if goroot else 'go', 'build', '-o', path, *args], check=True, env=env)
    return path


PROGRAM = built('leaks', SOURCE, PROFILE)
# One object in 20 stays, of the same code; and a cache is full from the beginning.
SOME = r"""
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte
var full [100000][]byte

func inlined() []byte { return make([]byte, 1000) }

//go:noinline
func parse() []byte { return inlined() }

//go:noinline
func cache(i int) { full[i%len(full)] = make([]byte, 500) }

func main() {
	runtime.MemProfileRate = 16384
	if len(os.Args) > 2 {
		pprof.WriteHeapProfile(os.Stdout)
	}
	in := bufio.NewScanner(os.Stdin)
	i := 0
	for fmt.Println("ready"); in.Scan(); fmt.Println(1024 * len(kept)) {
		for k := 0; k < 100000; k++ {
			piece := parse()
			if i%20 == 0 {
				kept = append(kept, piece)
			}
			cache(i)
			i++
		}
	}
}
"""


class Leaking:
    """A program that leaks all the time, beside ten times as much that comes and goes."""

    def __init__(self, path, rate):
        self.process = subprocess.Popen([path, '500'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, 'RATE': str(rate)})
        self.process.stdout.readline()
        self.pid = str(self.process.pid)
        self.ends = False
        self.said = []
        self.worker = threading.Thread(target=self._work)

    def ask(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def _work(self):
        while not self.ends:
            words = [int(word) for word in self.ask('')]
            self.said.append((time.monotonic(), sum(words[0:6:2])))
            time.sleep(0.02)

    def leaked(self, since, until):
        """Bytes between two times."""
        at = [max((kept for when, kept in self.said if when <= end), default=0) for end in (since, until)]
        return at[1] - at[0]

    def in_use(self):
        """By function, in bytes, as the program's own profile and pprof have it."""
        path = f'{WORK.name}/heap.pb.gz'
        self.ask(path)
        text = subprocess.run(['go', 'tool', 'pprof', '-sample_index=inuse_space', '-unit=b', '-top', '-cum', PROGRAM, path],
                              capture_output=True, text=True, check=True).stdout
        return {name: int(bytes) for bytes, name in re.findall(r'(\d+)B +[\d.]+% +main\.(\w+)\n', text)}


@contextlib.contextmanager
def leaking(path=PROGRAM, rate=RATE):
    target = Leaking(path, rate)
    try:
        target.ask('')
        target.worker.start()
        yield target
    finally:
        target.ends = True
        target.worker.join()
        target.process.kill()
        target.process.communicate()


def said_by(result):
    return ' '.join(result.err.replace('stackbpf:', '').split())


def ran(view, target, seconds=6):
    with sampling(BINARY, view, '-p', target.pid) as run:
        began = time.monotonic()
        time.sleep(seconds)
    target.ends = True
    target.worker.join()
    return run.result, began, said_by(run.result)


def of(result, name):
    return sum(weight for stack, weight in result.stacks.items() if f'main.{name}' in stack)


def are_shares(parts):
    """Of bytes. Those that a busy machine leaves a program to allocate are few samples."""
    total = sum(parts.values())
    return total >= 200 * RATE and all(abs(parts[name] / total - share) < max(0.02, 5 * math.sqrt(share * (1 - share) / (total / RATE)))
                         for name, share in SHARES.items())


def leak():
    """The three functions that leak, with what they leak, and nothing else."""
    with leaking() as target:
        result, began, said = ran('leak', target)
    parts = {name: of(result, name) for name in SHARES}
    check(f'which samples one allocation in {RATE} bytes' in said, f'the source is told: {said}')
    check(are_shares(parts) and of(result, 'churn') < 0.02 * result.total and 'main.much' in max(result.stacks, key=result.stacks.get),
          f'the leak is first: {result.stacks}, {said}')
    early = float(re.search(r'allocated in the first ([\d.]+) s and has outlived', said)[1])
    truth = target.leaked(began, began + early)
    check(1.5 <= early <= 4 and abs(sum(parts.values()) / truth - 1) < 0.25, f'so much: {parts} of {truth} in {early} s')
    check(re.search(r' sampled allocations, \d+ stacks, 1 process in', said), f'by what: {said}')
    check('a minute' in result.err, f'with its growth: {said}')


def some():
    """Code of which most is given back leaks what stays. A cache that is full does not leak."""
    source = f'{WORK.name}/some.go'
    with open(source, 'w', encoding='ascii') as file:
        file.write(SOME)
    with leaking(built('some', source)) as target:
        result, began, said = ran('leak', target)
    early = float(re.search(r'allocated in the first ([\d.]+) s and has outlived', said)[1])
    truth = target.leaked(began, began + early)
    check(abs(of(result, 'parse') / truth - 1) < 0.4 and of(result, 'cache') < 0.15 * of(result, 'parse'),
          f'one of 20: {result.stacks}, {truth} in {early} s, {said}')
    check(all(stack.count('main.parse') == stack.count('main.inlined') == 1 for stack in result.stacks if 'main.parse' in stack),
          f'inlined calls once: {list(result.stacks)}')


def heap():
    """What came and is in use, as the program tells itself."""
    with leaking() as target:
        result, _, said = ran('heap', target)
        held = target.in_use()
    parts = {name: of(result, name) for name in SHARES}
    check('source: Go\'s own heap profile' in said and 'after the last garbage collection' in said, f'the source is told: {said}')
    check(are_shares(parts) and are_shares({name: held[name] for name in SHARES}), f'in use: {result.stacks}, {held}')
    check(sum(parts.values()) <= 1.05 * sum(held[name] for name in SHARES), f'no more than there is: {parts}, {held}')


def newest():
    """The buckets of Go 1.27 have another layout."""
    try:
        root = beside.unpack('sid', ['golang-1.27-go'])
    except beside.Missing as error:
        return print(f'left out: there is no Go 1.27: {error}')
    with leaking(built('newest', SOURCE, PROFILE, goroot=f'{root}/usr/lib/go-1.27')) as target:
        result, _, said = ran('heap', target)
    parts = {name: of(result, name) for name in SHARES}
    check('source: Go\'s own heap profile' in said and are_shares(parts), f'Go 1.27: {parts}, {said}')


def command():
    """Of a program that the run starts, all that it holds came in the run."""
    path = f'{WORK.name}/command.folded'
    run = subprocess.Popen([BINARY, 'heap', '-t', '4', '--max-overhead=1', '-o', path, '--', PROGRAM, '500'], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, 'RATE': str(RATE)})
    run.stdin.write('\n' * 12)
    run.stdin.flush()
    said = [run.stdout.readline() for _ in range(13)][-1]
    wait_for(lambda: os.path.exists(path), 'the result')
    err = run.communicate()[1]
    with open(path, encoding='utf-8') as file:
        result = Result(0, file.read(), err)
    kept = sum(int(word) for word in said.split()[0:6:2])
    parts = {name: of(result, name) for name in SHARES}
    # What came since the last collection, after which the heap may double, is not seen.
    check(are_shares(parts) and 0.4 * kept < sum(parts.values()) < 1.1 * kept, f'a command: {parts} of {kept}, {err}')


def without():
    """Why there is no profile, for each way of not having one; the source is pages then."""
    for path, rate, why in ((built('plain', SOURCE), RATE, 'nothing in the program refers to runtime.MemProfile; import net/http/pprof'),
                            (built('stripped', '-ldflags=-s', SOURCE, PROFILE), RATE, 'the program has no symbols that say where it is'),
                            (PROGRAM, 0, 'has set runtime.MemProfileRate to 0')):
        with leaking(path, rate) as target:
            result, _, said = ran('leak', target, 2)
        check('Go\'s own heap profile is not the source:' in said and why in said and result.stacks, f'{why}: {said}')


def idle():
    """Without a collection nothing is known of what came: pages are the source."""
    with leaking() as target:
        target.ends = True
        target.worker.join()
        result = stackbpf(BINARY, 'leak', '-t', '2', '-p', target.pid)
    check('too few garbage collections ended in the run' in said_by(result), f'idle: {result.err}')


run_parts((leak, some, heap, newest, command, without, idle), sys.argv[4:])
done()
