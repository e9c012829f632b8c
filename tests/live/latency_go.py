#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""latency and trace of functions of Go, which return without return probes, and the time that the program measures.

latency_go.py STACKBPF TIMED_GO [PART...]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, run_parts, running, sampling, skip, stackbpf, wait_for

need_root()
BINARY, SOURCE = sys.argv[1:3]
if not shutil.which('go'):
    skip('no Go is installed')
WORK = tempfile.TemporaryDirectory()
PROGRAMS = {}
for mode in ('exe', 'pie'):
    PROGRAMS[mode] = f'{WORK.name}/timed_{mode}'
    subprocess.run(['go', 'build', f'-buildmode={mode}', '-o', PROGRAMS[mode], SOURCE], check=True, cwd=WORK.name)
EXE = PROGRAMS['exe']


def said_by(path):
    """What the program printed: {function: (calls, microseconds)}, summed up."""
    said = {}
    with open(path, encoding='ascii') as file:
        for name, nr, micros in re.findall(r'^(\w+) (\d+) (\d+)$', file.read(), re.M):
            before = said.get(name, (0, 0))
            said[name] = (before[0] + int(nr), before[1] + int(micros))
    return said


def measured(program, *functions, view='latency', args=()):
    out = f'{WORK.name}/said'
    events = [event.format(f'{program}:main.') for event in functions]
    result = stackbpf(BINARY, view, *events, '--max-overhead=off', '--stats', *args, '--', 'sh', '-c', f'exec {program} >{out}')
    check(result.status == 0, f'{functions}: the program ends as ever: {result.status}')
    return result, said_by(out)


def nr_of(result):
    return int(result.facts['n'])


def near(weight, micros, bound=0.05):
    return abs(weight - micros) <= bound * micros


def told(result, what):
    match = re.search(rf'{what} +(\d+)', result.err)
    return match and int(match[1])


def goroutines():
    """They change their threads within a call."""
    for mode, program in PROGRAMS.items():
        result, said = measured(program, '{}sleep')
        nr, micros = said['sleep']
        check(nr_of(result) == nr == 400 and result.facts['lost'] == '0', f'{mode}: each call once: {result.facts}')
        check(near(result.total, micros), f'{mode}: as long as the program says: {result.total} us of {micros}')
        check(said['moved'][0] > nr / 10, f'{mode}: many changed their thread: {said["moved"][0]} of {nr}')
        check(all(stack[-1] == 'main.sleep' for stack in result.stacks), f'{mode}: by caller: {list(result.stacks)}')


def stacks_that_move():
    """The stack grows within the call, and below it in functions that are measured, too."""
    for mode, program in PROGRAMS.items():
        result, said = measured(program, '{}grow')
        nr, micros = said['grow']
        check(said['moved'][1] == nr == 40, f'{mode}: all stacks moved: {said["moved"][1]} of {nr}')
        check(nr_of(result) == nr and result.facts['lost'] == '0', f'{mode}: each call once: {result.facts}')
        check(near(result.total, micros), f'{mode}: as long as the program says: {result.total} us of {micros}')


def recursion():
    result, said = measured(EXE, '{}nested')
    calls, micros = said['nested']
    by_depth = [sum(weight for stack, weight in result.stacks.items() if stack.count('main.nested') == depth) for depth in (1, 2, 3)]
    check(nr_of(result) == 3 * calls, f'each call: {result.facts}')
    check(near(by_depth[0], micros) and by_depth[1] < 0.8 * by_depth[0] and by_depth[2] < 0.7 * by_depth[1],
          f'the outermost take all the time, the others less: {by_depth} us, {micros}')


def panics():
    result, said = measured(EXE, '{}panics')
    nr, micros = said['panics']
    check(nr_of(result) == nr == 160 and near(result.total, micros), f'calls that return: {result.facts}, {result.total} us of {micros}')
    check(told(result, 'lost: left by a jump') == 160, f'those that a panic has left are counted: {result.facts}')
    for view in ('latency {}never', 'trace r:{}never'):
        name, event = view.split()
        result = stackbpf(BINARY, name, event.format(f'{EXE}:main.'), '-t', '1')
        check(result.status == 4 and 'it has no return instruction' in result.err, f'{view}: {result.status}: {result.err}')


