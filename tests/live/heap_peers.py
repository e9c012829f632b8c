# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What other tools say is held by programs/leaks.c when it ends. A run of a tool is the caller's, as what it is measured by."""
import collections
import glob
import math
import re
import subprocess

NAMES = ('much', 'some', 'little', 'churn')


def shares_of(stacks):
    """Of pairs of a stack and its weight: the weight of each function."""
    found = collections.Counter()
    for stack, weight in stacks:
        found.update({name: float(weight) for name in NAMES if name in stack})
    return found


def heaptrack(path):
    """The command that runs a program, and what it holds."""
    return ('heaptrack', '-o', path), lambda: by_heaptrack(path)


def by_heaptrack(path):
    subprocess.run(['heaptrack_print', '-f', *glob.glob(f'{path}.[gz]*'), '-F', f'{path}.leaked', '--flamegraph-cost-type', 'leaked'],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    with open(f'{path}.leaked', encoding='utf-8') as file:
        rows = [line.rpartition(' ') for line in file]
    # It puts a file behind a name.
    return shares_of(({frame.partition(' ')[0] for frame in stack.split(';')}, weight) for stack, _, weight in rows)


def massif(path):
    """As heaptrack(): its last snapshot with a tree."""
    return ('valgrind', '--tool=massif', '--detailed-freq=1', f'--massif-out-file={path}'), lambda: by_massif(path)


def by_massif(path):
    with open(path, encoding='utf-8') as file:
        last = file.read().rpartition('heap_tree=')[2]
    return collections.Counter({name: int(nr) for nr, name in re.findall(r'n\d+: (\d+) 0x\w+: (\w+) \(', last) if name in NAMES})


def jemalloc(library, path, bits):
    """The environment of a program that has jemalloc's profiler write to @path when it ends, with a sample for 2^@bits bytes."""
    return {'LD_PRELOAD': library, 'MALLOC_CONF': f'prof:true,lg_prof_sample:{bits},prof_final:true,prof_prefix:{path}'}


def by_jemalloc(program, path, bits):
    """As jeprof does: a stack stands for as many as its mean size lets expect."""
    with open(*glob.glob(f'{path}*.heap'), encoding='ascii') as file:
        text = file.read()
    base = min(int(line.split('-')[0], 16) for line in text.splitlines() if line.endswith(program))
    shares = collections.Counter()
    for addresses, nr, size in re.findall(r'^@ (.*)\n  t\*: (\d+): (\d+) ', text, re.M):
        # A return address is behind its call.
        places = [f'{int(word, 16) - base - 1:#x}' for word in addresses.split()]
        names = subprocess.run(['addr2line', '-f', '-e', program, *places], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        if int(nr):
            weight = int(size) / (1 - math.exp(-int(size) / int(nr) / 2**bits))
            shares.update({name: weight for name in NAMES if name in names})
    return shares
