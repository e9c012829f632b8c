/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the BPF side and user space: sample keys, stacks, counters, settings.
 *
 * Only fixed-width types, no pointers, no bool, no implicit padding. Enumerators are appended;
 * their numbers are never reused. What only one side needs belongs elsewhere.
 */
#ifndef SB_ABI_H
#define SB_ABI_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define SB_COMM_LEN	    16

/* Views that may run at the same time; each has slots of its own, see enum sb_scratch_slot. */
#define SB_VIEWS_MAX	    4

/*
 * Frames of one stack. The kernel limits kernel stacks by sysctl perf_event_max_stack, 127 by
 * default; user stacks are walked by our own code. Both are powers of two for the verifier.
 */
#define SB_KSTACK_DEPTH_MAX 256
#define SB_USTACK_DEPTH_MAX 512

/*
 * How a walk of a user or kernel stack ended. A stack that is not COMPLETE was cut for the reason
 * named.
 */
enum sb_stack_status {
	SB_STACK_COMPLETE, /* the root of the thread was reached */
	SB_STACK_NONE,	   /* there is none: a kernel thread, or this side was not asked for */
	SB_STACK_DEPTH,	   /* there are more frames than the limit */
	SB_STACK_FAULT,	   /* a page of the stack could not be read at interrupt time */
	SB_STACK_BAD_FP,   /* the frame pointer does not point up the stack: code without one */
	SB_STACK_BAD_PC,   /* a return address is outside of any possible code */
	SB_STACK_COMPAT,   /* a 32-bit process */
	SB_STACK_NO_REGS,  /* there are no user registers to start from */
	SB_STACK_NO_TABLE, /* the unwind table of a binary was not there yet, and no piece of the
			      stack could be taken: frame pointers from there on */
	SB_STACK_NO_RULE,  /* the unwind table has no rule for the address that can be followed */
	SB_STACK_BAD_CFA,  /* the rule does not lead up the stack: wrong table, overwritten stack */
	SB_STACK_PIECE,	   /* the stack is longer than the piece that was captured of it */
	SB_STACK_RAN, /* the thread slept when the run began, and ran before its stack was read */
	SB_STACK_RETURN_PROBE, /* the return address has been replaced by a return probe, and the
				  true one is not known */
	SB_STACK_INTERRUPTED, /* of a waker: not walked, because an interrupt or a fault had stopped
				 the program, and it most likely did not wake anybody */
	SB_STACK_STATUS_MAX,
};

/* Identity of a stack: a 128-bit hash over its frames and status; {0, 0} means "no stack". */
struct sb_stack_id {
	__u64 lo, hi;
};

/* What a thread was doing during the time that a sample stands for. */
enum sb_task_state {
	SB_STATE_NONE,	    /* the view does not say */
	SB_STATE_RUNNING,   /* on a CPU */
	SB_STATE_RUNQUEUE,  /* runnable, waiting for a CPU: preempted or woken */
	SB_STATE_THROTTLED, /* runnable, but its cgroup has used up its CPU quota */
	SB_STATE_SLEEP,	    /* S: interruptible */
	SB_STATE_DISK,	    /* D: uninterruptible */
	SB_STATE_STOPPED,   /* T and t: stopped by a signal or a debugger; or frozen */
	SB_STATE_IDLE,	    /* I: a kernel thread without work */
	SB_STATE_MAX,
};

/*
 * Identity of one aggregated sample. It is a hash key, so it is zeroed before use. Fields that the
 * run does not split by (see SB_BY_*) remain zero.
 *
 * (tgid, start_ns, exec_id) identifies an address space: start_ns detects reuse of the tgid,
 * exec_id detects exec.
 */
