// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stacks and label sets on their way from the ring, or from a thread that sleeps, to the drain.
 * They wait in one array of words and one text, which are bounded; beyond the bound they are
 * counted as lost. Names are read by the thread as soon as it is woken, and what it has not come to
 * is named in the drain.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "bpf/abi/sb_abi_label.h"
#include "capture/interpwatch_priv.h"
#include "interp/core/step.h"
#include "views/skel.h"

/* Words of stacks that may wait for a drain: 64 MB. */
#define WORDS_MAX	 (8u << 20)
/* Label sets that may wait for a drain: 16 MB. */
#define LABELS_MAX	 65536u
#define LABELS_BYTES_MAX (16u << 20)

/* Count a stack that is dropped. The BPF side ships it again with its next sample. */
static void lose_stack(struct sb_interpwatch *watch, const struct sb_stack_id *id)
{
	__atomic_fetch_add(&watch->stats.nr_lost, 1, __ATOMIC_RELAXED);
	/* A key that is not in the map is no error. */
	bpf_map_delete_elem(bpf_map__fd(watch->skel->maps.stacks_seen), id);
}

/* The same of a set of labels. */
static void lose_labels(struct sb_interpwatch *watch, uint64_t id)
{
	__atomic_fetch_add(&watch->stats.nr_labels_lost, 1, __ATOMIC_RELAXED);
	bpf_map_delete_elem(bpf_map__fd(watch->skel->maps.labels_seen), &id);
}

static bool is_full(const struct labels *labels)
{
	return labels->at.nr >= LABELS_MAX || labels->texts.len >= LABELS_BYTES_MAX;
}

static int keep_stack(struct sb_interpwatch *watch, const struct waiting *from,
		      const struct sb_interp_frame *frames)
{
	size_t nr_words = from->nr_frames * sizeof(*frames) / sizeof(uint64_t);
	struct waiting stack = *from;
	int err;

	stack.first = watch->words.nr;
	if (watch->words.nr + nr_words > WORDS_MAX) {
		lose_stack(watch, &stack.id);
		return 0;
	}
	err = sb_vec_reserve(&watch->words, watch->words.nr + nr_words);
	if (!err)
		err = sb_vec_push(&watch->waiting, stack);
	if (err)
		return err;
	if (nr_words)
		memcpy(watch->words.at + watch->words.nr, frames, nr_words * sizeof(uint64_t));
	watch->words.nr += nr_words;
	return 0;
}

/*
 * Add the set whose text begins at @first, unless appending the text ended with @err. Texts of sets
 * are found by adding up lengths, so nothing of a text may remain without its set. Return: 0,
 * -ENOMEM or @err: nothing was added then.
 */
static int finish_labels(struct labels *labels, uint64_t id, size_t first, int err)
{
	if (!err)
		err = sb_vec_push(&labels->at,
				  (struct sb_batch_labels){
					  .id = id,
					  .nr_bytes = (uint32_t)(labels->texts.len - first),
				  });
	if (err)
		labels->texts.len = first;
	return err;
}

/* The names of label keys are read at once, as names of frames are: the process may be gone at the
 * drain. */
static int keep_labels(struct sb_interpwatch *watch, uint64_t id, struct sb_space_key space,
		       const struct sb_interp_label_set *set)
{
	size_t first = watch->labels.texts.len;
	int ret, err = 0;

	if (is_full(&watch->labels)) {
		lose_labels(watch, id);
		return 0;
	}
	ret = sb_interp_labels(watch->interp, &space, set, &watch->labels.texts);
	if (ret < 0)
		return finish_labels(&watch->labels, id, first, ret);
	/* Its keys are known now, and the thread publishes them. */
	if (ret & SB_LABELS_CHANGED)
		err = sb_interpwatch_request_locked(watch, &space, UINT64_MAX);
	/* It will be shipped again with the next sample, and replace this one. */
	if (ret & SB_LABELS_AGAIN)
		bpf_map_delete_elem(bpf_map__fd(watch->skel->maps.labels_seen), &id);
	return finish_labels(&watch->labels, id, first, err);
}

