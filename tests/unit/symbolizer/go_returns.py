#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the functions of Go programs begin and return: what the decoder finds against objdump.

go_returns.py DUMP ARCHITECTURE SOURCE.go       ARCHITECTURE: as GOARCH, amd64 or arm64
go_returns.py DUMP ARCHITECTURE --program FILE: of a program that is there, with symbols
"""
import bisect
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
INSN = re.compile(r'^ *([0-9a-f]+):\t(.*)$')
OBJDUMP = {'amd64': 'objdump', 'arm64': 'aarch64-linux-gnu-objdump'}
BUILDS = (['-buildmode=exe'], ['-buildmode=pie'], ['-gcflags=all=-N -l'])


def offset_to_addr(program):
    """Return: the offsets of segments in the file, and how far their addresses are from these."""
    text = subprocess.run(['readelf', '-lW', program], capture_output=True, text=True, check=True).stdout
    return sorted((int(off, 16), int(addr, 16) - int(off, 16)) for off, addr in
                  re.findall(r'^ +LOAD +0x(\w+) 0x(\w+)', text, re.M))


def functions_of(dump, program):
    """Return: [(address, name, why not or None, begin, returns)], addresses in the program."""
    segments = offset_to_addr(program)
    found = []

    def moved(word):
        offset = int(word, 16)
        return offset + segments[bisect.bisect_right(segments, (offset, 1 << 64)) - 1][1]

    for line in subprocess.run([dump, program], capture_output=True, text=True, check=True).stdout.splitlines():
        addr, name, rest = line.split('\t')
        if re.fullmatch('[0-9a-f]+( [0-9a-f]+)*', rest):
            begin, *returns = map(moved, rest.split(' '))
            found.append((int(addr, 16), name, None, begin, returns))
        else:
            found.append((int(addr, 16), name, rest, None, []))
    return found


def instructions(objdump, program):
    """Return: their addresses, and their texts."""
    addrs, texts = [], []
    with subprocess.Popen([objdump, '-d', '-w', '--no-show-raw-insn', program], stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            match = INSN.match(line)
            if match:
                addrs.append(int(match[1], 16))
                texts.append(match[2])
    return addrs, texts


def compare(dump, objdump, program):
    functions = functions_of(dump, program)
    addrs, texts = instructions(objdump, program)
    wrong, why_not = [], collections.Counter()
    nr_returns = 0
    for function, after in zip(functions, functions[1:] + [(addrs[-1] + 1,)]):
        addr, name, why, begin, returns = function
        if why:
            why_not[why] += 1
            continue
        first, last = bisect.bisect_left(addrs, addr), bisect.bisect_left(addrs, after[0])
        theirs = [addrs[i] for i in range(first, last) if re.match(r'(rep[nz]* |repz )?ret', texts[i])]
        grows = any(re.match(r'(call|bl)\s.*<runtime\.morestack', text) for text in texts[first:last])
        at = bisect.bisect_left(addrs, begin)
        checked = at > first and re.match(r'(j(be|b|ae|bl)|b\.(ls|cc|lo))\s', texts[at - 1])
        nr_returns += len(returns)
        if returns != theirs or bool(checked) != grows or (not grows and begin != addr):
            wrong.append((name, returns, theirs, hex(begin), grows))
    print(f'{program}: {len(functions)} functions, {nr_returns} returns; not probed: {dict(why_not)}', flush=True)
    for line in wrong[:10]:
        print('  wrong:', *line, flush=True)
    unsure = sum(nr for why, nr in why_not.items() if 'certainty' in why or 'loop' in why)
    if wrong or nr_returns < 1000 or unsure > len(functions) / 50:
        sys.exit(f'{program}: {len(wrong)} functions are wrong, {unsure} are not known')


def main():
    dump, arch, *what = sys.argv[1:]
    if what[0] == '--program':
        compare(dump, OBJDUMP[arch], what[1])
        return
    if not shutil.which('go') or not shutil.which(OBJDUMP[arch]):
        print(f'no Go or no {OBJDUMP[arch]} is installed')
        sys.exit(SKIP)
    with tempfile.TemporaryDirectory() as work:
        for nr, args in enumerate(BUILDS):
            program = f'{work}/program{nr}'
            subprocess.run(['go', 'build', *args, '-o', program, what[0]], check=True, cwd=work, env={**os.environ, 'GOARCH': arch})
            compare(dump, OBJDUMP[arch], program)


main()
