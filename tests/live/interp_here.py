#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Interpreters that this system has, in a few seconds. Other versions have tests of their own (interp_<runtime>.py).

interp_here.py STACKBPF PART...
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from live import check, done, need_root, ready, run_parts, runs_for, sampling, skip, stackbpf, wait_for

need_root()
BINARY, PARTS = sys.argv[1], sys.argv[2:]

# A class, a function, a method and a file whose names are not ASCII; those that PHP made a hash of and others.
UTF8 = r'''<?php
class Größe {
    function messen($n) { for ($s = $i = 0; $i < $n; $i++) $s = ($s * 17 + $i) % 65521; return $s; }
}
function überprüfe($n) { return (new Größe)->messen($n); }
fwrite(STDOUT, "ready\n");
for (;;) überprüfe(10000);
'''
LATIN1 = b'<?php function caf\xe9($n) { return array_sum(range(1, $n)); } function loop() { for (;;) caf\xe9(1000); }'

# Calls itself as often as its only argument says, and works at the end: 600 frames are more than are kept.
DEEP = {
    'python3': ('import sys\nsys.setrecursionlimit(5000)\n'
                'def deep(n): return deep(n - 1) if n else work()\n'
                'def work():\n    print("ready", flush=True)\n    while True: sum(range(100))\n'
                'deep(int(sys.argv[1]))\n'),
    'ruby': ('def deep(n) n > 0 ? deep(n - 1) : work end\n'
             'def work; puts "ready"; $stdout.flush; x = 0; loop { x = (x * 17 + 1) % 65521 } end\n'
             'deep(ARGV[0].to_i)\n'),
}


# Three functions of generated code: two that call the next one, and one that works. With an argument they have no frame
# pointers, and the register is that of main().
GENERATED = r'''
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	static const unsigned char kept[] = {
		0x55, 0x48, 0x89, 0xe5, 0xe8, 2, 0, 0, 0, 0x5d, 0xc3, /* push rbp; mov rbp, rsp; call; pop rbp; ret */
		0x55, 0x48, 0x89, 0xe5, 0xe8, 2, 0, 0, 0, 0x5d, 0xc3,
		0x55, 0x48, 0x89, 0xe5, 0xeb, 0xfe, /* jmp . */
	};
	static const unsigned char used[] = {
		0x48, 0x83, 0xec, 0x18, 0xe8, 5, 0, 0, 0, 0x48, 0x83, 0xc4, 0x18, 0xc3, /* sub rsp, 24; call; add rsp, 24; ret */
		0x48, 0x83, 0xec, 0x18, 0xe8, 5, 0, 0, 0, 0x48, 0x83, 0xc4, 0x18, 0xc3,
		0xeb, 0xfe,
	};
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(code, 0, 4096);
	memcpy(code, argc > 1 ? used : kept, argc > 1 ? sizeof(used) : sizeof(kept));
	puts("ready");
	fflush(stdout);
	((void (*)(void))code)();
	return argv[0][0];
}
'''

def deep_stacks(language, depth, *options):
    """[(frames of `deep`, whether it says that it was cut, weight)], and the result."""
    with tempfile.TemporaryDirectory() as work:
        path = f'{work}/deep'
        with open(path, 'w', encoding='ascii') as file:
            file.write(DEEP[language])
        with ready(language, path, str(depth)) as program:
            result = stackbpf(BINARY, 'oncpu', '-p', str(program.pid), '-F', '499', '-t', '1', *options)
    return [(sum('deep' in frame for frame in stack), 'truncated: too deep]' in ';'.join(stack), weight)
            for stack, weight in result.stacks.items()], result


def deep():
    """What an interpreter's walk did not reach is missing: the stack is not complete, and this is counted. --depth
    bounds what is shown."""
    for language in DEEP:
        if not shutil.which(language):
            print(f'not tried: no {language} here')
            continue
        stacks, result = deep_stacks(language, 600)
        nr_cut = sum(weight for _, is_cut, weight in stacks if is_cut)
        share = float(re.search(r'([0-9.]+) % complete', result.err)[1])
        check(nr_cut > 0.9 * result.total, f'{language}: {nr_cut} of {result.total} say that they are cut')
        check(int(result.facts['trunc']) == nr_cut, f'{language}: trunc={result.facts["trunc"]}, {nr_cut} are cut')
        check(abs(share - 100 * (1 - nr_cut / result.total)) < 0.11, f'{language}: {share} % complete of {result.total}')
        check(f'{nr_cut} too deep' in result.err and f', {nr_cut} cut' in result.err, f'{language}: {result.err}')
        stacks, result = deep_stacks(language, 100)
        check(result.facts['trunc'] == '0' and not any(is_cut for _, is_cut, _ in stacks),
              f'{language}: 100 calls are complete, trunc={result.facts["trunc"]}')
        stacks, result = deep_stacks(language, 100, '--depth', '20')
        most = max(len(stack) for stack in result.stacks)
        kernel = 40  # at most, in an interrupt
        check(0 < max(nr for nr, _, _ in stacks) <= 20 and most <= 20 + 2 + kernel,
              f'{language}: --depth 20 leaves {max(nr for nr, _, _ in stacks)} calls, {most} frames')
        nr_cut = sum(weight for _, is_cut, weight in stacks if is_cut)
        check(nr_cut > 0.9 * result.total and result.facts['trunc'] == str(nr_cut),
              f'{language}: --depth 20: {nr_cut} of {result.total} say so, trunc={result.facts["trunc"]}')

