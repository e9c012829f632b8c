#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Links between our own documents lead somewhere."""
import re

import tree

for path in tree.files('*.md'):
    source = re.sub(r'```.*?```', lambda m: re.sub(r'[^\n]', ' ', m.group(0)), tree.text(path),
                    flags=re.S)
    for match in re.finditer(r'\]\(([^)#\s]+)[^)]*\)', source):
        link = match.group(1)
        if not re.match(r'[a-z]+:', link) and not (tree.root / path.parent / link).exists():
            tree.breach(path, tree.line_of(source, match.start()), f"'{link}' does not exist")
tree.done()
