#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record: what is in the store is what ran; nothing that was written is lost, whatever happens to whom.

record.py STACKBPF SPLIT UNIT [--all] [PART...]
"""
import collections
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

from live import allow_rate, check, done, need_root, ran_seconds, run_parts, running, wait_for
from recorder import ask, below, gone, recording, written

need_root()
ALL = '--all' in sys.argv
BINARY, SPLIT, UNIT, *CHOSEN = (arg for arg in sys.argv[1:] if arg != '--all')
TRUTH = {'seventy': 0.70, 'twenty': 0.20, 'ten': 0.10}


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
            check(second.returncode == 1 and second.stderr.count('\n') == 1 and 'another process records' in second.stderr,
                  f'a second one is refused in one sentence: {second.stderr.strip()}')
            wait_for(lambda: min(ran_seconds(p.pid) for p in (shop, bank)) > 2.5, 'enough samples')
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


def ends_while_stopped():
    """The time of -t is over, and then a block, while the sampler stands still: its block is as long as it sampled."""
    with tempfile.TemporaryDirectory() as work, running(SPLIT) as split:
        store = f'{work}/store'
        with recording(store, '-p', str(split.pid), '-t', '2') as recorder:
            with stopped(recorder.samplers()['stackbpf-sample']):
                end = max(time.time() + 3, time.time() // 10 * 10 + 11)
                wait_for(lambda: time.time() > end, 'the block is over')
            check(recorder.wait() == 0, f'it ends: {recorder.said}')
        result = ask(store, 'comm')
        seconds = int(result.facts['dur_us']) / 1e6
        check(1 < seconds <= 2.01, f'2 s were sampled: {seconds}')


def query_at_once():
    """What was recorded within the last second is found, right before and right after the begin of a block: by default, and if
    the range begins in that second."""
    with tempfile.TemporaryDirectory() as work, running(SPLIT) as split:
        for offset in (9.5, 0.05):
            store = f'{work}/{offset}'
            time.sleep((offset - time.time()) % 10)
            begin = int(time.time())
            done_ = subprocess.run([BINARY, 'record', '--store', store, '-p', str(split.pid), '-F', '999', '-t', '0.2'],
                                   stderr=subprocess.PIPE, text=True, check=False)
            for args in ((), ('--from', str(begin))):
                found = subprocess.run([BINARY, 'query', '--store', store, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       text=True, check=False)
                check(found.returncode == 0, f'{offset} s into a block, {args}: {done_.stderr} {found.stderr}')


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
        check(' 1 process in ' in recorder.said, f'a process is counted once, however many blocks it is in: {recorder.said}')
        result = ask(store, 'comm', kind='offcpu')
        seconds = float(re.search(r'in ([\d.]+) s', recorder.said)[1])
        check(abs(result.total / 1e6 - seconds) <= 0.06, f'slept {result.total / 1e6:.3f} of {seconds} s')
        sampled = int(result.facts['dur_us']) / 1e6
        check(abs(result.total / 1e6 - sampled) <= 0.02, f'in {sampled} s of all blocks')


# It works when it is told to, and says what it did: seconds of CPU time in one function, of waiting in the second,
# bytes read by the third; seconds of CPU time in which a timer of that period (its second argument) can have skipped
# ticks; and those that it used outside of the first function. A timer skips what falls in a moment with interrupts
# disabled, or in which the host does not run the CPU, or in a tick that takes longer than its period. In an emulated
# machine such moments are long, and most come with a switch of threads, where the view cannot see them.
DAY = '''
import os, sys, time
period = float(sys.argv[2])
def burn():
    at = begin = time.thread_time()
    missed = 0
    while at < begin + 0.02:
        sum(range(1000))
        before, at = at, time.thread_time()
        missed += (at - before) // period * period
    return missed
def nap():
    time.sleep(0.01)
def take(fd):
    return len(os.pread(fd, 5000, 0))
def of(clock, function, *args):
    begin = clock()
    done = function(*args)
    return done, clock() - begin
fd = os.open(sys.argv[1], os.O_RDONLY)
missed = burnt = napped = taken = 0
print('ready', flush=True)
sys.stdin.readline()
for _ in range(100):
    missed, burnt = (a + b for a, b in zip((missed, burnt), of(time.thread_time, burn)))
    napped += of(lambda: time.monotonic() - time.thread_time(), nap)[1]
    taken += take(fd)
print(burnt, napped, taken, missed, time.thread_time() - burnt, flush=True)
sys.stdin.readline()
'''

def weight_of(result, function):
    return sum(weight for stack, weight in result.stacks.items() if function in stack)


def kinds_at_once():
    """One sampler for three kinds: each has its own truth, and its own kernel frames."""
    hz, kinds = 499, ('oncpu', 'offcpu', 'io')
    with tempfile.TemporaryDirectory() as work:
        with open(f'{work}/read', 'wb') as file:
            file.write(b'x' * 5000)
        with subprocess.Popen([sys.executable, '-c', DAY, f'{work}/read', str(1 / hz)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            assert process.stdout.readline() == 'ready\n'
            with recording(f'{work}/store', '-p', str(process.pid), '-F', str(hz), '--kinds', ','.join(kinds)) as recorder:
                samplers = recorder.samplers('stackbpf-sample')
                print('go', file=process.stdin, flush=True)
                burnt, napped, taken, missed, outside = (float(word) for word in process.stdout.readline().split())
                check(recorder.end() == 0, 'it ends as it should')
                lasted = float(re.search(r'in ([\d.]+) s', recorder.said)[1])
        check(len(samplers) == 1, f'one process samples: {samplers}')
        oncpu, offcpu, io = (ask(f'{work}/store', 'comm', kind=kind) for kind in kinds)
        have = weight_of(oncpu, 'burn') / hz
        chance = 0.02 * burnt + 4.4 * math.sqrt(max(burnt * hz, 1)) / hz
        check(burnt - missed - chance <= have <= burnt + chance, f'burnt {have:.3f} s of {burnt:.3f}, {missed:.3f} missed')
        # A part of them is told, and no more than there were.
        skipped = re.search(r'timers skipped at least ([\d.]+) %', recorder.said)
        said = oncpu.total / hz / (100 / float(skipped[1]) - 1) if skipped else 0
        check(said <= missed + chance, f'{said:.3f} s of them told')
        have = weight_of(offcpu, 'nap') / 1e6
        check(abs(have - napped) <= 0.03 * napped, f'napped {have:.3f} s of {napped:.3f}')
        have = weight_of(io, 'take')
        check(have == taken, f'read {have} bytes of {taken:.0f}')
        whole = offcpu.total / 1e6 + oncpu.total / hz
        check(0.9 * lasted - missed - outside <= whole <= 1.1 * lasted, f'{whole:.3f} s on and off CPUs, of {lasted}')
        check(oncpu.total < 3 * burnt * hz, f'samples of the clock only: {oncpu.total}')
        check(not weight_of(offcpu, '__schedule'), 'frames of the scheduler are cut off waits')
        for kind in kinds:
            check(len(re.findall(f' {kind}: ', recorder.said)) == 1, f'the closing line of {kind}')
        with recording(f'{work}/both', '-p', str(os.getpid()), '--kinds', 'offcpu,wall,oncpu') as recorder:
            wait_for(lambda: len(below(recorder.process.pid)) > 3, 'two samplers and the writer')
            recorder.end()
        # The first lines of closing reports; their rows begin with spaces.
        heads = re.findall(r'^stackbpf: (\S+: (?:offcpu: |oncpu: )?)\d', recorder.said, re.M)
        check(sorted(heads) == ['offcpu,oncpu: offcpu: ', 'offcpu,oncpu: oncpu: ', 'wall: '],
              f'views that look at the same places have a sampler each: {recorder.said}')


# A tick takes longer than the period of a fast timer, which then skips the next one.
DEEP = '''
def descend(nr):
    if nr:
        return descend(nr - 1)
    while True:
        sum(range(1000))
descend(60)
'''


def skipped_ticks():
    """Those that the timer skipped are told of the timer's kind, and of no other."""
    allow_rate(100000)
    with tempfile.TemporaryDirectory() as work, running(sys.executable, '-c', DEEP) as busy:
        with recording(f'{work}/store', '-p', str(busy.pid), '-F', '30000', '-t', '1', '--kinds', 'oncpu,offcpu') as recorder:
            check(recorder.wait() == 0, f'it ends: {recorder.said}')
        ticks, _, waits = recorder.said.partition('oncpu,offcpu: offcpu: ')
        check('oncpu,offcpu: oncpu: ' in ticks and 'timers skipped' in ticks, f'ticks are told: {recorder.said}')
        check('offcpu' in waits and 'timers skipped' not in waits, f'waits have no ticks: {recorder.said}')


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
            recorder.wait_for('is writable again; 0 blocks')
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
        if victim == 'stackbpf-sample':
            recorder.wait_for('restarting it in')
            wait_for(lambda: victim in recorder.samplers(), 'a new one')
            recorder.end()
        else:
            status = recorder.wait()
            check(status != 0, f'{victim} was killed: status {status}')
        wait_for(lambda: gone(everybody), 'all have ended')
        if victim == 'stackbpf-store':
            check('the store writer died' in recorder.said, 'it is said why')
    result = ask(store, 'comm')
    check(result.status == 0 and result.total >= before and 'damaged' not in result.err,
          f'{victim} was killed: {result.total} samples, {before} before')
    if victim == 'main' and ran > 0.05:
        check(result.total > before, 'what was being sampled was written')


