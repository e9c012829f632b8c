#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is tested under one kernel: the suite `bpf`, tests of `live`, and the cells of the matrix.

kernel.py BUILD NAME [--all | --cells LIST] [--only WORD...]      NAME as in kernels.py, LIST as in cells.py

inside.py does it in the guest, and says a line of JSON for each thing. What it said is kept in
BUILD/vm/ARCH-NAME.json, in the place of what an earlier run had said of the same thing; from that matrix.py
makes the tables. A machine that fails is started once more, and so is a test of `live`; nothing else is."""
import argparse
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import kernels
import machine
from cells import SECONDS_MAX
from machine import Failure, Missing


class Lines(io.RawIOBase):
    """Output of the guest: lines of JSON are kept and told, others are printed."""

    def __init__(self):
        super().__init__()
        self.records, self.rest = [], b''

    def write(self, data):
        *lines, self.rest = (self.rest + data).split(b'\n')
        for line in lines:
            text = line.decode(errors='replace')
            if text.startswith('{'):
                self.records.append(json.loads(text))
                tell(self.records[-1])
            else:
                print(text, flush=True)
        return len(data)


def tell(record):
    result, what = record['result'], record['what']
    if record['kind'] == 'cost':
        return
    mark = {'pass': 'ok: ', 'fail': 'FAILED: ', 'skip': 'without '}.get(result, '')
    print(f"{mark}{what} ({record.get('seconds', 0):.0f} s)" + (f": {record['why']}" if record.get('why') else ''),
          flush=True)


def compile_java(classes, source):
    if shutil.which('javac') and not (classes / 'Rounds.class').exists():
        subprocess.run(['javac', '--release', '17', '-d', classes, source], check=True)


def keep(path, version, records, seconds):
    """With what earlier runs found under the same kernel and these have not looked at. Of what was said twice, the
    last counts. seconds: of the whole list; None: these are a part of it."""
    earlier = json.loads(path.read_text(encoding='utf-8')) if path.exists() else {}
    if earlier.get('version') == version:
        records, seconds = earlier['records'] + records, seconds or earlier.get('seconds')
    last = {(record['kind'], record['what']): record for record in records}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({'version': version, 'seconds': seconds, 'records': [*last.values()]}, indent=1),
                    encoding='utf-8')


def run(setup, command, kept, is_whole):
    """Run inside.py, or what says the same; keep what it says, also if the machine fails. Return: an exit status."""
    lines, begin, status, why = Lines(), time.monotonic(), None, ''
    try:
        status = machine.run_twice(setup, list(map(str, command)), lines)
    except Failure as failure:
        why = f'FAILED: {failure}'
    seconds = time.monotonic() - begin
    keep(kept, (setup.kernel / 'version').read_text().strip(), lines.records, seconds if is_whole and not why else None)
    failed = [record['what'] for record in lines.records if record['result'] == 'fail']
    print(why or f'{len(lines.records)} checks in {seconds:.0f} s, failed: {", ".join(failed) or "none"} '
                 f'(status {status})')
    return 1 if failed or why or status or not lines.records else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('name')
    parser.add_argument('--all', action='store_true', help='what is looked at of it by scripts/test --all')
    parser.add_argument('--cells', choices=sorted(SECONDS_MAX), help='another list than that of the normal run')
    parser.add_argument('--only', nargs='*', default=[])
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build = pathlib.Path(args.build).resolve()
    here = pathlib.Path(__file__).resolve().parent
    top = here.parents[1]  # may lie in /tmp, which is the guest's own
    try:
        kernel = kernels.find(args.name)
        mode = args.cells or (kernel.all if args.all else kernel.normal or 'normal')
        setup = machine.Setup(kernels.unpack(args.name), seconds_max=SECONDS_MAX[mode],
                              writable=(top,) if top in build.parents else (top, build),
                              env={name: os.environ[name] for name in ('KEEP',) if name in os.environ})
        compile_java(build / 'vm/classes', here.parent / 'programs/Rounds.java')
        return run(setup, [sys.executable, here / 'inside.py', build, mode, *args.only],
                   build / 'vm' / f'x86_64-{args.name}.json', is_whole=args.all and not args.only)
    except Missing as missing:
        print(f'skipped: {missing}')
        return 77


if __name__ == '__main__':
    sys.exit(main())
