#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`flamegraph` from outside: what it accepts, what it says, what it leaves behind.

usage: flamegraph_cli.py FLAMEGRAPH [unittest options]
"""
import gzip
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

FLAMEGRAPH = os.path.abspath(sys.argv.pop(1))
MANY = "main;a 60\nmain;b;c 50\n"
SIGPIPE_STATUS = -signal.SIGPIPE

# Every option of flamegraph.pl, with a value that it takes.
THEIR_OPTIONS = {
    "title": "T", "subtitle": "S", "notes": "N", "width": "800", "height": "20", "minwidth": "0.5",
    "fonttype": "Arial", "fontsize": "10", "fontwidth": "0.6", "countname": "us",
    "nametype": "Name:", "colors": "io", "bgcolors": "#aabbcc", "total": "1000", "factor": "0.001",
    "encoding": "UTF-8", "hash": None, "random": None, "reverse": None, "inverted": None,
    "flamechart": None, "negate": None,
}
THEIR_PALETTES = ("hot mem io wakeup chain java js perl red green blue aqua yellow purple "
                  "orange").split()


def run(*args, text="", **more):
    data = text if isinstance(text, bytes) else text.encode()
    return subprocess.run([FLAMEGRAPH, *args], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=240, **more)


def extract(svg):
    result = run("--extract", text=svg)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode()


def wait_until(holds):
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("the condition never held")
        time.sleep(0.001)


def catches_interrupt(pid):
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as status:
        mask = next(line for line in status if line.startswith("SigCgt:"))
    return int(mask.split()[1], 16) >> (signal.SIGINT - 1) & 1 == 1


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "w", encoding="utf-8") as out:
                out.write(content)
        return path

    def one_sentence(self, result, status, *words):
        """A failure: the status, one line that has the words, nothing drawn."""
        said = result.stderr.decode()
        self.assertEqual(result.returncode, status, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertTrue(said.startswith("flamegraph: "), said)
        for word in words:
            self.assertIn(word, said)

    def drawn(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return ElementTree.fromstring(result.stdout)


class Drawing(InFolder):
    def test_quiet_success(self):
        result = run(text=MANY)
        self.assertEqual(self.drawn(result).tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual(result.stderr, b"")

    def test_same_bytes_whatever_the_order(self):
        rng = random.Random(5)
        lines = ["f%d;g%d;h %d" % (rng.randrange(9), rng.randrange(9), i) for i in range(1, 500)]
        first = run(text="\n".join(lines)).stdout
        rng.shuffle(lines)
        self.assertEqual(first, run(text="\n".join(lines) + "\n").stdout)

    def test_one_function_is_one_box(self):
        svg = run(text="a;b 100\na;b(int);x 100\na;b;e 100\n").stdout
        self.assertEqual(extract(svg), "a;b 100\na;b;e 100\na;b(int);x 100\n")
        titles = [e.text for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("title")]
        self.assertEqual(sum(t.startswith("b ") for t in titles if t), 1, titles)

    def test_files_are_added_up(self):
        one, two = self.path("one", "a;b 100\n"), self.path("two", "a;b 50\nc 1\n")
        result = run(one, "-", two, text="d 7\n")
        self.drawn(result)
        self.assertEqual(extract(result.stdout), "a;b 150\nc 1\nd 7\n")

    def test_drawn_again(self):
        """What the file carries gives the same file."""
        text = "#stackbpf;v=1;kind=io;unit=bytes;lost=3\n" + MANY + "x;-;y 0.25\nx;--;z_[i] 1\n"
        svg = run("-q", text=text).stdout
        self.assertEqual(run(text=extract(svg)).stdout, svg)

    def test_views(self):
        """Waits and I/O: the order of lines changes nothing, and what the file carries is the same."""
        rng = random.Random(6)
        parts = {
            "io": ["app", "/x", "sys_read", "sys_write", "f", "[pipe]", "/etc/a b", "sys_call_user"],
            "offcpu": ["app", "[idle]", "[runqueue]", "f", "schedule_[k]", "[idle: epoll]", "-"],
            "offwake": ["app", "f", "schedule", "--", "-", "try_to_wake_up_[w]", "[idle]"],
            "wall": ["app", "f", "[running]", "[blocked]", "[throttled]", "[residual]"],
        }
        for kind, names in parts.items():
            lines = [";".join(rng.choices(names, k=rng.randrange(1, 6))) + " %d" % i
                     for i in range(1, 300)]
            header = "#stackbpf;v=1;kind=%s;unit=us\n" % kind
            with self.subTest(kind=kind):
                first = run(text=header + "\n".join(lines)).stdout
                rng.shuffle(lines)
                self.assertEqual(first, run(text=header + "\n".join(lines)).stdout)
                self.assertEqual(first, run(text=extract(first)).stdout)

    def test_formats(self):
        stap = self.path("a.bt", " 0x1 : f+0x1/0x2 [m]\n 0x2 : main+0x1/0x2 [m]\n\t100\n")
        perf = self.path("a.perf", "p 1 1.1: 1 cycles:\n\t1 g (/m)\n\n")
        result = run(stap, perf)
        self.drawn(result)
        self.assertEqual(extract(result.stdout), "main;f 100\np;g 1\n")

    def test_their_options(self):
        for name, value in THEIR_OPTIONS.items():
            for args in [["--" + name] + ([value] if value else []),
                         ["--" + name + ("=" + value if value else "")]]:
                with self.subTest(args=args):
                    self.drawn(run(*args, text=MANY))

    def test_their_palettes(self):
        pictures = {name: run("--colors", name, text=MANY) for name in THEIR_PALETTES}
        for name, result in pictures.items():
            with self.subTest(palette=name):
                self.drawn(result)
        self.assertNotEqual(pictures["red"].stdout, pictures["blue"].stdout)
        self.assertEqual(run("--color=red", text=MANY).stdout, pictures["red"].stdout)
        self.assertEqual(run("--bgcol", "blue", text=MANY).returncode, 0)

    def test_shapes(self):
        text = "a;b 50\na;c 60\na;b 1\n"
        self.assertEqual(extract(run("--reverse", text=text).stdout), "b;a 51\nc;a 60\n")
        self.assertEqual(extract(run("--flamechart", text=text).stdout), text)
        self.assertEqual(extract(run("--sort", "weight", text=text).stdout),
                         "a;c 60\na;b 51\n")

    def test_no_embed(self):
        """Without the whole data the file still has what it draws."""
        text = "a;b 1000000\na;c;d 1\n"
        self.assertEqual(extract(run(text=text).stdout), text)
        kept = extract(run("--no-embed", text=text).stdout)
        self.assertIn("a;b 1000000\n", kept)
        self.assertNotIn("c;d", kept)

    def test_title_of_any_bytes(self):
        result = run("--title", b"a<b>&\"'\xff\x01", "--notes", "-- ]]> <", text=MANY)
        self.assertIn("a<b>&\"'\ufffd\ufffd", "".join(self.drawn(result).itertext()))

    def test_palette_file(self):
        self.drawn(run("--cp", text=MANY, cwd=self.folder))
        with open(self.path("palette.map"), encoding="utf-8") as lines:
            names = [line.split("->")[0] for line in lines]
        self.assertEqual(names, sorted(names))
        self.assertLessEqual({"main", "a", "b", "c"}, set(names))
        self.path("palette.map", "main->rgb(1,2,3)\na->url(javascript:x)\n")
        result = run("--cp", text=MANY, cwd=self.folder)
        self.drawn(result)
        self.assertIn(b"rgb(1,2,3)", result.stdout)
        self.assertNotIn(b"javascript", result.stdout)

    def test_name_attributes(self):
        attrs = self.path("attrs", "a\thref=https://example.org/?a&b\tg_extra=onclick='x()'\n"
                                   "b\thref=javascript:alert(1)\n")
        result = run("--nameattr", attrs, text=MANY)
        self.drawn(result)
        self.assertIn(b"https://example.org/?a&amp;b", result.stdout)
        self.assertNotIn(b"javascript:alert", result.stdout)
        self.assertNotIn(b"onclick='x()'", result.stdout)


class BadInput(InFolder):
    def test_empty(self):
        for text in ["", "\n\n", "# only a comment\n"]:
            result = run(text=text)
            self.one_sentence(result, 2, "no stacks")
            ElementTree.fromstring(result.stdout)
        out = self.path("empty.svg")
        self.one_sentence(run("-o", out), 2, "no stacks")
        ElementTree.parse(out)

    def test_zero_weight(self):
        self.one_sentence(run(text="a;b 0\n"), 2, "no stacks")

    def test_lines_without_count(self):
        result = run(text=MANY + "x\ny z\n" + MANY + "w\n")
        self.drawn(result)
        self.assertIn(b"ignored 3 lines without a count, first at line 3", result.stderr)
        self.assertEqual(run("-q", text=MANY + "x\n").stderr, b"")

    def test_hostile_text(self):
        text = b"a\0b;\xff\xfe;\xc3\xa9;\xed\xa0\x80;<script>&\"' 100\n" + b"\x1b[31m;]]>;-- 7\n"
        result = run(text=text)
        self.drawn(result)
        self.assertIn(b"replaced bytes", result.stderr)
        self.assertNotIn(b"<script>&", result.stdout)
        self.assertEqual(extract(result.stdout).count("\n"), 2)

    def test_deep_and_long(self):
        deep = ";".join("f%d" % i for i in range(10000))
        result = run(text="%s 100\n%s;%s 50\n" % (deep, "x" * (1 << 20), "y" * (1 << 20)))
        self.drawn(result)
        self.assertIn(b"cut names to 4096 bytes in 1 line, at line 2", result.stderr)
        self.assertEqual(extract(result.stdout).splitlines()[0], deep + " 100")

    def test_few_samples(self):
        few = "a;b 99\n"
        self.assertIn(b"only 99 samples", run(text=few).stderr)
        self.assertIn(b"there is only 1 sample, so", run(text="a;b 1\n").stderr)
        self.assertEqual(run("--countname", "us", text=few).stderr, b"")
        self.assertEqual(run(text="#stackbpf;v=1;unit=us\n" + few).stderr, b"")
        self.assertEqual(run(text="a;b 100\n").stderr, b"")

    def test_total_too_small(self):
        result = run("--total", "5", text=MANY)
        self.drawn(result)
        self.assertIn(b"ignoring --total 5 and using the sum of all weights, which is greater; give at least 110", result.stderr)

    def test_unreadable(self):
        self.one_sentence(run(self.path("none")), 1, "cannot read", "No such file")
        self.one_sentence(run(self.folder), 1, "cannot read", "directory")
        self.one_sentence(run("--nameattr", self.path("none"), text=MANY), 1, "No such file")
        self.one_sentence(run("--extract", self.path("none")), 1, "No such file")

    def test_other_files(self):
        svg = run(text=MANY).stdout
        for text, word in [(svg, "--extract"), (gzip.compress(MANY.encode()), "zcat"),
                           (gzip.compress(bytes((10, 4, 8, 1, 16, 2))), ".folded"),
                           (b"PERFILE2\x68" + bytes(99), "perf script"), (b"\x7fELF", "program"),
                           ("\ufeffa;b 1\n".encode("utf-16-le"), "iconv"), ("\ufeffa;b 1\n".encode("utf-16-be"), "iconv"),
                           ('{"format":"stackbpf","version":1}\n', "is JSON"), ('{\n  "a": 1\n}\n', "is JSON"),
                           ('{\r\n  "a": 1\r\n}\r\n', "is JSON"), ('[{"a": 1}]\n', "is JSON"),
                           ("version: 1\ncreator: xdebug 3.1\n", "is for callgrind"),
                           ("# callgrind format\nversion: 1\npositions: line\n0 7\n", "is for callgrind")]:
            self.one_sentence(run(text=text), 1, "standard input", word)
        for text in "{closure};f 200\n", "version: 1\nf 200\n":
            self.assertEqual(run(text=text).stderr, b"")

    def test_extract_from_other_files(self):
        self.one_sentence(run("--extract", text="<svg></svg>"), 1, "contains no stacks")
        self.one_sentence(run("--extract", text=""), 1, "contains no stacks")
        svg = run(text=MANY * 50).stdout
        begin = svg.index(b"base64") + 20
        self.one_sentence(run("--extract", text=svg[:begin] + svg[begin + 9:]), 1, "damaged")
        out = self.path("out.folded")
        self.one_sentence(run("--extract", "-o", out, text="<svg/>"), 1, "contains no stacks")
        self.assertEqual(os.listdir(self.folder), [])


class WrongUse(InFolder):
    def test_options(self):
        cases = [
            (["--nosuch"], "--nosuch", "lists them"), (["--colrs=hot"], "mean '--colors'?"),
            (["-x"], "-x"), (["--title"], "--title"),
            (["--hash=1"], "--hash=1"), (["--colors", "pink"], "pink", "hot, mem"),
            (["--bgcolors", "#12"], "#12"), (["--bgcolors", "pink"], "pink"),
            (["--sort", "time"], "time", "name, weight"), (["--color-by", "x"], "--color-by"),
            (["--width", "0"], "--width", "100"), (["--width", "1e3"], "1e3"),
            (["--width", ""], "--width"), (["--height", "-5"], "-5"), (["--fontsize", "x"], "x"),
            (["--minwidth", "5%%"], "5%%"), (["--minwidth", "101%"], "101%"),
            (["--minwidth", "abc"], "abc"), (["--max-rects", "-1"], "-1"),
            (["--max-rects", "4294967296"], "4294967296"), (["--factor", "nan"], "nan"),
            (["--encoding", "latin1"], "latin1", "UTF-8"), (["--title", "x" * 5000], "--title"),
            (["--nameattr", ""], "--nameattr"), (["--extract", "a", "b"], "b"),
        ]
        for args, *words in cases:
            with self.subTest(args=args):
                result = run(*args, text=MANY)
                self.one_sentence(result, 2, *words)
                self.assertEqual(result.stdout, b"")

    def test_help_and_version(self):
        result = run("--help")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        for name in THEIR_OPTIONS:
            self.assertIn("--" + name, result.stdout.decode())
        self.assertRegex(run("-V").stdout, rb"^flamegraph \d")
        with open("/dev/full", "wb") as full:
            result = subprocess.run([FLAMEGRAPH, "-h"], stdout=full, stderr=subprocess.PIPE,
                                    check=False)
        self.one_sentence(result, 1, "No space left")


class Writing(InFolder):
    def test_output_file(self):
        out = self.path("out.svg", "old")
        result = run("-o", out, text=MANY)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b"", b""))
        with open(out, "rb") as svg:
            self.assertEqual(svg.read(), run(text=MANY).stdout)
        self.assertEqual(os.listdir(self.folder), ["out.svg"])

    def test_failure_keeps_the_old_file(self):
        out = self.path("out.svg", "old")
        self.one_sentence(run("-o", out, self.path("none")), 1, "cannot read")
        self.one_sentence(run("-o", out, "--nameattr", self.path("none"), text=MANY), 1,
                          "No such file")
        with open(out, encoding="ascii") as svg:
            self.assertEqual(svg.read(), "old")
        self.assertEqual(os.listdir(self.folder), ["out.svg"])

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([FLAMEGRAPH], input=MANY.encode(), stdout=full,
                                    stderr=subprocess.PIPE, check=False)
        self.one_sentence(result, 1, "cannot write to standard output: ", "No space left")
        self.one_sentence(run("-o", "/dev/full", text=MANY), 1, "No space left")

    def test_bad_place(self):
        self.one_sentence(run("-o", self.path("none/x.svg"), text=MANY), 1, "No such file")
        self.one_sentence(run("-o", self.folder, text=MANY), 1, "directory")
        self.one_sentence(run("-o", "", text=MANY), 1, "cannot write")

    def test_bad_place_is_told_before_reading(self):
        with subprocess.Popen([FLAMEGRAPH, "-o", self.path("none/x.svg")], stdin=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            self.assertEqual(process.wait(timeout=240), 1)  # standard input is still open

    def closed_pipe(self, **more):
        text = "".join("f%d;g 10\n" % i for i in range(5000))
        read_end, write_end = os.pipe()
        os.close(read_end)
        try:
            return subprocess.run([FLAMEGRAPH], input=text.encode(), stdout=write_end,
                                  stderr=subprocess.PIPE, check=False, **more)
        finally:
            os.close(write_end)

    def test_closed_pipe(self):
        result = self.closed_pipe()
        self.assertEqual((result.returncode, result.stderr), (SIGPIPE_STATUS, b""))
        result = self.closed_pipe(restore_signals=False)  # Python ignores SIGPIPE
        self.assertEqual((result.returncode, result.stderr), (1, b""))


OPTION = r"--?[a-zA-Z][a-z-]*"
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs")


def options_in_man(text):
    items = "\n".join(line for line in text.splitlines() if line.startswith(".It Fl"))
    return {"-" + name for name in re.findall(r"Fl (-?[a-zA-Z][a-z-]*)", items)}


def options_in_bash(text):
    words = text[text.index("words='--title"):]
    return set(re.findall(r"(?<![\w-])" + OPTION, words[:words.index("\n\t\tfi")]))


def options_in_zsh(text):
    return set(re.findall(r"(?<=['\"{,])(%s)(?=[=+\[,}])" % OPTION, text))


def options_in_fish(text):
    return {("-" if kind == "s" else "--") + name
            for line in text.splitlines() if line.startswith("complete ")
            for kind, name in re.findall(r" -([sl]) ([a-zA-Z][a-z-]*)", line)}


def with_palettes(text, palettes):
    return text.replace("$palettes", re.search(palettes, text)[1])


def values_in_zsh(text):
    """{option: the words that its value may be}; None: it has no value."""
    text = with_palettes(text, r"palettes='\(([^)]*)\)'").replace(":palette:", ":palette:(").replace('"', ")'")
    return {name: set((words or "").split()) if has_value else None for name, has_value, words
            in re.findall(r"'?(--[a-z-]+)(=?)(?:\[[^]]*\](?::[^:']*:(?:\(([^)]*)\))?)?|\}')", text)}


def values_in_fish(text):
    text = with_palettes(text, r"set -l palettes (.*)").replace('"', "'")
    return {"--" + name: set((words or "").split()) if has_value else None for name, has_value, words
            in re.findall(r"complete -c \S+(?: -s .)? -l ([a-z-]+)( -[xr])?(?: -a '([^']*)')?", text)}


ASK_BASH = """source "$1"
compopt() { :; }
for name in "${@:2}"; do
    COMP_WORDS=(flamegraph "$name" '') COMP_CWORD=2 COMPREPLY=()
    _flamegraph
    echo "$name ${COMPREPLY[*]}"
