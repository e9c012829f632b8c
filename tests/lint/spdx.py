#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every source file names its licence in its first lines."""
import tree

LINE = 'SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause'

sources = set(tree.files('*.c', '*.h', '*.py', '*.sh', '*.js', '*.css', 'meson.build',
                         'meson_options.txt', '*.[18]'))
sources |= {path for path in tree.files('*') if tree.is_shell(path)}
for path in sorted(sources):
    if LINE not in ''.join(tree.text(path).splitlines(True)[:2]):
        tree.breach(path, 1, f'without "{LINE}"')
tree.done()
