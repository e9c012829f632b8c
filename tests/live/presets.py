#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Presets of trace: as many as the program counts, getrusage(2) or the kernel's own counters have.

presets.py STACKBPF HAPPENS_C [PART...]
"""
import collections
import contextlib
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

from live import check, done, memory_cgroup, need_root, run_parts, sampling, stackbpf

need_root()
BINARY, SOURCE = sys.argv[1], sys.argv[2]
WORK = tempfile.TemporaryDirectory()
PROGRAM = f'{WORK.name}/happens'
subprocess.run(['gcc', '-O2', '-g', '-o', PROGRAM, SOURCE], check=True)
NR = 200


def run(*args):
    """What was traced, and what the program prints about itself."""
    said = f'{WORK.name}/said'
    result = stackbpf(BINARY, 'trace', *args, '--', 'sh', '-c', f'exec {PROGRAM} {NR} >{said}')
    with open(said, encoding='ascii') as file:
        return result, {name: int(nr) for name, nr in map(str.split, file)}


def of(result, *frames):
    return sum(weight for stack, weight in result.stacks.items() if set(frames) <= set(stack))


def leaves(result, *frames):
    counts = collections.Counter()
    for stack, weight in result.stacks.items():
        if set(frames) <= set(stack):
            counts[stack[-1]] += weight
    return counts


def memory():
    result, said = run('page-faults')
    check((of(result, 'touch'), of(result, 'fill', 'ksys_read')) == (said['touch'], said['fill']) == (NR, NR),
          f'faults of user code and of the kernel in a system call: {said}')
    result, _ = run('page-allocs')
    check(NR <= of(result, 'touch') <= NR + 5 and NR <= of(result, 'fill') <= NR + 5,
          f'pages, and some for page tables: {of(result, "touch")}, {of(result, "fill")}')


def calls():
    result, _ = run('syscalls')
    check(leaves(result, 'ask') == {'[syscall=getppid]': NR} and leaves(result, 'fail') == {'[syscall=close]': NR},
          f'by name: {leaves(result).most_common(9)}')
    check(not any(re.fullmatch(r'\[syscall=-?\d+\]', leaf) for leaf in leaves(result)), 'all have names')
    result, _ = run('syscall-errors')
    check(leaves(result, 'fail') == {'[syscall=close]': NR} and not of(result, 'ask'), f'those that fail: {leaves(result)}')
    result, _ = run('syscalls', '--value', 'id % 1', '--when', 'syscall(id) == 3')
    check(set(leaves(result)) == {'[id % 1=0]'} and of(result, 'fail') == NR and not of(result, 'ask'),
          f"the user's own expressions come first: {leaves(result)}")


def signals():
    result, _ = run('signals')
    check(leaves(result, 'notify') == {'[signal=SIGUSR1]': NR // 2, '[signal=SIGRTMIN+3]': NR // 2}, f'{leaves(result)}')


def switches():
    result, said = run('context-switches')
    # Where the CPUs are busy, it is also interrupted between its look at its counters and nap().
    check(0.95 * said['nap'] <= of(result, 'nap') <= said['nap'] <= of(result, 'main') and said['nap'] > 0,
          f'{of(result, "nap")} to {of(result, "main")} of {said}')


def several():
    result = stackbpf(BINARY, 'trace', 'exec', 'signals', '-s', '--', 'sh', '-c', '/bin/true; /bin/true; kill -URG $$; :')
    check(leaves(result, '[sched:sched_process_exec]')['[filename=/bin/true]'] == 2 and
          leaves(result, '[signal:signal_generate]')['[signal=SIGURG]'] == 1, f'each has its own value: {leaves(result)}')


def softirqs():
    """By name, as /proc/softirqs has them; but not those that interrupt stackbpf, or begin while another event is recorded."""
    def counted():
        with open('/proc/softirqs', encoding='ascii') as file:
            rows = [line.split() for line in file.readlines()[1:]]
        return {name.strip(':'): sum(map(int, counts)) for name, *counts in rows}
    before = counted()
    with sampling(BINARY, 'trace', 'softirq') as traced:
        inner = counted()
        time.sleep(1)
        inner = {name: nr - inner[name] for name, nr in counted().items()}
    outer = {name: nr - before[name] for name, nr in counted().items()}
    got = {leaf[len('[softirq='):-1]: nr for leaf, nr in leaves(traced.result).items()}
    check(got and all(nr <= outer.get(name, -1) for name, nr in got.items()), f'no more than there were: {got} of {outer}')
    check(sum(got.values()) >= 0.6 * sum(inner.values()), f'most of them: {got} of {inner}')


def retransmits():
    """A listener that accepts nobody: the kernel sends what is not answered again after a second."""
    with sampling(BINARY, 'trace', 'tcp-retransmits') as traced, contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(('127.0.0.1', 0), backlog=0))
        clients = [stack.enter_context(socket.socket()) for _ in range(4)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        port, total = server.getsockname()[1], 100  # offset of tcp_info.tcpi_total_retrans
        time.sleep(1.4)
        nr = sum(struct.unpack_from('I', client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, total + 4), total)[0]
                 for client in clients)
    check(leaves(traced.result)[f'[dport={port}]'] == nr > 0, f'{nr} of port {port}: {leaves(traced.result)}')


def out_of_memory():
    with memory_cgroup(16 << 20) as procs:
        if not procs:
            return
        hog = f'echo $$ >{procs}; exec tail -n 1000000000 /dev/zero'
        with sampling(BINARY, 'trace', 'oom') as traced, subprocess.Popen(['sh', '-c', hog], stderr=subprocess.DEVNULL) as process:
            process.wait(timeout=240)
    check(leaves(traced.result) == {f'[args->pid={process.pid}]': 1} and process.returncode < 0,
          f'who was killed: {process.pid}, {process.returncode}, {list(traced.result.stacks)}')


def names():
    def printed(*args):
        return subprocess.run([BINARY, *args], capture_output=True, text=True, check=False).stdout.splitlines()
    listed = printed('trace', '--list')
    check(listed[0] == 'syscalls\tsystem calls, by name', f'--list begins with presets: {listed[:3]}')
    bare = [line.split('\t')[0] for line in listed]
    check(bare.count('page-faults') == 1, 'that has a counter of the same name once')
    with open(f'{os.path.dirname(SOURCE)}/../../docs/man/stackbpf-trace.8', encoding='utf-8') as file:
        man = file.read()
    presets = [line.split('\t')[0] for line in listed[:bare.index('faults')]]
    check(all(f'\n.It Li {name}\n' in man for name in presets), f'the man page has them: {presets}')
    words = printed('completion', '--', 'trace', 'sysc')
    check('syscalls\tsystem calls, by name' in words, f'the shell completes them: {words[:9]}')
    for args, said in ((('sycalls',), "did you mean 'syscalls'?"),
                       (('syscalls', '--when', 'nr == 1'), "--when at 'raw_syscalls:sys_enter': column 1: there is no 'nr'"),
                       (('syscalls', '--value', 'nosuch(id)'), "there is no function 'nosuch'; there are str(ADDRESS), syscall"),
                       (('syscalls', 'page-faults', '--value', 'id'), "--value at 'page-faults': ")):
        result = stackbpf(BINARY, 'trace', *args, '-t', '1')
        check(result.status in (2, 4) and said in result.err and result.err.count('\n') == 1, f'{args}: {result.err}')


run_parts([memory, calls, signals, switches, several, softirqs, retransmits, out_of_memory, names], sys.argv[3:])
done()
