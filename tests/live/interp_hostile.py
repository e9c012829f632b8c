#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that look like interpreters and are none; interpreters whose frames others write over; some
that are gone at once; files with an interpreter that change while they are mapped. stackbpf ends as ever,
says what it refuses, and nothing is wrong but frames that are the hostile program's own.

interp_hostile.py STACKBPF SOURCES PROGRAMS [SEED [CASE...]]
"""
import collections
import contextlib
import glob
import json
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import interp
import live

HZ, SECONDS = '997', 3
# Beyond SECONDS: to begin, and to name all that was found.
SECONDS_MORE = 20
SAMPLES_MIN, ROUNDS_MAX = 150, 5
# With -a no process is known when the run begins, and machines are busy: so many may go by till then,
# in each run.
BEGIN_SAMPLES = 60
NOT_READY = '[truncated: unwind table not ready]'
PYTHON = '/usr/bin/python3'
ANNOTATION = '_[p]'
# What a process is in that was cut off: not "[python truncated: ...]".
CUT = re.compile(r'\[truncated')


def cpu_seconds():
    """Of all that has ended: how long something takes depends on who else wants a CPU."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def look(view, *options, seconds=SECONDS, command=()):
    """Return: live.Result; that it ends well, and what time it takes of a CPU for that, is checked."""
    begin = cpu_seconds()
    result = live.stackbpf(STACKBPF, view, *(('-t', str(seconds)) if seconds else ()), '--annotate', '--stats',
                           *options, *command)
    took = cpu_seconds() - begin
    live.check(result.status == 0, f'{view}: exit status {result.status} {"" if not result.status else result.err[-400:]}')
    live.check(took < (seconds or 0) + SECONDS_MORE, f'{view}: it took {took:.1f} s of a CPU')
    check_defined(view, result.err)
    return result


def check_defined(view, err):
    """Of builds with sanitizers."""
    found = re.search(r'(.*runtime error|.*Sanitizer)(.*\n){1,12}', err)
    live.check(not found, f'{view}: nothing is undefined {found[0] if found else ""}')


def start(stack, *command, **kwargs):
    process = stack.enter_context(live.running(*command, stdout=subprocess.PIPE, text=True, **kwargs))
    line = process.stdout.readline()
    live.check(line, f'{os.path.basename(command[0])}: it runs')
    return process, line


def of_name(result, name):
    """Stacks of a program, without its name."""
    return collections.Counter({s[1:]: w for s, w in result.stacks.items() if s[0] == name})


def is_python(frame):
    return frame.endswith(ANNOTATION)


def native(stack):
    return [frame for frame in stack if not frame.endswith(('_[k]', ANNOTATION))]


# Programs that are no interpreters.

OWN = ('main', 'luaV_execute', 'turn', 'seventy', 'twenty', 'ten', 'spin', 'scribble', 'arrange', 'fill',
       'bad_word', 'next')
PATHS = [['main', 'turn', name, 'spin'] for name in ('seventy', 'twenty', 'ten')]
# These are believed, which costs nobody else anything.
BELIEVED = ('lua', 'v8', 'v8_huge')


def forged():
    paths = sorted(glob.glob(f'{PROGRAMS}/hostile_*'))
    paths = [path for path in paths if os.path.isfile(path) and '.' not in os.path.basename(path)]
    live.check(len(paths) > 8, f'{len(paths)} programs that look like interpreters')
    names = [os.path.basename(path)[8:] for path in paths]
    stacks = collections.defaultdict(collections.Counter)
    with contextlib.ExitStack() as stack:
        pids = [start(stack, path, name, str(SEED + i))[0].pid for i, (path, name) in enumerate(zip(paths, names))]
        for _ in range(ROUNDS_MAX):
            result = look('oncpu', '-F', HZ, '-p', ','.join(map(str, pids)))
            for name in names:
                stacks[name] += of_name(result, name)
            if all(stacks[name].total() >= SAMPLES_MIN for name in names):
                break
        look('offcpu', '-p', ','.join(map(str, pids)), seconds=1)
        silent = silent_about({path: pid for path, pid, name in zip(paths, pids, names) if name not in BELIEVED})
    live.check(not silent, f'that they are refused is said of all {list(silent)}')
    for name in names:
        check_forged(name, stacks[name])


