// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of Perl's frames, as caller() gives them: cv_name() of gv.c, gv_efullname4() of gv.c,
 * HvNAME_HEK() of hv.h, CopFILE() of cop.h.
 */
#include <errno.h>
#include <string.h>

#include "interp/perl/perl_priv.h"

#define NAME_BYTES_MAX 512u
#define FILE_BYTES_MAX 4096u

/* The same in all versions: sv.h, gv.h, hv.h, cv.h. */
enum {
	TYPE_GV = 9, /* SVt_PVGV */
	TYPE_HV = 12,
	SV_BODY = 0,
	SV_FLAGS = 12,
	SV_U = 16, /* GV: its GP; HV: its buckets */
	GP_EGV = 56,
	GV_NAME = 32, /* XPVGV */
	GV_STASH = 40,
	HV_MAX = 24, /* XPVHV */
	AUX_NAME = 0,
	AUX_NAME_COUNT = 28,
	CV_STASH = 32, /* XPVCV */
	CV_NAME = 56,
	CV_FLAGS = 92,
	HEK_LEN = 4,
	HEK_KEY = 8,
	COP_FILE = 48,
	CVF_LEXICAL = 0x10000,
	HEK_UTF8 = 1,
};
/* Buckets of a package's symbol table; a hash that is bigger is taken for no package. */
#define BUCKETS_MAX (1u << 24)

static const struct sb_perl *perl_of(const struct sb_runtime *rt)
{
	return rt->state;
}

/* Latin 1 as UTF-8; control characters are not for terminals. */
static int add_char(struct sb_str *str, uint8_t byte, bool is_utf8)
{
	char two[2] = { (char)(0xc0 | byte >> 6), (char)(0x80 | (byte & 0x3f)) };
	char one = (char)byte;

	if (byte >= 0x80 && !is_utf8)
		return sb_str_addn(str, two, sizeof(two));
	if (byte < 0x20 || byte == 0x7f)
		one = '?';
	return sb_str_addn(str, &one, 1);
}

/* A shared key of a hash: length, bytes, NUL, flags. */
static int add_hek(const struct sb_runtime *rt, uint64_t hek, size_t skip, struct sb_str *str)
{
	uint8_t bytes[NAME_BYTES_MAX], flags;
	uint32_t len, i;
	int err = sb_memory_u32(rt->memory, hek + HEK_LEN, &len);

	if (err)
		return err;
	if (!len || len > 1u << 20)
		return -EBADMSG;
	err = sb_memory_u8(rt->memory, hek + HEK_KEY + len + 1, &flags);
	if (err)
		return err;
	len = len < sizeof(bytes) ? len : sizeof(bytes);
	err = sb_memory_read(rt->memory, bytes, len, hek + HEK_KEY);
	for (i = (uint32_t)skip; !err && i < len; i++)
		err = add_char(str, bytes[i], flags & HEK_UTF8);
	return err;
}

static bool is_type(const struct sb_runtime *rt, uint64_t sv, uint32_t type)
{
	uint32_t flags;

	return sv && !sb_memory_u32(rt->memory, sv + SV_FLAGS, &flags) && (flags & 0xff) == type;
}

/* Where the names of a package are kept. Return: 0 when it has none. */
static uint64_t aux_of(const struct sb_runtime *rt, uint64_t stash)
{
	uint64_t body, buckets, max;

	if (sb_memory_u64(rt->memory, stash + SV_BODY, &body) || !body)
		return 0;
	if (perl_of(rt)->minor >= 36)
		return body + 32;
	if (sb_memory_u64(rt->memory, stash + SV_U, &buckets) || !buckets ||
	    sb_memory_u64(rt->memory, body + HV_MAX, &max) || max > BUCKETS_MAX)
		return 0;
	return buckets + 8 * (max + 1);
}

/* "Foo::Bar::" */
static int add_package(const struct sb_runtime *rt, uint64_t stash, struct sb_str *str)
{
	uint64_t aux = 0, hek = 0;
	uint32_t count = 0;
	int err = 0;

	if (is_type(rt, stash, TYPE_HV))
		aux = aux_of(rt, stash);
	if (aux && !sb_memory_u64(rt->memory, aux + AUX_NAME, &hek) && hek &&
	    !sb_memory_u32(rt->memory, aux + AUX_NAME_COUNT, &count) && count)
		err = sb_memory_u64(rt->memory, hek, &hek); /* the first of several */
	if (err)
		return err;
	/* A package that was deleted. */
	err = hek ? add_hek(rt, hek, 0, str) : sb_str_add(str, "__ANON__");
	return err ? err : sb_str_add(str, "::");
}

