#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One command under another kernel, in a machine that qemu makes for it and throws away.

    machine.py KERNEL [--arch ARCH] [--root DIR] [--cpus N] -- COMMAND [ARG...]     by hand; KERNEL as in kernels.py
    machine.py --at-once N                          print how many guests N CPUs of this system can run at once

The guest sees the file system of this system, or another root, read-only (virtiofs), so what was built here runs
there unchanged: programs, libraries, interpreters. The directories named as writable are seen at their own
paths. /tmp and /run are new and in memory; /var/tmp is a disk of its own (virtio-blk, ext4), where there is
mkfs.ext4. What the command prints comes back by virtio-serial while it runs; its status in a file.

Needs root (for a mount namespace that is read-only), qemu, virtiofsd and a static busybox. No KVM: what qemu
emulates is the same everywhere. Nothing is asked of BPF on this system.

qemu 7 crashes guests of several CPUs that patch their own code while each CPU is emulated by a thread of its own,
so with old ones all CPUs are one thread's: half as fast."""
import argparse
import contextlib
import ctypes
import dataclasses
import lzma
import os
import pathlib
import platform
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'live'))
import beside  # pylint: disable=wrong-import-position
from beside import Missing  # pylint: disable=wrong-import-position

QEMU_THREADS_SINCE = 9  # from this version on, a thread for each CPU does no harm
MS_RDONLY, MS_REMOUNT = 1, 32
PR_SET_PDEATHSIG = 1
CONSOLE_LINES = 40  # of the end of the kernel's log, when a machine fails
DISK_BYTES = 1 << 30
# Those without a file are built in. The first three lead to the root file system.
MODULES = ('virtio_pci', 'virtiofs', 'virtio_console', 'virtio_blk', 'crc32c_generic', 'ext4', 'loop', 'overlay')
SYSTEMD = '/lib/systemd/systemd'
VIRTIOFSD = ('/usr/lib/qemu/virtiofsd', '/usr/libexec/virtiofsd', '/usr/lib/virtiofsd')


class Failure(Exception):
    """The machine failed, not what ran in it."""


@dataclasses.dataclass(frozen=True)
class Architecture:
    qemu: str
    console: str
    machine: str
    cpu: str


ARCHITECTURES = {
    'x86_64': Architecture('qemu-system-x86_64', 'ttyS0', 'q35', 'max'),
    'aarch64': Architecture('qemu-system-aarch64', 'ttyAMA0', 'virt,gic-version=3', 'max,pauth-impdef=on'),
}


@dataclasses.dataclass
class Setup:
    kernel: pathlib.Path  # a directory: unpacked packages of a kernel
    arch: str = 'x86_64'
    root: str = '/'  # of the guest; for another architecture a tree of that
    busybox: str = ''  # static, of the guest's architecture; '': this system's
    writable: tuple = ()  # directories
    cpus: int = 2
    memory_mib: int = 3072
    env: dict = dataclasses.field(default_factory=dict)
    append: str = ''  # to the kernel's command line
    units: dict = None  # files of systemd, which is process 1 then, and runs the command and nothing else by itself
    seconds_max: int = 600  # for all


def run(setup, command, out=None, err=None):
    """Run a command; its output goes to files (binary; default: ours). Return: its exit status.
    Failure: the machine did not start, crashed, or took too long. Missing: there can be none here."""
    with tempfile.TemporaryDirectory(prefix='stackbpf-vm.') as work, contextlib.ExitStack() as stack:
        return Run(setup, pathlib.Path(work), stack).go(command, out or sys.stdout.buffer, err or sys.stderr.buffer)


def run_twice(setup, command, out=None, err=None):
    """A machine that fails is started again, once, and that is said."""
    try:
        return run(setup, command, out, err)
    except Failure as failure:
        print(f'the machine failed, and is started again: {failure}', file=sys.stderr, flush=True)
        return run(setup, command, out, err)


