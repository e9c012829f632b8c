/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a store contains, as JSON: the same in answers of the server and in output of commands. The
 * functions write to @json (jsontext.h), which keeps the first error, after which nothing more is
 * written, until sb_json_end() returns it; nothing else is kept. Pointers are not NULL. Not
 * thread-safe. */
#ifndef SB_SERVE_STORE_JSON_H
#define SB_SERVE_STORE_JSON_H

#include "output/jsontext.h"
#include "store/ask.h"
#include "store/store.h"

/* Write the kinds that sb_store_extents() gave, and of which time they are, as the array @key of
 * the object that is open in @json. @nr: elements of @extents; 0 or less: an empty array. */
void sb_json_extents(struct sb_json *json, const char *key, const struct sb_store_extent *extents,
		     int nr);
/* Write a timeline that @ask asked for as the outermost object, which stays open: sb_json_end()
 * closes it. */
void sb_json_timeline(struct sb_json *json, const struct sb_ask *ask,
		      const struct sb_timeline *timeline);

#endif
