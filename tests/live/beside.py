#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages of other suites of Debian (and Ubuntu), unpacked beside the system: runtimes of versions
that this system does not have.

    root = beside.unpack('trixie', ['python3'])    # a directory with the packages and what they depend on
    with beside.start(root, ['/usr/bin/python3', '/prog.py'], files={'/prog.py': here}) as program:
        print(program.stdout.readline())

    beside.py SUITE PACKAGE...    prefetch, each package by itself; prints where, or why not
    beside.py --versions          which versions of the runtimes each suite has (a table)

apt resolves and fetches into a state of its own: the system's lists, its packages and its database are
not touched, and nothing that is unpacked is run here as part of an installation. So what maintainers'
scripts would have made is missing, but for a few links (link_up()). Nothing is used that is not signed
by the archive's keyring as this system has it (debian-archive-keyring); Ubuntu's comes from Debian's
package of it, so by the same chain.

STACKBPF_BESIDE: where to keep it all (~/.cache/stackbpf/beside). STACKBPF_SUITES: the suites that may be
used, "trixie sid"; "all" or nothing: each of them."""
import contextlib
import ctypes
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import time

DEBIAN = ('bullseye', 'bookworm', 'trixie', 'forky', 'sid', 'experimental')
UBUNTU = ('bionic', 'focal', 'jammy', 'noble')
SUITES = DEBIAN + UBUNTU
# Its first release, and of that kernels alone (tests/vm/kernels.py).
UBUNTU_KERNELS = ('resolute',)
DEBIAN_KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg'
UBUNTU_KEYS = 'usr/share/keyrings/ubuntu-archive-keyring.gpg'
DEBIAN_MIRROR = 'http://deb.debian.org/debian'
UBUNTU_MIRROR = 'http://archive.ubuntu.com/ubuntu'
FETCH_SECONDS_MAX = 600
LISTS_AGE_SECONDS_MAX = 12 * 3600
# For --versions: a package's name with the version in it, and those that depend on the newest.
RUNTIMES = (('Python', r'python[23]\.\d+(-nogil)?'), ('Perl', 'perl'), ('Ruby', r'ruby\d\.\d'),
            ('PHP', r'php\d\.\d-cli'), ('Lua', r'lua5\.\d'), ('LuaJIT', 'luajit'), ('Node.js', 'nodejs'),
            ('OpenJDK', r'openjdk-\d+-jre-headless'))


class Missing(Exception):
    """The reason why it cannot be had here: the test is to be skipped with it."""


def cache():
    path = os.environ.get('STACKBPF_BESIDE') or pathlib.Path.home() / '.cache/stackbpf/beside'
    return pathlib.Path(path)


def is_allowed(suite):
    words = os.environ.get('STACKBPF_SUITES', 'all').replace(',', ' ').split()
    return not words or not {'all', suite, release_of(suite)}.isdisjoint(words)


def unpack(suite, packages):
    """Return: the root, a pathlib.Path. The same root serves all who ask for the same. suite: one of SUITES;
    with ":arm64" behind it, packages of another architecture."""
    if release_of(suite) not in SUITES:
        raise ValueError(f'no suite {suite!r}; there are: {" ".join(SUITES)}')
    # Also if they are there: a run takes the same time wherever, and whatever was run before.
    if not is_allowed(suite):
        raise Missing(f"packages of '{suite}' are not used here: STACKBPF_SUITES does not name it")
    root = cache() / suite / 'roots' / name_of(packages)
    if (root / '.unpacked').exists():
        return root
    with locked(suite):
        if not (root / '.unpacked').exists():
            make(suite, packages, root)
    return root


def release_of(suite):
    return suite.partition(':')[0]


def name_of(packages):
    name = '+'.join(sorted(packages))
    return name if len(name) < 100 else hashlib.sha1(name.encode()).hexdigest()


@contextlib.contextmanager
def locked(suite):
    """One at a time fetches of a suite."""
    directory = cache() / suite
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with open(directory / 'lock', 'w', encoding='ascii') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except PermissionError as error:
        raise Missing(f'cannot write below {directory}: {error.strerror}') from error


def make(suite, packages, root):
    root.parent.mkdir(parents=True, exist_ok=True)
    # What was interrupted is begun anew.
    unfinished = root.with_name(root.name + '.unfinished')
    shutil.rmtree(unfinished, ignore_errors=True)
    prepare(unfinished, suite)
    try:
        for package in fetched(suite, packages):
            extract(package, unfinished)
        link_up(unfinished)
        (unfinished / '.unpacked').touch()
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    shutil.rmtree(root, ignore_errors=True)
    unfinished.rename(root)


# What apt is to use instead of the system's.

def config(suite):
    """Return: the environment for apt. Its files are in the cache; of the system's settings those of how
    to reach the network remain."""
    if not shutil.which('apt-get') or not shutil.which('dpkg-deb'):
        raise Missing('no apt-get and dpkg-deb here')
    base = cache() / suite / 'apt'
    for name in ('lists/partial', 'archives/partial', 'empty'):
        (base / name).mkdir(parents=True, exist_ok=True)
    (base / 'status').touch()
    (base / 'sources.list').write_text(sources(suite), encoding='ascii')
    network = [line for line in run(['apt-config', 'dump']).splitlines()
               if re.match(r'(Acquire::(http|https|ftp|ForceIPv4)|APT::Architecture )', line)]
    architecture = suite.partition(':')[2]
    if architecture:
        network = [line for line in network if not line.startswith('APT::Architecture')]
        network += [f'APT::Architecture "{architecture}";', f'APT::Architectures {{ "{architecture}"; }};']
    settings = {
        'Dir::State': base, 'Dir::State::Lists': base / 'lists', 'Dir::State::status': base / 'status',
        'Dir::State::extended_states': base / 'extended_states', 'Dir::Cache': base,
        'Dir::Cache::archives': base / 'archives', 'Dir::Etc::sourcelist': base / 'sources.list',
        'Dir::Etc::sourceparts': base / 'empty', 'Dir::Etc::parts': base / 'empty',
        'Dir::Etc::main': base / 'none', 'Dir::Etc::preferences': base / 'none',
        'Dir::Etc::preferencesparts': base / 'empty', 'APT::Sandbox::User': 'root',
        'APT::Install-Recommends': 'false', 'APT::Keep-Downloaded-Packages': 'true',
        'APT::Get::Assume-Yes': 'true', 'Acquire::Languages': 'none', 'Acquire::Retries': '3',
        # Old suites and old mirrors are not signed anew, and we look for versions, not for what is newest.
        'Acquire::Check-Valid-Until': 'false',
        'Acquire::http::Timeout': '30', 'Debug::NoLocking': 'false'}
    lines = network + [f'{key} "{value}";' for key, value in settings.items()]
    (base / 'apt.conf').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return dict(os.environ, APT_CONFIG=str(base / 'apt.conf'), LC_ALL='C', DEBIAN_FRONTEND='noninteractive')


def sources(suite):
    suite = release_of(suite)
    if suite in UBUNTU + UBUNTU_KERNELS:
        keys, mirror, components = ubuntu_keys(), UBUNTU_MIRROR, 'main universe' if suite in UBUNTU else 'main'
    else:
        keys, mirror, components = DEBIAN_KEYS, debian_mirror(), 'main'
    if not os.path.exists(keys):
        raise Missing(f"no keyring '{keys}' (package debian-archive-keyring) to check signatures with")
    if suite.endswith('-security'):
        mirror += '-security'
    suites = ['sid', 'experimental'] if suite == 'experimental' else [suite]
    if suite in UBUNTU:
        suites.append(f'{suite}-updates')
    return ''.join(f'deb [signed-by={keys}] {mirror} {name} {components}\n' for name in suites)


def ubuntu_keys():
    path = f'/{UBUNTU_KEYS}'
    return path if os.path.exists(path) else unpack('trixie', ['ubuntu-keyring']) / UBUNTU_KEYS


def debian_mirror():
    """The one that this system uses, if it is a Debian."""
    files = [pathlib.Path('/etc/apt/sources.list'), *pathlib.Path('/etc/apt').glob('sources.list.d/*')]
    for file in files:
        with contextlib.suppress(OSError):
            for uri in re.findall(r'^(?:deb\s.*?|URIs:\s*)(https?://\S+/debian)/?\s', file.read_text(), re.M):
                return uri
    return DEBIAN_MIRROR


def run(command, env=None, seconds=FETCH_SECONDS_MAX, cwd=None):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
                              stdin=subprocess.DEVNULL, timeout=seconds, cwd=cwd, check=False)
    except subprocess.TimeoutExpired as error:
        raise Missing(f'{command[0]} took longer than {seconds} s') from error
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.startswith(('E:', 'W:', 'Err'))]
        raise Missing(f'{command[0]}: {(said or [done.stderr.strip()])[-1]}')
    return done.stdout


def update(suite, is_forced=False):
    """Return: the environment in which apt has the lists of the suite."""
    env = config(suite)
    stamp = cache() / suite / 'apt/updated'
    age = time.time() - stamp.stat().st_mtime if stamp.exists() else None
    if is_forced or age is None or not 0 <= age < LISTS_AGE_SECONDS_MAX:
        run(['apt-get', '-q', '--error-on=any', 'update'], env)
        stamp.touch()
    return env


def fetched(suite, packages):
    """Return: the files of the packages and of all that they need."""
    def resolved():
        # Of experimental all that it has, if that fits together; else what sid does not have.
        if suite == 'experimental':
            with contextlib.suppress(Missing):
                return fetch('-t', 'experimental')
        return fetch()

    def fetch(*options):
        command = ['apt-get', '-q', *options, 'install', *packages]
        run([*command, '--download-only'], env)
        # As if nothing had been fetched, the same command tells which files they are.
        uris = run([*command, '--print-uris', '-o', f'Dir::Cache::archives={nothing(suite)}'], env)
        return re.findall(r"^'\S+' (\S+\.deb) ", uris, re.M)

    env = update(suite)
    try:
        wanted = resolved()
    except Missing:
        # The archive has moved on since the lists were fetched.
        env = update(suite, is_forced=True)
        wanted = resolved()
    archives = cache() / suite / 'apt/archives'
    lacking = [name for name in wanted if not (archives / name).exists()]
    if lacking or not wanted:
        raise Missing(f'apt-get did not fetch {lacking or packages}')
    return [archives / name for name in wanted]


def nothing(suite):
    """A directory of archives in which there are none."""
    path = cache() / suite / 'apt/empty'
    (path / 'partial').mkdir(exist_ok=True)
    return path


# A root and what is in it.

def prepare(root, suite):
    """What a system has before the first package."""
    is_merged = suite not in ('bionic',)
    for name in ('bin', 'sbin', 'lib', 'lib64', 'lib32'):
        (root / 'usr' / name).mkdir(parents=True, exist_ok=True)
        if is_merged:
            (root / name).symlink_to(f'usr/{name}')
    for name in ('proc', 'dev', 'etc', 'tmp', 'root', 'run', 'var/tmp'):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / 'etc/passwd').write_text('root:x:0:0:root:/root:/bin/sh\n'
                                     'www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n', encoding='ascii')
    (root / 'etc/group').write_text('root:x:0:\nwww-data:x:33:\n', encoding='ascii')
    (root / 'etc/hosts').write_text('127.0.0.1 localhost\n::1 localhost\n', encoding='ascii')
    for name in ('tmp', 'var/tmp'):
        (root / name).chmod(0o1777)
    # Without root they are missing, and nobody can enter the root either.
    for name, minor in (('null', 3), ('zero', 5), ('random', 8), ('urandom', 9)):
        with contextlib.suppress(PermissionError):
            os.mknod(root / 'dev' / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            (root / 'dev' / name).chmod(0o666)


def extract(package, root):
    with subprocess.Popen(['dpkg-deb', '--fsys-tarfile', package], stdout=subprocess.PIPE) as archive:
        done = subprocess.run(['tar', '-C', root, '-xf', '-', '--keep-directory-symlink'], stdin=archive.stdout,
                              stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode or archive.returncode:
        raise Missing(f'cannot unpack {package.name}: {done.stderr.strip()[-200:]}')


def link_up(root):
    """The links that maintainers' scripts would make: of several versions, the newest."""
    for link, pattern in (
            ('usr/bin/php', 'usr/bin/php[0-9].[0-9]'), ('usr/bin/lua', 'usr/bin/lua5.[0-9]'),
            ('usr/bin/luajit', 'usr/bin/luajit-*'), ('usr/bin/java', 'usr/lib/jvm/*-openjdk*/**/bin/java'),
            ('usr/bin/sh', 'usr/bin/dash'), ('usr/bin/awk', 'usr/bin/mawk')):
        found = sorted((path for path in root.glob(pattern) if path.is_file()), key=version_key)
        if found and not os.path.lexists(root / link):
            (root / link).symlink_to('/' + str(found[-1].relative_to(root)))


