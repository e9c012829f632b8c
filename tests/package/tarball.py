# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of packages share: the tarball of the commit that is checked out, and how they report."""
import json
import os
import pathlib
import subprocess
import sys


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


def run(*command, **kwargs):
    """What it prints; if it fails, so does the test, and shows it."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          errors='replace', **kwargs)
    if done.returncode:
        print(done.stdout[-20000:], done.stderr[-20000:], sep='\n')
        print(f'FAILED: {" ".join(map(str, command))}')
        sys.exit(1)
    return done.stdout


def check(condition, what):
    print(('ok: ' if condition else 'FAILED: ') + what)
    if not condition:
        sys.exit(1)


class Tarball:
    """Of the source tree ROOT as MESON packs it, unpacked in the directory .source; .commit is git's word."""

    def __init__(self, root, build, meson, tmp):
        if not os.path.exists(f'{root}/.git'):
            skip('not a git tree, which meson dist packs')
        git = ['git', '-c', f'safe.directory={root}']
        self.commit = run(*git, '-C', root, 'rev-parse', '--short=12', 'HEAD').strip()
        options = {option['name']: option['value'] for option in
                   json.loads((pathlib.Path(build) / 'meson-info/intro-buildoptions.json').read_text())}
        self.setup_args = [f'-D{name}={options[name]}' for name in ('bpf-clang', 'bpftool')] + ['-Dtests=disabled']
        run(*git, 'clone', '-q', '--no-hardlinks', root, f'{tmp}/clone')
        run(meson, 'setup', f'{tmp}/setup', f'{tmp}/clone', *self.setup_args)
        run(meson, 'dist', '-C', f'{tmp}/setup', '--no-tests', '--formats', 'gztar')
        self.path = next(pathlib.Path(f'{tmp}/setup/meson-dist').glob('*.tar.gz'))
        run('tar', '-C', tmp, '-xf', self.path)
        self.source = f'{tmp}/{self.path.name[:-len(".tar.gz")]}'
