// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the resolver asks about a process: what it runs, where the loops of its interpreters are,
 * unwind rules for code. */

#include "base/time.h"
#include "interp/core/interp.h"
#include "interp/core/interp_priv.h"

/* One that was expected, and is known by its number only. */
static const struct space *find_expected(struct sb_interp *interp, const struct sb_space_key *key)
{
	const struct space *space =
		sb_interp_find(interp, &(struct sb_space_key){ .tgid = key->tgid });

	return space && space->expected.start_ticks == key->start_ns / sb_tick_ns() ? space : NULL;
}

static const char *runtime_in(const struct space *space)
{
	size_t i;

	for (i = 0; i < space->nr_found; i++)
		if (!space->found[i]->is_pending)
			return space->found[i]->rt.ops->name;
	return space->is_go ? "go" : "native";
}

const char *sb_interp_runtime_of(struct sb_interp *interp, const struct sb_space_key *key)
{
	const struct space *space;
	const char *name = NULL;

	if (interp->opts.no_frames)
		return NULL;
	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	if (!space)
		space = find_expected(interp, key);
	if (space && space->has_memory)
		name = runtime_in(space);
	pthread_mutex_unlock(&interp->lock);
	return name;
}

static void add_anchors(struct sb_interp_anchors *to, const struct sb_runtime *rt,
			const struct sb_range *ranges, size_t nr, uint32_t kind)
{
	size_t i;

	for (i = 0; i < nr && to->nr < SB_INTERP_ANCHORS_MAX; i++)
		to->at[to->nr++] = (struct sb_interp_anchor){
			.begin = ranges[i].begin,
			.end = ranges[i].end,
			.runtime = rt->ops->runtime,
			.kind = kind,
		};
}

bool sb_interp_anchors(struct sb_interp *interp, const struct sb_space_key *key,
		       struct sb_interp_anchors *ret)
{
	struct space *space;
	size_t i;

	ret->nr = ret->nr_runtimes = ret->nr_natives = 0;
	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	for (i = 0; space && i < space->nr_found; i++) {
		const struct sb_runtime *rt = &space->found[i]->rt;

		if (!space->found[i]->is_attached)
			continue;
		/* A runtime that is walked in both ways has all its frames in its state. */
		if (!(rt->conf.flags & SB_INTERP_BY_STATE)) {
			ret->native_files[ret->nr_natives] =
				rt->conf.hook_end ? sb_base_name(sb_image_path(rt->image)) : "";
			ret->natives[ret->nr_natives++] = rt->ops->runtime;
			continue;
		}
		ret->files[ret->nr_runtimes] = sb_base_name(sb_image_path(rt->image));
		ret->runtimes[ret->nr_runtimes++] = rt->ops->runtime;
		add_anchors(ret, rt, rt->anchors, rt->nr_anchors, SB_INTERP_ANCHOR_LOOP);
		add_anchors(ret, rt, rt->callers, rt->nr_callers, SB_INTERP_ANCHOR_CALLER);
		add_anchors(ret, rt, rt->inner, rt->nr_inner, SB_INTERP_ANCHOR_INNER);
	}
	pthread_mutex_unlock(&interp->lock);
	return ret->nr_runtimes + ret->nr_natives > 0;
}

uint32_t sb_interp_anchor_of(const struct sb_interp_anchors *anchors, uint64_t addr,
			     const char *name)
{
	size_t i;

	for (i = 0; i < anchors->nr; i++)
		if (anchors->at[i].kind == SB_INTERP_ANCHOR_LOOP && addr >= anchors->at[i].begin &&
		    addr < anchors->at[i].end)
			return anchors->at[i].runtime;
	for (i = 0; name && i < anchors->nr_runtimes; i++) {
		const struct sb_runtime_ops *ops = sb_runtime_find(anchors->runtimes[i]);

		if (ops && sb_runtime_is_anchor(ops, name))
			return ops->runtime;
	}
	return 0;
}

uint32_t sb_interp_caller_of(const struct sb_interp_anchors *anchors, uint32_t runtime,
			     uint64_t addr)
{
	size_t i;

	for (i = 0; i < anchors->nr; i++)
		if (anchors->at[i].kind != SB_INTERP_ANCHOR_LOOP &&
		    anchors->at[i].runtime == runtime && addr >= anchors->at[i].begin &&
		    addr < anchors->at[i].end)
			return anchors->at[i].kind;
	return SB_INTERP_ANCHOR_LOOP;
}

bool sb_interp_has_callers(const struct sb_interp_anchors *anchors, uint32_t runtime)
{
	size_t i;

	for (i = 0; i < anchors->nr; i++)
		if (anchors->at[i].kind == SB_INTERP_ANCHOR_CALLER &&
		    anchors->at[i].runtime == runtime)
			return true;
	return false;
}

void sb_interp_code_rule(struct sb_interp *interp, const struct sb_space_key *key,
			 struct sb_sym_rule *ret_rule)
{
	struct space *space;
	size_t i;

	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	for (i = 0; space && i < space->nr_found; i++)
		if (space->found[i]->is_attached && space->found[i]->rt.code.end)
			*ret_rule = space->found[i]->rt.code;
	pthread_mutex_unlock(&interp->lock);
}
