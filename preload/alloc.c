// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libstackbpf-alloc.so, to be preloaded into programs: it samples what they allocate, and fires the
 * USDT probes otel_memory:alloc and otel_memory:free for the samples, which any reader of that
 * contract (usdt.h) can listen to, such as `stackbpf alloc`. Nothing is written and no thread is
 * started.
 *
 * Each function that allocates stands in front of the one of the same name that comes next: that of
 * the C library, or of another allocator which was preloaded or linked. While nobody listens a call
 * costs one look at a counter. While somebody does, a counter of each thread runs down by the bytes
 * of each allocation, and where it passes 0, that allocation is the sample (weight.h). Its pointer
 * is kept until it is freed (followed.h), because free() is to be told of sampled ones only.
 *
 * Nothing here may allocate, nor wait. The next functions are looked up at the first call, which
 * may come before any constructor has run; dlsym(3) itself may allocate then, and is given memory
 * of a small static arena. A child made by fork(2) has all that its parent had, and its own random
 * numbers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "preload/followed.h"
#include "preload/weight.h"

/* A test puts its own in their place. */
#ifndef SB_USDT_ALLOC
#include "preload/usdt.h"
#define SB_USDT_ALLOC sb_usdt_alloc
#define SB_USDT_FREE  sb_usdt_free
#endif

#define MEAN_VARIABLE "STACKBPF_ALLOC_BYTES"
#define MEAN_BYTES    (512ull << 10)
#define MEAN_MAX      (1ull << 40)
#define ARENA_BYTES   16384u

/* Beside the weight of a sample: its pointer is not in the set. */
#define UNFOLLOWED    (1ull << 63)

#define PUBLIC	      __attribute__((visibility("default")))
#define LIKELY(x)     __builtin_expect(!!(x), 1)

PUBLIC __attribute__((section(".probes"))) volatile uint16_t otel_memory_alloc_semaphore;
PUBLIC __attribute__((section(".probes"))) volatile uint16_t otel_memory_free_semaphore;

/* Samples whose free() cannot be told, because the set was full. They were told to be freed at
 * once. */
PUBLIC uint64_t stackbpf_alloc_unfollowed;

static uint64_t mean_bytes = MEAN_BYTES;
static unsigned int nr_forks = 1; /* 1 + how many there were on the way to this process */
static struct sb_followed followed;

/* Of a thread. */
static __thread struct {
	int64_t left;	       /* bytes up to the next sample; 0 or less: it is due */
	uint64_t random;       /* state; 0: it has none yet */
	unsigned int nr_forks; /* nr_forks when it got it */
	bool is_looking_up;    /* inside of look_up() */
} mine;

static _Alignas(64) char arena[ARENA_BYTES];
static size_t arena_used;

static void *first_malloc(size_t size);
static void *first_calloc(size_t nr, size_t size);
static void *first_realloc(void *old, size_t size);
static void *first_memalign(size_t alignment, size_t size);
static void *first_aligned_alloc(size_t alignment, size_t size);
static int first_posix_memalign(void **ret, size_t alignment, size_t size);
static void first_free(void *pointer);

/* The next functions of these names, once they have been looked up. */
static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t nr, size_t size);
	void *(*realloc)(void *old, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	int (*posix_memalign)(void **ret, size_t alignment, size_t size);
	void (*free)(void *pointer);
} next = { first_malloc,	first_calloc,	      first_realloc, first_memalign,
	   first_aligned_alloc, first_posix_memalign, first_free };

static bool is_of_arena(const void *pointer)
{
	return (uintptr_t)pointer - (uintptr_t)arena < ARENA_BYTES;
}

/*
 * Nothing is known of how long memory of the arena is. Return: how long it can be at most. What
 * was not taken from the arena is not asked about: while dlsym() runs there is nothing else.
 */
static size_t rest_of_arena(const void *old)
{
	return (size_t)(arena + ARENA_BYTES - (const char *)old);
}

/* Never given back. Zeroed. Return: NULL with errno: there is none left. */
static void *of_arena(size_t size)
{
	size_t at;

	if (size > ARENA_BYTES) {
		errno = ENOMEM;
		return NULL;
	}
	at = __atomic_fetch_add(&arena_used, (size + 63) & ~(size_t)63, __ATOMIC_RELAXED);
	if (at <= ARENA_BYTES - size)
		return arena + at;
	errno = ENOMEM;
	return NULL;
}

