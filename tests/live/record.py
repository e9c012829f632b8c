#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record: what is in the store is what ran; nothing that was written is lost, whatever happens to whom.

record.py STACKBPF SPLIT UNIT [--all] [PART...]
"""
import contextlib
import math
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from live import Result, check, done, need_root, ran_seconds, run_parts, running, wait_for

need_root()
ALL = '--all' in sys.argv
BINARY, SPLIT, UNIT, *CHOSEN = (arg for arg in sys.argv[1:] if arg != '--all')
TRUTH = {'seventy': 0.70, 'twenty': 0.20, 'ten': 0.10}


class Recorder:
    """A run of stackbpf record, from the moment it says that it records."""

    def __init__(self, store, *args, binary=BINARY, prefix=(), **kwargs):
        self.store, self.said = store, ''
        self.process = subprocess.Popen([*prefix, binary, 'record', '--store', store, '--max-overhead=off', *args],
                                        stderr=subprocess.PIPE, text=True, errors='replace', **kwargs)
        os.set_blocking(self.process.stderr.fileno(), False)
        self.wait_for('recording to')

    def read(self):
        with contextlib.suppress(TypeError):
            self.said += self.process.stderr.read() or ''
        return self.said

    def wait_for(self, text, seconds=60):
        wait_for(lambda: text in self.read() or self.process.poll() is not None, text, seconds)
        assert text in self.read(), f'never said: {text}\n{self.said}'

    def samplers(self, prefix='stackbpf-'):
        """{name: pid} of the processes right below."""
        found = {}
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='ascii') as file:
            for pid in file.read().split():
                with contextlib.suppress(OSError), open(f'/proc/{pid}/comm', encoding='ascii') as comm:
                    found[comm.read().strip()] = int(pid)
        return {name: pid for name, pid in found.items() if name.startswith(prefix)}

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.wait()

    def wait(self):
        status = self.process.wait(timeout=60)
        self.read()
        self.process.stderr.close()
        return status


@contextlib.contextmanager
def recording(store, *args, **kwargs):
    recorder = Recorder(store, *args, **kwargs)
    try:
        yield recorder
    finally:
        if recorder.process.poll() is None:
            recorder.process.kill()
            recorder.process.wait()


def ask(store, by, *rules, kind='oncpu'):
    tags = [word for rule in rules for word in ('--tag', rule)]
    done_ = subprocess.run([BINARY, 'query', '--store', store, '--from', '-1d', '--to', 'now+1h', '--kind', kind,
                            '--by', by, '--format', 'folded', *tags],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='replace', check=False)
    return Result(done_.returncode, done_.stdout, done_.stderr)


def bytes_of(store):
    return sum(os.path.getsize(os.path.join(top, name)) for top, _, names in os.walk(store) for name in names)


def written(recorder):
    """What was sampled up to now is in the store."""
    before = bytes_of(recorder.store)
    recorder.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: bytes_of(recorder.store) > before, 'a block is written')


def gone(pids):
    def is_gone(pid):
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as file:
                return file.read().rsplit(')', 1)[1].split()[0] in 'ZX'
        except OSError:
            return True
    return all(is_gone(pid) for pid in pids)


def below(pid):
    """All processes that come from @pid, itself included."""
    found, at = [pid], 0
    while at < len(found):
        with contextlib.suppress(OSError):
            for tid in os.listdir(f'/proc/{found[at]}/task'):
                with open(f'/proc/{found[at]}/task/{tid}/children', encoding='ascii') as file:
                    found += [int(child) for child in file.read().split()]
        at += 1
    return found


def check_split(result, of):
    total = sum(weight for stack, weight in result.stacks.items() if stack[0] == of)
    check(total > 150, f'{of}: {total} samples')
    for name, want in TRUTH.items():
        have, chance = result.share(name, of), 4.4 * math.sqrt(want * (1 - want) / max(total, 1))
        check(abs(have - want) <= max(0.02, chance), f'{of}: {name}: {100 * have:.1f} % of {100 * want:.0f} %')


def shares_and_tags():
    """Two programs of known shares; one says what service it is, one says so among other things."""
    name = dict(os.environ, OTEL_SERVICE_NAME='shop')
    attributes = dict(os.environ, OTEL_RESOURCE_ATTRIBUTES='a=b,service.name=bank,c=d')
    attributes.pop('OTEL_SERVICE_NAME', None)
    with tempfile.TemporaryDirectory() as work, running(SPLIT, env=name) as shop, \
            running(SPLIT, env=attributes) as bank:
        store = f'{work}/store'
        with recording(store, '-p', f'{shop.pid},{bank.pid}', '-F', '499', '--kinds', 'oncpu,offcpu', '--tag', 'region=eu', '--tids') as recorder:
            second = subprocess.run([BINARY, 'record', '--store', store], stderr=subprocess.PIPE, text=True, check=False)
            check(second.returncode == 1 and second.stderr.count('\n') == 1 and 'somebody else' in second.stderr,
                  f'a second one is refused in one sentence: {second.stderr.strip()}')
            wait_for(lambda: min(ran_seconds(p.pid) for p in (shop, bank)) > 2.5, 'enough samples', 60)
            written(recorder)
            status = recorder.end()
        check(status == 0, f'SIGTERM is an end like others: {status}')
        result = ask(store, 'service')
        check_split(result, 'shop')
        check_split(result, 'bank')
        said = int(re.search(r'oncpu: (\d+) samples', recorder.said)[1])
        check(result.total == said, f'all that was sampled is in the store: {result.total} of {said}')
        host = ask(store, 'host,region,comm,pid', f'pid={shop.pid},{bank.pid}')
        check({s[:4] for s in host.stacks} == {(socket.gethostname(), 'eu', 'split', str(p.pid)) for p in (shop, bank)},
              f'host, a tag of ours, comm, pid: {sorted({s[:4] for s in host.stacks})}')
        tid = ask(store, 'tid', f'pid={shop.pid}')
        check({s[0] for s in tid.stacks} == {str(shop.pid)}, 'a thread')
        waits = ask(store, 'service', kind='offcpu')
        check(waits.total > 0 and waits.facts.get('unit') == 'us', f'waits in a kind of their own: {waits.facts}')
        check(not any(s[0] == 'split' for s in ask(store, 'kind').stacks), 'kinds are apart')


def waits_are_split():
    """A thread that sleeps all the time has in each block what passed in it, and in all together what passed."""
    with tempfile.TemporaryDirectory() as work, running('sleep', '1000') as sleeper:
        store = f'{work}/store'
        with recording(store, '--kinds', 'offcpu', '-p', str(sleeper.pid)) as recorder:
            written(recorder)
            begin = time.monotonic()
            written(recorder)
            end = time.monotonic()
            written(recorder)
            have = ask(store, 'comm', kind='offcpu').total / 1e6
            check(have >= end - begin, f'before it has ended: slept {have:.3f} s of at least {end - begin:.3f}')
            recorder.end()
        result = ask(store, 'comm', kind='offcpu')
        seconds = float(re.search(r'in ([\d.]+) s', recorder.said)[1])
        check(abs(result.total / 1e6 - seconds) <= 0.06, f'slept {result.total / 1e6:.3f} of {seconds} s')


@contextlib.contextmanager
def small_disk():
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', work], check=True)
        try:
            yield work
        finally:
            subprocess.run(['umount', '-l', work], check=True)


def disk_full():
    """What is sampled while the disk is full is written when it is not."""
    with small_disk() as work, running(SPLIT) as split:
        store = f'{work}/store'
        with recording(store, '-p', str(split.pid), '-F', '999') as recorder:
            written(recorder)
            with contextlib.suppress(OSError), open(f'{work}/filler', 'wb', buffering=0) as file:
                while True:
                    file.write(b'x' * 4096)
            # What is small has room behind what is there.
            def is_full():
                recorder.process.send_signal(signal.SIGUSR1)
                return 'No space left on device' in recorder.read()
            wait_for(is_full, 'the disk is full')
            before = ask(store, 'comm').total
            check(before > 0, f'what was written can be read: {before} samples')
            os.unlink(f'{work}/filler')
            recorder.process.send_signal(signal.SIGUSR1)
            recorder.wait_for('can be written again; 0 blocks')
            status = recorder.end()
        check(recorder.said.count('cannot write') == 1, 'it is said once')
        check(status == 0, f'exit status {status}')
        said = int(re.search(r'oncpu: (\d+) samples', recorder.said)[1])
        have = ask(store, 'comm').total
        check(have == said, f'nothing is lost: {have} of {said}')


def kill_one(store, victim, pid, rng):
    """Kill one of the processes, and see what becomes of the others. Return: what was in the store before."""
    with recording(store, '-p', str(pid), '-F', '999') as recorder:
        ran = ran_seconds(pid)
        wait_for(lambda: ran_seconds(pid) > ran + 0.1, 'it runs')
        written(recorder)
        before = ask(store, 'comm').total
        check(before > 0, f'{before} samples')
        ran = ran_seconds(pid)
        time.sleep(rng.random() * 0.2)  # at any moment
        ran = ran_seconds(pid) - ran
        everybody = below(recorder.process.pid)
        if victim == 'main':
            recorder.process.kill()
        else:
            os.kill(recorder.samplers()[victim], signal.SIGKILL)
        if victim == 'stackbpf-oncpu':
            recorder.wait_for('it is started again')
            wait_for(lambda: victim in recorder.samplers(), 'a new one')
            recorder.end()
        else:
            status = recorder.wait()
            check(status != 0, f'{victim} was killed: status {status}')
        wait_for(lambda: gone(everybody), 'all have ended')
        if victim == 'stackbpf-store':
            check('all ends' in recorder.said, 'it is said why')
    result = ask(store, 'comm')
    check(result.status == 0 and result.total >= before and 'damaged' not in result.err,
          f'{victim} was killed: {result.total} samples, {before} before')
    if victim == 'main' and ran > 0.05:
        check(result.total > before, 'what was being sampled was written')


def kills():
    rng = random.Random(7)
    victims = ['main', 'stackbpf-store', 'stackbpf-oncpu']
    with tempfile.TemporaryDirectory() as work, running(SPLIT) as split:
        for i in range(200 if ALL else 3):
            kill_one(f'{work}/store', victims[i % 3], split.pid, rng)


@contextlib.contextmanager
def cgroup_of(name):
    """A cgroup of version 2, wherever the machine has these: (how to begin a command that sees them, the path)."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(['mount', '-t', 'cgroup2', 'cgroup2', work], check=True)
        os.mkdir(f'{work}/{name}')
        try:
            yield (('unshare', '-m', 'sh', '-c', 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"', 'sh'),
                   f'{work}/{name}')
        finally:
            wait_for(lambda: not os.path.getsize(f'{work}/{name}/cgroup.procs') and can_remove(f'{work}/{name}'),
                     'the cgroup is empty')
            subprocess.run(['umount', work], check=True)


def can_remove(path):
    with contextlib.suppress(OSError):
        os.rmdir(path)
        return True
    return False


def cgroups():
    """Names of cgroups: by their number, and as tags."""
    with tempfile.TemporaryDirectory() as work, cgroup_of('shop.service') as (seeing, path):
        with running('sh', '-c', f'echo $$ >{path}/cgroup.procs; exec "$@"', 'sh', SPLIT) as split:
            folded = subprocess.run([*seeing, BINARY, 'oncpu', '-p', str(split.pid), '-t', '1', '--by', 'cgroup', '-q'],
                                    stdout=subprocess.PIPE, text=True, check=False).stdout
            roots = {line.split(';')[0] for line in folded.splitlines() if line[0] != '#'}
            check(roots == {'/shop.service'}, f'by its number: {roots}')
            with recording(f'{work}/store', '-p', str(split.pid), '-F', '999') as recorder:
                before = ran_seconds(split.pid)
                wait_for(lambda: ran_seconds(split.pid) > before + 0.5, 'it runs')
                recorder.end()
            tags = {s[:3] for s in ask(f'{work}/store', 'cgroup,unit,service').stacks}
            check(tags == {('/shop.service', 'shop.service', 'shop.service')}, f'tags: {tags}')


def as_service():
    """What systemd says to the unit; and a run with the user and the capabilities that it gives."""
    with tempfile.TemporaryDirectory() as work, running(SPLIT) as split:
        unit = f'{work}/stackbpf-record.service'
        with open(UNIT, encoding='utf-8') as source, open(unit, 'w', encoding='utf-8') as copy:
            text = source.read().replace('@bindir@', os.path.dirname(os.path.abspath(BINARY)))
            copy.write(text)
        if shutil.which('systemd-analyze'):
            for words in (['security', '--offline=yes', '--threshold=30'], ['verify', '--man=no']):
                out = subprocess.run(['systemd-analyze', *words, unit], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     text=True, check=False)
                lines = [line for line in out.stdout.splitlines() if 'stackbpf' in line]
                check(out.returncode == 0 and (words[0] == 'security' or not lines), f'{words[0]}: {lines}')
        caps = re.search(r'^AmbientCapabilities=(.*)', text, re.M)[1].lower().replace('cap_', '').split()
        listed = '-all,' + ','.join(f'+{cap}' for cap in caps)
        os.chmod(work, 0o755)
        os.mkdir(f'{work}/store')
        os.chown(f'{work}/store', 65534, 65534)
        binary = shutil.copy(BINARY, work)
        with recording(f'{work}/store', '-p', str(split.pid), '-F', '499', binary=binary, prefix=(
                'setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', f'--inh-caps={listed}',
                f'--ambient-caps={listed}', f'--bounding-set={listed}', '--no-new-privs')) as recorder:
            ran = ran_seconds(split.pid)
            wait_for(lambda: ran_seconds(split.pid) > ran + 1, 'it runs')
            check(recorder.end() == 0, 'it ends as it should')
        check_split(ask(f'{work}/store', 'comm'), 'split')


def said_to_manager():
    """sd_notify(3)."""
    with tempfile.TemporaryDirectory() as work, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f'{work}/notify')
        manager.settimeout(60)
        with recording(f'{work}/store', env=dict(os.environ, NOTIFY_SOCKET=f'{work}/notify')) as recorder:
            check(b'READY=1' in manager.recv(4096), 'it says that it is ready')
            recorder.end(signal.SIGHUP)
            check(manager.recv(4096) == b'STOPPING=1', 'and that it ends')


run_parts((shares_and_tags, waits_are_split, disk_full, kills, cgroups, as_service, said_to_manager), CHOSEN)
done()
