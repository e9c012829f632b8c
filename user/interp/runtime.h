/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What there is to know of one runtime: struct sb_runtime_ops, a row of table.c for each. One file
 * user/interp/<runtime>.c, with the walker bpf/include/sb_step_<runtime>.h, which it compiles, too.
 *
 * Everything read of a process, and every file it maps, may be anything: bounds are checked, sizes
 * are capped, loops end. All functions of a row run under the lock of struct sb_interp, on its
 * thread or the owner's.
 */
#ifndef SB_INTERP_RUNTIME_H
#define SB_INTERP_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "interp/image.h"
#include "interp/memory.h"
#include "sb_abi_interp.h"
#include "sb_sym.h"

struct sb_interp_walk;
struct sb_walk;

#define SB_RUNTIME_MARKERS_MAX 4
#define SB_RUNTIME_ANCHORS_MAX 16

/* Addresses of a process: [begin, end). */
struct sb_range {
	uint64_t begin, end;
};

/* One runtime in one process: what attach() fills in. */
struct sb_runtime {
	const struct sb_runtime_ops *ops;
	const struct sb_memory *memory; /* of the process; borrowed */
	struct sb_image *image; /* the file that has the markers, as it is mapped; borrowed */
	const struct sb_process_maps *maps; /* of the process; borrowed; during attach() only */
	bool wants_lines;		    /* for describe(): whether files and lines are of use */

	/* Results. */
	struct sb_interp_conf conf; /* zeroed; runtime is set */
	void *state;		    /* for describe(); detach() frees it */
	char version[32];	    /* "3.11.2", as far as it is known */
	/*
	 * Code of the interpreter's loop, whose frames on the native stack stand for one segment
	 * each. With SB_INTERP_BY_STATE only.
	 */
	struct sb_range anchors[SB_RUNTIME_ANCHORS_MAX];
	size_t nr_anchors;
	/* Generated code that has no unwind information, and how it is unwound: for stacks that are
	 * walked by user space. What native() does in the kernel. */
	struct sb_sym_rule code;
	/*
	 * Where there may be loops without a segment or segments without a loop (SB_INTERP_READY), it is
	 * told by the loop's caller. Of @callers each call has a segment, which does not end in
	 * SB_INTERP_READY; those of @inner have none.
	 */
	struct sb_range callers[SB_RUNTIME_ANCHORS_MAX], inner[SB_RUNTIME_ANCHORS_MAX];
	size_t nr_callers, nr_inner;
	struct sb_str why; /* of -ENOTSUP: one sentence's end, "its layout is not known" */
};

/* Where a frame is, in words. Strings are the caller's, cleared before. */
struct sb_runtime_text {
	struct sb_str name; /* never empty on success: "Class.method", "Foo::bar", "<module>" */
	struct sb_str file; /* as the runtime has it, or empty */
	uint32_t line;	    /* 0: not known */
	/* Where the C function begins that this frame is of, if it is one: its own native frame says
	 * the same, and this one takes its place. Else 0. */
	uint64_t native;
	/* It stands for its native frame, but is shown with --interp both only: a stub. */
	bool is_glue;
};

struct sb_runtime_ops {
	uint32_t runtime; /* enum sb_runtime_kind */
	const char *name; /* "python" */
	/* Whether attach() and the walker know of nothing but memory: no code, no registers. The others
	 * are for x86-64. */
	bool is_for_any_machine;
	/* Whether attach() or look_again() read of rt->maps what is not code. */
	bool needs_all_maps;
	/* What it refuses in a process that is younger may be what the loader has not finished: it is asked again. */
	uint64_t settles_ns;
	/* Symbols that only this runtime's files define (.dynsym, or .symtab); one is enough. */
	const char *markers[SB_RUNTIME_MARKERS_MAX];

	/*
	 * Find out how this process's interpreter is laid out, and prove it (see "self-test" in
	 * docs/interpreters.md): by what the runtime says of itself, by disassembly of an exported
	 * function, by a table of known versions. At most a millisecond.
	 * Return: 0; -EAGAIN: it has not begun yet, ask again; -ENOTSUP and rt->why: not a layout
	 * that is known; -ESRCH, -ENOMEM.
	 */
	int (*attach)(struct sb_runtime *rt);
	void (*detach)(struct sb_runtime *rt); /* NULL: nothing to free */
	/* The mappings of a process that was attached to have changed: conf and anchors may, too.
	 * rt->maps is set. NULL: that makes no difference. */
	void (*look_again)(struct sb_runtime *rt);
	/*
	 * The name of a frame, and its place when wanted, from the process's memory. Called once
	 * for each pair of code object and position. Return: 0, -EFAULT (unreadable),
	 * -EBADMSG (what is there is no such thing), -ENODATA (there is nothing to be shown but
	 * what was inlined), -ENOMEM.
	 */
	int (*describe)(struct sb_runtime *rt, const struct sb_interp_frame *frame,
			struct sb_runtime_text *text);
	/*
	 * Frames that were inlined: name @i of the frame, 0 the innermost, the last one what
	 * describe() says; called until -ENODATA. NULL: there is no such thing.
	 */
	int (*describe_inlined)(struct sb_runtime *rt, const struct sb_interp_frame *frame,
				size_t i, struct sb_runtime_text *text);

	/* The walker, compiled for user space, for threads that sleep; NULL where there is no such function. */
	int (*begin)(struct sb_interp_walk *walk, void *memory);
	int (*step)(struct sb_interp_walk *walk, void *memory);
	int (*native)(struct sb_interp_walk *walk, struct sb_walk *at, void *memory);

	/*
	 * The loop's functions by name, for files with symbols where attach() knows no range:
	 * "_PyEval_EvalFrameDefault"; suffixes of the compiler (".cold", ".part.0") count as well.
	 */
	const char *const *anchors; /* NULL-terminated, or NULL */
	/*
	 * The runtime's own functions between the loop and what it calls, and below its first
	 * frame: globs (* and ?), left out unless asked for, when they lie in the file of the
	 * loop. Functions that do something a user would ask about are not among them.
	 */
	const char *const *glue; /* NULL-terminated, or NULL */
};

/* All rows; the last one has runtime 0. */
extern const struct sb_runtime_ops *const sb_runtimes[];
/* Return: the row, or NULL. */
const struct sb_runtime_ops *sb_runtime_find(uint32_t runtime);
/* Return: whether @name is glue of @runtime, or one of its anchors. */
bool sb_runtime_is_glue(uint32_t runtime, const char *name);
bool sb_runtime_is_anchor(const struct sb_runtime_ops *ops, const char *name);

#endif
