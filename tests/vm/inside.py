#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""In the guest: runs what is to be tested there, and says what came out as lines of JSON.

inside.py BUILD full|old [WORD...]      WORD: only what has it in its name

{"kind": "test", "what": name, "result": "pass"|"fail"|"skip", "why": ..., "seconds": ...}"""
import json
import os
import pathlib
import subprocess
import sys
import time

BUILD = pathlib.Path(sys.argv[1])
ONLY = sys.argv[3:]
SECONDS_MAX = 300
OUTPUT_LINES_MAX = 30
BPF_TESTS = ('test_bpf_core', 'test_bpf_unwind_self', 'test_bpf_verifier')


def say(kind, what, result, why='', **more):
    print(json.dumps({'kind': kind, 'what': what, 'result': result, 'why': why, **more}), flush=True)


def is_wanted(what):
    return not ONLY or any(word in what for word in ONLY)


def test(what, *command):
    """One of the tests of the tree, by its exit status."""
    if not is_wanted(what):
        return ''
    begin = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors='replace', timeout=SECONDS_MAX, check=False)
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        status, output = f'no end within {SECONDS_MAX} s', (error.stdout or b'').decode(errors='replace')
    seconds = time.monotonic() - begin
    lines = output.strip().splitlines()
    if status == 77:
        say('test', what, 'skip', lines[-1] if lines else '', seconds=seconds)
    elif status == 0:
        say('test', what, 'pass', seconds=seconds)
    else:
        say('test', what, 'fail', f'status {status}\n' + '\n'.join(lines[-OUTPUT_LINES_MAX:]), seconds=seconds)
    return output


def full():
    for name in BPF_TESTS:
        test(name.replace('test_bpf_', 'bpf-').replace('_self', ''), str(BUILD / 'tests/bpf' / name))


def main():
    os.environ['PYTHONDONTWRITEBYTECODE'] = '1'
    full()
    return 0


if __name__ == '__main__':
    sys.exit(main())
