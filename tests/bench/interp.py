#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What frames of interpreters cost: BPF time of each frame, the target's throughput beside other tools,
and what names take.

interp.py STACKBPF [frames] [throughput] [names]

frames: the same recursion at two depths, with and without --interp; what the deeper one adds, by the number
of frames that it has more. throughput: a program counts its rounds; rounds for each second of its CPU
time, which does not depend on what else the machine does, relative to those without a tool in the same
round. names: 10,000 functions that are in samples at once.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from beside import children, nr_attached
from costs import bpf_stats_on, run

BINARY = sys.argv[1]
PARTS = sys.argv[2:] or ['frames', 'throughput', 'names']
SECONDS = 1.5
BESIDE_SECONDS = 0.8
ROUNDS = 3
SHALLOW, DEEP = 10, 200
NR_FUNCTIONS, CHAIN = 10000, 200
PYTHON = '/usr/bin/python3'

LUA = 'function f(n) if n > 0 then return 1 + f(n - 1) end while true do n = n + 1 end end f(DEPTH)'
# Recursion to DEPTH; there it works forever.
RECURSION = {
    'python': [PYTHON, '-c', 'def f(n):\n if n: return f(n - 1)\n while True: pass\nf(DEPTH)'],
    'perl': ['perl', '-e', 'no warnings; sub f { my $n = shift; return f($n - 1) if $n; 1 while ++$x } f(DEPTH)'],
    'ruby': ['ruby', '-e', 'def f(n)\n return f(n - 1) if n > 0\n x = 0\n x += 1 while true\nend\nf(DEPTH)'],
    'php': ['php', '-r', 'function f($n) { if ($n) return f($n - 1) + 1; while (1) $n++; } f(DEPTH);'],
    'lua': ['lua5.4', '-e', LUA],
    'luajit': ['luajit', '-joff', '-e', LUA],
    'node': ['node', '-e', 'function f(n) { if (n) return 1 + f(n - 1); for (;;) n++; } f(DEPTH)'],
    'java': ['java', '-XX:+UseSerialGC', 'FILE.java', 'DEPTH'],
}
JAVA = 'class Deep { static long x; static long f(int n) { if (n > 0) return 1 + f(n - 1); for (;;) x += n + 1; } ' \
       'public static void main(String[] a) { f(Integer.parseInt(a[0])); } }\n'
# A byte for each round of about a millisecond.
COUNTING = {
    'python': [PYTHON, '-c', 'import os\ndef f(n): return f(n - 1) + 1 if n else 0\nwhile True:\n'
               ' for i in range(300): f(20)\n os.write(1, b".")'],
    'perl': ['perl', '-e', 'sub f { my $n = shift; return $n ? f($n - 1) + 1 : 0 } '
             'while (1) { f(20) for 1..200; syswrite(STDOUT, ".") }'],
}
NAMES = f'''
import time
for g in range({NR_FUNCTIONS // CHAIN}):
    for i in range({CHAIN}):
        exec(f"def f_{{g}}_{{i}}(until): return f_{{g}}_{{i + 1}}(until)")
    exec(f"def f_{{g}}_{CHAIN}(until):\\n while time.monotonic() < until: pass")
while True:
    for g in range({NR_FUNCTIONS // CHAIN}):
        globals()[f"f_{{g}}_0"](time.monotonic() + 0.01)
'''


def stat(said, name):
    """What stands behind a name of --stats."""
    match = re.search(rf'^stackbpf:\s+{re.escape(name)}\s+(.*)', said, re.MULTILINE)
    return match.group(1) if match else ''


def number(text, pattern):
    match = re.search(pattern, text)
    return float(match.group(1)) if match else 0.0


