// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is known of a sample beside its stacks: thread states, calls, objects, why it waits. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "resolve/resolve_priv.h"

/* The frames of a tracer on top of what it looked at are few. */
#define NR_TRIMMED_MAX 24u
/* sb_sample_key.op of time on a CPU that no sample fell into. */
#define OP_NOT_SAMPLED 1u

static const struct sb_frame *frame_at(const struct sb_resolver *resolver, size_t i)
{
	return sb_profile_frame_at(resolver->profile, resolver->frames.at[i]);
}

/* Whether the name is the pattern, or begins with what stands before the '*' at its end. */
static bool is_like(const char *name, const char *pattern)
{
	size_t len = strlen(pattern);

	if (len && pattern[len - 1] == '*')
		return !strncmp(name, pattern, len - 1);
	return !strcmp(name, pattern);
}

static bool is_trimmed(const struct sb_resolver *resolver, const char *name)
{
	const char *const *at;

	for (at = resolver->view->trim; *at; at++)
		if (is_like(name, *at))
			return true;
	return false;
}

void sb_resolver_trim(struct sb_resolver *resolver, size_t first)
{
	size_t end = resolver->frames.nr, i, nr_cut;

	for (i = resolver->frames.nr; i-- > first && resolver->frames.nr - i <= NR_TRIMMED_MAX;)
		if (is_trimmed(resolver, frame_at(resolver, i)->name))
			end = i;
	nr_cut = resolver->frames.nr - end;
	for (i = end; i < resolver->frames.nr; i++)
		nr_cut -= frame_at(resolver, i)->is_unnamed;
	resolver->counts.nr -= (uint32_t)nr_cut;
	resolver->frames.nr = end;
}

static const char *const root_of_state[SB_STATE_MAX] = {
	[SB_STATE_RUNQUEUE] = "[runqueue]",
	[SB_STATE_THROTTLED] = "[throttled]",
};

static const char *const leaf_of_state[SB_STATE_MAX] = {
	[SB_STATE_RUNNING] = "[running]",     [SB_STATE_RUNQUEUE] = "[runqueue]",
	[SB_STATE_THROTTLED] = "[throttled]", [SB_STATE_SLEEP] = "[blocked]",
	[SB_STATE_DISK] = "[blocked]",	      [SB_STATE_STOPPED] = "[stopped]",
	[SB_STATE_IDLE] = "[blocked]",
};

int sb_resolver_push_state_root(struct sb_resolver *resolver, const struct sb_sample_key *key)
{
	const char *name = key->state < SB_STATE_MAX ? root_of_state[key->state] : NULL;

	if (!resolver->view->state_at_root || !name)
		return 0;
	return sb_resolver_push(resolver, name, SB_FRAME_MARK);
}

static int push_state_leaf(struct sb_resolver *resolver, const struct sb_sample_key *key)
{
	const char *name = key->state < SB_STATE_MAX ? leaf_of_state[key->state] : NULL;

	if (!resolver->view->state_at_leaf || !name)
		return 0;
	if (key->state == SB_STATE_RUNNING && key->op == OP_NOT_SAMPLED)
		name = "[running: not sampled]";
	return sb_resolver_push(resolver, name, SB_FRAME_MARK);
}

/* The function that called the scheduler; what lies above it is the scheduler's. */
static const char *waits_in(const struct sb_resolver *resolver)
{
	size_t i;

	for (i = resolver->parts.end; i-- > resolver->parts.kernel;) {
		const char *name = frame_at(resolver, i)->name;

		if (strncmp(name, "schedule", strlen("schedule")) &&
		    strncmp(name, "__schedule", strlen("__schedule")) &&
		    strncmp(name, "io_schedule", strlen("io_schedule")))
			return name;
	}
	return NULL;
}

/* What the table of waits.c knows of the name of a frame, remembered for each: most frames are none of its words. */
enum { WORD_UNKNOWN, WORD_NO, WORD_YES };

static bool is_word(struct sb_resolver *resolver, uint32_t frame, const char *name)
{
	size_t nr = resolver->words.nr;

	if (frame >= nr) {
		if (sb_vec_reserve(&resolver->words, (size_t)frame + 1))
			return sb_waits_is_word(name);
		memset(resolver->words.at + nr, WORD_UNKNOWN, frame + 1 - nr);
		resolver->words.nr = (size_t)frame + 1;
	}
	if (resolver->words.at[frame] == WORD_UNKNOWN)
		resolver->words.at[frame] = sb_waits_is_word(name) ? WORD_YES : WORD_NO;
	return resolver->words.at[frame] == WORD_YES;
}

