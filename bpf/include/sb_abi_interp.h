/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the walkers of interpreters in the kernel (bpf/interp, core/interp.bpf.c) and
 * user space (user/interp), which finds interpreters in processes, tells the walkers where things
 * lie, and gives names to what they found.
 *
 * An interpreter stack is numbers, not names: two words for each frame, leaf first. The words that
 * tell a walker where things lie are the runtime's own: sb_step_<runtime>.h.
 */
#ifndef SB_ABI_INTERP_H
#define SB_ABI_INTERP_H

#include "sb_abi.h"

/* Frames of one sample, of all its runtimes together. CPython's own limit of recursion is 1000. */
#define SB_INTERP_FRAMES_MAX 512
/* Runtimes in one process, e.g. an editor with Python, Perl, Ruby and Lua. */
#define SB_INTERP_PER_PROC   4
#define SB_INTERP_CONF_WORDS 32

enum sb_runtime_kind {
	SB_RUNTIME_NONE,
	SB_RUNTIME_PYTHON,
	SB_RUNTIME_PERL,
	SB_RUNTIME_RUBY,
	SB_RUNTIME_PHP,
	SB_RUNTIME_LUAJIT,
	SB_RUNTIME_LUA,
	SB_RUNTIME_V8,
	SB_RUNTIME_HOTSPOT,
	SB_RUNTIME_MAX,
};

/* One frame. */
struct sb_interp_frame {
	__u64 obj;   /* what the runtime calls code: a code object, a CV, a Method; an address */
	__u64 where; /* SB_WHERE_* */
};

/*
 * obj of a frame that is none: it ends a segment which has a frame of the loop on the native stack only
 * while the loop runs. Between two calls of it the C code that makes them (a sort, say) has none.
 */
#define SB_INTERP_READY		 0ull

/*
 * Parts of sb_interp_frame.where:
 *
 *	63	END: the outermost frame of its segment. Its caller is C code which called the
 *		interpreter, so the native stack has a frame of the interpreter's loop for it.
 *	62-59	enum sb_runtime_kind
 *	58-48	CHECK: a few bits out of the code object, so that another one, made at the same
 *		address later, is another one
 *	47-0	POSITION in the code, as the runtime counts; 0 where it is not wanted
 */
#define SB_WHERE_END		 (1ull << 63)
#define SB_WHERE_RUNTIME_SHIFT	 59
#define SB_WHERE_CHECK_SHIFT	 48
#define SB_WHERE_CHECK_MASK	 0x7ffull
#define SB_WHERE_POSITION_MASK	 ((1ull << 48) - 1)
#define sb_where_runtime(where)	 ((__u32)((where) >> SB_WHERE_RUNTIME_SHIFT) & 15)
#define sb_where_position(where) ((where)&SB_WHERE_POSITION_MASK)
#define sb_where_check(where)	 ((__u32)((where) >> SB_WHERE_CHECK_SHIFT) & SB_WHERE_CHECK_MASK)

/* How a walker works; sb_interp_conf.flags. */
enum {
	/* All its frames hang off the thread's state: they are walked by themselves. */
	SB_INTERP_BY_STATE = 1u << 0,
	/* Its frames lie on the native stack: the walker is called by the native walk for code
	 * without an unwind rule, and in [hook_begin, hook_end). One for each process. */
	SB_INTERP_BY_NATIVE = 1u << 1,
};

/* What a walker has to know of one runtime in one process. */
struct sb_interp_conf {
	__u32 runtime; /* enum sb_runtime_kind */
	__u32 flags;   /* SB_INTERP_* */
	__u64 hook_begin, hook_end;
	__u64 word[SB_INTERP_CONF_WORDS]; /* a struct of sb_step_<runtime>.h */
};

/* Value of the map `interp_procs`, by tgid. Of another address space: not known yet. */
struct sb_interp_proc {
	__u64 start_ns; /* with exec_id: of struct sb_sample_key; 0: looked at before the run */
	__u32 exec_id;
	__u32 nr_confs;			   /* 0: there is no interpreter in it */
	__u32 conf_at[SB_INTERP_PER_PROC]; /* numbers in the array `interp_confs` */
	__u32 hook; /* 1 + place in conf_at of the one with SB_INTERP_BY_NATIVE; 0: there is none */
	__u32 labels; /* 1 + number of struct sb_label_conf in `interp_confs`; 0: it has none */
};

/* So many runtimes in processes at a time. More are refused, which is counted. */
#define SB_INTERP_CONFS_MAX 4096u

/* Records of the ring `interp_events`, which user space looks at at once. */
enum sb_interp_event_kind {
	SB_INTERP_NEED = 1, /* struct sb_interp_event: a process that is not known */
	SB_INTERP_STACK,    /* the same, and its frames: a stack seen for the first time */
	SB_INTERP_LABELS,   /* the same, and labels of a thread: see sb_abi_label.h */
};

struct sb_interp_event {
	__u32 kind;
	__u32 nr_frames; /* struct sb_interp_frame, which follow, leaf first */
	struct sb_stack_id id;
	__u64 start_ns;
	__u32 tgid, exec_id;
	__u32 status; /* enum sb_stack_status: whether the walkers came to the root */
	__u32 tid;
};

_Static_assert(sizeof(struct sb_interp_frame) == 16, "layout is shared");
_Static_assert(sizeof(struct sb_interp_conf) == 24 + 8 * SB_INTERP_CONF_WORDS, "no padding");
_Static_assert(sizeof(struct sb_interp_proc) == 24 + 4 * SB_INTERP_PER_PROC, "no padding");
_Static_assert(sizeof(struct sb_interp_event) == 48, "layout is shared");
_Static_assert(SB_RUNTIME_MAX <= 16, "four bits");

#endif
