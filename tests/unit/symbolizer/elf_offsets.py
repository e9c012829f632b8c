#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From an address in a running program, by way of /proc/self/maps, to the function's name.

    elf_offsets.py MODULE_LOOKUP [--few]

Programs print, for each of their functions, its address and the mapping it is in. Address minus
mapping plus offset is what a sampler knows; sb_module_offset_to_addr() has to turn that into the
address nm has, and the lookup into the name. Linked in every way that moves segments about; then
once more with the section headers cut off, where only what PT_DYNAMIC leads to is left.
"""
import os
import struct
import sys

from elf_tools import Lookup, Results, can, functions, need, run, skip, workdir

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define HERE(name, where) \\
	__attribute__((noinline, section(where), visibility("default"))) \\
	int name(int x) { return x * 3 + (int)sizeof(#name); }
HERE(in_text, ".text")
HERE(in_unlikely, ".text.unlikely")
HERE(in_own, "own_code")
HERE(in_far, "far_code")
static void show(const char *name, void *fn)
{
	unsigned long addr = (unsigned long)fn, start, end, offset;
	char line[512], perms[8], path[400];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %399s", &start, &end, perms, &offset, path) < 4)
			continue;
		if (addr >= start && addr < end && perms[2] == 'x')
			printf("%s %lx %s\\n", name, addr - start + offset, path);
	}
	fclose(maps);
}
#ifdef LIBRARY
void show_all(void)
#else
int main(void)
#endif
{
	show("in_text", in_text);
	show("in_unlikely", in_unlikely);
	show("in_own", in_own);
	show("in_far", in_far);
#ifndef LIBRARY
	show("main", main);
	return 0;
#endif
}
"""
CALLER = "void show_all(void); int main(void) { show_all(); return 0; }\n"

LINKERS = [[], ["-fuse-ld=gold"], ["-fuse-ld=lld"], ["-fuse-ld=mold"]][:1 if "--few" in sys.argv else None]
MODES = [
    ["-pie", "-fPIE"],
    ["-no-pie", "-fno-pie"],
    ["-pie", "-fPIE", "-Wl,-z,noseparate-code"],
    ["-no-pie", "-fno-pie", "-Wl,-z,noseparate-code"],
    ["-pie", "-fPIE", "-Wl,-z,separate-code", "-Wl,-z,max-page-size=65536"],
    ["-pie", "-fPIE", "-Wl,-z,max-page-size=2097152"],
    ["-pie", "-fPIE", "-Wl,--section-start=far_code=0x4000000"],
    ["-no-pie", "-fno-pie", "-Wl,--section-start=far_code=0x4000000,-z,noseparate-code"],
    ["-no-pie", "-fno-pie", "-Wl,-Ttext-segment=0x10000000"],
    ["-pie", "-fPIE", "-Wl,--rosegment"],
    ["-pie", "-fPIE", "-Wl,--no-rosegment"],
    ["-static"],
    ["-static-pie", "-fPIE"],
]


def check(lookup, results, file, shown, what, options=()):
    """Offsets into @file that a run has shown, against nm's addresses."""
    truth = functions(file)
    for line in shown.splitlines():
        name, offset, path = line.split()
        if os.path.realpath(path) != os.path.realpath(file):
            continue
        addr = lookup.addrs(file, [int(offset, 16)])[0]
        results.equal(addr, truth[name], what, name, "offset", offset)
        if addr is not None:
            results.equal(lookup.name(file, addr, *options), name, what)


def without_sections(file):
    """A copy whose header knows of no section headers, and with them cut off."""
    with open(file, "rb") as stream:
        data = bytearray(stream.read())
    end = struct.unpack_from("<Q", data, 0x28)[0]
    struct.pack_into("<Q", data, 0x28, 0)
    struct.pack_into("<HHH", data, 0x3a, 0, 0, 0)
    with open(file + ".bare", "wb") as stream:
        stream.write(data[:end])
    return file + ".bare"


def check_bare(lookup, results, file, shown, what):
    """Exported functions only: that is what .dynsym has."""
    bare, truth = without_sections(file), functions(file)
    exported = functions(file, "-D")
    results.equal(lookup.source(bare)[0], ".dynsym", what)
    for line in shown.splitlines():
        name, offset, _ = line.split()
        addr = lookup.addrs(bare, [int(offset, 16)])[0]
        results.equal(addr, truth[name], what, name, "without sections")
        if name in exported:
            results.equal(lookup.name(bare, addr), name, what, "without sections")


def programs(lookup, results, folder, source):
    nr_built = 0
    for linker in LINKERS:
        for i, mode in enumerate(MODES):
            out = os.path.join(folder, f"prog{''.join(linker)}-{i}")
            what = " ".join(mode + linker)
            if not can(["gcc", "-O1", "-w", "-rdynamic", *mode, *linker, "-o", out, source]):
                print("cannot build", what)
                continue
            nr_built += 1
            shown = run([out])
            results.check(len(shown.splitlines()) == 5, what, shown)
            check(lookup, results, out, shown, what)
            if "-static" not in mode and "-static-pie" not in mode:
                check_bare(lookup, results, out, shown, what)
    return nr_built


def libraries(lookup, results, folder, source):
    caller = os.path.join(folder, "caller.c")
    with open(caller, "w", encoding="ascii") as stream:
        stream.write(CALLER)
    for linker in LINKERS:
        for style in ("sysv", "gnu", "both"):
            name = os.path.join(folder, f"libshown-{style}{''.join(linker)}.so")
            program = name + ".prog"
            if not can(["gcc", "-O1", "-w", "-shared", "-fPIC", "-DLIBRARY", *linker,
                        f"-Wl,--hash-style={style}", "-o", name, source]) or \
               not can(["gcc", "-o", program, caller, name, f"-Wl,-rpath,{folder}"]):
                print("cannot build", style, *linker)
                continue
            shown, what = run([program]), f"library {style} {linker}"
            results.check(len(shown.splitlines()) == 4, what, shown)
            check(lookup, results, name, shown, what)
            check_bare(lookup, results, name, shown, what)


def outside(lookup, results, folder, source):
    """Offsets no segment has."""
    out = os.path.join(folder, "outside")
    if not can(["gcc", "-O1", "-w", "-g", "-o", out, source]):
        skip("gcc cannot link")
    size = os.path.getsize(out)
    got = lookup.addrs(out, [0, size + 0x100000, (1 << 64) - 1])
    results.equal(got, [0, None, None], "offsets outside of segments")


def main():
    need("gcc", "nm")
    lookup, results = Lookup(sys.argv[1]), Results()
    with workdir() as folder:
        source = os.path.join(folder, "shown.c")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(SOURCE)
        results.check(programs(lookup, results, folder, source) > 8, "hardly anything was built")
        libraries(lookup, results, folder, source)
        outside(lookup, results, folder, source)
    results.finish()


main()
