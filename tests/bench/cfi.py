#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Unwind tables: how fast they are built from call frame information, and how big they are.

cfi.py CFI_ROWS [ROUNDS]

Subjects: all programs and libraries of the usual folders; those that are mapped into some process
now (all of them only for root); the biggest alone. CPU seconds of a whole process, reading
included, files in the cache; the median of the rounds.
"""
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile

CFI_ROWS = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
FOLDERS = ['/usr/bin', '/usr/sbin', '/usr/lib/x86_64-linux-gnu', '/usr/lib/x86_64-linux-gnu/*']
NR_BIGGEST = 3


def is_elf(path):
    try:
        with open(path, 'rb') as file:
            head = file.read(20)
    except OSError:
        return False
    return head[:5] == b'\x7fELF\x02' and head[18:20] == b'\x3e\x00' and head[16] in (2, 3)


def installed():
    paths = (os.path.realpath(path) for folder in FOLDERS for path in glob.glob(folder + '/*'))
    return sorted({path for path in paths if os.path.isfile(path) and is_elf(path)})


def mapped():
    """Files with an executable mapping, by the name they have for us."""
    paths = set()
    for maps in glob.glob('/proc/[0-9]*/maps'):
        try:
            with open(maps, encoding='utf-8', errors='surrogateescape') as lines:
                rows = (line.split(maxsplit=5) for line in lines)
                paths.update(row[5].rstrip('\n') for row in rows if len(row) == 6 and 'x' in row[1])
        except OSError:
            pass # it ended, or is not ours
    return sorted(path for path in paths if path.startswith('/') and is_elf(path))


def run(paths):
    """CPU seconds, and the lines: one for each file, and one for all."""
    with tempfile.TemporaryFile('w+') as out:
        process = subprocess.Popen([CFI_ROWS, '--summary', *paths], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, f'exit status {status}'
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, out.read().splitlines()


def figures_of(line):
    return {name: float(value) for name, value in re.findall(r'(\S+)=([\d.]+)(?=\s|$)', line)}


def measure(what, paths):
    rounds = [run(paths) for _ in range(ROUNDS + 1)][1:] # the first one fills the cache
    cpu = statistics.median(seconds for seconds, _ in rounds)
    figures = figures_of(rounds[0][1][-1])
    rows = figures['rows']
    print(f'{what:34} {figures["files"]:5.0f} files {rows / 1e6:7.2f} M rows {cpu * 1e3:8.1f} ms CPU '
          f'{rows / cpu / 1e6:6.1f} M rows/s {figures["bytes"] / max(1, rows):5.2f} bytes/row '
          f'{figures["bytes"] / 2**20:6.1f} MiB, {figures["unsupported"]:.0f} unsupported, '
          f'{figures["bad"]:.0f} bad', flush=True)
    return rounds[0][1][:-1]


def main():
    lines = measure('installed', installed())
    measure('mapped now', mapped())
    for line in sorted(lines, key=lambda line: figures_of(line)['rows'])[-NR_BIGGEST:]:
        path = line[line.index(' /') + 1:]
        measure(os.path.basename(path), [path])


main()
