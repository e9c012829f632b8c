#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record --kinds trace:NAME: the store has as many events as the program counts, by the names of the definitions.

record_events.py STACKBPF TRACED_C PAIRS_C
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
BINARY, *SOURCES = sys.argv[1:4]
WORK = tempfile.TemporaryDirectory()
PROGRAM, PAIRS, DEFINITIONS, STORE = (f'{WORK.name}/{name}' for name in ('traced', 'pairs', 'events', 'store'))
for program, source in zip((PROGRAM, PAIRS), SOURCES):
    subprocess.run(['gcc', '-O2', '-g', '-pthread', '-o', program, source], check=True)
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
           f'to-key: --from c:fsync --to r:c:fsync --to-key retval\n')
    rows = [(('trace',), 2, "'trace' does not say which events"), (('oncpu:turns',), 2, 'is not a list of'),
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
refused()
done()
