/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core: the record in which a stack is built, and what turns it into an ID. Implemented in
 * core/stack.bpf.c.
 *
 * There is a record for each CPU and each kind of program (enum sb_scratch_slot), because 512
 * frames do not fit on a BPF stack, and because a sample may interrupt a program that is building
 * one. So nothing here needs a lock, except the tables of IDs, which all CPUs share. Everything
 * runs in BPF programs, for the current task; no pointer may be NULL, and none is kept.
 *
 * Order: the caller fills ip[], and nr_frames (at most SB_USTACK_DEPTH_MAX), status, flags and list
 * of `stack`, and calls sb_stack_intern(). Who ships stacks of another kind calls sb_stack_claim(),
 * and if that returns 1, ships the stack, and calls sb_stack_unclaim() if that fails. A sample
 * whose stack could not be shipped is accounted all the same.
 */
#ifndef SB_STACK_BPF_H
#define SB_STACK_BPF_H

#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

struct sb_scratch;
static __always_inline int sb_read_user(struct sb_scratch *s, void *dst, __u32 len, __u64 addr);
#define SB_STEP_READ(mem, dst, len, addr) sb_read_user(mem, dst, len, addr)
#define SB_STEP_OPAQUE(x)		  sb_opaque(x)
static __always_inline int sb_interp_read_user(struct sb_scratch *s, void *dst, __u32 len,
					       __u64 addr);
/*
 * Walks of interpreters are not memoized, so their reads are not logged. A file that defines
 * SB_INTERP_DIRECT before it includes this one reads the process's memory each time, so that its
 * functions need no call of sb_interp_get() below them: calls may be at most eight deep.
 */
#ifdef SB_INTERP_DIRECT
#define SB_INTERP_READ(mem, dst, len, addr) bpf_probe_read_user(dst, len, (const void *)(addr))
#else
#define SB_INTERP_READ(mem, dst, len, addr) sb_interp_read_user(mem, dst, len, addr)
#endif
/* Labels are always read from the process: some words are read twice, to see whether they changed
 * in between. */
#define SB_LABEL_READ(mem, dst, len, addr) bpf_probe_read_user(dst, len, (const void *)(addr))
#define SB_LABEL_COPY(dst, len, src)	   bpf_probe_read_kernel(dst, len, src)
#include "bpf/step/sb_step_label.h"

/* Calls of the thread whose returns are probed (core/sb_returns.bpf.h). */
struct sb_returns {
	__u64 trampoline;  /* what has replaced their return addresses; 0: there are none */
	__u64 next;	   /* struct return_instance *: the next one to look at; 0: no more */
	__u64 stack, addr; /* of the last one: sp at its beginning, and its true return address */
};

/* Where a native walk gets its rules from. */
struct sb_walk_map {
	__u64 begin, end, bias; /* of the mapping that holds the address; see struct sb_uw_seg */
	__u32 bin, seg_flags;
	__u32 seg_list, seg_epoch; /* the list that it is from, and when it was found */
	__u32 segs_word, nr_segs;  /* list of the process; 0: it has none, or it is out of date */
	__u32 modes;		   /* SB_UNWIND_*: what is tried from here on */
	__u32 nr_by_fp;		   /* frames found by frame pointer */
	__u32 is_cut_off;	   /* a table was missing, and the stack could not be shipped raw */
	__u32 is_raw;		   /* the stack was shipped raw */
	__u32 is_known;		   /* not walked: the result is that of an earlier walk */
	__u32 is_last_walk_on;	   /* it is compared with the last one: core/sb_last_walk.bpf.h */
	__u32 reserved;
	struct sb_uw_rule rule; /* of the current address */
	__u64 exec_vm;		/* mm->exec_vm of the process now */
	__u64 fault_addr;	/* the last address that could not be read */
	struct sb_returns returns;
};

/*
 * Where there is no code: between two mappings of a list, for sb_unwind_hides() in
 * core/unwind_tables.bpf.c. What was found counts for one epoch.
 */
#define SB_HOLES 32 /* a power of two, and several times as many as the words of a stack point to */
struct sb_holes {
	__u32 list, epoch;
	struct sb_hole {
		__u64 begin, bytes; /* bytes is 0: none */
	} at[SB_HOLES];
};

/* What a walk read of the process's memory, by which core/memo.bpf.c recognizes the same walk. */
#define SB_LOG_READS_MAX 96
#define SB_LOG_OFF	 (SB_LOG_READS_MAX + 1)
#define SB_LOG_PAIR	 (1ull << 63) /* in addr: two words were read; otherwise one */
struct sb_read_log {
	__u64 nr; /* above SB_LOG_READS_MAX: there were too many, or they are not logged */
	struct sb_read {
		__u64 addr;
		__u64 val[2];
	} at[SB_LOG_READS_MAX];
	__u64 piece; /* core/memo.bpf.c: where the words are from that it has put into at[]; 0: none */
};

/* A stack is hashed by so many words at a time. */
#define SB_STACK_HASH_WORDS 8

/* The result of the last sb_interp_get(), of at most SB_INTERP_GOT_BYTES, a power of two. */
#define SB_INTERP_GOT_BYTES 128u
struct sb_interp_got {
	__u32 pieces; /* where memory is kept that was read: core/interp.bpf.c */
	__u32 reserved;
	__u64 word[SB_INTERP_GOT_BYTES / 8];
};

/* The interpreters of the sampled process; used by core/interp.bpf.c. */
struct sb_interp_record {
	__u32 nr_confs; /* 0: there is none */
	__u32 has_hook; /* walk.conf is of a runtime that is called for native frames */
	__u32 labels;	/* as in struct sb_interp_proc */
	__u32 reserved;
	struct sb_interp_proc proc;
	__u64 nr_before; /* number of frames before the runtime was called for a native frame */
	__u64 nr_steps;	 /* of all native frames together, or of one state */
	struct sb_interp_got got;
	struct sb_interp_walk walk;
};

