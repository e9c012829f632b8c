#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Perl's frames: names, order, lines and shares of a program that says by caller() how it came to where
it spends its time, for each version that there is, on the CPU, blocked, and in threads.

    interp_perl.py STACKBPF PROGRAMS"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
import beside
import interp
import live
from live import check

STACKBPF, PROGRAMS = sys.argv[1], sys.argv[2]
TREE = os.path.join(PROGRAMS, 'tree.pl')
# Where which version is; the system's comes first.
SUITES = ('bionic', 'focal', 'bullseye', 'jammy', 'bookworm', 'noble', 'trixie', 'sid', 'experimental')
SECONDS = os.environ.get('INTERP_SECONDS', '2')
# Until a process is known, on a machine that is busy.
LATE_US = 250000
LATE_SAMPLES = 40
# Few would say little of shares; of waits, those of 17 rounds.
SAMPLES, WAITS_US = 400, 1.8e6
# Operations by which C calls Perl, and what they call.
BETWEEN = (('Perl_pp_sort', 'Foo::less'), ('Perl_pp_match', 'main::in_regex'),
           ('Perl_despatch_signals', '(eval)'))
# And subs that only C calls, each with the operation before it.
CALLED = {'Foo::less': 'Perl_pp_sort', 'main::in_regex': 'Perl_pp_match', 'Foo::Plus::__ANON__': 'Perl_pp_add'}


def start(root, mode):
    if root is None:
        return subprocess.Popen(['perl', TREE, mode], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                text=True)
    return beside.start(root, ['/usr/bin/perl', '/tree.pl', mode], files={'/tree.pl': TREE},
                        env={'LC_ALL': 'C'})


def told(program):
    """{stack: its part}."""
    stacks = {}
    for line in program.stdout:
        if line == 'told\n':
            break
        part, stack = line.rstrip('\n').split(' ', 1)
        stack = tuple(stack.split(';'))
        stacks[stack] = stacks.get(stack, 0) + int(part)
    return stacks


def perl_frames(stack):
    """Of a line of --interp only --lines: (name, line or '') of each frame of Perl."""
    frames = (re.fullmatch(r'(\{main\}|\(eval\)|\w+::[\w:]+)(?: (?:tree\.pl|\(eval \d+\)):(\d+))?', frame)
              for frame in stack)
    return tuple((m[1], m[2] or '') for m in frames if m)


def is_same(frames, told_frames):
    """The statement of an eval "" that has ended since has no line."""
    return len(frames) == len(told_frames) and all(
        name + (':' + line if line else '') in (told, told.rsplit(':', 1)[0])
        for (name, line), told in zip(frames, told_frames))


def sample(view, program, *args):
    return live.stackbpf(STACKBPF, *view.split(), '-p', str(program.pid), '-t', SECONDS, *args)


def is_on_the_way(frames, stacks):
    """Whether these frames, but for the innermost one's line, are the outer part of a known stack; or of
    tie(), whose sub does not say its own."""
    if frames[-1][0] == 'Foo::Tie::TIESCALAR':
        frames = frames[:-1]
    return any(is_same(frames[:-1] + ((frames[-1][0], ''),), stack[:len(frames)]) for stack in stacks)


def asleep(result):
    return sum(us for stack, us in result.stacks.items() if '[runqueue]' not in stack)


def has_all(result, stacks):
    """Whether each known stack was seen."""
    found = {perl_frames(stack) for stack in result.stacks}
    return all(any(is_same(frames, known) for frames in found) for known in stacks)


