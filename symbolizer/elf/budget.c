// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/elf/budget.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/time.h"

/* The rest is for unwind tables, BPF maps, the profile, and the processes that parse files. */
#define share_of_machine(n) ((n) / 8 * 3)
#define share_of_file(n)    ((n) / 2)
/* Whatever one user does, a quarter is left to others. Root may use all of it. */
#define share_of_user(n)    ((n) / 4 * 3)
/* The most work that one file may cause at once. Loading all symbols of a web browser takes a third
 * of it. */
#define FILE_WORK_MAX	    (3ull * SB_NS_PER_SEC)
/* Enough for all programs of a big machine, which are loaded when a run begins. */
#define POOL_WORK_MAX	    (12ull * SB_NS_PER_SEC)
/*
 * Loading may continue so long after a signal that ends the run; the signal is checked after so
 * much work.
 */
#define HURRY_NS	    (300ull * SB_NS_PER_MS)
#define LOOK_WORK	    (20ull * SB_NS_PER_MS)
/* Time until one unit is refilled. In the long run a file can cost 2 % of a CPU, all files 6 %. */
#define FILE_REFILL_NS	    50u
#define POOL_REFILL_NS	    16u

static size_t machine_bytes;

static void find_machine_bytes(void)
{
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), limit;
	uint64_t bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);

	if (!sb_cgroup_memory_max(&limit) && limit < bytes)
		bytes = limit;
	bytes = share_of_machine(bytes);
	machine_bytes = bytes < SB_BUDGET_BYTES_MAX ? (size_t)bytes : SB_BUDGET_BYTES_MAX;
}

size_t sb_budget_machine_bytes(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, find_machine_bytes);
	return machine_bytes;
}

void sb_budget_pool_init(struct sb_budget_pool *pool, size_t bytes_max)
{
	size_t most = sb_budget_machine_bytes();

	*pool = (struct sb_budget_pool){
		.bytes_max = bytes_max && bytes_max < most ? bytes_max : most,
		.work_max = POOL_WORK_MAX,
		.work_ns = sb_now_ns(),
	};
}

void sb_budget_pool_release(struct sb_budget_pool *pool)
{
	sb_vec_release(&pool->users);
}

void sb_budget_init(struct sb_budget *budget, struct sb_budget_pool *pool, uint32_t uid,
		    const char *name)
{
	*budget = (struct sb_budget){
		.pool = pool,
		.uid = uid,
		.name = name,
		.work_ns = sb_now_ns(),
	};
}

/* Users with files in memory are few. Return: the user's entry, or NULL when there is none and @add
 * is not set, or without memory. */
static struct sb_budget_user *find_user(struct sb_budget_pool *pool, uint32_t uid, bool add)
{
	size_t i;

	for (i = 0; i < pool->users.nr; i++)
		if (pool->users.at[i].uid == uid)
			return &pool->users.at[i];
	if (!add || sb_vec_push(&pool->users, (struct sb_budget_user){ .uid = uid }))
		return NULL;
	return &pool->users.at[pool->users.nr - 1];
}

static void note_refusal(struct sb_budget *budget, const char *what)
{
	if (budget->is_refused)
		return;
	budget->is_refused = true;
	if (budget->pool)
		budget->pool->nr_refused_files++;
	sb_debug("parsing '%s' exceeds the limit of %s for a file; skipping the rest of it",
		 budget->name ? budget->name : "a file", what);
}

static bool fits(size_t have, size_t more, size_t max)
{
	return have <= max && more <= max - have;
}

static int charge_pool(struct sb_budget *budget, size_t bytes)
{
	struct sb_budget_pool *pool = budget->pool;
	struct sb_budget_user *user = find_user(pool, budget->uid, true);

	if (!user)
		return -ENOMEM;
	if (!fits(pool->bytes, bytes, pool->bytes_max) && pool->reclaim) {
		pool->reclaim(pool->reclaim_arg, budget, bytes);
		user = find_user(pool, budget->uid, true);
	}
	if (!user)
		return -ENOMEM;
	if (!fits(pool->bytes, bytes, pool->bytes_max) ||
	    (budget->uid && !fits(user->bytes, bytes, share_of_user(pool->bytes_max))))
		return -EFBIG;
	user->bytes += bytes;
	pool->bytes += bytes;
	if (pool->bytes > pool->bytes_peak)
		pool->bytes_peak = pool->bytes;
	return 0;
}

int sb_budget_charge(struct sb_budget *budget, size_t bytes)
{
	size_t all;
	int err = 0;

	if (!budget)
		return 0;
	all = budget->pool ? budget->pool->bytes_max : sb_budget_machine_bytes();
	if (!fits(budget->bytes, bytes, share_of_file(all)))
		err = -EFBIG;
	if (!err && budget->pool)
		err = charge_pool(budget, bytes);
	if (!err)
		budget->bytes += bytes;
	else if (err == -EFBIG)
		note_refusal(budget, "memory");
	return err;
}

