#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One program, compiled and packed in many ways; the truth about its frames stands in its source.

    dwarf_matrix.py LOOKUP ROW       one row of ROWS below ("list" prints them)

Exit status 77 when a tool is missing.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCES = ["dwarf_prog.c", "dwarf_prog2.c"]
GCC, CLANG = "gcc", "clang-14"
SECTIONS = ["-ffunction-sections", "-Wl,--gc-sections"]

# name: (compiler, flags, commands that work on "prog" afterwards)
ROWS = {"%s-dwarf%d-%s" % (cc.split("-")[0], version, opt): (cc, ["-gdwarf-%d" % version, "-" + opt], [])
        for cc in (GCC, CLANG) for version in (2, 3, 4, 5) for opt in ("O0", "O2")}
ROWS.update({
    "gcc-strict2": (GCC, ["-gdwarf-2", "-gstrict-dwarf", "-O2"], []),
    "gcc-dwarf64": (GCC, ["-g", "-gdwarf64", "-O2"], []),
    "gcc-types": (GCC, ["-gdwarf-4", "-fdebug-types-section", "-O2"], []),
    "gcc-nopie": (GCC, ["-g", "-O2", "-no-pie"], []),
    "gcc-zlib": (GCC, ["-g", "-O2", "-gz=zlib"], []),
    "gcc-zlib-gnu": (GCC, ["-g", "-O2", "-gz=zlib-gnu"], []),
    "gcc-zstd": (GCC, ["-g", "-O2"], ["objcopy --compress-debug-sections=zstd prog"]),
    "gcc-debug-file": (GCC, ["-g", "-O2"], ["objcopy --only-keep-debug prog"]),
    "gcc-dwz": (GCC, ["-g", "-O2"], ["dwz prog"]),
    "gcc-dwz-alt": (GCC, ["-g", "-O2"], ["cp prog twin", "dwz -m alt prog twin"]),
    "clang-zlib": (CLANG, ["-g", "-O2", "-gz=zlib"], []),
    "clang-dwarf64": (CLANG, ["-gdwarf-5", "-gdwarf64", "-O2"], []),
    "clang-lld": (CLANG, ["-g", "-O2", "-fuse-ld=lld"] + SECTIONS, []),
    "clang-lto": (CLANG, ["-g", "-O2", "-flto", "-fuse-ld=lld"], []),
})
for v in (4, 5):
    ROWS["gcc-lto%d" % v] = (GCC, ["-gdwarf-%d" % v, "-O2", "-flto"], [])
    for cc in (GCC, CLANG):
        name = cc.split("-")[0]
        ROWS["%s-gc%d" % (name, v)] = (cc, ["-gdwarf-%d" % v, "-O2"] + SECTIONS, [])
        ROWS["%s-split%d" % (name, v)] = (cc, ["-gdwarf-%d" % v, "-gsplit-dwarf", "-O2"], [])


def skip(reason):
    print(reason)
    sys.exit(77)


def run(*args, **kwargs):
    return subprocess.run(args, check=True, text=True, stdout=subprocess.PIPE, **kwargs).stdout


