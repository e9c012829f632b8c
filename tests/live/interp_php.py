#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames of PHP, each version that can be had: names, order, lines and shares of a program whose calls are
known, on the CPU and blocked, with and without the JIT. What PHP says of itself is the truth.

interp_php.py STACKBPF PROGRAMS
"""
import collections
import contextlib
import os
import re
import subprocess
import sys

import beside
import interp
from live import check, done, need_root, skip, stackbpf

need_root()
BINARY, PROGRAMS = sys.argv[1], sys.argv[2]
FILES = {f'/p/{name}': os.path.join(PROGRAMS, name) for name in ('tree.php', 'tree_included.php')}
# Version: suite, packages. From 8.5 on opcache is part of PHP.
VERSIONS = {
    '7.4': ('bullseye', ['php7.4-cli', 'php7.4-opcache']),
    '8.1': ('jammy', ['php8.1-cli', 'php8.1-opcache']),
    '8.2': ('bookworm', ['php8.2-cli', 'php8.2-opcache']),
    '8.3': ('noble', ['php8.3-cli', 'php8.3-opcache']),
    '8.4': ('trixie', ['php8.4-cli', 'php8.4-opcache']),
    '8.5': ('experimental', ['php8.5-cli']),
    '8.6': ('experimental', ['php8.6-cli']),
}
# Closures and files that are made and gone again all the time, in these modes, may be gone before their name is
# read: 76 of 1,004 samples of all modes at a load of 25. A closure of `gen` lies at six places in turn.
UNREADABLE = '[unreadable php frame]'
PASSING = ('gen', 'preg', 'include', 'fiber')
SPLIT = ('App\\a', 'App\\b', 'App\\c')
JIT = ('-d', 'opcache.enable_cli=1', '-d', 'opcache.jit_buffer_size=32M')


def read_marks():
    """{name: lines} by the comments "@name" in the programs."""
    marks = collections.defaultdict(set)
    for path in FILES.values():
        with open(path, encoding='utf-8') as file:
            for number, line in enumerate(file, 1):
                for name in re.findall(r'@(\w+)', line.partition(' # ')[2]):
                    marks[name].add(number)
    return marks


MARKS = read_marks()


def closure(version, where, mark, scope=''):
    """What PHP calls a closure: from 8.4 on by its place."""
    if float(version) < 8.4:
        return f'{scope}App\\{{closure}}'
    return f'{scope}{{closure:{where}:{min(MARKS[mark])}}}'


def trees(version):
    """{mode: [stack]}, a stack being [(name, mark)], root first; None: it has no line."""
    main, work = ('{main}', 'main'), ('App\\work', 'work')
    deep = [('App\\deep', 'deep')]
    st = [('App\\Foo::st', 'st'), ('array_map', None),
          (closure(version, 'App\\Foo::st()', 'closure_begin', 'App\\Foo::'), 'closure'), work]
    fiber = (closure(version, 'App\\fibers()', 'fiber_begin'),)
    return {
        'split': [[main, ('App\\split', f'split_{x}'), (f'App\\{x}', x)] for x in 'abc'] +
                 [[main, ('App\\split', 'split_clock'), ('App\\clock_us', 'clock'), ('getrusage', None)],
                  [main, ('App\\split', 'split_says'), ('fwrite', None)]],
        'deep': [[main, (closure(version, '/p/tree.php', 'deep_begin'), 'deep_begin'), *deep * 40,
                  ('App\\deep', 'deepest'), work]],
        'method': [[main, (closure(version, '/p/tree.php', 'method_begin'), 'method_begin'),
                    ('App\\Foo::heavy', 'heavy')]],
        'gen': [[main, ('App\\drain', 'drain'), ('App\\gen', 'gen'), *st],
                [main, ('App\\drain', 'drain'), ('App\\outer', 'outer'), ('App\\gen', 'gen')]],
        'preg': [[main, ('App\\replaced', 'replaced'), ('preg_replace_callback', None),
                  (closure(version, 'App\\replaced()', 'matched_begin'), 'matched'), work]],
        'eval': [[main, ('App\\evaluated', 'evaluated'), ('eval', 'eval'), work]],
        'include': [[main, ('App\\included', 'included'), ('require(tree_included.php)', 'inner'), work]],
        'sort': [[main, ('App\\sorts', 'sorts'), ('App\\Bar::sorted', 'sorted'), ('usort', None),
                  ('App\\Bar::less', 'less'), work]],
        'fiber': [[main, ('App\\fibers', 'fibers_start'), ('Fiber::start', None), (*fiber, 'fiber'), work],
                  [main, ('App\\fibers', 'fibers_resume'), ('Fiber::resume', None), (*fiber, 'fiber_deep'),
                   *deep * 2, ('App\\deep', 'deepest'), work],
                  # While it is made, and while it is being left: its caller is cut off first.
                  [main, ('App\\fibers', 'fiber_begin'), ('Fiber::__construct', None)],
                  [main, ('App\\fibers', 'fibers_start'), ('Fiber::start', None), (*fiber, 'fiber_left'),
                   ('Fiber::suspend', None)],
                  [(*fiber, 'fiber_left'), ('Fiber::suspend', None)]],
        'nap': [[main, ('App\\naps', 'naps'), ('App\\Foo::__get', 'get'), ('App\\nap', 'nap'), ('usleep', None)]],
        'block': [[main, ('App\\blocks', 'blocks'), ('array_map', None), ('usleep', None)]],
    }


# Lines of code that is in no file of ours, or has no function around it.
MARKS['eval'] = {1}
CPU = ('deep', 'method', 'gen', 'preg', 'eval', 'include', 'sort', 'fiber')
WAITS = ('nap', 'block')


def frames_of(stack):
    """[(name, line)] of the interpreter, root first."""
    frames = []
    for frame in stack:
        if frame.endswith('_[p]'):
            text = frame[:-4]
            name, place = (text, '') if text.startswith('[') else text.partition(' ')[::2]
            frames.append((name, int(place.rpartition(':')[2]) if place else 0))
    return frames


def fits(frames, tree, wants_lines):
    """Return: how much of the tree these frames are; None: they are of another one. The line of the innermost
    frame is that of any instruction of it."""
    if len(frames) > len(tree):
        return None
    for i, ((name, line), (want, mark)) in enumerate(zip(frames, tree)):
        if name != want and (name != UNREADABLE or not re.match(r'require|.*\{closure', want)):
            return None
        if mark and wants_lines and name == want and i + 1 < len(frames) and line not in MARKS[mark]:
            return None
    if len(frames) == len(tree) and tree[-1][1] and wants_lines and frames[-1][1] not in MARKS[tree[-1][1]]:
        return None
    return len(frames) / len(tree)


def start(version, mode, *options):
    suite, packages = VERSIONS[version]
    root = beside.unpack(suite, packages)
    if options and float(version) < 8.5:
        options = ('-d', 'zend_extension=opcache.so', *options)
    return beside.start(root, [f'/usr/bin/php{version}', '-n', *options, '/p/tree.php', mode], files=FILES)


@contextlib.contextmanager
def programs(wanted):
    """@wanted: {(version, mode): options}"""
    with contextlib.ExitStack() as stack:
        started = {}
        for (version, mode), options in wanted.items():
            process = stack.enter_context(start(version, mode, *options))
            stack.callback(process.kill)
            started[version, mode] = process
        for key, process in started.items():
            line = process.stdout.readline()
            assert line == 'ready\n', f'{key}: {line!r}'
        yield started


def sample(view, started, *options, seconds=3):
    return interp.sample(BINARY, view, started.values(), *options, seconds=seconds)


def version_of(stack):
    comm = stack[1] if stack[0] == '[runqueue]' else stack[0]
    return comm[3:] if comm.startswith('php') else None


def has_sort_between(stack):
    """C between two functions of PHP stands where it belongs."""
    names = [frame.partition(' ')[0].removesuffix('_[p]') for frame in stack]
    return 'zend_insert_sort' in names[names.index('usort'):names.index('App\\Bar::less')]


def mode_of(frames, version, wants_lines):
    """Which program it is says the function that {main} called. Return: the mode and how much of it there is;
    (None, 1): {main} itself; (None, 0): that is no stack of any."""
    if [name for name, _ in frames] in ([], ['{main}'], ['{main}', 'feof'], ['{main}', 'fgets']):
        return None, 1
    found = {mode: max((fits(frames, tree, wants_lines) or 0 for tree in stacks), default=0)
             for mode, stacks in trees(version).items()}
    mode = max(found, key=found.get)
    return (mode, found[mode]) if found[mode] else (None, 0)


def judge(result, what, wanted, wants_lines=True, first=0):
    """All stacks of the result against their trees. @first: what those of each program weigh which come before anybody
    has looked at it."""
    weights = collections.Counter()
    whole = collections.Counter()
    counts = collections.defaultdict(collections.Counter)
    wrong = collections.Counter()
    for stack, weight in result.stacks.items():
        version, frames = version_of(stack), frames_of(stack)
        mode, share = mode_of(frames, version, wants_lines)
        count = counts[version]
        count['all'] += weight
        count['with'] += weight if frames else 0
        is_unreadable = any(name == UNREADABLE for name, _ in frames)
        count['unreadable'] += weight if is_unreadable else 0
        count['passing'] += weight if mode in PASSING else 0
        is_cut = any(frame.startswith('[truncated') for frame in stack)
        if mode != 'fiber':
            count['native'] += weight
            count['whole'] += 0 if is_cut else weight
        # Of a native stack that was cut, nobody knows what stood where.
        if not share or is_unreadable and mode not in PASSING or mode == 'sort' and share == 1 and not is_cut and not has_sort_between(stack):
            wrong[version, stack] += weight
        weights[version, mode] += weight
        whole[version, mode] += weight if share == 1 else 0
    for (version, stack), weight in wrong.most_common(5):
        print(f'wrong in {version}: {weight} {";".join(stack)}')
    for version in sorted({version for version, _ in wanted}):
        count, nr_wrong = counts[version], sum(w for (v, _), w in wrong.items() if v == version)
        total = max(count['all'], 1)
        check(interp.are_few(nr_wrong, total, 0.001), f'{what} {version}: {nr_wrong} of {total} in wrong order')
        early = first * sum(1 for other, _ in wanted if other == version)
        check(interp.are_most(count['with'] + early, total, 0.99), f'{what} {version}: {count["with"]} of {total} have frames')
        check(count['unreadable'] <= count['passing'] / 2,
              f'{what} {version}: {count["unreadable"]} of {count["passing"]} unreadable')
        check(interp.are_most(count['whole'] + early, count['native'], 0.995),
              f'{what} {version}: {count["whole"]} of {count["native"]} complete')
    for version, mode in wanted:
        nr, total = whole[version, mode], weights[version, mode]
        # Half of them, but for two standard deviations: on a busy machine there are a handful.
        check(nr > max(0, 0.5 * total - total ** 0.5), f'{what} {version} {mode}: {nr} of {total} are all of it')


def check_split(result, started, versions, what):
    for version in versions:
        counts = collections.Counter()
        for stack, weight in result.stacks.items():
            for name, _ in frames_of(stack)[2:3]:
                if version_of(stack) == version:
                    counts[name] += weight
        interp.check_shares(f'{what} {version}', {name: counts[name] for name in SPLIT},
                            interp.spent(started[version, 'split']))


def on_cpu(versions):
    wanted = {(version, mode): () for version in versions for mode in CPU
              if mode != 'fiber' or float(version) >= 8.1}
    with programs(wanted) as started:
        judge(sample('oncpu', started, '-F', '999', seconds=3), 'on the CPU', wanted)
    wanted = {(version, 'split'): () for version in versions}
    with programs(wanted) as started:
        result = sample('oncpu', started, '-F', '999', seconds=3)
        judge(result, 'split', wanted)
        check_split(result, started, versions, 'split')


def blocked(versions):
    wanted = {(version, mode): () for version in versions for mode in WAITS}
    with programs(wanted) as started:
        judge(sample('offcpu', started), 'blocked', wanted, first=150000)


def compiled(versions):
    """The line of the innermost frame is not kept by the JIT."""
    versions = [version for version in versions if float(version) >= 8.1]
    if not versions:
        return
    for kind in ('tracing', 'function'):
        options = (*JIT, '-d', f'opcache.jit={kind}')
        wanted = {(version, mode): options for version in versions for mode in ('split', 'method', 'sort')}
        with programs(wanted) as started:
            result = sample('oncpu', started, '-F', '999', seconds=3)
            judge(result, f'JIT {kind}', wanted, False)
            check_split(result, started, versions, f'JIT {kind}')


def truth(versions):
    """At a quiet point, PHP's own backtrace."""
    with programs({(version, 'trace'): () for version in versions}) as started:
        said = {version: list(iter(process.stdout.readline, 'end\n'))
                for (version, _), process in started.items()}
        result = sample('offcpu', started, seconds=1)
    for version in versions:
        rows = [line.rsplit(' ', 1) for line in said[version]]
        names = ['{main}'] + [re.sub('->', '::', name) for name, _ in reversed(rows)] + ['fgets']
        lines = [int(line) for _, line in reversed(rows)]
        stacks = [frames_of(stack) for stack in result.stacks if version_of(stack) == version]
        check(len(stacks) == 1 and [name for name, _ in stacks[0]] == names, f'{version} says {names}: {stacks}')
        check(stacks and [line for _, line in stacks[0]][:len(lines)] == lines, f'{version} says lines {lines}')


