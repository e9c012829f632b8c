#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Complete stacks of C, Python and Perl on arm64, under emulation: shares and ends of stacks, no counts. Run by the
suite vm.

arm64.py STACKBPF BUILD
"""
import os
import platform
import subprocess
import sys
import tempfile

from live import check, done, need_root, running, skip, stackbpf

need_root()
if platform.machine() != 'aarch64':
    skip('this is not arm64')
BINARY, BUILD = sys.argv[1], sys.argv[2]
GATE = 0.995
TRUTH = {'seventy': 0.70, 'twenty': 0.20, 'ten': 0.10}
SCRIPT = """
import threading
def leaf(n):
    s = 0
    for i in range(n):
        s += i * i
    return s
def seventy(): return leaf(70000)
def twenty(): return leaf(20000)
def ten(): return leaf(10000)
def work():
    while True:
        seventy(); twenty(); ten()
threading.Thread(target=work, daemon=True).start()
print('ready', flush=True)
threading.Event().wait()
"""


def sample(pid, *options):
    return stackbpf(BINARY, 'oncpu', '-p', str(pid), '-t', '6', '-F', '99', *options, timeout=280)


def check_shares(what, result, points):
    for name, want in TRUTH.items():
        have = result.share(name)
        check(abs(have - want) <= points, f'{what}: {name}: {100 * have:.1f} % of {100 * want:.0f} %')


def check_complete(what, result, via, gate=GATE, samples_min=100):
    """By the header's own count of stacks that are cut, and by what every stack has to go through."""
    missing = {s: w for s, w in result.stacks.items() if not any(frame in s for frame in via)}
    cut = int(result.facts.get('trunc', -1))
    total = result.total
    check(result.status == 0 and total >= samples_min, f'{what}: status {result.status}, {total} samples')
    check(total and 0 <= cut <= (1 - GATE) * total, f'{what}: {cut} of {total} cut')
    check(sum(missing.values()) <= (1 - gate) * total,
          f'{what}: {sum(missing.values())} of {total} without {" or ".join(via)}')
    for stack in list(missing)[:3]:
        print('   ', ';'.join(stack))
    if result.status:
        print(result.err)


def split(name):
    with running(f'{BUILD}/{name}', '2') as target:
        result = sample(target.pid, '-u')
    check_complete(name, result, ('main', 'work'))
    check_shares(name, result, 0.06)


def deep():
    with running(f'{BUILD}/tests/programs/deep', '100') as target:
        result = sample(target.pid, '-u')
    check_complete('deep', result, ('main',))
    wrong = sum(w for s, w in result.stacks.items() if s.count('descend') != 101)
    check(wrong <= (1 - GATE) * result.total, f'deep: {wrong} of {result.total} without its 101 frames')


def frame_pointers():
    """No tables: by frame pointers alone, which split is built with."""
    with running(f'{BUILD}/tests/programs/split') as target:
        result = sample(target.pid, '-u', '--unwind=fp')
    check_complete('by frame pointers', result, ('main',))


def python():
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, 'prog.py')
        with open(path, 'w', encoding='ascii') as file:
            file.write(SCRIPT)
        with running('python3', path, stdout=subprocess.PIPE, text=True) as target:
            target.stdout.readline()
            result = sample(target.pid, '-u')
    # Its first samples come before it has been found out what it is, which takes a second here.
    check_complete('python', result, ('work',), gate=0.95)
    check_shares('python', result, 0.06)


def perl():
    """Another interpreter than Python: not its own frames, but its C functions, whole."""
    with running('perl', '-e', 'sub work { my $s = 0; $s += $_ for 1 .. 10000 } work() while 1') as target:
        result = sample(target.pid, '-u')
    check_complete('perl', result, ('Perl_runops_standard',), gate=0.95)
    check(not any('work' in ' '.join(stack) for stack in result.stacks), 'perl: without its own frames')


split('tests/programs/split')
split('split-signed')
deep()
frame_pointers()
python()
perl()
done()