void sb_budget_settle(struct sb_budget *budget, size_t held)
{
	struct sb_budget_user *user;
	size_t freed;

	if (!budget || held >= budget->bytes)
		return;
	freed = budget->bytes - held;
	budget->bytes = held;
	if (!budget->pool)
		return;
	budget->pool->bytes -= freed;
	user = find_user(budget->pool, budget->uid, false);
	if (user)
		user->bytes -= freed;
}

/* Return: how much of a bucket is spent after @passed_ns. */
static uint64_t refilled(uint64_t work, uint64_t passed_ns, uint32_t refill_ns)
{
	uint64_t back = passed_ns / refill_ns;

	return work > back ? work - back : 0;
}

/* Refill the buckets of the pool and its users. A user without charges is forgotten. */
static void refill_pool(struct sb_budget_pool *pool, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - pool->work_ns;
	struct sb_budget_user *user;
	size_t i;

	pool->work = refilled(pool->work, passed_ns, POOL_REFILL_NS);
	pool->work_ns = now_ns;
	for (i = pool->users.nr; i-- > 0;) {
		user = &pool->users.at[i];
		user->work = refilled(user->work, passed_ns, 2 * POOL_REFILL_NS);
		if (!user->work && !user->bytes)
			*user = pool->users.at[--pool->users.nr];
	}
}

static void refill(struct sb_budget *budget)
{
	struct sb_budget_pool *pool = budget->pool;
	uint64_t now_ns = sb_now_ns();

	budget->work = refilled(budget->work, now_ns - budget->work_ns, FILE_REFILL_NS);
	budget->work_ns = now_ns;
	if (!pool)
		return;
	refill_pool(pool, now_ns);
}

static bool has_work(const struct sb_budget *budget, const struct sb_budget_user *user,
		     uint64_t units)
{
	const struct sb_budget_pool *pool = budget->pool;

	if (budget->work > FILE_WORK_MAX || units > FILE_WORK_MAX - budget->work)
		return false;
	if (pool && (pool->work > pool->work_max || units > pool->work_max - pool->work))
		return false;
	return !user || !user->uid ||
	       (user->work <= pool->work_max / 2 && units <= pool->work_max / 2 - user->work);
}

/*
 * When all budgets stop granting work, because the run is about to end; 0: it is not. Atomic,
 * shared by all threads.
 */
static uint64_t last_work_ns;

void sb_budget_hurry(void)
{
	uint64_t none = 0;

	(void)__atomic_compare_exchange_n(&last_work_ns, &none, sb_now_ns() + HURRY_NS, false,
					  __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/*
 * Check for a pending signal, which threads have blocked. It is a system call, so it is done
 * rarely.
 */
static void look_for_signal(uint64_t units)
{
	static uint64_t unlooked; /* atomic, of all threads */
	sigset_t pending;

	if (__atomic_add_fetch(&unlooked, units, __ATOMIC_RELAXED) < LOOK_WORK)
		return;
	__atomic_store_n(&unlooked, 0, __ATOMIC_RELAXED);
	if (!sigpending(&pending) &&
	    (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1))
		sb_budget_hurry();
}

static bool is_too_late(uint64_t units)
{
	uint64_t last_ns = __atomic_load_n(&last_work_ns, __ATOMIC_RELAXED);

	if (last_ns)
		return sb_now_ns() > last_ns;
	look_for_signal(units);
	return false;
}

int sb_budget_work(struct sb_budget *budget, uint64_t units)
{
	struct sb_budget_user *user = NULL;

	if (!budget)
		return 0;
	if (is_too_late(units)) {
		note_refusal(budget, "time at the end of the run");
		return -EFBIG;
	}
	if (budget->pool)
		user = find_user(budget->pool, budget->uid, true);
	/* The clock is read only when a bucket seems to be empty. */
	if (!has_work(budget, user, units)) {
		refill(budget);
		user = budget->pool ? find_user(budget->pool, budget->uid, true) : NULL;
		if (!has_work(budget, user, units)) {
			note_refusal(budget, "work");
			return -EFBIG;
		}
	}
	budget->work += units;
	if (user)
		user->work += units;
	if (budget->pool)
		budget->pool->work += units;
	return 0;
}

bool sb_budget_may_retry(struct sb_budget *budget)
{
	const struct sb_budget_pool *pool = budget->pool;
	const struct sb_budget_user *user;

	refill(budget);
	user = pool ? find_user(budget->pool, budget->uid, false) : NULL;
	return budget->work <= FILE_WORK_MAX / 2 && (!pool || pool->work <= pool->work_max / 2) &&
	       (!user || !user->uid || user->work <= pool->work_max / 4);
}
