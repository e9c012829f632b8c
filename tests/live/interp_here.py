#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Interpreters that this system has, in a few seconds. Other versions have tests of their own (interp_<runtime>.py).

interp_here.py STACKBPF PART...
"""
import os
import shutil
import sys
import tempfile

from live import check, done, need_root, ready, run_parts, skip, stackbpf

need_root()
BINARY, PARTS = sys.argv[1], sys.argv[2:]

# A class, a function, a method and a file whose names are not ASCII; those that PHP made a hash of and others.
UTF8 = r'''<?php
class Größe {
    function messen($n) { for ($s = $i = 0; $i < $n; $i++) $s = ($s * 17 + $i) % 65521; return $s; }
}
function überprüfe($n) { return (new Größe)->messen($n); }
fwrite(STDOUT, "ready\n");
for (;;) überprüfe(10000);
'''
LATIN1 = b'<?php function caf\xe9($n) { return array_sum(range(1, $n)); } function loop() { for (;;) caf\xe9(1000); }'


def utf8():
    """PHP's hash of a name is by char, which has a sign on some machines and none on others."""
    if not shutil.which('php'):
        skip('no php here')
    with tempfile.TemporaryDirectory() as work:
        path = f'{work}/prüfung.php'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(UTF8)
        with ready('php', '-n', path) as program:
            result = stackbpf(BINARY, 'oncpu', '-p', str(program.pid), '-F', '499', '-t', '1', '--lines')
    want = ('{main}', 'überprüfe', 'Größe::messen')
    names = {tuple(frame.partition(' ')[0] for frame in stack): weight for stack, weight in result.stacks.items()}
    nr = sum(weight for stack, weight in names.items() if want == stack[-3:])
    check(nr > 0.9 * result.total, f'PHP: {nr} of {result.total} are {";".join(want)}: {result.err}')
    check('[unreadable' not in str(names), 'all names can be read')
    nr = sum(weight for stack, weight in result.stacks.items() if 'überprüfe prüfung.php:5' in stack)
    check(nr > 0.9 * result.total, f'PHP: {nr} of {result.total} have the file')


def latin1():
    """Names of functions and files are bytes."""
    if not shutil.which('php'):
        skip('no php here')
    with tempfile.TemporaryDirectory() as work:
        path = os.fsencode(work) + b'/caf\xe9.php'
        with open(path, 'wb') as file:
            file.write(LATIN1)
        with ready('php', '-n', '-r', b'require "' + path + b'"; fwrite(STDOUT, "ready\n"); loop();') as program:
            result = stackbpf(BINARY, 'oncpu', '-p', str(program.pid), '-F', '499', '-t', '1')
    nr = sum(weight for stack, weight in result.stacks.items() if 'caf\ufffd' in stack)
    check(nr > 0.9 * result.total and '[unreadable' not in str(result.stacks),
          f'PHP: {nr} of {result.total} have a name in Latin-1: {result.err}')


run_parts((utf8, latin1), PARTS)
done()
