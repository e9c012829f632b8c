#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Manners of the stackbpf command: exit statuses, sentences, signals, files, commands it runs."""
import contextlib
import fcntl
import os
import pty
import re
import resource
import shlex
import shutil
import signal
import stat
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
import types

from live import need_root

STACKBPF = os.path.abspath(sys.argv[1])
DEADLINE = 240  # seconds; only how long a broken program is given
IDLE = 3  # exit status: no samples
TRIES = 5  # of a run in which the process was idle
SPIN = 'while :; do :; done'
COUNT = 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'


def run(*args, **kwargs):
    if 'input' not in kwargs:
        kwargs['stdin'] = subprocess.DEVNULL
    kwargs.setdefault('stdout', subprocess.PIPE)
    done = subprocess.run([STACKBPF, *args], stderr=subprocess.PIPE, timeout=DEADLINE, text=True,
                          check=False, **kwargs)
    # Whatever goes wrong is one sentence from us, never a library's chatter.
    for line in done.stderr.splitlines():
        assert line.startswith('stackbpf: '), f'{args}: {line!r}'
        assert 'libbpf:' not in line, f'{args}: {line!r}'
    return done


def expect(status, sentence, *args, **kwargs):
    # On a busy machine a process may get no CPU for as long as a short run takes: then nothing else can be seen of it.
    for _ in range(TRIES):
        done = run(*args, **kwargs)
        if status == IDLE or done.returncode != IDLE or 'was idle' not in done.stderr:
            break
    assert done.returncode == status, f'{args}: {done.returncode}, not {status}: {done.stderr}'
    assert sentence in done.stderr, f'{args}: {sentence!r} is not in {done.stderr!r}'
    return done


def wait_for(condition, what):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f'waited in vain for {what}'
        time.sleep(0.01)


