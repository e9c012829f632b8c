/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One question to a store, from text as users and HTTP give it: which time, which kind, which tags. All
 * texts may be anything. Not thread-safe.
 */
#ifndef SB_STORE_ASK_H
#define SB_STORE_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

/* If nothing is said. */
#define SB_ASK_KIND_DEFAULT  "oncpu"
#define SB_ASK_RANGE_DEFAULT 3600
/* The same, for options' help. */
#define SB_ASK_FROM_DEFAULT  "-1h"

struct sb_ask {
	int64_t from_s, to_s; /* [from, to) */
	char *kind;	      /* owned; NULL: SB_ASK_KIND_DEFAULT */
	struct sb_tag_rules rules;
	const char *by; /* borrowed: a tag, or "a,b": outermost frames; NULL: none */
	/*
	 * Not 0: about so many nodes of the tree are enough; smaller subtrees become a frame "(other)" under
	 * their parent, with all of their weight. What is then asked over years costs as over days. Not
	 * with `by`: all stacks are in that answer.
	 */
	uint32_t nr_nodes_max;
	/* To be compared: find out how uneven waits and bytes are (parts.h). Not with nr_nodes_max. */
	bool is_compared;
};
/* Zero-initialize, then use. The same fields can be used again. */
void sb_ask_release(struct sb_ask *ask);

/*
 * A time: "now", "-1h", "now-2d", "now-1h30m", "2026-11-21", "2026-11-21T10:00", "2026-11-21 10:00:05Z",
 * "2026-11-21T10:00+01:00" (local time, tzset(3), without an offset), "@1795255200", or as plain a number. Units: s, m or min,
 * h, d, w. Return: 0; -EINVAL: no time, or outside of the years 1970 to 9999.
 */
int sb_ask_time(const char *text, int64_t now_s, int64_t *ret_s);
/* What sb_ask_time() takes, as the end of a sentence: "... is no time: try -1h, ...". */
#define SB_ASK_TIME_HELP \
	"try -1h, now-2d, 2026-11-21T10:00 (local time), 2026-11-21T10:00Z or @1795255200"

/* In local time, whose offset is always said: "2026-11-21T10:00:05+01:00", "2026-11-21T10:00:05Z". */
#define SB_ASK_TIME_BYTES 32
void sb_ask_print_time(int64_t time_s, char text[SB_ASK_TIME_BYTES]);

/* "10m", "1h30m", "7d", a bare number of seconds: a length of time. Return: 0 or -EINVAL. */
int sb_ask_length(const char *text, int64_t *ret_s);

/*
 * [from, to) of two texts, each NULL if not said: the last hour; of one text, up to now.
 * Return: 0; -EINVAL: *ret_why is a sentence without its end.
 */
int sb_ask_range(struct sb_ask *ask, const char *from, const char *to, int64_t now_s,
		 const char **ret_why);

/*
 * A rule as sb_tag_rules_add() has it ("k=v[,v2]", "k!=v", "k=~ERE", "k!~ERE"), or a selector as Prometheus and
 * Pyroscope have it: name{k="v",k2!="v2"}, whose name is a kind ("oncpu"), a service ("car"), both
 * ("car.oncpu"), or left out. "kind=offcpu" sets the kind. All rules must hold.
 * Return: 0; -EINVAL; -ENOMEM. After a failure some rules of a selector may be there.
 */
int sb_ask_rule(struct sb_ask *ask, const char *text);
#define SB_ASK_RULE_HELP "try KEY=VALUE[,VALUE], KEY!=VALUE, KEY=~REGEX or KEY!~REGEX"

/* Return: 0 or -ENOMEM. */
int sb_ask_set_kind(struct sb_ask *ask, const char *kind);
/* Return: the kind that is asked for; never NULL. */
const char *sb_ask_kind(const struct sb_ask *ask);

