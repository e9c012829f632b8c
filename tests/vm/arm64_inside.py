#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""In the guest: what is tested on arm64. Lines of JSON as inside.py says them.

arm64_inside.py BUILD LIST [WORD...]      as inside.py"""
import os
import sys

import inside
from inside import BUILD, LIVE

LABELS = ('programs', 'libraries', 'shares', 'custom', 'python', 'torn', 'keys', 'hostile')

PARTS = ('native', 'python', 'perl', 'lua', 'luajit', 'luajit-compiled', 'ruby', 'php', 'node', 'java', 'go', 'go-stacks')


def main():
    os.environ['PYTHONDONTWRITEBYTECODE'] = '1'
    inside.bpf_tests()
    for part in PARTS:
        inside.live_test(f'live arm64 {part}', sys.executable, str(LIVE / 'arm64.py'), inside.STACKBPF, str(BUILD), part)
    inside.live_test('live newborn', sys.executable, str(LIVE / 'newborn.py'), inside.STACKBPF,
                     str(BUILD / 'tests/programs/newborn'))
    for program in sorted(BUILD.glob('selfcheck-*')):
        os.environ['SELFCHECK'] = str(program)
        name = program.name.removeprefix('selfcheck-')
        inside.live_test(f'live selfunwind {name}', sys.executable, str(LIVE / 'selfunwind.py'), inside.STACKBPF, str(BUILD))
    os.environ['LABELS'] = str(BUILD / 'labels')
    for part in LABELS:
        inside.live_test(f'live labels {part}', sys.executable, str(LIVE / 'labels.py'), inside.STACKBPF,
                         str(LIVE.parents[1]), part)
    os.environ['COMPILED'] = str(BUILD / 'compiled')
    inside.live_tests()
    inside.all_cells()
    return 0


if __name__ == '__main__':
    sys.exit(main())
