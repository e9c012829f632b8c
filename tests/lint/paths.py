#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""No text names a place of somebody's machine: a home, or a folder that exists here in the root
directory and is none of a Linux system's own. Invented paths, as in test data, do not exist.
"""
import pathlib
import re

import tree

SYSTEM = {'bin', 'boot', 'dev', 'etc', 'lib', 'lib64', 'proc', 'run', 'sbin', 'sys', 'tmp', 'usr', 'var',
          'opt', 'srv', 'mnt', 'media'}
HOMES = {'home', 'root', 'Users'}
ABSOLUTE = re.compile(r'(?<![\w./:*)}\]>$@%~<&\\-])/([A-Za-z][\w.:-]*)/[\w.]')
BINARY = {'.png', '.gz', '.xz', '.zst', '.o', '.elf'}

for path in tree.files('*'):
    if path.suffix in BINARY or 'corpus' in path.parts or 'golden' in path.parts:
        continue
    try:
        source = tree.text(path)
    except UnicodeDecodeError:
        continue
    for match in ABSOLUTE.finditer(source):
        top = match.group(1)
        if top in HOMES or top not in SYSTEM and pathlib.Path('/', top).exists():
            tree.breach(path, tree.line_of(source, match.start()), f"names '{match.group(0)}...'")
tree.done()
