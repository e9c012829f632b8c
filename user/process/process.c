// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes are in hash buckets by tgid, so that one short search answers both questions that are
 * asked: the address space of a key, and the current process of a tgid. A list in the order of use
 * says which one is forgotten first at the bound. The method is that of the process manager of
 * OpenTelemetry's profiler: one map of processes, events that end them, and one call that drops
 * what no sample can refer to any more.
 */
#include "process/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/time.h"
#include "base/vec.h"

/* A power of two; tgids are given out one after the other. */
#define BUCKETS	    16384u
/* Processes looked at to make room for one: those with references are passed over. */
#define EVICT_STEPS 64u
/* Values destroyed at a time. */
#define TAKEN_MAX   256u

struct sb_space {
	struct sb_space_key key;
	struct process *process;
	struct sb_space *older; /* of the process, or the next one to be destroyed */
	uint32_t nr_refs;
	uint64_t seen_ns,
		used_ns;   /* seen: when it lived for sure; used: when it was looked up last */
	uint64_t ended_ns; /* 0: it has not */
	void *slot[SB_SLOT_MAX];
};

/* From fork to exit. It stays while it lives, if only to be known as counted. */
struct process {
	uint32_t tgid;
	uint64_t start_ns, seen_ns; /* seen: when it lived for sure */
	uint64_t ended_ns;	    /* 0: it has not */
	uint32_t marks;
	struct sb_space *newest;
	struct process *next; /* in the bucket */
	TAILQ_ENTRY(process) used;
};

struct sb_processes {
	size_t nr_max;
	struct {
		void (*destroy)(void *arg, void *value);
		void *arg;
	} owner[SB_SLOT_MAX];

	pthread_mutex_t lock; /* of everything below */
	struct bucket {
		struct process *first;
		/* What exited last: samples of a process that lived for some ms come after the
		 * record of its end. */
		uint32_t exited_tgid;
		uint64_t exited_ns;
	} buckets[BUCKETS];
	TAILQ_HEAD(process_list, process) used; /* the one used last comes first */
	struct sb_space *garbage;		/* unlinked, to be destroyed without the lock */
	uint64_t nr_processes, sweep_at;
	struct sb_processes_stats stats;
};

/* So many processes, and those that live are looked up in /proc. Looking at those that stay costs
 * less than making a quarter of them. */
static uint64_t next_sweep(const struct sb_processes *processes)
{
	uint64_t nr = processes->nr_processes, least = processes->nr_max / 16;

	return nr + (nr / 4 > least ? nr / 4 : least);
}

int sb_processes_new(const struct sb_processes_opts *opts, struct sb_processes **ret_processes)
{
	struct sb_processes *processes = calloc(1, sizeof(*processes));

	if (!processes)
		return -ENOMEM;
	processes->nr_max = opts && opts->nr_max ? opts->nr_max : SB_PROCESSES_MAX;
	processes->sweep_at = next_sweep(processes);
	pthread_mutex_init(&processes->lock, NULL);
	TAILQ_INIT(&processes->used);
	*ret_processes = processes;
	return 0;
}

/* Without the lock: nobody can find it any more. */
static void destroy_spaces(struct sb_processes *processes, struct sb_space *space)
{
	struct sb_space *next;
	int i;

	for (; space; space = next) {
		next = space->older;
		for (i = 0; i < SB_SLOT_MAX; i++)
			if (space->slot[i] && processes->owner[i].destroy)
				processes->owner[i].destroy(processes->owner[i].arg,
							    space->slot[i]);
		free(space);
	}
}

static void destroy_garbage(struct sb_processes *processes)
{
	struct sb_space *garbage;

	pthread_mutex_lock(&processes->lock);
	garbage = processes->garbage;
	processes->garbage = NULL;
	pthread_mutex_unlock(&processes->lock);
	destroy_spaces(processes, garbage);
}

void sb_processes_own(struct sb_processes *processes, enum sb_space_slot slot,
		      void (*destroy)(void *arg, void *value), void *arg)
{
	processes->owner[slot].destroy = destroy;
	processes->owner[slot].arg = arg;
}

/* Values on their way to their destructors, which are called without the lock. */
struct taken {
	struct {
		enum sb_space_slot slot;
		void *value;
	} at[TAKEN_MAX];
	size_t nr;
};

static void take_values(struct sb_processes *processes, struct sb_space *space, uint32_t slots,
			struct taken *taken)
{
	uint32_t i;

