/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface of one language runtime: struct sb_runtime_ops. Each row of bpf/abi/sb_runtimes.def
 * has one, in user/interp/<runtime>/<runtime>.c. That file also includes the walker of the BPF
 * side, bpf/step/sb_step_<runtime>.h, so that the same code runs in user space. Only
 * user/interp/core calls these functions.
 *
 * Order: attach(), again after some errors, until it returns 0; then in any order look_again(),
 * describe_inlined() and describe(), begin(), step() and native(); at the end detach(). The image
 * and the memory outlive the struct sb_runtime.
 *
 * All that is read of a process, and every file that it maps, is hostile input: bounds are checked,
 * sizes are capped, loops end. All functions of a row, and those that the folders of the runtimes
 * share by their <runtime>_priv.h, run with the lock of struct sb_interp held, on any thread. No
 * argument is NULL. Strings are appended to: after an error a part may be there, and the caller
 * discards it. Out-parameters mean nothing after an error.
 */
#ifndef SB_INTERP_RUNTIME_H
#define SB_INTERP_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "bpf/abi/sb_abi_interp.h"
#include "interp/core/image.h"
#include "interp/core/memory.h"
#include "interp/core/step.h"
#include "symbolizer/sb_sym.h"

#define SB_RUNTIME_MARKERS_MAX	4
#define SB_RUNTIME_PROGRAMS_MAX 3
#define SB_RUNTIME_ANCHORS_MAX	16

/* A range of addresses of a process: [begin, end). */
struct sb_range {
	uint64_t begin, end;
};

/* One runtime in one process. The first members are set by the caller of attach(), the others by
 * attach(). */
struct sb_runtime {
	const struct sb_runtime_ops *ops;
	const struct sb_memory *memory; /* of the process; borrowed */
	struct sb_image *image; /* the file that has the markers, as it is mapped; borrowed */
	const struct sb_process_maps *maps; /* of the process; borrowed; see needs_all_maps; only in
					       attach() and look_again(), else NULL */
	bool wants_lines;		    /* describe() is to find files and lines, too */
	/* Of describe(): how often it has waited for a name that was being written, since when
	 * (CLOCK_MONOTONIC). Zeroed by the caller of attach(). */
	uint32_t nr_rests;
	uint64_t rests_since_ns;

	/* Results of attach(). */
	struct sb_interp_conf conf; /* zeroed before, but for .runtime */
	void *state;		    /* private to the runtime; detach() frees it */
	char version[32];	    /* "3.11.2"; "" or a part of it when it is not known */
	/*
	 * Code of the interpreter's main loop. Each frame in it on the native stack stands for one
	 * segment of interpreter frames. With SB_INTERP_BY_STATE only.
	 */
	struct sb_range anchors[SB_RUNTIME_ANCHORS_MAX];
	size_t nr_anchors;
	/* Generated code without unwind information, and how to unwind it. User space uses this
	 * rule for stacks that it walks itself; in the kernel, native() does the same. */
	struct sb_sym_rule code;
	/*
	 * For runtimes whose loop frames and segments do not always come in pairs
	 * (SB_INTERP_READY), the loop's caller tells which. A call from @callers has a segment,
	 * which does not end in SB_INTERP_READY; a call from @inner has none.
	 */
	struct sb_range callers[SB_RUNTIME_ANCHORS_MAX], inner[SB_RUNTIME_ANCHORS_MAX];
	size_t nr_callers, nr_inner;
	/* With -ENOTSUP: the end of a sentence, "its layout is not known". attach() appends to it;
	 * the caller of attach() frees it. */
	struct sb_str why;
};

/* What a frame is called. The caller owns the strings, and clears all members before each call. */
struct sb_runtime_text {
	struct sb_str name; /* never empty on success: "Class.method", "Foo::bar", "<module>" */
	struct sb_str file; /* as the runtime knows it, or empty */
	uint32_t line;	    /* 0: not known */
	/* For a frame that stands for a C function: the address where the function begins. The
	 * function's native frame says the same, and this frame replaces it. Otherwise 0. */
	uint64_t native;
	/* The frame is a stub of the runtime: it replaces its native frame, and is shown with
	 * --interp both only. */
	bool is_glue;
};

struct sb_runtime_ops {
	uint32_t runtime; /* enum sb_runtime_kind */
	const char *name; /* "python" */
	/* attach() and the walker work on x86-64 and arm64. Other rows work on x86-64 only. */
	bool is_for_any_machine;
	/* describe() changes nothing but its text, also when reads fail, and reads again what may
	 * have changed meanwhile by sb_memory_read_again() only; there is no describe_inlined(). So
	 * it can be called to find out which pages it needs. */
	bool describes_purely;
	/* attach() or look_again() needs rt->maps to have data mappings, too, not only code. */
	bool needs_all_maps;
	/* Until a process is so old (ns), -ENOTSUP from attach() is taken as -EAGAIN: the dynamic
	 * linker may not be done, or the interpreter may not have started all it has. If this is
	 * not 0, attach() is called again after -ENOTSUP, -EBADMSG and -EFAULT until the process is
	 * a minute old, because a start can take that long. */
	uint64_t settles_ns;
	/* Symbols that only files of this runtime define, in .dynsym or .symtab; one of them is
	 * enough. */
	const char *markers[SB_RUNTIME_MARKERS_MAX];
	/* How the names of programs begin that mostly have this runtime; see
	 * sb_interp_guess(). */
	const char *programs[SB_RUNTIME_PROGRAMS_MAX];

