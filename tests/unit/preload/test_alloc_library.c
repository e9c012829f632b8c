// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The library to preload, compiled under other names, with a listener that writes down what it is
 * told. The truth is libm, and what the test itself has allocated.
 */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define MANY 300000u

struct told {
	const void *pointer;
	uint64_t size, weight; /* 0: it was freed */
};

static struct told told[2 * MANY];
static size_t nr_told;

static void hear(const void *pointer, uint64_t size, uint64_t weight)
{
	size_t at = __atomic_fetch_add(&nr_told, 1, __ATOMIC_RELAXED);

	if (at < 2 * MANY)
		told[at] = (struct told){ pointer, size, weight };
}

#define SB_USDT_ALLOC(pointer, size, weight) hear(pointer, size, weight)
#define SB_USDT_FREE(pointer)		     hear(pointer, 0, 0)

#define malloc				     my_malloc
#define calloc				     my_calloc
#define realloc				     my_realloc
#define reallocarray			     my_reallocarray
#define memalign			     my_memalign
#define aligned_alloc			     my_aligned_alloc
#define posix_memalign			     my_posix_memalign
#define valloc				     my_valloc
#define pvalloc				     my_pvalloc
#define free				     my_free

void *malloc(size_t size);
void *calloc(size_t nr, size_t size);
void *realloc(void *old, size_t size);
void *reallocarray(void *old, size_t nr, size_t size);
void *memalign(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **ret, size_t alignment, size_t size);
void *valloc(size_t size);
void *pvalloc(size_t size);
void free(void *pointer);
extern volatile uint16_t otel_memory_alloc_semaphore, otel_memory_free_semaphore;
extern uint64_t stackbpf_alloc_unfollowed;

/* Runs once, between a load of the library's and what it does with the value. */
static void (*meanwhile)(void);

static void run_meanwhile(void)
{
	void (*fn)(void) = meanwhile;

	if (!fn)
		return;
	meanwhile = NULL;
	fn();
}

#define __atomic_load_n(at, order)                               \
	({                                                       \
		__auto_type loaded = __atomic_load_n(at, order); \
                                                                 \
		run_meanwhile();                                 \
		loaded;                                          \
	})

#include "preload/alloc.c"

static void *kept[MANY];

static int forget(void **state)
{
	nr_told = 0;
	mean_bytes = MEAN_BYTES;
	otel_memory_alloc_semaphore = 1;
	stackbpf_alloc_unfollowed = 0;
	mine.left = 0;
	/* So that each run of the test draws the same. */
	mine.random = 0x5bd1e995;
	mine.nr_forks = nr_forks;
	mine.left = sb_weight_distance(sb_weight_random(&mine.random), mean_bytes);
	return 0;
}

static int check_empty(void **state)
{
	unsigned int i;

	otel_memory_alloc_semaphore = 0;
	assert_int_equal(followed.nr, 0);
	for (i = 0; i < SB_FOLLOWED_CLASSES; i++)
		assert_int_equal(followed.nr_of_class[i], 0);
	return 0;
}

static void sample_at(uint64_t mean)
{
	mean_bytes = mean;
	mine.left = sb_weight_distance(sb_weight_random(&mine.random), mean_bytes);
}

static void assert_near(double got, double want, double parts)
{
	if (fabs(got - want) > parts * fabs(want))
		fail_msg("%.17g is not %.17g", got, want);
}

static void test_arithmetic(void **state)
{
	uint64_t random = 1;
	double x, sum = 0;
	int i;

	for (x = 1e-16; x <= 1; x *= 1.37)
		assert_true(fabs(sb_weight_ln(x) - log(x)) < 1e-11 * (1 + fabs(log(x))));
	for (x = 1e-9; x < 1e4; x *= 1.37)
		assert_near(sb_weight_chance(x), -expm1(-x), 1e-11);
	assert_int_equal(sb_weight_of(524288, 524288), 829411); /* S / (1 - 1/e) */
	assert_int_equal(sb_weight_of(100 << 20, 524288), 100 << 20);
	for (i = 0; i < 200000; i++) {
		x = (double)sb_weight_distance(sb_weight_random(&random), 1000);
		assert_true(x >= 1);
		sum += x;
	}
	/* The mean of a geometric distribution with p = 1 - exp(-1/R). */
	assert_near(sum / i, 1 / -expm1(-1e-3), 5 / sqrt(i));
}

/* What was allocated, and how far an estimate of it may be off. */
struct truth {
	double bytes, bytes_variance, objects, objects_variance;
};

/* A sample of the probability p stands for 1/p: the variance of each allocation's share is (1 -
 * p)/p. */
static void add_truth(struct truth *truth, size_t size)
{
	double chance = -expm1(-(double)size / (double)mean_bytes), doubt = (1 - chance) / chance;

	truth->bytes += (double)size;
	truth->bytes_variance += (double)size * (double)size * doubt;
	truth->objects++;
	truth->objects_variance += doubt;
}

