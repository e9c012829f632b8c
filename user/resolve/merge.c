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
#include "resolve/resolve_priv.h"

#define NO_SEGMENT UINT32_MAX

/* The merge of one stack. */
struct merge {
	struct sb_resolver *resolver;
	struct sb_space_key space;
	const struct sb_interp_frame *frames; /* leaf first */
	uint32_t nr_frames;
	uint32_t status;   /* how the interpreter's walk ended */
	bool is_complete;  /* the native stack is */
	bool is_from_root; /* callers are matched from the root */
	bool has_ahead;	   /* there are segments without a loop of their own */
};

static bool is_by_state(const struct sb_interp_anchors *anchors, uint32_t runtime)
{
	size_t i;

	for (i = 0; i < anchors->nr_runtimes; i++)
		if (anchors->runtimes[i] == runtime)
			return true;
	return false;
}

/* Find the segments, leaf first; those of one runtime follow those of another, as their frames
 * do. */
static int find_segments(struct merge *merge)
{
	struct sb_resolver *resolver = merge->resolver;
	struct interp_segment segment = {};
	uint32_t i;
	int err = 0;

	resolver->segments.nr = 0;
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
		err = sb_vec_push(&resolver->segments, segment);
		segment = (struct interp_segment){ .first = i + 1 };
	}
	return err;
}

static uint32_t nr_segments_of(const struct sb_resolver *resolver, uint32_t runtime)
{
	uint32_t nr = 0;
	size_t i;

	for (i = 0; i < resolver->segments.nr; i++)
		nr += resolver->segments.at[i].runtime == runtime;
	return nr;
}

static void find_anchors(struct sb_resolver *resolver)
{
	size_t i;

	for (i = 0; i < resolver->natives.nr; i++) {
		struct native_frame *native = &resolver->natives.at[i];

		native->segment = NO_SEGMENT;
		native->anchor = native->is_marked
					 ? 0
					 : sb_interp_anchor_of(&resolver->anchors, native->addr,
							       native->name);
		native->caller = SB_INTERP_ANCHOR_LOOP;
		if (native->anchor && i)
			native->caller = sb_interp_caller_of(&resolver->anchors, native->anchor,
							     native[-1].addr);
	}
}

/* Match native frames at marked addresses with the segments of runtimes that the native walk calls,
 * leaf first. */
static void place_marked(struct sb_resolver *resolver)
{
	size_t i = resolver->natives.nr, at = 0;

	while (i--) {
		if (!resolver->natives.at[i].is_marked)
			continue;
		while (at < resolver->segments.nr &&
		       is_by_state(&resolver->anchors, resolver->segments.at[at].runtime))
			at++;
		if (at == resolver->segments.nr)
			return;
		resolver->segments.at[at].is_placed = true;
		resolver->natives.at[i].segment = (uint32_t)at++;
	}
}

/* Find the place for segments without a loop: where generated code begins after the last loop, or
 * else at the leaf. */
static size_t find_ahead(const struct sb_resolver *resolver, uint32_t runtime)
{
	size_t i = resolver->natives.nr, generated = i;

	while (i-- && resolver->natives.at[i].anchor != runtime)
		if (resolver->natives.at[i].is_generated)
			generated = i;
	return generated;
}

/* Mark the first @nr segments of one runtime, at the leaf, as having no loop. Return: the index
 * after them. */