done"""


class Documents(unittest.TestCase):
    """Man page and completions have the options of --help, neither fewer nor more."""

    def test_values(self):
        """What is completed is what is taken: the words that are said of a value which is none of them."""
        help_text = run("--help").stdout.decode()
        known, files = {}, set()
        for name, metavar in re.findall(r"(?<![\w-])(--[a-z-]+)( [A-Z]\S*)?", help_text):
            said = run(name + "=zzz", text="a 1\n").stderr.decode() if metavar and metavar != " FILE" else ""
            words = re.search(r"expected one of (.*?)( or #rrggbb)?$", said, re.M)
            files |= {name} if metavar in ("", " FILE") else set()
            known[name] = set(words[1].split(", ")) if words else set() if metavar else None
        self.assertGreater(sum(bool(words) for words in known.values()), 6)
        for name, find in ("_flamegraph", values_in_zsh), ("flamegraph.fish", values_in_fish):
            with self.subTest(document=name), open(os.path.join(DOCS, "completions", name), encoding="utf-8") as document:
                self.assertEqual(find(document.read()), known)
        with tempfile.TemporaryDirectory() as work:
            with open(os.path.join(work, "a-file"), "w", encoding="utf-8"):
                pass
            said = subprocess.run(["bash", "-c", ASK_BASH, "bash", os.path.realpath(os.path.join(DOCS, "completions/flamegraph.bash")),
                                   *known], cwd=work, stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual({line.split(" ")[0]: set(line.split()[1:]) for line in said.splitlines()},
                         {name: {"a-file"} if name in files else words for name, words in known.items()})

    def test_options(self):
        shown = set(re.findall(r"(?<![\w-])" + OPTION, run("--help").stdout.decode()))
        self.assertGreater(len(shown), 30)
        for name, find in [("man/flamegraph.1", options_in_man),
                           ("completions/flamegraph.bash", options_in_bash),
                           ("completions/_flamegraph", options_in_zsh),
                           ("completions/flamegraph.fish", options_in_fish)]:
            with self.subTest(document=name), open(os.path.join(DOCS, name),
                                                   encoding="utf-8") as document:
                self.assertEqual(find(document.read()), shown)


class Limit(InFolder):
    def test_file_size(self):
        """A picture larger than a file may be is an error like others."""
        said = run("-o", "a.svg", text="a;b 1\n", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        self.assertEqual((said.returncode, os.path.exists("a.svg")), (1, False))
        self.assertIn(b"cannot write 'a.svg': File too large; raise the limit", said.stderr)


class Interrupt(InFolder):
    def test_first_passes_second_ends(self):
        """In a pipeline Ctrl-C ends the sampler; what it then writes is drawn."""
        for nr_interrupts, status in [(1, 0), (2, -signal.SIGINT)]:
            with self.subTest(nr_interrupts=nr_interrupts), subprocess.Popen(
                    [FLAMEGRAPH, "-o", self.path("x.svg")], stdin=subprocess.PIPE) as process:
                wait_until(lambda: catches_interrupt(process.pid))
                process.send_signal(signal.SIGINT)
                wait_until(lambda: not catches_interrupt(process.pid))
                if nr_interrupts == 2:
                    process.send_signal(signal.SIGINT)
                    process.wait(timeout=240)
                else:
                    process.communicate(MANY.encode(), timeout=240)
                self.assertEqual(process.returncode, status)
        self.assertEqual(os.listdir(self.folder), ["x.svg"])


if __name__ == "__main__":
    unittest.main()
