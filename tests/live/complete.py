#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The share of user stacks that reach the place where their thread began, by workload and view.

complete.py STACKBPF PROGRAMS WORKLOAD [OPTION...]
complete.py --list

A stack is complete if it has no mark and its outermost frame is one that has no caller, which
frames.py knows without stackbpf; where something is known that every stack goes through, such as
main(), it must be in it, too. PROGRAMS is the folder of the sources of what is run; OPTION goes to
stackbpf, to see this fail: --unwind=fp.
"""
import collections
import contextlib
import dataclasses
import http.client
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import beside
import frames
from interp import are_most
from live import check, done, need_root, running, skip, stackbpf, wait_for

GATE = 0.995
SAMPLES_MIN = 500
WITHOUT_MAX = 0.02  # of these, as many more of tasks that have no user stack any more
RUNS_MAX = 20
REASONS_MAX = 12  # shown
ONCPU = ('oncpu', '-F', '999')
OPTIONS = (*frames.OPTIONS, *sys.argv[4:])
CPU_SECONDS_MAX = 60  # of a workload that nobody ends
NO_FP = ('-O2', '-fomit-frame-pointer')


@dataclasses.dataclass
class Target:
    command: list
    via: frozenset = frozenset()  # every stack has one of these
    roots: frozenset = frozenset()  # what has no caller here, apart from frames.ROOTS
    paths: tuple = ()  # executables that are not in PATH
    ready: str = ''  # the line of output after which it is sampled
    stdin: list = None  # a command that writes what it reads
    ends: bool = False  # it is sampled from its start to its end
    client: object = None  # runs in the background, until its argument is set
    starters: frozenset = frozenset()  # what calls main(), if there is no CFI for it: suffices
    seconds: int = 1  # of one run
    gate: float = GATE
    may_be_cut: bool = False  # it cannot all be complete, and the rest has to say so
    view: tuple = ONCPU  # with its options


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            skip(f'there is no {tool}')


def compiled(source, *args, cc='gcc', flags=NO_FP, via=('main',), libs=(), **how):
    """The workload is a program of ours."""
    def make(work, programs):
        need(cc)
        path = f'{work}/program'
        subprocess.run([cc, *flags, '-g', '-Wno-unused-result', '-o', path, f'{programs}/{source}',
                        *libs], check=True)
        return Target([path, *args], via=frozenset(via), paths=(path,), **how)
    return make


def script(source, *command, **how):
    """The workload is a script of ours in an interpreter from the distribution."""
    def make(_, programs):
        need(command[0])
        return Target([*command, f'{programs}/{source}'], **how)
    return make


def tool(*command, **how):
    def make(*_):
        need(command[0])
        return Target([*command], **how)
    return make


def vectors(work, programs):
    with open('/proc/cpuinfo', encoding='ascii') as cpuinfo:
        if ' avx2 ' not in cpuinfo.read():
            skip('this CPU has no AVX2')
    target = compiled('vector.c', libs=['-lm'],
                      flags=('-O3', '-mavx2', '-fomit-frame-pointer'))(work, programs)
    rules = subprocess.run(['readelf', '--debug-dump=frames', target.command[0]],
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    check('DW_CFA_def_cfa_expression' in rules and 'DW_CFA_def_cfa: r10' in rules,
          'the compiler realigned stack frames')
    return target


def compile_cxx(work, _):
    """As in a build: several files, by as many processes."""
    need('clang++')
    with open(f'{work}/a.cc', 'w', encoding='ascii') as file:
        file.write('#include <regex>\n#include <iostream>\n'
                   'int main(int argc, char **argv) {\n'
                   'std::cout << std::regex_match(argv[0], std::regex("(a|b)*[cd]+"));\n}\n')
    return Target(['sh', '-c', f'for i in 1 2 3 4; do clang++ -O1 -c -o /dev/null {work}/a.cc; done'],
                  ends=True, paths=(shutil.which('clang++'),))


def go(source, *flags, suite=None, version='', **how):
    """Where goroutines, threads and the program begin; and where a thread leaves a goroutine, for the scheduler."""
    roots = frozenset(name + abi for abi in ('', '.abi0') for name in (
        'runtime.goexit', 'runtime.mstart', 'runtime.rt0_go', 'runtime.mcall', 'runtime.morestack', '_rt0_amd64_linux'))

    def make(work, programs):
        need('go', 'gcc')
        goroot = {}
        if suite:
            try:
                root = beside.unpack(suite, [f'golang-{version}-go'])
            except beside.Missing as error:
                skip(f'there is no Go {version}: {error}')
            goroot = {'GOROOT': f'{root}/usr/lib/go-{version}', 'GOTOOLCHAIN': 'local'}
        tool = f'{goroot["GOROOT"]}/bin/go' if suite else 'go'
        subprocess.run([tool, 'build', *flags, '-o', f'{work}/program', f'{programs}/{source}'], check=True,
                       env={'PATH': os.environ['PATH'], 'HOME': work, 'GOCACHE': f'{work}/cache', 'GO111MODULE': 'off',
                            **goroot})
        return Target([f'{work}/program'], roots=roots, **how)
    return make


def nginx(work, _):
    if not shutil.which('nginx', path='/usr/sbin:' + os.environ['PATH']):
        skip('there is no nginx')
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    with open(f'{work}/page.txt', 'w', encoding='ascii') as page:
        page.writelines(f'{i} lines of {i * i}\n' for i in range(5000))
    with open(f'{work}/conf', 'w', encoding='ascii') as conf:
        temps = '\n'.join(f'{name}_temp_path {work}/{name};'
                          for name in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        # One process: nobody would end a worker when the master is killed.
        conf.write(f'''user root; master_process off; daemon off; pid {work}/pid;
            error_log {work}/error.log; events {{ }}
            http {{ access_log {work}/log; gzip on; gzip_types text/plain; {temps}
                server {{ listen 127.0.0.1:{port}; root {work};
                          rewrite ^/(a+)b?/(.*)$ /$2 break; }} }}''')

    def client(stop):
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=240)
        wait_for(lambda: socket.socket().connect_ex(('127.0.0.1', port)) == 0, 'nginx listens')
        for _ in range(200_000):
            if stop.is_set():
                break
            connection.request('GET', '/aaab/page.txt', headers={'Accept-Encoding': 'gzip'})
            assert connection.getresponse().read()
    return Target(['/usr/sbin/nginx', '-p', work, '-c', f'{work}/conf', '-e', f'{work}/error.log'],
                  client=client, paths=('/usr/sbin/nginx',))


PYTHON = {'via': frozenset({'Py_BytesMain'})}
# There is no CFI in it, and the shared library has no symbols either.
MUSL = {'cc': 'musl-gcc', 'gate': 0.99,  # its strcmp() and the like are leaves without anything
        'starters': frozenset({'libc_start_main_stage2', '__libc_start_main', '[libc.so]'})}
GO_STRIPPED = ('-ldflags=-s -w', '-buildmode=pie')
MADE_ANEW = {'via': ('main', 'start_thread', '__clone3', 'clone3')}
JAVA = {'ready': 'warm'}
WORKLOADS = {
    'gcc-O2': compiled('mix.c', 'calls'),
    'gcc-O3': compiled('mix.c', 'libc', flags=('-O3', '-fomit-frame-pointer')),
    'gcc-Os': compiled('mix.c', 'libc', flags=('-Os', '-fomit-frame-pointer')),
    'clang-O2': compiled('mix.c', 'libc', cc='clang'),
    'frame-pointers': compiled('mix.c', 'calls', flags=('-O2', '-fno-omit-frame-pointer')),
    'avx2': vectors,
    'threads': compiled('mix.c', 'threads', **MADE_ANEW),
    # Before there are tables, there is no more than a piece of a stack, and no other stack: longer.
    'signals': compiled('mix.c', 'signals', seconds=3),
    'syscalls': compiled('mix.c', 'syscalls'),
    'files': compiled('mix.c', 'files'),
    'vdso': compiled('mix.c', 'vdso'),
    'spawn': compiled('mix.c', 'spawn', '/bin/true', seconds=2),
    'big-frames': compiled('mix.c', 'big', seconds=16),
    'static': compiled('mix.c', 'libc', flags=(*NO_FP, '-static')),
    'static-pie': compiled('mix.c', 'libc', flags=(*NO_FP, '-static-pie', '-fPIE')),
    'no-pie': compiled('mix.c', 'libc', flags=(*NO_FP, '-no-pie')),
    'musl': compiled('mix.c', 'calls', **MUSL),
    'musl-static': compiled('mix.c', 'calls', flags=(*NO_FP, '-static'), **MUSL),
    'compile': compile_cxx,
    'python': script('mix.py', '/usr/bin/python3', **PYTHON),
    'perl': script('mix.pl', 'perl', via=frozenset({'perl_run', 'perl_parse'})),
    'ruby': script('mix.rb', 'ruby', via=frozenset({'ruby_run_node', 'ruby_options'})),
    'php': script('mix.php', 'php', '-d', 'pcre.jit=0'),
    'php-pcre-jit': script('mix.php', 'php', '-d', 'pcre.jit=1', may_be_cut=True, gate=0.9),
    'lua': script('mix.lua', shutil.which('lua5.4') or 'lua'),
    'luajit-off': script('mix.lua', 'luajit', '-joff'),
    'luajit': script('mix.lua', 'luajit'),
    'node': script('mix.js', 'node'),
    'java-fp': script('Mix.java', 'java', '-XX:+PreserveFramePointer', **JAVA),
    'java': script('Mix.java', 'java', **JAVA),
    'go': go('mix.go'),
    'go-stripped': go('mix.go', *GO_STRIPPED),
    # The table has another layout in each.
    'go-1.15': go('mix.go', *GO_STRIPPED, suite='bullseye', version='1.15'),
    'go-1.24': go('cgo.go', *GO_STRIPPED, suite='trixie', version='1.24'),
    'go-1.27': go('cgo.go', *GO_STRIPPED, suite='sid', version='1.27'),  # as since 1.26
    'go-cgo': go('cgo.go', via=frozenset({'main.main', 'runtime.mstart', 'runtime.mstart.abi0', 'runtime.mcall',
                                          'runtime.gcenable.func1', 'runtime.sysmon'})),
    'xz': tool('xz', '-c', '-6', '-T1', '-',
               stdin=['sh', '-c', 'while cat /usr/bin/[a-f]*; do :; done 2>/dev/null']),
    'openssl-rsa': tool('openssl', 'speed', '-seconds', '60', 'rsa2048'),
    'openssl-ec': tool('openssl', 'speed', '-seconds', '60', 'ecdsap256'),
    'openssl-aes': tool('openssl', 'speed', '-seconds', '60', '-evp', 'aes-256-gcm'),
    'openssl-sha': tool('openssl', 'speed', '-seconds', '60', 'sha512'),
    'nginx': nginx,
}
# Views that look at what waits, or moves bytes.
VIEWS = {'offcpu': ('offcpu',), 'io': ('io', '--count', '--file=none')}
for view_name, view in VIEWS.items():
    WORKLOADS |= {
        f'python-{view_name}': script('wait.py', '/usr/bin/python3', view=view, seconds=3,
                                      via=frozenset({'Py_BytesMain', 'thread_run'})),
        f'perl-{view_name}': script('wait.pl', 'perl', via=frozenset({'perl_run', 'perl_parse'}),
                                    view=view, seconds=3),
    }


def be_bounded():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX))


@contextlib.contextmanager
def at_work(target, work):
    """The process, once it does what it is to be sampled at."""
    with contextlib.ExitStack() as stack:
        stdin = subprocess.DEVNULL
        if target.stdin:
            stdin = stack.enter_context(running(*target.stdin, stdout=subprocess.PIPE,
                                                preexec_fn=be_bounded)).stdout
        process = stack.enter_context(running(
            *target.command, cwd=work, stdin=stdin, preexec_fn=be_bounded, text=True,
            stdout=subprocess.PIPE if target.ready else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL))
        if target.ready:
            assert any(line.strip() == target.ready for line in process.stdout), 'it ended early'
        if target.client:
            stop = threading.Event()
            client = threading.Thread(target=target.client, args=(stop,))
            client.start()
            stack.callback(client.join)
            stack.callback(stop.set)
        yield process


def samples(binary, target, work):
    """Stacks of as many runs as it takes."""
    stacks = collections.Counter()
    if target.ends:
        for _ in range(RUNS_MAX):
            stacks += stackbpf(binary, *target.view, *OPTIONS, '-s', '--', *target.command).stacks
            if stacks.total() >= (1 + WITHOUT_MAX) * SAMPLES_MIN:
                break
        return stacks
    with at_work(target, work) as process:
        for _ in range(RUNS_MAX):
            stacks += stackbpf(binary, *target.view, *OPTIONS, '-t', str(target.seconds), '-p',
                               str(process.pid)).stacks
            if stacks.total() >= (1 + WITHOUT_MAX) * SAMPLES_MIN:
                break
        check(process.poll() is None, 'the workload ran all the time')
    return stacks


def why_not(stack, target):
    """'' for a complete stack; None if there can be no user stack; otherwise what is wrong."""
    user = frames.split(stack)[0]
    why = frames.why_incomplete(stack, target.paths, target.roots)
    if why and target.starters:
        at = [frame.name or f'[{frame.module}]' for frame in user if not frames.is_mark(frame)]
        why = '' if at[1:2] == ['main'] and at[0] in target.starters else why
    names = {frame.name for frame in user}
    if why == '' and target.via and not target.via & names and len(user) > 1:
        return f'not through {" or ".join(sorted(target.via))}: {";".join(stack)}'
    return why


def median(weights):
    """The value below which half of the weight is."""
    left = weights.total() / 2
    for value, weight in sorted(weights.items()):
        left -= weight
        if left <= 0:
            return value
    return 0


def judge(name, target, stacks):
    reasons, depths = collections.Counter(), collections.Counter()
    for stack, weight in stacks.items():
        stack = frames.without_marks(stack)
        reasons[why_not(stack, target)] += weight
        depths[len(frames.split(stack)[0])] += weight
    without, complete = reasons.pop(None, 0), reasons.pop('', 0)
    total = stacks.total() - without
    check(total >= SAMPLES_MIN, f'{total} samples, and {without} of tasks without a user stack')
    check(without <= WITHOUT_MAX * total, 'nearly all tasks have one')
    print(f'{name}: {100 * complete / max(total, 1):.2f} % of {total} complete, '
          f'{median(depths)} frames')
    for why, weight in reasons.most_common(REASONS_MAX):
        print(f'   {weight} {why}')
    unknown = sum(w for s, w in stacks.items() if any('[unknown]' in text for text in s))
    check(unknown <= (1 - GATE) * total, f'{unknown} with a frame where no code is')
    if target.may_be_cut:
        unmarked = sum(w for why, w in reasons.items() if not why.startswith('[truncated: '))
        check(unmarked <= (1 - GATE) * total, f'{unmarked} are cut and do not say so')
        check(complete < GATE * total, 'some are cut')
    check(are_most(complete, total, target.gate), f'at least {100 * target.gate:g} % are complete')


def main():
    if sys.argv[1:] == ['--list']:
        print(*WORKLOADS)
        return
    binary, programs, name = sys.argv[1:4]
    need_root()
    with tempfile.TemporaryDirectory() as work:
        target = WORKLOADS[name](work, os.path.abspath(programs))
        judge(name, target, samples(binary, target, work))
    done()


main()