static size_t place_ahead(struct sb_resolver *resolver, uint32_t runtime, uint32_t nr)
{
	size_t before = nr ? find_ahead(resolver, runtime) : 0, at;

	for (at = 0; nr && at < resolver->segments.nr; at++) {
		struct interp_segment *segment = &resolver->segments.at[at];

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
static void place_by_anchors(struct sb_resolver *resolver, uint32_t runtime, uint32_t skip,
			     size_t at)
{
	size_t i = resolver->natives.nr;

	while (i--) {
		if (resolver->natives.at[i].anchor != runtime || (skip && skip--))
			continue;
		while (at < resolver->segments.nr && resolver->segments.at[at].runtime != runtime)
			at++;
		if (at == resolver->segments.nr)
			return;
		resolver->segments.at[at].is_placed = true;
		resolver->natives.at[i].segment = (uint32_t)at++;
	}
}

/* Find the segment for a loop that was called by @caller, and mark it as placed. @at: how many
 * segments were passed so far; segments without a loop are passed as well. Return: NO_SEGMENT when
 * there is none. */
static uint32_t next_segment(struct merge *merge, uint32_t runtime, uint32_t caller, size_t *at)
{
	struct sb_resolver *resolver = merge->resolver;
	size_t nr = resolver->segments.nr;

	for (; *at < nr; (*at)++) {
		size_t i = merge->is_from_root ? nr - 1 - *at : *at;
		struct interp_segment *segment = &resolver->segments.at[i];

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

static void place_by_callers(struct merge *merge, uint32_t runtime)
{
	struct sb_resolver *resolver = merge->resolver;
	size_t nr = resolver->natives.nr, i, at = 0;
	uint32_t nr_anchors = 0, nr_odd = 0;

	merge->is_from_root = merge->is_complete && merge->status == SB_STACK_COMPLETE;
	for (i = 0; i < nr; i++) {
		struct native_frame *native =
			&resolver->natives.at[merge->is_from_root ? i : nr - 1 - i];

		if (native->anchor != runtime)
			continue;
		nr_anchors++;
		if (native->caller == SB_INTERP_ANCHOR_INNER)
			continue;
		native->segment = next_segment(merge, runtime, native->caller, &at);
		nr_odd += native->segment == NO_SEGMENT;
	}
	for (i = 0; i < resolver->segments.nr; i++) {
		struct interp_segment *segment = &resolver->segments.at[i];

		if (segment->runtime != runtime || segment->is_placed)
			continue;
		nr_odd += !segment->is_ready;
		/* In a complete stack this is a segment whose loop has not begun. */
		segment->is_placed = segment->is_ready || (nr_anchors && merge->is_from_root);
	}
	if (nr_anchors || nr_segments_of(resolver, runtime))
		resolver->stats->runtime[runtime].nr_inside += resolver->nr_samples;
	if (nr_odd)
		resolver->stats->runtime[runtime].nr_odd += resolver->nr_samples;
}

/*
 * Complete native stacks that do not begin where programs and threads do are those of coroutines.
 * The interpreter's frames may go on beyond them (PHP's fibers, Ruby's enumerators).
 */
static bool begins_thread(const struct sb_resolver *resolver)
{
	static const char *const names[] = { "_start", "__clone", "clone", "__clone3", "clone3" };
	const char *root = resolver->natives.nr ? resolver->natives.at[0].name : NULL;
	size_t i;

	for (i = 0; root && i < SB_ARRAY_SIZE(names); i++)
		if (!strcmp(root, names[i]))
			return true;
	return false;
}

static void place_runtime(struct merge *merge, uint32_t runtime)
{
	struct sb_resolver *resolver = merge->resolver;
	bool is_whole = merge->is_complete && merge->status == SB_STACK_COMPLETE;
	uint32_t nr_segments = nr_segments_of(resolver, runtime), nr_anchors = 0, nr_ahead = 0,
		 skip = 0;
	size_t i;

	for (i = 0; i < resolver->natives.nr; i++)
		nr_anchors += resolver->natives.at[i].anchor == runtime;
	if (nr_anchors || nr_segments)
		resolver->stats->runtime[runtime].nr_inside += resolver->nr_samples;
	if (nr_segments && nr_anchors != nr_segments)
		resolver->stats->runtime[runtime].nr_odd += resolver->nr_samples;
	if (is_whole && nr_anchors > nr_segments)
		skip = nr_anchors - nr_segments;
	else if (is_whole && nr_anchors && begins_thread(resolver))
		nr_ahead = nr_segments - nr_anchors;
	merge->has_ahead |= nr_ahead > 0;
	place_by_anchors(resolver, runtime, skip, place_ahead(resolver, runtime, nr_ahead));
}

/* Find the native frame of the function that begins at @func, in the C part that begins at frame
 * @i. */
static size_t find_function(const struct sb_resolver *resolver, size_t i, uint64_t func)
{
	for (; i < resolver->natives.nr; i++) {
		const struct native_frame *native = &resolver->natives.at[i];

		if (native->segment != NO_SEGMENT)
			break;
		if (native->func == func)
			return i;
	}
	return SIZE_MAX;
}

/* Split the segment of the @i-th native frame at frames of C functions: each part moves to the
 * native frame of its own function, and is a segment there. */
static int split_segment(struct merge *merge, size_t i)
{
	struct sb_resolver *resolver = merge->resolver;
	struct interp_segment *segment = &resolver->segments.at[resolver->natives.at[i].segment];
	uint32_t first = segment->first, nr = segment->nr, runtime = segment->runtime;
	int err;

	while (nr--) {
		uint64_t func = sb_interp_c_function(resolver->opts.interp, &merge->space,
						     &merge->frames[first + nr]);
		size_t at = func ? find_function(resolver, i + 1, func) : SIZE_MAX;

		if (at == SIZE_MAX)
			continue;
		segment->first += nr + 1;
		segment->nr -= nr + 1;
		err = sb_vec_push(&resolver->segments, ((struct interp_segment){
							       .runtime = runtime,
							       .first = first,
							       .nr = nr + 1,
							       .is_placed = true,
						       }));
		if (err)
			return err;
		resolver->natives.at[at].segment = (uint32_t)resolver->segments.nr - 1;
		segment = &resolver->segments.at[resolver->segments.nr - 1];
		i = at;
	}
	return 0;
}

static int split_segments(struct merge *merge)
{
	struct sb_resolver *resolver = merge->resolver;
	size_t i;
	int err = 0;

	for (i = 0; i < resolver->natives.nr && !err; i++)
		if (resolver->natives.at[i].anchor && resolver->natives.at[i].segment != NO_SEGMENT)
			err = split_segment(merge, i);
	return err;
}

static void count_native_runtime(struct sb_resolver *resolver, uint32_t runtime)
{
	bool is_inside = nr_segments_of(resolver, runtime) > 0;
	size_t i;

	for (i = 0; i < resolver->natives.nr && !is_inside; i++)
		is_inside = resolver->natives.at[i].is_generated;
	if (is_inside)
		resolver->stats->runtime[runtime].nr_inside += resolver->nr_samples;
}

static void count_found(struct merge *merge)
{
	struct sb_resolver *resolver = merge->resolver;
	struct sb_resolve_runtime *stats;
	bool is_counted[SB_RUNTIME_MAX] = {};
	uint32_t i, runtime;

	for (i = 0; i < merge->nr_frames; i++) {
		runtime = sb_where_runtime(merge->frames[i].where);
		if (runtime >= SB_RUNTIME_MAX || merge->frames[i].obj == SB_INTERP_READY)
			continue;
		stats = &resolver->stats->runtime[runtime];
		stats->nr_frames += resolver->nr_samples;
		if (is_counted[runtime])
			continue;
		is_counted[runtime] = true;
		stats->nr_found += resolver->nr_samples;
		if (merge->status != SB_STACK_COMPLETE)
			stats->nr_cut += resolver->nr_samples;
	}
}

/* The result. */

static int keep(struct sb_resolver *resolver, const struct sb_frame *frame)
{
	uint32_t id;
	int err = sb_profile_frame(resolver->profile, frame, &id);

	return err ? err : sb_vec_push(&resolver->merged, id);
}

/* Begin a native or an interpreter frame with its inlined ones; --depth counts these. */
static int begin_unit(struct sb_resolver *resolver)
{
	return sb_vec_push(&resolver->units, (uint32_t)resolver->merged.nr);
}

static int keep_interp(struct merge *merge, const struct sb_interp_frame *frame)
{
	struct sb_resolver *resolver = merge->resolver;
	const struct sb_runtime_ops *ops = sb_runtime_find(sb_where_runtime(frame->where));
	struct sb_interp_name *name = &resolver->name;
	size_t first = resolver->merged.nr, i, nr;
	uint32_t inner;
	int err = begin_unit(resolver);

	for (inner = 0; !err; inner++) {
		err = sb_interp_name(resolver->opts.interp, &merge->space, frame, inner, name);
		if (err)
			break;
		if (name->is_unnamed && ops)
			resolver->stats->runtime[ops->runtime].nr_unreadable +=
				resolver->nr_samples;
		if (name->is_glue && resolver->opts.interp_mode != SB_INTERP_BOTH)
			continue;
		err = keep(resolver,
			   &(struct sb_frame){
				   .name = name->name.s,
				   .module = resolver->opts.modules && ops ? ops->name : NULL,
				   .file = resolver->opts.lines && name->file.len ? name->file.s
										  : NULL,
				   .line = resolver->opts.lines ? name->line : 0,
				   .kind = SB_FRAME_INTERP,
				   .is_unnamed = name->is_unnamed,
			   });
		if (err)
			break;
	}
	/* They came innermost first, and are stored outermost first. */
	nr = resolver->merged.nr - first;
	if (!nr && resolver->units.nr)
		resolver->units.nr--; /* nothing of it is shown */
	for (i = 0; i < nr / 2; i++) {
		uint32_t *at = resolver->merged.at + first, swapped = at[i];

		at[i] = at[nr - 1 - i];
		at[nr - 1 - i] = swapped;
	}
	return err == -ENODATA ? 0 : err;
}

static int keep_segment(struct merge *merge, uint32_t segment)
{
	const struct interp_segment *from = &merge->resolver->segments.at[segment];
	uint32_t i = from->nr;
	int err = 0;

	if (from->nr && from->first + from->nr == merge->nr_frames &&
	    merge->status != SB_STACK_COMPLETE && merge->status < SB_STACK_STATUS_MAX) {
		const struct sb_runtime_ops *ops = sb_runtime_find(from->runtime);
		const struct sb_attr cut = {
			.kind = SB_ATTR_TRUNCATED,
			.key = ops ? ops->name : "interpreter",
			.text = sb_cut_names[merge->status],
		};
		uint32_t id;

		err = sb_profile_attr(merge->resolver->profile, &cut, &id);
		if (!err)
			err = sb_vec_push(&merge->resolver->merged, id);
	}
	while (i-- && !err)
		err = keep_interp(merge, &merge->frames[from->first + i]);
	return err;
}

static int keep_native(struct sb_resolver *resolver, size_t i)
{
	size_t at = resolver->natives.at[i].first;
	size_t end = i + 1 < resolver->natives.nr ? resolver->natives.at[i + 1].first
						  : resolver->frames.nr;
	int err = begin_unit(resolver);

	for (; at < end && !err; at++)
		err = sb_vec_push(&resolver->merged, resolver->frames.at[at]);
	return err;
}

/* Return: whether the code of a native frame lies in the file that the runtime was found in. Anchors
 * cannot answer this, because some of them are generated code, which lies in no file. */
static bool is_of_runtime(const struct sb_resolver *resolver, const struct native_frame *native,
			  uint32_t runtime)
{
	size_t i;

	for (i = 0; i < resolver->anchors.nr_runtimes; i++)
		if (resolver->anchors.runtimes[i] == runtime &&
		    !strcmp(resolver->anchors.files[i], native->module))
			return true;
	return false;
}

/* Whether a native frame is a runtime's own function, which adds nothing to its interpreter
 * frames. */
static bool is_glue(const struct sb_resolver *resolver, const struct native_frame *native)
{
	uint32_t asked = SB_RUNTIME_NONE; /* of many anchors, most are one runtime's */
	size_t i;

	for (i = 0; i < resolver->natives.nr; i++) {
		const struct native_frame *anchor = &resolver->natives.at[i];

		if (!anchor->anchor || anchor->anchor == asked)
			continue;
		asked = anchor->anchor;
		if (!is_of_runtime(resolver, native, asked))
			continue;
		if (!native->name || sb_runtime_is_glue(anchor->anchor, native->name))
			return true;
	}
	for (i = 0; i < resolver->anchors.nr_natives; i++)
		if (native->name ? sb_runtime_is_glue(resolver->anchors.natives[i], native->name)
				 : !strcmp(resolver->anchors.native_files[i], native->module))
			return true;
	return false;
}

static bool is_kept(const struct sb_resolver *resolver, const struct native_frame *native)
{
	switch (resolver->opts.interp_mode) {
	case SB_INTERP_BOTH:
	case SB_INTERP_OFF:
		return true;
	case SB_INTERP_ONLY:
		return false;
	default:
		return native->segment == NO_SEGMENT && !native->anchor &&
		       !is_glue(resolver, native);
	}
}

/* Keep the segments without an anchor, outermost first: in a cut native stack they are beyond its
 * end; in a complete one they began after the last anchor that is known. */
static int keep_unplaced(struct merge *merge)
{
	size_t i = merge->resolver->segments.nr;
	int err = 0;

	while (i-- && !err)
		if (!merge->resolver->segments.at[i].is_placed)
			err = keep_segment(merge, (uint32_t)i);
	return err;
}

/* Outermost first. */
static int keep_ahead(struct merge *merge, size_t before)
{
	size_t i = merge->resolver->segments.nr;
	int err = 0;

	while (i-- && !err) {
		const struct interp_segment *segment = &merge->resolver->segments.at[i];

		if (segment->is_ahead && segment->before == before)
			err = keep_segment(merge, (uint32_t)i);
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

static int put_together(struct merge *merge)
{
	struct sb_resolver *resolver = merge->resolver;
	size_t i;
	int err;

	resolver->merged.nr = 0;
	err = keep_unplaced(merge);
	for (i = 0; i < resolver->natives.nr && !err; i++) {
		const struct native_frame *native = &resolver->natives.at[i];

		if (merge->has_ahead)
			err = keep_ahead(merge, i);
		if (!err && is_kept(resolver, native))
			err = keep_native(resolver, i);
		else if (!err)
			uncount(&resolver->counts, native);
		if (!err && native->segment != NO_SEGMENT)
			err = keep_segment(merge, native->segment);
	}
	if (!err && merge->has_ahead)
		err = keep_ahead(merge, resolver->natives.nr);
	if (!err)
		err = sb_vec_reserve(&resolver->frames, resolver->part_start + resolver->merged.nr);
	if (err)
		return err;
	memcpy(resolver->frames.at + resolver->part_start, resolver->merged.at,
	       resolver->merged.nr * sizeof(uint32_t));
	resolver->frames.nr = resolver->part_start + resolver->merged.nr;
	return 0;
}

int sb_resolver_merge(struct sb_resolver *resolver, const struct user_part *part, uint32_t *status)
{
	struct merge merge = {
		.resolver = resolver,
		.space = SB_SPACE_KEY(part),
		.is_complete = !sb_cut_names[*status],
	};
	struct sb_known_stack *stack = NULL;
	size_t i;
	int err;

	resolver->units.nr = 0;
	if (!sb_interp_anchors(resolver->opts.interp, &merge.space, &resolver->anchors))
		return 0;
	if (sb_stack_is_there(part->istack))
		stack = sb_stack_cache_find(&resolver->stacks, part->istack);
	if (stack) {
		stack->tgid = part->tgid;
		merge.frames = (const void *)sb_stack_cache_ips(&resolver->stacks, stack);
		merge.nr_frames = stack->nr_ips / 2;
		merge.status = stack->status;
	} else if (sb_stack_is_there(part->istack)) {
		resolver->stats->nr_missing_stacks += resolver->nr_samples;
		resolver->is_cut = true;
	}
	err = find_segments(&merge);
	if (err)
		return err;
	find_anchors(resolver);
	place_marked(resolver);
	for (i = 0; i < resolver->anchors.nr_runtimes; i++) {
		uint32_t runtime = resolver->anchors.runtimes[i];

		if (sb_interp_has_callers(&resolver->anchors, runtime))
			place_by_callers(&merge, runtime);
		else
			place_runtime(&merge, runtime);
	}
	for (i = 0; i < resolver->anchors.nr_natives; i++)
		count_native_runtime(resolver, resolver->anchors.natives[i]);
	err = split_segments(&merge);
	if (err)
		return err;
	count_found(&merge);
	if (merge.is_complete && sb_cut_names[merge.status])
		*status = merge.status;
	return merge.nr_frames ? put_together(&merge) : 0;
}
