#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes and files that do not let themselves be looked at: pages of a FUSE server that never answers, and of
userfaultfd(2), leases, FIFOs, perf maps and debug links that lead there. A run beside them ends, ends when it is
told to, samples everybody else, and names who made it wait. That it ends is seen by a bound which no run that
works comes near to."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from live import (check, done, is_in_loop, need_root, ran_seconds, ready, run_parts, running, skip, stackbpf,
                  wait_for)
from recorder import ask, recording, written

BINARY, SBSYM, STUCK_FS, STUCK, SPLIT = (os.path.abspath(path) for path in sys.argv[1:6])
HANGS = 60  # seconds
COPY_BYTES_MAX = 64 << 20  # symbolizer/reader.h
OVERLAY = '''mount -t overlay overlay -o "lowerdir=$1/lower:$1/lower2" "$1/merged" || exit
"$1/merged/large" >/dev/null 2>&1 &
"$2" oncpu -t 1 --max-overhead=off -p $!
status=$?
kill $!
exit $status'''
NAMED = r'process {}\b'


@contextlib.contextmanager
def stuck_fs(work, *files):
    """The file system, on WORK/mnt. Everybody that waits for it goes on when its server is killed."""
    mnt = f'{work}/mnt'
    os.mkdir(mnt)
    with ready(STUCK_FS, mnt, *files) as server:
        try:
            yield server, mnt
        finally:
            server.kill()
            subprocess.run(['umount', '-l', mnt], check=True)


@contextlib.contextmanager
def stuck(*ways):
    """A process for each way, and its pid."""
    with contextlib.ExitStack() as stack:
        pids = {}
        for how, path in ways:
            try:
                pids[how] = stack.enter_context(ready(STUCK, how, path)).pid
            except AssertionError:
                print(f'not here: {how}')
        yield pids


def judge(what, result, pids, split=True):
    check(result.status == 0, f'{what}: ends (status {result.status})')
    for how, pid in pids.items():
        check(re.search(NAMED.format(pid), result.err), f'{what}: names the process of "{how}"')
    if split:
        stacks = [stack for stack in result.stacks if stack[0] == 'split']
        named = sum(result.stacks[stack] for stack in stacks if 'spin' in stack)
        check(named > 0, f'{what}: {named} samples of a program beside them, with names')