def silent_about(pids):
    """Those of {path: process} that are not said to be refused. Few at a time: it stops at some lines."""
    for _ in range(2 * ROUNDS_MAX):
        some = list(pids)[:4]
        if not some:
            break
        result = look('oncpu', '-p', ','.join(str(pids[path]) for path in some), seconds=0.3)
        for path in some:
            pid = pids.pop(path)
            if not re.search(rf"process {pid} has no frames of \w+ \('{path}'\): \S.*", result.err):
                pids[path] = pid
    return pids


def check_forged(name, stacks):
    total = stacks.total()
    live.check(total >= SAMPLES_MIN, f'{name}: {total} samples')
    cut = sum(w for s, w in stacks.items() if any(map(CUT.match, s)))
    live.check(interp.are_few(cut, total, 0.005), f'{name}: {cut} of {total} stacks are cut')
    seen, odd = collections.Counter(), collections.Counter()
    for stack, weight in stacks.items():
        own = [frame for frame in native(stack) if frame in OWN and frame != 'luaV_execute']
        has_spun = 'spin' in own
        if (has_spun and own not in PATHS) or (not has_spun and own and own[0] != 'main'):
            odd[';'.join(stack)] += weight
        if any(map(is_python, stack)) and name not in BELIEVED:
            odd[';'.join(stack)] += weight
        seen[own[2] if has_spun and len(own) > 2 else None] += weight
    live.check(interp.are_few(odd.total(), total, 0.005), f'{name}: its calls are its own: {dict(odd.most_common(2))}')
    spun = seen.total() - seen[None]
    live.check(spun >= 0.5 * total, f'{name}: {spun} of {total} samples are in its loop')
    share = seen['seventy'] / max(spun, 1)
    live.check(abs(share - 0.7) < 0.12, f'{name}: seventy has {100 * share:.1f} %')


# Interpreters whose memory others write to.