static int gv_words(const struct sb_runtime *rt, uint64_t gv, uint64_t words[2])
{
	uint64_t body;
	int err = is_type(rt, gv, TYPE_GV) ? sb_memory_u64(rt->memory, gv + SV_BODY, &body)
					   : -EBADMSG;

	return err ? err : sb_memory_read(rt->memory, words, 16, body + GV_NAME);
}

static int describe_gv(const struct sb_runtime *rt, uint64_t gv, struct sb_str *name)
{
	uint64_t gp, egv = 0, words[2];
	int err;

	/* Where the sub was first known, by another name. */
	if (!sb_memory_u64(rt->memory, gv + SV_U, &gp) && gp &&
	    !sb_memory_u64(rt->memory, gp + GP_EGV, &egv) && is_type(rt, egv, TYPE_GV))
		gv = egv;
	err = gv_words(rt, gv, words);
	if (!err)
		err = add_package(rt, words[1], name);
	return err ? err : add_hek(rt, words[0], 0, name);
}

/* A sub that has no glob: of package main, or "my sub". */
static int describe_cv(const struct sb_runtime *rt, uint64_t cv, struct sb_str *name)
{
	uint64_t body, stash, hek;
	uint32_t flags;
	int err = is_type(rt, cv, SB_PERL_TYPE_CV) ? sb_memory_u64(rt->memory, cv + SV_BODY, &body)
						   : -EBADMSG;

	if (!err)
		err = sb_memory_u32(rt->memory, body + CV_FLAGS, &flags);
	if (!err && !(flags & SB_PERL_CVF_NAMED))
		err = -EBADMSG;
	if (!err)
		err = sb_memory_u64(rt->memory, body + CV_STASH, &stash);
	if (!err)
		err = sb_memory_u64(rt->memory, body + CV_NAME, &hek);
	if (!err && !(flags & CVF_LEXICAL))
		err = add_package(rt, stash, name);
	return err ? err : add_hek(rt, hek, 0, name);
}

/* The place, if the statement is still the one that was seen, and still is when its file was read:
 * an eval "" ends, and its text goes, while the program runs on. */
static int describe_cop(const struct sb_runtime *rt, const struct sb_interp_frame *frame,
			struct sb_runtime_text *text)
{
	uint64_t position = sb_where_position(frame->where), words[2];
	uint64_t hash = sb_where_check(frame->where) >> SB_PERL_CHECK_SUB_BITS;
	__u64 cop[3], again[3];
	int err;

	if (!position ||
	    sb_memory_read(rt->memory, cop, sizeof(cop), position + SB_PERL_COP_LINE) ||
	    sb_perl_cop_hash(cop) != hash)
		return 0;
	/* With threads a string; without, a glob by the name of "_</the/file". */
	if (perl_of(rt)->has_threads)
		err = sb_memory_cstr(rt->memory, cop[2], FILE_BYTES_MAX, &text->file);
	else {
		err = gv_words(rt, cop[2], words);
		if (!err)
			err = add_hek(rt, words[0], 2, &text->file);
	}
	if (err == -ENOMEM)
		return err;
	if (err ||
	    sb_memory_read_again(rt->memory, again, sizeof(again), position + SB_PERL_COP_LINE) ||
	    memcmp(cop, again, sizeof(cop)))
		sb_str_clear(&text->file);
	else
		text->line = (uint32_t)(cop[0] >> 32);
	return 0;
}

int sb_perl_describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		     struct sb_runtime_text *text)
{
	int err;

	switch (frame->obj) {
	case SB_INTERP_READY:
		return sb_str_add(&text->name, "[ready]");
	case SB_PERL_MAIN:
		err = sb_str_add(&text->name, "{main}");
		break;
	case SB_PERL_EVAL:
		err = sb_str_add(&text->name, "(eval)");
		break;
	case SB_PERL_NAMELESS:
		err = sb_str_add(&text->name, "(unknown)");
		break;
	default:
		err = frame->obj & SB_PERL_IS_GV
			      ? describe_gv(rt, frame->obj & ~SB_PERL_IS_GV, &text->name)
			      : describe_cv(rt, frame->obj, &text->name);
	}
	return err ? err : describe_cop(rt, frame, text);
}