# outer() calls inner(), which waits for standard input for as long as the test lasts: nothing of it runs meanwhile.
ASLEEP = {
    'python3': ('.py', 'import os\ndef inner(): os.read(0, 1)\ndef outer(): inner()\n'
                       'print("ready", flush=True)\nouter()\n'),
    'ruby': ('.rb', 'def inner; $stdin.sysread(1); end\ndef outer; inner; end\n'
                    'puts "ready"; $stdout.flush\nouter\n'),
    'perl': ('.pl', '$| = 1; sub inner { sysread(STDIN, my $c, 1); 1 }\nsub outer { inner(); 1 }\n'
                    'print "ready\\n"; outer();\n'),
    'php': ('.php', '<?php function inner() { fgetc(STDIN); }\nfunction outer() { inner(); }\n'
                    'fwrite(STDOUT, "ready\\n"); outer();\n'),
    'node': ('.js', 'const fs = require("fs");\nfunction inner() { fs.readSync(0, Buffer.alloc(1)); }\n'
                    'function outer() { inner(); return 1; }\nfs.writeSync(1, "ready\\n"); outer();\n'),
    'java': ('.java', 'class A { static int inner() throws Exception { return System.in.read(); }\n'
                      'static int outer() throws Exception { return inner() + 1; }\n'
                      'public static void main(String[] a) throws Exception {\n'
                      'System.out.println("ready"); System.out.flush(); outer(); } }\n'),
}
LUA = ('.lua', 'local function inner() io.read(1) return 1 end\nlocal function outer() inner() return 1 end\n'
               'print("ready") io.stdout:flush() outer()\n')
ASLEEP.update({name: LUA for name in ('lua5.1', 'lua5.4', 'luajit')})


def sleeps_in_read(pid):
    """A thread waits for the pipe that is its standard input."""
    pipe = os.stat(f'/proc/{pid}/fd/0').st_ino
    for tid in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{tid}/syscall', encoding='ascii') as file:
            words = file.read().split()
            if words[0] == '0' and os.stat(f'/proc/{pid}/fd/{int(words[1], 16)}').st_ino == pipe:
                return True
    return False


def judge_asleep(language, view, result, root):
    """@root: what the name of its process, the outermost frame, is like."""
    stacks = [stack for stack in result.stacks if re.fullmatch(root, stack[0]) and
              any(re.search(r'\bouter\b', a) and re.search(r'\binner\b', b) for a, b in zip(stack, stack[1:]))]
    check(len(stacks) == 1, f'{language}: {view}: outer and inner are in {len(stacks)} stacks'
          f'{"" if stacks else [";".join(stack) for stack in result.stacks if re.fullmatch(root, stack[0])][:3]}')
    check(not any('truncated' in frame for stack in stacks for frame in stack), f'{language}: {view}: it is complete')


def asleep():
    """Threads that sleep for all of the run have the frames of their program, whatever the view."""
    programs = {}
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        for language, (suffix, text) in ASLEEP.items():
            if not shutil.which(language):
                print(f'not tried: no {language} here')
                continue
            with open(f'{work}/{language}{suffix}', 'w', encoding='ascii') as file:
                file.write(text)
            program = ready(language, f'{work}/{language}{suffix}', stdin=subprocess.PIPE)
            programs[language] = stack.enter_context(program)
        for language, program in programs.items():
            wait_for(lambda pid=program.pid: sleeps_in_read(pid), f'{language} reads')
        pids = [option for program in programs.values() for option in ('-p', str(program.pid))]
        said = {'snap': stackbpf(BINARY, 'snap', *pids, '--format', 'folded')}
        for view in ('offcpu', 'wall'):
            said[view] = stackbpf(BINARY, view, *pids, '-t', '0.5', '--by', 'pid')
    for view, result in said.items():
        check(result.status == 0 and result.stacks, f'{view}: {result.err}')
        for language, program in programs.items():
            judge_asleep(language, view, result, rf'.*-{program.pid}(/\d+)?')


