#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record --kinds trace:NAME: the store has as many events as the program counts, by the names of the definitions; and of
oncpu:NAME what the program did in slow calls.

record_events.py STACKBPF TRACED_C PAIRS_C SPANS_C
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from live import check, done, need_root, wait_for
from recorder import ask, recording, written

need_root()
BINARY, *SOURCES = sys.argv[1:5]
WORK = tempfile.TemporaryDirectory()
PROGRAM, PAIRS, SPANS, DEFINITIONS, STORE = (f'{WORK.name}/{name}' for name in ('traced', 'pairs', 'spans', 'events', 'store'))
INCLUDE = os.path.join(os.path.dirname(SOURCES[2]), '..', '..', 'include')
for program, source in zip((PROGRAM, PAIRS, SPANS), SOURCES):
    subprocess.run(['gcc', '-O2', '-g', '-pthread', f'-I{INCLUDE}', '-o', program, source], check=True)
NR = 1000
LONG = 'a-name-of-14-b'


def define(text, mode=0o644):
    with open(DEFINITIONS, 'w', encoding='ascii') as file:
        file.write(text)
    os.chmod(DEFINITIONS, mode)


def run():
    """Of the program: what it says of itself."""
    err = subprocess.run([PROGRAM, str(NR)], stderr=subprocess.PIPE, text=True, check=True).stderr
    return {name: int(nr) for name, nr in re.findall(r'^(\w+) (\d+)$', err, re.M)}


