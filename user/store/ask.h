/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queries to a store: parse what users and HTTP clients write (time range, kind, tag rules), and
 * return a profile, a timeline or the list of tags. Called by the commands query, diff and export,
 * and by the HTTP server. All texts may be hostile. Not thread-safe: use a store and its queries
 * from one thread at a time. Texts are copied, where nothing else is said, and pointers are not
 * NULL unless it says so. All functions that read the store return errors of I/O as negative
 * errnos, and -E2BIG if the range has more than 4,096 files; on error *ret_... is untouched, unless
 * it says so, and the call may be repeated.
 *
 * A query: zero a struct sb_ask, set it by sb_ask_range(), sb_ask_rule() and sb_ask_set_kind(), and
 * its other members directly; check `by` with sb_ask_check_by(); ask sb_ask_profile(),
 * sb_store_timeline() or sb_store_tags(), any number of times; and end it by sb_ask_release(), also
 * after an error.
 */
#ifndef SB_STORE_ASK_H
#define SB_STORE_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "store/store.h"

/* Length of the range in seconds when neither a begin nor an end is given. */
#define SB_ASK_RANGE_DEFAULT 3600
/* The same as text, for --help. */
#define SB_ASK_FROM_DEFAULT  "-1h"

struct sb_ask {
	int64_t from_s, to_s; /* seconds since the epoch, end exclusive */
	char *kind;	      /* owned; NULL: the default view */
	struct sb_tag_rules rules;
	const char *by; /* borrowed: tags "a" or "a,b" that become root frames; or NULL */
	/*
	 * If not 0, keep only about this many of the heaviest nodes of the call tree. Each smaller
	 * subtree becomes a frame "(other)" below its parent, so that no weight is lost, and a
	 * query over years costs as much as one over days. Ignored when `by` is set.
	 */
	uint32_t nr_nodes_max;
	/*
	 * The profile will be compared with another one: also measure how much weights that are not
	 * counts, such as waiting times, vary over time (unevenness.h). Ignored when nr_nodes_max
	 * is set.
	 */
	bool is_compared;
};
/* Free what the query owns and zero it; it can be used again. */
void sb_ask_release(struct sb_ask *ask);

/**
 * sb_ask_time() - parse a point in time
 * @text: "now", "-1h", "now-2d", "now-1h30m", "2026-11-21", "2026-11-21T10:00:05",
 *	"2026-11-21T10:00Z", "2026-11-21T10:00+01:00", "14:00" or "14:00:05" (of today),
 *	"@1795255200" or "1795255200"; local time (tzset(3)) without an offset; units as for
 *	sb_ask_length()
 * @now_s: the time that relative texts refer to; its day is today
 * @ret_s: seconds since the epoch
 *
 * Return: 0; -EINVAL if the text is not a time between the years 1970 and 9999, and then *ret_s is
 * untouched.
 */
int sb_ask_time(const char *text, int64_t now_s, int64_t *ret_s);
/* The forms that sb_ask_time() accepts, to end an error message: "... is no time: try -1h, ...". */
#define SB_ASK_TIME_HELP                                                                       \
	"try -1h, now-2d, 14:00 (today), 2026-11-21T10:00 (local time), 2026-11-21T10:00Z or " \
	"@1795255200"

#define SB_ASK_TIME_BYTES 32
/* Set @text to seconds since the epoch in local time with its offset: "2026-11-21T10:00:05+01:00",
 * "2026-11-21T10:00:05Z". A time outside of the years 1970 to 9999 is shown as the nearest
 * inside. */
void sb_ask_print_time(int64_t time_s, char text[SB_ASK_TIME_BYTES]);

/*
 * Parse a length of time: "10m", "1h30m", "7d", or only a number, which is of seconds. Units: s, m
 * or min, h, d, w, y (365 days). 0 is a length, too. Return: 0 and seconds; -EINVAL if the text is
 * no length ("1m5", where the 5 has no unit), or one that reaches beyond the year 9999, and then
 * *ret_s is untouched.
 */
int sb_ask_length(const char *text, int64_t *ret_s);

