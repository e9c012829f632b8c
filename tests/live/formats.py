#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""formats.py STACKBPF SPLIT SPLIT.c: one run written in every format says the same in each, and functions that are called
as states of threads are called are functions in each."""
import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import live
import recorder

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'formats'))
import otlp  # noqa: E402

STACKBPF, SPLIT, SOURCE = sys.argv[1:]
EXTENSIONS = ('folded', 'svg', 'html', 'bt', 'pb.gz', 'speedscope.json', 'firefox.json.gz', 'callgrind', 'json', 'otlp')

# A function of generated code calls another one, 64 bytes behind it, which never returns.
CODE = {'x86_64': ('554889e5e837000000', '554889e5ebfe'), 'aarch64': ('fd7bbfa9fd0300910e000094', 'fd7bbfa9fd03009100000014')}
GENERATED = ('[idle]', '[lock: mutex]')
GENERATOR = '''
import ctypes, mmap, os, sys
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
at, code, names = ctypes.addressof(ctypes.c_char.from_buffer(page)), sys.argv[1:3], sys.argv[3:]
with open(f'/tmp/perf-{os.getpid()}.map', 'w', encoding='ascii') as file:
    for i in range(2):
        page[64 * i:64 * i + len(code[i]) // 2] = bytes.fromhex(code[i])
        print(f'{at + 64 * i:x} 40 {names[i]}', file=file)
print('ready', flush=True)
ctypes.CFUNCTYPE(None)(at)()
'''


def run(work, view, *args):
    """Return: {extension: path}, and what was folded."""
    paths = {extension: f'{work}/{view}.{extension}' for extension in EXTENSIONS}
    outputs = [word for path in paths.values() for word in ('-o', path)]
    done = live.stackbpf(STACKBPF, view, *outputs, *args)
    live.check(done.status == 0, f'{view}: {done.err.strip()[:300]}')
    return paths, live.Result(0, pathlib.Path(paths['folded']).read_text(encoding='utf-8'), '')


def of_json(path):
    read, sums = json.loads(pathlib.Path(path).read_bytes()), collections.Counter()
    for stack in read['stacks']:
        names = (read['functions'][read['frames'][id]['function']]['name'] for id in stack['frames'])
        sums[tuple(name.replace(';', ':') for name in names)] += stack['weight']
    return read, sums


def of_speedscope(path):
    read, sums = json.loads(pathlib.Path(path).read_bytes()), collections.Counter()
    names = [frame['name'].replace(';', ':') for frame in read['shared']['frames']]
    for stack, weight in zip(read['profiles'][0]['samples'], read['profiles'][0]['weights']):
        sums[tuple(names[id] for id in stack)] += weight
    return read['profiles'][0]['unit'], sums


def of_firefox(path):
    thread = json.loads(gzip.open(path).read())['threads'][0]
    total = sum(thread['samples']['weight'])
    return thread['samples']['weightType'], total, thread['samples']['length']


def of_otlp(path):
    """In ns where it is time."""
    values, types, *_ = otlp.read_file(pathlib.Path(path).read_bytes())
    sums = collections.Counter()
    for stack, value in values.items():
        sums[tuple(frame.name.replace(';', ':') for frame in stack)] += value
    return types[0][1], sums


def of_callgrind(path):
    text = subprocess.run(['callgrind_annotate', '--threshold=100', '--auto=no', path], check=True,
                          capture_output=True, text=True).stdout
    return int(re.search(r'^ *([\d,]+) .*PROGRAM TOTALS', text, re.M)[1].replace(',', ''))


def of_pprof(path, work):
    env = {**os.environ, 'HOME': work, 'PPROF_TMPDIR': work, 'GOTOOLCHAIN': 'local'}
    text = subprocess.run(['go', 'tool', 'pprof', '-symbolize=none', '-raw', path], check=True,
                          capture_output=True, text=True, env=env, cwd=work).stdout
    types = re.search(r'^Samples:\n(.*)$', text, re.M)[1].split()
    values = [[int(val) for val in row.split()] for row in
              re.findall(r'^ +([\d ]+): [\d ]+$', text.split('\nLocations')[0], re.M)]
    return types, [sum(column) for column in zip(*values)], text


def check_all(work, view, paths, folded, unit, firefox_type, factor):
    read, stacks = of_json(paths['json'])
    live.check(folded.total > 0 and stacks == folded.stacks, f'{view}: json has the stacks of the folded text')
    facts = {'v': '1', **{key: val.replace(' ', '_') for key, val in read['facts'].items()}}
    live.check((read['total'], facts) == (folded.total, folded.facts), f'{view}: json has total and facts')
    scope_unit, stacks = of_speedscope(paths['speedscope.json'])
    live.check((scope_unit, stacks) == (unit, folded.stacks), f'{view}: speedscope has them in {scope_unit}')
    kind, total, nr = of_firefox(paths['firefox.json.gz'])
    live.check(kind == firefox_type and abs(total * (1000 if kind == 'tracing-ms' else 1) - folded.total) < 0.01 * nr + 0.01,
               f'{view}: firefox has {total} {kind} of {folded.total}')
    if otlp.is_there():
        kind, stacks = of_otlp(paths['otlp'])
        scale = 1000 if kind == 'nanoseconds' else 1
        live.check(stacks == {stack: weight * scale for stack, weight in folded.stacks.items()},
                   f'{view}: otlp has the stacks of the folded text in {kind}')
    if shutil.which('callgrind_annotate'):
        live.check(of_callgrind(paths['callgrind']) == folded.total, f'{view}: callgrind_annotate has {folded.total}')
    if shutil.which('go'):
        types, totals, _ = of_pprof(paths['pb.gz'], work)
        live.check(totals[0] == (int(folded.facts['n'])), f'{view}: {types[0]}: {totals[0]} of {folded.facts["n"]}')
        live.check(sum(stack['samples'] for stack in read['stacks']) == totals[0], f'{view}: json has {totals[0]} samples')
        live.check(totals[-1] == folded.total * factor or abs(totals[-1] / folded.total / factor - 1) < 1e-6,
                   f'{view}: pprof has {totals} {types} of {folded.total}')
    live.check('</html>' in pathlib.Path(paths['html']).read_text(encoding='utf-8')[-20:], f'{view}: the page is whole')


def check_places(work, paths):
    """Files and lines, without --lines: those of the source."""
    lines = pathlib.Path(SOURCE).read_text(encoding='utf-8').splitlines()
    read, _ = of_json(paths['json'])
    for name in 'seventy', 'twenty', 'ten':
        begin = next(i for i, line in enumerate(lines, 1) if re.match(rf'.*\b{name}\(', line) and ';' not in line)
        end = next(i for i, line in enumerate(lines, 1) if i > begin and line == '}')
        numbers = {i for i, function in enumerate(read['functions']) if function['name'] == name}
        files = {pathlib.Path(read['functions'][i].get('file', '')).name for i in numbers}
        found = {frame.get('line', 0) for frame in read['frames'] if frame['function'] in numbers}
        live.check(files == {'split.c'} and found and all(begin <= line <= end for line in found),
                   f'{name}: lines {sorted(found)} of {files}, which are {begin} to {end}')
        modules = {read['functions'][i].get('module') for i in numbers}
        live.check(modules == {'split'}, f'{name}: module {modules}')


def oncpu(work):
    with live.running(SPLIT) as process:
        paths, folded = run(work, 'oncpu', '-F', '997', '--by', 'pid', '-t', '2', '-p', str(process.pid))
    check_all(work, 'oncpu', paths, folded, 'none', 'samples', 1e9 / 997)
    share, bound = folded.share('seventy'), max(0.03, 4 * (0.7 * 0.3 / max(folded.total, 1)) ** 0.5)
    live.check(abs(share - 0.7) < bound, f'seventy has {share:.3f} of {folded.total} samples')
    check_places(work, paths)
    if shutil.which('go'):
        types, totals, text = of_pprof(paths['pb.gz'], work)
        live.check(types[0] == 'samples/count' and totals[0] == folded.total, f'oncpu: {types}: {totals}')
        live.check(f'pid:[{process.pid}]' in text and 'comm:[split]' in text, f'oncpu: labels of {process.pid}')


def waits(work):
    with live.running('sleep', '60') as process:
        paths, folded = run(work, 'offcpu', '-t', '1', '-p', str(process.pid))
    check_all(work, 'offcpu', paths, folded, 'microseconds', 'tracing-ms', 1000)


def files(work):
    paths, folded = run(work, 'io', '--', 'dd', 'if=/dev/zero', f'of={work}/zeros', 'bs=4096', 'count=100')
    check_all(work, 'io', paths, folded, 'bytes', 'bytes', 1)
    live.check(folded.total >= 2 * 409600, f'io: {folded.total} bytes')


def check_states(work, what, paths):
    """Files of a program that is in GENERATED[1] all the time."""
    read, _ = of_json(paths['json'])
    kinds = {function['name']: function['kind'] for function in read['functions']}
    live.check([kinds.get(name) for name in GENERATED] == ['jit'] * 2, f'{what}: json has functions: {kinds}')
    picture = pathlib.Path(paths['svg']).read_text(encoding='utf-8')
    legend = {name: color for color, name in re.findall(r'class="(\D+)\d*"[^>]*/><text[^>]*>([^<]*)',
                                                        re.search(r'<g id="legend">.*', picture)[0])}
    colors = [re.search(rf'<title>{re.escape(name)} .*?class="(\D+)', picture)[1] for name in GENERATED]
    live.check(colors == [legend.get('JIT')] * 2, f'{what}: the picture has colors {colors} of {legend}')
    live.check(not {'idle', 'lock'} & set(legend), f'{what}: the picture has no states')
    if 'top' in paths:
        first = pathlib.Path(paths['top']).read_text(encoding='utf-8').splitlines()[2]
        live.check(first.endswith(f'  {GENERATED[1]} [jit]') and float(first.split('%')[0]) > 80,
                   f'{what}: the heaviest function is {first}')
    if shutil.which('go'):
        _, _, text = of_pprof(paths['pb.gz'], work)
        live.check(all(re.search(rf'M=\d+ {re.escape(name)} ', text) for name in GENERATED), f'{what}: pprof has functions')


def called_as_states(work):
    if os.uname().machine not in CODE:
        print('not here: generated code')
        return
    with live.ready('python3', '-c', GENERATOR, *CODE[os.uname().machine], *GENERATED) as process:
        try:
            paths, _ = run(work, 'oncpu', '-t', '1', '-p', str(process.pid))
            with recorder.recording(f'{work}/store', '-p', str(process.pid), '--kinds', 'oncpu') as record:
                live.runs_for(process.pid, 1)
                live.check(record.end() == 0, f'record: {record.said}')
        finally:
            os.unlink(f'/tmp/perf-{process.pid}.map')
    check_states(work, 'oncpu', paths)
    paths = {extension: f'{work}/query.{extension}' for extension in ('json', 'svg', 'top', 'pb.gz')}
    for extension, path in paths.items():
        subprocess.run([STACKBPF, 'query', '--store', f'{work}/store', '--from', '-1d', '--to', 'now+1h', '--kind', 'oncpu',
                        '--format', {'pb.gz': 'pprof'}.get(extension, extension), '-o', path], check=True)
    check_states(work, 'query', paths)


live.need_root()
with tempfile.TemporaryDirectory() as directory:
    for part in oncpu, waits, files, called_as_states:
        part(directory)
live.done()