	for (i = 0; i < SB_SLOT_MAX && taken->nr < TAKEN_MAX; i++) {
		if (!(slots >> i & 1) || !space->slot[i] || !processes->owner[i].destroy)
			continue;
		taken->at[taken->nr].slot = i;
		taken->at[taken->nr++].value = sb_take(space->slot[i]);
	}
}

static bool is_over(const struct sb_space *space, uint64_t before_ns)
{
	return space->ended_ns && space->ended_ns < before_ns && space->used_ns < before_ns;
}

/* Empty @slots (bits) of those that are over by @before_ns, 0: of all. */
static void empty_slots(struct sb_processes *processes, uint32_t slots, uint64_t before_ns)
{
	struct process *process;
	struct sb_space *space;
	struct taken taken;
	size_t i;

	do {
		taken.nr = 0;
		pthread_mutex_lock(&processes->lock);
		TAILQ_FOREACH(process, &processes->used, used)
		for (space = process->newest; space; space = space->older)
			if (!before_ns || is_over(space, before_ns))
				take_values(processes, space, slots, &taken);
		pthread_mutex_unlock(&processes->lock);
		for (i = 0; i < taken.nr; i++)
			processes->owner[taken.at[i].slot].destroy(
				processes->owner[taken.at[i].slot].arg, taken.at[i].value);
	} while (taken.nr == TAKEN_MAX);
}

void sb_processes_disown(struct sb_processes *processes, enum sb_space_slot slot)
{
	destroy_garbage(processes);
	empty_slots(processes, 1u << slot, 0);
	sb_processes_own(processes, slot, NULL, NULL);
}

/* With the lock from here on. */

static struct bucket *bucket_of(struct sb_processes *processes, uint32_t tgid)
{
	return &processes->buckets[tgid % BUCKETS];
}

static struct process *find_process(struct sb_processes *processes, const struct sb_space_key *key)
{
	struct process *process = bucket_of(processes, key->tgid)->first;

	while (process && (process->tgid != key->tgid || process->start_ns != key->start_ns))
		process = process->next;
	return process;
}

static struct sb_space *find_space(const struct process *process, uint32_t exec_id)
{
	struct sb_space *space = process ? process->newest : NULL;

	while (space && space->key.exec_id != exec_id)
		space = space->older;
	return space;
}

static void end_space(struct sb_space *space, uint64_t time_ns)
{
	if (!space->ended_ns)
		space->ended_ns = time_ns;
}

static void end_process(struct process *process, uint64_t time_ns)
{
	struct sb_space *space;

	if (!process->ended_ns)
		process->ended_ns = time_ns;
	for (space = process->newest; space; space = space->older)
		end_space(space, time_ns);
}

/* @link: what points to it. It has no reference. */
static void unlink_space(struct sb_processes *processes, struct sb_space **link)
{
	struct sb_space *space = *link;

	*link = space->older;
	space->older = processes->garbage;
	processes->garbage = space;
	processes->stats.nr_spaces--;
}

static void free_process(struct sb_processes *processes, struct process *process)
{
	struct process **link = &bucket_of(processes, process->tgid)->first;

	while (*link != process)
		link = &(*link)->next;
	*link = process->next;
	TAILQ_REMOVE(&processes->used, process, used);
	processes->nr_processes--;
	free(process);
}

/* Return: whether all of it is gone. */
static bool evict(struct sb_processes *processes, struct process *process)
{
	struct sb_space **link = &process->newest;

	while (*link) {
		if ((*link)->nr_refs) {
			link = &(*link)->older;
			continue;
		}
		unlink_space(processes, link);
		processes->stats.nr_forgotten++;
	}
	if (process->newest)
		return false;
	free_process(processes, process);
	return true;
}

/*
 * Room for one more of @nr, without losing @keep. Destructors wait for sb_processes_forget():
 * whoever asks may hold a lock that they take.
 */
static int make_room(struct sb_processes *processes, const uint64_t *nr, const struct process *keep)
{
	struct process *process, *before;
	uint32_t nr_steps = EVICT_STEPS;

	for (process = TAILQ_LAST(&processes->used, process_list);
	     process && nr_steps && *nr >= processes->nr_max; process = before, nr_steps--) {
		before = TAILQ_PREV(process, process_list, used);
		if (process == keep || evict(processes, process))
			continue;
		TAILQ_REMOVE(&processes->used, process, used);
		TAILQ_INSERT_HEAD(&processes->used, process, used);
	}
	if (*nr < processes->nr_max)
		return 0;
	processes->stats.nr_refused++;
	return -E2BIG;
}

