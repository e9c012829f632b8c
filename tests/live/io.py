#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""io on a program that knows what it reads and writes; strace(1) and /proc/PID/io bear witness.

io.py STACKBPF FILEWORK
"""
import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, stackbpf
from truth import check_near

need_root()
BINARY, FILEWORK = sys.argv[1:3]
PAGE = 4096
MOVES_IN_KERNEL = ('sendfile64', 'copy_file_range', 'splice')
# Not in rchar and wchar of /proc/PID/io.
NOT_IN_PROC = ('splice', 'fault', 'getdents64', 'sendto', 'recvfrom', 'sendmsg', 'recvmsg')


class Work:
    """What the program did."""

    def __init__(self, directory):
        with open(f'{directory}.json', encoding='ascii') as file:
            self.facts = json.load(file)
        self.items = [i for i in self.facts['items'] if i['call'] not in ('fault', 'fsync', 'fdatasync')]

    def item(self, function):
        return next(i for i in self.facts['items'] if i['function'] == function)


@contextlib.contextmanager
def directory_on(filesystem):
    """A directory that is empty, by its real path; None if there cannot be one here."""
    with tempfile.TemporaryDirectory() as work:
        work = os.path.realpath(work)
        if filesystem == 'disk':
            os.mkdir(f'{work}/on disk')
            yield f'{work}/on disk'
            return
        for name in ('lower', 'upper', 'scratch', 'mount'):
            os.mkdir(f'{work}/{name}')
        # Below a tmpfs of its own, because a file system of a container need not carry an overlay.
        options = {'tmpfs': 'size=64m',
                   'overlay': f'lowerdir={work}/lower,upperdir={work}/upper,workdir={work}/scratch'}
        if subprocess.run(['mount', '-t', filesystem, 'none', f'{work}/mount', '-o', options[filesystem]],
                          check=False).returncode:
            yield None
            return
        try:
            os.mkdir(f'{work}/mount/inside')
            yield f'{work}/mount/inside'
        finally:
            subprocess.run(['umount', f'{work}/mount'], check=True)


def io(directory, *options, groups=(), before=()):
    """Run the program from start to end. Return: what stackbpf says, and what it says."""
    shutil.rmtree(directory)
    os.mkdir(directory)
    result = stackbpf(BINARY, 'io', *options, '--', *before, FILEWORK, directory, f'{directory}.json',
                      *groups)
    check(result.status == 0, f'io {" ".join(options)}: exit status {result.status} {result.err[-300:]}')
    return result, Work(directory)


def leaf(item, file='path'):
    """How the file of an item is called: file is a value of --file."""
    link = item['file']
    if file == 'none':
        return None
    if file == 'full':
        return link
    if link.startswith('pipe:'):
        return '[pipe]'
    if link.startswith('socket:'):
        return f"[socket: {item['function'].partition('_')[0]}]"
    if link.startswith('anon_inode:'):
        return f"[anon: {link.partition('[')[2].rstrip(']')}]"
    return link if file == 'path' else os.path.basename(link)


def call_of(frame):
    """'pread64' of 'sys_pread64_[k]': libc's and the kernel's names of a call differ in the 64."""
    return re.sub(r'64$', '', re.sub(r'_\[k\]$', '', frame).removeprefix('sys_'))


def have(result, item, file='path', also=()):
    """What the graph has of the call and the file of an item. Without files: in functions of items."""
    functions = {i['function'] for i in also or (item,)}
    total = 0
    for stack, weight in result.stacks.items():
        names = stack if file == 'none' else stack[:-1]
        if names[-1].startswith('sys_') and call_of(names[-1]) == re.sub(r'64$', '', item['call']) and \
                (functions & set(stack) if file == 'none' else stack[-1] == leaf(item, file)):
            total += weight
    return total


def in_functions(result, items):
    """By call, file and function."""
    return sum(weight for stack, weight in result.stacks.items() for item in items
               if item['function'] in stack and stack[-1] == leaf(item) and
               call_of(stack[-2]) == re.sub(r'64$', '', item['call']))


def check_items(result, items, what, file='path', of='bytes'):
    """Exactly equal by call and file, however the stacks are."""
    mine = collections.Counter()
    for item in items:
        mine[item['call'], leaf(item, file)] += item[of]
    wrong = {key: (have(result, next(i for i in items if (i['call'], leaf(i, file)) == key), file, items), want)
             for key, want in mine.items()}
    wrong = {key: pair for key, pair in wrong.items() if pair[0] != pair[1]}
    check(items and not wrong, f'{what}: {of} of {len(mine)} calls and files, these differ: {wrong}')


def single(items):
    """Those with one file to a call."""
    return [i for i in items if i['call'] not in MOVES_IN_KERNEL]


def filesystems():
    for filesystem in ('disk', 'tmpfs', 'overlay'):
        with directory_on(filesystem) as directory:
            if not directory:
                print(f'not here: {filesystem}')
                continue
            result, work = io(directory)
            check(result.facts.get('kind') == 'io' and result.facts.get('unit') == 'bytes',
                  f'kind and unit of the header: {result.facts}')
            moved = [i for i in work.items if i['call'] != 'getdents64']
            check_items(result, single(moved), filesystem)
            check_items(result, [i for i in moved if i not in single(moved)],
                        f'{filesystem}: from file to file')
            # The first stacks of a process, before there are tables to walk with, may be cut.
            known, want = in_functions(result, moved), sum(i['bytes'] for i in moved)
            check(known >= 0.9 * want, f'{filesystem}: {known} of {want} in their functions')
            for direction, field in (('r', 'rchar'), ('w', 'wchar')):
                paths = {(i['call'], i['file']): have(result, i) for i in moved
                         if i['direction'] == direction and i['call'] not in NOT_IN_PROC}
                want = sum(paths.values())
                # An overlay copies by a copy below itself, and the kernel counts both.
                twice = work.item('by_copy_file_range')['bytes'] if filesystem == 'overlay' else 0
                check(work.facts[field] in (want, want + twice),
                      f'{filesystem}: {want}, in /proc/PID/io {work.facts[field]}')


def traced_bytes(prefix):
    """Bytes by (call, file) as strace has them."""
    sums = collections.Counter()
    for name in os.listdir(os.path.dirname(prefix)):
        if not name.startswith(os.path.basename(prefix) + '.'):
            continue
        with open(f'{os.path.dirname(prefix)}/{name}', encoding='utf-8', errors='replace') as file:
            for line in file:
                call = re.match(r'(\w+)\(.*\) += (\d+)$', line.rstrip())
                for path in re.findall(r'[(,] ?\d+<(.*?)>(?=\(deleted\)|,|\))', line) if call else ():
                    sums[re.sub('64$', '', call[1]), path] += int(call[2])
    return sums


def witness():
    """strace looks on; all three agree."""
    if not shutil.which('strace'):
        print('not here: strace')
        return
    with directory_on('disk') as directory:
        trace = f'{directory}.trace'
        calls = ','.join(sorted({'read', 'write', 'pread64', 'pwrite64', 'readv', 'writev', 'preadv', 'pwritev',
                                 'preadv2', 'pwritev2', 'sendfile', 'copy_file_range', 'splice', 'sendto',
                                 'recvfrom', 'sendmsg', 'recvmsg'}))
        result, work = io(directory, '-s', '--file=full', before=('strace', '-ff', '-y', '-s0', '-qq', '-e',
                                                                  f'trace={calls}', '-o', trace))
        sums = traced_bytes(trace)
    mine = collections.Counter()
    for item in single(work.items):
        if item['call'] != 'getdents64':
            mine[re.sub('64$', '', item['call']), item['file'].removesuffix(' (deleted)')] += item['bytes']
    wrong = {key: (bytes_, sums[key]) for key, bytes_ in mine.items() if sums[key] != bytes_}
    check(len(mine) > 10 and not wrong, f'the program and strace agree: {wrong}')
    seen = collections.Counter()
    for stack, weight in result.stacks.items():
        if stack[0] == 'filework' and stack[-2].startswith('sys_'):
            seen[call_of(stack[-2]), stack[-1].removesuffix(' (deleted)')] += weight
    wrong = {key: (seen[key], sums[key]) for key in mine if seen[key] != sums[key]}
    check(not wrong, f'stackbpf and strace agree: {wrong}')


def names():
    """--file says what a file is called."""
    with directory_on('disk') as directory:
        for file in ('base', 'none', 'full', 'path'):
            groups = ('names', 'plain') if file == 'base' else ('names', 'plain', 'pipes', 'sockets')
            result, work = io(directory, f'--file={file}', groups=groups)
            check_items(result, work.items, f'--file={file}', file)
        result, work = io(directory, groups=('names',))
        leaves = {s[-1] for s in result.stacks if 'to_deleted' in s}
        check(leaves == {f'{directory}/deleted (deleted)'}, f'a file that was removed: {leaves}')
        result, work = io(directory, '--annotate', groups=('plain',))
        leaves = {s[-1] for s in result.stacks if 'by_read' in s}
        check(leaves == {f'{directory}/plain_[f]'}, f'--annotate: {leaves}')


def filters():
    """Each lets through what it names, whole, and nothing else."""
    with directory_on('disk') as directory:
        kinds = {'file': lambda i: i['file'].startswith('/') and i['function'] not in ('fifo_read', 'fifo_write'),
                 'pipe': lambda i: i['file'].startswith('pipe:'),
                 'sock': lambda i: i['file'].startswith('socket:')}
        tests = [(('-r',), lambda i: i['direction'] == 'r'), (('-w',), lambda i: i['direction'] == 'w'),
                 (('--path', f'{directory}/pl*'), lambda i: i['file'] == f'{directory}/plain')]
        tests += [(('--kind', kind), wanted) for kind, wanted in kinds.items()]
        for options, wanted in tests:
            result, work = io(directory, *options, groups=('plain', 'vectors', 'pipes', 'sockets'))
            items = [i for i in work.items]
            check_items(result, [i for i in items if wanted(i)], ' '.join(options[:1]))
            others = [i['function'] for i in items if not wanted(i) and have(result, i)]
            check(not others, f'{options[0]}: nothing else: {others}')
    with directory_on('tmpfs') as directory:
        if directory:
            result, work = io(directory, '--fs', 'tmpfs', groups=('plain', 'pipes'))
            check_items(result, [i for i in work.items if i['file'].startswith('/')], '--fs tmpfs')
            leaves = {s[-1] for s in result.stacks}
            check(leaves == {f'{directory}/plain', f'{directory}/positions', f'{directory}.json'},
                  f'--fs tmpfs: only there: {leaves}')


def inode():
    """By number, and by device."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(100_000))
        file.flush()
        status = os.stat(file.name)
        dev = f'{os.major(status.st_dev)}:{os.minor(status.st_dev)}'
        for options in (('--inode', str(status.st_ino)), ('--inode', str(status.st_ino), '--dev', dev)):
            result = stackbpf(BINARY, 'io', *options, '--', 'dd', f'if={file.name}', 'of=/dev/null', 'bs=7777',
                              'status=none')
            leaves = {s[-1] for s in result.stacks}
            check(leaves == {os.path.realpath(file.name)}, f'{" ".join(options)}: {leaves}')
            check(sum(w for s, w in result.stacks.items() if 'sys_read' in s) == 100_000, 'and all of it')


