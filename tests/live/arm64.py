#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Complete stacks of C and of interpreters on arm64, under emulation: shares and ends of stacks, no counts. Run by the
suite vm.

arm64.py STACKBPF BUILD [PART...]       PART: native, python, java, go, or one of SCRIPTS; all of them by default
"""
import collections
import glob
import os
import platform
import re
import subprocess
import sys
import tempfile

from live import check, done, need_root, running, skip, stackbpf

need_root()
if platform.machine() != 'aarch64':
    skip('this is not arm64')
BINARY, BUILD = sys.argv[1], sys.argv[2]
GATE = 0.995
TRUTH = {'seventy': 0.70, 'twenty': 0.20, 'ten': 0.10}
SCRIPT = """
import threading
def leaf(n):
    s = 0
    for i in range(n):
        s += i * i
    return s
def seventy(): return leaf(70000)
def twenty(): return leaf(20000)
def ten(): return leaf(10000)
def work():
    while True:
        seventy(); twenty(); ten()
threading.Thread(target=work, daemon=True).start()
print('ready', flush=True)
threading.Event().wait()
"""


PERL = """
sub leaf { my $s = 0; $s += $_ * $_ for 1 .. $_[0]; return $s }
sub seventy { leaf(7000) } sub twenty { leaf(2000) } sub ten { leaf(1000) }
sub rounds { seventy(); twenty(); ten() }
$| = 1; print "ready\\n"; rounds() while 1;
"""
LUA = """
function leaf(n) local s = 0 for i = 1, n do s = s + i * i end return s end
function seventy() local s = leaf(70000) return s end
function twenty() local s = leaf(20000) return s end
function ten() local s = leaf(10000) return s end
function rounds() seventy() twenty() ten() end
print('ready') io.stdout:flush()
while true do rounds() end
"""
RUBY = """
def leaf(n) s = 0; i = 0; while i < n; s += i * i; i += 1; end; s end
def seventy() leaf(7000) end
def twenty() leaf(2000) end
def ten() leaf(1000) end
def rounds() seventy; twenty; ten end
STDOUT.sync = true
puts 'ready'
rounds while true
"""
NODE = """
function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s = (s + i * i) % 1000003; return s; }
function seventy() { return leaf(70000); }
function twenty() { return leaf(20000); }
function ten() { return leaf(10000); }
function rounds() { return seventy() + twenty() + ten(); }
console.log('ready');
for (let t = 0;;) t += rounds();
"""
PHP = """
function leaf($n) { $s = 0; for ($i = 0; $i < $n; $i++) { $s += $i * $i; } return $s; }
function seventy() { leaf(70000); } function twenty() { leaf(20000); } function ten() { leaf(10000); }
function rounds() { seventy(); twenty(); ten(); }
echo "ready\\n";
while (true) { rounds(); }
"""


def sample(pid, *options):
    return stackbpf(BINARY, 'oncpu', '-p', str(pid), '-t', '6', '-F', '99', *options, timeout=280)


def check_shares(what, result, points, package=''):
    for name, want in TRUTH.items():
        have = result.share(package + name)
        check(abs(have - want) <= points, f'{what}: {name}: {100 * have:.1f} % of {100 * want:.0f} %')


def check_complete(what, result, via, gate=GATE, samples_min=100, cut_max=1 - GATE):
    """By the header's own count of stacks that are cut, and by what every stack has to go through."""
    missing = {s: w for s, w in result.stacks.items() if not any(frame in s for frame in via)}
    cut = int(result.facts.get('trunc', -1))
    total = result.total
    check(result.status == 0 and total >= samples_min, f'{what}: status {result.status}, {total} samples')
    check(total and 0 <= cut <= cut_max * total, f'{what}: {cut} of {total} cut')
    check(sum(missing.values()) <= (1 - gate) * total,
          f'{what}: {sum(missing.values())} of {total} without {" or ".join(via)}')
    for stack in list(missing)[:3]:
        print('   ', ';'.join(stack))
    if result.status:
        print(result.err)


def split(name):
    with running(f'{BUILD}/{name}', '2') as target:
        result = sample(target.pid, '-u')
    check_complete(name, result, ('main', 'work'))
    check_shares(name, result, 0.06)


def deep():
    with running(f'{BUILD}/tests/programs/deep', '100') as target:
        result = sample(target.pid, '-u')
    check_complete('deep', result, ('main',))
    wrong = sum(w for s, w in result.stacks.items() if s.count('descend') != 101)
    check(wrong <= (1 - GATE) * result.total, f'deep: {wrong} of {result.total} without its 101 frames')


def frame_pointers():
    """No tables: by frame pointers alone, which split is built with."""
    with running(f'{BUILD}/tests/programs/split') as target:
        result = sample(target.pid, '-u', '--unwind=fp')
    check_complete('by frame pointers', result, ('main',))


