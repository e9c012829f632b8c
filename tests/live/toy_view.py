#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A view is declared once: one that is two files and a row in a copy of the tree is everywhere that views are. An
output is a file and a row in the same way, and a runtime its walker, its two halves and a row.

The view "toy" counts the processes that a process makes; the shell below makes as many as it is told to.

toy_view.py STACKBPF SOURCE MESON WORK
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'serve'))
from live import Result, check, done, need_root, running, wait_for  # noqa: E402
from recorder import recording, written  # noqa: E402
from serving import serving  # noqa: E402

need_root()
SOURCE, MESON, WORK = pathlib.Path(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4])
TOY = pathlib.Path(__file__).resolve().parent / 'toy_view'
TREE, BUILD = WORK / 'tree', WORK / 'build'
BINARY, FLAMEGRAPH = BUILD / 'user/cli/stackbpf', BUILD / 'user/flamegraph/flamegraph'
NR_FORKS = 40
FORKS = ('sh', '-c', f'i=0; while [ $i -lt {NR_FORKS} ]; do /bin/true; i=$((i+1)); done; :')


def add_row(table, row):
    """The time of the table is that of its original, or of this test: what it is made of."""
    path = TREE / table
    newest = max(path.stat().st_mtime_ns, *(file.stat().st_mtime_ns for file in (TOY / 'row.def', TOY, pathlib.Path(__file__))))
    path.write_text(path.read_text(encoding='utf-8') + row, encoding='utf-8')
    os.utime(path, ns=(newest, newest))


