#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Links between our own documents lead somewhere, and the functions and files of ours that they name exist."""
import re

import tree

# What a reader of docs/adding-*.md is going to add.
EXAMPLE = re.compile(r'tcl|TCL|pagefault|/NAME|/RUNTIME')
NAME = re.compile(r'\bsb_\w*\w\b|\bSB_\w*[A-Z]\b')
FILE = re.compile(r'(?<![\w/.-])(?:bpf|preload|symbolizer|user|scripts|tests)/[\w/.-]*\w\.\w+')
known = set()

for path in tree.files('*.c', '*.h', '*.def', '*.py', '*.sh'):
    known |= set(NAME.findall(tree.text(path)))
for path in tree.files('*.md'):
    source = re.sub(r'```.*?```', lambda m: re.sub(r'[^\n]', ' ', m.group(0)), tree.text(path),
                    flags=re.S)
    for match in re.finditer(r'\]\(([^)#\s]+)[^)]*\)', source):
        link = match.group(1)
        if not re.match(r'[a-z]+:', link) and not (tree.root / path.parent / link).exists():
            tree.breach(path, tree.line_of(source, match.start()), f"'{link}' does not exist")
    for match in (*NAME.finditer(source), *FILE.finditer(source)):
        name = match.group()
        if name not in known and not EXAMPLE.search(name) and not (tree.root / name).exists():
            tree.breach(path, tree.line_of(source, match.start()), f"'{name}' does not exist")
tree.done()
