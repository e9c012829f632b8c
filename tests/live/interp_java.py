#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Java: frames of compiled, inlined and interpreted methods, in the virtual machines that are here and
in those of other suites. What runs is tests/programs/interp/A.java, whose stacks are known."""
import argparse
import collections
import contextlib
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import beside
import interp
from live import age, check, done, need_root, running, sampling, skip, stackbpf, wait_for

HERE = pathlib.Path('/usr/lib/jvm')
SUITES = (('sid', 8), ('bullseye', 11), ('trixie', 21), ('trixie', 25))
MODES = {
    'default': (),
    'interpreted': ('-Xint',),
    'C1': ('-XX:TieredStopAtLevel=1',),
    'frame pointers': ('-XX:+PreserveFramePointer', '-XX:-Inline'),
}
# From main() to the leaf; lines of A.java by what stands in them.
TOP = ('A.main', 'A.top', 'java.util.Arrays$ArrayList.forEach', 'A$$Lambda.accept', 'A.lambda$top$0',
       'A.mid')
AREAS = ('A$Sq.area', 'A$Tri.area', 'A$Circle.area')
FOUND_MIN, COMPLETE_MIN = 0.99, 0.995
SAMPLES_MIN = 300
RUNS_MAX = 4  # on a busy machine, of which a program may have a small part
SLOW = 2.5  # seconds, longer than what is taken as a matter of course
EARLY = 30  # samples of each run before the process is known
# So long that the clocks between the parts take nothing.
WORK = {mode: '5000' if mode == 'interpreted' else '50000' for mode in MODES}


# Up to JDK 9 loops that count have no polls, and so nothing that says which of the methods that were
# compiled into one another they are of, unless it is asked for.
OLD = ('-XX:+UnlockDiagnosticVMOptions', '-XX:+DebugNonSafepoints')


class Machine:
    """One virtual machine: where it is, and how a program is started with it."""

    def __init__(self, name, java, root=None):
        self.name, self.java, self.root = name, java, root

    def start(self, classes, options, *args, **kwargs):
        pipes = {'stdout': subprocess.PIPE, 'stderr': subprocess.DEVNULL, **kwargs}
        if self.root is None:
            return running(self.java, *options, '-cp', str(classes), 'A', *args, **pipes)
        return beside.start(self.root, [self.java, *options, '-cp', '/classes', 'A', *args],
                            files={f'/classes/{c.name}': c for c in classes.iterdir()}, **pipes)


def version_at(home):
    with contextlib.suppress(OSError):
        found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', (home / 'release').read_text(), re.M)
        return int(found[1]) if found else None
    return None


def machines():
    here = set()
    for java in sorted(HERE.glob('*/bin/java')):
        home = java.parent.parent
        if not home.is_symlink():
            here.add(version_at(home))
            yield Machine(home.name, str(java))
    for suite, version in SUITES:
        # Others' builds of the same: with --all.
        if version in here and not beside.is_allowed('all'):
            print(f'without JDK {version} of {suite}: the system has one')
            continue
        try:
            root = beside.unpack(suite, [f'openjdk-{version}-jre-headless'])
        except beside.Missing as reason:
            print(f'without JDK {version} of {suite}: {reason}')
            continue
        homes = [f'usr/lib/jvm/java-{version}-openjdk-amd64/{sub}bin/java' for sub in ('', 'jre/')]
        java = next((home for home in homes if (root / home).exists()), None)
        if java:
            yield Machine(f'JDK {version} of {suite}', f'/{java}', root)


def wait_ready(process):
    for line in process.stdout:
        if b'ready' in (line if isinstance(line, bytes) else line.encode()):
            return
    raise AssertionError('the program ended before it was ready')


def java_of(stack):
    """The methods of a stack: from main() or run() on."""
    at = next((i for i, frame in enumerate(stack) if frame.split(' ')[0] == 'A.main'), None)
    return stack[at:] if at is not None else ()


def write(process, text):
    with contextlib.suppress(OSError, ValueError):
        process.stdin.write(text if isinstance(process, beside.Program) else text.encode())
        process.stdin.flush()


def sampled(args, machine, mode, *program, view=('oncpu', '-F', '999'), seconds='2', lines=False, needed=0):
    """As many runs as it takes to have so many samples of the thread that runs main()."""
    options = ('-XX:-UsePerfData', *(OLD if 'JDK 8' in machine.name else ()), *MODES[mode])
    with machine.start(args.classes, options, *program, stdin=subprocess.PIPE) as process:
        wait_ready(process)
        ended = threading.Event()
        feeder = threading.Thread(target=feed, args=(process, ended))
        if program[0] == 'waits':
            feeder.start()
        stacks = collections.Counter()
        for nr_runs in range(1, RUNS_MAX + 1):
            result = stackbpf(args.stackbpf, *view, '-p', str(process.pid), '-t', seconds,
                              *(['--lines'] if lines else []))
            stacks += result.stacks
            result.stacks, result.nr_runs = stacks, nr_runs
            if sum(one_thread(result).values()) >= needed:
                break
        ended.set()
        if program[0] == 'waits':
            feeder.join()
        result.spent = interp.spent(process)
        return result


def feed(process, ended):
    """Something to read, so that who reads is seen to wait."""
    while not ended.wait(0.02):
        write(process, 'x')


def check_health(result, what):
    truncated = sum(w for s, w in result.stacks.items() if any('truncated' in f for f in s))
    # What was taken before there are tables, and before the process is known, says so, or is of the
    # first 30 ms of a run.
    waited = sum(w for s, w in result.stacks.items() if any('not ready' in f for f in s))
    check(waited <= 0.15 * result.total, f'{what}: {waited} before there were tables')
    complete = 1 - max(0, truncated - waited - EARLY * result.nr_runs) / max(result.total - waited, 1)
    check(complete >= COMPLETE_MIN, f'{what}: {complete:.2%} complete ({truncated} not)')
    unknown = sum(w for s, w in result.stacks.items() if any('unreadable' in f for f in s))
    # Code that was replaced by better code before its names were read.
    check(interp.are_few(unknown, result.total, 0.005), f'{what}: {unknown} with frames that could not be read')


def one_thread(result):
    """Samples of the thread that runs main()."""
    return {s: w for s, w in result.stacks.items() if java_of(s)}


def by_java(result, is_meant):
    """The same by methods alone: roots may be cut, before there are tables."""
    methods = collections.Counter()
    for stack, weight in one_thread(result).items():
        if is_meant(stack):
            methods[java_of(stack)] += weight
    return methods


def check_top(args, machine, mode):
    what = f'{machine.name}, {mode}'
    result = sampled(args, machine, mode, 'top', WORK[mode], needed=SAMPLES_MIN)
    stacks = one_thread(result)
    total = sum(stacks.values())
    check_health(result, what)
    found = re.search(r'java \S+( \(\S+\))?: ([\d.]+) % of', result.err)
    check(found and float(found.group(2)) >= 100 * FOUND_MIN - 2, f'{what}: {result.err.strip()[-200:]}')
    check(total >= SAMPLES_MIN, f'{what}: {total} samples of main()')
    known = sum(w for s, w in stacks.items() if is_known(java_of(s)))
    check(known >= FOUND_MIN * total, f'{what}: {known} of {total} stacks as they must be')
    weights = {area: sum(w for s, w in stacks.items() if (*TOP, area) == java_of(s)[:len(TOP) + 1])
               for area in AREAS}
    check(sum(weights.values()) >= 0.9 * total, f'{what}: {weights} of {total}')
    interp.check_shares(what, weights, result.spent)


def is_known(java):
    """Whether it is the known tree, down to some depth; below it there may be the kernel. Beside it main()
    says what it has spent."""
    if java[1:2] == ('A.say',):
        return True
    want = (*TOP, java[len(TOP)]) if len(java) > len(TOP) and java[len(TOP)] in AREAS else TOP
    both = list(zip(java, want))
    return all(a == b for a, b in both[:-1]) and (both[-1][0] == both[-1][1] or len(java) <= len(both) + 9)


def check_recursion(args, machine, mode):
    what = f'{machine.name}, {mode}, recursion'
    result = sampled(args, machine, mode, 'down', '2000', seconds='1', needed=SAMPLES_MIN)
    stacks = {s: w for s, w in one_thread(result).items() if s[-1] in AREAS}
    check_health(result, what)
    total = sum(stacks.values())
    deep = sum(w for s, w in stacks.items() if s.count('A.down') == 51)
    check(total > 100 and deep >= FOUND_MIN * total, f'{what}: {deep} of {total} have all 51')


def check_sort(args, machine, mode):
    what = f'{machine.name}, {mode}, a comparator'
    result = sampled(args, machine, mode, 'sort', '2000', seconds='1', needed=SAMPLES_MIN)
    stacks = by_java(result, lambda s: s[-1] == 'A$Sq.area')
    check_health(result, what)
    right = sum(w for s, w in stacks.items()
                if s[:3] == ('A.main', 'A.sort', 'java.util.Arrays.sort') and
                s[-3] == 'A$$Lambda.compare' and s[-2].startswith('A.lambda$sort$'))
    total = sum(stacks.values())
    check(total > 100 and right >= FOUND_MIN * total, f'{what}: {right} of {total}')


def line_of(args, text):
    return next(i for i, line in enumerate(args.source.read_text().splitlines(), 1) if text in line)


def check_lines(args, machine, mode):
    what = f'{machine.name}, {mode}, lines'
    result = sampled(args, machine, mode, 'top', WORK[mode], seconds='1', lines=True, needed=SAMPLES_MIN)
    want = tuple(f'{name} A.java:{line_of(args, text)}' for name, text in (
        ('A.main', '// of main()'), ('A.top', 'forEach(x -> mid(x))'),
        ('A.lambda$top$0', 'forEach(x -> mid(x))'), ('A.mid', 'sink += SQ.area(7 * n);')))
    stacks = by_java(result, lambda s: 'A$Sq.area A.java' in ';'.join(s))
    right = sum(w for s, w in stacks.items() if (s[0], s[1], s[4], s[5]) == want)
    total = sum(stacks.values())
    check(total > 100 and right >= FOUND_MIN * total, f'{what}: {right} of {total}: {want}')
    leaf = {int(f.rsplit(':', 1)[1]) for s in stacks for f in s[6:7] if ':' in f}
    lines = args.source.read_text().splitlines()
    check(leaf and all('s = ' in lines[n - 1] or 'for (' in lines[n - 1] or 'return s' in lines[n - 1]
                       for n in leaf), f'{what}: leaves at {sorted(leaf)}')


WAITS = {
    ('A.main', 'A.waits', 'A.nap', 'java.lang.Thread.sleep'): 'asleep',
    ('A.enter',): 'at a lock',
    ('A.block', 'java.lang.Object.wait'): 'in wait()',
    ('A.read', 'java.io.BufferedInputStream.read'): 'reading',
}


def has(stack, part):
    """Whether these follow one another in it, others between them allowed behind the first two."""
    at = 0
    for frame in stack:
        at += at < len(part) and frame == part[at]
    return at == len(part)


def check_waits(args, machine, mode):
    what = f'{machine.name}, {mode}, off CPU'
    result = sampled(args, machine, mode, 'waits', '0', view=('offcpu',), seconds='1')
    for part, how in WAITS.items():
        check(any(has(s, part) for s in result.stacks), f'{what}: {how}')


def check_truth(args, machine, mode):
    """What the machine itself says at a quiet point: jstack's frames are those that were sampled."""
    jstack = shutil.which('jstack')
    if machine.root is not None or not jstack or str(pathlib.Path(jstack).resolve().parent) != str(
            pathlib.Path(machine.java).resolve().parent):
        return
    with machine.start(args.classes, MODES[mode], 'waits', '0', stdin=subprocess.PIPE) as process:
        wait_ready(process)
        ended = threading.Event()
        feeder = threading.Thread(target=feed, args=(process, ended))
        feeder.start()
        result = stackbpf(args.stackbpf, 'offcpu', '-p', str(process.pid), '-t', '1')
        ended.set()
        feeder.join()
        says = subprocess.run([jstack, str(process.pid)], capture_output=True, text=True).stdout
    for thread in ('read', 'block', 'enter'):
        block = re.search(rf'"{thread}".*?\n\n', says, re.S)
        frames = [re.sub(r'^[\w.]+(/|@[\d.]+/)', '', name) for name in
                  re.findall(r'\tat ([^(]+)\(', block.group(0))] if block else []
        want = tuple(re.sub(r'\$\$Lambda.*\.', '$$Lambda.', f) for f in reversed(frames))
        got = [tuple(f for f in s if '.' in f and '::' not in f and '[' not in f) for s in result.stacks]
        check(want and any(g[-len(want):] == want or has(g, want) for g in got),
              f'{machine.name}: as jstack says: {want}')


