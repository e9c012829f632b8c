// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/churn.h"

#include "base/index.h"
#include "base/time.h"

/* Entries looked at for a process. */
#define NR_PROBES 8u

/*
 * A bucket is one number: the time at which it will be full again. Return: how many it lacks at
 * @time_ns.
 */
static uint64_t lack_of(uint64_t full_ns, uint64_t time_ns, uint64_t per_sec)
{
	return full_ns > time_ns ? (full_ns - time_ns) / (SB_NS_PER_SEC / per_sec) : 0;
}

static void take_one(uint64_t *full_ns, uint64_t time_ns, uint64_t per_sec)
{
	*full_ns = (*full_ns > time_ns ? *full_ns : time_ns) + SB_NS_PER_SEC / per_sec;
}

/* Return: the entry of @tgid, perhaps one that others needed less, or NULL. */
static struct sb_churn_proc *find(struct sb_churn *churn, uint32_t tgid)
{
	uint64_t hash = sb_hash(&tgid, sizeof(tgid), 0);
	struct sb_churn_proc *proc, *least = NULL;
	uint32_t i;

	for (i = 0; i < NR_PROBES; i++) {
		proc = &churn->procs[(hash + i) % SB_CHURN_PROCS_MAX];
		if (proc->skip.tgid == tgid && proc->full_ns)
			return proc;
		if (!proc->skip.last_ns && (!least || proc->full_ns < least->full_ns))
			least = proc;
	}
	if (least)
		*least = (struct sb_churn_proc){ .skip.tgid = tgid };
	return least;
}

/* A process may change its user, so the answer is believed for a second. */
static void ask_for_user(struct sb_churn *churn, struct sb_churn_proc *proc, uint64_t time_ns)
{
	if (time_ns < proc->uid_until_ns)
		return;
	proc->uid = SB_CHURN_NOBODY;
	proc->uid_until_ns = time_ns + SB_NS_PER_SEC;
	if (lack_of(churn->ask_full_ns, time_ns, SB_CHURN_ASK_PER_SEC) >= SB_CHURN_ASK_PER_SEC)
		return;
	take_one(&churn->ask_full_ns, time_ns, SB_CHURN_ASK_PER_SEC);
	proc->uid = churn->uid_of(proc->skip.tgid);
}

/* Return: the bucket of a user, perhaps one that others needed less. */
static uint64_t *bucket_of(struct sb_churn *churn, uint32_t uid)
{
	struct sb_churn_user *user, *least = churn->users;

	for (user = churn->users; user < churn->users + SB_CHURN_USERS_MAX; user++) {
		if (user->uid == uid && user->full_ns)
			return &user->full_ns;
		if (user->full_ns < least->full_ns)
			least = user;
	}
	*least = (struct sb_churn_user){ .uid = uid };
	return &least->full_ns;
}

/* Take one from the bucket of all. Return: whether there was one, and the user might have it. */
static bool take_of_all(struct sb_churn *churn, struct sb_churn_proc *proc, uint64_t time_ns)
{
	uint64_t lack = lack_of(churn->all_full_ns, time_ns, SB_CHURN_ALL_PER_SEC), *full_ns;

	if (lack >= SB_CHURN_ALL_BURST)
		return false;
	if (churn->uid_of && lack >= SB_CHURN_ALL_BURST / 4 * 3) {
		ask_for_user(churn, proc, time_ns);
		full_ns = proc->uid ? bucket_of(churn, proc->uid) : NULL;
		if (full_ns &&
		    lack_of(*full_ns, time_ns, SB_CHURN_USER_PER_SEC) >= SB_CHURN_USER_BURST)
			return false;
		if (full_ns)
			take_one(full_ns, time_ns, SB_CHURN_USER_PER_SEC);
	}
	take_one(&churn->all_full_ns, time_ns, SB_CHURN_ALL_PER_SEC);
	return true;
}

/* Return: whether one more record is looked at; it is taken from its buckets then. */
static bool take(struct sb_churn *churn, struct sb_churn_proc *proc, uint64_t time_ns)
{
	if (lack_of(proc->full_ns, time_ns, SB_CHURN_PER_SEC) >= SB_CHURN_BURST)
		return false;
	if (!take_of_all(churn, proc, time_ns)) {
		if (lack_of(proc->little_full_ns, time_ns, SB_CHURN_LITTLE_PER_SEC) >=
			    SB_CHURN_LITTLE ||
		    lack_of(churn->all_little_full_ns, time_ns, SB_CHURN_ALL_PER_SEC) >=
			    SB_CHURN_ALL_BURST)
			return false;
		take_one(&proc->little_full_ns, time_ns, SB_CHURN_LITTLE_PER_SEC);
		take_one(&churn->all_little_full_ns, time_ns, SB_CHURN_ALL_PER_SEC);
	}
	take_one(&proc->full_ns, time_ns, SB_CHURN_PER_SEC);
	return true;
}

static enum sb_churn_verdict skip(struct sb_churn *churn, struct sb_churn_proc *proc,
				  uint64_t time_ns)
{
	bool is_first = !proc->is_told;

	if (!proc->skip.last_ns) {
		if (sb_vec_push(&churn->skipping, (uint32_t)(proc - churn->procs)))
			return SB_CHURN_LOST;
		proc->skip.first_ns = proc->skip.last_ns = time_ns;
	}
	if (time_ns < proc->skip.first_ns)
		proc->skip.first_ns = time_ns;
	if (time_ns > proc->skip.last_ns)
		proc->skip.last_ns = time_ns;
	proc->skip.nr++;
	churn->nr_procs += !proc->is_counted;
	proc->is_counted = proc->is_told = true;
	return is_first ? SB_CHURN_SKIP_FIRST : SB_CHURN_SKIP;
}

enum sb_churn_verdict sb_churn_judge(struct sb_churn *churn, uint32_t tgid, uint64_t time_ns)
{
	struct sb_churn_proc *proc = find(churn, tgid);
	enum sb_churn_verdict verdict = SB_CHURN_LOST;

	if (proc && take(churn, proc, time_ns))
		return SB_CHURN_TAKE;
	if (proc)
		verdict = skip(churn, proc, time_ns);
	churn->nr_skipped += verdict != SB_CHURN_LOST;
	return verdict;
}

void sb_churn_round(struct sb_churn *churn)
{
	size_t i;

	for (i = 0; i < churn->skipping.nr; i++)
		churn->procs[churn->skipping.at[i]].is_told = false;
}

int sb_churn_take(struct sb_churn *churn, int (*fn)(void *arg, struct sb_churn_skip *skip),
		  void *arg)
{
	size_t i;
	int err = 0;

	for (i = 0; i < churn->skipping.nr; i++) {
		struct sb_churn_proc *proc = &churn->procs[churn->skipping.at[i]];

		err = err ? err : fn(arg, &proc->skip);
		proc->skip.first_ns = proc->skip.last_ns = proc->skip.nr = 0;
		proc->is_told = false;
	}
	churn->skipping.nr = 0;
	return err;
}

void sb_churn_release(struct sb_churn *churn)
{
	sb_vec_release(&churn->skipping);
}
