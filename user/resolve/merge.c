// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Merges frames of interpreters into native stacks. The main loop of an interpreter is machine
 * code. Each of its frames on the native stack is called an anchor here. It stands for one segment
 * of the interpreter's stack: the frames that called one another without leaving the loop. The
 * walker marks where a segment ends.
 *
 * If there are as many anchors as segments, they are matched one by one. If not, no sample is
 * dropped, and the order of frames stays right. In complete stacks, whatever is in excess is at the
 * leaf end. A loop that has just been entered, or is about to be left, has no interpreter frame. An
 * interpreter frame may be made before its loop is called, or its code was compiled and calls
 * without the loop. A native stack that was cut lacks anchors at the root, so the segments that are
 * left over go there.
 *
 * Some loops have no segment, and some segments no loop (SB_INTERP_READY): C code such as sort
 * makes an interpreter frame and then calls the loop again and again, and it may be sampled between
 * two calls. Then the callers of the loop tell which is which. Both sides are matched from the root
 * if both are complete, and otherwise from the leaf.
 *
 * An interpreter may also have frames for C functions (Ruby: Array#each), whose native frame is on
 * the native stack, too. It is found by the address where its function begins, and the
 * interpreter's frame replaces it. So what such a function calls is shown below it.
 *
 * Frames that the native walk found itself, at addresses marked with SB_IP_INTERP, are simply put
 * there.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/runtime.h"
#include "resolve/assembly.h"

#define NO_SEGMENT UINT32_MAX
#define UNPLACED   SIZE_MAX

static bool is_by_state(const struct sb_interp_anchors *anchors, uint32_t runtime)
{
	size_t i;

	for (i = 0; i < anchors->nr_runtimes; i++)
		if (anchors->runtimes[i] == runtime)
			return true;
	return false;
}

/* Find the segments, leaf first; those of one runtime are together, as its frames are. */
static int find_segments(struct merge *merge)
{
	struct interp_segment segment = {};
	uint32_t i;
	int err = 0;

	merge->segments.nr = 0;
	for (i = 0; i < merge->nr_frames && !err; i++) {
		uint64_t where = merge->frames[i].where;
		bool is_last =
			i + 1 == merge->nr_frames ||
			sb_where_runtime(merge->frames[i + 1].where) != sb_where_runtime(where);

		segment.runtime = sb_where_runtime(where);
		segment.nr++;
		if (!(where & SB_WHERE_END) && !is_last)
			continue;
		segment.is_ready = merge->frames[i].obj == SB_INTERP_READY;
		segment.nr -= segment.is_ready;
		err = sb_vec_push(&merge->segments, segment);
		segment = (struct interp_segment){ .first = i + 1 };
	}
	return err;
}

static uint32_t nr_segments_of(const struct merge *merge, uint32_t runtime)
{
	uint32_t nr = 0;
	size_t i;

	for (i = 0; i < merge->segments.nr; i++)
		nr += merge->segments.at[i].runtime == runtime;
	return nr;
}

static void find_anchors(struct merge *merge)
{
	size_t i;

	for (i = 0; i < merge->natives.nr; i++) {
		struct native_frame *native = &merge->natives.at[i];

		native->segment = NO_SEGMENT;
		native->anchor =
			native->is_marked
				? 0
				: sb_interp_anchor_of(&merge->anchors, native->addr, native->name);
		native->caller = SB_INTERP_ANCHOR_LOOP;
		if (native->anchor && i)
			native->caller = sb_interp_caller_of(&merge->anchors, native->anchor,
							     native[-1].addr);
	}
}

/* Match native frames at marked addresses with the segments of runtimes that the native walk calls,
 * leaf first. */
static void place_marked(struct merge *merge)
{
	size_t i = merge->natives.nr, at = 0;

	while (i--) {
		if (!merge->natives.at[i].is_marked)
			continue;
		while (at < merge->segments.nr &&
		       is_by_state(&merge->anchors, merge->segments.at[at].runtime))
			at++;
		if (at == merge->segments.nr)
			return;
		merge->segments.at[at].is_placed = true;
		merge->natives.at[i].segment = (uint32_t)at++;
	}
}

/* Find the place for segments without a loop: where generated code begins after the last loop, or
 * else at the leaf. */
static size_t find_ahead(const struct merge *merge, uint32_t runtime)
{
	size_t i = merge->natives.nr, generated = i;

	while (i-- && merge->natives.at[i].anchor != runtime)
		if (merge->natives.at[i].is_generated)
			generated = i;
	return generated;
}

/* Mark the first @nr segments of one runtime, at the leaf, as having no loop. Return: the index
 * after them. */
static size_t place_ahead(struct merge *merge, uint32_t runtime, uint32_t nr)
{
	size_t before = nr ? find_ahead(merge, runtime) : 0, at;

	for (at = 0; nr && at < merge->segments.nr; at++) {
		struct interp_segment *segment = &merge->segments.at[at];

		if (segment->runtime != runtime)
			continue;
		segment->is_placed = segment->is_ahead = true;
		segment->before = before;
		nr--;
	}
	return at;
}

/* Match the anchors of one runtime with its segments from @at on, leaf first. The first @skip
 * anchors get none. */
static void place_by_anchors(struct merge *merge, uint32_t runtime, uint32_t skip, size_t at)
{
	size_t i = merge->natives.nr;

	while (i--) {
		if (merge->natives.at[i].anchor != runtime || (skip && skip--))
			continue;
		while (at < merge->segments.nr && merge->segments.at[at].runtime != runtime)
			at++;
		if (at == merge->segments.nr)
			return;
		merge->segments.at[at].is_placed = true;
		merge->natives.at[i].segment = (uint32_t)at++;
	}
}

/* Find the segment for a loop that was called by @caller, and mark it as placed. @at: how many
 * segments were passed so far; segments without a loop are passed as well. Return: NO_SEGMENT when
 * there is none. */
static uint32_t next_segment(struct merge *merge, uint32_t runtime, uint32_t caller, size_t *at)
{
	size_t nr = merge->segments.nr;

	for (; *at < nr; (*at)++) {
		size_t i = merge->is_whole ? nr - 1 - *at : *at;
		struct interp_segment *segment = &merge->segments.at[i];

		if (segment->runtime != runtime)
			continue;
		if (segment->is_ready == (caller != SB_INTERP_ANCHOR_CALLER)) {
			segment->is_placed = true;
			(*at)++;
			return (uint32_t)i;
		}
		if (!segment->is_ready)
			break;
		segment->is_placed = true; /* it does not run, so it is not shown */
	}
	return NO_SEGMENT;
}

/* Match the loops of one runtime with its segments by what called them. Return: whether a loop has
 * no segment that fits, or a segment no loop. */
static bool place_by_callers(struct merge *merge, uint32_t runtime, uint32_t nr_anchors)
{
	size_t nr = merge->natives.nr, i, at = 0;
	bool is_odd = false;

	for (i = 0; i < nr; i++) {
		struct native_frame *native = &merge->natives.at[merge->is_whole ? i : nr - 1 - i];

		if (native->anchor != runtime)
			continue;
		if (native->caller == SB_INTERP_ANCHOR_INNER)
			continue;
		native->segment = next_segment(merge, runtime, native->caller, &at);
		is_odd |= native->segment == NO_SEGMENT;
	}
	for (i = 0; i < merge->segments.nr; i++) {
		struct interp_segment *segment = &merge->segments.at[i];

		if (segment->runtime != runtime || segment->is_placed)
			continue;
		is_odd |= !segment->is_ready;
		/* In a complete stack this is a segment whose loop has not begun. */
		segment->is_placed = segment->is_ready || (nr_anchors && merge->is_whole);
	}
	return is_odd;
}

/*
 * Complete native stacks that do not begin where programs and threads do are those of coroutines.
 * The interpreter's frames may go on beyond them (PHP's fibers, Ruby's enumerators).
 */
static bool begins_thread(const struct merge *merge)
{
	static const char *const names[] = { "_start", "__clone", "clone", "__clone3", "clone3" };
	const char *root = merge->natives.nr ? merge->natives.at[0].name : NULL;
	size_t i;

	for (i = 0; root && i < SB_ARRAY_SIZE(names); i++)
		if (!strcmp(root, names[i]))
			return true;
	return false;
}

/* Match the loops of one runtime with its segments one by one. Return: whether there are segments,
 * but not as many as loops. */
static bool place_by_number(struct merge *merge, uint32_t runtime, uint32_t nr_anchors,
			    uint32_t nr_segments)
{
	uint32_t nr_ahead = 0, skip = 0;

	if (merge->is_whole && nr_anchors > nr_segments)
		skip = nr_anchors - nr_segments;
	else if (merge->is_whole && nr_anchors && begins_thread(merge))
		nr_ahead = nr_segments - nr_anchors;
	merge->has_ahead |= nr_ahead > 0;
	place_by_anchors(merge, runtime, skip, place_ahead(merge, runtime, nr_ahead));
	return nr_segments && nr_anchors != nr_segments;
}

/* Place the segments of a runtime that is walked by state, and count the sample for it. */
static void place_runtime(struct assembly *assembly, uint32_t runtime)
{
	struct sb_resolve_runtime *stats = &assembly->stats->runtime[runtime];
	struct merge *merge = &assembly->merge;
	uint32_t nr_segments = nr_segments_of(merge, runtime), nr_anchors = 0;
	bool is_odd;
	size_t i;

	for (i = 0; i < merge->natives.nr; i++)
		nr_anchors += merge->natives.at[i].anchor == runtime;
	is_odd = sb_interp_has_callers(&merge->anchors, runtime)
			 ? place_by_callers(merge, runtime, nr_anchors)
			 : place_by_number(merge, runtime, nr_anchors, nr_segments);
	if (nr_anchors || nr_segments)
		stats->nr_inside += assembly->nr_samples;
	if (is_odd)
		stats->nr_odd += assembly->nr_samples;
}

/* Find the native frame of the function at @func, in the C part that begins at frame @i. */
static size_t find_function(const struct merge *merge, size_t i, uint64_t func)
{
	for (; i < merge->natives.nr; i++) {
		const struct native_frame *native = &merge->natives.at[i];

		if (native->segment != NO_SEGMENT)
			break;
		if (native->func == func)
			return i;
	}
	return SIZE_MAX;
}

/* Split the segment of the @i-th native frame at frames of C functions: each part moves to the
 * native frame of its own function, and is a segment there. */
static int split_segment(struct merge *merge, struct sb_interp *interp, size_t i)
{
	struct interp_segment *segment = &merge->segments.at[merge->natives.at[i].segment];
	uint32_t first = segment->first, nr = segment->nr, runtime = segment->runtime;
	int err;

	while (nr--) {
		uint64_t func =
			sb_interp_c_function(interp, &merge->space, &merge->frames[first + nr]);
		size_t at = func ? find_function(merge, i + 1, func) : SIZE_MAX;

		if (at == SIZE_MAX)
			continue;
		segment->first += nr + 1;
		segment->nr -= nr + 1;
		err = sb_vec_push(&merge->segments, ((struct interp_segment){
							    .runtime = runtime,
							    .first = first,
							    .nr = nr + 1,
							    .is_placed = true,
						    }));
		if (err)
			return err;
		merge->natives.at[at].segment = (uint32_t)merge->segments.nr - 1;
		segment = &merge->segments.at[merge->segments.nr - 1];
		i = at;
	}
	return 0;
}

static int split_segments(struct merge *merge, struct sb_interp *interp)
{
	size_t i;
	int err = 0;

	for (i = 0; i < merge->natives.nr && !err; i++)
		if (merge->natives.at[i].anchor && merge->natives.at[i].segment != NO_SEGMENT)
			err = split_segment(merge, interp, i);
	return err;
}

/* Count the sample for a runtime whose frames only the native walk finds. */
static void count_native_runtime(struct assembly *assembly, uint32_t runtime)
{
	const struct merge *merge = &assembly->merge;
	bool is_inside = nr_segments_of(merge, runtime) > 0;
	size_t i;

	for (i = 0; i < merge->natives.nr && !is_inside; i++)
		is_inside = merge->natives.at[i].is_generated;
	if (is_inside)
		assembly->stats->runtime[runtime].nr_inside += assembly->nr_samples;
}

static void count_found(struct assembly *assembly)
{
	const struct merge *merge = &assembly->merge;
	struct sb_resolve_runtime *stats;
	bool is_counted[SB_RUNTIME_MAX] = {};
	uint32_t i, runtime;

	for (i = 0; i < merge->nr_frames; i++) {
		runtime = sb_where_runtime(merge->frames[i].where);
		if (runtime >= SB_RUNTIME_MAX || merge->frames[i].obj == SB_INTERP_READY)
			continue;
		stats = &assembly->stats->runtime[runtime];
		stats->nr_frames += assembly->nr_samples;
		if (is_counted[runtime])
			continue;
		is_counted[runtime] = true;
		stats->nr_found += assembly->nr_samples;
		if (merge->status != SB_STACK_COMPLETE)
			stats->nr_cut += assembly->nr_samples;
	}
}

/* The result. */

/* Begin a native or an interpreter frame with its inlined ones; --depth counts these. */
static int begin_unit(struct merge *merge)
{
	return sb_vec_push(&merge->units, (uint32_t)merge->merged.nr);
}

/* Append one function of an interpreter frame. */
static int add_function(struct assembly *assembly, const struct sb_runtime_ops *ops,
			const struct sb_interp_name *name)
{
	const struct sb_resolve_opts *opts = assembly->opts;
	const struct sb_frame frame = {
		.name = name->name.s,
		.module = opts->modules && ops ? ops->name : NULL,
		.file = opts->lines && name->file.len ? name->file.s : NULL,
		.line = opts->lines ? name->line : 0,
		.kind = SB_FRAME_INTERP,
		.is_unnamed = name->is_unnamed,
	};
	uint32_t id;
	int err;

	if (name->is_unnamed && ops)
		assembly->stats->runtime[ops->runtime].nr_unreadable += assembly->nr_samples;
	if (name->is_glue && opts->interp_mode != SB_INTERP_BOTH)
		return 0;
	err = sb_profile_frame(assembly->profile, &frame, &id);
	return err ? err : sb_vec_push(&assembly->merge.merged, id);
}

static int add_interp(struct assembly *assembly, const struct sb_interp_frame *frame)
{
	const struct sb_runtime_ops *ops = sb_runtime_find(sb_where_runtime(frame->where));
	struct merge *merge = &assembly->merge;
	size_t first = merge->merged.nr;
	uint32_t inner;
	int err = begin_unit(merge);

	if (err)
		return err;
	for (inner = 0; !err; inner++) {
		err = sb_interp_name(assembly->opts->interp, &merge->space, frame, inner,
				     &merge->name);
		if (!err)
			err = add_function(assembly, ops, &merge->name);
	}
	if (merge->merged.nr == first)
		merge->units.nr--; /* nothing of it is shown */
	/* They came innermost first, and are stored outermost first. */
	sb_reverse_ids(merge->merged.at + first, merge->merged.nr - first);
	return err == -ENODATA ? 0 : err;
}

static int add_segment(struct assembly *assembly, uint32_t segment)
{
	struct merge *merge = &assembly->merge;
	const struct interp_segment *from = &merge->segments.at[segment];
	uint32_t i = from->nr, id;
	int err = 0;

	if (from->nr && from->first + from->nr == merge->nr_frames &&
	    merge->status != SB_STACK_COMPLETE && merge->status < SB_STACK_STATUS_MAX) {
		const struct sb_runtime_ops *ops = sb_runtime_find(from->runtime);
		const struct sb_attr cut = {
			.kind = SB_ATTR_TRUNCATED,
			.key = ops ? ops->name : "interpreter",
			.text = sb_cut_names[merge->status],
		};

		err = sb_profile_attr(assembly->profile, &cut, &id);
		if (!err)
			err = sb_vec_push(&merge->merged, id);
	}
	while (i-- && !err)
		err = add_interp(assembly, &merge->frames[from->first + i]);
	return err;
}

static int add_native(struct assembly *assembly, size_t i)
{
	struct merge *merge = &assembly->merge;
	size_t at = merge->natives.at[i].first;
	size_t end =
		i + 1 < merge->natives.nr ? merge->natives.at[i + 1].first : assembly->frames.nr;
	int err = begin_unit(merge);

	for (; at < end && !err; at++)
		err = sb_vec_push(&merge->merged, assembly->frames.at[at]);
	return err;
}

/* Return: whether the code of a native frame lies in the file that the runtime was found in.
 * Anchors cannot answer this, because some of them are generated code, which lies in no file. */
static bool is_of_runtime(const struct sb_interp_anchors *anchors,
			  const struct native_frame *native, uint32_t runtime)
{
	size_t i;

	for (i = 0; i < anchors->nr_runtimes; i++)
		if (anchors->runtimes[i] == runtime && !strcmp(anchors->files[i], native->module))
			return true;
	return false;
}

/* Whether a native frame is a runtime's own function, which adds nothing to its interpreter
 * frames. */
static bool is_glue(const struct merge *merge, const struct native_frame *native)
{
	const struct sb_interp_anchors *anchors = &merge->anchors;
	uint32_t asked = SB_RUNTIME_NONE; /* of many anchors, most are one runtime's */
	size_t i;

	for (i = 0; i < merge->natives.nr; i++) {
		const uint32_t runtime = merge->natives.at[i].anchor;

		if (!runtime || runtime == asked)
			continue;
		asked = runtime;
		if (is_of_runtime(anchors, native, runtime) &&
		    (!native->name || sb_runtime_is_glue(runtime, native->name)))
			return true;
	}
	for (i = 0; i < anchors->nr_natives; i++)
		if (native->name ? sb_runtime_is_glue(anchors->natives[i], native->name)
				 : !strcmp(anchors->native_files[i], native->module))
			return true;
	return false;
}

static bool is_shown(const struct merge *merge, const struct native_frame *native,
		     enum sb_interp_mode mode)
{
	switch (mode) {
	case SB_INTERP_BOTH:
	case SB_INTERP_OFF:
		return true;
	case SB_INTERP_ONLY:
		return false;
	default:
		return native->segment == NO_SEGMENT && !native->anchor && !is_glue(merge, native);
	}
}

/* Append, outermost first, the segments that go before native frame @before. UNPLACED: those
 * without an anchor; in a cut native stack they are beyond its end, in a complete one they began
 * after the last anchor that is known. */
static int add_segments(struct assembly *assembly, size_t before)
{
	size_t i = assembly->merge.segments.nr;
	int err = 0;

	while (i-- && !err) {
		const struct interp_segment *segment = &assembly->merge.segments.at[i];

		if (before == UNPLACED ? !segment->is_placed
				       : segment->is_ahead && segment->before == before)
			err = add_segment(assembly, (uint32_t)i);
	}
	return err;
}

/* Frames that are not shown do not count as frames without a name. */
static void uncount(struct sb_frame_counts *counts, const struct native_frame *native)
{
	counts->nr--;
	if (native->reason)
		counts->nr_unnamed[native->reason]--;
}

/* Replace the native frames of the assembly by the result. */
static int put_together(struct assembly *assembly)
{
	struct merge *merge = &assembly->merge;
	size_t i;
	int err;

	merge->merged.nr = 0;
	err = add_segments(assembly, UNPLACED);
	for (i = 0; i < merge->natives.nr && !err; i++) {
		const struct native_frame *native = &merge->natives.at[i];

		if (merge->has_ahead)
			err = add_segments(assembly, i);
		if (!err && is_shown(merge, native, assembly->opts->interp_mode))
			err = add_native(assembly, i);
		else if (!err)
			uncount(&assembly->part.counts, native);
		if (!err && native->segment != NO_SEGMENT)
			err = add_segment(assembly, native->segment);
	}
	if (!err && merge->has_ahead)
		err = add_segments(assembly, merge->natives.nr);
	if (err)
		return err;
	assembly->frames.nr = assembly->part.start;
	return sb_assembly_push_ids(assembly, merge->merged.at, merge->merged.nr);
}

/* Find the frames of the interpreter's stack, and how its walk ended. */
static void find_frames(struct assembly *assembly, struct sb_stack_cache *stacks,
			const struct user_stack *user)
{
	struct merge *merge = &assembly->merge;
	struct sb_known_stack *stack = NULL;

	merge->frames = NULL;
	merge->nr_frames = 0;
	merge->status = SB_STACK_COMPLETE;
	if (sb_stack_is_there(user->istack))
		stack = sb_stack_cache_find(stacks, user->istack);
	if (stack) {
		stack->tgid = user->tgid;
		merge->frames = (const void *)stack->ips;
		merge->nr_frames = stack->nr_ips / 2;
		merge->status = stack->status;
	} else if (sb_stack_is_there(user->istack)) {
		assembly->stats->nr_missing_stacks += assembly->nr_samples;
		assembly->is_cut = true;
	}
}

int sb_assembly_merge(struct assembly *assembly, struct sb_stack_cache *stacks,
		      const struct user_stack *user, uint32_t *status)
{
	const bool is_complete = !sb_cut_names[*status];
	struct sb_interp *interp = assembly->opts->interp;
	struct merge *merge = &assembly->merge;
	size_t i;
	int err;

	merge->units.nr = 0;
	merge->space = SB_SPACE_KEY(user);
	if (!sb_interp_anchors(interp, &merge->space, &merge->anchors))
		return 0;
	find_frames(assembly, stacks, user);
	merge->is_whole = is_complete && merge->status == SB_STACK_COMPLETE;
	merge->has_ahead = false;
	err = find_segments(merge);
	if (err)
		return err;
	find_anchors(merge);
	place_marked(merge);
	for (i = 0; i < merge->anchors.nr_runtimes; i++)
		place_runtime(assembly, merge->anchors.runtimes[i]);
	for (i = 0; i < merge->anchors.nr_natives; i++)
		count_native_runtime(assembly, merge->anchors.natives[i]);
	err = split_segments(merge, interp);
	if (err)
		return err;
	count_found(assembly);
	if (is_complete && sb_cut_names[merge->status])
		*status = merge->status;
	return merge->nr_frames ? put_together(assembly) : 0;
}
