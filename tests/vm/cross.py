#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""stackbpf for arm64, built here; and a root file system of that architecture to run it in.

    cross.py BUILD [TARGET...]        prints the root, and where the build is: BUILD/vm/arm64

The compiler is Debian's for the other architecture; headers, libraries and what the guest needs are packages
of Debian, unpacked beside the system (tests/live/beside.py), never installed."""
import os
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / 'tests/live'))
import beside  # pylint: disable=wrong-import-position
from beside import Missing  # pylint: disable=wrong-import-position

SUITE = 'bookworm:arm64'
TRIPLET = 'aarch64-linux-gnu'
COMPILER = f'{TRIPLET}-gcc'
TO_BUILD = (
    'libbpf-dev', 'libc6-dev', 'libcmocka-dev', 'libdw-dev', 'libelf-dev', 'libiberty-dev', 'liblzma-dev',
    'libseccomp-dev', 'libzstd-dev', 'zlib1g-dev')
# In the guest: of the normal run, and of all tests.
TO_RUN = ('binutils', 'busybox-static', 'dash', 'libgcc-s1', 'python3')
TO_RUN_ALL = (*TO_RUN, 'bash', 'coreutils', 'lua5.4', 'luajit', 'nodejs', 'openjdk-17-jre-headless', 'perl', 'php8.2-cli',
              'ruby')
CROSS_FILE = """[binaries]
c = ['{compiler}', '--sysroot={root}']
ar = '{triplet}-ar'
strip = '{triplet}-strip'
pkgconfig = 'pkg-config'
[properties]
sys_root = '{root}'
pkg_config_libdir = '{root}/usr/lib/{triplet}/pkgconfig:{root}/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""


def unpack(packages):
    """Return: the root, a pathlib.Path; absolute links in it lead into it."""
    root = beside.unpack(SUITE, list(packages))
    (root / 'sys').mkdir(exist_ok=True)
    for path in (root / 'usr').rglob('*'):
        if path.is_symlink() and os.readlink(path).startswith('/'):
            to = os.path.relpath(f'{root}{os.readlink(path)}', path.parent)
            path.unlink()
            path.symlink_to(to)
    return root


def build(build_dir, root, targets):
    """Return: the directory of the build for arm64."""
    for tool in (COMPILER, 'meson', 'ninja', 'pkg-config'):
        if not shutil.which(tool):
            raise Missing(f'there is no {tool}')
    out = pathlib.Path(build_dir).resolve() / 'vm/arm64'
    out.parent.mkdir(exist_ok=True)
    cross_file = out.with_suffix('.ini')
    # There is a colon in the root's name, which divides lists of paths.
    link = out.with_name('arm64-root')
    link.unlink(missing_ok=True)
    link.symlink_to(root)
    cross_file.write_text(CROSS_FILE.format(compiler=COMPILER, root=link, triplet=TRIPLET), encoding='utf-8')
    if not (out / 'build.ninja').exists():
        shutil.rmtree(out, ignore_errors=True)
        run(['meson', 'setup', '--cross-file', cross_file, out, TOP])
    # A guest may be running: kept from its CPUs, it would lose ticks of its timers.
    run(['nice', '-n', '19', 'ninja', '-C', out, *targets])
    return out


def compile_program(root, source, out, *flags):
    """Once: a guest may be running it."""
    if out.exists() and out.stat().st_mtime > source.stat().st_mtime:
        return
    run([COMPILER, f'--sysroot={root}', *flags, '-o', out, source])


def compile_labels(root, programs, out):
    """Once, too: all that labels_programs.py has."""
    out.mkdir(exist_ok=True)
    compiler = (COMPILER, f'--sysroot={root}')
    for name, command in programs.commands(compiler, TOP, out, 'aarch64').items():
        if not (out / name).exists():
            run(command)


def build_go(root, programs, out, names):
    """Once, too: NAME of NAME.go, or NAME-c, with C in it. If there is no Go, there is none of them."""
    if not shutil.which('go'):
        return
    out.mkdir(exist_ok=True)
    for name in names:
        source, with_c = programs / f"{name.removesuffix('-c')}.go", name.endswith('-c')
        if (out / name).exists() and (out / name).stat().st_mtime > source.stat().st_mtime:
            continue
        run(['env', 'GOARCH=arm64', f'CGO_ENABLED={int(with_c)}', f'CC={COMPILER} --sysroot={root}', 'go', 'build',
             *(['-ldflags=-linkmode=external'] if with_c else []), '-o', out / name, source])


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
                          check=False)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}")


def main():
    try:
        root = unpack(TO_BUILD + TO_RUN_ALL)
        print(root, build(sys.argv[1], root, sys.argv[2:]))
    except Missing as missing:
        print(f'cross: {missing}', file=sys.stderr)
        return 77
    return 0


if __name__ == '__main__':
    sys.exit(main())
