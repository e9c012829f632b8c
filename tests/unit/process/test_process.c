// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The registry of processes: what it finds, what it forgets and when, and its bound. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/time.h"
#include "process/process.h"

#define TGID	   (4u << 20) /* above PID_MAX_LIMIT: no process has it */
#define NR_MAX	   32u
#define NR_THREADS 4
#define NR_ROUNDS  20000

static struct sb_processes *processes;
static uint64_t nr_destroyed, sum_destroyed;

static int setup(void **state)
{
	nr_destroyed = sum_destroyed = 0;
	return sb_processes_new(&(struct sb_processes_opts){ .nr_max = NR_MAX }, &processes);
}

static int teardown(void **state)
{
	sb_processes_free(processes);
	return 0;
}

/* It may ask the registry: the lock is not held. */
static void destroy(void *arg, void *value)
{
	struct sb_processes_stats stats;

	sb_processes_stats(processes, &stats);
	nr_destroyed++;
	sum_destroyed += (uintptr_t)value;
}

static struct sb_space *get(uint32_t tgid, uint64_t start_ns, uint32_t exec_id)
{
	const struct sb_space_key key = { start_ns, tgid, exec_id };
	struct sb_space *space;

	assert_int_equal(sb_processes_get(processes, &key, &space), 0);
	assert_true(sb_space_key_is(sb_space_key(space), &key));
	return space;
}

/* Known from here on, without a reference. */
static void make(uint32_t tgid, uint64_t start_ns, uint32_t exec_id, uintptr_t value)
{
	struct sb_space *space = get(tgid, start_ns, exec_id);

	sb_space_set(processes, space, SB_SLOT_RUNTIMES, (void *)value);
	sb_processes_put(processes, space);
}

static uintptr_t value_of(uint32_t tgid, uint64_t start_ns, uint32_t exec_id)
{
	return (uintptr_t)sb_processes_find(
		processes, &(struct sb_space_key){ start_ns, tgid, exec_id }, SB_SLOT_RUNTIMES);
}

static struct sb_processes_stats stats(void)
{
	struct sb_processes_stats ret;

	sb_processes_stats(processes, &ret);
	return ret;
}

/* Later than all that was done. */
static uint64_t later_ns(void)
{
	uint64_t now_ns = sb_now_ns();

	while (sb_now_ns() == now_ns)
		;
	return sb_now_ns();
}

static void each_key_has_one_space(void **state)
{
	struct sb_space *space = get(TGID, 5, 1), *again = get(TGID, 5, 1);

	assert_ptr_equal(space, again);
	assert_ptr_not_equal(get(TGID, 5, 2), space);
	assert_ptr_not_equal(get(TGID, 6, 1), space);
	assert_ptr_not_equal(get(TGID + 16384, 5, 1), space);
	assert_int_equal(stats().nr_spaces, 4);
	assert_int_equal(value_of(TGID, 7, 7), 0);
	assert_int_equal(stats().nr_spaces, 4);
}

static void slots_are_apart(void **state)
{
	struct sb_space *space = get(TGID, 5, 1);
	const struct sb_space_key *key = sb_space_key(space);

	sb_space_set(processes, space, SB_SLOT_RUNTIMES, &nr_destroyed);
	sb_space_set(processes, space, SB_SLOT_TAGS, &sum_destroyed);
	assert_ptr_equal(sb_processes_find(processes, key, SB_SLOT_RUNTIMES), &nr_destroyed);
	assert_ptr_equal(sb_processes_find(processes, key, SB_SLOT_TAGS), &sum_destroyed);
	assert_null(sb_processes_find(processes, key, SB_SLOT_WALKERS));
	assert_ptr_equal(sb_processes_of(processes, TGID, SB_SLOT_TAGS), &sum_destroyed);
	assert_null(sb_processes_of(processes, TGID + 16384, SB_SLOT_TAGS));
}

static void a_tgid_is_its_latest_space(void **state)
{
	make(TGID, 5, 1, 1);
	later_ns();
	make(TGID, 5, 2, 2);
	assert_int_equal((uintptr_t)sb_processes_of(processes, TGID, SB_SLOT_RUNTIMES), 2);
	later_ns();
	make(TGID, 9, 0, 3);
	assert_int_equal((uintptr_t)sb_processes_of(processes, TGID, SB_SLOT_RUNTIMES), 3);
}

