// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names and lines of methods: Method -> ConstMethod -> ConstantPool -> Symbol. Sources: src/hotspot
 * of the JDK: share/oops/constMethod.hpp, share/code/compressedStream.hpp,
 * share/utilities/unsigned5.hpp.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/hotspot/hotspot_priv.h"

/* Of a symbol; the class file format has 65,535. */
#define NAME_BYTES_MAX	1024u
/* Of a line table. A method has 65,535 bytes of code. */
#define TABLE_BYTES_MAX (64u << 10)
#define HAS_LINES	1u /* ConstMethod::_has_linenumber_table */

int sb_hotspot_unsigned5(const uint8_t *bytes, size_t len, size_t *at, uint32_t excluded,
			 uint32_t *ret)
{
	/* Values from here on say that there is one more byte, of 64 times the weight. */
	const uint32_t low = 192 - excluded;
	uint32_t val = 0, i;

	for (i = 0; i < 5; i++) {
		uint32_t byte;

		if (*at >= len)
			return -EBADMSG;
		byte = bytes[(*at)++];
		if (byte < excluded)
			return -EBADMSG;
		val += (byte - excluded) << 6 * i;
		if (byte - excluded < low)
			break;
	}
	*ret = val;
	return 0;
}

static int read_signed(const uint8_t *bytes, size_t len, size_t *at, uint32_t excluded,
		       int32_t *ret)
{
	uint32_t val;
	int err = sb_hotspot_unsigned5(bytes, len, at, excluded, &val);

	if (!err)
		*ret = (int32_t)(val >> 1) ^ -(int32_t)(val & 1);
	return err;
}

uint32_t sb_hotspot_line(const uint8_t *table, size_t len, uint32_t excluded, uint32_t bci)
{
	uint32_t at_bci = 0, line = 0, best = 0, best_bci = 0;
	size_t at = 0;

	/* Pairs need not ascend: the nearest at or below counts (Method::line_number_from_bci). */
	while (at < len && table[at]) {
		uint8_t byte = table[at++];

		if (byte == 0xff) {
			int32_t bci_by, line_by;

			if (read_signed(table, len, &at, excluded, &bci_by) ||
			    read_signed(table, len, &at, excluded, &line_by))
				break;
			at_bci += (uint32_t)bci_by;
			line += (uint32_t)line_by;
		} else {
			at_bci += byte >> 3;
			line += byte & 7;
		}
		if (at_bci == bci)
			return line;
		if (at_bci < bci && (!best || at_bci >= best_bci)) {
			best = line;
			best_bci = at_bci;
		}
	}
	return best;
}

/* Append the text of a Symbol, cut at a fixed length, with control characters replaced. */
static int add_symbol(struct sb_runtime *rt, uint64_t symbol, struct sb_str *str)
{
	const struct sb_hotspot *hs = rt->state;
	uint16_t len;
	int err = sb_memory_u16(rt->memory, symbol + hs->layout.symbol_length, &len);

	if (!err && !len)
		err = -EBADMSG;
	return err ? err
		   : sb_memory_text(rt->memory, symbol + hs->layout.symbol_body, len,
				    NAME_BYTES_MAX, str);
}

/* A symbol of a constant pool. Its lowest bit is a tag in some versions. */
static int pool_symbol(struct sb_runtime *rt, uint64_t pool, uint32_t idx, struct sb_str *str)
{
	const struct sb_hotspot *hs = rt->state;
	uint32_t length;
	uint64_t symbol;
	int err = sb_memory_u32(rt->memory, pool + hs->layout.pool_length, &length);

	if (!err && (!idx || idx >= length))
		err = -EBADMSG;
	if (!err)
		err = sb_memory_u64(rt->memory, pool + hs->layout.size_pool + 8ull * idx, &symbol);
	return err ? err : add_symbol(rt, symbol & ~1ull, str);
}

/*
 * Classes are written with slashes. Hidden ones have "+0x" and an address behind their name, and
 * those of lambdas a number, by the order in which they were made: that differs from run to run.
 */