void sb_resolver_find_reason(struct sb_resolver *resolver, const struct sb_sample_key *key)
{
	struct sb_wait_frame user[SB_WAIT_FRAMES_MAX];
	struct sb_wait wait = { .user = user };
	size_t i;

	resolver->reason = (struct sb_wait_reason){ .class = SB_WAIT_PLAIN };
	if (!resolver->view->has_idle ||
	    (key->state != SB_STATE_SLEEP && key->state != SB_STATE_IDLE &&
	     key->state != SB_STATE_DISK))
		return;
	wait.kernel = waits_in(resolver);
	for (i = resolver->parts.kernel; i-- > resolver->parts.user;) {
		const struct sb_frame *frame = frame_at(resolver, i);

		if (wait.nr_user == SB_ARRAY_SIZE(user))
			break;
		if (frame->kind == SB_FRAME_DELIMITER)
			continue;
		user[wait.nr_user++] = (struct sb_wait_frame){
			.name = frame->name,
			.is_interp = frame->kind == SB_FRAME_INTERP,
			.is_word = is_word(resolver, resolver->frames.at[i], frame->name),
		};
	}
	resolver->reason = sb_waits_reason(&wait);
}

bool sb_resolver_is_left_out(struct sb_resolver *resolver, const struct sb_batch_count *count)
{
	const struct sb_object *object = NULL;

	if (count->key.object)
		object = sb_objects_find(&resolver->objects, count->key.object);
	if (object && object->is_unwanted) {
		resolver->stats->nr_unwanted += count->count.nr_samples;
		return true;
	}
	if (resolver->opts.idle != SB_IDLE_DROP || resolver->reason.class != SB_WAIT_IDLE)
		return false;
	resolver->stats->idle_weight += count->count.weight;
	return true;
}

/* "[idle: epoll]", "[lock: mutex]" */
static int push_reason_mark(struct sb_resolver *resolver, const char *what)
{
	int err;

	sb_str_clear(&resolver->text);
	err = sb_str_addf(&resolver->text, "[%s: %s]", what, resolver->reason.kind);
	return err ? err : sb_resolver_push(resolver, resolver->text.s, SB_FRAME_MARK);
}

/* A mark behind the stack, or a root before it. */
static int push_reason(struct sb_resolver *resolver)
{
	uint32_t root;
	int err;

	if (resolver->reason.class == SB_WAIT_PLAIN)
		return 0;
	if (resolver->reason.class == SB_WAIT_LOCK)
		return push_reason_mark(resolver, "lock");
	if (resolver->opts.idle == SB_IDLE_SHOW)
		return push_reason_mark(resolver, "idle");
	err = sb_resolver_push(resolver, "[idle]", SB_FRAME_MARK);
	if (err)
		return err;
	root = resolver->frames.at[resolver->frames.nr - 1];
	memmove(resolver->frames.at + 1, resolver->frames.at,
		(resolver->frames.nr - 1) * sizeof(root));
	resolver->frames.at[0] = root;
	return 0;
}

static int push_task(struct sb_resolver *resolver, const struct sb_object *object)
{
	const struct sb_object_task *task = object->data;

	sb_str_clear(&resolver->text);
	if (sb_str_addn(&resolver->text, task->comm, strnlen(task->comm, sizeof(task->comm))))
		return -ENOMEM;
	return sb_resolver_push(resolver, resolver->text.len ? resolver->text.s : "[no name]",
				SB_FRAME_ROOT);
}

static int push_file(struct sb_resolver *resolver, const struct sb_object *object)
{
	int err;

	if (resolver->opts.file == SB_FILE_TEXT_NONE)
		return 0;
	sb_str_clear(&resolver->text);
	err = sb_object_file_text(object, resolver->opts.file, &resolver->text);
	return err ? err : sb_resolver_push(resolver, resolver->text.s, SB_FRAME_FILE);
}

/* Where the processor begins to serve a device or a timer, by the names of kernel functions. */
static bool is_interrupt_entry(const char *name)
{
	static const char *const globs[] = {
		"asm_sysvec_*",	 "asm_common_interrupt", "el1_interrupt",
		"el0_interrupt", "el1h_64_irq*",	 "el0t_64_irq*",
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(globs); i++)
		if (!fnmatch(globs[i], name, 0))
			return true;
	return false;
}

int sb_resolver_cut_interrupted(struct sb_resolver *resolver, size_t first, size_t kernel)
{
	size_t nr = resolver->frames.nr, i;
	int err;

	/* The last one: interrupts interrupt one another. */
	for (i = nr; i-- > kernel;)
		if (is_interrupt_entry(frame_at(resolver, i)->name))
			break;
	if (i < kernel || i >= nr)
		return 0;
	err = sb_resolver_push(resolver, "[interrupt]", SB_FRAME_ROOT);
	if (err)
		return err;
	resolver->frames.at[first] = resolver->frames.at[nr];
	memmove(resolver->frames.at + first + 1, resolver->frames.at + i,
		(nr - i) * sizeof(*resolver->frames.at));
	resolver->frames.nr = first + 1 + nr - i;
	return 0;
}

