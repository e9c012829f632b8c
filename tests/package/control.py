#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""control.py ROOT VERSION: Debian's package asks for what scripts/deps installs, and is of our version."""
import pathlib
import re
import sys

# What a build of Debian's has by itself (build-essential), or only we can do without.
ALWAYS = {'gcc', 'libc6-dev'}


def main():
    root = pathlib.Path(sys.argv[1])
    rows = re.findall(r'^\t\trun\s+(\S+)', (root / 'scripts/deps').read_text(), re.M)
    wanted = {row.split('|')[0] for row in rows} - ALWAYS
    control = (root / 'debian/control').read_text()
    fields = re.search(r'^Build-Depends:(.*?)^\n', control, re.M | re.S)[1]
    named = {re.match(r'[^\s:(|]+', entry.strip())[0] for entry in fields.split(',')} - {'debhelper-compat'}
    bad = [f'debian/control: lacks {name}, of scripts/deps' for name in sorted(wanted - named)]
    bad += [f'debian/control: {name} is not in scripts/deps' for name in sorted(named - wanted)]
    version = re.match(r'stackbpf \(([^)]+)\)', (root / 'debian/changelog').read_text())[1]
    if version.split('-')[0] != sys.argv[2]:
        bad.append(f'debian/changelog: is of {version}, meson.build of {sys.argv[2]}')
    print('\n'.join(bad))
    sys.exit(1 if bad else 0)


main()
