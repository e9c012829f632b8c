// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Interned stacks. The ID of a stack is a hash over its frames. Its frames go to user space once,
 * when the ID is new; from then on samples have only the ID.
 *
 * BPF_MAP_TYPE_STACK_TRACE is not used, because it loses one of two stacks that fall into one
 * bucket. Here two stacks are confused only if their 128-bit hashes are equal.
 */
#include "bpf/core/sb_stack.bpf.h"

/* Differs from run to run, so that no program can forge two stacks of one name. */
const volatile __u64 cfg_hash_seed[2] = { 0x243f6a8885a308d3ull, 0x13198a2e03707344ull };
/* Wake user space once this much is waiting: a wake-up for each stack would cost more than the
 * sample. */
const volatile __u32 cfg_events_wake_bytes = 1u << 20;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SB_SCRATCH_MAX);
	__type(key, __u32);
	__type(value, struct sb_scratch);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536); /* set before load */
	__type(key, struct sb_stack_id);
	__type(value, __u8);
} stacks_seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4u << 20); /* set before load */
} events SEC(".maps");

__hidden struct sb_scratch *sb_scratch_get(__u32 slot)
{
	return bpf_map_lookup_elem(&scratch, &slot);
}

__hidden struct sb_regs *sb_start_regs(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	return s ? &s->regs : NULL;
}

static __u64 sb_events_wake_flags(void)
{
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= cfg_events_wake_bytes)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

__hidden int sb_event_process(__u32 tgid)
{
	struct sb_event_process event = {
		.hdr = { .kind = SB_EVENT_PROCESS, .nr_bytes = sizeof(event) },
		.tgid = tgid,
	};

	return bpf_ringbuf_output(&events, &event, sizeof(event), BPF_RB_FORCE_WAKEUP);
}

__hidden int sb_event_nudge(void)
{
	struct sb_event event = { .kind = SB_EVENT_COUNTS_NUDGE, .nr_bytes = sizeof(event) };

	return bpf_ringbuf_output(&events, &event, sizeof(event), BPF_RB_FORCE_WAKEUP);
}

struct lanes {
	__u64 lo, hi;
};

/* Two independent lanes of multiply and xor-shift, one word a step. */
static __always_inline void mix(struct lanes *lanes, __u64 word)
{
	lanes->lo = (lanes->lo ^ word) * 0x9e3779b97f4a7c15ull;
	lanes->lo ^= lanes->lo >> 29;
	lanes->hi = (lanes->hi + word) * 0xc2b2ae3d27d4eb4full;
	lanes->hi ^= lanes->hi >> 32;
}

/*
 * Global functions (not __hidden): the verifier looks at each once, by itself, not once for each
 * round that there can be.
 */
__noinline int sb_stack_hash_round(__u32 slot, __u32 first)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct lanes lanes;
	__u32 i, at = first;

	if (!s)
		return 0;
	lanes = (struct lanes){ .lo = s->stack.id.lo, .hi = s->stack.id.hi };
	sb_opaque(at);
	at &= SB_USTACK_DEPTH_MAX - SB_STACK_HASH_WORDS;
#pragma unroll
	for (i = 0; i < SB_STACK_HASH_WORDS; i++)
		mix(&lanes, s->ip[at + i]);
	s->stack.id.lo = lanes.lo;
	s->stack.id.hi = lanes.hi;
	return 0;
}

__noinline int sb_stack_hash(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	__u64 lo;
	__u32 i, at;

	if (!s)
		return 0;
	at = s->stack.nr_frames;
	sb_opaque(at);
	if (at > SB_USTACK_DEPTH_MAX)
		return 0;
		/* The words that fill the last round. */
#pragma unroll
	for (i = 0; i < SB_STACK_HASH_WORDS - 1; i++)
		s->ip[at + i] = 0;
	lo = cfg_hash_seed[0] ^
	     ((__u64)s->stack.nr_frames << 32 | s->stack.status << 8 | s->stack.flags);
	lo ^= (__u64)s->stack.list * 0xff51afd7ed558ccdull;
	s->stack.id.lo = lo;
	s->stack.id.hi = cfg_hash_seed[1] + lo;
	for (i = 0; i < SB_USTACK_DEPTH_MAX; i += SB_STACK_HASH_WORDS) {
		if (i >= s->stack.nr_frames)
			break;
		sb_stack_hash_round(slot, i);
	}
	s->stack.id.lo ^= s->stack.id.hi >> 31;
	s->stack.id.hi |= 1; /* {0, 0} means no stack */
	return 0;
}

__hidden __u64 sb_events_filled_quarters(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) /
	       (bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / 4);
}

__hidden int sb_event_ship(void *event, __u64 nr_bytes)
{
	return bpf_ringbuf_output(&events, event, nr_bytes, sb_events_wake_flags());
}

/* No two samples of one CPU have the same time. */
__hidden int sb_stack_fresh_id(__u64 now_ns, struct sb_stack_id *ret_id)
{
	ret_id->lo = (now_ns ^ cfg_hash_seed[0]) * 0x9e3779b97f4a7c15ull;
	ret_id->hi = (cfg_hash_seed[1] ^ (__u64)bpf_get_smp_processor_id() << 32) | 1;
	return 0;
}

static int ship(struct sb_scratch *s)
{
	__u32 nr = s->stack.nr_frames, nr_bytes;

	sb_opaque(nr);
	if (nr > SB_USTACK_DEPTH_MAX)
		return -E2BIG;
	nr_bytes = sizeof(s->stack) + nr * sizeof(s->ip[0]);
	s->stack.hdr.kind = SB_EVENT_STACK;
	s->stack.hdr.nr_bytes = nr_bytes;
	return sb_event_ship(&s->stack, nr_bytes);
}

__hidden int sb_stack_is_shipped(const struct sb_stack_id *id)
{
	return bpf_map_lookup_elem(&stacks_seen, id) != NULL;
}

__hidden __u64 sb_stack_seed(__u32 i)
{
	return cfg_hash_seed[i & 1];
}

__hidden int sb_stack_claim(const struct sb_stack_id *id)
{
	__u8 one = 1;
	int err;

	if (bpf_map_lookup_elem(&stacks_seen, id))
		return 0;
	err = bpf_map_update_elem(&stacks_seen, id, &one, BPF_NOEXIST);
	if (err == -EEXIST)
		return 0; /* another CPU is shipping the same one right now */
	if (err)
		sb_stat_add(SB_STAT_SEEN_FULL, 1);
	return 1;
}

__hidden void sb_stack_unclaim(const struct sb_stack_id *id)
{
	bpf_map_delete_elem(&stacks_seen, id);
}

__hidden int sb_stack_intern(struct sb_scratch *s, __u32 slot, struct sb_stack_id *ret_id)
{
	sb_stack_hash(slot);
	*ret_id = s->stack.id;
	if (sb_stack_claim(&s->stack.id) && ship(s)) {
		sb_stack_unclaim(&s->stack.id);
		sb_stat_add(SB_STAT_RING_FULL, 1);
	}
	return 0;
}
