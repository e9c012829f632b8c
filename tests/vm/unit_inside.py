#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""In a guest that systemd runs: each view as the unit has it, beside the same as root.

unit_inside.py BUILD COPY [VIEW...]      COPY: where the unit expects stackbpf"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'live'))
from live import Result, check, done, running, stackbpf  # pylint: disable=wrong-import-position

BUILD = pathlib.Path(sys.argv[1])
BINARY = str(BUILD / 'user/cli/stackbpf')
SPLIT = str(BUILD / 'tests/programs/split')
PARANOID = '/proc/sys/kernel/perf_event_paranoid'
USER, OTHER = 12321, 12322
TRUTH = {'seventy': 0.70, 'twenty': 0.20, 'ten': 0.10}
PYTHON = 'import time\ndef busy():\n    sum(range(10000))\n    time.sleep(0.002)\ndef outer():\n    while True: busy()\nouter()'
SECONDS_MAX = 150
CAPS = ('bpf', 'perfmon', 'sys_ptrace', 'syslog', 'dac_read_search', 'checkpoint_restore')
# A frame of each program that each view must have, at the least.
VIEWS = {'oncpu': ('split', 'seventy', 'outer', 'busy', 'ksys_read'), 'offcpu': ('outer', 'busy'),
         'wall': ('split', 'seventy', 'outer', 'busy'), 'io': ('dd', 'read')}


def as_user(uid, *command):
    return ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups', *command]


def systemctl(*args):
    return subprocess.run(['systemctl', '--no-pager', *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False).stdout.strip()


def status_of(pid):
    with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as file:
        return dict(re.findall(r'^(\w+):\s+(.*)$', file.read(), re.M))


def is_sandboxed(view):
    """What systemd made of the process, while it samples."""
    pid = systemctl('show', '--property=MainPID', '--value', f'stackbpf@{view}')
    try:
        status = status_of(pid)
    except FileNotFoundError:
        check(False, f'{view}: it runs: {systemctl("status", f"stackbpf@{view}")}')
        return
    effective = int(status['CapEff'], 16)
    check(status['Uid'].split()[0] != '0', f'{view}: it is not root: {status["Uid"]}')
    check(status['Seccomp'] == '2' and status['NoNewPrivs'] == '1', f'{view}: a filter, no new privileges')
    check(effective.bit_count() <= len(CAPS) and not effective & 1 << 21, f'{view}: capabilities {effective:x}')
    root = os.stat(f'/proc/{pid}/root/usr')
    check(os.statvfs(f'/proc/{pid}/root/usr').f_flag & os.ST_RDONLY, f'{view}: /usr is read-only ({root.st_dev:x})')


def by_unit(view):
    """The first result that the unit has written. None: there is none."""
    path = f'/var/lib/stackbpf/{view}.folded'
    said = systemctl('start', f'stackbpf@{view}')
    check(not said, f'{view}: it starts {said}')
    is_sandboxed(view)
    end = time.monotonic() + SECONDS_MAX
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.1)
    systemctl('stop', f'stackbpf@{view}')
    with open('/run/stackbpf.err', encoding='utf-8') as file:
        err = file.read()
    if not os.path.exists(path):
        check(False, f'{view}: a result: {err} {systemctl("status", f"stackbpf@{view}")}')
        return None
    check(os.stat(path).st_mode & 0o077 == 0, f'{view}: nobody else may read it')
    with open(path, encoding='utf-8') as file:
        return Result(0, file.read(), err)


def frames_of(result):
    return {frame for stack in result.stacks for frame in stack}


def compare(view):
    theirs = by_unit(view)
    ours = stackbpf(BINARY, view, '-a', '-t', '5', timeout=SECONDS_MAX)
    if not theirs or ours.status:
        check(False, f'{view}: {ours.status} {ours.err}')
        return
    for name, want in TRUTH.items() if view == 'oncpu' else ():
        have = theirs.share(name, of='split')
        check(abs(have - want) <= 0.08, f'{view}: {name} {100 * have:.1f} % of {100 * want:.0f} %')
    for who, result in (('root', ours), ('the unit', theirs)):
        missing = [frame for frame in VIEWS[view] if frame not in frames_of(result)]
        check(not missing, f'{view}: {who} has all frames, but for {missing}')
    # Stacks that stand for something: a few samples may fall anywhere.
    common = {stack for stack, weight in ours.stacks.items()
              if weight >= 0.05 * ours.total and stack[0] in ('split', 'python3', 'dd') and not re.search(r'\+0x|\[trunc|\[un', ''.join(stack))}
    check(common <= set(theirs.stacks), f'{view}: {len(common)} stacks of root\'s, missing: {common - set(theirs.stacks)}')


def refused():
    """As Debian sets it."""
    with open(PARANOID, 'w', encoding='ascii') as file:
        file.write('3')
    systemctl('start', 'stackbpf@oncpu')
    end = time.monotonic() + SECONDS_MAX
    while systemctl('is-active', 'stackbpf@oncpu') in ('active', 'activating') and time.monotonic() < end:
        time.sleep(0.1)
    status = systemctl('show', '--property=ExecMainStatus,NRestarts', '--value', 'stackbpf@oncpu').split()
    with open('/run/stackbpf.err', encoding='utf-8') as file:
        said = file.read()
    check(status == ['0', '4'] and said.count('\n') == 1 and 'sysctl kernel.perf_event_paranoid=2' in said,
          f'paranoid: {status} {said}')
    with open(PARANOID, 'w', encoding='ascii') as file:
        file.write('2')


shutil.copy(BINARY, sys.argv[2])
open('/run/stackbpf.err', 'w', encoding='utf-8').close()
refused()
with running(*as_user(OTHER, SPLIT)), running(*as_user(OTHER, '/usr/bin/python3', '-c', PYTHON)), \
        running(*as_user(USER, 'dd', 'if=/dev/zero', 'of=/dev/null', 'bs=64k'), stderr=subprocess.DEVNULL):
    for name_ in sys.argv[3:] or VIEWS:
        compare(name_)
done()