static void what_ended_is_forgotten_once_it_was_long_ago(void **state)
{
	uint64_t end_ns;

	sb_processes_own(processes, SB_SLOT_RUNTIMES, destroy, NULL);
	make(TGID, 5, 1, 10);
	make(TGID + 1, 5, 1, 100);
	end_ns = later_ns();
	sb_processes_exit(processes, TGID, end_ns);
	sb_processes_forget(processes, end_ns);
	assert_int_equal(nr_destroyed, 0);
	assert_int_equal(value_of(TGID, 5, 1), 10);
	sb_processes_forget(processes, end_ns + 1);
	assert_int_equal(nr_destroyed, 1);
	assert_int_equal(sum_destroyed, 10);
	assert_int_equal(value_of(TGID, 5, 1), 0);
	assert_int_equal(value_of(TGID + 1, 5, 1), 100);
	assert_int_equal(stats().nr_spaces, 1);
	assert_int_equal(stats().nr_forgotten, 0);
}

/* But not what another module has in its slot. */
static void a_reference_keeps_it(void **state)
{
	struct sb_space *space = get(TGID, 5, 1);
	const struct sb_space_key *key = sb_space_key(space);

	sb_processes_own(processes, SB_SLOT_RUNTIMES, destroy, NULL);
	make(TGID, 5, 1, 10);
	sb_space_set(processes, space, SB_SLOT_TAGS, &processes);
	sb_processes_exit(processes, TGID, later_ns());
	sb_processes_forget(processes, later_ns());
	assert_int_equal(sum_destroyed, 10);
	assert_int_equal(value_of(TGID, 5, 1), 0);
	assert_ptr_equal(sb_processes_find(processes, key, SB_SLOT_TAGS), &processes);
	assert_ptr_equal(sb_processes_take(processes, key, SB_SLOT_TAGS), &processes);
	assert_null(sb_processes_take(processes, key, SB_SLOT_TAGS));
	sb_processes_put(processes, space);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(stats().nr_spaces, 0);
	assert_int_equal(nr_destroyed, 1);
}

/* Its first thread has ended, and somebody saw the others. */
static void what_is_seen_alive_stays(void **state)
{
	uint64_t end_ns;

	make(TGID, 5, 1, 10);
	end_ns = later_ns();
	sb_processes_alive(processes, &(struct sb_space_key){ 5, TGID, 1 });
	sb_processes_exit(processes, TGID, end_ns);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(TGID, 5, 1), 10);
	assert_false(sb_processes_has_ended(processes, &(struct sb_space_key){ 5, TGID, 1 }));
	assert_false(sb_processes_has_ended(processes, &(struct sb_space_key){ 6, TGID, 1 }));
	sb_processes_exit(processes, TGID, later_ns());
	assert_true(sb_processes_has_ended(processes, &(struct sb_space_key){ 5, TGID, 1 }));
	later_ns();
	sb_processes_alive(processes, &(struct sb_space_key){ 5, TGID, 1 });
	assert_false(sb_processes_has_ended(processes, &(struct sb_space_key){ 5, TGID, 1 }));
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(TGID, 5, 1), 10);
	/* What has a successor does not live. */
	make(TGID, 5, 2, 20);
	sb_processes_alive(processes, &(struct sb_space_key){ 5, TGID, 1 });
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(TGID, 5, 1), 0);
	make(TGID, 6, 0, 30);
	sb_processes_alive(processes, &(struct sb_space_key){ 5, TGID, 2 });
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(TGID, 5, 2), 0);
	assert_int_equal(value_of(TGID, 6, 0), 30);
}

/* Threads go on when the first one has ended, and are sampled. */
static void what_is_looked_up_stays(void **state)
{
	uint64_t end_ns;

	make(TGID, 5, 1, 10);
	end_ns = later_ns();
	sb_processes_exit(processes, TGID, end_ns);
	later_ns();
	sb_processes_put(processes, get(TGID, 5, 1));
	sb_processes_forget(processes, end_ns + 1);
	assert_int_equal(value_of(TGID, 5, 1), 10);
}

static void an_event_ends_only_what_was_before(void **state)
{
	uint64_t exec_ns = later_ns();

	later_ns();
	make(TGID, 5, 2, 10);
	sb_processes_exec(processes, TGID, exec_ns);
	sb_processes_exit(processes, TGID, exec_ns);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(TGID, 5, 2), 10);
	sb_processes_end(processes, &(struct sb_space_key){ 5, TGID, 2 });
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(TGID, 5, 2), 0);
}