def counts():
    """--count: calls, those that move nothing as well."""
    with directory_on('disk') as directory:
        result, work = io(directory, '--count', groups=('plain', 'vectors', 'pipes', 'sockets', 'directory'))
        check_items(result, work.items, '--count', of='calls')


def latency():
    """Reads of a FIFO that is written slowly, by the clock of the reader."""
    with directory_on('disk') as directory:
        result, work = io(directory, '--latency', groups=('slow', 'plain'))
        check(result.facts.get('unit') == 'us', f'--latency: unit {result.facts.get("unit")}')
        item = work.item('fifo_read')
        check_near(have(result, item), item['ns'] / 1000, '--latency: reads of a FIFO', 0.05)
        # Between the two clocks is what it takes to enter and leave the kernel: always the same side.
        item = work.item('by_write')
        check(0 < have(result, item) <= 1.01 * item['ns'] / 1000, '--latency: fast calls')
        result, work = io(directory, '--latency', '-m', '20ms', groups=('slow', 'plain'))
        item = work.item('fifo_read')
        check_near(have(result, item), item['ns'] / 1000, '-m 20ms: reads of a FIFO', 0.05)
        check(not have(result, work.item('by_read')), '-m 20ms: no others')
        result, work = io(directory, '-M', '10ms', groups=('slow', 'plain'))
        check(not have(result, work.item('fifo_read')) or
              have(result, work.item('fifo_read')) < 0.2 * work.item('fifo_read')['bytes'], '-M 10ms')