def kill_session(proc):
    """Commands of a stackbpf that failed too: they would spin for ever."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(proc.pid, signal.SIGKILL)


@contextlib.contextmanager
def spinner(line=SPIN):
    with subprocess.Popen(['sh', '-c', line], start_new_session=True) as proc:
        try:
            yield proc
        finally:
            kill_session(proc)


@contextlib.contextmanager
def background(*args, **kwargs):
    kwargs.setdefault('stdout', subprocess.PIPE)
    kwargs.setdefault('stderr', subprocess.PIPE)
    with subprocess.Popen([STACKBPF, *args], text=True, start_new_session=True, **kwargs) as proc:
        try:
            yield proc
        finally:
            kill_session(proc)


def has_signal(pid, line, number):
    """Return: whether the signal is among those of this line of /proc/PID/status."""
    with open(f'/proc/{pid}/status', encoding='ascii') as status:
        mask = next((each.split()[1] for each in status if each.startswith(f'{line}:')), '0')
    return bool(int(mask, 16) & (1 << (number - 1)))


def takes_signals(pid):
    """It blocks those that it takes. All of them are blocked while it forks, at first before it takes any."""
    return has_signal(pid, 'SigBlk', signal.SIGINT) and not has_signal(pid, 'SigBlk', signal.SIGURG)


def has_taken(pid):
    """A second signal that comes while the first one is pending is none."""
    return not has_signal(pid, 'SigBlk', signal.SIGINT) and not has_signal(pid, 'ShdPnd', signal.SIGINT)


def await_samples(proc, path):
    """Ask for snapshots into path, one after the other, until one has stacks in it."""
    def version():
        try:
            return os.stat(path).st_ino, os.stat(path).st_size
        except FileNotFoundError:
            return None

    def has_stacks():
        before = version()
        proc.send_signal(signal.SIGUSR1)
        wait_for(lambda: version() not in (before, None), 'a snapshot')
        with open(path, encoding='utf-8') as snapshot:
            return stacks(snapshot.read())
    wait_for(lambda: takes_signals(proc.pid), 'the start of sampling')
    wait_for(has_stacks, 'a snapshot with samples')


def stacks(text):
    return [line for line in text.splitlines() if not line.startswith('#')]


def test_usage(tmp):
    for args, sentence in (
            (('oncpu', '--pdi', '1'), "did you mean '--pid'?"),
            (('oncpu', '-Z'), "there is no option '-Z'"),
            (('oncpu', '-F', 'abc'), "option '-F': 'abc' is not a number from 1 to 100000"),
            (('oncpu', '-t', '5x'), "option '-t': '5x' is not a time"),
            (('oncpu', '-p'), "option '-p' needs a value: LIST"),
            (('oncpu', '1302'), 'did you mean -p 1302 or -t 1302?'),
            (('snap', '1302'), "unexpected argument '1302'; name the process with -p"),
            (('trace', 'page-fault'), "there is no event 'page-fault'; did you mean 'page-faults'?"),
            (('diff', 'a', 'b', '-o', f'{tmp}/x.pdf'), 'no format has this extension; use one of .svg'),
            (('oncpu', '-C', '60000'), 'CPU 60000 is not online'),
            (('oncpu', '--format', 'pdf'), "there is no format 'pdf'"),
            (('oncpu', '-o', f'{tmp}/x.pdf'), 'no format has this extension'),
            (('oncpu', '-o', f'{tmp}/x.distr'), 'which oncpu does not measure'),
            (('oncpu', '-o', f'{tmp}/a.svg', '-o', f'{tmp}/a.svg'), 'given twice'),
            (('oncpu', '--'), "the command after '--' is missing"),
            (('oncpuu',), "did you mean 'oncpu'?"),
            (('xyzzy',), "there is no command 'xyzzy'"),
            (('-t', '5'), 'must follow a command'),
            (('doctor', '1'), 'name the process with -p'),
            (('help', 'xyzzy'), "there is no command 'xyzzy'")):
        done = expect(2, sentence, *args)
        assert done.stdout == '' and len(done.stderr.splitlines()) == 1, done
    alone = subprocess.run([STACKBPF], capture_output=True, text=True, check=False)
    assert alone.returncode == 2 and alone.stdout == '' and 'usage:' in alone.stderr
    assert os.listdir(tmp) == []


def test_help(_):
    for args, text in ((('help',), 'doctor'), (('help', 'oncpu'), '--freq HZ'),
                       (('oncpu', '--help'), '--freq HZ'), (('--version',), 'stackbpf '),
                       (('oncpu', '-V'), 'libbpf'), (('doctor', '-h'), '--pid PID')):
        done = expect(0, '', *args)
        assert text in done.stdout and done.stderr == '', done


def test_doctor(_):
    with spinner() as spin:
        done = expect(0, '', 'doctor', '-p', str(spin.pid))
    assert f'Process {spin.pid} (sh)' in done.stdout and 'libc.so.6' in done.stdout, done.stdout
    assert ' NO ' not in done.stdout and done.stderr == '', done
    libc = next(line for line in done.stdout.splitlines() if 'libc.so.6' in line)
    assert '.eh_frame' in libc, libc
    samples = next(line for line in done.stdout.splitlines() if line[6:].startswith('trial samples'))
    complete = re.search(r' ([0-9.]+) % with complete user stacks', samples)
    assert complete and float(complete[1]) > 95, samples
    assert re.search(r'[1-9][0-9]* by table, 0 by frame pointer', done.stdout), done.stdout
    assert len(done.stdout.splitlines()) <= 60, 'more than a screen, in lines of 80 columns'


def test_doctor_user_namespace(_):
    """All capabilities of a user namespace are none that the kernel asks for."""
    if subprocess.run(['unshare', '-Ur', 'true'], check=False, stderr=subprocess.DEVNULL).returncode:
        return
    shown = subprocess.run(['unshare', '-Ur', STACKBPF, 'doctor'], stdout=subprocess.PIPE, text=True, check=False).stdout
    assert re.search(r'NO  user namespace +not the host', shown) and not re.search(r'ok  cap_', shown), shown
    assert re.search(r"ok  user namespace +the host's", run('doctor').stdout)


def test_doctor_runtimes(_):
    """Which interpreter it is, of which version, and whether its frames are there."""
    script = 'import threading\ndef spin():\n    print(flush=True)\n    while True: pass\nspin()'
    with subprocess.Popen(['/usr/bin/python3', '-c', script], stdout=subprocess.PIPE) as python:
        try:
            assert python.stdout.readline() == b'\n'
            version = subprocess.run(['/usr/bin/python3', '-V'], capture_output=True, text=True,
                                     check=True).stdout.split()[1]
            done = expect(0, '', 'doctor', '-p', str(python.pid))
        finally:
            python.kill()
    found = re.search(rf' python {re.escape(version)} +/.*; ([0-9.]+) % of trial samples', done.stdout)
    assert found and float(found[1]) > 70, done.stdout


def test_unwind(_):
    """By tables, by frame pointers (this shell has none), and the leaf alone."""
    depths = {}
    with spinner() as spin:
        for how in ('auto', 'dwarf', 'fp', 'none'):
            done = expect(0, '', 'oncpu', '-p', str(spin.pid), '-t', '0.4', '-F', '499', '-u', '--no-inline',
                          '--unwind', how)
            lines = [line.rpartition(' ') for line in done.stdout.splitlines()[1:]]
            depths[how] = statistics.median(stack.count(';') for stack, _, _ in lines)
            cut = sum(int(count) for stack, _, count in lines if 'truncated' in stack)
            share = cut / sum(int(count) for _, _, count in lines)
            assert share > 0.5 if how == 'fp' else share < 0.05, f'{how}: {done.stdout}'
    assert depths['none'] == 1, depths
    assert depths['auto'] > 4 and abs(depths['auto'] - depths['dwarf']) < 4, depths
    assert depths['fp'] < depths['auto'], depths
    expect(2, "'bogus' is not one of auto, fp, dwarf, none", 'oncpu', '--unwind', 'bogus')
    expect(2, 'the limit is 1G', 'oncpu', '--unwind-memory', '2G')


def test_no_target(_):
    expect(5, 'there is no process 4194303', 'oncpu', '-p', '4194303', '-t', '1')
    expect(5, 'there is no thread 4194303', 'oncpu', '-L', '4194303', '-t', '1')
    expect(5, 'no cgroup', 'oncpu', '-G', '/no/such/cgroup', '-t', '1')
    for path in ('/no/such', 'no/such', '/', '/sys/fs/cgroup'):
        without = subprocess.run(['unshare', '-m', 'sh', '-c', 'for at in /sys/fs/cgroup/unified /sys/fs/cgroup; do '
                                  'umount -l $at; done 2>/dev/null; exec "$@"', 'sh', STACKBPF, 'oncpu', '-G', path,
                                  '-t', '1'], stderr=subprocess.PIPE, text=True, timeout=DEADLINE, check=False)
        assert without.returncode == 5 and 'cgroup2 is not mounted' in without.stderr, (path, without)
    expect(5, 'there is no process 4194303', 'doctor', '-p', '4194303')
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        expect(5, f'is a thread of process {os.getpid()}: use -L {thread.native_id} to', 'oncpu', '-p',
               str(thread.native_id), '-t', '1')
    finally:
        done.set()


def test_no_privilege(tmp):
    # The tree may be in a place that others cannot enter, a clone below the home of root.
    nobody = {'user': 65534, 'group': 65534, 'extra_groups': (),
              'executable': shutil.copy(STACKBPF, tmp)}
    expect(4, 'root', 'oncpu', '-t', '1', **nobody)
    os.chmod(tmp, 0o777)
    expect(4, 'root', 'record', '--store', f'{tmp}/store', **nobody)
    assert not os.path.exists(f'{tmp}/store'), 'a store that was never recorded to'
    done = run('trace', '--list', 'sched:*', **nobody)
    # A system may let everybody read the list.
    assert done.returncode == 0 or 'list of tracepoints (tracefs) cannot be read' in done.stderr, done
    done = run('doctor', **nobody)
    assert done.returncode == 4 and 'setcap' in done.stdout, done


def test_user_namespace(_):
    """A root that is none for the kernel has all capabilities, and may do nothing."""
    done = subprocess.run(['unshare', '-U', '-r', STACKBPF, 'oncpu', '-t', '1'], stderr=subprocess.PIPE, text=True,
                          timeout=DEADLINE, check=False)
    assert done.returncode == 4 and 'in a user namespace' in done.stderr, done


def test_hidden_kernel(_):
    """Enough to sample, not enough to see the kernel's symbols."""
    dd = ['dd', 'if=/dev/zero', 'of=/dev/null', 'bs=1M', 'count=3000', 'status=none']
    lacks_syslog = ['setpriv', '--bounding-set', '-syslog', '--inh-caps', '-syslog', STACKBPF]
    done = subprocess.run([*lacks_syslog, 'oncpu', '-k', '-F', '999', '--', *dd],
                          capture_output=True, text=True, timeout=DEADLINE, check=True)
    # Where even root reads none of them, this is all there is to see.
    assert '[kernel+0x' in done.stdout and 'vfs_read' not in done.stdout, done.stdout
    sentences = [line for line in done.stderr.splitlines() if 'hides its addresses' in line]
    assert len(sentences) == 1 and 'CAP_SYSLOG' in sentences[0], done.stderr
    assert 'hides its addresses' not in run('oncpu', '-k', '-F', '999', '--', *dd).stderr


