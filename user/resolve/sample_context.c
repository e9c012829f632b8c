// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is known of a sample besides its stacks: thread states, calls, objects, why it waits. */
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "resolve/assembly.h"
#include "resolve/roots.h"

/* The frames of a tracer on top of what it looked at are few. */
#define NR_TRIMMED_MAX 24u
/* sb_sample_key.op of time on a CPU that no sample fell into. */
#define OP_NOT_SAMPLED 1u

/* Whether @name matches one of @globs, which NULL ends. */
static bool is_like_any(const char *name, const char *const *globs)
{
	for (; *globs; globs++)
		if (sb_glob_matches(*globs, strlen(*globs), name))
			return true;
	return false;
}

/* Kernel functions where a CPU enters an interrupt. */
static const char *const interrupt_entries[] = {
	"asm_sysvec_*",
	"asm_common_interrupt",
	"el1_interrupt",
	"el0_interrupt",
	"el1h_64_irq*",
	"el0t_64_irq*",
	NULL,
};

void sb_assembly_trim(struct assembly *assembly, size_t first)
{
	size_t end = assembly->frames.nr, i;
	const struct sb_frame *frame;
	const char *name;

	for (i = assembly->frames.nr; i-- > first && assembly->frames.nr - i <= NR_TRIMMED_MAX;) {
		name = sb_assembly_frame_at(assembly, i)->name;
		/* What was interrupted may be a tracer, too, but not the one that took this
		 * stack. */
		if (is_like_any(name, interrupt_entries))
			break;
		if (is_like_any(name, assembly->view->trim))
			end = i;
	}
	for (i = end; i < assembly->frames.nr; i++) {
		frame = sb_assembly_frame_at(assembly, i);
		/* An address is counted once, with all that was inlined there. */
		if (!frame->is_unnamed && frame->kind != SB_FRAME_KERNEL_INLINED)
			assembly->part.counts.nr--;
	}
	assembly->frames.nr = end;
}

static const enum sb_attr_kind root_of_state[SB_STATE_MAX] = {
	[SB_STATE_RUNQUEUE] = SB_ATTR_RUNQUEUE,
	[SB_STATE_THROTTLED] = SB_ATTR_THROTTLED,
};

static const enum sb_attr_kind leaf_of_state[SB_STATE_MAX] = {
	[SB_STATE_RUNNING] = SB_ATTR_RUNNING,	  [SB_STATE_RUNQUEUE] = SB_ATTR_RUNQUEUE,
	[SB_STATE_THROTTLED] = SB_ATTR_THROTTLED, [SB_STATE_SLEEP] = SB_ATTR_BLOCKED,
	[SB_STATE_DISK] = SB_ATTR_BLOCKED,	  [SB_STATE_STOPPED] = SB_ATTR_STOPPED,
	[SB_STATE_IDLE] = SB_ATTR_BLOCKED,
};

/* Push the frame that @kinds has for the thread's state, if any. */
static int push_state(struct assembly *assembly, const struct sb_sample_key *key,
		      const enum sb_attr_kind kinds[SB_STATE_MAX])
{
	enum sb_attr_kind kind = key->state < SB_STATE_MAX ? kinds[key->state] : SB_ATTR_NONE;

	if (kind == SB_ATTR_RUNNING && key->op == OP_NOT_SAMPLED)
		kind = SB_ATTR_NOT_SAMPLED;
	return kind ? sb_assembly_push_mark(assembly, kind, NULL) : 0;
}

int sb_assembly_push_state_root(struct assembly *assembly, const struct sb_sample_key *key)
{
	return assembly->view->state_at_root ? push_state(assembly, key, root_of_state) : 0;
}

/* Find the kernel function that called the scheduler; the frames above it belong to the
 * scheduler. */
static const char *waits_in(const struct assembly *assembly)
{
	size_t i;

	for (i = assembly->end; i-- > assembly->kernel_at;) {
		const char *name = sb_assembly_frame_at(assembly, i)->name;

		if (!sb_begins(name, "schedule") && !sb_begins(name, "__schedule") &&
		    !sb_begins(name, "io_schedule"))
			return name;
	}
	return NULL;
}

