// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is known of a sample besides its stacks: thread states, calls, objects, why it waits. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "resolve/resolve_priv.h"
#include "resolve/roots.h"

/* The frames of a tracer on top of what it looked at are few. */
#define NR_TRIMMED_MAX 24u
/* sb_sample_key.op of time on a CPU that no sample fell into. */
#define OP_NOT_SAMPLED 1u

static const struct sb_frame *frame_at(const struct sb_resolver *resolver, size_t i)
{
	return sb_profile_frame_at(resolver->profile, resolver->frames.at[i]);
}

/* Whether @name equals @pattern, or begins with it if it ends in '*'. */
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
static int push_state(struct sb_resolver *resolver, const struct sb_sample_key *key,
		      const enum sb_attr_kind kinds[SB_STATE_MAX])
{
	enum sb_attr_kind kind = key->state < SB_STATE_MAX ? kinds[key->state] : SB_ATTR_NONE;

	if (kind == SB_ATTR_RUNNING && key->op == OP_NOT_SAMPLED)
		kind = SB_ATTR_NOT_SAMPLED;
	return kind ? sb_resolver_push_mark(resolver, kind, NULL) : 0;
}

int sb_resolver_push_state_root(struct sb_resolver *resolver, const struct sb_sample_key *key)
{
	return resolver->view->state_at_root ? push_state(resolver, key, root_of_state) : 0;
}

/* Find the kernel function that called the scheduler; the frames above it belong to the
 * scheduler. */
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
			.is_word = sb_wait_words_has(&resolver->words, resolver->frames.at[i],
						     frame->name),
		};
	}
	resolver->reason = sb_waits_reason(&wait);
}

bool sb_resolver_is_left_out(struct sb_resolver *resolver, const struct sb_batch_count *count)
{
	const struct sb_object *object = NULL;

	if (count->key.object)
		object = sb_object_cache_find(&resolver->objects, count->key.object);
	if (object && object->is_unwanted) {
		resolver->stats->nr_unwanted += count->count.nr_samples;
		return true;
	}
	if (resolver->opts.idle != SB_IDLE_DROP || resolver->reason.class != SB_WAIT_IDLE)
		return false;
	resolver->stats->idle_weight += count->count.weight;
	return true;
}

/* Push the reason of the wait, as a leaf frame or as a root frame. */
static int push_reason(struct sb_resolver *resolver)
{
	uint32_t root;
	int err;

	if (resolver->reason.class == SB_WAIT_PLAIN)
		return 0;
	if (resolver->reason.class == SB_WAIT_LOCK)
		return sb_resolver_push_mark(resolver, SB_ATTR_LOCK, resolver->reason.kind);
	if (resolver->opts.idle == SB_IDLE_SHOW)
		return sb_resolver_push_mark(resolver, SB_ATTR_IDLE, resolver->reason.kind);
	err = sb_resolver_push_mark(resolver, SB_ATTR_ALL_IDLE, NULL);
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

	int err = sb_comm_text(task->comm, &resolver->text);

	return err ? err : sb_resolver_push(resolver, resolver->text.s, SB_FRAME_ROOT);
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

/* Whether a kernel function is where a CPU enters an interrupt. */
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

	/* The last one counts, since interrupts can be nested. */
	for (i = nr; i-- > kernel;)
		if (is_interrupt_entry(frame_at(resolver, i)->name))
			break;
	if (i < kernel || i >= nr)
		return 0;
	err = sb_resolver_push_attr(
		resolver, &(struct sb_attr){ .kind = SB_ATTR_COMM, .text = "[interrupt]" });
	if (err)
		return err;
	resolver->frames.at[first] = resolver->frames.at[nr];
	memmove(resolver->frames.at + first + 1, resolver->frames.at + i,
		(nr - i) * sizeof(*resolver->frames.at));
	resolver->frames.nr = first + 1 + nr - i;
	return 0;
}

/* Make the frames from @first on those of a waker: of that kind, and in reverse order. */
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

/* Push "--", the waker's stack from the leaf to the root, and the waker's name. */
static int push_waker(struct sb_resolver *resolver, const struct sb_object *object)
{
	const struct sb_object_waker *waker = object->data;
	uint64_t nr_samples = resolver->nr_samples;
	size_t first, kernel;
	int err = sb_resolver_push(resolver, "--", SB_FRAME_DELIMITER);

	first = resolver->frames.nr;
	if (!err)
		err = sb_comm_text(waker->comm, &resolver->text);
	if (!err)
		err = sb_resolver_push(resolver, resolver->text.s, SB_FRAME_ROOT);
	/* The wait is counted as a sample, not its waker. */
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

/* Push an object's frames. They are made at its first use and kept, because its process may be gone
 * at the next one. */
static int push_object(struct sb_resolver *resolver, uint64_t id)
{
	struct sb_object_cache *objects = &resolver->objects;
	struct sb_object *object = sb_object_cache_find(objects, id);
	size_t first = resolver->frames.nr, nr;
	int err;

	if (!object) {
		resolver->stats->nr_missing_objects += resolver->nr_samples;
		return sb_resolver_push_mark(resolver, SB_ATTR_LOST_OBJECT, NULL);
	}
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
		err = sb_object_cache_set_frames(objects, object, resolver->frames.at + first,
						 resolver->frames.nr - first);
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
	if (err || !resolver->view->state_at_leaf)
		return err;
	return push_state(resolver, key, leaf_of_state);
}

int sb_resolver_add_residual(struct sb_profile *profile, uint64_t weight)
{
	uint32_t id;
	int err = sb_profile_attr(profile, &(struct sb_attr){ .kind = SB_ATTR_RESIDUAL }, &id);

	return err ? err : sb_profile_add(profile, &id, 1, weight);
}
