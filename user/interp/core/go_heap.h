/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reader of the heap profile that a program of Go keeps of itself. Go's allocator samples one
 * allocation for each MemProfileRate bytes, on average, and counts it, and later its end, in the
 * bucket of its stack and size. The linker leaves that out of programs that cannot call
 * runtime.MemProfile; those that import net/http/pprof can.
 *
 * Order: sb_go_heap_find() for the places; sb_go_heap_look() as often as wanted, on the same
 * program; sb_go_heap_release().
 *
 * The memory is that of another process, which runs meanwhile and may be hostile: what is read is
 * bounded and checked. Counts are as of the last garbage collection whose sweep has ended, which is
 * what runtime/pprof writes as well. Thread: any, one at a time for each object. No pointer may be
 * NULL.
 *
 * Source: src/runtime/mprof.go of Go 1.9 to 1.27. Buckets have one of two layouts; which one a
 * program has is determined from the contents of its buckets, not from its version.
 */
#ifndef SB_INTERP_GO_HEAP_H
#define SB_INTERP_GO_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "interp/core/memory.h"

/* Bounds of one program: buckets, frames of one stack, and frames of all stacks (8 MiB). */
#define SB_GO_HEAP_BUCKETS_MAX (1u << 16)
#define SB_GO_HEAP_DEPTH_MAX   1024u
#define SB_GO_HEAP_FRAMES_MAX  (1u << 20)

/* Whether a process has a profile that can be read. */
enum sb_go_heap_state {
	SB_GO_HEAP_READ,
	SB_GO_HEAP_NOT_GO,
	SB_GO_HEAP_STRIPPED,   /* no symbols that say where the profile is */
	SB_GO_HEAP_NOT_LINKED, /* runtime.disableMemoryProfiling */
	SB_GO_HEAP_OFF,	       /* runtime.MemProfileRate is 0 */
	SB_GO_HEAP_UNREADABLE, /* the file or the memory cannot be read */
	SB_GO_HEAP_UNKNOWN,    /* the list is broken, or has another layout */
	SB_GO_HEAP_TOO_LARGE,  /* beyond a bound */
	SB_GO_HEAP_FEW_CYCLES, /* too few collections ended in the run; set by the caller */
	SB_GO_HEAP_ENDED,      /* the process has ended; set by the caller */
	SB_GO_HEAP_STATE_MAX,
};

/* Addresses of variables in a process. */
struct sb_go_heap_places {
	uint64_t buckets; /* runtime.mbuckets: the first bucket */
	uint64_t rate;	  /* runtime.MemProfileRate */
	uint64_t cycle;	  /* number of collections, with a flag in bit 0 if is_flagged */
	bool is_flagged;
};

/*
 * Find out by the symbols of its program where a process keeps its heap profile.
 * Return: SB_GO_HEAP_READ, and *ret_places is set; SB_GO_HEAP_OFF, and it is set, too, because the
 * rate of a program that has just begun is 0 until its runtime sets it; or why the profile cannot
 * be read, and *ret_places is untouched.
 */
enum sb_go_heap_state sb_go_heap_find(uint32_t tgid, struct sb_go_heap_places *ret_places);

/* What one stack allocated in objects of one size. */
struct sb_go_bucket {
	uint64_t addr, size;
	uint32_t first, nr; /* range in sb_go_heap.frames: return addresses, leaf first */
	uint32_t nr_looks;  /* the look that met it last */
};

/* Set `places` and `seed`, and zero the rest; the caller ends it with sb_go_heap_release(). */
struct sb_go_heap {
	struct sb_go_heap_places places;
	uint64_t seed; /* random, so that no program can choose addresses that collide in by_addr */
	SB_VEC(struct sb_go_bucket) buckets; /* they stay, with their numbers, until the release */
	SB_VEC(uint64_t) frames;
	struct sb_index by_addr; /* of buckets */
	uint32_t nr_looks;
	bool is_without_bytes; /* the layout of Go 1.27 and newer, as of the last look */
};
/* Free the memory; the heap is empty then. */
void sb_go_heap_release(struct sb_go_heap *heap);

/* Sampled allocations since the program began, by the profile: those in use, and those that were
 * freed, as of the last collection; and all, up to now. */
struct sb_go_use {
	uint64_t objects, freed, allocated;
};
struct sb_go_look {
	uint64_t rate;		      /* bytes for each sample, on average; 0: none is taken */
	uint64_t cycle;		      /* number of collections, modulo SB_GO_HEAP_CYCLES */
	SB_VEC(struct sb_go_use) use; /* by number of the bucket; later buckets had none */
};
#define SB_GO_HEAP_CYCLES (3u * (2u << 24))

/*
 * Read the profile: add new buckets to @heap, and overwrite @look with the use of all. @look:
 * zeroed, or of an earlier call, whose memory is reused; the caller releases look->use, also after
 * an error. Return: 0; -ELOOP: the list has a loop; -EBADMSG: a bucket is none; -E2BIG: beyond a
 * bound; -ENOMEM; -ESRCH, -EPERM or -EFAULT: memory cannot be read. After an error @look is not to
 * be read, but both can be used for another call.
 */
int sb_go_heap_look(struct sb_go_heap *heap, const struct sb_memory *memory,
		    struct sb_go_look *look);

/* Return: the bytes that @nr samples of objects of @size bytes stand for, as runtime/pprof computes
 * them. @rate: of the look; with 0 or 1 they are @nr * @size. */
double sb_go_heap_bytes(double nr, uint64_t size, uint64_t rate);

#endif