def read_marks():
    """{"inner": [(file, line) of frame 0, 1, ...]}"""
    marks = {}
    for source in SOURCES:
        with open(os.path.join(HERE, source), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for probe, frame in re.findall(r"@(\w+)\.(\d+):", line):
                    marks.setdefault(probe, {})[int(frame)] = (source, number)
    return {probe: [frames[i] for i in range(len(frames))] for probe, frames in marks.items()}


def expected(row, is_cxx):
    """{probe: [(name, (file, line))]}"""
    names = {"inner": ["inner", "middle", "outer"], "rarely": ["rarely"], "other": ["other_half"]}
    if is_cxx:
        names["inner"] = ["(anonymous namespace)::deep::inner", "shape::middle", "outer"]
        names["lambda"] = [None]
    marks = read_marks()
    if "lto" in row:
        names["other"].append("caller")
    if row == "gcc-strict2":
        # Namespaces and the lines of calls came with DWARF 3.
        names["inner"][0] = "inner"
        marks["inner"][1:] = [None, None]
    return {probe: list(zip(chain, marks[probe])) for probe, chain in names.items()}


def build(row, is_cxx, work):
    cc, flags, commands = ROWS[row]
    for tool in [cc] + [c.split()[0] for c in commands] + ["ld.lld"] * ("-fuse-ld=lld" in flags):
        if not shutil.which(tool):
            skip("no " + tool)
    language = ["-x", "c++", "-std=c++14"] if is_cxx else ["-x", "c"]
    sources = [os.path.join(HERE, s) for s in SOURCES]
    # Each by itself: gcc names .dwo files after the output.
    objects = []
    for i, source in enumerate(sources):
        objects.append("%d.o" % i)
        run(cc, *language, *[f for f in flags if f[:4] != "-Wl," and f[:5] != "-fuse"], "-c", source,
            "-o", objects[-1], cwd=work)
    run(cc, *flags, *objects, "-o", "prog", cwd=work)
    symbols = {name: address for address, _, name in
               (line.split() for line in run("nm", "prog", cwd=work).splitlines()
                if len(line.split()) == 3)}
    for command in commands:
        run(*command.split(), cwd=work)
    return symbols


def ask(lookup, work, addresses):
    """(frames of each address, what is said of losses)"""
    alt = os.path.join(work, "alt")
    command = [lookup, os.path.join(work, "prog")] + [alt] * os.path.exists(alt)
    done = subprocess.run(command, check=True, text=True, input="".join(a + "\n" for a in addresses),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return [[line.split("\t") for line in block.splitlines()] for block in done.stdout.split("\n\n")], done.stderr


def is_same(frame, name, place):
    linkage, found, where = frame
    path, line = where.rsplit(":", 1)
    if place is None:
        if where != "??:0":
            return False
    elif path != os.path.join(HERE, place[0]) or int(line) != place[1]:
        return False
    if name is None:
        return found.endswith("operator()") or "lambda" in linkage
    if linkage == "??":
        return found == name
    return run("c++filt", "-p", linkage).strip() == name


def check(lookup, row, is_cxx):
    bad = 0
    with tempfile.TemporaryDirectory() as work:
        symbols = build(row, is_cxx, work)
        truth = expected(row, is_cxx)
        addresses = [symbols["probe_" + probe] for probe in truth]
        answers, losses = ask(lookup, work, addresses)
        if losses:
            bad += 1
            print("%s: nothing is missing, but it says: %s" % (row, losses))
        for (probe, chain), frames in zip(truth.items(), answers):
            if len(frames) != len(chain) or \
                    not all(is_same(f, *c) for f, c in zip(frames, chain)):
                bad += 1
                print("%s %s %s:\n  found    %s\n  expected %s"
                      % (row, "C++" if is_cxx else "C", probe, frames, chain))
        bad += check_losses(lookup, row, work, addresses)
    return bad


def damage(work):
    """Give the second unit a version that there is not."""
    run("objcopy", "--dump-section", ".debug_info=info", "prog", cwd=work)
    with open(os.path.join(work, "info"), "r+b") as file:
        second = 4 + int.from_bytes(file.read(4), "little")
        file.seek(second + 4)
        file.write(b"\xff\xff")
    run("objcopy", "--update-section", ".debug_info=info", "prog", cwd=work)


def check_losses(lookup, row, work, addresses):
    """What is taken away is counted."""
    if "split" in row:
        os.remove(next(os.path.join(work, name) for name in sorted(os.listdir(work)) if name.endswith(".dwo")))
        expects = "0 units damaged, 1 .dwo files missing\n"
    elif row in ("gcc-dwarf4-O2", "clang-dwarf5-O2"):
        damage(work)
        expects = "1 units damaged, 0 .dwo files missing\n"
    else:
        return 0
    losses = ask(lookup, work, addresses)[1]
    if losses != expects:
        print("%s: expected %r, it says %r" % (row, expects, losses))
    return losses != expects


def main(argv):
    if argv[1:] == ["list"]:
        print("\n".join(ROWS))
        return 0
    lookup, row = argv[1:]
    return 1 if check(lookup, row, False) + check(lookup, row, True) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
