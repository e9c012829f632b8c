/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bounds of what one foreign file may cost: bytes of memory and units of work. Every loader charges
 * the budget of its file before it allocates or computes. A charge that does not fit fails with
 * -EFBIG, and the frames of that file then have the reason "limit". The files of one symbolizer
 * share a pool, which bounds what all files take together, and what the files of one user take.
 *
 * Bytes accumulate while a file is loaded: memory that is freed on the way is given back only when
 * sb_budget_settle() says what is still held. So a loader need not pair charges and releases, and
 * the charge is never less than the memory. Work is a token bucket that refills slowly: a file
 * that is loaded again and again, because others evict it, empties its bucket and is left alone
 * for a while.
 *
 * Order: sb_budget_pool_init(); for each file sb_budget_init(); sb_budget_charge() and
 * sb_budget_work() while it is loaded, sb_budget_settle() after each load and, with 0, when the
 * file goes; sb_budget_pool_release(). After -EFBIG a loader gives up the file or the part that it
 * was at; the same budget can be asked again.
 *
 * No pointer is NULL unless a contract says so. Thread: a budget and its pool belong to one thread
 * at a time.
 */
#ifndef SB_BUDGET_H
#define SB_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct sb_budget;

/* The budget of all files of one symbolizer; see sb_budget_pool_init(). */
struct sb_budget_pool {
	size_t bytes_max;  /* of all files; one file may take half, one user three quarters */
	uint64_t work_max; /* units in a full bucket; the files of one user may take half */
	size_t bytes, bytes_peak;
	uint64_t
		nr_refused_files; /* files refused a charge, each counted once until it is closed */
	/*
	 * Evict other files, so that @bytes more fit. It gives their memory back by
	 * sb_budget_settle(), must not touch the file that is being loaded, whose budget is @keep,
	 * and must not charge any budget. NULL: nothing can be evicted.
	 */
	void (*reclaim)(void *arg, const struct sb_budget *keep, size_t bytes);
	void *reclaim_arg;
	/* Private from here on. */
	SB_VEC(struct sb_budget_user {
		uint32_t uid;
		size_t bytes;
		uint64_t work;
	})
	users;
	uint64_t work, work_ns; /* units spent; when this and @users were last refilled */
};

/* The budget of one file. */
struct sb_budget {
	struct sb_budget_pool *pool; /* borrowed; NULL: only the bounds of one file apply */
	const char *name;	     /* borrowed, for debug messages; may be NULL */
	uint32_t uid;		     /* owner of the file; 0 has no bounds of a user */
	size_t bytes;
	uint64_t work, work_ns;
	bool is_refused;
};

/* Upper bound of all files, however much memory there is. A browser's debug data needs 700 MB. */
#define SB_BUDGET_BYTES_MAX ((size_t)1 << 30)

/*
 * Return: how many bytes of symbol data this machine can afford: three eighths of its memory or, if
 * that is less, of our cgroup's limit, and at most SB_BUDGET_BYTES_MAX. A limit that cannot be read
 * counts as none. The first call finds it out; make it before privileges are dropped. Thread: any.
 */
size_t sb_budget_machine_bytes(void);

/*
 * Overwrite @pool with an empty one; then the caller may set reclaim, reclaim_arg, and another
 * work_max than the default. @bytes_max: 0, or more than the machine affords:
 * sb_budget_machine_bytes(). The caller ends it with sb_budget_pool_release().
 */
void sb_budget_pool_init(struct sb_budget_pool *pool, size_t bytes_max);
/* Free what @pool holds; the caller owns the struct itself. Its budgets must not be used any
 * more. */
void sb_budget_pool_release(struct sb_budget_pool *pool);

/*
 * Initialize an empty budget. @pool and @name, the file's, for messages, are borrowed as long as
 * the budget is used, and may be NULL. @uid: the owner of the file, in whose part of the pool its
 * charges are. It owns nothing, but before it goes, sb_budget_settle(budget, 0) has to give its
 * charge back to the pool.
 */
void sb_budget_init(struct sb_budget *budget, struct sb_budget_pool *pool, uint32_t uid,
		    const char *name);

/**
 * sb_budget_charge() - ask for memory before it is allocated
 * @budget: NULL: there is no bound
 * @bytes: how much more
 *
 * Return: 0; -EFBIG when the file, its owner or all files together would take too much; -ENOMEM. On
 * error nothing was charged.
 */
int sb_budget_charge(struct sb_budget *budget, size_t bytes);

/*
 * Charge what a vector (base/vec.h) will grow by: it will hold @need elements of @size bytes, and
 * has room for @cap now. @budget NULL: there is no bound. Return: 0; -EFBIG when the file, its
 * owner or all files together would take too much; -ENOMEM. On error nothing was charged.
 */
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

/* Charge the budget (NULL: no bound), then sb_vec_push(). Return: 0; -EFBIG, -ENOMEM: not pushed,
 * but perhaps charged. */
#define sb_budget_push(budget, v, ...)                                                           \
	({                                                                                       \
		int charged_ =                                                                   \
			sb_budget_charge_vec((budget), (v)->nr + 1, (v)->cap, sizeof(*(v)->at)); \
                                                                                                 \
		charged_ ? charged_ : sb_vec_push(v, __VA_ARGS__);                               \
	})

/*
 * End a load: @held bytes of what was charged are still in memory, the rest is given back to the
 * file, its owner and the pool. If @held is more than was charged, nothing changes. @budget may be
 * NULL.
 */
void sb_budget_settle(struct sb_budget *budget, size_t held);

/**
 * sb_budget_work() - ask for work before it is done
 * @budget: NULL: there is no bound
 * @units: about the nanoseconds of CPU time that it takes on a machine of 2020. They are counted,
 *	not measured, so that loading a file gets equally far on every machine.
 *
 * Return: 0; -EFBIG, and nothing was charged, when the bucket of the file, of its owner or of the
 * pool has less left, or 300 ms after sb_budget_hurry().
 */
int sb_budget_work(struct sb_budget *budget, uint64_t units);

/*
 * The run is about to end: 300 ms from now all budgets of the process refuse work, so files that
 * are not loaded by then have no names. A pending SIGINT or SIGTERM (threads have them blocked)
 * has the same effect. Thread: any.
 */
void sb_budget_hurry(void);

/*
 * Return: whether a file that sb_budget_work() refused has enough work for another try: its own
 * bucket, its owner's and the pool's are half full again. After sb_budget_hurry() this may still be
 * true, but all work is refused. @budget: not NULL.
 */
bool sb_budget_may_retry(struct sb_budget *budget);

#endif
