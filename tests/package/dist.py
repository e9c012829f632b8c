#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""dist.py ROOT BUILD MESON: what `meson dist` packs builds without git, as static programs, which say of
which commit they are and draw a picture."""
import os
import sys
import tempfile

from tarball import Tarball, check, run

FOLDED = 'main;read;[file] 3\nmain;work 7\n'


def main():
    root, build, meson = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as tmp:
        tarball = Tarball(root, build, meson, tmp)
        check(not os.path.exists(f'{tarball.source}/.git'), 'there is no git directory in the tarball')
        run(meson, 'setup', f'{tmp}/build', tarball.source, '-Dstatic=true', *tarball.setup_args)
        run('ninja', '-C', f'{tmp}/build')
        for name, path in (('stackbpf', 'user/cli/stackbpf'), ('sbsym', 'symbolizer/sbsym'),
                           ('flamegraph', 'user/flamegraph/flamegraph')):
            said = run(f'{tmp}/build/{path}', '--version').splitlines()
            check(said[0].endswith(f'(commit {tarball.commit})'), f'{said[0]}; it is {tarball.commit}')
            dynamic = run('readelf', '-ld', f'{tmp}/build/{path}')
            check('INTERP' not in dynamic and 'NEEDED' not in dynamic, f'{name} is static')
        check(' static,' in run(f'{tmp}/build/user/cli/stackbpf', '--version'), 'it says that it is static')
        picture = run(f'{tmp}/build/user/flamegraph/flamegraph', input=FOLDED)
        check('<svg' in picture and 'main' in picture, 'flamegraph draws')


main()
