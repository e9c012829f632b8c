#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Do we and llvm-symbolizer agree on functions, inlined chains, files and lines?

    dwarf_agree.py LOOKUP --subject NAME        one of SUBJECTS below
    dwarf_agree.py list [few]                   their names
    dwarf_agree.py LOOKUP --file FILE [--debug FILE] [--alt FILE] [--oracle FILE]

draws N addresses from the bytes of FILE's functions (uniformly, seeded), asks LOOKUP (dwarf_lookup,
which reads the debug file) and llvm-symbolizer (which finds it by itself), and compares each chain
frame by frame. Exit status 0 when at least 99.9 % agree. --oracle is what llvm-symbolizer is asked
about where it cannot read FILE: a file with the same code. Exit status 77 when a subject or a tool
is not there. SB_AGREE_ADDRESSES is N, 1000 if not set.

Not held against us, but counted:
  alias       the function itself has several symbols (folded code, constructors)
  renamed     it has another name in DWARF than as a symbol (users see that of the symbol), or llvm
              took what is no function
  unknown     llvm has no name (it does not read dwz files)
"""
import argparse
import bisect
import collections
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

# What compilers append to names of clones and of what LTO made unique.
CLONE = re.compile(r"(\.(cold|part|isra|constprop|lto_priv|localalias|llvm|__uniq|\d+))+$")
NAME, FILE, LINE = 0, 1, 2


def run(args, text=None):
    return subprocess.run(args, input=text, stdout=subprocess.PIPE, check=True, text=True,
                          errors="replace").stdout


def read_functions(path):
    """{address: names} and [(start, end)] of sized functions."""
    names, spans = {}, []
    for line in run(["nm", "-S", "--defined-only", path]).splitlines() or \
            run(["nm", "-DS", "--defined-only", path]).splitlines():
        words = line.split()
        if len(words) != 4 or words[2] not in "tTwWi":
            continue
        start, size = int(words[0], 16), int(words[1], 16)
        names.setdefault(start, set()).add(words[3].split("@")[0])
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


def split_blocks(out):
    block = []
    for line in out.split("\n")[:-1]:
        if line:
            block.append(line)
        else:
            yield block
            block = []


def ask_us(lookup, path, alt, addrs):
    """Chains of (names, file, line), innermost first."""
    text = "".join("%x\n" % a for a in addrs)
    for block in split_blocks(run([lookup, path] + ([alt] if alt else []), text)):
        chain = []
        for line in block:
            linkage, name, where = line.split("\t", 2)
            path, number = where.rsplit(":", 1)
            chain.append(((linkage, name), path, int(number)))
        yield chain


def ask_llvm(tool, path, addrs):
    text = "".join("0x%x\n" % a for a in addrs)
    out = run([tool, "--inlines", "--no-demangle", "--functions=linkage", "--output-style=LLVM",
               "--obj=" + path], text)
    for block in split_blocks(out):
        chain = []
        for name, where in zip(block[::2], block[1::2]):
            where, number, _ = where.rsplit(":", 2)
            chain.append((name, where, int(number)))
        yield chain


def matching(s, end):
    """Where the bracket that closes at s[end] opens."""
    depth = 0
    for i in range(end, -1, -1):
        depth += (s[i] == ")") - (s[i] == "(")
        if not depth:
            return i
    return 0


def last_component(name):
    """a::b<c::d>::f(int) const -> f"""
    name = re.sub(r"( const| volatile|[& ]|\[[^\]]*\])+$", "", name)
    if name.endswith(")"):
        start = matching(name, len(name) - 1)
        if name[:start].endswith("operator"):
            return "operator()"
        name = name[:start]
    found = re.search(r"(^|::)(operator[^:]*)$", name)
    if found:
        return re.sub(r"\s", "", found.group(2))
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += (name[i] in ">)}]") - (name[i] in "<({[")
        if depth == 0 and name[i] in ": ":
            name = name[i + 1:]
            break
    return re.sub(r"<.*", "", name)


class Judge:
    def __init__(self, names):
        self.aliases = {}
        self.demangled = {}
        self.counts = collections.Counter()
        for at in names.values():
            plain = {CLONE.sub("", n) for n in at}
            for name in plain:
                self.aliases.setdefault(name, set()).update(plain)

    def demangle(self, name):
        if name[:2] != "_Z":
            return name
        if name not in self.demangled:
            self.demangled[name] = run(["c++filt", name]).strip()
        return self.demangled[name]

    def same_name(self, ours, theirs, is_outermost):
        linkage, name = ours
        theirs = CLONE.sub("", theirs.split("@")[0])
        mine = CLONE.sub("", linkage if linkage != "??" else name)
        if theirs in (mine, name):
            return True
        if theirs == "??":
            self.counts["unknown"] += 1
            return True
        if last_component(self.demangle(mine)) == last_component(self.demangle(theirs)) and \
                (linkage == "??" or is_outermost):
            return True
        if not is_outermost:
            return False
        if mine in self.aliases.get(theirs, ()):
            self.counts["alias"] += 1
            return True
        if mine not in self.aliases or theirs not in self.aliases:
            self.counts["renamed"] += 1
            return True
        return False

    def same(self, ours, theirs):
        if not ours:
            # llvm falls back to the symbol table, which the DWARF reader does not look at.
            return len(theirs) == 1 and theirs[0][LINE] == 0
        if len(ours) != len(theirs):
            return False
        for i, (mine, other) in enumerate(zip(ours, theirs)):
            if mine[LINE] != other[LINE]:
                return False
            # Line 0 (made by the compiler, from no line) has a file in the table; we give none.
            if mine[LINE] and os.path.normpath(mine[FILE]) != os.path.normpath(other[FILE]):
                return False
            if not self.same_name(mine[NAME], other[NAME], i == len(ours) - 1):
                return False
        return True


def compare(lookup, args):
    debug = args.debug or args.file
    names, spans = read_functions(debug)
    addrs = list(draw(merge(spans), args.n, args.seed))
    ours = list(ask_us(lookup, debug, args.alt, addrs))
    theirs = list(ask_llvm(args.llvm, args.oracle or args.file, addrs))
    if len(ours) != len(addrs) or len(theirs) != len(addrs):
        sys.exit("%d addresses, %d answers of ours, %d of llvm's"
                 % (len(addrs), len(ours), len(theirs)))
    judge = Judge(names)
    nr_same = nr_inlined = nr_lines = 0
    for addr, mine, other in zip(addrs, ours, theirs):
        nr_inlined += len(other) > 1
        nr_lines += other[0][LINE] != 0
        if judge.same(mine, other):
            nr_same += 1
        elif args.verbose:
            print("%x\n  ours  %s\n  llvm  %s" % (addr, mine, other))
    print("%-24s %d of %d chains agree, %.2f %% (%d with inlined functions, %d with lines%s)"
          % (args.subject or os.path.basename(args.file), nr_same, len(addrs), 100 * nr_same / len(addrs),
             nr_inlined, nr_lines, "".join("; %d %s" % (n, what) for what, n in
                                           sorted(judge.counts.items()))), flush=True)
    # A test that compares nothing must not pass.
    return nr_same >= 0.999 * len(addrs) and nr_lines > len(addrs) / 2


def skip(reason):
    print(reason)
    sys.exit(77)


def build_id_file(path):
    found = re.search(r"Build ID: (\w\w)(\w+)", run(["readelf", "-n", path]))
    return "/usr/lib/debug/.build-id/%s/%s.debug" % found.groups() if found else None


def alt_file(debug):
    sections = run(["readelf", "-SW", debug])
    if ".gnu_debugaltlink" not in sections:
        return None
    return re.search(r"/\S+", run(["readelf", "-p", ".gnu_debugaltlink", debug])).group()


def installed(pattern):
    """A file of the distribution, with its separate debug file."""
    def prepare(args, _work):
        for args.file in sorted(glob.glob(pattern)):
            args.debug = build_id_file(args.file)
            if args.debug and os.path.exists(args.debug):
                args.alt = alt_file(args.debug)
                return
        skip("no %s with its debug symbols" % pattern)
    return prepare


def with_debug(path):
    """A file that has DWARF itself."""
    def prepare(args, _work):
        if not os.path.exists(path):
            skip("no " + path)
        args.file = path
    return prepare


def built(*flags, after="", oracle=False):
    """Our own reader, compiled anew. @oracle: llvm-symbolizer 14 cannot read it (zstd), or misses
    most of the inlined functions (.dwo files), but can read the same code packed plainly."""
    def prepare(args, work):
        top = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
        for tool in [flags[0]] + after.split()[:1] + ["ld.lld"] * ("-fuse-ld=lld" in flags):
            if not shutil.which(tool):
                skip("no " + tool)
        def compile_as(path, flags):
            run([flags[0], "-D_GNU_SOURCE", "-I" + top, "-I" + top + "/user",
                 *flags[1:], top + "/tests/unit/symbolizer/dwarf_lookup.c", *sources, "-o", path, "-lelf", "-lz",
                 "-lzstd", "-lm"])

        sources = glob.glob(top + "/symbolizer/dwarf/*.c") + [
            top + "/symbolizer/elf/" + name for name in ("budget.c", "owner.c")]
        sources += glob.glob(top + "/symbolizer/process/*.c") + glob.glob(top + "/user/base/*.c")
        args.file = os.path.join(work, "dwarf_lookup")
        compile_as(args.file, flags)
        if oracle:
            args.oracle = args.file + ".plain"
            compile_as(args.oracle, [f for f in flags if f != "-gsplit-dwarf"])
        if after:
            run(after.split() + [args.file])
    return prepare


SECTIONS = ["-ffunction-sections", "-Wl,--gc-sections"]
SUBJECTS = {
    "gcc-dwarf4-gc": built("gcc", "-O2", "-gdwarf-4", *SECTIONS),
    "gcc-dwarf5-O3": built("gcc", "-O3", "-gdwarf-5"),
    "gcc-lto": built("gcc", "-O2", "-g", "-flto"),
    "gcc-zlib": built("gcc", "-O2", "-g", "-gz=zlib"),
    "gcc-dwz": built("gcc", "-O2", "-g", after="dwz"),
    "gcc-split4": built("gcc", "-O2", "-gdwarf-4", "-gsplit-dwarf", oracle=True),
    "gcc-split5": built("gcc", "-O2", "-gdwarf-5", "-gsplit-dwarf", oracle=True),
    "clang-dwarf4": built("clang-14", "-O2", "-gdwarf-4", *SECTIONS),
    "clang-dwarf5-gc": built("clang-14", "-O2", "-gdwarf-5", "-fuse-ld=lld", *SECTIONS),
    "clang-lto": built("clang-14", "-O2", "-g", "-flto", "-fuse-ld=lld"),
    "clang-zstd": built("clang-14", "-O2", "-g", oracle=True,
                        after="objcopy --compress-debug-sections=zstd"),
    "libpython3.11": installed("/usr/lib/*/libpython3.11.so.1.0"),
    "libc": installed("/lib/*/libc.so.6"),
    "ld.so": installed("/lib/*/ld-linux-*.so.*"),
    "perl": installed("/usr/bin/perl"),
    "libstdc++": with_debug("/usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6"),
}
# Of each way through the reader one: versions 4 and 5, .dwo files, dwz's of both kinds, compressed sections.
FEW = ["gcc-dwarf4-gc", "gcc-split5", "gcc-dwz", "clang-dwarf5-gc", "clang-zstd", "libpython3.11", "libstdc++"]


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("lookup")
    parser.add_argument("--subject")
    parser.add_argument("--file")
    parser.add_argument("--debug")
    parser.add_argument("--alt")
    parser.add_argument("--oracle")
    parser.add_argument("--llvm", default="llvm-symbolizer-14")
    parser.add_argument("-n", type=int, default=int(os.environ.get("SB_AGREE_ADDRESSES", "1000")))
    parser.add_argument("--seed", type=int, default=12345)
    parser.add_argument("-v", "--verbose", action="store_true")
    if argv[:1] == ["list"]:
        print("\n".join(FEW if argv[1:] else SUBJECTS))
        return 0
    args = parser.parse_args(argv)
    for tool in (args.llvm, "nm", "readelf", "c++filt"):
        if not shutil.which(tool):
            skip("no " + tool)
    with tempfile.TemporaryDirectory() as work:
        if args.subject:
            SUBJECTS[args.subject](args, work)
        return 0 if compare(args.lookup, args) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
