// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* News of processes: whose, when, and that none are lost unseen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/sideband_queue.h"

#define NOW_NS	 1000000000000ull
#define TGID	 4711u
#define TGID_MAX (4u << 20) /* PID_MAX_LIMIT */

static struct sb_sideband_queue queue;

static int setup(void **state)
{
	return sb_sideband_queue_init(&queue);
}

static int teardown(void **state)
{
	sb_sideband_queue_release(&queue);
	return 0;
}

static void put(uint32_t tgid, enum sb_sideband_kind kind, uint64_t time_ns, bool is_urgent)
{
	sb_sideband_queue_put(&queue, &(struct sb_process_event){ tgid, kind, time_ns }, is_urgent);
}

static size_t nr_taken(uint64_t now_ns)
{
	sb_process_events list = sb_sideband_queue_take(&queue, now_ns);
	size_t nr = list.nr;

	sb_vec_release(&list);
	return nr;
}

/* Only of those that are followed, and while they are. */
static void test_whose(void **state)
{
	static const uint32_t tgids[] = { 1, 63, 64, TGID, TGID_MAX - 1 };
	size_t i;

	for (i = 0; i < sizeof(tgids) / sizeof(tgids[0]); i++) {
		put(tgids[i], SB_SIDEBAND_MMAP, NOW_NS, true);
		assert_int_equal(nr_taken(NOW_NS), 0);
		sb_sideband_queue_follow(&queue, tgids[i]);
		assert_true(sb_sideband_queue_follows(&queue, tgids[i]));
		put(tgids[i], SB_SIDEBAND_MMAP, NOW_NS, true);
		assert_int_equal(nr_taken(NOW_NS), 1);
		sb_sideband_queue_unfollow(&queue, tgids[i]);
		put(tgids[i], SB_SIDEBAND_MMAP, NOW_NS, true);
		assert_int_equal(nr_taken(NOW_NS), 0);
	}
	/* No such process can be. */
	sb_sideband_queue_follow(&queue, TGID_MAX);
	assert_false(sb_sideband_queue_follows(&queue, TGID_MAX));
}

/* What is not urgent rests, from the first of them on, and the thread is woken once. */
static void test_rest(void **state)
{
	sb_sideband_queue_follow(&queue, TGID);
	put(TGID, SB_SIDEBAND_MMAP, NOW_NS, false);
	put(TGID, SB_SIDEBAND_EXIT, NOW_NS + SB_SIDEBAND_QUEUE_REST_NS - 1, false);
	assert_false(sb_sideband_queue_is_due(&queue, NOW_NS + SB_SIDEBAND_QUEUE_REST_NS - 1));
	assert_int_equal(nr_taken(NOW_NS + SB_SIDEBAND_QUEUE_REST_NS - 1), 0);
	assert_true(sb_sideband_queue_is_due(&queue, NOW_NS + SB_SIDEBAND_QUEUE_REST_NS));
	assert_false(sb_sideband_queue_is_due(&queue, NOW_NS + SB_SIDEBAND_QUEUE_REST_NS));
	assert_int_equal(nr_taken(NOW_NS + SB_SIDEBAND_QUEUE_REST_NS), 2);
	assert_false(sb_sideband_queue_is_due(&queue, UINT64_MAX));
	/* And again. */
	put(TGID, SB_SIDEBAND_MMAP, NOW_NS, false);
	assert_false(sb_sideband_queue_is_due(&queue, NOW_NS));
	assert_true(sb_sideband_queue_is_due(&queue, NOW_NS + SB_SIDEBAND_QUEUE_REST_NS));
}

/* One that is urgent takes the others along, and no others later. */
static void test_urgent(void **state)
{
	sb_sideband_queue_follow(&queue, TGID);
	put(TGID, SB_SIDEBAND_EXEC, NOW_NS, false);
	put(TGID, SB_SIDEBAND_MMAP, NOW_NS + 1, true);
	assert_true(sb_sideband_queue_is_due(&queue, NOW_NS + 1));
	assert_int_equal(nr_taken(NOW_NS + 1), 2);
	put(TGID, SB_SIDEBAND_MMAP, NOW_NS + 2, false);
	assert_false(sb_sideband_queue_is_due(&queue, NOW_NS + 2));
}

/* What was said twice in a row was said last then. */
static void test_repeated(void **state)
{
	sb_process_events list;

	sb_sideband_queue_follow(&queue, TGID);
	put(TGID, SB_SIDEBAND_MMAP, NOW_NS, false);
	put(TGID, SB_SIDEBAND_MMAP, NOW_NS + 5, false);
	put(TGID, SB_SIDEBAND_EXIT, NOW_NS + 6, true);
	list = sb_sideband_queue_take(&queue, NOW_NS + 6);
	assert_int_equal(list.nr, 2);
	assert_int_equal(list.at[0].time_ns, NOW_NS + 5);
	assert_int_equal(list.at[1].kind, SB_SIDEBAND_EXIT);
	sb_vec_release(&list);
}

static void test_bound(void **state)
{
	uint32_t i;

	for (i = 1; i <= SB_SIDEBAND_QUEUE_MAX + 3; i++) {
		sb_sideband_queue_follow(&queue, i);
		put(i, SB_SIDEBAND_MMAP, NOW_NS, true);
	}
	assert_int_equal(sb_sideband_queue_nr_lost(&queue), 3);
	assert_int_equal(nr_taken(NOW_NS), SB_SIDEBAND_QUEUE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whose, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_urgent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_repeated, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
