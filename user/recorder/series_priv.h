/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of series.c, which makes series and their tags, and what series_process.c, which reads
 * what a process says of itself, does for it. Internal to series*.c. One thread; nothing is NULL.
 */
#ifndef SB_RECORDER_SERIES_PRIV_H
#define SB_RECORDER_SERIES_PRIV_H

#include "base/arena.h"
#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"
#include "interp/core/interp.h"
#include "process/process.h"
#include "recorder/series.h"
#include "store/share.h"

/* Longer values of tags are cut. */
#define SB_SERIES_VALUE_BYTES_MAX 200u

struct proc_tags {
	struct sb_space *space; /* a reference; its slot has our number in procs, plus one */
	uint32_t tgid;
	uint64_t start_ns;
	uint64_t block;				   /* that it was last seen in */
	char *cgroup, *unit, *container, *service; /* NULL: none */
	char uid[12];				   /* "": not known */
	uint32_t owner;	     /* whose share of the table it takes (store/share.h) */
	const char *runtime; /* borrowed; NULL: not known yet */
};

struct known_cgroup {
	uint64_t id;
	char *path;
};

/* What makes a series: all that its tags are made of. */
struct series_key {
	uint32_t proc, tid;
	uint32_t labels; /* in label_sets; 0: none */
	uint32_t kind;
	char comm[SB_COMM_LEN];
};

/* What an owner has in this block. */
struct owner {
	uint32_t nr_procs, nr_keys[SB_VIEWS_MAX];
	uint32_t proc; /* one of them */
};

struct sb_series_table {
	struct sb_series_opts opts;
	struct sb_processes *processes; /* borrowed */
	struct sb_interp *interp;	/* borrowed, or NULL */
	uint64_t block, began_boot_ns;	/* the block, and when it began by CLOCK_BOOTTIME */
	SB_VEC(struct proc_tags) procs;
	SB_VEC(struct known_cgroup) cgroups;
	bool is_in_use; /* there is a series in this block */
	SB_VEC(struct series_key)
	keys; /* of the series behind the first, which are "(other)" of each kind */
	uint32_t nr_keys[SB_VIEWS_MAX]; /* of each kind */
	struct sb_share_owners owners;
	struct owner owner[SB_SHARE_OWNERS_MAX];
	struct sb_index keys_index;
	SB_VEC(struct sb_block_tags) tags; /* of all series, once they are asked for */
	struct sb_strtab
		label_sets; /* of this block: for each key its value, or nothing, and a NUL */
	struct sb_str text;
	struct sb_arena arena; /* of tags; of this block */
};

/*
 * Find the process of a sample, or look at it for the first time. *ret_owner is who it belongs to,
 * an index in table->owner, also after an error. Return: 0 and its index in table->procs, valid
 * until the next block; -E2BIG: its owner has no share left, or the registry of processes is full:
 * the caller counts the sample in the series "(other)" of its kind; -ENOMEM; *ret_proc is untouched
 * then.
 */
int sb_series_find_proc(struct sb_series_table *table, const struct sb_sample_key *key,
			uint32_t *ret_proc, uint32_t *ret_owner);
/* Set the runtime of @proc, an element of table->procs, if one is known by now: it may begin at any
 * moment, and at the end of the block nobody may know of the process any more. */
void sb_series_note_runtime(struct sb_series_table *table, struct proc_tags *proc);
/* Forget the processes that had no sample in the last two blocks, and renumber the others: at the
 * beginning of a block, after table->block is set. */
void sb_series_forget_procs(struct sb_series_table *table);
/* Free all processes and cgroups, for sb_series_free(); references to address spaces are not given
 * back, because their registry may be gone. */
void sb_series_release_procs(struct sb_series_table *table);

#endif
