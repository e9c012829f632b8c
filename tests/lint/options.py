#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every option of the table is in the man page, and nothing else is; and so are the keys of metadata."""
import pathlib
import re
import subprocess
import sys

ROOT, PRINT_OPTIONS = pathlib.Path(sys.argv[1]), sys.argv[2]
breaches = 0


def breach(where, what):
    global breaches
    breaches += 1
    print(f'{where}: {what}')


def table():
    """{command: {option: takes a value}}"""
    commands = {}
    for line in subprocess.run([PRINT_OPTIONS], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        command, option, kind = line.split()
        commands.setdefault(command, {})[option] = kind == 'value'
    return commands


def compare(where, have, want):
    for option in sorted(want.keys() - have.keys()):
        breach(where, f'{option} is missing')
    for option in sorted(have.keys() - want.keys()):
        breach(where, f'there is no option {option}')
    for option in sorted(want.keys() & have.keys()):
        if have[option] != want[option]:
            breach(where, f'{option} takes {"a" if want[option] else "no"} value')


def from_man(path):
    """.It Fl p , Fl -pid Ar list"""
    options = {}
    for line in path.read_text(encoding='utf-8').splitlines():
        if not line.startswith('.It Fl ') or line.startswith('.It Fl - '):
            continue
        for flag in re.findall(r'Fl (\S+)', line):
            options[f'-{flag}'] = ' Ar ' in line
    return options


def from_pages(path, shared):
    """A view's page leads to the one of what all views share, and does not say it again."""
    own = from_man(path)
    if not re.search(r'^\.Xr stackbpf-options 7', path.read_text(encoding='utf-8'), re.M):
        return own
    for option in sorted(own.keys() & shared.keys()):
        breach(path.relative_to(ROOT), f'{option} is on stackbpf-options.7, too')
    return {**shared, **own}


def check_metadata(page):
    """Every key that the header of folded stacks can have is in the section about them."""
    rows = (ROOT / 'user/kinds/metadata.c').read_text(encoding='utf-8')
    section = page.read_text(encoding='utf-8').split('.It folded')[1].split('.It perf script')[0]
    words = re.findall(r'\w+', ' '.join(re.findall(r'^\..*\bCm (.*)', section, re.M)))
    for key in re.findall(r'^\t\{ "(\w+)",', rows, re.M):
        if key not in words:
            breach(f'docs/man/{page.name}', f'the key {key} of the metadata is missing')


def main():
    docs = ROOT / 'docs'
    shared = from_man(docs / 'man/stackbpf-options.7')
    commands = table()
    for command, want in commands.items():
        # help has no page of its own: it is explained in stackbpf(8), as are the common options.
        page = docs / 'man' / ('stackbpf.8' if command == 'help' else f'stackbpf-{command}.8')
        if page.exists():
            have = from_man(page) if command == 'help' else from_pages(page, shared)
            compare(f'docs/man/{page.name}', have, want)
        else:
            breach(f'docs/man/{page.name}', 'is missing')
    check_metadata(docs / 'man/flamegraph.1')
    if len(commands) < 3 or len(commands['oncpu']) < 20:
        breach('print_options', 'the table cannot be this short')
    sys.exit(1 if breaches else 0)


main()
