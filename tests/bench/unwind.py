#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What complete stacks cost: BPF time per stack and per frame by program, beside frame pointers,
bpftrace's ustack and perf's copies of stacks on the same process.

unwind.py STACKBPF [SECONDS]

"per frame" is the difference to a run that takes only the leaf, by the number of frames above it. Interpreters are
left out of all runs, because their walks would be counted to the leaf.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from costs import bpf_stats_on, run

BINARY = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 4.0
HZ = 999
COMPILE = '#include <algorithm>\n#include <iostream>\n#include <map>\n#include <regex>\n#include <string>\n' \
          'int main(int c, char **v) { std::map<std::string, std::regex> m; for (int i = 0; i < c; i++) ' \
          'm.emplace(v[i], std::regex(v[i])); for (auto &p : m) std::cout << std::regex_match(p.first, p.second); }\n'
LOADS = {
    'clang -O2': ['sh', '-c', 'while :; do clang-14 -O2 -x c++ -c -o /dev/null "$0" || exit; done', 'FILE'],
    'python3': ['/usr/bin/python3', '-c', 'import json\ndef f(n):\n return f(n - 1) if n else '
                'json.loads(json.dumps(list(range(300)), indent=1))\nwhile True: f(9)'],
    'ruby': ['/usr/bin/ruby', '-e', 'loop { (1..300).map { |i| i.to_s * 3 }.sort.each_slice(7).to_a.inspect }'],
    'perl': ['/usr/bin/perl', '-e', 'while (1) { my %h = map { $_ => join ",", 1..$_ } 1..99; join "", sort values %h }'],
    'node': ['node', '-e', 'for (;;) JSON.parse(JSON.stringify([...Array(300).keys()]))'],
}


def stat(said, name):
    """The first number behind a name of --stats."""
    match = re.search(rf'^stackbpf:\s+{re.escape(name)}\s+([0-9.]+)', said, re.MULTILINE)
    return float(match.group(1)) if match else 0


def ours(pid, how):
    got = run([BINARY, 'oncpu', '-p', str(pid), '-s', '-t', str(SECONDS), '-F', str(HZ), '-u', '--stats',
               '--unwind', how, '--interp', 'off'])
    samples = stat(got['said'], 'samples')
    match = re.search(r'BPF programs .*?([0-9]+) ns a sample', got['said'])
    frames = stat(got['said'], 'frames by unwind tables') + stat(got['said'], 'frames by frame pointer')
    return {'ns': float(match.group(1)) if match else 0, 'samples': samples,
            'callers': frames / samples if samples else 0, 'complete': stat(got['said'], 'complete stacks'),
            'raw': stat(got['said'], 'first stacks copied raw')}


def peers(pid, work):
    data = f'{work}/perf.data'
    for name, args in (('perf -g', ['-g']), ('perf --call-graph dwarf', ['--call-graph', 'dwarf'])):
        if shutil.which('perf'):
            got = run(['perf', 'record', '-q', *args, '-e', 'cpu-clock', '-F', str(HZ), '-p', str(pid), '-o', data,
                       '--', 'sleep', str(SECONDS)], data)
            yield f"{name} {got['bytes'] / SECONDS / 1024:.0f} KiB/s, {100 * got['cpu'] / SECONDS:.1f} % CPU"
    if shutil.which('bpftrace'):
        script = f'profile:hz:{HZ} /pid == {pid}/ {{@[ustack]=count()}} interval:s:{round(SECONDS)} {{exit()}}'
        got = run(['timeout', '-s', 'KILL', str(SECONDS + 20), 'bpftrace', '-e', script])
        if got['ns']:
            yield f"bpftrace ustack {got['ns'] / 1000:.2f} us a tick of all CPUs"


def measure(name, command, work):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        leaf, fp, auto = (ours(process.pid, how) for how in ('none', 'fp', 'auto'))
        per_frame = (auto['ns'] - leaf['ns']) / auto['callers'] if auto['callers'] else 0
        print(f"{name:10} {auto['callers'] + 1:5.1f} frames, {auto['complete']:6.2f} % complete: "
              f"{auto['ns'] / 1000:6.2f} us a sample, {per_frame:4.0f} ns a frame, {auto['raw']:.0f} raw; leaf only "
              f"{leaf['ns'] / 1000:.2f} us; frame pointers {fp['ns'] / 1000:.2f} us, {fp['callers'] + 1:.1f} frames, "
              f"{fp['complete']:.2f} %", flush=True)
        for line in peers(process.pid, work):
            print(f'{"":10} {line}', flush=True)
    finally:
        process.kill()
        process.wait()


def main():
    with bpf_stats_on(), tempfile.TemporaryDirectory() as work:
        source = f'{work}/source.cc'
        with open(source, 'w', encoding='ascii') as file:
            file.write(COMPILE)
        for name, command in LOADS.items():
            if shutil.which(command[0]):
                measure(name, [source if word == 'FILE' else word for word in command], work)


if os.geteuid() != 0:
    print('skipped: sampling needs root')
    sys.exit(77)
print(f"{os.cpu_count()} CPUs, Linux {os.uname().release}, {HZ} Hz")
main()