def test_nothing_sampled(_):
    with subprocess.Popen(['sleep', '1000']) as idle:
        done = expect(3, f'process {idle.pid} was idle', 'oncpu', '-p', str(idle.pid), '-t', '0.3')
        assert done.stdout == ''
        both = f'{idle.pid},!{idle.pid}'
        for view in 'oncpu', 'wall':
            expect(3, f'both name and exclude (with \'!\') {idle.pid}', view, '-p', both, '-t', '0.3')
        # It waits all the time, but not as it is asked.
        for limit in (('-m', '2s'), ('--state', 'D')):
            expect(3, 'waited within the limits of -m, -M and --state; sample longer, or change these options', 'offcpu',
                   '-p', str(idle.pid), '-t', '0.3', *limit)
        idle.kill()
    done = expect(3, 'raise -F, or use -s', 'oncpu', '-F', '1', '--', 'true')
    assert '-s' not in expect(3, 'raise -F', 'oncpu', '-s', '-F', '1', '--', 'true').stderr
    with spinner():
        expect(3, 'no running thread matched', 'oncpu', '-n', 'no-such-name', '-t', '0.3')


def test_result(tmp):
    with spinner() as spin:
        done = expect(0, ' samples, ', 'oncpu', '-p', str(spin.pid), '-t', '0.3', '-F', '999')
        header = done.stdout.splitlines()[0]
        assert header.startswith('#stackbpf;v=1;kind=oncpu;unit=samples;dur_us='), header
        assert ' ' not in header, header
        assert all(line.startswith('sh;') for line in stacks(done.stdout)), done.stdout
        assert all(line.startswith('stackbpf:   ') for line in done.stderr.splitlines()[1:]), done.stderr
        done = expect(0, '', 'oncpu', '-p', str(spin.pid), '-t', '0.3', '-F', '999', '-q', '--no-header')
        assert done.stderr == '' and not done.stdout.startswith('#'), done
        done = expect(0, '', 'oncpu', '-p', str(spin.pid), '-t', '0.3', '-F', '999', '-o', f'{tmp}/a.svg',
                      '-o', f'{tmp}/a.folded', '--title', 'Of a spinner')
        assert done.stdout == '', done
        with open(f'{tmp}/a.svg', encoding='utf-8') as svg:
            assert 'Of a spinner' in svg.read()
        assert sorted(os.listdir(tmp)) == ['a.folded', 'a.svg']