struct sb_sample_key {
	struct sb_stack_id kstack, ustack;
	struct sb_stack_id istack; /* frames of interpreters, see sb_abi_interp.h */
	__u64 object;	 /* what the sample is about, see SB_EVENT_OBJECT; 0: nothing more */
	__u64 labels;	 /* ID of the thread's set of labels, see sb_abi_label.h; 0: none */
	__u64 start_ns;	 /* start of the process, CLOCK_BOOTTIME */
	__u64 cgroup_id; /* SB_BY_CGROUP */
	__u32 tgid, tid; /* tid: SB_BY_THREAD */
	__u32 exec_id;
	__u16 cpu;		/* SB_BY_CPU; no kernel has more than 8,192 */
	__u16 op;		/* kind of call, as the view numbers them; 0: none */
	char comm[SB_COMM_LEN]; /* of the thread */
	__u8 state;		/* enum sb_task_state */
	__u8 log2_ns;		/* SB_BY_DURATION: 1 + log2 of the nanoseconds; 0: none */
	__u8 reserved;
	__u8 view;  /* number of the view that took the sample, which defines the unit of weight */
	__u32 span; /* the span in which it was taken, if it is not known yet whether it was slow:
		       see sb_abi_span.h; 0: the sample counts */
};

/* A sample that is being built; the view sets object, op, state and log2_ns of the key. */
struct sb_capture {
	struct sb_sample_key key;
	__u64 now_ns; /* CLOCK_MONOTONIC */
	/* Set by a view for each sample, or never: user space is not to be asked about the process
	 * for this sample, whose stack is then shipped raw. */
	__u32 is_brief, reserved;
};

/* The aggregate of all samples with one key. Times are CLOCK_MONOTONIC. */
struct sb_count {
	__u64 weight; /* in the unit of the view */
	__u64 nr_samples;
	__u64 first_ns, last_ns; /* of the samples; they say which mappings were in force */
};

/* Records of the ring buffer `events`: a header, then what its kind says. */
enum sb_event_kind {
	SB_EVENT_STACK = 1,    /* struct sb_event_stack: a stack seen for the first time */
	SB_EVENT_COUNTS_NUDGE, /* struct sb_event: the counts are filling up, drain them now */
	SB_EVENT_PROCESS, /* struct sb_event_process: a process older than the run was sampled */
	SB_EVENT_RAW,	  /* struct sb_event_raw: a stack that user space is to unwind */
	SB_EVENT_OBJECT,  /* struct sb_event_object: an object seen for the first time */
	SB_EVENT_OWNER,	  /* struct sb_event_owner, see sb_abi_memory.h */
	SB_EVENT_FAULTS,  /* struct sb_event_faults, see sb_abi_memory.h */
	SB_EVENT_MAPPED,  /* struct sb_event_mapped, see sb_abi_memory.h */
	SB_EVENT_ENDED,	  /* struct sb_event_ended, see sb_abi_memory.h */
};

struct sb_event {
	__u32 kind;
	__u32 nr_bytes; /* of the whole record */
};

/* Bits of sb_event_stack.flags. */
enum {
	SB_STACK_KERNEL = 1u << 0,
	SB_STACK_LEAF_RETURNS = 1u << 1, /* ip[0] is the address after a syscall instruction */
	SB_STACK_ASLEEP = 1u << 2, /* struct sb_event_raw: the thread sleeps, no memory was taken:
				      user space reads it from the process */
	/* User space only: struct sb_interp_frame instead of addresses; addresses, of which inlined
	 * calls have their own. */
	SB_STACK_INTERP = 1u << 3,
	SB_STACK_CALLS = 1u << 4,
	/* struct sb_event_raw: the registers are those of a 32-bit program, and lead to no
	 * caller. */
	SB_STACK_32_BITS = 1u << 5,
};

/*
 * From this bit on, of a kernel stack: the number of its view. What is cut off from its leaf
 * depends on the view, so equal addresses of two views are two stacks.
 */
#define SB_STACK_VIEW_SHIFT 16

/* Followed by nr_frames raw addresses (__u64), leaf first. */
struct sb_event_stack {
	struct sb_event hdr;
	struct sb_stack_id id;
	__u32 status; /* enum sb_stack_status */
	__u32 nr_frames;
	__u32 flags; /* SB_STACK_KERNEL, ... */
	__u32 list;  /* number of the list of mappings that it was walked by; 0: none. The same
		       addresses with another list are another stack */
};

/*
 * Bits of an address in a user stack that say how the frame was found; no user address has them.
 * The leaf frame has the address of the interrupted instruction. All other frames have return
 * addresses, except those with SB_IP_EXACT.
 */