def kills():
    rng = random.Random(7)
    victims = ['main', 'stackbpf-store', 'stackbpf-sample']
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


def within_a_block():
    """Return: a process that began and ended between two multiples of 10 s."""
    while True:
        begin = time.time() - 1  # the recorder may take it for the block before
        with running(SPLIT) as short:
            wait_for(lambda: ran_seconds(short.pid) > 0.2, 'it ran')  # pylint: disable=cell-var-from-loop
        if begin // 10 == (time.time() + 1) // 10:
            return short


def runtimes():
    """What processes run; who began while it records has a number if it is still there at the end of the block."""
    python = [sys.executable, f'{os.path.dirname(os.path.abspath(__file__))}/../programs/mix.py']
    with tempfile.TemporaryDirectory() as work, running(*python) as expected:
        store = f'{work}/store'
        with recording(store, '-p', str(expected.pid), '-n', 'split', '-n', 'python*', '-F', '499') as recorder:
            written(recorder)
            with running(*python) as later, running(SPLIT) as native:
                short = within_a_block()
                wait_for(lambda: min(ran_seconds(p.pid) for p in (expected, later, native)) > 0.5, 'all ran')
                written(recorder)
                numbers = {s[1] for s in ask(store, 'comm,pid').stacks if s[0] == 'split'}
                check(str(native.pid) in numbers and str(short.pid) not in numbers,
                      f'{native.pid} goes on, {short.pid} has ended: {numbers}')
            recorder.end()
        for process, want in ((expected, 'python'), (later, 'python'), (native, 'native')):
            tags = collections.Counter()
            for stack, weight in ask(store, 'runtime', f'pid={process.pid}').stacks.items():
                tags[stack[0]] += weight
            # On a busy machine a tick may fall between fork and exec.
            check(sum(tags.values()) - tags[want] <= 2 < tags[want], f'{want}, of process {process.pid}: {tags}')
        both = ask(store, 'pid', 'runtime=python', f'pid={expected.pid},{later.pid},{native.pid}').total
        alone = ask(store, 'pid', f'pid={expected.pid},{later.pid}').total
        check(0 <= alone - both <= 4 < alone, f'asked for: {both} of {alone} samples')


