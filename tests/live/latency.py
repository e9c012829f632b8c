#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""latency: the calls that the program makes, and the time that it measures itself.

latency.py STACKBPF TIMED_C [PART...]
"""
import os
import re
import subprocess
import sys
import tempfile

import manyfunctions
from live import check, done, need_root, run_parts, running, sampling, stackbpf, wait_for

need_root()
BINARY, SOURCE = sys.argv[1], sys.argv[2]
WORK = tempfile.TemporaryDirectory()
PROGRAM = f'{WORK.name}/timed'
subprocess.run(['gcc', '-O2', '-g', '-pthread', '-o', PROGRAM, SOURCE], check=True)
NR = 500
CALLS = NR * 7 // 10 + NR * 3 // 10 * 3


def measured(*args, mode=()):
    """What was sampled, and what the program says: calls, microseconds, those from often()."""
    said = f'{WORK.name}/said'
    result = stackbpf(BINARY, 'latency', f'{PROGRAM}:timed', '--stats', *args, '--', 'sh', '-c',
                      f'exec {PROGRAM} {NR} {" ".join(mode)} >{said}')
    with open(said, encoding='ascii') as file:
        return result, *map(int, file.read().split())


def samples(result):
    return int(result.facts['n'])


def of(result, *frames):
    return sum(weight for stack, weight in result.stacks.items() if set(frames) <= set(stack))


def near(weight, micros, bound=0.05):
    return abs(weight - micros) <= bound * micros


def calls():
    result, nr, micros, often = measured()
    check((nr, samples(result)) == (CALLS, CALLS), f'each call once: {samples(result)} of {nr}')
    check(near(result.total, micros), f'as long as the program says: {result.total} us of {micros}')
    check(result.facts.get('unit') == 'us' and result.facts.get('lost') == '0', f'facts: {result.facts}')
    deep = [stack[-3:] for stack in result.stacks if stack[1:].count('timed') == 3]
    check(deep and all('seldom' in stack for stack in result.stacks if stack[1:].count('timed') > 1),
          f'recursion, three deep, by its caller: {list(result.stacks)}')
    check(all(stack[-1] == 'timed' and 'main' in stack for stack in result.stacks), 'complete, and begin in the function')
    check(near(of(result, 'often'), often), f'by caller: {of(result, "often")} us of {often}')


def jumps():
    result, nr, micros, _ = measured(mode=('jump',))
    check(samples(result) == nr, f'calls that were left by a jump are none: {samples(result)} of {nr}')
    check(near(result.total, micros), f'and take no time: {result.total} us of {micros}')
    lost = re.search(r'lost: left by a jump +(\d+)', result.err)
    check(lost and int(lost[1]) in (NR - 1, NR), f'they are counted: {lost and lost[1]} of {NR}')


def still_open():
    out = f'{WORK.name}/open'
    with open(out, 'w', encoding='ascii') as file, \
            sampling(BINARY, 'latency', f'{PROGRAM}:timed', '-n', 'timed') as run, \
            subprocess.Popen([PROGRAM, str(NR), 'open'], stdout=file) as target:
        wait_for(lambda: os.path.getsize(out), 'the end of its calls', 60)
        with open(out, encoding='ascii') as said:
            micros = int(said.read().split()[1])
        result = run.snapshot()
        target.kill()
    age = of(result, '[open]', 'stay')
    outer = sum(weight for stack, weight in result.stacks.items()
                if 'stay' not in stack and stack[1:].count('timed') == 1)
    check(0.9 * outer <= age < 1e8, f'a call that is open has its age, in a leaf: {age} us, and the others took {outer}')
    check(near(result.total - age, micros), f'the others are as ever: {result.total - age} us of {micros}')


def many():
    """A function that cannot be hooked is left out of a pattern."""
    program = manyfunctions.compiled(f'{WORK.name}/many')
    with running(program):
        result = stackbpf(BINARY, 'latency', f'{program}:many_h*', f'{program}:many_locked*', '-t', '1')
        check(len({stack[-1] for stack in result.stacks}) == 64 and '1 of 65 functions are not traced' in result.err,
              f'the others are measured: {len(result.stacks)} stacks, {result.err}')


def options():
    result, *_ = measured('--min', '100s')
    check(not result.stacks and 'nothing was sampled' in result.err, f'--min: {result.err}')
    distr = subprocess.run([BINARY, 'latency', f'{PROGRAM}:timed', '--max-overhead=off', '--distr', '--', PROGRAM, str(NR)],
                           capture_output=True, text=True, check=True).stdout
    check(re.search(rf'^all stacks \d+ us, {CALLS} times\n', distr, re.M), f'--distr: {distr[:300]}')


def bad_input():
    for args, sentence in (((), 'there is no function to measure'),
                           (('sched:sched_switch',), 'is no function of a program'),
                           ((f'r:{PROGRAM}:timed',), 'is no function of a program'),
                           ((f'{PROGRAM}:tmed',), "timed")):
        result = stackbpf(BINARY, 'latency', *args, '-t', '1')
        check(result.status == 2 and sentence in result.err, f'{args}: {result.status}: {result.err}')


run_parts((calls, jumps, still_open, many, options, bad_input), sys.argv[3:])
done()
