/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core: the record in which a stack is built, and what turns it into an id.
 *
 * The record is per CPU and per kind of program (see enum sb_scratch_slot), because 512 frames do
 * not fit a BPF stack and because a sample may interrupt a program that has one in the making.
 */
#ifndef SB_STACK_BPF_H
#define SB_STACK_BPF_H

#include "sb_sample.bpf.h"
#include "sb_util.bpf.h"

struct sb_scratch;
static __always_inline int sb_read_user(struct sb_scratch *s, void *dst, __u32 len, __u64 addr);
#define SB_STEP_READ(mem, dst, len, addr)   sb_read_user(mem, dst, len, addr)
#define SB_STEP_OPAQUE(x)		    sb_opaque(x)
/* Walks of interpreters are not remembered, so what they read is not logged. */
#define SB_INTERP_READ(mem, dst, len, addr) bpf_probe_read_user(dst, len, (const void *)(addr))
#define SB_LABEL_COPY(dst, len, src)	    bpf_probe_read_kernel(dst, len, src)
#include "sb_step_label.h"

/* Where the walk gets its rules from. */
struct sb_walk_map {
	__u64 begin, end, bias; /* of the mapping it stands in; see struct sb_uw_seg */
	__u32 bin, seg_flags;
	__u32 segs_word, nr_segs; /* of the process; 0: it has no list, or an outdated one */
	__u32 modes;		  /* SB_UNWIND_*: what is tried from here on */
	__u32 nr_by_fp;		  /* frames found by frame pointer */
	__u32 is_cut_off;	  /* a table was missing, and the stack could not be taken raw */
	__u32 is_raw;		  /* it was */
	__u32 is_known;		  /* not walked: the result is that of an earlier walk */
	struct sb_uw_rule rule;	  /* for the address of the walk */
	__u64 exec_vm;		  /* of the process now */
	__u64 fault_addr;	  /* that could not be read */
	__u64 word;		  /* of the stack, see sb_unwind_is_return() */
};

/* What a walk read of the process, by which its result can be known again. */
#define SB_LOG_READS_MAX 40
#define SB_LOG_OFF	 (SB_LOG_READS_MAX + 1)
#define SB_LOG_PAIR	 (1ull << 63) /* in addr: two words; else one */
struct sb_read_log {
	__u64 nr; /* above SB_LOG_READS_MAX: not logged, or too many */
	struct sb_read {
		__u64 addr;
		__u64 val[2];
	} at[SB_LOG_READS_MAX];
};

/* The name of a stack is made from so many words at a time. */
#define SB_STACK_HASH_WORDS 8

/* Interpreters of the process that is sampled; core/interp.bpf.c. */
struct sb_interp_record {
	__u32 nr_confs; /* 0: there is none */
	__u32 has_hook; /* the walk's conf wants to be asked about native frames */
	__u32 labels;	/* as in struct sb_interp_proc */
	__u32 reserved;
	struct sb_interp_proc proc;
	__u64 nr_before; /* frames, when the hook was asked */
	__u64 nr_steps;	 /* of all native frames, or of one state */
	struct sb_interp_walk walk;
};

struct sb_scratch {
	struct sb_capture capture;
	struct sb_regs regs; /* where the user stack starts */
	struct sb_walk walk;
	struct sb_walk_map map;
	struct sb_read_log log;
	struct sb_event_stack stack;
	__u64 ip[SB_USTACK_DEPTH_MAX + SB_STACK_HASH_WORDS]; /* stack.ip, and what fills a round */
	struct sb_interp_record interp;
	struct sb_label_walk labels;
};

/* Return: the record of this CPU, NULL only for a slot that does not exist. */
struct sb_scratch *sb_scratch_get(__u32 slot);

/* Copy from the process; an address that cannot be read is noted. Return: 0 when it worked. */
static __always_inline int sb_read_user(struct sb_scratch *s, void *dst, __u32 len, __u64 addr)
{
	__u32 at = s->log.nr;

	if (bpf_probe_read_user(dst, len, (const void *)addr)) {
		s->map.fault_addr = addr;
		return -EFAULT;
	}
	sb_opaque(at);
	if (at < SB_LOG_READS_MAX) {
		s->log.at[at].addr = len == 16 ? addr | SB_LOG_PAIR : addr;
		if (len == 16)
			s->log.at[at].val[1] = ((const __u64 *)dst)[1];
		if (len >= 8)
			s->log.at[at].val[0] = ((const __u64 *)dst)[0];
	}
	s->log.nr = len == 8 || len == 16 ? at + 1 : SB_LOG_OFF;
	return 0;
}

/* Hand a record to user space, waking it when much is waiting. Return: 0, or lost: -EAGAIN. */
int sb_event_ship(void *event, __u64 nr_bytes);

/* Return: how much of the ring `events` is filled, in whole quarters. */
__u64 sb_events_filled_quarters(void);

/* A name for a stack whose frames are not known yet: @now_ns on this CPU. */
int sb_stack_fresh_id(__u64 now_ns, struct sb_stack_id *ret_id);

/*
 * Name the stack in the record by its hash, and ship it if it was not seen before. A stack that
 * cannot be shipped is tried again with its next sample; the failure is counted.
 */
int sb_stack_intern(struct sb_scratch *scratch, __u32 slot, struct sb_stack_id *ret_id);
/* Return: whether the stack @id is new, and the caller's to ship. */
int sb_stack_claim(const struct sb_stack_id *id);
/* It could not be shipped. */
void sb_stack_unclaim(const struct sb_stack_id *id);
/* Half @i (0, 1) of what makes names differ from run to run. */
__u64 sb_stack_seed(__u32 i);
/* Return: whether user space has it, as far as is remembered. */
int sb_stack_is_shipped(const struct sb_stack_id *id);

#endif
