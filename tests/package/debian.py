#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""debian.py ROOT BUILD MESON: Debian's package builds in a chroot that has nothing but what the package
asks for, no /sys and so no types of the running kernel; its program runs there, and here. Fetches some
hundred megabytes, so only `scripts/test --all` does it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tarball import Tarball, check, run, skip


def in_chroot(chroot, command):
    """In namespaces of its own: no network, no process of ours, and nothing mounted but /proc."""
    return run('unshare', '--mount', '--pid', '--net', '--ipc', '--uts', '--fork', '--kill-child', 'sh', '-c',
               f'mount -t proc proc {chroot}/proc && exec chroot {chroot} sh -c "$1"', 'sh',
               f'export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8; {command}')


def make_chroot(tmp, control):
    fields = re.search(r'^Build-Depends:(.*?)^\n', control, re.M | re.S)[1]
    names = [re.match(r'[^\s:(|]+', entry.strip())[0] for entry in fields.split(',')]
    names[names.index('debhelper-compat')] = 'debhelper'
    # What the package depends on beside libraries, where there is no systemd.
    names.append('systemd-standalone-sysusers')
    suite = re.search(r'VERSION_CODENAME=(\w+)', pathlib.Path('/etc/os-release').read_text())[1]
    run('mmdebstrap', '--variant=buildd', '--mode=root', f'--include={",".join(names)}', suite, f'{tmp}/chroot')
    # What mmdebstrap has mounted is gone by now; an own /dev is all that builds want.
    return f'{tmp}/chroot'


def main():
    root, build, meson = sys.argv[1:4]
    if os.environ.get('STACKBPF_SUITES') != 'all':
        skip('fetches a chroot of 400 MB; scripts/test --all package does it')
    if os.geteuid() != 0 or not shutil.which('mmdebstrap'):
        skip('needs root, and mmdebstrap')
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        tarball = Tarball(root, build, meson, tmp)
        chroot = make_chroot(tmp, pathlib.Path(f'{tarball.source}/debian/control').read_text())
        shutil.copytree(tarball.source, f'{chroot}/build/stackbpf', symlinks=True)
        check(not os.path.exists(f'{chroot}/sys/kernel'), 'the chroot has no /sys, so no BTF')
        in_chroot(chroot, 'cd /build/stackbpf && dpkg-buildpackage -us -uc 2>&1')
        package = next(pathlib.Path(f'{chroot}/build').glob('stackbpf_*.deb'))
        check(next(pathlib.Path(f'{chroot}/build').glob('stackbpf_*.dsc')).exists(), 'there is a source package')
        said = in_chroot(chroot, f'dpkg -i /build/{package.name} >/dev/null && stackbpf --version')
        check(said.splitlines()[0].endswith(f'(commit {tarball.commit})'), f'{said.splitlines()[0]}')
        user = in_chroot(chroot, 'getent passwd stackbpf-store')
        check(user.startswith('stackbpf-store:'), f'its installation makes the user of stores: {user!r}')
        run('dpkg-deb', '-x', package, f'{tmp}/unpacked')
        for path in ('usr/bin/stackbpf', 'usr/bin/flamegraph', 'usr/bin/sbsym',
                     'usr/share/man/man8/stackbpf.8.gz', 'usr/share/bash-completion/completions/stackbpf'):
            check(os.path.exists(f'{tmp}/unpacked/{path}'), f'{path} is in the package')
        units = {path.name: path.read_text() for path in pathlib.Path(f'{tmp}/unpacked').glob('**/systemd/system/*')}
        check(set(units) == {'stackbpf-record.service', 'stackbpf-serve.service', 'stackbpf@.service'} and
              all('ExecStart=/usr/bin/stackbpf ' in text for text in units.values()), f'its units: {sorted(units)}')
        enabled = in_chroot(chroot, 'find /etc/systemd/system -name "stackbpf*"')
        check(not enabled, f'none of them is enabled: {enabled!r}')
        # It was built without this kernel's types, and works on it.
        if os.path.exists('/sys/kernel/btf/vmlinux'):
            done = subprocess.run([f'{tmp}/unpacked/usr/bin/stackbpf', 'oncpu', '--', 'sh', '-c',
                                   'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'],
                                  capture_output=True, text=True, check=False)
            check(done.returncode == 0 and '\nsh;' in done.stdout, f'it samples a shell: {done.stderr}')


main()
