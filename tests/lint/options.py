#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every option of the table is in the man page and in each completion, and nothing else is."""
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
        # None: this kind of text does not say.
        if have[option] is not None and have[option] != want[option]:
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


def from_bash(text, command):
    def words(name):
        found = re.search(rf'local {name}=(["\'])(.*?)\1', text, re.S)
        return re.sub(r'\$(\w+)', lambda m: words(m.group(1)), found.group(2)) if found else ''
    listed = words(command)
    return {word: None for word in listed.split() if word.startswith('-')}


def from_zsh(text, command):
    def entries(name):
        found = re.search(rf'^\t{name}=\(\n(.*?)^\t\)', text, re.S | re.M)
        return re.sub(r'\$(\w+)', lambda m: entries(m.group(1)), found.group(1)) if found else ''
    lines = entries('common' if command == 'help' else command)
    options = {}
    for line in lines.splitlines():
        spec = re.sub(r"'\([^)]*\)'|'\([^)]*\)(?=-)", '', line.split('[')[0])
        for option in re.findall(r'--?[A-Za-z][\w-]*=?', spec):
            # Letters carry no =, whether they take a value or not; what follows [...] says it.
            options[option.rstrip('=')] = bool(re.search(r'\]:', line))
    return options


def from_fish(text, command):
    options = {}
    # A function adds the options of the commands that its condition names.
    functions = re.findall(r'^function (\w+)\n.*__fish_seen_subcommand_from ([\w ]+)\'', text, re.M)
    adders = [name for name, commands in functions if command in commands.split()]
    for line in text.splitlines():
        if line.split(' ')[0] not in adders and not line.startswith('complete -c stackbpf -s'):
            continue
        takes_value = bool(re.search(r' -(x|r|rF) ', line))
        for flag, name in re.findall(r' -(s|l) (\S+)', line):
            options[('-' if flag == 's' else '--') + name] = takes_value
    return options


def main():
    docs = ROOT / 'docs'
    bash = (docs / 'completions/stackbpf.bash').read_text(encoding='utf-8')
    zsh = (docs / 'completions/_stackbpf').read_text(encoding='utf-8')
    fish = (docs / 'completions/stackbpf.fish').read_text(encoding='utf-8')
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
        compare(f'stackbpf.bash: {command}', from_bash(bash, command), want)
        compare(f'_stackbpf: {command}', from_zsh(zsh, command), want)
        compare(f'stackbpf.fish: {command}', from_fish(fish, command), want)
        for name, text in ('stackbpf.bash', bash), ('_stackbpf', zsh), ('stackbpf.fish', fish):
            if not re.search(rf'\b{command}\b', text):
                breach(name, f'the command {command} is missing')
    if len(commands) < 3 or len(commands['oncpu']) < 20:
        breach('print_options', 'the table cannot be this short')
    sys.exit(1 if breaches else 0)


main()