class Run:
    def __init__(self, setup, work, stack):
        self.setup, self.work, self.stack = setup, work, stack
        self.arch = ARCHITECTURES[setup.arch]
        self.qemu = need(self.arch.qemu)
        self.virtiofsd = next((path for path in VIRTIOFSD if os.access(path, os.X_OK)), None)
        if os.geteuid() != 0:
            raise Missing('a virtual machine with our file system needs root')
        if not self.virtiofsd:
            raise Missing('there is no virtiofsd')
        self.busybox = setup.busybox or need('busybox')
        if is_dynamic(self.busybox):
            raise Missing(f'{self.busybox} is not static (package busybox-static)')
        self.export = work / 'export'
        self.writable = [os.path.realpath(path) for path in setup.writable]

    def go(self, command, out, err):
        self.make_export(command)
        (self.work / 'initrd').write_bytes(self.initramfs())
        self.serve()
        pipes = [self.forward(to) for to in (out, err)]
        status, why = self.boot(*(end for end, _ in pipes))
        for end, thread in pipes:
            os.close(end)
            thread.join()
        written = self.export / 'share/status'
        if written.exists() and written.read_text().strip():
            return int(written.read_text())
        raise Failure(f'{why or f"qemu ended with {status}"}\n{self.console()}')

    def console(self):
        log = self.work / 'console'
        lines = log.read_text(errors='replace').splitlines() if log.exists() else []
        daemon = (self.work / 'virtiofsd.log').read_text(errors='replace').splitlines()
        return '\n'.join('    ' + line.rstrip() for line in lines[-CONSOLE_LINES:] + daemon[-5:])

    # What the guest begins with.

    def make_export(self, command):
        share = self.export / 'share'
        for name in ('root', 'share', *(f'rw{i}' for i in range(len(self.writable)))):
            (self.export / name).mkdir(parents=True)
        shutil.copy(self.busybox, share / 'busybox')
        (share / 'guest.sh').write_text(self.guest_script(command), encoding='utf-8')
        for path in self.writable if self.setup.root != '/' else ():
            (pathlib.Path(self.setup.root) / path[1:]).mkdir(parents=True, exist_ok=True)

    def initramfs(self):
        archive = Cpio()
        for name in ('bin', 'dev', 'proc', 'sys', 'host', 'next', 'modules'):
            archive.add(name, stat.S_IFDIR | 0o755)
        archive.add('bin/busybox', stat.S_IFREG | 0o755, pathlib.Path(self.busybox).read_bytes())
        archive.add('bin/sh', stat.S_IFLNK | 0o777, b'busybox')
        for i, (name, content) in enumerate(modules(self.setup.kernel, MODULES)):
            archive.add(f'modules/{i:03}-{name}.ko', stat.S_IFREG | 0o644, content)
        archive.add('init', stat.S_IFREG | 0o755, self.init_script().encode())
        return archive.end()

    def init_script(self):
        binds = '\n'.join(f'mkdir -p /next{shlex.quote(path)}; mount --bind /host/rw{i} /next{shlex.quote(path)}'
                          for i, path in enumerate(self.writable))
        return f"""#!/bin/sh
/bin/busybox --install -s /bin; export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev 2>/dev/null
for m in /modules/*.ko; do insmod $m || echo "insmod $m failed"; done
mount -t virtiofs host /host || {{ echo "cannot mount the root"; poweroff -f; }}
mount --bind /host/root /next
for d in tmp var/tmp run; do mount -t tmpfs -o mode=1777 tmp /next/$d; done
[ ! -b /dev/vda ] || mount -t ext4 /dev/vda /next/var/tmp && chmod 1777 /next/var/tmp
mkdir /next/run/vm; mount --bind /host/share /next/run/vm
{binds}
for d in proc sys dev; do mount --move /$d /next/$d; done
exec switch_root /next /bin/sh /run/vm/guest.sh
"""

    def guest_script(self, command):
        """It stays process 1, or makes systemd that. A port can be opened only once, a pipe again and again
        (/dev/stdout), so output goes through cat."""
        env = {'HOME': '/tmp', 'TMPDIR': '/var/tmp', 'PATH': os.environ['PATH'], 'STACKBPF_IN_VM': '1',
               **self.setup.env}
        exports = '\n'.join(f'export {name}={shlex.quote(value)}' for name, value in env.items())
        return f"""cd /run/vm; ./busybox mkdir /run/busybox; ./busybox --install -s /run/busybox
export PATH=/run/busybox
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts; mount -t tmpfs -o mode=1777 shm /dev/shm
ln -s /proc/self/fd /dev/fd; for n in 0:in 1:out 2:err; do ln -s fd/${{n%:*}} /dev/std${{n#*:}}; done
mount -t debugfs debugfs /sys/kernel/debug; mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf; mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up; hostname vm
port() {{ for p in /sys/class/virtio-ports/*; do read n <$p/name && [ "$n" = $1 ] && echo /dev/${{p##*/}}; done; }}
mkfifo /run/out /run/err; cat /run/out >$(port out) & co=$!; cat /run/err >$(port err) & ce=$!
cat >/run/command <<'END OF THE COMMAND'
({exports}
cd {shlex.quote(os.getcwd() if self.setup.root == '/' else '/')} && exec {shlex.join(command)}
) >/run/out 2>/run/err </dev/null
echo $? >/run/vm/status; sync
for i in 1 2 3 4 5 6 7 8 9 10; do ! kill -0 $co $ce 2>/dev/null || sleep 0.2; done
poweroff -f
END OF THE COMMAND
export co ce
{self.init_command()}
"""

    def init_command(self):
        if self.setup.units is None:
            return '. /run/command'
        units = {'vm.target': '[Unit]\nRequires=vm.service\nDefaultDependencies=no\n', **self.setup.units,
                 'vm.service': '[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/sh /run/command\n'
                               'PassEnvironment=co ce PATH\n'}
        # What programs keep there is the guest's own.
        lines = ['mount -t tmpfs tmpfs /var/lib']
        for name, text in units.items():
            path = shlex.quote(f'/run/systemd/system/{name}')
            lines += [f'mkdir -p $(dirname {path}); cat >{path} <<\'END OF THE UNIT\'', text, 'END OF THE UNIT']
        return '\n'.join([*lines, f'exec {SYSTEMD} --unit=vm.target --log-target=kmsg'])

    # The processes on our side.

    def serve(self):
        """virtiofsd, in a mount namespace where what it is to show lies below one directory."""
        def enter():
            if beside.libc.unshare(beside.CLONE_NEWNS):
                raise OSError(ctypes.get_errno(), 'unshare')
            beside.mount('none', '/', '', beside.MS_REC | beside.MS_PRIVATE)
            beside.mount(self.setup.root, self.export / 'root', '', beside.MS_BIND)
            beside.mount('none', self.export / 'root', '', beside.MS_BIND | MS_REMOUNT | MS_RDONLY)
            for i, path in enumerate(self.writable):
                beside.mount(path, self.export / f'rw{i}', '', beside.MS_BIND)

        socket = self.work / 'virtiofsd.socket'
        with open(self.work / 'virtiofsd.log', 'wb') as log:
            try:
                daemon = self.child([self.virtiofsd, f'--socket-path={socket}', '-o', f'source={self.export}',
                                     '-o', 'cache=always'], enter=enter, stdout=log, stderr=log)
            except (OSError, subprocess.SubprocessError) as error:
                raise Missing(f'no mount namespace can be made: {error}') from error
        end = time.monotonic() + 30
        while not socket.exists():
            if daemon.poll() is not None or time.monotonic() > end:
                raise Failure(f'virtiofsd did not start\n{self.console()}')
            time.sleep(0.01)

    def child(self, command, enter=lambda: None, **how):
        """It ends with us at the latest, even if we are killed."""
        def begin():
            beside.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            enter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=begin, **how)

        def end():
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.stack.callback(end)
        return process

    def forward(self, to):
        """Return: the writing end of a pipe, and the thread that copies what comes until all have closed it."""
        reading, writing = os.pipe()

        def copy():
            with os.fdopen(reading, 'rb', buffering=0) as pipe:
                while True:
                    data = pipe.read(65536)
                    if not data:
                        return
                    to.write(data)
                    to.flush()
        thread = threading.Thread(target=copy, daemon=True)  # who is ended does not wait for it
        thread.start()
        return writing, thread

    def boot(self, out, err):
        setup, arch, memory = self.setup, self.arch, f'{self.setup.memory_mib}M'
        command = [
            self.qemu, '-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-net', 'none',
            '-accel', f'tcg,thread={"multi" if has_thread_for_each_cpu(self.qemu) else "single"}',
            '-cpu', arch.cpu, '-smp', str(setup.cpus), '-m', memory, '-M', f'{arch.machine},memory-backend=m',
            '-object', f'memory-backend-memfd,id=m,size={memory},share=on',
            '-serial', f'file:{self.work}/console',
            '-chardev', f'socket,id=v,path={self.work}/virtiofsd.socket',
            '-device', 'vhost-user-fs-pci,chardev=v,tag=host,queue-size=1024', '-device', 'virtio-serial-pci',
            '-chardev', f'file,id=o,path=/proc/self/fd/{out},append=on', '-device', 'virtserialport,chardev=o,name=out',
            '-chardev', f'file,id=e,path=/proc/self/fd/{err},append=on', '-device', 'virtserialport,chardev=e,name=err',
            *self.disk(), '-kernel', str(image(setup.kernel)), '-initrd', f'{self.work}/initrd',
            '-append', f'console={arch.console} loglevel=5 oops=panic panic=-1 random.trust_cpu=on tsc=reliable '
                       f'no_timer_check '
                       f'{setup.append}']
        qemu = self.child(command, pass_fds=(out, err))
        try:
            return qemu.wait(setup.seconds_max), None
        except subprocess.TimeoutExpired:
            qemu.kill()
            return qemu.wait(), f'no end within {setup.seconds_max} s'

    def disk(self):
        mkfs = shutil.which('mkfs.ext4', path=os.environ['PATH'] + ':/usr/sbin:/sbin')
        if not mkfs:
            return ()
        path = self.work / 'disk'
        with open(path, 'wb') as file:
            file.truncate(DISK_BYTES)
        subprocess.run([mkfs, '-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0', path], check=True)
        return ('-drive', f'file={path},format=raw,if=none,id=d,cache=unsafe', '-device', 'virtio-blk-pci,drive=d')