def ours(pid, how, seconds=SECONDS, hz=999):
    got = run([BINARY, 'oncpu', '-p', str(pid), '-t', str(seconds), '-F', str(hz), '-u', '--stats', '--interp', how])
    said = got['said']
    row = next((line for line in said.splitlines() if 'with its frames' in line), '')
    return {'ns': number(stat(said, 'BPF programs'), r'([0-9]+) ns a sample'), 'row': row, 'said': said,
            'rss': got['rss'], 'samples': number(row, r'([0-9]+) samples'), 'share': number(row, r'([0-9.]+) % with'),
            'frames': number(row, r'([0-9]+) frames')}


def started(command, **kwargs):
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **{'stdout': subprocess.DEVNULL, **kwargs})
    time.sleep(2.0 if command[0] == 'java' else 0.4)
    if process.poll() is not None:
        raise RuntimeError(f'{command[0]} has ended')
    return process


def at_depth(command, depth, work):
    words = [word.replace('DEPTH', str(depth)).replace('FILE', f'{work}/Deep') for word in command]
    process = started(words)
    try:
        off, auto = (ours(process.pid, how) for how in ('off', 'auto'))
    finally:
        process.kill()
        process.wait()
    return off['ns'], auto


def measure_frames(work):
    with open(f'{work}/Deep.java', 'w', encoding='ascii') as file:
        file.write(JAVA)
    print(f'frames: {SHALLOW} and {DEEP} deep, 999 Hz')
    for name, command in RECURSION.items():
        if not shutil.which(command[0]):
            print(f'  {name:8} not here')
            continue
        try:
            (off_few, few), (off_many, many) = (at_depth(command, depth, work) for depth in (SHALLOW, DEEP))
        except RuntimeError as error:
            print(f'  {name:8} {error}')
            continue
        if not few['frames'] or not many['frames']:
            print(f'  {name:8} no frames of it')
            continue
        nr_few, nr_many = (got['frames'] / got['samples'] for got in (few, many))
        per_frame = ((many['ns'] - off_many) - (few['ns'] - off_few)) / (nr_many - nr_few)
        print(f"  {name:8} {per_frame:5.0f} ns a frame ({nr_few:.1f} and {nr_many:.1f} frames, "
              f"{many['share']:.1f} % of samples); a sample {few['ns'] / 1000:.1f} and {many['ns'] / 1000:.1f} us, "
              f"without {off_few / 1000:.1f} and {off_many / 1000:.1f} us", flush=True)


def tools_for(name, pid, work):
    """{tool: command}: each until SIGINT."""
    tools = {}
    for hz in (99, 999) if name == 'python' else (999,):
        tools[f'stackbpf {hz} Hz'] = [BINARY, 'oncpu', '-q', '-p', str(pid), '-F', str(hz), '-o',
                                      f'{work}/out.folded']
        if hz == 999:
            tools[f'stackbpf --interp off {hz} Hz'] = [*tools[f'stackbpf {hz} Hz'], '--interp', 'off']
        tools[f'perf record -g {hz} Hz'] = ['perf', 'record', '-q', '-g', '-e', 'cpu-clock', '-F', str(hz), '-p',
                                            str(pid), '-o', f'{work}/perf.data']
        if name == 'python':
            tools[f'austin {hz} Hz'] = ['austin', '-i', str(1000000 // hz), '-o', f'{work}/austin.out', '-p',
                                        str(pid)]
            tools[f'py-spy {hz} Hz'] = ['py-spy', 'record', '-f', 'raw', '-r', str(hz), '-o', f'{work}/py-spy.out',
                                        '-p', str(pid)]
    return {tool: command for tool, command in tools.items() if shutil.which(command[0])}


def cpu_seconds(pid):
    """Of a process with one thread."""
    with open(f'/proc/{pid}/schedstat', encoding='ascii') as file:
        return int(file.read().split()[0]) / 1e9


def cpu_of_threads(pid):
    """Of all threads of a process and its children."""
    nr = 0
    for process in (pid, *children(pid)):
        for thread in os.listdir(f'/proc/{process}/task'):
            with open(f'/proc/{process}/task/{thread}/schedstat', encoding='ascii') as file:
                nr += int(file.read().split()[0])
    return nr / 1e9


def rate_beside(target, counter, command):
    """Return: rounds of the target for each second of its CPU time, CPU seconds of the tool a second."""
    tool = None
    if command:
        tool = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while not is_working(tool, command) and tool.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.3)
        if tool.poll() is not None:
            raise RuntimeError('it ended')

    def figures():
        return (os.stat(counter).st_size, cpu_seconds(target), time.monotonic(),
                cpu_of_threads(tool.pid) if tool else 0)

    before = figures()
    time.sleep(BESIDE_SECONDS)
    after = figures()
    if tool:
        tool.send_signal(2)
        try:
            tool.wait(10)
        except subprocess.TimeoutExpired:
            tool.kill()
            tool.wait()
    return (after[0] - before[0]) / (after[1] - before[1]), (after[3] - before[3]) / (after[2] - before[2])