void sb_assembly_find_reason(struct assembly *assembly, struct sb_wait_words *words,
			     const struct sb_sample_key *key)
{
	struct sb_wait_frame user[SB_WAIT_FRAMES_MAX];
	struct sb_wait wait = { .user = user };
	size_t i;

	assembly->reason = (struct sb_wait_reason){ .class = SB_WAIT_PLAIN };
	if (!assembly->view->has_idle ||
	    (key->state != SB_STATE_SLEEP && key->state != SB_STATE_IDLE &&
	     key->state != SB_STATE_DISK))
		return;
	wait.kernel = waits_in(assembly);
	for (i = assembly->kernel_at; i-- > assembly->user_at;) {
		const struct sb_frame *frame = sb_assembly_frame_at(assembly, i);

		if (wait.nr_user == SB_ARRAY_SIZE(user))
			break;
		if (frame->kind == SB_FRAME_DELIMITER)
			continue;
		user[wait.nr_user++] = (struct sb_wait_frame){
			.name = frame->name,
			.is_interp = frame->kind == SB_FRAME_INTERP,
			.is_word = sb_wait_words_has(words, assembly->frames.at[i], frame->name),
		};
	}
	assembly->reason = sb_waits_reason(&wait);
}

bool sb_assembly_is_left_out(struct assembly *assembly, struct sb_object_cache *objects,
			     const struct sb_batch_count *count)
{
	const struct sb_object *object = NULL;

	if (count->key.object)
		object = sb_object_cache_find(objects, count->key.object);
	if (object && object->is_unwanted) {
		assembly->stats->nr_unwanted += count->count.nr_samples;
		return true;
	}
	if (assembly->opts->idle != SB_IDLE_DROP || assembly->reason.class != SB_WAIT_IDLE)
		return false;
	assembly->stats->idle_weight += count->count.weight;
	return true;
}

/* Push the reason of the wait, as a leaf frame or as a root frame. */
static int push_reason(struct assembly *assembly)
{
	int err;

	if (assembly->reason.class == SB_WAIT_PLAIN)
		return 0;
	if (assembly->reason.class == SB_WAIT_LOCK)
		return sb_assembly_push_mark(assembly, SB_ATTR_LOCK, assembly->reason.kind);
	if (assembly->opts->idle == SB_IDLE_SHOW)
		return sb_assembly_push_mark(assembly, SB_ATTR_IDLE, assembly->reason.kind);
	err = sb_assembly_push_mark(assembly, SB_ATTR_ALL_IDLE, NULL);
	if (!err)
		sb_assembly_move_last(assembly, 0);
	return err;
}

static int push_task(struct assembly *assembly, struct sb_stack_cache *stacks,
		     const struct sb_object *object)
{
	const struct sb_object_task *task = object->data;
	int err = sb_comm_text(task->comm, &assembly->text);

	return err ? err : sb_assembly_push(assembly, assembly->text.s, SB_FRAME_ROOT);
}

static int push_file(struct assembly *assembly, struct sb_stack_cache *stacks,
		     const struct sb_object *object)
{
	int err;

	if (assembly->opts->file == SB_FILE_TEXT_NONE)
		return 0;
	sb_str_clear(&assembly->text);
	err = sb_object_file_text(object, assembly->opts->file, &assembly->text);
	return err ? err : sb_assembly_push(assembly, assembly->text.s, SB_FRAME_FILE);
}

int sb_assembly_cut_interrupted(struct assembly *assembly, size_t first, size_t kernel)
{
	uint32_t *at = assembly->frames.at;
	size_t nr = assembly->frames.nr, i;
	int err;

	/* The last one counts, since interrupts can be nested. */
	for (i = nr; i-- > kernel;)
		if (is_like_any(sb_assembly_frame_at(assembly, i)->name, interrupt_entries))
			break;
	if (i < kernel || i >= nr)
		return 0;
	/* What may be missing is cut off, too. */
	assembly->is_cut = false;
	if (assembly->user_count)
		*assembly->user_count -= assembly->nr_samples;
	memmove(at + first, at + i, (nr - i) * sizeof(*at));
	assembly->frames.nr = first + nr - i;
	err = sb_assembly_push_attr(
		assembly, &(struct sb_attr){ .kind = SB_ATTR_COMM, .text = "[interrupt]" });
	if (!err)
		sb_assembly_move_last(assembly, first);
	return err;
}

/* Make the frames from @first on those of a waker: of that kind, and in reverse order. */
static int turn_to_waker(struct assembly *assembly, size_t first)
{
	uint32_t *at = assembly->frames.at + first;
	size_t nr = assembly->frames.nr - first, i;
	struct sb_frame frame;
	int err = 0;

	sb_reverse_ids(at, nr);
	for (i = 0; i < nr && !err; i++) {
		frame = *sb_profile_frame_at(assembly->profile, at[i]);
		if (frame.kind == SB_FRAME_MARK)
			continue;
		frame.kind = SB_FRAME_WAKER;
		err = sb_profile_frame(assembly->profile, &frame, &at[i]);
	}
	return err;
}

