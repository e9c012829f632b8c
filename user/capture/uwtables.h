/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps files to bins: the number of a file's unwind table, and whether the table is ready. Two
 * files share a table when their build ID, size and owner are equal and, unless root owns them,
 * their device. A file without a build ID, or one whose owner only a FUSE server vouches for,
 * shares its table with nobody but itself, as long as it does not change. The owner counts because
 * a file's maker can choose any build ID: the table of one user's file must not be used for another
 * user's.
 *
 * A bin is a number, below nr_bins_max, for one file: the index of its struct sb_uw_bin, which the
 * walker in the kernel reads. Each process that maps a file holds its bin: it is a reference, which
 * keeps the number from being given to another file, and is given back by sb_uwtables_drop(). A bin
 * without holder stays, for the next process, until its number or its words are needed. Offsets are
 * in bytes. Does not know BPF. One thread. No pointer may be NULL unless a comment says so. A
 * number of a bin is one that was given out, unless a contract says so; it is not checked.
 *
 * Order, for each mapping: sb_uwtables_find(), and if that finds nothing sb_uwtables_add(); when
 * the table is needed and sb_uwtables_is_absent(), sb_uwtables_build(); in the end
 * sb_uwtables_drop(). Before sb_uwtables_free(), bins need not be dropped.
 */
#ifndef SB_CAPTURE_UWTABLES_H
#define SB_CAPTURE_UWTABLES_H

#include <stdbool.h>
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
	uint64_t (*now_ns)(void);      /* NULL: sb_now_ns(), CLOCK_MONOTONIC */
};

/* Make it empty; @opts is copied. The caller ends *ret_tables with sb_uwtables_free(); it is
 * untouched on error. Return: 0 or -ENOMEM. */
int sb_uwtables_new(const struct sb_uwtables_opts *opts, struct sb_uwtables **ret_tables);
/* Free @tables. What they wrote into the pool and into opts.bins is not erased. Accepts NULL. */
void sb_uwtables_free(struct sb_uwtables *tables);

/* Where a mapping lies in the address space of its ELF file. */
struct sb_uwtables_spot {
	uint32_t bin;
	uint64_t elf_addr; /* of the first byte of the mapping */
};

/*
 * Look up the bin of a file by its identity and the offset of its mapping in the file, without
 * reading the file.
 * @st: of sb_reader_fstat() or stat(2): device, inode, size and times count; not kept
 *
 * Return: true when this place was added before and its bin is still that of the file: the caller
 * holds the bin; false: nothing is held, *@ret_spot is untouched, call sb_uwtables_add().
 */
bool sb_uwtables_find(struct sb_uwtables *tables, const struct stat *st, uint64_t pgoff,
		      struct sb_uwtables_spot *ret_spot);
/*
 * Find the bin of the file @fd, and the ELF address of offset @pgoff in it, by reading the file. A
 * new file gets a bin without a table. On success the caller holds the bin; on error nothing is
 * held. @fd stays the caller's.
 * Return: 0; -ENOEXEC when it is no ELF file; -ENODATA when no segment is loaded from @pgoff;
 * -ENOSPC when all bins are held, or were until a moment ago; -EFBIG: it exceeds a bound of our ELF
 * reader; -ENOMEM; or an error of I/O. *@ret_spot is untouched on error.
 */
int sb_uwtables_add(struct sb_uwtables *tables, int fd, uint64_t pgoff,
		    struct sb_uwtables_spot *ret_spot);
/* Find the bin of the vDSO, which all processes share; on success the caller holds it. Return: 0;
 * -ENOENT when there is none; -ENODATA: it maps nothing; -ENOSPC when all bins are held, or were
 * until a moment ago; -ENOMEM; or another error of parsing it. On error nothing is held, and
 * *@ret_spot is untouched. */
int sb_uwtables_add_vdso(struct sb_uwtables *tables, struct sb_uwtables_spot *ret_spot);

/* Add or remove a holder of a bin that is held now. The last drop makes it reusable, after two
 * seconds at the earliest. */
void sb_uwtables_hold(struct sb_uwtables *tables, uint32_t bin);
void sb_uwtables_drop(struct sb_uwtables *tables, uint32_t bin);

/* Return: whether the bin has neither a table nor the mark that there is none, so that
 * sb_uwtables_build() is due; false for a number that was never given out. The bin need not be
 * held. */
bool sb_uwtables_is_absent(const struct sb_uwtables *tables, uint32_t bin);
/* Return: the size of the file of @bin in bytes, as a measure of how long compiling its table
 * takes; 0 for the vDSO, and for a number that was never given out. The bin need not be held. */
uint64_t sb_uwtables_file_bytes(const struct sb_uwtables *tables, uint32_t bin);
/* Return: whether @bin is the vDSO, whose table sb_uwtables_build() builds without a file (@fd is
 * -1); false for a number that was never given out. */
bool sb_uwtables_is_vdso(const struct sb_uwtables *tables, uint32_t bin);

/*
 * Compile the table of a bin that the caller holds, and publish it: first the words, then the
 * state. If the CFI cannot be used, that state is published. It may take seconds.
 * @fd: the file, as process @tgid maps it, whose root is searched for a separate debug file; stays
 *	the caller's. Not used for the vDSO
 *
 * Return: 0 when a state is published, also before; -ESTALE when @fd is another file; -EAGAIN when
 * there is no room: evicted words can be reused in two seconds, and until then each call returns
 * this at once; -ENOMEM, -EMFILE, -ENFILE. On error no state is published.
 */
int sb_uwtables_build(struct sb_uwtables *tables, uint32_t bin, int fd, uint32_t tgid);

/*
 * Add a file that nobody maps yet, and build its table. @fd: stays the caller's; -1: the vDSO.
 * @tgid: the process that is about to map it, as in sb_uwtables_build(). It may take seconds.
 * Nobody holds the bin afterwards. Errors are ignored: the first sample asks again.
 */
void sb_uwtables_build_early(struct sb_uwtables *tables, int fd, uint32_t tgid);

/* Allocate @nr_words words of the pool for a list of mappings. The caller frees them by
 * sb_uwpool_release(). Return: 0; -EAGAIN when there is no room: the least recently used tables
 * were evicted, also those of bins that are held, and it can be tried again when their words can be
 * reused, after two seconds; -EFBIG: more than a list can have; -ENOMEM. *@ret_place is untouched
 * on error. */
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
/* Get the figures so far. */
void sb_uwtables_stats(const struct sb_uwtables *tables, struct sb_uwtables_stats *ret_stats);

#endif
