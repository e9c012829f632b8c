// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Options and the two files they name. Input: pieces separated by NUL bytes: the file, then name
 * and value of options.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "flamegraph/attrs.h"
#include "flamegraph/fg.h"
#include "flamegraph/opts.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is put into an attribute of the SVG without another check. */
static void check_palette(const struct sb_fg_palette_map *map)
{
	size_t i, len;

	for (i = 0; i < map->color_of.nr; i++) {
		const char *name = sb_strtab_get(&map->strs, (uint32_t)i, &len);
		const char *color = sb_fg_palette_map_get(map, name, len);

		must(!color == !map->color_of.at[i]);
		must(!color || !strpbrk(color, "\"'<>&; "));
	}
}

static void check_attrs(const struct sb_fg_name_attrs *attrs)
{
	size_t i, len;

	for (i = 0; i < attrs->attrs.nr; i++) {
		const char *name = sb_strtab_get(&attrs->strs, attrs->attrs.at[i].name, &len);
		const struct sb_fg_name_attr *attr = sb_fg_name_attrs_get(attrs, name, len);
		const char *href;

		/* The string is no name, but perhaps a value. */
		if (!attrs->attrs.at[i].name)
			continue;
		must(attr != NULL);
		href = sb_strtab_get(&attrs->strs, attr->href, NULL);
		must(strncasecmp(href, "javascript:", 11) && strncasecmp(href, "data:", 5));
	}
}

static void check_files(const char *text, size_t len)
{
	struct sb_fg_name_attrs attrs;
	struct sb_fg_palette_map map;
	int fd = memfd_create("input", MFD_CLOEXEC);
	char path[64];

	must(fd >= 0 && !sb_write_all(fd, text, len));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(!sb_fg_palette_map_init(&map) && !sb_fg_palette_map_read(&map, path));
	check_palette(&map);
	sb_fg_palette_map_release(&map);
	must(!sb_fg_name_attrs_init(&attrs) && !sb_fg_name_attrs_read(&attrs, path));
	check_attrs(&attrs);
	sb_fg_name_attrs_release(&attrs);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *p, *name = NULL;
	struct sb_fg_opts *opts = NULL;

	must(text != NULL && !sb_fg_opts_new(&opts));
	memcpy(text, data, size);
	text[size] = '\0';
	check_files(text, strlen(text));
	for (p = text + strlen(text) + 1; p < text + size; p += strlen(p) + 1) {
		if (name)
			sb_fg_opts_set(opts, name, p);
		sb_fg_opts_set(opts, p, NULL);
		name = name ? NULL : p;
	}
	must(opts->minwidth >= 0 && opts->fontsize >= 1 && opts->frame_height >= 4);
	must(opts->sort <= SB_TREE_SORT_WEIGHT && opts->color_by <= SB_FG_BY_MODULE);
	sb_fg_opts_free(opts);
	free(text);
	return 0;
}
