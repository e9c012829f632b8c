#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""library.py FILE RUNTIME: a seed for fuzz_attach, on stdout: the symbols that the runtime looks for in
a real library or program, with the bytes that lie there, and the version it shows."""
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BYTES_MAX = {'execute_ex': 1024, 'luaV_execute': 2048, 'rb_vm_exec': 2048}  # of others: 192
TEXTS = re.compile(rb'X-Powered-By: PHP/[0-9.]+')  # what is searched for, not named


def names_of(runtime):
    source = (HERE / 'fuzz_attach.c').read_text(encoding='utf-8')
    rows = re.findall(r'\[SB_RUNTIME_(\w+)\] = \{(.*?)\}', source, re.S)
    return next(re.findall(r'"(\w+)"', row) for name, row in rows if name.lower() == runtime)


def row_of(runtime):
    table = (HERE / '../../user/interp/core/table.c').read_text(encoding='utf-8')
    return re.findall(r'&sb_runtime_(\w+),', table).index(runtime)


def loads(path):
    text = subprocess.run(['readelf', '-lW', path], capture_output=True, text=True, check=True).stdout
    return [tuple(int(word, 16) for word in match)
            for match in re.findall(r'LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+)', text)]


def symbols(path):
    found = {}
    for table in ('-D', '-a'):
        text = subprocess.run(['nm', table, '-S', '--defined-only', path], capture_output=True,
                              text=True, check=False).stdout
        for at, size, name in re.findall(r'^(\w+) (?:(\w{16}) )?\w (\S+?)(?:@\S+)?$', text, re.M):
            found.setdefault(name, (int(at, 16), int(size or '0', 16)))
    return found


def main():
    path, runtime = sys.argv[1:]
    data = pathlib.Path(path).read_bytes()
    there, where, content = symbols(path), b'', b''
    for name in names_of(runtime):
        if name not in there:
            where += struct.pack('<HH', 0xffff, 0)
            continue
        addr, size = there[name]
        where += struct.pack('<HH', len(content), min(size, BYTES_MAX.get(name, 192)))
        for offset, at, nr_bytes in loads(path):
            if at <= addr < at + nr_bytes:
                content += data[offset + addr - at:][:min(max(size, 8), BYTES_MAX.get(name, 192))]
        content += bytes(-len(content) % 16)
    text = TEXTS.search(data) if runtime == 'php' else None
    content += bytes(64) + (text.group() + bytes(8) if text else b'')
    sys.stdout.buffer.write(bytes([row_of(runtime), 0]) + where + content)


main()
