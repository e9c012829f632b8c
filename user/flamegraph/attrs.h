/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two files about functions in pictures: colours to keep from one picture to the next (--cp), and
 * links and texts (--nameattr). Both may be hostile: sizes are bounded, and only values that are
 * safe in an SVG are accepted. Called by svg.c. Names and values are copied; bytes that may not be
 * shown in them are replaced (sb_fg_text_clean()), so that a name is found only as it is then.
 * -E2BIG means more than 2^31 bytes of them. Not thread-safe. Pointers are not NULL; a name is @len
 * bytes, without NUL at its end.
 *
 * Initialize a map or a set, read its file, ask it about functions, and release it. A map also gets
 * the colours of further functions, and is written to its file then.
 */
#ifndef SB_FLAMEGRAPH_ATTRS_H
#define SB_FLAMEGRAPH_ATTRS_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"

#define SB_FG_PALETTE_FILE	   "palette.map" /* what --cp means, in the current directory */

/* Larger files are refused. */
#define SB_FG_ATTRS_FILE_MAX_BYTES (64u << 20)

/* Lines "name->rgb(1,2,3)". A name occurs once; the last line wins. */
struct sb_fg_palette_map {
	struct sb_strtab strs;	   /* names and colours */
	SB_VEC(uint32_t) color_of; /* by the ID of a name: that of its colour; 0: none */
	uint64_t nr_ignored;	   /* lines that are not "name->rgb(r,g,b)" or "name->#rrggbb" */
};

/* Make an empty map; overwrites all. Return: 0 or -ENOMEM; release it in both cases. */
int sb_fg_palette_map_init(struct sb_fg_palette_map *map);
/* Free what the map holds, also one that is zero-initialized. It can be used again only after
 * sb_fg_palette_map_init(). */
void sb_fg_palette_map_release(struct sb_fg_palette_map *map);
/* Add the lines of a file; those that are not valid are counted in nr_ignored. Return: 0; -ENOENT;
 * -EFBIG beyond SB_FG_ATTRS_FILE_MAX_BYTES; another error of reading: nothing was added then.
 * -ENOMEM; -E2BIG: some lines may be in the map. */
int sb_fg_palette_map_read(struct sb_fg_palette_map *map, const char *path);
/*
 * Return: the colour of a function, "rgb(1,2,3)" or "#rrggbb", valid until the release; NULL if the
 * name is not in the map.
 */
const char *sb_fg_palette_map_get(const struct sb_fg_palette_map *map, const char *name,
				  size_t len);
/* Set the colour of a function, in place of the one it has. @color: "rgb(1,2,3)" or "#rrggbb".
 * Return: 0; -EINVAL if it is not a colour; -ENOMEM; -E2BIG. On error no colour has changed. */
int sb_fg_palette_map_put(struct sb_fg_palette_map *map, const char *name, size_t len,
			  const char *color);
/* Write the map, sorted by name, to a file that sb_fg_palette_map_read() can read. The file is
 * replaced as a whole, or on error untouched. Return: 0; -ENOMEM; or another negative errno of
 * writing or renaming it. */
int sb_fg_palette_map_write(const struct sb_fg_palette_map *map, const char *path);

/* What a --nameattr file says about a function: indexes into sb_fg_name_attrs.strs, not escaped for
 * XML; 0, which is "", if it does not say it. */
struct sb_fg_name_attr {
	uint32_t name; /* 0: the string is not the name of a function */
	uint32_t href; /* relative, http, https, mailto, file or ftp; never javascript: or data: */
	uint32_t target, title, id, css_class;
};

/* Lines "name<tab>href=...<tab>title=...". The last line of a name wins. */
struct sb_fg_name_attrs {
	struct sb_strtab strs;		      /* names and values */
	SB_VEC(struct sb_fg_name_attr) attrs; /* by the ID of the name */
	uint64_t nr_ignored;		      /* lines and attributes that were not accepted */
};

/* Make an empty set; overwrites all. Return: 0 or -ENOMEM; release it in both cases. */
int sb_fg_name_attrs_init(struct sb_fg_name_attrs *attrs);
/* Free what the set holds, also one that is zero-initialized. It can be used again only after
 * sb_fg_name_attrs_init(). */
void sb_fg_name_attrs_release(struct sb_fg_name_attrs *attrs);
/* Add the lines of a file; those that are not valid are counted in nr_ignored. Return: 0; -ENOENT;
 * -EFBIG beyond SB_FG_ATTRS_FILE_MAX_BYTES; another error of reading: nothing was added then.
 * -ENOMEM; -E2BIG: some lines may be in the set. */
int sb_fg_name_attrs_read(struct sb_fg_name_attrs *attrs, const char *path);
/* Return: what the file says about a function, valid until the next read or the release; NULL:
 * nothing. */
const struct sb_fg_name_attr *sb_fg_name_attrs_get(const struct sb_fg_name_attrs *attrs,
						   const char *name, size_t len);

#endif
