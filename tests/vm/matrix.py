#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tables of docs/matrix.md, out of what kernel.py has kept.

matrix.py BUILD [--update | --update-costs]      without --update: prints them

The section of a kernel without results in BUILD/vm stays as it is. That of a kernel with results is replaced by them, so
run the whole list of that kernel before: kernel.py BUILD NAME --all. --update-costs: only what was
verified, of those kernels of which it has something; of the others what is in the table stays, and a program that is new
is "not run" there. It takes half a minute a kernel: kernel.py BUILD NAME --only bpf_verifier."""
import collections
import json
import pathlib
import re
import sys
import textwrap

import cells
import kernels

DOC = pathlib.Path(__file__).resolve().parents[2] / 'docs/matrix.md'
HEAD = """# What was tried on which kernel

Made by `tests/vm/matrix.py build --update` from what `scripts/test --all vm` has found; see
[testing.md](testing.md). Each cell is a check in a machine with that kernel: programs that do a bit of everything
(`tests/programs/rounds.*`) run all at once, and the view has to say of each what is known of it: 70, 20 and 10 %
of the time on the CPU in three functions; asleep in `nap()`; woken by `tell()`; files read by `fetch()` and written
by `store()`, by path and bytes. Node.js and Java run alone. `governed`: with `--max-overhead` of 1 %, or of 3 or
6 % where there is a timer; it has to have lowered something, and what is known still has to be said.

`--unwind` is `dwarf` and `fp`; in `oncpu`, and for Node.js and Java, also what it is by itself, `auto`. With `fp`, a
function whose callee has no frame of its own is skipped, as everywhere: there only its callers must be found, except
in `oncpu`.

The rows from `trace` on come from tests of `tests/live`, which run known programs in C or Python. The view has to
report as many calls, and as many bytes that are resident, allocated, held or leaked, as the program itself counts;
`record` has to store its time on and off the CPU, and what it reads.

`pass`: with at least two of these; `dwarf`, `fp`, `auto`: with this one; a number: why not, below the table. `not
run`: not in the list of this kernel (`tests/vm/cells.py`): the oldest, two of long-term support and the newest have
the whole list. `-`: the program does no such thing. `Tests` are those of `tests/bpf` and `tests/live`.
"""


COSTS = """## Instructions verified