def is_working(tool, command):
    """It is attached; or it writes, when it is one that attaches nothing."""
    if command[0] in ('austin', 'py-spy'):
        return os.path.exists(command[command.index('-o') + 1])
    return nr_attached(tool.pid) > 0


def measure_throughput(work):
    print(f'throughput: median (least, greatest) of {ROUNDS} rounds of {BESIDE_SECONDS} s beside each tool, relative '
          'to the same without; CPU of the tool')
    for name, command in COUNTING.items():
        counter = f'{work}/{name}.count'
        with open(counter, 'wb') as file:
            target = started(command, stdout=file)
        try:
            tools, rates, own = tools_for(name, target.pid, work), {}, {}
            for _ in range(ROUNDS):
                before, _ = rate_beside(target.pid, counter, None)
                for tool, of_tool in tools.items():
                    try:
                        rate, cpu = rate_beside(target.pid, counter, of_tool)
                    except RuntimeError:
                        continue
                    after, _ = rate_beside(target.pid, counter, None)
                    rates.setdefault(tool, []).append(2 * rate / (before + after))
                    own.setdefault(tool, []).append(cpu)
                    before = after
        finally:
            target.kill()
            target.wait()
        for tool, values in rates.items():
            print(f'  {name:8} {tool:28} {100 * statistics.median(values):6.1f} % ({100 * min(values):.1f} to '
                  f'{100 * max(values):.1f}), {100 * statistics.median(own[tool]):5.1f} % of a CPU', flush=True)


def measure_names(_):
    print(f'names: {NR_FUNCTIONS} functions of Python, {CHAIN} in each stack')
    got = {}
    for name, program in (('many', NAMES), ('few', NAMES.replace(f'range({NR_FUNCTIONS // CHAIN})', 'range(1)'))):
        process = started([PYTHON, '-c', program])
        try:
            got[name] = ours(process.pid, 'auto', seconds=4, hz=499)
        finally:
            process.kill()
            process.wait()
    row = stat(got['many']['said'], 'names of their frames')
    nr, megabytes, ms = number(row, r'^([0-9]+),'), number(row, r'([0-9.]+) MB'), number(row, r'in ([0-9.]+) ms')
    few_nr = number(stat(got['few']['said'], 'names of their frames'), r'^([0-9]+),')
    if not nr or not ms or nr == few_nr:
        print('  none')
        return
    print(f"  {nr:.0f} names in {ms:.1f} ms: {nr / ms * 1000:,.0f} a second; {megabytes:.1f} MB of names; peak memory "
          f"{got['many']['rss']:.1f} MiB, with {few_nr:.0f} names {got['few']['rss']:.1f} MiB: "
          f"{(got['many']['rss'] - got['few']['rss']) * 1e4 / (nr - few_nr):.1f} MiB for 10,000")


def main():
    parts = {'frames': measure_frames, 'throughput': measure_throughput, 'names': measure_names}
    with bpf_stats_on(), tempfile.TemporaryDirectory() as work:
        for part in PARTS:
            parts[part](work)


if os.geteuid() != 0:
    print('skipped: sampling needs root')
    sys.exit(77)
print(f"{os.cpu_count()} CPUs, Linux {os.uname().release}")
main()
