// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/demangle.h"

#include <ctype.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

#define NR_SUFFIXES_MAX 8

/* Suffixes of compilers, each alone or followed by a number. */
static const struct {
	const char *word;
	bool is_dropped; /* the same source function */
} suffix_words[] = {
	{ "cold", true },      { "localalias", true },	 { "lto_priv", true },
	{ "llvm", true },      { "__uniq", true },	 { "isra", false },
	{ "part", false },     { "constprop", false },	 { "resume", false },
	{ "destroy", false },  { "cleanup", false },	 { "actor", false },
	{ "_omp_fn", false },  { "simdclone", false },	 { "ifunc", false },
	{ "resolver", false }, { "specialized", false },
};

struct span {
	const char *s;
	size_t len;
};

/* A linker's name, taken apart. */
struct parts {
	size_t base_len;
	struct span kept[NR_SUFFIXES_MAX]; /* ".isra.0", the last one first */
	size_t nr_kept;
};

static bool is_number(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!isdigit((unsigned char)s[i]))
			return false;
	return len > 0;
}

/* Return: the place of the last dot before @len, or 0; a dot in front begins no suffix. */
static size_t last_dot(const char *s, size_t len)
{
	while (len > 1)
		if (s[--len] == '.')
			return len;
	return 0;
}

/* Find the suffix that ends at @len. Return: where it begins, or 0. */
static size_t find_suffix(const char *s, size_t len, bool *ret_is_dropped)
{
	size_t dot = last_dot(s, len), end = len, i;

	if (dot && is_number(s + dot + 1, len - dot - 1)) {
		end = dot;
		dot = last_dot(s, end);
	}
	if (!dot)
		return 0;
	for (i = 0; i < SB_ARRAY_SIZE(suffix_words); i++) {
		if (strlen(suffix_words[i].word) == end - dot - 1 &&
		    !memcmp(suffix_words[i].word, s + dot + 1, end - dot - 1)) {
			*ret_is_dropped = suffix_words[i].is_dropped;
			return dot;
		}
	}
	return 0;
}

static void take_apart(const char *raw, struct parts *parts)
{
	size_t len = strlen(raw), at;
	const char *version = memchr(raw + (len > 0), '@', len - (len > 0));
	bool is_dropped = false;

	if (version)
		len = (size_t)(version - raw);
	parts->nr_kept = 0;
	while (parts->nr_kept < NR_SUFFIXES_MAX && (at = find_suffix(raw, len, &is_dropped)) > 0) {
		if (!is_dropped)
			parts->kept[parts->nr_kept++] = (struct span){ raw + at, len - at };
		len = at;
	}
	parts->base_len = len;
}

/*
 * libiberty hands out pieces as it goes and cannot be told to stop, but a name of 100 bytes whose
 * parts refer back to each other can unfold to gigabytes. So the callback leaves by longjmp: the
 * functions with callbacks keep everything on the stack, except for a punycode identifier of Rust
 * while it is printed; there the jump waits for the next piece.
 */
struct collector {
	struct sb_str *out;
	size_t start;
	const char *mangled;
	size_t mangled_len;
	bool no_memory, is_over;
	jmp_buf stop;
};

/* Whether @piece is freed by nobody: a part of the mangled name, or punctuation. */
static bool is_static(const struct collector *to, const char *piece, size_t len)
{
	return len <= 2 || (piece >= to->mangled && piece + len <= to->mangled + to->mangled_len);
}

static void collect(const char *piece, size_t len, void *arg)
{
	struct collector *to = arg;

	if (!to->is_over) {
		to->is_over = to->out->len - to->start + len > SB_DEMANGLE_OUT_MAX;
		if (!to->is_over && sb_str_addn(to->out, piece, len))
			to->is_over = to->no_memory = true;
	}
	if (to->is_over && is_static(to, piece, len))
		longjmp(to->stop, 1);
}

/* C++ pieces are in a buffer on the stack. */
static void collect_cxx(const char *piece, size_t len, void *arg)
{
	struct collector *to = arg;

	to->mangled = piece;
	to->mangled_len = len;
	collect(piece, len, arg);
}

static void cut(struct sb_str *str, size_t len)
{
	if (str->s) {
		str->len = len;
		str->s[len] = '\0';
	}
}

/* Return: whether @mangled is a mangled name, all of which is in to->out now. */
static bool run_demangler(const char *mangled, int options, struct collector *to)
{
	if (setjmp(to->stop))
		return false;
	if (rust_demangle_callback(mangled, options, collect, to) && !to->is_over)
		return true;
	cut(to->out, to->start);
	return !to->is_over && cplus_demangle_v3_callback(mangled, options, collect_cxx, to) &&
	       !to->is_over;
}

/* Return: 1 if demangled and appended, 0 if it is no mangled name, or -ENOMEM. */
static int demangle_base(const char *mangled, enum sb_sym_demangle mode, struct sb_str *out)
{
	int options = DMGL_ANSI | (mode == SB_SYM_DEMANGLE_FULL ? DMGL_PARAMS : 0);
	struct collector to = {
		.out = out,
		.start = out->len,
		.mangled = mangled,
		.mangled_len = strlen(mangled),
	};

	if (run_demangler(mangled, options, &to))
		return 1;
	cut(out, to.start);
	return to.no_memory ? -ENOMEM : 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* camlStdlib__List__map_123: modules are joined by "__", other characters are $hh. */
static int demangle_ocaml(const char *mangled, struct sb_str *out)
{
	const char *s;
	int err = 0, high, low;
	char c;

	for (s = mangled + strlen("caml"); *s && !err; s++) {
		c = *s;
		if (s[0] == '_' && s[1] == '_' && isalpha((unsigned char)s[2])) {
			c = '.';
			s++;
		} else if (c == '$' && (high = hex_digit(s[1])) >= 0 &&
			   (low = hex_digit(s[2])) >= 0 && isprint(high * 16 + low)) {
			c = (char)(high * 16 + low);
			s += 2;
		}
		err = sb_str_addc(out, c);
	}
	return err ? err : 1;
}

static int demangle_any(const char *mangled, enum sb_sym_demangle mode, struct sb_str *out)
{
	if (!strncmp(mangled, "_Z", 2) || !strncmp(mangled, "_R", 2) ||
	    !strncmp(mangled, "___Z", 4) || !strncmp(mangled, "_GLOBAL_", 8))
		return demangle_base(mangled, mode, out);
	if (!strncmp(mangled, "caml", 4) && isupper((unsigned char)mangled[4]) &&
	    strstr(mangled, "__"))
		return demangle_ocaml(mangled, out);
	return 0;
}

int sb_demangle(const char *raw, enum sb_sym_demangle mode, struct sb_str *name)
{
	char mangled[SB_DEMANGLE_IN_MAX + 1];
	struct parts parts;
	int got, err = 0;

	if (mode == SB_SYM_DEMANGLE_OFF)
		return sb_str_add(name, raw);
	take_apart(raw, &parts);
	got = 0;
	if (parts.base_len <= SB_DEMANGLE_IN_MAX) {
		memcpy(mangled, raw, parts.base_len);
		mangled[parts.base_len] = '\0';
		got = demangle_any(mangled, mode, name);
	}
	if (got < 0)
		return got;
	if (!got)
		err = sb_str_addn(name, raw, parts.base_len);
	while (parts.nr_kept-- > 0 && !err) {
		const struct span *kept = &parts.kept[parts.nr_kept];

		err = sb_str_addf(name, got ? " [clone %.*s]" : "%.*s", (int)kept->len, kept->s);
	}
	return err;
}
