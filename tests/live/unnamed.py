#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Functions of a stripped program: as many names as functions, each the address that the linker gave it.

unnamed.py STACKBPF. The truth is the symbol table of the program before it was stripped.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, skip, stackbpf

STACKBPF = os.path.abspath(sys.argv[1])

# Each calls the next one from many places, so that there are many return addresses in each.
SOURCE = r"""
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile unsigned long sum;

#define FOUR(call) call; sum += 1; call; sum += 2; call; sum += 3; call; sum += 4;

static __attribute__((noinline)) void third(void)
{
	for (unsigned long i = 0; i < 20000; i++) {
		sum += i * 3;
		if (sum % 7 == 0)
			sum ^= i;
	}
}
static __attribute__((noinline)) void second(void)
{
	FOUR(third()) FOUR(third())
}
static __attribute__((noinline)) void first(void)
{
	FOUR(second()) FOUR(second())
}
int main(int argc, char **argv)
{
	time_t end = time(NULL) + atoi(argv[argc - 1]);

	while (time(NULL) < end)
		first();
	return sum == 0;
}
"""
FUNCTIONS = ('main', 'first', 'second', 'third')
SECONDS = '1'


def build(work):
    """(stripped program, {function: (address, size)})"""
    source, whole, program = f'{work}/three.c', f'{work}/whole', f'{work}/three'
    with open(source, 'w', encoding='ascii') as file:
        file.write(SOURCE)
    subprocess.run(['gcc', '-O1', '-fno-optimize-sibling-calls', '-o', whole, source], check=True)
    subprocess.run(['strip', '-s', '-o', program, whole], check=True)
    table = subprocess.run(['nm', '-S', whole], check=True, capture_output=True, text=True).stdout
    found = {name: (int(start, 16), int(size, 16)) for start, size, name in
             re.findall(r'^([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)$', table, re.M)}
    return program, {name: found[name] for name in FUNCTIONS}


def unnamed(program, *args):
    """{address: samples} of all frames of the program that have no name."""
    got = stackbpf(STACKBPF, 'oncpu', '-F', '499', *args, '--', program, SECONDS)
    check(got.status == 0, got.err)
    found = {}
    for stack, weight in got.stacks.items():
        for frame in set(stack):
            at = re.fullmatch(r'\[three\+0x([0-9a-f]+)\]', frame)
            if at:
                found[int(at[1], 16)] = found.get(int(at[1], 16), 0) + weight
    return found


def main():
    need_root()
    if not all(map(shutil.which, ('gcc', 'strip', 'nm'))):
        skip('no compiler')
    with tempfile.TemporaryDirectory(prefix='sb-unnamed-') as work:
        program, truth = build(work)
        starts = {start for start, _ in truth.values()}
        found = unnamed(program)
        print(f'{len(found)} names, {sum(found.values())} samples of frames')
        # What runs before main() is a function of the linker's, of a few samples at most.
        check(starts <= set(found), f'each has its name: {found} {truth}')
        others = {at: nr for at, nr in found.items() if at not in starts}
        check(not any(start <= at < start + size for at in others for start, size in truth.values()),
              f'and only one: {others} {truth}')
        exact = unnamed(program, '--offsets')
        places = {name: [at for at in exact if start <= at < start + size] for name, (start, size) in truth.items()}
        check(len(places['first']) > 4 and len(places['second']) > 4, f'with offsets each place is told: {places}')
    done()


main()