def python():
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, 'prog.py')
        with open(path, 'w', encoding='ascii') as file:
            file.write(SCRIPT)
        with running('python3', path, stdout=subprocess.PIPE, text=True) as target:
            target.stdout.readline()
            result = sample(target.pid, '-u')
    # Its first samples come before it has been found out what it is, which takes a second here.
    check_complete('python', result, ('work',), gate=0.95)
    check_shares('python', result, 0.06)


# How each is started, a frame of its loop in C, and what its functions' names begin with.
SCRIPTS = {
    'perl': (('perl', '-e', PERL), 'Perl_runops_standard', 'main::'),
    'lua': (('lua5.4', '-e', LUA), 'lua_pcallk', ''),
    'luajit': (('luajit', '-joff', '-e', LUA), 'lua_pcall', ''),
    'luajit-compiled': (('luajit', '-e', LUA), 'lua_pcall', ''),
    'ruby': (('ruby', '--disable-gems', '-e', RUBY), 'rb_vm_exec', 'Object#'),
    'php': (('php8.2', '-n', '-r', PHP), 'execute_ex', ''),
    'node': (('node', '-e', NODE), 'node::Start', ''),
}


def script(name):
    """Functions of an interpreter, 70, 20 and 10 %, above those of its program in C."""
    command, loop, package = SCRIPTS[name]
    rounds = f'{package}rounds'
    with running(*command, stdout=subprocess.PIPE, text=True) as target:
        target.stdout.readline()
        result = sample(target.pid, '-u')
        both = sample(target.pid, '-u', '--interp', 'both')
    # As of Python, the first samples come before it has been found out what it is: of Node.js, whose library has 60 MB,
    # it takes up to half of the six seconds.
    late = name == 'node'
    check_complete(name, result, (rounds,), gate=0.4 if late else 0.95, cut_max=0.2 if late else 0.05)
    result.stacks = collections.Counter({s: w for s, w in result.stacks.items() if rounds in s})
    check_shares(name, result, 0.1, package)
    check(not any(s.count(f'{package}leaf') > 1 for s in result.stacks), f'{name}: no function stands twice')
    check(any(loop in ';'.join(stack) for stack in both.stacks), f'{name}: its functions in C, too')


# Interpreted, and compiled, which leaves too few samples of the work to compare shares.
JAVA = {'interpreter': ('-Xint',), 'C1': ('-XX:TieredStopAtLevel=1',), 'C2': ('-XX:-TieredCompilation',)}


def java():
    for mode, options in JAVA.items():
        command = ('java', '-XX:-UsePerfData', *options, '-cp', f'{BUILD}/vm/classes', 'Rounds', '/etc/passwd', '/tmp/rounds')
        with running(*command, stdout=subprocess.PIPE, text=True) as target:
            target.stdout.readline()
            result = sample(target.pid, '-u')
        what = f'java, {mode}'
        # As of Node.js; nor do other threads of the virtual machine come through main().
        cut = {s: w for s, w in result.stacks.items() if '[truncated' in ';'.join(s)}
        late = {s: w for s, w in cut.items() if '[truncated: unwind table not ready]' not in s}
        check(sum(late.values()) <= 1 + (1 - GATE) * result.total,
              f'{what}: {sum(cut.values())} of {result.total} cut, {sum(late.values())} of them with all tables')
        for stack in late:
            print('   ', ';'.join(stack))
        rounds = collections.Counter({s: w for s, w in result.stacks.items() if 'Rounds.round_of' in s})
        check(rounds.total() >= 50, f'{what}: {rounds.total()} of {result.total} are of the program')
        check(not any(s.count('Rounds.spin') > 1 for s in rounds), f'{what}: no method stands twice')
        if mode == 'interpreter':
            result.stacks = collections.Counter({s: w for s, w in rounds.items() if 'Rounds.spin' in s})
            check_shares(what, result, 0.1, 'Rounds.')


def go_calls(program):
    """Calls that end on another thread: each is seen once, and takes as long as the program says."""
    with tempfile.NamedTemporaryFile('r', encoding='ascii') as said:
        result = stackbpf(BINARY, 'latency', f'{program}:main.sleep', '--max-overhead=off', '--', 'sh', '-c', f'exec {program} >{said.name}',
                          timeout=280)
        text = said.read()
    sleep, moved = (re.search(rf'^{name} (\d+) (\d+)$', text, re.M) for name in ('sleep', 'moved'))
    check(result.status == 0 and int(result.facts['n']) == int(sleep[1]) and result.facts['lost'] == '0',
          f'{program}: each call once: {result.facts}, {sleep[0]}')
    check(abs(result.total - int(sleep[2])) <= 0.1 * int(sleep[2]), f'{program}: {result.total} us of {sleep[2]}')
    check(int(moved[1]) > 10, f'{program}: {moved[0]} changed their threads')
    # The first calls come before there are tables.
    cut = sum(w for s, w in result.stacks.items() if '[truncated' in ';'.join(s) and '[truncated: unwind table not ready]' not in s)
    check(cut <= (1 - GATE) * result.total, f'{program}: {cut} us of {result.total} are of stacks that are cut')


