// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Labels that a program sets on its threads. A set of labels is treated like a stack: the key of a
 * sample has its hash, and the set itself goes through the ring once, to the thread of user space
 * that reads names of frames, because the names of OTEL's keys are in the process.
 */
#include "bpf/core/sb_interp.bpf.h"
#include "bpf/core/sb_label.bpf.h"
#include "bpf/core/sb_span.bpf.h"

const volatile bool cfg_labels = false;

/* Names of sets that user space has. When it is full, the least recently used are shipped again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u64);
	__type(value, __u8);
} labels_seen SEC(".maps");

__hidden int sb_labels_are_on(void)
{
	return cfg_labels;
}

/*
 * If labels are off, the verifier does not examine this code, because cfg_labels is a constant. Up
 * to 6.7 it examines every global function, also one that nobody calls, so the check is inside.
 * Each beginning and each step is two global functions, so that the verifier examines the second
 * one once, and not once for each path through the first.
 */
__noinline int sb_labels_begin_at(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	return s && cfg_labels ? sb_label_begin_at(&s->labels, s) : SB_STEP_END;
}

__noinline int sb_labels_begin(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || !cfg_labels)
		return SB_STEP_END;
	sb_label_find(&s->labels, s);
	return sb_labels_begin_at(slot);
}

__noinline int sb_labels_next(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	return s && cfg_labels ? sb_label_next(&s->labels, s) : SB_STEP_END;
}

__noinline int sb_labels_step(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || !cfg_labels)
		return SB_STEP_END;
	if (s->labels.conf.kind == SB_LABEL_OTEL)
		return sb_label_step_otel(&s->labels);
	return sb_labels_next(slot) == SB_STEP_GO_ON ? sb_label_take(&s->labels, s) : SB_STEP_END;
}

static int ship_labels(struct sb_scratch *s)
{
	struct sb_interp_event *event = &s->labels.event;
	__u64 nr = s->labels.nr_bytes;

	sb_opaque(nr);
	if (nr > SB_LABEL_DATA_MAX)
		return -E2BIG;
	event->kind = SB_INTERP_LABELS;
	event->nr_frames = nr;
	event->id.lo = s->labels.hash;
	event->id.hi = s->labels.conf.kind | (s->labels.has_ids ? SB_LABEL_HAS_IDS : 0);
	event->start_ns = s->capture.key.start_ns;
	event->tgid = s->capture.key.tgid;
	event->exec_id = s->capture.key.exec_id;
	event->status = SB_STACK_COMPLETE;
	event->tid = (__u32)bpf_get_current_pid_tgid();
	return sb_interp_ship(event, sizeof(*event) + nr);
}

/* sb_label_end(), of which the verifier goes through the loop once and not for each caller. */
__noinline int sb_labels_hash(__u32 slot, __u64 seed)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (s && cfg_labels)
		sb_label_end(&s->labels, seed);
	return 0;
}

/* Name the set in the key, and ship it if it is new. */
__noinline int sb_labels_end(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	__u8 seen = 1;
	__u64 id;

	if (!s || !cfg_labels)
		return 0;
	if (s->labels.nr_cut)
		sb_stat_add(SB_STAT_LABELS_CUT, s->labels.nr_cut);
	/* What a number stands for differs from process to process. */
	id = sb_label_mix(sb_stack_seed(0) ^ s->capture.key.start_ns,
			  (__u64)s->capture.key.tgid << 32 | s->capture.key.exec_id);
	sb_labels_hash(slot, id);
	id = s->labels.hash;
	s->capture.key.labels = id;
	if (!id || bpf_map_lookup_elem(&labels_seen, &id))
		return 0;
	if (bpf_map_update_elem(&labels_seen, &id, &seen, BPF_NOEXIST))
		return 0; /* another CPU was here first, or there is no room: the next sample tries again */
	if (ship_labels(s)) {
		bpf_map_delete_elem(&labels_seen, &id);
		sb_stat_add(SB_STAT_LABELS_FULL, 1);
	}
	return 0;
}

/* Return: whether the process has labels, or goroutines. */
static __always_inline bool find_conf(struct sb_scratch *s)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sb_interp_conf *conf;

	s->labels.goroutine = 0;
	if (!s->interp.labels)
		return false;
	conf = sb_interp_conf_at(s->interp.labels - 1);
	if (!conf)
		return false;
	s->labels.conf = *(struct sb_label_conf *)conf->word;
	s->labels.thread_pointer = sb_interp_thread_pointer(task);
#if defined(__TARGET_ARCH_arm64)
	s->labels.go_register = sb_regs_goroutine((const void *)bpf_task_pt_regs(task));
#endif
	return true;
}

/* Read the labels of the current thread, or, with is_of_span, the one that spans depend on. */
static __always_inline bool read_labels(struct sb_scratch *s, __u32 slot)
{
	__u32 i;

	if (!find_conf(s))
		return false;
	if (s->labels.is_of_span)
		sb_label_want_span(&s->labels);
	if (sb_labels_begin(slot) == SB_STEP_GO_ON)
		for (i = 0; i < SB_LABEL_ATTRS_MAX; i++)
			if (sb_labels_step(slot) != SB_STEP_GO_ON)
				break;
	if (s->labels.is_bad)
		sb_stat_add(SB_STAT_LABELS_BAD, 1);
	return true;
}

/* For both, so that the verifier goes through the loop once; and with few functions below each
 * other, because calls may be eight deep. */
__noinline int sb_labels_take(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || !cfg_labels || !read_labels(s, slot))
		return 0;
	if (s->labels.nr_bytes && !s->labels.is_of_span)
		sb_labels_end(slot);
	return 1;
}

__noinline __u64 sb_labels_span(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	int has_labels;
	__u64 value;

	if (!s || !cfg_labels || !cfg_span_label)
		return 0;
	s->labels.goroutine = 0;
	if (!sb_has_user_side(bpf_get_current_task_btf()))
		return SB_LABELS_UNSURE;
	sb_interp_start(slot);
	s->labels.is_of_span = 1;
	has_labels = sb_labels_take(slot);
	s->labels.is_of_span = 0;
	if (!has_labels)
		return 0;
	if (s->labels.is_bad || s->labels.is_changing ||
	    (s->labels.conf.kind == SB_LABEL_GO && !s->labels.goroutine))
		return SB_LABELS_UNSURE;
	sb_labels_hash(slot, sb_stack_seed(0));
	value = s->labels.hash;
	/* User space reads the names of keys when it is shipped a set that has an unknown one. */
	if (s->labels.has_unknown)
		sb_labels_take(slot);
	s->capture.key.labels = 0;
	return value;
}

__noinline int sb_labels_find_goroutine(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || !cfg_labels || !cfg_span_go)
		return 0;
	s->labels.goroutine = 0;
	if (!sb_has_user_side(bpf_get_current_task_btf()))
		return 0;
	sb_interp_start(slot);
	if (!find_conf(s) || s->labels.conf.kind != SB_LABEL_GO)
		return 0;
	s->labels.conf.go_labels = 0; /* to be left alone */
	sb_labels_begin(slot);
	return 0;
}

__hidden void sb_labels_name_asleep(struct sb_sample_key *key)
{
	if (cfg_labels)
		key->labels = key->ustack.lo | 1;
}