def recorded():
    define(f'# what the program does\nturns: {PROGRAM}:traced  # {NR} times\n'
           f'{LONG}: {PROGRAM}:named --when \'str(arg0) == "even"\' --weight arg1\n')
    kinds = f'oncpu,trace:turns,trace:{LONG},latency:turns'
    with recording(STORE, '--kinds', kinds, '--definitions', DEFINITIONS) as recorder:
        said = run()
        written(recorder)
        status = recorder.end()
    check(status == 0, f'exit status {status}: {recorder.said}')
    turns = ask(STORE, 'comm', kind='trace:turns')
    check(turns.total == NR and turns.facts['unit'] == 'events' and turns.facts['kind'] == 'trace:turns',
          f'{turns.total} of {NR} events: {turns.facts}')
    check({stack[-2:]: weight for stack, weight in turns.stacks.items()} ==
          {('often', 'traced'): NR * 7 // 10, ('seldom', 'traced'): NR * 3 // 10}, f'by their callers: {dict(turns.stacks)}')
    even = ask(STORE, 'comm', kind=f'trace:{LONG}')
    check((even.total, even.facts['unit']) == (said['even'], 'units'), f'the sum of an argument: {even.total} of {said}')
    calls = ask(STORE, 'comm', kind='latency:turns')
    check(int(calls.facts['n']) == NR and calls.facts['unit'] == 'us', f'calls of the same function: {calls.facts}')


def pairs():
    """Of two events, from one thread to another: the time between them, and a weight of those that --when leaves."""
    define(f'taken: --from {PAIRS}:begun --to {PAIRS}:done --key (int)arg0\n'
           f'bytes: --from {PAIRS}:begun --to {PAIRS}:done --key "str(arg2)" --to-key "str(arg1)" '
           "--when '(int)arg0 % 10 < 9' --weight arg1 --value '(int)arg0 % 2'\n")
    store = f'{STORE}-pairs'
    with recording(store, '--kinds', 'latency:taken,latency:bytes', '--definitions', DEFINITIONS) as recorder:
        err = subprocess.run([PAIRS, '500'], stderr=subprocess.PIPE, text=True, check=True).stderr
        written(recorder)
        check(recorder.end() == 0, f'pairs: {recorder.said}')
    said = {name: (int(micros), int(size)) for name, micros, size in re.findall(r'^(often|seldom|rarely) \d+ (\d+) (\d+)$', err, re.M)}
    taken, sizes = (ask(store, 'comm', kind=f'latency:{name}') for name in ('taken', 'bytes'))
    check((taken.facts['n'], taken.facts['unit'], sizes.facts['unit']) == ('500', 'us', 'units'), f'{taken.facts}, {sizes.facts}')
    for caller, (micros, size) in said.items():
        found = [sum(weight for stack, weight in result.stacks.items() if caller in stack) for result in (taken, sizes)]
        check(abs(found[0] - micros) <= 0.05 * micros, f'{caller}: {found[0]} us of {micros}')
        check(found[1] == (size if caller != 'rarely' else 0), f'{caller}: {found[1]} bytes of {size}')
    check({stack[-1] for stack in sizes.stacks} == {'[(int)arg0 % 2=0]', '[(int)arg0 % 2=1]'}, f'by --value: {dict(sizes.stacks)}')


def of(result, function):
    return sum(weight for stack, weight in result.stacks.items() if function in stack)


def spans():
    """Kinds of slow calls have these alone, beside a kind that has all; the bounds of one definition are not those of others."""
    define(f'slow: --in {SPANS}:handle --slower-than 40ms\nnever: {SPANS}:handle --min 1h\n')
    store = f'{STORE}-spans'
    with recording(store, '--kinds', 'io,oncpu:slow,offcpu:slow,io:slow,latency:never', '--definitions', DEFINITIONS) as recorder:
        out = subprocess.run([SPANS, '200', '40000'], stdout=subprocess.PIPE, text=True, check=True).stdout
        written(recorder)
        check(recorder.end() == 0, f'spans: {recorder.said}')
    said = [tuple(map(int, line.split())) for line in out.splitlines()]  # of each sort: calls, slow ones, us burnt, us asleep, bytes
    oncpu, offcpu, io, all_io, never = (ask(store, 'comm', kind=kind) for kind in ('oncpu:slow', 'offcpu:slow', 'io:slow', 'io', 'latency:never'))
    fast = [sort for sort, (_, nr_slow, *_) in zip(('fast', 'middle'), said) if not nr_slow]
    check(not any(of(result, f'{function}_{sort}') for result in (oncpu, offcpu, io) for function in ('burn', 'nap', 'put')
                  for sort in fast), f'nothing of fast calls: {dict(oncpu.stacks)} {dict(offcpu.stacks)} {dict(io.stacks)}')
    check(of(oncpu, 'burn_slow'), f'oncpu: {dict(oncpu.stacks)}')
    check(abs(of(offcpu, 'nap_slow') - said[2][3]) <= 0.05 * said[2][3], f'offcpu: {of(offcpu, "nap_slow")} us asleep of {said}')
    check(of(io, 'put_slow') == said[2][4], f'io: {of(io, "put_slow")} bytes of {said}')
    check(of(all_io, 'put_fast') and of(all_io, 'put_slow') == said[2][4] and not never.stacks,
          f'io is not bound by what latency is: {dict(all_io.stacks)} {dict(never.stacks)}')


def restarted():
    """A sampler that was killed finds the events again."""
    def counted():
        run()
        recorder.process.send_signal(signal.SIGUSR1)
        time.sleep(0.2)
        return ask(store, 'comm', kind='trace:turns').total >= NR

    store = f'{STORE}-again'
    with recording(store, '--kinds', 'trace:turns', '--definitions', DEFINITIONS) as recorder:
        os.kill(recorder.samplers('stackbpf-sample')['stackbpf-sample'], signal.SIGKILL)
        recorder.wait_for('restarting it in')
        wait_for(counted, 'events are counted again')
        check(recorder.end() == 0, f'it was restarted once: {recorder.said}')


def shown():
    stat = subprocess.run([BINARY, 'store', 'stat', '--store', STORE], capture_output=True, text=True, check=True).stdout
    for kind, unit in ((f'trace:{LONG}', 'units'), ('trace:turns', 'events'), ('latency:turns', 'us'), ('oncpu', 'samples')):
        check(re.search(rf'^{kind} +{unit} ', stat, re.M), f'{kind} in {unit}')
    line = subprocess.run([BINARY, 'timeline', '--store', STORE, '--from', '-1d', '--to', 'now+1h', '--kind', 'trace:turns', '--format', 'tsv'],
                          capture_output=True, text=True, check=True).stdout
    check(sum(int(nr) for nr in re.findall(r'\t(\d+)$', line, re.M)) == NR, f'a timeline has {NR}')
    checked = subprocess.run([BINARY, 'store', 'check', '--store', STORE], capture_output=True, text=True, check=False)
    check(checked.returncode == 0, f'nothing is damaged: {checked.stdout}{checked.stderr}')


def refused():
    define(f'turns: {PROGRAM}:traced\nslow: {PROGRAM}:traced --min 1ms\ngone: {PROGRAM}:nothing\n'
           f'pair: --from c:fsync --to r:c:fsync\nhalf: --from c:fsync\nboth: c:fsync --from c:fsync --to r:c:fsync\n'
           f'to-key: --from c:fsync --to r:c:fsync --to-key retval\nspans: --in c:fsync\nno-key: --in label:\n')
    rows = [(('trace',), 2, "'trace' does not say which events"), (('oncpu:turns',), 2, ":1: 'oncpu:turns' cannot be recorded with events, only with spans (--in)"),
            (('trace:spans',), 2, ":8: 'trace:spans' cannot be recorded with --in"), (('snap:turns',), 2, 'is not a list of'),
            (('oncpu:no-key',), 2, "a label's key is made of"),
            (('trace:turn',), 2, "no definition of 'turn'; did you mean 'turns'?"),
            (('trace:slow',), 2, ":2: 'trace:slow' cannot be recorded with --min"),
            (('trace:gone',), 2, "'nothing'"),
            (('trace:pair',), 2, ":4: 'trace:pair' cannot be recorded with --from"),
            (('latency:half',), 2, ":5: 'latency:half': --from and --to belong together"),
            (('latency:both',), 2, ":6: 'latency:both': 'c:fsync' is measured from its beginning"),
            (('latency:to-key',), 2, ":7: 'latency:to-key': --to-key needs --key")]
    for kinds, status, why in rows:
        ended = subprocess.run([BINARY, 'record', '--store', f'{STORE}-no', '--kinds', *kinds, '--definitions', DEFINITIONS, '-t', '1'],
                               stderr=subprocess.PIPE, text=True, check=False)
        check(ended.returncode == status and why in ended.stderr, f'{kinds}: {ended.returncode} {ended.stderr.strip()}')
    for text, mode, why in ((f'turns: {PROGRAM}:traced\n', 0o666, 'nobody else can write'), ('turns {', 0o644, ':1: ')):
        define(text, mode)
        ended = subprocess.run([BINARY, 'record', '--store', f'{STORE}-no', '--kinds', 'trace:turns', '--definitions', DEFINITIONS, '-t', '1'],
                               stderr=subprocess.PIPE, text=True, check=False)
        check(ended.returncode not in (0, 3) and why in ended.stderr, f'{mode:o}: {ended.returncode} {ended.stderr.strip()}')
    check(not os.path.exists(f'{STORE}-no'), 'no store is made')


recorded()
restarted()
shown()
pairs()
spans()
refused()
done()
