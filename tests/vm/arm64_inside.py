#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""In the guest: what is tested on arm64. Lines of JSON as inside.py says them.

arm64_inside.py BUILD full [WORD...]      WORD: only what has it in its name"""
import os
import pathlib
import sys

import inside

BUILD = pathlib.Path(sys.argv[1])
LIVE = pathlib.Path(__file__).resolve().parents[1] / 'live'


def main():
    os.environ['PYTHONDONTWRITEBYTECODE'] = '1'
    for name in ('core', 'unwind_self', 'verifier'):
        inside.test(f"bpf-{name.removesuffix('_self')}", str(BUILD / f'tests/bpf/test_bpf_{name}'))
    stackbpf = str(BUILD / 'user/cli/stackbpf')
    inside.test('oncpu', sys.executable, str(LIVE / 'arm64.py'), stackbpf, str(BUILD))
    for program in sorted(BUILD.glob('selfcheck-*')):
        os.environ['SELFCHECK'] = str(program)
        name = program.name.removeprefix('selfcheck-')
        inside.test(f'selfunwind {name}', sys.executable, str(LIVE / 'selfunwind.py'), stackbpf, str(BUILD))
    return 0


if __name__ == '__main__':
    sys.exit(main())
