// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The self-test. CPython has lists of its interpreters and of their threads, with the value of
 * pthread_self(), from which the thread pointer follows. So a thread's state can be looked up as
 * the kernel will do it and compared with the list, and its stack can be walked by the kernel's own
 * walker. Threads run meanwhile, so a walk may fail now and then, but not every time. The layout of
 * frames is a property of the file: it is proven once, on one of the processes that map it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/python/python_priv.h"

#define TRIES_MAX   5u
#define INTERPS_MAX 16u
#define THREADS_MAX 32u

/* For sb_image_keep(). */
static const char proven;

struct proof {
	struct sb_runtime *rt;
	const struct sb_python_layout *layout;
	struct sb_interp_walk *walk;
	struct sb_memory memory; /* of this try: threads run, so the next one reads anew */
	struct sb_runtime_text text;
	bool is_proven; /* of another process that has the same file: how frames lie in it */
	size_t nr_states, nr_found; /* threads; those whose state was found the kernel's way */
	size_t nr_stacks, nr_bad;   /* that were walked, and all their frames are code; not */
};

static bool is_code(struct proof *p, const struct sb_interp_frame *frame)
{
	struct sb_memory_recent recent = { .nr = 0 };
	struct sb_memory memory = *p->rt->memory;

	memory.recent = &recent;
	sb_str_clear(&p->text.name);
	sb_str_clear(&p->text.file);
	return !sb_python_code(&memory, p->layout, frame, &p->text);
}

static void walk_thread(struct proof *p)
{
	struct sb_interp_walk *walk = p->walk;
	size_t i;

	sb_runtime_walk(p->rt, walk);
	for (i = 0; i < walk->nr_frames; i++)
		if (!is_code(p, &walk->frame[i]))
			break;
	if (walk->status == SB_STACK_FAULT || i < walk->nr_frames)
		p->nr_bad++;
	else if (walk->nr_frames)
		p->nr_stacks++;
}

static void try_thread(struct proof *p, uint64_t interp, uint64_t state)
{
	const struct sb_python_conf *conf = sb_python_conf(p->walk);
	struct sb_interp_walk *walk = p->walk;
	uint64_t owner, thread;

	if (sb_memory_u64(&p->memory, state + p->layout->state_interp, &owner) ||
	    sb_memory_u64(&p->memory, state + conf->state_thread_id, &thread) || owner != interp ||
	    !thread)
		return;
	p->nr_states++;
	memset(walk->at, 0, sizeof(walk->at));
	walk->thread_pointer = thread + conf->tsd.below;
	walk->wants_lines = 1;
	walk->nr_frames = 0;
	if (!(conf->flags & SB_PYTHON_LISTED) && sb_python_state(walk, &p->memory) != state)
		return;
	p->nr_found++;
	if (p->is_proven)
		p->nr_stacks++;
	else
		walk_thread(p);
}

static void try_all(struct proof *p)
{
	const struct sb_python_conf *conf = sb_python_conf(p->walk);
	const struct sb_memory *memory = &p->memory;
	struct sb_memory_recent recent = { .nr = 0 };
	uint64_t interp, state;
	size_t i, j;

	p->memory = *p->rt->memory;
	p->memory.recent = &recent;
	p->nr_states = p->nr_found = p->nr_stacks = p->nr_bad = 0;
	sb_memory_u64(memory, conf->interps, &interp);
	for (i = 0; interp && i < INTERPS_MAX && !p->nr_stacks; i++) {
		sb_memory_u64(memory, interp + conf->interp_threads, &state);
		for (j = 0; state && j < THREADS_MAX && !p->nr_stacks; j++) {
			try_thread(p, interp, state);
			sb_memory_u64(memory, state + conf->state_next, &state);
		}
		sb_memory_u64(memory, interp + conf->interp_next, &interp);
	}
}

static int judge(const struct proof *p)
{
	if (p->nr_stacks)
		return 0;
	if (!p->nr_states)
		return -EAGAIN; /* it is about to begin, or has ended */
	if (!p->nr_found || p->nr_bad)
		return -EBADMSG;
	/* No thread is in Python just now. What is known needs no more proof. */
	return p->layout->is_assumed ? -EAGAIN : 0;
}

int sb_python_prove(struct sb_runtime *rt, const struct sb_python_layout *layout)
{
	sb_cleanup(sb_freep) struct sb_interp_walk *walk = calloc(1, sizeof(*walk));
	struct proof p = { .rt = rt, .layout = layout, .walk = walk };
	int err = -EBADMSG;

	if (!walk)
		return -ENOMEM;
	/* What is only assumed is proven each time. */
	p.is_proven = !layout->is_assumed && sb_image_kept(rt->image, &proven);
	walk->conf = rt->conf;
	for (size_t i = 0; i < TRIES_MAX && err == -EBADMSG; i++) {
		try_all(&p);
		err = judge(&p);
	}
	sb_str_release(&p.text.name);
	sb_str_release(&p.text.file);
	/* Not to remember it is to prove it again. */
	if (!err && p.nr_stacks && !p.is_proven)
		sb_image_keep(rt->image, &proven, strdup("proven"));
	return err;
}
