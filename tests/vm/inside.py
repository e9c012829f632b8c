#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""In the guest: runs what is to be tested there, and says what came out as lines of JSON.

inside.py BUILD few|normal|some|all|old [WORD...]      cells.py: which; WORD: only what has it in its name

{"kind": "test", "what": name, "result": "pass"|"fail"|"skip", "why": ..., "seconds": ..., "commit": of stackbpf}
{"kind": "cell", "what": ..., "view": ..., "unwinder": ..., "interp": ..., "result": ..., "why": ...}
{"kind": "cost", "what": program, "insns": number, "result": "pass"}"""
import collections
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import cells
from cells import cannot

BUILD = pathlib.Path(sys.argv[1])
MODE = sys.argv[2]
ONLY = sys.argv[3:]
PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / 'programs'
LIVE = PROGRAMS.parent / 'live'
STACKBPF = str(BUILD / 'user/cli/stackbpf')
SECONDS_MAX = cells.SECONDS_MAX[MODE] / 2  # of one thing, of what the machine has: what shares its CPUs makes it slow
OUTPUT_LINES_MAX = 30
SAMPLES_MIN, SAMPLES_MIN_GOVERNED = 25, 4  # if all had been taken at the lowest rate; shares: tests/live/governor.py
TOLERANCE = 2  # of a share, at one sample: 0.2 at 100 (4.4 standard deviations of 70 %: there are hundreds of cells)
FILE_BYTES = 128 << 10
FIRST_BYTES = 4 * FILE_BYTES  # may be read until it has been found out which interpreter a program is
HERTZ, HERTZ_GOVERNED = (int(cells.VIEWS[view][2]) for view in ('oncpu', 'oncpu governed'))
SECONDS = (5, 25)  # of the first run, and of the second if there has to be one
TOO_OLD = 'boot Linux 5.15 or newer'
NOT_READY = '[truncated: unwind table not ready]'
STATES = ('[running]', '[runqueue]', '[throttled]', '[blocked]')
SPLIT = {'seventy': 0.7, 'twenty': 0.2, 'ten': 0.1}


@functools.lru_cache(maxsize=None)
def commit():
    said = subprocess.run([STACKBPF, '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.search(r'commit (\w+)|$', said)[1] or ''


def say(kind, what, result, why='', **more):
    print(json.dumps({'kind': kind, 'what': what, 'result': result, 'why': why, **more, 'commit': commit()}),
          flush=True)


def is_wanted(what):
    return not ONLY or any(word in what for word in ONLY)


# Tests of the tree.

BPF_TESTS = ('test_bpf_core', 'test_bpf_expr', 'test_bpf_unwind_self', 'test_bpf_verifier')
# Name, programs, parts. Those of --all disturb whoever else is on the machine, so they run nowhere else.
LIVE_TESTS = {mode: (('io_kernel', (), ('',)),
                     ('interp_later', ('embed_python',), ('',)),
                     ('record', ('split', BUILD / 'systemd/stackbpf-record.service'), ('kinds_at_once',)))
              for mode in ('few', 'normal', 'some')}
LIVE_TESTS['normal'] += (('trace', (PROGRAMS / 'traced.c',), ('kernel_functions_at_once',)),)
# The rows of cells.TESTED.
MEASURED = (('latency', (PROGRAMS / 'timed.c', PROGRAMS / 'pairs.c'), ('calls',)),
            ('alloc', (BUILD / 'preload/libstackbpf-alloc.so',
                       *(PROGRAMS / name for name in ('leaks.c', 'leaks.cc', 'leaks.py', 'kernelkeeper.py', 'leaks.js', 'Leaks.java',
                                                      'leaks.go', 'leaks.php', 'ages.c'))),
             ('exact', 'held', 'leak', 'kernel')))
LIVE_TESTS['arm64'] = (('trace', (PROGRAMS / 'traced.c',), ('user',)),
                       ('memory', (PROGRAMS / 'keeper.c', PROGRAMS / 'keeper.py', 'libfault.so'), ('held',)),
                       *LIVE_TESTS['some'][-1:], *MEASURED)
LIVE_TESTS['all'] = (*LIVE_TESTS['normal'],
                     ('trace', (PROGRAMS / 'traced.c',),
                      ('user', 'several', 'rate', 'usdt', 'tracepoint', 'counter', 'expressions', 'values', 'places', 'fields',
                       'kernel_functions')),
                     ('presets', (PROGRAMS / 'happens.c',),
                      ('memory', 'calls', 'signals', 'switches', 'several', 'softirqs', 'retransmits', 'out_of_memory')),
                     ('memory', (PROGRAMS / 'keeper.c', PROGRAMS / 'keeper.py', 'libfault.so'),
                      ('held', 'kinds', 'counted', 'ended', 'churned')),
                     ('spans', (PROGRAMS / 'spans.c', PROGRAMS / 'spans.go'), ('oncpu', 'waits', 'jumps', 'threads', 'event_loop')),
                     ('chaos_clock', ('chaos',), ('',)),
                     ('chaos_files', ('chaos', PROGRAMS), ('wrap',)),
                     ('chaos_cpus', ('chaos',), ('offline_and_online', 'online_later', 'again_and_again')),
                     ('chaos_memory', ('chaos',), ('target', 'own')), *MEASURED)
for _mode in ('few', 'all'):
    LIVE_TESTS[_mode] += (('record_clock', ('split',), ('',)),)


def bpf_tests():
    for name in BPF_TESTS:
        output = test(name.replace('test_', '').replace('_self', ''), str(BUILD / 'tests/bpf' / name))
        for program, insns in re.findall(r'^(\w+) +(\d+) instructions verified', output, re.M):
            say('cost', program, 'pass', insns=int(insns))


def live_tests():
    for name, programs, parts in LIVE_TESTS[MODE]:
        for part in parts:
            live_test(f'live {name} {part}'.strip(), sys.executable, str(LIVE / f'{name}.py'), STACKBPF,
                      *(str(BUILD / 'tests/programs' / program) for program in programs), *filter(None, [part]))


def live_test(what, *command):
    """What samples is at the mercy of chance, and of who else uses the CPUs of the host: once more, as on the host."""
    first = test(what, *command, is_last=False)
    if first is not None:
        test(what, *command, before=f'only at the second try: {first}')


def test(what, *command, is_last=True, before=''):
    """By its exit status. @before: said if it passes. Return: what it printed; of one that is not the last try and fails,
    which is not told, its first failure, otherwise None."""
    if not is_wanted(what):
        return '' if is_last else None
    begin = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors='replace', timeout=SECONDS_MAX, check=False)
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        status, output = f'no end within {SECONDS_MAX} s', (error.stdout or b'').decode(errors='replace')
    seconds = time.monotonic() - begin
    lines = output.strip().splitlines()
    if status == 77:
        say('test', what, 'skip', lines[-1] if lines else '', seconds=seconds)
    elif status == 0:
        say('test', what, 'pass', before, seconds=seconds)
    else:
        failed = [line for line in lines if line.startswith(('FAILED', '[  ERROR', '[   LINE'))]
        if not is_last:
            return next(iter(failed + lines[-1:]), f'status {status}')
        say('test', what, 'fail', f'status {status}\n' + '\n'.join(failed + lines[-OUTPUT_LINES_MAX:]),
            seconds=seconds)
    return output if is_last else None


def old():
    """A kernel that is too old: one sentence, and the status that means it."""
    for view in ('oncpu', 'offcpu', 'wakeup', 'offwake', 'wall', 'io'):
        if is_wanted(view):
            done = subprocess.run([STACKBPF, view, '-t', '1'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=SECONDS_MAX, check=False)
            good = done.returncode == 4 and not done.stdout and done.stderr.count('\n') == 1 and TOO_OLD in done.stderr
            say('test', f'{view} is refused', 'pass' if good else 'fail',
                '' if good else f'status {done.returncode}: {done.stdout[:200]}{done.stderr[:500]}')


# The matrix: programs that do a bit of everything, all at once, and what each view has to say of them.

class Program:
    def __init__(self, name, command, work):
        self.name, self.out = name, f'{work}/{name}.told'
        self.fetched, self.stored = f'{work}/{name}.in', f'{work}/{name}.out'
        with open(self.fetched, 'wb') as file:
            file.write(os.urandom(FILE_BYTES))
            file.flush()
            os.fsync(file.fileno())  # else it cannot be dropped from the page cache
        with open(self.out, 'wb') as out:
            self.reader = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=out)
            self.process = subprocess.Popen([*command, self.fetched, self.stored, *extra(name)],
                                            stdout=self.reader.stdin, stdin=subprocess.DEVNULL,
                                            preexec_fn=lambda: os.nice(19))
        self.reader.stdin.close()

    def begin(self):
        end = time.monotonic() + SECONDS_MAX
        while not os.path.getsize(self.out) and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        self.process.send_signal(signal.SIGSTOP)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.wait()


def extra(name):
    return {'lua': ['10000'], 'luajit': ['400000']}.get(name, [])


@functools.lru_cache(maxsize=None)
def commands():
    """{interpreter: command}, of those that there are; "native" is none."""
    java = ['java', '-Xshare:auto', '-XX:TieredStopAtLevel=1', '-cp', str(BUILD / 'vm/classes'), 'Rounds']
    found = {'native': [str(BUILD / 'tests/programs/rounds')],
             'python': ['/usr/bin/python3', f'{PROGRAMS}/rounds.py'], 'perl': ['perl', f'{PROGRAMS}/rounds.pl'],
             'ruby': ['ruby', f'{PROGRAMS}/rounds.rb'], 'php': ['php', f'{PROGRAMS}/rounds.php'],
             'lua': ['lua5.4', f'{PROGRAMS}/rounds.lua'], 'luajit': ['luajit', f'{PROGRAMS}/rounds.lua'],
             'node': ['node', f'{PROGRAMS}/rounds.js'], 'java': java}
    return {name: command for name, command in found.items()
            if shutil.which(command[0]) and (name != 'java' or (BUILD / 'vm/classes').exists())}


@contextlib.contextmanager
def at_work(names):
    with tempfile.TemporaryDirectory() as work:
        work = os.path.realpath(work)
        programs = []
        try:
            # One after the other: who is at work already would make the next one's start last minutes.
            for name, command in commands().items():
                if name in names:
                    programs.append(Program(name, command, work))
                    programs[-1].begin()
            for program in programs:
                program.process.send_signal(signal.SIGCONT)
            yield programs
        finally:
            for program in programs:
                program.end()


class Stacks:
    """What one run said: {stack: weight} of each process; `--by pid` has its number at the root. The state of the
    thread, if it is said, comes behind the leaf."""

    def __init__(self, text):
        self.by_pid, self.facts = collections.defaultdict(collections.Counter), {}
        for line in text.splitlines():
            if line.startswith('#stackbpf;'):
                self.facts = dict(fact.split('=', 1) for fact in line.split(';')[1:])
            stack, _, weight = line.rpartition(' ')
            # Of the first moment, and says so: here everything takes ten times as long as elsewhere.
            if stack and not line.startswith('#') and NOT_READY not in stack:
                frames = stack.split(';')
                at = 0 if frames[0] in STATES else -1
                mark = frames.pop(at) if frames[at] in STATES else ''
                self.by_pid[frames[0].rpartition('-')[2]][(*frames[1:], mark)] += int(weight)

    def of(self, process):
        return self.by_pid[str(process.pid)]

    def hertz(self, asked):
        """The lowest rate at which was sampled."""
        return float(self.facts.get('rate_hz', str(asked)).split('..')[0])


def has(stack, name):
    """A function of that name, as each interpreter writes it: round_of, main::round_of, Rounds.round_of,
    Object#round_of."""
    return any(re.fullmatch(rf'(.*[:.#])?{name}(\(.*)?', frame) for frame in stack)