#define SB_IP_BY_FP  (1ull << 63) /* by the frame pointer, because there is no unwind rule */
#define SB_IP_EXACT  (1ull << 62) /* interrupted by a signal: the address itself, not a return */
#define SB_IP_INTERP (1ull << 61) /* the next segment of the interpreter stack stands for it */
#define SB_IP_HIDES  (1ull << 60) /* with BY_FP: callers of the frame before may be missing */
#define SB_IP_MARKS  (SB_IP_BY_FP | SB_IP_EXACT | SB_IP_INTERP | SB_IP_HIDES)

/*
 * The machine whose stacks are walked: on the BPF side the one that it is built for, in user space
 * the one that it runs on. Tests define it themselves.
 */
#if !defined(SB_MACHINE_X86) && !defined(SB_MACHINE_ARM64)
#if defined(__TARGET_ARCH_x86) || (!defined(__bpf__) && defined(__x86_64__))
#define SB_MACHINE_X86
#elif defined(__TARGET_ARCH_arm64) || (!defined(__bpf__) && defined(__aarch64__))
#define SB_MACHINE_ARM64
#endif
#endif

/*
 * Bits of an address of user space. A program that asks for higher ones by hints to mmap() (arm64
 * with 52 bits, x86-64 with five levels of page tables) has data there that interpreters' walkers
 * take for none.
 */
#ifdef SB_MACHINE_ARM64
#define SB_USER_ADDR_BITS 48
#else
#define SB_USER_ADDR_BITS 47
#endif

/*
 * Number of registers, in the order of their DWARF numbers. x86-64 psABI: rax rdx rcx rbx rsi rdi
 * rbp rsp r8 ... r15; AADWARF64: x0 ... x30 sp.
 */
#ifdef SB_MACHINE_ARM64
#define SB_UNWIND_REGS 32
#else
#define SB_UNWIND_REGS 16
#endif

/*
 * Most that is captured of a stack to be unwound by user space: a compiler deep in its grammar
 * needs 40 KiB.
 */
#define SB_RAW_BYTES_MAX (64u << 10)

/*
 * Code may store data below rsp, and CFI refers to it: System V ABI for x86-64, section 3.2.2. On
 * arm64 it may not (AAPCS64, section 6.4.5.1), but Go keeps the caller's x29 right below sp.
 */
#ifdef SB_MACHINE_ARM64
#define SB_RED_ZONE_BYTES 16u
#else
#define SB_RED_ZONE_BYTES 128u
#endif

/*
 * A user stack that could not be walked in the kernel, because its process or a binary in it was
 * seen for the first time: the registers, and nr_stack_bytes of the stack from @stack_addr
 * upwards. That is SB_RED_ZONE_BYTES below the stack pointer, or the first page above it that can
 * be read. @id stands for it in sample keys; it is unique, and no SB_EVENT_STACK with it will
 * come.
 */
struct sb_event_raw {
	struct sb_event hdr;
	struct sb_stack_id id;
	__u64 now_ns;	/* CLOCK_MONOTONIC */
	__u64 start_ns; /* with tgid and exec_id: the address space, as in struct sb_sample_key */
	__u32 tgid, exec_id;
	__u32 flags; /* SB_STACK_LEAF_RETURNS, SB_STACK_ASLEEP, SB_STACK_32_BITS */
	__u32 nr_stack_bytes;
	__u64 stack_addr;
	__u64 pc;
	__u64 regs[SB_UNWIND_REGS];
	__u64 thread_pointer; /* with SB_STACK_ASLEEP; otherwise 0 */
	__u64 trampoline;     /* the return address of calls whose return is probed; 0: none is */
};

/*
 * One record of the output of the iterators over tasks: a thread that sleeps, with the registers
 * from which user space walks its stack, if the thread has not run since.
 */
struct sb_asleep {
	struct sb_event_raw raw;   /* flags & SB_STACK_ASLEEP; nr_stack_bytes: how far the stack
				      can reach from stack_addr */
	struct sb_stack_id istack; /* ID of its interpreter frames; 0: not asked for */
	__u64 labels;		   /* ID of its set of labels; 0: not asked for */
	__u32 tid;
	__u32 reserved;
	__u64 nr_switches; /* voluntary and involuntary, as in /proc/PID/task/TID/status */
};

