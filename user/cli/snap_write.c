// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/snap.h"
#include "model/fold.h"
#include "output/functions.h"
#include "output/jsontext.h"

static const char *const states[] = {
	[SB_STATE_NONE] = "no stack",	  [SB_STATE_RUNNING] = "running",
	[SB_STATE_RUNQUEUE] = "runnable", [SB_STATE_THROTTLED] = "throttled",
	[SB_STATE_SLEEP] = "sleeping",	  [SB_STATE_DISK] = "uninterruptible",
	[SB_STATE_STOPPED] = "stopped",	  [SB_STATE_IDLE] = "idle",
};
_Static_assert(SB_ARRAY_SIZE(states) == SB_STATE_MAX, "a word for each state");

/* What a format of ours is given. */
struct input {
	const struct sb_snap *snap;
	const struct sb_profile *profile;
};

static struct input input_of(const struct sb_profile *profile, const struct sb_output_opts *opts)
{
	return (struct input){ .snap = (const struct sb_snap *)opts, .profile = profile };
}

/* Threads of one stack: the numbers first ... first + nr - 1 in an order that has them side by
 * side. */
static bool is_equal(const struct sb_snap_thread *a, const struct sb_snap_thread *b)
{
	return a->tgid == b->tgid && a->state == b->state && a->nr_ids == b->nr_ids &&
	       (!a->nr_ids || !memcmp(a->ids, b->ids, a->nr_ids * sizeof(*a->ids)));
}

static int compare_stacks(const void *va, const void *vb)
{
	const struct sb_snap_thread *a = *(const struct sb_snap_thread *const *)va;
	const struct sb_snap_thread *b = *(const struct sb_snap_thread *const *)vb;
	int order = sb_compare(a->tgid, b->tgid) ?: sb_compare(a->state, b->state) ?:
		sb_compare(a->nr_ids, b->nr_ids);

	if (!order && a->nr_ids)
		order = memcmp(a->ids, b->ids, a->nr_ids * sizeof(*a->ids));
	return order ?: sb_compare(a->tid, b->tid);
}

/* The threads of one stack, @nr of them. */
struct stack {
	const struct sb_snap_thread *const *at;
	size_t nr;
};

/* What a format does with a stack. */
typedef int (*write_fn)(const struct input *input, const struct stack *stack, void *arg);

static int compare_sizes(const void *va, const void *vb)
{
	const struct stack *a = va, *b = vb;

	return sb_compare(a->at[0]->tgid, b->at[0]->tgid) ?: sb_compare(b->nr, a->nr) ?:
	       sb_compare(a->at[0]->tid, b->at[0]->tid);
}

/* Call @fn for each thread, or, grouped, for each stack, those of most threads first. */
static int for_each_stack(const struct input *input, write_fn fn, void *arg)
{
	const struct sb_snap *snap = input->snap;
	size_t nr = snap->threads.nr, i, nr_stacks = 0;
	sb_cleanup(sb_freep) const struct sb_snap_thread **order = calloc(nr + 1, sizeof(*order));
	sb_cleanup(sb_freep) struct stack *stacks = calloc(nr + 1, sizeof(*stacks));
	int err = order && stacks ? 0 : -ENOMEM;

	for (i = 0; i < nr && !err; i++)
		order[i] = &snap->threads.at[i];
	if (!err && snap->group && nr)
		qsort(order, nr, sizeof(*order), compare_stacks);
	for (i = 0; i < nr && !err; i++) {
		if (snap->group && i && is_equal(order[i - 1], order[i]))
			stacks[nr_stacks - 1].nr++;
		else
			stacks[nr_stacks++] = (struct stack){ .at = &order[i], .nr = 1 };
	}
	if (!err && snap->group && nr)
		qsort(stacks, nr_stacks, sizeof(*stacks), compare_sizes);
	for (i = 0; i < nr_stacks && !err; i++)
		err = fn(input, &stacks[i], arg);
	return err;
}

static const struct sb_frame *frame_at(const struct input *input,
				       const struct sb_snap_thread *thread, size_t i)
{
	return sb_profile_frame_at(input->profile, thread->ids[i]);
}

/* Names are other people's bytes. */
static void put_text(const char *s, FILE *out)
{
	sb_print_clean(out, s, strlen(s));
}

static void put_place(const struct sb_frame *frame, FILE *out)
{
	const char *module = frame->module ? sb_base_name(frame->module) : "";

	if (frame->kind == SB_FRAME_KERNEL || frame->kind == SB_FRAME_KERNEL_INLINED)
		module = *module ? module : "[kernel]";
	if (frame->file) {
		fputs(" (", out);
		put_text(frame->file, out);
		if (frame->line)
			fprintf(out, ":%u", frame->line);
		putc(')', out);
	}
	if (*module) {
		fputs("  ", out);
		put_text(module, out);
	}
}

