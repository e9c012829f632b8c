// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Processes that are remembered, and what is left of those that are not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "interp/interp.h"
#include "interp/interp_priv.h"
#include "procfs.h"

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

void sb_interp_free_space(struct space *space)
{
	while (space->nr_found)
		sb_interp_drop_found(space, space->nr_found - 1);
	sb_interp_release_names(space);
	sb_vec_release(&space->plain);
	free(space->labels);
	free(space);
}

static uint64_t hash_space(const struct sb_interp_space *key)
{
	const uint64_t words[] = { key->start_ns, (uint64_t)key->tgid << 32 | key->exec_id };

	return sb_hash(words, sizeof(words), 0);
}

struct space *sb_interp_find(struct sb_interp *interp, const struct sb_interp_space *key)
{
	struct sb_index_iter it;

	for (it = sb_index_first(&interp->spaces_index, hash_space(key)); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&interp->spaces_index, it)) {
		struct space *space = interp->spaces.at[it.id];

		if (space->key.start_ns == key->start_ns && space->key.tgid == key->tgid &&
		    space->key.exec_id == key->exec_id)
			return space;
	}
	return NULL;
}

struct found *sb_interp_found_of(struct space *space, uint32_t runtime)
{
	size_t i;

	for (i = 0; i < space->nr_found; i++)
		if (space->found[i]->is_attached && space->found[i]->rt.ops->runtime == runtime)
			return space->found[i];
	return NULL;
}

int sb_interp_make_space(struct sb_interp *interp, const struct sb_interp_space *key,
			 struct space **ret_space)
{
	struct space *space = sb_interp_find(interp, key);
	int err;

	if (space) {
		*ret_space = space;
		return 0;
	}
	space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	space->key = *key;
	space->memory.tgid = key->tgid;
	err = sb_vec_push(&interp->spaces, space);
	if (err) {
		free(space);
		return err;
	}
	err = sb_index_add(&interp->spaces_index, hash_space(key), (uint32_t)interp->spaces.nr - 1);
	if (err) {
		interp->spaces.nr--;
		free(space);
		return err;
	}
	*ret_space = space;
	return 0;
}

static int index_spaces(struct sb_interp *interp)
{
	size_t i;
	int err = 0;

	sb_index_release(&interp->spaces_index);
	memset(&interp->spaces_index, 0, sizeof(interp->spaces_index));
	for (i = 0; i < interp->spaces.nr && !err; i++)
		err = sb_index_add(&interp->spaces_index, hash_space(&interp->spaces.at[i]->key),
				   (uint32_t)i);
	return err;
}

static struct sb_interp_found tell(const struct space *space, const struct found *found)
{
	const char *why = NULL;

	if (found->is_pending)
		why = "it has not begun";
	else if (sb_interp_is_unreadable(found))
		why = "its frames cannot be read";
	else if (!found->is_attached)
		why = found->rt.why.len ? found->rt.why.s : "unknown layout";
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

/* What the closing report says of a process does not depend on how long ago it ended. */
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
	sb_interp_free_space(space);
}

static int drop_space_at(struct sb_interp *interp, size_t i)
{
	drop_space(interp, interp->spaces.at[i]);
	interp->spaces.at[i] = interp->spaces.at[--interp->spaces.nr];
	return index_spaces(interp);
}

/* Room is made by forgetting processes that have ended, the one unused for longest first. */
static int forget_oldest(struct sb_interp *interp)
{
	size_t i, oldest = SIZE_MAX;

	for (i = 0; i < interp->spaces.nr; i++) {
		const struct space *space = interp->spaces.at[i];

		if (space->ended_ns &&
		    (oldest == SIZE_MAX || space->used < interp->spaces.at[oldest]->used))
			oldest = i;
	}
	if (oldest == SIZE_MAX)
		return -ENOENT;
	interp->stats.nr_forgotten++;
	return drop_space_at(interp, oldest);
}

int sb_interp_note_native(struct sb_interp *interp, const struct sb_interp_space *key)
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

bool sb_interp_knows(struct sb_interp *interp, const struct sb_interp_space *key)
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

int sb_interp_adopt(struct sb_interp *interp, const struct sb_interp_space *to)
{
	struct space *space;
	int err = 0;
	size_t i;

	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, &(struct sb_interp_space){ .tgid = to->tgid });
	for (i = 0; space && interp->spaces.at[i] != space;)
		i++;
	if (sb_interp_find(interp, to)) {
		/* It was looked at by both names: once is enough. */
		if (space)
			err = drop_space_at(interp, i);
	} else if (!space) {
		err = -ENOENT;
	} else if (!is_still(space)) {
		err = drop_space_at(interp, i);
		err = err ? err : -ESTALE;
	} else {
		space->key = *to;
		err = index_spaces(interp);
	}
	pthread_mutex_unlock(&interp->lock);
	return err;
}

void sb_interp_ended(struct sb_interp *interp, const struct sb_interp_space *key)
{
	struct space *space;

	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	if (space)
		space->ended_ns = sb_now_ns();
	while (interp->stats.nr_bytes > interp->opts.names_bytes_max)
		if (forget_oldest(interp))
			break;
	pthread_mutex_unlock(&interp->lock);
}

int sb_interp_forget(struct sb_interp *interp, uint64_t before_ns)
{
	size_t i, nr = 0;
	int err = 0;

	pthread_mutex_lock(&interp->lock);
	for (i = 0; i < interp->spaces.nr; i++) {
		struct space *space = interp->spaces.at[i];

		if (space->ended_ns && space->ended_ns < before_ns)
			drop_space(interp, space);
		else
			interp->spaces.at[nr++] = space;
	}
	if (nr < interp->spaces.nr) {
		interp->spaces.nr = nr;
		err = index_spaces(interp);
	}
	pthread_mutex_unlock(&interp->lock);
	return err;
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

int sb_interp_each(struct sb_interp *interp,
		   int (*fn)(void *arg, const struct sb_interp_found *found), void *arg)
{
	size_t i, at;
	int ret;

	pthread_mutex_lock(&interp->lock);
	ret = each_past(interp, fn, arg);
	for (i = 0; i < interp->spaces.nr; i++) {
		const struct space *space = interp->spaces.at[i];

		for (at = 0; at < space->nr_found && !ret; at++) {
			const struct sb_interp_found found = tell(space, space->found[at]);

			ret = fn(arg, &found);
		}
	}
	pthread_mutex_unlock(&interp->lock);
	return ret;
}

void sb_interp_stats(struct sb_interp *interp, struct sb_interp_stats *ret_stats)
{
	size_t i;

	pthread_mutex_lock(&interp->lock);
	*ret_stats = interp->stats;
	for (i = 0; i < interp->spaces.nr; i++)
		ret_stats->nr_processes += interp->spaces.at[i]->nr_found > 0;
	for (i = 0; i < interp->spaces.nr; i++)
		ret_stats->nr_labelled +=
			interp->spaces.at[i]->labels && interp->spaces.at[i]->labels->has_conf;
	pthread_mutex_unlock(&interp->lock);
}
