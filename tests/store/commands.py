#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""query, timeline and store, of a store whose rows are known one by one: commands.py STACKBPF STORE_MODEL."""
import collections
import fcntl
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'live'))
from live import Result, check, done  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'formats'))
import otlp  # noqa: E402

STACKBPF, MODEL = sys.argv[1:3]
BEGIN, SECONDS = 2208988800, 3 * 3600 + 50  # 2040-01-01; a part of a period at the end
STEP = 50
random.seed(1)


def model(*args):
    return subprocess.run([MODEL, *map(str, args)], check=True, capture_output=True, text=True).stdout


def run(command, store, *options, text=True):
    return subprocess.run([STACKBPF, *command.split(), '--store', store, *map(str, options)], capture_output=True,
                          text=text, check=False)


def query(store, begin, end, *options):
    done_ = run('query', store, '--from', f'@{begin}', '--to', f'@{end}', '--format', 'folded', *options)
    return Result(done_.returncode, done_.stdout, done_.stderr)


def sums(store, rows):
    """Any range is the sum of its blocks, whatever levels it is made of."""
    for _ in range(12):
        begin = BEGIN + 10 * random.randrange(SECONDS // 10)
        end = begin + 10 * random.randrange(1, SECONDS // 10)
        want = sum(weight for at, weight in rows if begin <= at < end)
        have = query(store, begin, end)
        check(have.total == want, f'{(begin - BEGIN, end - BEGIN)}: {have.total}, rows say {want}')
        check(have.status == (0 if want else 3), f'exit status {have.status}')
    # Stack by stack: an unaligned range against its blocks, one question each.
    begin, end = BEGIN + 3550, BEGIN + 4850
    blocks = collections.Counter()
    for at in range(begin, end, STEP):
        blocks.update(query(store, at, at + 10).stacks)
    check(query(store, begin, end).stacks == blocks, 'stacks of a range are those of its blocks')
    services = collections.Counter()
    for i in range(20):
        services.update(query(store, begin, end, '--tag', f'service=service{i}').stacks)
    check(services == blocks, 'services add up to all')
    by = query(store, begin, end, '--by', 'service')
    check(collections.Counter({stack: weight for stack, weight in by.stacks.items() if stack[0] == 'service3'}) ==
          collections.Counter({('service3', *stack): weight for stack, weight in
                               query(store, begin, end, '--tag', 'service=service3').stacks.items()}),
          '--by has the service at the root')
    check(by.facts['by'] == 'service' and by.facts['kind'] == 'oncpu' and by.facts['hz'] == '99', 'facts of a run')
    check(query(store, begin, end, '--tag', 'service!~.').total == 0, 'a rule that nothing passes')


def formats(store, work):
    end = BEGIN + 600
    want = query(store, BEGIN, end).total
    for name in 'svg', 'html', 'pb.gz', 'speedscope.json', 'firefox.json.gz', 'callgrind', 'json', 'bt', 'otlp', 'folded':
        path = work / f'x.{name}'
        made = run('query', store, '--from', f'@{BEGIN}', '--to', f'@{end}', '-o', path)
        check(made.returncode == 0 and path.stat().st_size > 1000, f'-o x.{name}: {made.stderr}')
    check(Result(0, (work / 'x.folded').read_text(), '').total == want, '-o x.folded has all')
    otlp_file(store, work / 'x.otlp', end)
    lines = run('query', store, '--from', f'@{BEGIN}', '--to', f'@{end}', '--limit', 5).stdout.splitlines()
    check(lines[0].startswith(f'oncpu: {want} samples at 99 Hz, 2040-01-01T05:45:00+05:45 to 2040-01-01T05:55:00+05:45'),
          f'top: {lines[0]}')
    check(len(lines) == 8 and 'more functions' in lines[-1], 'top: five functions, and how many more')
    own, below = collections.Counter(), collections.Counter()
    for stack, weight in query(store, BEGIN, end).stacks.items():
        own[stack[-1]] += weight
        for name in set(stack):
            below[name] += weight
    for line in run('query', store, '--from', f'@{BEGIN}', '--to', f'@{end}', '--limit', 200).stdout.splitlines()[2:202]:
        words = line.split()
        shares = float(words[0].rstrip('%')), float(words[3].rstrip('%'))
        want_shares = 100 * own[words[6]] / want, 100 * below[words[6]] / want
        if max(abs(a - b) for a, b in zip(shares, want_shares)) > 0.01:
            check(False, f'top: {line}: folded says {want_shares}')


def otlp_file(store, path, end):
    """Stack by stack, what the folded text has; on standard output the same bytes."""
    piped = run('query', store, '--from', f'@{BEGIN}', '--to', f'@{end}', '--format', 'otlp', text=False).stdout
    check(piped == path.read_bytes(), '--format otlp: a file and standard output are the same')
    if not otlp.is_there():
        print('no protoc: OTLP is not decoded')
        return
    for options in (), ('--by', 'service'):
        piped = run('query', store, '--from', f'@{BEGIN}', '--to', f'@{end}', '--format', 'otlp', *options, text=False)
        values, types, period, facts, _ = otlp.read_file(piped.stdout)
        have = collections.Counter()
        for stack, value in values.items():
            have[tuple(frame.name for frame in stack)] += value
        check(have == query(store, BEGIN, end, *options).stacks, f'--format otlp {options}: stacks of the folded text')
        check(types == [('samples', 'count'), ('cpu', 'nanoseconds')] and period == round(1e9 / 99), 'otlp: what values are')
        check(facts['stackbpf.from'] == '2040-01-01T05:45:00+05:45', 'otlp: of which time')


def refusals(store, work):
    for options, status, words in (
            (['--from', '-1h'], 3, 'the store has oncpu data from 2040-01-01T05:45:00+05:45'),
            (['--from', '-1h'], 3, '; choose --from and --to in that range'),
            (['--from', '-1h', '--tag', 'service=none'], 3, '; choose other tags, or --from and --to in that range'),
            (['--from', '+1h'], 2, 'the range begins in the future; choose an earlier start'),
            (['--kind', 'io'], 3, 'no data of kind io; try --kind with one of: oncpu'),
            (['--from', 'soon'], 2, 'is not a valid time: try -1h'),
            (['--from', 'now', '--to', '-1h'], 2, 'ends before it begins'),
            (['--from', '00:00', '--to', '00:10:05'], 3, 'T00:00:00+05:45 to '),
            (['--tag', 'service'], 2, "'service' is not a valid tag rule"),
            (['--tag', 'a=~('], 2, 'is not a valid tag rule'),
            (['--format', 'xml'], 2, "there is no format 'xml'"),
            (['--from', f'@{BEGIN}', '--to', f'@{BEGIN + 600}', '--by', 'nosuch'], 2, "the tag 'nosuch'; the tags are "),
            (['--format', 'distr'], 2, 'a store does not keep'),
            (['-o', 'x.xml'], 2, 'no format has this extension'),
            (['what'], 2, "does not take an argument 'what'")):
        asked = run('query', store, *options)
        check(asked.returncode == status and words in asked.stderr, f'{options}: {asked.returncode} {asked.stderr}')
    check('there is no store at' in run('query', work / 'none').stderr, 'no store')
    (work / 'other').mkdir()
    (work / 'other/file').touch()
    check('is a directory, but not a store' in run('query', work / 'other').stderr, 'no store, but something')
    asked = run('query', work / 'other/file')
    check("other/file' is not a store of stackbpf, which is a directory; name the directory of a store" in asked.stderr, f'a file: {asked.stderr}')
    unreadable(store)


def unreadable(store):
    """The directory above is ours alone."""
    if os.geteuid():
        print('no root: nobody else is there who may not read the store')
        return
    asked = subprocess.run([STACKBPF, 'query', '--store', store], capture_output=True, text=True, check=False, user=65534,
                           group=65534, extra_groups=[])
    check(asked.returncode == 4 and re.fullmatch(r"stackbpf: cannot open the store at '\S+': Permission denied; .*as root\n",
                                                 asked.stderr), f'not readable: {asked.returncode} {asked.stderr}')


def timeline(store, rows):
    asked = run('timeline', store, '--from', f'@{BEGIN}', '--to', f'@{BEGIN + SECONDS}', '--step', '10m', '--format', 'json',
                '--by', 'service')
    line = json.loads(asked.stdout)
    check((line['from'], line['step_s'], line['unit']) == (BEGIN, 600, 'samples'), 'timeline: head')
    for i in range(len(line['sampled_ms'])):
        begin = BEGIN + 600 * i
        want = sum(weight for at, weight in rows if begin <= at < begin + 600)
        have = sum(series['weights'][i] for series in line['series'])
        check(have == want, f'timeline: step {i} has {have}, rows say {want}')
    check(len(line['series']) == 20, 'timeline: all services for programs')
    table = run('timeline', store, '--from', f'@{BEGIN}', '--to', f'@{BEGIN + SECONDS}', '--by', 'service').stdout
    check(len(table.splitlines()) == 13 and '(other)' in table, 'timeline: ten services and (other) for people')
    local = '2040-01-01T05:45:00+05:45'  # of BEGIN in Kathmandu, by date(1)
    check(table.splitlines()[1].startswith(local), f'timeline: local time, and its zone: {table.splitlines()[1]}')
    many = run('timeline', store, '--from', local[:-6], '--to', f'@{BEGIN + SECONDS}', '--step', '1m', '--by', 'service').stdout
    for text in table, many:
        check(max(map(len, text.splitlines())) <= 80, f'timeline: {max(map(len, text.splitlines()))} columns')
    check(many.count(local) == 1 and sum(line.count('+05:45 to ') for line in many.splitlines()) == -(-SECONDS // 60 // 38),
          'timeline: more steps than columns go on below')
    fine = run('timeline', store, '--from', f'@{BEGIN}', '--to', f'@{BEGIN + 100}', '--step', '10s', '--format', 'tsv')
    lines = [line.split('\t') for line in fine.stdout.splitlines()]
    check(lines[0] == ['time', 'sampled_ms', 'lost', 'samples'] and len(lines) == 11, 'timeline: tsv')
    check(lines[1][3] != '' and lines[2][1:] == ['', '', ''], 'timeline: what was not recorded is empty')
    check(run('timeline', store, '--step', '15').returncode == 2, 'timeline: a step of 15 s')


def stat(store):
    have = json.loads(run('store stat', store, '--format', 'json').stdout)
    blocks = {level['name']: level['blocks'] for level in have['levels']}
    check(blocks['10s'] == SECONDS // STEP and blocks['10min'] == 18 and blocks['1h'] == 3, f'stat: {blocks}')
    check(have['kinds'][0] == {'kind': 'oncpu', 'unit': 'samples', 'hz': 99, 'from': BEGIN, 'to': BEGIN + SECONDS // STEP * STEP - STEP + 10},
          f'stat: {have["kinds"]}')
    table = run('store stat', store, '--cardinality').stdout
    check(re.search(r'^service +20 ', table, re.M), f'stat: 20 services: {table}')
    with_offset = subprocess.run([STACKBPF, 'store', 'stat', '--store', store], stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, 'TZ': 'XXX-5:45'}, check=True).stdout
    check('+05:45' in with_offset and max(map(len, with_offset.splitlines())) <= 80, f'stat: 80 columns: {with_offset}')
    check(run('store', store).returncode == 2 and run('store stat more', store).returncode == 2, 'store: wrong use')


def injured(store):
    path = next((store / '10s').iterdir())
    whole = path.read_bytes()
    check(run('store check', store).returncode == 0, 'check: whole')
    named, weights = 0, query(store, BEGIN, BEGIN + 500).total
    for _ in range(30):
        bad = bytearray(whole)
        bad[random.randrange(len(bad))] ^= 1 << random.randrange(8)
        path.write_bytes(bad)
        asked = run('store check', store)
        check(asked.returncode == 1 and '10s/20400101.sb' in asked.stdout, f'check: {asked.stdout}')
        named += 'the block of kind oncpu at 2040-01-01T' in asked.stdout
    check(named > 5, f'check: names blocks ({named} of 30)')
    bad = bytearray(whole)
    bad[4096:8192] = bytes(4096)
    path.write_bytes(bad)
    asked = query(store, BEGIN, BEGIN + 500)
    check('the store is damaged' in asked.err and asked.total <= weights, f'query: what is damaged is said: {asked.err}')
    asked_check = run('store check', store)
    check(': 1 part of the dictionary is damaged: ' in asked_check.stdout, f'check: one part: {asked_check.stdout}')
    check(any('(lost)' in frame for stack in asked.stacks for frame in stack), 'query: what is lost has a name')
    path.write_bytes(whole[:-100])
    asked = run('store check', store)
    check(asked.returncode == 1 and 'incomplete record' in asked.stdout, 'check: a torn end is said')
    damaged = query(store, BEGIN, BEGIN + 500).err
    check('the store is damaged' in damaged, f'query: a torn end: {damaged}')
    path.write_bytes(whole)


def prune(store):
    for options, words in ((['--older', '@1'], '0 files'), (['--max-size', '1'], '0 files')):
        asked = run('store prune', store, *options, '--dry-run')
        check(words in asked.stdout, f'prune {options}: {asked.stdout}')
    check(run('store prune', store).returncode == 2, 'prune: of what?')
    check('not a time in the past' in run('store prune', store, '--older', 'x').stderr, 'prune: --older x')


def old(work):
    """A store of long ago: what is expired is coarser, and says so."""
    store, begin = work / 'old', 1577836800  # 2020-01-01
    model('make', store, begin, 7200, 600, 0.01)
    total = query(store, begin, begin + 7200).total
    asked = run('store prune', store, '--retain', '10s=1d', '--dry-run')
    check('would delete 10s/20200101.sb' in asked.stdout and (store / '10s/20200101.sb').exists(), 'prune: a dry run')
    asked = run('store prune', store, '--retain', '10s=1d,10min=0')
    check('removed 10s/20200101.sb' in asked.stdout and not (store / '10s/20200101.sb').exists(), 'prune: removes')
    check(query(store, begin, begin + 7200).total == total, 'prune: sums remain')
    asked = query(store, begin + 100, begin + 200)
    check('blocks of finer resolution have expired, so the result covers 2020-01-01T05:45:00+05:45 to 2020-01-01T05:55:00+05:45' in asked.err,
          f'expired: {asked.err}')
    check(asked.facts['from'] == '2020-01-01T05:45:00+05:45', 'expired: the facts say which time it is')
    run('store prune', store, '--max-size', 1)
    check(not list(store.glob('*/*.sb')), 'prune: no room for anything')
    check("this store is still empty; 'stackbpf record' fills it" in query(store, begin, begin + 10).err, 'an empty store')
    with open(store / 'LOCK', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        check('still empty; a recorder writes to it, whose first block comes about 10 s' in query(store, begin, begin + 10).err,
              'an empty store that a recorder writes to')


def merge(store, work):
    other, both = work / 'web2', work / 'both'
    model('make', other, BEGIN + 100, 1000, STEP, 0.1)
    total = query(other, BEGIN, BEGIN + 7200).total
    run('store merge', both, other)
    check(query(both, BEGIN, BEGIN + 7200).total == total, 'merge: into a new one')
    asked = run('store merge', both, store)
    check(asked.returncode == 1 and "host 'model' for the same time" in asked.stderr, f'merge: twice: {asked.stderr}')
    check(query(both, BEGIN, BEGIN + 7200).total == total, 'merge: a refusal changes nothing')
    check('needs the directory of a second store' in run('store merge', both).stderr, 'merge: which one?')
    check('there is no store' in run('store merge', both, work / 'none').stderr, 'merge: one that is not there')
    check(not (work / 'none').exists(), 'merge: makes none')
    early, late = work / 'early', work / 'late'
    model('make', early, BEGIN, 100, STEP, 0.1)
    model('make', late, BEGIN + 300, 100, STEP, 0.1)
    run('store merge', early, late)
    asked = query(early, BEGIN + 200, BEGIN + 210)
    check("no block of " in asked.err and " data began from " in asked.err and "'stackbpf timeline' shows when" in asked.err, f'a gap: {asked.err}')


def main():
    os.environ['TZ'] = 'Asia/Kathmandu'  # times are local, and say so
    with tempfile.TemporaryDirectory(prefix='sb-store-') as name:
        work = pathlib.Path(name)
        store = work / 'store'
        model('make', store, BEGIN, SECONDS, STEP, 0.05)
        rows = [tuple(map(int, line.split()[::2])) for line in model('rows', store, BEGIN, BEGIN + SECONDS).splitlines()]
        check(len(rows) > 10000, 'the model has rows')
        sums(store, rows)
        formats(store, work)
        refusals(store, work)
        timeline(store, rows)
        stat(store)
        injured(store)
        prune(store)
        old(work)
        merge(store, work)
    done()


main()