/* A process that lived for some ms: its sample is read after the record of its end. */
static void a_late_sample_is_of_what_has_ended(void **state)
{
	uint64_t end_ns = later_ns(), asleep_ns = sb_boot_ns() - sb_now_ns();

	sb_processes_exit(processes, TGID, end_ns);
	make(TGID, end_ns + asleep_ns - SB_NS_PER_SEC, 1, 10);
	make(TGID + 16384, end_ns + asleep_ns - SB_NS_PER_SEC, 1, 30);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(stats().nr_spaces, 1);
	assert_int_equal(value_of(TGID, end_ns + asleep_ns - SB_NS_PER_SEC, 1), 0);
	/* The next process of that number. */
	make(TGID, end_ns + asleep_ns + SB_NS_PER_SEC, 1, 40);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(stats().nr_spaces, 2);
}

static void a_successor_ends_it(void **state)
{
	make(TGID, 5, 1, 10);
	make(TGID, 5, 2, 20);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(TGID, 5, 1), 0);
	assert_int_equal(value_of(TGID, 5, 2), 20);
	make(TGID, 9, 0, 30);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(TGID, 5, 2), 0);
	assert_int_equal(value_of(TGID, 9, 0), 30);
	/* A late sample of what was before. */
	make(TGID, 5, 2, 40);
	make(TGID, 9, 1, 50);
	make(TGID, 9, 0, 60);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(TGID, 5, 2), 0);
	assert_int_equal(value_of(TGID, 9, 0), 0);
	assert_int_equal(value_of(TGID, 9, 1), 50);
	assert_int_equal(stats().nr_spaces, 1);
}

static void the_longest_unused_goes_first(void **state)
{
	struct sb_space *kept = get(TGID, 5, 1), *space;
	const struct sb_space_key one_more = { 5, 1, 1 };
	uint32_t i;

	sb_processes_own(processes, SB_SLOT_RUNTIMES, destroy, NULL);
	for (i = 1; i < NR_MAX; i++)
		make(TGID + i, 5, 1, i);
	make(TGID + 1, 5, 1, 1);
	make(TGID + NR_MAX, 5, 1, NR_MAX);
	make(TGID + NR_MAX + 1, 5, 1, NR_MAX + 1);
	assert_int_equal(stats().nr_spaces, NR_MAX);
	assert_int_equal(stats().nr_forgotten, 2);
	assert_int_equal(value_of(TGID + 1, 5, 1), 1);
	assert_int_equal(value_of(TGID + 2, 5, 1), 0);
	assert_int_equal(value_of(TGID + 3, 5, 1), 0);
	assert_int_equal(value_of(TGID + 4, 5, 1), 4);
	/* Its memory goes when it may. */
	assert_int_equal(nr_destroyed, 0);
	sb_processes_forget(processes, 1);
	assert_int_equal(sum_destroyed, 2 + 3);
	assert_ptr_equal(get(TGID, 5, 1), kept);

	for (i = 1; i <= NR_MAX; i++)
		if (value_of(TGID + i, 5, 1))
			get(TGID + i, 5, 1);
	get(TGID + NR_MAX + 1, 5, 1);
	assert_int_equal(sb_processes_get(processes, &one_more, &space), -E2BIG);
	assert_int_equal(stats().nr_refused, 1);
	assert_int_equal(stats().nr_spaces, NR_MAX);
}

/* All spaces of one process have a bound, too. */
static void execs_make_no_more_than_the_bound(void **state)
{
	const struct sb_space_key one_more = { 5, TGID, NR_MAX };
	struct sb_space *space;
	uint32_t i;

	make(TGID + 1, 5, 1, 1);
	for (i = 0; i < NR_MAX - 1; i++)
		make(TGID, 5, i, i + 1);
	assert_int_equal(stats().nr_spaces, NR_MAX);
	make(TGID, 5, i, i + 1);
	assert_int_equal(stats().nr_spaces, NR_MAX);
	assert_int_equal(value_of(TGID + 1, 5, 1), 0);
	/* There is no other process to make room. */
	assert_int_equal(sb_processes_get(processes, &one_more, &space), -E2BIG);
	assert_int_equal(stats().nr_refused, 1);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(stats().nr_spaces, 1);
	assert_int_equal(value_of(TGID, 5, i), i + 1);
}

