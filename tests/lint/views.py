#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Names of views stand in their table alone: code that compares with one misses the view that comes next."""
import re

import tree

TABLE = 'user/kinds/views.def'
# What happens to be called as a view is: palettes of flamegraph.pl (--colors io), a budget, a kind of memory, an option
# of "io", the USDT probe of allocators, a cgroup controller.
OTHERS = {('user/flamegraph/opts.c', 'io'), ('user/flamegraph/opts.c', 'wakeup'),
          ('user/flamegraph/palette.c', 'io'), ('user/flamegraph/palette.c', 'wakeup'),
          ('symbolizer/elf/budget.c', 'memory'), ('user/cli/record_opts.c', 'heap'),
          ('user/cli/record_opts.c', 'latency'), ('user/events/allocator.c', 'alloc'),
          ('user/recorder/series_process.c', 'memory')}
LITERAL = {'.js': r'"((?:\\.|[^"\\\n])*)"|\'((?:\\.|[^\'\\\n])*)\'|`([^`\n]*)`', '.py': r'"([^"\n]*)"|\'([^\'\n]*)\''}
C_LITERAL = r'"((?:\\.|[^"\\\n])*)"'


def named(literal, names):
    """The views in a literal that is a name, or a list: "io", "oncpu run wall", "kind=io". A sentence has more words."""
    words = re.split(r'[ ,]+', re.sub(r'^(kind=|!)', '', literal))
    found = [word for word in words if word in names]
    return found if 2 * len(found) >= len(words) else []


def main():
    names = set(re.findall(r'^SB_VIEW\((\w+)', tree.text(TABLE), re.M)) if (tree.root / TABLE).exists() else set()
    for path in tree.files('*.c', '*.h', '*.js', '*.py', under=('bpf', 'symbolizer', 'user')):
        source = tree.text(path) if path.suffix == '.py' else tree.without_comments(tree.text(path))
        for match in re.finditer(LITERAL.get(path.suffix, C_LITERAL), source):
            literal = next(group for group in match.groups() if group is not None)
            for name in named(literal, names):
                if (path.as_posix(), name) not in OTHERS:
                    tree.breach(path, tree.line_of(source, match.start()),
                                f"'{name}' is the name of a view: {TABLE} says what differs between views")
    tree.done()


main()
