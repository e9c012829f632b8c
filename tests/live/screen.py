# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program on a terminal of ours: what it shows, by the few sequences that stackbpf uses, and keys to it."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

SEQUENCE = re.compile(r'\x1b\[(\??)([\d;]*)([@-~])')


class Screen:
    """`text` is what stands there; `is_other`: on the other screen; `raw`: all that was written."""

    def __init__(self, command, nr_cols=80, nr_rows=24, **env):
        self.raw, self.pending, self.is_other, self.has_cursor = '', '', False, True
        self.master, slave = pty.openpty()
        self.slave = slave  # kept: its settings are looked at when the program has ended
        self._size(nr_cols, nr_rows)
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(slave, fd)
            os.execve(command[0], command, {**os.environ, 'TERM': 'xterm', 'LC_ALL': 'C.UTF-8', **env})
        self.status = None

    def _size(self, nr_cols, nr_rows):
        self.nr_cols, self.nr_rows, self.row, self.col = nr_cols, nr_rows, 0, 0
        self.cells = [[' '] * nr_cols for _ in range(nr_rows)]
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack('HHHH', nr_rows, nr_cols, 0, 0))

    def resize(self, nr_cols, nr_rows):
        self._size(nr_cols, nr_rows)  # SIGWINCH comes with it

    def _obey(self, is_private, parameters, final):
        if is_private:
            if parameters == '1049':
                self.is_other = final == 'h'
            elif parameters == '25':
                self.has_cursor = final == 'h'
        elif final == 'H':
            place = [int(part) - 1 for part in (parameters or '1;1').split(';')]
            self.row, self.col = place
        elif final == 'J':
            self.cells = [[' '] * self.nr_cols for _ in range(self.nr_rows)]
        else:
            assert final == 'm', (parameters, final)

    def _feed(self, text):
        self.raw += text
        text = self.pending + text
        at = 0
        while at < len(text):
            if text[at] == '\x1b':
                found = SEQUENCE.match(text, at)
                if not found:
                    assert len(text) - at < 16, repr(text[at:at + 16])
                    break
                self._obey(*found.groups())
                at = found.end()
                continue
            if text[at] == '\r':
                self.col = 0
            elif text[at] == '\n':
                self.row = min(self.row + 1, self.nr_rows - 1)
            else:
                if self.row < self.nr_rows and self.col < self.nr_cols:
                    self.cells[self.row][self.col] = text[at]
                self.col += 1
            at += 1
        self.pending = text[at:]

    @property
    def text(self):
        return '\n'.join(''.join(row).rstrip() for row in self.cells)

    def await_(self, condition, what, seconds=240):
        """Take what is written until condition(self) is true."""
        end = time.monotonic() + seconds
        while not condition(self):
            assert time.monotonic() < end, f'never happened: {what}:\n{self.text}\n{self.raw[-300:]!r}'
            if select.select([self.master], [], [], 0.05)[0]:
                self._feed(os.read(self.master, 65536).decode('utf-8', 'replace'))
        return self.text

    def await_text(self, text):
        return self.await_(lambda screen: text in screen.text, f'{text!r} on the screen')

    def press(self, keys):
        os.write(self.master, keys.encode())

    def has_ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def end(self):
        """Wait for it. Return: exit status, negative: a signal."""
        self.await_(lambda screen: screen.has_ended(), 'its end')
        while select.select([self.master], [], [], 0)[0]:
            self._feed(os.read(self.master, 65536).decode('utf-8', 'replace'))
        return self.status

    def is_as_before(self):
        return not self.is_other and self.has_cursor and termios.tcgetattr(self.slave) == self.before

    def close(self):
        if not self.has_ended():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        for fd in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(fd)
