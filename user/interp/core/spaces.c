// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Processes that are remembered, their eviction, and what is kept of evicted ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "interp/core/interp.h"
#include "interp/core/interp_priv.h"
#include "symbolizer/process/procfs.h"

/* Different findings of processes that are forgotten. */
#define PAST_MAX 256u

void sb_interp_drop_found(struct space *space, size_t i)
{
	struct found *found = space->found[i];

	if (found->is_attached && found->rt.ops->detach)
		found->rt.ops->detach(&found->rt);
	sb_str_release(&found->rt.why);
	free(found);
	memmove(&space->found[i], &space->found[i + 1],
		(--space->nr_found - i) * sizeof(space->found[0]));
}

static void free_space(struct space *space)
{
	while (space->nr_found)
		sb_interp_drop_found(space, space->nr_found - 1);
	sb_interp_release_names(space);
	sb_vec_release(&space->plain);
	free(space->labels);
	free(space);
}

struct space *sb_interp_find(struct sb_interp *interp, const struct sb_space_key *key)
{
	return sb_processes_find(interp->opts.processes, key, SB_SLOT_RUNTIMES);
}

struct found *sb_interp_found_of(struct space *space, uint32_t runtime)
{
	size_t i;

	for (i = 0; i < space->nr_found; i++)
		if (space->found[i]->is_attached && space->found[i]->rt.ops->runtime == runtime)
			return space->found[i];
	return NULL;
}

/* Put @space into the slot of the address space @key. */
static int put_space(struct sb_interp *interp, struct space *space, const struct sb_space_key *key)
{
	struct sb_space *place;
	int err = sb_processes_get(interp->opts.processes, key, &place);

	if (err)
		return err;
	space->key = *key;
	sb_space_set(interp->opts.processes, place, SB_SLOT_RUNTIMES, space);
	sb_processes_put(interp->opts.processes, place);
	return 0;
}

int sb_interp_make_space(struct sb_interp *interp, const struct sb_space_key *key,
			 struct space **ret_space)
{
	struct space *space = sb_interp_find(interp, key);
	int err;

	if (!space) {
		space = calloc(1, sizeof(*space));
		if (!space)
			return -ENOMEM;
		space->memory.tgid = key->tgid;
		space->met_ns = sb_now_ns();
		err = put_space(interp, space, key);
		if (err) {
			free(space);
			return err;
		}
	}
	*ret_space = space;
	return 0;
}

static struct sb_interp_found tell(const struct space *space, const struct found *found)
{
	const char *why = NULL;

	if (found->is_pending)
		why = "the interpreter has not started yet";
	else if (sb_interp_is_unreadable(found))
		why = "its frames cannot be read";
	else if (!found->is_attached)
		why = found->rt.why.len ? found->rt.why.s
					: "the memory layout of this "
					  "version is not known";
	return (struct sb_interp_found){
		.space = space->key,
		.runtime = found->rt.ops->runtime,
		.runtime_name = found->rt.ops->name,
		.version = found->rt.version,
		.path = sb_image_path(&found->image),
		.why = why,
		.is_pending = found->is_pending,
	};
}

static bool is_same(const struct past *past, const struct sb_interp_found *found)
{
	return past->runtime == found->runtime && sb_streq(past->version, found->version) &&
	       sb_streq(past->path, found->path) && !past->why == !found->why &&
	       (!past->why || sb_streq(past->why, found->why));
}

/* Keep a finding, so that the closing report does not depend on how long ago a process ended. */
static void keep_past(struct sb_interp *interp, const struct sb_interp_found *found)
{
	struct past past = {
		.space = found->space,
		.runtime = found->runtime,
		.runtime_name = found->runtime_name,
		.path = found->path,
	};
	size_t i;

	for (i = 0; i < interp->past.nr; i++)
		if (is_same(&interp->past.at[i], found))
			return;
	memcpy(past.version, found->version, sizeof(past.version));
	if (found->why)
		past.why = strdup(found->why);
	if ((found->why && !past.why) || interp->past.nr == PAST_MAX ||
	    sb_vec_push(&interp->past, past)) {
		free(past.why);
		interp->stats.nr_unlisted++;
	}
}

static void drop_space(struct sb_interp *interp, struct space *space)
{
	size_t i;

	for (i = 0; i < space->nr_found; i++)
		if (!space->found[i]->is_pending) {
			const struct sb_interp_found found = tell(space, space->found[i]);

			keep_past(interp, &found);
		}
	interp->stats.nr_processes += space->nr_found > 0;
	interp->stats.nr_bytes -= space->arena.nr_bytes;
	free_space(space);
}

static void on_forget(void *arg, void *space)
{
	struct sb_interp *interp = arg;

	pthread_mutex_lock(&interp->lock);
	drop_space(interp, space);
	pthread_mutex_unlock(&interp->lock);
}

static void on_free(void *arg, void *space)
{
	free_space(space);
}

void sb_interp_own_spaces(struct sb_interp *interp)
{
	sb_processes_own(interp->opts.processes, SB_SLOT_RUNTIMES, on_forget, interp);
}

void sb_interp_free_spaces(struct sb_interp *interp)
{
	sb_processes_own(interp->opts.processes, SB_SLOT_RUNTIMES, on_free, NULL);
	sb_processes_disown(interp->opts.processes, SB_SLOT_RUNTIMES);
}

