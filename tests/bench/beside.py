# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A load by itself and beside each of some tools, in turns, so that what else the machine does hits
them all alike."""
import contextlib
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 60
# A tool has begun when it holds what its programs are attached with, and no more comes.
SETTLED_SECONDS = 0.5
ATTACHED = re.compile(r'anon_inode:(bpf_link|bpf-perf-event|\[perf_event\])')


def nr_attached(pid):
    nr = 0
    for process in (pid, *children(pid)):
        with contextlib.suppress(OSError):
            for fd in os.listdir(f'/proc/{process}/fd'):
                with contextlib.suppress(OSError):
                    nr += bool(ATTACHED.match(os.readlink(f'/proc/{process}/fd/{fd}')))
    return nr


def children(pid):
    with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [int(child) for child in file.read().split()]
    return []


@contextlib.contextmanager
def beside(command):
    """The tool, from when it is attached. Yields a dict in which, after the block, is what it cost."""
    cost = {}
    if not command:
        yield cost
        return
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True)
        try:
            until_attached(process, said)
            yield cost
        finally:
            cost['cpu'] = stop(process)


def until_attached(process, said):
    end = time.monotonic() + START_SECONDS_MAX
    nr, since = 0, time.monotonic()
    while time.monotonic() < end:
        if has_ended(process):
            said.seek(0)
            raise RuntimeError(f'it ended: {said.read().decode(errors="replace")[-300:]}')
        now_nr = nr_attached(process.pid)
        if now_nr != nr:
            nr, since = now_nr, time.monotonic()
        if nr and time.monotonic() - since > SETTLED_SECONDS:
            return
        time.sleep(0.05)
    raise RuntimeError('it was never attached')


def has_ended(process):
    """Leaves it to be waited for."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def stop(process):
    """Return: CPU seconds it used, its result included."""
    if not has_ended(process):
        os.kill(process.pid, signal.SIGINT)
    end = time.monotonic() + STOP_SECONDS_MAX
    while time.monotonic() < end:
        pid, _, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = 0
            return usage.ru_utime + usage.ru_stime
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return float('nan')


def figures_of(load):
    """The numbers that the load prints."""
    out = subprocess.run(load, stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout
    return [float(word) for word in out.split()]


def rounds(tools, loads, nr):
    """tools: {name: command, or None}; loads: {name: command}. One load at a time beside each tool, in a
    new order each round. Return: {tool: {load: [[figure, ...] of each round]}}, {tool: [CPU seconds]},
    {tool: why it cannot run}."""
    figures = {tool: {load: [] for load in loads} for tool in tools}
    cpu = {tool: [] for tool in tools}
    failed = {}
    for _ in range(nr):
        for tool in random.sample(list(tools), len(tools)):
            command = tools[tool]
            if tool in failed:
                continue
            if command and not shutil.which(command[0]):
                failed[tool] = 'not here'
                continue
            try:
                with beside(command) as cost:
                    for load, of_load in loads.items():
                        figures[tool][load].append(figures_of(of_load))
                cpu[tool].append(cost.get('cpu', 0.0))
            except RuntimeError as error:
                failed[tool] = str(error).strip().replace('\n', ' | ')
    return figures, cpu, failed


def paired(figures, of, load, how, which=0):
    """of: (tool, tool without). how(figure with, figure without) of each round: median, least, greatest."""
    values = [how(a[which], b[which]) for a, b in zip(figures[of[0]][load], figures[of[1]][load])]
    return statistics.median(values), min(values), max(values)
