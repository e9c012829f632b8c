// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/intake.h"

#include <errno.h>
#include <string.h>

int sb_intake_add(struct sb_intake *intake, const struct sb_batch_stack *stack)
{
	size_t at = intake->frames.nr;
	int err = sb_vec_reserve(&intake->frames, at + stack->nr_frames);

	if (!err)
		err = sb_vec_push(&intake->stacks, *stack);
	if (err)
		return err;
	if (stack->nr_frames)
		memcpy(intake->frames.at + at, stack->ip, stack->nr_frames * sizeof(*stack->ip));
	intake->frames.nr += stack->nr_frames;
	return 0;
}

static int add_stack(struct sb_intake *intake, const struct sb_event_stack *event, size_t len)
{
	const struct sb_batch_stack stack = {
		.id = event->id,
		.status = event->status,
		.flags = event->flags,
		.list = event->list,
		.nr_frames = event->nr_frames,
		.ip = (const uint64_t *)(event + 1),
	};

	if (len < sizeof(*event) || (len - sizeof(*event)) / sizeof(*stack.ip) < event->nr_frames)
		return -EBADMSG;
	return sb_intake_add(intake, &stack);
}

static int add_object(struct sb_intake *to, const struct sb_event_object *event, size_t len)
{
	size_t at = to->object_words.nr, nr_words;
	struct sb_batch_object object;
	int err;

	if (len < sizeof(*event) || len - sizeof(*event) < event->nr_bytes)
		return -EBADMSG;
	object = (struct sb_batch_object){
		.id = event->id,
		.kind = event->kind,
		.nr_bytes = event->nr_bytes,
	};
	nr_words = (event->nr_bytes + 7) / 8;
	err = sb_vec_reserve(&to->object_words, at + nr_words);
	if (!err)
		err = sb_vec_push(&to->objects, object);
	if (err)
		return err;
	if (nr_words) {
		to->object_words.at[at + nr_words - 1] = 0;
		memcpy(to->object_words.at + at, event + 1, event->nr_bytes);
	}
	to->object_words.nr += nr_words;
	return 0;
}

int sb_intake_add_faults(struct sb_intake *intake, const struct sb_fault_record *faults, size_t nr)
{
	size_t before = intake->pages.faults.nr;
	int err = sb_vec_reserve(&intake->pages.faults, before + nr);

	if (err || !nr)
		return err;
	memcpy(&intake->pages.faults.at[before], faults, nr * sizeof(*faults));
	intake->pages.faults.nr = before + nr;
	return 0;
}

static int add_faults(struct sb_intake *to, const struct sb_event_faults *event, size_t len)
{
	return sb_intake_add_faults(to, event->at,
				    (len - sizeof(event->hdr)) / sizeof(event->at[0]));
}

static int add_end(struct sb_intake *to, const struct sb_event_ended *event, size_t len)
{
	if (len < sizeof(*event))
		return -EBADMSG;
	return sb_vec_push(&to->pages.events,
			   ((struct sb_page_event){ .kind = SB_EVENT_ENDED,
						    .tgid = event->tgid,
						    .start_ns = event->start_ns,
						    .peak_pages = event->peak_pages,
						    .now_ns = event->now_ns }));
}

static int add_mapping(struct sb_intake *to, const struct sb_event_mapped *event, size_t len)
{
	if (len < sizeof(*event))
		return -EBADMSG;
	return sb_vec_push(&to->pages.events,
			   ((struct sb_page_event){ .kind = SB_EVENT_MAPPED,
						    .tgid = event->tgid,
						    .addr = event->addr,
						    .nr_bytes = event->nr_bytes,
						    .from = event->from,
						    .from_bytes = event->from_bytes,
						    .now_ns = event->now_ns }));
}

