#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Addresses to names, whole processes on the same addresses.

symbols.py SBSYM [ROUNDS]

Subjects are files of this machine: a big library that has nothing but .dynsym, and one with a
separate debug file. Addresses lie uniformly in the bytes of its functions, from a fixed seed.
"""
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

SBSYM = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
PLAIN = ['/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1', '/usr/lib/llvm-14/lib/libLLVM-14.so']
DEBUG = ['/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0', '/usr/lib/x86_64-linux-gnu/libc.so.6']


def functions(path):
    """(start, size) of each function, from .symtab, of the debug file, too, else .dynsym."""
    out = subprocess.run(['readelf', '-sW', path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    found = {(int(r[1], 16), int(r[2], 0)) for r in rows
             if len(r) >= 8 and r[3] == 'FUNC' and r[6] != 'UND' and r[2] != '0'}
    return sorted(found)


def write_addresses(path, nr, file):
    """In a process of its own: what starts a program lends it its own peak of memory."""
    pid = os.fork()
    if pid == 0:
        ranges = functions(path)
        chooser = random.Random(12345)
        for start, size in chooser.choices(ranges, weights=[size for _, size in ranges], k=nr):
            file.write(f'0x{start + chooser.randrange(size):x}\n')
        file.flush()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, path


def run(command, source):
    """CPU seconds and peak MiB of the process, its input from a file, its output away."""
    source.seek(0)
    process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def tools(path, inlines):
    """Name, command, most addresses worth waiting for."""
    yield ('sbsym', [SBSYM, '--style=llvm', '--no-demangle'] + ([] if inlines else ['--no-inline', '--no-lines'])
           + [path], 10**6)
    yield ('llvm-symbolizer', ['llvm-symbolizer', '--no-demangle', '--inlines' if inlines else '--no-inlines',
                               '--output-style=GNU', '--obj=' + path], 10**6)
    yield 'addr2line', ['addr2line', '-f', '-e', path] + (['-i'] if inlines else []), 10**4
    yield 'eu-addr2line', ['eu-addr2line', '-f', '-e', path] + (['-i'] if inlines else []), 10**4


def compare(path, inlines, nr):
    print(f"{os.path.basename(path)}, {nr:,} addresses, {'inlines and lines' if inlines else 'symbols only'}")
    ours = None
    with tempfile.TemporaryFile('w+') as source:
        write_addresses(path, nr, source)
        for name, command, most in tools(path, inlines):
            if nr > most or not shutil.which(command[0]):
                continue
            rounds = [run(command, source) for _ in range(ROUNDS if most > 10**4 else 1)]
            cpu, peak = (statistics.median(column) for column in zip(*rounds))
            ours = ours or (cpu, peak)
            print(f'  {name:16} {cpu:8.3f} s {peak:7.1f} MiB   sbsym takes {ours[0] / cpu:6.3f} of its CPU, '
                  f'{ours[1] / peak:5.2f} of its memory')


def main():
    plain = next((p for p in PLAIN if os.path.exists(p)), None)
    debug = next((p for p in DEBUG if os.path.exists(p)), None)
    if plain:
        compare(plain, False, 10**6)
        compare(plain, False, 10**4)
    if debug:
        compare(debug, True, 10**4)
        compare(debug, True, 10**6)


main()