def open_calls():
    out = f'{WORK.name}/open'
    with open(out, 'w', encoding='ascii') as file, \
            sampling(BINARY, 'latency', f'{EXE}:main.sleep', '-n', 'timed_exe', '--max-overhead=off') as run, \
            subprocess.Popen([EXE, 'open'], stdout=file) as target:
        wait_for(lambda: b'moved' in open(out, 'rb').read(), 'the end of its calls', 60)
        first, second = run.snapshot(), run.snapshot()
        target.kill()
        target.wait()
        last = run.snapshot()
    stays = [sum(weight for stack, weight in result.stacks.items() if '[open]' in stack) for result in (first, second, last)]
    check(0 < stays[0] < stays[1], f'a call that is open gets older: {stays}')
    check(stays[2] <= stays[1] and int(last.facts['lost']) == 1, f'and is lost with its process: {stays}, {last.facts}')


def returns():
    result, said = measured(EXE, 'r:{}sleep', view='trace', args=('--value', 'retval >= 2500 && retval < 2550'))
    check({stack[-1]: weight for stack, weight in result.stacks.items()} == {'[retval >= 2500 && retval < 2550=1]': said['sleep'][0]},
          f'trace: what each call returns: {dict(result.stacks)}')
    result, said = measured(EXE, 'r:{}panics', view='trace')
    check(result.total == said['panics'][0], f'trace: only calls that return: {result.total} of {said["panics"]}')


def arguments():
    """Go has its own registers for them; a function in assembly has them on the stack."""
    result, said = measured(EXE, '{}nested', view='trace', args=('--value', 'arg0'))
    by_value = {}
    for stack, weight in result.stacks.items():
        by_value[stack[-1]] = by_value.get(stack[-1], 0) + weight
    check(by_value == {f'[arg0={value}]': said['nested'][0] for value in (0, 1, 2)}, f'{by_value}, {said["nested"]}')
    result = stackbpf(BINARY, 'trace', f'{EXE}:runtime.goexit.abi0', '--when', 'arg0 > 1', '-t', '1')
    check(result.status == 2 and 'arg0' in result.err, f'no arguments: {result.status} {result.err}')


def expressions():
    """The result and the time of a call are known; its arguments are not."""
    result, said = measured(EXE, '{}nested', args=('--when', 'retval == 2', '--value', '(int)retval'))
    outermost = {stack: weight for stack, weight in result.stacks.items() if stack[-1] == '[(int)retval=2]'}
    check(nr_of(result) == said['nested'][0] and outermost.keys() == result.stacks.keys() and near(result.total, said['nested'][1]),
          f'the outermost calls alone: {result.facts}, {said["nested"]}, {dict(result.stacks)}')
    result = stackbpf(BINARY, 'latency', f'{EXE}:main.sleep', '--when', 'elapsed > 1s', '--', 'sh', '-c', f'exec {EXE} >{WORK.name}/said')
    check(result.status == 3 and not result.stacks, f'none is so long: {result.status} {dict(result.stacks)}')
    result = stackbpf(BINARY, 'latency', f'{EXE}:main.sleep', '--when', 'arg0 > 1', '-t', '1')
    check(result.status == 2 and 'arg0' in result.err, f'no arguments: {result.status} {result.err}')


def patterns():
    result, said = measured(EXE, '{}ne*', '{}s*')
    names = {stack[-1] for stack in result.stacks}
    check(names == {'main.nested', 'main.sleep'}, f'functions of a pattern: {names}')
    check(nr_of(result) == 3 * said['nested'][0] + said['sleep'][0], f'each call once: {result.facts}, {said}')
    check("such as 'main.never': it has no return instruction" in result.err, f'those that cannot be are told: {result.err[-500:]}')


C_IN_GO = """package main
/*
int part(int a) __asm__("work.part.0");
__attribute__((noinline)) int part(int a) { __asm__ volatile(""); return a + 1; }
static int call(int a) { return part(a); }
*/
import "C"
import "time"
func main() {
	for {
		C.call(42)
		time.Sleep(time.Millisecond)
	}
}
"""


def functions_of_c():
    """What is C in a program of Go has its arguments where C has them, also if there is a dot in its name."""
    with open(f'{WORK.name}/dot.go', 'w', encoding='ascii') as file:
        file.write(C_IN_GO)
    subprocess.run(['go', 'build', '-o', 'dot', 'dot.go'], check=True, cwd=WORK.name)
    with running(f'{WORK.name}/dot') as process:
        result = stackbpf(BINARY, 'trace', '-t', '1', '-p', str(process.pid), '--weight', 'arg0', f'{WORK.name}/dot:work.part.0')
    check(result.total == 42 * int(result.facts.get('n', 0)) > 0, f'of C: {result.total}, {result.facts}, {result.err}')


run_parts((functions_of_c, goroutines, stacks_that_move, recursion, panics, open_calls, returns, arguments, expressions, patterns), sys.argv[3:])
done()
