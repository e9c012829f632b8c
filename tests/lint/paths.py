#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""No text names a path of somebody's machine: absolute paths begin where a Linux system begins."""
import re

import tree

SYSTEM = {'bin', 'boot', 'dev', 'etc', 'lib', 'lib64', 'proc', 'run', 'sbin', 'sys', 'tmp', 'usr', 'var',
          'opt'}
# Invented names, for examples and test data.
INVENTED = {'a', 'b', 'x', 'y', 'path', 'some', 'no', 'none', 'nonexistent', 'dir', 'app', 'srv', 'mnt',
            'memfd:', 'SYSV', 'anon_hugepage',
            'system.slice', 'user.slice'}
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
        if match.group(1) not in SYSTEM | INVENTED:
            tree.breach(path, tree.line_of(source, match.start()), f"names '{match.group(0)}...'")
tree.done()
