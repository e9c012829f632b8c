#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Do we and llvm-symbolizer agree on functions, inlined chains, files and lines?

    dwarf_agree.py LOOKUP FILE [--debug FILE] [--alt FILE] [-n N] [--seed S]

draws N addresses from the bytes of FILE's functions (uniformly, seeded), asks LOOKUP (dwarf_lookup,
which reads the debug file) and llvm-symbolizer (which finds it by itself), and compares each chain
frame by frame. Exit status 0 when at least 99.9 % agree. Names of folded or aliased functions at
one address are taken for each other and counted; so are names of the function itself where DWARF
and the symbol table differ only by what compilers append (.cold, .part.0, ...).
"""
import argparse
import bisect
import os
import random
import re
import subprocess
import sys

CLONE = re.compile(r"(\.(cold|part|isra|constprop|lto_priv|localalias|llvm|__uniq)(\.\d+)*)+$")


def run(args, text=None):
    return subprocess.run(args, input=text, stdout=subprocess.PIPE, check=True, text=True).stdout


def read_functions(path):
    """{address: names} and [(start, end)] of sized functions."""
    names, spans = {}, []
    for line in run(["readelf", "-sW", path]).splitlines():
        words = line.split()
        if len(words) < 8 or words[3] not in ("FUNC", "IFUNC") or words[6] == "UND":
            continue
        start, size = int(words[1], 16), int(words[2], 0)
        names.setdefault(start, set()).add(words[7].split("@")[0])
        if size:
            spans.append((start, start + size))
    return names, spans


def merge(spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    return merged


def draw(spans, nr, seed):
    sums, total = [], 0
    for start, end in spans:
        total += end - start
        sums.append(total)
    rng = random.Random(seed)
    for _ in range(nr):
        at = rng.randrange(total)
        i = bisect.bisect_right(sums, at)
        yield spans[i][1] - (sums[i] - at)


def ask_us(lookup, path, alt, addrs):
    text = "".join("%x\n" % a for a in addrs)
    out = run([lookup, path] + ([alt] if alt else []), text)
    for block in split_blocks(out):
        yield [parse_ours(line) for line in block.splitlines()]


def split_blocks(out):
    block = []
    for line in out.split("\n")[:-1]:
        if line:
            block.append(line)
        else:
            yield "\n".join(block)
            block = []


def parse_ours(line):
    linkage, name, where = line.split("|", 2)
    path, number = where.rsplit(":", 1)
    return linkage, name, path, int(number)


def ask_llvm(tool, path, addrs):
    text = "".join("0x%x\n" % a for a in addrs)
    out = run([tool, "--inlines", "--no-demangle", "--functions=linkage", "--output-style=LLVM",
               "--obj=" + path], text)
    for block in split_blocks(out):
        lines = block.splitlines()
        chain = []
        for name, where in zip(lines[::2], lines[1::2]):
            where, number, _ = where.rsplit(":", 2)
            chain.append((name, where, int(number)))
        yield chain


def last_component(name):
    """a::b<c::d>::f(int) -> f"""
    depth, start = 0, 0
    for i, c in enumerate(name):
        if c in "<([{":
            if c == "(" and depth == 0 and not name.startswith("(anonymous", i):
                name = name[:i]
                break
            depth += 1
        elif c in ">)]}":
            depth -= 1
        elif depth == 0 and name.startswith("::", i):
            start = i + 2
    return re.sub(r"<.*", "", name[start:])


class Judge:
    def __init__(self, names):
        self.names = names
        self.aliases = {}
        for at in names.values():
            plain = {CLONE.sub("", n) for n in at}
            for name in plain:
                self.aliases.setdefault(name, set()).update(plain)
        self.nr_alias = 0
        self.demangled = {}

    def demangle(self, name):
        if name not in self.demangled:
            self.demangled[name] = run(["c++filt", name]).strip() if name[:2] == "_Z" else name
        return self.demangled[name]

    def same_name(self, ours, theirs, is_outermost):
        linkage, name = ours
        theirs = CLONE.sub("", theirs)
        mine = CLONE.sub("", linkage if linkage != "??" else name)
        if mine == theirs or name == theirs:
            return True
        if not is_outermost:
            return linkage == "??" and last_component(name) == last_component(theirs)
        if mine in self.aliases.get(theirs, ()):
            self.nr_alias += 1
            return True
        if linkage == "??" or linkage[:2] == "_Z":
            # Not in DWARF (internal linkage), or another constructor of the same text.
            a = last_component(self.demangle(mine) if linkage != "??" else name)
            return a == last_component(self.demangle(theirs))
        return False

    def same(self, ours, theirs):
        if not ours:
            # llvm falls back to the symbol table, which the DWARF reader does not look at.
            return len(theirs) == 1 and theirs[0][2] == 0
        if len(ours) != len(theirs):
            return False
        for i, (mine, other) in enumerate(zip(ours, theirs)):
            if mine[3] != other[2]:
                return False
            # Line 0 (made by the compiler, from no line) has a file in the table; we give none.
            if mine[3] and os.path.normpath(mine[2]) != os.path.normpath(other[1]):
                return False
            if mine[1] == "??" and i == len(ours) - 1:
                continue
            if not self.same_name(mine[:2], other[0], i == len(ours) - 1):
                return False
        return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lookup")
    parser.add_argument("file")
    parser.add_argument("--debug")
    parser.add_argument("--alt")
    parser.add_argument("--llvm", default="llvm-symbolizer-14")
    parser.add_argument("-n", type=int, default=int(os.environ.get("SB_AGREE_ADDRESSES", "1000")))
    parser.add_argument("--seed", type=int, default=12345)
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    debug = args.debug or args.file

    names, spans = read_functions(debug)
    addrs = list(draw(merge(spans), args.n, args.seed))
    ours = list(ask_us(args.lookup, debug, args.alt, addrs))
    theirs = list(ask_llvm(args.llvm, args.file, addrs))
    if len(ours) != len(addrs) or len(theirs) != len(addrs):
        sys.exit("%d addresses, %d answers of ours, %d of llvm's" % (len(addrs), len(ours), len(theirs)))
    judge = Judge(names)
    nr_same = nr_inlined = nr_lines = 0
    for addr, mine, other in zip(addrs, ours, theirs):
        nr_inlined += len(other) > 1
        nr_lines += other[0][2] != 0
        if judge.same(mine, other):
            nr_same += 1
        elif args.v:
            print("%x\n  ours  %s\n  llvm  %s" % (addr, mine, other))
    print("%s: %d of %d chains agree (%.2f %%; %d with inlined functions, %d with lines, %d by alias)"
          % (os.path.basename(args.file), nr_same, len(addrs), 100 * nr_same / len(addrs), nr_inlined,
             nr_lines, judge.nr_alias))
    return 0 if nr_same >= 0.999 * len(addrs) else 1


if __name__ == "__main__":
    sys.exit(main())
