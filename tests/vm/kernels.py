#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernels that tests run under: packages of Debian and Ubuntu, fetched and unpacked, never installed.

    kernels.py --list [normal|all]    names of those for x86-64
    kernels.py NAME...                fetch; prints where each is

Of each release the newest that the package host has. Of Debian the flavour for clouds, because it is small and
has all that a virtual machine needs. Only Ubuntu has 5.15, and pages of 64 KiB.

STACKBPF_KERNELS_DIR: where to keep them (~/.cache/stackbpf/kernels)."""
import dataclasses
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'live'))
import beside  # pylint: disable=wrong-import-position
from beside import Missing  # pylint: disable=wrong-import-position

DEBIAN_ARCH = {'x86_64': 'amd64', 'aarch64': 'arm64'}


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    suite: str
    release: str  # of packages' names, without the flavour
    flavour: str = 'cloud-{arch}'
    arches: tuple = ('x86_64',)
    normal: str = ''  # the list of cells.py in the normal run; '': not part of it
    all: str = 'some'  # the list of scripts/test --all


BOTH = ('x86_64', 'aarch64')
KERNELS = (
    Kernel('5.10', 'bullseye-security', r'5\.10\.\d+-\d+', normal='old', all='old'),
    Kernel('5.15', 'jammy', r'5\.15\.0-\d+', flavour='generic', normal='few', all='all'),
    Kernel('6.1', 'bookworm-security', r'6\.1\.\d+-\d+', arches=BOTH, all='all'),
    Kernel('6.1-rt', 'bookworm-security', r'6\.1\.\d+-\d+', flavour='rt-{arch}'),
    Kernel('6.12', 'bookworm-security', r'6\.12\.[\d.]+\+deb12', arches=BOTH, all='all'),
    Kernel('6.12-16k', 'trixie', r'6\.12\.[\d.]+\+deb13', flavour='{arch}-16k', arches=('aarch64',)),
    Kernel('6.12-rt', 'bookworm-security', r'6\.12\.[\d.]+\+deb12', flavour='rt-{arch}'),
    Kernel('6.16', 'trixie-backports', r'6\.16\.[\d.]+\+deb13'),
    Kernel('6.17', 'trixie-backports', r'6\.17\.[\d.]+\+deb13'),
    Kernel('6.18', 'trixie-backports', r'6\.18\.[\d.]+\+deb13'),
    Kernel('6.19', 'trixie-backports', r'6\.19\.[\d.]+\+deb13'),
    Kernel('7.0-64k', 'resolute', r'7\.0\.\d+-\d+', flavour='generic-64k', arches=('aarch64',)),
    Kernel('7.0', 'trixie-backports', r'7\.0\.[\d.]+\+deb13'),
    Kernel('7.1', 'trixie-backports', r'7\.1\.[\d.]+\+deb13'),
    Kernel('7.2', 'trixie-backports', r'7\.2\.[\d.]+\+deb13'),
    Kernel('7.3', 'trixie-backports', r'7\.3\.[\d.]+\+deb13', normal='normal', all='all'),
)


def find(name):
    for kernel in KERNELS:
        if kernel.name == name:
            return kernel
    raise Missing(f"no kernel '{name}'; there are: {' '.join(kernel.name for kernel in KERNELS)}")


def cache():
    path = os.environ.get('STACKBPF_KERNELS_DIR') or pathlib.Path.home() / '.cache/stackbpf/kernels'
    return pathlib.Path(path)


def unpack(name, arch='x86_64'):
    """Return: a directory with the unpacked packages, which has a file "version". One that is there
    already is taken as it is: remove it to get the newest."""
    kernel = find(name)
    if arch not in kernel.arches:
        raise Missing(f'no {name} for {arch}')
    directory = cache() / arch / name
    if not (directory / 'version').exists():
        suite = kernel.suite if arch == 'x86_64' else f'{kernel.suite}:{DEBIAN_ARCH[arch]}'
        with beside.locked(suite):
            if not (directory / 'version').exists():
                fetch(kernel, suite, arch, directory)
    return directory


def fetch(kernel, suite, arch, directory):
    flavour = kernel.flavour.format(arch=DEBIAN_ARCH[arch])
    env = beside.update(suite)
    names = beside.run(['apt-cache', 'pkgnames'], env).split()
    # From 7.2 on image and modules are packages of their own, before one holds both.
    releases = {match[2] for match in (re.fullmatch(rf'linux-(binary|image)-({kernel.release})-{flavour}', name)
                                       for name in names) if match}
    if not releases:
        raise Missing(f"'{suite}' has no kernel {kernel.name}")
    newest = max(releases, key=beside.natural)
    wanted = [name for name in (f'linux-{part}-{newest}-{flavour}' for part in ('image', 'binary', 'modules'))
              if name in names]
    unfinished = directory.with_name(directory.name + '.unfinished')
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        beside.run(['apt-get', '-q', 'download', *wanted], env, cwd=unfinished)
        for package in unfinished.glob('*.deb'):
            subprocess.run(['dpkg-deb', '-x', package, unfinished], check=True)
            package.unlink()
        for image in unfinished.glob('boot/vmlinuz-*'):
            unwrap(image)
        (unfinished / 'version').write_text(f'{newest}-{flavour}\n', encoding='ascii')
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    shutil.rmtree(directory, ignore_errors=True)
    unfinished.rename(directory)


def unwrap(image):
    """Ubuntu's image for arm64 is a program for EFI, with the kernel in its section ".linux", which qemu does not load. The
    kernel is another such program, which unpacks what begins at an offset (drivers/firmware/efi/libstub/zboot-header.S)."""
    content = image.read_bytes()
    header, = struct.unpack_from('<I', content, 0x3c)
    if content[header:header + 4] != b'PE\0\0':
        return
    nr_sections, optional = struct.unpack_from('<H12xH', content, header + 6)
    for at in range(header + 24 + optional, header + 24 + optional + 40 * nr_sections, 40):
        name, begin = struct.unpack_from('<8s12xI', content, at)
        magic, offset, size, kind = struct.unpack_from('<4sII8x4s', content, begin + 4)
        if name.rstrip(b'\0') == b'.linux' and (magic, kind) == (b'zimg', b'zstd'):
            packed = content[begin + offset:begin + offset + size]
            image.write_bytes(subprocess.run(['zstd', '-dcq'], input=packed, stdout=subprocess.PIPE, check=True).stdout)


def main():
    if sys.argv[1:2] == ['--list']:
        which = (sys.argv[2:] or ['all'])[0]
        print(*(kernel.name for kernel in KERNELS if 'x86_64' in kernel.arches and (which == 'all' or kernel.normal)))
        return 0
    if len(sys.argv) < 2 or sys.argv[1].startswith('-'):
        print(__doc__)
        return 2
    failed = 0
    for name in sys.argv[1:]:
        try:
            print(unpack(name), flush=True)
        except Missing as missing:
            print(f'{name}: {missing}', file=sys.stderr, flush=True)
            failed = 1
    return failed


if __name__ == '__main__':
    sys.exit(main())