def of_layer(result, function, *also):
    return sum(w for s, w in result.stacks.items() if function in s and all(a in s for a in also))


def layer_fault():
    with directory_on('disk') as directory:
        path = f'{directory}/mapped'
        result, work = io(directory, '--layer', 'fault', '--count', groups=('mapped',))
        item = work.item('by_fault')
        check(of_layer(result, 'by_fault', path) == item['calls'],
              f"faults: {of_layer(result, 'by_fault', path)}, by getrusage() {item['calls']}")
        result, work = io(directory, '--layer', 'fault', groups=('mapped',))
        check(of_layer(result, 'by_fault', path) == work.item('by_fault')['bytes'],
              f"bytes of faults: {of_layer(result, 'by_fault', path)}")


def layer_fsync():
    with directory_on('disk') as directory:
        path = f'{directory}/disk'
        result, work = io(directory, '--layer', 'fsync', '--count', '--stats', groups=('disk',))
        check('rejects' not in result.err, f'fsync: what was not asked for was not rejected: {result.err[-2000:]}')
        for function in ('by_fsync', 'by_fdatasync'):
            check(of_layer(result, function, path) == 1, f'{function}: {of_layer(result, function)} calls')
        check(not of_layer(result, 'to_disk'), 'fsync: nothing else')
        result, work = io(directory, '--layer', 'fsync', '--latency', groups=('disk',))
        item = work.item('by_fsync')
        check(0.3 * item['ns'] / 1000 <= of_layer(result, 'by_fsync', path) <= 1.01 * item['ns'] / 1000,
              f"fsync: {of_layer(result, 'by_fsync', path)} us of {item['ns'] / 1000:.0f}")


