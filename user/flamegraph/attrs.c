// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/attrs.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "flamegraph/text.h"

/* Clean a string, then intern it. Return: 0, -ENOMEM, -E2BIG. */
static int intern(struct sb_strtab *strs, const char *s, size_t len, uint32_t *ret_id)
{
	sb_cleanup(sb_str_release) struct sb_str clean = {};
	long nr_bad;

	if (sb_fg_text_is_plain(s, len))
		return sb_strtab_add(strs, s, len, ret_id);
	nr_bad = sb_fg_text_clean(&clean, s, len);
	return nr_bad < 0 ? (int)nr_bad : sb_strtab_add(strs, clean.s, clean.len, ret_id);
}

/* Call @take with each line of a file, without its end. */
static int each_line(const char *path, int (*take)(void *arg, const char *line, size_t len),
		     void *arg)
{
	sb_cleanup(sb_freep) char *text = NULL;
	const char *p, *end, *next;
	size_t len;
	int err = sb_read_file(path, SB_FG_ATTRS_FILE_MAX_BYTES, &text, &len);

	if (err)
		return err;
	for (p = text, end = text + len; p < end && !err; p = next + 1) {
		next = memchr(p, '\n', (size_t)(end - p));
		next = next ? next : end;
		len = (size_t)(next - p);
		if (len && p[len - 1] == '\r')
			len--;
		if (len)
			err = take(arg, p, len);
	}
	return err;
}

int sb_fg_palette_map_init(struct sb_fg_palette_map *map)
{
	*map = (struct sb_fg_palette_map){};
	return sb_strtab_init(&map->strs);
}

void sb_fg_palette_map_release(struct sb_fg_palette_map *map)
{
	sb_strtab_release(&map->strs);
	sb_vec_release(&map->color_of);
}

/* Only "rgb(1,2,3)" and "#rrggbb" are accepted, because the colour is put into an attribute. */
static bool is_color(const char *s, size_t len)
{
	const char *p = s + 4, *end = s + len;
	uint64_t part;
	int i;

	if (len == 7 && s[0] == '#') {
		for (i = 1; i < 7; i++)
			if (!isxdigit((unsigned char)s[i]))
				return false;
		return true;
	}
	if (len < 10 || memcmp(s, "rgb(", 4))
		return false;
	for (i = 0; i < 3; i++) {
		if (!sb_scan_u64(&p, end, &part) || part > 255)
			return false;
		if (p == end || *p++ != (i < 2 ? ',' : ')'))
			return false;
	}
	return p == end;
}

static int put(struct sb_fg_palette_map *map, const char *name, size_t len, const char *color,
	       size_t color_len)
{
	uint32_t name_id, color_id;
	int err = intern(&map->strs, name, len, &name_id);

	err = err ?: sb_strtab_add(&map->strs, color, color_len, &color_id);
	err = err ?: sb_vec_fit(&map->color_of, name_id + 1ull, 0);
	if (!err)
		map->color_of.at[name_id] = color_id;
	return err;
}

static int take_palette_line(void *arg, const char *line, size_t len)
{
	struct sb_fg_palette_map *map = arg;
	const char *end = line + len, *arrow = NULL, *p = line;

	/* The last "->": a name may contain one, a colour cannot. */
	while ((p = memmem(p, (size_t)(end - p), "->", 2)))
		arrow = p, p += 2;
	if (!arrow || arrow == line || !is_color(arrow + 2, (size_t)(end - arrow - 2))) {
		map->nr_ignored++;
		return 0;
	}
	return put(map, line, (size_t)(arrow - line), arrow + 2, (size_t)(end - arrow - 2));
}

int sb_fg_palette_map_read(struct sb_fg_palette_map *map, const char *path)
{
	return each_line(path, take_palette_line, map);
}

const char *sb_fg_palette_map_get(const struct sb_fg_palette_map *map, const char *name, size_t len)
{
	uint32_t id;

	if (!sb_strtab_find(&map->strs, name, len, &id) || id >= map->color_of.nr ||
	    !map->color_of.at[id])
		return NULL;
	return sb_strtab_get(&map->strs, map->color_of.at[id], NULL);
}

int sb_fg_palette_map_put(struct sb_fg_palette_map *map, const char *name, size_t len,
			  const char *color)
{
	if (!is_color(color, strlen(color)))
		return -EINVAL;
	return put(map, name, len, color, strlen(color));
}

static int by_text(const void *va, const void *vb, void *arg)
{
	const uint32_t *a = va, *b = vb;

	return strcmp(sb_strtab_get(arg, *a, NULL), sb_strtab_get(arg, *b, NULL));
}

