#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tables of docs/matrix.md, out of what kernel.py has kept.

matrix.py BUILD [--update]      without --update: prints them

Kernels of which BUILD/vm has nothing are left out: run the suite with --all before."""
import json
import pathlib
import re
import sys

import kernels

DOC = pathlib.Path(__file__).resolve().parents[2] / 'docs/matrix.md'
INTERPS = ('native', 'python', 'perl', 'ruby', 'php', 'lua', 'luajit', 'node', 'java')
HEAD = """# What was tried on which kernel

Made by `tests/vm/matrix.py build --update` from what the suite `vm` has found; see [testing.md](testing.md).
Each cell is a check in a machine with that kernel: programs that do a bit of everything
(`tests/programs/rounds.*`) run all at once, and the view has to say of each what is known of it: 70, 20 and 10 %
of the time on the CPU in three functions; asleep in `nap()`; woken by `tell()`; files read by `fetch()` and written
by `store()`, by path and bytes. Both ways to unwind are tried, `--unwind=dwarf` and `fp`. With `fp`, a function
whose callee has no frame of its own is skipped, as everywhere: there only its callers must be found, except in
`oncpu`.

`pass`: with both; `dwarf`, `fp`: with this one; a number: why not, below the table. `-`: the program does no such
thing, or was not run yet: what is here is of the normal run, and of the verifier on all kernels.
"""


def cell(records, notes):
    """What a view says of a program: one result for each unwinder."""
    results = {record['unwinder']: record for record in records}
    if not results:
        return '-'
    passed = [name for name in ('dwarf', 'fp') if name in results and results[name]['result'] == 'pass']
    text = 'pass' if len(passed) == 2 else ', '.join(passed)
    for record in results.values():
        if record['result'] != 'pass':
            text += f"{', ' if text else ''}{record['unwinder']}: {record['result']} [{note(record['why'], notes)}]"
    return text


def note(why, notes):
    why = re.sub(r'\s+', ' ', re.sub(r'/\S*/', '', why))[:160]
    if why not in notes:
        notes.append(why)
    return notes.index(why) + 1


def section(kernel, arch, found):
    records, notes = found['records'], []
    name = kernel.name if arch == 'x86_64' else f'{kernel.name} {arch}'
    lines = [f'## {name}', '', f"`{found['version']}`", '']
    tests = [record for record in records if record['kind'] == 'test']
    for result in ('pass', 'fail', 'skip'):
        names = [record['what'] + (f" ({note(record['why'], notes)})" if result == 'fail' else
                                   f" ({record['why']})" if result == 'skip' else '')
                 for record in tests if record['result'] == result]
        if names:
            lines += [f"Tests, {result}: {', '.join(names)}.", '']
    cells = [record for record in records if record['kind'] == 'cell']
    if cells:
        lines += ['| view | ' + ' | '.join(INTERPS) + ' |', '|---' * (len(INTERPS) + 1) + '|']
        for view in dict.fromkeys(record['view'] for record in cells):
            row = [cell([r for r in cells if (r['view'], r['interp']) == (view, interp)], notes) for interp in INTERPS]
            lines.append(f'| `{view}` | ' + ' | '.join(row) + ' |')
        lines.append('')
    lines += [f'{i}. {text}' for i, text in enumerate(notes, 1)] + ([''] if notes else [])
    return '\n'.join(lines)


def costs(all_found):
    """Verified instructions: programs down, kernels across."""
    names = [name for name, found in all_found if any(r['kind'] == 'cost' for r in found['records'])]
    by_name = {name: {r['what']: r['insns'] for r in found['records'] if r['kind'] == 'cost'}
               for name, found in all_found}
    programs = list(dict.fromkeys(program for name in names for program in by_name[name]))
    lines = ['## Instructions verified', '',
             'By `tests/bpf/test_verifier.c`, which fails above 60,000 for a program, on each kernel. `-`: not there.',
             '', '| program | ' + ' | '.join(names) + ' |', '|---' * (len(names) + 1) + '|']
    for program in programs:
        row = [f"{by_name[name][program]:,}" if program in by_name[name] else '-' for name in names]
        lines.append(f'| `{program}` | ' + ' | '.join(row) + ' |')
    return '\n'.join(lines) + '\n'


def main():
    directory = pathlib.Path(sys.argv[1]) / 'vm'
    all_found, sections = [], []
    for kernel in kernels.KERNELS:
        for arch in kernel.arches:
            path = directory / f'{arch}-{kernel.name}.json'
            if path.exists():
                found = json.loads(path.read_text(encoding='utf-8'))
                all_found.append((kernel.name if arch == 'x86_64' else f'{kernel.name} {arch}', found))
                sections.append(section(kernel, arch, found))
    text = '\n'.join([HEAD, *sections, costs(all_found)])
    if '--update' in sys.argv:
        DOC.write_text(text, encoding='utf-8')
    else:
        print(text, end='')


if __name__ == '__main__':
    main()
