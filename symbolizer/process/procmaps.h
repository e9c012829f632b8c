/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The executable mappings of processes over time. Internal to the symbolizer. It does no I/O and
 * knows no names: a file is a number that the caller chooses.
 *
 * A process (tgid) has generations, one for each address space: from fork or exec to the next exec
 * or the exit. A generation holds its mappings, each with the time when it was made. There is no
 * event for munmap: a mapping stays valid until a later one covers it. For sampled addresses this
 * is exact, because nothing can run where nothing is mapped. Therefore
 *
 *	what lies at ADDR at TIME = the latest mapping made at TIME or before that covers ADDR
 *
 * and events may arrive in any order. fork copies nothing: the child's generation refers to its
 * parent's as of the time of the fork. The method is that of perf's own maps and MMAP2 records, see
 * perf_event_open(2).
 *
 * Words: to seed a generation is to add mappings that were read from /proc; it is complete when all
 * its mappings are known. Addresses are those of the process; @pgoff is the offset in the file, in
 * bytes. Times are CLOCK_MONOTONIC, nanoseconds; in lookups the time of the sample.
 *
 * Order: zero a struct sb_procmaps and set free_priv; apply events as they come; look up by
 * sb_procmaps_find() and then sb_procgen_*(); call sb_procmaps_forget() from time to time, and
 * sb_procmaps_release() at the end. To seed: sb_procmaps_seed_begin(), sb_procmaps_seed() and
 * sb_procmaps_seed_end(), without an event in between. After -ENOMEM @pm remains usable.
 *
 * A pointer to a generation is owned by the struct sb_procmaps, and valid until the next event,
 * seeding or forget.
 *
 * No pointer is NULL unless a contract says so. Thread: one at a time for each struct sb_procmaps
 * and its generations.
 */
#ifndef SB_PROCMAPS_H
#define SB_PROCMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"

/* Of one generation. Twice as many as the greediest JIT seen; sysctl vm.max_map_count allows 65,530
 * mappings of all kinds. */
#define SB_PROCMAPS_MAPPINGS_MAX     32768u
/* Of all processes together; they take 56 MiB. */
#define SB_PROCMAPS_ALL_MAPPINGS_MAX (1u << 20)
/* Of all processes together; they take 10 MiB. kernel.pid_max is 32,768 on small machines. */
#define SB_PROCMAPS_GENERATIONS_MAX  65536u
/* Bound of the chain of parents that a lookup follows: a child that many forks (without exec) below
 * its ancestor gets a copy of the mappings. */
#define SB_PROCMAPS_FORKS_MAX	     64u

/* The end of a generation that has not ended. */
#define SB_PROCMAPS_NEVER	     UINT64_MAX

struct sb_mapping {
	uint64_t start, end, pgoff;
	uint64_t time_ns;
	uint64_t max_end; /* the highest end of this mapping and those before it in the array */
	uint32_t seq;	  /* order of arrival, to order mappings of the same time */
	uint32_t file;	  /* number chosen by the caller */
	bool is_anon;
	bool is_seed; /* was read from /proc; did not come as an event */
};

struct sb_procgen {
	struct sb_procgen *older; /* the generation before, of the same tgid */
	struct sb_procgen *parent;
	uint64_t fork_ns; /* mappings of @parent up to this time are inherited */
	uint64_t start_ns, end_ns;
	uint64_t seed_read_ns; /* when /proc was last read; 0: never */
	uint64_t needed_ns;    /* only while forgetting: earliest time that can be asked for */
	uint64_t newest_ns;    /* time of the newest mapping */
	uint64_t lost_ns;      /* losses of events up to this time were repaired from /proc */
	uint64_t gap_from_ns;  /* events were skipped from this time on, up to gap_to_ns */
	uint64_t gap_to_ns;    /* 0: none were; SB_PROCMAPS_NEVER: /proc could not be read again */
	uint64_t
		next_seed_ns; /* not to be read again before this time, because it costs too much */
	uint64_t unhidden_ns; /* mappings hidden at this time were removed; nr_unhidden remained */
	size_t nr_unhidden;
	size_t nr_sorted;
	uint32_t tgid, nr_children, nr_forks, next_seq;
	uint32_t repeats_from; /* number of mappings at which repeated ones are dropped */
	bool is_complete;      /* began with an exec, was seeded, or is a child of a complete one */
	bool is_tried;	       /* seeding failed, because the process is gone */
	bool has_hole;	       /* mappings were dropped because of a bound */
	SB_VEC(struct sb_mapping)
	maps;	    /* the first nr_sorted ordered by start, time, seq; then in order of arrival */
	void *priv; /* owned by the caller of this module; freed by sb_procmaps.free_priv */
};

/* All zeroes is an empty one. */
struct sb_procmaps {
	SB_VEC(struct sb_procmaps_process {
		uint32_t tgid;
		struct sb_procgen *newest;
		uint64_t
			limit_ns; /* a generation was refused: nothing is known from this time on */
	})
	processes;
	struct sb_index index;
	uint32_t nr_generations;
	uint64_t nr_mappings;
	uint64_t nr_mappings_refused, nr_generations_refused;
	/* Called when a generation with a priv is freed, by sb_procmaps_release() and
	 * sb_procmaps_forget(); it must not use this struct. NULL: nothing to free. */
	void (*free_priv)(void *arg, void *priv);
	void *free_arg;
};

/* Free everything in @pm, each procgen.priv by free_priv, but not @pm itself; it is not to be used
 * again until it is zeroed. */
void sb_procmaps_release(struct sb_procmaps *pm);

/* A mapping; the fields are those of struct sb_mapping. */
struct sb_procmaps_new {
	uint64_t start, end, pgoff;
	uint32_t file;
	bool is_anon;
};

