#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Words are spelled right, as codespell knows them; allowed are the names below, which are no words."""
import re
import shutil
import subprocess

import tree

WORDS = ('nd', 'fro', 'stap', 'selfs', 'absout', 'trun', 'ro', 'te', 'datas', 'statics', 'upto', 'apach', 'ue', 'hist', 'ment', 'crate')
PATTERNS = ('*.c', '*.h', '*.cc', '*.py', '*.js', '*.css', '*.html', '*.md', '*.1', '*.7', '*.8', '*.build', '*.txt')

speller = shutil.which('codespell')
if not speller:
    tree.skip('codespell is not installed')
files = [path for path in tree.files(*PATTERNS) if 'corpus' not in path.parts]
if files:
    result = subprocess.run([speller, '--quiet-level=3', '-L', ','.join(WORDS), *files], cwd=tree.root, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    for path, line, what in re.findall(r'^([^:\n]+):(\d+): (.*)$', result.stdout, re.M):
        tree.breach(path, int(line), what)
tree.done()
