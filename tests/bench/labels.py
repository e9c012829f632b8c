#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the labels of threads cost a sample: labels.py STACKBPF SOURCE [ROUNDS]

ns a sample of the BPF programs (--stats), medians of ROUNDS rounds, of a program with and without labels, in runs that
ask for them and that do not; and what it costs the program to set one.
"""
import re
import statistics
import subprocess
import sys
import tempfile

BINARY, SOURCE = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 7

SET = r'''
#define SB_LABELS_IMPLEMENTATION
#include "stackbpf-labels.h"
#include <stdio.h>
int main(void)
{
	enum { NR = 5000000 };
	struct timespec a, b;
	int i;

	sb_label_set("region", "eu-north");
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (i = 0; i < NR; i++)
		sb_label_set("vehicle", i & 1 ? "car" : "bike");
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	printf("%.1f\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / NR);
}
'''


def ns_a_sample(program, args, asked):
    with subprocess.Popen([program, *args], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        done = subprocess.run([BINARY, 'oncpu', '-p', str(process.pid), '-t', '1', '-F', '1999', '--stats',
                               '--max-overhead=off', *asked], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, check=True)
        process.kill()
    return float(re.search(r'of a CPU, (\d+) ns a sample', done.stderr)[1])


def main():
    ask = ('--label', 'vehicle', '--label', 'region')
    with tempfile.TemporaryDirectory() as work:
        flags = ('-O1', '-pthread', f'-I{SOURCE}/include')
        linked, plain, lib, own = (f'{work}/{name}' for name in ('linked', 'plain', 'lib.so', 'own'))
        source = f'{SOURCE}/tests/programs/labels.c'
        subprocess.run(['gcc', *flags, '-DLABELS_LINKED', '-o', linked, source, '-ldl'], check=True)
        subprocess.run(['gcc', *flags, '-o', plain, source, '-ldl'], check=True)
        subprocess.run(['gcc', *flags, '-fPIC', '-shared', '-o', lib, f'{SOURCE}/tests/programs/labels_lib.c'], check=True)
        subprocess.run(['gcc', '-O2', f'-I{SOURCE}/include', '-x', 'c', '-o', own, '-'], input=SET, text=True, check=True)
        ways = {
            'no labels in the program, none asked for': (plain, ('none',), ()),
            'no labels in the program, two asked for': (plain, ('none',), ask),
            'two labels, none asked for': (linked, ('shares',), ()),
            'two labels, in the program': (linked, ('shares',), ask),
            'two labels, in a library': (plain, ('shares', lib), ask),
        }
        found = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                found[name].append(ns_a_sample(*way))
        for name, values in found.items():
            print(f'{name:45} {statistics.median(values):6.0f} ns a sample ({min(values):.0f} to {max(values):.0f})')
        sets = [float(subprocess.run([own], stdout=subprocess.PIPE, text=True, check=True).stdout) for _ in range(ROUNDS)]
        print(f'{"sb_label_set()":45} {statistics.median(sets):6.1f} ns')


main()
