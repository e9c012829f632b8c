#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which symbol owns an address that several could own, and how its name is shown.

    elf_names.py MODULE_LOOKUP

Assembler files with one case each against a table; demangling against c++filt: every exported name
of C++ libraries of the system, and of a program in Rust, if there is a compiler.
"""
import glob
import os
import re
import shutil
import sys

from elf_tools import Lookup, NO_MATCH, Results, can, existing, functions, need, run, workdir

CPP = [*glob.glob("/usr/lib/*/libstdc++.so.6"), *glob.glob("/usr/lib/*/libLLVM-14.so.1")]
DROPPED = re.compile(r"\.(cold|localalias|lto_priv|llvm|__uniq)(\.\d+)?(?=\.|$)")

# Symbols: name, type, binding, start, size. Questions: address, owner or None, display name.
SYMBOLS = [
    ("outer", "function", "globl", 0, 64), ("nested", "function", "local", 16, 16),
    ("nested_label", "notype", "local", 40, 0),
    ("_alias_weak_but_long", "function", "weak", 80, 16), ("alias", "function", "globl", 80, 16),
    ("__alias_with_underscores", "function", "globl", 80, 16),
    ("alias_local_and_longest_of_all", "function", "local", 80, 16),
    ("alias_untyped_and_even_longer_than_that", "notype", "globl", 80, 16),
    ("short", "function", "globl", 112, 16), ("shorter_is_worse", "function", "globl", 112, 16),
    ("beta", "function", "globl", 144, 8), ("alfa", "function", "globl", 144, 8),
    ("overlap_a", "function", "globl", 160, 24), ("overlap_b", "function", "globl", 176, 24),
    ("long_twin", "function", "globl", 208, 32), ("twin", "function", "globl", 208, 16),
    ("sized_untyped", "notype", "globl", 256, 32), ("func_inside", "function", "local", 264, 8),
    ("asm_label", "notype", "local", 304, 0), (".Lhidden", "notype", "local", 310, 0),
    ("asm_next", "notype", "globl", 320, 0),
    ("unsized_function", "function", "globl", 336, 0),
    ("after", "function", "globl", 352, 8), ("$x", "notype", "local", 368, 0),
    ("chooser", "gnu_indirect_function", "globl", 384, 16),
    ("weak_and_longer", "function", "weak", 416, 16), ("strong", "function", "local", 416, 16),
    ("with_data", "object", "globl", 432, 16),
]
QUESTIONS = [
    (0, "outer", 0), (15, "outer", 15), (16, "nested", 0), (31, "nested", 15), (32, "outer", 32),
    (40, "outer", 40), (63, "outer", 63), (64, None, 0), (79, None, 0),
    (80, "alias", 0), (95, "alias", 15), (96, None, 0), (112, "shorter_is_worse", 0),
    (144, "alfa", 0),
    (160, "overlap_a", 0), (176, "overlap_b", 0), (183, "overlap_b", 7), (199, "overlap_b", 23),
    (200, None, 0),
    (208, "long_twin", 0), (223, "long_twin", 15), (224, "long_twin", 16), (239, "long_twin", 31),
    (240, None, 0),
    (256, "sized_untyped", 0), (264, "func_inside", 0), (272, "sized_untyped", 16), (288, None, 0),
    (304, "asm_label", 0), (312, "asm_label", 8), (319, "asm_label", 15), (320, "asm_next", 0),
    (335, "asm_next", 15), (336, "unsized_function", 0), (351, "unsized_function", 15),
    (352, "after", 0), (360, None, 0), (368, None, 0), (384, "chooser", 0), (399, "chooser", 15),
    (400, None, 0), (416, "strong", 0), (432, "with_data", 0), (447, "with_data", 15), (448, None, 0),
]
# Raw name, as it is shown without and with parameters.
SHOWN = [
    ("plain", "plain", "plain"),
    ("f.cold", "f", "f"), ("f.cold.5", "f", "f"), ("f.localalias", "f", "f"),
    ("f.lto_priv.0", "f", "f"), ("f.llvm.1234567890", "f", "f"), ("f.__uniq.77", "f", "f"),
    ("f.isra.0", "f.isra.0", "f.isra.0"), ("f.part.3", "f.part.3", "f.part.3"),
    ("f.constprop.0.isra.0.cold", "f.constprop.0.isra.0", "f.constprop.0.isra.0"),
    ("f.part.0.lto_priv.1.cold", "f.part.0", "f.part.0"),
    ("f.123", "f.123", "f.123"), (".cold", ".cold", ".cold"), ("f.colder", "f.colder", "f.colder"),
    ("_Z3fooi", "foo", "foo(int)"), ("_Z3fooi.cold", "foo", "foo(int)"),
    ("_Z3fooi.llvm.99", "foo", "foo(int)"),
    ("_Z3fooi.part.0", "foo [clone .part.0]", "foo(int) [clone .part.0]"),
    ("_Z3fooi.part.0.isra.1.cold", "foo [clone .part.0] [clone .isra.1]",
     "foo(int) [clone .part.0] [clone .isra.1]"),
    ("_ZNK1A1bIiEEvT_", "A::b<int>", "void A::b<int>(int) const"),
    ("_Z3foo", "foo", "foo"), ("_Zbroken", "_Zbroken", "_Zbroken"), ("_Z", "_Z", "_Z"),
    ("_RNvC6_123foo3bar", "123foo::bar", "123foo::bar"),
    ("_ZN3foo3bar17h0123456789abcdefE", "foo::bar", "foo::bar"),
    ("_ZN3foo3bar17h0123456789abcdefE.llvm.42", "foo::bar", "foo::bar"),
    ("_GLOBAL__sub_I_x", None, None),
    ("camlStdlib__List__map_123", "Stdlib.List.map_123", "Stdlib.List.map_123"),
    ("camlFoo__$2b_7", "Foo__+_7", "Foo__+_7"), ("camlcase", "camlcase", "camlcase"),
    ("Java_caml_x__y", "Java_caml_x__y", "Java_caml_x__y"),
]
RUST = """
mod inner { pub struct P<T>(pub T);
impl<T: Copy + std::fmt::Debug> P<T> { #[inline(never)] pub fn show(&self) -> T { println!("{:?}", self.0); self.0 } } }
trait Act { fn act(&self) -> usize; }
impl Act for Vec<inner::P<u8>> { #[inline(never)] fn act(&self) -> usize { self.len() } }
fn main() {
    let f = |x: i32| inner::P(x).show();
    println!("{} {}", f(1), vec![inner::P(3u8)].act() as f64 + inner::P(2.5).show());
}
"""


def assemble(folder, name, text, *options):
    source, out = os.path.join(folder, name + ".s"), os.path.join(folder, name)
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(text + '\n.section .note.GNU-stack,"",@progbits\n')
    # -L: keep labels that begin with .L
    run(["gcc", "-nostdlib", "-shared", "-Wa,-L", "-Wl,--build-id=none", *options, "-o", out,
         source])
    return out


def declared(name, kind, binding, start, size):
    text = f'.set "{name}", base + {start}\n.type "{name}", @{kind}\n.size "{name}", {size}\n'
    return text + (f'.{binding} "{name}"\n' if binding != "local" else "")


def owners(lookup, results, folder):
    body = '.text\nbase:\n.skip 448, 0x90\n.size base, 0\n.section other, "ax"\n.skip 64, 0x90\n'
    file = assemble(folder, "owners", body + "".join(declared(*s) for s in SYMBOLS))
    base = functions(file)["outer"]
    results.check(".Lhidden" in functions(file), "there is no .Lhidden")
    for offset, owner, distance in QUESTIONS:
        frame = lookup.frames(file, [base + offset])[0][-1]
        if owner:
            results.equal((frame.raw, frame.offset), (owner, distance), "offset", offset)
        else:
            results.equal((frame.raw, frame.reason), ("", NO_MATCH), "offset", offset)


def dynamic_labels(lookup, results, folder):
    """Of what a library exports, a label without a size is its own address and nothing more."""
    text = '.text\n.globl first\nfirst:\n.skip 32, 0x90\n.globl second\nsecond:\n.skip 32, 0x90\n'
    file = assemble(folder, "labels", text)
    base = functions(file, "-D")["first"]
    run(["strip", "-s", file])
    got = [lookup.frames(file, [base + k])[0][-1].raw for k in (0, 1, 31, 32, 33)]
    results.equal(got, ["first", "", "", "second", ""], "labels of .dynsym")


def shown(lookup, results, folder):
    text = ".text\n"
    for raw, _, _ in SHOWN:
        text += f'.type "{raw}", @function\n"{raw}":\n.skip 16, 0x90\n.size "{raw}", 16\n'
    file = assemble(folder, "shown", text)
    addrs = {}
    for line in run(["nm", file]).splitlines():
        addrs[line.split(" ", 2)[2]] = int(line.split()[0], 16)
    for raw, short, full in SHOWN:
        results.equal(lookup.frames(file, [addrs[raw]])[0][-1].raw, raw)
        results.equal(lookup.name(file, addrs[raw], "-m", "off"), raw, "off")
        if short:
            results.equal(lookup.name(file, addrs[raw]), short, raw, "short")
            results.equal(lookup.name(file, addrs[raw], "-m", "full"), full, raw, "full")


def versions(lookup, results, folder):
    """memcpy@@V1 stands so in .symtab; people know it as memcpy."""
    script = os.path.join(folder, "map")
    with open(script, "w", encoding="ascii") as stream:
        stream.write("V1 { global: versioned; }; V2 { global: versioned; } V1;\n")
    text = ""
    for name, version in (("old", "@V1"), ("new", "@@V2")):
        text += f".text\n.type {name}, @function\n{name}:\n.skip 16, 0x90\n.size {name}, 16\n" \
                f".globl {name}\n.symver {name}, versioned{version}\n"
    file = assemble(folder, "versions", text, f"-Wl,--version-script={script}")
    for addr in functions(file).values():
        frame = lookup.frames(file, [addr])[0][-1]
        results.check("@" not in frame.name, frame)


def filtered(names, *options):
    return run(["c++filt", *options], "\n".join(names) + "\n").splitlines()


def demangled(lookup, results, file):
    """Every name the file has, against c++filt; what we drop is dropped from the question. -i: as
    people write it, std::string, and without numbers for the build of a Rust crate."""
    addrs = sorted(set(functions(file).values()) | set(functions(file, "-D").values()))
    for mode, option in (("full", ["-i"]), ("short", ["-i", "-p"])):
        frames = [f[-1] for f in lookup.frames(file, addrs, "-d", "/nonexistent", "-m", mode)]
        frames = [f for f in frames if f.raw and len(f.raw) < 4096]
        names = [DROPPED.sub("", f.raw.split("@")[0]) for f in frames]
        nr_mangled = 0
        for frame, name, want in zip(frames, names, filtered(names, *option)):
            if not re.match(r"_Z|_R", name):
                continue
            nr_mangled += 1
            results.check(frame.name == want, f"{file}: {frame.raw}: got {frame.name!r}, "
                                              f"want {want!r}")
        print(f"{file} ({mode}): {nr_mangled} mangled names")


def rust(lookup, results, folder):
    if not shutil.which("rustc"):
        print("no rustc, not checked")
        return
    source = os.path.join(folder, "names.rs")
    with open(source, "w", encoding="ascii") as stream:
        stream.write(RUST)
    # Only compilers that are being tried out may be asked for the older names.
    env = dict(os.environ, RUSTC_BOOTSTRAP="1")
    for version in ("legacy", "v0"):
        out = os.path.join(folder, "rust-" + version)
        if can(["rustc", "-O", "-Zunstable-options", "-C", f"symbol-mangling-version={version}",
                "-o", out, source], env=env):
            demangled(lookup, results, out)
        else:
            print("rustc cannot build", version)


def main():
    need("gcc", "nm", "strip", "c++filt")
    lookup, results = Lookup(sys.argv[1]), Results()
    with workdir() as folder:
        for part in (owners, dynamic_labels, shown, versions, rust):
            part(lookup, results, folder)
    for file in existing(CPP):
        demangled(lookup, results, file)
    results.finish()


main()
