#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""latency: the calls and the pairs of events that programs make, and the time that they measure themselves.

latency.py STACKBPF TIMED_C PAIRS_C [PART...]
"""
import os
import re
import subprocess
import sys
import tempfile

import manyfunctions
from live import apart, build_program, check, done, need_root, run_parts, running, sampling, stackbpf, wait_for

need_root()
BINARY, SOURCE, PAIRS_SOURCE = sys.argv[1:4]
WORK = tempfile.TemporaryDirectory()
PROGRAM, PAIRS = f'{WORK.name}/timed', f'{WORK.name}/pairs'
# In an emulated machine a probe takes 150 us, which only the program has in its account.
SLEEP = ['-DSLEEP_NS=10000000'] if 'STACKBPF_IN_VM' in os.environ else []
# The first second has no unwind tables there. Of the stacks that user space walks instead, those of arm64 end where the
# return of a call is probed.
CUT_MAX = 0.2 if 'COMPILED' in os.environ else 0
for program, source in ((PROGRAM, SOURCE), (PAIRS, PAIRS_SOURCE)):
    build_program(program, source, '-O2', '-g', '-pthread', *(SLEEP if program == PROGRAM else []))
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
    check(int(result.facts['trunc']) <= CUT_MAX * nr, f"complete: {result.facts['trunc']} of {nr} are cut")
    whole = [stack for stack in result.stacks if '[truncated' not in stack[1]]
    deep = [stack[-3:] for stack in whole if stack[1:].count('timed') == 3]
    check(deep and all('seldom' in stack for stack in whole if stack[1:].count('timed') > 1),
          f'recursion, three deep, by its caller: {list(result.stacks)}')
    check(all(stack[-1] == 'timed' and 'main' in stack for stack in whole), 'they begin in the function')
    check(near(of(result, 'often'), often), f'by caller: {of(result, "often")} us of {often}')


def jumps():
    result, nr, micros, _ = measured(mode=('jump',))
    check(samples(result) == nr, f'calls that were left by a jump are none: {samples(result)} of {nr}')
    check(near(result.total, micros), f'and take no time: {result.total} us of {micros}')
    lost = re.search(r'lost: left by a jump +(\d+)', result.err)
    check(lost and int(lost[1]) in (NR - 1, NR), f'they are counted: {lost and lost[1]} of {NR}')


def timed_open(*args):
    """A snapshot while a call is open, and how many microseconds the others took by what the program says."""
    out = f'{WORK.name}/open'
    with open(out, 'w', encoding='ascii') as file, \
            sampling(BINARY, 'latency', f'{PROGRAM}:timed', '-n', 'timed', *args) as run, \
            subprocess.Popen([PROGRAM, str(NR), 'open'], stdout=file) as target:
        wait_for(lambda: os.path.getsize(out), 'the end of its calls')
        with open(out, encoding='ascii') as said:
            micros = int(said.read().split()[1])
        result = run.snapshot()
        target.kill()
    return result, micros


def still_open():
    result, micros = timed_open()
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


def call_expressions():
    """Over the arguments of the beginning, and over what is known at the end."""
    often, seldom = NR * 7 // 10, NR * 3 // 10

    def values(result):
        return {stack[-1] for stack in result.stacks}
    result, _, micros, _ = measured('--when', 'arg0 == 1')
    check(samples(result) == often + seldom and re.search(rf'left out: --when +{2 * seldom}\n', result.err),
          f'by an argument: {samples(result)}, {result.err}')
    result, _, micros, _ = measured('--value', 'arg0')
    check(values(result) == {f'[arg0={i}]' for i in (1, 2, 3)} and near(result.total, micros), f'told apart by it: {list(result.stacks)}')
    result, *_ = measured('--weight', 'arg0')
    check(result.total == often + seldom * 6 and result.facts.get('unit') == 'units', f'weighed by it: {result.total}')
    result, *_ = measured('--value', '(int)retval', '--weight', '1')
    check({value: of(result, value) for value in values(result)} ==
          {'[(int)retval=-1]': often // 5, '[(int)retval=10]': often - often // 5 + seldom,
           '[(int)retval=20]': seldom, '[(int)retval=30]': seldom}, f'by results: {dict(result.stacks)}')
    result, *_ = measured('--weight', '(int)retval')
    check(result.total == 10 * (often - often // 5 + seldom * 6) and
          re.search(rf'left out: --weight of 0 or less +{often // 5}\n', result.err), f'their sum: {result.total}, {result.err}')
    result, _, micros, _ = measured('--when', '(int)retval < 0 && arg0 == 1')
    check(samples(result) == often // 5 and all('often' in stack for stack in result.stacks), f'those that fail: {dict(result.stacks)}')
    result, _, micros, _ = measured('--weight', 'elapsed')
    check(near(result.total, micros * 1000), f'by the time, in ns: {result.total} of {micros} us')
    result, *_ = measured('--when', 'elapsed > 100s')
    check(result.status == 3 and f'--when left out {CALLS} events' in result.err, f'all are shorter: {result.err}')


def open_with_expressions():
    """What has not ended has no result."""
    for args, frames in ((('--value', 'retval'), True), (('--when', '(int)retval < 0'), False), (('--value', 'arg0'), True)):
        result, *_ = timed_open(*args)
        found = of(result, '[open]', 'stay') > 0
        check(found == frames, f'{args}: {dict(result.stacks)}')


REQUESTS = 500
FROM_TO = ('--from', f'{PAIRS}:begun', '--to', f'{PAIRS}:done')


def pairs_of(*args, mode=()):
    """What was sampled of the requests, and what the program says: {caller: (requests, microseconds, bytes)}."""
    result = stackbpf(BINARY, 'latency', *FROM_TO, '--max-overhead=off', *args, '--', PAIRS, str(REQUESTS), *mode)
    said = {name: tuple(map(int, numbers.split()))
            for name, numbers in re.findall(r'^(often|seldom|rarely) ([\d ]+)$', result.err, re.M)}
    return result, said


def pairs():
    """From one thread to another, several at once."""
    result, said = pairs_of('--key', '(int)arg0')
    check(samples(result) == REQUESTS and result.facts.get('lost') == '0', f'each once: {result.facts}')
    for caller, (nr, micros, _) in said.items():
        check(nr == {'often': 300, 'seldom': 150, 'rarely': 50}[caller] and near(of(result, caller, 'begun'), micros, 0.05),
              f'{caller}: {of(result, caller, "begun")} us of {micros}')
    result, said = pairs_of('--key', 'str(arg2)', '--to-key', 'str(arg1)', '--when', '(int)arg0 % 10 < 9', '--weight', 'arg1')
    check({caller: of(result, caller) for caller in said} == {**{caller: row[2] for caller, row in said.items()}, 'rarely': 0}
          and result.facts.get('unit') == 'units', f'by a string, some of them, weighed by an argument: {dict(result.stacks)}')
    check(f'left out: {REQUESTS // 10} by --when' in ' '.join(result.err.split()), f'the others are counted: {result.err}')
    distr = subprocess.run([BINARY, 'latency', *FROM_TO, '--key', 'pid << 32 | (u32)arg0', '--max-overhead=off', '--distr', '--',
                            PAIRS, str(REQUESTS)], capture_output=True, text=True, check=True).stdout
    check(re.search(rf'^all stacks \d+ us, {REQUESTS} times$', distr, re.M), f'--distr: {distr[:300]}')


def pairs_without_end():
    result, said = pairs_of('--key', '(int)arg0', mode=('open',))
    longest = sum(micros for _, micros, _ in said.values()) / 3
    check(samples(result) == REQUESTS + 1 and longest / 2 < of(result, 'stay', '[open]') < longest * 3,
          f'one that does not end has its age, about {longest} us: {dict(result.stacks)}')
    result, said = pairs_of('--key', '(int)arg0', mode=('again',))
    check(samples(result) == REQUESTS and f'{REQUESTS} begun again before they ended' in result.err,
          f'what begins twice is told: {result.err}')
    check(near(result.total, sum(micros for _, micros, _ in said.values()), 0.03), 'and counts from the second time on')
    result, _ = pairs_of()
    check(result.status == 3 and f'{REQUESTS - 1} begun again' in result.err, f'other threads end nothing without --key: {result.err}')


def pairs_of_threads():
    """The events of a system call, by the thread."""
    call = ('--from', 'syscalls:sys_enter_clock_nanosleep', '--to', 'syscalls:sys_exit_clock_nanosleep')
    said = f'{WORK.name}/said'
    result = stackbpf(BINARY, 'latency', *call, '--max-overhead=off', '--', 'sh', '-c', f'exec {PROGRAM} 200 >{said}')
    with open(said, encoding='ascii') as file:
        often = int(file.read().split()[2])
    check(samples(result) == 200 and 0.8 * often < of(result, 'often') < 1.02 * often,
          f'each sleep, without our own time: {samples(result)}, {of(result, "often")} us of {often}')
    off = ('--from', 'sched:sched_switch', '--key', 'prev_pid', '--to', 'sched:sched_switch', '--to-key', 'next_pid')
    result = stackbpf(BINARY, 'latency', *off, '--value', '(s64)prev_state', '--', 'sleep', '0.5')
    check(near(of(result, 'hrtimer_nanosleep', '[(s64)prev_state=1]'), 500000), f'one event that ends and begins: {dict(result.stacks)}')


def kernel_calls():
    """Functions of the kernel: writes as dd makes them, sleeps as long as the program says."""
    if not os.path.exists('/sys/bus/event_source/devices/kprobe'):
        result = stackbpf(BINARY, 'latency', 'k:vfs_read', '-t', '1')
        check(result.status == 4 and 'CONFIG_KPROBE_EVENTS' in result.err, f'a kernel without kprobes: {result.err.strip()}')
        return
    copy = ('dd', 'if=/dev/zero', 'of=/dev/null', 'bs=4k', 'count=100', 'status=none')
    result = apart(BINARY, 'latency', 'k:vfs_write', '--when', 'arg2 == 4096', '--value', '(int)retval', '--stats', command=copy)
    check(samples(result) == 100 and {stack[-2:] for stack in result.stacks} == {('vfs_write', '[(int)retval=4096]')} and
          re.search(r'lost: left by a jump +0\n', result.err), f'each write: {dict(result.stacks)} {result.err}')
    result = apart(BINARY, 'latency', 'vfs_write', 'vfs_read', '--weight', '1', command=copy)
    check(of(result, 'vfs_write') == 100 <= of(result, 'vfs_read') <= 120, f'two, by one link: {dict(result.stacks)} {result.err}')
    said = f'{WORK.name}/said'
    result = apart(BINARY, 'latency', 'hrtimer_nanosleep', command=('sh', '-c', f'exec {PROGRAM} 200 >{said}'))
    with open(said, encoding='ascii') as file:
        often = int(file.read().split()[2])
    check(samples(result) == 200 and 0.6 * often < of(result, 'often', 'hrtimer_nanosleep') < 1.02 * often,
          f'each sleep, as long as it is: {samples(result)}, {of(result, "often")} us of {often}')


def listed(result):
    """The slowest calls: (milliseconds, stack)."""
    parts = re.split(r'^stackbpf:   slowest, \d+: ', result.err, flags=re.M)[1:]
    return [(float(part.split(' ', 1)[0]), re.findall(r'^stackbpf:       (.*)$', part, re.M)) for part in parts]


def slowest():
    result, _ = pairs_of('--key', '(int)arg0', '--slowest', '10')
    calls_listed = listed(result)
    longest = int(re.search(r'^longest (\d+)$', result.err, re.M)[1])
    times = [ms for ms, _ in calls_listed]
    check(len(times) == 10 and times == sorted(times, reverse=True) and near(times[0] * 1000, longest, 0.03),
          f'ten, the slowest first, as long as the program says: {times}, {longest} us')
    check(all(stack[0] == 'begun' and stack[2] in ('often', 'seldom', 'rarely') and stack[-1] == 'pairs' for _, stack in calls_listed),
          f'with their stacks: {calls_listed[0]}')
    check(len(result.stacks) == 3, f'which stay what they are: {list(result.stacks)}')
    result, _ = pairs_of('--key', '(int)arg0', '--slowest', '1', mode=('open',))
    check(len(listed(result)) == 1 and listed(result)[0][1][0] == '[open]', f'one that is open is one of them: {listed(result)}')
    result, *_ = measured('--slowest', '2')
    check(len(listed(result)) == 2 and all(stack[0] == 'timed' for _, stack in listed(result)), f'calls: {listed(result)}')


def bad_input():
    pair = ('--from', f'{PAIRS}:begun', '--to', f'{PAIRS}:done')
    for args, sentence in (((), 'there is nothing to measure'),
                           (pair[:2], '--from and --to belong together'),
                           (pair[2:], '--from and --to belong together'),
                           ((*pair, f'{PROGRAM}:timed'), 'leave it out'),
                           ((f'{PROGRAM}:timed', '--key', 'arg0'), '--key needs --from and --to'),
                           ((f'{PROGRAM}:timed', '--when', 'agr0'), "--when at"),
                           ((f'{PROGRAM}:timed', '--value', 'arg6'), "--value at"),
                           ((*pair, '--when', 'elapsed > 1ms'), "there is no 'elapsed'"),
                           ((*pair, '--slowest', '3', '--value', 'arg0'), 'cannot be used together'),
                           ((*pair, '--to-key', 'arg0'), '--to-key needs --key'),
                           ((*pair, '--key', 'agr0'), "--key at"),
                           ((*pair, '--key', 'arg0', '--to-key', 'retval'), "--to-key at"),
                           ((*pair, '--key', 'str(arg0)', '--to-key', 'arg0'), 'a string at some of the events'),
                           (('--from', 'page-faults', *pair[2:]), 'is a counter, which neither begins nor ends'),
                           (('--from', f'{PAIRS}:begin_', *pair[2:]), 'begin_'),
                           (('sched:sched_switch',), 'is no function;'),
                           ((f'r:{PROGRAM}:timed',), 'is no function;'),
                           ((f'{PROGRAM}:tmed',), "timed")):
        result = stackbpf(BINARY, 'latency', *args, '-t', '1')
        check(result.status == 2 and sentence in result.err, f'{args}: {result.status}: {result.err}')


run_parts((calls, jumps, still_open, many, options, call_expressions, open_with_expressions, pairs, pairs_without_end, pairs_of_threads, kernel_calls, slowest, bad_input), sys.argv[4:])
done()
