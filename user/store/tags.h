/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which sets of tags are wanted: "service=nginx,php", "region!=eu", "pod=~^web-", "pod!~canary". */
#ifndef SB_STORE_TAGS_H
#define SB_STORE_TAGS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "base/vec.h"
#include "store/dict.h"

struct sb_tag_rule {
	char *text;	   /* as it was given */
	char *key, *value; /* of =, !=: values, each ended by NUL, the last one empty */
	bool is_negated, is_regex;
	regex_t regex;
};
struct sb_tag_rules {
	SB_VEC(struct sb_tag_rule) rules;
};

/*
 * Add a rule: all must hold. A key that a set does not have is the empty value. Regular expressions are POSIX
 * extended ones, anywhere in the value. Return: 0; -EINVAL: no such rule, or expression; -ENOMEM.
 */
int sb_tag_rules_add(struct sb_tag_rules *rules, const char *text);
/* As they were given, separated by spaces, appended to @out. Return: 0 or -ENOMEM. */
int sb_tag_rules_print(const struct sb_tag_rules *rules, struct sb_str *out);
bool sb_tag_rules_match(const struct sb_tag_rules *rules, const struct sb_tag *tags, size_t nr);
void sb_tag_rules_release(struct sb_tag_rules *rules);

/* Of a key in a list of them; longer ones are cut. */
#define SB_TAG_KEY_BYTES 64
/* The first key of "a,b". Return: the rest of the list, or NULL: it was the last. */
const char *sb_tag_list_next(const char *list, char key[SB_TAG_KEY_BYTES]);

/* Return: the value of @key, or "". */
const char *sb_tag_value(const struct sb_tag *tags, size_t nr, const char *key);

#endif