/* Push "--", the waker's stack from the leaf to the root, and the waker's name. */
static int push_waker(struct assembly *assembly, struct sb_stack_cache *stacks,
		      const struct sb_object *object)
{
	const struct sb_object_waker *waker = object->data;
	uint64_t nr_samples = assembly->nr_samples;
	size_t first, kernel;
	int err = sb_assembly_push(assembly, "--", SB_FRAME_DELIMITER);

	first = assembly->frames.nr;
	if (!err)
		err = sb_comm_text(waker->comm, &assembly->text);
	if (!err)
		err = sb_assembly_push(assembly, assembly->text.s, SB_FRAME_ROOT);
	/* The wait is counted as a sample, not its waker. */
	assembly->nr_samples = 0;
	if (!err && sb_stack_is_there(waker->ustack))
		err = sb_assembly_push_user(assembly, stacks,
					    &(struct user_stack){
						    .ustack = waker->ustack,
						    .istack = waker->istack,
						    .start_ns = waker->start_ns,
						    .time_ns = waker->now_ns,
						    .tgid = waker->tgid,
						    .exec_id = waker->exec_id,
					    });
	kernel = assembly->frames.nr;
	if (!err && sb_stack_is_there(waker->kstack))
		err = sb_assembly_push_kernel(assembly, stacks, waker->kstack);
	if (!err)
		err = sb_assembly_cut_interrupted(assembly, first, kernel);
	assembly->nr_samples = nr_samples;
	return err ? err : turn_to_waker(assembly, first);
}

static int push_value(struct assembly *assembly, struct sb_stack_cache *stacks,
		      const struct sb_object *object)
{
	const char *name = assembly->view->value_name ? assembly->view->value_name : "value";
	int err = sb_object_value_text(object, name, &assembly->text);

	(void)stacks;
	return err ? err : sb_assembly_push(assembly, assembly->text.s, SB_FRAME_KERNEL);
}

/* No frame: slow calls belong to the same stack as others. */
static int note_call(struct assembly *assembly, struct sb_stack_cache *stacks,
		     const struct sb_object *object)
{
	(void)stacks;
	assembly->call = object->data;
	return 0;
}

static int (*const pushers[SB_OBJECT_KIND_MAX])(struct assembly *assembly,
						struct sb_stack_cache *stacks,
						const struct sb_object *object) = {
	[SB_OBJECT_TASK] = push_task, [SB_OBJECT_WAKER] = push_waker,
	[SB_OBJECT_FILE] = push_file, [SB_OBJECT_VALUE] = push_value,
	[SB_OBJECT_CALL] = note_call,
};

/* Push an object's frames. They are made at its first use and kept, because its process may be gone
 * at the next one. */
static int push_object(struct assembly *assembly, struct sb_object_cache *objects,
		       struct sb_stack_cache *stacks, uint64_t id)
{
	struct sb_object *object = sb_object_cache_find(objects, id);
	size_t first = assembly->frames.nr;
	int err;

	if (!object) {
		assembly->stats->nr_missing_objects += assembly->nr_samples;
		return sb_assembly_push_mark(assembly, SB_ATTR_LOST_OBJECT, NULL);
	}
	if (object->frames.at)
		return sb_assembly_push_ids(assembly, object->frames.at, object->frames.nr);
	err = pushers[object->kind](assembly, stacks, object);
	return err ? err
		   : sb_frame_ids_set(&object->frames, assembly->frames.at + first,
				      assembly->frames.nr - first);
}

int sb_assembly_push_beyond(struct assembly *assembly, struct sb_object_cache *objects,
			    struct sb_stack_cache *stacks, const struct sb_sample_key *key)
{
	const char *op = assembly->view->op_name ? assembly->view->op_name(key->op) : NULL;
	int err = 0;

	if (op)
		err = sb_assembly_push(assembly, op, SB_FRAME_KERNEL);
	if (!err)
		err = push_reason(assembly);
	if (!err && key->object)
		err = push_object(assembly, objects, stacks, key->object);
	if (err || !assembly->view->state_at_leaf)
		return err;
	return push_state(assembly, key, leaf_of_state);
}

int sb_resolver_add_residual(struct sb_profile *profile, uint64_t weight)
{
	uint32_t id;
	int err = sb_profile_attr(profile, &(struct sb_attr){ .kind = SB_ATTR_RESIDUAL }, &id);

	return err ? err : sb_profile_add(profile, &id, 1, weight);
}
