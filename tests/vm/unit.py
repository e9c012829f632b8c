#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The unit of systemd, run by systemd: in a machine whose process 1 it is.

unit.py BUILD NAME [VIEW...]      NAME as in kernels.py; without a view, all

unit_inside.py does it in the guest."""
import os
import pathlib
import signal
import sys

import kernels
import machine
from machine import Failure, Missing

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
SECONDS_MAX = 1200
COPY = '/var/lib/stackbpf.copy'  # the build may lie in /tmp, which the unit does not see


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    text = (TOP / 'systemd/stackbpf@.service.in').read_text(encoding='utf-8')
    units = {
        'stackbpf@.service': text.replace('@bindir@', str(build / 'user/cli')),
        # No other unit of this system is to run for it. More samples, and sooner than after a minute.
        'stackbpf@.service.d/test.conf':
            f'[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=\nExecStart={COPY} %i -q -t 5s '
            '--max-overhead off -o /var/lib/stackbpf/%i.folded\nStandardError=append:/run/stackbpf.err\n',
    }
    try:
        if not os.access(machine.SYSTEMD, os.X_OK):
            raise Missing('there is no systemd')
        setup = machine.Setup(kernels.unpack(sys.argv[2]), units=units, seconds_max=SECONDS_MAX,
                              writable=(TOP,) if TOP in build.parents else (TOP, build))
        return machine.run_twice(setup, [sys.executable, str(HERE / 'unit_inside.py'), str(build), COPY, *sys.argv[3:]])
    except Missing as missing:
        print(f'skipped: {missing}')
        return 77
    except Failure as failure:
        print(f'FAILED: {failure}')
        return 1


if __name__ == '__main__':
    sys.exit(main())