def weight(stacks, *names):
    return sum(w for s, w in stacks.items() if all(has(s, name) for name in names))


def near(have, want, tolerance):
    return abs(have - want) <= tolerance


def check_split(program, stacks, nr_each):
    """nr_each: the weight of a sample, the largest one. Waits are no samples."""
    facts, stacks = stacks.facts, {s: w for s, w in stacks.of(program.process).items() if s[-1] in ('', '[running]')}
    ours = {name: weight(stacks, name) for name in SPLIT}
    total = sum(ours.values())
    nr_samples = total / nr_each
    if nr_samples < (SAMPLES_MIN_GOVERNED if 'rate_hz' in facts else SAMPLES_MIN):
        return f'{nr_samples:.0f} samples in the three functions of {sum(stacks.values())}'
    for name, want in SPLIT.items():
        if not near(ours[name] / total, want, TOLERANCE / nr_samples ** 0.5):
            return f'{name}: {100 * ours[name] / total:.0f} % of {100 * want:.0f} %'
    below = sum(weight(stacks, 'round_of', name) for name in SPLIT)
    return '' if below > 0.95 * total else f'{below} of {total} samples have their caller'


def check_oncpu(program, stacks, is_fp):
    return check_split(program, stacks, 1)


def check_oncpu_governed(program, stacks, is_fp):
    return check_split(program, stacks, HERTZ_GOVERNED / stacks.hertz(HERTZ_GOVERNED))


