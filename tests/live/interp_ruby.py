#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames of Ruby, each version that can be had: names, order, lines and shares of a program whose calls are
known, on the CPU and blocked, in several threads and in fibers, with and without the JIT. What Ruby says of
itself is the truth.

interp_ruby.py STACKBPF PROGRAMS
"""
import collections
import contextlib
import os
import re
import sys

import beside
import interp
from live import check, done, need_root, skip

need_root()
BINARY, PROGRAMS = sys.argv[1], sys.argv[2]
PROGRAM = os.path.join(PROGRAMS, 'tree.rb')
# Version: suite. 2.6 is in none of them.
VERSIONS = {'2.5': 'bionic', '2.7': 'bullseye', '3.0': 'jammy', '3.1': 'bookworm', '3.2': 'noble', '3.3': 'trixie',
            '3.4': 'experimental'}
JIT = {'3.1': ['--yjit', '--yjit-call-threshold=2']}
SPLIT = {'App::Work#a', 'App::Work#b', 'App::Work#c'}


def read_marks():
    """{name: lines} by the comments "@name" in the program."""
    marks = collections.defaultdict(set)
    with open(PROGRAM, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            for name in re.findall(r'@(\w+)', line.rpartition(' # ')[2]):
                marks[name].add(number)
    return marks


MARKS = read_marks()
MARKS['inner'] = {7}
TOP = [('<main>', 'main'), ('Object#forever', 'forever'), ('block in <main>', 'main')]
WORK = ('App::Base#work', 'work')
DEEP = ('App::Work#deep', 'deep')


def of_main(*frames):
    return [[*TOP, *frames]]


# {mode: [stack]}, a stack being [(name, mark)], root first; None: it has no line, or one of Ruby's own.
TREES = {
    'split': [[*TOP, ('App.split', f'split_{x}'), (f'App::Work#{x}', x)] for x in 'abc'] +
             of_main(('App.split', 'split_clock'), ('App.clock_us', 'clock'), ('Process.clock_gettime', None)) +
             of_main(('App.split', 'split_says'), ('Kernel#puts', None), ('IO#puts', None), ('IO#write', None)),
    'deep': of_main(*[DEEP] * 40, ('App::Work#deep', 'deepest'), WORK),
    'blocks': of_main(('App.blocks', 'blocks'), ('Array#each', None), ('block in App.blocks', 'blocks_1'),
                      ('Hash#each_pair', None), ('block (2 levels) in App.blocks', 'blocks_2'),
                      ('Integer#times', None), ('block (3 levels) in App.blocks', 'blocks_2'), WORK),
    'sorts': of_main(('App.sorts', 'sorts'), ('Array#sort', None), ('block in App.sorts', 'sorts'), WORK),
    'replaced': of_main(('App.replaced', 'replaced'), ('String#gsub', None), ('block in App.replaced', 'replaced'),
                        WORK),
    'mixed': of_main(('App::Work#mixed', 'mixed_own'), ('App::Mixed#mixed', 'mixed_super'),
                     ('App::Base#mixed', 'mixed'), WORK),
    'rescued': of_main(('App::Work#rescued', None), ('rescue in App::Work#rescued', 'rescued'), WORK),
    'evaluated': of_main(('App::Work#evaluated', 'evaluated'), ('Kernel#eval', None),
                         ('App::Work#evaluated', 'inner'), WORK),
    'missing': of_main(('App::Work#method_missing', 'missing'), WORK),
    'dynamic': of_main(('block in <class:Work>', 'dynamic'), WORK),
    'alone': of_main(('alone', 'alone'), WORK),
    'within': of_main(('within', 'within'), WORK),
    'fibers': [[('block in App.fibers', 'fiber'), *[DEEP] * 2, ('App::Work#deep', 'deepest'), WORK],
               [('block in App.fibers', 'fiber_again'), WORK]],
    'enumerator': [[('Enumerator#each', None), ('Enumerator::Generator#each', None),
                    ('block in App.enumerator', 'enumerator'), WORK]],
    'nap': of_main(('App.nap', 'nap'), ('Kernel#sleep', None)),
    'reading': of_main(('App.reading', 'reading'), ('Array#map', None), ('block in App.reading', 'reading'),
                       ('IO#read', None)),
}
CPU = ('deep', 'blocks', 'sorts', 'replaced', 'mixed', 'rescued', 'evaluated', 'missing', 'dynamic', 'alone', 'within',
       'fibers', 'enumerator')
WAITS = ('nap', 'reading')
# What is called on the way, for a moment.
PASSING = re.compile(r'\[unreadable ruby frame\]|Class#new|Kernel#(proc|lambda|raise)|proc|.*#(initialize|exception|backtrace.*|===|zero\?|!|<=>)|'
                     r'Kernel#binding|Fiber[#.].*|Enumerator.*|Integer#([=<].*|to_s)')


def frames_of(stack):
    """[(name, line)] of the interpreter, root first."""
    frames = []
    for frame in stack:
        if frame.endswith('_[p]'):
            name, _, line = re.fullmatch(r'(.*?)( \S+:(\d+))?', frame[:-4]).groups()
            frames.append((name, int(line or 0)))
    return frames


def fits(frames, tree, wants_lines):
    """Return: how much of the tree these frames are, None: they are of another one."""
    names = {name for name, _ in tree}
    passing = [at for at, (name, _) in enumerate(frames) if name not in names and PASSING.fullmatch(name)]
    frames = frames[:passing[0]] if passing else frames
    if len(frames) > len(tree):
        return None
    for i, ((name, line), (want, mark)) in enumerate(zip(frames, tree)):
        # That of the innermost frame is of any of its instructions.
        is_caller = i + 1 < len(frames)
        if name != want or (mark and wants_lines and is_caller and line not in MARKS[mark]):
            return None
    return len(frames) / len(tree)


def start(version, mode, *options):
    root = beside.unpack(VERSIONS[version], [f'ruby{version}'])
    # Gems take their time to start, and have threads of their own in some versions.
    return beside.start(root, [f'/usr/bin/ruby{version}', '--disable-gems', *options, '/p/tree.rb', mode, version],
                        files={'/p/tree.rb': PROGRAM})


@contextlib.contextmanager
def programs(wanted):
    """@wanted: {(version, mode): options}"""
    with contextlib.ExitStack() as stack:
        started = {}
        for (version, mode), options in wanted.items():
            started[version, mode] = stack.enter_context(start(version, mode, *options))
        for key, process in started.items():
            line = process.stdout.readline()
            assert line == 'ready\n', f'{key}: {line!r}'
        yield started


def sample(view, started, *options, seconds=3):
    return interp.sample(BINARY, view, started.values(), *options, seconds=seconds)


def version_of(stack):
    comm = stack[1] if stack[0] == '[runqueue]' else stack[0]
    found = re.search(r'\d\.\d$', comm)
    return found and found[0]


def mode_of(frames):
    """Which program it is says the first function that is not the same in all."""
    for mode, stacks in TREES.items():
        for tree in stacks:
            common = len(TOP) if tree[0] == TOP[0] else 0
            if len(frames) > common and [name for name, _ in frames[:common + 1]] == \
                    [name for name, _ in tree[:common + 1]]:
                yield mode


def is_cut(stack):
    """By what is not chance: waits that began before the run are seen as far as that goes. makecontext() of
    glibc, which 2.5 makes its fibers by, has no unwind information at its root."""
    cut = [frame for frame in stack if frame.startswith('[truncated')]
    return cut and not re.search('first piece|not ready', cut[0]) and \
        not (version_of(stack) == '2.5' and any(name.endswith('in App.fibers') or name.startswith('Enumerator')
                                                for name, _ in frames_of(stack)))


def judge(result, what, wanted, wants_lines=True, may_be_cut=False):
    """All stacks of the result against their trees."""
    weights, whole, wrong = collections.Counter(), collections.Counter(), collections.Counter()
    counts = collections.defaultdict(collections.Counter)
    for stack, weight in result.stacks.items():
        version, frames = version_of(stack), frames_of(stack)
        if any('ran before it was looked at' in frame for frame in stack):
            continue # a wait that began before the run; nothing was read of it
        count = counts[version]
        count['all'] += weight
        count['with'] += weight if frames else 0
        count['cut'] += weight if is_cut(stack) else 0
        modes = list(mode_of(frames))
        shares = {mode: max((fits(frames, tree, wants_lines) or 0 for tree in TREES[mode])) for mode in modes}
        if modes and not any(shares.values()):
            wrong[version, stack] += weight
        if shares:
            mode = max(shares, key=shares.get)
            weights[version, mode] += weight
            whole[version, mode] += weight if shares[mode] == 1 else 0
    for (version, stack), weight in wrong.most_common(5):
        print(f'wrong in {version}: {weight} {";".join(stack)}')
    for stack, weight in result.stacks.most_common():
        if is_cut(stack) and not may_be_cut:
            print(f'cut: {weight} {";".join(stack)[:300]}')
            break
    for version in sorted({version for version, _ in wanted}):
        count, nr_wrong = counts[version], sum(w for (v, _), w in wrong.items() if v == version)
        total = max(count['all'], 1)
        check(may_be_cut or interp.are_few(count['cut'], total, 0.005), f'{what} {version}: {count["cut"]} of {total} cut')
        check(interp.are_few(nr_wrong, total, 0.001), f'{what} {version}: {nr_wrong} of {total} in wrong order')
        check(interp.are_most(count['with'], total, 0.99), f'{what} {version}: {count["with"]} of {total} have frames')
    for version, mode in wanted:
        nr, total = whole[version, mode], weights[version, mode]
        # Half of them, but for two standard deviations: on a busy machine there are a handful.
        check(nr > max(0, 0.5 * total - total ** 0.5), f'{what} {version} {mode}: {nr} of {total} are all of it')


def check_split(result, started, versions, what):
    for version in versions:
        counts = collections.Counter()
        for stack, weight in result.stacks.items():
            if version_of(stack) == version:
                for name in {name for name, _ in frames_of(stack)} & SPLIT:
                    counts[name] += weight
        interp.check_shares(f'{what} {version}', counts, interp.spent(started[version, 'split']))


def on_cpu(versions):
    with programs({(version, 'all'): () for version in versions}) as started:
        result = sample('oncpu', started, '-F', '999', seconds=3)
    judge(result, 'on the CPU', {(version, mode): () for version in versions for mode in CPU})
    check_native(result, versions)
    wanted = {(version, 'split'): () for version in versions}
    with programs(wanted) as started:
        result = sample('oncpu', started, '-F', '999', seconds=3)
        judge(result, 'split', wanted)
        check_split(result, started, versions, 'split')


def check_native(result, versions):
    """What sort() does in C stands between its frame and that of the block."""
    for version in versions:
        nr = nr_between = 0
        for stack, weight in result.stacks.items():
            names = [frame.partition(' ')[0] for frame in stack]
            if version_of(stack) != version or 'Array#sort_[p]' not in names or 'block' not in names[4:]:
                continue
            at = names.index('Array#sort_[p]')
            nr += weight
            nr_between += weight if 'rb_ary_sort_bang' in names[at:] and 'rb_ary_sort' not in names else 0
        check(nr_between >= 0.9 * nr > 0, f'{version}: C of sort() is between its frames in {nr_between} of {nr}')


def threads(versions):
    """Each thread has its own stack, whoever holds the lock of the VM."""
    wanted = {(version, 'threads'): () for version in versions}
    with programs(wanted) as started:
        for view in ('oncpu', 'offcpu'):
            result = sample(view, started, seconds=3)
            for version in versions:
                of = {stack: weight for stack, weight in result.stacks.items() if version_of(stack) == version}
                good = sum(weight for stack, weight in of.items() if is_own(stack))
                total, seen = sum(of.values()), {thread_of(stack) for stack in of}
                check(good >= 0.99 * total > 0, f'{view} {version}: {good} of {total} in the thread that they are of')
                check({'a', 'b', 'c'} <= seen, f'{view} {version}: threads seen {seen}')


def thread_of(stack):
    comm = stack[1] if stack[0] == '[runqueue]' else stack[0]
    return comm[1] if re.match(r't[abc]\d', comm) else None


def is_own(stack):
    names, which = [name for name, _ in frames_of(stack)], thread_of(stack)
    methods = [name for name in names if name in SPLIT]
    if not which: # the main thread, and the timer's, which has no Ruby in it
        return not methods and (not names or names[0] == '<main>')
    return names[:1] == [] or (names[0].startswith('block (2 levels) in <main>') and
                               set(methods) <= {f'App::Work#{which}'})


def blocked(versions):
    wanted = {(version, mode): () for version in versions for mode in WAITS}
    with programs(wanted) as started:
        result = sample('offcpu', started)
    # Writers and the VM's own threads are not asked about; the timer's of 3.3 has the main thread's name.
    for stack in list(result.stacks):
        comm = stack[1] if stack[0] == '[runqueue]' else stack[0]
        if not comm.startswith('ruby') or (not frames_of(stack) and not any('ran before' in at for at in stack)):
            if not any('rb_' in frame for frame in stack):
                del result.stacks[stack]
    judge(result, 'blocked', wanted)


def compiled(versions):
    """The native walk ends where code has no unwind information; the frames of Ruby are whole."""
    for version in set(JIT) & set(versions):
        with programs({(version, 'all'): JIT[version]}) as started:
            result = sample('oncpu', started, '-F', '999', seconds=2)
        judge(result, 'YJIT', {(version, mode): () for mode in CPU}, False, True)


def truth(versions):
    """At a quiet point, Ruby's own backtrace. Before 3.4, it does not name classes."""
    with programs({(version, 'trace'): () for version in versions}) as started:
        said = {version: list(iter(process.stdout.readline, 'end\n')) for (version, _), process in started.items()}
        result = sample('offcpu', started, seconds=1)
    for version in versions:
        rows = [line.rsplit(' ', 1) for line in reversed(said[version])]
        names, lines = [name for name, _ in rows] + ['gets'], [int(line) for _, line in rows]
        stacks = [frames_of(stack) for stack in result.stacks
                  if version_of(stack) == version and frames_of(stack)]
        check(len(stacks) == 1, f'{version}: {len(stacks)} stacks')
        for stack in stacks[:1]:
            ours = [name if version == '3.4' and at + 1 < len(stack) else re.sub(r'[\w:]+[#.]', '', name)
                    for at, (name, _) in enumerate(stack)]
            check(ours == names, f'{version} says {names}: {ours}')
            # A C function has the line of its caller there.
            wrong = [(name, line, want) for (name, line), want in zip(stack, lines) if line and line != want]
            check(not wrong, f'{version} says lines {lines}: {wrong}')


def main():
    versions, missing = [], []
    for version, suite in VERSIONS.items():
        try:
            beside.unpack(suite, [f'ruby{version}'])
            versions.append(version)
        except beside.Missing as error:
            missing.append(f'{version}: {error}')
    for reason in missing:
        print(f'not tried: Ruby {reason}')
    if not versions:
        skip('no version of Ruby can be had: ' + '; '.join(missing))
    on_cpu(versions)
    threads(versions)
    blocked(versions)
    compiled(versions)
    truth(versions)


main()
done()
