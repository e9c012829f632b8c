# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of symbols: talking to module_lookup, and to compilers and binutils."""
import collections
import os
import shutil
import subprocess
import sys
import tempfile

Frame = collections.namedtuple("Frame", "name raw source offset kind reason inlined has_start")

KIND_PLT = 6
OK, BAD_FILE, NO_SYMBOLS, NO_MATCH = 0, 4, 5, 6


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            skip(f"no {tool}")


def run(args, text=None, cwd=None):
    done = subprocess.run([str(a) for a in args], input=text, text=True, cwd=cwd,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, args))}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def can(args, **how):
    """Whether the tool knows that option: the command succeeds."""
    return subprocess.run([str(a) for a in args], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False, **how).returncode == 0


def parse(block):
    frames = []
    for line in block.split("\n"):
        # The name can have bars of its own (operator|), the numbers cannot.
        head, offset, kind, reason, inlined, has_start = line.rsplit("|", 5)
        head, source = head.rsplit("|", 1)
        half = len(head) // 2
        if head[half] == "|" and head[:half] == head[half + 1:]:
            name = raw = head[:half]
        else:
            name, raw = head.rsplit("|", 1)
        frames.append(Frame(name, raw, source, int(offset), int(kind), int(reason),
                            inlined == "1", has_start == "1"))
    return frames


class Lookup:
    """module_lookup, asked in batches."""

    def __init__(self, tool):
        self.tool = os.path.abspath(tool)

    def frames(self, file, addrs, *options):
        """The frames at each address, innermost first."""
        addrs = list(addrs)
        out = run([self.tool, *options, file], "".join(f"{a:x}\n" for a in addrs))
        blocks = out.split("\n\n")[:-1] if addrs else []
        assert len(blocks) == len(addrs), (file, len(blocks), len(addrs))
        return [parse(block) for block in blocks]

    def name(self, file, addr, *options):
        return self.frames(file, [addr], *options)[0][-1].name

    def addrs(self, file, offsets, *options):
        out = run([self.tool, *options, file], "".join(f"+{o:x}\n" for o in offsets))
        return [None if line == "none" else int(line, 16) for line in out.split()]

    def source(self, file, *options):
        """(symbols, debug path or None, unwind, has DWARF, build ID)"""
        symbols, debug, unwind, dwarf, build_id = \
            run([self.tool, *options, file], "source\n").strip().split("|")
        return symbols, None if debug == "??" else debug, unwind, dwarf == "1", build_id


def functions(file, *options):
    """{name: address} of code, as nm has it."""
    found = {}
    for line in run(["nm", *options, file]).splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "tTwWi":
            found[words[2].split("@")[0]] = int(words[0], 16)
    return found


class Results:
    """Counts what was checked and what was wrong; the exit status at the end."""

    def __init__(self):
        self.nr, self.bad = 0, 0

    def check(self, good, *what):
        self.nr += 1
        if not good:
            self.bad += 1
            if self.bad <= 20:
                print("WRONG:", *what)

    def equal(self, got, want, *what):
        self.check(got == want, *what, f"got {got!r}, want {want!r}")

    def finish(self):
        print(f"{self.nr} checked, {self.bad} wrong")
        sys.exit(1 if self.bad or not self.nr else 0)


def workdir():
    """A directory that goes with the process; never cleaned by hand."""
    return tempfile.TemporaryDirectory(prefix="sb-elf-")


def existing(paths):
    """Real files, each once: distributions link /lib to /usr/lib."""
    return sorted({os.path.realpath(p) for p in paths if os.path.exists(p)})