def other_threads(version):
    """A thread of a library does not run PHP."""
    code = ('$c = FFI::cdef("int pthread_create(unsigned long *, void *, void *, long);'
            'unsigned int sleep(unsigned int);", "libc.so.6"); $t = $c->new("unsigned long");'
            '$c->pthread_create(FFI::addr($t), null, $c->cast("void *", $c->sleep), 30);'
            'echo "ready\n"; fgets(STDIN);')
    suite, packages = VERSIONS[version]
    root = beside.unpack(suite, packages)
    with beside.start(root, [f'/usr/bin/php{version}', '-n', '-d', 'extension=ffi', '-d', 'ffi.enable=1', '-r', code], stderr=subprocess.STDOUT) \
            as process:
        line = process.stdout.readline()
        if line != 'ready\n':
            print(f'not tried: threads of libraries: {line!r} {process.stdout.readline()!r}')
            process.kill()
            return
        result = stackbpf(BINARY, 'offcpu', '-p', str(process.pid), '-t', '1', '--annotate', '-T')
        process.kill()
    of = {stack[0].rsplit('/', 1)[-1]: frames_of(stack) for stack in result.stacks}
    check(len(of) == 2 and sorted(map(len, of.values()))[0] == 0 and of.get(str(process.pid)),
          f'one of two threads runs PHP: {of}')


def main():
    versions, missing = [], []
    for version, (suite, packages) in VERSIONS.items():
        try:
            beside.unpack(suite, packages)
            versions.append(version)
        except beside.Missing as error:
            missing.append(f'{version}: {error}')
    for reason in missing:
        print(f'not tried: PHP {reason}')
    if not versions:
        skip('no version of PHP can be had: ' + '; '.join(missing))
    on_cpu(versions)
    blocked(versions)
    compiled(versions)
    truth(versions)
    other_threads(versions[-1])


main()
done()
