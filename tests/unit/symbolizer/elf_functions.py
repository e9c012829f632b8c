#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Is a function without a name one thing, from its first byte to its last? The truth is another file's symbol table.

    elf_functions.py MODULE_LOOKUP [--few] [FILE...]

Stripped files of the system, each with the debug file of its package; and copies of FILEs without their symbols. Each
function of the symbol table is asked for at its start, its middle and its last byte. What the stripped file answers has a
name that is one of the function's own, or says where the function begins, which is where the symbol table has it.

Hand-written assembler has unwind entries of other extent than its symbols, compilers have none for a few functions: a
second truth says so, readelf's list of entries. An answer is always what that list has, and nothing where it has nothing.
"""
import bisect
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

from elf_tools import KIND_PLT, Lookup, Results, can, existing, need, run

LIB = "/usr/lib/x86_64-linux-gnu"
SYSTEM = [f"{LIB}/libc.so.6", f"{LIB}/libm.so.6", f"{LIB}/libstdc++.so.6", f"{LIB}/libpython3*.so.1*", f"{LIB}/libperl.so.5*",
          "/usr/bin/perl", "/usr/bin/python3.11", "/usr/bin/openssl", f"{LIB}/libcrypto.so.3"]
NR_FEW = 4
FUNCTIONS_MAX = 20000
# Of all functions, those whose entry begins where the symbol does: the rest is assembler.
SHARE_MIN = 0.99

Function = collections.namedtuple("Function", "start end names")


def build_id_file(path):
    found = re.search(r"Build ID: ([0-9a-f]{2})([0-9a-f]+)", run(["readelf", "-nW", path]))
    debug = f"/usr/lib/debug/.build-id/{found[1]}/{found[2]}.debug" if found else ""
    return debug if os.path.exists(debug) else None


def functions(file):
    """Functions with a size, each once, with all of its names: ascending."""
    by_start = {}
    for line in run(["readelf", "-sW", file]).splitlines():
        words = line.split()
        if len(words) < 8 or words[3] not in ("FUNC", "IFUNC") or words[6] in ("UND", "ABS"):
            continue
        start, size = int(words[1], 16), int(words[2], 0)
        if size:
            end, names = by_start.get(start, (0, set()))
            by_start[start] = (max(end, start + size), names | {words[7].split("@")[0]})
    found = [Function(start, end, names) for start, (end, names) in sorted(by_start.items())]
    return found[::len(found) // FUNCTIONS_MAX + 1]


def entries(file):
    """[lo, hi) of unwind entries, ascending, those over another left out as unwinders do."""
    spans = set()
    # Its exit status is 1 where a link to a file of dwz leads nowhere.
    dump = subprocess.run(["readelf", "-W", "--debug-dump=frames", file], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout
    for line in dump.splitlines():
        found = re.search(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)$", line)
        if found and int(found[1], 16) < int(found[2], 16):
            spans.add((int(found[1], 16), int(found[2], 16)))
    kept = []
    for lo, hi in sorted(spans):
        if not kept or lo >= kept[-1][1]:
            kept.append((lo, hi))
    return kept


class Comparison:
    def __init__(self, lookup, results, file, twin):
        self.lookup, self.results, self.file = lookup, results, file
        self.functions, self.entries = functions(twin), entries(file)
        self.counts = collections.Counter()

    def entry(self, addr):
        i = bisect.bisect_right(self.entries, (addr, 1 << 64)) - 1
        return self.entries[i] if i >= 0 and addr < self.entries[i][1] else None

    def judge(self, function, answers):
        """[(address, frame)] of one function: one name, or one start which is its own."""
        starts = set()
        for addr, frame in answers:
            what = f"{self.file} {addr:x} in {sorted(function.names)[:2]} at {function.start:x}"
            if frame.raw:
                self.counts["named"] += 1
                continue
            entry = self.entry(addr)
            self.results.equal(frame.has_start, entry is not None, what, "an entry covers it")
            if frame.has_start and entry:
                starts.add(addr - frame.offset)
                self.results.equal(addr - frame.offset, entry[0], what, "the start of the entry")
        if starts:
            self.counts["unnamed"] += 1
            self.counts["exact"] += starts == {function.start}

    def run(self):
        addrs = [[f.start, (f.start + f.end) // 2, f.end - 1] for f in self.functions]
        frames = iter(self.lookup.frames(self.file, sum(addrs, []), "-d", "/nonexistent"))
        for function, asked in zip(self.functions, addrs):
            self.judge(function, [(addr, next(frames)[-1]) for addr in asked])
        unnamed, exact = self.counts["unnamed"], self.counts["exact"]
        print(f"{self.file}: {len(self.functions)} functions, {len(self.entries)} entries, {unnamed} without a name, "
              f"{exact} of them one frame that begins with the symbol")
        self.results.check(not unnamed or exact >= unnamed * SHARE_MIN, self.file, f"only {exact} of {unnamed}")


def stripped(file, directory):
    copy = os.path.join(directory, os.path.basename(file))
    run(["objcopy", "--strip-all", file, copy])
    return copy


def of_rust():
    """Its library, where there is a compiler: that has its symbols."""
    asked = subprocess.run(["sh", "-c", "rustc --print sysroot"], text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, check=False)
    return glob.glob(f"{asked.stdout.strip()}/lib/rustlib/*/lib/libstd-*.so") if asked.returncode == 0 else []


def pairs(files, directory):
    """(stripped file, file with its symbols)"""
    for file in existing(sum(map(glob.glob, SYSTEM), [])):
        if build_id_file(file):
            yield file, build_id_file(file)
    for file in files + existing(of_rust()):
        if can(["readelf", "-h", file]):
            yield stripped(file, directory), file


def main():
    need("readelf", "objcopy")
    lookup, results = Lookup(sys.argv[1]), Results()
    files = [arg for arg in sys.argv[2:] if not arg.startswith("--")]
    with tempfile.TemporaryDirectory(prefix="sb-functions-") as directory:
        chosen = list(pairs(files, directory))
        for file, twin in chosen[-NR_FEW:] if "--few" in sys.argv else chosen:
            Comparison(lookup, results, file, twin).run()
    results.finish()


main()
