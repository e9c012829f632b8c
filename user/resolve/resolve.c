// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "resolve/resolve_priv.h"
#include "resolve/roots.h"
#include "sb_abi_label.h"

/* sysctl kernel.perf_event_max_stack: the kernel hands out no more, and does not say so. */
#define KERNEL_FRAMES_MAX 127

/* Of what lies below one stack, between two drains. More are taken as one: in a second, no program
 * gives each of them a time worth a sample. */
#define CHANGES_MAX	  1000

const char *const sb_cut_names[] = {
	[SB_STACK_COMPLETE] = NULL,
	[SB_STACK_NONE] = NULL,
	[SB_STACK_DEPTH] = "too deep",
	[SB_STACK_FAULT] = "unreadable stack",
	[SB_STACK_BAD_FP] = "no frame pointer",
	[SB_STACK_BAD_PC] = "bad return address",
	[SB_STACK_COMPAT] = "32-bit process",
	[SB_STACK_NO_REGS] = "no registers",
	[SB_STACK_NO_TABLE] = "unwind table not ready",
	[SB_STACK_NO_RULE] = "no unwind rule",
	[SB_STACK_BAD_CFA] = "bad unwind rule",
	[SB_STACK_PIECE] = "longer than its first piece",
	[SB_STACK_RAN] = "ran before it was looked at",
};
_Static_assert(SB_ARRAY_SIZE(sb_cut_names) == SB_STACK_STATUS_MAX, "a row for each status");

int sb_resolver_new(const struct sb_resolve_opts *opts, struct sb_symbolizer *sym,
		    struct sb_profile *profile, struct sb_resolver **ret_resolver)
{
	struct sb_resolver *resolver = calloc(1, sizeof(*resolver));

	if (!resolver)
		return -ENOMEM;
	resolver->opts = *opts;
	resolver->sym = sym;
	resolver->profile = profile;
	if (!resolver->opts.nr_roots)
		resolver->opts.roots[resolver->opts.nr_roots++] = SB_ROOT_COMM;
	*ret_resolver = resolver;
	return 0;
}

void sb_resolver_free(struct sb_resolver *resolver)
{
	if (!resolver)
		return;
	sb_vec_release(&resolver->stacks);
	sb_index_release(&resolver->stacks_index);
	sb_vec_release(&resolver->ips);
	sb_vec_release(&resolver->evicted);
	sb_vec_release(&resolver->kernel_frames);
	sb_vec_release(&resolver->spaces);
	sb_index_release(&resolver->spaces_index);
	sb_vec_release(&resolver->frames);
	sb_vec_release(&resolver->reqs);
	sb_str_release(&resolver->text);
	sb_vec_release(&resolver->natives);
	sb_vec_release(&resolver->segments);
	sb_vec_release(&resolver->merged);
	sb_interp_name_release(&resolver->name);
	sb_objects_release(&resolver->objects);
	sb_labels_table_release(&resolver->labels);
	sb_vec_release(&resolver->names);
	free(resolver);
}

struct known_stack *sb_resolver_find_stack(struct sb_resolver *resolver, struct sb_stack_id id)
{
	struct sb_index_iter it;

	for (it = sb_index_first(&resolver->stacks_index, id.lo); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&resolver->stacks_index, it)) {
		struct known_stack *stack = &resolver->stacks.at[it.id];

		if (stack->id.lo == id.lo && stack->id.hi == id.hi)
			return stack;
	}
	return NULL;
}

