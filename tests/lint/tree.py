# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the lint tests share: which files there are, C text without its comments, how to report.

Every test is called with the source root, prints a line "FILE:LINE: what is wrong" for each breach
and exits with 1 if there was one. selftest.py shows that each of them does.
"""
import os
import pathlib
import re
import sys

FOLDERS = ('bpf', 'preload', 'symbolizer', 'user', 'scripts', 'tests', 'docs', '.ci')

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else '.').resolve()
nr_breaches = 0


def files(*patterns, under=FOLDERS):
    """Paths relative to the root, sorted. The folders are ours alone, so git is not asked."""
    found = [path.relative_to(root) for path in root.iterdir() if path.is_file() and path.name != '.git']
    for folder in under:
        for directory, names, leaves in os.walk(root / folder):
            names[:] = [name for name in names if name != '__pycache__']
            found += [(pathlib.Path(directory) / leaf).relative_to(root) for leaf in leaves]
    return sorted(path for path in found if any(path.match(p) for p in patterns))


def text(path):
    return (root / path).read_text(encoding='utf-8')


def _blank(match):
    return re.sub(r'[^\n]', ' ', match.group(0))


def without_comments(source):
    """C source with comments blanked out; lines keep their numbers, strings stay."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*',
                  lambda m: m.group(0) if m.group(0)[0] in '"\'' else _blank(m), source, flags=re.S)


def code(source):
    """C source with comments and the contents of strings blanked out."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', _blank, without_comments(source))


def line_of(source, offset):
    return source.count('\n', 0, offset) + 1


def balanced(source, start):
    """The text of the parenthesis that opens at @start, both brackets included."""
    depth = 0
    for at in range(start, len(source)):
        if source[at] == '(':
            depth += 1
        elif source[at] == ')':
            depth -= 1
            if not depth:
                return source[start:at + 1]
    return source[start:]


def is_shell(path):
    with open(root / path, 'rb') as file:
        return re.match(rb'#!\s*/(usr/)?bin/(env )?(ba|da)?sh\b', file.readline()) is not None


def breach(path, line, what):
    global nr_breaches
    nr_breaches += 1
    print(f'{path}:{line}: {what}')


def skip(reason):
    print(reason)
    sys.exit(77)


def done():
    sys.exit(1 if nr_breaches else 0)
