#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Are stubs of the procedure linkage table named as objdump names them?

    elf_plt.py MODULE_LOOKUP [--few]

Every address of every stub, in binaries of the system and in ones built here: lazy and bound
(-z now), with and without branch tracking (-z ibtplt), by each linker there is; of 64-bit ARM,
too, with and without its marks of branch targets, if clang can build them.
"""
import glob
import os
import re
import shutil
import sys

from elf_tools import KIND_PLT, Lookup, Results, can, existing, need, run, workdir

SYSTEM = ["/bin/bash", "/usr/bin/perl", *glob.glob("/usr/lib*/*/libc.so.6"),
          *glob.glob("/usr/lib/*/libpython3.11.so.1"), *glob.glob("/usr/lib/*/libLLVM-14.so.1"),
          *glob.glob("/usr/lib/*/libstdc++.so.6"), *glob.glob("/usr/lib*/libc.so.6")]
SECTIONS = [".plt", ".plt.sec", ".plt.got", ".iplt"]
LABEL = re.compile(r"^([0-9a-f]+) <(.*)>:$")
CODE = re.compile(r"^ *([0-9a-f]+):\s+((?:[0-9a-f]{2} )+)")

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


def labels(file, objdump):
    """{address: (start, name)} for each byte of code objdump shows under a label."""
    found, start, name = {}, 0, None
    there = [name for name in re.findall(r"\] (\S+)", run(["readelf", "-SW", file]))
             if name in SECTIONS]
    if not there:
        return found
    where = [word for name in there for word in ("-j", name)]
    for line in run([*objdump, "-d", *where, file]).splitlines():
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


def section_addr(file, name):
    found = re.search(r"\] " + re.escape(name) + r" +PROGBITS +([0-9a-f]+)", run(["readelf", "-SW", file]))
    return int(found[1], 16)


def stubs_of(file, objdump):
    """Without what objdump calls by its distance to a stub: the header and lazy halves."""
    return {addr: label for addr, label in labels(file, objdump).items()
            if re.search(r"@plt$", label[1])}


def resolver_names(file):
    """An IFUNC has no symbol in its relocation; objdump shows the resolver's address."""
    names = {}
    for options in ([], ["-D"]):
        for line in run(["nm", *options, file]).splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "tTwWi":
                names.setdefault(int(words[0], 16), set()).add(words[2].split("@")[0])
    return names


def compare(lookup, file, results, objdump=("objdump", "-w")):
    stubs, resolvers = stubs_of(file, objdump), resolver_names(file)
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
    linkers = [[]] + [[f"-fuse-ld={name}"] for name in ("gold", "lld", "mold") if "--few" not in sys.argv]
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


def arm64(lookup, results, folder):
    """Another machine's: nothing of it runs here, and there is nothing to link it with."""
    clang, objdump = shutil.which("clang-14") or "clang", shutil.which("llvm-objdump-14")
    source = os.path.join(folder, "arm.c")
    with open(source, "w", encoding="ascii") as file:
        file.write("int one(int), two(int); int three(int x) { return one(two(x)) + 3; }\n"
                   "int four(int x) { return three(x) * two(x); }\n")
    modes = [["-Wl,-z,lazy"], ["-Wl,-z,now"],
             ["-mbranch-protection=standard", "-Wl,-z,force-bti", "-Wl,-z,lazy"],
             ["-mbranch-protection=standard", "-Wl,-z,pac-plt", "-Wl,-z,lazy"]]
    for i, mode in enumerate(modes):
        out = os.path.join(folder, f"arm64-{i}")
        if not objdump or not can([clang, "--target=aarch64-linux-gnu", "-nostdlib", "-shared",
                                   "-fPIC", "-O1", "-fuse-ld=lld", *mode, "-o", out, source]):
            print("cannot build for arm64:", *mode)
            continue
        print(*mode, end=": ")
        results.check(compare(lookup, out, results, (objdump,)), "no stubs", mode)
    # The global offset table below the stubs: distances are negative. objdump gives up here.
    script, out = os.path.join(folder, "arm.ld"), os.path.join(folder, "arm64-below")
    with open(script, "w", encoding="ascii") as file:
        file.write("SECTIONS { . = 0x1000; .got.plt : { *(.got.plt) } . = 0x3000000; "
                   ".text : { *(.text) } .plt : { *(.plt) } }\n")
    if can([clang, "--target=aarch64-linux-gnu", "-nostdlib", "-shared", "-fPIC", "-O1",
            "-fuse-ld=lld", "-Wl,-T," + script, "-o", out, source]):
        start = section_addr(out, ".plt") + 32  # behind the header
        got = sorted(f[-1].raw for f in lookup.frames(out, [start, start + 16]))
        results.equal(got, ["one@plt", "two@plt"], "table below the stubs")


def by_hand(lookup, results, folder):
    """What linkers of some years ago made for -z bndplt and -z ibtplt: jumps with a prefix."""
    source, out = os.path.join(folder, "bnd.s"), os.path.join(folder, "bnd")
    with open(source, "w", encoding="ascii") as file:
        file.write('.section .plt.sec,"ax"\n.p2align 4\n'
                   'endbr64\nbnd jmp *one@GOTPCREL(%rip)\n.byte 0x0f, 0x1f, 0x44, 0, 0\n'
                   'endbr64\nbnd jmp *two@GOTPCREL(%rip)\n.byte 0x0f, 0x1f, 0x44, 0, 0\n'
                   'bnd jmp *three@GOTPCREL(%rip)\nnop\n'
                   '.section .note.GNU-stack,"",@progbits\n')
    if not can(["gcc", "-nostdlib", "-shared", "-o", out, source]):
        print("cannot build bnd: not x86-64?")
        return
    start = section_addr(out, ".plt.sec")
    addrs = [start, start + 15, start + 16, start + 31, start + 32, start + 39]
    got = [(f[-1].raw, f[-1].offset) for f in lookup.frames(out, addrs)]
    results.equal(got, [("one@plt", 0), ("one@plt", 15), ("two@plt", 0), ("two@plt", 15),
                        ("three@plt", 0), ("three@plt", 7)], "bnd")


def main():
    need("objdump", "nm", "gcc", "strip")
    lookup, results = Lookup(sys.argv[1]), Results()
    for file in existing(SYSTEM):
        # Those of 32-bit x86 need a register that only the caller knows.
        if "ELF64" not in run(["readelf", "-h", file]):
            continue
        compare(lookup, file, results)
    with workdir() as folder:
        arm64(lookup, results, folder)
        by_hand(lookup, results, folder)
        for file, how in build(folder):
            print(how, end=": ")
            if not compare(lookup, file, results) and "-static" not in how:
                results.check(False, how, "objdump shows no stub")
            # Resolvers of IFUNCs have lost their names then.
            run(["strip", "-s", file])
            compare(lookup, file, results)
    results.finish()


main()
