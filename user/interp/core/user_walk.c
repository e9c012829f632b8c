// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs the kernel's walkers in user space, for threads that sleep. */
#include <errno.h>
#include <string.h>

#include "interp/core/interp.h"
#include "interp/core/interp_priv.h"
#include "interp/core/pages.h"
#include "interp/core/step.h"

static void walk_one(const struct found *found, struct sb_interp_walk *walk)
{
	walk->conf = found->rt.conf;
	memset(walk->at, 0, sizeof(walk->at));
	sb_runtime_walk(&found->rt, walk);
	if (walk->status != SB_STACK_COMPLETE)
		walk->event.status = walk->status;
}

static void begin(struct sb_interp *interp, struct sb_interp_walk *walk)
{
	walk->nr_frames = 0;
	walk->hash[0] = walk->hash[1] = 0;
	walk->wants_lines = interp->opts.lines;
	walk->event.status = SB_STACK_COMPLETE;
}

/* Append the frames of runtimes that are walked by state. */
static void walk_by_state(struct space *space, struct sb_interp_walk *walk)
{
	size_t i;

	for (i = 0; space && i < space->nr_found; i++)
		if (space->found[i]->is_attached && space->found[i]->rt.ops->begin &&
		    (space->found[i]->rt.conf.flags & SB_INTERP_BY_STATE))
			walk_one(space->found[i], walk);
}

/* Walk with what is in @pages, or note in it what is missing. */
static void walk_in_pages(struct space *space, struct sb_pages *pages, struct sb_interp_walk *walk)
{
	const struct sb_memory before = space->memory;

	pages->tgid = before.tgid;
	space->memory.read = sb_pages_read;
	space->memory.arg = pages;
	walk_by_state(space, walk);
	space->memory = before;
}

int sb_interp_walk_outside(struct sb_interp *interp, const struct sb_space_key *key,
			   struct sb_pages *pages, struct sb_interp_walk *walk)
{
	struct space *space;

	begin(interp, walk);
	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	if (space)
		walk_in_pages(space, pages, walk);
	pthread_mutex_unlock(&interp->lock);
	return walk->nr_frames ? 0 : -ENOENT;
}

/*
 * Read from the copy of the stack that was taken while the thread slept, or else from the process.
 * After a read that failed, walkers use what is in the buffer, so it is zeroed, as the kernel's
 * helper does.
 */
static int read_overlaid(void *arg, void *dst, size_t len, uint64_t addr)
{
	const struct sb_interp_hook *hook = arg;
	uint64_t at = addr - hook->stack_addr;
	int err;

	if (at < hook->nr_stack_bytes && len <= hook->nr_stack_bytes - at) {
		memcpy(dst, (const char *)hook->stack + at, len);
		return 0;
	}
	err = sb_memory_read(hook->memory, dst, len, addr);
	if (err)
		memset(dst, 0, len);
	return err;
}

static void step_on(struct sb_interp_hook *hook, const struct sb_runtime_ops *ops, void *memory)
{
	struct sb_interp_walk *walk = hook->walk;

	while (walk->has_steps) {
		if (hook->nr_steps++ >= SB_INTERP_STEPS_MAX) {
			walk->event.status = SB_STACK_DEPTH;
			return;
		}
		if (ops->step(walk, memory) != SB_STEP_GO_ON)
			return;
	}
}

/* As hook_step() in core/unwind.bpf.c. */
static int native_step(void *arg, struct sb_walk *at, bool *ret_has_frames)
{
	struct sb_interp_hook *hook = arg;
	struct sb_interp_walk *walk = hook->walk;
	struct sb_memory memory = { .tgid = hook->space.tgid, .read = read_overlaid, .arg = hook };
	const struct sb_runtime_ops *ops = sb_runtime_find(walk->conf.runtime);
	uint64_t nr_before = walk->nr_frames;
	struct space *space;
	int step = SB_STEP_FP_CHAIN;

	walk->has_steps = 0;
	pthread_mutex_lock(&hook->interp->lock);
	space = sb_interp_find(hook->interp, &hook->space);
	if (space) {
		hook->memory = &space->memory;
		step = ops->native(walk, at, &memory);
		step_on(hook, ops, &memory);
	}
	pthread_mutex_unlock(&hook->interp->lock);
	if (walk->nr_frames == nr_before)
		return step;
	*ret_has_frames = true;
	sb_interp_segment_end(walk);
	if (walk->nr_frames >= SB_INTERP_FRAMES_MAX)
		walk->event.status = SB_STACK_DEPTH;
	return step;
}

bool sb_interp_hook_begin(struct sb_interp_hook *hook, struct sb_sym_hook *ret_hook)
{
	struct sb_interp_walk *walk = hook->walk;
	const struct found *found = NULL;
	struct space *space;
	size_t i;

	begin(hook->interp, walk);
	memset(walk->at, 0, sizeof(walk->at));
	hook->nr_steps = 0;
	pthread_mutex_lock(&hook->interp->lock);
	space = sb_interp_find(hook->interp, &hook->space);
	for (i = 0; space && i < space->nr_found && !found; i++)
		if (space->found[i]->is_attached && space->found[i]->rt.ops->native &&
		    (space->found[i]->rt.conf.flags & SB_INTERP_BY_NATIVE))
			found = space->found[i];
	if (found) {
		walk->conf = found->rt.conf;
		*ret_hook = (struct sb_sym_hook){ .begin = walk->conf.hook_begin,
						  .end = walk->conf.hook_end,
						  .step = native_step,
						  .arg = hook };
	}
	pthread_mutex_unlock(&hook->interp->lock);
	return found != NULL;
}

bool sb_interp_hook_end(struct sb_interp_hook *hook)
{
	bool has_frames = hook->walk->nr_frames > 0;

	pthread_mutex_lock(&hook->interp->lock);
	if (has_frames)
		walk_by_state(sb_interp_find(hook->interp, &hook->space), hook->walk);
	pthread_mutex_unlock(&hook->interp->lock);
	return has_frames;
}
