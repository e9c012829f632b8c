#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""analyze.py ROOT BUILD [TOOL...]: what tools say that look at the code, or at each access to memory, as far
as tests/analyze/exceptions has no reason against it. Tools: tidy, cppcheck, analyzer (gcc's), valgrind (of
the unit tests in C, flamegraph and sbsym). What tidy and the analyzer have said of a file is kept in
BUILD/analyze, under a hash of the file as it is after preprocessing. scripts/analyze starts it.

Valgrind does not look at a run of stackbpf: it does not know what bpf(2) writes, and takes it all for
uninitialized. That is left to the address and undefined-behaviour sanitizers, under which unit tests and
fuzzers run."""
import collections
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
JOBS = str(len(os.sched_getaffinity(0)))
FOLDERS = ('symbolizer', 'user')

Finding = collections.namedtuple('Finding', 'tool kind file text')


def run(*command, cwd=ROOT):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          errors='replace', cwd=cwd).stdout


def relative(path, base=ROOT):
    return os.path.relpath(os.path.join(base, path), ROOT)


def gcc_findings(tool, text, base):
    """Lines "FILE:LINE:COLUMN: warning: TEXT [KIND]", as compilers have them."""
    for match in re.finditer(r'^(\S+?):(\d+):\d+: (?:warning|error): (.*?) \[([^]]+)\]$', text, re.M):
        file = relative(match[1], base)
        if file.startswith(FOLDERS):
            yield Finding(tool, match[4].partition(',')[0], file, f'{file}:{match[2]}: {match[3]}')


def sources():
    """{FILE: words of its compilation, without an output} of our folders."""
    with open(os.path.join(BUILD, 'compile_commands.json'), encoding='utf-8') as file:
        rows = json.load(file)
    words = {relative(row['file'], row['directory']): shlex.split(row['command']) for row in rows}
    return {file: [*of[:of.index('-MD')], '-fdiagnostics-color=never', os.path.join(ROOT, file)]
            for file, of in words.items() if file.startswith(FOLDERS) and file.endswith('.c')}


def said(tool, compilation, command):
    """What @command says; kept until the source, or what it includes, is another one."""
    with open(os.path.join(ROOT, '.clang-tidy'), encoding='utf-8') as file:
        what = [run(*compilation, '-E', cwd=BUILD), file.read(), *command]
    path = pathlib.Path(BUILD, 'analyze', tool, hashlib.sha256('\0'.join(what).encode()).hexdigest())
    if not path.exists():
        text = run(*command, cwd=BUILD)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')
    return path.read_text(encoding='utf-8')


def of_each_source(tool, command_of):
    """What is said of each source by command_of(FILE, its compilation)."""
    rows = sources()
    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        texts = pool.map(lambda file: said(tool, rows[file], command_of(file, rows[file])), rows)
        for text in texts:
            yield from gcc_findings(tool, text, BUILD)


def tidy():
    yield from of_each_source('tidy', lambda file, _: ['clang-tidy-14', '-quiet', '-p', BUILD, os.path.join(ROOT, file)])


def analyzer():
    yield from of_each_source('analyzer', lambda _, words: ['gcc', *words[1:], '-fanalyzer', '-c', '-o', '/dev/null'])


def cppcheck():
    folder = pathlib.Path(BUILD, 'analyze/cppcheck')
    folder.mkdir(parents=True, exist_ok=True)
    # Not the skeletons' folder: twenty seconds for each file that includes one.
    text = run('cppcheck', '-j', JOBS, '--enable=warning,performance,portability', '--quiet',
               f'--cppcheck-build-dir={folder}', '--suppress=missingIncludeSystem',
               '--template={file}:{line}:1: warning: {message} [{id}]',
               '-I', '.', '-I', 'user', '-D_GNU_SOURCE', *FOLDERS)
    yield from gcc_findings('cppcheck', text, ROOT)


def valgrind_kind(block):
    """The words of what it says, with '-' between them, without numbers."""
    lines = [line for line in re.sub(r'==\d+== ?', '', block).splitlines() if line and not line.startswith('Thread')]
    return '-'.join(word for word in lines[0].split() if not word[0].isdigit())


def under_valgrind(command):
    """What it says of a program, but not of its children, which end without giving back what they have."""
    name = pathlib.Path(command[0]).name
    text = run('env', 'STACKBPF_UNDER_VALGRIND=1', 'valgrind', '-q', '--leak-check=full', '--errors-for-leak-kinds=definite', '--child-silent-after-fork=yes',
               '--vgdb=no', *command)
    found = [Finding('valgrind', valgrind_kind(block), name, f'{name}: {block}')
             for block in re.findall(r'(?:^==\d+== .*\n)+', text, re.M)]
    failed = dict.fromkeys(re.findall(r'^\[  FAILED  \] (\w+)$', text, re.M))
    return found + [Finding('valgrind', test, name, f'{name}: {test} fails under valgrind') for test in failed]


def valgrind():
    tests = sorted(path for path in pathlib.Path(BUILD, 'tests/unit').glob('unit_*') if path.is_file())
    programs = [(str(path),) for path in tests]
    programs.append((f'{BUILD}/user/flamegraph/flamegraph', 'tests/fuzz/corpus/folded/views'))
    programs.append((f'{BUILD}/symbolizer/sbsym', f'{BUILD}/symbolizer/sbsym', '5000', '9000'))
    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        for findings in pool.map(under_valgrind, programs):
            yield from findings


TOOLS = {'tidy': (tidy, 'clang-tidy-14'), 'cppcheck': (cppcheck, 'cppcheck'), 'analyzer': (analyzer, 'gcc'),
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
            row = next((row for row in rows if row[0] == tool and fnmatch.fnmatchcase(finding.kind, row[1]) and
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