def check_blocked(program, stacks, is_fp):
    """It is blocked in nap() and, as long as the disk takes, in what works with files, and nowhere else."""
    ours = {s: w for s, w in stacks.of(program.process).items() if s[-1] in ('', '[blocked]')}
    inside = weight(ours, 'round_of')
    if not inside:
        return f'no stacks with its functions, of {sum(ours.values())} us'
    if is_fp:
        return ''
    parts = {name: weight(ours, 'round_of', name) for name in ('nap', 'fetch', 'touch', 'store', 'tell', *SPLIT)}
    if parts['nap'] < 0.1 * inside or sum(parts.values()) < 0.9 * inside:
        return f'of {inside} us in its functions: {parts}'
    return ''


def check_wall(program, stacks, is_fp):
    # A tick has the time since the last one, and in an emulated machine most are late.
    return check_split(program, stacks, 2e6 / stacks.hertz(HERTZ)) or check_blocked(program, stacks, is_fp)


def check_wakeup(program, stacks, is_fp):
    """Its reader is woken by tell(), or a timer that hit upon it."""
    ours = {s: w for s, w in stacks.of(program.process).items() if 'cat' in s[-2]}
    told = weight(ours, 'round_of') if is_fp else weight(ours, 'round_of', 'tell')
    total = sum(ours.values())
    return '' if told > 0.8 * total else f'woken in tell(): {told} of {total}'