/* Kinds of objects, and what follows struct sb_event_object. */
enum sb_object_kind {
	SB_OBJECT_TASK = 1, /* struct sb_object_task: a thread that was woken */
	SB_OBJECT_WAKER,    /* struct sb_object_waker: the waking thread, and its stacks */
	SB_OBJECT_FILE,	    /* struct sb_object_file, see sb_abi_io.h */
	SB_OBJECT_VALUE,    /* struct sb_object_value, see sb_abi_trace.h */
	SB_OBJECT_CALL,	    /* struct sb_object_call, see sb_abi_latency.h */
	SB_OBJECT_KIND_MAX,
};

/* An object is shipped once; again if the table of seen objects is full or shipping failed. */
struct sb_event_object {
	struct sb_event hdr;
	__u64 id; /* sb_sample_key.object: a hash of everything that follows, never 0 */
	__u32 kind;
	__u32 nr_bytes; /* number of bytes that follow */
};

/* What is known of an object: the values of the map objects_seen. User space writes UNWANTED. */
enum {
	SB_OBJECT_UNSEEN, /* it is not in the map */
	SB_OBJECT_SEEN,
	SB_OBJECT_UNWANTED, /* its samples are not wanted */
};

struct sb_object_task {
	char comm[SB_COMM_LEN];
};

struct sb_object_waker {
	struct sb_stack_id kstack, ustack, istack;
	__u64 start_ns; /* with tgid and exec_id: the address space, as in struct sb_sample_key */
	__u64 now_ns;	/* when the stack was taken */
	__u32 tgid, exec_id;
	char comm[SB_COMM_LEN];
};

/* A process was sampled that began before the run, so no side-band record announced it. */
struct sb_event_process {
	struct sb_event hdr;
	__u32 tgid;
	__u32 reserved;
};

