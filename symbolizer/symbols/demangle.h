/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names as people know them: C++ (Itanium) and Rust (legacy and v0) through libiberty, and OCaml.
 * Internal to the symbolizer. No pointer is NULL. Thread: any.
 */
#ifndef SB_DEMANGLE_H
#define SB_DEMANGLE_H

#include "base/str.h"
#include "symbolizer/sb_sym.h"

/* Longer names are not demangled; a name that would become longer than OUT is left as it is. */
#define SB_DEMANGLE_IN_MAX  (4u << 10)
#define SB_DEMANGLE_OUT_MAX (64u << 10)

/*
 * Append the display name of the linker's name @raw to @name. @mode: SB_SYM_DEMANGLE_SHORT leaves
 * parameters out, FULL has them; with OFF the name is @raw unchanged. In the other modes a name
 * that is not mangled stays, but these are dropped: symbol versions (memcpy@@GLIBC_2.14) and
 * suffixes of copies that are the same source function: .cold .localalias .lto_priv.N .llvm.N
 * .__uniq.N. Copies that differ keep their suffix, as in "f [clone .isra.0]" or, if the name was
 * not mangled, "f.isra.0".
 * @name is the caller's, and may hold other text. Return: 0; -ENOMEM, and a part of the name may
 * have been appended.
 */
int sb_demangle(const char *raw, enum sb_sym_demangle mode, struct sb_str *name);

#endif