int sb_fg_palette_map_write(const struct sb_fg_palette_map *map, const char *path)
{
	sb_cleanup(sb_freep) uint32_t *sorted = malloc((map->color_of.nr + 1) * sizeof(*sorted));
	struct sb_output_file *file;
	size_t nr = 0, i;
	int err;

	if (!sorted)
		return -ENOMEM;
	for (i = 0; i < map->color_of.nr; i++)
		if (map->color_of.at[i])
			sorted[nr++] = (uint32_t)i;
	qsort_r(sorted, nr, sizeof(*sorted), by_text, (void *)&map->strs);
	err = sb_output_file_new(path, &file);
	if (err)
		return err;
	for (i = 0; i < nr; i++)
		fprintf(sb_output_file_stream(file), "%s->%s\n",
			sb_strtab_get(&map->strs, sorted[i], NULL),
			sb_strtab_get(&map->strs, map->color_of.at[sorted[i]], NULL));
	err = sb_output_file_commit(file);
	sb_output_file_free(file);
	return err;
}

int sb_fg_name_attrs_init(struct sb_fg_name_attrs *attrs)
{
	*attrs = (struct sb_fg_name_attrs){};
	return sb_strtab_init(&attrs->strs);
}

void sb_fg_name_attrs_release(struct sb_fg_name_attrs *attrs)
{
	sb_strtab_release(&attrs->strs);
	sb_vec_release(&attrs->attrs);
}

/* Accept a link without a scheme, or with one that does not run code. */
static bool is_safe_href(const char *s, size_t len)
{
	static const char *const schemes[] = { "http", "https", "mailto", "file", "ftp" };
	size_t n = 0, i;

	while (n < len && s[n] != ':' && s[n] != '/' && s[n] != '?' && s[n] != '#')
		n++;
	if (n == len || s[n] != ':')
		return true;
	for (i = 0; i < SB_ARRAY_SIZE(schemes); i++)
		if (strlen(schemes[i]) == n && !strncasecmp(s, schemes[i], n))
			return true;
	return false;
}

/* Return: the field of "key=value", NULL if it is not one of ours. */
static uint32_t *field_of(struct sb_fg_name_attr *attr, const char *key, size_t len)
{
	const struct {
		const char *key;
		uint32_t *field;
	} fields[] = {
		{ "href", &attr->href }, { "target", &attr->target },	{ "title", &attr->title },
		{ "id", &attr->id },	 { "class", &attr->css_class },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(fields); i++)
		if (sb_text_is(key, len, fields[i].key))
			return fields[i].field;
	return NULL;
}

static int take_attr(struct sb_fg_name_attrs *attrs, struct sb_fg_name_attr *attr, const char *s,
		     size_t len)
{
	const char *equals = memchr(s, '=', len);
	uint32_t *field = equals ? field_of(attr, s, (size_t)(equals - s)) : NULL;
	const char *value = field ? equals + 1 : NULL;
	size_t value_len = field ? (size_t)(s + len - value) : 0;

	/*
	 * Browsers ignore tabs and the like within a scheme, so refuse unprintable characters
	 * first.
	 */
	if (!field || !sb_fg_text_is_plain(value, value_len) ||
	    (field == &attr->href && (!value_len || !is_safe_href(value, value_len)))) {
		attrs->nr_ignored++;
		return 0;
	}
	return intern(&attrs->strs, value, value_len, field);
}

static int take_attrs_line(void *arg, const char *line, size_t len)
{
	struct sb_fg_name_attrs *attrs = arg;
	struct sb_fg_name_attr attr = {};
	const char *end = line + len, *tab = memchr(line, '\t', len), *p, *next;
	int err;

	if (!tab || tab == line) {
		attrs->nr_ignored++;
		return 0;
	}
	err = intern(&attrs->strs, line, (size_t)(tab - line), &attr.name);
	for (p = tab + 1; p < end && !err; p = next + 1) {
		next = memchr(p, '\t', (size_t)(end - p));
		next = next ? next : end;
		if (next > p)
			err = take_attr(attrs, &attr, p, (size_t)(next - p));
	}
	err = err ?: sb_vec_fit(&attrs->attrs, attr.name + 1ull, 0);
	if (!err)
		attrs->attrs.at[attr.name] = attr; /* the last line counts */
	return err;
}

int sb_fg_name_attrs_read(struct sb_fg_name_attrs *attrs, const char *path)
{
	return each_line(path, take_attrs_line, attrs);
}

const struct sb_fg_name_attr *sb_fg_name_attrs_get(const struct sb_fg_name_attrs *attrs,
						   const char *name, size_t len)
{
	uint32_t id;

	if (!sb_strtab_find(&attrs->strs, name, len, &id) || id >= attrs->attrs.nr ||
	    !attrs->attrs.at[id].name)
		return NULL;
	return &attrs->attrs.at[id];
}