def check_offwake(program, stacks, is_fp):
    ours = {s: w for s, w in stacks.of(program.reader).items() if '--' in s}
    told = weight(ours, 'round_of') if is_fp else weight(ours, 'round_of', 'tell')
    total = sum(ours.values())
    return '' if told > 0.8 * total else f'woken in tell(): {told} of {total}'


def check_file(function, path, reads):
    def check(program, stacks, is_fp):
        place = getattr(program, path)
        ours = {s: w for s, w in stacks.of(program.process).items()
                if place in s and any(re.match(reads, frame) for frame in s)}
        total = sum(ours.values())
        good = weight(ours, 'round_of') if is_fp else weight(ours, 'round_of', function)
        first = 0 if program.name == 'native' else FIRST_BYTES
        # 'block' reads each file ten times in the first run, the others once a round.
        if total < 2 * first:
            return f'{total} bytes of {place}, and {2 * first} are needed to judge'
        return '' if good > 0.9 * total - first else f'in {function}(): {good} of {total} of {place}'
    return check


CHECKS = {
    'oncpu': check_oncpu,
    'offcpu': check_blocked,
    'wakeup': check_wakeup,
    'offwake': check_offwake,
    'wall': check_wall,
    'io': check_file('fetch', 'fetched', 'sys_p?read'),
    'io cache': check_file('fetch', 'fetched', 'cache_|readahead'),
    'io block': check_file('fetch', 'fetched', 'block_read'),
    'io fsync': check_file('store', 'stored', 'sys_fsync'),
    'io fault': check_file('touch', 'fetched', 'fault_'),
    'oncpu governed': check_oncpu_governed,
}


