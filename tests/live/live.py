# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What live tests share: running stackbpf, reading folded text, programs to look at."""
import collections
import concurrent.futures
import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time


WAITING_AT_ONCE = 4
# Of whatever must happen; only a failure takes so long, on however slow a machine.
SECONDS_MAX = 240
AGE_MIN = 11  # s; for younger processes all walkers are loaded
RECORDS = ('oncpu', 'offcpu', 'wakeup', 'offwake', 'wall', 'io', 'trace', 'latency', 'memory', 'alloc', 'heap', 'leak')


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


def need_root():
    if os.geteuid() != 0:
        skip('sampling needs root')
    if not os.path.exists('/sys/kernel/btf/vmlinux'):
        skip('this kernel has no BTF')
    # Below sudo, commands would run as its user, who cannot enter our temporary directories.
    for name in ('SUDO_UID', 'SUDO_GID', 'SUDO_USER'):
        os.environ.pop(name, None)
    allow_rate()


def allow_rate(hertz=10000):
    """The kernel lowers the highest rate of samples for good when one took long, as they do on a loaded machine; tests
    ask for up to 4,999 Hz."""
    with contextlib.suppress(OSError), open('/proc/sys/kernel/perf_event_max_sample_rate', 'r+', encoding='ascii') as file:
        if int(file.read()) < hertz:
            file.seek(0)  # elsewhere the kernel takes the number and ignores it
            file.write('100000')


def need_own_machine(why):
    """What would disturb everybody else is done in a guest of the suite vm only."""
    if 'STACKBPF_IN_VM' not in os.environ:
        skip(f'{why} disturbs the machine: only in a guest (tests/vm)')


def has_links_of_many():
    """Whether one link can hook many user functions: Linux 6.6, and right about processes since 6.10."""
    return tuple(map(int, re.match(r'(\d+)\.(\d+)', os.uname().release).groups())) >= (6, 10)


class Result:
    """One run of stackbpf: exit status, folded stacks, facts of the header, what it said."""

    def __init__(self, status, out, err):
        self.status, self.err = status, err
        self.stacks = collections.Counter()
        self.facts = {}
        for line in out.splitlines():
            if line.startswith('#stackbpf;'):
                self.facts = dict(kv.split('=', 1) for kv in line[len('#stackbpf;'):].split(';'))
            elif line:
                stack, weight = line.rsplit(' ', 1)
                self.stacks[tuple(stack.split(';'))] += int(weight)

    @property
    def total(self):
        return sum(self.stacks.values())

    def share(self, frame, of=None):
        """Share of samples that have a frame of this name, among those whose root matches `of`."""
        among = {s: w for s, w in self.stacks.items() if of is None or re.fullmatch(of, s[0])}
        total = sum(among.values())
        return sum(w for s, w in among.items() if frame in s) / total if total else 0.0


def apart(binary, *args, command):
    """A run of stackbpf on one CPU and of a command on another one. While a thread is in bpf(2) for a map, the kernel
    skips the programs of tracepoints and kernel functions on its CPU (bpf_disable_instrumentation()), and with
    CONFIG_PREEMPT somebody else may run there for all of its time slice meanwhile. stackbpf counts what it has missed."""
    cpus = sorted(os.sched_getaffinity(0))
    return stackbpf(binary, *args, '--', 'taskset', '-c', str(cpus[-1]), *command,
                    preexec_fn=lambda: os.sched_setaffinity(0, cpus[:1]))


def ungoverned(args):
    """Arguments of a run that is not to sample less on a busy machine: tests count. governor.py is about that."""
    governed = args and args[0] in RECORDS and not any(arg.startswith('--max-overhead') for arg in args)
    return (args[0], '--max-overhead=off', *args[1:]) if governed else tuple(args)


def stackbpf(binary, *args, timeout=SECONDS_MAX, **kwargs):
    allow_rate()  # another test may have made the kernel lower it meanwhile
    done = subprocess.run([binary, *ungoverned(args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors='replace', timeout=timeout, **kwargs)
    return Result(done.returncode, done.stdout, done.stderr)


class Sampling:
    """A run of stackbpf; `result`, when it is over."""

    def __init__(self, work, command):
        self.out, self.result = f'{work}/out.folded', None
        # To append: otherwise, when a snapshot reads it, the program goes on to write where that began.
        self.err = open(f'{work}/err', 'a+', encoding='utf-8')
        self.process = subprocess.Popen([command[0], *ungoverned(command[1:]), '-o', self.out], stderr=self.err)

    def _handles_signals(self):
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as file:
            blocked = int(re.search(r'^SigBlk:\s+(\S+)', file.read(), re.M)[1], 16)
        # All of them are blocked while it forks, at first before it takes any.
        return blocked & (1 << (signal.SIGUSR1 - 1)) and not blocked & (1 << (signal.SIGURG - 1))

    def snapshot(self):
        """It looks at what happened in the order in which it did: it has seen all up to now."""
        wait_for(self._handles_signals, 'it takes signals')
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.out)
        self.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.path.exists(self.out) or self.process.poll() is not None, 'a snapshot')
        return self._read(0)

    def _read(self, status):
        self.err.seek(0)
        with open(self.out, encoding='utf-8') as file:
            return Result(status, file.read(), self.err.read())

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.result = self._read(self.process.wait(timeout=SECONDS_MAX))
        self.err.close()


