#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""latency: pairs of requests to disks, by what the kernel counts for each disk and by what bpftrace measures beside.

latency_block.py STACKBPF [PART...]
"""
import collections
import contextlib
import mmap
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from live import check, done, need_root, run_parts, stackbpf, wait_for

BINARY = sys.argv[1]
MIB = 1 << 20
SIZE = 64 * MIB
# A request is told by its disk and where it begins there.
PAIR = ('--from', 'block:block_rq_issue', '--to', 'block:block_rq_complete', '--key', 'dev << 40 ^ sector', '--max-overhead=off',
        '--stats', '-a')


def read_directly(path, nr, size, part):
    """Each a request of its own, of which no cache knows. @part: of the disk: two requests at a time for one place have
    one key."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, size)
    where = random.Random(part.start)
    for _ in range(nr):
        os.preadv(fd, [page], where.choice(part) * size)


def read(disk, path, nr_readers, nr, size):
    before = disk.counted()
    each = SIZE // size // nr_readers
    parts = [range(at * each, (at + 1) * each) for at in range(nr_readers)]
    processes = [multiprocessing.Process(target=read_directly, args=(path, nr, size, part)) for part in parts]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print('counted', *(after - was for after, was in zip(disk.counted(), before)), file=sys.stderr)


class Disk:
    """What the kernel counts: requests that ended, and milliseconds that they took, from before they are issued."""

    def __init__(self, path):
        self.path = path
        self.number = 0

    @staticmethod
    def of(number):
        """The disk with this number, or of which it is a part; None: there is none."""
        place = pathlib.Path(f'/sys/dev/block/{os.major(number)}:{os.minor(number)}')
        if not place.exists():
            return None
        if (place / 'partition').exists():
            major, minor = (place.resolve().parent / 'dev').read_text('ascii').split(':')
            number = os.makedev(int(major), int(minor))
        disk = Disk(f'/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat')
        disk.number = os.major(number) << 20 | os.minor(number)
        return disk

    def counted(self):
        with open(self.path, encoding='ascii') as file:
            fields = [*map(int, file.read().split()), *[0] * 6]  # discards since Linux 4.18, flushes since 5.5
        groups = [fields[at:at + 4] for at in (0, 4, 11)]  # reads, writes, discards: requests, merged, sectors, ms
        return sum(group[0] for group in groups) + fields[15], sum(group[3] for group in groups) + fields[16]


@contextlib.contextmanager
def loop_device():
    with tempfile.NamedTemporaryFile(dir='/dev/shm') as image:
        image.truncate(SIZE)
        loop = shutil.which('losetup') and subprocess.run(['losetup', '-f', '--show', image.name], stdout=subprocess.PIPE,
                                                          text=True, check=False)
        if not loop or loop.returncode:
            yield None
            return
        try:
            yield loop.stdout.strip()
        finally:
            subprocess.run(['losetup', '-d', loop.stdout.strip()], check=True)


Measured = collections.namedtuple('Measured', 'result least most millis')


def measured(disk, readers, *args):
    """What was sampled of a disk while it is read; and what the kernel counted for it while it was read, and in all."""
    before = disk.counted()
    result = stackbpf(BINARY, 'latency', *PAIR, '--when', f'dev == {disk.number}', *args, '--',
                      sys.executable, __file__, 'read', disk.path, *map(str, readers))
    check(result.status == 0, f'exit status {result.status} {result.err[-300:]}')
    said = re.search(r'^counted (\d+) (\d+)$', result.err, re.M)
    return Measured(result, int(said[1]), disk.counted()[0] - before[0], int(said[2]))


def of_our_own(result):
    """Requests that our own threads began, or an interrupt of them, which are left out."""
    return int(re.search(r'events filtered out +(\d+)', result.err)[1])


