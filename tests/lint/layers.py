#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who may include whom. docs/architecture.md draws the same table."""
import re

import tree

# A layer, and those it may include besides itself. "libbpf" and "elf" stand for the headers of
# these libraries, "skeleton" for the generated one.
MAY = {
    'contract': set(),
    'vmlinux': {'libbpf'},
    'bpf/include': {'contract', 'vmlinux', 'libbpf'},
    'bpf/core': {'bpf/include', 'contract', 'vmlinux', 'libbpf'},
    'bpf/views': {'bpf/include', 'contract', 'vmlinux', 'libbpf'},
    'bpf/interp': {'bpf/include', 'contract', 'vmlinux', 'libbpf'},
    'bpf/calib': {'bpf/include', 'contract', 'vmlinux', 'libbpf'},
    'user/base': set(),
    'symbolizer': {'user/base', 'contract', 'elf'},
    'user/model': {'user/base'},
    'user/store': {'user/base', 'user/model'},
    'user/flamegraph': {'user/base'},
    'user/output': {'user/base', 'user/model', 'user/flamegraph'},
    'user/export': {'user/base', 'user/model', 'user/store', 'user/output'},
    'user/serve': {'user/base', 'user/model', 'user/store', 'user/output', 'user/export'},
    'user/views': {'user/base', 'contract', 'skeleton', 'libbpf'},
    'user/interp': {'user/base', 'contract', 'symbolizer'},
    'user/capture': {'user/base', 'contract', 'skeleton', 'libbpf', 'user/views', 'user/interp',
                     'symbolizer'},
    'user/resolve': {'user/base', 'contract', 'user/model', 'symbolizer', 'user/interp'},
    'user/cli': {'user/base', 'contract', 'skeleton', 'libbpf', 'elf', 'symbolizer', 'user/model',
                 'user/flamegraph', 'user/output', 'user/views', 'user/interp', 'user/capture',
                 'user/resolve', 'user/store', 'user/export', 'user/serve'},
}
# Single headers that a layer may see of another one.
ALSO = {('user/resolve', 'user/capture/batch.h')}

INCLUDE_DIRS = ('user', 'symbolizer', 'bpf/include', 'bpf/vmlinux')
LIBRARIES = (
    (re.compile(r'(bpf/|linux/(bpf|btf|perf_event)\.h)'), 'libbpf'),
    (re.compile(r'(elfutils/|dwarf\.h|gelf\.h|libelf\.h)'), 'elf'),
)


def layer(path):
    name = path.as_posix()
    if re.match(r'bpf/include/sb_(abi\w*|unwind_step\w*|interp_step|step_\w+)\.h$', name):
        return 'contract'
    if name.endswith('vmlinux.h'):
        return 'vmlinux'
    parts = path.parts
    return parts[0] if parts[0] == 'symbolizer' else '/'.join(parts[:2])


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
    source = tree.root / header.with_suffix('.c')
    if layer(path) == 'user/interp':
        runtime = re.match(r'(\w+)_priv$', header.stem)
        return bool(runtime) and runtime[1] not in ('interp', 'image') \
            and not path.stem.startswith(runtime[1])
    return layer(path) == 'user/views' and header.stem not in (path.stem, 'table') \
        and source.exists()


for path in tree.files('*.c', '*.h', under=('bpf', 'symbolizer', 'user')):
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
