#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where unwind tables come from, and what a table is made of.

cfi_files.py CFI_ROWS

One program, compiled and linked in many ways: each has to give the rows readelf has (that is
cfi_oracle.py's work), and the same ones again without section headers, from compressed sections,
and with its .debug_frame in a separate file.
"""
import os
import re
import struct
import subprocess
import sys

import elf_tools
from elf_tools import Results, can, functions, need, run, workdir

CFI_ROWS = os.path.abspath(sys.argv[1])
ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'cfi_oracle.py')
SOURCE = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) int plain(int x) { return x * 3; }
__attribute__((noinline)) int calls(int x) { char buf[64]; memset(buf, x, 64); return plain(buf[x & 63]); }
__attribute__((noinline)) int aligned(int x)
{
	__attribute__((aligned(64))) char buf[256];
	char *more = __builtin_alloca(x & 255);

	memset(buf, x, 256);
	memset(more, x, x & 255);
	return calls(buf[x & 255]) + more[0];
}
static int by(const void *a, const void *b) { return calls(*(const int *)a) - *(const int *)b; }
int main(int argc, char **argv)
{
	int numbers[4] = { 1, 2, 3, argc };

	signal(SIGUSR1, abort);
	qsort(numbers, 4, sizeof(int), by);
	return aligned(numbers[0]);
}
"""
WAYS = {
    'gcc': ['gcc', '-O2'],
    'frame-pointers': ['gcc', '-O2', '-fno-omit-frame-pointer'],
    'clang': ['clang-14', '-O2'],
    'static': ['gcc', '-O2', '-static'],
    'static-pie': ['gcc', '-O2', '-static-pie'],
    'lld': ['clang-14', '-O2', '-fuse-ld=lld'],
    'gold': ['gcc', '-O2', '-fuse-ld=gold'],
    'noseparate': ['gcc', '-O2', '-Wl,-z,noseparate-code'],
    'library': ['gcc', '-O2', '-shared', '-fPIC'],
}
# Nothing but .debug_frame: no start files, no libraries, which have .eh_frame.
BARE = ''.join(f"""
__attribute__((noinline)) int calls_{i}(int x) {{ volatile char buf[64 + {i}]; buf[x & 63] = x; return buf[1] + {i}; }}
""" for i in range(200)) + 'void _start(void) { for (;;) calls_0(1); }\n'
PACKINGS = {'plain': [], 'zlib': ['-gz=zlib'], 'zstd': ['-gz=zstd']}


def ask(path, *args):
    done = subprocess.run([CFI_ROWS, *args, path], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def rows(results, path, source, *args):
    """The rows as text, which came from @source."""
    status, out, err = ask(path, *args)
    results.equal((status, err), (0, ''), path)
    lines = out.splitlines()
    results.check(lines and f'# source={source} ' in lines[-1], path, lines[-1:])
    return lines[:-1]


def drop_section_headers(path, out):
    with open(path, 'rb') as file:
        data = bytearray(file.read())
    data[40:48] = bytes(8) # e_shoff
    data[58:64] = struct.pack('<HHH', 64, 0, 0)
    with open(out, 'wb') as file:
        file.write(data)
    os.chmod(out, 0o755)


def has_segment(path, name):
    return name in run(['readelf', '-lW', path])


def check_ways(results, folder):
    source = os.path.join(folder, 'prog.c')
    with open(source, 'w', encoding='ascii') as file:
        file.write(SOURCE)
    for name, command in WAYS.items():
        path = os.path.join(folder, name)
        if not can([*command, '-o', path, source]):
            print('cannot build, left out:', name)
            continue
        ours = rows(results, path, '.eh_frame')
        results.check(len(ours) > 10, path)
        done = subprocess.run([sys.executable, ORACLE, CFI_ROWS, path], capture_output=True, text=True,
                              check=False)
        results.equal(done.returncode, 0, name, done.stdout, done.stderr)
        if has_segment(path, 'GNU_EH_FRAME'):
            drop_section_headers(path, path + '.bare')
            results.equal(rows(results, path + '.bare', 'PT_GNU_EH_FRAME'), ours, name)
    return os.path.join(folder, 'gcc')


def check_debug_frame(results, folder):
    source = os.path.join(folder, 'bare.c')
    with open(source, 'w', encoding='ascii') as file:
        file.write(BARE)
    base = ['gcc', '-O1', '-fno-asynchronous-unwind-tables', '-fno-stack-protector', '-nostdlib', '-static',
            '-Wl,--build-id', '-g']
    expected = None
    for name, options in PACKINGS.items():
        path = os.path.join(folder, 'bare-' + name)
        if not can([*base, *options, '-o', path, source]):
            print('cannot build, left out:', name)
            continue
        ours = rows(results, path, '.debug_frame')
        expected = expected or ours
        results.check(len(ours) > 200, path)
        if options:
            results.check(re.search(r'\.debug_frame .* C ', run(['readelf', '-SW', path])), path, 'not packed')
        results.equal(ours, expected, path)
        # The same in a file of its own, found by build ID.
        build_id = re.search(r'Build ID: (\w+)', run(['readelf', '-n', path]))[1]
        debug = os.path.join(folder, 'debug', '.build-id', build_id[:2], build_id[2:] + '.debug')
        os.makedirs(os.path.dirname(debug), exist_ok=True)
        run(['objcopy', '--only-keep-debug', path, debug])
        run(['strip', path])
        results.equal(rows(results, path, '.debug_frame', '--debug-dir=' + os.path.join(folder, 'debug')),
                      expected, path)
        status, out, err = ask(path, '--debug-dir=/nonexistent')
        results.equal((status, out), (1, ''), path)
        results.check('no unwind tables' in err, err)


def check_command(results, folder, path):
    main = functions(path)['main']
    done = subprocess.run([CFI_ROWS, path, f'{main:x}', f'0x{main:x}', '1'], capture_output=True,
                          text=True, check=False)
    # What a call leaves: the CFA is above the return address.
    results.equal(done.stdout, f'{main:016x} rsp+8 rbp=same\n' * 2 + f'{1:016x} frame-pointer\n')
    results.equal(done.returncode, 0)
    text = os.path.join(folder, 'prog.c')
    for args, status in [([os.path.join(folder, 'missing')], 5), ([text], 1), ([folder], 1),
                         ([path, 'xyz'], 2), ([], 2)]:
        done = subprocess.run([CFI_ROWS, *args], capture_output=True, text=True, check=False)
        results.equal((done.returncode, done.stdout), (status, ''), args)
        results.check(done.stderr.count('\n') == 1, done.stderr)
    done = subprocess.run([CFI_ROWS, '--summary', path, path], capture_output=True, text=True, check=False)
    results.equal(done.returncode, 0)
    lines = done.stdout.splitlines()
    results.equal(len(lines), 3)
    nr = len(rows(results, path, '.eh_frame'))
    results.check(f' rows={nr} ' in lines[0] and f' rows={2 * nr} ' in lines[2], lines)
    done = subprocess.run([CFI_ROWS, '--summary', path, text], capture_output=True, text=True, check=False)
    results.equal(done.returncode, 1)
    results.check(' failed=1 ' in done.stdout and 'not an ELF file' in done.stderr, done)


def main():
    need('gcc', 'readelf', 'objcopy', 'strip', 'nm')
    if os.uname().machine != 'x86_64':
        elf_tools.skip('rules for x86-64 only')
    results = Results()
    with workdir() as folder:
        path = check_ways(results, folder)
        check_debug_frame(results, folder)
        check_command(results, folder, path)
    results.finish()


main()