def check_newborn(args, machine):
    """One that is looked at while the loader is at it is not refused: it is looked at again."""
    result = stackbpf(args.stackbpf, 'oncpu', '-F', '999', '-s', '--', 'sh', '-c',
                      f'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {machine.java} -version & done 2>/dev/null; wait')
    check(result.total > 100 and 'java' in result.err, f'{machine.name}: machines that begin: {result.total} samples')
    check('has no frames of java' not in result.err, f'{machine.name}: none is refused: {result.err}')


def stop_as_linked(process):
    """Stop it while the loader is at it."""
    while b'libjvm' not in pathlib.Path(f'/proc/{process.pid}/maps').read_bytes():
        pass
    process.send_signal(signal.SIGSTOP)


def check_slow(args, machine):
    """One that takes seconds to begin, such as in a container with little of a CPU, is not refused for good."""
    with running(machine.java, '-XX:-UsePerfData', '-cp', str(args.classes), 'A', 'down', '1000',
                 stdout=subprocess.DEVNULL) as process:
        stop_as_linked(process)
        with sampling(args.stackbpf, 'oncpu', '-p', str(process.pid)) as run:
            wait_for(lambda: age(process.pid) > SLOW, 'it is no newborn any more')
            begin = run.snapshot().stacks
            process.send_signal(signal.SIGCONT)
            wait_for(lambda: any('A.main' in s for s in run.snapshot().stacks - begin),
                     f'{machine.name}: frames of a machine that began slowly')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('stackbpf')
    parser.add_argument('programs', type=pathlib.Path)
    parser.add_argument('--only', default='', help='machines whose name has this')
    args = parser.parse_args()
    need_root()
    if not shutil.which('javac'):
        skip('there is no Java compiler')
    args.source = args.programs / 'interp/A.java'
    with contextlib.ExitStack() as stack:
        args.classes = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        subprocess.run(['javac', '--release', '8', '-Xlint:-options', '-g', '-d', str(args.classes),
                        str(args.source)], check=True)
        tried = [m for m in machines() if args.only in m.name]
        if not tried:
            skip('there is no Java virtual machine')
        for at, machine in enumerate(tried):
            for mode in MODES if at == 0 else ('default', 'interpreted'):
                check_top(args, machine, mode)
            if at == 0:
                check_recursion(args, machine, 'interpreted')
                check_sort(args, machine, 'C1')
                check_lines(args, machine, 'interpreted')
                check_truth(args, machine, 'default')
                check_newborn(args, machine)
                check_slow(args, machine)
            check_recursion(args, machine, 'default')
            check_sort(args, machine, 'default')
            check_lines(args, machine, 'default')
            check_waits(args, machine, 'default')
    done()


if __name__ == '__main__':
    sys.exit(main())
