/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps files to bins: the number of a file's unwind table, and whether the table is ready. Two files share a table
 * when their build ID, size and owner are equal and, unless root owns them, their device. A file without a build ID,
 * or one whose owner only a FUSE server vouches for, shares its table with nobody but itself, as long as it does not
 * change. The owner counts because a file's maker can choose any build ID: the table of one user's file must not be
 * used for another user's.
 *
 * A bin is held by each process that maps its file. What nobody holds stays, for the next process,
 * until its number or its words are needed. Knows nothing of BPF; one thread.
 */
#ifndef SB_CAPTURE_UWTABLES_H
#define SB_CAPTURE_UWTABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/uwpool.h"
#include "sb_abi_unwind.h"

struct sb_parser_seat;
struct stat;
struct sb_uwtables;

struct sb_uwtables_opts {
	struct sb_uw_bin *bins;	       /* zeroed; shared with the walker */
	uint32_t nr_bins_max;	       /* SB_UW_BINS_MAX, less in tests */
	struct sb_uwpool *pool;	       /* borrowed */
	struct sb_parser_seat *parser; /* borrowed: who compiles; NULL: we do */
	uint64_t (*now_ns)(void);      /* NULL: sb_now_ns() */
};

/* Return: 0 or -ENOMEM. */
int sb_uwtables_new(const struct sb_uwtables_opts *opts, struct sb_uwtables **ret_tables);
void sb_uwtables_free(struct sb_uwtables *tables);

/* Where a mapping lies in its file's own addresses. */
struct sb_uwtables_spot {
	uint32_t bin;
	uint64_t elf_addr; /* of the first byte of the mapping */
};

/*
 * The bin of the file that looks like @st, mapped from offset @pgoff, if exactly that was added
 * before; costs no look at the file. The caller holds the bin. Return: whether it is known.
 */
bool sb_uwtables_find(struct sb_uwtables *tables, const struct stat *st, uint64_t pgoff,
		      struct sb_uwtables_spot *ret_spot);
/*
 * The same by looking at the file; a new one is given a bin, without a table. The caller holds it.
 * Return: 0, -ENOEXEC (no ELF file), -ENODATA (nothing of the file is loaded from there), -ENOSPC
 * (all bins are held), -ENOMEM, others of I/O.
 */
int sb_uwtables_add(struct sb_uwtables *tables, int fd, uint64_t pgoff,
		    struct sb_uwtables_spot *ret_spot);
/* The same for the vDSO, one for all processes. -ENOENT: there is none. */
int sb_uwtables_add_vdso(struct sb_uwtables *tables, struct sb_uwtables_spot *ret_spot);

/* One more holder, and one less. */
void sb_uwtables_hold(struct sb_uwtables *tables, uint32_t bin);
void sb_uwtables_drop(struct sb_uwtables *tables, uint32_t bin);

/* Return: whether there is something to do for sb_uwtables_build(). */
bool sb_uwtables_is_absent(const struct sb_uwtables *tables, uint32_t bin);
/* Return: how big its file is, which is about how long its table takes; 0 for the vDSO. */
uint64_t sb_uwtables_file_bytes(const struct sb_uwtables *tables, uint32_t bin);
/* Return: whether it needs no file for it. */
bool sb_uwtables_is_vdso(const struct sb_uwtables *tables, uint32_t bin);

/*
 * Compile the table of a bin and publish it: words first, the state last. The file is @fd, as
 * process @tgid (for its root, where a separate debug file may be) maps it. A file without usable
 * CFI is published as such. Return: 0 when the state is published, -ESTALE (it is another file),
 * -EAGAIN (no room before what was evicted has rested), -ENOMEM.
 */
int sb_uwtables_build(struct sb_uwtables *tables, uint32_t bin, int fd, uint32_t tgid);

/*
 * The same for a file that nobody maps yet, and for the vDSO (@fd is -1); held by nobody afterwards. What
 * fails is asked for again by the first sample.
 */
void sb_uwtables_build_early(struct sb_uwtables *tables, int fd, uint32_t tgid);

/* A place for a list of @nr_words; evicts tables for it. Return: 0, -EAGAIN, -EFBIG, -ENOMEM. */
int sb_uwtables_alloc_list(struct sb_uwtables *tables, uint32_t nr_words,
			   struct sb_uwpool_place *ret_place);

struct sb_uwtables_stats {
	uint64_t nr_tables;  /* that stand */
	uint64_t nr_built;   /* since the start */
	uint64_t nr_failed;  /* files whose CFI could not be used */
	uint64_t nr_refused; /* files: all bins are held; tables: too big for the pool */
	uint64_t nr_evictions;
	uint64_t nr_rows, build_ns; /* of all that were built */
};
void sb_uwtables_stats(const struct sb_uwtables *tables, struct sb_uwtables_stats *ret_stats);

#endif
