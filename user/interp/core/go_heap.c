// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A bucket is {next, allnext, typ, hash, size, nstk}, then nstk return addresses, then four sets of
 * {allocs, frees, alloc_bytes, free_bytes}; since Go 1.27, of {allocs, frees}. The first set is
 * what runtime/pprof writes: sums as of the end of a mark phase, with the frees of the sweep that
 * followed. The others are of collections that go on. That this is so is proved by each bucket: its
 * hash is one of its stack and size. Whether sets have bytes is told by most of the buckets: bytes
 * are objects times the size. Without bytes, the next set stands in their place, where this does
 * not hold unless all are 0; and a bucket is made when it gets its first object.
 *
 * The list is linked by `allnext`, newest first. A bucket stays where it is for as long as the
 * program runs, and none of its words changes but the sums.
 */
#include "interp/core/go_heap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/image_priv.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/gopcln.h"
#include "symbolizer/process/procfs.h"

/* Files of a process that are looked at. That of the program itself is among the first. */
#define FILES_MAX 32u

struct bucket {
	uint64_t next, allnext, typ, hash, size, nstk;
};

struct sums {
	uint64_t allocs, frees, alloc_bytes, free_bytes;
};
/* Since Go 1.27. */
struct objects {
	uint64_t allocs, frees;
};

#define TYPE_MEMORY 1u
#define NR_SETS	    4u

union sets {
	struct sums sums[NR_SETS];
	struct objects objects[NR_SETS];
};

struct search {
	uint32_t tgid, nr_files;
	uint64_t last_ino;
	enum sb_go_heap_state state;
	struct sb_go_heap_places places;
};

SB_DEFINE_CLEANUP(struct sb_image_file, sb_image_file_free)

static bool is_symbol(struct sb_image *image, const char *name, uint64_t *ret_addr)
{
	return !sb_image_symbol(image, name, ret_addr, NULL);
}

static enum sb_go_heap_state look_at_program(struct sb_image *image, uint32_t tgid,
					     struct sb_go_heap_places *ret_places)
{
	const struct sb_memory memory = { .tgid = tgid };
	struct sb_go_heap_places places = {};
	uint64_t disabled, rate;
	uint8_t is_disabled = 0;

	if (!sb_image_elf(image)->is_64)
		return SB_GO_HEAP_UNKNOWN;
	places.is_flagged = is_symbol(image, "runtime.mProfCycle", &places.cycle);
	if (!is_symbol(image, "runtime.mbuckets", &places.buckets) ||
	    !is_symbol(image, "runtime.MemProfileRate", &places.rate) ||
	    /* Before Go 1.19. */
	    (!places.is_flagged && !is_symbol(image, "runtime.mProf", &places.cycle)))
		return SB_GO_HEAP_STRIPPED;
	/* Since Go 1.17. */
	if (is_symbol(image, "runtime.disableMemoryProfiling", &disabled) &&
	    sb_memory_u8(&memory, disabled, &is_disabled))
		return SB_GO_HEAP_UNREADABLE;
	if (is_disabled)
		return SB_GO_HEAP_NOT_LINKED;
	if (sb_memory_u64(&memory, places.rate, &rate))
		return SB_GO_HEAP_UNREADABLE;
	*ret_places = places;
	return rate ? SB_GO_HEAP_READ : SB_GO_HEAP_OFF;
}

/* Look at a file until one is a program of Go. Return: 0; -ECANCELED, when that is so. */
static int look_at_file(void *arg, const struct sb_maps_line *line)
{
	sb_cleanup(sb_image_file_freep) struct sb_image_file *file = NULL;
	sb_cleanup(sb_closep) int fd = -1;
	struct search *search = arg;
	struct sb_image image;
	uint64_t addr;

	if (!line->is_exec || sb_map_kind(line->path, line->path_len) != SB_MAP_FILE ||
	    line->ino == search->last_ino)
		return 0;
	search->last_ino = line->ino;
	if (search->nr_files++ == FILES_MAX)
		return -ECANCELED;
	fd = sb_procfs_open_line(search->tgid, line);
	if (fd < 0 || sb_image_file_new(fd, "", &file) || !sb_gopcln_is_there(file->elf) ||
	    !sb_elf_offset_to_addr(file->elf, line->pgoff, &addr))
		return 0;
	image = (struct sb_image){ .file = file, .bias = line->start - addr };
	search->state = look_at_program(&image, search->tgid, &search->places);
	return -ECANCELED;
}

enum sb_go_heap_state sb_go_heap_find(uint32_t tgid, struct sb_go_heap_places *ret_places)
{
	struct search search = { .tgid = tgid, .state = SB_GO_HEAP_NOT_GO };

	/* What cannot be read is not known to be Go. */
	(void)sb_procfs_code(tgid, look_at_file, &search);
	if (search.state == SB_GO_HEAP_READ || search.state == SB_GO_HEAP_OFF)
		*ret_places = search.places;
	return search.state;
}

