#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""LuaJIT's and Lua's frames: names, order, lines and shares of a program with a known tree of calls that
says by debug.traceback() where it is, for each version that there is: interpreted and compiled, through a
coroutine, pcall() and the callback of table.sort(), on the CPU and blocked.

    interp_lua.py STACKBPF PROGRAMS [WORD]"""
import os
import re
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__))
import beside
import interp
import live
from live import check

STACKBPF, PROGRAMS = sys.argv[1], sys.argv[2]
TREE = os.path.join(PROGRAMS, 'tree.lua')
ONLY = sys.argv[3:]  # words that a version's command must have
# Samples before a process's unwind tables are there: its generated code, and the helpers of its
# interpreter, cannot be walked then.
NR_EARLY = 40
SECONDS = os.environ.get('INTERP_SECONDS', '2')
VERSIONS = [(suite, 'luajit', ['luajit', *options]) for suite in ('bullseye', 'bookworm', 'trixie', 'sid')
            for options in (['-joff'], [])]
VERSIONS += [(suite, f'lua5.{minor}', [f'lua5.{minor}']) for suite, minors in
             (('bullseye', (3, 4)), ('bookworm', (1, 2, 3, 4)), ('trixie', (4,)), ('sid', (4,)))
             for minor in minors]
# Parts of the time, and the functions in which it is spent, by the line at which those that have no name
# begin; root first.
OUTER = ('{main}', 'co', '@coroutine', 'guarded', 'pcall', '@steps')
PARTS = {'leaf': OUTER + ('leaf', 'burn'),
         'compare': OUTER + ('sort', '@callback', 'compare', 'burn'),
         'down': OUTER + ('down',) * 6 + ('burn',)}
MARKS = {'@coroutine': 'coroutine.wrap(function', '@steps': 'function steps(',
         '@callback': 'table.sort(list, function', '@wait': 'function wait('}
# What {main} calls to say what it has spent.
SAYING = ('clock', 'format', 'write', 'flush')
# Builds of LuaJIT before March of 2021 do not know which line their generated code is at.
WITHOUT_LINES = (('bullseye', ('luajit',)),)


def line_of(text):
    with open(TREE, encoding='utf-8') as program:
        return next(at for at, line in enumerate(program, 1) if text in line)


def named(stack):
    return tuple(f'tree.lua:{line_of(MARKS[name])}' if name in MARKS else name for name in stack)


def told(program):
    """{part: lines from the innermost function on}, as debug.traceback() has them."""
    lines = {}
    for text in program.stdout:
        if text == 'ready\n':
            return lines
        part, _, traceback = text.partition('\t')
        lines.setdefault(part, [int(line) for line in re.findall(r':(\d+):(?= in|\n)', traceback)])
    raise AssertionError('the program ended')


def lua_frames(stack):
    """Frames of --interp only --lines: [(name, line or None)], without the command and the kernel's."""
    frames = [re.fullmatch(r'(.+?)(?: tree\.lua:(\d+))?', frame) for frame in stack[1:]]
    return [(m[1], m[2] and int(m[2])) for m in frames]


def is_prefix(names, stacks):
    return any(stack[:len(names)] == names for stack in stacks)