By `tests/bpf/test_verifier.c`, which fails above 60,000 for a program, on each kernel. `-`: not there; `not run`:
not yet when that kernel was looked at.
"""


def cell(records, view, interp, notes):
    """What a view says of a program: one result for each unwinder."""
    results = {r['unwinder']: r for r in records if (r['view'], r['interp']) == (view, interp)}
    if not results:
        return 'not run' if cells.applies(view, interp) else '-'
    passed = [name for name in cells.UNWINDERS if name in results and results[name]['result'] == 'pass']
    text = 'pass' if len(passed) == len(results) > 1 else ', '.join(passed)
    for record in results.values():
        if record['result'] != 'pass':
            text += f"{', ' if text else ''}{record['unwinder']}: {record['result']} [{note(record['why'], notes)}]"
    return text


def tested(tests, what, notes):
    """How the test of a row ended."""
    record = next((record for record in tests if record['what'] == what), None)
    if not record:
        return 'not run'
    return record['result'] if record['result'] == 'pass' else f"{record['result']} [{note(record['why'], notes)}]"


def note(why, notes):
    why = textwrap.shorten(re.sub(r'/\S*/', '', why), 160, placeholder='')
    if why not in notes:
        notes.append(why)
    return notes.index(why) + 1


def section(name, found):
    records, notes = found['records'], []
    lines = [f'## {name}', '', summary(found), '']
    tests = [record for record in records if record['kind'] == 'test']
    for result in ('pass', 'fail', 'skip'):
        names = [record['what'] + (f" ({note(record['why'], notes)})" if result == 'fail' else
                                   f" ({record['why'].removeprefix('skipped: ')})" if result == 'skip' else '')
                 for record in tests if record['result'] == result]
        if names:
            lines += [f"Tests, {result}: {', '.join(names)}.", '']
    looked_at = [record for record in records if record['kind'] == 'cell']
    if looked_at:
        lines += ['| view | ' + ' | '.join(cells.INTERPS) + ' |', '|---' * (len(cells.INTERPS) + 1) + '|']
        for view in cells.VIEWS:
            row = [cell(looked_at, view, interp, notes) for interp in cells.INTERPS]
            lines.append(f'| `{view}` | ' + ' | '.join(row) + ' |')
        for view, by_interp in cells.TESTED.items():
            row = [tested(tests, by_interp.get(interp), notes) for interp in cells.INTERPS]
            lines.append(f'| `{view}` | ' + ' | '.join(row) + ' |')
        lines.append('')
    lines += [f'{i}. {text}' for i, text in enumerate(notes, 1)] + ([''] if notes else [])
    return '\n'.join(lines)


def summary(found):
    checks = [record for record in found['records'] if record['kind'] in ('test', 'cell')]
    nr = collections.Counter(record['result'] for record in checks)
    commits = ', '.join(sorted({record['commit'] for record in checks}))
    return (f"`{found['version']}`: {nr['pass']} pass, {nr['fail']} fail, {nr['skip']} skip" +
            (f", in {found['seconds'] / 60:.0f} min" if found.get('seconds') else '') + f'; commit {commits}.')


def sections_of_document(text):
    """Sections of the document by their headings, {kernel: text}."""
    return {part.partition('\n')[0]: f'## {part}'.rstrip('\n') + '\n' for part in re.split(r'^## ', text, flags=re.M)[1:]}


def costs(all_found):
    """Verified instructions, {kernel: {program: text}}."""
    return {name: {r['what']: f"{r['insns']:,}" for r in found['records'] if r['kind'] == 'cost'}
            for name, found in all_found if any(r['kind'] == 'cost' for r in found['records'])}


def costs_of_table(text):
    """The same, out of the document."""
    head, _, *rows = (line.strip('| \n').split(' | ') for line in text.split(COSTS)[1].splitlines()
                      if line.startswith('|'))
    return {name: {row[0].strip('`'): row[i] for row in rows} for i, name in enumerate(head) if i}


def table_of_costs(by_name, tried):
    """Programs down, kernels across. tried: kernels of which all programs are known."""
    programs = list(dict.fromkeys(program for name in [*tried, *by_name] for program in by_name[name]
                                  if name in tried or not tried))
    lines = [COSTS, '| program | ' + ' | '.join(by_name) + ' |', '|---' * (len(by_name) + 1) + '|']
    for program in programs:
        row = [by_name[name].get(program, '-' if name in tried else 'not run') for name in by_name]
        lines.append(f'| `{program}` | ' + ' | '.join(row) + ' |')
    return '\n'.join(lines) + '\n'


def main():
    directory = pathlib.Path(sys.argv[1]) / 'vm'
    all_found, text = [], DOC.read_text(encoding='utf-8')
    sections, kept = [], sections_of_document(text)
    for arch in kernels.DEBIAN_ARCH:
        for kernel in kernels.KERNELS:
            path = directory / f'{arch}-{kernel.name}.json'
            name = kernel.name if arch == 'x86_64' else f'{kernel.name} {kernels.DEBIAN_ARCH[arch]}'
            if path.exists():
                all_found.append((name, json.loads(path.read_text(encoding='utf-8'))))
                sections.append(section(*all_found[-1]))
            elif name in kept:
                sections.append(kept[name])
    found_costs = costs(all_found)
    table = table_of_costs({**costs_of_table(text), **found_costs}, list(found_costs))
    if '--update-costs' in sys.argv:
        DOC.write_text(text.split(COSTS)[0] + table, encoding='utf-8')
        return
    text = '\n'.join([HEAD, *sections, table])
    if '--update' in sys.argv:
        DOC.write_text(text, encoding='utf-8')
    else:
        print(text, end='')


if __name__ == '__main__':
    main()