def check_frames(what, result, stacks):
    """Known stacks. Return: {part: its weight}, and {part: what caller() gave for it}."""
    seen = {stack: 0 for stack in stacks}
    outside = {}
    total = inside = 0
    for stack, weight in result.stacks.items():
        frames = perl_frames(stack)
        if any(f == '[runqueue]' or f.startswith('[truncated') for f in stack):
            continue
        total += weight
        inside += weight if frames else 0
        known = next((known for known in stacks if is_same(frames, known)), None)
        if known:
            seen[known] += weight
        elif frames and not is_on_the_way(frames, stacks):
            outside[frames] = outside.get(frames, 0) + weight
        if not frames:
            print(f'  {weight}: {";".join(stack)}')
    wrong = sum(outside.values()) / (total or 1)
    # The first ones come before the process is known: a wait has no more than one.
    due = 0.99 * total - result.runs * LATE_SAMPLES if 'CPU' in what else total - result.runs * LATE_US
    check(inside >= due, f'{what}: {inside} of {total} samples have frames of Perl')
    check(wrong <= 0.005, f'{what}: {100 * wrong:.2f} % are in stacks that caller() did not give')
    for frames in sorted(outside, key=outside.get, reverse=True)[:3]:
        print(f'  {outside[frames]}: {";".join(map(":".join, frames))}')
    check(all(seen.values()), f'{what}: all {len(stacks)} ways to be called are seen')
    for stack, weight in seen.items():
        if not weight:
            print(f'  never: {";".join(stack)}')
    return by_part(seen), by_part(stacks)


def by_part(stacks):
    return {of: sum(weight for stack, weight in stacks.items() if f';{of}:' in ';'.join(stack))
            for of in ('main::down', 'main::callbacks', 'main::nameless')}


def check_complete(what, result):
    # A wait that had begun before the run is looked at from outside, when it may be over.
    cut = sum(w for s, w in result.stacks.items()
              if any('truncated' in f and 'ran before' not in f for f in s))
    check(interp.are_few(cut, result.total, 0.005), f'{what}: {cut} of {result.total} stacks are cut')
    unreadable = sum(w for s, w in result.stacks.items() if any('unreadable' in f for f in s))
    check(not unreadable, f'{what}: {unreadable} have frames that could not be read')


def check_between(what, result):
    """What C does stands where it is; and nothing of the loop is left."""
    names = {frame for stack in result.stacks for frame in stack}
    # The first samples come before the process is known.
    left = sum(weight for stack, weight in result.stacks.items()
               if any(f.startswith(('Perl_runops', 'Perl_call_sv', '[ready')) for f in stack))
    check(left <= 0.03 * result.total, f'{what}: {left} of {result.total} have what is of the loop')
    for operation, sub in BETWEEN:
        if operation not in names:
            continue
        after = {next((f for f in stack[i:] if perl_frames([f])), sub) for stack in result.stacks
                 for i, frame in enumerate(stack) if frame == operation}
        check(after <= {sub, '(eval)', 'main::unit'} and sub in after,
              f'{what}: {sub} is called by {operation}: {after}')


def check_called(what, result):
    """C is before what it calls, and not behind it."""
    wrong = nr = 0
    for stack, weight in result.stacks.items():
        for sub, operation in CALLED.items():
            if sub in stack[1:] and any(perl_frames([frame]) for frame in stack[:stack.index(sub)]):
                at = stack.index(sub)
                nr += weight
                if perl_frames([stack[at - 1]]) or operation not in stack[:at]:
                    wrong += weight
                    print(f'  {weight}: {";".join(stack)}')
    check(nr and not wrong, f'{what}: {wrong} of {nr} have C behind what it calls')


def check_version(name, root):
    with start(root, 'spin') as program:
        try:
            stacks = told(program)
            # Each way has its turn: those that got no CPU meanwhile are waited for.
            result = interp.enough(lambda: sample('oncpu -F 1999', program, '--interp', 'only', '--lines'),
                                   lambda result: result.total >= SAMPLES and has_all(result, stacks))
            weights, _ = check_frames(f'{name} on CPU', result, stacks)
            check_complete(f'{name} on CPU', result)
            check(re.search(r'perl 5\.\d+\.\d+', result.err) is not None,
                  f'{name}: the version is named')
            result = sample('oncpu -F 999', program)
            check_between(name, result)
            if any('Perl_pp_sort' in stack for stack in result.stacks):
                check_called(name, result)
            interp.check_shares(f'{name} on CPU', weights, interp.spent(program))
        finally:
            program.kill()
    with start(root, 'wait') as program:
        try:
            stacks = told(program)
            # Where it waits for a CPU after each wait, so many fewer rounds fit into a run, and the parts of rounds at the
            # ends of the run are as much of it as shares may be off.
            result = interp.enough(lambda: sample('offcpu', program, '--interp', 'only', '--lines'),
                                   lambda result: asleep(result) >= WAITS_US and has_all(result, stacks))
            weights, parts = check_frames(f'{name} blocked', result, stacks)
            check_complete(f'{name} blocked', result)
            # Its waits are of the length that it asks for.
            interp.check_shares(f'{name} blocked', weights, parts, is_sampled=False)
        finally:
            program.kill()