/* Drop an address space, unless the registry is just doing it. */
static void take_and_drop(struct sb_interp *interp, const struct sb_space_key *key)
{
	struct space *space = sb_processes_take(interp->opts.processes, key, SB_SLOT_RUNTIMES);

	if (space)
		drop_space(interp, space);
}

static void choose_older(void *arg, void *value, uint64_t ended_ns)
{
	struct space **oldest = arg, *space = value;

	if (ended_ns && (!*oldest || space->used < (*oldest)->used))
		*oldest = space;
}

/* Evict the ended process that was not used for the longest time. Return: whether there was one. */
static bool forget_oldest(struct sb_interp *interp)
{
	struct space *oldest = NULL;
	struct sb_space_key key;

	sb_processes_each(interp->opts.processes, SB_SLOT_RUNTIMES, choose_older, &oldest);
	if (!oldest)
		return false;
	interp->stats.nr_forgotten++;
	key = oldest->key;
	take_and_drop(interp, &key);
	return true;
}

int sb_interp_note_native(struct sb_interp *interp, const struct sb_space_key *key)
{
	struct space *space;
	int err;

	pthread_mutex_lock(&interp->lock);
	err = sb_interp_make_space(interp, key, &space);
	if (!err) {
		space->has_memory = true;
		space->used = ++interp->clock;
	}
	pthread_mutex_unlock(&interp->lock);
	return err;
}

bool sb_interp_knows(struct sb_interp *interp, const struct sb_space_key *key)
{
	bool is_known;

	pthread_mutex_lock(&interp->lock);
	is_known = sb_interp_find(interp, key) != NULL;
	pthread_mutex_unlock(&interp->lock);
	return is_known;
}

static bool is_still(const struct space *space)
{
	const struct sb_procfs_stat *then = &space->expected;
	struct sb_procfs_stat now;

	return then->start_ticks && !sb_procfs_stat(space->key.tgid, &now) &&
	       now.start_ticks == then->start_ticks && now.stack_addr == then->stack_addr;
}

int sb_interp_adopt(struct sb_interp *interp, const struct sb_space_key *to)
{
	const struct sb_space_key from = { .tgid = to->tgid };
	struct space *space;
	int err = 0;

	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, &from);
	if (sb_interp_find(interp, to)) {
		/* It was looked at under both keys: one result is enough. */
		take_and_drop(interp, &from);
	} else if (!space) {
		err = -ENOENT;
	} else if (!is_still(space)) {
		take_and_drop(interp, &from);
		err = -ESTALE;
	} else {
		space = sb_processes_take(interp->opts.processes, &from, SB_SLOT_RUNTIMES);
		err = space ? put_space(interp, space, to) : -ENOENT;
		if (space && err)
			drop_space(interp, space);
	}
	pthread_mutex_unlock(&interp->lock);
	return err;
}

void sb_interp_ended(struct sb_interp *interp, const struct sb_space_key *key)
{
	sb_processes_end(interp->opts.processes, key);
	pthread_mutex_lock(&interp->lock);
	while (interp->stats.nr_bytes > interp->opts.names_bytes_max)
		if (!forget_oldest(interp))
			break;
	pthread_mutex_unlock(&interp->lock);
}

void sb_interp_release_past(struct sb_interp *interp)
{
	size_t i;

	for (i = 0; i < interp->past.nr; i++)
		free(interp->past.at[i].why);
	sb_vec_release(&interp->past);
}

static int each_past(struct sb_interp *interp,
		     int (*fn)(void *arg, const struct sb_interp_found *found), void *arg)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < interp->past.nr && !ret; i++) {
		const struct past *past = &interp->past.at[i];

		ret = fn(arg, &(struct sb_interp_found){
				      .space = past->space,
				      .runtime = past->runtime,
				      .runtime_name = past->runtime_name,
				      .version = past->version,
				      .path = past->path,
				      .why = past->why,
			      });
	}
	return ret;
}

/* The state of a call of sb_interp_each(). */
struct telling {
	int (*fn)(void *arg, const struct sb_interp_found *found);
	void *arg;
	int ret;
};

static void tell_of(void *arg, void *value, uint64_t ended_ns)
{
	struct telling *telling = arg;
	const struct space *space = value;
	size_t i;

	for (i = 0; i < space->nr_found && !telling->ret; i++) {
		const struct sb_interp_found found = tell(space, space->found[i]);

		telling->ret = telling->fn(telling->arg, &found);
	}
}

int sb_interp_each(struct sb_interp *interp,
		   int (*fn)(void *arg, const struct sb_interp_found *found), void *arg)
{
	struct telling telling = { fn, arg, 0 };

	pthread_mutex_lock(&interp->lock);
	telling.ret = each_past(interp, fn, arg);
	sb_processes_each(interp->opts.processes, SB_SLOT_RUNTIMES, tell_of, &telling);
	pthread_mutex_unlock(&interp->lock);
	return telling.ret;
}

static void count_space(void *arg, void *value, uint64_t ended_ns)
{
	struct sb_interp_stats *stats = arg;
	const struct space *space = value;

	stats->nr_processes += space->nr_found > 0;
	stats->nr_labelled += space->labels && space->labels->has_conf;
}

void sb_interp_stats(struct sb_interp *interp, struct sb_interp_stats *ret_stats)
{
	pthread_mutex_lock(&interp->lock);
	*ret_stats = interp->stats;
	sb_processes_each(interp->opts.processes, SB_SLOT_RUNTIMES, count_space, ret_stats);
	pthread_mutex_unlock(&interp->lock);
}
