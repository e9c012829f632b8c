#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""surface.py ROOT OBJECT BPFTOOL [--update]: what of the kernel the BPF side depends on.

Kernel fields come from the CO-RE relocations of the object. They are resolved against the object's
own types, so the list is the same on every kernel. Attach points come from the section names.
docs/kernel-surface.txt is that list; a change of it is to be seen, and thought about, in a review.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import tree

LIST = 'docs/kernel-surface.txt'
HEAD = """\
# Every kernel field, enumerator and attach point that the BPF side depends on.
# Made by `tests/lint/surface.py . build/bpf/sampler.o bpftool --update`; the lint suite compares.
"""


def fields(obj, bpftool):
    with tempfile.TemporaryDirectory() as directory:
        btf = pathlib.Path(directory) / 'used.btf'
        subprocess.run([bpftool, 'gen', 'min_core_btf', obj, btf, obj], check=True)
        dump = subprocess.run([bpftool, '-j', 'btf', 'dump', 'file', btf], check=True,
                              capture_output=True, text=True).stdout
    for kind in json.loads(dump)['types']:
        if kind['kind'] in ('STRUCT', 'UNION'):
            for member in kind['members']:
                yield f"field {kind['name']}.{member['name']}"
        elif kind['kind'] in ('ENUM', 'ENUM64'):
            for value in kind['values']:
                yield f"enumerator {kind['name']}.{value['name']}"


def attach_points(obj):
    listing = subprocess.run(['readelf', '-SW', obj], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        match = re.match(r'\s*\[\s*\d+\]\s+(\S+)\s+PROGBITS\s+(?:[0-9a-f]+\s+){4}AX\b', line)
        if match and match.group(1) != '.text':
            yield 'attach ' + match.group(1).lstrip('?')


def main():
    obj, bpftool = sys.argv[2], sys.argv[3]
    now = sorted({*fields(obj, bpftool), *attach_points(obj)})
    if not now:
        tree.breach(obj, 0, 'has no programs')
    if '--update' in sys.argv:
        (tree.root / LIST).write_text(HEAD + ''.join(line + '\n' for line in now))
        return
    listed = [line for line in tree.text(LIST).splitlines() if line and line[0] != '#']
    for line in sorted(set(now) - set(listed)):
        tree.breach(LIST, 0, f"'{line}' is used but not listed: --update, and say why in the commit")
    for line in sorted(set(listed) - set(now)):
        tree.breach(LIST, 0, f"'{line}' is listed but not used any more: --update")


main()
tree.done()