def test_bad_places(tmp):
    with spinner() as spin:
        few = ('oncpu', '-p', str(spin.pid), '-t', '0.3', '-F', '999')
        with open('/dev/full', 'w', encoding='ascii') as full:
            expect(1, 'No space left on device', *few, stdout=full)
        expect(1, "cannot write '/dev/full': No space left", *few, '-o', '/dev/full',
               '--format', 'folded')
        expect(1, 'No such file or directory; create its directory', *few, '-o', '/no/such/directory/x.svg')
        expect(1, 'Not a directory', *few, '-o', '/etc/passwd/x.svg')
        os.mkdir(f'{tmp}/x.svg')
        expect(1, 'Is a directory; name a file in it', *few, '-o', f'{tmp}/x.svg')
        expect(1, 'File too large', *few, '-o', f'{tmp}/large.svg',
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        assert os.listdir(tmp) == ['x.svg'], os.listdir(tmp)
        expect(1, 'cannot write to standard output', *few, preexec_fn=lambda: os.close(1))
        expect(0, ' samples, ', *few, '-o', f'{tmp}/x.folded', preexec_fn=lambda: os.close(1))
        expect(5, 'is not a directory of a cgroup2', *few[:1], '-G', tmp, '-t', '0.3')
        with open('/proc/mounts', encoding='utf-8') as mounts:
            if re.search('/sys/fs/cgroup(/unified)? cgroup2 ', mounts.read()):
                done = expect(0, ' samples, ', *few, '-G', '/')
                assert '\nsh;' in done.stdout, f'all are in the root of cgroups: {done}'
        # A reader that has enough is nobody's error.
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = expect(0, ' samples, ', *few, stdout=write_end)
        os.close(write_end)
        assert 'pipe' not in done.stderr, done.stderr


def test_directory_deleted(tmp):
    """That is said before sampling, as no result could be written."""
    path = f'{tmp}/gone'
    copy = 'dd', 'if=/dev/zero', 'of=/dev/null', 'bs=64k', 'count=20000', 'status=none'
    for args, status in ((('oncpu', '-a', '-t', '1h', '-o', 'a.svg'), 1), (('diff', f'{tmp}/in', f'{tmp}/in', '-o', 'a.svg'), 1),
                         (('oncpu', '-F', '999', '-o', '../a.svg', '--', *copy), 0)):
        with open(f'{tmp}/in', 'w', encoding='ascii') as text:
            text.write('a;b 1\n')
        sentence = status and "cannot write 'a.svg': the current directory was deleted"
        expect(status, sentence or '', *args, preexec_fn=lambda: (os.mkdir(path), os.chdir(path), os.rmdir(path)))
    # The parent of one that was deleted is there.
    assert os.path.exists(f'{tmp}/a.svg')


def test_memory_limit(tmp):
    """A cgroup that is too small for the whole machine is named before the kernel kills a run in it."""
    places = (('/sys/fs/cgroup/memory', 'memory.limit_in_bytes'), ('/sys/fs/cgroup', 'memory.max'))
    place, name = next(((p, n) for p, n in places if os.path.exists(f'{p}/{n}')), places[1])
    group = f'{place}/stackbpf-{os.getpid()}'
    os.mkdir(group)
    try:
        if not os.path.exists(f'{group}/{name}'):
            return
        with open(f'{group}/{name}', 'w', encoding='ascii') as limit:
            limit.write(str(100 << 20))
        line = f'echo $$ >{group}/cgroup.procs; exec "$0" oncpu -a -t 0.1 -o {tmp}/a.folded'
        said = subprocess.run(['sh', '-c', line, STACKBPF], stderr=subprocess.PIPE, text=True, check=False).stderr
        needed = re.search('this cgroup may use 100 MiB of memory, and sampling the whole machine needs about ([0-9]+) MiB, so', said)
        nr_cpus = os.sysconf('SC_NPROCESSORS_CONF')
        assert needed and int(needed[1]) == 106 + 3 * min(nr_cpus, 32) + max(nr_cpus - 32, 0), said
    finally:
        os.rmdir(group)


def test_file_limit(tmp):
    """A result larger than a file may be is an error like others."""
    with open(f'{tmp}/in', 'w', encoding='ascii') as text:
        text.writelines(f'a{i};b 1\n' for i in range(3000))
    expect(1, "cannot write '" + tmp + "/a.folded': File too large; raise the limit: ulimit -f", 'diff', f'{tmp}/in', f'{tmp}/in',
           '-o', f'{tmp}/a.folded', preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))