def generated():
    """Where a frame pointer leads past callers, the stack is cut there, and not complete; where not, it is."""
    if os.uname().machine != 'x86_64':
        skip('the code is for x86-64')
    with tempfile.TemporaryDirectory() as work:
        with open(f'{work}/generated.c', 'w', encoding='ascii') as file:
            file.write(GENERATED)
        subprocess.run(['gcc', '-O1', '-fno-omit-frame-pointer', '-o', f'{work}/generated', f'{work}/generated.c'], check=True)
        for option, want in (((), 'main;[anon];[anon];[anon]'), (('used',), '[truncated: no frame pointer];[anon]')):
            with ready(f'{work}/generated', *option) as program:
                # Until it is in its generated code, and then for a number of samples: others may have most of the CPUs.
                runs_for(program.pid, 0.05)
                with sampling(BINARY, 'oncpu', '-u', '-p', str(program.pid), '-F', '499') as run:
                    runs_for(program.pid, 0.2)
            result = run.result
            stacks = {re.sub(r'anon\+0x[0-9a-f]+', 'anon', ';'.join(stack)): weight for stack, weight in result.stacks.items()}
            nr = sum(weight for stack, weight in stacks.items() if stack.endswith(want))
            nr_cut = result.total if option else 0
            check(0 < nr == result.total, f'{nr} of {result.total} end in {want}: {stacks}')
            check(int(result.facts['trunc']) == nr_cut and f'{0 if option else 100}.0 % complete' in result.err,
                  f'trunc={result.facts["trunc"]} of {result.total}: {result.err}')


def yjit():
    """Frames of Ruby are whole, those of C below its generated code are not."""
    if subprocess.run(['ruby', '--yjit', '-e', 'exit RubyVM::YJIT.enabled?'], stderr=subprocess.DEVNULL,
                      check=False).returncode if shutil.which('ruby') else True:
        skip('no ruby with YJIT here')
    with tempfile.TemporaryDirectory() as work:
        with open(f'{work}/jit.rb', 'w', encoding='ascii') as file:
            file.write('def leaf(n); s = 0; i = 0; while i < n; s = (s * 17 + i) % 65521; i += 1; end; s; end\n'
                       'def top(n); leaf(n) + 1; end\n'
                       '100.times { top(1000) }\nputs "ready"; $stdout.flush\nloop { top(1000) }\n')
        with ready('ruby', '--yjit', f'{work}/jit.rb') as program:
            result = stackbpf(BINARY, 'oncpu', '-u', '-p', str(program.pid), '-F', '499', '-t', '1')
    inside = {stack: weight for stack, weight in result.stacks.items() if stack[-1].startswith('[anon')}
    cut = sum(weight for stack, weight in inside.items() if any(frame.startswith('[truncated') for frame in stack))
    # Where a function of generated code begins, its caller's frame pointer is still there, and the stack is whole.
    check(0 < 0.98 * sum(inside.values()) <= cut, f'{cut} of {sum(inside.values())} in generated code are cut, of {result.total}')
    check(int(result.facts['trunc']) >= cut, f'trunc={result.facts["trunc"]}')
    nr = sum(weight for stack, weight in inside.items() if 'Object#top' in stack and 'Object#leaf' in stack)
    # A tick can come while generated code is making Ruby's frame, or taking it away: two of 448 were seen.
    check(nr >= 0.98 * sum(inside.values()), f'{nr} of {sum(inside.values())} have the callers of Ruby')


def utf8():
    """PHP's hash of a name is by char, which has a sign on some machines and none on others."""
    if not shutil.which('php'):
        skip('no php here')
    with tempfile.TemporaryDirectory() as work:
        path = f'{work}/prüfung.php'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(UTF8)
        with ready('php', '-n', path) as program:
            result = stackbpf(BINARY, 'oncpu', '-p', str(program.pid), '-F', '499', '-t', '1', '--lines')
    want = ('{main}', 'überprüfe', 'Größe::messen')
    names = {tuple(frame.partition(' ')[0] for frame in stack): weight for stack, weight in result.stacks.items()}
    nr = sum(weight for stack, weight in names.items() if want == stack[-3:])
    check(nr > 0.9 * result.total, f'PHP: {nr} of {result.total} are {";".join(want)}: {result.err}')
    check('[unreadable' not in str(names), 'all names can be read')
    nr = sum(weight for stack, weight in result.stacks.items() if 'überprüfe prüfung.php:5' in stack)
    check(nr > 0.9 * result.total, f'PHP: {nr} of {result.total} have the file')


def latin1():
    """Names of functions and files are bytes."""
    if not shutil.which('php'):
        skip('no php here')
    with tempfile.TemporaryDirectory() as work:
        path = os.fsencode(work) + b'/caf\xe9.php'
        with open(path, 'wb') as file:
            file.write(LATIN1)
        with ready('php', '-n', '-r', b'require "' + path + b'"; fwrite(STDOUT, "ready\n"); loop();') as program:
            result = stackbpf(BINARY, 'oncpu', '-p', str(program.pid), '-F', '499', '-t', '1')
    nr = sum(weight for stack, weight in result.stacks.items() if 'caf?' in stack)
    check(nr > 0.9 * result.total and '[unreadable' not in str(result.stacks),
          f'PHP: {nr} of {result.total} have a name in Latin-1: {result.err}')


run_parts((utf8, latin1, deep, asleep, generated, yjit), PARTS)
done()
