#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""readers.py READER WRITE_FORMATS DIR: what others read in our files is what was sampled: names, order, lines,
weights. DIR keeps the readers that npm has."""
import collections
import fcntl
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import otlp
import sample

HERE = pathlib.Path(__file__).resolve().parent
failures = []


def check(have, want, what):
    is_same = have == want
    print(('ok: ' if is_same else 'FAILED: ') + what)
    if not is_same:
        if isinstance(have, dict) and isinstance(want, dict):
            have = {key: val for key, val in have.items() if want.get(key) != val}
            want = {key: val for key, val in want.items() if key not in have or have[key] != val}
        print(f'    have {have!r:.2000}\n    want {want!r:.2000}')
        failures.append(what)


def run(*command, **kwargs):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=240, check=False, **kwargs)
    if done.returncode:
        raise AssertionError(f'{command} failed: {done.stdout} {done.stderr}')
    return done.stdout


def need(*programs):
    for name in programs:
        if not shutil.which(name):
            sample.skip(f'no {name}')


def of_npm(directory):
    """The packages of package-lock.json, installed below @directory once."""
    need('node', 'npm')
    lock = (HERE / 'package-lock.json').read_bytes()
    root = pathlib.Path(directory) / ('npm-' + hashlib.sha256(lock).hexdigest()[:12])
    root.mkdir(parents=True, exist_ok=True)
    # Several tests want it at once.
    with open(root / 'busy', 'w', encoding='ascii') as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        if not (root / 'done').exists():
            for name in 'package.json', 'package-lock.json':
                shutil.copy(HERE / name, root / name)
            done = subprocess.run(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], cwd=root,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
                                  check=False)
            if done.returncode:
                sample.skip(f'npm cannot install the readers: {done.stdout[-300:]}')
            (root / 'done').touch()
    return root / 'node_modules'


def counted(stacks):
    """[(names root first, weight)] as a dict."""
    sums = collections.Counter()
    for names, weight in stacks:
        sums[tuple(names)] += weight
    return dict(sums)


def cleaned(profile):
    return counted((tuple(sample.clean(name) for name in names), weight)
                   for names, weight in profile.folded().items())


# ---- go tool pprof ----

def read_raw(text):
    """The stacks of `pprof -raw`: names root first, with lines; all values; labels."""
    head, rest = text.split('\nLocations\n')
    locations, current = {}, None
    for line in rest.split('\nMappings')[0].splitlines():
        found = re.match(r' +(\d+): 0x0 (?:M=\d+ )?(.*)$', line)
        if found:
            current = locations.setdefault(int(found[1]), [])
        place = re.match(r'(.*) (\S*):(\d+)(?::\d+)? s=\d+(?:\(.*\))?$', found[2] if found else line.strip())
        assert place, line
        current.append((place[1], int(place[3])))
    stacks, labels = [], []
    for line in head.split('\nSamples:\n')[1].splitlines()[1:]:
        found = re.match(r' +([\d ]+): ([\d ]*)$', line)
        if found:
            frames = [frame for id in found[2].split() for frame in locations[int(id)]]
            stacks.append((tuple(reversed(frames)), tuple(int(val) for val in found[1].split())))
            labels.append({})
        else:
            labels[-1].update(re.findall(r'(\w+):\[([^]]*)\]', line))
    return stacks, labels


def go_pprof(program, work, _):
    """Names, lines, order, inlined frames, both values, labels."""
    need('go')
    env = {**os.environ, 'PPROF_TMPDIR': work, 'HOME': work, 'GOFLAGS': '-mod=mod', 'GOTOOLCHAIN': 'local'}

    def pprof(*args):
        return run('go', 'tool', 'pprof', *args, env=env, cwd=work)

    profile = sample.ordinary(hz='99')
    path = profile.write(program, work, 'pprof')['pprof']
    raw = pprof('-raw', path)
    stacks, labels = read_raw(raw)
    want = [(tuple((f.name, f.line) for f in stack), weight) for stack, weight in profile.stacks]
    check(counted((names, values[0]) for names, values in stacks), counted(want), 'go: stacks, lines, samples')
    ns = {weight: (weight * 10**9 + 49) // 99 for _, weight in profile.stacks}
    check(all(values[1] == ns[values[0]] for _, values in stacks), True, 'go: nanoseconds')
    check('samples/count cpu/nanoseconds[dflt]' in raw and 'Period: 10101010' in raw, True, 'go: types, period')
    check('Duration: 5s' in raw and '2023-11-14 22:13:20' in raw and 'lost=7' in raw, True, 'go: when, what was lost')
    threads = {'app-12/13': ('app', '12', '13'), 'my db-7/8': ('my db', '7', '8')}
    check(all((label['comm'], label['pid'], label['tid']) == threads[stack[0][0]]
              for (stack, _), label in zip(stacks, labels)), True, 'go: labels')
    place = next(line for line in raw.splitlines() if re.match(r' +\d+: 0x0 M=\d+ store ', line))
    at = raw.splitlines().index(place)
    check([line.split()[0] for line in raw.splitlines()[at + 1:at + 3]], ['step', 'main'],
          'go: inlined frames are lines of one location')

    # The report merges by name, drops the lines, and counts recursion once.
    top = pprof('-top', '-sample_index=samples', '-nodefraction=0', '-edgefraction=0', '-nodecount=999', path)
    rows = re.findall(r'^ +(\d+) +\S+ +\S+ +(\d+) +\S+ +(.*?)(?: \((?:partial-)?inline\))?$', top, re.M)
    check({name: (int(flat), int(cum)) for flat, cum, name in rows}, profile.functions(), 'go: -top')
    focused = pprof('-top', '-sample_index=samples', '-tagfocus=comm=my db', path)
    check(int(re.search(r'accounting for (\d+)', focused)[1]), 178, 'go: -tagfocus=comm')

    for kind, unit, name, factor in (('offcpu', 'us', 'delay/nanoseconds', 1000), ('io', 'bytes', 'io/bytes', 1),
                                     ('io', 'calls', 'calls/count', 1), ('wall', 'us', 'wall/nanoseconds', 1000)):
        profile = sample.ordinary(kind, unit)
        raw = pprof('-raw', profile.write(program, work, 'pprof')['pprof'])
        check((name in raw, sum(values[0] for _, values in read_raw(raw)[0])), (True, profile.total * factor),
              f'go: {kind} in {unit}')
    profile = sample.ordinary('offcpu', 'us')
    profile.samples = lambda weight: weight // 5 + 1
    raw = pprof('-raw', profile.write(program, work, 'pprof')['pprof'])
    check('samples/count delay/nanoseconds[dflt]' in raw, True, 'go: waits are counted, too')
    check(sorted(values for _, values in read_raw(raw)[0]),
          sorted((profile.samples(weight), weight * 1000) for _, weight in profile.stacks), 'go: waits and their time')
    base = pprof('-top', f'-diff_base={path}', path)
    check('accounting for 0' in base, True, 'go: difference to itself')
    profile = sample.hostile()
    raw = pprof('-raw', profile.write(program, work, 'pprof')['pprof'])
    values = re.findall(r'^ +(\d+): [\d ]+$', raw.split('Locations')[0], re.M)
    check(sum(int(val) for val in values), profile.total, 'go: hostile names')


DECODE = """
const { Profile } = require('pprof-format'), fs = require('fs'), zlib = require('zlib');
const raw = zlib.gunzipSync(fs.readFileSync(process.argv[2])), profile = Profile.decode(raw);
const text = (id) => profile.stringTable.strings[Number(id)];
const byId = (list) => new Map(list.map((item) => [Number(item.id), item]));
const locations = byId(profile.location), functions = byId(profile.function), mappings = byId(profile.mapping);
const stacks = profile.sample.map((sample) => [[...sample.locationId].reverse().flatMap((id) =>
    [...locations.get(Number(id)).line].reverse().map((line) => {
        const fn = functions.get(Number(line.functionId));
        const mapping = mappings.get(Number(locations.get(Number(id)).mappingId));
        return [text(fn.name), text(fn.filename), mapping ? text(mapping.filename) : ''];
    })), Number(sample.value[0])]);