static int mark(uint64_t start_ns, uint32_t exec_id, uint32_t bit)
{
	const struct sb_space_key key = { start_ns, TGID, exec_id };

	return sb_processes_mark(processes, &key, bit);
}

static void a_process_is_counted_once(void **state)
{
	uint64_t exec_ns;

	assert_int_equal(mark(5, 1, 3), 1);
	assert_int_equal(mark(5, 1, 3), 0);
	assert_int_equal(mark(5, 1, 31), 1);
	exec_ns = later_ns();
	sb_processes_exec(processes, TGID, exec_ns);
	sb_processes_forget(processes, exec_ns + 1);
	assert_int_equal(stats().nr_spaces, 0);
	assert_int_equal(mark(5, 2, 3), 0);
	assert_int_equal(mark(6, 2, 3), 1);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(stats().nr_spaces, 1);
}

/* No record told of their end. */
static void the_dead_are_found(void **state)
{
	const uint32_t self = (uint32_t)getpid();
	pid_t child = fork();
	uint32_t i;

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	make(0, 0, 0, 1);
	make(self, 5, 1, 2);
	make((uint32_t)child, 5, 1, 3);
	for (i = 0; i < NR_MAX / 16; i++)
		make(TGID + i, 5, 1, 4);
	sb_processes_forget(processes, 1);
	sb_processes_forget(processes, later_ns());
	assert_int_equal(value_of(0, 0, 0), 1);
	assert_int_equal(value_of(self, 5, 1), 2);
	assert_int_equal(value_of((uint32_t)child, 5, 1), 0);
	assert_int_equal(stats().nr_spaces, 2);
}

static void a_module_leaves_nothing_behind(void **state)
{
	uint32_t i;

	sb_processes_own(processes, SB_SLOT_RUNTIMES, destroy, NULL);
	for (i = 0; i < NR_MAX + 4; i++)
		make(TGID + i, 5, 1, 1);
	sb_processes_disown(processes, SB_SLOT_RUNTIMES);
	assert_int_equal(nr_destroyed, NR_MAX + 4);
	assert_int_equal(value_of(TGID + NR_MAX, 5, 1), 0);
	make(TGID, 5, 1, 1);
	sb_processes_end(processes, &(struct sb_space_key){ 5, TGID, 1 });
	sb_processes_forget(processes, later_ns());
	assert_int_equal(nr_destroyed, NR_MAX + 4);
}

static void *hammer(void *arg)
{
	uint32_t i, seed = (uint32_t)(uintptr_t)arg;

	for (i = 0; i < NR_ROUNDS; i++) {
		const struct sb_space_key key = { 1 + i % 3, TGID + (i * 7 + seed) % 61, i % 5 };
		struct sb_space *space;

		if (sb_processes_get(processes, &key, &space))
			continue;
		assert_true(sb_space_key_is(sb_space_key(space), &key));
		if (i % 4 == seed % 4)
			sb_space_set(processes, space, SB_SLOT_RUNTIMES, (void *)1);
		if (i % 64 == 0)
			sb_processes_exec(processes, key.tgid, sb_now_ns());
		sb_processes_put(processes, space);
	}
	return NULL;
}

static void threads_share_it(void **state)
{
	pthread_t threads[NR_THREADS];
	uintptr_t i;

	sb_processes_own(processes, SB_SLOT_RUNTIMES, destroy, NULL);
	for (i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, (void *)i), 0);
	for (i = 0; i < 200; i++)
		sb_processes_forget(processes, sb_now_ns());
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(stats().nr_spaces <= NR_MAX);
	sb_processes_disown(processes, SB_SLOT_RUNTIMES);
	assert_true(nr_destroyed > 0);
	assert_int_equal(nr_destroyed, sum_destroyed);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(each_key_has_one_space),
		TEST(slots_are_apart),
		TEST(a_tgid_is_its_latest_space),
		TEST(what_ended_is_forgotten_once_it_was_long_ago),
		TEST(a_reference_keeps_it),
		TEST(what_is_looked_up_stays),
		TEST(what_is_seen_alive_stays),
		TEST(an_event_ends_only_what_was_before),
		TEST(a_late_sample_is_of_what_has_ended),
		TEST(a_successor_ends_it),
		TEST(the_longest_unused_goes_first),
		TEST(execs_make_no_more_than_the_bound),
		TEST(a_process_is_counted_once),
		TEST(the_dead_are_found),
		TEST(a_module_leaves_nothing_behind),
		TEST(threads_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