static int keep_stack(struct sb_resolver *resolver, const struct sb_batch_stack *from)
{
	struct known_stack stack = {
		.id = from->id,
		.status = from->status < SB_STACK_STATUS_MAX ? from->status : SB_STACK_NONE,
		.flags = from->flags,
		.nr_ips = from->nr_frames,
		.has_one_meaning = from->list != 0,
		.is_single = from->is_single,
		.first_ip = resolver->ips.nr,
	};
	int err;

	if (sb_resolver_find_stack(resolver, from->id))
		return 0; /* shipped again, because the BPF side had no room to remember it */
	err = sb_vec_reserve(&resolver->ips, resolver->ips.nr + from->nr_frames);
	if (!err)
		err = sb_vec_reserve(&resolver->stacks, resolver->stacks.nr + 1);
	if (!err)
		err = sb_index_add(&resolver->stacks_index, from->id.lo,
				   (uint32_t)resolver->stacks.nr);
	if (err)
		return err;
	if (from->nr_frames)
		memcpy(resolver->ips.at + resolver->ips.nr, from->ip,
		       from->nr_frames * sizeof(*from->ip));
	resolver->ips.nr += from->nr_frames;
	resolver->stacks.at[resolver->stacks.nr++] = stack;
	resolver->stats.nr_stacks++;
	return 0;
}

static int push_frame(struct sb_resolver *resolver, const struct sb_frame *frame)
{
	uint32_t id;
	int err = sb_profile_frame(resolver->profile, frame, &id);

	return err ? err : sb_vec_push(&resolver->frames, id);
}

int sb_resolver_push(struct sb_resolver *resolver, const char *name, enum sb_frame_kind kind)
{
	return push_frame(resolver, &(struct sb_frame){ .name = name, .kind = kind });
}

/* Values of the labels that were asked for; NULL: the thread has none of that key. */
static void find_labels(struct sb_resolver *resolver, const struct sb_sample_key *key,
			const char **values)
{
	const struct sb_known_labels *labels;
	bool has_any = false;
	size_t i;

	memset(values, 0, SB_LABELS_MAX * sizeof(*values));
	if (!key->labels)
		return;
	labels = sb_labels_table_find(&resolver->labels, key->labels, resolver->nr_batches);
	if (!labels)
		resolver->stats.nr_missing_labels += resolver->nr_samples;
	for (i = 0; labels && i < resolver->opts.nr_labels; i++) {
		values[i] = sb_known_labels_value(labels, i);
		has_any |= values[i] != NULL;
	}
	if (has_any)
		resolver->stats.nr_labelled += resolver->nr_samples;
	if (has_any && !labels->text)
		resolver->stats.nr_other_labels += resolver->nr_samples;
}

/* "vehicle=car", for each that was asked for and that the thread has. */
static int push_labels(struct sb_resolver *resolver, const char *const *values)
{
	int err = 0;
	size_t i;

	for (i = 0; i < resolver->opts.nr_labels && !err; i++) {
		if (!values[i])
			continue;
		sb_str_clear(&resolver->text);
		err = sb_str_addf(&resolver->text, "%s=%s", resolver->opts.labels[i], values[i]);
		if (!err)
			err = sb_resolver_push(resolver, resolver->text.s, SB_FRAME_ROOT);
	}
	return err;
}

/* What stands outside of all else: the number of a series, or labels. */
static int push_outermost(struct sb_resolver *resolver, const struct sb_sample_key *key)
{
	const char *labels[SB_LABELS_MAX];
	char name[16];
	uint32_t series;
	int err;

	find_labels(resolver, key, labels);
	if (!resolver->opts.series)
		return push_labels(resolver, labels);
	err = resolver->opts.series(resolver->opts.series_arg, key, labels, &series);
	if (err)
		return err;
	snprintf(name, sizeof(name), "%u", series);
	return sb_resolver_push(resolver, name, SB_FRAME_ROOT);
}

static int push_roots(struct sb_resolver *resolver, const struct sb_sample_key *key)
{
	size_t i;
	int err = 0;

	if (resolver->opts.series)
		return 0;

	for (i = 0; i < resolver->opts.nr_roots && !err; i++) {
		sb_str_clear(&resolver->text);
		err = sb_root_text(resolver->opts.roots[i], key, &resolver->text);
		if (!err)
			err = sb_resolver_push(resolver, resolver->text.s, SB_FRAME_ROOT);
	}
	return err;
}

