# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames of folded text, and what is known about them without asking stackbpf: which of them have
no caller."""
import functools
import os
import re
import shutil
import subprocess
import typing

# What the functions below read: one frame for each call, with file, offset, and K for the kernel's.
OPTIONS = ('--no-inline', '--annotate', '--modules', '--offsets', '--interp=both')

# Where threads begin: the kernel jumps there, or a new thread's stack pointer is set there.
# glibc: sysdeps/x86_64/start.S, dl-machine.h, clone.S, clone3.S. musl: crt_arch.h, clone.s.
ROOTS = {'_start', '_dl_start_user', '__clone', 'clone', '__clone3', 'clone3', '_dlstart'}
# Code of the entry point up to the end of its only call: 38 bytes in glibc's start.S.
ENTRY_BYTES = 0x40
# Where the kernel is when a task has no user stack: not begun yet, or gone. Between the moment in
# which exec throws the old program away and the start of the new one there are registers, but what
# they point to is gone.
WITHOUT_STACK = {'ret_from_fork', 'schedule_tail', 'do_exit', 'do_group_exit', 'exit_mm'}
IN_EXEC = {'load_elf_binary', 'begin_new_exec'}


# Outermost and innermost of stacks of time and of files.
ROOT_MARKS = {'[runqueue]', '[throttled]', '[idle]'}
LEAF_MARK = re.compile(r'\[(idle: \w+|lock: \w+|running.*|runqueue|throttled|blocked)\]|.*_\[f\]')
DEBUG_DIR = '/usr/lib/debug/.build-id'


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors='replace', check=False).stdout


@functools.lru_cache(maxsize=None)
def symbols(path):
    """Addresses of each name in an ELF file, its debug package included, as nm has them."""
    found = {}
    build_id = re.search(r'Build ID: (\w\w)(\w+)', output('readelf', '-nW', path))
    debug = f'{DEBUG_DIR}/{build_id[1]}/{build_id[2]}.debug' if build_id else path
    for command in (('nm', path), ('nm', '-D', path), ('nm', debug)):
        for line in output(*command).splitlines():
            symbol = re.fullmatch(r'([0-9a-f]+) [tTwWiu] (.*)', line)
            if symbol:
                found.setdefault(symbol[2].partition('@')[0], set()).add(int(symbol[1], 16))
    return found


class Frame(typing.NamedTuple):
    name: str  # '' if it has none
    offset: int  # into the function; without a name into the file, as its ELF headers count
    module: str
    is_kernel: bool

    def __str__(self):
        return f'{self.name or hex(self.offset)} [{self.module}]'


@functools.lru_cache(maxsize=None)
def parse(text):
    text, kernel, _ = text.partition('_[k]')
    text = re.sub(r'_\[[a-z]\]$', '', text)
    unnamed = re.fullmatch(r'\[(.*)\+0x([0-9a-f]+)\]', text)
    if unnamed:
        return Frame('', int(unnamed[2], 16), unnamed[1], bool(kernel))
    named = re.fullmatch(r'(.*?)(?:\+0x([0-9a-f]+))?(?: \[(.*)\])?', text)
    return Frame(named[1], int(named[2] or '0', 16), named[3] or '', bool(kernel))


def is_mark(frame):
    return frame.name.startswith(('[truncated', '[lost'))


def without_marks(stack):
    """Without what is not a call: the state of the thread, what it is idle in, the file."""
    begin = 1 if stack[0] in ROOT_MARKS else 0
    end = len(stack)
    while end > begin + 1 and LEAF_MARK.fullmatch(stack[end - 1]):
        end -= 1
    return stack[begin:end]


def split(stack):
    """A folded stack without its process: user frames and kernel frames, each root first."""
    frames = [parse(text) for text in stack[1:]]
    user = [frame for frame in frames if not frame.is_kernel]
    return user, frames[len(user):]


@functools.lru_cache(maxsize=None)
def entry_point(module, paths):
    for path in (*paths, shutil.which(module) or '', f'/lib64/{module}'):
        if os.path.exists(path) and module in (os.path.basename(path),
                                               os.path.basename(os.path.realpath(path))):
            header = output('readelf', '-hW', path)
            return int(re.search(r'Entry point address:\s+0x([0-9a-f]+)', header)[1], 16)
    return None


def is_root(frame, paths=(), also=frozenset()):
    if frame.name:
        return frame.name in ROOTS or frame.name in also
    entry = entry_point(frame.module, paths)
    return entry is not None and entry <= frame.offset < entry + ENTRY_BYTES


def why_incomplete(stack, paths=(), also=frozenset()):
    """'' for a complete stack; None if there can be no user stack; otherwise what is wrong."""
    user, kernel = split(stack)
    names = {frame.name for frame in kernel}
    if names & IN_EXEC or not user and names & WITHOUT_STACK:
        return None
    if not user:
        return 'no user frame below ' + ';'.join(str(frame) for frame in kernel)
    for frame, next_frame in zip(user, user[1:] + [None]):
        if is_mark(frame):
            return f'{frame.name} above {next_frame}'
    return '' if is_root(user[0], paths, also) else f'begins at {user[0]}'
