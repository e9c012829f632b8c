// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Objects, which samples are about in addition to their stacks: keys have their ID, and each is
 * shipped once.
 */
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_stack.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* id -> SB_OBJECT_*. User space writes SB_OBJECT_UNWANTED for those that --path leaves out. When it
 * is full, the least recently used ones are shipped again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load for views that have objects */
	__type(key, __u64);
	__type(value, __u32);
} objects_seen SEC(".maps");

__hidden __u32 sb_object_known(__u64 id)
{
	__u32 *known = bpf_map_lookup_elem(&objects_seen, &id);

	return known ? *known : SB_OBJECT_UNSEEN;
}

__hidden int sb_object_ship(struct sb_event_object *event)
{
	__u32 seen = SB_OBJECT_SEEN, nr_bytes = event->nr_bytes;
	__u64 id = event->id;

	sb_opaque(nr_bytes);
	if (nr_bytes > SB_OBJECT_BYTES_MAX)
		return -E2BIG;
	nr_bytes += sizeof(*event);
	event->hdr.kind = SB_EVENT_OBJECT;
	event->hdr.nr_bytes = nr_bytes;
	if (sb_event_ship(event, nr_bytes)) {
		sb_stat_add(SB_STAT_OBJECT_FULL, 1);
		return -EAGAIN;
	}
	/* Where this fails, it is shipped once too often. */
	bpf_map_update_elem(&objects_seen, &id, &seen, BPF_ANY);
	return 0;
}