/* Counters of the BPF side; index in `stats`. Every way to lose something has its own. */
enum sb_stat {
	/* Those of nearly every sample, which share one or two cache lines. */
	SB_STAT_SAMPLES,       /* samples taken and accounted */
	SB_STAT_FILTERED,      /* events of tasks that were not asked for */
	SB_STAT_RUN_NS,	       /* time spent in our programs */
	SB_STAT_CFI_FRAMES,    /* frames found by unwind tables */
	SB_STAT_FP_FRAMES,     /* frames found by frame pointer, where there was no rule */
	SB_STAT_SAME_FRAMES,   /* frames that stood as at the thread's last sample */
	SB_STAT_INTERP_FRAMES, /* frames found of interpreters */
	SB_STAT_KNOWN,	       /* user stacks taken from the memo of an earlier walk */
	/* Others. */
	SB_STAT_COUNTS_FULL,   /* samples lost: no room for a new key */
	SB_STAT_COUNTS_BUSY,   /* samples lost: the interrupted code had the map locked */
	SB_STAT_RING_FULL,     /* stacks not shipped: ring full; retried at their next sample */
	SB_STAT_SEEN_FULL,     /* stacks shipped again, because the table of seen ones is full */
	SB_STAT_KSTACK_ERR,    /* kernel stacks that the kernel refused to give */
	SB_STAT_FORK_FULL,     /* children not followed: the table of targets is full */
	SB_STAT_RAW,	       /* stacks shipped raw, to be unwound by user space */
	SB_STAT_RAW_LIMIT,     /* stacks not shipped raw, over budget: SB_STACK_NO_TABLE */
	SB_STAT_RAW_FULL,      /* stacks not shipped raw, because the ring was full */
	SB_STAT_NEEDS_FULL,    /* requests for tables lost: ring full; they are repeated */
	SB_STAT_OBJECT_FULL,   /* objects not shipped: ring full; retried at their next sample */
	SB_STAT_TASK_FULL,     /* waits and calls lost: no memory for the state of a thread */
	SB_STAT_UNDER_MIN,     /* samples left out by --min: too short */
	SB_STAT_OVER_MAX,      /* samples left out by --max: too long */
	SB_STAT_OTHER_STATE,   /* samples left out by --state, --kind, --fs and the like */
	SB_STAT_BLOCK_FULL,    /* block requests, and who dirtied a file, lost: no room */
	SB_STAT_BLOCK_UNKNOWN, /* completions of requests queued before the run, or lost */
	SB_STAT_VMA_BUSY,     /* page faults lost: the mappings of the process were being changed */
	SB_STAT_FAULT_ANON,   /* page faults left out: in memory without a file */
	SB_STAT_UNSEEN,	      /* threads that came to a CPU without a trace: see sched.bpf.c */
	SB_STAT_URING_FULL,   /* io_uring requests lost: no room for more in flight */
	SB_STAT_URING_UNSEEN, /* io_uring requests lost: the kernel did not say how they ended */
	SB_STAT_URING_UNNAMED, /* results of io_uring without their request */
	SB_STAT_KERNEL_BUSY,   /* I/O of kernel threads lost: another one was being sampled */
	SB_STAT_INTERP_FULL,   /* stacks of interpreters not shipped: ring full; they are retried */
	SB_STAT_LABELS_FULL, /* sets of labels not shipped: ring full; retried at the next sample */
	SB_STAT_LABELS_CUT,  /* labels left out or cut: too long or too many */
	SB_STAT_LABELS_BAD,  /* samples whose labels could not be read, or not all */
	SB_STAT_TICKS_SKIPPED,	/* ticks that timers skipped while a sampled thread ran */
	SB_STAT_NO_DIRTIER,	/* writes of kernel threads to a file whose dirtier is not known */
	SB_STAT_TRACE_BUSY,	/* events lost: they interrupted one that was being sampled */
	SB_STAT_CALLS_FULL,	/* calls lost: no room in the table of open calls */
	SB_STAT_CALLS_JUMPED,	/* calls that a jump or an exception has left */
	SB_STAT_CALLS_UNSEEN,	/* calls whose end was seen, but not their beginning */
	SB_STAT_CALLS_EXITED,	/* calls in which their thread ended */
	SB_STAT_WHEN_FALSE,	/* events left out by --when */
	SB_STAT_WEIGHT_NONE,	/* events left out, because --weight was 0 or negative */
	SB_STAT_EXPR_DIV_ZERO,	/* evaluations of expressions with a division by zero */
	SB_STAT_EXPR_BAD_READ,	/* evaluations with memory that could not be read */
	SB_STAT_EXPR_CUT,	/* evaluations with a string that was cut */
	SB_STAT_CALLS_REPLACED, /* begins of pairs lost: another one with the same key came first */
	SB_STAT_OUTSIDE_SPANS,	/* samples left out by --in */
	SB_STAT_SPANS_SLOW,	/* spans that were long enough for --slower-than */
	SB_STAT_SPANS_FULL,	/* spans whose samples are missing: no room in a table */
	SB_STAT_SPANS_LEFT,	/* spans without an end: left by a jump, or begun anew */
	SB_STAT_SPANS_EXITED,	/* spans in which their thread ended */
	SB_STAT_FAULTS_FULL,	/* page faults lost: the ring was full */
	SB_STAT_PROBE_HITS,	/* times that a program, target or not, came to a probe in a file */
	SB_STAT_FAULTS_NS, /* time spent following pages; user space adds it to SB_STAT_RUN_NS */
	SB_STAT_MAX,
};

/*
 * Kinds of programs that can interrupt one another; each kind builds its sample in a record of its
 * own. Programs of one kind do not nest: the kernel skips the inner one and counts it. Of views
 * that run at the same time, each slot belongs to one.
 */
enum sb_scratch_slot {
	SB_SCRATCH_TIMER,  /* perf events, which interrupt all others */
	SB_SCRATCH_SWITCH, /* where threads leave and enter a CPU; interrupts are off */
	SB_SCRATCH_WAKE,   /* where tasks or interrupts wake threads; interrupts are off */
	SB_SCRATCH_CALL,   /* in a system call or a request of the block layer; preemption is off */
	SB_SCRATCH_FAULT,  /* page faults, including those of our own programs' reads */
	SB_SCRATCH_ITER,   /* iterators, which user space runs */
	SB_SCRATCH_KERNEL, /* reads and writes of kernel threads; preemption is on */
	SB_SCRATCH_TRACE,  /* tracepoints, kernel functions and counters that were asked for */
	SB_SCRATCH_BEGIN,  /* stacks of where pairs of such begin, which the others may interrupt */
	SB_SCRATCH_PROBE,  /* user functions that were asked for; preemption is on */
	SB_SCRATCH_PAGE,   /* page faults, for the memory that they bring */
	SB_SCRATCH_MAX,
};

