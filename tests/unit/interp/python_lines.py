#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Lines of CPython's code objects against each CPython's own co_lines(), or dis before 3.10."""
import glob
import os
import subprocess
import sys
import tempfile

reader, truth_script = sys.argv[1:3]
pythons = glob.glob(os.path.expanduser('~/.pyenv/versions/*/bin/python')) + [sys.executable]
failed = False
for python in sorted(set(pythons)):
    with tempfile.TemporaryDirectory() as directory:
        tables, truth = directory + '/tables', directory + '/truth'
        subprocess.run([python, truth_script, tables, truth], check=True)
        with open(tables) as stdin:
            done = subprocess.run([reader], stdin=stdin, stdout=subprocess.PIPE, text=True, check=True)
        with open(truth) as file:
            want = [line.split() for line in file]
    got = [line.split() for line in done.stdout.splitlines()]
    wrong = sum(a != b for x, y in zip(got, want) for a, b in zip(x, y))
    wrong += sum(len(x) != len(y) for x, y in zip(got, want)) + abs(len(got) - len(want))
    print(f'{python}: {wrong} of {sum(map(len, want))} positions of {len(want)} code objects are wrong')
    failed = failed or wrong or not want
sys.exit(1 if failed else 0)