static int on_labels(struct sb_interpwatch *watch, const struct sb_interp_event *event, size_t len)
{
	const struct sb_space_key space = SB_SPACE_KEY(event);
	const struct sb_interp_label_set set = {
		.kind = (uint32_t)event->id.hi & ~SB_LABEL_HAS_IDS,
		.has_ids = event->id.hi & SB_LABEL_HAS_IDS,
		.nr_bytes = event->nr_frames,
		.data = event + 1,
	};
	int err = 0;

	if (event->nr_frames > SB_LABEL_DATA_MAX || len - sizeof(*event) < event->nr_frames)
		return -EBADMSG;
	/* It was expected, and is known by its number only. The thread will adopt it under this
	 * key. */
	if (!sb_interp_knows(watch->interp, &space)) {
		err = sb_interp_adopt(watch->interp, &space);
		if (!err)
			err = sb_interpwatch_request_locked(watch, &space, UINT64_MAX);
	}
	if (!err)
		err = keep_labels(watch, event->id.lo, space, &set);
	if (err == -ENOMEM || err == -E2BIG)
		lose_labels(watch, event->id.lo);
	return 0;
}

int sb_interpwatch_on_event(void *arg, void *data, size_t len)
{
	const struct sb_interp_event *event = data;
	struct sb_interpwatch *watch = arg;
	struct waiting stack;

	if (len < sizeof(*event))
		return -EBADMSG;
	if (event->kind == SB_INTERP_LABELS)
		return on_labels(watch, event, len);
	if (event->nr_frames > SB_INTERP_FRAMES_MAX ||
	    len - sizeof(*event) < event->nr_frames * sizeof(struct sb_interp_frame))
		return -EBADMSG;
	stack = (struct waiting){
		.id = event->id,
		.space = SB_SPACE_KEY(event),
		.status = event->status,
		.nr_frames = event->nr_frames,
	};
	if (event->kind == SB_INTERP_NEED) {
		/* Without memory it is asked for again. */
		if (sb_interpwatch_request_locked(watch, &stack.space, UINT64_MAX))
			__atomic_fetch_add(&watch->stats.nr_refused, 1, __ATOMIC_RELAXED);
	} else if (keep_stack(watch, &stack, (const struct sb_interp_frame *)(event + 1))) {
		lose_stack(watch, &stack.id);
	}
	return 0;
}

bool sb_interpwatch_take_unnamed(struct sb_interpwatch *watch, struct sb_space_key *ret_space,
				 struct sb_interp_frame *ret_frames, size_t *ret_nr)
{
	size_t nr = 0, first;

	pthread_mutex_lock(&watch->ring_lock);
	for (first = watch->nr_named; watch->nr_named < watch->waiting.nr; watch->nr_named++) {
		const struct waiting *stack = &watch->waiting.at[watch->nr_named];

		if (watch->nr_named == first)
			*ret_space = stack->space;
		else if (!sb_space_key_is(ret_space, &stack->space) ||
			 nr + stack->nr_frames > SB_INTERP_FRAMES_MAX)
			break;
		if (stack->nr_frames)
			memcpy(ret_frames + nr, watch->words.at + stack->first,
			       stack->nr_frames * sizeof(*ret_frames));
		nr += stack->nr_frames;
	}
	*ret_nr = nr;
	first = watch->nr_named - first;
	pthread_mutex_unlock(&watch->ring_lock);
	return first > 0;
}

/* Read names in the drain, because the thread has not done it yet. */
static void name_late(struct sb_interpwatch *watch, const struct waiting *stack)
{
	struct sb_interp_confs confs;

	if (!sb_interp_knows(watch->interp, &stack->space)) {
		if (sb_interp_adopt(watch->interp, &stack->space))
			sb_interp_look(watch->interp, &stack->space, &confs);
		/* The thread will adopt it under this key, and notice its end. */
		sb_interpwatch_request_locked(watch, &stack->space, UINT64_MAX);
	}
	sb_interp_fetch(watch->interp, &stack->space,
			(const struct sb_interp_frame *)(watch->words.at + stack->first),
			stack->nr_frames);
}

int sb_interpwatch_drain(struct sb_interpwatch *watch,
			 int (*add)(void *arg, const struct sb_batch_stack *stack), void *arg)
{
	bool has_needs;
	size_t i;
	int err = 0, ret;

	pthread_mutex_lock(&watch->ring_lock);
	ring_buffer__consume(watch->server.ring);
	/* So that whoever asks from here on what they run gets an answer. */
	for (i = 0; i < watch->native.nr && !err; i++) {
		err = sb_interp_note_native(watch->interp, &watch->native.at[i].space);
		err = err == -E2BIG ? 0 : err;
	}
	for (i = 0; i < watch->waiting.nr; i++) {
		const struct waiting *stack = &watch->waiting.at[i];
		const struct sb_batch_stack into = {
			.id = stack->id,
			.status = stack->status,
			.flags = SB_STACK_INTERP,
			.is_single = stack->is_single,
			.nr_frames = stack->nr_frames * 2,
			.ip = watch->words.at + stack->first,
		};

		if (i >= watch->nr_named)
			name_late(watch, stack);
		ret = add(arg, &into);
		if (ret)
			lose_stack(watch, &stack->id);
		if (ret && ret != -ENOMEM && !err)
			err = ret;
	}
	sb_vec_clear(&watch->waiting);
	sb_vec_clear(&watch->words);
	watch->nr_named = 0;
	has_needs = watch->needs.nr > 0;
	pthread_mutex_unlock(&watch->ring_lock);
	/* The thread serves the processes that were asked for. */
	if (has_needs)
		sb_server_wake(&watch->server);
	return err;
}

