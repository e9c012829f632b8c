// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/batch_builder.h"

#include <errno.h>
#include <string.h>

int sb_batch_builder_add(struct sb_batch_builder *builder, const struct sb_batch_stack *stack)
{
	size_t at = builder->frames.nr;
	int err = sb_vec_reserve(&builder->frames, at + stack->nr_frames);

	if (!err)
		err = sb_vec_push(&builder->stacks, *stack);
	if (err)
		return err;
	if (stack->nr_frames)
		memcpy(builder->frames.at + at, stack->ip, stack->nr_frames * sizeof(*stack->ip));
	builder->frames.nr += stack->nr_frames;
	return 0;
}

static int add_stack(struct sb_batch_builder *builder, const struct sb_event_stack *event,
		     size_t len)
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
	return sb_batch_builder_add(builder, &stack);
}

static int add_object(struct sb_batch_builder *to, const struct sb_event_object *event, size_t len)
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

int sb_batch_builder_add_faults(struct sb_batch_builder *builder,
				const struct sb_fault_record *faults, size_t nr)
{
	size_t before = builder->pages.faults.nr;
	int err = sb_vec_reserve(&builder->pages.faults, before + nr);

	if (err || !nr)
		return err;
	memcpy(&builder->pages.faults.at[before], faults, nr * sizeof(*faults));
	builder->pages.faults.nr = before + nr;
	return 0;
}

static int add_faults(struct sb_batch_builder *to, const struct sb_event_faults *event, size_t len)
{
	return sb_batch_builder_add_faults(to, event->at,
					   (len - sizeof(event->hdr)) / sizeof(event->at[0]));
}

static int add_end(struct sb_batch_builder *to, const struct sb_event_ended *event, size_t len)
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

static int add_mapping(struct sb_batch_builder *to, const struct sb_event_mapped *event, size_t len)
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

int sb_batch_builder_record(struct sb_batch_builder *builder, const void *record, size_t len)
{
	const struct sb_event *event = record;

	if (len < sizeof(*event))
		return -EBADMSG;
	switch (event->kind) {
	case SB_EVENT_STACK:
		return add_stack(builder, record, len);
	case SB_EVENT_RAW:
		return sb_rawstacks_add(&builder->raw, record, len);
	case SB_EVENT_OBJECT:
		return add_object(builder, record, len);
	case SB_EVENT_PROCESS:
		if (len < sizeof(struct sb_event_process))
			return -EBADMSG;
		return sb_vec_push(&builder->tgids,
				   ((const struct sb_event_process *)record)->tgid);
	case SB_EVENT_OWNER:
		if (len < sizeof(struct sb_event_owner))
			return -EBADMSG;
		return sb_vec_push(&builder->owners, *(const struct sb_event_owner *)record);
	case SB_EVENT_FAULTS:
		return add_faults(builder, record, len);
	case SB_EVENT_MAPPED:
		return add_mapping(builder, record, len);
	case SB_EVENT_ENDED:
		return add_end(builder, record, len);
	case SB_EVENT_COUNTS_NUDGE:
		return 0; /* it did its work by waking us */
	default:
		return -EBADMSG;
	}
}

static void point_objects_at_data(struct sb_batch_builder *builder)
{
	size_t i, at = 0;

	for (i = 0; i < builder->objects.nr; i++) {
		builder->objects.at[i].data = builder->object_words.at + at;
		at += (builder->objects.at[i].nr_bytes + 7) / 8;
	}
}

/* `frames` was reallocated while it grew, so pointers into it are set at the end. */
static void point_stacks_at_frames(struct sb_batch_builder *builder)
{
	size_t i, at = 0;

	for (i = 0; i < builder->stacks.nr; i++) {
		builder->stacks.at[i].ip = builder->frames.at + at;
		at += builder->stacks.at[i].nr_frames;
	}
}

void sb_batch_builder_batch(struct sb_batch_builder *builder, struct sb_batch *ret_batch)
{
	point_stacks_at_frames(builder);
	point_objects_at_data(builder);
	*ret_batch = (struct sb_batch){
		.counts = builder->counts.at,
		.nr_counts = builder->counts.nr,
		.stacks = builder->stacks.at,
		.nr_stacks = builder->stacks.nr,
		.objects = builder->objects.at,
		.nr_objects = builder->objects.nr,
	};
}

size_t sb_batch_builder_bytes(const struct sb_batch_builder *builder)
{
	return builder->counts.nr * sizeof(*builder->counts.at) +
	       builder->stacks.nr * sizeof(*builder->stacks.at) +
	       builder->frames.nr * sizeof(*builder->frames.at) +
	       builder->objects.nr * sizeof(*builder->objects.at) +
	       builder->object_words.nr * sizeof(*builder->object_words.at) +
	       builder->owners.nr * sizeof(*builder->owners.at) +
	       builder->pages.faults.nr * sizeof(*builder->pages.faults.at) +
	       builder->pages.events.nr * sizeof(*builder->pages.events.at) + builder->raw.bytes.nr;
}

void sb_batch_builder_clear(struct sb_batch_builder *builder)
{
	sb_vec_clear(&builder->counts);
	sb_vec_clear(&builder->stacks);
	sb_vec_clear(&builder->frames);
	sb_vec_clear(&builder->objects);
	sb_vec_clear(&builder->object_words);
	sb_rawstacks_clear(&builder->raw);
	sb_vec_clear(&builder->owners);
	sb_page_records_clear(&builder->pages);
	builder->tgids.nr = 0;
}

void sb_batch_builder_release(struct sb_batch_builder *builder)
{
	sb_vec_release(&builder->counts);
	sb_vec_release(&builder->stacks);
	sb_vec_release(&builder->frames);
	sb_vec_release(&builder->objects);
	sb_vec_release(&builder->object_words);
	sb_rawstacks_release(&builder->raw);
	sb_vec_release(&builder->tgids);
	sb_vec_release(&builder->owners);
	sb_page_records_release(&builder->pages);
}
