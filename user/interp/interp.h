/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interpreters in processes: which there are, what the walkers in the kernel must know of them, and
 * the names of what they found, which are read once for each code object, while the process lives.
 *
 *	interp.c	processes, runtimes, names: this interface
 *	runtime.h	what a runtime is; table.c has them all
 *	image.c		a file as a process maps it
 *	memory.c	a process's memory
 *	outside.c	the kernel's walkers, compiled for here
 *
 * Any thread: there is a lock.
 */
#ifndef SB_INTERP_INTERP_H
#define SB_INTERP_INTERP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sb_abi_interp.h"

struct sb_interp;
struct sb_runtime_ops;

/* An address space; see struct sb_sample_key. */
struct sb_interp_space {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct sb_interp_opts {
	bool lines;		/* positions are wanted */
	size_t names_bytes_max; /* of names of processes that have ended; 0: 64 MiB */
};

int sb_interp_new(const struct sb_interp_opts *opts, struct sb_interp **ret_interp);
void sb_interp_free(struct sb_interp *interp);

/*
 * Look at a process (again), and say what the walkers must know.
 * Return: 0; -EAGAIN: 0 as well, but a runtime in it has not begun: ask again soon; -ESRCH, -ENOMEM.
 */
int sb_interp_look(struct sb_interp *interp, const struct sb_interp_space *space,
		   struct sb_interp_proc *ret_proc);
/* Its mappings changed. Return: whether it is known, so that it should be looked at again. */
bool sb_interp_knows(struct sb_interp *interp, uint32_t tgid);

/* Read the names of these frames, as far as they are not known: at once, while they are there.
 * Return: 0, or -ENOTSUP: nothing of this process could be read for some time: its walker should be
 * stopped. */
int sb_interp_fetch(struct sb_interp *interp, const struct sb_interp_space *space,
		    const struct sb_interp_frame *frames, size_t nr);

/* What a frame is called. Strings are valid until sb_interp_free(). */
struct sb_interp_name {
	const char *name; /* never NULL: "[unreadable python frame]" */
	const char *file; /* or NULL */
	uint32_t line;
	uint32_t nr_inlined; /* frames that were inlined into this one; see sb_interp_inlined() */
	bool is_unnamed;
};
int sb_interp_name(struct sb_interp *interp, const struct sb_interp_space *space,
		   const struct sb_interp_frame *frame, struct sb_interp_name *ret_name);
/* The @i-th inlined one, innermost first. */
int sb_interp_inlined(struct sb_interp *interp, const struct sb_interp_space *space,
		      const struct sb_interp_frame *frame, uint32_t i,
		      struct sb_interp_name *ret_name);

/* Return: the runtime whose loop holds this address or has this name; 0: none. @name may be NULL. */
uint32_t sb_interp_anchor(struct sb_interp *interp, const struct sb_interp_space *space,
			  uint64_t addr, const char *name);
/* Return: whether @name is glue of @runtime. */
bool sb_interp_is_glue(uint32_t runtime, const char *name);

/* For doctor and the end line: what was found. */
struct sb_interp_found {
	struct sb_interp_space space;
	uint32_t runtime;
	const char *runtime_name, *version, *path;
	const char *why; /* NULL: it works; or a sentence's end */
};
int sb_interp_each(struct sb_interp *interp,
		   int (*fn)(void *arg, const struct sb_interp_found *found), void *arg);

struct sb_interp_stats {
	uint64_t nr_looks, nr_processes; /* with an interpreter */
	uint64_t nr_names, nr_unreadable,
		nr_late;		 /* late: read when they were needed, not at once */
	uint64_t nr_bytes, nr_forgotten; /* processes whose names were dropped at the bound */
	uint64_t look_ns, fetch_ns;
};
void sb_interp_stats(struct sb_interp *interp, struct sb_interp_stats *ret_stats);

#endif
