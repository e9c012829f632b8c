/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps files to bins: the number of a file's unwind table, and whether the table is ready. Two
 * files share a table when their build ID, size and owner are equal and, unless root owns them,
 * their device. A file without a build ID, or one whose owner only a FUSE server vouches for,
 * shares its table with nobody but itself, as long as it does not change. The owner counts because
 * a file's maker can choose any build ID: the table of one user's file must not be used for another
 * user's.
 *
 * Each process that maps a file holds its bin. A bin without holder stays, for the next process,
 * until its number or its words are needed. Does not know BPF. One thread.
 */
#ifndef SB_CAPTURE_UWTABLES_H
#define SB_CAPTURE_UWTABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi_unwind.h"
#include "capture/uwpool.h"

struct sb_parser_seat;
struct stat;
struct sb_uwtables;

struct sb_uwtables_opts {
	struct sb_uw_bin *bins;	       /* borrowed, zeroed; shared with the walker */
	uint32_t nr_bins_max;	       /* SB_UW_BINS_MAX; less in tests */
	struct sb_uwpool *pool;	       /* borrowed */
	struct sb_parser_seat *parser; /* borrowed: compiles; NULL: the calling thread does */
	uint64_t (*now_ns)(void);      /* NULL: sb_now_ns() */
};

/* Return: 0 or -ENOMEM. */
int sb_uwtables_new(const struct sb_uwtables_opts *opts, struct sb_uwtables **ret_tables);
void sb_uwtables_free(struct sb_uwtables *tables);

/* Where a mapping lies in the address space of its ELF file. */
struct sb_uwtables_spot {
	uint32_t bin;
	uint64_t elf_addr; /* of the first byte of the mapping */
};

/*
 * Look up the bin of a file by its identity and the offset of its mapping, without reading the
 * file. The caller holds the bin afterwards. Return: whether this place was added before.
 */
bool sb_uwtables_find(struct sb_uwtables *tables, const struct stat *st, uint64_t pgoff,
		      struct sb_uwtables_spot *ret_spot);
/*
 * The same by reading the file. A new file gets a bin without a table. The caller holds the bin;
 * @fd stays with it.
 * Return: 0; -ENOEXEC when it is no ELF file; -ENODATA when no segment is loaded from @pgoff;
 * -ENOSPC when all bins are held; -ENOMEM; or an error of I/O.
 */
int sb_uwtables_add(struct sb_uwtables *tables, int fd, uint64_t pgoff,
		    struct sb_uwtables_spot *ret_spot);
/* The same for the vDSO, which all processes share. Return: as above; -ENOENT when there is
 * none. */
int sb_uwtables_add_vdso(struct sb_uwtables *tables, struct sb_uwtables_spot *ret_spot);

/* Add or remove a holder of a bin. */
void sb_uwtables_hold(struct sb_uwtables *tables, uint32_t bin);
void sb_uwtables_drop(struct sb_uwtables *tables, uint32_t bin);

/* Return: whether the bin has neither a table nor the mark that there is none, so that
 * sb_uwtables_build() is due. */
bool sb_uwtables_is_absent(const struct sb_uwtables *tables, uint32_t bin);
/* Return: the size of its file, as a measure of how long the table takes; 0 for the vDSO. */
uint64_t sb_uwtables_file_bytes(const struct sb_uwtables *tables, uint32_t bin);
/* Return: whether it is the vDSO, which is built without a file. */
bool sb_uwtables_is_vdso(const struct sb_uwtables *tables, uint32_t bin);

/*
 * Compile the table of a bin and publish it: first the words, then the state. If the CFI cannot be
 * used, that state is published.
 * @fd: the file, as process @tgid maps it; its root is searched for a separate debug file
 *
 * Return: 0 when a state is published; -ESTALE when it is another file; -EAGAIN when there is no
 * room before evicted words can be reused; -ENOMEM, -EMFILE, -ENFILE.
 */
int sb_uwtables_build(struct sb_uwtables *tables, uint32_t bin, int fd, uint32_t tgid);

/*
 * The same for a file that nobody maps yet; @fd -1: the vDSO. Nobody holds the bin afterwards.
 * Errors are ignored: the first sample asks again.
 */
void sb_uwtables_build_early(struct sb_uwtables *tables, int fd, uint32_t tgid);

/* Allocate words for a list; evicts tables if need be. Return: 0; -EAGAIN when there is no room
 * before evicted words can be reused; -EFBIG; -ENOMEM. */
int sb_uwtables_alloc_list(struct sb_uwtables *tables, uint32_t nr_words,
			   struct sb_uwpool_place *ret_place);

struct sb_uwtables_stats {
	uint64_t nr_tables;  /* that are ready now */
	uint64_t nr_built;   /* since the start */
	uint64_t nr_failed;  /* files whose CFI could not be used */
	uint64_t nr_refused; /* files while all bins were held; tables too big for the pool */
	uint64_t nr_evictions;
	uint64_t nr_rows, build_ns; /* of all tables that were built */
};
void sb_uwtables_stats(const struct sb_uwtables *tables, struct sb_uwtables_stats *ret_stats);

#endif