/* The frames from @first on become those of a waker: reversed, and of that kind. */
static int turn_to_waker(struct sb_resolver *resolver, size_t first)
{
	uint32_t *at = resolver->frames.at + first, swapped;
	size_t nr = resolver->frames.nr - first, i;
	struct sb_frame frame;
	int err = 0;

	for (i = 0; i < nr / 2; i++) {
		swapped = at[i];
		at[i] = at[nr - 1 - i];
		at[nr - 1 - i] = swapped;
	}
	for (i = 0; i < nr && !err; i++) {
		frame = *sb_profile_frame_at(resolver->profile, at[i]);
		if (frame.kind == SB_FRAME_MARK)
			continue;
		frame.kind = SB_FRAME_WAKER;
		err = sb_profile_frame(resolver->profile, &frame, &at[i]);
	}
	return err;
}

/* "--", the waker's stack from the leaf to the root, its name. */
static int push_waker(struct sb_resolver *resolver, const struct sb_object *object)
{
	const struct sb_object_waker *waker = object->data;
	uint64_t nr_samples = resolver->nr_samples;
	size_t first, kernel;
	int err = sb_resolver_push(resolver, "--", SB_FRAME_DELIMITER);

	first = resolver->frames.nr;
	sb_str_clear(&resolver->text);
	if (!err)
		err = sb_str_addn(&resolver->text, waker->comm,
				  strnlen(waker->comm, sizeof(waker->comm)));
	if (!err)
		err = sb_resolver_push(resolver,
				       resolver->text.len ? resolver->text.s : "[no name]",
				       SB_FRAME_ROOT);
	/* It is the wait that counts as a sample, not who ended it. */
	resolver->nr_samples = 0;
	if (!err && sb_stack_is_there(waker->ustack))
		err = sb_resolver_push_user(resolver, &(struct user_part){
							      .ustack = waker->ustack,
							      .istack = waker->istack,
							      .start_ns = waker->start_ns,
							      .time_ns = waker->now_ns,
							      .tgid = waker->tgid,
							      .exec_id = waker->exec_id,
						      });
	kernel = resolver->frames.nr;
	if (!err && sb_stack_is_there(waker->kstack))
		err = sb_resolver_push_kernel(resolver, waker->kstack);
	if (!err)
		err = sb_resolver_cut_interrupted(resolver, first, kernel);
	resolver->nr_samples = nr_samples;
	return err ? err : turn_to_waker(resolver, first);
}

static int (*const pushers[SB_OBJECT_KIND_MAX])(struct sb_resolver *resolver,
						const struct sb_object *object) = {
	[SB_OBJECT_TASK] = push_task,
	[SB_OBJECT_WAKER] = push_waker,
	[SB_OBJECT_FILE] = push_file,
};

/* An object's frames are made once, at its first use: its process may be gone at the next. */
static int push_object(struct sb_resolver *resolver, uint64_t id)
{
	struct sb_objects *objects = &resolver->objects;
	struct sb_object *object = sb_objects_find(objects, id);
	size_t first = resolver->frames.nr, nr;
	int err;

	if (!object) {
		resolver->stats->nr_missing_objects += resolver->nr_samples;
		return sb_resolver_push(resolver, "[lost object]", SB_FRAME_MARK);
	}
	object->batch = resolver->nr_batches;
	if (object->is_resolved) {
		nr = object->nr_frames;
		err = sb_vec_reserve(&resolver->frames, first + nr);
		if (!err && nr)
			memcpy(resolver->frames.at + first,
			       objects->frames.at + object->first_frame, nr * sizeof(uint32_t));
		resolver->frames.nr += err ? 0 : nr;
		return err;
	}
	err = pushers[object->kind](resolver, object);
	if (!err)
		err = sb_objects_set_frames(objects, object, resolver->frames.at + first,
					    resolver->frames.nr - first);
	object->is_resolved = !err;
	return err;
}

int sb_resolver_push_beyond(struct sb_resolver *resolver, const struct sb_sample_key *key)
{
	const char *op = resolver->view->op_name ? resolver->view->op_name(key->op) : NULL;
	int err = 0;

	if (op)
		err = sb_resolver_push(resolver, op, SB_FRAME_KERNEL);
	if (!err)
		err = push_reason(resolver);
	if (!err && key->object)
		err = push_object(resolver, key->object);
	return err ? err : push_state_leaf(resolver, key);
}

const uint64_t *sb_resolver_unwanted(struct sb_resolver *resolver, size_t *ret_nr)
{
	size_t from = resolver->nr_unwanted_told;

	*ret_nr = resolver->objects.unwanted.nr - from;
	resolver->nr_unwanted_told = resolver->objects.unwanted.nr;
	return resolver->objects.unwanted.at + from;
}

int sb_resolver_add_residual(struct sb_profile *profile, uint64_t weight)
{
	const struct sb_frame frame = { .name = "[residual]", .kind = SB_FRAME_MARK };
	uint32_t id;
	int err = sb_profile_frame(profile, &frame, &id);

	return err ? err : sb_profile_add(profile, &id, 1, weight);
}
