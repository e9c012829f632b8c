#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""reproducible.py ROOT BUILD MESON: the BPF object does not depend on where it is built.

Builds it again from a copy of the sources in another place, and compares the bytes.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tree

SAME_OPTIONS = ('bpf-clang', 'bpftool')
PRODUCTS = ('bpf/sampler.o', 'bpf/sampler.skel.h')


def main():
    build, meson = pathlib.Path(sys.argv[2]), sys.argv[3]
    options = json.loads((build / 'meson-info/intro-buildoptions.json').read_text())
    args = [f"-D{option['name']}={option['value']}" for option in options
            if option['name'] in SAME_OPTIONS]
    with tempfile.TemporaryDirectory() as directory:
        source, again = pathlib.Path(directory) / 'elsewhere/source', pathlib.Path(directory) / 'out'
        shutil.copytree(tree.root, source, ignore=shutil.ignore_patterns('build*', '.git', '.cache'))
        for command in ([meson, 'setup', again, source, *args], ['ninja', '-C', again, *PRODUCTS]):
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True, check=False)
            if result.returncode:
                print(result.stdout)
                tree.breach(again, 0, 'does not build')
                return
        for product in PRODUCTS:
            if (build / product).read_bytes() != (again / product).read_bytes():
                tree.breach(product, 0, 'differs when built in another place')


main()
tree.done()
