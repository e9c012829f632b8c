#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a read costs more while its bytes are counted, and a call that moves none.

iocost.py STACKBPF CALLS [ROUNDS [SECONDS]]

Two loops: pread() of 4 KiB that are cached, and getppid(). The figure: ns of CPU time for each call,
less those in the same round without any tool.
"""
import os
import statistics
import sys
import tempfile

from beside import paired, rounds

BINARY, CALLS = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
SECONDS = sys.argv[4] if len(sys.argv) > 4 else '2'
NONE = 'nothing'
MOVING = ('read', 'write', 'pread64', 'pwrite64', 'readv', 'writev', 'preadv', 'pwritev', 'preadv2', 'pwritev2')
# Bytes by stack and descriptor: bpftrace has no way from that to the file.
BPFTRACE = (','.join(f'tracepoint:syscalls:sys_enter_{c}' for c in MOVING) + ' { @fd[tid] = args->fd + 1; } ' +
            ','.join(f'tracepoint:syscalls:sys_exit_{c}' for c in MOVING) +
            ' { if (@fd[tid]) { @[comm, ustack, @fd[tid]] = sum(args->ret); delete(@fd[tid]); } }')
GLOBAL = ('tracepoint:raw_syscalls:sys_enter { @at[tid] = nsecs; } '
          'tracepoint:raw_syscalls:sys_exit { @[comm, ustack] = sum(args->ret); delete(@at[tid]); }')


def tools(pid):
    mine = str(pid)
    return {
        NONE: None,
        'stackbpf io': [BINARY, 'io', '-q'],
        'stackbpf io --unwind fp': [BINARY, 'io', '--unwind', 'fp', '-q'],
        'stackbpf io --latency': [BINARY, 'io', '--latency', '-q'],
        'stackbpf io of another process': [BINARY, 'io', '-q', '-p', mine],
        'bpftrace, same tracepoints': ['bpftrace', '-e', BPFTRACE],
        'bpftrace, raw_syscalls': ['bpftrace', '-e', GLOBAL],
    }


def main():
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(4096))
        file.flush()
        loads = {'read': [CALLS, 'read', SECONDS, file.name], 'getppid': [CALLS, 'getppid', SECONDS]}
        figures, _, failed = rounds(tools(os.getpid()), loads, ROUNDS)
    for load in loads:
        print(f'\n{load}: {statistics.median(f[0] for f in figures[NONE][load]):.0f} ns')
        print(f'{"beside":32} {"added ns":>9} {"range":>16}')
        for tool in figures:
            if tool in failed or not figures[tool][load]:
                print(f'{tool:32} {failed.get(tool, "no figure")[:150]}')
                continue
            added, least, most = paired(figures, (tool, NONE), load, lambda a, b: a - b)
            print(f'{tool:32} {added:9.0f} {least:8.0f}..{most:6.0f}')


if os.geteuid() != 0:
    print('skipped: tracing needs root')
    sys.exit(77)
print(f'{os.cpu_count()} CPUs, Linux {os.uname().release}, {ROUNDS} rounds of {SECONDS} s')
main()