static enum sb_frame_kind kind_of(const struct sb_sym_frame *frame)
{
	switch (frame->kind) {
	case SB_SYM_KERNEL:
	case SB_SYM_KMOD:
	case SB_SYM_BPF:
		return frame->is_inlined ? SB_FRAME_KERNEL_INLINED : SB_FRAME_KERNEL;
	case SB_SYM_JIT:
		return SB_FRAME_JIT;
	default:
		return frame->is_inlined ? SB_FRAME_INLINED : SB_FRAME_USER;
	}
}

/* "[libc.so.6+0x1234]": never a name from a symbol that does not cover the address. */
static int stand_in(struct sb_resolver *resolver, const struct sb_sym_frame *frame)
{
	const char *module = frame->module;
	size_t len = strlen(module);

	sb_str_clear(&resolver->text);
	if (!len)
		return sb_str_add(&resolver->text, "[unknown]");
	if (module[0] == '[' && module[len - 1] == ']') {
		module++;
		len -= 2;
	}
	return sb_str_addf(&resolver->text, "[%.*s+0x%llx]", (int)len, module,
			   (unsigned long long)frame->module_addr);
}

static int push_sym(struct sb_resolver *resolver, const struct sb_sym_frame *sym)
{
	const struct sb_resolve_opts *opts = &resolver->opts;
	struct sb_frame frame = {
		.name = sym->name,
		.kind = kind_of(sym),
		.module = opts->modules ? sym->module : NULL,
		.file = opts->lines ? sym->file : NULL,
		.line = opts->lines ? sym->line : 0,
		.func_offset = opts->offsets ? sym->func_offset : 0,
	};
	int err;

	if (!sym->name) {
		err = stand_in(resolver, sym);
		if (err)
			return err;
		frame.name = resolver->text.s;
		frame.func_offset = 0;
		frame.is_unnamed = true;
	}
	return push_frame(resolver, &frame);
}

/* Note down where the frames of one address begin, for merge.c. */
static int note_native(struct sb_resolver *resolver, size_t i, const struct sb_sym_frame *physical)
{
	const uint64_t ip = resolver->marks_at[resolver->reqs.nr - 1 - i];

	return sb_vec_push(
		&resolver->natives,
		(struct native_frame){
			.addr = resolver->reqs.at[i].addr,
			.func = physical->name ? resolver->reqs.at[i].addr - physical->func_offset
					       : 0,
			.first = resolver->frames.nr,
			.name = physical->name,
			.module = physical->module,
			.is_marked = ip & SB_IP_INTERP,
			.is_generated =
				physical->kind == SB_SYM_JIT || physical->reason == SB_SYM_ANON,
		});
}

static int on_address(void *arg, size_t i, const struct sb_sym_frame *frames, size_t nr_frames)
{
	struct sb_resolver *resolver = arg;
	const struct sb_sym_frame *physical = &frames[nr_frames - 1];
	int err = 0;

	/* Frame pointers that lead to no code were none, and neither is what lies further up. */
	if (physical->reason == SB_SYM_UNMAPPED && i + 1 < resolver->reqs.nr) {
		memset(&resolver->counts, 0, sizeof(resolver->counts));
		resolver->frames.nr = resolver->part_start;
		resolver->natives.nr = 0;
		resolver->is_broken = true;
		return 0;
	}
	resolver->is_leaf_unmapped = physical->reason == SB_SYM_UNMAPPED;
	resolver->counts.nr++;
	if (resolver->marks_at)
		err = note_native(resolver, i, physical);
	if (err)
		return err;
	/* Where an interpreter's frame will stand, there is a name. */
	if (!physical->name &&
	    !(resolver->marks_at && resolver->natives.at[resolver->natives.nr - 1].is_marked))
		resolver->counts.nr_unnamed[physical->reason]++;
	while (nr_frames-- && !err)
		err = push_sym(resolver, &frames[nr_frames]);
	return err;
}

