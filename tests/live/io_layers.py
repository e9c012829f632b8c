#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Layers of io below the system call, where the kernel itself has counted.

io_layers.py STACKBPF LAYERWORK FAULT [PART...]
"""
import contextlib
import ctypes
import mmap
import os
import re
import shutil
import subprocess
import sys
import tempfile

from fault import environment
from live import check, done, need_root, running, stackbpf, wait_for

need_root()
BINARY, LAYERWORK, FAULT = sys.argv[1:4]
PAGE = mmap.PAGESIZE
MIB = 1 << 20
SECTOR = 512
# What the default temporary directory is on need not have a page cache that can be emptied.
DISKS = ('ext2/ext3', 'xfs', 'btrfs')


def of(result, *frames):
    """The weight of stacks that have all of these frames."""
    return sum(w for s, w in result.stacks.items() if all(f in s for f in frames))


def run(*args):
    result = stackbpf(BINARY, 'io', *args)
    check(result.status == 0, f'io {" ".join(args)}: exit status {result.status} {result.err[-300:]}')
    check(result.facts.get('lost') == '0', f'nothing lost: {result.err[-300:]}')
    return result


@contextlib.contextmanager
def loop_device():
    """A file system that nobody else uses. None: there cannot be one here."""
    tools = ('losetup', 'mkfs.ext4', 'mount', 'umount')
    with tempfile.TemporaryDirectory() as work:
        work = os.path.realpath(work)
        with open(f'{work}/image', 'wb') as image:
            image.truncate(256 * MIB)
        device = mounted = None
        try:
            # Without a journal and without what the kernel would go on with by itself.
            if all(map(shutil.which, tools)):
                os.mkdir(f'{work}/mount')
                subprocess.run(['mkfs.ext4', '-q', '-F', '-O', '^has_journal', '-E', 'lazy_itable_init=0',
                                f'{work}/image'], check=True)
                loop = subprocess.run(['losetup', '-f', '--show', f'{work}/image'], stdout=subprocess.PIPE,
                                      text=True, check=False)
                device = loop.stdout.strip() if not loop.returncode else None
                mounted = device and not subprocess.run(['mount', device, f'{work}/mount'],
                                                        check=False).returncode
            yield (device, f'{work}/mount') if mounted else None
        finally:
            if mounted:
                subprocess.run(['umount', f'{work}/mount'], check=True)
            if device:
                subprocess.run(['losetup', '-d', device], check=True)


def is_disk(directory):
    kind = subprocess.run(['stat', '-f', '-c', '%T', directory], stdout=subprocess.PIPE, text=True, check=True)
    return kind.stdout.strip() in DISKS


@contextlib.contextmanager
def uncached(nr_bytes):
    """A file on a disk, of which nothing is in the page cache. None: no disk."""
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        if not is_disk(directory):
            place = stack.enter_context(loop_device())
            directory = place and place[1]
        if not directory:
            yield None
            return
        path = f'{os.path.realpath(directory)}/file'
        with open(path, 'wb') as file:
            file.write(os.urandom(nr_bytes))
        forget(path)
        yield path if not resident(path) else None


def forget(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def resident(path):
    """Bytes of the file that are in the page cache, by mincore(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
    size = os.path.getsize(path)
    fd = os.open(path, os.O_RDONLY)
    at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    os.close(fd)
    pages = (ctypes.c_ubyte * -(-size // PAGE))()
    error = libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), pages)
    libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(size))
    check(not error, 'mincore')
    return sum(page & 1 for page in pages) * PAGE


def device_bytes(device):
    """Read, and written, as the kernel counts it for the disk."""
    with open('/proc/diskstats', encoding='ascii') as file:
        fields = next(line.split() for line in file if line.split()[2] == os.path.basename(device))
    return int(fields[5]) * SECTOR, int(fields[9]) * SECTOR


def block():
    """On a disk of our own: all bytes, each with who caused them, written back or not."""
    with loop_device() as place:
        if not place:
            print('not here: a loop device')
            return
        device, directory = place
        os.sync()
        before = device_bytes(device)
        result = run('--layer', 'block', '-a', '--dev', device, '--', LAYERWORK, 'written', directory)
        after = device_bytes(device)
        for direction, ops, i in (('read', ('block_read',), 0),
                                  ('written', ('block_write', 'block_writeback'), 1)):
            have, want = sum(of(result, op) for op in ops), after[i] - before[i]
            # A block of the filesystem may be read until the run has begun.
            check(have <= want <= have + (8 * PAGE if direction == 'read' else 0),
                  f'block: {direction} {have}, in /proc/diskstats {want}')
        have = of(result, 'by_write', 'block_writeback', f'{directory}/written')
        check(have == 8 * MIB, f'block: written back for write(): {have}')
        have = of(result, 'by_mapping', 'block_writeback', f'{directory}/mapped')
        check(have == 4 * MIB, f'block: written back for stores into a mapping: {have}')
        for op in ('block_write', 'block_read'):
            have = of(result, 'by_direct', op, f'{directory}/direct')
            check(have == 4 * MIB, f'block: O_DIRECT, {op}: {have}')


def block_unknown():
    """What was dirtied before the run is the kernel thread's that writes it, and that is counted."""
    with loop_device() as place:
        if not place:
            return
        device, directory = place
        os.sync()
        with open(f'{directory}/before', 'wb') as file:
            file.write(bytes(MIB))
        result = run('--layer', 'block', '--stats', '-a', '--dev', device, '--', 'sync', '-f', directory)
        check(re.search(r'written back for unknown +[1-9]', result.err), 'block: written back of what was dirtied before the run')


