#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""trace: as many events as the program, the shell or getrusage(2) counts, with the stacks that they have.

trace.py STACKBPF TRACED_C [PART...]
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import manyfunctions
from live import apart, build_program, check, done, has_links_of_many, need_root, ran_seconds, run_parts, running, stackbpf, wait_for

need_root()
BINARY, SOURCE = sys.argv[1], sys.argv[2]
WORK = tempfile.TemporaryDirectory()
PROGRAM = f'{WORK.name}/traced'
build_program(PROGRAM, SOURCE, '-O2', '-g')
NR = 1000
PAIRS_MAX = 5  # of runs whose times are compared


def trace(*args):
    return stackbpf(BINARY, 'trace', *args)


def of(result, *frames):
    """The weight of stacks that have all of these frames."""
    return sum(weight for stack, weight in result.stacks.items() if set(frames) <= set(stack))


def user():
    result = trace(f'{PROGRAM}:traced', '--', PROGRAM, str(NR))
    check((of(result, 'often', 'traced'), of(result, 'seldom', 'traced'), result.total) == (NR * 7 // 10, NR * 3 // 10, NR),
          f'a function is called as often as the program does, by its callers: {dict(result.stacks)}')
    check(result.facts.get('unit') == 'events' and result.facts.get('lost') == '0', f'facts: {result.facts}')
    result = trace(f'r:{PROGRAM}:traced', '--', PROGRAM, str(NR))
    check({stack[-1]: weight for stack, weight in result.stacks.items()} == {'often': NR * 7 // 10, 'seldom': NR * 3 // 10},
          f'it returns as often, to its callers: {dict(result.stacks)}')


def several():
    one, two = f'{PROGRAM}:traced', f'{PROGRAM}:traced_too'
    result = trace(one, two, '--stats', '--', PROGRAM, str(NR))
    leaves = {stack[-1] for stack in result.stacks}
    check(leaves == {f'[{one}]', f'[{two}]'}, f'events are told apart by the leaf: {leaves}')
    check((of(result, f'[{one}]'), of(result, f'[{two}]')) == (NR, 1), 'each is counted')
    check(re.search(rf'{re.escape(one)} +{NR} times, [0-9.]+ per second\n', result.err), f'--stats has how often each happened: {result.err[-200:]}')
    result = trace(f'{PROGRAM}:traced*', one, '--', PROGRAM, str(NR))
    check(result.total == NR + 1, f'what a pattern and a name both match is traced once: {result.total}')


def rate():
    """--rate: a program that keeps to a timetable makes 200 calls a second."""
    paced = ('import os, sys, time\n'
             'at = time.monotonic()\n'
             'while True:\n'
             '    at += 0.005\n'
             '    time.sleep(max(0, at - time.monotonic()))\n'
             '    os.getppid()\n')
    with running(sys.executable, '-c', paced) as process:
        wait_for(lambda: ran_seconds(process.pid) > 0.02, 'it runs')
        result = trace('syscalls:sys_enter_getppid', '--rate', '-p', str(process.pid), '-t', '2')
    said = re.search(r'syscalls:sys_enter_getppid: (\d+) times, ([0-9.]+) per second\n', result.err)
    # It is late where it does not get a CPU.
    check(said and 120 <= float(said[2]) <= 210 and int(said[1]) == result.total and
          abs(float(said[2]) - result.total * 1e6 / int(result.facts['dur_us'])) < 1, f'200 a second: {result.err}')
    check(all(len(stack) == 1 for stack in result.stacks), f'there are no stacks: {dict(result.stacks)}')
    named = f'{PROGRAM}:named'
    result = trace(named, '--rate', '--value', 'str(arg0)', '--when', 'arg1 < 500', '--', PROGRAM, str(NR))
    check(dict(result.stacks) == {('traced', f'[str(arg0)={name}]'): 250 for name in ('even', 'odd')}, f'{dict(result.stacks)}')
    check(f'{named}: 500 times, ' in ' '.join(result.err.split()), f'where --when is true: {result.err}')
    result = trace(f'{PROGRAM}:traced*', '--rate', '--', PROGRAM, str(NR))
    check({stack[-1]: weight for stack, weight in result.stacks.items()} ==
          {f'[{PROGRAM}:traced]': NR, f'[{PROGRAM}:traced_too]': 1}, f'functions of a pattern: {dict(result.stacks)}')
    result = trace(named, '--rate', '-u', '-t', '1')
    check(result.status == 2 and '--rate takes no stacks' in result.err, f'{result.err}')


def instructions():
    """A probe within an instruction would make the program crash; objdump says where they begin."""
    if os.uname().machine != 'x86_64':
        return
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', PROGRAM], capture_output=True, text=True, check=True).stdout
    start, body = re.search(r'^([0-9a-f]+) <named>:\n(.*?)\n\n', text, re.M | re.S).groups()
    begins = [int(at, 16) - int(start, 16) for at in re.findall(r'^ +([0-9a-f]+):', body, re.M)]
    for offset in range(1, begins[-1]):
        if offset in begins:
            continue
        before = max(at for at in begins if at < offset)
        for event, begin in ((f'named+{offset}', f'+{before:#x}'), (f'{int(start, 16) + offset:#x}', f'{int(start, 16) + before:#x}')):
            result = trace(f'{PROGRAM}:{event}', '--', PROGRAM, '10')
            check(result.status == 2 and f'the instruction begins at {begin}\n' in result.err, f'{event}: {result.err}')
    for event in (f'named+{begins[1]}', f'{int(start, 16) + begins[1]:#x}'):
        result = trace(f'{PROGRAM}:{event}', '--', PROGRAM, str(NR))
        check(result.total == NR, f'the second instruction: {event}: {result.total}, {result.err}')
    result = trace(f'{PROGRAM}:0x10', '--', PROGRAM, '10')
    check(result.status == 2 and 'no function is known to be at this address' in result.err, f'{result.err}')


SCOPES = """
#include <string>
namespace app {
struct Worker {
    __attribute__((noipa)) int run(int i) { return i; }
    __attribute__((noipa)) int run(const std::string &s) { return (int)s.size(); }
};
template <class T> __attribute__((noipa)) T twice(T i) { return 2 * i; }
}
int main()
{
    app::Worker worker;
    for (int i = 0; i < 100; i++)
        app::twice<long>(worker.run(i) + worker.run("text"));
}
"""


def scopes():
    """Functions of C++ by the names that stacks have."""
    program = f'{WORK.name}/scopes'
    subprocess.run(['g++', '-O2', '-g', '-x', 'c++', '-o', program, '-'], input=SCOPES, text=True, check=True)
    for event, want in (('app::Worker::run', {'app::Worker::run': 200}), ('app::twice<long>', {'app::twice<long>': 100}),
                        ('app::*', {'app::Worker::run': 200, 'app::twice<long>': 100})):
        result = trace(f'{program}:{event}', '--', program)
        check({stack[-1]: of(result, stack[-1]) for stack in result.stacks} == want, f'{event}: {dict(result.stacks)} {result.err}')
    result = trace(f'{program}:app::Worker::ran', '-t', '1')
    check(result.status == 2 and "did you mean 'app::Worker::run'?" in result.err, f'{result.err}')


def usdt():
    result = trace(f'u:{PROGRAM}:traced:turn', '--', PROGRAM, str(NR))
    check((result.total, of(result, 'probed')) == (NR, NR), f'a USDT probe, with its semaphore: {dict(result.stacks)}')
    listed = subprocess.run([BINARY, 'trace', '--list', f'u:{PROGRAM}:*'], capture_output=True, text=True, check=False).stdout
    check(f'u:{PROGRAM}:traced:turn\t8@%rdi\n' in listed and f'u:{PROGRAM}:traced:places\t-4@' in listed,
          f'it is listed as it is spelled: {listed!r}')


def printed(result, name):
    """What the program printed about itself."""
    return int(re.search(rf'^{name} (\d+)$', result.err, re.M).group(1))


def expressions():
    named = f'{PROGRAM}:named'
    result = trace(named, '--weight', 'arg1', '--when', 'str(arg0) == "even"', '--', PROGRAM, str(NR))
    check(result.total == printed(result, 'even') > 0, f'the sum of one argument, by the string of another: {result.total}')
    check(result.facts.get('unit') == 'units' and result.facts.get('lost') == '0', f'facts: {result.facts}')
    check(f'left out: {NR // 2} by --when, 1 with a --weight of 0 or less' in ' '.join(result.err.split()),
          f'what is left out is counted: {result.err}')
    result = trace(f'r:{named}', '--weight', 'retval', '--', PROGRAM, str(NR))
    check(result.total == printed(result, 'returned'), f'the sum of results above 0: {result.total}')
    result = trace(f'{PROGRAM}:traced', '--when', f'arg0 >= {NR - 100} && pid == tid', '--', PROGRAM, str(NR))
    check((of(result, 'often'), of(result, 'seldom')) == (70, 30) and result.facts.get('unit') == 'events',
          f'only calls with such an argument: {dict(result.stacks)}')
    result = trace(f'{PROGRAM}:traced', f'u:{PROGRAM}:turn', '--weight', '1 + arg0', '--', PROGRAM, str(NR))
    each = NR * (NR + 1) // 2
    check((of(result, f'[{PROGRAM}:traced]'), of(result, f'[u:{PROGRAM}:turn]')) == (each, each),
          'of several events, with the arguments of each')
    result = trace('page-faults:10', '--weight', '3', '--', PROGRAM, '10')
    check(result.total and result.total % 30 == 0, f'a sample of a counter stands for its period: {result.total}')
    result = trace(named, '--when', 'str(1) == "x" || 1 / (arg1 - arg1)', '--', PROGRAM, str(NR))
    check(result.status == 3 and f'--when left out {NR} events; check this expression' in result.err,
          f'if all are left out, that is said: {result.err}')
    result = trace(named, '--when', 'str(1) == "x" || 1 / (arg1 - arg1) || 1', '--', PROGRAM, str(NR))
    check(f'expressions: {NR} with memory that could not be read, {NR} with' in result.err,
          f'what went wrong inside is counted: {result.err}')


def histogram():
    """--weight --distr: 0 to 999, each once; 0 is left out."""
    done_ = subprocess.run([BINARY, 'trace', f'{PROGRAM}:named', '--weight', 'arg1', '--distr', '--', PROGRAM, str(NR)],
                           capture_output=True, text=True, check=False)
    rows = {low + unit: int(nr) for low, unit, nr in re.findall(r'^ +(\d+) (\w?) +-> +\d+ \w? +: (\d+)', done_.stdout.split('\n\n')[0], re.M)}
    want = {str(1 << i if i else 0): min(1 << i, NR - (1 << i)) for i in range(10)}
    check(rows == want and 'all stacks 499500 units, 999 times' in done_.stdout, f'{rows} {done_.stdout} {done_.stderr}')
    result = trace(f'{PROGRAM}:named', '--distr', '-t', '1')
    check(result.status == 2 and 'or say with --weight what it is to show' in result.err, f'{result.err}')


def values():
    """--value: a leaf frame for each value."""
    def leaves(*args):
        result = trace(*args, '--', PROGRAM, str(NR))
        return {stack[-1]: of(result, stack[-1]) for stack in result.stacks}
    named = f'{PROGRAM}:named'
    check(leaves(named, '--value', 'str(arg0)') == {'[str(arg0)=even]': NR // 2, '[str(arg0)=odd]': NR // 2}, 'a string')
    check(leaves(named, '--value', 'arg1 % 4 - 1') == {f'[arg1 % 4 - 1={i}]': NR // 4 for i in (-1, 0, 1, 2)}, 'a number')
    result = leaves(named, '--value', 'arg1', '--when', 'arg1 < 500', '--weight', 'arg1')
    check(result == {f'[arg1={i}]': i for i in range(1, 500)}, f'many, with a weight: {len(result)}')
    result = trace(f'{PROGRAM}:traced', named, '--value', 'tid - pid', '--', PROGRAM, str(NR))
    check({stack[-2:]: of(result, *stack[-2:]) for stack in result.stacks} ==
          {(f'[{event}]', '[tid - pid=0]'): NR for event in (f'{PROGRAM}:traced', named)},
          f'behind the name of the event: {dict(result.stacks)}')
    strange = f'{WORK.name}/a;b\nc\x1b[1m 5'
    shutil.copy('/bin/true', strange)
    result = trace('sched:sched_process_exec', '--value', 'filename', '-s', '--', 'sh', '-c', '"$0"; :', strange)
    leaf = next((stack[-1] for stack in result.stacks if 'a:b' in stack[-1]), '')
    check(leaf and leaf.isprintable() and ';' not in leaf, f'a strange name: {leaf!r} of {list(result.stacks)}')


def places():
    probe = f'u:{PROGRAM}:places'
    for weight, each in (('0 - arg0', 1), ('0 - arg1', 0), ('arg2 - 193', 0), ('arg3', 1)):
        result = trace(probe, '--weight', weight, '--', PROGRAM, str(NR))
        want = NR * (NR - 1) // 2 if each else 7 * NR
        check(result.total == want, f'an argument in memory, a constant, in a register: {weight}: {result.total} of {want}')


def fields():
    result = trace('sched:sched_process_exec', '--when', 'filename == "/bin/true" && args->pid == pid', '-s', '--',
                   'sh', '-c', '/bin/true; /bin/echo; /bin/true')
    check((result.total, of(result, 'true')) == (2, 2), f'fields of a tracepoint: {dict(result.stacks)}')
    result = trace('syscalls:sys_enter_write', '--weight', 'count', '--', *COPY)
    check(result.total == 100 * 4096, f'an argument of a system call: {result.total}')
    result = trace('syscalls:sys_enter_openat', '--value', 'str(filename)', '--', 'head', '-c0', PROGRAM)
    check(of(result, f'[str(filename)={PROGRAM}]') == 1, f'a string of a system call: {list(result.stacks)}')
    result = trace('syscalls:sys_enter_openat', '--value', 'str(0xffffffff81000000)', '--', 'head', '-c0', PROGRAM)
    check({stack[-1] for stack in result.stacks} == {'[str(0xffffffff81000000)=]'} and 'could not be read' in result.err,
          f'whose addresses are never those of the kernel: {list(result.stacks)}')


COPY = ('dd', 'if=/dev/zero', 'of=/dev/null', 'bs=4k', 'count=100', 'status=none')


def kernel_functions():
    if not os.path.exists('/sys/bus/event_source/devices/kprobe'):
        return
    result = apart(BINARY, 'trace', 'vfs_write', '--weight', 'arg2', command=COPY)
    check(result.total == 100 * 4096, f'an argument of a function of the kernel: {result.total}')
    offsets = [apart(BINARY, 'trace', f'kprobe:vfs_write+{i}', '--when', 'comm == "dd"', command=COPY) for i in (4, 5, 9)]
    check(any(result.total == 100 for result in offsets) and
          all(result.total == 100 or 'no instruction begins at this offset' in result.err for result in offsets),
          f'an instruction of it: {[(result.total, result.err) for result in offsets]}')
    result = apart(BINARY, 'trace', 'kretprobe:vfs_write', '--value', '(int)retval', command=COPY)
    check({stack[-1]: of(result, stack[-1]) for stack in result.stacks} == {'[(int)retval=4096]': 100},
          f'its results: {dict(result.stacks)}')


def kernel_functions_at_once():
    """By name and by pattern, which is one link where the kernel has such; entries and returns."""
    if not os.path.exists('/sys/bus/event_source/devices/kprobe'):
        return
    result = apart(BINARY, 'trace', 'p::vfs_read', 'kretprobe:vfs_read', 'vfs_w*', command=COPY)
    reads, returns, writes = (of(result, frame) for frame in ('[p::vfs_read]', '[kretprobe:vfs_read]', '[kprobe:vfs_write]'))
    check((writes, returns) == (100, reads) and 100 <= reads <= 120,
          f'functions of the kernel: {reads} reads, {returns} returns, {writes} writes, {result.err}')
    check(not any('trampoline' in frame for stack in result.stacks for frame in stack), 'without the frames of the probe')


def bad_expressions():
    traced = f'{PROGRAM}:traced'
    for args, said in (
            ((traced, '--when', 'arg0 >'), f"--when at '{traced}': column 7: "),
            ((traced, '--weight', '1 + agr0'), "column 5: there is no 'agr0'; did you mean 'arg0'?"),
            ((traced, '--weight', 'retval'), 'the return of a function has it, spelled r:FILE:FUNCTION'),
            ((f'r:{traced}', '--weight', 'arg0'), "'stackbpf latency' has both"),
            ((traced, '--weight', 'comm'), 'a number is needed'),
            ((traced, '--when', 'comm'), 'a number is needed'),
            ((traced, '--value', 'str(comm)'), '--value at '),
            (('sched:sched_process_exec', '--when', 'args->filenam == "x"'), "did you mean 'args->filename'?"),
            ((f'u:{PROGRAM}:places', '--when', 'arg4'), 'arg4'),
            (('page-faults', '--when', 'arg0'), "there is no 'arg0'"),
            ((traced, 'page-faults', '--when', 'arg0'), "--when at 'page-faults': "),
    ):
        result = trace(*args, '-t', '1')
        check(result.status == 2 and said in result.err and result.err.startswith('stackbpf: ') and result.err.count('\n') == 1,
              f'{args}: {result.status}, {result.err.strip()}')


def tracepoint():
    nr = 20
    shell = ('sh', '-c', f'i=0; while [ $i -lt {nr} ]; do /bin/true; i=$((i+1)); done; :')
    result = trace('sched:sched_process_exec', '-s', '--', *shell)
    execs = of(result, 'true')
    check(execs == nr, f'each command that a shell runs: {execs} of {nr}')
    subprocess.run(['gcc', '-static', '-o', f'{WORK.name}/still', '-x', 'c', '-'], input='int main(void) { return 0; }', text=True,
                   check=True)
    result = trace('sched:sched_process_exec', '-u', '--', f'{WORK.name}/still')
    check(of(result, 'still', '_start') == 1, f'a new program is at its first instruction: {dict(result.stacks)}')
    result = trace('tracepoint:sched:sched_process_fork', '--', *shell)
    check(result.total == nr, f'each fork: {result.total} of {nr}')


def counter():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([PROGRAM, '10'], check=True)
    faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before.ru_minflt
    result = trace('page-faults', '--', PROGRAM, '10')
    check(0.5 * faults <= result.total <= 1.2 * faults,
          f'page faults from exec on, those of fork and exec aside: {result.total}, getrusage has {faults} with them')
    spin = (sys.executable, '-c', 'import time\nwhile time.process_time() < 0.5: pass')
    result = trace('cpu-clock', '--stats', '--', *spin)
    said = re.search(r'cpu-clock +([0-9.]+) s of CPU time\n', result.err)
    check(result.facts.get('unit') == 'us' and 0.4e6 < result.total < 0.7e6, f'a clock counts time, of 0.5 s: {result.total} {result.facts}')
    check(said and abs(1e6 * float(said[1]) - result.total) <= 0.02 * result.total, f'so says --stats: {said}')
    result = trace('task-clock', 'page-faults', '--', *spin)
    check(result.facts.get('unit') == 'units', f'time and events have no unit in common: {result.facts}')


def many():
    """Hundreds of functions of one file, in all of a process's threads."""
    program, names = manyfunctions.compiled(f'{WORK.name}/many'), manyfunctions.NAMES
    with running(program) as process:
        for only in ((), ('-p', str(process.pid))):
            longer_max = 1 if has_links_of_many() else 60
            # A busy machine makes one of a pair of runs late, but not each time the second one.
            for _ in range(PAIRS_MAX):
                seconds = []
                for event in (f'{program}:many_aaa', f'{program}:many_???'):
                    begin = time.monotonic()
                    result = trace(event, *only, '-t', '1')
                    seconds.append(time.monotonic() - begin)
                if seconds[1] - seconds[0] < longer_max:
                    break
            leaves = {stack[-1] for stack in result.stacks}
            threads = [of(result, thread) for thread in ('first', 'second', 'third')]
            check(leaves == set(names) and min(threads) > len(names),
                  f'{only}: {len(leaves)} of {len(names)} functions, in three threads: {threads}')
            check(seconds[1] - seconds[0] < longer_max,
                  f'attached at once: {seconds[1]:.2f} s, and {seconds[0]:.2f} s with one')
        result = trace(f'{program}:many_???', '--rate', '-p', str(process.pid), '-t', '1')
        check({stack[-1] for stack in result.stacks} == {f'[{program}:{name}]' for name in names},
              f'all told apart by name: {len(result.stacks)} of {len(names)}, {result.err[:200]}')
        result = trace(f'{program}:many_?*', '-p', str(process.pid), '-t', '1')
        check({stack[-1] for stack in result.stacks} == set(names) and
              '2 of 514 functions are not traced, such as ' in ' '.join(result.err.split()),
              f'those that cannot be hooked are left out: {len(result.stacks)} stacks, {result.err}')


def other_root():
    """A process whose C library is another file than ours. Functions are hooked in its memory alone."""
    root = f'{WORK.name}/root'
    libraries = re.findall(r'(/\S+) \(0x', subprocess.run(['ldd', PROGRAM], capture_output=True, text=True, check=True).stdout)
    for path in (*libraries, PROGRAM):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        subprocess.run(['cp', '-L', path, root + path], check=True)
    # From our root it leads to another file, which has no such function.
    os.symlink(PROGRAM, f'{root}/link')
    with running('chroot', root, PROGRAM, '-1') as process:
        wait_for(lambda: os.readlink(f'/proc/{process.pid}/exe').endswith('/traced'), 'it runs')
        result = trace('c:nanosleep', '-p', str(process.pid), '-t', '1')
        check(result.total and {stack[-1] for stack in result.stacks} <= {'nanosleep', '__nanosleep', '__GI___nanosleep'},
              f'the library that a process maps below its own root: {dict(result.stacks)} {result.err}')
        result = trace(f'{PROGRAM}:traced', '-p', str(process.pid), '-t', '1')
        check(result.total, f'a path below the root of the process: {dict(result.stacks)}')
        result = trace('/link:traced', '-p', str(process.pid), '-t', '1')
        check(result.total, f'an absolute symbolic link below the root of the process: {result.err}')
        result = trace('/nothing:traced', '-p', str(process.pid), '-t', '1')
        check("cannot open '/nothing' below the root" in result.err, f'no such file there: {result.err}')


def bad_input():
    for args, status, said in (
            ((), 2, 'no event'),
            ((f'{PROGRAM}:trased',), 2, "did you mean 'traced'"),
            ((f'{PROGRAM}:trace',), 2, "did you mean 'traced'"),
            ((f'{PROGRAM}.none:f',), 2, 'No such file'),
            ((f'{SOURCE}:main',), 2, 'neither a program nor a library'),
            (('sched:sched_swich',), 2, "did you mean 'sched_switch'"),
            (('nonsense:x',), 2, 'no category of tracepoints'),
            (('a:b:c',), 2, 'no kind of event'),
            ((f'u:{PROGRAM}:turm',), 2, "did you mean 'turn'"),
            (('software:page-fault',), 2, "did you mean 'page-faults'"),
            (('c:*',), 2, 'more than 1000 places'),
            (('c:memcpy',), 2, 'IFUNC'),
            (('c:malloc', '-p', '4194000'), 5, '4194000'),
            (('nosuchpmu/event=1/',), 2, 'no PMU'),
            (('c:malloc', '--by', 'arg0'), 2, '--value of trace and latency takes an expression'),
    ):
        result = trace(*args, '-t', '1')
        lines = result.err.splitlines()
        check(result.status == status and said in result.err and result.err.startswith('stackbpf: ') and len(lines) == 1,
              f'{args}: {result.status}, {result.err.strip()}')
    if not os.path.exists('/sys/bus/event_source/devices/kprobe'):
        result = trace('vfs_read', '-t', '1')
        check(result.status == 4 and 'CONFIG_KPROBE_EVENTS' in result.err, f'a kernel without kprobes: {result.err.strip()}')
    with running(PROGRAM, '-1') as process:
        for word, meant in (('malloc', 'c:malloc'), ('traced', 'traced:traced'), ('r:traced', 'r:traced:traced'),
                            ('sched_process_exec', 'sched:sched_process_exec')):
            result = trace(word, '-p', str(process.pid), '-t', '1')
            check(f"did you mean '{meant}'?" in result.err, f'{word}: {result.err}')
        result = trace('/bin/true:exit', '-p', str(process.pid), '-t', '1')
        check(f"process {process.pid} does not map '/bin/true' now" in ' '.join(result.err.split()), f'{result.err}')


def listing():
    def listed(*patterns):
        out = subprocess.run([BINARY, 'trace', '--list', *patterns], capture_output=True, text=True, check=False).stdout
        return [line.split('\t')[0] for line in out.splitlines()]
    check({'minor-faults', 'sched:sched_process_exec'} <= set(listed()), 'everything')
    check(set(listed(f'{PROGRAM}:traced*')) == {f'{PROGRAM}:traced', f'{PROGRAM}:traced_too'}, 'functions of a file')
    mutexes = listed('c:pthread_mutex*')
    check(mutexes and len(mutexes) == len(set(mutexes)), f'a symbol with versions is listed once: {mutexes}')
    check('sched:sched_process_exec' in listed('sched:*exec'), 'tracepoints of a category')
    fields = subprocess.run([BINARY, 'trace', '--list', 'sched:sched_process_exec'], capture_output=True, text=True, check=False).stdout
    check(fields == 'sched:sched_process_exec\tchar[] filename, pid_t pid, pid_t old_pid\n', f'with its fields: {fields!r}')
    words = subprocess.run([BINARY, 'completion', '--', 'trace', 'sched:sched_process_e'], capture_output=True, text=True,
                           check=False).stdout
    check('sched:sched_process_exec\n' in words, f'the shell completes events: {words!r}')


run_parts([user, several, rate, instructions, scopes, usdt, tracepoint, counter, many, other_root, expressions, histogram, values, places, fields,
           kernel_functions, kernel_functions_at_once, bad_expressions, bad_input, listing], sys.argv[3:])
done()