/**
 * sb_ask_range() - set the time range of a query from two texts
 * @from: begin as for sb_ask_time(); NULL: an hour before @to, or before @now_s without @to
 * @to: end; NULL or now ("now", "-0s"): the end of the second @now_s, so that nothing that was
 *	recorded is left out
 * @now_s: seconds since the epoch
 * @ret_why: on -EINVAL, a static sentence without a full stop that says what is wrong; else
 *	untouched
 *
 * Return: 0; -EINVAL if a text is not a time, or the range does not begin before it ends; the query
 * is unchanged then.
 */
int sb_ask_range(struct sb_ask *ask, const char *from, const char *to, int64_t now_s,
		 const char **ret_why);

/**
 * sb_ask_rule() - add a tag rule or a selector to a query
 * @text: a rule as for sb_tag_rules_add() ("k=v[,v2]", "k!=v", "k=~ERE", "k!~ERE"), or a selector
 *	in the syntax of Prometheus and Pyroscope: name{k="v",k2!="v2"}, where the name is a kind
 *	("oncpu"), a service ("car", any name that is no kind), both ("car.oncpu") or empty;
 *	"kind=offcpu" sets the kind; at most 4,096 bytes
 *
 * A series must match all rules.
 *
 * Return: 0; -EINVAL if the text is none of these, or too long; -ENOMEM. After a failure the kind
 * and some rules of a selector may have been set; of a single rule, nothing.
 */
int sb_ask_rule(struct sb_ask *ask, const char *text);
#define SB_ASK_RULE_HELP "try KEY=VALUE[,VALUE], KEY!=VALUE, KEY=~REGEX or KEY!~REGEX"

/* Replace the kind by a copy of @kind, any name: whether there is such a view is not checked.
 * Return: 0; -ENOMEM, and the kind stays. */
int sb_ask_set_kind(struct sb_ask *ask, const char *kind);
/* Return: the name of the kind that is asked for, never NULL: the query's, valid until its kind is
 * replaced or it is released; or that of the default view, a constant. */
const char *sb_ask_kind(const struct sb_ask *ask);

/**
 * sb_ask_profile() - the profile that answers a query
 * @ret_profile: a sealed profile owned by the caller; without weight if nothing was recorded;
 *	untouched on error
 * @ret_answer: figures of the answer; may be NULL; untouched on error
 *
 * The profile has the metadata of a recording (kind, unit, hz, start_us, dur_us, by, n, lost,
 * trunc, nosym), so that every output format can write it, and what only a store knows: "from" and
 * "to" (ISO 8601, from the begin of the first block to the end of the last), "tags" (the rules),
 * "lost_weight" and "damaged". The last two are present only if they are not 0. If no tag rules are
 * given, the lost weight is also added to the profile as a stack named "(lost)".
 *
 * Return: 0; -EINVAL if the range is empty; -E2BIG also if the profile is too large; -ENOMEM; other
 * errors of I/O.
 */
int sb_ask_profile(struct sb_store *store, const struct sb_ask *ask,
		   struct sb_profile **ret_profile, struct sb_store_answer *ret_answer);

/* The functions about @answer only compute from it: any thread. Return: mean sampling rate of a CPU
 * in Hz; 0 if the kind is not sampled by a clock, or nothing was recorded. */
uint64_t sb_store_answer_hz(const struct sb_store_answer *answer);
/* Return: how many samples, waits or calls make up the weight of the answer. Where weights are not
 * counts, this is estimated from the share of the total weight. Any thread. */
uint64_t sb_store_answer_samples(const struct sb_store_answer *answer);
/* Return: how many of the samples of sb_store_answer_samples() have a truncated stack; where
 * weights are not counts, this is estimated from their share of the total weight. Any thread. */
uint64_t sb_store_answer_trunc(const struct sb_store_answer *answer);

/* Weights over time. */

