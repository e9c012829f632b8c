# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A run of stackbpf record, and what is in its store, for tests of it. The first argument of the program is STACKBPF."""
import contextlib
import os
import signal
import subprocess
import sys

from live import SECONDS_MAX, Result, wait_for

BINARY = next(arg for arg in sys.argv[1:] if arg != '--all')


class Recorder:
    """A run of stackbpf record, from the moment it says that it records."""

    def __init__(self, store, *args, binary=BINARY, prefix=(), **kwargs):
        self.store, self.said = store, ''
        self.process = subprocess.Popen([*prefix, binary, 'record', '--store', store, '--max-overhead=off', *args],
                                        stderr=subprocess.PIPE, text=True, errors='replace', **kwargs)
        os.set_blocking(self.process.stderr.fileno(), False)
        try:
            self.wait_for('recording to')
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def read(self):
        with contextlib.suppress(TypeError):
            self.said += self.process.stderr.read() or ''
        return self.said

    def wait_for(self, text, seconds=SECONDS_MAX):
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
        status = self.process.wait(timeout=SECONDS_MAX)
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