static void write_class(struct sb_str *str)
{
	char *plus = strrchr(str->s, '+'), *lambda, *p;

	if (plus && plus > str->s && !strncmp(plus, "+0x", 3) &&
	    !plus[3 + strspn(plus + 3, "0123456789abcdef")])
		*plus = '\0';
	lambda = strstr(str->s, "$$Lambda$");
	if (lambda) {
		p = lambda + strlen("$$Lambda");
		if (!p[1 + strspn(p + 1, "0123456789")])
			*p = '\0';
	}
	str->len = strlen(str->s);
	for (p = str->s; *p; p++)
		if (*p == '/')
			*p = '.';
}

static int add_class(struct sb_runtime *rt, uint64_t klass, struct sb_str *str)
{
	const struct sb_hotspot *hs = rt->state;
	uint64_t name;
	int err = sb_memory_u64(rt->memory, klass + hs->layout.klass_name, &name);

	if (!err)
		err = add_symbol(rt, name, str);
	if (!err)
		write_class(str);
	return err;
}

/* The line table lies behind the bytecode. */
static int find_line(struct sb_runtime *rt, uint64_t code, uint32_t bci, uint32_t *ret_line)
{
	const struct sb_hotspot *hs = rt->state;
	const struct sb_hotspot_layout *l = &hs->layout;
	sb_cleanup(sb_freep) uint8_t *table = NULL;
	uint64_t at, size = 256;
	uint16_t code_size;
	uint32_t flags;
	int err;

	*ret_line = 0;
	err = sb_memory_u32(
		rt->memory,
		code + (l->const_flags_21 != SB_HOTSPOT_NONE ? l->const_flags_21 : l->const_flags),
		&flags);
	if (!err)
		err = sb_memory_u16(rt->memory, code + l->const_code_size, &code_size);
	if (err || !(flags & HAS_LINES) || bci >= code_size)
		return err;
	at = code + l->size_const + code_size;
	table = malloc(TABLE_BYTES_MAX);
	if (!table)
		return -ENOMEM;
	/* How long it is nobody says: it ends with a zero. */
	do {
		err = sb_memory_read(rt->memory, table, size, at);
	} while (!err && !memchr(table, 0, size) && (size *= 4) <= TABLE_BYTES_MAX);
	if (err) {
		size = 4096 - (at & 4095);
		size = size < TABLE_BYTES_MAX ? size : TABLE_BYTES_MAX;
		err = sb_memory_read(rt->memory, table, size, at);
	}
	if (!err)
		*ret_line = sb_hotspot_line(table, size < TABLE_BYTES_MAX ? size : TABLE_BYTES_MAX,
					    sb_hotspot_excluded(hs), bci);
	return 0;
}

/* Where the class file says that its source is. */
static int add_file(struct sb_runtime *rt, uint64_t pool, uint64_t klass, struct sb_str *str)
{
	const struct sb_hotspot_layout *l = &((const struct sb_hotspot *)rt->state)->layout;
	uint16_t idx;
	int err = l->pool_source != SB_HOTSPOT_NONE
			  ? sb_memory_u16(rt->memory, pool + l->pool_source, &idx)
			  : sb_memory_u16(rt->memory, klass + l->klass_source, &idx);

	return err || !idx ? err : pool_symbol(rt, pool, idx, str);
}

int sb_hotspot_describe_method(struct sb_runtime *rt, uint64_t method, int32_t bci,
			       struct sb_runtime_text *text)
{
	const struct sb_hotspot_layout *l = &((const struct sb_hotspot *)rt->state)->layout;
	uint64_t code, pool, klass;
	uint16_t name;
	int err = sb_memory_u64(rt->memory, method + l->method_const, &code);

	if (!err)
		err = sb_memory_u64(rt->memory, code + l->const_pool, &pool);
	if (!err)
		err = sb_memory_u16(rt->memory, code + l->const_name, &name);
	if (!err)
		err = sb_memory_u64(rt->memory, pool + l->pool_holder, &klass);
	if (!err)
		err = add_class(rt, klass, &text->name);
	if (!err)
		err = sb_str_addc(&text->name, '.');
	if (!err)
		err = pool_symbol(rt, pool, name, &text->name);
	if (err)
		return err;
	/* What follows is not in every class. */
	err = add_file(rt, pool, klass, &text->file);
	if (!err && text->file.len && bci >= 0)
		err = find_line(rt, code, (uint32_t)bci, &text->line);
	return err == -ENOMEM ? err : 0;
}