size_t sb_interpwatch_take_labels(struct sb_interpwatch *watch, const struct sb_batch_labels **ret)
{
	struct labels taken = watch->taken_labels;
	size_t i, at = 0;

	taken.at.nr = 0;
	sb_str_clear(&taken.texts);
	pthread_mutex_lock(&watch->ring_lock);
	watch->taken_labels = watch->labels;
	watch->labels = taken;
	pthread_mutex_unlock(&watch->ring_lock);
	/* The texts were reallocated while they grew. */
	for (i = 0; i < watch->taken_labels.at.nr; i++) {
		watch->taken_labels.at.at[i].text = watch->taken_labels.texts.s + at;
		at += watch->taken_labels.at.at[i].nr_bytes;
	}
	*ret = watch->taken_labels.at.at;
	return watch->taken_labels.at.nr;
}

void sb_interpwatch_walk(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			 struct sb_pages *pages, struct sb_interp_walk *walk)
{
	const struct sb_space_key space = SB_SPACE_KEY(&asleep->raw);
	struct sb_interp_confs confs = {};
	bool is_adopted;
	int err = 0;

	walk->nr_frames = 0;
	walk->thread_pointer = asleep->raw.thread_pointer;
	walk->pc = asleep->raw.pc;
	walk->sp = asleep->raw.regs[SB_REG_SP];
	memcpy(walk->regs, asleep->raw.regs, sizeof(walk->regs));
	if (!sb_interp_knows(watch->interp, &space)) {
		is_adopted = !sb_interp_adopt(watch->interp, &space);
		if (!is_adopted)
			err = sb_interp_look(watch->interp, &space, &confs);
		/* So that the thread publishes it for when it wakes up, and notices its end. */
		if (err != -ESRCH)
			sb_interpwatch_request(watch, &space, UINT64_MAX);
	}
	sb_interp_walk_outside(watch->interp, &space, pages, walk);
}

int sb_interpwatch_keep(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			const struct sb_interp_walk *walk)
{
	const struct waiting stack = {
		.id = asleep->istack,
		.space = SB_SPACE_KEY(&asleep->raw),
		.status = walk ? walk->event.status : SB_STACK_RAN,
		.nr_frames = walk ? (uint32_t)walk->nr_frames : 0,
		.is_single = true,
	};
	int err;

	pthread_mutex_lock(&watch->ring_lock);
	err = keep_stack(watch, &stack, walk ? walk->frame : NULL);
	pthread_mutex_unlock(&watch->ring_lock);
	if (stack.nr_frames)
		sb_server_wake(&watch->server);
	return err;
}

int sb_interpwatch_labels(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			  struct sb_str *text)
{
	const struct sb_space_key space = SB_SPACE_KEY(&asleep->raw);

	int ret;

	if (!asleep->labels)
		return 0;
	ret = sb_interp_labels_outside(watch->interp, &space, asleep->raw.thread_pointer,
				       asleep->raw.regs, text);
	/* New keys are known, and the thread publishes them. */
	return ret > 0 && ret & SB_LABELS_CHANGED
		       ? sb_interpwatch_request(watch, &space, UINT64_MAX)
	       : ret < 0 ? ret
			 : 0;
}

int sb_interpwatch_keep_labels(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			       const struct sb_str *text)
{
	size_t first;
	int err = 0;

	if (!asleep->labels)
		return 0;
	pthread_mutex_lock(&watch->ring_lock);
	if (is_full(&watch->labels)) {
		/* The BPF side did not note it as seen, so there is nothing to delete. */
		__atomic_fetch_add(&watch->stats.nr_labels_lost, 1, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&watch->ring_lock);
		return 0;
	}
	first = watch->labels.texts.len;
	if (text->len)
		err = sb_str_addn(&watch->labels.texts, text->s, text->len);
	err = finish_labels(&watch->labels, asleep->labels, first, err);
	pthread_mutex_unlock(&watch->ring_lock);
	return err;
}