def check_threads(name, root):
    """Each thread has an interpreter of its own: no frame of the program itself below its first sub."""
    with start(root, 'threads') as program:
        try:
            told(program)
            live.wait_for(lambda: len(os.listdir(f'/proc/{program.pid}/task')) > 1, 'a thread')
            result = sample('oncpu -F 999', program, '--interp', 'only')
            spins = sum(w for s, w in result.stacks.items() if 'main::unit' in s)
            roots = {s[1] for s in result.stacks if 'main::unit' in s}
            check(interp.are_most(spins, result.total, 0.95), f'{name}: {spins} of {result.total} in a thread')
            check(roots == {'(eval)'}, f'{name}: a thread begins with its own sub: {roots}')
            check_complete(f'{name} thread', result)
        finally:
            program.kill()


def check_embedded():
    """libperl.so in another program, which has no frame of Perl until it calls one."""
    libs = sorted(glob.glob('/usr/lib/*-linux-gnu/libperl.so.5.*'))
    compiler = shutil.which('cc')
    if not libs or not compiler:
        print('not tried: embedded: no libperl.so, or no compiler')
        return
    with tempfile.TemporaryDirectory() as where:
        program = os.path.join(where, 'embed')
        subprocess.run([compiler, '-O1', '-o', program, os.path.join(PROGRAMS, 'embed_perl.c'), '-ldl'],
                       check=True)
        with subprocess.Popen([program, libs[0]], stdout=subprocess.PIPE, text=True) as process:
            try:
                check(process.stdout.readline() == 'told\n', 'embedded: it begins')
                result = interp.sample(STACKBPF, 'oncpu', [process], '-F', '999', seconds=float(SECONDS))
            finally:
                process.kill()
    known = ('call_perl;(eval);main::called;(eval);main::unit', 'call_perl;(eval);main::called;Perl_pp_sort;main::unit')
    spins = collections.Counter()
    for stack, weight in result.stacks.items():
        names = tuple(re.sub(r'( \S+( \d+\))?:\d+)?(_\[\w\])?$', '', frame) for frame in stack)
        if 'main::unit' in names:
            spins[names] += weight
    share = sum(spins.values()) / (result.total or 1)
    # The rest compiles the eval.
    check(interp.are_most(sum(spins.values()), result.total, 0.9), f'embedded: {100 * share:.1f} % of {result.total} in main::unit')
    for way in known:
        seen = sum(w for s, w in spins.items() if f';{way}' in ';'.join(s))
        check(seen > 0, f'embedded: {seen} of ...;{way}')
        spins = {s: w for s, w in spins.items() if f';{way}' not in ';'.join(s)}
    check(interp.are_few(sum(spins.values()), result.total, 0.005), f'embedded: nothing else: {list(spins)[:2]}')
    check_complete('embedded', result)


def main():
    live.need_root()
    check_version('system', None)
    check_threads('system', None)
    check_embedded()
    for suite in SUITES:
        if suite == 'bookworm':
            continue
        try:
            root = beside.unpack(suite, ['perl'])
        except beside.Missing as reason:
            print(f'not tried: {suite}: {reason}')
            continue
        check_version(suite, root)
    live.done()


if __name__ == '__main__':
    main()
