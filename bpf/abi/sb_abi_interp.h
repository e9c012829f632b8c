/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the walkers of interpreters in the kernel (bpf/interp, core/interp.bpf.c) and
 * user space (user/interp), which finds interpreters in processes, tells the walkers where their
 * data lies, and gives names to the frames they find.
 *
 * An interpreter stack consists of numbers, not names: two words for each frame, leaf first. Each
 * runtime defines the words that configure its walker in sb_step_<runtime>.h.
 */
#ifndef SB_ABI_INTERP_H
#define SB_ABI_INTERP_H

#include "bpf/abi/sb_abi.h"

/* Frames of one sample, of all its runtimes together. CPython's own recursion limit is 1000. */
#define SB_INTERP_FRAMES_MAX 512
/* Runtimes in one process, e.g. an editor with Python, Perl, Ruby and Lua. */
#define SB_INTERP_PER_PROC   4
#define SB_INTERP_CONF_WORDS 32

enum sb_runtime_kind {
	SB_RUNTIME_NONE,
#define SB_RUNTIME(number, name, how) SB_RUNTIME_##number,
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME
	SB_RUNTIME_MAX,
};

/* One frame of an interpreter. */
struct sb_interp_frame {
	__u64 obj;   /* address of what the runtime calls code: a code object, a CV, a Method */
	__u64 where; /* SB_WHERE_* */
};

/*
 * obj of a placeholder: it ends a segment of a runtime that has a frame of its interpreter loop on
 * the native stack only while the loop runs. Between two calls of the loop, the C code that makes
 * the calls (a sort, for example) has none.
 */
#define SB_INTERP_READY		 0ull

/*
 * Parts of sb_interp_frame.where:
 *
 *	63	END: the root frame of its segment. Its caller is C code, which called the
 *		interpreter, so the native stack has a frame of the interpreter loop for it.
 *	62-59	enum sb_runtime_kind
 *	58-48	CHECK: a few bits of the code object, which tell it from another one that is made at
 *		the same address later
 *	47-0	POSITION in the code, as the runtime counts; 0 where it is not wanted
 */
#define SB_WHERE_END		 (1ull << 63)
#define SB_WHERE_RUNTIME_SHIFT	 59
#define SB_WHERE_CHECK_SHIFT	 48
#define SB_WHERE_CHECK_MASK	 0x7ffull
#define SB_WHERE_POSITION_MASK	 ((1ull << 48) - 1)
/* Value: a part of @where, a sb_interp_frame.where, as a number: its runtime (SB_RUNTIME_*), the
 * position in the code, and the bits that tell whether the object is still the same one. */
#define sb_where_runtime(where)	 ((__u32)((where) >> SB_WHERE_RUNTIME_SHIFT) & 15)
#define sb_where_position(where) ((where)&SB_WHERE_POSITION_MASK)
#define sb_where_check(where)	 ((__u32)((where) >> SB_WHERE_CHECK_SHIFT) & SB_WHERE_CHECK_MASK)

/* How a walker works; sb_interp_conf.flags. */
enum {
	/*
	 * All its frames can be reached from the thread's state, so they are walked by themselves.
	 */
	SB_INTERP_BY_STATE = 1u << 0,
	/* Its frames lie on the native stack: the native walk calls the walker for code without an
	 * unwind rule, and in [hook_begin, hook_end). At most one for each process. */
	SB_INTERP_BY_NATIVE = 1u << 1,
};

/* Configuration of a walker for one runtime in one process. */
struct sb_interp_conf {
	__u32 runtime; /* enum sb_runtime_kind */
	__u32 flags;   /* SB_INTERP_* */
	__u64 hook_begin, hook_end;
	__u64 word[SB_INTERP_CONF_WORDS]; /* a struct of sb_step_<runtime>.h */
};

/* Value of the map `interp_procs`, by tgid. An entry of another address space counts as missing. */
struct sb_interp_proc {
	__u64 start_ns; /* with exec_id: the address space; 0: it was examined before the run */
	__u32 exec_id;
	__u32 nr_confs;			   /* 0: there is no interpreter in it */
	__u32 conf_at[SB_INTERP_PER_PROC]; /* indexes in the array `interp_confs` */
	__u32 hook; /* 1 + index in conf_at of the one with SB_INTERP_BY_NATIVE; 0: there is none */
	__u32 labels; /* 1 + index in `interp_confs` of a struct sb_label_conf; 0: there is none */
};

/* Bound of configurations in use at a time. Further runtimes are refused, which is counted. */
#define SB_INTERP_CONFS_MAX 4096u

/* Records of the ring `interp_events`, which user space reads at once. */
enum sb_interp_event_kind {
	SB_INTERP_NEED = 1, /* struct sb_interp_event: a process that is not known */
	SB_INTERP_STACK,    /* struct sb_interp_event and frames: a stack seen for the first time */
	SB_INTERP_LABELS,   /* struct sb_interp_event and labels of a thread: see sb_abi_label.h */
};

struct sb_interp_event {
	__u32 kind;
	__u32 nr_frames; /* number of struct sb_interp_frame that follow, leaf first */
	struct sb_stack_id id;
	__u64 start_ns;
	__u32 tgid, exec_id;
	__u32 status; /* enum sb_stack_status: how the walks ended */
	__u32 tid;
};

_Static_assert(sizeof(struct sb_interp_frame) == 16, "layout is shared");
_Static_assert(sizeof(struct sb_interp_conf) == 24 + 8 * SB_INTERP_CONF_WORDS, "no padding");
_Static_assert(sizeof(struct sb_interp_proc) == 24 + 4 * SB_INTERP_PER_PROC, "no padding");
_Static_assert(sizeof(struct sb_interp_event) == 48, "layout is shared");
_Static_assert(SB_RUNTIME_MAX <= 16, "four bits");

#endif
