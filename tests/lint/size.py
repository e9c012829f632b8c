#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""No function over 80 lines, none with more than six parameters; no comment on lines of its own over
100 columns in what we ship."""
import re

import tree

SHIPPED = ('bpf', 'include', 'preload', 'symbolizer', 'user')
LINES_MAX = 80
COLUMNS_MAX = 100
PARAMETERS_MAX = 6  # five are the rule; the sixth is for what a struct would only disguise
# Written by a tracepoint or by a library: not ours to shorten.
GIVEN = re.compile(r'\b(BPF_PROG\d?|BPF_KPROBE|BPF_KRETPROBE|BPF_UPROBE)\b')


def parameters(header):
    header = re.sub(r'__attribute__\s*\(\(.*?\)\)', '', header, flags=re.S)
    start = header.find('(')
    if start < 0:
        return 0
    depth, nr = 0, 1
    for char in tree.balanced(header, start):
        depth += (char == '(') - (char == ')')
        nr += char == ',' and depth == 1
    return nr


def functions(source):
    """(line of the header, header, number of lines) of each body in column 0."""
    lines = source.split('\n')
    start = None
    for at, line in enumerate(lines):
        if line == '{':
            start = at
        elif line.startswith('}') and start is not None:
            first = start
            while first and re.match(r'[^#}\s]|[ \t]', lines[first - 1]) and \
                    not lines[first - 1].rstrip().endswith(';') and lines[first - 1].strip():
                first -= 1
            yield first + 1, '\n'.join(lines[first:start]), at - start - 1
            start = None


def wide_comments(source):
    """(line, columns) of each that is too wide and has nothing but a comment."""
    lines = zip(source.split('\n'), tree.without_comments(source).split('\n'))
    for at, (line, rest) in enumerate(lines, 1):
        columns = len(line.expandtabs(8))
        if columns > COLUMNS_MAX and not rest.strip():
            yield at, columns


for path in tree.files('*.c', '*.h', under=SHIPPED):
    if path.name != 'vmlinux.h':
        for line, columns in wide_comments(tree.text(path)):
            tree.breach(path, line, f'a comment of {columns} columns, {COLUMNS_MAX} are the limit')
for path in tree.files('*.c', '*.h'):
    for line, header, nr_lines in functions(tree.code(tree.text(path))):
        if nr_lines > LINES_MAX:
            tree.breach(path, line, f'{nr_lines} lines, {LINES_MAX} are the limit')
        if parameters(header) > PARAMETERS_MAX and not GIVEN.search(header):
            tree.breach(path, line, f'{parameters(header)} parameters, {PARAMETERS_MAX} are the limit')
tree.done()
