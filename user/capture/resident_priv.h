/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of resident.h: resident.c takes the faults, resident_look.c looks at the pages, and
 * resident_counts.c makes counts of both. Thread: the session's. A space is what is known of one
 * address space; its number, below, is its index in resident->spaces, and is that of one in use,
 * which is not checked. No pointer is NULL. */
#ifndef SB_CAPTURE_RESIDENT_PRIV_H
#define SB_CAPTURE_RESIDENT_PRIV_H

#include "base/index.h"
#include "capture/page_account.h"
#include "capture/resident.h"

/* Who brought pages: a sample key. */
struct owner {
	struct sb_sample_key key;
	uint64_t id;		       /* 0: free */
	uint32_t space;		       /* its number */
	bool is_new;		       /* no count had it so far */
	uint32_t nr_idle;	       /* looks at which it had nothing, one after the other */
	uint64_t nr_pages;	       /* in the table */
	uint64_t held, swapped, churn; /* pages: at the last look; came and went so far */
	uint64_t old;		       /* of `held`, those that came in the first half of the run */
	uint64_t ended, ended_said;    /* pages: held by spaces at their end; of which counts had */
	uint64_t said;		       /* pages that counts had so far, of what is asked for */
	uint64_t last_ns;	       /* of its last fault */
};

/* A quarter of SB_RESIDENT_SPACES_MAX, so chains are short. */
#define SPACE_CHAINS 8192u

/* Pages by their numbers. */
struct gone {
	uint64_t first, nr;
};

/* An address space. */
struct space {
	struct sb_sample_key key; /* of its first owner, without stacks */
	bool is_used, is_ended;
	bool is_replaced; /* is_ended: execve(2) replaced it, the process goes on */
	bool is_told;	  /* of its end, with the most that it had */
	bool is_expected; /* its key has no start and no exec_id yet */
	bool is_known;	  /* `before` was read, or could not be */
	bool is_read;	  /* `runs` is complete */
	bool is_left;	  /* sb_resident_leave() */
	uint32_t nr_owners;
	uint32_t next;	      /* in the chain of its tgid (sb_resident.of_tgid); 0: there is none */
	uint64_t start_ticks; /* 0: not known */
	uint64_t look_ns;     /* of the last look */
	uint64_t fault_ns;    /* of the last fault; 0: there was none */
	uint64_t rss_bytes;   /* at the last look */
	uint64_t said;	      /* unaccounted pages that counts had so far */
	uint64_t nr_steps;    /* as sb_resident.nr_steps, of this process */
	uint64_t nr_pages;    /* in the table */
	struct sb_pageset before; /* that were there at the first look */
	struct sb_sums sums;	  /* of the last look */
	SB_VEC(struct sb_page_run) runs;
	/* Given back since the look, which may have seen it or not. No more than the records of a
	 * drain, which are in memory already. */
	SB_VEC(struct gone) gone;
};

struct sb_resident {
	struct sb_resident_opts opts;
	uint32_t page_shift;
	uint64_t seed;
	uint32_t shift, shift_worst; /* one window in 2^this is followed: now, at the worst */
	struct sb_page_records late; /* that came after the time up to which all are known */
	struct sb_pagetab pages;
	SB_VEC(struct owner) owners;
	struct sb_index owners_by_id;
	uint32_t free_owner;		/* none before it is free */
	uint64_t nr_steps;		/* steps that mappings took since the last drain */
	SB_VEC(struct space) spaces;	/* [0] is none */
	uint32_t of_tgid[SPACE_CHAINS]; /* the first space of processes whose tgid has this rest */
	uint32_t free_space;		/* none before it is free, but [0] */
	uint32_t nr_dead;		/* spaces that have ended since the last burial */
	bool has_late;			/* since then, a page came to a space that had ended */
	bool is_looking;		/* counts are due */
	uint64_t looked_ns, last_looked_ns; /* the last look, and the one before */
	uint64_t begin_ns, time_ns;	    /* the unit of sb_page.time, which is since begin_ns */
	bool is_by_word;		    /* the kernel has no PAGEMAP_SCAN */
	size_t nr_runs;			    /* of all spaces, while looking */
	struct sb_page_run *buf;	    /* SB_READER_RUNS_MAX */
	SB_VEC(struct sb_batch_count) counts;
	struct sb_resident_stats stats;
};

/* resident.c: note that an address space has ended; a second call changes nothing. Its pages stay
 * until sb_resident_bury(). */
void sb_resident_end_space(struct sb_resident *resident, uint32_t number);
/* Remove the pages of address spaces that have ended, which counts as their going (owner.churn and
 * owner.ended), and free those spaces that no owner and no count refers to any more. */
void sb_resident_bury(struct sb_resident *resident);
/* Return: whether what address spaces hold at their end is counted. */
bool sb_resident_counts_ended(const struct sb_resident *resident);
/* resident_counts.c: return: whether a page came in the first half of a run that ends at @end_ns;
 * false if that is in doubt. */
bool sb_resident_is_old(const struct sb_resident *resident, const struct sb_page *page,
			uint64_t end_ns);
/* A page has been put into the table of pages: count it for its owner and its address space. */
void sb_resident_gain_page(struct sb_resident *resident, const struct sb_page *page);
/*
 * Count a page that is not resident any more as churn of its owner and of the run, and no longer as
 * held. @is_end: it went because its address space has ended. The run counts that, too, and so does
 * its owner, but with SB_MEMORY_OLD only if the page was old (sb_resident_is_old()). @page: one of
 * the table of pages, or a copy; the caller removes it from there.
 */
void sb_resident_lose_page(struct sb_resident *resident, const struct sb_page *page, bool is_end);
/* Return: whether the window (sb_abi_memory.h) of a page is followed when one in 2^@shift is;
 * always true for 0. @shift: resident->shift for the table of pages, shift_worst for counts;
 * @number: of the page, its address divided by the page size; @space: the number of its space. */
bool sb_resident_follows(const struct sb_resident *resident, uint32_t space, uint64_t number,
			 uint32_t shift);

/* resident_look.c: note in space->before which pages are there at the first look; once for each
 * space. The space counts as known afterwards, also after an error, and as ended if its process has
 * ended. Return: 0, also if they cannot be read; -ENOMEM: some of them are not known. */
int sb_resident_meet(struct sb_resident *resident, uint32_t space);

/* resident_look.c: forget what a look has seen of a space, and what the space gave back since. */
void sb_resident_drop_runs(struct sb_resident *resident, struct space *space);
/* resident_kinds.c: after a look, mark the pages of the space's runs that are of other kinds than
 * those asked for (SB_PAGE_ACCOUNT_PASS); runs are split for that. Return: 0; -E2BIG: there are too
 * many runs; -ENOMEM; or a negative errno of reading /proc/PID/maps. After an error the runs are as
 * they were. */
int sb_resident_mark_kinds(struct sb_resident *resident, uint32_t space);

/* The bound of sb_resident.nr_runs: 64 MiB. Processes beyond are left out. */
#define SB_RESIDENT_RUNS_MAX ((size_t)4 << 20)
/* resident_look.c: note which processes have ended, by /proc: those that are gone or zombies, or
 * whose number another process has. One of which /proc cannot be read counts as running. The spaces
 * of those that have ended are marked as by sb_resident_end_space(), and stay until
 * sb_resident_bury(). */
void sb_resident_find_ended(struct sb_resident *resident);

#endif