def version_key(path):
    return [int(number) for number in re.findall(r'\d+', path.name if 'jvm' not in path.parts else str(path))]


# Programs in it.

CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags):
    done = libc.mount(os.fsencode(source), os.fsencode(target), kind.encode() or None, flags, None)
    if done:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fspath(target))


class Program(subprocess.Popen):
    """As the block ends, it is killed."""

    def __exit__(self, *how):
        self.kill()
        return super().__exit__(*how)


def start(root, command, files=None, env=None, **kwargs):
    """A program in the root, with /proc, a /tmp of its own (/proc/PID/root/tmp), and `files` of ours
    ({path there: path here}) laid over it. It sees all mounts of this in a mount namespace of its own,
    so nothing is left when it has ended, and others may use the root at the same time. It is the program
    itself when this returns: nothing runs between. stdin and stdout are pipes of text."""
    root = pathlib.Path(root)
    if os.geteuid() != 0:
        raise Missing('programs of another root need root')
    laid = {inside(root, there): os.path.abspath(here) for there, here in (files or {}).items()}
    for there in laid:
        there.parent.mkdir(parents=True, exist_ok=True)
        there.touch()

    def enter():
        if libc.unshare(CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), 'unshare')
        mount('none', '/', '', MS_REC | MS_PRIVATE)
        mount('proc', root / 'proc', 'proc', 0)
        mount('tmpfs', root / 'tmp', 'tmpfs', 0)
        for there, here in laid.items():
            mount(here, there, '', MS_BIND)
        os.chroot(root)
        os.chdir('/')

    environment = {'PATH': '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', 'HOME': '/root',
                   'PYTHONUNBUFFERED': '1', 'PYTHONDONTWRITEBYTECODE': '1', **(env or {})}
    return Program(command, preexec_fn=enter, env=environment, text=True,
                   **{'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, **kwargs})


def inside(root, there):
    """A path of the root: what the root itself links elsewhere is followed inside of it by chroot, but
    not by us, so such paths are not taken. /tmp is empty when files are laid."""
    there = pathlib.PurePosixPath(there)
    if not there.is_absolute() or '..' in there.parts or there.parts[1] in ('tmp', 'proc', 'dev'):
        raise ValueError(f'not a place for a file: {there}')
    return root / there.relative_to('/')


# By hand.

def versions(suite):
    """Return: {runtime: [(package, version)]}."""
    with locked(suite):
        env = update(suite)
        found = {}
        for runtime, pattern in RUNTIMES:
            names = sorted(set(run(['apt-cache', 'pkgnames'], env).split()), key=natural)
            rows = []
            for name in (name for name in names if re.fullmatch(pattern, name)):
                candidate = re.search(r'Candidate: (\S+)', run(['apt-cache', 'policy', name], env))
                if candidate and candidate[1] != '(none)':
                    rows.append((name, candidate[1]))
            found[runtime] = rows
        return found


def natural(text):
    return [int(part) if part.isdigit() else part for part in re.split(r'(\d+)', text)]


def upstream(version):
    return re.sub(r'^\d+:|[-+~].*$', '', version)


def print_versions():
    names = [runtime for runtime, _ in RUNTIMES]
    print('| suite | ' + ' | '.join(names) + ' |\n|---' + '|---' * len(names) + '|')
    for suite in SUITES:
        try:
            found = versions(suite)
            cells = [', '.join(dict.fromkeys(upstream(version) for _, version in found[name])) for name in names]
        except Missing as missing:
            cells = [str(missing)]
        print(f'| {suite} | ' + ' | '.join(cells) + ' |', flush=True)


def main():
    if sys.argv[1:] == ['--versions']:
        print_versions()
        return 0
    if len(sys.argv) < 3 or sys.argv[1] not in SUITES:
        print(__doc__)
        return 2
    failed = 0
    for package in sys.argv[2:]:
        try:
            print(unpack(sys.argv[1], [package]), flush=True)
        except Missing as missing:
            print(f'{package}: {missing}', file=sys.stderr, flush=True)
            failed = 1
    return failed


if __name__ == '__main__':
    sys.exit(main())