def go_labels(program, view):
    """Labels are those of the goroutine, also of one that waits; between requests there is none."""
    with running(program, '100000', '50000', 'label') as target:
        result = stackbpf(BINARY, view, '-p', str(target.pid), '--label', 'tenant', '-t', '6', timeout=280)
    inside, between = (collections.Counter({s: w for s, w in result.stacks.items() if f'main.{name}' in s}) for name in ('handle', 'between'))
    labelled = sum(w for s, w in inside.items() if 'tenant=acme' in s)
    what = f'{os.path.basename(program)}, {view}'
    check(inside.total() >= 50 and labelled >= 0.9 * inside.total(), f'{what}: {labelled} of {inside.total()} have the label')
    check(between and not any('tenant=acme' in s for s in between), f'{what}: of {between.total()} between none has it')
    both = inside + between
    rooted = sum(w for s, w in both.items() if 'main.main.func1' in s)
    check(rooted >= 0.95 * both.total(), f'{what}: {rooted} of {both.total()} lead to where the goroutine begins')


# Where threads and goroutines begin, and where a thread leaves a goroutine, for the scheduler.
GO_ROOTS = ('runtime.goexit', 'runtime.mstart', 'runtime.rt0_go', 'runtime.mcall', 'runtime.morestack', '_rt0_arm64_linux', '_start',
            'start_thread', 'thread_start')
# Where Go goes on on another stack, which the piece that is copied of a first sample does not have.
GO_SWITCHES = ('runtime.systemstack', 'runtime.morestack', 'runtime.asmcgocall')
FIRST = ('[truncated: unwind table not ready]', '[truncated: longer than its first piece]')


def place_of(stack, name):
    """The index of the function in the stack, with or without the suffix of its calling convention; -1: it is not there."""
    return next((i for i, frame in enumerate(stack) if frame.removesuffix('.abi0') == name), -1)


def is_first(stack):
    return any(mark in stack for mark in FIRST) or any(
        frame == '[truncated: unreadable stack]' and stack[i + 1].removesuffix('.abi0') in GO_SWITCHES
        for i, frame in enumerate(stack[:-1]))


def go_roots(program, *switches):
    """Each stack leads to a root, also those that come through functions which go on on another stack."""
    with running(program) as target:
        result = stackbpf(BINARY, 'oncpu', '-p', str(target.pid), '-t', '12', '-F', '299', '-u', timeout=280)
    what = os.path.basename(program)
    stacks = collections.Counter({s: w for s, w in result.stacks.items() if not is_first(s)})
    total = stacks.total()
    check(total >= max(300, 0.8 * result.total), f'{what}: {total} of {result.total} samples when tables were there')
    cut = collections.Counter({s: w for s, w in stacks.items() if '[truncated' in ';'.join(s)})
    stray = collections.Counter({s: w for s, w in stacks.items()
                                 if s not in cut and not any(place_of(s[:3], root) >= 0 for root in GO_ROOTS)})
    for name, wrong in (('are cut', cut), ('do not begin at a root', stray)):
        check(wrong.total() <= (1 - GATE) * total, f'{what}: {wrong.total()} of {total} {name}')
        for stack, weight in wrong.most_common(8):
            print('   ', weight, ';'.join(stack))
    # Handlers of signals let the interrupted function call it, which may not have a frame yet.
    check(not any(place_of(s, 'runtime.asyncPreempt') >= 0 for s in cut), f'{what}: none is cut at runtime.asyncPreempt')
    for name in switches:
        from_program = sum(w for s, w in stacks.items() if any(frame.startswith('main.') for frame in s[:max(0, place_of(s, name))]))
        check(from_program > 0, f'{what}: {from_program} of {total} come from the program through {name}')


def go():
    if not os.path.exists(f'{BUILD}/go'):
        skip('no programs of Go were built')
    go_calls(f'{BUILD}/go/timed')
    go_labels(f'{BUILD}/go/spans', 'oncpu')
    go_labels(f'{BUILD}/go/spans-c', 'wall')


def go_stacks():
    if not os.path.exists(f'{BUILD}/go'):
        skip('no programs of Go were built')
    for program in sorted(glob.glob(f'{BUILD}/go/mix*')):
        go_roots(program, 'runtime.systemstack', 'runtime.morestack')
    for program in sorted(glob.glob(f'{BUILD}/go/cgo-c*')):
        go_roots(program, 'runtime.asmcgocall', 'crosscall2')


def native():
    split('tests/programs/split')
    split('split-signed')
    deep()
    frame_pointers()


for part in sys.argv[3:] or ('native', 'python', 'java', 'go', *SCRIPTS):
    if part in SCRIPTS:
        script(part)
    else:
        {'native': native, 'python': python, 'java': java, 'go': go, 'go-stacks': go_stacks}[part]()
done()