/*
 * Apply an event: process @tgid made a mapping (@map is copied; empty ones are ignored), was forked
 * from @parent_tgid (ignored if the two are the same), called exec, or has ended. A process of
 * which nothing is known becomes known by its event, a parent by that of its child. An event that a
 * bound does not allow is counted in @pm and returns 0; lookups that it would have answered report
 * the bound. Return: 0; -ENOMEM: the event is lost, at least in part.
 */
int sb_procmaps_mmap(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid,
		     const struct sb_procmaps_new *map);
int sb_procmaps_fork(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid, uint32_t parent_tgid);
int sb_procmaps_exec(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid);
int sb_procmaps_exit(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid);

/*
 * Note that mapping events of @tgid between @first_ns and @last_ns were skipped, until seeding with
 * a later @over_ns repairs that. A gap that is not repaired yet is extended to @last_ns. A process
 * of which nothing is known becomes known by this. Return: 0, also when a bound refuses the
 * process, and then nothing is noted; -ENOMEM: the gap is not noted.
 */
int sb_procmaps_skip(struct sb_procmaps *pm, uint32_t tgid, uint64_t first_ns, uint64_t last_ns);

/*
 * Find the generation that the text of /proc/@tgid/maps, read at @time_ns, belongs to: the newest
 * one, or a new one if there is none or that has ended. *ret_gen is NULL when there is nothing to
 * seed, because a later generation is known or a bound was hit. Otherwise sb_procmaps_seed() comes
 * next; or, if /proc could not be read, neither this nor sb_procmaps_seed_end(). Return: 0;
 * -ENOMEM: *ret_gen means nothing.
 */
int sb_procmaps_seed_begin(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid,
			   struct sb_procgen **ret_gen);
/*
 * Add the mappings that were read from /proc, all in one call, to @gen, which
 * sb_procmaps_seed_begin() has given; empty ones are ignored. sb_procmaps_seed_end() comes next,
 * also after an error; if there was none, it makes @gen complete.
 * @maps: @nr of them, ordered by address; copied; may be NULL if @nr is 0. They hold nothing that
 *	needs a release: free_priv is for generations
 * @over_ns: 0: they count as older than all events. Otherwise they repair a loss of events up to
 *	this time, and are valid from then on. Only those that differ from what is known are added,
 *	and known ones that are missing from them are dropped if they do not lie above the last of
 *	@maps, were made up to the time of the last sb_procmaps_forget(), and no child of @gen is
 *	known.
 *
 * Mappings beyond a bound are counted in @pm. Return: 0; -ENOMEM: some may have been added.
 */
int sb_procmaps_seed(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t over_ns,
		     const struct sb_procmaps_new *maps, size_t nr);
/*
 * End seeding @gen. Called after every sb_procmaps_seed(), but not when /proc could not be read.
 * @err: of sb_procmaps_seed(). If it is 0, @gen is complete, and losses up to @over_ns (0: none)
 *	are repaired; else it is to be seeded again
 * @read_ns: CLOCK_MONOTONIC after reading. If an exec before this time arrives later, what was read
 *	belongs to another address space and is dropped.
 */
void sb_procmaps_seed_end(struct sb_procgen *gen, int err, uint64_t over_ns, uint64_t read_ns);

/*
 * Find the generation of @tgid that ran at @time_ns, or the last one that had ended before.
 * Return: the generation; NULL: nothing is known. *@ret_limit is set to whether that is because of
 * a bound; false when one is returned.
 */
struct sb_procgen *sb_procmaps_find(const struct sb_procmaps *pm, uint32_t tgid, uint64_t time_ns,
				    bool *ret_limit);

struct sb_procmaps_hit {
	struct sb_mapping map; /* a copy */
	/* Where it was found: the generation asked for or an ancestor. */
	struct sb_procgen *gen;
};

/*
 * Find the mapping that lay at @addr at @time_ns. @gen: from sb_procmaps_find(); NULL: none.
 * @files: ignore anonymous memory, to find the file that it covers. Return: false when none is
 * known; *@ret_hit is untouched then.
 */
bool sb_procgen_lookup(struct sb_procgen *gen, uint64_t addr, uint64_t time_ns, bool files,
		       struct sb_procmaps_hit *ret_hit);
/*
 * Return: whether the mapping at @addr at @time_ns is in doubt: events were skipped at that time
 * (sb_procmaps_skip()), and it is not known that the same mapping lay there before and afterwards.
 */
bool sb_procgen_is_in_gap(struct sb_procgen *gen, uint64_t addr, uint64_t time_ns);
/*
 * Return: the first time after @from_ns, up to @to_ns, at which @addr got another mapping than the
 * one known at @from_ns; UINT64_MAX when it kept its mapping, or none was known.
 */
uint64_t sb_procgen_next_change(struct sb_procgen *gen, uint64_t addr, uint64_t from_ns,
				uint64_t to_ns);
/* Return: whether @gen or an ancestor has any mapping. NULL has none. */
bool sb_procgen_has_mappings(const struct sb_procgen *gen);
/* Return: whether mappings of @gen or an ancestor were refused because of a bound, so that an
 * address that is not found may be mapped; false for NULL. */
bool sb_procgen_has_hole(const struct sb_procgen *gen);

/*
 * Free what no lookup at @time_ns or later needs; free_priv is called. The time must not go back:
 * later lookups at earlier times may find nothing.
 */
void sb_procmaps_forget(struct sb_procmaps *pm, uint64_t time_ns);

/*
 * Call @fn for every mapping of every generation, in no order, to find out which files are still in
 * use. @map is valid during the call only; @fn must not change @pm.
 */
void sb_procmaps_each(const struct sb_procmaps *pm,
		      void (*fn)(void *arg, const struct sb_mapping *map), void *arg);

#endif
