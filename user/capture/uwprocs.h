/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Publishes lists of executable mappings, which the unwinder in the kernel searches; each list
 * holds references to the unwind tables of its files (bins, uwtables.h). A list is read from /proc
 * when the kernel asks for it, and again when the mappings changed; the old list stays valid until
 * the new one is published. A list is labelled with its address space, so that one from before or
 * after an exec is never used. Does not know BPF. One thread, on which the functions in the
 * options are called, too; these must not call functions of @procs. No pointer may be NULL unless a
 * comment says so. An event @need is only used during the call.
 *
 * Order: sb_uwprocs_new(); then sb_uwprocs_need() and sb_uwprocs_need_bin() for each request,
 * sb_uwprocs_reread() when mappings changed, and sb_uwprocs_forget() when a program has ended;
 * sb_uwprocs_free(), before the tables and the pool are freed.
 */
#ifndef SB_CAPTURE_UWPROCS_H
#define SB_CAPTURE_UWPROCS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "bpf/abi/sb_abi_unwind.h"
#include "capture/uwpool.h"
#include "capture/uwtables.h"

/* A process is read again only after a pause. The first reads are exempt if they are quick, because
 * a starting program maps one library after the other. */
#define SB_UWPROCS_NR_EARLY_MAX 8u

struct sb_processes;
struct sb_uwprocs;

struct sb_uwprocs_opts {
	struct sb_processes *processes; /* borrowed: lists are kept in its slots, with references */
	struct sb_uwtables *tables;	/* borrowed, like the pool */
	struct sb_uwpool *pool;
	uint32_t nr_procs_max; /* SB_UW_PROCS_MAX; less in tests */
	/* Publish a list to the walker. @is_same: it was read again and is the same as before.
	 * Return: 0; -E2BIG when there is no room, so that the oldest list goes; or another
	 * negative errno. */
	int (*publish)(void *arg, uint32_t tgid, const struct sb_uw_proc *proc, bool is_same);
	/* Take the list of a process away from the walker; it cannot fail. */
	void (*unpublish)(void *arg, uint32_t tgid);
	/* Whether a file is known to have no interpreter. NULL: it is not known. */
	bool (*is_plain)(void *arg, const struct stat *st);
	void *arg;
	uint64_t (*now_ns)(void); /* NULL: sb_now_ns(), CLOCK_MONOTONIC */
	uint64_t (*cpu_ns)(void); /* NULL: CPU time of the calling thread and its reader process */
};

/* Make it empty. @opts is copied; what it borrows must outlive it. The caller ends *ret_procs with
 * sb_uwprocs_free(); it is untouched on error. Return: 0 or -ENOMEM. */
int sb_uwprocs_new(const struct sb_uwprocs_opts *opts, struct sb_uwprocs **ret_procs);
/* Free @procs and all lists, without calling unpublish(), and give back the references to address
 * spaces, but not the words of the lists in the pool, nor the bins. Accepts NULL. */
void sb_uwprocs_free(struct sb_uwprocs *procs);

/*
 * Serve a request for a process (need->tgid, start_ns, exec_id; start_ns 0: that which has the tgid
 * now): read its mappings and publish them. Files are opened through the process; tables are not
 * built. Return: 0; -EAGAIN when it was read just now, so call sb_uwprocs_reread(), or when the
 * pool has no room for the list; -ESRCH when there is no such process; -ENOMEM; or another negative
 * errno, of reading /proc or of opts.publish(). On error nothing was published; an older list is
 * unpublished if the mappings cannot be read, except for -ENOMEM.
 */
int sb_uwprocs_need(struct sb_uwprocs *procs, const struct sb_uw_need_event *need);
/*
 * Serve a request for the table of file need->bin (its number, uwtables.h), which need->tgid maps.
 * The list of the process need not be published, and the bin need not be held; it is not held
 * afterwards either. It may take seconds.
 * Return: 0 when a table, or that there is none, is published, and for a number that was never
 * given out; -EAGAIN, without waiting, when the pool has no room, and for two seconds after that;
 * -ESRCH when the process does not map the file any more, or another file has its name; -ENOMEM,
 * -EMFILE, -ENFILE; or what reading /proc returned. On error nothing is published, and there is
 * nothing to do: the BPF side asks again.
 */
int sb_uwprocs_need_bin(struct sb_uwprocs *procs, const struct sb_uw_need_event *need);
/* Find the number of the file (bin) that is mapped at @addr by the published list of @tgid, which
 * holds the bin until it is replaced or unpublished. Return: whether there is one; anonymous memory
 * is none. If not, *ret_bin means nothing. */
bool sb_uwprocs_bin_at(const struct sb_uwprocs *procs, uint32_t tgid, uint64_t addr,
		       uint32_t *ret_bin);
/*
 * Read a process again whose mappings changed, or that ended, if its list is published. The list of
 * one that ended, or that cannot be read, is unpublished; without memory the old list stays.
 * Return: 0, also when nothing was published or reading failed; -EAGAIN when it was read just now:
 * call it again at *ret_when_ns (clock of now_ns(); otherwise untouched), even if nothing else
 * happens.
 */
int sb_uwprocs_reread(struct sb_uwprocs *procs, uint32_t tgid, uint64_t *ret_when_ns);

/* Unpublish the list of @tgid, if there is one, and give back all that it has: its words in the
 * pool, the bins, and the reference to the address space. */
void sb_uwprocs_forget(struct sb_uwprocs *procs, uint32_t tgid);

/* Return: whether a list of @tgid is published whose reading began after @time_ns (clock of
 * now_ns()), so that it shows all changes up to @time_ns. */
bool sb_uwprocs_is_read_since(const struct sb_uwprocs *procs, uint32_t tgid, uint64_t time_ns);

/* Return: whether the list of this address space (need->tgid, start_ns, exec_id) is published, and
 * all its files are known to have no interpreter. */
bool sb_uwprocs_is_plain(const struct sb_uwprocs *procs, const struct sb_uw_need_event *need);

/* Build all missing tables of the files of a process whose list is published; does nothing if none
 * is. May take seconds. Errors are ignored: the BPF side asks for what is missing. */
void sb_uwprocs_build_all(struct sb_uwprocs *procs, uint32_t tgid);

/* Return: whether a list of @tgid is published. */
bool sb_uwprocs_has(const struct sb_uwprocs *procs, uint32_t tgid);

/* Return: the ration (base/ration.h) that limits how much time goes into reading long lists again.
 * It belongs to @procs and is valid as long. */
struct sb_ration *sb_uwprocs_ration(struct sb_uwprocs *procs);

struct sb_uwprocs_stats {
	uint64_t nr_processes; /* published now */
	uint64_t nr_refused;   /* processes beyond a bound, cut lists, files that were not opened */
	uint64_t nr_reads;
};
/* Get the figures so far. */
void sb_uwprocs_stats(const struct sb_uwprocs *procs, struct sb_uwprocs_stats *ret_stats);

#endif