/*
 * The answer, sealed, with the facts that a run has (cli/record_write.c): kind, unit, hz, start_us, dur_us,
 * by, n, lost, trunc, nosym; and these of a store: "from", "to" (ISO 8601, what was summed), "tags" (the rules),
 * "lost_weight" (also a stack "(lost)", if there are no rules), "damaged" if not 0. All outputs can write it. Nothing recorded: 0, and weight 0.
 * @ret_answer may be NULL. Return: 0, -EINVAL: from >= to, -ENOMEM, others of I/O.
 */
int sb_ask_profile(struct sb_store *store, const struct sb_ask *ask,
		   struct sb_profile **ret_profile, struct sb_store_answer *ret_answer);

/* Return: how often a CPU was sampled a second, the mean; 0: not by a clock. */
uint64_t sb_store_answer_hz(const struct sb_store_answer *answer);
/* Return: of how many samples, waits or calls the weight is; where weights are no samples, by the share that
 * it has of all. */
uint64_t sb_store_answer_samples(const struct sb_store_answer *answer);
/* Return: of how many of these samples a part of the stack is missing, and how many frames without a name they have; by
 * their shares of the weight. */
uint64_t sb_store_answer_trunc(const struct sb_store_answer *answer);
uint64_t sb_store_answer_nosym(const struct sb_store_answer *answer);

/* Weights over time. */

struct sb_timeline_opts {
	uint32_t step_s;       /* a multiple of 10; 0: by nr_steps_max */
	uint32_t nr_steps_max; /* 0: 300; at most 20,000 */
	uint32_t
		nr_series_max; /* of values of ask->by; the rest is "(other)"; 0: 10, at most 1,000 */
};
struct sb_timeline_series {
	char *value;	   /* of ask->by, "(none)", "(other)"; "" without one */
	uint64_t weight;   /* of all steps */
	uint64_t *weights; /* by step */
};
struct sb_timeline {
	struct sb_store_kind kind; /* what was asked for; unit "" if nothing was recorded */
	int64_t from_s;		   /* where step 0 begins: a multiple of step_s */
	uint32_t step_s;
	size_t nr_steps;
	/* By step: for how long it was sampled (0: nothing was recorded then, which is not weight 0), in ms,
	 * and how many samples were lost. */
	uint64_t *sampled_ms, *lost;
	SB_VEC(struct sb_timeline_series) series; /* heaviest first; "(other)" last */
	struct sb_store_answer answer;
};
/*
 * A step is as long as is asked for, made longer where fine blocks are expired; whole steps, so it may begin
 * before ask->from_s. Without a length, one of 10 s, 30 s, 1 min, ..., 1 d, so that they are few enough.
 * Return: 0, -EINVAL, -E2BIG: more than 20,000 steps, -ENOMEM, others of I/O.
 */
int sb_store_timeline(struct sb_store *store, const struct sb_ask *ask,
		      const struct sb_timeline_opts *opts, struct sb_timeline **ret_timeline);
void sb_timeline_free(struct sb_timeline *timeline);

/* Which tags there are. */

struct sb_tag_count {
	char *value;
	uint64_t weight; /* of what the rules let through */
};
struct sb_tag_counts {
	char *key;
	bool is_wide;
	SB_VEC(struct sb_tag_count) values; /* heaviest first */
	uint64_t nr_more, weight_more;	    /* that are not in it: values, and their weight */
};
struct sb_tags {
	SB_VEC(struct sb_tag_counts) keys; /* by name */
};
/*
 * The tags in the range and kind of @ask, of what its rules let through: at most @nr_values_max values of each
 * key (0: 100). Return: 0, -EINVAL, -ENOMEM, others of I/O.
 */
int sb_store_tags(struct sb_store *store, const struct sb_ask *ask, size_t nr_values_max,
		  struct sb_tags **ret_tags);
void sb_tags_free(struct sb_tags *tags);

/**
 * sb_ask_check_by() - is every tag of ask->by a tag of something in the range
 * @ret_why: on -ENOENT, one sentence that names what is not there and what is; owned by the caller
 *
 * With nothing in the range there is nothing to compare with, and all is well. Return: 0, -ENOENT, -ENOMEM, others of I/O.
 */
int sb_ask_check_by(struct sb_store *store, const struct sb_ask *ask, struct sb_str *ret_why);

#endif
