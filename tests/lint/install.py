#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""install.py ROOT BUILD MESON: what `meson install` puts under DESTDIR.

Every program, its man page, completions for three shells, everything under the prefix, and nothing
that leads back to the build directory.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import tree

COMPLETIONS = ('bash-completion/completions/stackbpf', 'zsh/site-functions/_stackbpf',
               'fish/vendor_completions.d/stackbpf.fish')


def check(build, prefix):
    targets = json.loads((build / 'meson-info/intro-targets.json').read_text())
    programs = [target['name'] for target in targets
                if target['type'] == 'executable' and target['installed']]
    if 'stackbpf' not in programs:
        tree.breach(build, 0, 'stackbpf is not among what is installed')
    for name in programs:
        program = prefix / 'bin' / name
        if not os.access(program, os.X_OK):
            tree.breach(program, 0, 'is not there, or cannot be run')
            continue
        if not list((prefix / 'share/man').glob(f'man*/{name}.[18]')):
            tree.breach(name, 0, 'has no man page')
        dynamic = subprocess.run(['readelf', '-d', program], check=True, capture_output=True,
                                 text=True).stdout
        if 'RUNPATH' in dynamic or 'RPATH' in dynamic:
            tree.breach(name, 0, 'has a path to libraries built in')
    for target in targets:
        if target['type'] == 'shared module' and target['installed'] and \
                not list(prefix.rglob(pathlib.Path(target['filename'][0]).name)):
            tree.breach(target['name'], 0, 'is not there')
    for name in COMPLETIONS:
        if not (prefix / 'share' / name).is_file():
            tree.breach(name, 0, 'is not there')


def main():
    build, meson = pathlib.Path(sys.argv[2]), sys.argv[3]
    options = json.loads((build / 'meson-info/intro-buildoptions.json').read_text())
    prefix = next(option['value'] for option in options if option['name'] == 'prefix')
    with tempfile.TemporaryDirectory() as directory:
        result = subprocess.run([meson, 'install', '-C', build, '--no-rebuild', '--destdir', directory],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode:
            print(result.stdout)
            tree.breach(build, 0, 'does not install')
            return
        root = pathlib.Path(directory + prefix)
        check(build, root)
        for path in pathlib.Path(directory).rglob('*'):
            if not path.is_dir() and root not in path.parents:
                tree.breach(path, 0, 'is outside of the prefix')


main()
tree.done()