/* The addresses of @stack as requests, root first. */
static int make_requests(struct sb_resolver *resolver, const struct known_stack *stack)
{
	uint32_t at = stack->nr_ips;
	int err = 0;

	resolver->reqs.nr = 0;
	while (at-- && !err) {
		uint64_t ip = resolver->ips.at[stack->first_ip + at];
		uint64_t marks = stack->flags & SB_STACK_KERNEL ? 0 : ip & SB_IP_MARKS;
		bool is_caller = at > 0 || (stack->flags & SB_STACK_LEAF_RETURNS);

		is_caller = is_caller && !(marks & SB_IP_EXACT);
		err = sb_vec_push(&resolver->reqs, (struct sb_sym_req){ .addr = ip & ~marks,
									.is_caller = is_caller });
	}
	return err;
}

static void add_counts(struct sb_resolver *resolver, const struct frame_counts *counts)
{
	int i;

	resolver->stats.nr_frames += counts->nr * resolver->nr_samples;
	for (i = 0; i < SB_SYM_REASON_MAX; i++)
		resolver->stats.nr_unnamed[i] += counts->nr_unnamed[i] * resolver->nr_samples;
}

/* Why a stack was cut, as its reader sees it. */
static int push_cut(struct sb_resolver *resolver, uint32_t status)
{
	int err;

	sb_str_clear(&resolver->text);
	err = sb_str_addf(&resolver->text, "[truncated: %s]", sb_cut_names[status]);
	return err ? err : sb_resolver_push(resolver, resolver->text.s, SB_FRAME_MARK);
}

static int push_missing(struct sb_resolver *resolver)
{
	resolver->stats.nr_missing_stacks += resolver->nr_samples;
	return sb_resolver_push(resolver, "[lost stack]", SB_FRAME_MARK);
}

static struct sb_sym_query query_of(struct sb_resolver *resolver)
{
	return (struct sb_sym_query){
		.reqs = resolver->reqs.at,
		.nr = resolver->reqs.nr,
		.emit = on_address,
		.arg = resolver,
	};
}

/* Put the mark that the stack was cut where its missing callers would be. */
static int mark_cut(struct sb_resolver *resolver, uint32_t status)
{
	size_t nr = resolver->frames.nr - resolver->part_start;
	int err = push_cut(resolver, status);
	uint32_t *at = resolver->frames.at + resolver->part_start, mark;

	if (err)
		return err;
	mark = at[nr];
	memmove(at + 1, at, nr * sizeof(*at));
	at[0] = mark;
	return 0;
}

static int resolve_user(struct sb_resolver *resolver, const struct user_part *part,
			const struct known_stack *stack)
{
	struct sb_sym_query query;
	int err = make_requests(resolver, stack);

	if (err)
		return err;
	memset(&resolver->counts, 0, sizeof(resolver->counts));
	resolver->is_broken = resolver->is_leaf_unmapped = false;
	if (resolver->opts.interp)
		resolver->marks_at = resolver->ips.at + stack->first_ip;
	query = query_of(resolver);
	err = sb_symbolizer_user(resolver->sym, part->tgid, part->time_ns, &query);
	resolver->marks_at = NULL;
	return err;
}

int sb_resolver_push_user(struct sb_resolver *resolver, const struct user_part *part)
{
	struct known_stack *stack = sb_resolver_find_stack(resolver, part->ustack);
	uint32_t status;
	int err;

	resolver->stats.nr_user_stacks += resolver->nr_samples;
	if (!stack)
		return push_missing(resolver);
	stack->tgid = part->tgid;
	stack->batch = resolver->nr_batches;
	status = stack->status;
	resolver->part_start = resolver->frames.nr;
	resolver->natives.nr = 0;
	err = resolve_user(resolver, part, stack);
	if (err)
		return err;
	if (resolver->is_broken)
		status = SB_STACK_BAD_PC;
	/* No system call comes from where no code is: exec has put the caller's memory away, and
	 * the new program has not begun. There is no user stack at this moment. */
	if (resolver->is_leaf_unmapped && (stack->flags & SB_STACK_LEAF_RETURNS)) {
		resolver->frames.nr = resolver->part_start;
		resolver->natives.nr = 0;
		memset(&resolver->counts, 0, sizeof(resolver->counts));
		status = SB_STACK_NONE;
	}
	add_counts(resolver, &resolver->counts);
	resolver->stats.nr_status[status] += resolver->nr_samples;
	if (resolver->opts.interp) {
		err = sb_resolver_merge(resolver, part, !sb_cut_names[status]);
		if (err)
			return err;
	}
	return sb_cut_names[status] ? mark_cut(resolver, status) : 0;
}

