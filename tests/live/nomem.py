#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Allocations that fail, over whole runs: one sentence and a status, or a result that says what is missing.

nomem.py FAULT SPLIT CALLS STACKBPF FLAMEGRAPH SBSYM [--all] [NAME...]

A first run says from which places in the code memory is asked for; then each place gets none, once and from then
on, a run for each: some of them, or --all.
"""
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile

import fault
from live import Result, check, done, need_root, running

need_root()
FAULT, SPLIT, CALLS, STACKBPF, FLAMEGRAPH, SBSYM = (os.path.abspath(path) for path in sys.argv[1:7])
ALL = '--all' in sys.argv[7:]
NAMES = [arg for arg in sys.argv[7:] if arg != '--all']
SAMPLED = 6  # places of each program, where not all are asked for
AT_ONCE = 2
fault.need_libraries(STACKBPF)
# What libbpf makes of some allocations that fail, and pthread_create() of all.
OTHER_WORDS = ("cannot load the BPF programs: ", 'cannot create a thread', "the kernel rejects the BPF map", 'cannot read the kernel', 'Bad address',
               'Something wrong in libelf')


def has_result(command, outcome):
    """Status 0: the result is there, or what is missing is counted in what is said."""
    if command[0] != STACKBPF or outcome.out.startswith('<?xml'):
        return bool(outcome.out)
    result = Result(0, outcome.out, outcome.err)
    if command[1] == 'oncpu' and result.total and result.share('seventy') < 0.3:
        unnamed = int(result.facts['nosym']) + int(result.facts['trunc'])
        return unnamed > 0
    return result.total > 0 and int(result.facts['n']) > 0


def judge(command, outcome):
    wrong = fault.complaints(outcome, os.path.basename(command[0]))
    said = [line for line in outcome.sentences if not re.search(r' in [0-9.]+ s; |^[a-z]+:   ', line)]
    if outcome.status and not any('memory' in line or any(w in line for w in OTHER_WORDS) for line in said):
        wrong.append(f'status {outcome.status}, and nothing about memory: {outcome.err!r}')
    if outcome.status == 0 and not has_result(command, outcome):
        wrong.append(f'status 0 without a result: {outcome.err!r} {outcome.out[:200]!r}')
    return wrong


def look(name, command):
    sites = set()
    for _ in range(2):
        # What is sampled may get no CPU for that long: only then again.
        for _ in range(5):
            outcome = fault.run(FAULT, command, sites='1')
            if 'nothing was sampled' not in outcome.err:
                break
        check(outcome.status == 0, f'{name}: unharmed {outcome.status} {outcome.err[:300]}')
        sites |= set(outcome.named('site'))
    jobs = [site + how for site in sorted(sites) for how in ('', '+')]
    if not ALL:
        jobs = random.sample(jobs, min(len(jobs), SAMPLED))
    nr_faults, statuses = 0, {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for job, outcome in zip(jobs, pool.map(lambda job: fault.run(FAULT, command, site=job), jobs)):
            if not outcome.faults:
                continue
            nr_faults += 1
            statuses[outcome.status] = statuses.get(outcome.status, 0) + 1
            wrong = judge(command, outcome)
            if wrong:
                check(False, f'{name}, place {job}: {outcome.faults[0]}: {wrong}')
    check(nr_faults > 0, f'{name}: {nr_faults} runs with faults of {len(sites)} places, statuses {statuses}')


def folded_file(work):
    with open(f'{work}/a.folded', 'w', encoding='ascii') as file:
        file.writelines(f'main;f{i % 40};g{i} {i + 100}\n' for i in range(200))
    return file.name


def main_address():
    symbols = subprocess.run(['nm', SPLIT], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.search(r'^([0-9a-f]+) . main$', symbols, re.M)[1]


def main():
    with tempfile.TemporaryDirectory() as work:
        on, waits, nothing = (SPLIT,), (CALLS, 'switches', '100000', '1'), ()
        # What is run, and what it looks at meanwhile.
        rows = {
            'oncpu': (on, (STACKBPF, 'oncpu', '-F', '999')),
            'oncpu to SVG': (on, (STACKBPF, 'oncpu', '-F', '999', '--format', 'svg', '-o', '/dev/stdout')),
            'offcpu': (waits, (STACKBPF, 'offcpu', '-s')),
            'io': (waits, (STACKBPF, 'io', '-s')),
            'flamegraph': (nothing, (FLAMEGRAPH, folded_file(work))),
            'sbsym': (nothing, (SBSYM, SPLIT, main_address())),
        }
        for name in NAMES or rows:
            target, command = rows[name]
            if not target:
                look(name, command)
                continue
            with running(*target) as process:
                look(name, (*command, '-p', str(process.pid), '-t', '1'))


main()
done()
