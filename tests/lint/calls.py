#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls that this project does without, each for a reason, and descriptors that children inherit."""
import re

import tree

PROGRAMS = ('user/cli/', 'user/flamegraph/main.c', 'symbolizer/sbsym/sbsym.c')
TESTS = ('tests/',)

# What, where it is right nevertheless, why not elsewhere.
RULES = (
    (r'ato[ifl]|atoll|strto(l|ul|ll|ull|d|f|ld|imax|umax)', ('user/base/num.c', *TESTS),
     'takes signs, spaces, overflow and the locale: use base/num.h'),
    (r'v?sprintf|strcpy|stpcpy|strcat|strncat|gets', TESTS, 'does not know the size: use base/str.h'),
    (r'alloca', (), 'has no limit and no error'),
    (r'system|popen', (), 'runs a shell'),
    (r'exit|quick_exit', ('user/cli/main.c', 'user/flamegraph/main.c', 'symbolizer/sbsym/sbsym.c', *TESTS),
     'only main() ends the program: return an error'),
    (r'signal|bsd_signal|sysv_signal', (), 'differs between systems: use sigaction() or signalfd()'),
    # procwatch rests between two looks so as not to be woken for every record.
    (r'sleep|usleep|nanosleep|clock_nanosleep', ('user/capture/procwatch.c', 'user/interp/php/php.c', 'tests/programs/'),
     'wait for the condition, not for a time'),
    (r'bpf_printk|bpf_trace_printk', (), 'writes into a pipe that the whole machine shares'),
    (r'perror|psignal|warnx?|errx?|error', TESTS, 'use base/log.h'),
    (r'strtok|asctime|ctime|gmtime|localtime', ('user/cli/', *TESTS),
     'keeps its result in static memory: not thread-safe'),
    (r'access', ('user/base/fs.c', *TESTS), 'asks for the real user, without capabilities: sb_can_access()'),
    (r'sb_err', (*PROGRAMS, 'symbolizer/sbsym/', 'user/base/log.', *TESTS),
     'a library returns its errors, with words in base/reason.h'),
    (r'mktemp|tmpnam|tempnam|tmpfile', (), 'a name that others can guess: use base/fs.h'),
)

# Calls that make a descriptor. As root, what is inherited by the command we run is a hole.
NEEDS_CLOEXEC = re.compile(r'(?<![\w.>])(open|openat|openat2|socket|socketpair|accept4|pipe2|dup3|epoll_create1'
                           r'|eventfd|timerfd_create|signalfd|memfd_create|inotify_init1|mkostemp)\s*\(')
NO_CLOEXEC = re.compile(r'(?<![\w.>])(creat|accept|pipe|dup|epoll_create|inotify_init|mkstemp)\s*\(')
# Of a map that is left out, libbpf 1.4 and later return the descriptor of an empty file.
TESTS_MAP_FD = re.compile(r'\b(bpf_map__fd)\([^;]*?\)\s*(<|>=|==|!=)\s*-?\d')
FOPEN = re.compile(r'(?<![\w.>])(fopen|freopen)\s*\(')


def is_in(path, places):
    return path.as_posix().startswith(places) if places else False


def forbidden(path, source):
    for what, right_in, why in RULES:
        if is_in(path, right_in):
            continue
        for match in re.finditer(rf'(?<![\w.>])({what})\s*\(', source):
            tree.breach(path, tree.line_of(source, match.start()), f'{match.group(1)}() {why}')
    if not is_in(path, (*PROGRAMS, *TESTS, 'user/base/log.c')):
        for match in re.finditer(r'\bstderr\b', source):
            tree.breach(path, tree.line_of(source, match.start()), 'stderr: use base/log.h')


def tells_nothing(path, source):
    for match in TESTS_MAP_FD.finditer(source):
        tree.breach(path, tree.line_of(source, match.start()),
                    f'{match.group(1)}() does not tell if there is the map: use bpf_map__autocreate()')


def inherited(path, source, raw):
    for match in NEEDS_CLOEXEC.finditer(source):
        # /dev/null for a closed 0, 1 or 2 is there to be inherited.
        if 'CLOEXEC' not in tree.balanced(source, match.end() - 1) and \
                '"/dev/null"' not in tree.balanced(raw, match.end() - 1):
            tree.breach(path, tree.line_of(source, match.start()), f'{match.group(1)}() without CLOEXEC')
    for match in NO_CLOEXEC.finditer(source):
        tree.breach(path, tree.line_of(source, match.start()),
                    f'{match.group(1)}() makes a descriptor without CLOEXEC')
    for match in FOPEN.finditer(source):
        call = tree.balanced(raw, match.end() - 1)
        if not re.search(r'"[rwab+]+e[bx+]*"', call):
            tree.breach(path, tree.line_of(source, match.start()), f'{match.group(1)}() without "e"')


for path in tree.files('*.c', '*.h'):
    raw = tree.without_comments(tree.text(path))
    source = tree.code(raw)
    forbidden(path, source)
    tells_nothing(path, source)
    if not is_in(path, (*TESTS, 'bpf/')):
        inherited(path, source, raw)
tree.done()