void sb_go_heap_release(struct sb_go_heap *heap)
{
	sb_vec_release(&heap->buckets);
	sb_vec_release(&heap->frames);
	sb_index_release(&heap->by_addr);
}

/* stkbucket() of mprof.go. */
static uint64_t hash_of(const uint64_t *frames, size_t nr, uint64_t size)
{
	uint64_t hash = 0;
	size_t i;

	for (i = 0; i <= nr; i++) {
		hash += i < nr ? frames[i] : size;
		hash += hash << 10;
		hash ^= hash >> 6;
	}
	hash += hash << 3;
	return hash ^ hash >> 11;
}

static uint64_t hash_addr(const struct sb_go_heap *heap, uint64_t addr)
{
	return sb_hash(&addr, sizeof(addr), heap->seed);
}

/* Add a bucket that was not seen before. Return: 0 or a negative errno, when nothing was added. */
static int add_bucket(struct sb_go_heap *heap, const struct sb_memory *memory, uint64_t addr,
		      const struct bucket *at)
{
	struct sb_go_bucket bucket = {
		.addr = addr,
		.size = at->size,
		.first = (uint32_t)heap->frames.nr,
		.nr = (uint32_t)at->nstk,
	};
	uint64_t *frames;
	int err;

	if (heap->buckets.nr == SB_GO_HEAP_BUCKETS_MAX ||
	    heap->frames.nr + at->nstk > SB_GO_HEAP_FRAMES_MAX)
		return -E2BIG;
	err = sb_vec_reserve(&heap->frames, heap->frames.nr + at->nstk);
	if (err)
		return err;
	frames = heap->frames.at + bucket.first;
	err = at->nstk ? sb_memory_read(memory, frames, at->nstk * sizeof(*frames),
					addr + sizeof(*at))
		       : 0;
	if (!err && hash_of(frames, at->nstk, at->size) != at->hash)
		err = -EBADMSG;
	if (!err)
		err = sb_vec_push(&heap->buckets, bucket);
	if (err)
		return err;
	err = sb_index_add(&heap->by_addr, hash_addr(heap, addr), (uint32_t)heap->buckets.nr - 1);
	if (err) {
		heap->buckets.nr--;
		return err;
	}
	heap->frames.nr += at->nstk;
	return 0;
}

/* Return: the number of the bucket, or SB_INDEX_NONE. */
static uint32_t find_bucket(const struct sb_go_heap *heap, uint64_t addr)
{
	sb_index_each(it, &heap->by_addr, hash_addr(heap, addr))
		if (heap->buckets.at[it.id].addr == addr)
			return it.id;
	return SB_INDEX_NONE;
}

/* Find or add the bucket at @addr, in the look that goes on. Return: 0 or a negative errno. */
static int meet(struct sb_go_heap *heap, const struct sb_memory *memory, uint64_t addr,
		uint64_t *ret_next, uint32_t *ret_number)
{
	uint32_t number = find_bucket(heap, addr);
	struct sb_go_bucket *known;
	struct bucket at;
	int err = addr % sizeof(addr) ? -EBADMSG : sb_memory_read(memory, &at, sizeof(at), addr);

	if (err)
		return err;
	if (at.typ != TYPE_MEMORY || at.nstk > SB_GO_HEAP_DEPTH_MAX)
		return -EBADMSG;
	if (number == SB_INDEX_NONE) {
		err = add_bucket(heap, memory, addr, &at);
		number = (uint32_t)heap->buckets.nr - 1;
	}
	if (err)
		return err;
	known = &heap->buckets.at[number];
	if (known->nr_looks == heap->nr_looks)
		return -ELOOP;
	if (known->nr != at.nstk || known->size != at.size)
		return -EBADMSG;
	known->nr_looks = heap->nr_looks;
	*ret_next = at.allnext;
	*ret_number = number;
	return 0;
}

/* More than a program can have allocated, or samples for so many bytes, are no numbers of Go. */
#define BYTES_MAX (1ull << 50)
#define RATE_MAX  (1ull << 40)
/* Of one look. Go allocates buckets side by side, so that a page has many. */
#define READS_MAX 32768u

/* Buckets that were read. */
struct tally {
	uint32_t nr, nr_with_bytes; /* those that tell which layout it is; that have bytes */
	uint32_t nr_odd; /* another thread is changing it, or the layout is another one */
};

/* Return: whether the words that all layouts have can be sets with bytes. */
static bool has_bytes(const union sets *sets, uint64_t size)
{
	size_t i;

	for (i = 0; i < sizeof(sets->objects) / (sizeof(*sets->sums)); i++)
		if (sets->sums[i].alloc_bytes != sets->sums[i].allocs * size ||
		    sets->sums[i].free_bytes != sets->sums[i].frees * size)
			return false;
	return true;
}

/* Read the sets of a bucket into @sets->objects. Return: 0; -EBADMSG: they cannot be what they were
 * read as; others of sb_memory_read(). */