console.log(JSON.stringify({ stacks, same: Buffer.compare(Buffer.from(profile.encode()), raw) === 0 }));
"""


def npm_pprof(program, work, directory):
    """An independent decoder; what it encodes again are the same bytes."""
    modules = of_npm(directory)
    for profile, what in (sample.ordinary(hz='99'), 'ordinary'), (sample.hostile(), 'hostile'):
        path = profile.write(program, work, 'pprof')['pprof']
        read = json.loads(run('node', '-e', DECODE, 'decode', path, env={**os.environ, 'NODE_PATH': str(modules)}))
        want = counted((tuple(tuple(sample.clean(part) for part in (f.name, f.file, f.module)) for f in stack), weight)
                       for stack, weight in profile.stacks)
        have = counted((tuple(tuple(frame) for frame in frames), weight) for frames, weight in read['stacks'])
        check(have, want, f'pprof-format: {what}: names, files, modules, weights')
        check(read['same'], True, f'pprof-format: {what}: encoded again')


# ---- callgrind_annotate ----

def annotated(path, *options):
    text = run('callgrind_annotate', '--threshold=100', '--auto=no', *options, path)
    rows = re.findall(r'^ *([\d,]+) \([^)]*\)  (.+?)(?: \[(\[[^\[\]]*\]|[^\[\]]*)\])?$', text, re.M)
    return {name: int(cost.replace(',', '')) for cost, name, _ in rows if name != 'PROGRAM TOTALS'}, text


def callgrind(program, work, _):
    """Self costs, inclusive costs with recursion once, the total, and costs by line."""
    need('callgrind_annotate')

    def key(frame):
        kinds = {sample.ROOT: '[process]', sample.MARK: '[mark]', sample.FILE: '[file]'}
        return f'{frame.file or frame.module or kinds.get(frame.kind, "???")}:{frame.name}'

    profile = sample.ordinary()
    path = profile.write(program, work, 'callgrind')['callgrind']
    functions = profile.functions(key)
    have, text = annotated(path)
    check(have, {name: own for name, (own, _) in functions.items() if own}, 'callgrind: self')
    check(int(re.search(r'^ *([\d,]+) .*PROGRAM TOTALS', text, re.M)[1].replace(',', '')), profile.total,
          'callgrind: total')
    have, _ = annotated(path, '--inclusive=yes')
    check(have, {'???:all': profile.total, **{name: total for name, (_, total) in functions.items()}},
          'callgrind: inclusive')
    lines = collections.Counter()
    for stack, weight in profile.stacks:
        lines[key(stack[-1]), stack[-1].line] += weight
    check(own_lines(path), dict(lines), 'callgrind: lines')
    profile = sample.hostile()
    path = profile.write(program, work, 'callgrind')['callgrind']
    have, _ = annotated(path)
    check(sum(have.values()), profile.total, 'callgrind: hostile names')
    check(sum(own_lines(path).values()), profile.total, 'callgrind: hostile names and facts make no lines')


def own_lines(path):
    """{(file:function, line): self}, by the manual of the format."""
    names, costs, file, function, is_call = {}, collections.Counter(), '', '', False
    for line in pathlib.Path(path).read_text(encoding='utf-8').split('\n'):
        found = re.match(r'(fl|fn|cfi|cfn)=\((\d+)\)(?: (.*))?$', line)
        if found:
            table = 'fl' if found[1] in ('fl', 'cfi') else 'fn'
            name = names.setdefault((table, found[2]), found[3])
            file, function = (name if found[1] == 'fl' else file), (name if found[1] == 'fn' else function)
        elif re.match(r'\d+ \d+$', line):
            at, cost = line.split()
            if not is_call:
                costs[f'{file}:{function}', int(at)] += int(cost)
        is_call = line.startswith('calls=')
    return dict(costs)


# ---- Firefox ----

def firefox(program, work, directory):
    """Firefox's profiler without a window: totals and names of all functions, and the tree."""
    need('node')
    version = run('node', '--version')
    if int(version.lstrip('v').split('.')[0]) < 20:
        sample.skip(f'profiler-cli needs node 20, this is {version.strip()}')
    modules = of_npm(directory)
    cli = modules / '@firefox-devtools/profiler-cli/dist/profiler-cli.js'
    env = {**os.environ, 'HOME': work, 'XDG_RUNTIME_DIR': work, 'NO_COLOR': '1'}

    def profiler(*args):
        return run('node', cli, *args, env=env, cwd=work)

    def load(path):
        # It gives its server half a second to start, which is little on a busy machine.
        loading = subprocess.run(['node', cli, 'load', path], env=env, cwd=work, capture_output=True, text=True,
                                 timeout=240, check=False)
        if loading.returncode and 'did not become ready' not in loading.stderr + loading.stdout:
            raise AssertionError(loading.stderr + loading.stdout)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            status = subprocess.run(['node', cli, 'profile', 'info'], env=env, cwd=work, capture_output=True,
                                    timeout=240, check=False)
            if not status.returncode:
                return
        raise AssertionError(f'profiler-cli never was ready: {loading.stderr}')

    def functions():
        text = profiler('thread', 'functions', '--json', '--include-idle')
        return {row['name']: (row['selfSamples'], row['totalSamples']) for row in json.loads(text)['functions']}

    for profile, what, factor in ((sample.ordinary(hz='99'), 'samples', 1),
                                  (sample.ordinary('offcpu', 'us'), 'us', 1000),
                                  (sample.ordinary('io', 'bytes'), 'bytes', 1)):
        path = profile.write(program, work, 'firefox')['firefox']
        shutil.move(path, f'{work}/a.firefox.json.gz')
        try:
            load(f'{work}/a.firefox.json.gz')
            have = functions()
            merged = collections.defaultdict(lambda: [0, 0])
            # It tells functions of one name apart, by module and file; names are compared here.
            for name, row in have.items():
                merged[name][0] += round(row[0] * factor)
                merged[name][1] += round(row[1] * factor)
            want = profile.functions()
            check({name: tuple(row) for name, row in merged.items() if name != 'read'},
                  {name: row for name, row in want.items() if name != 'read'}, f'firefox: {what}')
        finally:
            profiler('stop')
    firefox_tables(program, work, directory)


