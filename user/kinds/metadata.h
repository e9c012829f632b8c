/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Metadata of a profile: what the weights mean, when they were recorded, and what is missing. A
 * profile has it (model/profile.h), and a flame graph shows it. It is text only in folded stacks,
 * whose first line is "#stackbpf;v=1;kind=io;unit=bytes;lost=12": one table of keys writes and
 * reads that. Pointers are not NULL. Thread: any, while nobody modifies the metadata.
 */
#ifndef SB_KINDS_METADATA_H
#define SB_KINDS_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

/* Of `version`: the format of the header. */
#define SB_METADATA_VERSION 1

/* NULL and 0: not known, unless a `has_` member says that it is. Strings are borrowed from whoever
 * filled it. The keys are those of flamegraph(1). */
struct sb_metadata {
	uint64_t version;		   /* of the header that it was read from */
	const char *kind;		   /* name of a view */
	const char *unit;		   /* of the weights: "samples", "us", "bytes", "calls" */
	uint64_t dur_us;		   /* for how long it was recorded */
	uint64_t start_us;		   /* since the epoch */
	uint64_t hz;			   /* sampling rate */
	uint64_t cpus;			   /* how many were sampled */
	const char *by;			   /* what the root frames are: "comm,cpu" */
	uint64_t nr_samples;		   /* of all rows */
	const char *labels;		   /* of threads that are root frames: "request,user" */
	uint64_t nr_lost;		   /* samples */
	uint64_t nr_truncated, nr_unnamed; /* stacks; frames */
	uint64_t idle_weight;		   /* left out because the threads were idle */
	const char *of;		 /* of memory: "held", "churn", "swapped"; NULL: the kind says it */
	double accounted;	 /* percent of what should be there */
	uint64_t governed_us;	 /* for how long it was sampled less, to limit the overhead */
	const char *every;	 /* the weight of a sample then, with its unit */
	const char *rate_hz;	 /* the sampling rates: "25..99" */
	double attached;	 /* the part of the time in which functions were probed */
	const char *from, *to;	 /* times that a store was asked for */
	const char *tags;	 /* rules for tags that it was asked for */
	uint64_t lost_weight;	 /* of samples whose stacks a store does not have */
	uint64_t nr_damaged;	 /* blocks of a store */
	uint64_t limited_weight; /* of the stacks that --limit leaves out */

	/* Of a comparison. */
	const char *norm; /* what is compared: "share", "rate", "raw" */
	struct sb_metadata_side {
		uint64_t nr_samples, dur_us;
		double per; /* what weights are divided by for a rate */
	} side[2];
	const char *rate; /* unit of rates: "cpu", "cpus", "s" */

	/* The member is known even if it is 0; need not be set if it is not 0. */
	bool has_dur_us, has_nr_samples, has_nr_lost, has_nr_truncated, has_nr_unnamed,
		has_accounted, has_attached;
};

/* A piece of metadata as text. Zero-initialize. */
struct sb_metadatum {
	const char *key, *value; /* borrowed: constant, and from the metadata or from here */
	size_t next;
	char number[32];
};

/* Write to @at the key and the value of the next member that is known, in the order of headers.
 * Return: true; false after the last one, and @at is used up. */
bool sb_metadata_next(const struct sb_metadata *metadata, struct sb_metadatum *at);

/* The first line of folded stacks, which is metadata. sb_metadata_print() appends to @str
 * "#stackbpf" and ";KEY=VALUE" for each member that is known; sb_metadata_print_part() appends one
 * more ";KEY=VALUE". In values, ';' becomes ':', because it would end the part; a blank becomes '_'
 * and a control character '?', because other programs would take the line for a stack.
 * Return: 0; -ENOMEM, and a part of the text may have been appended. */
int sb_metadata_print(struct sb_str *str, const struct sb_metadata *metadata);
int sb_metadata_print_part(struct sb_str *str, const char *key, const char *value);

/* Set the member of @key. @value: parsed, or borrowed if the member is a string. Return: 0; -ENOENT
 * if there is no such key; -EINVAL if it should be a number of at most INT64_MAX, and is none. On
 * error nothing is set. */
int sb_metadata_read(struct sb_metadata *metadata, const char *key, const char *value);

/**
 * sb_metadata_merge() - add the metadata of another profile
 * @to: what is not known in it is copied; the number of samples, the duration and what was lost or
 *	left out are added up; of `accounted` the lowest value stays, and the rest as it is
 * @from: what is added; fractions are rounded to the digits that their text has, so that nothing
 *	depends on whether metadata came as text
 * @texts: gets copies of strings; lives as long as @to
 *
 * Afterwards, `has_` members are true for all that is known.
 *
 * Return: 0; -ERANGE if a sum is above INT64_MAX: that member of @to is unchanged, and all others
 * are merged; -ENOMEM: some are.
 */
int sb_metadata_merge(struct sb_metadata *to, const struct sb_metadata *from,
		      struct sb_arena *texts);

#endif