@contextlib.contextmanager
def sampling(*command):
    """stackbpf, from its first moment to the end of the block."""
    with tempfile.TemporaryDirectory() as work:
        run = Sampling(work, command)
        try:
            run.snapshot()
            yield run
        finally:
            run.end()


def ran_seconds(pid):
    """Of all threads that there are."""
    total = 0
    for tid in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{tid}/schedstat', encoding='ascii') as file:
            total += int(file.read().split()[0])
    return total / 1e9


def runs_for(pid, seconds):
    """Wait until a program has had so much more CPU time."""
    begin = ran_seconds(pid)
    wait_for(lambda: ran_seconds(pid) - begin >= seconds, 'the program runs')


def age(pid):
    """Seconds since it was started."""
    with open(f'/proc/{pid}/stat', encoding='ascii') as stat, open('/proc/uptime', encoding='ascii') as uptime:
        return float(uptime.read().split()[0]) - int(stat.read().rsplit(')', 1)[1].split()[19]) / os.sysconf('SC_CLK_TCK')


def wait_until_old(pid):
    """Until a run with -p loads only the walkers of the interpreters that the process has, and stackbpf-load waits to load
    the others."""
    wait_for(lambda: age(pid) > AGE_MIN, 'it is no new process')


def build_program(program, source, *flags, compiler='gcc'):
    """Return: the program. In a guest of another architecture, where there is no compiler, $COMPILED has it."""
    if 'COMPILED' in os.environ:
        return shutil.copy(f"{os.environ['COMPILED']}/{os.path.basename(program)}", program)
    subprocess.run([compiler, *flags, '-o', program, source], check=True)
    return program


def build_turns(programs, work, name, *flags, size=256, rounds=9_000_000):
    """A program of turns.c that works in functions named NAME_..., as WORK/NAME."""
    subprocess.run(['gcc', '-O2', '-fomit-frame-pointer', f'-DNAME={name}', f'-DSIZE={size}',
                    f'-DROUNDS={rounds}', *flags, '-o', f'{work}/{name}', f'{programs}/turns.c'], check=True)


@contextlib.contextmanager
def running(*command, **kwargs):
    """A program that runs for as long as the block."""
    process = subprocess.Popen(command, **kwargs)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def ready(*command, **kwargs):
    """The same, once the program has said that it is what it is to be."""
    with running(*command, stdout=subprocess.PIPE, text=True, **kwargs) as process:
        assert select.select([process.stdout], [], [], SECONDS_MAX)[0], f'{command}: says nothing'
        said = process.stdout.readline()
        assert said == 'ready\n', f'{command}: {said}'
        yield process
        process.stdout.close()


def run_parts(parts, chosen, waiting=()):
    """Run the parts that are named on the command line, or all. Those in `waiting` run first, several at once: each
    looks at a program of its own that hardly uses a CPU. The others run one after the other."""
    wanted = [part for part in (*waiting, *parts) if not chosen or part.__name__ in chosen]
    assert len(wanted) >= len(chosen), f'{chosen}: not all of them are parts'
    with concurrent.futures.ThreadPoolExecutor(WAITING_AT_ONCE) as pool:
        for future in [pool.submit(part) for part in wanted if part in waiting]:
            future.result()
    for part in wanted:
        if part not in waiting:
            part()


def wait_for(condition, what, seconds=SECONDS_MAX):
    """Wait until condition() is true; time only bounds the wait."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f'never happened: {what}')


def _is_removed(cgroup):
    with contextlib.suppress(OSError):
        os.rmdir(cgroup)
    return not os.path.exists(cgroup)


@contextlib.contextmanager
def memory_cgroup(limit):
    """A cgroup of at most so many bytes: what writes its PID into the file that is yielded joins it. None where none can be made."""
    with open('/proc/self/cgroup', encoding='utf-8') as file:
        lines = [line.rstrip('\n').split(':', 2) for line in file]
    places = [(f'/sys/fs/cgroup/memory{path}', 'memory.limit_in_bytes') for _, kind, path in lines if kind == 'memory']
    places += [(f'/sys/fs/cgroup{path}', 'memory.max') for number, _, path in lines if number == '0']
    for parent, name in places:
        child = f'{parent}/stackbpf-test-{os.getpid()}'
        try:
            os.mkdir(child)
        except OSError:
            continue
        try:
            with open(f'{child}/{name}', 'w', encoding='ascii') as file:
                file.write(str(limit))
        except OSError:
            os.rmdir(child)
            continue
        try:
            yield f'{child}/cgroup.procs'
        finally:
            wait_for(lambda: _is_removed(child), 'its processes are gone')
        return
    yield None


def is_in_loop(pid):
    """The loop begins with setting the timer of its ticks."""
    with contextlib.suppress(OSError):
        for fd in os.listdir(f'/proc/{pid}/fdinfo'):
            with contextlib.suppress(OSError), open(f'/proc/{pid}/fdinfo/{fd}', encoding='ascii') as file:
                if 'it_interval: (1, 0)' in file.read():
                    return True
    return False


_failures = []


def check(condition, what):
    # One write: parts that run at once do not mix their lines.
    print(('ok: ' if condition else 'FAILED: ') + what + '\n', end='')
    if not condition:
        _failures.append(what)


def done():
    sys.exit(1 if _failures else 0)
