/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one foreign file may cost us: bytes of memory and units of work. Every loader charges the budget of its file
 * before it allocates or computes; a charge that does not fit is refused with -EFBIG, and the frames of the file then
 * have the reason "limit". Budgets of the files that one symbolizer keeps share a pool, which bounds what all files
 * take together, and what the files of one user take.
 *
 * Bytes are cumulative while a file is being loaded: what is freed on the way is not given back before
 * sb_budget_settle() says what is still held. So a load needs no pairs of charge and release, and the charge is never
 * less than the memory. Work is a bucket that refills slowly: a file that is loaded again and again, because others
 * push it out of memory, runs dry, and is left alone for a while.
 *
 * Thread: a budget and its pool belong to one thread at a time.
 */
#ifndef SB_BUDGET_H
#define SB_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct sb_budget;

/* All files of one symbolizer. Zeroed and with @bytes_max and @work_max set, it is ready. */
struct sb_budget_pool {
	size_t bytes_max; /* of all files together; a file may have half, the files of one user three quarters */
	uint64_t work_max; /* units in a full bucket; the files of one user may take half */
	size_t bytes, bytes_peak;
	uint64_t
		nr_refused_files; /* that a charge was refused for; each counts once until it is closed */
	/*
	 * Free memory of files that are kept for later, so that @bytes fit. It must not touch the file whose budget is
	 * @keep, which is being loaded. NULL: nothing can be freed.
	 */
	void (*reclaim)(void *arg, const struct sb_budget *keep, size_t bytes);
	void *reclaim_arg;
	/* The rest is private. */
	SB_VEC(struct sb_budget_user {
		uint32_t uid;
		size_t bytes;
		uint64_t work;
	})
	users;
	uint64_t work, work_ns; /* spent, and when it and that of users was last refilled */
};

/* One file. */
struct sb_budget {
	struct sb_budget_pool *pool; /* borrowed; NULL: only the bounds of a file hold */
	const char *name;	     /* borrowed, for the log; NULL: the file is not named */
	uint32_t uid;		     /* owner of the file */
	size_t bytes;
	uint64_t work, work_ns;
	bool is_refused;
};

/* The most that all files together may take, however much memory there is. A web browser's debug data need 700 MB. */
#define SB_BUDGET_BYTES_MAX ((size_t)1 << 30)

/*
 * sb_budget_machine_bytes() - what symbol data of all files may take on this machine
 *
 * Three eighths of the memory that our cgroup may use, or the machine has, and never more than SB_BUDGET_BYTES_MAX. Found out at the
 * first call; call it before privileges are dropped.
 *
 * Thread: any.
 */
size_t sb_budget_machine_bytes(void);

/* Set @pool up. @bytes_max 0: sb_budget_machine_bytes(), and never more than that. */
void sb_budget_pool_init(struct sb_budget_pool *pool, size_t bytes_max);
void sb_budget_pool_release(struct sb_budget_pool *pool);

/* Open an empty budget. @pool may be NULL. */
void sb_budget_init(struct sb_budget *budget, struct sb_budget_pool *pool, uint32_t uid,
		    const char *name);

/*
 * sb_budget_charge() - ask for memory before it is allocated
 * @budget: NULL: nothing is bounded
 * @bytes: how much more
 *
 * Return: 0; -EFBIG when the file, its owner or all files together would have too much, and then nothing was charged;
 * -ENOMEM.
 */
int sb_budget_charge(struct sb_budget *budget, size_t bytes);

/* The same for a vector that is about to hold @need elements of @size bytes, and has room for @cap. */
static inline int sb_budget_charge_vec(struct sb_budget *budget, size_t need, size_t cap,
				       size_t size)
{
	size_t to = cap ? cap : 8;

	if (need <= cap)
		return 0;
	while (to < need && to <= SIZE_MAX / 4 / size)
		to *= 2;
	return sb_budget_charge(budget, (to - cap) * size);
}

/* sb_vec_push(), charged before. Return: 0, -EFBIG, -ENOMEM. */
#define sb_budget_push(budget, v, ...)                                                           \
	({                                                                                       \
		int charged_ =                                                                   \
			sb_budget_charge_vec((budget), (v)->nr + 1, (v)->cap, sizeof(*(v)->at)); \
                                                                                                 \
		charged_ ? charged_ : sb_vec_push(v, __VA_ARGS__);                               \
	})

/* The load is over, and @held bytes of what was charged are still in memory. @budget may be NULL. */
void sb_budget_settle(struct sb_budget *budget, size_t held);

/*
 * sb_budget_work() - ask for work before it is done
 * @budget: NULL: nothing is bounded
 * @units: nanoseconds of CPU time on a machine of 2020, more or less; counted, not measured, so that the same file
 *	gets equally far on each machine
 *
 * Return: 0, or -EFBIG when the bucket of the file, of its owner or of the pool is empty.
 */
int sb_budget_work(struct sb_budget *budget, uint64_t units);

/* Return: whether a refused file has work for another try: half of its bucket is full again. */
bool sb_budget_may_retry(struct sb_budget *budget);

#endif
