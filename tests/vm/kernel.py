#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is tested under one kernel: the suite `bpf`, tests of `live`, and the cells of the matrix.

kernel.py BUILD NAME [--arch ARCH] [--root DIR] [--busybox FILE] [--only WORD...]

inside.py does it in the guest, and says a line of JSON for each thing. What it said is kept in
BUILD/vm/ARCH-NAME.json, in the place of what an earlier run had said of the same thing; from that matrix.py
makes the tables. A machine that fails is started
once more; a test that fails is not."""
import argparse
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import kernels
import machine
from machine import Failure, Missing

SECONDS_MAX = 1500


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


def compile_java(build, source):
    classes = build / 'vm/classes'
    if shutil.which('javac') and not (classes / 'Rounds.class').exists():
        subprocess.run(['javac', '-d', classes, source], check=True)


def keep(path, version, records):
    """With what earlier runs found under the same kernel and these have not looked at."""
    earlier = json.loads(path.read_text(encoding='utf-8')) if path.exists() else {}
    new = {(record['kind'], record['what']) for record in records}
    if earlier.get('version') == version:
        records = [record for record in earlier['records'] if (record['kind'], record['what']) not in new] + records
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({'version': version, 'records': records}, indent=1), encoding='utf-8')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('name')
    parser.add_argument('--arch', default='x86_64')
    parser.add_argument('--root', default='/')
    parser.add_argument('--busybox', default='')
    parser.add_argument('--all', action='store_true', help='every cell, and more tests')
    parser.add_argument('--only', nargs='*', default=[])
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build = pathlib.Path(args.build).resolve()
    here = pathlib.Path(__file__).resolve().parent
    top = here.parents[1]  # may lie in /tmp, which is the guest's own
    try:
        kernel = kernels.find(args.name)
        setup = machine.Setup(kernels.unpack(args.name, args.arch), arch=args.arch, root=args.root,
                              busybox=args.busybox, seconds_max=SECONDS_MAX,
                              writable=(top,) if top in build.parents else (top, build),
                              env={name: os.environ[name] for name in ('KEEP',) if name in os.environ})
        compile_java(build, here.parent / 'programs/Rounds.java')
        mode = 'old' if kernel.is_too_old else 'all' if args.all else 'normal'
        command = [sys.executable if args.root == '/' else 'python3', here / 'inside.py', build, mode, *args.only]
        lines = Lines()
        status = machine.run_twice(setup, list(map(str, command)), lines)
    except Missing as missing:
        print(f'skipped: {missing}')
        return 77
    except Failure as failure:
        print(f'FAILED: {failure}')
        return 1
    failed = [record['what'] for record in lines.records if record['result'] == 'fail']
    keep(build / 'vm' / f'{args.arch}-{args.name}.json', (setup.kernel / 'version').read_text().strip(), lines.records)
    print(f'{len(lines.records)} checks, failed: {", ".join(failed) or "none"} (status {status})')
    return 1 if failed or status or not lines.records else 0


if __name__ == '__main__':
    sys.exit(main())
