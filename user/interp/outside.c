// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Walks by the kernel's walkers, of threads that sleep. */
#include <errno.h>
#include <string.h>

#include "interp/interp.h"
#include "interp/interp_priv.h"
#include "interp/step.h"

static void walk_one(struct space *space, const struct found *found, struct sb_interp_walk *walk)
{
	const struct sb_runtime_ops *ops = found->rt.ops;
	int i;

	walk->conf = found->rt.conf;
	memset(walk->at, 0, sizeof(walk->at));
	walk->status = SB_STACK_DEPTH;
	if (ops->begin(walk, &space->memory) == SB_STEP_GO_ON)
		for (i = 0; i < SB_INTERP_STEPS_MAX; i++)
			if (ops->step(walk, &space->memory) != SB_STEP_GO_ON)
				break;
	if (walk->status != SB_STACK_COMPLETE)
		walk->event.status = walk->status;
}

int sb_interp_walk_outside(struct sb_interp *interp, const struct sb_interp_space *key,
			   struct sb_interp_walk *walk)
{
	struct space *space;
	size_t i;

	walk->nr_frames = 0;
	walk->hash[0] = walk->hash[1] = 0;
	walk->wants_lines = interp->opts.lines;
	walk->event.status = SB_STACK_COMPLETE;
	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	for (i = 0; space && i < space->nr_found; i++)
		if (space->found[i]->is_attached && space->found[i]->rt.ops->begin &&
		    (space->found[i]->rt.conf.flags & SB_INTERP_BY_STATE))
			walk_one(space, space->found[i], walk);
	pthread_mutex_unlock(&interp->lock);
	return walk->nr_frames ? 0 : -ENOENT;
}