def block_units():
    with loop_device() as place:
        if not place:
            return
        device, directory = place
        os.sync()
        result = run('--layer', 'block', '--count', '-a', '--dev', device, '--', LAYERWORK, 'written', directory)
        check(result.facts['unit'] == 'requests', f'block --count: {result.facts}')
        # At most as many as there are pages, at least as many as the longest request allows.
        with open(f'/sys/block/{os.path.basename(device)}/queue/max_sectors_kb', encoding='ascii') as file:
            most = int(file.read()) * 1024
        have = of(result, 'by_direct', 'block_write')
        check(4 * MIB / most <= have <= 4 * MIB / PAGE, f'block --count: {have} requests for 4 MiB')
    with loop_device() as place:
        if not place:
            return
        device, directory = place
        os.sync()
        result = run('--layer', 'block', '--latency', '-a', '--dev', device, '--', LAYERWORK, 'written',
                     directory)
        check(result.facts['unit'] == 'us', f'block --latency: {result.facts}')
        have = of(result, 'by_direct')
        check(0 < have <= int(result.facts['dur_us']), f"block --latency: {have} us, one after the other")


def cache():
    """What was read into the page cache is what is in it."""
    with uncached(4 * MIB) as path:
        if not path:
            print('not here: a disk')
            return
        result = run('--layer', 'cache', '--', 'dd', f'if={path}', 'of=/dev/null', 'bs=4096', 'count=5')
        asked, ahead, fill = (of(result, op, path) for op in ('cache_miss', 'readahead', 'cache_fill'))
        want = resident(path)
        check(asked + ahead == want and not fill, f'cache: {asked} asked for, {ahead} ahead, resident {want}')
        check(PAGE <= asked <= 5 * PAGE, f'cache: {asked} asked for')
        forget(path)
        result = run('--layer', 'cache', '--', LAYERWORK, 'read', path, '50')
        have = of(result, 'by_read', 'cache_miss', path)
        check(have == 50 * PAGE == resident(path), f'cache: without read-ahead {have} of {50 * PAGE}')
        check(not of(result, 'by_read', 'readahead'), 'cache: none ahead')
        forget(path)
        result = run('--layer', 'cache', '--count', '--', LAYERWORK, 'read', path, '50')
        check(of(result, 'by_read', path) == 50, f"cache --count: {of(result, 'by_read', path)} folios")
        forget(path)
        run_map(path, '--layer', 'cache')


def same_call_or_not():
    """Stacks are captured once for each call; two calls are never taken for one."""
    with uncached(MIB) as path:
        if not path:
            return
        for layer in ('cache', 'block'):
            result = run('--layer', layer, '--count', '--', LAYERWORK, 'ways', path, '20')
            for way in ('one_way', 'other_way'):
                check(of(result, way, path) == 10, f'--layer {layer}: {way} {of(result, way, path)} of 10')
            forget(path)


def many_namespaces():
    """Containers and sandboxes have mounts of their own of the same filesystem; the task's counts."""
    if not shutil.which('unshare'):
        print('not here: unshare')
        return
    with uncached(4 * MIB) as path, contextlib.ExitStack() as stack:
        if not path:
            return
        for _ in range(48):
            process = stack.enter_context(running('unshare', '-m', 'sleep', '1000'))
            wait_for(lambda pid=process.pid: comm(pid) == 'sleep', 'a namespace')
        # The kernel has them by age: ours is the oldest, and the youngest.
        for command in ([LAYERWORK], ['unshare', '-m', LAYERWORK]):
            forget(path)
            run_map(path, '--layer', 'cache', command=command)


def comm(pid):
    with open(f'/proc/{pid}/comm', encoding='ascii') as file:
        return file.read().strip()


def run_map(path, *options, command=(LAYERWORK,)):
    """Mapped: what was asked for is not known."""
    result = run(*options, '--', *command, 'map', path, '100')
    have, want = of(result, 'by_touch', 'cache_fill', path), resident(path)
    check(have == want, f'cache: by page faults {have}, resident {want}; {result.stacks.most_common(1)}')


def new():
    """Written: new pages, not read."""
    with uncached(MIB) as path:
        if not path:
            return
        result = run('--layer', 'cache', '--', 'dd', 'if=/dev/zero', f'of={path}', 'bs=65536', 'count=16')
        have = of(result, 'cache_new', path)
        check(have == MIB, f'cache: new {have}')
        result = stackbpf(BINARY, 'io', '--layer', 'cache', '-r', '--', 'dd', 'if=/dev/zero', f'of={path}',
                          'bs=65536', 'count=16')
        check(not of(result, path), 'cache -r: nothing written')


def fault():
    with uncached(2 * MIB) as path:
        if not path:
            return
        # Without and with the pages in the cache; then as where there are no tracepoints of page faults.
        no_tracepoints = environment(FAULT, BINARY, types='page_fault_user,page_fault_kernel')
        for env in (None, None, no_tracepoints):
            result = stackbpf(BINARY, 'io', '--layer', 'fault', '--count', '--', LAYERWORK, 'map', path, '300', env=env)
            want = int(re.search(r'faults (\d+)', result.err)[1])
            have = of(result, 'by_touch', 'fault_read', path)
            check(have == want and want, f'fault: {have}, by getrusage() {want}')


def refused():
    """Where there is no time, none can be asked for."""
    for layer in ('cache', 'fault'):
        for option in (['--latency'], ['-m', '1ms'], ['--distr']):
            result = stackbpf(BINARY, 'io', '--layer', layer, *option, '--', 'true')
            lines = result.err.splitlines()
            check(result.status == 2 and len(lines) == 1 and layer in lines[0],
                  f'--layer {layer} {option[0]}: exit status {result.status}, {lines}')


for part in (refused, fault, cache, many_namespaces, new, same_call_or_not, block, block_unknown, block_units):
    if len(sys.argv) < 5 or part.__name__ in sys.argv[4:]:
        part()
done()