def firefox_tables(program, work, _):
    """The same by the tables themselves, also with hostile names."""
    for profile, what in (sample.ordinary(hz='99'), 'ordinary'), (sample.hostile(), 'hostile'):
        path = profile.write(program, work, 'firefox')['firefox']
        thread = json.loads(gzip.open(path).read())['threads'][0]
        tables = [thread[name] for name in ('stackTable', 'frameTable', 'funcTable', 'samples')]
        check({len(column) for table in tables for column in table.values() if isinstance(column, list)} <=
              {table['length'] for table in tables}, True, f'firefox: {what}: columns are whole')
        stacks, frames, funcs, samples = tables
        read = []
        for node, weight in zip(samples['stack'], samples['weight']):
            names = []
            while node is not None:
                func = frames['func'][stacks['frame'][node]]
                names.append(thread['stringArray'][funcs['name'][func]])
                node = stacks['prefix'][node]
            read.append((tuple(reversed(names)), weight))
        check(counted(read), cleaned(profile), f'firefox: {what}: stacks')
        paths = {tuple(stack[:depth]) for stack, _ in profile.stacks for depth in range(1, len(stack) + 1)}
        check(stacks['length'], len(paths), f'firefox: {what}: stacks share their callers')


# ---- JSON ----

def json_text(program, work, _):
    """Our own format by its description in docs/formats.md; speedscope's by its schema."""
    for profile, what in (sample.ordinary(hz='99'), 'ordinary'), (sample.hostile(), 'hostile'):
        paths = profile.write(program, work, 'json', 'speedscope')
        run(sys.executable, '-m', 'json.tool', paths['json'], os.devnull)
        read = json.loads(pathlib.Path(paths['json']).read_bytes())
        functions, frames = read['functions'], read['frames']
        have = counted((tuple((functions[frames[id]['function']]['name'],
                               functions[frames[id]['function']].get('module', ''),
                               functions[frames[id]['function']].get('file', ''), frames[id].get('line', 0),
                               frames[id].get('inlined', False)) for id in stack['frames']), stack['weight'])
                       for stack in read['stacks'])
        inlined = (sample.INLINED, sample.KERNEL_INLINED)
        want = counted((tuple((*(sample.clean(part) for part in (f.name, f.module, f.file)), f.line, f.kind in inlined)
                              for f in stack), weight) for stack, weight in profile.stacks)
        check(have, want, f'json: {what}: stacks, modules, files, lines')
        check(read['total'], profile.total, f'json: {what}: total')
        check(any('samples' in stack for stack in read['stacks']), False, f'json: {what}: no samples where unknown')
        check(read['facts'], {key: sample.clean(val) for key, val in profile.facts.items()}, f'json: {what}: facts')

        scope = json.loads(pathlib.Path(paths['speedscope']).read_bytes())
        names = [frame['name'] for frame in scope['shared']['frames']]
        (rows,) = scope['profiles']
        have = counted((tuple(names[id] for id in stack), weight)
                       for stack, weight in zip(rows['samples'], rows['weights']))
        check(have, cleaned(profile), f'speedscope: {what}: stacks')
        check((rows['endValue'], len(rows['samples'])), (profile.total, len(rows['weights'])),
              f'speedscope: {what}: totals')
    path = sample.ordinary().write(program, work, 'json', limit=3)['json']
    read = json.loads(pathlib.Path(path).read_bytes())
    check([stack['weight'] for stack in read['stacks']], [250, 160, 130], 'json: --limit')
    used = {id for stack in read['stacks'] for id in stack['frames']}
    check((used, {read['frames'][id]['function'] for id in used}),
          (set(range(len(read['frames']))), set(range(len(read['functions'])))), 'json: nothing that is not used')


