#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""arm64: built here, run under a kernel of that architecture in a machine that qemu makes.

arm64.py BUILD NAME [--only WORD...]      NAME as in kernels.py

The suite `bpf`; known programs, backtrace() and Python under `oncpu` (arm64_inside.py); cells of the matrix, the
list "arm64" in cells.py. One of the programs is built with pointer authentication, which the machine's CPU has.
Results are kept as kernel.py does."""
import argparse
import fcntl
import pathlib
import signal
import sys

import cross
import kernels
import machine
from kernel import SECONDS_MAX, compile_java, run
from machine import Missing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'live'))
import labels_programs  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
TARGETS = ('user/cli/stackbpf', *(f'tests/programs/{name}' for name in ('split', 'deep', 'rounds', 'newborn')),
           'tests/bpf/test_bpf_core', 'tests/bpf/test_bpf_expr', 'tests/bpf/test_bpf_unwind_self', 'tests/bpf/test_bpf_verifier')
NO_FP = ('-O2', '-fomit-frame-pointer', '-pthread')
# What selfunwind.py takes instead of compiling it.
SELFCHECKS = {
    'pie': (*NO_FP, '-pie', '-fPIE', '-s'),
    'static': (*NO_FP, '-static', '-no-pie', '-s'),
    'frame-pointers': ('-O1', '-fno-omit-frame-pointer', '-pthread'),
    'signed': (*NO_FP, '-mbranch-protection=standard'),
}


def prepare(build):
    """One at a time. Return: the root, the build."""
    (build / 'vm').mkdir(exist_ok=True)
    with open(build / 'vm/arm64.lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root = cross.unpack()
        out = cross.build(build, root, TARGETS)
        for name, flags in SELFCHECKS.items():
            cross.compile_program(root, TOP / 'tests/programs/selfcheck.c', out / f'selfcheck-{name}', *flags)
        compile_java(out / 'classes', TOP / 'tests/programs/Rounds.java')
        cross.compile_labels(root, labels_programs, out / 'labels')
        cross.compile_program(root, TOP / 'tests/programs/split.c', out / 'split-signed', '-O1', '-pthread',
                              '-mbranch-protection=standard')
    return root, out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('name')
    parser.add_argument('--only', nargs='*', default=[])
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build = pathlib.Path(args.build).resolve()
    try:
        machine.need(machine.ARCHITECTURES['aarch64'].qemu)
        root, out = prepare(build)
        setup = machine.Setup(kernels.unpack(args.name, 'aarch64'), arch='aarch64', root=str(root),
                              busybox=str(root / 'usr/bin/busybox'), seconds_max=SECONDS_MAX['some'],
                              writable=(out, TOP / 'docs', TOP / 'tests'))
        return run(setup, ['python3', HERE / 'arm64_inside.py', out, 'arm64', *args.only],
                   build / 'vm' / f'aarch64-{args.name}.json', is_whole=not args.only)
    except Missing as missing:
        print(f'skipped: {missing}')
        return 77


if __name__ == '__main__':
    sys.exit(main())