int sb_intake_record(struct sb_intake *intake, const void *record, size_t len)
{
	const struct sb_event *event = record;

	if (len < sizeof(*event))
		return -EBADMSG;
	switch (event->kind) {
	case SB_EVENT_STACK:
		return add_stack(intake, record, len);
	case SB_EVENT_RAW:
		return sb_rawstacks_add(&intake->raw, record, len);
	case SB_EVENT_OBJECT:
		return add_object(intake, record, len);
	case SB_EVENT_PROCESS:
		if (len < sizeof(struct sb_event_process))
			return -EBADMSG;
		return sb_vec_push(&intake->tgids, ((const struct sb_event_process *)record)->tgid);
	case SB_EVENT_OWNER:
		if (len < sizeof(struct sb_event_owner))
			return -EBADMSG;
		return sb_vec_push(&intake->owners, *(const struct sb_event_owner *)record);
	case SB_EVENT_FAULTS:
		return add_faults(intake, record, len);
	case SB_EVENT_MAPPED:
		return add_mapping(intake, record, len);
	case SB_EVENT_ENDED:
		return add_end(intake, record, len);
	case SB_EVENT_COUNTS_NUDGE:
		return 0; /* it did its work by waking us */
	default:
		return -EBADMSG;
	}
}

static void point_objects_at_data(struct sb_intake *intake)
{
	size_t i, at = 0;

	for (i = 0; i < intake->objects.nr; i++) {
		intake->objects.at[i].data = intake->object_words.at + at;
		at += (intake->objects.at[i].nr_bytes + 7) / 8;
	}
}

/* `frames` was reallocated while it grew, so pointers into it are set at the end. */
static void point_stacks_at_frames(struct sb_intake *intake)
{
	size_t i, at = 0;

	for (i = 0; i < intake->stacks.nr; i++) {
		intake->stacks.at[i].ip = intake->frames.at + at;
		at += intake->stacks.at[i].nr_frames;
	}
}

void sb_intake_batch(struct sb_intake *intake, struct sb_batch *ret_batch)
{
	point_stacks_at_frames(intake);
	point_objects_at_data(intake);
	*ret_batch = (struct sb_batch){
		.counts = intake->counts.at,
		.nr_counts = intake->counts.nr,
		.stacks = intake->stacks.at,
		.nr_stacks = intake->stacks.nr,
		.objects = intake->objects.at,
		.nr_objects = intake->objects.nr,
	};
}

size_t sb_intake_bytes(const struct sb_intake *intake)
{
	return intake->counts.nr * sizeof(*intake->counts.at) +
	       intake->stacks.nr * sizeof(*intake->stacks.at) +
	       intake->frames.nr * sizeof(*intake->frames.at) +
	       intake->objects.nr * sizeof(*intake->objects.at) +
	       intake->object_words.nr * sizeof(*intake->object_words.at) +
	       intake->owners.nr * sizeof(*intake->owners.at) +
	       intake->pages.faults.nr * sizeof(*intake->pages.faults.at) +
	       intake->pages.events.nr * sizeof(*intake->pages.events.at) + intake->raw.bytes.nr;
}

void sb_intake_clear(struct sb_intake *intake)
{
	sb_vec_clear(&intake->counts);
	sb_vec_clear(&intake->stacks);
	sb_vec_clear(&intake->frames);
	sb_vec_clear(&intake->objects);
	sb_vec_clear(&intake->object_words);
	sb_rawstacks_clear(&intake->raw);
	sb_vec_clear(&intake->owners);
	sb_page_news_clear(&intake->pages);
	intake->tgids.nr = 0;
}

void sb_intake_release(struct sb_intake *intake)
{
	sb_vec_release(&intake->counts);
	sb_vec_release(&intake->stacks);
	sb_vec_release(&intake->frames);
	sb_vec_release(&intake->objects);
	sb_vec_release(&intake->object_words);
	sb_rawstacks_release(&intake->raw);
	sb_vec_release(&intake->tgids);
	sb_vec_release(&intake->owners);
	sb_page_news_release(&intake->pages);
}
