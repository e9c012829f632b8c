#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""symbols.py ROOT BUILD: all that our libraries export begins with sb_."""
import json
import pathlib
import subprocess
import sys

import tree

build = pathlib.Path(sys.argv[2])
targets = json.loads((build / 'meson-info/intro-targets.json').read_text())
libraries = [pathlib.Path(target['filename'][0]) for target in targets
             if target['type'] == 'static library' and not target['subproject']
             and '/tests/' not in target['defined_in']]
if not libraries:
    tree.breach(build, 0, 'no library of ours is known to meson')
for library in libraries:
    if not library.exists():
        tree.breach(library, 0, 'not built')
        continue
    listing = subprocess.run(['nm', '-g', '--defined-only', '--format=posix', library], check=True,
                             capture_output=True, text=True).stdout
    for line in listing.splitlines():
        words = line.split()
        if len(words) >= 2 and not words[0].startswith(('sb_', '__odr_asan.sb_')):
            tree.breach(library.name, 0, f"exports '{words[0]}'")
tree.done()