/* The timer of a CPU, which fires at multiples of its period from some time on: core/thin.bpf.c. */
struct sb_tick_grid {
	__u64 from_ns;	   /* of its first tick */
	__u64 nr;	   /* periods since then that have been accounted for */
	__u64 weight;	   /* of a tick, when the grid began */
	__u64 nr_switches; /* of the thread at the last tick */
	__u32 tid;	   /* of that thread */
	__u32 reserved;
};

/* The record of one CPU and slot. */
struct sb_scratch {
	struct sb_capture capture;
	struct sb_tick_grid grid; /* SB_SCRATCH_TIMER. Next to what each tick writes */
	struct sb_regs regs;	  /* where the user stack starts */
	struct sb_walk walk;
	struct sb_walk_map map;
	struct sb_read_log log;
	struct sb_event_stack stack;
	__u64 ip[SB_USTACK_DEPTH_MAX +
		 SB_STACK_HASH_WORDS]; /* frames of @stack, padded for hashing */
	struct sb_holes holes;
	__u64 nr_hidden, may_be_returns;   /* of hidden[]; a bit for each */
	__u64 hidden[SB_HIDDEN_WORDS_MAX]; /* words between the stack pointer and a frame */
	struct sb_interp_record interp;
	struct sb_label_walk labels;
};

/*
 * Return: the record of this CPU for @slot (enum sb_scratch_slot), with what the last sample of
 * this kind of program left in it, valid until the program ends; NULL: there is no such slot.
 */
struct sb_scratch *sb_scratch_get(__u32 slot);

/*
 * Copy @len bytes at @addr of the current process to @dst, and log the read for the memo: words (8
 * bytes) and pairs of words (16); any other length makes the walk one that is not remembered.
 * Return: 0; -EFAULT, with @addr in map.fault_addr; the kernel has zeroed @dst then, and the read
 * is not logged.
 */
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

/*
 * Copy a record of @nr_bytes, all of which the caller has set, into the ring `events`, and wake
 * user space if much is waiting. @event: begins with a struct sb_event, whose nr_bytes is @nr_bytes
 * Return: 0; -EAGAIN when the ring is full: the record is lost, which the caller counts.
 */
int sb_event_ship(void *event, __u64 nr_bytes);

/* Return: how many quarters of the ring `events` are filled, 0 to 4. */
__u64 sb_events_filled_quarters(void);

/*
 * Make an ID for a stack whose frames are not known yet, from @now_ns, the time of the sample, and
 * the CPU. It is unique as long as no two samples of a CPU have the same time, and never {0, 0}.
 * Return: 0.
 */
int sb_stack_fresh_id(__u64 now_ns, struct sb_stack_id *ret_id);

/*
 * Hash the stack in @scratch, the record of @slot, to the ID *@ret_id, never {0, 0}, and ship the
 * stack if it is new. stack.id gets the ID, too; words of ip[] behind the frames are overwritten.
 * If the ring is full, that is counted (SB_STAT_RING_FULL), and the next sample with this stack
 * tries again. Return: 0, also when not shipped.
 */
int sb_stack_intern(struct sb_scratch *scratch, __u32 slot, struct sb_stack_id *ret_id);
/*
 * Enter the stack @id into the table of seen stacks. Return: 1: it is new, or the table is full
 * (counted, SB_STAT_SEEN_FULL): the caller has to ship it, and to call sb_stack_unclaim() if it
 * cannot; 0: it was shipped, or another CPU is shipping it.
 */
int sb_stack_claim(const struct sb_stack_id *id);
/* Remove the stack @id from the table of seen stacks, because it could not be shipped: the next
 * sample with it tries again. */
void sb_stack_unclaim(const struct sb_stack_id *id);
/* Return: half @i (0 or 1) of the random seed that makes IDs differ from run to run. */
__u64 sb_stack_seed(__u32 i);
/* Return: 1 if the stack @id, which was found earlier, is in the table of seen stacks, which it is
 * also while it is being shipped; 0: not, or not any more: user space evicts old ones, so the stack
 * has to be walked again. */
int sb_stack_is_shipped(const struct sb_stack_id *id);

/*
 * For walks of interpreters: copy @len bytes, at most SB_INTERP_GOT_BYTES, at @addr of the current
 * process to @got->word, which the next call overwrites. Within one sample, that is since
 * sb_interp_start(), memory near an address that was read before may come from a copy that was made
 * then. A global function, so that the verifier examines it once.
 * Return: 0; -EFAULT: @got->word has @len zeros.
 */
int sb_interp_get(struct sb_interp_got *got, __u64 addr, __u32 len);

/*
 * Copy @len bytes at @addr of the current process to @dst, for a walk of interpreters.
 * Return: 0; -EFAULT: @dst has zeros.
 */
static __always_inline int sb_interp_read_user(struct sb_scratch *s, void *dst, __u32 len,
					       __u64 addr)
{
	int err;

	if (!__builtin_constant_p(len) || len > SB_INTERP_GOT_BYTES)
		return bpf_probe_read_user(dst, len, (const void *)addr);
	err = sb_interp_get(&s->interp.got, addr, len);
	/* Without the alignment clang copies byte by byte, which the verifier has to follow. */
	if (len % 8)
		__builtin_memcpy(dst, s->interp.got.word, len);
	else
		__builtin_memcpy(__builtin_assume_aligned(dst, 8), s->interp.got.word, len);
	return err;
}

#endif