/* A function that is missing stays the first one, so none is ever NULL. */
#define LOOK_UP(name)                                                                   \
	do {                                                                            \
		void *found = dlsym(RTLD_NEXT, #name);                                  \
                                                                                        \
		if (found)                                                              \
			__atomic_store_n((void **)&next.name, found, __ATOMIC_RELAXED); \
	} while (0)

/* Several threads may do it at once: all find the same. Return: false: dlsym() itself calls, and is
 * to be served by the arena. */
static bool look_up(void)
{
	if (mine.is_looking_up)
		return false;
	mine.is_looking_up = true;
	LOOK_UP(free);
	LOOK_UP(calloc);
	LOOK_UP(realloc);
	LOOK_UP(memalign);
	LOOK_UP(aligned_alloc);
	LOOK_UP(posix_memalign);
	LOOK_UP(malloc);
	mine.is_looking_up = false;
	return true;
}

static void *first_malloc(size_t size)
{
	return look_up() && next.malloc != first_malloc ? next.malloc(size) : of_arena(size);
}

static void *first_calloc(size_t nr, size_t size)
{
	if (look_up() && next.calloc != first_calloc)
		return next.calloc(nr, size);
	/* Also where the product has no number. */
	return of_arena(size && nr > ARENA_BYTES / size ? SIZE_MAX : nr * size);
}

static void *first_realloc(void *old, size_t size)
{
	void *pointer;

	if (look_up() && next.realloc != first_realloc)
		return next.realloc(old, size);
	pointer = of_arena(size);
	if (pointer && old)
		memmove(pointer, old, size < rest_of_arena(old) ? size : rest_of_arena(old));
	return pointer;
}

static void *first_memalign(size_t alignment, size_t size)
{
	if (look_up() && next.memalign != first_memalign)
		return next.memalign(alignment, size);
	errno = ENOMEM;
	return NULL;
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
	if (look_up() && next.aligned_alloc != first_aligned_alloc)
		return next.aligned_alloc(alignment, size);
	errno = ENOMEM;
	return NULL;
}

static int first_posix_memalign(void **ret, size_t alignment, size_t size)
{
	if (look_up() && next.posix_memalign != first_posix_memalign)
		return next.posix_memalign(ret, alignment, size);
	return ENOMEM;
}

static void first_free(void *pointer)
{
	if (look_up() && next.free != first_free)
		next.free(pointer);
}

/* Give the thread random numbers of its own, in this process, from here on. */
static void seed(void)
{
	uint64_t random = 0;

	/* At an early start of the machine there are none yet, and nobody waits for them. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint64_t)(uintptr_t)&mine ^ (uint64_t)getpid() << 48;
	mine.random = random | 1;
	mine.nr_forks = nr_forks;
	mine.left = sb_weight_distance(sb_weight_random(&mine.random), mean_bytes);
}

/* The thread has come to the next sample with @size bytes, or knows of none yet. Return: what the
 * allocation weighs, with UNFOLLOWED if that is so; 0: it is no sample. */
static __attribute__((noinline, cold)) uint64_t weigh(void *pointer, size_t size)
{
	int saved = errno;
	bool is_new = mine.nr_forks != nr_forks;

	if (is_new) {
		seed();
		mine.left -= (int64_t)size;
	}
	errno = saved;
	if (is_new && mine.left > 0)
		return 0;
	mine.left = sb_weight_distance(sb_weight_random(&mine.random), mean_bytes);
	if (!sb_followed_add(&followed, pointer)) {
		__atomic_fetch_add(&stackbpf_alloc_unfollowed, 1, __ATOMIC_RELAXED);
		return sb_weight_of(size, mean_bytes) | UNFOLLOWED;
	}
	return sb_weight_of(size, mean_bytes);
}

/* Account for what was just allocated. */
static inline __attribute__((always_inline)) void *took(void *pointer, size_t size)
{
	uint64_t weight;

	if (!pointer)
		return NULL;
	size += !size;
	mine.left -= (int64_t)size;
	if (LIKELY(mine.left > 0))
		return pointer;
	weight = weigh(pointer, size);
	if (weight) {
		SB_USDT_ALLOC(pointer, size, weight & ~UNFOLLOWED);
		if (weight & UNFOLLOWED)
			SB_USDT_FREE(pointer);
	}
	return pointer;
}

static bool is_heard(void)
{
	return !LIKELY(!otel_memory_alloc_semaphore);
}

/* Before it is given back, where that cannot fail: another thread may get it at once. */
static inline __attribute__((always_inline)) void gave(void *pointer)
{
	if (!LIKELY(sb_followed_lacks(&followed, pointer)) &&
	    sb_followed_remove(&followed, pointer))
		SB_USDT_FREE(pointer);
}

PUBLIC void *malloc(size_t size)
{
	return is_heard() ? took(next.malloc(size), size) : next.malloc(size);
}

PUBLIC void *calloc(size_t nr, size_t size)
{
	/* There is no overflow if it was given. */
	return is_heard() ? took(next.calloc(nr, size), nr * size) : next.calloc(nr, size);
}

/* Memory of the arena is copied as if it were as long as it can be. */
static __attribute__((noinline, cold)) void *leave_arena(const void *old, size_t size)
{
	size_t there = rest_of_arena(old);
	void *pointer = next.malloc(size);

	if (pointer)
		memcpy(pointer, old, size < there ? size : there);
	return pointer;
}

/*
 * Only what was given back is told, so it is told late: another thread may have the old memory by
 * then. If that was a sample, too, which is one allocation of many, it is taken for the one that
 * was given back.
 */
PUBLIC void *realloc(void *old, size_t size)
{
	const uintptr_t was = (uintptr_t)old;
	void *pointer;

	if (!LIKELY(!is_of_arena(old)))
		return leave_arena(old, size);
	pointer = next.realloc(old, size);
	if (was && (LIKELY(pointer) || !size))
		gave((void *)was);
	return is_heard() ? took(pointer, size) : pointer;
}

PUBLIC void *reallocarray(void *old, size_t nr, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(nr, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, bytes);
}

PUBLIC void *memalign(size_t alignment, size_t size)
{
	return is_heard() ? took(next.memalign(alignment, size), size)
			  : next.memalign(alignment, size);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
	return is_heard() ? took(next.aligned_alloc(alignment, size), size)
			  : next.aligned_alloc(alignment, size);
}

PUBLIC void *valloc(size_t size)
{
	return memalign((size_t)getpagesize(), size);
}

PUBLIC void *pvalloc(size_t size)
{
	size_t page = (size_t)getpagesize();

	if (size > SIZE_MAX - page) {
		errno = ENOMEM;
		return NULL;
	}
	return memalign(page, (size + page - 1) & ~(page - 1));
}

PUBLIC int posix_memalign(void **ret, size_t alignment, size_t size)
{
	int err = next.posix_memalign(ret, alignment, size);

	if (!err && is_heard())
		took(*ret, size);
	return err;
}

PUBLIC void free(void *pointer)
{
	/* Empty places of the set look like it. */
	if (!pointer)
		return;
	gave(pointer);
	if (LIKELY(!is_of_arena(pointer)))
		next.free(pointer);
}

static void in_child(void)
{
	nr_forks++;
}

static void complain(void)
{
	static const char message[] = "libstackbpf-alloc: " MEAN_VARIABLE
				      " is no number of bytes from 1 to 2^40; using 524288\n";

	(void)!write(STDERR_FILENO, message, sizeof(message) - 1);
}

/* Return: the mean distance of samples that the environment asks for. */
static uint64_t read_mean(const char *text)
{
	uint64_t mean = 0;

	for (; *text >= '0' && *text <= '9' && mean <= MEAN_MAX; text++)
		mean = mean * 10 + (uint64_t)(*text - '0');
	if (!*text && mean && mean <= MEAN_MAX)
		return mean;
	complain();
	return MEAN_BYTES;
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv(MEAN_VARIABLE);

	if (text)
		mean_bytes = read_mean(text);
	(void)look_up();
	(void)pthread_atfork(NULL, NULL, in_child);
}