def check_frames(what, result, lines, has_lines):
    """Return: {part: samples}."""
    weights = {part: 0 for part in PARTS}
    stacks = {part: named(stack) for part, stack in PARTS.items()}
    total = inside = other = odd_lines = 0
    for stack, weight in result.stacks.items():
        frames = lua_frames([f for f in stack if not f.endswith(']')])
        names = tuple(name for name, _ in frames)
        while names and names[0] != '{main}':
            names, frames = names[1:], frames[1:]
        total += weight
        if not names:
            continue
        inside += weight
        if len(names) > 1 and names[0] == '{main}' and names[1] in SAYING:
            continue
        part = next((part for part in PARTS if names[:len(stacks[part])] == stacks[part]), None)
        if not part:
            # Between the places where the time goes: steps, sort and what they call.
            if not is_prefix(names, stacks.values()) and len(names) <= len(OUTER):
                print(f'  {weight}: {";".join(stack)}')
            other += weight if not is_prefix(names[:len(OUTER)], stacks.values()) else 0
            continue
        weights[part] += weight
        # The caller of burn() and its callers, innermost first; functions in C have no lines.
        got = [line for name, line in reversed(frames[:len(stacks[part]) - 1]) if line]
        # It told its stack on the line before it called burn().
        due = [lines[part][0] + 1, *lines[part][1:], *lines['main']]
        if got != due and has_lines:
            if not odd_lines:
                print(f'  {got}, not {due}')
            odd_lines += weight
    check(inside >= min(0.99 * total, total - NR_EARLY), f'{what}: {inside} of {total} samples have frames of Lua')
    check(interp.are_few(other, total, 0.005), f'{what}: {other} of {total} are in stacks that are none')
    check(interp.are_few(odd_lines, total, 0.005), f'{what}: {odd_lines} have other lines than debug.traceback()')
    check(sum(weights.values()) >= 0.95 * inside, f'{what}: {sum(weights.values())} of {inside} in burn()')
    return weights


def check_complete(what, result):
    cut = sum(w for s, w in result.stacks.items() if any('truncated' in f for f in s))
    check(interp.are_few(cut - NR_EARLY, result.total, 0.005), f'{what}: {cut} of {result.total} stacks are cut')
    unreadable = sum(w for s, w in result.stacks.items() if any('unreadable' in f for f in s))
    check(not unreadable, f'{what}: {unreadable} have frames that could not be read')


def sample(program, view, *args):
    return live.stackbpf(STACKBPF, *view.split(), '-p', str(program.pid), '-t', SECONDS, *args)


def start(root, command, mode):
    return beside.start(root, ['/usr/bin/' + command[0], *command[1:], '/tree.lua', mode],
                        files={'/tree.lua': TREE})


def check_on_cpu(what, root, command, has_lines):
    with start(root, command, 'spin') as program:
        try:
            lines = told(program)
            result = sample(program, 'oncpu -F 499', '--interp', 'only', '--lines')
            weights = check_frames(what, result, lines, has_lines)
            check_complete(what, result)
            check(re.search(r'lua(jit)? \d', result.err) is not None, f'{what}: the version is named')
            interp.check_shares(what, weights, interp.spent(program))
        finally:
            program.kill()


def check_blocked(what, root, command):
    """It is fed a line again and again, so its waits are many."""
    with start(root, command, 'block') as program:
        ended = threading.Event()

        def feed():
            while not ended.is_set():
                try:
                    program.stdin.write('\n')
                    program.stdin.flush()
                except OSError:
                    return
                time.sleep(0.01)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            told(program)
            result = sample(program, 'offcpu', '--interp', 'only')
            stack = named(OUTER[:-1] + ('@wait', 'read'))
            total = sum(w for s, w in result.stacks.items() if '[runqueue]' not in s)
            right = sum(w for s, w in result.stacks.items()
                        if s[1:len(stack) + 1] == stack and '[runqueue]' not in s)
            check(right >= 0.95 * total, f'{what} blocked: {right} of {total} us in {";".join(stack)}')
        finally:
            ended.set()
            program.kill()
            feeder.join()


def main():
    live.need_root()
    reasons = []
    nr_tried = 0
    for suite, package, command in VERSIONS:
        what = f'{suite}: {" ".join(command)}'
        if not all(word in what for word in ONLY):
            continue
        try:
            root = beside.unpack(suite, [package])
        except beside.Missing as missing:
            reasons.append(f'{what}: {missing}')
            continue
        nr_tried += 1
        check_on_cpu(what, root, command, (suite, tuple(command)) not in WITHOUT_LINES)
        if suite == 'bookworm':
            check_blocked(what, root, command)
    for reason in reasons:
        print(f'not tried: {reason}')
    if not nr_tried:
        live.skip('; '.join(reasons))
    live.done()


main()
