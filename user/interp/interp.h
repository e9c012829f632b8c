/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interpreters in processes: which there are, what the walkers in the kernel must know of them, and
 * the names of what they found, which are read once for each code object, while the process lives.
 *
 *	interp.c	runtimes in processes
 *	spaces.c	processes
 *	names.c		what frames are called
 *	runtime.h	what a runtime is; table.c has them all
 *	image.c		a file as a process maps it
 *	memory.c	a process's memory
 *	outside.c	walks by the kernel's walkers, from here
 *	labels.c	labels of threads; label_keys.c names their keys
 *
 * Any thread: there is a lock.
 */
#ifndef SB_INTERP_INTERP_H
#define SB_INTERP_INTERP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "sb_abi_interp.h"

struct sb_interp;

/* Return: the name of the i-th runtime that is known, or NULL past the end. */
const char *sb_interp_runtime_name(size_t i);

/* An address space; see struct sb_sample_key. {.tgid}: whatever the process is now. */
struct sb_interp_space {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct sb_interp_opts {
	bool lines;		       /* positions are wanted */
	size_t names_bytes_max;	       /* of names of processes that have ended; 0: 64 MiB */
	struct sb_parser_seat *parser; /* borrowed: who reads call frame information; NULL: we do */
	const char *const *labels;     /* borrowed: keys of labels that are asked for */
	size_t nr_labels;	       /* up to SB_LABELS_MAX */
	bool no_frames;		       /* labels only */
};

int sb_interp_new(const struct sb_interp_opts *opts, struct sb_interp **ret_interp);
void sb_interp_free(struct sb_interp *interp);

struct sb_interp_confs {
	uint32_t nr;
	struct sb_interp_conf conf[SB_INTERP_PER_PROC];
	bool has_labels;
	struct sb_interp_conf labels; /* struct sb_label_conf */
};
/*
 * Look at a process (again), and say what the walkers must know.
 * Return: 0; -EAGAIN: the same, but a runtime in it has not begun: ask again soon; -ESRCH: it has ended, even if
 * nobody has waited for it; -ENOMEM.
 */
int sb_interp_look(struct sb_interp *interp, const struct sb_interp_space *space,
		   struct sb_interp_confs *ret_confs);
/*
 * Return: whether a file of this path had no interpreter in it, where one was looked at. Another one may have: it is
 * a reason to look later, not to look elsewhere. Any thread, does not block.
 */
bool sb_interp_seems_plain(const struct sb_interp *interp, const char *path);
/* Return: whether this very file has none, as far as that is known. Any thread, does not block. */
struct stat;
bool sb_interp_is_plain(const struct sb_interp *interp, const struct stat *st);
/* All that this process maps is like that: as if it had been looked at. Return: 0 or -ENOMEM. */
int sb_interp_note_native(struct sb_interp *interp, const struct sb_interp_space *space);
/* Return: whether it has been looked at. */
bool sb_interp_knows(struct sb_interp *interp, const struct sb_interp_space *space);
/*
 * A process that was looked at before anybody knew its space, as {.tgid}, is @space: what was found in it is
 * @space's from here on, with all names. Return: 0: @space has been looked at; -ENOENT: nor has {.tgid};
 * -ESTALE: {.tgid} was another process, or another program of this one, and is forgotten; -ENOMEM.
 */
int sb_interp_adopt(struct sb_interp *interp, const struct sb_interp_space *space);
/* It has ended: its names are kept until sb_interp_forget(), as long as there is room. */
void sb_interp_ended(struct sb_interp *interp, const struct sb_interp_space *space);
/*
 * Forget the processes that ended before @before_ns (CLOCK_MONOTONIC): nothing of them will be asked any
 * more but what was found, by sb_interp_each(). Return: 0 or -ENOMEM.
 */
int sb_interp_forget(struct sb_interp *interp, uint64_t before_ns);

/*
 * Read the names of these frames, as far as they are not known: at once, while they are there.
 * Return: 0; -ENOTSUP: nothing that a runtime in it says can be read: look again, and it is left out.
 */
int sb_interp_fetch(struct sb_interp *interp, const struct sb_interp_space *space,
		    const struct sb_interp_frame *frames, size_t nr);

/* What a frame is called. */
struct sb_interp_name {
	struct sb_str name; /* "[unreadable python frame]" when that cannot be had any more */
	struct sb_str file; /* or empty */
	uint32_t line;
	bool is_unnamed;
	bool is_glue; /* of no use but to those who look at the runtime itself */
};
/*
 * The @i-th name of a frame: 0 is the innermost function that was inlined into it, the last one the
 * function itself; most have one. @name's strings are overwritten. Return: 0, -ENODATA: there are no
 * more; -ENOMEM.
 */
int sb_interp_name(struct sb_interp *interp, const struct sb_interp_space *space,
		   const struct sb_interp_frame *frame, uint32_t i, struct sb_interp_name *name);
void sb_interp_name_release(struct sb_interp_name *name);
/* Where the C function begins that a frame of the interpreter's is of; 0: it is none, or not known. */
uint64_t sb_interp_c_function(struct sb_interp *interp, const struct sb_interp_space *space,
			      const struct sb_interp_frame *frame);

/* Labels of a thread, as the kernel hands them out: see sb_abi_label.h. */
struct sb_interp_label_set {
	uint32_t kind; /* enum sb_label_kind */
	size_t nr_bytes;
	const void *data;
};
/*
 * Append what a set says: for each key that is asked for its value, or nothing, and a NUL.
 * Return: 0, or bits SB_LABELS_*; -ENOMEM.
 */
enum {
	/* What sb_interp_look() says of the process has changed. */
	SB_LABELS_NEWS = 1 << 0,
	/* The process did not name all of its keys at this moment: it may at the next. */
	SB_LABELS_AGAIN = 1 << 1,
};
int sb_interp_labels(struct sb_interp *interp, const struct sb_interp_space *space,
		     const struct sb_interp_label_set *set, struct sb_str *text);
/* The same for a thread that sleeps; nothing is appended where it has no labels. */
int sb_interp_labels_outside(struct sb_interp *interp, const struct sb_interp_space *space,
			     uint64_t thread_pointer, struct sb_str *text);

/*
 * What a process runs: the name of the runtime that began in it first, that of the program itself before those of
 * libraries; "go"; "native": none that is known. NULL: the process has not been looked at, or not in time. The
 * string lives for ever.
 */
const char *sb_interp_runtime_of(struct sb_interp *interp, const struct sb_interp_space *space);

/* Where the loops of a process's interpreters are. */
#define SB_INTERP_ANCHORS_MAX 128
enum sb_interp_anchor_kind {
	SB_INTERP_ANCHOR_LOOP,
	SB_INTERP_ANCHOR_CALLER, /* of the loop; see struct sb_runtime */
	SB_INTERP_ANCHOR_INNER,
};
struct sb_interp_anchors {
	uint32_t runtimes[SB_INTERP_PER_PROC]; /* enum sb_runtime_kind, those walked by state */
	const char *files
		[SB_INTERP_PER_PROC]; /* theirs, without the path; they live as long as @interp */
	size_t nr_runtimes;
	uint32_t natives[SB_INTERP_PER_PROC]; /* and those by the native walk */
	/* The same of theirs, or "": their loops are not in a file. */
	const char *native_files[SB_INTERP_PER_PROC];
	size_t nr_natives;
	struct sb_interp_anchor {
		uint64_t begin, end;
		uint32_t runtime;
		uint32_t kind; /* enum sb_interp_anchor_kind */
	} at[SB_INTERP_ANCHORS_MAX];
	size_t nr;
};
/* Return: whether the process has an interpreter. */
bool sb_interp_anchors(struct sb_interp *interp, const struct sb_interp_space *space,
		       struct sb_interp_anchors *ret_anchors);
/* Return: the runtime whose loop this frame is of, 0: none. @name: of the symbol, or NULL. */
uint32_t sb_interp_anchor_of(const struct sb_interp_anchors *anchors, uint64_t addr,
			     const char *name);

/* Return: enum sb_interp_anchor_kind of the frame that called @runtime's loop; LOOP: it is neither. */
uint32_t sb_interp_caller_of(const struct sb_interp_anchors *anchors, uint32_t runtime,
			     uint64_t addr);
/* Return: whether callers of @runtime's loop are told apart. */
bool sb_interp_has_callers(const struct sb_interp_anchors *anchors, uint32_t runtime);

/* A runtime's generated code, if a rule for it is known. *ret_rule is untouched if not. */
struct sb_sym_rule;
void sb_interp_code_rule(struct sb_interp *interp, const struct sb_interp_space *space,
			 struct sb_sym_rule *ret_rule);

/*
 * Walk a thread that sleeps from here, as the kernel's walkers would: those by state.
 * @walk: thread_pointer, pc, sp, regs are set; the rest is overwritten. Return: 0; -ENOENT: nothing.
 */
struct sb_interp_walk;
int sb_interp_walk_outside(struct sb_interp *interp, const struct sb_interp_space *space,
			   struct sb_interp_walk *walk);

/*
 * The same for frames that lie on its native stack, as that is unwound. hook_begin(), sb_symbolizer_unwind() with
 * @ret_hook, hook_end(), which appends what runtimes walked by state have; then @hook->walk has the frames.
 */
struct sb_sym_hook;
struct sb_interp_hook {
	struct sb_interp *interp; /* borrowed */
	struct sb_interp_space space;
	struct sb_interp_walk *walk; /* borrowed; thread_pointer, pc, sp, regs are set */
	/* What lay on its stack when it was seen asleep, at @stack_addr: read in the place of the process's memory. */
	const void *stack;
	uint64_t stack_addr, nr_stack_bytes;
	/* Ours. */
	const void *memory;
	uint32_t nr_steps;
};
/* Return: whether the process has such a runtime; else nothing is set. */
bool sb_interp_hook_begin(struct sb_interp_hook *hook, struct sb_sym_hook *ret_hook);
/* Return: whether frames were found on the native stack. */
bool sb_interp_hook_end(struct sb_interp_hook *hook);

/* For doctor and the end line: what was found; of processes that are forgotten, one for all that are alike. */
struct sb_interp_found {
	struct sb_interp_space space;
	uint32_t runtime;
	const char *runtime_name, *version, *path;
	const char *why; /* NULL: it works; or a sentence's end */
	bool is_pending; /* it has not begun, which why says */
};
int sb_interp_each(struct sb_interp *interp,
		   int (*fn)(void *arg, const struct sb_interp_found *found), void *arg);

struct sb_interp_stats {
	uint64_t nr_looks, nr_processes; /* with an interpreter, ever */
	uint64_t nr_unlisted;		 /* findings that sb_interp_each() does not have any more */
	uint64_t nr_labelled;		 /* of living processes: those that have labels */
	uint64_t nr_label_sets;		 /* that were looked at */
	uint64_t nr_unknown_keys;	 /* labels whose key the process does not name */
	uint64_t nr_refused;		 /* runtimes beyond those that are walked in one process */
	uint64_t nr_names, nr_unreadable,
		nr_late;		 /* late: read when they were needed, not at once */
	uint64_t nr_bytes, nr_forgotten; /* processes whose names were dropped at the bound */
	uint64_t look_ns, fetch_ns;
};
void sb_interp_stats(struct sb_interp *interp, struct sb_interp_stats *ret_stats);

#endif
