// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/ask.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/utf8.h"
#include "kinds/view_kind.h"
#include "store/unevenness.h"

/* 9999-12-31 23:59:59. */
#define TIME_MAX_S   253402300799ll
#define MINUTE_S     60
#define HOUR_S	     3600
#define DAY_S	     86400
/* Longest rule or selector. */
#define RULE_LEN_MAX 4096u

void sb_ask_release(struct sb_ask *ask)
{
	free(ask->kind);
	sb_tag_rules_release(&ask->rules);
	*ask = (struct sb_ask){};
}

/* Times. */

static bool take_unit(const char **p, int64_t *ret_unit_s)
{
	static const struct {
		const char *name;
		int64_t unit_s;
	} units[] = { { "min", MINUTE_S }, { "s", 1 },	       { "m", MINUTE_S },   { "h", HOUR_S },
		      { "d", DAY_S },	   { "w", 7 * DAY_S }, { "y", 365 * DAY_S } };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(units); i++)
		if (!strncmp(*p, units[i].name, strlen(units[i].name))) {
			*p += strlen(units[i].name);
			*ret_unit_s = units[i].unit_s;
			return true;
		}
	return false;
}

int sb_ask_length(const char *text, int64_t *ret_s)
{
	const char *begin = text, *end = text + strlen(text), *number;
	int64_t sum = 0, unit_s;
	uint64_t nr;

	if (!*text)
		return -EINVAL;
	while (*text) {
		number = text;
		if (!sb_scan_u64(&text, end, &nr) || nr > TIME_MAX_S)
			return -EINVAL;
		if (!take_unit(&text, &unit_s)) {
			/* A bare number, and nothing else. */
			if (*text || number != begin)
				return -EINVAL;
			unit_s = 1;
		}
		if ((int64_t)nr > (TIME_MAX_S - sum) / unit_s)
			return -EINVAL;
		sum += (int64_t)nr * unit_s;
	}
	*ret_s = sum;
	return 0;
}

/* @nr digits. */
static bool take_digits(const char **p, size_t nr, int *ret)
{
	int value = 0;
	size_t i;

	for (i = 0; i < nr; i++) {
		if ((*p)[i] < '0' || (*p)[i] > '9')
			return false;
		value = value * 10 + ((*p)[i] - '0');
	}
	*p += nr;
	*ret = value;
	return true;
}