static void put_heading(const struct stack *stack, FILE *out)
{
	const struct sb_snap_thread *thread = stack->at[0];
	size_t i;

	if (stack->nr > 1) {
		fprintf(out, "%zu threads (", stack->nr);
		put_text(thread->comm, out);
		fputs("):", out);
		for (i = 0; i < stack->nr; i++)
			fprintf(out, " %u", stack->at[i]->tid);
		fprintf(out, ": %s", states[thread->state]);
	} else {
		fprintf(out, "thread %u (", thread->tid);
		put_text(thread->comm, out);
		fprintf(out, "): %s", states[thread->state]);
	}
	if (thread->idle)
		fprintf(out, ", idle: %s", thread->idle);
	if (thread->lock)
		fprintf(out, ", lock: %s", thread->lock);
	putc('\n', out);
}

static int write_stack(const struct input *input, const struct stack *stack, void *arg)
{
	const struct sb_snap_thread *thread = stack->at[0];
	FILE *out = arg;
	size_t i;

	put_heading(stack, out);
	for (i = thread->nr_ids; i--;) {
		const struct sb_frame *frame = frame_at(input, thread, i);

		fprintf(out, "    #%-2zu ", thread->nr_ids - 1 - i);
		put_text(frame->name, out);
		put_place(frame, out);
		putc('\n', out);
	}
	if (thread->state == SB_STATE_NONE)
		fputs("    (this thread started, exited or ran while stackbpf read the "
		      "others, or the kernel hides its stack)\n",
		      out);
	putc('\n', out);
	return ferror(out) ? -EIO : 0;
}

static int write_stacks(const struct sb_profile *profile, const struct sb_output_opts *opts,
			FILE *out)
{
	const struct input input = input_of(profile, opts);

	return for_each_stack(&input, write_stack, out);
}

static int write_line(const struct input *input, const struct stack *stack, void *arg)
{
	const struct sb_snap_thread *thread = stack->at[0];
	sb_cleanup(sb_str_release) struct sb_str root = {}, line = {};
	const struct sb_fold_opts opts = {};
	const struct sb_attr attr = {
		.kind = stack->nr > 1 ? SB_ATTR_PROCESS : SB_ATTR_THREAD,
		.pid = thread->tgid,
		.tid = thread->tid,
		.text = thread->comm,
	};
	const struct sb_row row = { .frames = thread->ids, .nr = thread->nr_ids };
	FILE *out = arg;
	int err = sb_fold_attr(&root, &attr);

	err = err ?: sb_fold_frame(&line, &(struct sb_frame){ .name = root.s }, &opts);
	err = err ?: sb_str_add(&line, row.nr ? ";" : "");
	err = err ?: sb_fold_frames(&line, input->profile, &row, &opts);
	if (err)
		return err;
	fprintf(out, "%s;[%s] %zu\n", line.s, states[thread->state], stack->nr);
	return ferror(out) ? -EIO : 0;
}

static int write_folded(const struct sb_profile *profile, const struct sb_output_opts *opts,
			FILE *out)
{
	const struct input input = input_of(profile, opts);

	return for_each_stack(&input, write_line, out);
}

static void put_frame(struct sb_json *json, const struct sb_frame *frame)
{
	sb_json_object(json, NULL);
	sb_json_string(json, "name", frame->name);
	sb_json_string(json, "kind", sb_function_kind_name(frame->kind));
	sb_json_string(json, "module", frame->module);
	if (frame->file) {
		sb_json_string(json, "file", frame->file);
		sb_json_u64(json, "line", frame->line);
	}
	sb_json_close(json);
}

static void put_thread(struct sb_json *json, const struct sb_snap_thread *thread)
{
	sb_json_object(json, NULL);
	sb_json_u64(json, "tid", thread->tid);
	sb_json_string(json, "comm", thread->comm);
	sb_json_close(json);
}

static int write_object(const struct input *input, const struct stack *stack, void *arg)
{
	const struct sb_snap_thread *thread = stack->at[0];
	struct sb_json *json = arg;
	size_t i;

	sb_json_object(json, NULL);
	sb_json_u64(json, "pid", thread->tgid);
	sb_json_string(json, "state", states[thread->state]);
	sb_json_string(json, "idle", thread->idle);
	sb_json_string(json, "lock", thread->lock);
	sb_json_array(json, "threads");
	for (i = 0; i < stack->nr; i++)
		put_thread(json, stack->at[i]);
	sb_json_close(json);
	sb_json_array(json, "frames");
	for (i = thread->nr_ids; i--;)
		put_frame(json, frame_at(input, thread, i));
	sb_json_close(json);
	sb_json_close(json);
	return json->err;
}

static int write_json(const struct sb_profile *profile, const struct sb_output_opts *opts,
		      FILE *out)
{
	const struct input input = input_of(profile, opts);
	struct sb_json json = { .put = sb_json_put_file, .arg = out };
	int err, err_end;

	sb_json_object(&json, NULL);
	sb_json_rows(&json, "stacks");
	err = for_each_stack(&input, write_object, &json);
	err_end = sb_json_end(&json);
	return err ? err : err_end;
}

static const struct sb_output formats[] = {
	{ .name = "stacks", .write = write_stacks },
	{ .name = "folded", .write = write_folded },
	{ .name = "json", .write = write_json },
};

const struct sb_opt_word sb_snap_formats[] = {
	{ "stacks", 0 },
	{ "folded", 0 },
	{ "json", 0 },
	{},
};

const struct sb_output *sb_snap_format(const char *name)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(formats); i++)
		if (sb_streq(formats[i].name, name))
			return &formats[i];
	return NULL;
}