def memory():
    """Structures and stacks that we read."""
    with tempfile.TemporaryDirectory() as work, stuck_fs(work) as (_, mnt), running(SPLIT) as split:
        page = f'{mnt}/read'
        with stuck(('runtime', page), ('uffd', page), ('args', page)) as pids:
            # Nobody reads arguments here.
            del pids['args']
            judge('oncpu', stackbpf(BINARY, 'oncpu', '-a', '-t', '1', timeout=HANGS), pids)
        with stuck(('stack', page)) as pids:
            judge('offcpu', stackbpf(BINARY, 'offcpu', '-a', '-t', '1', timeout=HANGS), pids, False)
            judge('wall', stackbpf(BINARY, 'wall', '-a', '-t', '1', timeout=HANGS), pids)
            done_ = subprocess.run([BINARY, 'snap', '-p', f'{pids["stack"]},{split.pid}'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, timeout=HANGS, check=False)
            check(done_.returncode == 0 and 'split' in done_.stdout, f'snap: ends (status {done_.returncode})')


def debug_link(work, name, target):
    """SPLIT as WORK/NAME, without names, with a link to TARGET in the place of its debug file."""
    shutil.copy(SPLIT, f'{work}/{name}')
    subprocess.run(['objcopy', '--only-keep-debug', SPLIT, f'{work}/{name}.debug'], check=True)
    subprocess.run(['objcopy', '--strip-all', '--remove-section=.note.gnu.build-id',
                    f'--add-gnu-debuglink={work}/{name}.debug', f'{work}/{name}'], check=True)
    if target:
        os.unlink(f'{work}/{name}.debug')
        target(f'{work}/{name}.debug')


def links():
    """What is there in the place of a debug file, by name."""
    return {
        'open': lambda mnt, path: os.symlink(f'{mnt}/open', path),
        'lookup': lambda mnt, path: os.symlink(f'{mnt}/lookup/x', path),
        'read': lambda mnt, path: os.symlink(f'{mnt}/read', path),
        'fifo': lambda mnt, path: os.mkfifo(path),
    }


def files():
    """Files that are mapped, debug files and perf maps; each beside others that are as they should be."""
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        os.chmod(work, 0o755)
        server, mnt = stack.enter_context(stuck_fs(work, f'prog={SPLIT}'))
        stack.enter_context(running(SPLIT))
        for name, make in links().items():
            debug_link(work, name, lambda path, make=make: make(mnt, path))
            stack.enter_context(running(f'{work}/{name}'))
        debug_link(work, 'leased', None)
        stack.enter_context(stuck(('lease', f'{work}/leased.debug')))
        leased = stack.enter_context(running(f'{work}/leased'))
        pids = stack.enter_context(stuck(('map', f'{mnt}/read'), ('jit', f'{mnt}/open')))
        stack.callback(lambda: [os.unlink(f'/tmp/perf-{pids["jit"]}.map')])
        # Read while it still can be, and then nothing of it comes any more.
        prog = stack.enter_context(running(f'{mnt}/prog'))
        result = stackbpf(BINARY, 'oncpu', '-t', '1', '-p', str(prog.pid), timeout=HANGS)
        check(result.share('spin') > 0, 'a program on a file system that is not local has names')
        server.send_signal(signal.SIGUSR1)
        result = stackbpf(BINARY, 'oncpu', '-a', '-t', '2', timeout=HANGS)
        judge('oncpu', result, {})
        check(mnt in result.err or 'the path to' in result.err, 'names the file system')
        result = stackbpf(BINARY, 'oncpu', '-t', '1', '-p', str(leased.pid), timeout=HANGS)
        judge('a lease', result, {}, False)
        check('lease' in result.err, f'says that a file has a lease on it: {result.err[-500:]}')


def overlay():
    """A file on an overlay of our own mount table is read in place: a copy of one that is so large would be refused."""
    with tempfile.TemporaryDirectory() as work:
        for name in ('lower', 'lower2', 'merged'):
            os.mkdir(f'{work}/{name}')
        shutil.copy(SPLIT, f'{work}/lower/large')
        os.truncate(f'{work}/lower/large', COPY_BYTES_MAX + (1 << 20))
        result = stackbpf('unshare', '--mount', '--propagation', 'private', 'sh', '-c', OVERLAY, 'sh', work, BINARY,
                          timeout=HANGS)
        check(result.status == 0, f'overlay: ends (status {result.status})')
        check(result.share('spin') > 0, f'overlay: a file of 65 MiB has names: {result.err[-300:]}')


def stop():
    """SIGINT and SIGTERM end a run, and what it has is written."""
    with tempfile.TemporaryDirectory() as work, stuck_fs(work) as (_, mnt), running(SPLIT) as busy:
        page = f'{mnt}/read'
        for number in (signal.SIGINT, signal.SIGTERM):
            for kind in ('oncpu', 'wall'):
                with stuck(('runtime', page), ('map', page), ('stack', page)):
                    out = f'{work}/{kind}.folded'
                    run = subprocess.Popen([BINARY, kind, '-a', '-o', out, '--max-overhead=off'],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    wait_for(lambda run=run: is_in_loop(run.pid) or run.poll() is not None, 'its loop', HANGS)
                    # Ten periods of 99 Hz: a run that is told to end before its first one has nothing to write.
                    since = ran_seconds(busy.pid)
                    wait_for(lambda since=since: ran_seconds(busy.pid) - since > 0.1, 'it samples', HANGS)
                    run.send_signal(number)
                    # To the end of its standard error: what was abandoned does not hold it.
                    _, err = run.communicate(timeout=HANGS)
                check(run.returncode == 0 and os.path.getsize(out) > 0, f'{kind} ends by {number.name}: {err[-300:]}')


def command():
    """A command that cannot be opened: the run ends by a signal and by its time, and does not wait for it."""
    with tempfile.TemporaryDirectory() as work, stuck_fs(work) as (_, mnt):
        for number, args, status in ((signal.SIGINT, (), 130), (None, ('-t', '1'), 137)):
            # Not a pipe: the command has it, too, and lasts as long as the file system.
            with open(f'{work}/err', 'w+', encoding='utf-8') as err:
                run = subprocess.Popen([BINARY, 'oncpu', *args, '-o', f'{work}/out.folded', '--', f'{mnt}/lookup/x'],
                                       stderr=err)
                if number:
                    wait_for(lambda run=run: is_in_loop(run.pid) or run.poll() is not None, 'it samples', HANGS)
                    run.send_signal(number)
                run.wait(HANGS)
                err.seek(0)
                said = err.read()
            check(run.returncode == status, f'command: ends (status {run.returncode})')
            check('killed before it started' in said, f'command: says why: {said[-300:]}')
            check('too little CPU time' not in said, 'command: says no other reason')


def recorder():
    """A recorder goes on: the next blocks are written as well."""
    with tempfile.TemporaryDirectory() as work, stuck_fs(work) as (_, mnt), running(SPLIT):
        page = f'{mnt}/read'
        with stuck(('runtime', page), ('map', page), ('stack', page), ('args', page)):
            with recording(f'{work}/store', '-a', '--kinds', 'oncpu,offcpu') as run:
                written(run)
                written(run)
                status = run.end()
            check(status == 0, f'record: ends (status {status})')
            check(ask(f'{work}/store', 'comm').share('spin', 'split') > 0, 'record: has what ran beside them')
            check(re.search(' hung ', run.said), 'record: says who did not answer')


def tool(what, pid, *command, status=0, cwd=None):
    """A COMMAND that looks at process PID, and names it or the file system. Return: what it printed."""
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)
    try:
        out, err = run.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        # Nobody waits for its end: that comes when the file system is gone.
        run.kill()
        check(False, f'{what}: ends')
        return ''
    check(run.returncode == status, f'{what}: ends (status {run.returncode}): {err[-300:]}')
    if pid is not None:
        check(' hung ' in err and
              (re.search(NAMED.format(pid), err) or 'file system' in err or 'the path to' in err),
              f'{what}: names who did not answer: {err[-300:]}')
    return out


def tools():
    """doctor and sbsym, of processes whose memory or files do not come, and of one beside them."""
    with tempfile.TemporaryDirectory() as work, stuck_fs(work) as (_, mnt), running(SPLIT) as split:
        page = f'{mnt}/read'
        with stuck(('runtime', page), ('map', page), ('jit', page)) as pids:
            stuck_map = f'/tmp/perf-{pids["jit"]}.map'
            try:
                for how, pid in pids.items():
                    # Of its machine code, nobody reads the perf map but sbsym.
                    if how != 'jit':
                        tool(f'doctor, {how}', pid, BINARY, 'doctor', '-p', str(pid))
                    if how != 'runtime':
                        tool(f'sbsym, {how}', pid, SBSYM, str(pid), executable(pid))
            finally:
                os.unlink(stuck_map)
            # No process: files, by a path that is relative to where sbsym is started.
            tool('sbsym FILE', '', SBSYM, 'open', '1000', status=1, cwd=mnt)
            out = tool('doctor, another process', None, BINARY, 'doctor', '-p', str(split.pid))
            check('split' in out, 'doctor: says what it knows of another process')


def executable(pid):
    """An address in a mapping of PID that is none of its program: the one that does not come, or machine code."""
    with open(f'/proc/{pid}/maps', encoding='ascii') as maps:
        for line in maps:
            fields = line.split()
            if 'x' in fields[1] and (len(fields) < 6 or '/mnt/' in fields[5]):
                return fields[0].split('-')[0]
    raise AssertionError(f'process {pid} has no such mapping')


need_root()
if not os.path.exists('/dev/fuse'):
    skip('there is no /dev/fuse')
run_parts((memory, files, overlay, stop, command, recorder, tools), sys.argv[6:])
done()
