#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""C is formatted by .clang-format. Other versions than 14 format differently, so it is this one."""
import shutil
import subprocess

import tree

formatter = shutil.which('clang-format-14')
if not formatter:
    tree.skip('clang-format-14 is not installed')
sources = [tree.root / path for path in tree.files('*.c', '*.h')]
if sources:
    result = subprocess.run([formatter, '--dry-run', '--Werror', '--ferror-limit=3', '--style=file',
                             *sources], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True,
                            check=False)
    print(result.stdout, end='')
    if result.returncode:
        tree.breach(tree.root, 0, 'run clang-format-14 -i on what is named above')
tree.done()