def test_owner(tmp):
    env = {**os.environ, 'SUDO_UID': '65534', 'SUDO_GID': '65534'}
    path = f'{tmp}/a.folded'
    os.chown(tmp, 65534, 65534)
    with spinner() as spin:
        expect(0, '', 'oncpu', '-p', str(spin.pid), '-t', '0.3', '-F', '999', '-o', path, env=env)
    assert (os.stat(path).st_uid, os.stat(path).st_gid) == (65534, 65534)
    assert stat.S_IMODE(os.stat(path).st_mode) & 0o111 == 0
    done = expect(0, '', 'oncpu', '-F', '999', '-q', '-o', path, '--', 'sh', '-c',
                  f'id -u; echo $HOME; {COUNT}', env=env)
    assert done.stdout == '65534\n/nonexistent\n', done.stdout


def test_signals_end(tmp):
    for sig in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        path = f'{tmp}/{sig.name}.folded'
        with spinner() as spin, background('oncpu', '-p', str(spin.pid), '-F', '999', '-o',
                                           path) as proc:
            await_samples(proc, path)
            os.unlink(path)
            proc.send_signal(sig)
            _, err = proc.communicate(timeout=DEADLINE)
            assert proc.returncode == 0, (proc.returncode, err)
            with open(path, encoding='utf-8') as result:
                assert stacks(result.read())


def test_hung_up(tmp):
    """A terminal that is closed, as when ssh loses its connection, ends a run, which writes its result. The shell, whose
    session that is, and the kernel both send SIGHUP, so a second one is no reason to discard anything."""
    path = f'{tmp}/a.folded'
    with spinner() as spin:
        command = shlex.join([STACKBPF, 'oncpu', '-p', str(spin.pid), '-F', '999', '-o', path])
        pid, terminal = pty.fork()
        if not pid:
            os.execvp('sh', ['sh', '-c', f'{command} & echo $! >{tmp}/pid; wait; true'])
        wait_for(lambda: os.path.exists(f'{tmp}/pid') and os.path.getsize(f'{tmp}/pid'), 'the shell')
        with open(f'{tmp}/pid', encoding='ascii') as text:
            sampler = int(text.read())
        await_samples(types.SimpleNamespace(pid=sampler, send_signal=lambda number: os.kill(sampler, number)), path)
        os.unlink(path)
        os.close(terminal)
        with contextlib.suppress(ProcessLookupError):
            os.kill(sampler, signal.SIGHUP)
        os.waitpid(pid, 0)
        wait_for(lambda: not os.path.exists(f'/proc/{sampler}'), 'the end')
        with open(path, encoding='utf-8') as result:
            assert stacks(result.read())


