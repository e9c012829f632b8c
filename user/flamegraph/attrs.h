/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two files that name functions for a picture: colours to keep from one picture to the next
 * (--cp), and links and texts of functions (--nameattr). Both may come from anywhere: sizes are
 * bounded, and only values that are safe in an SVG are taken.
 */
#ifndef SB_FLAMEGRAPH_ATTRS_H
#define SB_FLAMEGRAPH_ATTRS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/index.h"
#include "base/vec.h"

#define SB_FG_PALETTE_FILE	   "palette.map" /* what --cp means, in the current directory */

/* An SVG with more names than this is drawn by nobody. */
#define SB_FG_ATTRS_FILE_MAX_BYTES (64u << 20)

struct sb_fg_palette_entry {
	uint32_t name, color; /* strings of the map */
};

/* "name->rgb(1,2,3)" lines. Keys and values are in the string table; a name is there once. */
struct sb_fg_palette_map {
	struct sb_strtab strs;
	struct sb_index by_name;
	SB_VEC(struct sb_fg_palette_entry) entries;
	uint64_t nr_ignored; /* lines that are no "name->rgb(r,g,b)" or "name->#rrggbb" */
};

int sb_fg_palette_map_init(struct sb_fg_palette_map *map);
void sb_fg_palette_map_release(struct sb_fg_palette_map *map);
/* Add the file's lines to @map. Return: 0, -ENOENT, -EFBIG, -ENOMEM, or the error of reading. */
int sb_fg_palette_map_read(struct sb_fg_palette_map *map, const char *path);
/* Return: "rgb(1,2,3)" or "#rrggbb", valid until the release; NULL if the name is not there. */
const char *sb_fg_palette_map_get(const struct sb_fg_palette_map *map, const char *name,
				  size_t len);
/* Return: 0, -EINVAL for a color of another form, -ENOMEM, -E2BIG. */
int sb_fg_palette_map_put(struct sb_fg_palette_map *map, const char *name, size_t len,
			  const char *color);
/* Replace the file as a whole, sorted by name. Return: 0 or a negative errno. */
int sb_fg_palette_map_write(const struct sb_fg_palette_map *map, const char *path);

/* What a line of a --nameattr file says about a function; "" if it does not. */
struct sb_fg_name_attr {
	uint32_t name; /* the following are in strs, too; not escaped for XML */
	uint32_t href; /* http, https, mailto, file or relative; never javascript: or data: */
	uint32_t target, title, id, css_class;
};

/* "name<tab>href=...<tab>title=..." lines. */
struct sb_fg_name_attrs {
	struct sb_strtab strs;
	struct sb_index by_name;
	SB_VEC(struct sb_fg_name_attr) attrs;
	uint64_t nr_ignored; /* attributes (also href) and lines that are not taken */
};

int sb_fg_name_attrs_init(struct sb_fg_name_attrs *attrs);
void sb_fg_name_attrs_release(struct sb_fg_name_attrs *attrs);
/* Return: 0, -ENOENT, -EFBIG, -ENOMEM, or the error of reading. */
int sb_fg_name_attrs_read(struct sb_fg_name_attrs *attrs, const char *path);
/* Return: what was said about the function, until the next read; NULL: nothing. */
const struct sb_fg_name_attr *sb_fg_name_attrs_get(const struct sb_fg_name_attrs *attrs,
						   const char *name, size_t len);

#endif
