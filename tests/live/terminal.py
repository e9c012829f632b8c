#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a process may call itself, and its file, drives no terminal, whatever we write about it.

terminal.py STACKBPF. A program, and its process with it, has a name of control characters: ESC, CSI as UTF-8 (U+009B),
one that reorders text (U+202E), one that is no UTF-8. No command that shows it writes any of these.
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, skip

STACKBPF = os.path.abspath(sys.argv[1])

NAME = b'e\xc2\x9b1m\x1b[2J\xe2\x80\xae\xff'
SHOWN = b'e??1m?[2J????'
# One for each way to write names.
FORMATS = ('folded', 'svg', 'bt', 'callgrind', 'html')
BIDI = set('\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069')


def dangers(data):
    """What a terminal would take for a command in bytes that were written, but for line feeds and tabs."""
    found = set(re.findall(rb'[\x00-\x08\x0b-\x1f\x7f]', data))
    text = data.decode('utf-8', 'surrogateescape')
    found |= {char for char in text if 0x80 <= ord(char) < 0xa0 or char in BIDI or 0xdc80 <= ord(char) < 0xdd00}
    return found


def run(*args):
    ended = subprocess.run([STACKBPF, *args], capture_output=True, timeout=240, check=False)
    return ended.stdout, ended.stderr


@contextlib.contextmanager
def evil(directory):
    """A process that is busy, of a file of that name."""
    path = os.path.join(directory.encode(), NAME)
    shutil.copy(shutil.which('yes'), path)
    with open(os.devnull, 'wb') as null, subprocess.Popen([path], stdout=null) as process:
        try:
            yield str(process.pid), path
        finally:
            process.kill()


def main():
    need_root()
    if not shutil.which('yes'):
        skip('no program to copy')
    with tempfile.TemporaryDirectory(prefix='sb-terminal-') as directory, evil(directory) as (pid, path):
        for form in FORMATS:
            out, err = run('wall', '-p', pid, '-t', '0.1', '--modules', '--by', 'comm', '--format', form)
            check(not dangers(err), f'{form}: what is said: {dangers(err)} {err}')
            check(out, f'{form}: {err}')
            check(not dangers(out), f'{form}: {dangers(out)} {out[:300]}')
            if form == 'folded':
                check(out.startswith((SHOWN, b'#')) and SHOWN in out, f'its name is told apart: {out[:100]}')
        for args in (('doctor', '-p', pid), ('snap', '-p', pid), ('snap', '-p', pid, '--format', 'folded'),
                     ('top', '-p', pid, '-t', '0.3'),
                     ('oncpu', '-p', pid, '-t', '0.1', '-o', path + b'/x'), ('oncpu', '--comm', NAME), ('query', '--store', path)):
            out, err = run(*args)
            check(out + err, f'{args} says something')
            check(not dangers(out + err), f'{args}: {dangers(out + err)} {(out + err)[-300:]}')
    done()


main()
