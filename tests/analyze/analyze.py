#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""analyze.py ROOT BUILD [TOOL...]: what tools say that look at the code, or at each access to memory, as far
as tests/analyze/exceptions has no reason against it. Tools: tidy, cppcheck, analyzer (gcc's), valgrind (of
the unit tests in C, flamegraph and sbsym). Takes some minutes; scripts/analyze starts it.

Valgrind does not look at a run of stackbpf: it does not know what bpf(2) writes, and takes it all for
uninitialized. That is left to the address and undefined-behaviour sanitizers, under which unit tests and
fuzzers run."""
import collections
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
JOBS = str(len(os.sched_getaffinity(0)))
FOLDERS = ('symbolizer', 'user')

Finding = collections.namedtuple('Finding', 'tool kind file text')


def run(*command, env=None):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          errors='replace', cwd=ROOT, env=os.environ | (env or {})).stdout


def relative(path, base=ROOT):
    return os.path.relpath(os.path.join(base, path), ROOT)


def gcc_findings(tool, text, base):
    """Lines "FILE:LINE:COLUMN: warning: TEXT [KIND]", as compilers have them."""
    for match in re.finditer(r'^(\S+?):(\d+):\d+: (?:warning|error): (.*?) \[([^]]+)\]$', text, re.M):
        file = relative(match[1], base)
        if file.startswith(FOLDERS):
            yield Finding(tool, match[4], file, f'{file}:{match[2]}: {match[3]}')


def tidy():
    text = run('run-clang-tidy-14', '-quiet', '-j', JOBS, '-p', BUILD, r'/(user|symbolizer)/.*\.c$')
    yield from gcc_findings('tidy', text, BUILD)


def cppcheck():
    text = run('cppcheck', '-j', JOBS, '--enable=warning,performance,portability', '--quiet',
               '--suppress=missingIncludeSystem', '--template={file}:{line}:1: warning: {message} [{id}]',
               '-I', 'user', '-I', 'bpf/include', '-I', 'symbolizer', '-I', f'{BUILD}/bpf', '-D_GNU_SOURCE', *FOLDERS)
    yield from gcc_findings('cppcheck', text, ROOT)


def analyzer():
    with tempfile.TemporaryDirectory() as folder:
        run('meson', 'setup', folder, ROOT, '-Dtests=disabled', '-Dc_args=-fanalyzer', env={'CC': 'gcc'})
        text = run('ninja', '-C', folder)
        if 'FAILED' in text:
            yield Finding('analyzer', 'build', ROOT, text[-3000:])
        yield from gcc_findings('analyzer', text, folder)


def under_valgrind(*command):
    return run('valgrind', '-q', '--leak-check=full', '--errors-for-leak-kinds=definite', *command)


def valgrind():
    tests = sorted(path for path in pathlib.Path(BUILD, 'tests/unit').glob('unit_*') if path.is_file())
    programs = [(str(path),) for path in tests]
    programs.append((f'{BUILD}/user/flamegraph/flamegraph', 'tests/fuzz/corpus/folded/views'))
    programs.append((f'{BUILD}/symbolizer/sbsym', f'{BUILD}/symbolizer/sbsym', '5000', '9000'))
    for command in programs:
        name, text = pathlib.Path(command[0]).name, under_valgrind(*command)
        for block in re.findall(r'(?:^==\d+== .*\n)+', text, re.M):
            yield Finding('valgrind', re.sub(r'==\d+== ', '', block).splitlines()[0], name, block)
        for test in re.findall(r'^\[  FAILED  \] (\w+)\n(?=.*\n)', text, re.M):
            yield Finding('valgrind', test, name, f'{name}: {test} fails under valgrind')


TOOLS = {'tidy': (tidy, 'run-clang-tidy-14'), 'cppcheck': (cppcheck, 'cppcheck'), 'analyzer': (analyzer, 'gcc'),
         'valgrind': (valgrind, 'valgrind')}


def exceptions(tools):
    """[tool, kind, file], and whether it was of use."""
    rows = {}
    with open(os.path.join(ROOT, 'tests/analyze/exceptions'), encoding='utf-8') as file:
        for line in file:
            row = tuple(line.partition('#')[0].split())
            if row and row[0] in tools:
                rows[row] = False
    return rows


def main():
    tools = sys.argv[3:] or list(TOOLS)
    rows, findings = exceptions(tools), []
    for tool in tools:
        function, program = TOOLS[tool]
        if not shutil.which(program):
            print(f'{tool}: there is no {program}')
            sys.exit(77)
        new = list(dict.fromkeys(function()))
        for finding in new:
            row = next((row for row in rows if row[0] == tool and row[1] == finding.kind and
                        fnmatch.fnmatch(finding.file, row[2])), None)
            if row:
                rows[row] = True
            else:
                findings.append(finding)
        print(f'{tool}: {len(new)} findings, {len(findings)} so far without a reason against them')
    for finding in findings:
        print(f'{finding.tool}: {finding.kind}: {finding.text}')
    useless = [' '.join(row) for row, is_of_use in rows.items() if not is_of_use]
    for row in useless:
        print(f'tests/analyze/exceptions: no longer so: {row}')
    sys.exit(1 if findings or useless else 0)


main()
