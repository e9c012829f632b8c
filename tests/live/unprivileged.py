#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Without root: file capabilities, and what the systemd unit gives, see what root sees.

unprivileged.py STACKBPF SPLIT UNIT
"""
import concurrent.futures
import configparser
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, running, skip, stackbpf, wait_for

need_root()
BINARY, SPLIT, UNIT = (os.path.abspath(path) for path in sys.argv[1:4])
USER, OTHER = 12321, 12322
TRUTH = {'seventy': 0.70, 'twenty': 0.20, 'ten': 0.10}
PYTHON = ('import threading\ndef busy():\n    while True:\n        sum(range(1000))\n'
          'def outer():\n    busy()\nouter()')
for tool in 'setcap', 'setpriv':
    if not shutil.which(tool):
        skip(f'there is no {tool}')


def as_user(uid, *more):
    return ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups', *more]


def line_of_doctor(binary):
    """The setcap line that doctor gives to a user without anything."""
    out = subprocess.run([*as_user(USER), binary, 'doctor'], stdout=subprocess.PIPE, text=True, check=False)
    check(out.returncode == 4, f'doctor without privileges: {out.returncode}')
    return next((line.split()[1:] for line in out.stdout.splitlines() if line.startswith('sudo setcap ')), None)


def profile(binary, prefix, target):
    done_ = subprocess.run([*prefix, binary, 'oncpu', '-p', str(target.pid), '-t', '2', '-F', '499'], text=True,
                           capture_output=True, check=False, timeout=240)
    # Parsed as others are.
    with tempfile.NamedTemporaryFile('w+', suffix='.out') as file:
        file.write(done_.stdout)
        file.flush()
        result = stackbpf('cat', file.name)
    result.status, result.err = done_.returncode, done_.stderr
    return result


def at_once(*runs):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return pool.map(lambda run: profile(*run), runs)


def compare(what, binary, prefix):
    for owner in USER, OTHER:
        with running(*as_user(owner), SPLIT) as split, \
                running(*as_user(owner), '/usr/bin/python3', '-c', PYTHON, stderr=subprocess.DEVNULL) as python:
            theirs, ours, of_python = at_once((binary, prefix, split), (BINARY, [], split), (binary, prefix, python))
            check(theirs.status == 0 and ours.status == 0, f'{what}, {owner}: {theirs.status} {theirs.err}')
            for name, want in TRUTH.items():
                have, chance = theirs.share(name), 4 * math.sqrt(want * (1 - want) / max(theirs.total, 1))
                check(abs(have - want) <= max(0.06, chance),
                      f'{what}, {owner}: {name} {100 * have:.1f} % of {100 * want:.0f} %, {theirs.total} samples')
            # Stacks that stand for something: one sample may fall anywhere. There may have been more of a stack in ours than
            # are expected, and one of which fifteen are expected is missed once in three million times.
            share = max(0.02, 20 / max(theirs.total, 1))
            common = {s for s, w in ours.stacks.items() if w >= share * ours.total and '[' not in ''.join(s)}
            check(common and common <= set(theirs.stacks), f'{what}, {owner}: every stack of root\'s is there')
            for name in 'outer', 'busy':
                check(of_python.share(name) > 0.9, f'{what}, {owner}: Python\'s {name}: {of_python.share(name):.2f}')


def hidden(binary, prefix):
    """Another user's program: in a directory that is closed to everybody else; deleted since it began."""
    for how in 'closed', 'deleted':
        with tempfile.TemporaryDirectory() as closed:
            path = shutil.copy(SPLIT, f'{closed}/split')
            for name in path, closed:
                os.chown(name, OTHER, OTHER)
                os.chmod(name, 0o700)
            with running(*as_user(OTHER), path) as split:
                wait_for(lambda pid=split.pid, want=path: os.readlink(f'/proc/{pid}/exe') == want, 'it runs')
                if how == 'deleted':
                    os.unlink(path)
                theirs = profile(binary, prefix, split)
                check(theirs.share('seventy') > 0.5, f'{how}: seventy {theirs.share("seventy"):.2f} {theirs.err[-300:]}')


def in_kernel(binary, prefix):
    """The kernel's functions have the names that root sees."""
    with running(*as_user(OTHER), 'dd', 'if=/dev/zero', 'of=/dev/null', 'bs=64k') as dd:
        ours, theirs = at_once((BINARY, [], dd), (binary, prefix, dd))
    frames = {frame for stack in ours.stacks for frame in stack if ours.share(frame) > 0.3 and '[' not in frame}
    check({'ksys_read', 'vfs_read'} & set().union(*ours.stacks), f'root sees what it does: {sorted(frames)}')
    check(all(theirs.share(frame) > 0.1 for frame in frames), f'names of the kernel: {sorted(frames - set().union(*theirs.stacks))}')


