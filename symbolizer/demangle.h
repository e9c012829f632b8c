/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names as people know them: C++ (Itanium), Rust (legacy and v0) through libiberty, OCaml. Internal
 * to the symbolizer. Not thread-safe (one name at a time).
 */
#ifndef SB_DEMANGLE_H
#define SB_DEMANGLE_H

#include "base/str.h"
#include "sb_sym.h"

/* Longer names are not demangled, and a name that would become longer is left as it is. */
#define SB_DEMANGLE_IN_MAX  (4u << 10)
#define SB_DEMANGLE_OUT_MAX (64u << 10)

/*
 * Append the display name of the linker's name @raw. Unless @mode is OFF, also dropped are symbol
 * versions (memcpy@@GLIBC_2.14) and the suffixes of copies which are the same source function: .cold
 * .localalias .lto_priv.N .llvm.N .__uniq.N. Copies that differ keep theirs, as in
 * "f [clone .isra.0]" or, if nothing was mangled, "f.isra.0".
 * Return: 0 or -ENOMEM.
 */
int sb_demangle(const char *raw, enum sb_sym_demangle mode, struct sb_str *name);

#endif