# ---- OTLP ----

def otlp_profiles(program, work, _):
    """protoc, by a schema of our own: stacks with modules, files and lines, values, what they mean, facts."""
    if not otlp.is_there():
        sample.skip('no protoc')
    for profile, what in (sample.ordinary(hz='99'), 'ordinary'), (sample.hostile(), 'hostile'):
        path = profile.write(program, work, 'otlp')['otlp']
        sums, types, period, facts, read = otlp.read_file(pathlib.Path(path).read_bytes())
        want = counted((tuple((*(sample.clean(part) for part in (f.name, f.file, f.module)), f.line) for f in stack), weight)
                       for stack, weight in profile.stacks)
        check(counted((((f.name, f.file, f.module, f.line) for f in stack), weight) for stack, weight in sums.items()),
              want, f'otlp: {what}: names, files, modules, lines, weights')
        check(facts, {'stackbpf.' + key: sample.clean(val) for key, val in profile.facts.items()}, f'otlp: {what}: facts')
        if what == 'ordinary':
            check((types, period), ([('samples', 'count'), ('cpu', 'nanoseconds')], 10101010), 'otlp: samples of a timer')
            check((otlp.one(read, 'time_unix_nano'), otlp.one(read, 'duration_nano')), (1700000000 * 10**9, 5 * 10**9),
                  'otlp: when, and how long')
            kinds = {f.name: f.kind for stack in sums for f in stack}
            check((kinds['copy'], kinds['step'], kinds['work']), ('kernel', 'native', None), 'otlp: kinds of code')
    for kind, unit, name, factor in ('offcpu', 'us', 'off_cpu/nanoseconds', 1000), ('io', 'bytes', 'io/bytes', 1):
        profile = sample.ordinary(kind, unit)
        path = profile.write(program, work, 'otlp')['otlp']
        sums, types, *_ = otlp.read_file(pathlib.Path(path).read_bytes())
        check(('/'.join(types[0]), sum(sums.values())), (name, profile.total * factor), f'otlp: {kind} in {unit}')
    path = sample.traced().write(program, work, 'otlp')['otlp']
    body = pathlib.Path(path).read_bytes()
    check(otlp.links(body), {(sample.TRACE, sample.SPAN): 5, (sample.TRACE, '0' * 16): 7, None: 11 + 13}, 'otlp: links to spans')
    check({frame.name for stack in otlp.read_file(body)[0] for frame in stack}, {'main', 'request=r1', 'trace_id=none'},
          'otlp: what is in links is not in stacks')
    path = sample.ordinary().write(program, work, 'otlp', limit=3)['otlp']
    check(sorted(otlp.read_file(pathlib.Path(path).read_bytes())[0].values()), [130, 160, 250], 'otlp: --limit')


READERS = {'go': go_pprof, 'npm-pprof': npm_pprof, 'callgrind': callgrind, 'firefox': firefox,
           'firefox-tables': firefox_tables, 'json': json_text, 'otlp': otlp_profiles}


def main():
    reader, program, directory = sys.argv[1], *map(os.path.abspath, sys.argv[2:])
    with tempfile.TemporaryDirectory(prefix='formats-') as work:
        READERS[reader](program, work, directory)
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