def check(view, program, stacks, is_fp):
    """Return: what is wrong."""
    if cells.is_governed(view) and not int(stacks.facts.get('governed_us', 0)):
        return 'it was not governed: it cost less than the limit'
    return CHECKS.get(view, CHECKS[view.removesuffix(' governed')])(program, stacks, is_fp)


@contextlib.contextmanager
def empty_caches():
    """What is read comes from the disk, again and again."""
    ended = threading.Event()

    def run():
        while not ended.wait(0.5):
            with open('/proc/sys/vm/drop_caches', 'w', encoding='ascii') as file:
                file.write('1')
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def all_cells():
    for names, views in cells.MODES[MODE]:
        run_views(views, names)


def run_views(views, names):
    wanted = [(view, unwinder) for view, unwinder in views if any(is_wanted(f'{view} {unwinder} {name}')
                                                                  for name in names)]
    missing = [name for name in names if name not in commands()]
    for name in missing if wanted else ():
        say('without', name, 'skip', f'there is no {name}')
    if not wanted or len(missing) == len(names):
        return
    with at_work(names) as programs:
        for view, unwinder in wanted:
            doing = [program for program in programs if cells.applies(view, program.name)]
            for program in doing:
                why = cannot(view, unwinder, program.name)
                if why:
                    say('cell', f'{view} {unwinder} {program.name}', 'skip', why,
                        view=view, unwinder=unwinder, interp=program.name)
            able = [program for program in doing if not cannot(view, unwinder, program.name)]
            if able:
                run_view(view, unwinder, able)


def run_view(view, unwinder, programs):
    """Those of which too little was seen in the first run are looked at again, for longer: in a machine
    that is emulated on a busy one, nobody knows what happens within a second."""
    begin, stopped = time.monotonic(), []
    for seconds in SECONDS:
        found = {program: outcome(view, unwinder, program, *seen) for seen in [sample(view, unwinder, programs, seconds)]
                 for program in programs}
        for program, why in found.items():
            if not why or seconds == SECONDS[-1]:
                say('cell', f'{view} {unwinder} {program.name}', 'fail' if why else 'pass', why, view=view,
                    unwinder=unwinder, interp=program.name, seconds=time.monotonic() - begin)
        # The others stop meanwhile.
        for program in (program for program, why in found.items() if not why):
            program.process.send_signal(signal.SIGSTOP)
            stopped.append(program)
        programs = [program for program, why in found.items() if why]
        if not programs:
            break
    for program in stopped:
        program.process.send_signal(signal.SIGCONT)


def sample(view, unwinder, programs, seconds):
    """Return: how stackbpf ended, and the stacks that it wrote."""
    options = cells.VIEWS[view]
    targets = ','.join(str(process.pid) for program in programs for process in (program.process, program.reader))
    command = [STACKBPF, *options, '-t', str(seconds), '--by', 'pid', f'--unwind={unwinder}', '-p', targets]
    with empty_caches() if '--layer' in options else contextlib.nullcontext():
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='replace',
                              timeout=SECONDS_MAX, check=False)
    if 'KEEP' in os.environ:
        pathlib.Path(os.environ['KEEP'], f'{view} {unwinder} {seconds}').write_text(done.stdout + done.stderr)
    return done, Stacks(done.stdout)


def outcome(view, unwinder, program, done, stacks):
    if program.process.poll() is not None:
        return f'the program ended with {program.process.returncode}'
    if done.returncode:
        return f'status {done.returncode}: {done.stderr[-500:]}'
    return check(view, program, stacks, unwinder == 'fp')


def main():
    os.environ['PYTHONDONTWRITEBYTECODE'] = '1'
    if MODE == 'old':
        old()
    else:
        bpf_tests()
        live_tests()
        all_cells()
    return 0


if __name__ == '__main__':
    sys.exit(main())