class Scribbler(threading.Thread):
    """Writes to a process what does most harm, until it is told to end."""

    def __init__(self, make):
        super().__init__(daemon=True)
        self.make, self.is_ending, self.nr_words, self.nr_lives = make, threading.Event(), 0, 0
        self.error = None

    def run(self):
        try:
            while not self.is_ending.is_set():
                with contextlib.ExitStack() as stack:
                    process, regions = self.make(stack)
                    self.nr_lives += 1
                    self.scribble(process, regions)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def scribble(self, process, regions):
        chance = random.Random(SEED + self.nr_lives)
        targets = [at for at, _ in regions]
        with open(f'/proc/{process.pid}/mem', 'r+b', buffering=0) as memory:
            while not self.is_ending.is_set() and process.poll() is None:
                begin, nr_bytes = chance.choice(regions)
                at = begin + chance.randrange(nr_bytes // 8) * 8
                try:
                    os.pwrite(memory.fileno(), struct.pack('<Q', bad_word(chance, at, targets)), at)
                except OSError:
                    regions = [region for region in regions if region[0] != begin]
                    if not regions:
                        break
                self.nr_words += 1
                if self.nr_words % 64 == 0:
                    time.sleep(0.001)

    def end(self):
        self.is_ending.set()
        self.join(240)
        live.check(not self.is_alive() and not self.error, f'scribbling ends {self.error or ""}')


def bad_word(chance, at, targets):
    return chance.choice((
        at, chance.choice(targets), chance.choice(targets), chance.choice(targets) + 8 * chance.randrange(32),
        chance.choice(targets) + chance.randrange(64), 0, chance.randrange(4096), chance.getrandbits(64),
        0xffff888000000000 | chance.getrandbits(40), 0x800000000000 + chance.getrandbits(16),
        (at & ~4095) + 4095, 2**64 - 1 - chance.randrange(64), 0x7fffffffe000 + chance.randrange(4096)))


def without_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def python_child(name, what):
    def make(stack):
        process, line = start(stack, PYTHON, f'{SOURCES}/scribbled.py', name, what, preexec_fn=without_cores)
        return process, json.loads(line)
    return make


def other_child(*command):
    """All of its memory, but the stacks: it may crash at once, or not."""
    def make(stack):
        process, _ = start(stack, *command, preexec_fn=without_cores, stderr=subprocess.DEVNULL)
        regions = []
        with open(f'/proc/{process.pid}/maps', encoding='ascii') as maps:
            for line in maps:
                fields = line.split()
                begin, end = (int(word, 16) for word in fields[0].split('-'))
                if fields[1].startswith('rw') and (len(fields) == 5 or fields[5] == '[heap]'):
                    regions.append([begin, min(end - begin, 4 << 20)])
        return process, regions
    return make


# Each is in C for long after it has said that it is there.
OTHERS = (('/usr/bin/perl', '-e', '$| = 1; sub deep { my $n = shift; return deep($n - 1) if $n; print "1\\n"; '
           'unpack("%32b*", "x" x 1e7) while 1 } deep(5)'),
          ('/usr/bin/php', '-r', 'function deep($n) { if ($n) return deep($n - 1); print("1\\n"); '
           'return hash_pbkdf2("sha256", "a", "b", 100000000); } deep(5);'),
          ('/usr/bin/ruby', '-e', '$stdout.sync = true; def deep(n); return deep(n - 1) if n > 0; puts 1; '
           'loop { Array.new(1000000, 1).sum }; end; deep(5)'))


def scribbled():
    live.check(os.path.exists(PYTHON), 'there is a Python')
    makers = [python_child('scribbled', 'runs'), python_child('scribbledwait', 'waits')]
    makers += [other_child(*command) for command in OTHERS if os.path.exists(command[0])]
    with contextlib.ExitStack() as stack:
        healthy, truth = start(stack, PYTHON, f'{SOURCES}/tree.py', 'healthy', stdin=subprocess.PIPE)
        truth = json.loads(truth)
        scribblers = [Scribbler(make) for make in makers]
        for scribbler in scribblers:
            scribbler.start()
        live.wait_for(lambda: all(s.nr_words > 1000 or s.error for s in scribblers), 'all are written to')
        stacks, wrong = collections.Counter(), collections.Counter()
        for nr_runs in range(1, ROUNDS_MAX + 1):
            waiting = subprocess.Popen([STACKBPF, 'offcpu', '--max-overhead=off', '-a', '-t', str(SECONDS), '--annotate'],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='replace')
            result = look('oncpu', '-a', '-F', HZ)
            out, err = waiting.communicate(timeout=SECONDS + 2 * SECONDS_MORE)
            live.check(waiting.returncode == 0, f'offcpu meanwhile: exit status {waiting.returncode} '
                       f'{err[-400:] if waiting.returncode else ""}')
            check_defined('offcpu', err)
            live.check('\nhealthy;' in out, 'offcpu: the healthy one waits')
            stacks += of_name(result, 'healthy')
            wrong += of_name(result, 'scribbled')
            if min(stacks.total(), wrong.total()) >= 2 * SAMPLES_MIN:
                break
        for scribbler in scribblers:
            scribbler.end()
        print(f'{[(s.nr_words, s.nr_lives) for s in scribblers]} words, lives')
    check_healthy(truth, stacks, nr_runs)
    check_scribbled(wrong, nr_runs)


def check_healthy(truth, stacks, nr_runs):
    known = {name for which in ('seventy', 'twenty', 'ten') for name, _, _ in truth[which]} | {'record', 'stack_of', 'name_of'}
    root = [name for name, _, _ in truth['seventy'][:3]]
    # As far as they are the same in all three.
    while any([f[0] for f in truth[which][:len(root)]] != root for which in ('twenty', 'ten')):
        root.pop()
    total, framed, wrong = stacks.total(), 0, collections.Counter()
    for stack, weight in stacks.items():
        names = [frame[:-len(ANNOTATION)] for frame in stack if is_python(frame)]
        framed += weight if names else 0
        if names and (set(names) - known - {'<lambda>'} or names[:len(root)] != root[:len(names)]):
            wrong[';'.join(names)] += weight
        leaf = names[-1] if names else None
        if leaf in ('seventy', 'twenty') and names != [name for name, _, _ in truth[leaf]]:
            wrong[';'.join(names)] += weight
        if any(map(CUT.match, stack)) and NOT_READY not in stack:
            wrong[';'.join(stack)] += weight
    live.check(total >= SAMPLES_MIN, f'healthy: {total} samples')
    live.check(interp.are_most(framed + nr_runs * BEGIN_SAMPLES, total, 0.99), f'healthy: {framed} of {total} have frames of Python')
    live.check(not wrong, f'healthy: each stack is right {dict(wrong.most_common(3))}')


def check_scribbled(stacks, nr_runs):
    total = stacks.total()
    live.check(total >= SAMPLES_MIN, f'scribbled: {total} samples')
    cut = collections.Counter({s: w for s, w in stacks.items() if any(map(CUT.match, s))})
    live.check(interp.are_few(cut.total() - nr_runs * BEGIN_SAMPLES, total, 0.005), f'scribbled: {cut.total()} of {total} stacks are cut {list(cut)[:1]}')
    based = sum(w for s, w in stacks.items() if native(s)[:1] == ['_start'])
    live.check(interp.are_most(based + nr_runs * BEGIN_SAMPLES, total, 0.995), f'scribbled: {based} of {total} native stacks begin where it began')


# Gone at once.

def figure(result, row, what):
    match = re.search(rf'{row} .*?(\d+) {what}', result.err)
    live.check(match, f"'{row}' is counted")
    return int(match[1]) if match else 0


def short_lives():
    loop = 'while :; do /usr/bin/python3 -S -c pass; /usr/bin/perl -e 1; done'
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            process = subprocess.Popen(['sh', '-c', loop], start_new_session=True)
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
        result = look('oncpu', '-a', '-F', HZ)
    stacks = of_name(result, 'python3') + of_name(result, 'perl')
    live.check(stacks.total() >= SAMPLES_MIN, f'{stacks.total()} samples of interpreters that live shortly')
    unread = sum(w for s, w in stacks.items() if any(f.startswith(('[unreadable', '[forgotten')) for f in s))
    framed = sum(w for s, w in stacks.items() if any(map(is_python, s)))
    print(f'{framed} with their frames, {unread} of them with names that were not read')
    counted = figure(result, 'names of their frames', 'unreadable')
    live.check(not unread or counted, f'names that were lost are counted: {counted}')
    figure(result, 'their stacks lost', 'without memory')


def last_words():
    """Where it is not known in time, on a busy machine, its function is not seen; but not without a name."""
    nr_seen = 0
    for _ in range(8):
        result = look('oncpu', '-F', HZ, seconds=None, command=('--', PYTHON, '-S', f'{SOURCES}/brief.py'))
        nr_seen += any('only_once' + ANNOTATION in s for s in result.stacks)
        # Code that runs once as it begins, of getpath and modules, is freed before anybody has read it;
        # of a stack that was cut nobody knows whether it is such.
        lost = [s for s in result.stacks if not {'_find_and_load' + ANNOTATION, 'init_interp_main'} & set(s) and
                not any(f.startswith('[truncated') for f in s) and
                any(f.startswith(('[unreadable', '[forgotten')) for f in s)]
        live.check(not lost, f'a process that has ended 50 ms later still has its names {lost[:1]}')
    live.check(nr_seen >= 6, f'what it did last is seen: {nr_seen} of 8')


# Files that change while they are mapped.

def churned():
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        for i, name in enumerate(('python313', 'perl')):
            start(stack, PYTHON, f'{SOURCES}/churned.py', 'churned', f'{PROGRAMS}/hostile_{name}', f'{work}/{name}',
                  str(SEED + i))
        result = look('oncpu', '-a', '-F', HZ)
        stacks = of_name(result, 'churned')
        look('offcpu', '-a', seconds=1)
    total, framed, wrong = stacks.total(), 0, collections.Counter()
    for s, w in stacks.items():
        names = [frame[:-len(ANNOTATION)] for frame in s if is_python(frame)]
        framed += w if names else 0
        if names and names[:2] != ['<module>', 'main'][:len(names)]:
            wrong[';'.join(names)] += w
    live.check(total >= SAMPLES_MIN, f'churned: {total} samples')
    live.check(framed >= 0.95 * total - BEGIN_SAMPLES, f'churned: {framed} of {total} have frames of Python')
    live.check(not wrong, f'churned: each is of its own Python {dict(wrong.most_common(3))}')


def main():
    live.need_root()
    print(f'seed {SEED}')
    for case in (forged, scribbled, short_lives, last_words, churned):
        if sys.argv[5:] and case.__name__ not in sys.argv[5:]:
            continue
        begin = time.monotonic()
        case()
        print(f'{case.__name__}: {time.monotonic() - begin:.1f} s')
    live.done()


STACKBPF, SOURCES, PROGRAMS = map(os.path.abspath, sys.argv[1:4])
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else int(time.time())
main()