static int resolve_kernel(struct sb_resolver *resolver, struct known_stack *stack)
{
	size_t before = resolver->frames.nr, nr;
	int err = make_requests(resolver, stack);
	struct sb_sym_query query = query_of(resolver);

	memset(&resolver->counts, 0, sizeof(resolver->counts));
	resolver->part_start = before;
	if (!err)
		err = sb_symbolizer_kernel(resolver->sym, &query);
	if (!err && resolver->opts.trim)
		sb_resolver_trim(resolver, before);
	nr = resolver->frames.nr - before;
	if (!err)
		err = sb_vec_reserve(&resolver->kernel_frames, resolver->kernel_frames.nr + nr);
	if (err)
		return err;
	memcpy(resolver->kernel_frames.at + resolver->kernel_frames.nr,
	       resolver->frames.at + before, nr * sizeof(uint32_t));
	stack->first_frame = resolver->kernel_frames.nr;
	stack->nr_frames = (uint32_t)nr;
	stack->is_resolved = true;
	stack->counts = resolver->counts;
	resolver->kernel_frames.nr += nr;
	add_counts(resolver, &stack->counts);
	return 0;
}

/* Kernel addresses mean the same in every sample: each stack is resolved once. */
int sb_resolver_push_kernel(struct sb_resolver *resolver, struct sb_stack_id id)
{
	struct known_stack *stack = sb_resolver_find_stack(resolver, id);
	int err;

	if (!stack)
		return push_missing(resolver);
	if (stack->nr_ips >= KERNEL_FRAMES_MAX) {
		resolver->stats.nr_kernel_cut += resolver->nr_samples;
		err = push_cut(resolver, SB_STACK_DEPTH);
		if (err)
			return err;
	}
	if (!stack->is_resolved)
		return resolve_kernel(resolver, stack);
	err = sb_vec_reserve(&resolver->frames, resolver->frames.nr + stack->nr_frames);
	if (err)
		return err;
	memcpy(resolver->frames.at + resolver->frames.nr,
	       resolver->kernel_frames.at + stack->first_frame,
	       stack->nr_frames * sizeof(uint32_t));
	resolver->frames.nr += stack->nr_frames;
	add_counts(resolver, &stack->counts);
	return 0;
}

static int count_space(struct sb_resolver *resolver, const struct sb_sample_key *key)
{
	const struct space space = { .start_ns = key->start_ns, .tgid = key->tgid };
	uint64_t hash = key->start_ns * 31 + key->tgid;
	struct sb_index_iter it;
	int err;

	hash = sb_hash(&hash, sizeof(hash), 0);
	for (it = sb_index_first(&resolver->spaces_index, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&resolver->spaces_index, it))
		if (resolver->spaces.at[it.id].start_ns == space.start_ns &&
		    resolver->spaces.at[it.id].tgid == space.tgid)
			return 0;
	err = sb_vec_push(&resolver->spaces, space);
	if (!err)
		err = sb_index_add(&resolver->spaces_index, hash,
				   (uint32_t)resolver->spaces.nr - 1);
	if (!err)
		resolver->stats.nr_processes++;
	return err;
}