def build():
    """Times of files are those of the originals: a second run compiles what has changed since the first."""
    shutil.rmtree(TREE, ignore_errors=True)
    built = re.findall(r"^ *subdir\('(\w+)", (SOURCE / 'meson.build').read_text(encoding='utf-8'), re.M)
    for name in {*built, 'include', 'scripts'} - {'tests'}:
        shutil.copytree(SOURCE / name, TREE / name)
    for name in 'meson.build', 'meson_options.txt':
        shutil.copy2(SOURCE / name, TREE)
    shutil.copy2(TOY / 'toy.bpf.c', TREE / 'bpf/views')
    shutil.copy2(TOY / 'toy.c', TREE / 'user/views')
    shutil.copy2(TOY / 'toylines.c', TREE / 'user/output')
    shutil.copy2(TOY / 'sb_step_toytongue.h', TREE / 'bpf/step')
    shutil.copy2(TOY / 'toytongue.bpf.c', TREE / 'bpf/interp')
    (TREE / 'user/interp/toytongue').mkdir()
    shutil.copy2(TOY / 'toytongue.c', TREE / 'user/interp/toytongue')
    add_row('bpf/abi/sb_runtimes.def', 'SB_RUNTIME(TOYTONGUE, toytongue, STATE)\n')
    add_row('user/kinds/views.def', (TOY / 'row.def').read_text(encoding='utf-8'))
    add_row('user/output/outputs.def', 'SB_OUTPUT(toylines)\n')
    if not (BUILD / 'build.ninja').exists():
        subprocess.run([MESON, 'setup', '--buildtype=plain', '-Dtests=disabled', BUILD, TREE], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(['ninja', '-C', BUILD, BINARY.relative_to(BUILD), FLAMEGRAPH.relative_to(BUILD)], check=True,
                   stdout=subprocess.DEVNULL)


def said(*args):
    return subprocess.run([BINARY, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False).stdout


def command_line():
    check(re.search(r'^  toy +where processes make processes$', said('help'), re.M), 'it is a command')
    own = said('help', 'toy')
    check('usage: stackbpf toy [options]' in own, 'which has help')
    check('--state' in own and '--freq' not in own and '--min' not in own and '--layer' not in own,
          'and options as its row says')
    for command in 'top', 'record', 'query', 'export':
        check(re.search(r'\btoy\b', said('help', command)), f'{command} --help names it')
    check(re.search(r'is not one of .*\btoy\b', said('run', '--kind', 'x', '--', 'true')), 'so does an error')
    check('toy\twhere processes' in said('completion', '--', 'to'), 'it is completed')
    check(re.search(r'^toy\b', said('completion', '--', 'run', '--kind', 't'), re.M), 'as the value of --kind')
    check('--state' in said('completion', '--', 'toy', '--st'), 'its options are')


def colours(kind):
    """What a picture says of itself, and its colours."""
    svg = subprocess.run([FLAMEGRAPH], input=f'#stackbpf;kind={kind};unit=us;n=9\na;b_[k] 9\n', text=True,
                         stdout=subprocess.PIPE, check=True).stdout
    return svg, re.search(r'<style.*?</style>', svg, re.S)[0]


def formats():
    out = WORK / 'out'
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    names = [out / name for name in ('toy.folded', 'toy.svg', 'toy.pb.gz', 'toy.otlp', 'toy.toylines')]
    run = subprocess.run([BINARY, 'toy', *(word for name in names for word in ('-o', name)), '--', *FORKS],
                         stderr=subprocess.PIPE, text=True, check=False)
    check(run.returncode == 0 and f'{NR_FORKS} forks' in run.stderr, f'the closing line: {run.stderr.strip()}')
    result = Result(run.returncode, names[0].read_text(encoding='utf-8'), run.stderr)
    check(result.total == NR_FORKS and {stack[0] for stack in result.stacks} == {'sh'},
          f'folded: {result.total} us of {NR_FORKS} forks')
    check(result.facts.get('kind') == 'toy' and result.facts.get('unit') == 'us', f'facts: {result.facts}')
    svg = names[1].read_text(encoding='utf-8')
    check('Toy flame graph' in svg and f'{NR_FORKS} forks' in svg, 'svg: title and event')
    check(b'pretoy' in gzip.decompress(names[2].read_bytes()), 'pprof: the type of its values')
    check(b'o_toy' in names[3].read_bytes(), 'OTLP: the type of its values')
    check(names[4].read_text(encoding='utf-8').splitlines() == [str(i) for i in range(len(result.stacks))],
          'an output that is a file and a row is chosen by its extension')
    check('toylines\ta line for each stack' in said('completion', '--', 'toy', '--format', 'to'), 'and completed')
    check(re.search(r'^outputs:.*\btoylines$', said('--version'), re.M), 'and listed')
    check(colours('toy')[1] == colours('wakeup')[1] != colours('none')[1], 'colours as its row says')
    check('Toy flame graph' in colours('toy')[0], 'flamegraph knows it')


def store():
    path = WORK / 'store'
    shutil.rmtree(path, ignore_errors=True)
    with recording(path, '--kinds', 'toy,oncpu', '--tag', 'region=eu', binary=BINARY) as recorder:
        subprocess.run(FORKS, check=True)
        written(recorder)
        recorder.end()
    # A range that ends now has no block that begins in this second, or in the next: the recorder rounds times up by half.
    ended = int(time.time())
    wait_for(lambda: time.time() >= ended + 2, 'the block has begun')
    query = subprocess.run([BINARY, 'query', '--store', path, '--kind', 'toy', '--by', 'comm', '--format', 'folded'],
                           stdout=subprocess.PIPE, text=True, check=False)
    result = Result(query.returncode, query.stdout, '')
    shell = sum(weight for stack, weight in result.stacks.items() if stack[0] == 'sh')
    check(shell >= NR_FORKS, f'a store has it: {shell} us of at least {NR_FORKS}')
    with serving(BINARY, '--store', path) as server:
        info = server.json('/api/info')
        kinds = [row['kind'] for row in info['kinds']]
        check({'format': 'toylines', 'summary': 'a line for each stack'} in info['formats'], 'the page offers the output')
        toy, oncpu = (server.json('/api/flame', kind=kind) for kind in ('toy', 'oncpu'))
        check('toy' in kinds and toy['unit'] == 'us' and toy['palette'] != oncpu['palette'],
              f'the page has a button for it, and colours: {kinds}')
        bearer = server.json('/render', query='sh.plaything{}', from_='now-1h', until='now', format='json')['flamebearer']
        check(bearer['numTicks'] >= NR_FORKS, f'Grafana asks for it by the name in its row: {bearer["numTicks"]} us')


def runtime():
    """A process whose program defines the runtime's symbol has the runtime."""
    program = WORK / 'speaker'
    source = '#include <unistd.h>\nint toytongue_main_loop(void)\n{\n\treturn pause();\n}\n' \
        'int main(void)\n{\n\treturn toytongue_main_loop();\n}\n'
    subprocess.run(['gcc', '-rdynamic', '-o', program, '-x', 'c', '-'], input=source, text=True, check=True)
    check(re.search(r'^interpreters:.*\btoytongue\b', said('--version'), re.M), 'a runtime is listed')
    with running(program) as process:
        wait_for(lambda: os.readlink(f'/proc/{process.pid}/exe') == str(program), 'the program runs')
        text = said('doctor', '-p', str(process.pid))
        check('toytongue' in text and 'toys have no frames' in text, f'and found in a process: {text[-600:]}')


build()
command_line()
runtime()
formats()
store()
done()
