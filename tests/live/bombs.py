#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs whose files are made to exhaust whoever reads them, below a sampler that may have as much memory as its unit.

bombs.py STACKBPF UNIT [PART...]

Each part runs hostile programs of user nobody beside an honest one. The run ends by itself and is not killed for its
memory, it takes no more CPU time than a share of its length, the honest program keeps its names, and the report says
that names were given up.
"""
import contextlib
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile

from live import Result, check, done, memory_cgroup, need_root, run_parts, running, skip, ungoverned

need_root()
BINARY, UNIT = sys.argv[1:3]
SECONDS = 4
# Of the run: reading honest files and drawing up the result takes about a tenth of it.
CPU_SHARE_MAX = 1.0
NOBODY = 65534
MIB = 1 << 20

SPINNER = r'''
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <stdio.h>
static volatile unsigned long sink;
__attribute__((noinline)) void honest_work(void) { for (int i = 0; i < 1000000; i++) sink += i; }
int main(int argc, char **argv)
{
	unsigned char loop[] = { 0xff, 0xc9, 0x75, 0xfc, 0xc3 }; /* dec ecx; jnz; ret */
	void (*code)(int, int, int, int) = NULL;
	if (argc > 1) {
		code = mmap((void *)0x10000000, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		memcpy(code, loop, sizeof(loop));
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		if (argc > 1)
			code(0, 0, 0, 1000000);
		honest_work();
	}
}
'''

SLEEPER = r'''
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void honest_work(void) { usleep(10000); }
int main(void) { puts("ready"); fflush(stdout); for (;;) honest_work(); }
'''

# Each wait has a stack of its own: 32 calls, to the left or to the right.
STACKS = r'''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
static void leaf(void) { struct timespec t = { 0, 300000 }; nanosleep(&t, NULL); }
__attribute__((noinline)) void left(unsigned long path, int depth);
__attribute__((noinline)) void right(unsigned long path, int depth)
{ if (!depth) leaf(); else if (path & 1) left(path >> 1, depth - 1); else right(path >> 1, depth - 1); sink++; }
__attribute__((noinline)) void left(unsigned long path, int depth)
{ if (!depth) leaf(); else if (path & 1) left(path >> 1, depth - 1); else right(path >> 1, depth - 1); sink++; }
static void *work(void *arg)
{
	unsigned int seed = (unsigned long)arg;
	for (;;)
		left((unsigned long)rand_r(&seed) << 20 ^ rand_r(&seed), 32);
}
int main(void)
{
	pthread_t thread;
	for (long i = 1; i < 5; i++)
		pthread_create(&thread, NULL, work, (void *)i);
	puts("ready");
	fflush(stdout);
	work(NULL);
}
'''


class Elf:
    """Section headers of a 64-bit file, to be read and rewritten."""

    def __init__(self, path):
        self.path = path
        with open(path, 'rb') as file:
            self.data = bytearray(file.read())
        self.shoff, = struct.unpack_from('<Q', self.data, 0x28)
        self.shnum, shstrndx = struct.unpack_from('<2H', self.data, 0x3c)
        names = self.header(shstrndx)[4]
        self.names = [self.data[names + self.header(i)[0]:].split(b'\0', 1)[0].decode() for i in range(self.shnum)]

    def header(self, i):
        return list(struct.unpack_from('<IIQQQQIIQQ', self.data, self.shoff + 64 * i))

    def place(self, name, offset, size):
        i = self.names.index(name)
        header = self.header(i)
        header[4:6] = [offset, size]
        struct.pack_into('<IIQQQQIIQQ', self.data, self.shoff + 64 * i, *header)

    def address(self, symbol):
        """Value and section of a function."""
        symtab, strtab = (self.header(self.names.index(name)) for name in ('.symtab', '.strtab'))
        for at in range(symtab[4], symtab[4] + symtab[5], 24):
            name, _, _, section, value, _ = struct.unpack_from('<IBBHQQ', self.data, at)
            if self.data[strtab[4] + name:].split(b'\0', 1)[0].decode() == symbol:
                return value, section
        raise AssertionError(symbol)

    def write(self, tail=b'', size=0):
        with open(self.path, 'wb') as file:
            file.write(self.data + tail)
            if size:
                file.truncate(size)


def build(path, source=SPINNER):
    subprocess.run(['gcc', '-O1', '-g0', '-x', 'c', '-', '-w', '-pthread', '-o', path], input=source, text=True, check=True)
    return path


def sparse(path):
    """20 KB on the disk, and string tables of 512 MiB."""
    elf = Elf(build(path))
    end = len(elf.data)
    # No symbol of the first table is of code, so that the second one is read as well.
    elf.place('.symtab', elf.header(elf.names.index('.symtab'))[4], 24)
    elf.place('.strtab', end, 512 * MIB)
    elf.place('.dynstr', end, 512 * MIB)
    elf.write(size=end + 513 * MIB)


def million(path, source=SPINNER):
    """A million symbols of one address, whose names are long and the same to far beyond what is compared."""
    elf = Elf(build(path, source))
    value, section = elf.address('honest_work')
    nr = 1_000_000
    end = len(elf.data)
    symbols = b''.join(struct.pack('<IBBHQQ', 1 + i, 0x12, 0, section, value, 64) for i in range(nr))
    elf.place('.symtab', end, len(symbols))
    elf.place('.strtab', end + len(symbols), nr + 4096)
    elf.write(symbols + b'\0' + b'_' * (nr + 4094) + b'\0')


def unit_memory():
    with open(UNIT, encoding='utf-8') as file:
        found = re.search(r'^MemoryMax=(\d+)([MG])$', file.read(), re.M)
    return int(found[1]) * {'M': MIB, 'G': 1024 * MIB}[found[2]]


def sample(work, *more):
    """One run in a cage. Return: its result, its CPU time, its peak of resident memory."""
    with memory_cgroup(unit_memory()) as procs, open(f'{work}/out', 'w+', encoding='utf-8', errors='replace') as out, \
            open(f'{work}/err', 'w+', encoding='utf-8', errors='replace') as err:
        if not procs:
            skip('no cgroup can be given a memory limit here')

        def join():
            with open(procs, 'w', encoding='ascii') as file:
                file.write('0')
        command = [BINARY, *ungoverned(['oncpu', '-t', str(SECONDS), '--stats', *more])]
        process = subprocess.Popen(command, stdout=out, stderr=err, preexec_fn=join)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Result(process.returncode, out.read(), err.read()), usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def judge(name, work, pids):
    result, cpu, peak_kib = sample(work, *(arg for pid in pids for arg in ('-p', str(pid))))
    check(result.status == 0, f'{name}: exit status {result.status} {result.err[-300:] if result.status else ""}')
    check(cpu <= CPU_SHARE_MAX * SECONDS, f'{name}: {cpu:.1f} s of CPU time in a run of {SECONDS} s')
    check(peak_kib * 1024 <= unit_memory() * 3 // 4, f'{name}: {peak_kib // 1024} MiB at most')
    check(result.share('honest_work', 'honest') > 0.9,
          f'{name}: the honest program has its names: {result.share("honest_work", "honest"):.2f}')
    return result


def spinners(stack, path, nr, *args):
    """Some of user nobody, ready."""
    pids = []
    for _ in range(nr):
        process = stack.enter_context(running(path, *args, stdout=subprocess.PIPE, user=NOBODY, text=True))
        process.stdout.readline()
        pids.append(process.pid)
    return pids


def laid_out(work):
    os.chmod(work, 0o755)
    return build(f'{work}/honest')


def sparse_file():
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        honest = laid_out(work)
        sparse(f'{work}/bomb')
        os.chmod(f'{work}/bomb', 0o755)
        os.chown(f'{work}/bomb', NOBODY, NOBODY)
        pids = spinners(stack, honest, 1) + spinners(stack, f'{work}/bomb', 2)
        result = judge('string tables of 512 MiB', work, pids)
        check('limit' in result.err, 'string tables of 512 MiB: it says that names were given up')


def million_symbols():
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        honest = laid_out(work)
        million(f'{work}/bomb')
        os.chmod(f'{work}/bomb', 0o755)
        os.chown(f'{work}/bomb', NOBODY, NOBODY)
        pids = spinners(stack, honest, 1) + spinners(stack, f'{work}/bomb', 1)
        judge('a million equal names', work, pids)


def perf_maps():
    nr = 20
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        honest = laid_out(work)
        line = '%x 10 ' + 'x' * 60 + '\n'
        with open(f'{work}/map', 'w', encoding='ascii') as file:
            file.writelines(line % (0x10000000 + 16 * i) for i in range(65 * MIB // 77))
        os.chown(f'{work}/map', NOBODY, NOBODY)
        pids = spinners(stack, honest, 1)
        jits = spinners(stack, build(f'{work}/jit'), nr, 'jit')
        for pid in jits:
            os.link(f'{work}/map', f'/tmp/perf-{pid}.map')
            stack.callback(os.unlink, f'/tmp/perf-{pid}.map')
        result = judge('twenty links to one perf map', work, pids + jits)
        check(result.share('x' * 60) > 0.1, 'twenty links to one perf map: its names are used')


def slow_names():
    """Files whose symbols take seconds to load, beside waits of new stacks: these go on to be read meanwhile."""
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        os.chmod(work, 0o755)
        stacks = spinners(stack, build(f'{work}/stacks', STACKS), 1)
        bombs = []
        for i, owner in enumerate((NOBODY, NOBODY, NOBODY - 1, NOBODY - 1)):
            million(f'{work}/bomb{i}', SLEEPER)
            os.chmod(f'{work}/bomb{i}', 0o755)
            os.chown(f'{work}/bomb{i}', owner, owner)
            bombs += spinners(stack, f'{work}/bomb{i}', 1)
        pids = [arg for pid in stacks + bombs for arg in ('-p', str(pid))]
        process = subprocess.run([BINARY, *ungoverned(['offcpu', '-t', str(SECONDS), '--stats', *pids])],
                                 capture_output=True, text=True, check=False)
        rows = {name.strip(): value
                for name, value in re.findall(r'^stackbpf:   (.{28}) (.*)$', process.stderr, re.M)}
        nr = {name: int(rows[name].split()[0])
              for name in ('waits', 'lost: table full', 'stack lost', 'drained during name lookup')}
        if nr['waits'] < 50_000:
            skip(f'only {nr["waits"]} waits could be made in {SECONDS} s: they fit without a drain')
        check(nr['drained during name lookup'] > 0, f'slow names: samples are read meanwhile: {nr}')
        check(nr['lost: table full'] == 0 and nr['stack lost'] == 0, f'slow names: nothing is lost: {nr}')


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
run_parts((sparse_file, million_symbols, perf_maps, slow_names), sys.argv[3:])
done()