static int push_stacks(struct sb_resolver *resolver, const struct sb_batch_count *count)
{
	bool has_user = sb_stack_is_there(count->key.ustack);
	bool has_kernel = sb_stack_is_there(count->key.kstack);
	int err = 0;

	resolver->parts.user = resolver->frames.nr;
	if (has_user)
		err = sb_resolver_push_user(resolver, &(struct user_part){
							      .ustack = count->key.ustack,
							      .istack = count->key.istack,
							      .start_ns = count->key.start_ns,
							      .time_ns = count->count.first_ns,
							      .tgid = count->key.tgid,
							      .exec_id = count->key.exec_id,
						      });
	if (!err && resolver->opts.delimited && has_user && has_kernel)
		err = sb_resolver_push(resolver, "-", SB_FRAME_DELIMITER);
	resolver->parts.kernel = resolver->frames.nr;
	if (!err && has_kernel)
		err = sb_resolver_push_kernel(resolver, count->key.kstack);
	resolver->parts.end = resolver->frames.nr;
	return err;
}

static int add_to_profile(struct sb_resolver *resolver, const struct sb_batch_count *count)
{
	if (count->key.log2_ns)
		return sb_profile_add_log2(resolver->profile, resolver->frames.at,
					   resolver->frames.nr, count->count.weight,
					   count->key.log2_ns - 1u, count->count.nr_samples);
	return sb_profile_add_samples(resolver->profile, resolver->frames.at, resolver->frames.nr,
				      count->count.weight, count->count.nr_samples);
}

/* What was counted of the stacks of a sample that is left out is not of the result. */
static void uncount_stacks(struct sb_resolver *resolver, struct sb_resolve_stats *before)
{
	before->idle_weight = resolver->stats.idle_weight;
	before->nr_unwanted = resolver->stats.nr_unwanted;
	resolver->stats = *before;
}

static int add_part(struct sb_resolver *resolver, const struct sb_batch_count *count)
{
	struct sb_resolve_stats before = resolver->stats;
	size_t first;
	int err;

	resolver->nr_samples = count->count.nr_samples;
	resolver->frames.nr = 0;
	err = push_outermost(resolver, &count->key);
	/* Labels of who was interrupted are not the interrupt's. */
	first = resolver->opts.series ? resolver->frames.nr : 0;
	if (!err)
		err = sb_resolver_push_state_root(resolver, &count->key);
	if (!err)
		err = push_roots(resolver, &count->key);
	if (!err)
		err = push_stacks(resolver, count);
	if (!err && resolver->opts.is_of_wakers)
		err = sb_resolver_cut_interrupted(resolver, first, resolver->parts.kernel);
	if (err)
		return err;
	if (sb_resolver_is_left_out(resolver, count)) {
		uncount_stacks(resolver, &before);
		return 0;
	}
	err = count_space(resolver, &count->key);
	if (err)
		return err;
	resolver->stats.nr_samples += count->count.nr_samples;
	resolver->stats.weight += count->count.weight;
	if (count->key.state < SB_STATE_MAX)
		resolver->stats.state_weight[count->key.state] += count->count.weight;
	err = sb_resolver_push_beyond(resolver, &count->key);
	return err ? err : add_to_profile(resolver, count);
}

/* When the code below @count changes next, after @from_ns; UINT64_MAX: it stays what it is. */
static int next_change(struct sb_resolver *resolver, const struct sb_batch_count *count,
		       uint64_t from_ns, uint64_t *ret_ns)
{
	const struct known_stack *stack = sb_resolver_find_stack(resolver, count->key.ustack);
	struct sb_sym_query query;
	int err;

	*ret_ns = UINT64_MAX;
	if (!stack || stack->has_one_meaning || from_ns >= count->count.last_ns)
		return 0;
	err = make_requests(resolver, stack);
	query = query_of(resolver);
	if (!err)
		*ret_ns = sb_symbolizer_next_change(resolver->sym, count->key.tgid, from_ns,
						    count->count.last_ns, &query);
	return err;
}

/* How many of the samples of @count came before @time_ns, when they came evenly. */
static uint64_t nr_samples_before(const struct sb_count *count, uint64_t time_ns)
{
	uint64_t nr_between = count->nr_samples - 2; /* the first and the last are known */
	double part =
		(double)(time_ns - count->first_ns) / (double)(count->last_ns - count->first_ns);

	return 1 + (uint64_t)((double)nr_between * part + 0.5);
}

