/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Executable mappings of processes over time. Internal to the symbolizer; no I/O, no names: a file
 * is a number of the caller's.
 *
 * A process (tgid) has generations: one address space each, from fork or exec to the next exec or
 * the exit. A generation holds its mappings, each with the time it came into being. There is no
 * event for munmap: a mapping holds until a later one covers it, which is exact for sampled
 * addresses, because nothing can run in a hole. Thus
 *
 *	what lies at ADDR at TIME = the latest mapping of TIME or before that covers ADDR
 *
 * and it does not matter in which order events arrive. fork copies nothing: the child's generation
 * refers to its parent's as of the time of the fork. Method after perf's own maps and MMAP2
 * records, see perf_event_open(2).
 */
#ifndef SB_PROCMAPS_H
#define SB_PROCMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"

/* Twice as many executable mappings as the greediest JIT seen; sysctl vm.max_map_count is 65,530
 * for mappings of all kinds. */
#define SB_PROCMAPS_MAPPINGS_MAX     32768u
/* Of all processes together: 56 MiB. */
#define SB_PROCMAPS_ALL_MAPPINGS_MAX (1u << 20)
/* Of all processes together: 10 MiB; kernel.pid_max is 32,768 on small machines. */
#define SB_PROCMAPS_GENERATIONS_MAX  65536u
/* A child this many forks (without exec) below its ancestor gets a copy, so that a lookup never
 * follows a longer chain. */
#define SB_PROCMAPS_FORKS_MAX	     64u

struct sb_mapping {
	uint64_t start, end, pgoff;
	uint64_t time_ns;
	uint64_t max_end; /* of this mapping and those before it in the array */
	uint32_t seq;	  /* order of arrival, for equal times */
	uint32_t file;	  /* the caller's number */
	bool is_anon;
	bool is_seed; /* read from /proc, not an event */
};

struct sb_procgen {
	struct sb_procgen *older; /* of the same tgid */
	struct sb_procgen *parent;
	uint64_t fork_ns; /* what of @parent is inherited; valid if there is one */
	uint64_t start_ns, end_ns;
	uint64_t seed_read_ns; /* when /proc was last read, 0: never */
	uint64_t needed_ns;    /* while forgetting: earliest time somebody may ask about */
	uint64_t newest_ns;    /* time of the newest mapping */
	uint64_t lost_ns;      /* losses up to here were made good from /proc */
	uint32_t tgid, nr_children, nr_forks, next_seq;
	uint32_t repeats_from; /* number of mappings at which repeated ones are dropped */
	bool is_complete;      /* began with an exec, was seeded, or is a child of a complete one */
	bool is_tried;	       /* seeding was tried and failed: no process there any more */
	bool has_hole;	       /* mappings were dropped at a bound */
	SB_VEC(struct sb_mapping) maps; /* by start, then time, then seq */
	void *priv;			/* the caller's; freed by sb_procmaps.free_priv */
};

struct sb_procmaps {
	SB_VEC(struct sb_procmaps_process {
		uint32_t tgid;
		struct sb_procgen *newest;
		uint64_t limit_ns; /* a generation was refused: nothing is known from here on */
	})
	processes;
	struct sb_index index;
	uint32_t nr_generations;
	uint64_t nr_mappings;
	uint64_t nr_mappings_refused, nr_generations_refused;
	void (*free_priv)(void *arg, void *priv); /* NULL: nothing to free */
	void *free_arg;
};

void sb_procmaps_release(struct sb_procmaps *pm);

/* One executable mapping; fields as above. */
struct sb_procmaps_new {
	uint64_t start, end, pgoff;
	uint32_t file;
	bool is_anon;
};

/*
 * The events. A bound that is hit is counted in @pm and returns 0: the lookups it concerns say
 * so. Return: 0 or -ENOMEM.
 */
int sb_procmaps_mmap(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid,
		     const struct sb_procmaps_new *map);
int sb_procmaps_fork(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid, uint32_t parent_tgid);
int sb_procmaps_exec(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid);
int sb_procmaps_exit(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid);

/*
 * The generation to put into effect what /proc says of @tgid as of @time_ns: the one of that time,
 * a new one if the last known one has ended before. *ret_gen is NULL when there is nothing to
 * seed, because a later generation is known, or at a bound. Return: 0 or -ENOMEM.
 */
int sb_procmaps_seed_begin(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid,
			   struct sb_procgen **ret_gen);
/*
 * One mapping read from /proc. It lies below everything known by events, unless @over_ns is not 0:
 * then it was read to make good a loss of events up to that time, and holds from then on.
 */
int sb_procmaps_seed(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t over_ns,
		     const struct sb_procmaps_new *map);
/* @read_ns: CLOCK_MONOTONIC after reading. Should an exec of before then still turn up, what was
 * read belongs to another address space and is dropped. */
void sb_procmaps_seed_end(struct sb_procgen *gen, uint64_t over_ns, uint64_t read_ns);

/* Return: the generation of @tgid that ran at @time_ns (or had ended last), or NULL; then
 * *ret_limit says whether a bound is the reason. Valid until the next event or forget. */
struct sb_procgen *sb_procmaps_find(const struct sb_procmaps *pm, uint32_t tgid, uint64_t time_ns,
				    bool *ret_limit);

struct sb_procmaps_hit {
	struct sb_mapping map;	/* a copy */
	struct sb_procgen *gen; /* that it was found in: the one asked or an ancestor */
};

/* What lay at @addr at @time_ns. With @files: leaving out anonymous memory, to see the file that
 * it covers. Return: false when nothing is known to. */
bool sb_procgen_lookup(struct sb_procgen *gen, uint64_t addr, uint64_t time_ns, bool files,
		       struct sb_procmaps_hit *ret_hit);
/*
 * Return: the first time after @from_ns, up to @to_ns, at which something else came to lie at
 * @addr than what was known to lie there at @from_ns; UINT64_MAX when nothing did.
 */
uint64_t sb_procgen_next_change(struct sb_procgen *gen, uint64_t addr, uint64_t from_ns,
				uint64_t to_ns);
/* Return: whether any mapping is known, its ancestors' included. */
bool sb_procgen_has_mappings(const struct sb_procgen *gen);
/* Return: whether mappings of it or its ancestors were refused at a bound. */
bool sb_procgen_has_hole(const struct sb_procgen *gen);

/* Drop what no lookup at @time_ns or later can need. Pointers to generations become invalid. */
void sb_procmaps_forget(struct sb_procmaps *pm, uint64_t time_ns);

/* Call @fn for each mapping there is, to find out which files are still in use. */
void sb_procmaps_each(const struct sb_procmaps *pm,
		      void (*fn)(void *arg, const struct sb_mapping *map), void *arg);

#endif
