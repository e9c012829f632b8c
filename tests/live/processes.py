#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that are gone before anybody could read their /proc have names all the same.

processes.py STACKBPF
"""
import os
import re
import subprocess
import sys
import tempfile

from live import check, done, need_root, running, stackbpf

need_root()
BINARY = sys.argv[1]
# What stands for a user frame without a name because its process or mapping was not known.
UNKNOWN = '[unknown]'


def report(result, what, roots):
    among = {s: w for s, w in result.stacks.items() if re.fullmatch(roots, s[0])}
    total = sum(among.values())
    unknown = sum(w for s, w in among.items() if UNKNOWN in s)
    unnamed = sum(w for s, w in among.items() if s[0] == '[no name]')
    check(result.status == 0, f'{what}: exit status {result.status}')
    check(total >= 20, f'{what}: {total} samples of short-lived processes')
    check(unnamed == 0, f'{what}: {unnamed} samples of a process without a name')
    check(unknown <= 0.002 * total, f'{what}: {unknown} of {total} samples with an unknown frame')
    for stack in [s for s in among if UNKNOWN in s][:10]:
        print('   ', ';'.join(stack), among[stack])
    print(result.err.strip().splitlines()[-1] if result.err.strip() else '(no closing line)')


def many_true():
    result = stackbpf(BINARY, 'oncpu', '-s', '-F', '4999', '--',
                      'sh', '-c', 'i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done')
    report(result, '500 x true', 'true|sh')
    check(any(s[0] == 'true' for s in result.stacks), 'true itself is seen')
    # The user stack of the old program stays until its memory goes, and that of the new one begins with its registers.
    within = {s: w for s, w in result.stacks.items() if 'load_elf_binary' in s}
    cut = {s: w for s, w in within.items() if UNKNOWN in s or any(f.startswith('[truncated') for f in s)}
    check(within and not cut, f'in the midst of execve(2), {sum(cut.values())} of {sum(within.values())} samples '
          f'have a user stack that is not there: {list(cut)[:2]}')


def compile_job():
    with tempfile.TemporaryDirectory() as work:
        source = '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n' + \
            '\n'.join(f'int f{i}(int x) {{ return x * {i} + printf("%d", x); }}' for i in range(300))
        for i in range(20):
            with open(f'{work}/a{i}.c', 'w', encoding='ascii') as file:
                file.write(source)
        result = stackbpf(BINARY, 'oncpu', '-s', '-F', '999', '--', 'sh', '-c',
                          f'for i in {work}/*.c; do gcc -O1 -c -o /dev/null $i; done')
    report(result, 'compile', 'gcc|cc1|as|sh')
    check(any(s[0] == 'cc1' for s in result.stacks), 'the compiler proper is seen')


def deleted_binary():
    """The binary unlinks itself, and the process ends before the run does."""
    source = """
        #include <unistd.h>
        void here(void) { for (volatile int i = 0; i < 1000000000; i++); }
        int main(int argc, char **argv) { unlink(argv[0]); here(); }
    """
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(['gcc', '-O0', '-fno-omit-frame-pointer', '-x', 'c', '-o', f'{work}/gone', '-'],
                       input=source, text=True, check=True)
        result = stackbpf(BINARY, 'oncpu', '-s', '-F', '499', '-u', '--', 'sh', '-c', f'{work}/gone; true')
    share = result.share('here', 'gone')
    check(share > 0.95, f'deleted binary: {100 * share:.1f} % named')


def libraries_at_one_address():
    """Two libraries take turns at the same address, faster than samples are fetched."""
    library = """
        static void spin(long n) { while (n--) __asm__ volatile(""); }
        void NAME(long n) { spin(n); __asm__ volatile(""); }
        void run(void) { NAME(ROUNDS); __asm__ volatile(""); }
    """
    program = """
        #include <dlfcn.h>
        #include <stdio.h>
        int main(int argc, char **argv)
        {
            void *first = 0, *run;
            int i, nr_same = 0;
            for (i = 0; i < 60; i++) {
                void *handle = dlopen(argv[1 + i % 2], RTLD_NOW);
                run = dlsym(handle, "run");
                first = first ? first : run;
                nr_same += run == first;
                ((void (*)(void))run)();
                dlclose(handle);
            }
            return nr_same == 60 ? 0 : 9;
        }
    """
    with tempfile.TemporaryDirectory() as work:
        build = ['gcc', '-O1', '-fno-omit-frame-pointer', '-x', 'c', '-']
        for name, rounds in ('alpha', 60_000_000), ('beta', 20_000_000):
            subprocess.run([*build, '-shared', '-fPIC', f'-DNAME={name}', f'-DROUNDS={rounds}',
                            '-o', f'{work}/{name}.so'], input=library, text=True, check=True)
        subprocess.run([*build, '-o', f'{work}/swap', '-ldl'], input=program, text=True, check=True)
        result = stackbpf(BINARY, 'oncpu', '-F', '999', '-u', '--',
                          f'{work}/swap', f'{work}/alpha.so', f'{work}/beta.so')
    check(result.status == 0, f'both libraries were always at one address: status {result.status}')
    alpha, beta = result.share('alpha'), result.share('beta')
    check(alpha + beta > 0.95, f'libraries that take turns: {100 * (alpha + beta):.1f} % named')
    check(abs(alpha / (alpha + beta) - 0.75) < 0.05,
          f'alpha, which runs three times as long, has {100 * alpha / (alpha + beta):.1f} %')


def children_of_an_idle_process():
    """A process slept since before the run; what it forks is gone soon, and so is it."""
    source = """
        #include <fcntl.h>
        #include <sys/wait.h>
        #include <unistd.h>
        void here(void) { for (volatile int i = 0; i < 10000000; i++); }
        int main(int argc, char **argv)
        {
            int i, go = open(argv[1], O_RDONLY), done = open(argv[2], O_WRONLY);
            for (i = 0; i < 20; i++) {
                if (!fork()) {
                    here();
                    _exit(0);
                }
                wait(0);
            }
            return go < 0 || done < 0;
        }
    """
    with tempfile.TemporaryDirectory() as work:
        for name in ('go', 'done'):
            os.mkfifo(f'{work}/{name}')
        subprocess.run(['gcc', '-O0', '-fno-omit-frame-pointer', '-x', 'c', '-o', f'{work}/early', '-'],
                       input=source, text=True, check=True)
        with running(f'{work}/early', f'{work}/go', f'{work}/done'):
            result = stackbpf(BINARY, 'oncpu', '-a', '-F', '999', '-u', '--', 'sh', '-c',
                              f': > {work}/go; cat {work}/done')
    report(result, 'children of an idle process', 'early')
    share = result.share('here', 'early')
    check(share > 0.5, f'children of an idle process: {100 * share:.1f} % named')


many_true()
children_of_an_idle_process()
libraries_at_one_address()
compile_job()
deleted_binary()
done()