static bool has_successor(const struct bucket *bucket, const struct process *process)
{
	const struct process *other = bucket->first;

	while (other && (other->tgid != process->tgid || other->start_ns <= process->start_ns))
		other = other->next;
	return other;
}

/* A tgid has one process at a time: the earlier ones have ended, and so has one that began before
 * the last exit. */
static void find_ended(const struct bucket *bucket, struct process *new, uint64_t now_ns)
{
	uint64_t asleep_ns = sb_boot_ns() - now_ns;
	struct process *process;

	if (has_successor(bucket, new) ||
	    (bucket->exited_tgid ==
	     new->tgid &&new->start_ns > asleep_ns &&new->start_ns - asleep_ns < bucket->exited_ns))
		end_process(new, now_ns);
	for (process = bucket->first; process; process = process->next)
		if (process->tgid == new->tgid && process->start_ns < new->start_ns)
			end_process(process, now_ns);
}

static int get_process(struct sb_processes *processes, const struct sb_space_key *key,
		       uint64_t now_ns, struct process **ret_process)
{
	struct bucket *bucket = bucket_of(processes, key->tgid);
	struct process *process;
	int err;

	process = find_process(processes, key);
	if (process) {
		TAILQ_REMOVE(&processes->used, process, used);
	} else {
		err = make_room(processes, &processes->nr_processes, NULL);
		if (err)
			return err;
		process = calloc(1, sizeof(*process));
		if (!process)
			return -ENOMEM;
		process->tgid = key->tgid;
		process->start_ns = key->start_ns;
		process->seen_ns = now_ns;
		process->next = bucket->first;
		bucket->first = process;
		processes->nr_processes++;
		find_ended(bucket, process, now_ns);
	}
	TAILQ_INSERT_HEAD(&processes->used, process, used);
	*ret_process = process;
	return 0;
}

/* They are in the order of their exec_id; what is not the first has ended. */
static int make_space(struct sb_processes *processes, struct process *process, uint32_t exec_id,
		      uint64_t now_ns, struct sb_space **ret_space)
{
	struct sb_space **link = &process->newest, *space;
	int err = make_room(processes, &processes->stats.nr_spaces, process);

	if (err)
		return err;
	space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	space->key = (struct sb_space_key){ process->start_ns, process->tgid, exec_id };
	space->process = process;
	space->seen_ns = now_ns;
	if (*link && (*link)->key.exec_id < exec_id)
		end_space(*link, now_ns);
	while (*link && (*link)->key.exec_id > exec_id)
		link = &(*link)->older;
	if (link != &process->newest || process->ended_ns)
		space->ended_ns = now_ns;
	space->older = *link;
	*link = space;
	processes->stats.nr_spaces++;
	*ret_space = space;
	return 0;
}

static int get_space(struct sb_processes *processes, const struct sb_space_key *key,
		     struct sb_space **ret_space)
{
	uint64_t now_ns = sb_now_ns();
	struct process *process;
	struct sb_space *space;
	int err = get_process(processes, key, now_ns, &process);

	if (err)
		return err;
	space = find_space(process, key->exec_id);
	if (!space)
		err = make_space(processes, process, key->exec_id, now_ns, &space);
	if (err) {
		if (!process->newest)
			free_process(processes, process);
		return err;
	}
	space->nr_refs++;
	space->used_ns = now_ns;
	*ret_space = space;
	return 0;
}

/* Without it again. */

int sb_processes_get(struct sb_processes *processes, const struct sb_space_key *key,
		     struct sb_space **ret_space)
{
	int err;

	pthread_mutex_lock(&processes->lock);
	err = get_space(processes, key, ret_space);
	pthread_mutex_unlock(&processes->lock);
	return err;
}

void sb_processes_put(struct sb_processes *processes, struct sb_space *space)
{
	if (!space)
		return;
	pthread_mutex_lock(&processes->lock);
	space->nr_refs--;
	pthread_mutex_unlock(&processes->lock);
}

const struct sb_space_key *sb_space_key(const struct sb_space *space)
{
	return &space->key;
}