static void assert_estimates(const struct truth *truth, const struct told *at, size_t nr)
{
	double bytes = 0, objects = 0;
	size_t i;

	for (i = 0; i < nr; i++) {
		bytes += (double)at[i].weight;
		objects += at[i].size ? (double)at[i].weight / (double)at[i].size : 0;
	}
	if (fabs(bytes - truth->bytes) > 4 * sqrt(truth->bytes_variance) ||
	    fabs(objects - truth->objects) > 4 * sqrt(truth->objects_variance))
		fail_msg("%.0f bytes in %.1f objects are told of %.0f in %.0f", bytes, objects,
			 truth->bytes, truth->objects);
}

/* Take what was told of pointers that were freed later out of the list. */
static size_t remove_freed(void)
{
	size_t i, k, nr = 0;

	for (i = 0; i < nr_told; i++) {
		if (told[i].weight) {
			told[nr++] = told[i];
			continue;
		}
		for (k = nr; k-- > 0 && told[k].pointer != told[i].pointer;)
			;
		if (k == SIZE_MAX)
			fail_msg("%p was freed and never allocated", told[i].pointer);
		told[k] = told[--nr];
	}
	return nr;
}

static size_t size_of(unsigned int i)
{
	static const size_t sizes[] = { 16, 24, 48, 100, 1000, 5000, 70000, 3000000 };

	return sizes[i % 1000 == 999 ? 7 : i % 100 == 99 ? 6 : i % 6];
}

/* Churn of each size, all that is allocated, and what is kept of it. */
static void test_unbiased(void **state)
{
	struct truth all = {}, held = {};
	unsigned int i;

	sample_at(20000);
	for (i = 0; i < MANY; i++) {
		bool is_kept = i % 7 == 0 && size_of(i) < 70000;

		kept[i] = malloc(size_of(i));
		add_truth(&all, size_of(i));
		if (is_kept)
			add_truth(&held, size_of(i));
		else
			free(kept[i]);
		if (!is_kept)
			kept[i] = NULL;
	}
	assert_true(nr_told > 10000 && nr_told < 2 * MANY);
	assert_int_equal(stackbpf_alloc_unfollowed, 0);
	assert_estimates(&all, told, nr_told);
	assert_estimates(&held, told, remove_freed());
	for (i = 0; i < MANY; i++)
		free(kept[i]);
}

/* With a mean of one byte each allocation is a sample, which weighs what it is. */
static void test_functions(void **state)
{
	void *pointer = NULL;
	size_t i;

	sample_at(1);
	free(malloc(100));
	free(calloc(7, 30));
	pointer = realloc(realloc(NULL, 50), 5000);
	pointer = reallocarray(pointer, 20, 30);
	free(pointer);
	errno = 0;
	assert_null(reallocarray(NULL, SIZE_MAX / 2, 3));
	assert_int_equal(errno, ENOMEM);
	free(memalign(256, 70));
	free(aligned_alloc(256, 512));
	errno = 0;
	assert_null(pvalloc(SIZE_MAX - 100));
	assert_int_equal(errno, ENOMEM);
	free(valloc(80));
	free(pvalloc(90));
	assert_int_equal(posix_memalign(&pointer, 256, 110), 0);
	free(pointer);
	free(malloc(0));
	free(NULL);
	static const uint64_t sizes[] = { 100, 0,   210, 0,  50, 0,    5000, 0,	  600, 0, 70,
					  0,   512, 0,	 80, 0,	 4096, 0,    110, 0,   1, 0 };
	assert_int_equal(nr_told, sizeof(sizes) / sizeof(sizes[0]));
	for (i = 0; i < nr_told; i++) {
		assert_int_equal(told[i].size, sizes[i]);
		assert_near((double)told[i].weight, (double)sizes[i], sizes[i] == 1 ? 1 : 0);
		if (i % 2)
			assert_ptr_equal(told[i].pointer, told[i - 1].pointer);
	}
}

static void test_failed(void **state)
{
#ifdef SB_SANITIZED
	skip(); /* the sanitizer's malloc() ends the program instead */
#endif
	sample_at(1);
	assert_null(malloc(PTRDIFF_MAX));
	assert_null(calloc(SIZE_MAX / 2, 3));
	assert_int_equal(nr_told, 0);
}

/* Memory that realloc() could not move is still held, and was allocated once. */
static void test_not_moved(void **state)
{
	void *pointer;

#ifdef SB_SANITIZED
	skip(); /* as test_failed() */
#endif
	sample_at(1);
	pointer = malloc(100);
	errno = 0;
	assert_null(realloc(pointer, PTRDIFF_MAX));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(followed.nr, 1);
	assert_int_equal(nr_told, 1);
	free(pointer);
	assert_int_equal(nr_told, 2);
	assert_int_equal(followed.nr, 0);
	/* With 0 it is given back. */
	pointer = malloc(100);
	assert_null(realloc(pointer, 0));
	assert_int_equal(followed.nr, 0);
	assert_int_equal(nr_told, 4);
}

/* Nobody listens: nothing is told, but what was sampled before leaves the set as it is freed. */
static void test_unheard(void **state)
{
	void *before;

	sample_at(1);
	before = malloc(100);
	otel_memory_alloc_semaphore = 0;
	nr_told = 0;
	free(malloc(100));
	assert_int_equal(nr_told, 0);
	assert_int_equal(followed.nr, 1);
	free(before);
}

