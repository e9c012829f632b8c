# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run by each CPython: the code objects of some modules, one on each line, in two files: one as
python_lines.c reads it, the other with the lines of all positions by CPython's own account."""
import binascii
import dis
import os
import sys
import types

MODULES = ('argparse', 'ast', 'collections/__init__', 'decimal', 'inspect', 'pickle', 'subprocess',
           'tarfile', 'typing', 'unittest/case', 'xml/dom/minidom', 'asyncio/tasks')


def code_objects(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            for inner in code_objects(const):
                yield inner


def lines_of(code):
    """Lines of units; up to 3.9 of bytes. 0: none."""
    size = len(code.co_code)
    if sys.version_info >= (3, 10):
        lines = [0] * (size // 2)
        for start, end, line in code.co_lines():
            for unit in range(start // 2, min(end, size) // 2):
                lines[unit] = line or 0
        return lines
    starts, lines, line = dict(dis.findlinestarts(code)), [], code.co_firstlineno
    for offset in range(size):
        line = starts.get(offset, line)
        lines.append(line)
    return lines


with open(sys.argv[1], 'w') as tables, open(sys.argv[2], 'w') as truth:
    for module in MODULES:
        path = os.path.join(os.path.dirname(os.__file__), *module.split('/')) + '.py'
        if not os.path.exists(path):
            continue
        with open(path, 'rb') as source:
            outer = compile(source.read(), path, 'exec')
        for code in code_objects(outer):
            lines = lines_of(code)
            table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
            tables.write('%x %d %d %s\n' % (sys.version_info[0] << 8 | sys.version_info[1],
                                           code.co_firstlineno, len(lines),
                                           binascii.hexlify(table).decode()))
            truth.write(' '.join(map(str, lines)) + '\n')