	/*
	 * Find out how the interpreter of this process is laid out, and prove it ("self-test" in
	 * docs/interpreters.md): by what the runtime says of itself, by disassembling an exported
	 * function, or by a table of known versions. Should take at most a millisecond.
	 * Return: 0; -EAGAIN when the runtime has not begun yet: it is called again; -ENOTSUP with
	 * rt->why when the layout is not known; -EBADMSG with rt->why when the self-test failed,
	 * though perhaps only because the process was preempted while it changed what was read: it
	 * is called again, with growing pauses, and -ENOTSUP is assumed after some; -ESRCH,
	 * -ENOMEM, or another error of reading: then the runtime is forgotten until the process is
	 * looked at again. After an error detach() is not called, so attach() frees what it made.
	 */
	int (*attach)(struct sb_runtime *rt);
	void (*detach)(struct sb_runtime *rt); /* NULL: nothing to free */
	/* The mappings of an attached process have changed: update conf and anchors. rt->maps is
	 * set. NULL: they do not depend on mappings. */
	void (*look_again)(struct sb_runtime *rt);
	/*
	 * Read the name of a frame from the process's memory, and its file and line with
	 * wants_lines. Called once for each pair of code object and position, and again after a
	 * failure. Return: 0; -EFAULT, -ESRCH or -EPERM: unreadable; -EBADMSG: there is no code
	 * object; -ENODATA: the frame has no name of its own, only inlined ones or none; -ENOMEM.
	 */
	int (*describe)(struct sb_runtime *rt, const struct sb_interp_frame *frame,
			struct sb_runtime_text *text);
	/*
	 * Read the name of the @i-th function that was inlined into the frame, 0 the innermost.
	 * Called until it returns an error, -ENODATA at the end; describe() then gives the frame's
	 * own name. An empty name is skipped. NULL: nothing is ever inlined.
	 */
	int (*describe_inlined)(struct sb_runtime *rt, const struct sb_interp_frame *frame,
				size_t i, struct sb_runtime_text *text);

	/* The walker, compiled for user space, for threads that sleep. NULL: the walker has no such
	 * function. */
	enum sb_step (*begin)(struct sb_interp_walk *walk, void *memory);
	enum sb_step (*step)(struct sb_interp_walk *walk, void *memory);
	enum sb_step (*native)(struct sb_interp_walk *walk, struct sb_walk *at, void *memory);

	/*
	 * Symbol names of the loop, for files with symbols where attach() found no range:
	 * "_PyEval_EvalFrameDefault". Compiler suffixes (".cold", ".part.0") match as well.
	 */
	const char *const *anchors; /* NULL-terminated, or NULL */
	/*
	 * Globs (* and ?) of functions that are left out by default, if they lie in the file of the
	 * loop: the runtime's own functions between the loop and what it calls, and below its first
	 * frame. A function that does something a user would ask about is not listed.
	 */
	const char *const *glue; /* NULL-terminated, or NULL */
};

/*
 * For attach(): overwrite rt->why with a copy of @why, the end of a sentence, and the build ID of
 * the file. Return: -ENOTSUP; -ENOMEM. Either is to be returned by attach().
 */
int sb_runtime_refuse(struct sb_runtime *rt, const char *why);
/* For attach() after a failed self-test: overwrite rt->why with a text that is the same for each
 * runtime, and the build ID of the file. Return: -EBADMSG; -ENOMEM. Either is to be returned by
 * attach(). */
int sb_runtime_doubt(struct sb_runtime *rt);
/* A detach() for an rt->state that is NULL or one block from malloc(): it is freed and set to
 * NULL. */
void sb_runtime_free_state(struct sb_runtime *rt);
/*
 * Walk a thread by its state with begin() and step(), as the kernel does; @rt is attached, or its
 * conf is filled in for a self-test, and it has both. @walk: the caller has set conf,
 * thread_pointer, and wants_lines, pc, sp and regs as far as they are known (else 0), and zeroed
 * at[]; frames are appended to those that it has. Pages that the walk reads are cached until it
 * ends. walk->status tells how the walk ended; SB_STACK_DEPTH: after SB_INTERP_STEPS_MAX steps.
 * Return: false when begin() has already ended it.
 */
bool sb_runtime_walk(const struct sb_runtime *rt, struct sb_interp_walk *walk);

/* All runtimes; the last entry has runtime 0. */
extern const struct sb_runtime_ops *const sb_runtimes[];
/* Find the functions of the runtime @runtime, an enum sb_runtime_kind. Return: its entry of
 * sb_runtimes[], which is a constant; NULL if there is none. Any thread, without the lock. */
const struct sb_runtime_ops *sb_runtime_find(uint32_t runtime);
/* Return: whether the symbol @name matches a glob of ops->glue of @runtime; false for a runtime
 * without such a list. Any thread, also without the lock. */
bool sb_runtime_is_glue(uint32_t runtime, const char *name);
/* Return: whether the symbol @name is one of ops->anchors, also with a suffix of the compiler
 * (".cold"); false without such a list. Any thread, also without the lock. */
bool sb_runtime_is_anchor(const struct sb_runtime_ops *ops, const char *name);

#endif
