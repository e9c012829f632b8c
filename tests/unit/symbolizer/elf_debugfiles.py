#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Are separate debug files found where they may be, and refused when they are another build's?

    elf_debugfiles.py MODULE_LOOKUP

A program is built with all its symbols; what it says of itself then is the truth for every form in
which they can be taken away from it and put elsewhere.
"""
import os
import re
import shutil
import sys

from elf_tools import Lookup, NO_SYMBOLS, OK, Results, can, functions, need, run, workdir

SOURCE = """
#include <stdlib.h>
static inline __attribute__((always_inline)) int inlined_one(int x) { return x / @ + rand(); }
static __attribute__((noinline)) int hidden_one(int x) { return inlined_one(x) * 3; }
static __attribute__((noinline)) int hidden_two(int x) { return hidden_one(x) + 1; }
__attribute__((noinline)) int shown_one(int x) { return hidden_two(x) * inlined_one(x); }
int main(int argc, char **argv) { return shown_one(argc); }
"""
NOWHERE = ("-d", "/nonexistent")
ALL = ("-i", "-l")


class Case:
    """One program: as built (the truth), stripped, and what was stripped off."""

    def __init__(self, folder, name, *options, number=7):
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder)
        source = os.path.join(self.folder, "case.c")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(SOURCE.replace("@", str(number)))
        self.full, self.bare, self.debug = (os.path.join(self.folder, n)
                                            for n in ("full", "bare", "off.debug"))
        run(["gcc", "-O1", "-g", "-rdynamic", *options, "-o", self.full, source])
        run(["objcopy", "--only-keep-debug", self.full, self.debug])
        run(["strip", "-s", "-o", self.bare, self.full])

    def addrs(self):
        truth = functions(self.full)
        return [truth[n] + 6 for n in ("hidden_one", "hidden_two", "shown_one", "main")]

    def build_id(self):
        match = re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", self.full]))
        return match[1] if match else None

    def put_by_id(self, debug_dir, debug=None, prefix=""):
        build_id = self.build_id()
        place = f"{prefix}{debug_dir}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(debug or self.debug, place)
        return place

    def linked(self, name="bare.debug"):
        """A stripped copy that links to @name; the file itself is put nowhere yet."""
        program, made = os.path.join(self.folder, "linked"), os.path.join(self.folder, name)
        shutil.copy(self.debug, made)
        run(["objcopy", f"--add-gnu-debuglink={made}", self.bare, program])
        os.unlink(made)
        return program


def same(lookup, results, case, program, what, *options, source="debug file", path=None):
    """@program is named, with lines and inlined functions, as the full one names itself."""
    got = lookup.frames(program, case.addrs(), *ALL, *options)
    results.equal(got, lookup.frames(case.full, case.addrs(), *ALL, *NOWHERE), what)
    symbols, debug, _, has_dwarf, build_id = lookup.source(program, *options)
    results.equal((symbols, has_dwarf, build_id), (source, True, case.build_id() or ""), what)
    if path:
        results.equal(debug and os.path.realpath(debug), os.path.realpath(path), what)


def bare(lookup, results, case, program, what, *options):
    """@program has nothing but its exported symbols; the others say why they have no name."""
    hidden, _, shown, _ = lookup.frames(program, case.addrs(), *ALL, *options)
    results.equal((hidden[0].reason, len(hidden)), (NO_SYMBOLS, 1), what)
    results.equal((shown[0].name, shown[0].reason), ("shown_one", OK), what)
    results.equal(lookup.source(program, *options)[:2], (".dynsym", None), what)


def truth(lookup, results, folder):
    """The truth itself: names, lines and the inlined function are there."""
    case = Case(folder, "truth")
    frames = lookup.frames(case.full, case.addrs(), *ALL, *NOWHERE)
    results.equal([f[-1].name for f in frames], ["hidden_one", "hidden_two", "shown_one", "main"])
    results.check(any(f[0].inlined and f[0].name == "inlined_one" for f in frames), frames)
    results.check(all(f[-1].source.split(":")[0].endswith("case.c") for f in frames), frames)
    results.equal(lookup.source(case.full, *NOWHERE)[0], ".symtab")
    lines_only = lookup.frames(case.full, case.addrs(), "-l", *NOWHERE)
    results.equal(lines_only, [[f[-1]] for f in frames], "lines, no inlined functions")
    names_only = lookup.frames(case.full, case.addrs(), "-i", *NOWHERE)
    results.equal([[f.name for f in chain] for chain in names_only],
                  [[f.name for f in chain] for chain in frames], "inlined functions, no lines")
    bare(lookup, results, case, case.bare, "stripped", *NOWHERE)
    lines = "".join(f"{a:x}\ndrop\n{a:x}\n" for a in case.addrs())
    out = run([lookup.tool, *ALL, *NOWHERE, case.full], lines).split("\n\n")
    results.check(out[0:8:2] == out[1:8:2] and out[0], "after DWARF was dropped", out)


def by_build_id(lookup, results, folder):
    case, other = Case(folder, "id"), Case(folder, "id-other", number=8)
    debug_dir = os.path.join(folder, "dbg")
    place = case.put_by_id(debug_dir)
    same(lookup, results, case, case.bare, "build-id dir", "-d", "/none", "-d", debug_dir,
         path=place)
    case.put_by_id(debug_dir, other.debug)
    bare(lookup, results, case, case.bare, "another build's file", "-d", debug_dir)
    with open(place, "wb") as stream:
        stream.write(b"\x7fELF nothing of that kind")
    bare(lookup, results, case, case.bare, "a broken file", "-d", debug_dir)
    os.unlink(place)
    os.mkfifo(place)
    bare(lookup, results, case, case.bare, "a FIFO", "-d", debug_dir)


def by_link(lookup, results, folder, *options):
    """.gnu_debuglink, judged by build ID or, without one, by checksum."""
    kind = "-".join(["link", *options]).replace(",", "").replace("=", "")
    case, other = Case(folder, kind, *options), Case(folder, kind + "-o", *options, number=9)
    program, debug_dir = case.linked(), os.path.join(folder, "dbg-" + kind)
    bare(lookup, results, case, program, kind, *NOWHERE)
    near = os.path.join(case.folder, "bare.debug")
    beside = os.path.join(case.folder, ".debug", "bare.debug")
    below = f"{debug_dir}{case.folder}/bare.debug"
    for place in (near, beside, below):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(other.debug, place)
        bare(lookup, results, case, program, f"{kind}: wrong file at {place}", "-d", debug_dir)
        shutil.copy(case.debug, place)
        same(lookup, results, case, program, f"{kind}: {place}", "-d", debug_dir, path=place)
        if "-Wl,--build-id=none" in options:
            with open(place, "ab") as stream:
                stream.write(b"\0")
            bare(lookup, results, case, program, f"{kind}: checksum", "-d", debug_dir)
        os.unlink(place)
    # The first that fits wins, the others are passed over.
    shutil.copy(other.debug, near)
    shutil.copy(case.debug, beside)
    same(lookup, results, case, program, f"{kind}: second place", "-d", debug_dir, path=beside)
    here = run([lookup.tool, *ALL, "linked"], f"{case.addrs()[0]:x}\n", cwd=case.folder)
    results.check(here.endswith("0|0|0\n\n") and "hidden_one" in here, "relative path", here)


def link_out(lookup, results, folder):
    """A link is a bare name; with a path it could lead anywhere."""
    case = Case(folder, "out")
    program = case.linked("bare.debug")
    section = os.path.join(case.folder, "link")
    run(["objcopy", "-O", "binary", "--dump-section", f".gnu_debuglink={section}", program,
         os.path.join(case.folder, "unused")])
    os.makedirs(os.path.join(case.folder, "sub"))
    shutil.copy(case.debug, os.path.join(case.folder, "sub", "bare.debug"))
    with open(section, "wb") as stream:
        stream.write(b"sub/bare.debug\0\0\0\0\0\0")
    run(["objcopy", "--update-section", f".gnu_debuglink={section}", program])
    bare(lookup, results, case, program, "a link with a path", *NOWHERE)


def below_root(lookup, results, folder):
    """What a container has in its own file system, and nothing outside of it."""
    case, root = Case(folder, "root"), os.path.join(folder, "container")
    os.makedirs(root)
    place = case.put_by_id("/dbg", prefix=root)
    how = ("-p", "/opt/app/bare", "-d", "/dbg")
    bare(lookup, results, case, case.bare, "root not given", *how)
    same(lookup, results, case, case.bare, "below the root", *how, "-r", root, path=place)
    os.rename(place, root + "/kept")
    os.symlink("/kept", place)
    same(lookup, results, case, case.bare, "a link, resolved in the root", *how, "-r", root)
    os.unlink(place)
    os.symlink(case.debug, place)
    bare(lookup, results, case, case.bare, "a link out of the root", *how, "-r", root)
    os.unlink(place)
    os.symlink("../" * 30 + case.debug, place)
    bare(lookup, results, case, case.bare, "a link up and out", *how, "-r", root)
    program = case.linked()
    os.makedirs(root + "/opt/app/.debug")
    shutil.copy(case.debug, root + "/opt/app/.debug/bare.debug")
    same(lookup, results, case, program, "debuglink below the root", *how, "-r", root)


def dwz(lookup, results, folder):
    """Parts that two programs share, moved to a third file."""
    if not shutil.which("dwz"):
        print("no dwz, not checked")
        return
    case, other = Case(folder, "dwz"), Case(folder, "dwz-o", number=11)
    want = lookup.frames(case.full, case.addrs(), *ALL, *NOWHERE)
    for file in (case.debug, other.debug):
        run(["objcopy", "--decompress-debug-sections", file])
    debug_dir = os.path.join(folder, "dbg-dwz")
    places = [c.put_by_id(debug_dir) for c in (case, other)]
    shared = os.path.join(debug_dir, ".dwz", "shared")
    os.makedirs(os.path.dirname(shared))
    if not can(["dwz", "-m", shared, "-M", shared, *places]):
        print("dwz shares nothing here, not checked")
        return
    results.equal(lookup.frames(case.bare, case.addrs(), *ALL, "-d", debug_dir), want, "dwz")
    with open(shared, "r+b") as stream:
        data = stream.read()
        at = data.find(bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)",
                                               run(["readelf", "-n", shared]))[1]))
        stream.seek(at)
        stream.write(b"\xff")
    got = lookup.frames(case.bare, case.addrs(), *ALL, "-d", debug_dir)
    results.equal([f[-1].name for f in got], [f[-1].name for f in want], "wrong dwz file")
    results.check(not any(f.name == "inlined_one" for frames in got for f in frames) or got == want,
                  "names out of the wrong dwz file", got)


def mini(lookup, results, folder):
    """.gnu_debugdata: the symbols .dynsym lacks, packed into the stripped program."""
    if not shutil.which("xz"):
        print("no xz, not checked")
        return
    case = Case(folder, "mini")
    packed, program = os.path.join(case.folder, "mini"), os.path.join(case.folder, "with-mini")
    keep = os.path.join(case.folder, "keep")
    exported = functions(case.full, "-D")
    with open(keep, "w", encoding="ascii") as stream:
        stream.write("\n".join(n for n in functions(case.full) if n not in exported))
    run(["objcopy", "-S", "--remove-section", ".gdb_index", "--remove-section", ".comment",
         f"--keep-symbols={keep}", case.debug, packed])
    run(["xz", "-f", packed])
    run(["objcopy", "--add-section", f".gnu_debugdata={packed}.xz", case.bare, program])
    got = lookup.frames(program, case.addrs(), *NOWHERE)
    results.equal(got, lookup.frames(case.full, case.addrs(), *NOWHERE), "mini")
    results.equal(lookup.source(program, *NOWHERE)[0], ".gnu_debugdata")
    with open(packed + ".xz", "r+b") as stream:
        stream.seek(100)
        stream.write(b"\xff" * 40)
    run(["objcopy", "--update-section", f".gnu_debugdata={packed}.xz", program])
    bare(lookup, results, case, program, "broken .gnu_debugdata", *NOWHERE)


def compressed(lookup, results, folder):
    case, nr = Case(folder, "packed"), 0
    want = lookup.frames(case.full, case.addrs(), *ALL, *NOWHERE)
    for how in ("zlib", "zlib-gnu", "zstd"):
        out = os.path.join(case.folder, how)
        if not can(["objcopy", f"--compress-debug-sections={how}", case.full, out]):
            print("objcopy does not know", how)
            continue
        nr += 1
        results.check(os.path.getsize(out) != os.path.getsize(case.full), how, "is not compressed")
        results.equal(lookup.frames(out, case.addrs(), *ALL, *NOWHERE), want, how)
    results.check(nr, "objcopy knows no compression")


def in_memory(lookup, results, folder):
    """As the vDSO comes: an image, no file behind it."""
    case = Case(folder, "image")
    got = lookup.frames(case.full, case.addrs(), "-M", *NOWHERE)
    results.equal(got, lookup.frames(case.full, case.addrs(), *NOWHERE), "image")
    debug_dir = os.path.join(folder, "dbg-image")
    case.put_by_id(debug_dir)
    same(lookup, results, case, case.bare, "image with a debug file", "-M", "-d", debug_dir)


def main():
    need("gcc", "objcopy", "strip", "nm", "readelf")
    lookup, results = Lookup(sys.argv[1]), Results()
    with workdir() as folder:
        truth(lookup, results, folder)
        by_build_id(lookup, results, folder)
        by_link(lookup, results, folder)
        by_link(lookup, results, folder, "-Wl,--build-id=none")
        for part in (link_out, below_root, dwz, mini, compressed, in_memory):
            part(lookup, results, folder)
    results.finish()


main()
