/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The places at which programs allocate memory and give it back, as places of events (probe.h).
 * Best are the USDT probes of the provider "otel_memory", whose programs sample by themselves:
 * alloc(ptr, size, weighted_bytes) and free(ptr). Where no file has them, it is the functions of
 * the allocators, the rows of allocators.def. Each place gets the expressions that weigh it and
 * match its pairs.
 *
 * Thread: any, one at a time for each struct sb_probes. Pointers are not NULL unless a comment says
 * so.
 */
#ifndef SB_EVENTS_ALLOCATOR_H
#define SB_EVENTS_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "events/probe.h"

/* The weight of one object with `is_of_objects`: those of producers stand for more, and not whole
 * ones. */
#define SB_ALLOC_OBJECT	   1000u

/* Files that are looked at in one run. */
#define SB_ALLOC_FILES_MAX 4096u

/* Whose memory: of programs, or of the kernel, by its allocator. */
enum sb_alloc_layer {
	SB_ALLOC_USER,
	SB_ALLOC_KMALLOC,
	SB_ALLOC_SLAB, /* kmem_cache_alloc() */
	SB_ALLOC_PAGES,
	SB_ALLOC_LAYER_MAX,
};

struct sb_alloc_ask {
	enum sb_alloc_layer layer; /* one of the kernel's: files and processes are not looked at */
	const uint32_t *tgids;	   /* processes whose files are looked at */
	size_t nr_tgids;
	/* Files, by path or by name, such as "c"; those that do not exist are skipped. */
	const char *const *files;
	size_t nr_files;
	/* The same, of a program that will be started, which is the first one. */
	const char *const *of_command;
	size_t nr_of_command;
	bool is_held;	    /* pairs: what is allocated is followed until it is given back */
	bool is_of_objects; /* weights are objects, not bytes */
};

enum sb_alloc_source {
	SB_ALLOC_NOTHING,
	SB_ALLOC_PRODUCERS,
	SB_ALLOC_FUNCTIONS,
	SB_ALLOC_KERNEL,
};

/* A runtime with a heap of its own: the functions of allocators do not see its objects. */
struct sb_own_heap {
	const char *name, *function, *objects;
	const char *lump, *seen_by; /* see allocators.def; may be NULL */
	bool moves;		    /* its collector moves objects to other pages */
	bool profiles;		    /* programs can keep a profile of it */
	const char *ask;	    /* what tells more; NULL: that profile */
};

/* The last one has no name. There are at most 32, because sb_alloc_found has a bit for each. */
extern const struct sb_own_heap sb_own_heaps[];

struct sb_alloc_found {
	enum sb_alloc_source source;
	size_t nr_files;		/* that have places */
	char file[SB_EVENT_FILE_BYTES]; /* one of them, as we can open it */
	/* Bit i: sb_own_heaps[i] was found, and is not seen; or is seen by its lumps. 0 where the
	 * source is producers. */
	uint32_t own_heaps, lumps;
	char stripped_go[SB_EVENT_FILE_BYTES]; /* a Go program without symbols; "": there is none */
	size_t nr_files_skipped; /* not looked at: they were beyond SB_ALLOC_FILES_MAX */
};

/**
 * sb_alloc_find() - add the places at which memory is allocated, and given back
 * @probes: an empty list, in which tgid and is_of_tgid_only may be set; on error it may have a part
 *	of the places. In any case the caller ends it by sb_probes_release()
 * @ask: zeroed, but for what is asked; borrowed during the call
 * @ret: overwritten, also on error; owns no memory
 * @reason: why not, a sentence; zeroed before
 *
 * The expressions are compiled, too, so the view can attach next; sb_probes_compile() is not
 * called. Files that cannot be read are skipped, and so are processes, if there are several.
 *
 * Return: 0, also with SB_ALLOC_NOTHING; -ESRCH: the only process has ended; -EINVAL: too many
 * places; -ENOMEM; or another negative errno of reading /proc/PID/maps of the only process, or of
 * finding tracepoints, as of sb_probes_add(). All with @reason, but -ENOMEM may be without.
 */
int sb_alloc_find(struct sb_probes *probes, const struct sb_alloc_ask *ask,
		  struct sb_alloc_found *ret, struct sb_reason *reason);

#endif