/*
 * Samples that were counted as one, although another file was mapped below them meanwhile: the
 * times of all but the first and the last are not known, so they are shared out by time.
 */
static int add_split(struct sb_resolver *resolver, const struct sb_batch_count *count,
		     uint64_t change_ns)
{
	const struct sb_count *whole = &count->count;
	struct sb_batch_count part = *count;
	uint64_t nr_done = 0, nr_until, nr_changes = 0;
	int err = 0;

	while (nr_done < whole->nr_samples && !err) {
		nr_until = change_ns > whole->last_ns || ++nr_changes > CHANGES_MAX
				   ? whole->nr_samples
				   : nr_samples_before(whole, change_ns);
		part.count.nr_samples = nr_until - nr_done;
		part.count.weight = whole->weight / whole->nr_samples * part.count.nr_samples;
		if (nr_until == whole->nr_samples)
			part.count.weight += whole->weight % whole->nr_samples;
		if (nr_until > nr_done)
			err = add_part(resolver, &part);
		nr_done = nr_until;
		part.count.first_ns = change_ns;
		if (!err && nr_done < whole->nr_samples)
			err = next_change(resolver, count, change_ns, &change_ns);
	}
	resolver->stats.nr_shared_out += whole->nr_samples;
	return err;
}

static int add_count(struct sb_resolver *resolver, const struct sb_batch_count *count)
{
	uint64_t change_ns = UINT64_MAX;
	int err = 0;

	if (count->count.nr_samples > 1 && sb_stack_is_there(count->key.ustack))
		err = next_change(resolver, count, count->count.first_ns, &change_ns);
	if (err)
		return err;
	return change_ns == UINT64_MAX ? add_part(resolver, count)
				       : add_split(resolver, count, change_ns);
}

int sb_resolver_add(struct sb_resolver *resolver, const struct sb_batch *batch)
{
	size_t i;
	int err = 0;

	resolver->nr_batches++;
	for (i = 0; i < batch->nr_stacks && !err; i++)
		err = keep_stack(resolver, &batch->stacks[i]);
	for (i = 0; i < batch->nr_objects && !err; i++)
		err = sb_objects_keep(&resolver->objects, &batch->objects[i],
				      resolver->opts.path_glob);
	for (i = 0; i < batch->nr_labels && !err; i++)
		err = sb_labels_table_keep(&resolver->labels, &batch->labels[i],
					   resolver->nr_batches);
	for (i = 0; i < batch->nr_counts && !err; i++)
		err = add_count(resolver, &batch->counts[i]);
	if (!err)
		err = sb_labels_table_shed(&resolver->labels, resolver->nr_batches);
	return err ? err : sb_resolver_shed(resolver);
}

void sb_resolver_forget_processes(struct sb_resolver *resolver)
{
	sb_vec_release(&resolver->spaces);
	sb_index_release(&resolver->spaces_index);
}

static int move_frames(const struct sb_profile *from, struct sb_profile *to, uint32_t *ids,
		       size_t nr)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		err = sb_profile_frame(to, sb_profile_frame_at(from, ids[i]), &ids[i]);
	return err;
}

int sb_resolver_move(struct sb_resolver *resolver, struct sb_profile *profile)
{
	const struct sb_profile *from = resolver->profile;
	int err;

	resolver->profile = profile;
	err = move_frames(from, profile, resolver->kernel_frames.at, resolver->kernel_frames.nr);
	if (err)
		return err;
	return move_frames(from, profile, resolver->objects.frames.at, resolver->objects.frames.nr);
}

const uint64_t *sb_resolver_evicted_labels(const struct sb_resolver *resolver, size_t *ret_nr)
{
	*ret_nr = resolver->labels.evicted.nr;
	return resolver->labels.evicted.at;
}

void sb_resolver_stats(const struct sb_resolver *resolver, struct sb_resolve_stats *ret_stats)
{
	*ret_stats = resolver->stats;
}
