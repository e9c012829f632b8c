// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Interpreter stacks and labels that wait for a drain: those that are lost are counted, and the BPF
 * side sends them again. Also: a process that maps code after the unwinder has read its mappings is
 * looked at again. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/time.h"
#include "capture/interpwatch_priv.h"
#include "capture/thread.h"
#include "process/process.h"
#include "views/skel.h"
#include "workers/privileges.h"

#define NR_STACKS  5u
/* As many label sets as may wait, and as many bytes of them. */
#define LABELS_MAX 65536u
#define BYTES_MAX  (16u << 20)

static struct sampler_bpf__bss shared; /* what the programs see */
static struct sampler_bpf skel = { .bss = &shared };
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
	if (watch.processes) /* a process, not a stack */
		return 0;
	assert_true(nr_forgotten <= NR_STACKS);
	forgotten[nr_forgotten++] = ((const struct sb_stack_id *)key)->lo;
	return 0;
}

int __wrap_ring_buffer__consume(struct ring_buffer *ring)
{
	(void)ring;
	return 0;
}

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags);
bool __wrap_sb_server_wait(struct sb_server *server, int timeout_ms);
void __wrap_sb_server_wake(struct sb_server *server);
void __wrap_sb_thread_hurry(void);
void __wrap_sb_privileges_thread(enum sb_privileges_role role);
int __wrap_sb_interp_look_since(struct sb_interp *interp, const struct sb_space_key *space,
				uint64_t since_ns, struct sb_interp_confs *ret_confs);
int __wrap_sb_interp_note_native(struct sb_interp *interp, const struct sb_space_key *space);
void __wrap_sb_interp_ended(struct sb_interp *interp, const struct sb_space_key *space);

static bool is_served; /* the requests and records so far */
static size_t nr_looks;
static uint64_t looked_since_ns; /* what was asked of the last look */

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	return 0;
}

bool __wrap_sb_server_wait(struct sb_server *server, int timeout_ms)
{
	is_served = !is_served;
	return is_served;
}

void __wrap_sb_server_wake(struct sb_server *server) {}

void __wrap_sb_thread_hurry(void) {}

void __wrap_sb_privileges_thread(enum sb_privileges_role role) {}

int __wrap_sb_interp_look_since(struct sb_interp *interp, const struct sb_space_key *space,
				uint64_t since_ns, struct sb_interp_confs *ret_confs)
{
	ret_confs->nr = 0;
	ret_confs->has_labels = false;
	looked_since_ns = since_ns;
	nr_looks++;
	return 0;
}

int __wrap_sb_interp_note_native(struct sb_interp *interp, const struct sb_space_key *space)
{
	return 0;
}

void __wrap_sb_interp_ended(struct sb_interp *interp, const struct sb_space_key *space) {}

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

/* A number that is none of a process, so that nobody finds anything out about it. */
#define TGID 4194000u

static const struct sb_space_key space = { .start_ns = 1, .tgid = TGID, .exec_id = 1 };
static const struct sb_space_key next_space = { .start_ns = 1, .tgid = TGID, .exec_id = 2 };
static const struct sb_space_key last_space = { .start_ns = 1, .tgid = TGID, .exec_id = 3 };

static int setup_looks(void **state)
{
	setup(state);
	nr_looks = 0;
	looked_since_ns = 0;
	/* Looks because of records are not due before the test ends. */
	watch.ration.reserved_ns[0] = sb_now_ns() + 3600 * SB_NS_PER_SEC;
	if (sb_sideband_queue_init(&watch.queue))
		return -1;
	return sb_processes_new(NULL, &watch.processes);
}

static int teardown_looks(void **state)
{
	while (watch.procs.nr) {
		sb_interpwatch_leave_slot(&watch, watch.procs.at[--watch.procs.nr]);
		free(watch.procs.at[watch.procs.nr]);
	}
	sb_vec_release(&watch.procs);
	sb_vec_release(&watch.free_confs);
	sb_sideband_queue_release(&watch.queue);
	sb_processes_free(watch.processes);
	return teardown(state);
}

static void serve(void)
{
	is_served = false;
	sb_interpwatch_serve(&watch);
}

/* A record comes, and is served. */
static void tell(enum sb_sideband_kind kind, uint64_t time_ns)
{
	sb_sideband_queue_put(&watch.queue, &(struct sb_process_event){ TGID, kind, time_ns },
			      true);
	serve();
}

/* The unwinder answers a request for interpreters, and that is served. */
static void answer(const struct sb_space_key *key, uint64_t since_ns, bool is_plain)
{
	sb_interpwatch_need(&watch, key, since_ns, is_plain);
	serve();
}

