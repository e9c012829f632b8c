// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Interpreter stacks and labels that wait for a drain: what is lost is counted, and comes again. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "capture/interpwatch_priv.h"
#include "views/skel.h"

#define NR_STACKS  5u
/* As many label sets as may wait, and as many bytes of them. */
#define LABELS_MAX 65536u
#define BYTES_MAX  (16u << 20)

static struct sampler_bpf skel;
static struct sb_interpwatch watch;
static uint64_t forgotten[NR_STACKS + 1]; /* by the BPF side */
static size_t nr_forgotten, nr_added;
static int refused_with; /* what the drain says of stacks 2 and 4 */

int __wrap_bpf_map__fd(const struct bpf_map *map);
int __wrap_bpf_map_delete_elem(int fd, const void *key);
int __wrap_ring_buffer__consume(struct ring_buffer *ring);

int __wrap_bpf_map__fd(const struct bpf_map *map)
{
	(void)map;
	return 7;
}

int __wrap_bpf_map_delete_elem(int fd, const void *key)
{
	assert_int_equal(fd, 7);
	assert_true(nr_forgotten <= NR_STACKS);
	forgotten[nr_forgotten++] = ((const struct sb_stack_id *)key)->lo;
	return 0;
}

int __wrap_ring_buffer__consume(struct ring_buffer *ring)
{
	(void)ring;
	return 0;
}

static int setup(void **state)
{
	memset(&watch, 0, sizeof(watch));
	watch.skel = &skel;
	pthread_mutex_init(&watch.ring_lock, NULL);
	nr_forgotten = nr_added = 0;
	return 0;
}

static int teardown(void **state)
{
	sb_vec_release(&watch.waiting);
	sb_vec_release(&watch.words);
	sb_vec_release(&watch.labels.at);
	sb_str_release(&watch.labels.texts);
	pthread_mutex_destroy(&watch.ring_lock);
	return 0;
}

static int add(void *arg, const struct sb_batch_stack *stack)
{
	assert_ptr_equal(arg, &watch);
	nr_added++;
	return stack->id.lo % 2 ? 0 : refused_with;
}

/* Drain stacks 1 to 5, whose names have been read. */
static int drain(void)
{
	struct waiting stack = {};
	uint64_t i;

	for (i = 1; i <= NR_STACKS; i++) {
		stack.id.lo = i;
		assert_int_equal(sb_vec_push(&watch.waiting, stack), 0);
	}
	watch.nr_named = NR_STACKS;
	return sb_interpwatch_drain(&watch, add, &watch);
}

static void expect_two_lost(void)
{
	assert_int_equal(nr_added, NR_STACKS);
	assert_int_equal(watch.stats.nr_lost, 2);
	assert_int_equal(nr_forgotten, 2);
	assert_true(forgotten[0] == 2 && forgotten[1] == 4);
	assert_int_equal(watch.waiting.nr, 0);
}

static void test_drain_without_memory(void **state)
{
	refused_with = -ENOMEM;
	assert_int_equal(drain(), 0);
	expect_two_lost();
}

static void test_drain_that_fails(void **state)
{
	refused_with = -EIO;
	assert_int_equal(drain(), -EIO);
	expect_two_lost();
}

static void test_drain(void **state)
{
	refused_with = 0;
	assert_int_equal(drain(), 0);
	assert_true(nr_added == NR_STACKS && !nr_forgotten && !watch.stats.nr_lost);
}

/* Threads that sleep are many, too. */
static void test_too_many_labels(void **state)
{
	const struct sb_str text = { .s = (char *)"v", .len = 2 };
	struct sb_asleep asleep = {};

	for (asleep.labels = 1; asleep.labels <= LABELS_MAX + 10; asleep.labels++)
		assert_int_equal(sb_interpwatch_keep_labels(&watch, &asleep, &text), 0);
	assert_int_equal(watch.labels.at.nr, LABELS_MAX);
	assert_int_equal(watch.stats.nr_labels_lost, 10);
}

static void test_too_long_labels(void **state)
{
	static char bytes[1 << 20];
	const struct sb_str text = { .s = bytes, .len = sizeof(bytes) };
	struct sb_asleep asleep = {};

	for (asleep.labels = 1; asleep.labels <= 20; asleep.labels++)
		assert_int_equal(sb_interpwatch_keep_labels(&watch, &asleep, &text), 0);
	assert_int_equal(watch.labels.texts.len, BYTES_MAX);
	assert_int_equal(watch.stats.nr_labels_lost, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_drain_without_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drain_that_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_long_labels, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