static bool take(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

/* "Z", "+01:00", "-0530", "+01" or nothing: then *ret_is_local. */
static bool take_offset(const char **p, int64_t *ret_s, bool *ret_is_local)
{
	int hours, minutes = 0, sign = **p == '-' ? -1 : 1;

	*ret_s = 0;
	*ret_is_local = !**p;
	if (*ret_is_local || take(p, 'Z') || take(p, 'z'))
		return true;
	if (!take(p, '+') && !take(p, '-'))
		return false;
	if (!take_digits(p, 2, &hours))
		return false;
	(void)take(p, ':');
	if (**p && !take_digits(p, 2, &minutes))
		return false;
	*ret_s = sign * (hours * HOUR_S + minutes * MINUTE_S);
	/* The zones of the world; "14:00-15:00" is no time in one. */
	return hours <= 14 && minutes < 60;
}

/* "10:00", "10:00:05", "10:00:05.123". */
static bool take_clock(const char **p, struct tm *tm)
{
	if (!take_digits(p, 2, &tm->tm_hour) || !take(p, ':') || !take_digits(p, 2, &tm->tm_min))
		return false;
	if (take(p, ':') && !take_digits(p, 2, &tm->tm_sec))
		return false;
	if (take(p, '.'))
		while (isdigit((unsigned char)**p))
			(*p)++;
	/* 60: a leap second. */
	return (tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60) ||
	       (tm->tm_hour == 24 && !tm->tm_min && !tm->tm_sec);
}

/* "2026-11-21". */
static bool take_date(const char **p, struct tm *tm)
{
	const char *at = *p;
	struct tm date = {}, day;
	int year;

	if (!take_digits(&at, 4, &year) || !take(&at, '-') || !take_digits(&at, 2, &date.tm_mon) ||
	    !take(&at, '-') || !take_digits(&at, 2, &date.tm_mday) || date.tm_mon < 1 ||
	    date.tm_mon > 12)
		return false;
	date.tm_year = year - 1900;
	date.tm_mon--;
	day = date;
	/* There is no February 30. */
	timegm(&day);
	if (day.tm_mday != date.tm_mday)
		return false;
	*p = at;
	*tm = date;
	return true;
}

/* A time without a date is of the day that it is now in its zone. */
static void set_today(struct tm *tm, time_t now_s, bool is_local)
{
	struct tm today = {};

	if (is_local)
		localtime_r(&now_s, &today);
	else
		gmtime_r(&now_s, &today);
	tm->tm_year = today.tm_year;
	tm->tm_mon = today.tm_mon;
	tm->tm_mday = today.tm_mday;
}

static int parse_calendar(const char *text, int64_t now_s, int64_t *ret_s)
{
	struct tm tm = {};
	int64_t offset_s = 0;
	bool is_local, has_date = take_date(&text, &tm);
	bool has_clock = !has_date || take(&text, 'T') || take(&text, 't') || take(&text, ' ');

	if ((has_clock && !take_clock(&text, &tm)) || !take_offset(&text, &offset_s, &is_local) ||
	    *text)
		return -EINVAL;
	if (!has_date)
		set_today(&tm, now_s + offset_s, is_local);
	/* mktime() finds out whether it is summer time then. */
	tm.tm_isdst = -1;
	*ret_s = is_local ? mktime(&tm) : timegm(&tm) - offset_s;
	return 0;
}

static int parse_relative(const char *text, int64_t now_s, int64_t *ret_s)
{
	int64_t length_s = 0;
	int sign = *text == '-' ? -1 : 1, err;

	if (*text && *text != '-' && *text != '+')
		return -EINVAL;
	err = *text ? sb_ask_length(text + 1, &length_s) : 0;
	if (!err)
		*ret_s = now_s + sign * length_s;
	return err;
}

static bool is_relative(const char *text)
{
	return !strncmp(text, "now", 3) || *text == '-' || *text == '+';
}

int sb_ask_time(const char *text, int64_t now_s, int64_t *ret_s)
{
	uint64_t unix_s;
	int64_t time_s;
	int err = 0;

	if (is_relative(text))
		err = parse_relative(text + (*text == 'n' ? 3 : 0), now_s, &time_s);
	else if (!sb_parse_u64(text + (*text == '@'), TIME_MAX_S, &unix_s))
		time_s = (int64_t)unix_s;
	else
		err = parse_calendar(text, now_s, &time_s);
	if (err || time_s < 0 || time_s > TIME_MAX_S)
		return -EINVAL;
	*ret_s = time_s;
	return 0;
}

int sb_ask_range(struct sb_ask *ask, const char *from, const char *to, int64_t now_s,
		 const char **ret_why)
{
	int64_t from_s = now_s - SB_ASK_RANGE_DEFAULT, to_s = now_s;

	if (from && sb_ask_time(from, now_s, &from_s)) {
		*ret_why = "the start is not a valid time: " SB_ASK_TIME_HELP;
		return -EINVAL;
	}
	if (to && sb_ask_time(to, now_s, &to_s)) {
		*ret_why = "the end is not a valid time: " SB_ASK_TIME_HELP;
		return -EINVAL;
	}
	if (to && !from)
		from_s = to_s - SB_ASK_RANGE_DEFAULT;
	/* The end is exclusive, and the second that has begun may have data. */
	if (!to || (is_relative(to) && to_s == now_s))
		to_s++;
	if (from_s >= to_s) {
		*ret_why = !to ? "the range begins in the future; choose an earlier start"
			       : "the range ends before it begins; choose an earlier start or a "
				 "later end";
		return -EINVAL;
	}
	ask->from_s = from_s;
	ask->to_s = to_s;
	return 0;
}

/* Rules. */

int sb_ask_set_kind(struct sb_ask *ask, const char *kind)
{
	char *copy = strdup(kind);

	if (!copy)
		return -ENOMEM;
	free(ask->kind);
	ask->kind = copy;
	return 0;
}

const char *sb_ask_kind(const struct sb_ask *ask)
{
	return ask->kind ? ask->kind : sb_view_kind_default()->name;
}

static int add_rule(struct sb_ask *ask, const char *text)
{
	/* The kind is not a tag of series, and kinds do not add up: exactly one can be chosen. */
	if (!strncmp(text, "kind=", 5) && text[5] != '~' && text[5] && !strchr(text, ','))
		return sb_ask_set_kind(ask, text + 5);
	return sb_tag_rules_add(&ask->rules, text);
}

static int add_service(struct sb_ask *ask, const char *service)
{
	sb_cleanup(sb_str_release) struct sb_str rule = {};
	int err = sb_str_addf(&rule, "service=%s", service);

	return err ? err : sb_tag_rules_add(&ask->rules, rule.s);
}

/* Return: the kind of that name; after a service, also by the name that Pyroscope has for it; NULL:
 * there is none. */
static const char *find_kind(const char *name, bool has_service)
{
	if (sb_view_kind_find(name))
		return name;
	for (size_t i = 0; has_service && i < SB_VIEW_KIND_MAX; i++)
		if (sb_streq(sb_view_kind_pyroscope(sb_view_kinds[i].name), name))
			return sb_view_kinds[i].name;
	return NULL;
}

/* "oncpu", "car", "car.oncpu", or "car.cpu" in Pyroscope's words. */
static int add_name(struct sb_ask *ask, char *name)
{
	char *dot = strrchr(name, '.');
	const char *kind = find_kind(dot ? dot + 1 : name, dot != NULL);
	int err;

	if (!*name)
		return 0;
	if (!kind)
		return add_service(ask, name);
	err = sb_ask_set_kind(ask, kind);
	if (err || !dot)
		return err;
	*dot = '\0';
	return add_service(ask, name);
}

/* Parse a matcher k="v", with escapes \" and \\. *@p is behind it afterwards. */
static int add_matcher(struct sb_ask *ask, const char **p)
{
	sb_cleanup(sb_str_release) struct sb_str rule = {};
	size_t len = strcspn(*p, "=!,{}\"");
	int err = sb_str_addn(&rule, *p, len);

	*p += len;
	len = strspn(*p, "=!~");
	if (!err)
		err = sb_str_addn(&rule, *p, len);
	*p += len;
	if (err || !take(p, '"'))
		return err ? err : -EINVAL;
	for (; !err && **p && **p != '"'; (*p)++) {
		if (**p == '\\' && (*p)[1])
			(*p)++;
		err = sb_str_addc(&rule, **p);
	}
	if (!err && !take(p, '"'))
		err = -EINVAL;
	return err ? err : add_rule(ask, rule.s);
}

static int add_selector(struct sb_ask *ask, const char *text)
{
	size_t len = strcspn(text, "{");
	sb_cleanup(sb_freep) char *name = strndup(text, len);
	const char *p = text + len;
	int err = name ? add_name(ask, name) : -ENOMEM;

	if (!*p || err)
		return err;
	for (p++; !err && *p && *p != '}';) {
		p += strspn(p, " ");
		err = add_matcher(ask, &p);
		p += strspn(p, " ");
		if (!err && *p != '}' && !take(&p, ','))
			err = -EINVAL;
	}
	return err ? err : sb_streq(p, "}") ? 0 : -EINVAL;
}

int sb_ask_rule(struct sb_ask *ask, const char *text)
{
	size_t len = strcspn(text, "{=!");

	if (strlen(text) > RULE_LEN_MAX)
		return -EINVAL;
	/* A name without braces could be a service, but more often it is an incomplete rule. */
	return text[len] == '{' ? add_selector(ask, text) : add_rule(ask, text);
}

/* The answer. */

void sb_ask_print_time(int64_t time_s, char text[SB_ASK_TIME_BYTES])
{
	time_t time = time_s < 0 ? 0 : time_s > TIME_MAX_S ? TIME_MAX_S : time_s;
	struct tm tm = {};
	size_t len;

	localtime_r(&time, &tm);
	len = strftime(text, SB_ASK_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
	/* Whole minutes: what sb_ask_time() reads. */
	if (tm.tm_gmtoff)
		snprintf(text + len, SB_ASK_TIME_BYTES - len, "%c%02ld:%02ld",
			 tm.tm_gmtoff < 0 ? '-' : '+', labs(tm.tm_gmtoff) / HOUR_S % 100,
			 labs(tm.tm_gmtoff) % HOUR_S / MINUTE_S);
	else
		snprintf(text + len, SB_ASK_TIME_BYTES - len, "Z");
}

uint64_t sb_store_answer_hz(const struct sb_store_answer *answer)
{
	uint64_t ms = answer->figure[SB_BLOCK_SAMPLED_MS];

	return ms ? (answer->figure[SB_BLOCK_HZ_MS] + ms / 2) / ms : 0;
}

uint64_t sb_store_answer_samples(const struct sb_store_answer *answer)
{
	if (sb_streq(answer->kind.unit, "samples"))
		return answer->weight;
	if (!answer->all_weight)
		return 0;
	return (uint64_t)((double)answer->figure[SB_BLOCK_SAMPLES] * (double)answer->weight /
				  (double)answer->all_weight +
			  0.5);
}

static uint64_t samples_of(const struct sb_store_answer *answer, uint64_t weight)
{
	if (!answer->weight || sb_streq(answer->kind.unit, "samples"))
		return weight;
	return (uint64_t)((double)sb_store_answer_samples(answer) * (double)weight /
				  (double)answer->weight +
			  0.5);
}

uint64_t sb_store_answer_trunc(const struct sb_store_answer *answer)
{
	return samples_of(answer, answer->trunc_weight);
}

/* Return: how many frames without a name the samples have. */
static uint64_t nosym_of(const struct sb_store_answer *answer)
{
	return samples_of(answer, answer->nosym_weight);
}

static int add_metadata(struct sb_profile *profile, const struct sb_ask *ask,
			const struct sb_store_answer *answer)
{
	sb_cleanup(sb_str_release) struct sb_str rules = {};
	char from[SB_ASK_TIME_BYTES], to[SB_ASK_TIME_BYTES];
	const uint64_t *figure = answer->figure;
	const bool is_samples = sb_streq(answer->kind.unit, "samples");
	struct sb_metadata metadata = {
		.kind = sb_ask_kind(ask),
		.unit = answer->kind.unit[0] ? answer->kind.unit : "samples",
		.by = ask->by,
		.dur_us = figure[SB_BLOCK_SAMPLED_MS] * 1000,
		.start_us = answer->from_s > 0 ? (uint64_t)answer->from_s * 1000000 : 0,
		.hz = is_samples ? sb_store_answer_hz(answer) : 0,
		.nr_samples = sb_store_answer_samples(answer),
		.nr_lost = figure[SB_BLOCK_LOST],
		.nr_truncated = sb_store_answer_trunc(answer),
		.nr_unnamed = nosym_of(answer),
		.lost_weight = answer->lost_weight,
		.nr_damaged = answer->nr_damaged,
		.has_dur_us = true,
		.has_nr_samples = true,
		.has_nr_lost = true,
		.has_nr_truncated = true,
		.has_nr_unnamed = true,
	};
	int err = sb_tag_rules_print(&ask->rules, &rules);

	if (answer->nr_blocks) {
		sb_ask_print_time(answer->from_s, from);
		sb_ask_print_time(answer->end_s, to);
		metadata.from = from;
		metadata.to = to;
	}
	metadata.tags = rules.len ? rules.s : NULL;
	return err ?: sb_profile_set_metadata(profile, &metadata);
}

/* Add the lost weight as a stack of its own, unless rules might exclude it. */
static int add_lost(struct sb_profile *profile, const struct sb_ask *ask,
		    struct sb_store_answer *answer)
{
	static const struct sb_frame lost = { .name = SB_DICT_LOST, .kind = SB_FRAME_MARK };
	uint32_t id;
	int err;

	if (!answer->lost_weight || ask->rules.rules.nr)
		return 0;
	err = sb_profile_frame(profile, &lost, &id);
	if (!err)
		err = sb_profile_add(profile, &id, 1, answer->lost_weight);
	if (!err)
		answer->weight += answer->lost_weight;
	return err;
}

int sb_ask_profile(struct sb_store *store, const struct sb_ask *ask,
		   struct sb_profile **ret_profile, struct sb_store_answer *ret_answer)
{
	const struct sb_store_query query = {
		.from_s = ask->from_s,
		.to_s = ask->to_s,
		.kind = sb_ask_kind(ask),
		.rules = &ask->rules,
		.by = ask->by,
		.nr_nodes_max = ask->nr_nodes_max,
	};
	struct sb_store_answer answer;
	struct sb_profile *profile = NULL;
	int err = sb_profile_new(&profile);

	if (!err)
		err = sb_store_query(store, &query, profile, &answer);
	if (!err && ask->is_compared)
		err = sb_store_query_unevenness(store, &query, &answer, &profile);
	if (!err)
		err = add_lost(profile, ask, &answer);
	if (!err)
		err = sb_profile_seal(profile);
	if (!err)
		err = add_metadata(profile, ask, &answer);
	if (err) {
		sb_profile_free(profile);
		return err;
	}
	if (ret_answer)
		*ret_answer = answer;
	*ret_profile = profile;
	return 0;
}

static bool has_key(const struct sb_tags *tags, const char *key)
{
	size_t i;

	for (i = 0; i < tags->keys.nr; i++)
		if (sb_streq(tags->keys.at[i].key, key))
			return true;
	return false;
}

static int say_keys(const struct sb_tags *tags, const char *key, struct sb_str *why)
{
	size_t i;
	int err = sb_str_addf(why,
			      "nothing in this time range has the tag '%s'; the tags "
			      "are ",
			      key);

	for (i = 0; i < tags->keys.nr && !err; i++)
		err = sb_str_addf(why, "%s%s", i ? ", " : "", tags->keys.at[i].key);
	if (!err)
		sb_replace_controls(why->s, why->len);
	return err ? err : -ENOENT;
}

int sb_ask_check_by(struct sb_store *store, const struct sb_ask *ask, struct sb_str *ret_why)
{
	struct sb_tags *tags = NULL;
	const char *by = ask->by;
	char key[SB_TAG_KEY_BYTES];
	int err = by ? sb_store_tags(store, ask, 1, &tags) : 0;

	/* Of tags that were left out nothing is known. */
	while (!err && by && tags->keys.nr && !tags->has_more) {
		by = sb_tag_list_next(by, key);
		if (!has_key(tags, key))
			err = say_keys(tags, key, ret_why);
	}
	sb_tags_free(tags);
	return err;
}
