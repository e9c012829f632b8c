#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who may include whom. docs/architecture.md draws the same table."""
import re

import tree

# A layer, and those it may include besides itself. "libbpf" and "elf" stand for the headers of
# these libraries, "skeleton" for the generated one.
SYMBOLIZER = {'symbolizer', *('symbolizer/' + part for part in ('process', 'elf', 'dwarf', 'unwind', 'symbols'))}
BPF = {'bpf/core', 'contract', 'vmlinux', 'libbpf'}
MAY = {
    'contract': set(),
    'vmlinux': {'libbpf'},
    'bpf/core': BPF,
    'bpf/views': BPF,
    'bpf/interp': BPF,
    'preload': set(),
    'user/base': set(),
    'user/process': {'user/base'},
    'symbolizer': {'contract'},  # sb_sym.h, what it offers
    'symbolizer/process': {'user/base', 'symbolizer', 'contract'},
    'symbolizer/elf': {'user/base', 'symbolizer', 'symbolizer/process', 'elf'},
    'symbolizer/dwarf': {'user/base', 'symbolizer', 'symbolizer/process', 'symbolizer/elf', 'elf'},
    'symbolizer/unwind': {'user/base', 'contract', 'symbolizer', 'symbolizer/process', 'symbolizer/elf', 'elf'},
    'symbolizer/symbols': {'user/base', 'contract', *SYMBOLIZER, 'elf'},
    'symbolizer/sbsym': {'user/base', 'contract', *SYMBOLIZER, 'elf'},
    'user/workers': {'user/base', 'libbpf', 'symbolizer/process', 'symbolizer/unwind'},
    'user/kinds': {'user/base'},
    'user/tree': {'user/base'},
    'user/model': {'user/base', 'user/kinds', 'user/tree'},
    'user/store': {'user/base', 'user/kinds', 'user/model'},
    'user/flamegraph': {'user/base', 'user/kinds', 'user/tree'},
    'user/output': {'user/base', 'user/kinds', 'user/tree', 'user/model', 'user/flamegraph'},
    'user/export': {'user/base', 'user/kinds', 'user/model', 'user/store', 'user/output'},
    'user/serve': {'user/base', 'user/kinds', 'user/tree', 'user/model', 'user/store', 'user/output', 'user/export'},
    'user/events': {'user/base', 'libbpf', 'contract', *SYMBOLIZER},
    'user/views': {'user/base', 'user/events', 'user/kinds', 'contract', 'skeleton', 'libbpf'},
    'user/interp': {'user/base', 'user/process', 'contract', *SYMBOLIZER},
    'user/capture': {'user/base', 'user/process', 'contract', 'skeleton', 'libbpf', 'user/events', 'user/views',
                     'user/interp', 'user/workers', *SYMBOLIZER},
    'user/resolve': {'user/base', 'user/process', 'contract', 'user/model', 'user/interp', *SYMBOLIZER},
    'user/run': {'user/base', 'user/kinds', 'user/process', 'contract', 'user/events', 'user/views', 'user/interp',
                 'user/workers', 'user/capture', 'user/model', 'user/resolve', *SYMBOLIZER},
    'user/recorder': {'user/base', 'user/kinds', 'user/process', 'contract', 'user/events', 'user/views', 'user/interp',
                      'user/workers', 'user/capture', 'user/model', 'user/resolve', 'user/run', 'user/store', *SYMBOLIZER},
    'user/cli': {'user/base', 'user/kinds', 'user/process', 'contract', 'skeleton', 'libbpf', 'elf', 'user/tree', 'user/model',
                 'user/workers', 'user/flamegraph', 'user/output', 'user/events', 'user/views', 'user/interp', 'user/capture', 'user/resolve',
                 'user/store', 'user/export', 'user/serve', 'user/run', 'user/recorder', *SYMBOLIZER},
}
# Single headers that a layer may see of another one.
ALSO = {('user/resolve', 'user/capture/batch.h')}

INCLUDE_DIRS = ('.', 'user', 'bpf/vmlinux')
LIBRARIES = (
    (re.compile(r'(bpf/|linux/(bpf|btf|perf_event)\.h)'), 'libbpf'),
    (re.compile(r'(elfutils/|dwarf\.h|gelf\.h|libelf\.h)'), 'elf'),
)


def layer(path):
    name = path.as_posix()
    if name.startswith(('bpf/abi/', 'bpf/step/')):
        return 'contract'
    if name.endswith('vmlinux.h'):
        return 'vmlinux'
    parts = path.parts
    return '/'.join(parts[:2] if len(parts) > 2 else parts[:1])


def resolve(path, name):
    """The file that #include "name" means in @path, relative to the root, or None."""
    for directory in (path.parent, *INCLUDE_DIRS):
        found = (tree.root / directory / name).resolve()
        if found.is_file() and tree.root in found.parents:
            return found.relative_to(tree.root)
    return None


def target(path, bracket, name):
    """The layer that the header belongs to, and its path if it is ours."""
    if bracket == '<':
        return next((to for rule, to in LIBRARIES if rule.match(name)), None), None
    if name.endswith('.skel.h'):
        return 'skeleton', None
    found = resolve(path, name)
    return (layer(found), found) if found else ('?', None)


def is_sibling(path, header):
    """Views and runtimes know their interface, not each other."""
    if layer(path) == 'user/interp':
        return header.parent != path.parent and header.parent.name != 'core'
    return layer(path) == 'user/views' and header.stem not in (path.stem, 'table') \
        and (tree.root / header.with_suffix('.c')).exists()


for path in tree.files('*.c', '*.h', under=('bpf', 'preload', 'symbolizer', 'user')):
    here = layer(path)
    source = tree.without_comments(tree.text(path))
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', source, re.M):
        bracket, name = match.groups()
        line = tree.line_of(source, match.start(1))
        to, header = target(path, bracket, name)
        if here not in MAY:
            tree.breach(path, line, f"'{here}' is not in the table of layers")
        elif to == '?':
            tree.breach(path, line, f"no such header in the tree: '{name}'")
        elif to == here:
            if header and is_sibling(path, header):
                tree.breach(path, line, f"{here}: one must not know the other ('{name}')")
        elif to and to not in MAY[here] and (here, str(header)) not in ALSO:
            tree.breach(path, line, f"{here} must not include {to} ('{name}')")
tree.done()