def test_hang_up_ignored(tmp):
    """Under nohup, the run outlives the terminal."""
    path = f'{tmp}/a.folded'
    with spinner() as spin, background('oncpu', '-p', str(spin.pid), '-F', '999', '-o', path,
                                       preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as proc:
        await_samples(proc, path)
        proc.send_signal(signal.SIGHUP)
        os.unlink(path)
        await_samples(proc, path)
        assert proc.poll() is None
        proc.send_signal(signal.SIGTERM)
        assert proc.wait(DEADLINE) == 0


def test_snapshot_on_stdout(tmp):
    path = f'{tmp}/out'
    with open(path, 'w', encoding='ascii') as out, spinner() as spin, \
            background('oncpu', '-p', str(spin.pid), '-F', '999', stdout=out) as proc:
        await_samples(proc, path)
        assert proc.poll() is None
        proc.send_signal(signal.SIGINT)
        assert proc.wait(DEADLINE) == 0
    with open(path, encoding='ascii') as result:
        headers = [line for line in result if line.startswith('#')]
    counts = [int(line.split(';n=')[1].split(';')[0]) for line in headers]
    assert len(counts) >= 2 and counts == sorted(counts), counts


def test_snapshot_without_samples(tmp):
    """A picture needs samples: that is said, and not that a file cannot be written."""
    with subprocess.Popen(['sleep', '1000']) as idle, \
            background('oncpu', '-p', str(idle.pid), '-o', f'{tmp}/no.svg') as proc:
        wait_for(lambda: takes_signals(proc.pid), 'the start of sampling')
        proc.send_signal(signal.SIGUSR1)
        said = proc.stderr.readline() + proc.stderr.readline()
        idle.kill()
        proc.stderr.read()
    assert "no.svg': its format needs samples" in said and 'no samples yet' in said, said
    assert not os.path.exists(f'{tmp}/no.svg')


def test_given_up(tmp):
    """The second Ctrl-C, while nobody reads the result."""
    path = f'{tmp}/a.folded'
    with spinner() as spin, background('oncpu', '-p', str(spin.pid), '-F', '999', '-q', '-o',
                                       path) as proc:
        await_samples(proc, path)
        os.unlink(path)
        os.mkfifo(path)
        proc.send_signal(signal.SIGINT)
        wait_for(lambda: has_taken(proc.pid), 'the end of sampling')
        proc.send_signal(signal.SIGINT)
        _, err = proc.communicate(timeout=DEADLINE)
        assert proc.returncode == 128 + signal.SIGINT, (proc.returncode, err)
        assert err == 'stackbpf: aborted; the result was discarded\n', err
    assert os.listdir(tmp) == ['a.folded']


def test_given_up_between_files(tmp):
    """The second Ctrl-C, when the first of two files is written, and nobody reads the other one."""
    path, fifo = f'{tmp}/a.folded', f'{tmp}/b.folded'
    with spinner() as spin, background('oncpu', '-p', str(spin.pid), '-F', '999', '-q', '-o', path, '-o', fifo) as proc:
        await_samples(proc, fifo)
        os.unlink(path)
        os.unlink(fifo)
        os.mkfifo(fifo)
        proc.send_signal(signal.SIGINT)
        wait_for(lambda: os.path.exists(path), 'the first file')
        proc.send_signal(signal.SIGINT)
        _, err = proc.communicate(timeout=DEADLINE)
        assert proc.returncode == 128 + signal.SIGINT, (proc.returncode, err)
        assert err == 'stackbpf: aborted; a part of the result may be missing\n', err


def test_interrupted_after_result(tmp):
    """A second Ctrl-C discards nothing of a result that is written. It comes while the report waits for its reader."""
    path = f'{tmp}/a.folded'
    read_end, write_end = os.pipe()
    with open(read_end, 'rb') as reader, \
            background('oncpu', '-F', '999', '-o', path, '--', 'sh', '-c', f'echo; {COUNT}; read x', stdin=subprocess.PIPE,
                       stderr=write_end) as proc:
        # What it says before the command runs is not what it is to wait for.
        assert proc.stdout.readline() == '\n'
        os.set_blocking(write_end, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(write_end, b'.' * 4096):
                pass
        os.set_blocking(write_end, True)
        os.close(write_end)
        proc.stdin.close()

        def waits_for_reader():
            with open(f'/proc/{proc.pid}/wchan', encoding='ascii') as function:
                return 'pipe_write' in function.read()
        wait_for(waits_for_reader, 'the report')
        proc.send_signal(signal.SIGINT)
        wait_for(lambda: not has_signal(proc.pid, 'ShdPnd', signal.SIGINT), 'the signal')
        said = reader.read().decode()
        assert proc.wait(DEADLINE) == 128 + signal.SIGINT, said
    assert os.path.exists(path) and said.endswith('.stackbpf: aborted after the result was written\n'), said


def interrupt_snapshot(proc, path, sig):
    """The signal comes while a snapshot waits for a reader. Return: what was written then."""
    await_samples(proc, path)
    os.unlink(path)
    os.mkfifo(path)
    proc.send_signal(signal.SIGUSR1)
    wait_for(lambda: not has_signal(proc.pid, 'SigBlk', signal.SIGINT), 'the snapshot')
    proc.send_signal(sig)
    # The signal may also come before the snapshot is stuck: read whatever is written.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 'rb', buffering=0) as reader:
        text = b''

        def has_ended():
            nonlocal text
            text += reader.read(65536) or b''
            return proc.poll() is not None
        wait_for(has_ended, 'the end')
        return text + (reader.read() or b'')


def test_snapshot_interrupted(tmp):
    """A snapshot that nobody reads does not keep Ctrl-C from working."""
    path = f'{tmp}/a.folded'
    with spinner() as spin, background('oncpu', '-p', str(spin.pid), '-F', '999', '-q', '-o',
                                       path) as proc:
        text = interrupt_snapshot(proc, path, signal.SIGINT)
        assert proc.returncode == 0 and stacks(text.decode()), (proc.returncode, text)


def test_snapshot_interrupted_with_command(tmp):
    """A signal that comes during a snapshot is passed on like any other."""
    path = f'{tmp}/a.folded'
    line = f'trap "exit 6" TERM; {SPIN}'
    with background('oncpu', '-F', '999', '-q', '-o', path, '--', 'sh', '-c', line) as proc:
        interrupt_snapshot(proc, path, signal.SIGTERM)
        assert proc.returncode == 6, proc.returncode


def stat_fields(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as text:
        return text.read().rsplit(')', 1)[1].split()


def state_of(pid):
    return stat_fields(pid)[0]


def test_priority(tmp):
    """On a busy machine, a run does not wait for a CPU as long as others do. Its command does, and whoever was told to."""
    for prefix, nice in ((), '-10'), (('nice', '-n', '5'), '5'):
        command = f'ps -o ni= -p $PPID >{tmp}/ours; nice >{tmp}/its; exec sleep 1'
        result = subprocess.run([*prefix, STACKBPF, 'offcpu', '--', 'sh', '-c', command], capture_output=True, text=True, check=False)
        with open(f'{tmp}/ours', encoding='ascii') as ours, open(f'{tmp}/its', encoding='ascii') as its:
            said = (ours.read().strip(), its.read().strip())
        assert said == (nice, nice if prefix else '0'), (said, result.stderr)


def test_targets_end(tmp):
    path = f'{tmp}/a.folded'
    with spinner() as spin, background('oncpu', '-p', str(spin.pid), '-F', '999', '-o',
                                       path) as proc:
        await_samples(proc, path)
        spin.kill()
        spin.wait()
        _, err = proc.communicate(timeout=DEADLINE)
        assert proc.returncode == 0, (proc.returncode, err)


def test_command_status(tmp):
    path = f'{tmp}/a.folded'
    args = ('oncpu', '-F', '999', '-o', path, '--')
    expect(7, '', *args, 'sh', '-c', 'exit 7')
    expect(7, ' samples, ', *args, 'sh', '-c', f'{COUNT}; exit 7')
    expect(128 + 9, ' samples, ', *args, 'sh', '-c', f'{COUNT}; kill -9 $$')
    expect(0, ' samples, ', *args, 'sh', '-c', COUNT)
    expect(3, "'true' used too little CPU", 'oncpu', '-F', '1', '-o', path, '--', 'true')
    expect(127, "cannot run 'no-such-command'", *args, 'no-such-command')
    expect(126, "cannot run '/etc/passwd'", *args, '/etc/passwd')
    expect(5, '', 'oncpu', '-F', '999', '-c', f'({COUNT}); exit 5', '-o', path)
    # Ours counts when ours went wrong.
    expect(1, 'No space left', 'oncpu', '-F', '999', '-o', '/dev/full', '--format', 'folded', '--',
           'sh', '-c', f'{COUNT}; exit 7')


def test_command_streams(tmp):
    done = run('oncpu', '-F', '999', '--', 'sh', '-c', f'cat; {COUNT}; echo said',
               input='given\n')
    lines = done.stdout.splitlines()
    assert lines[:2] == ['given', 'said'] and lines[2].startswith('#stackbpf;'), done
    assert os.listdir(tmp) == []


def test_subprocesses(_):
    line = ('sh', '-c', 'python3 -c "for i in range(5000000): pass"; exit 3')
    with_s = run('oncpu', '-F', '999', '-s', '--', *line)
    without = run('oncpu', '-F', '999', '--', *line)
    shell = run('oncpu', '-F', '999', '-c', line[2])
    assert 'python3;' in with_s.stdout and 'python3;' in shell.stdout, (with_s, shell)
    assert 'python3;' not in without.stdout, without
    assert (with_s.returncode, without.returncode, shell.returncode) == (3, 3, 3)


def test_command_outlives(tmp):
    """The time is over first: the result is there, and the status comes later."""
    path = f'{tmp}/a.folded'
    with background('oncpu', '-F', '999', '-t', '2', '-o', path, '--', 'sh', '-c',
                    f'{COUNT}; read x; exit $x', stdin=subprocess.PIPE) as proc:
        wait_for(lambda: os.path.exists(path), 'the result')
        assert proc.poll() is None
        proc.stdin.write('9\n')
        proc.stdin.close()
        assert proc.wait(DEADLINE) == 9


def test_command_left_alone(tmp):
    """A command that will not end is waited for, until the second Ctrl-C."""
    path, pid_path = f'{tmp}/a.folded', f'{tmp}/pid'
    line = f'trap "" INT; echo $$ > {pid_path}; {SPIN}'
    with background('oncpu', '-F', '999', '-o', path, '--', 'sh', '-c', line) as proc:
        await_samples(proc, path)
        with open(pid_path, encoding='ascii') as text:
            pid = int(text.read())
        os.unlink(path)
        proc.send_signal(signal.SIGINT)
        wait_for(lambda: os.path.exists(path), 'the result')
        wait_for(lambda: takes_signals(proc.pid), 'the wait for the command')
        proc.send_signal(signal.SIGINT)
        assert proc.wait(DEADLINE) == 128 + signal.SIGINT
        assert state_of(pid) == 'R'
        os.kill(pid, signal.SIGKILL)


def test_signal_passed_on(tmp):
    path = f'{tmp}/a.folded'
    line = f'trap "exit 6" TERM; {SPIN}'
    with background('oncpu', '-F', '999', '-o', path, '--', 'sh', '-c', line) as proc:
        await_samples(proc, path)
        proc.send_signal(signal.SIGTERM)
        _, err = proc.communicate(timeout=DEADLINE)
        assert proc.returncode == 6, (proc.returncode, err)


def on_terminal(*args, columns=80, term='xterm'):
    """What stderr shows when it is a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    shown = b''
    with background(*args, stderr=theirs, stdout=subprocess.DEVNULL, env={**os.environ, 'TERM': term}) as proc:
        os.close(theirs)
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # EIO: the last one who had it has closed it
                break
            if not data:
                break
            shown += data
        proc.wait(DEADLINE)
    os.close(ours)
    return shown


def test_progress(_):
    with spinner() as spin:
        args = ('oncpu', '-p', str(spin.pid), '-t', '1.5')
        shown = on_terminal(*args)
        assert re.search(rb'\r\x1b\[Kstackbpf: [0-9]+ s, ', shown), shown
        assert on_terminal(*args, '-q') == b''
        dumb = on_terminal(*args, term='dumb')
        assert b'\x1b' not in dumb and b'% complete' in dumb, dumb
        assert '\x1b' not in run(*args).stderr


def test_closing_report(_):
    """The result in one line, each detail in one of its own, none wider than the terminal."""
    program = 'import time; time.sleep(0.05)\nfor i in range(4000): time.sleep(0.0001); sum(range(500))'
    for columns in (80, 60):
        shown = on_terminal('wall', '--idle', 'drop', '--', 'python3', '-c', program, columns=columns).decode()
        lines = [line.split('\x1b[K')[-1] for line in shown.splitlines()]
        # On a busy machine.
        lines = [line for line in lines if not line.startswith('stackbpf: warning: the cost of stackbpf itself')]
        assert all(len(line) <= columns for line in lines), lines
        report = ' '.join(line.removeprefix('stackbpf:').strip() for line in lines)
        result = r'\d+ samples and waits, \d+ stacks, 1 process in [0-9.]+ s; [0-9.]+ % complete, \d+ lost '
        assert re.match(result, report) and len(re.match(result, report)[0]) < 2 * columns, report
        # Each figure that the one long line had begins a line.
        for detail in (r'[0-9.]+ % of threads x time accounted for', r'python [0-9.]+: [0-9.]+ % of \d+ with its frames',
                       r'own cost [0-9.]+ % of a CPU, plus [0-9.]+ s of CPU time to start up'):
            assert any(re.match('stackbpf:   ' + detail.split(' ', maxsplit=1)[0], line) for line in lines), (detail, lines)
            assert re.search(detail, report), (detail, report)


def test_idle_left_out(_):
    waits = 'import select, time; select.epoll().poll(0.3); time.sleep(0.1)'
    said = expect(0, 'left out: ', 'offcpu', '--idle', 'drop', '--', 'python3', '-c', waits).stderr
    assert re.search(r'left out: [0-9.]+ s of idle waits(?! left out)', said), said


def test_own_cost_of_a_second(_):
    """The first second is start-up, so nothing is left of such a run of which a share could be told."""
    with spinner('exec sleep 60') as sleep:
        said = run('offcpu', '-p', str(sleep.pid), '-t', '1').stderr
    assert float(re.search(r'own cost ([0-9.]+) % of a CPU', said)[1]) < 50, said


def test_doctor_fits(_):
    """Lines of 80 columns where there is no terminal to say otherwise; what does not fit goes on below its column."""
    with spinner() as spin:
        shown = run('doctor', '-p', str(spin.pid)).stdout.splitlines()
    assert max(map(len, shown)) <= 80, [line for line in shown if len(line) > 80]
    assert sum(re.match(' {30}[^ ]', line) is not None for line in shown) > 2, shown


def main():
    need_root()
    failed = 0
    for name, test in sorted(globals().items()):
        if not name.startswith('test_'):
            continue
        with tempfile.TemporaryDirectory() as tmp:
            os.chmod(tmp, 0o755)
            try:
                test(tmp)
                print(f'ok {name}')
            except Exception:  # whatever it is, the other tests still run
                failed += 1
                print(f'FAILED {name}')
                traceback.print_exc(file=sys.stdout)
    sys.exit(1 if failed else 0)


main()
