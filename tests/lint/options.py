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


def from_bash(text, command):
    def words(name):
        found = re.search(rf'local {name}=(["\'])(.*?)\1', text, re.S)
        return found.group(2) if found else ''
    listed = words(command).replace('$common', words('common'))
    return {word: None for word in listed.split() if word.startswith('-')}


def from_zsh(text, command):
    def entries(name):
        found = re.search(rf'^\t{name}=\(\n(.*?)^\t\)', text, re.S | re.M)
        return found.group(1) if found else ''
    lines = entries('common' if command == 'help' else command)
    lines = lines.replace('$common', entries('common'))
    options = {}
    for line in lines.splitlines():
        spec = re.sub(r"'\([^)]*\)'|'\([^)]*\)(?=-)", '', line.split('[')[0])
        for option in re.findall(r'--?[A-Za-z][\w-]*=?', spec):
            # Letters carry no =, whether they take a value or not; what follows [...] says it.
            options[option.rstrip('=')] = bool(re.search(r'\]:', line))
    return options


def from_fish(text, command):
    options = {}
    for line in text.splitlines():
        if not re.match(rf'__stackbpf_{command} |complete -c stackbpf -s', line):
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
    commands = table()
    for command, want in commands.items():
        # help has no page of its own: it is explained in stackbpf(8), as are the common options.
        page = 'stackbpf.8' if command == 'help' else f'stackbpf-{command}.8'
        if (docs / 'man' / page).exists():
            compare(f'docs/man/{page}', from_man(docs / 'man' / page), want)
        else:
            breach(f'docs/man/{page}', 'is missing')
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
