// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads how a JVM describes its own structures: gHotSpotVMStructs and gHotSpotVMTypes, which are
 * exported for the serviceability agent (src/hotspot/share/runtime/vmStructs.hpp). They are arrays
 * of entries, ended by one without a type name. The layout of an entry is exported as well.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/hotspot/hotspot_priv.h"

/* JDK 17 has 2,400 of 48 bytes each. */
#define ENTRIES_MAX    16384u
#define STRIDE_MAX     256u
#define PIECE_BYTES    (64u << 10)
#define NAME_BYTES_MAX 64u

enum column { TYPE, FIELD, OFFSET, ADDRESS, IS_STATIC, NR_COLUMNS };

struct table {
	uint64_t at, stride;
	uint64_t column[NR_COLUMNS];
	const char *names[NR_COLUMNS];
};

struct wanted {
	const char *type, *field;
	size_t at; /* in the layout */
};

#define AT(name)		     __builtin_offsetof(struct sb_hotspot_layout, name)
#define FIELD_ROW(name, type, field) { type, field, AT(name) },
#define SIZE_ROW(name, type)	     { type, NULL, AT(name) },
static const struct wanted fields[] = { SB_HOTSPOT_FIELDS(FIELD_ROW){} };
static const struct wanted sizes[] = { SB_HOTSPOT_SIZES(SIZE_ROW){} };

/* A word that the JVM exports. */
static int exported(struct sb_runtime *rt, const char *prefix, const char *name, uint64_t *ret)
{
	char symbol[NAME_BYTES_MAX];
	uint64_t addr;

	snprintf(symbol, sizeof(symbol), "%s%s", prefix, name);
	if (sb_image_symbol(rt->image, symbol, &addr, NULL)) {
		sb_str_addf(&rt->why, "it does not export '%s'", symbol);
		return -ENOTSUP;
	}
	return sb_memory_u64(rt->memory, addr, ret);
}

static int find_table(struct sb_runtime *rt, const char *array, const char *entry,
		      struct table *table)
{
	size_t i;
	int err = exported(rt, array, "", &table->at);

	if (!err)
		err = exported(rt, entry, "ArrayStride", &table->stride);
	for (i = 0; !err && i < NR_COLUMNS; i++) {
		if (!table->names[i])
			continue;
		err = exported(rt, entry, table->names[i], &table->column[i]);
		if (!err && table->column[i] > STRIDE_MAX - 8)
			err = -EBADMSG;
	}
	if (err)
		return err;
	if (!table->at)
		return -EAGAIN;
	return table->stride >= 8 && table->stride <= STRIDE_MAX ? 0 : -EBADMSG;
}

static uint64_t column(const struct table *table, const uint8_t *entry, enum column col)
{
	uint64_t word = 0;

	if (table->column[col] <= table->stride - 8)
		memcpy(&word, entry + table->column[col], sizeof(word));
	return word;
}

/* Names are constants of the library; its file is at hand. */
static int read_constant(void *arg, void *dst, size_t len, uint64_t addr)
{
	struct sb_runtime *rt = arg;

	return sb_image_read(rt->image, addr, dst, len) ? sb_memory_read(rt->memory, dst, len, addr)
							: 0;
}

static const char *name_at(const struct sb_memory *constants, uint64_t addr,
			   char name[NAME_BYTES_MAX])
{
	size_t len;

	name[0] = '\0';
	if (sb_memory_read(constants, name, NAME_BYTES_MAX, addr))
		return name;
	len = strnlen(name, NAME_BYTES_MAX);
	if (len == NAME_BYTES_MAX)
		name[len - 1] = '\0';
	return name;
}

static bool is_wanted_type(const struct wanted *wanted, const char *type)
{
	for (; wanted->type; wanted++)
		if (sb_streq(wanted->type, type))
			return true;
	return false;
}

static void take(const struct table *table, const struct wanted *wanted, const uint8_t *entry,
		 const char *type, const char *field, struct sb_hotspot_layout *layout)
{
	uint64_t is_static = column(table, entry, IS_STATIC) & 0xff;
	uint64_t val = column(table, entry, is_static ? ADDRESS : OFFSET);

	for (; wanted->type; wanted++)
		if (sb_streq(wanted->type, type) &&
		    (!wanted->field || !strncmp(wanted->field, field, NAME_BYTES_MAX - 1)))
			memcpy((char *)layout + wanted->at, &val, sizeof(val));
}

/* All entries, some at a time. */
static int read_table(struct sb_runtime *rt, const struct table *table, const struct wanted *wanted,
		      struct sb_hotspot_layout *layout)
{
	struct sb_memory_recent recent = { .nr = 0 };
	const struct sb_memory constants = { .read = read_constant, .arg = rt, .recent = &recent };
	sb_cleanup(sb_freep) uint8_t *piece = malloc(PIECE_BYTES);
	uint64_t nr_piece = PIECE_BYTES / table->stride, at = table->at, last_type = 0, i, nr;
	char type[NAME_BYTES_MAX], field[NAME_BYTES_MAX];
	bool is_wanted = false;
	int err;

	if (!piece)
		return -ENOMEM;
	for (nr = 0; nr < ENTRIES_MAX; nr += nr_piece, at += nr_piece * table->stride) {
		/* The last piece may end where the mapping does. */
		do {
			err = sb_memory_read(rt->memory, piece, nr_piece * table->stride, at);
		} while (err == -EFAULT && (nr_piece /= 2));
		if (err)
			return err;
		for (i = 0; i < nr_piece; i++) {
			const uint8_t *entry = piece + i * table->stride;
			uint64_t type_at = column(table, entry, TYPE);

			if (!type_at)
				return 0;
			/* Those of one type lie together. */
			if (type_at != last_type)
				is_wanted =
					is_wanted_type(wanted, name_at(&constants, type_at, type));
			last_type = type_at;
			if (is_wanted)
				take(table, wanted, entry, type,
				     table->names[FIELD]
					     ? name_at(&constants, column(table, entry, FIELD),
						       field)
					     : "",
				     layout);
		}
	}
	return -EBADMSG;
}

int sb_hotspot_read_layout(struct sb_runtime *rt, struct sb_hotspot_layout *ret)
{
	struct table structs = { .names = { "TypeNameOffset", "FieldNameOffset", "OffsetOffset",
					    "AddressOffset", "IsStaticOffset" } };
	struct table types = { .names = { [TYPE] = "TypeNameOffset", [OFFSET] = "SizeOffset" } };
	int err;

	memset(ret, 0xff, sizeof(*ret));
	err = find_table(rt, "gHotSpotVMStructs", "gHotSpotVMStructEntry", &structs);
	if (!err)
		err = find_table(rt, "gHotSpotVMTypes", "gHotSpotVMTypeEntry", &types);
	types.column[IS_STATIC] = types.column[FIELD] = types.column[ADDRESS] = STRIDE_MAX;
	if (!err)
		err = read_table(rt, &structs, fields, ret);
	if (!err)
		err = read_table(rt, &types, sizes, ret);
	return err;
}