def on_disk(directory):
    """tmpfs and the like have neither a device nor a cache that can be dropped."""
    kind = subprocess.run(['stat', '-f', '-c', '%T', directory], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()
    return kind in ('ext2/ext3', 'xfs', 'btrfs')


def layer_cache():
    """A file that is not in the cache is brought there once, page by page."""
    with directory_on('disk') as directory:
        if not on_disk(directory):
            print('not here: a disk')
            return
        result, work = io(directory, '--layer', 'cache', '-r', groups=('disk',))
        pages = -(-work.item('from_disk')['bytes'] // PAGE)
        check(of_layer(result, 'from_disk', f'{directory}/disk') == pages * PAGE,
              f"cache: {of_layer(result, 'from_disk', f'{directory}/disk')} of {pages} pages")


def layer_block():
    """What reaches the device is what /proc/PID/io says that the process caused."""
    with directory_on('disk') as directory:
        if not on_disk(directory):
            print('not here: a disk')
            return
        result, work = io(directory, '--layer', 'block', groups=('disk', 'direct'))
        have_read = of_layer(result, 'from_disk') + of_layer(result, 'by_direct_read')
        want = work.item('by_direct_read')['bytes'] + -(-work.item('from_disk')['bytes'] // PAGE) * PAGE
        check_near(have_read, want, 'block: read', 0.01)
        check_near(have_read, work.facts['read_bytes'], 'block: read, in /proc/PID/io', 0.01)
        # fsync also writes blocks of the filesystem's own, of which the leaf is the device.
        path = f'{directory}/disk'
        written = of_layer(result, 'to_disk', path) + of_layer(result, 'by_fsync', path)
        check(0 <= written - work.item('to_disk')['bytes'] < PAGE,
              f"block: written and synced {written} of {work.item('to_disk')['bytes']}")
        check(of_layer(result, 'by_direct_write') == work.item('by_direct_write')['bytes'],
              f"block: written with O_DIRECT {of_layer(result, 'by_direct_write')}")


def stdout_of_everybody():
    """No option: the whole machine."""
    with tempfile.TemporaryDirectory() as work:
        with open(f'{work}/file', 'wb') as file:
            file.write(bytes(1_000_000))
        path = os.path.realpath(f'{work}/file')
        with subprocess.Popen(['sh', '-c', f'while :; do cat {path} >/dev/null; done']) as process:
            try:
                result = stackbpf(BINARY, 'io', '-t', '2')
            finally:
                process.kill()
    reads = sum(w for s, w in result.stacks.items() if s[0] == 'cat' and 'sys_read' in s and s[-1] == path)
    check(result.status == 0 and reads >= 1_000_000, f'everybody: {reads} bytes of the file')


PARTS = (filesystems, witness, names, filters, inode, counts, latency, layer_fault, layer_fsync, layer_cache,
         layer_block, stdout_of_everybody)
for part in PARTS:
    if len(sys.argv) < 4 or part.__name__ in sys.argv[3:]:
        part()
done()