static void test_full(void **state)
{
	size_t i, nr_held = 0;

	sample_at(1);
	for (i = 0; i < 100000; i++)
		kept[i] = malloc(16);
	for (i = 0; i < nr_told; i++)
		nr_held += told[i].weight ? 1 : -1;
	assert_int_equal(nr_held, followed.nr);
	assert_true(followed.nr > 40000);
	assert_int_equal(nr_held + stackbpf_alloc_unfollowed, 100000);
	assert_int_equal(remove_freed(), followed.nr);
	for (i = 0; i < 100000; i++)
		free(kept[i]);
	assert_int_equal(nr_told, 2 * 100000);
}

/* NULL is in no set, not even beside a pointer that its class is counted with. */
static void test_null(void **state)
{
	uint8_t *of_null = sb_followed_class(&followed, 0);
	uintptr_t pointer = 1024;

	while (sb_followed_class(&followed, pointer) != of_null)
		pointer += 1024;
	assert_true(sb_followed_add(&followed, (void *)pointer));
	free(NULL);
	assert_int_equal(nr_told, 0);
	assert_true(sb_followed_remove(&followed, (void *)pointer));
}

static void remove_kept(void)
{
	assert_true(sb_followed_remove(&followed, kept));
}

/* Another thread removes the same pointer at the same time: it is removed as often as it was
 * added. */
static void test_at_once(void **state)
{
	assert_true(sb_followed_add(&followed, kept));
	meanwhile = remove_kept;
	assert_false(sb_followed_remove(&followed, kept));
	assert_true(sb_followed_add(&followed, kept));
	assert_true(sb_followed_add(&followed, kept));
	meanwhile = remove_kept;
	assert_true(sb_followed_remove(&followed, kept));
}

/* What dlsym() itself asks for. */
static void test_early(void **state)
{
	char *pointer, *longer;

	mine.is_looking_up = true;
	next.malloc = first_malloc;
	next.calloc = first_calloc;
	next.realloc = first_realloc;
	pointer = malloc(100);
	assert_true(is_of_arena(pointer));
	memset(pointer, 'x', 100);
	longer = calloc(10, 20);
	assert_true(is_of_arena(longer) && longer >= pointer + 100 && !longer[199]);
	errno = 0;
	assert_null(malloc(2 * ARENA_BYTES));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(calloc(SIZE_MAX / 2, 3));
	assert_int_equal(errno, ENOMEM);
	free(longer);
	/* How long the old memory is, is not known. */
	longer = malloc(64);
	memset(longer, 'y', 64);
	assert_memory_equal(first_realloc(longer, 1024), longer, 64);
	arena_used = ARENA_BYTES / 2;
	memset(arena + ARENA_BYTES - 64, 'z', 64);
	longer = first_realloc(arena + ARENA_BYTES - 64, ARENA_BYTES / 4);
	assert_memory_equal(longer, arena + ARENA_BYTES - 64, 64);
	mine.is_looking_up = false;
	longer = realloc(pointer, 500);
	assert_false(is_of_arena(longer));
	assert_memory_equal(longer, pointer, 100);
	assert_true(next.calloc != first_calloc);
	free(longer);
	free(pointer);
}

static void test_child(void **state)
{
	int status;
	pid_t pid;

	in_child();
	mine.left = 0;
	mine.random = 1;
	free(malloc(1));
	assert_int_equal(mine.nr_forks, nr_forks);
	assert_true(mine.random != 1 && mine.left > 0);
	/* The handler of fork() was set where the library begins. */
	pid = fork();
	if (!pid)
		_exit(nr_forks == mine.nr_forks + 1 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void *churn(void *arg)
{
	void *mine_alone[64] = {};
	unsigned int i;

	for (i = 0; i < 50000; i++) {
		free(mine_alone[i % 64]);
		mine_alone[i % 64] = malloc(16 + i % 300);
	}
	for (i = 0; i < 64; i++)
		free(mine_alone[i]);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[4];
	size_t i;

	mean_bytes = 1000;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(nr_told > 10000);
	assert_int_equal(nr_told % 2, 0);
}

static void test_mean(void **state)
{
	assert_int_equal(read_mean("1"), 1);
	assert_int_equal(read_mean("1099511627776"), 1ull << 40);
	assert_int_equal(read_mean("1099511627777"), MEAN_BYTES);
	assert_int_equal(read_mean("99999999999999999999999"), MEAN_BYTES);
	assert_int_equal(read_mean("0"), MEAN_BYTES);
	assert_int_equal(read_mean(""), MEAN_BYTES);
	assert_int_equal(read_mean("512k"), MEAN_BYTES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, forget, check_empty)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_arithmetic), TEST(test_unbiased), TEST(test_functions),
		TEST(test_failed),     TEST(test_unheard),  TEST(test_null),
		TEST(test_full),       TEST(test_early),    TEST(test_child),
		TEST(test_not_moved),  TEST(test_threads),  TEST(test_mean),
		TEST(test_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