def lacks(binary):
    """Less than is needed: status 4 and one sentence; less than is good: it goes."""
    with running(*as_user(USER), SPLIT) as split:
        for caps in None, 'cap_bpf=ep', 'cap_perfmon=ep':
            subprocess.run(['setcap', '-r' if caps is None else caps, binary], check=False)
            result = profile(binary, as_user(USER), split)
            lines = result.err.splitlines()
            check(result.status == 4 and len(lines) == 1 and 'doctor' in lines[0], f'{caps}: {result.status} {lines}')
        subprocess.run(['setcap', 'cap_bpf,cap_perfmon=ep', binary], check=True)
        result = profile(binary, as_user(USER), split)
        check(result.status == 0, f'own process without cap_sys_ptrace: {result.status} {result.err}')


def written(binary, prefix):
    """A new file, and one in the place of another."""
    with tempfile.TemporaryDirectory() as folder, running(*as_user(USER), SPLIT) as split:
        os.chown(folder, USER, USER)
        for name in 'new.folded', 'new.folded', 'a.svg':
            path = f'{folder}/{name}'
            result = stackbpf(*prefix, binary, 'oncpu', '-p', str(split.pid), '-t', '0.5', '-o', path)
            check(result.status == 0 and os.path.exists(path) and os.stat(path).st_uid == USER,
                  f'{name} is written: {result.status} {result.err[:200]}')
        check(sorted(os.listdir(folder)) == ['a.svg', 'new.folded'], f'and nothing else: {os.listdir(folder)}')


def unit_settings():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(UNIT)
    return unit['Service']


def unit(binary, setcap_line):
    """The sandbox of the unit by hand, as far as tools go: user, capabilities, no_new_privs, network."""
    service = unit_settings()
    caps = [cap.lower().removeprefix('cap_') for cap in service['AmbientCapabilities'].split()]
    check(service['CapabilityBoundingSet'] == service['AmbientCapabilities'], 'the unit bounds what it gives')
    listed_by_doctor = {cap for cap in re.split(r'[ ,=]', ' '.join(setcap_line)) if cap.startswith('cap_')}
    check(listed_by_doctor == {f'cap_{cap}' for cap in caps}, f'it gives what doctor says: {listed_by_doctor}')
    listed = '-all,' + ','.join(f'+{cap}' for cap in caps)
    subprocess.run(['setcap', '-r', binary], check=False)
    prefix = ['unshare', '--net', '--mount', '--', *as_user(USER, f'--inh-caps={listed}', f'--ambient-caps={listed}',
                                                            f'--bounding-set={listed}', '--no-new-privs')]
    if subprocess.run([*prefix, 'true'], check=False).returncode:
        check(False, 'the sandbox can be made')
        return
    compare('unit', binary, prefix)


def analyze():
    """What systemd itself says to the unit."""
    if not shutil.which('systemd-analyze'):
        print('systemd is not asked: there is no systemd-analyze')
        return
    with tempfile.TemporaryDirectory() as tmp:
        path = f'{tmp}/stackbpf@.service'
        with open(UNIT, encoding='utf-8') as source, open(path, 'w', encoding='utf-8') as copy:
            copy.write(source.read().replace('@bindir@', os.path.dirname(BINARY)))
        out = subprocess.run(['systemd-analyze', 'security', '--offline=yes', '--threshold=30', path],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        check(out.returncode == 0, f'exposure: {out.stdout.strip().splitlines()[-1:]}')
        os.rename(path, f'{tmp}/stackbpf@oncpu.service')
        out = subprocess.run(['systemd-analyze', 'verify', '--man=no', f'{tmp}/stackbpf@oncpu.service'],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        lines = [line for line in out.stdout.splitlines() if 'stackbpf' in line]
        check(not lines, f'verify: {lines}')


with tempfile.TemporaryDirectory() as directory:
    os.chmod(directory, 0o755)
    copied = shutil.copy(BINARY, directory)
    setcap = line_of_doctor(copied)
    check(bool(setcap), 'doctor has a setcap line')
    if subprocess.run(setcap or ['false'], check=False).returncode:
        skip('this file system takes no capabilities')
    compare('setcap', copied, as_user(USER))
    hidden(copied, as_user(USER))
    written(copied, as_user(USER))
    in_kernel(copied, as_user(USER))
    lacks(copied)
    unit(copied, setcap)
analyze()
done()