def check_requests(seen, around):
    """Each is sampled once, or told to be lost, or of our own. @around: those at the edges of the run, and others' requests."""
    lost, own = int(seen.result.facts['lost']), of_our_own(seen.result)
    check(seen.least - lost - own - around <= ended(seen.result) <= seen.most + around,
          f'each request once: {ended(seen.result)} of {seen.least} to {seen.most}; {lost} events lost, {own} of our own')


def ended(result):
    return sum(weight for stack, weight in result.stacks.items() if '[open]' not in stack)


@contextlib.contextmanager
def bpftrace(disk):
    """What it says when it has ended: {'nr': requests, 'ns': their time}, or nothing."""
    said = {}
    if not shutil.which('bpftrace'):
        yield said
        return
    script = f'''tracepoint:block:block_rq_issue /args->dev == {disk.number}/ {{ @at[args->sector] = nsecs; }}
                 tracepoint:block:block_rq_complete /args->dev == {disk.number} && @at[args->sector]/
                 {{ @nr = @nr + 1; @ns = @ns + nsecs - @at[args->sector]; delete(@at[args->sector]); }}
                 BEGIN {{ printf("ready\\n"); }} END {{ clear(@at); }}'''
    with tempfile.NamedTemporaryFile('w+', encoding='ascii') as out, \
            subprocess.Popen(['bpftrace', '-e', script], stdout=out, stderr=subprocess.STDOUT) as process:
        wait_for(lambda: 'ready' in pathlib.Path(out.name).read_text('ascii') or process.poll() is not None, 'bpftrace')
        yield said
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:  # it hangs now and then
            process.kill()
        said.update({name: int(number) for name, number in re.findall(r'^@(nr|ns): (\d+)$', pathlib.Path(out.name).read_text('ascii'), re.M)})


def loop():
    """Few at once: all of them, and their time. The kernel's begins when the request is made, bpftrace's when it is issued,
    and ours when the stack was taken after that: on a busy machine that is much later, so only half of it is asked for."""
    with loop_device() as device:
        if not device:
            print('not here: a loop device')
            return
        disk = Disk.of(os.stat(device).st_rdev)
        seen = measured(disk, (device, 2, 1500, 4096), '--weight', '1')
        check_requests(seen, 0)
        check(all(stack[-1] in ('blk_mq_start_request', '[open]') for stack in seen.result.stacks),
              f'stacks end at the event: {list(seen.result.stacks)[:1]}')
        with bpftrace(disk) as beside:
            seen = measured(disk, (device, 1, 700, MIB))
        nr = seen.least
        mean, truth = ended(seen.result) / nr, seen.millis * 1000 / nr
        check(mean <= 1.01 * truth + 1, f'{nr} requests of {mean:.0f} us; the kernel says {truth:.0f}')
        if beside.get('nr', 0) < 0.95 * nr:
            print(f'not compared with bpftrace, which said {beside}')
            return
        other = beside['ns'] / beside['nr'] / 1000
        check(0.5 * other <= mean <= 1.01 * other + 1, f'bpftrace says {other:.0f}')


def busy_disk():
    """Many at once, which end in interrupts: few are lost, and those are told. Others use the disk, too, and some of their
    requests begin or end outside of the run."""
    with tempfile.TemporaryDirectory() as work:
        disk = Disk.of(os.stat(work).st_dev)
        if not disk:
            print('not here: a file system on a disk')
            return
        with open(f'{work}/file', 'wb') as file:
            file.write(os.urandom(MIB) * (SIZE // MIB))
            file.flush()
            os.fsync(file.fileno())
        seen = measured(disk, (file.name, 8, 500, 4096), '--weight', '1')
        if seen.least < 4000:
            print(f'not here: a disk that counts requests: {seen.least}')
            return
        check_requests(seen, 0.04 * seen.least)
        few = ended(seen.result) + of_our_own(seen.result)
        check(few >= 0.9 * seen.least, f'few are lost: there are {few} of {seen.least}')


def main():
    need_root()
    run_parts((loop, busy_disk), sys.argv[2:])
    done()


if sys.argv[1] == 'read':
    read(Disk(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:]))
else:
    main()
