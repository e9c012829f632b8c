#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Is every address named after a symbol that covers it? The truth is nm's.

    elf_symbols.py MODULE_LOOKUP FILE...

Binaries of the system (those that are there) and FILEs. At the start, the middle and the last byte
of each symbol of code, and just past its end: the answer has to be the innermost symbol around
that address, any of several aliases; and no symbol where there is none around it. A label without
a size reaches to the next symbol or the end of its section.
"""
import bisect
import glob
import sys

from elf_tools import KIND_PLT, Lookup, Results, existing, need, run

SYSTEM = ["/bin/bash", "/usr/bin/perl", "/usr/bin/python3",
          *glob.glob("/usr/lib*/*/libc.so.6"), *glob.glob("/usr/lib*/libc.so.6"),
          *glob.glob("/usr/lib/*/libstdc++.so.6"), *glob.glob("/usr/lib/*/libcrypto.so.3"),
          *glob.glob("/usr/lib/*/libpython3*.so.1*"), *glob.glob("/usr/lib/*/libLLVM-14.so.1")]


def sections(file):
    """[(start, end)] of sections with code."""
    spans = []
    for line in run(["readelf", "-SW", file]).splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) >= 8 and words[0].startswith("[") and words[0] != "[Nr]":
            # An unnamed section has no name column; it has no code, either.
            if len(words) >= 11 and "X" in words[7]:
                spans.append((int(words[3], 16), int(words[3], 16) + int(words[5], 16)))
    return sorted(spans)


class Truth:
    """nm's symbols, and an answer for each elementary stretch between any two of their ends."""

    def __init__(self, file, is_dynamic):
        self.sized, self.labels = [], {}
        self.sections = sections(file)
        for line in run(["nm", "-S", "--special-syms"] + ["-D"] * is_dynamic + [file]).splitlines():
            words = line.split()
            if len(words) < 3 or words[-2] not in "tTwWi":
                continue
            start, name = int(words[0], 16), words[-1].split("@")[0]
            if not self.section_end(start):
                continue
            if len(words) == 4 and int(words[1], 16):
                self.sized.append((start, start + int(words[1], 16), name))
            elif len(words) in (3, 4):
                self.labels.setdefault(start, set()).add(name)
        self.is_dynamic = is_dynamic
        self.paint()

    def section_end(self, addr):
        i = bisect.bisect_right(self.sections, (addr, 1 << 64)) - 1
        return self.sections[i][1] if i >= 0 and addr < self.sections[i][1] else None

    def paint(self):
        """The innermost symbols of each stretch: those around it that begin last."""
        self.bounds = sorted({b for start, end, _ in self.sized for b in (start, end)})
        self.inner = [(-1, set()) for _ in self.bounds]
        place = {bound: i for i, bound in enumerate(self.bounds)}
        for start, end, name in self.sized:
            for i in range(place[start], place[end]):
                if start > self.inner[i][0]:
                    self.inner[i] = (start, {name})
                elif start == self.inner[i][0]:
                    self.inner[i][1].add(name)
        self.starts = sorted({start for start, _, _ in self.sized} | set(self.labels))

    def around(self, addr):
        """(start, names) of what may be answered, names empty: nothing."""
        i = bisect.bisect_right(self.bounds, addr) - 1
        if i >= 0 and self.inner[i][1]:
            return self.inner[i]
        i = bisect.bisect_right(self.starts, addr) - 1
        if i < 0:
            return 0, set()
        label = self.starts[i]
        if self.is_dynamic and label != addr:
            return 0, set()
        # What lies behind a sized symbol is not the labels' inside of it.
        k = bisect.bisect_right(self.bounds, label) - 1
        if label != addr and k >= 0 and self.inner[k][1]:
            return 0, set()
        end = self.section_end(label)
        if addr >= end:
            return 0, set()
        return label, {n for n in self.labels.get(label, ()) if not n.startswith(".L")}

    def questions(self):
        addrs = set()
        for start, end, _ in self.sized:
            addrs |= {start, (start + end) // 2, end - 1, end}
        for start in self.labels:
            addrs |= {start - 1, start, start + 1, start + 9}
        return sorted(addrs)


def compare(lookup, file, results):
    symbols = lookup.source(file, "-d", "/nonexistent")[0]
    truth = Truth(file, symbols != ".symtab")
    addrs = truth.questions()
    nr_named = 0
    for addr, frames in zip(addrs, lookup.frames(file, addrs, "-d", "/nonexistent")):
        frame, (start, names) = frames[-1], truth.around(addr)
        what = f"{file} {addr:x}: {frame.raw!r}+{frame.offset}"
        if frame.kind == KIND_PLT or frame.raw == "":
            results.check(not names, what, "but nm has", sorted(names))
        else:
            nr_named += 1
            results.check(frame.raw.split("@")[0] in names and frame.offset == addr - start,
                          what, "but nm has", sorted(names), f"at {start:x}")
    print(f"{file} ({symbols}): {len(truth.sized)} symbols, {len(truth.labels)} labels, "
          f"{len(addrs)} addresses, {nr_named} named")


def main():
    need("nm", "readelf")
    lookup, results = Lookup(sys.argv[1]), Results()
    files = existing(SYSTEM) + sys.argv[2:]
    for file in files:
        compare(lookup, file, results)
    results.finish()


main()