void sb_space_set(struct sb_processes *processes, struct sb_space *space, enum sb_space_slot slot,
		  void *value)
{
	pthread_mutex_lock(&processes->lock);
	space->slot[slot] = value;
	pthread_mutex_unlock(&processes->lock);
}

void *sb_processes_find(struct sb_processes *processes, const struct sb_space_key *key,
			enum sb_space_slot slot)
{
	const struct sb_space *space;
	void *value;

	pthread_mutex_lock(&processes->lock);
	space = find_space(find_process(processes, key), key->exec_id);
	value = space ? space->slot[slot] : NULL;
	pthread_mutex_unlock(&processes->lock);
	return value;
}

void *sb_processes_take(struct sb_processes *processes, const struct sb_space_key *key,
			enum sb_space_slot slot)
{
	struct sb_space *space;
	void *value = NULL;

	pthread_mutex_lock(&processes->lock);
	space = find_space(find_process(processes, key), key->exec_id);
	if (space)
		value = sb_take(space->slot[slot]);
	pthread_mutex_unlock(&processes->lock);
	return value;
}

void *sb_processes_of(struct sb_processes *processes, uint32_t tgid, enum sb_space_slot slot)
{
	const struct process *process;
	const struct sb_space *space;
	void *value = NULL;

	pthread_mutex_lock(&processes->lock);
	for (process = bucket_of(processes, tgid)->first; process && !value;
	     process = process->next)
		for (space = process->tgid == tgid ? process->newest : NULL; space && !value;
		     space = space->older)
			value = space->slot[slot];
	pthread_mutex_unlock(&processes->lock);
	return value;
}

bool sb_processes_knows(struct sb_processes *processes, uint32_t tgid)
{
	const struct process *process;

	pthread_mutex_lock(&processes->lock);
	process = bucket_of(processes, tgid)->first;
	while (process && process->tgid != tgid)
		process = process->next;
	pthread_mutex_unlock(&processes->lock);
	return process;
}

bool sb_processes_has_ended(struct sb_processes *processes, const struct sb_space_key *key)
{
	const struct sb_space *space;
	bool has_ended;

	pthread_mutex_lock(&processes->lock);
	space = find_space(find_process(processes, key), key->exec_id);
	has_ended = space && space->ended_ns;
	pthread_mutex_unlock(&processes->lock);
	return has_ended;
}

void sb_processes_each(struct sb_processes *processes, enum sb_space_slot slot,
		       void (*fn)(void *arg, void *value, uint64_t ended_ns), void *arg)
{
	const struct process *process;
	const struct sb_space *space;

	pthread_mutex_lock(&processes->lock);
	TAILQ_FOREACH(process, &processes->used, used)
	for (space = process->newest; space; space = space->older)
		if (space->slot[slot])
			fn(arg, space->slot[slot], space->ended_ns);
	pthread_mutex_unlock(&processes->lock);
}

int sb_processes_mark(struct sb_processes *processes, const struct sb_space_key *key, uint32_t bit)
{
	struct process *process;
	struct sb_space *space;
	int ret;

	pthread_mutex_lock(&processes->lock);
	ret = get_space(processes, key, &space);
	if (!ret) {
		space->nr_refs--;
		process = space->process;
		ret = !(process->marks >> bit & 1);
		process->marks |= 1u << bit;
	}
	pthread_mutex_unlock(&processes->lock);
	return ret;
}

/* Events. What was made after the time of one is of a successor that somebody saw before the
 * event. */

static void end_spaces(struct sb_processes *processes, uint32_t tgid, uint64_t time_ns,
		       bool is_exit)
{
	struct bucket *bucket = bucket_of(processes, tgid);
	struct process *process;
	struct sb_space *space;

	pthread_mutex_lock(&processes->lock);
	if (is_exit) {
		bucket->exited_tgid = tgid;
		bucket->exited_ns = time_ns;
	}
	for (process = bucket->first; process; process = process->next) {
		if (process->tgid != tgid)
			continue;
		if (is_exit && process->seen_ns < time_ns && !process->ended_ns)
			process->ended_ns = time_ns;
		for (space = process->newest; space; space = space->older)
			if (space->seen_ns < time_ns)
				end_space(space, time_ns);
	}
	pthread_mutex_unlock(&processes->lock);
}

void sb_processes_exec(struct sb_processes *processes, uint32_t tgid, uint64_t time_ns)
{
	end_spaces(processes, tgid, time_ns, false);
}