def has_thread_for_each_cpu(qemu):
    said = subprocess.run([qemu, '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(re.search(r'version (\d+)', said)[1]) >= QEMU_THREADS_SINCE


def guests_at_once(nr_cpus):
    """A guest that is kept from its CPUs loses ticks of its timers. So no more guests run at once than there are CPUs
    for all of qemu's threads."""
    qemu = shutil.which(ARCHITECTURES[platform.machine()].qemu)
    return (nr_cpus + 1) // 2 if qemu and has_thread_for_each_cpu(qemu) else nr_cpus


def need(program):
    path = shutil.which(program)
    if not path:
        raise Missing(f'there is no {program}')
    return path


def is_dynamic(path):
    with open(path, 'rb') as file:
        head = file.read(4096)
    return b'ld-linux' in head or b'ld-musl' in head


def image(kernel):
    """The image to boot, of the unpacked packages."""
    found = [path for pattern in ('boot/vmlinuz-*', 'usr/lib/modules/*/vmlinuz*', 'lib/modules/*/vmlinuz*')
             for path in kernel.glob(pattern)]
    if not found:
        raise Missing(f'no kernel image below {kernel}')
    return found[0]


def modules(kernel, names):
    """Return: (name, content) of the modules that there are, each behind those that it needs."""
    files = {re.sub(r'\.ko(\.\w+)?$', '', path.name).replace('-', '_'): path
             for top in ('lib/modules', 'usr/lib/modules') for path in (kernel / top).rglob('*.ko*')}
    taken, wanted = {}, []

    def take(name):
        if name in taken or name not in files:
            return
        content = taken[name] = read_module(files[name])
        depends = re.search(rb'\0depends=([^\0]*)\0', content)
        for other in filter(None, (depends[1].decode() if depends else '').split(',')):
            take(other.replace('-', '_'))
        wanted.append((name, content))
    for name in names:
        take(name)
    return wanted


def read_module(path):
    content = path.read_bytes()
    if path.suffix == '.xz':
        return lzma.decompress(content)
    if path.suffix == '.zst':
        return subprocess.run([need('zstd'), '-dcq'], input=content, stdout=subprocess.PIPE, check=True).stdout
    return content


class Cpio:
    """An archive as the kernel takes it: Documentation/driver-api/early-userspace/buffer-format.rst."""

    def __init__(self):
        self.parts, self.nr = [], 0

    def add(self, name, mode, content=b''):
        self.nr += 1
        fields = (self.nr, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        head = b'070701' + b''.join(b'%08X' % field for field in fields) + name.encode() + b'\0'
        self.parts += [self.padded(head), self.padded(content)]

    @staticmethod
    def padded(data):
        return data + bytes(-len(data) % 4)

    def end(self):
        self.add('TRAILER!!!', 0)
        return b''.join(self.parts)


def main():
    if sys.argv[1:2] == ['--at-once']:
        print(guests_at_once(int(sys.argv[2])))
        return 0
    import kernels  # pylint: disable=import-outside-toplevel
    parser = argparse.ArgumentParser()
    parser.add_argument('kernel')
    parser.add_argument('--arch', default=platform.machine())
    parser.add_argument('--root', default='/')
    parser.add_argument('--busybox', default='')
    parser.add_argument('--cpus', type=int, default=2)
    parser.add_argument('--writable', action='append', default=[])
    parser.add_argument('--seconds', type=int, default=600)
    parser.add_argument('command', nargs='+')
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        setup = Setup(kernels.unpack(args.kernel, args.arch), arch=args.arch, root=args.root, busybox=args.busybox,
                      cpus=args.cpus, writable=tuple(args.writable or [os.getcwd()]), seconds_max=args.seconds)
        return run(setup, args.command)
    except (Missing, Failure) as error:
        print(f'machine: {error}', file=sys.stderr)
        return 125


if __name__ == '__main__':
    sys.exit(main())
