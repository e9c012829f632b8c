#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Are stubs of the procedure linkage table named as objdump names them?

    elf_plt.py MODULE_LOOKUP

Every address of every stub, in binaries of the system and in ones built here: lazy and bound
(-z now), with and without branch tracking (-z ibtplt), by each linker there is.
"""
import glob
import os
import re
import sys

from elf_tools import KIND_PLT, Lookup, Results, can, existing, need, run, workdir

SYSTEM = ["/bin/bash", "/usr/bin/perl", *glob.glob("/usr/lib*/*/libc.so.6"),
          *glob.glob("/usr/lib/*/libpython3.11.so.1"), *glob.glob("/usr/lib/*/libLLVM-14.so.1"),
          *glob.glob("/usr/lib/*/libstdc++.so.6"), *glob.glob("/usr/lib*/libc.so.6")]
SECTIONS = [".plt", ".plt.sec", ".plt.got", ".iplt"]
LABEL = re.compile(r"^([0-9a-f]+) <(.*)>:$")
CODE = re.compile(r"^ +([0-9a-f]+):\t((?:[0-9a-f]{2} )+)")

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
static void *resolve(void) { return puts; }
void *local(void) __attribute__((ifunc("resolve")));
void *volatile taken;
int main(int argc, char **argv)
{
	taken = strtol; /* the address, too: its slot is in .got */
	local();
	printf("%d %f %s", abs(atoi(argv[0])), pow(argc, strlen(argv[0])), getenv("X"));
	return (int)strtol(argv[0], NULL, 0) + putchar('x') + fputc('a', stdout);
}
"""


def labels(file):
    """{address: (start, name)} for each byte of code objdump shows under a label."""
    found, start, name = {}, 0, None
    there = [name for name in re.findall(r"\] (\S+)", run(["readelf", "-SW", file]))
             if name in SECTIONS]
    if not there:
        return found
    where = [word for name in there for word in ("-j", name)]
    for line in run(["objdump", "-d", "-w", *where, file]).splitlines():
        match = LABEL.match(line)
        if match:
            start, name = int(match[1], 16), match[2]
        elif line.startswith("Disassembly of section"):
            name = None
        match = CODE.match(line)
        if match and name:
            for i in range(len(match[2].split())):
                found[int(match[1], 16) + i] = start, name
    return found


def stubs_of(file):
    """Without what objdump calls by its distance to a stub: the header and lazy halves."""
    return {addr: label for addr, label in labels(file).items() if re.search(r"@plt$", label[1])}


def resolver_names(file):
    """An IFUNC has no symbol in its relocation; objdump shows the resolver's address."""
    names = {}
    for options in ([], ["-D"]):
        for line in run(["nm", *options, file]).splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "tTwWi":
                names.setdefault(int(words[0], 16), set()).add(words[2].split("@")[0])
    return names


def compare(lookup, file, results):
    stubs, resolvers = stubs_of(file), resolver_names(file)
    addrs = sorted(stubs)
    asked = lookup.frames(file, addrs, "-d", "/nonexistent")
    for addr, frames in zip(addrs, asked):
        start, name = stubs[addr]
        want = {re.sub(r"@+[A-Z][\w.]*(?=@plt)", "", name)}
        match = re.match(r"\*ABS\*\+0x([0-9a-f]+)@plt", name)
        if match:
            want |= {n + "@plt" for n in resolvers.get(int(match[1], 16), ())}
        frame = frames[-1]
        results.check(frame.raw in want and frame.offset == addr - start and
                      frame.kind == KIND_PLT,
                      f"{file} {addr:x}: {frame}, objdump: {name} at {start:x}")
    print(f"{file}: {len({s for s, _ in stubs.values()})} stubs")
    return len(stubs)


def build(folder):
    source = os.path.join(folder, "plt.c")
    with open(source, "w", encoding="ascii") as file:
        file.write(SOURCE)
    linkers = [[]] + [[f"-fuse-ld={name}"] for name in ("gold", "lld", "mold")]
    modes = [["-Wl,-z,lazy"], ["-Wl,-z,now"], ["-no-pie", "-fno-pie", "-Wl,-z,lazy"],
             ["-shared", "-fPIC", "-Wl,-z,lazy"], ["-Wl,-z,lazy,-z,ibtplt", "-fcf-protection"],
             ["-Wl,-z,now,-z,ibtplt", "-fcf-protection"], ["-no-pie", "-static"]]
    for i, linker in enumerate(linkers):
        for k, mode in enumerate(modes):
            out = os.path.join(folder, f"plt-{i}-{k}")
            if can(["gcc", "-O1", "-w", "-fno-builtin", *mode, *linker, "-o", out, source, "-lm"]):
                yield out, " ".join(mode + linker)
            else:
                print("cannot build", *mode, *linker)


def main():
    need("objdump", "nm", "gcc")
    lookup, results = Lookup(sys.argv[1]), Results()
    for file in existing(SYSTEM):
        # Those of 32-bit x86 need a register that only the caller knows.
        if "ELF64" not in run(["readelf", "-h", file]):
            continue
        compare(lookup, file, results)
    with workdir() as folder:
        for file, how in build(folder):
            print(how, end=": ")
            if not compare(lookup, file, results) and "-static" not in how:
                results.check(False, how, "objdump shows no stub")
    results.finish()


main()
