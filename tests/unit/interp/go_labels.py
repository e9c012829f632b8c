#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where Go programs of x86-64 and arm64 keep the labels of goroutines: what is found in stripped programs against what the
compiler says of the runtime's structures.

go_labels.py DUMP SOURCE.go
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
# For each the thread-local variable's offset, 0 for none, and whether a register has the `g`, too.
BUILDS = (
    ('amd64', (), (-8, 0)),
    ('amd64', ('-buildmode=pie',), (-8, 0)),
    ('arm64', (), (0, 1)),
    ('arm64', ('-buildmode=pie',), (16, 1)),
)


def member(program, struct, name):
    """Return: the offset of a member, from the debug information."""
    text = subprocess.run(['readelf', '--debug-dump=info', program], capture_output=True, text=True, check=True).stdout
    match = re.search(rf'DW_AT_name +: {struct}\n.*DW_AT_byte_size(?s:.*?)'
                      rf'DW_AT_name +: {name}\n.*DW_AT_data_member_location: (\d+)', text)
    return int(match[1])


def main():
    dump, source = sys.argv[1:]
    if not shutil.which('go') or not shutil.which('readelf'):
        print('no Go or no readelf is installed')
        sys.exit(SKIP)
    nr_wrong = 0
    with tempfile.TemporaryDirectory() as work:
        for arch, flags, where in BUILDS:
            def build(*more):
                subprocess.run(['go', 'build', *flags, *more, '-o', f'{work}/{arch}{len(more)}', source], check=True, cwd=work,
                               env={**os.environ, 'GOARCH': arch, 'CGO_ENABLED': '0'})
                return f'{work}/{arch}{len(more)}'
            told = build()
            want = [*where, member(told, 'runtime.g', 'labels'), member(told, 'runtime.m', 'curg')]
            for program in told, build('-ldflags=-s'):
                out = subprocess.run([dump, program], capture_output=True, text=True, check=False).stdout
                have = [int(word) for word in out.split()]
                nr_wrong += have != want
                print(f'{arch} {flags}: {have}, {want}', flush=True)
    sys.exit(nr_wrong != 0)


main()