/* A change that waits for a look is seen by the look that is asked for meanwhile, and later changes
 * cause a look again. */
static void test_change_while_a_need_waits(void **state)
{
	sb_interpwatch_follow(&watch, TGID);
	answer(&space, 100, false);
	assert_true(nr_looks == 1 && looked_since_ns == 100);
	tell(SB_SIDEBAND_MMAP, 300);
	assert_int_equal(nr_looks, 1);
	assert_true(watch.procs.nr == 1 && watch.procs.at[0]->look_ns);
	answer(&space, 200, false);
	assert_true(nr_looks == 2 && looked_since_ns == 300);
	assert_int_equal(watch.procs.at[0]->look_ns, 0);
	tell(SB_SIDEBAND_MMAP, 400);
	assert_true(watch.procs.at[0]->look_ns);
	answer(&space, 500, false);
	assert_true(nr_looks == 3 && looked_since_ns == 500);
}

/* A process is without interpreters only if nothing was mapped since its mappings were read. */
static void test_change_of_a_plain_program(void **state)
{
	uint32_t nr_changes;

	sb_interpwatch_follow(&watch, TGID);
	answer(&space, 100, true);
	assert_true(!nr_looks && watch.procs.nr == 1);
	nr_changes = shared.proc_changes[TGID % SB_PROC_CHANGES];
	tell(SB_SIDEBAND_EXEC, 200);
	assert_int_equal(watch.procs.nr, 0);
	/* The programs remember nothing of the process any more. */
	assert_int_not_equal(shared.proc_changes[TGID % SB_PROC_CHANGES], nr_changes);
	sb_interpwatch_follow(&watch, TGID);
	tell(SB_SIDEBAND_MMAP, UINT64_MAX - 8);
	answer(&next_space, UINT64_MAX - 9, true);
	assert_true(nr_looks == 1 && looked_since_ns == UINT64_MAX);
	/* Even if that was taken for a change of the last program. */
	tell(SB_SIDEBAND_MMAP, UINT64_MAX - 1);
	answer(&last_space, UINT64_MAX - 2, true);
	assert_int_equal(nr_looks, 2);
}

/* Where records are missing, a process may have mapped an interpreter: one that is known is looked
 * at again, and one whose mappings were read before is read anew. */
static void test_lost_records(void **state)
{
	struct sb_sideband lost = { .kind = SB_SIDEBAND_LOST, .time_ns = 200 };

	sb_interpwatch_follow(&watch, TGID);
	answer(&space, 100, true);
	assert_true(!nr_looks && watch.procs.nr == 1);
	sb_interpwatch_tell(&watch, &lost);
	serve();
	assert_true(watch.procs.at[0]->look_ns);
	answer(&space, 150, false);
	assert_true(nr_looks == 1 && looked_since_ns == UINT64_MAX);
	assert_int_equal(watch.procs.at[0]->look_ns, 0);
	/* An older loss, and one that the look has seen already. */
	lost.time_ns = 199;
	sb_interpwatch_tell(&watch, &lost);
	serve();
	assert_int_equal(watch.procs.at[0]->look_ns, 0);
	sb_interpwatch_follow(&watch, TGID);
	answer(&next_space, 199, true);
	assert_true(nr_looks == 2 && looked_since_ns == UINT64_MAX);
}

/* The last program of the process ends after the unwinder has followed the next one, which is
 * followed nevertheless, and looked at if it may have mapped something in between. */
static void test_end_of_the_last_program(void **state)
{
	const bool is_plain[] = { true, false };
	size_t i;

	for (i = 0; i < 2; i++) {
		answer(&space, 100, true);
		nr_looks = 0;
		sb_interpwatch_follow(&watch, TGID);
		tell(SB_SIDEBAND_EXEC, sb_now_ns());
		assert_int_equal(watch.procs.nr, 0);
		assert_false(sb_sideband_queue_follows(&watch.queue, TGID));
		answer(&next_space, UINT64_MAX - 1, is_plain[i]);
		assert_true(nr_looks == 1 && looked_since_ns == UINT64_MAX);
		assert_true(sb_sideband_queue_follows(&watch.queue, TGID));
		tell(SB_SIDEBAND_EXIT, UINT64_MAX);
		assert_int_equal(watch.procs.nr, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_drain_without_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drain_that_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_long_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_change_while_a_need_waits, setup_looks,
						teardown_looks),
		cmocka_unit_test_setup_teardown(test_change_of_a_plain_program, setup_looks,
						teardown_looks),
		cmocka_unit_test_setup_teardown(test_lost_records, setup_looks, teardown_looks),
		cmocka_unit_test_setup_teardown(test_end_of_the_last_program, setup_looks,
						teardown_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
