// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/tags.h"

#include <errno.h>
#include <string.h>

const char *sb_tag_value(const struct sb_tag *tags, size_t nr, const char *key)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (sb_streq(tags[i].key, key))
			return tags[i].value;
	return "";
}

const char *sb_tag_list_next(const char *list, char key[SB_TAG_KEY_BYTES])
{
	size_t len = strcspn(list, ","), nr = len < SB_TAG_KEY_BYTES ? len : SB_TAG_KEY_BYTES - 1;

	memcpy(key, list, nr);
	key[nr] = '\0';
	return list[len] ? list + len + 1 : NULL;
}

/* "a,b" becomes "a\0b\0\0". */
static char *split(const char *text)
{
	size_t len = strlen(text), i;
	char *values = calloc(1, len + 2);

	for (i = 0; values && i < len; i++)
		values[i] = text[i] == ',' ? '\0' : text[i];
	return values;
}

static void free_rule(struct sb_tag_rule *rule)
{
	free(rule->text);
	free(rule->key);
	if (rule->is_regex)
		regfree(&rule->regex);
	else
		free(rule->value);
}

static int set_value(struct sb_tag_rule *rule, const char *text)
{
	int err;

	if (!rule->is_regex) {
		rule->value = split(text);
		return rule->value ? 0 : -ENOMEM;
	}
	err = regcomp(&rule->regex, text, REG_EXTENDED | REG_NOSUB);
	if (err)
		rule->is_regex = false;
	return err == REG_ESPACE ? -ENOMEM : err ? -EINVAL : 0;
}

int sb_tag_rules_add(struct sb_tag_rules *rules, const char *text)
{
	size_t len = strcspn(text, "=!~");
	struct sb_tag_rule rule = {};
	const char *at = text + len;
	int err;

	rule.is_negated = *at == '!';
	if (!len || (rule.is_negated ? at[1] != '=' && at[1] != '~' : *at != '='))
		return -EINVAL;
	rule.is_regex = at[1] == '~';
	at += 1 + (rule.is_negated || rule.is_regex);
	rule.text = strdup(text);
	rule.key = strndup(text, len);
	err = rule.key && rule.text ? set_value(&rule, at) : -ENOMEM;
	if (!err)
		err = sb_vec_push(&rules->rules, rule);
	if (err)
		free_rule(&rule);
	return err;
}

int sb_tag_rules_print(const struct sb_tag_rules *rules, struct sb_str *out)
{
	size_t i;
	int err = 0;

	for (i = 0; i < rules->rules.nr && !err; i++)
		err = sb_str_addf(out, "%s%s", i ? " " : "", rules->rules.at[i].text);
	return err;
}

static bool has_value(const struct sb_tag_rule *rule, const char *value)
{
	const char *at = rule->value;

	if (rule->is_regex)
		return !regexec(&rule->regex, value, 0, NULL, 0);
	/* The first value may be empty: "key=" matches series without the key. */
	do {
		if (sb_streq(at, value))
			return true;
		at += strlen(at) + 1;
	} while (*at);
	return false;
}

bool sb_tag_rules_match(const struct sb_tag_rules *rules, const struct sb_tag *tags, size_t nr)
{
	size_t i;

	for (i = 0; i < rules->rules.nr; i++) {
		const struct sb_tag_rule *rule = &rules->rules.at[i];

		if (has_value(rule, sb_tag_value(tags, nr, rule->key)) == rule->is_negated)
			return false;
	}
	return true;
}

void sb_tag_rules_release(struct sb_tag_rules *rules)
{
	size_t i;

	for (i = 0; i < rules->rules.nr; i++)
		free_rule(&rules->rules.at[i]);
	sb_vec_release(&rules->rules);
}