def said_to_manager():
    """sd_notify(3)."""
    with tempfile.TemporaryDirectory() as work, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f'{work}/notify')
        manager.settimeout(240)
        with recording(f'{work}/store', env=dict(os.environ, NOTIFY_SOCKET=f'{work}/notify')) as recorder:
            check(b'READY=1' in manager.recv(4096), 'it says that it is ready')
            recorder.end(signal.SIGHUP)
            check(manager.recv(4096) == b'STOPPING=1', 'and that it ends')


class Manager:
    """A service manager, as the one that it tells of itself sees it."""

    def __init__(self, work, seconds):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f'{work}/notify')
        self.seconds = seconds
        self.env = dict(os.environ, NOTIFY_SOCKET=f'{work}/notify', WATCHDOG_USEC=str(int(seconds * 1e6)))

    def hear(self, seconds=240):
        """Return: the next words, or '' after so long without any."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(4096).decode()
        except socket.timeout:
            return ''

    def wait_for(self, words, seconds=240):
        end = time.monotonic() + seconds
        heard = self.hear()
        while heard and words not in heard and time.monotonic() < end:
            heard = self.hear()
        return heard if words in heard else ''


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def watched():
    """The watchdog of systemd: it hears of us as often as it wants to, until one of us does not go on."""
    with tempfile.TemporaryDirectory() as work:
        manager = Manager(work, 1)
        with recording(f'{work}/store', '-p', str(os.getpid()), '--kinds', 'oncpu,offcpu', env=manager.env) as recorder:
            check('READY=1' in manager.wait_for('READY=1'), 'it is ready')
            check(all(manager.wait_for('WATCHDOG=1') for _ in range(4)), 'all is well')
            for name in ('stackbpf-sample', 'stackbpf-store'):
                pid = recorder.samplers()[name]
                with stopped(pid):
                    said = manager.wait_for('STATUS=')
                    check('is stuck' in said, f'{name} is stopped: {said}')
                    heard = manager.hear(manager.seconds)
                    check(not heard, f'the manager hears no more, and would start all again: {heard}')
                said = manager.wait_for('WATCHDOG=1')
                check(said == 'WATCHDOG=1\nSTATUS=recording', f'{name} goes on: {said}')
            check(recorder.end() == 0, 'it ends as it should')
            check('is stuck' in recorder.said, 'it is said')
        manager.socket.close()


def not_watched():
    """Of somebody else's watchdog it knows nothing."""
    with tempfile.TemporaryDirectory() as work:
        manager = Manager(work, 0.5)
        with recording(f'{work}/store', '-p', str(os.getpid()), env=dict(manager.env, WATCHDOG_PID='1')) as recorder:
            check(manager.hear().startswith('READY=1'), 'it is ready')
            check(not manager.hear(2 * manager.seconds), 'and says no more')
            recorder.end()
            check(manager.hear() == 'STOPPING=1', 'until it ends')
        manager.socket.close()


run_parts((shares_and_tags, kinds_at_once, skipped_ticks, ends_while_stopped, query_at_once, waits_are_split, disk_full, kills, cgroups, as_service,
           runtimes, said_to_manager, watched,
           not_watched), CHOSEN)
done()
