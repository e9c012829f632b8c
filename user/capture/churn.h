/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rate limits for mapping records. The kernel writes a record for each executable mapping, and a
 * program can make hundreds of thousands a second; each costs the sampler about as much as the
 * program. So each process has a token bucket, which is large enough for any program that loads
 * libraries or generates code. Records beyond it are skipped. A second bucket is for all processes
 * together; while that is empty, each process has only a small one, for what a starting program
 * maps. In its last quarter each user has a bucket, too, so that no user empties it but root. Which
 * processes had records skipped is reported with each drain. Not thread-safe. No pointer may be
 * NULL unless a comment says so.
 *
 * Order: zero the struct, and set uid_of; sb_churn_judge() for each record; sb_churn_round() after
 * all that are there; sb_churn_take() with each drain; sb_churn_release().
 */
#ifndef SB_CAPTURE_CHURN_H
#define SB_CAPTURE_CHURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* The bucket of one process: its size, and how many are added in each second. */
#define SB_CHURN_BURST		8192u
#define SB_CHURN_PER_SEC	1000u
/* The bucket of all processes together. */
#define SB_CHURN_ALL_BURST	65536u
#define SB_CHURN_ALL_PER_SEC	20000u
/* The bucket of each user but root, for what is taken from the last quarter of that of all. */
#define SB_CHURN_USER_BURST	4096u
#define SB_CHURN_USER_PER_SEC	5000u
/* Users that are remembered. The one that mapped least lately is evicted. */
#define SB_CHURN_USERS_MAX	64u
/* How many processes are asked in each second for their user. The others are nobody's. */
#define SB_CHURN_ASK_PER_SEC	1000u
#define SB_CHURN_NOBODY		UINT32_MAX
/* The small bucket of each process, for when that of all is empty; all small ones together are
 * limited by a bucket of the same size as that of all. */
#define SB_CHURN_LITTLE		64u
#define SB_CHURN_LITTLE_PER_SEC 8u
/* Processes that are remembered. The one that mapped least lately is evicted. */
#define SB_CHURN_PROCS_MAX	4096u

/* A process with skipped records since the last drain, how many, and the times of the first and the
 * last (CLOCK_MONOTONIC). */
struct sb_churn_skip {
	uint32_t tgid;
	bool is_seen; /* the caller's, who sets it; kept as long as the process is remembered */
	uint64_t nr;
	uint64_t first_ns, last_ns;
};

struct sb_churn_proc {
	struct sb_churn_skip skip; /* last_ns 0: nothing was skipped */
	uint64_t full_ns;	   /* when its bucket will be full again; 0: the entry is free */
	uint64_t little_full_ns;   /* the same of its small bucket */
	uint64_t uid_until_ns;	   /* until when @uid is believed */
	uint32_t uid;
	bool is_counted, is_told; /* in nr_procs; SB_CHURN_SKIP_FIRST was returned in this round */
};

struct sb_churn {
	struct sb_churn_proc procs[SB_CHURN_PROCS_MAX];
	uint64_t all_full_ns, all_little_full_ns, ask_full_ns;
	/* Return: the user of a process; SB_CHURN_NOBODY: not known. Called by sb_churn_judge();
	 * set by the caller. NULL: users are not told apart. */
	uint32_t (*uid_of)(uint32_t tgid);
	struct sb_churn_user {
		uint32_t uid;
		uint64_t full_ns; /* when its bucket will be full again; 0: the entry is free */
	} users[SB_CHURN_USERS_MAX];
	SB_VEC(uint32_t) skipping; /* indexes of entries whose skip.last_ns is not 0 */
	uint64_t nr_skipped;	   /* records */
	uint64_t nr_procs;	   /* processes with skipped records */
};

enum sb_churn_verdict {
	SB_CHURN_TAKE,
	SB_CHURN_SKIP,	     /* skip it; the process is noted */
	SB_CHURN_SKIP_FIRST, /* as SKIP; the first one of the process since sb_churn_round() */
	SB_CHURN_LOST,	     /* skip it; there was no room, or no memory, to note the process */
};

/* Decide what to do with a record of a mapping that @tgid made at @time_ns (CLOCK_MONOTONIC, when
 * the kernel wrote it). If the record is to be processed, the buckets are charged for it. Records
 * need not come in the order of time. nr_skipped counts skipped records, except SB_CHURN_LOST,
 * which the caller counts. Return: SB_CHURN_TAKE: process it. All others: skip it; SKIP_FIRST is
 * the first of the process in this round; LOST: there was no room or memory to note the process. */
enum sb_churn_verdict sb_churn_judge(struct sb_churn *churn, uint32_t tgid, uint64_t time_ns);
/* Begin a new round: SB_CHURN_SKIP_FIRST is returned again, once for each process. */
void sb_churn_round(struct sb_churn *churn);
/* Call @fn for each process with records skipped since the last call, and forget them; this also
 * begins a new round. Of @skip, @fn may change is_seen; it is valid during the call, in which @fn
 * must not use @churn. @fn returns 0 or a negative errno, after which the rest is forgotten without
 * a call. @arg: passed to @fn; may be NULL. Return: 0 or that errno; it has no errors of its
 * own. */
int sb_churn_take(struct sb_churn *churn, int (*fn)(void *arg, struct sb_churn_skip *skip),
		  void *arg);
/* Free memory; the struct is to be zeroed before it is used again. */
void sb_churn_release(struct sb_churn *churn);

#endif
