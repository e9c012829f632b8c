#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Unwind tables within their memory: twelve libraries take turns in room for five.

tables.py STACKBPF
"""
import re
import subprocess
import sys
import tempfile

from live import check, done, need_root, stackbpf

need_root()
BINARY = sys.argv[1]
NR_LIBRARIES = 12
NR_FUNCTIONS = 60_000  # three rows each: 0.7 MB of table
FUNCTION = '\n'.join(('.cfi_startproc', 'push %rbx', '.cfi_adjust_cfa_offset 8',
                      'pop %rbx', '.cfi_adjust_cfa_offset -8', 'ret', '.cfi_endproc', ''))
SPIN = """
    __attribute__((noinline)) static void inner(long nr)
    {
        for (volatile long i = 0; i < nr; i++);
    }
    void spin(long nr)
    {
        inner(nr);
        __asm__ volatile("");
    }
    """
# Loads all, then one after the other works, for four seconds of CPU time.
MAIN = """
    #include <dlfcn.h>
    #include <time.h>
    int main(int argc, char **argv)
    {
        void (*spin[64])(long) = {};
        for (int i = 1; i < argc; i++) {
            void *handle = dlopen(argv[i], RTLD_NOW);
            if (!handle)
                return 1;
            spin[i] = (void (*)(long))dlsym(handle, "spin");
        }
        while (clock() < 4 * CLOCKS_PER_SEC)
            for (int i = 1; i < argc; i++)
                spin[i](30000000);
    }
    """
FLAGS = ('-O2', '-fomit-frame-pointer', '-fno-optimize-sibling-calls')


def build(work):
    with open(f'{work}/big.s', 'w', encoding='ascii') as file:
        file.write('.text\n' + FUNCTION * NR_FUNCTIONS + '.section .note.GNU-stack\n')
    with open(f'{work}/spin.c', 'w', encoding='ascii') as file:
        file.write(SPIN)
    with open(f'{work}/main.c', 'w', encoding='ascii') as file:
        file.write(MAIN)
    for source in ('big.s', 'spin.c'):
        subprocess.run(['gcc', *FLAGS, '-fPIC', '-c', source], check=True, cwd=work)
    subprocess.run(['gcc', *FLAGS, '-o', 'turns', 'main.c', '-ldl'], check=True, cwd=work)
    libraries = [f'{work}/lib{i}.so' for i in range(NR_LIBRARIES)]
    for i, library in enumerate(libraries):
        subprocess.run(['gcc', '-shared', f'-Wl,--build-id=0x{i + 1:040x}', '-o', library, 'big.o',
                        'spin.o'], check=True, cwd=work)
    return [f'{work}/turns', *libraries]


def run(command, memory):
    """Stacks of the program; its tables: how many built, MB at most, how often evicted."""
    result = stackbpf(BINARY, 'oncpu', '--stats', '-u', '-F', '199',
                      '--unwind-memory', memory, '--', *command)
    check(result.status == 0, f'{memory}: exit status {result.status}')
    stacks = {s: w for s, w in result.stacks.items() if 'spin' in s}
    built = int(re.search(r'unwind tables .*built (\d+)', result.err).group(1))
    peak, of, evicted = re.search(r'at most ([\d.]+) of ([\d.]+) MB, evicted (\d+) times',
                                  result.err).groups()
    refused = int(re.search(r'processes with tables .* (\d+) refused', result.err).group(1))
    check(float(peak) <= float(of), f'{memory}: at most {peak} of {of} MB')
    check(refused == 0, f'{memory}: {refused} refused')
    total = sum(stacks.values())
    check(total > 500, f'{memory}: {total} samples in the libraries')
    whole = sum(w for s, w in stacks.items() if s[-2:] == ('spin', 'inner') and 'main' in s and
                s.index('main') == len(s) - 3 and not any('truncated' in f for f in s))
    check(whole >= 0.99 * total, f'{memory}: {whole} of {total} samples have all their callers')
    return built, int(evicted)


with tempfile.TemporaryDirectory() as directory:
    program = build(directory)
    nr_built, nr_evicted = run(program, '64M')
    check(nr_evicted == 0, f'room for all: {nr_evicted} evictions')
    check(NR_LIBRARIES <= nr_built <= NR_LIBRARIES + 8, f'room for all: {nr_built} tables built')
    nr_built, nr_evicted = run(program, '4M')
    check(nr_evicted >= 2, f'room for five: {nr_evicted} evictions')
    check(nr_built >= 7, f'room for five: {nr_built} tables built')
done()
