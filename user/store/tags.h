/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules that select series by their tags: "service=nginx,php", "region!=eu", "pod=~^web-",
 * "pod!~canary". Thread: any; several threads may use rules and tags that nobody changes. Pointers
 * are not NULL, but an array of no tags may be. A struct sb_tag is a key and a value (share.h).
 * Order: zero the rules, sb_tag_rules_add() for each, sb_tag_rules_match() for each series, and
 * sb_tag_rules_release().
 */
#ifndef SB_STORE_TAGS_H
#define SB_STORE_TAGS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "base/vec.h"
#include "store/dict.h"

struct sb_tag_rule {
	char *text;	   /* as the user wrote it */
	char *key, *value; /* value of = and !=: each ends with NUL, the last one is empty */
	bool is_negated, is_regex;
	regex_t regex;
};
/* Zero-initialize. */
struct sb_tag_rules {
	SB_VEC(struct sb_tag_rule) rules;
};

/**
 * sb_tag_rules_add() - parse a rule and add it
 * @text: KEY=VALUE[,VALUE], KEY!=VALUE[,VALUE], KEY=~REGEX or KEY!~REGEX; POSIX extended
 *	expressions, which match anywhere in the value. Copied. KEY is what precedes the first of
 *	"=!~", one byte at least; values may be empty.
 *
 * A series without the key has the empty value, so that "KEY=" selects it.
 *
 * Return: 0; -EINVAL if the rule or its expression is not valid; -ENOMEM. On error no rule is
 * added.
 */
int sb_tag_rules_add(struct sb_tag_rules *rules, const char *text);
/* Append the texts of the rules to @out, separated by spaces. Return: 0; -ENOMEM, and then some may
 * have been appended. */
int sb_tag_rules_print(const struct sb_tag_rules *rules, struct sb_str *out);
/* Return: whether a set of @nr tags matches all rules; true if there are none. */
bool sb_tag_rules_match(const struct sb_tag_rules *rules, const struct sb_tag *tags, size_t nr);
/* Free all rules, also of a zero-initialized struct: none are left, so that all series match, and
 * others can be added. */
void sb_tag_rules_release(struct sb_tag_rules *rules);

/* Bytes of the longest key in a store. */
#define SB_TAG_KEY_MAX	 64u
/* Buffer for one key of a list. A longer key is truncated to SB_TAG_KEY_MAX + 1 bytes, so that it
 * equals no key of a store. */
#define SB_TAG_KEY_BYTES (SB_TAG_KEY_MAX + 2)
/* Copy the first key of a list "a,b" to @key: "" for an empty list or element; "a," has two.
 * Return: what follows it in @list, for the next call; NULL if it was the last key. */
const char *sb_tag_list_next(const char *list, char key[SB_TAG_KEY_BYTES]);

/* Return: the value of @key in @nr tags, borrowed from them; "", a constant, if there is none. */
const char *sb_tag_value(const struct sb_tag *tags, size_t nr, const char *key);

#endif
