#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All views at once, below a storm of new processes, switches and bytes.

storm.py STACKBPF WAITS CALLS [SECONDS]

Each has to end by itself, in time, with a result that can be read, and with what was lost in its
header; and its memory stays within the bounds of docs/bounds.md. In a minute or more it also has
to stop growing; before, debug data are still being read.
"""
import contextlib
import re
import subprocess
import sys
import tempfile
import threading
import time

from live import Result, check, done, need_root, running

need_root()
BINARY, WAITS, CALLS = sys.argv[1:4]
SECONDS = int(sys.argv[4]) if len(sys.argv) > 4 else 8
VIEWS = (('oncpu',), ('offcpu',), ('offcpu', '--every', '1ms'), ('wakeup',), ('offwake',), ('wall',), ('io',),
         ('io', '--latency'))
END_SECONDS_MAX = 120
GROWTH_MAX = 1.5
GROWN_SECONDS = 60
RESIDENT_MAX_KIB = 512 * 1024  # debug data 256 MiB, unwind tables 64, side-band rings 64, and the profile


def storm(work):
    yield ['sh', '-c', 'while :; do /bin/true; /bin/true; sh -c "exec /bin/true"; done']
    yield ['sh', '-c', f'while :; do dd if=/dev/zero of={work}/a bs=4k count=500 conv=fsync; '
                       f'cat {work}/a >{work}/b; cp {work}/b {work}/c; rm {work}/c; done 2>/dev/null']
    yield ['sh', '-c', f'i=0; while :; do i=$((i+1)); echo $i >{work}/f$i; rm {work}/f$i; done']
    yield [CALLS, 'switches', '10000', '2']
    yield [WAITS, 'mixed', '10000', f'{work}/truth']


def resident_kib(pid):
    with contextlib.suppress(OSError), open(f'/proc/{pid}/status', encoding='ascii') as file:
        size = re.search(r'^VmRSS:\s+(\d+)', file.read(), re.M)
        return int(size[1]) if size else 0
    return 0


class Watched:
    """A run, and how much memory it had in the first and in the second half of its time."""

    def __init__(self, view, work):
        self.name = ' '.join(view)
        self.peaks = [0, 0]
        self.out = open(f'{work}/{self.name}.folded', 'w+', encoding='utf-8', errors='replace')
        self.err = open(f'{work}/{self.name}.err', 'w+', encoding='utf-8', errors='replace')
        self.process = subprocess.Popen([BINARY, *view, '-t', str(SECONDS)], stdout=self.out, stderr=self.err)

    def look(self, half):
        self.peaks[half] = max(self.peaks[half], resident_kib(self.process.pid))

    def judge(self):
        try:
            status = self.process.wait(timeout=END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = f'none: it had to be killed {self.process.wait()}'
        self.out.seek(0)
        self.err.seek(0)
        text, said = self.out.read(), self.err.read()
        check(status == 0, f'{self.name}: exit status {status} {said[-300:]}')
        result = Result(status, text, said)
        check(result.total > 0 and 'lost' in result.facts,
              f'{self.name}: {len(result.stacks)} stacks, {self.peaks[0]} and {self.peaks[1]} KiB, '
              f'{ {k: v for k, v in result.facts.items() if k not in ("v", "title", "cmd")} }')
        check(max(self.peaks) <= RESIDENT_MAX_KIB, f'{self.name}: memory is bounded')
        if SECONDS >= GROWN_SECONDS:
            check(self.peaks[1] <= GROWTH_MAX * self.peaks[0], f'{self.name}: memory has stopped to grow')
        self.out.close()
        self.err.close()


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work, \
            contextlib.ExitStack() as stack:
        for command in storm(work):
            stack.enter_context(running(*command, stdout=subprocess.DEVNULL))
        runs = [Watched(view, work) for view in VIEWS]
        begin, rest = time.monotonic(), threading.Event()
        while time.monotonic() < begin + SECONDS:
            for run in runs:
                run.look(int(time.monotonic() > begin + SECONDS / 2))
            rest.wait(0.2)
        for run in runs:
            run.judge()


main()
done()