struct sb_timeline_opts {
	uint32_t step_s;	/* a multiple of 10, at most 50 years; 0: chosen by nr_steps_max */
	uint32_t nr_steps_max;	/* only without step_s; 0: 300 */
	uint32_t nr_series_max; /* the others become "(other)"; 0: 10; more than 1,000: 1,000 */
};
struct sb_timeline_series {
	char *value;	   /* of the tags ask->by; "(none)", "(other)"; "" if there is no `by` */
	uint64_t weight;   /* total of all steps */
	uint64_t *weights; /* one for each step */
};
struct sb_timeline {
	struct sb_store_kind kind; /* the unit is "" if nothing was recorded */
	int64_t from_s;		   /* begin of step 0: a multiple of step_s */
	uint32_t step_s;
	size_t nr_steps;
	/*
	 * For each step: how long was sampled, in ms, and how many samples were lost. 0 ms means
	 * that nothing was recorded, which is not the same as a weight of 0.
	 */
	uint64_t *sampled_ms, *lost;
	SB_VEC(struct sb_timeline_series) series; /* heaviest first; "(other)" last */
	struct sb_store_answer answer;
};
/**
 * sb_store_timeline() - weights over time, one series for each value of the tags ask->by
 * @ask: nr_nodes_max and is_compared are ignored; not kept, like @opts
 * @ret_timeline: owned by the caller, freed by sb_timeline_free(); independent of store and query
 *
 * The timeline consists of whole steps, so it may begin before ask->from_s. If opts->step_s is 0, a
 * round number between 10 s and a year is chosen so that there are about nr_steps_max. Steps become
 * longer than asked where only coarser blocks are left.
 *
 * Return: 0, with no steps if the store has no files of that time; -EINVAL if the range is empty,
 * or the step is too long or not a multiple of 10 s; -E2BIG also for more than 20,000 steps;
 * -ENOMEM; other errors of I/O.
 */
int sb_store_timeline(struct sb_store *store, const struct sb_ask *ask,
		      const struct sb_timeline_opts *opts, struct sb_timeline **ret_timeline);
/* Free a timeline with all that it points to; NULL is allowed. */
void sb_timeline_free(struct sb_timeline *timeline);
SB_DEFINE_CLEANUP(struct sb_timeline, sb_timeline_free)

/* Tags and their values. */

struct sb_tag_count {
	char *value;
	uint64_t weight; /* of the series that match the rules */
};
struct sb_tag_counts {
	char *key;
	bool is_wide;
	SB_VEC(struct sb_tag_count) values; /* heaviest first */
	uint64_t nr_more, weight_more;	    /* values that were left out, and their weight */
	bool has_more; /* nr_more does not count all of them: beyond 200,000 in all */
};
struct sb_tags {
	SB_VEC(struct sb_tag_counts) keys; /* sorted by name */
	bool has_more;			   /* further keys, beyond 256, were left out */
};
/**
 * sb_store_tags() - tags of the series that match a query, with the weight of each value
 * @ask: nr_nodes_max is ignored. ask->by does not choose what is listed; but if one of its tags is
 *	wide, which aggregates do not have, only blocks of 10 s are counted.
 * @nr_values_max: list at most this many values for each key, the heaviest; 0: 100
 *
 * Of at most 256 keys and 200,000 values, in the order in which files have them; has_more of a key
 * and of the tags says that there were more.
 *
 * @ret_tags: owned by the caller, freed by sb_tags_free(); independent of store and query
 *
 * Return: 0; -EINVAL if the range is empty; -ENOMEM; other errors of I/O.
 */
int sb_store_tags(struct sb_store *store, const struct sb_ask *ask, size_t nr_values_max,
		  struct sb_tags **ret_tags);
/* Free what sb_store_tags() returned, with all that it points to; the store and the query need not
 * exist any more. NULL is allowed. */
void sb_tags_free(struct sb_tags *tags);
SB_DEFINE_CLEANUP(struct sb_tags, sb_tags_free)

/**
 * sb_ask_check_by() - check that every tag in ask->by occurs in the range
 * @ask: only series of its kind that match its rules count
 * @ret_why: initialized by the caller, who releases it; on -ENOENT a sentence without a full stop
 *	is appended that names the missing tag and the existing ones; on -ENOMEM perhaps a part
 *
 * If no such series has any tag, as when nothing was recorded in the range, or they have more than
 * sb_store_tags() lists, every tag is accepted.
 *
 * Return: 0, also if ask->by is NULL; -ENOENT if a tag does not occur; -EINVAL if the range is
 * empty; -ENOMEM; other errors of I/O.
 */
int sb_ask_check_by(struct sb_store *store, const struct sb_ask *ask, struct sb_str *ret_why);

#endif
