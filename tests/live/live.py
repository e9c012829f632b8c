# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What live tests share: running stackbpf, reading folded text, programs to look at."""
import collections
import contextlib
import os
import re
import subprocess
import sys
import time


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


def need_own_machine(why):
    """What would disturb everybody else is done in a guest of the suite vm only."""
    if 'STACKBPF_IN_VM' not in os.environ:
        skip(f'{why} disturbs the machine: only in a guest (tests/vm)')


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


def stackbpf(binary, *args, timeout=120, **kwargs):
    done = subprocess.run([binary, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors='replace', timeout=timeout, **kwargs)
    return Result(done.returncode, done.stdout, done.stderr)


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
        said = process.stdout.readline()
        assert said == 'ready\n', f'{command}: {said}'
        yield process
        process.stdout.close()


def run_parts(parts, chosen):
    """Those that are named on the command line, or all."""
    for part in parts:
        if not chosen or part.__name__ in chosen:
            part()


def wait_for(condition, what, seconds=30):
    """Wait until condition() is true; time only bounds the wait."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f'never happened: {what}')


_failures = []


def check(condition, what):
    print(('ok: ' if condition else 'FAILED: ') + what)
    if not condition:
        _failures.append(what)


def done():
    sys.exit(1 if _failures else 0)
