#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Symbols that are no sized functions, and how far each is a name: the rule of symbolizer/symbols/symtab.h, line by line.

    elf_labels.py MODULE_LOOKUP

The assembler lays the places out; what each of them has to be called stands beside it.
"""
import os
import sys
import tempfile

from elf_tools import Lookup, Results, can, functions, need, run, skip

SOURCE = """
	.text
	.globl _start
_start:
	.cfi_startproc
	.fill 16, 1, 0x90
	.cfi_endproc
	.size _start, . - _start
	.type _start, @function

	# As glibc's __restore_rt: its entry begins a byte early, and it has no size.
	.fill 15, 1, 0x90
	.cfi_startproc
	.cfi_signal_frame
	nop
restorer:
	.fill 9, 1, 0x90
	.cfi_endproc
	.fill 7, 1, 0x90

	# As GHC's: objects, without an entry.
	.globl closure_info
	.type closure_info, @object
closure_info:
	.fill 32, 1, 0x90
	.size closure_info, . - closure_info

	# A label that nothing is known of reaches to the next symbol ...
bare:
	.fill 16, 1, 0x90
next:
	.fill 16, 1, 0x90
	# ... or to the next entry, of a function whose symbol is gone.
	.cfi_startproc
	.fill 16, 1, 0x90
	.cfi_endproc
	.fill 16, 1, 0x90

	# One that has an entry reaches to its end.
entry_label:
	.cfi_startproc
	.fill 16, 1, 0x90
	.cfi_endproc
	.fill 16, 1, 0x90

	# The size of an object is not believed where a function begins in it, that of a function is.
	.type liar, @object
liar:
	.fill 16, 1, 0x90
	.cfi_startproc
	.fill 16, 1, 0x90
	.cfi_endproc
	.size liar, . - liar
	.type parted, @function
parted:
	.cfi_startproc
	.fill 16, 1, 0x90
	.cfi_endproc
	.cfi_startproc
	.fill 16, 1, 0x90
	.cfi_endproc
	.size parted, . - parted

	# A function wins over an object around it.
	.type around, @object
around:
	.fill 16, 1, 0x90
	.type inner, @function
inner:
	.fill 16, 1, 0x90
	.size inner, . - inner
	.fill 16, 1, 0x90
	.size around, . - around

	.data
	.type data, @object
data:
	.fill 16
	.size data, . - data
"""

# (place, offset): the name and the offset in it; None: no name; an offset alone: no name, behind the start of a function
EXPECTED = [
    ("_start", 0, ("_start", 0)), ("_start", 15, ("_start", 15)),
    ("restorer", -1, ("restorer", (1 << 64) - 1)), ("restorer", 0, ("restorer", 0)), ("restorer", 8, ("restorer", 8)),
    ("restorer", 9, None), ("restorer", -2, None),
    ("closure_info", 0, ("closure_info", 0)), ("closure_info", 31, ("closure_info", 31)),
    ("bare", 0, ("bare", 0)), ("bare", 15, ("bare", 15)),
    ("next", 15, ("next", 15)), ("next", 16, 0), ("next", 31, 15), ("next", 32, None), ("next", 47, None),
    ("entry_label", 0, ("entry_label", 0)), ("entry_label", 15, ("entry_label", 15)), ("entry_label", 16, None),
    ("liar", 15, ("liar", 15)), ("liar", 16, 0), ("liar", 31, 15),
    ("parted", 15, ("parted", 15)), ("parted", 16, ("parted", 16)), ("parted", 31, ("parted", 31)),
    ("around", 15, ("around", 15)), ("inner", 0, ("inner", 0)), ("inner", 15, ("inner", 15)), ("inner", 16, ("around", 32)),
    ("data", 4, None),
]


def main():
    need("gcc", "nm")
    lookup, results = Lookup(sys.argv[1]), Results()
    with tempfile.TemporaryDirectory(prefix="sb-labels-") as directory:
        source, program = os.path.join(directory, "labels.S"), os.path.join(directory, "labels")
        with open(source, "w", encoding="utf-8") as file:
            file.write(SOURCE)
        if not can(["gcc", "-nostdlib", "-static", "-o", program, source]):
            skip("no assembler for these directives")
        places = {**functions(program), **{"data": int([line.split()[0] for line in run(["nm", program]).splitlines()
                                                        if line.endswith(" data")][0], 16)}}
        for place, offset, want in EXPECTED:
            frame = lookup.frames(program, [places[place] + offset], "-d", "/nonexistent")[0][-1]
            if frame.raw:
                got = (frame.raw, frame.offset)
            else:
                got = frame.offset if frame.has_start else None
            results.equal(got, want, f"{place}{offset:+}")
    results.finish()


main()
