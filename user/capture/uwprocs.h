/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes to lists of their executable mappings, as the walk in the kernel searches them: read
 * from /proc when it asks for one, and again when one changed. A list stands until its successor
 * does. It is labelled with the address space that was asked about: a list that was read before or
 * after an exec by another label is never used. Knows nothing of BPF; one thread.
 */
#ifndef SB_CAPTURE_UWPROCS_H
#define SB_CAPTURE_UWPROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "capture/uwpool.h"
#include "capture/uwtables.h"
#include "sb_abi_unwind.h"

/* A process is read again only after a rest, but for its first times, if that is quick: while a program
 * starts, it maps one library after the other, and is to have whole stacks meanwhile. */
#define SB_UWPROCS_NR_EARLY_MAX 8u

struct sb_uwprocs;

struct sb_uwprocs_opts {
	struct sb_uwtables *tables; /* borrowed, as the pool */
	struct sb_uwpool *pool;
	uint32_t nr_procs_max; /* SB_UW_PROCS_MAX, less in tests */
	/* Show a list to the walker, or show it again: @is_same, nothing about it changed.
	 * Return: 0, or a negative errno. */
	int (*publish)(void *arg, uint32_t tgid, const struct sb_uw_proc *proc, bool is_same);
	void (*unpublish)(void *arg, uint32_t tgid);
	/* Return: whether there is no interpreter in a file. NULL: nobody knows. */
	bool (*is_plain)(void *arg, const struct stat *st);
	void *arg;
	uint64_t (*now_ns)(void); /* NULL: sb_now_ns() */
	uint64_t (*cpu_ns)(void); /* NULL: CPU time of the thread that calls */
};

int sb_uwprocs_new(const struct sb_uwprocs_opts *opts, struct sb_uwprocs **ret_procs);
/* Unpublishes nothing. */
void sb_uwprocs_free(struct sb_uwprocs *procs);

/*
 * The walker asked for a process: read its mappings and publish them. Return: 0; -EAGAIN: it was read a moment ago, see sb_uwprocs_reread(); -ESRCH:
 * there is no such process; -ENOMEM; others when nothing could be published.
 */
int sb_uwprocs_need(struct sb_uwprocs *procs, const struct sb_uw_need_event *need);
/*
 * The walker asked for the table of need->bin, of a mapping of need->tgid.
 * Return: as sb_uwtables_build(), or -ESRCH when the process does not map it any more.
 */
int sb_uwprocs_need_bin(struct sb_uwprocs *procs, const struct sb_uw_need_event *need);
/* Return: whether a file is mapped at @addr, by the list that is published; and which. */
bool sb_uwprocs_bin_at(const struct sb_uwprocs *procs, uint32_t tgid, uint64_t addr,
		       uint32_t *ret_bin);
/*
 * The mappings of @tgid changed, or it ended. Return: 0; -EAGAIN: it was read a moment ago, come
 * again at *@ret_when_ns, whatever happens meanwhile.
 */
int sb_uwprocs_reread(struct sb_uwprocs *procs, uint32_t tgid, uint64_t *ret_when_ns);

/* Its list is of no use any more. */
void sb_uwprocs_forget(struct sb_uwprocs *procs, uint32_t tgid);

/* Return: whether a list of @tgid is published, and was read when all was as it was at @time_ns or later. */
bool sb_uwprocs_is_read_since(const struct sb_uwprocs *procs, uint32_t tgid, uint64_t time_ns);

/* Return: whether a list of this very space is published, and there is no interpreter in its files. */
bool sb_uwprocs_is_plain(const struct sb_uwprocs *procs, const struct sb_uw_need_event *need);

/* Build all tables that @tgid needs, if a list of it is published. */
void sb_uwprocs_build_all(struct sb_uwprocs *procs, uint32_t tgid);

/* Return: whether a list of @tgid is published. */
bool sb_uwprocs_has(const struct sb_uwprocs *procs, uint32_t tgid);

struct sb_uwprocs_stats {
	uint64_t nr_processes; /* published now */
	uint64_t nr_refused;   /* processes at a bound, lists that were cut, files not opened */
	uint64_t nr_reads;
};
void sb_uwprocs_stats(const struct sb_uwprocs *procs, struct sb_uwprocs_stats *ret_stats);

#endif
