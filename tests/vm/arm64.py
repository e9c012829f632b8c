#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""arm64: built here, run under a kernel of that architecture in a machine that qemu makes.

arm64.py BUILD NAME [--all | --only WORD...]      NAME as in kernels.py

The normal run: the product is built, the verifier accepts all its BPF programs, and known programs, backtrace() and
Python are sampled. --all, and --only, which takes a part of it: the suite `bpf`, known programs of each runtime,
labels (arm64_inside.py), and the list "arm64" of cells.py. One of the programs is built with pointer authentication,
which the machine's CPU has. Results are kept as kernel.py does."""
import argparse
import fcntl
import pathlib
import signal
import sys

import cross
import kernels
import machine
from cells import SECONDS_MAX
from kernel import compile_java, run
from machine import Missing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'live'))
import labels_programs  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
NORMAL = ('bpf_verifier', 'live arm64 native', 'live arm64 python', 'live arm64 go-stacks', 'live selfunwind signed')
NORMAL_GO = ('cgo-c',)
ALL_GO = (*NORMAL_GO, 'mix', 'spans', 'spans-c', 'timed')
NORMAL_TARGETS = ('user/cli/stackbpf', 'tests/programs/split', 'tests/programs/deep', 'tests/bpf/test_bpf_verifier')
ALL_TARGETS = (*NORMAL_TARGETS, 'tests/programs/rounds', 'tests/programs/newborn', 'tests/bpf/test_bpf_core',
               'tests/bpf/test_bpf_expr', 'tests/bpf/test_bpf_unwind_self')
NO_FP = ('-O2', '-fomit-frame-pointer', '-pthread')
# What other tests of `live` take instead of compiling it.
COMPILED = {'keeper': ('-O1', '-g'), 'leaks': ('-O1', '-g'), 'traced': ('-O2', '-g'),
            **dict.fromkeys(('timed', 'pairs'), ('-O2', '-g', '-pthread', '-DSLEEP_NS=10000000'))}
# What selfunwind.py takes instead of compiling it.
SELFCHECKS = {
    'pie': (*NO_FP, '-pie', '-fPIE', '-s'),
    'static': (*NO_FP, '-static', '-no-pie', '-s'),
    'frame-pointers': ('-O1', '-fno-omit-frame-pointer', '-pthread'),
    'signed': (*NO_FP, '-mbranch-protection=standard'),
}


def prepare(build, is_normal):
    """One at a time. Return: the root, the build."""
    (build / 'vm').mkdir(exist_ok=True)
    with open(build / 'vm/arm64.lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root = cross.unpack(cross.TO_BUILD + (cross.TO_RUN if is_normal else cross.TO_RUN_ALL))
        out = cross.build(build, root, NORMAL_TARGETS if is_normal else ALL_TARGETS)
        for name, flags in SELFCHECKS.items():
            cross.compile_program(root, TOP / 'tests/programs/selfcheck.c', out / f'selfcheck-{name}', *flags)
        cross.compile_program(root, TOP / 'tests/programs/split.c', out / 'split-signed', '-O1', '-pthread',
                              '-mbranch-protection=standard')
        cross.build_go(root, TOP / 'tests/programs', out / 'go', NORMAL_GO if is_normal else ALL_GO)
        if not is_normal:
            compile_java(out / 'vm/classes', TOP / 'tests/programs/Rounds.java')
            (out / 'compiled').mkdir(exist_ok=True)
            for name, flags in COMPILED.items():
                cross.compile_program(root, TOP / f'tests/programs/{name}.c', out / 'compiled' / name, *flags)
            cross.compile_labels(root, labels_programs, out / 'labels')
    return root, out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('name')
    parser.add_argument('--all', action='store_true', help='what is looked at by scripts/test --all')
    parser.add_argument('--only', nargs='*', default=[])
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build = pathlib.Path(args.build).resolve()
    try:
        machine.need(machine.ARCHITECTURES['aarch64'].qemu)
        is_normal = not args.all and not args.only
        root, out = prepare(build, is_normal)
        setup = machine.Setup(kernels.unpack(args.name, 'aarch64'), arch='aarch64', root=str(root),
                              busybox=str(root / 'usr/bin/busybox'), seconds_max=SECONDS_MAX['arm64'],
                              writable=(out, TOP / 'docs', TOP / 'tests'))
        return run(setup, ['python3', HERE / 'arm64_inside.py', out, 'arm64', *(NORMAL if is_normal else args.only)],
                   build / 'vm' / f'aarch64-{args.name}.json', is_whole=args.all and not args.only)
    except Missing as missing:
        print(f'skipped: {missing}')
        return 77


if __name__ == '__main__':
    sys.exit(main())
