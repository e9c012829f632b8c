# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a sampling tool costs: its BPF program by the kernel's own statistics, its process, its output."""
import contextlib
import ctypes
import os
import platform
import statistics
import subprocess
import tempfile
import threading
import time

PROGRAMS = (['/bin/true'], ['/bin/ls', '/'], ['/bin/sh', '-c', ':'], ['/usr/bin/python3', '-c', 'pass'],
            ['/bin/date'], ['/usr/bin/perl', '-e', '1'], ['/usr/bin/env', 'true'], ['/bin/cat', '/etc/passwd'])


class Load(threading.Thread):
    """RATE short programs a second are started, in turns; 0: none."""

    def __init__(self, rate):
        super().__init__(daemon=True)
        self.rate, self.nr, self.is_ending = rate, 0, False

    def run(self):
        null = os.open('/dev/null', os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
        start = time.monotonic()
        running = set()
        while self.rate and not self.is_ending:
            command = PROGRAMS[self.nr % len(PROGRAMS)]
            running.add(os.posix_spawn(command[0], command, os.environ, file_actions=actions))
            self.nr += 1
            running -= {pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]}
            time.sleep(max(0, start + self.nr / self.rate - time.monotonic()))


def bpf(command, attr):
    """bpf(2) with a writable attribute."""
    number = 280 if platform.machine() == 'aarch64' else 321
    return ctypes.CDLL(None, use_errno=True).syscall(number, command, attr, len(attr))


@contextlib.contextmanager
def bpf_stats_on():
    """The kernel counts time and calls of BPF programs, which costs a little: as long as a descriptor is open, so it ends
    with this process, however that ends."""
    fd = bpf(32, ctypes.create_string_buffer(4))  # BPF_ENABLE_STATS, BPF_STATS_RUN_TIME
    if fd < 0:
        raise OSError(ctypes.get_errno(), 'cannot switch on the statistics of BPF programs')
    try:
        yield
    finally:
        os.close(fd)


def family(pid):
    """A process and all below it, also those that other threads than the first have started; those that end meanwhile
    are left out."""
    children = []
    try:
        for tid in os.listdir(f'/proc/{pid}/task'):
            with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{tid}/children', encoding='ascii') as file:
                children += [int(child) for child in file.read().split()]
    except OSError:
        return []
    return [pid] + [below for child in children for below in family(child)]


def programs_of(pid):
    """(time in ns, calls) of the perf_event programs that a process and all below it hold: those of others, who sample
    at the same time, are not among them."""
    found = {}
    for process in family(pid):
        with contextlib.suppress(OSError):
            for fd in os.listdir(f'/proc/{process}/fdinfo'):
                with contextlib.suppress(OSError), open(f'/proc/{process}/fdinfo/{fd}', encoding='ascii') as file:
                    row = dict(line.split(':', 1) for line in file if ':' in line)
                    if row.get('prog_type', '').strip() == '7':  # BPF_PROG_TYPE_PERF_EVENT
                        found[row['prog_id']] = (int(row['run_time_ns']), int(row['run_cnt']))
    return sum(ns for ns, _ in found.values()), sum(calls for _, calls in found.values())


def cpu_seconds(pid):
    """{pid: CPU seconds} of a process and all below it, to the nanosecond, with threads that have ended."""
    spent = {}
    for process in family(pid):
        try:
            # The clock that clock_getcpuclockid(3) gives for another process.
            spent[process] = time.clock_gettime(~process << 3 | 2)
        except OSError:
            continue
    return spent


class Window(threading.Thread):
    """CPU seconds a second that a process and all below it take between two moments of its run: in all, and in the
    median second, in which work that is done once does not show."""

    def __init__(self, pid, begin, end):
        super().__init__(daemon=True)
        self.pid, self.begin, self.end, self.share, self.steady = pid, begin, end, None, None

    def run(self):
        time.sleep(self.begin)
        moments = [(time.monotonic(), cpu_seconds(self.pid))]
        for _ in range(max(1, round(self.end - self.begin))):
            time.sleep((self.end - self.begin) / max(1, round(self.end - self.begin)))
            moments.append((time.monotonic(), cpu_seconds(self.pid)))
        if not moments[-1][1]:
            return
        self.share = self.between(moments[0], moments[-1])
        self.steady = statistics.median(self.between(*pair) for pair in zip(moments, moments[1:]))

    @staticmethod
    def between(before, after):
        return sum(cpu - before[1].get(pid, 0) for pid, cpu in after[1].items()) / (after[0] - before[0])


def run(command, output=None, window=(0.5, 1)):
    """CPU seconds of the command, bytes it wrote, ns per call of its BPF program, what it said; 'share': CPU seconds a
    second between the two moments of WINDOW, in seconds from its start, and 'steady': in the median second; None if it had
    ended by then."""
    best = [(0, 0)]
    stop = threading.Event()

    def watch():
        while not stop.wait(0.2):
            best.append(programs_of(process.pid))

    with tempfile.TemporaryFile() as sink, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=sink, stderr=said)
        watcher = threading.Thread(target=watch)
        watcher.start()
        watched = Window(process.pid, *window)
        watched.start()
        _, status, usage = os.wait4(process.pid, 0)
        stop.set()
        watcher.join()
        watched.join()
        size = os.stat(output).st_size if output else sink.seek(0, 2)
        said.seek(0)
        text = said.read().decode(errors='replace')
    time_ns, calls = max(best, key=lambda s: s[1])
    return {'status': status, 'cpu': usage.ru_utime + usage.ru_stime, 'rss': usage.ru_maxrss / 1024,
            'bytes': size, 'ns': time_ns / calls if calls else None, 'calls': calls, 'said': text,
            'share': watched.share, 'steady': watched.steady}