static int read_sets(const struct sb_go_heap *heap, const struct sb_memory *memory,
		     const struct sb_go_bucket *bucket, union sets *sets, struct tally *tally)
{
	const uint64_t addr = bucket->addr + sizeof(struct bucket) + bucket->nr * sizeof(uint64_t);
	const size_t len = sizeof(sets->objects);
	int err = sb_memory_read(memory, sets, len, addr);
	bool is_with;
	size_t i;

	if (err)
		return err;
	is_with = has_bytes(sets, bucket->size);
	/* Objects of one byte have as many bytes. */
	tally->nr += bucket->size > 1;
	tally->nr_with_bytes += bucket->size > 1 && is_with;
	if (heap->is_without_bytes)
		return 0;
	/* Behind the last bucket without bytes there may be no memory. */
	if (!is_with)
		return -EBADMSG;
	err = sb_memory_read(memory, (uint8_t *)sets + len, sizeof(*sets) - len, addr + len);
	for (i = 0; i < NR_SETS && !err; i++)
		sets->objects[i] = (struct objects){ sets->sums[i].allocs, sets->sums[i].frees };
	return err;
}

/* Read how many objects a bucket has. Odd ones are counted in @tally, and taken to have none. */
static int read_use(const struct sb_go_heap *heap, const struct sb_memory *memory,
		    const struct sb_go_bucket *bucket, struct sb_go_use *ret_use,
		    struct tally *tally)
{
	union sets sets;
	struct objects *now = sets.objects;
	uint64_t nr_max = BYTES_MAX / (bucket->size ? bucket->size : 1);
	int err = read_sets(heap, memory, bucket, &sets, tally);
	bool is_odd = err == -EBADMSG;
	size_t i;

	if (err && !is_odd)
		return err;
	*ret_use = (struct sb_go_use){};
	for (i = 0; i < NR_SETS && !is_odd; i++)
		is_odd = now[i].allocs > nr_max;
	if (is_odd || now->frees > now->allocs) {
		tally->nr_odd++;
		return 0;
	}
	ret_use->objects = now->allocs - now->frees;
	ret_use->freed = now->frees;
	for (i = 0; i < NR_SETS; i++)
		ret_use->allocated += now[i].allocs;
	return 0;
}

static int read_list(struct sb_go_heap *heap, const struct sb_memory *memory, uint64_t addr,
		     struct sb_go_look *look, struct tally *tally)
{
	uint32_t number;
	int err;

	heap->nr_looks++;
	look->use.nr = 0;
	*tally = (struct tally){};
	err = sb_vec_fit(&look->use, heap->buckets.nr, 0);
	while (addr && !err) {
		err = meet(heap, memory, addr, &addr, &number);
		if (!err)
			err = sb_vec_fit(&look->use, (size_t)number + 1, 0);
		if (!err)
			err = read_use(heap, memory, &heap->buckets.at[number],
				       &look->use.at[number], tally);
	}
	return err;
}

/* Read the list, and again if it proves to have the other layout. */
static int read_buckets(struct sb_go_heap *heap, const struct sb_memory *memory, uint64_t addr,
			struct sb_go_look *look)
{
	struct tally tally;
	int err = read_list(heap, memory, addr, look, &tally);
	const bool is_without = 2 * tally.nr_with_bytes < tally.nr;

	if (!err && tally.nr && is_without != heap->is_without_bytes) {
		heap->is_without_bytes = is_without;
		err = read_list(heap, memory, addr, look, &tally);
		/* A few that were read in the midst of a change prove nothing. */
		if (!err && (2 * tally.nr_with_bytes < tally.nr) != is_without)
			err = -EBADMSG;
	}
	return !err && tally.nr_odd > 1 + look->use.nr / 8 ? -EBADMSG : err;
}

int sb_go_heap_look(struct sb_go_heap *heap, const struct sb_memory *memory,
		    struct sb_go_look *look)
{
	sb_cleanup(sb_freep) struct sb_memory_recent *recent = calloc(1, sizeof(*recent));
	struct sb_memory by_page = *memory;
	uint64_t nr_left = READS_MAX;
	uint32_t cycle;
	uint64_t head;
	int err;

	if (!recent)
		return -ENOMEM;
	by_page.recent = recent;
	by_page.nr_left = &nr_left;
	err = sb_memory_u64(memory, heap->places.rate, &look->rate);
	err = err ?: sb_memory_u32(memory, heap->places.cycle, &cycle);
	err = err ?: sb_memory_u64(memory, heap->places.buckets, &head);
	if (!err && look->rate > RATE_MAX)
		err = -EBADMSG;
	if (err)
		return err;
	look->cycle = cycle >> heap->places.is_flagged;
	err = read_buckets(heap, &by_page, head, look);
	return err == -EFAULT && !nr_left ? -E2BIG : err;
}

double sb_go_heap_bytes(double nr, uint64_t size, uint64_t rate)
{
	const double bytes = nr * (double)size;

	return rate > 1 && size ? bytes / -expm1(-(double)size / (double)rate) : bytes;
}