void sb_processes_exit(struct sb_processes *processes, uint32_t tgid, uint64_t time_ns)
{
	end_spaces(processes, tgid, time_ns, true);
}

void sb_processes_alive(struct sb_processes *processes, const struct sb_space_key *key)
{
	uint64_t now_ns = sb_now_ns();
	struct process *process;

	pthread_mutex_lock(&processes->lock);
	process = find_process(processes, key);
	if (process && process->newest && process->newest->key.exec_id == key->exec_id &&
	    !has_successor(bucket_of(processes, key->tgid), process)) {
		process->seen_ns = process->newest->seen_ns = now_ns;
		process->ended_ns = process->newest->ended_ns = 0;
	}
	pthread_mutex_unlock(&processes->lock);
}

void sb_processes_end(struct sb_processes *processes, const struct sb_space_key *key)
{
	struct sb_space *space;

	pthread_mutex_lock(&processes->lock);
	space = find_space(find_process(processes, key), key->exec_id);
	if (space)
		end_space(space, sb_now_ns());
	pthread_mutex_unlock(&processes->lock);
}

/* Forgetting. */

typedef SB_VEC(struct sb_space_key) key_list;

/* Return: those whose end may have been missed. Without memory there are fewer. */
static key_list list_living(struct sb_processes *processes)
{
	const struct process *process;
	key_list keys = {};

	pthread_mutex_lock(&processes->lock);
	TAILQ_FOREACH(process, &processes->used, used)
	{
		const struct sb_space_key key = { process->start_ns, process->tgid, 0 };

		/* 0: the kernel's idle tasks. */
		if (!process->ended_ns && process->tgid && sb_vec_push(&keys, key))
			break;
	}
	pthread_mutex_unlock(&processes->lock);
	return keys;
}

/* Find processes whose record of the end was lost. A tgid that was given out again is taken for
 * alive; when the new process is asked for, the old one has ended. */
static void sweep(struct sb_processes *processes)
{
	key_list keys = list_living(processes);
	uint64_t now_ns = sb_now_ns();
	struct process *process;
	char path[32];
	size_t i;

	for (i = 0; i < keys.nr; i++) {
		snprintf(path, sizeof(path), "/proc/%u", keys.at[i].tgid);
		if (sb_can_access(path, F_OK))
			continue;
		pthread_mutex_lock(&processes->lock);
		process = find_process(processes, &keys.at[i]);
		if (process)
			end_process(process, now_ns);
		pthread_mutex_unlock(&processes->lock);
	}
	sb_vec_release(&keys);
}

static void forget_of(struct sb_processes *processes, struct process *process, uint64_t before_ns)
{
	struct sb_space **link = &process->newest, *space;

	while ((space = *link)) {
		if (is_over(space, before_ns) && !space->nr_refs)
			unlink_space(processes, link);
		else
			link = &space->older;
	}
	if (!process->newest && process->ended_ns && process->ended_ns < before_ns)
		free_process(processes, process);
}

void sb_processes_forget(struct sb_processes *processes, uint64_t before_ns)
{
	struct process *process, *next;
	bool is_due;

	if (before_ns)
		empty_slots(processes, UINT32_MAX, before_ns);
	pthread_mutex_lock(&processes->lock);
	for (process = TAILQ_FIRST(&processes->used); process; process = next) {
		next = TAILQ_NEXT(process, used);
		forget_of(processes, process, before_ns);
	}
	is_due = processes->nr_processes >= processes->sweep_at;
	if (is_due || processes->sweep_at > next_sweep(processes))
		processes->sweep_at = next_sweep(processes);
	pthread_mutex_unlock(&processes->lock);
	destroy_garbage(processes);
	if (is_due)
		sweep(processes);
}

void sb_processes_stats(struct sb_processes *processes, struct sb_processes_stats *ret_stats)
{
	pthread_mutex_lock(&processes->lock);
	*ret_stats = processes->stats;
	pthread_mutex_unlock(&processes->lock);
}

void sb_processes_free(struct sb_processes *processes)
{
	struct process *process, *next;

	if (!processes)
		return;
	for (process = TAILQ_FIRST(&processes->used); process; process = next) {
		next = TAILQ_NEXT(process, used);
		destroy_spaces(processes, process->newest);
		free(process);
	}
	destroy_spaces(processes, processes->garbage);
	pthread_mutex_destroy(&processes->lock);
	free(processes);
}