/*
 * CPUs with a weight of their own in tick_weights[]; the timers of further CPUs are never
 * throttled.
 */
#define SB_TICK_CPUS	8192

/*
 * Places of proc_changes[], in which user space counts, at the process's ID modulo this, when it
 * has changed what a map says about a process: core/proc_cache.bpf.c.
 */
#define SB_PROC_CHANGES 1024

/* Weights of samples in slices of time are multiples of 1 / 2^this: core/thin.bpf.c. */
#define SB_SLICE_SHIFT	16

/* Bits of cfg_by: what keys are split by, in addition to process, comm and stacks. */
enum {
	SB_BY_THREAD = 1u << 0,
	SB_BY_CPU = 1u << 1,
	SB_BY_CGROUP = 1u << 2,
	SB_BY_DURATION = 1u << 3, /* log2_ns */
};

/* Bits of cfg_unwind: how callers are found. None: only the leaf is taken. */
enum {
	SB_UNWIND_CFI = 1u << 0, /* by unwind tables, see sb_abi_unwind.h */
	SB_UNWIND_FP = 1u << 1,	 /* by frame pointers; with the above only where there is no rule */
};

/* Bits of cfg_sides: which stacks are taken. */
enum {
	SB_SIDE_USER = 1u << 0,
	SB_SIDE_KERNEL = 1u << 1,
};

/*
 * Targets. A task is sampled if any allow rule matches (or there is none) and no deny rule
 * matches. The maps `target_tgids` and `target_tids` have these values.
 */
enum {
	SB_RULE_ALLOW = 1,
	SB_RULE_DENY = 2,
	SB_RULE_FOLLOW = 4,  /* in addition: children inherit the rule */
	SB_RULE_AT_EXEC = 8, /* in addition: the rule applies only after the next exec */
};

#define SB_RULES_MAX	      16 /* of each kind: comm, uid and cgroup rules */

/*
 * A glob over thread names, which user space compiles into a bit-parallel automaton: bit i is
 * position i of the pattern, so that matching takes 16 steps without branches (shift-and,
 * Baeza-Yates and Gonnet 1992, with a closure over '*').
 */
#define SB_GLOB_POSITIONS_MAX 31 /* one more bit is the end of the pattern */
struct sb_comm_matcher {
	__u32 may_consume[256]; /* for each byte, the positions that it may pass */
	__u32 stars;		/* the positions that are '*' */
	__u32 accept;		/* the bit of the end of the pattern */
	__u32 rule;		/* SB_RULE_ALLOW or SB_RULE_DENY; 0: end of the list */
};

struct sb_uid_rule {
	__u32 uid;
	__u32 rule;
};

/* A question about a kernel address, see core/kname.bpf.c. */
#define SB_KNAME_MAX 640 /* a name of KSYM_NAME_LEN (512), two numbers and a module */
struct sb_kname {
	__u64 addr;
	__s64 len; /* of the whole text with its NUL; a negative errno; 0: not asked yet */
	char text[SB_KNAME_MAX]; /* "name+0x1d/0x40 [module]", or the address if it has no name */
};

_Static_assert(sizeof(struct sb_sample_key) == 120, "a hash key must have no padding");
_Static_assert(sizeof(struct sb_count) == 32, "layout is shared");
_Static_assert(sizeof(struct sb_event_stack) == 40, "layout is shared");
_Static_assert(sizeof(struct sb_event_raw) == 88 + 8 * SB_UNWIND_REGS, "layout is shared");
_Static_assert(sizeof(struct sb_event_object) == 24, "layout is shared");
_Static_assert(sizeof(struct sb_object_waker) == 88, "layout is shared");

#endif /* SB_ABI_H */
