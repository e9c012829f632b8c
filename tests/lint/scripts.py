#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Scripts: shellcheck for shell, the parser for Python."""
import ast
import shutil
import subprocess

import tree

for path in tree.files('*.py'):
    try:
        ast.parse(tree.text(path))
    except SyntaxError as error:
        tree.breach(path, error.lineno, error.msg)
if not shutil.which('shellcheck'):
    tree.skip('shellcheck is not installed')
shell = [path for path in tree.files('*') if tree.is_shell(path)]
if shell:
    result = subprocess.run(['shellcheck', '-f', 'gcc', *shell], cwd=tree.root, check=False)
    tree.nr_breaches += result.returncode != 0
tree.done()
