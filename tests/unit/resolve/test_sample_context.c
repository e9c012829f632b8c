// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* States, calls, objects and why threads wait: what the resolver says beyond stacks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "bpf/abi/sb_abi_io.h"
#include "model/fold.h"
#include "model/profile.h"
#include "resolve/resolve.h"

/* The names of addresses: 0x1000 + i. At 0x2000 + i, two functions are inlined. */
static const char *const names[] = {
	"root",		  "work",	    "pthread_cond_wait",
	"futex_do_wait",  "schedule",	    "__schedule",
	"bpf_prog_1",	  "ep_poll",	    "__lll_lock_wait",
	"wake_up_q",	  "try_to_wake_up", "asm_sysvec_timer",
	"hrtimer_wakeup", "wait_for_work",
};

static int answer(const struct sb_sym_query *query, uint8_t kind)
{
	size_t i;
	int err = 0;

	for (i = 0; i < query->nr && !err; i++) {
		const struct sb_sym_frame frames[] = {
			{ .name = "inner", .module = "m", .kind = kind, .is_inlined = true },
			{ .name = "outer", .module = "m", .kind = kind, .is_inlined = true },
			{ .name = names[query->reqs[i].addr & 0xff], .module = "m", .kind = kind },
		};
		const size_t first = query->reqs[i].addr & 0x2000 ? 0 : 2;

		err = query->emit(query->arg, i, frames + first, 3 - first);
	}
	return err;
}

/* Of process 7, the waker. */
static size_t nr_waker_lookups;

int sb_symbolizer_user(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
		       const struct sb_sym_query *query)
{
	nr_waker_lookups += tgid == 7;
	return answer(query, SB_SYM_USER);
}

int sb_symbolizer_kernel(struct sb_symbolizer *sym, const struct sb_sym_query *query)
{
	return answer(query, SB_SYM_KERNEL);
}

uint64_t sb_symbolizer_next_change(struct sb_symbolizer *sym, uint32_t tgid, uint64_t from_ns,
				   uint64_t to_ns, const struct sb_sym_query *query)
{
	return UINT64_MAX;
}

/* Leaf first. */
static const uint64_t condvar[] = { 0x1002, 0x1001, 0x1000 }, mutex[] = { 0x1008, 0x1001, 0x1000 };
static const uint64_t pool[] = { 0x1002, 0x100d, 0x1000 };
static const uint64_t futex[] = { 0x1006, 0x1005, 0x1004, 0x1003 };
static const uint64_t epoll[] = { 0x1005, 0x1004, 0x1007 }, waking[] = { 0x1006, 0x100a, 0x1009 };
/* A timer that interrupts a system call. */
static const uint64_t timer[] = { 0x100a, 0x100c, 0x100b, 0x1007 };
/* A timer that interrupts another tracer. */
static const uint64_t traced[] = { 0x100a, 0x100c, 0x100b, 0x100a, 0x1007 };
static const uint64_t inlined[] = { 0x2006, 0x2005, 0x1004 };

#define USER(n, ips)                                                                 \
	{                                                                            \
		.id = { n, 1 }, .nr_frames = sizeof(ips) / sizeof(*(ips)), .ip = ips \
	}
#define KERNEL(n, ips)                                                                \
	{                                                                             \
		.id = { n, 1 }, .nr_frames = sizeof(ips) / sizeof(*(ips)), .ip = ips, \
		.flags = SB_STACK_KERNEL                                              \
	}
static const struct sb_batch_stack stacks[] = {
	USER(1, condvar),  USER(2, mutex),     KERNEL(11, futex),
	KERNEL(12, epoll), KERNEL(13, waking), KERNEL(14, timer),
	USER(3, pool),	   KERNEL(15, traced), KERNEL(16, inlined),
};

struct file {
	struct sb_object_file file;
	char path[16];
};
#define FILE_OF(...)                \
	{                           \
		{ __VA_ARGS__ }, "" \
	}
static const struct file files[] = {
	{ { .kind = SB_FILE_REG, .path_bytes = 6 }, "c\0bb\0a" },
	{ { .kind = SB_FILE_REG, .path_bytes = 2, .flags = SB_FILE_DELETED | SB_FILE_PATH_CUT },
	  "x" },
	{ { .kind = SB_FILE_REG, .path_bytes = 2, .flags = SB_FILE_NO_MOUNT, .fs = "ext4" }, "x" },
	FILE_OF(.kind = SB_FILE_PIPE, .ino = 7),
	FILE_OF(.kind = SB_FILE_SOCK, .ino = 8, .sock_family = AF_INET, .sock_type = SOCK_STREAM),
	FILE_OF(.kind = SB_FILE_SOCK, .ino = 9, .sock_family = 99),
	{ { .kind = SB_FILE_ANON, .path_bytes = 10 }, "[eventfd]" },
	FILE_OF(.kind = SB_FILE_DIR),
	FILE_OF(.kind = 200, .ino = 5),
	/* what hostile memory may give: no end, only slashes' places */
	{ { .kind = SB_FILE_REG, .path_bytes = 0xffff }, "abcdefghijklmno" },
	{ { .kind = SB_FILE_REG, .path_bytes = 3 }, "\0\0" },
};
static const struct sb_object_task task = { .comm = "sleeper" };
static const struct sb_object_waker waker = {
	.ustack = { 2, 1 }, .kstack = { 13, 1 }, .tgid = 7, .comm = "waker"
};

static const char *const trim[] = { "__schedule", "try_to_wake_up", NULL };
static struct sb_resolve_stats stats;
static char folded[8192];

static int collect(void *arg, const char *line, size_t len)
{
	size_t have = strlen(folded);

	snprintf(folded + have, sizeof(folded) - have, "%.*s\n", (int)len, line);
	return 0;
}

static int resolve(const struct sb_resolve_opts *opts, const struct sb_batch_object *objects,
		   size_t nr_objects, const struct sb_batch_count *counts, size_t nr_counts)
{
	const struct sb_batch batch = {
		.counts = counts,
		.nr_counts = nr_counts,
		.stacks = stacks,
		.nr_stacks = sizeof(stacks) / sizeof(*stacks),
		.objects = objects,
		.nr_objects = nr_objects,
	};
	const struct sb_fold_opts fold = {};
	struct sb_resolver *resolver;
	struct sb_profile *profile;
	int err;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_resolver_new(opts, NULL, profile, &resolver), 0);
	err = sb_resolver_add(resolver, &batch);
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(sb_profile_seal(profile), 0);
	folded[0] = '\0';
	assert_int_equal(sb_fold(profile, &fold, collect, NULL), 0);
	sb_resolver_free(resolver);
	sb_profile_free(profile);
	return err;
}

#define COUNT(weight_, ...)                                  \
	{                                                    \
		{ .comm = "app", .tgid = 1, __VA_ARGS__ },   \
		{                                            \
			.weight = (weight_), .nr_samples = 1 \
		}                                            \
	}

static void test_states(void **state)
{
	const struct sb_batch_count counts[] = {
		COUNT(9, .ustack = { 2, 1 }, .kstack = { 11, 1 }, .state = SB_STATE_SLEEP),
		COUNT(8, .ustack = { 2, 1 }, .state = SB_STATE_RUNQUEUE),
		COUNT(7, .ustack = { 2, 1 }, .state = SB_STATE_THROTTLED),
		COUNT(6, .state = SB_STATE_RUNNING, .op = 1),
		COUNT(5, .ustack = { 2, 1 }, .state = SB_STATE_RUNNING),
		COUNT(5, .ustack = { 2, 1 }, .state = 99),
	};
	struct sb_resolve_opts opts = { .views[0].trim = trim, .views[0].state_at_root = true };

	assert_int_equal(resolve(&opts, NULL, 0, counts, 6), 0);
	assert_string_equal(folded,
			    "app;root;work;__lll_lock_wait 10\n" /* running, and an unknown state */
			    "app;root;work;__lll_lock_wait;futex_do_wait;schedule 9\n"

			    "[runqueue];app;root;work;__lll_lock_wait 8\n"
			    "[throttled];app;root;work;__lll_lock_wait 7\n"
			    "app 6\n");
	opts = (struct sb_resolve_opts){ .views[0].state_at_leaf = true };
	assert_int_equal(resolve(&opts, NULL, 0, counts, 5), 0);
	assert_string_equal(
		folded,
		"app;root;work;__lll_lock_wait;futex_do_wait;schedule;__schedule;bpf_prog_1;"
		"[blocked] 9\n"
		"app;root;work;__lll_lock_wait;[runqueue] 8\n"
		"app;root;work;__lll_lock_wait;[throttled] 7\n"
		"app;[running: not sampled] 6\n"
		"app;root;work;__lll_lock_wait;[running] 5\n");
	assert_int_equal(stats.state_weight[SB_STATE_RUNNING], 11);
}

/* Samples of views that run at once: each is put together as its own view has it, and counted
 * there. */
static void test_views(void **state)
{
	const struct sb_batch_count counts[] = {
		COUNT(9, .ustack = { 2, 1 }, .kstack = { 11, 1 }, .state = SB_STATE_SLEEP),
		COUNT(8, .ustack = { 2, 1 }, .state = SB_STATE_SLEEP, .view = 2),
		COUNT(7, .ustack = { 2, 1 }, .state = SB_STATE_RUNQUEUE, .view = 2),
		COUNT(6, .ustack = { 2, 1 }, .state = SB_STATE_RUNQUEUE),
	};
	const struct sb_resolve_opts opts = { .views[0] = { .trim = trim, .state_at_root = true },
					      .views[2] = { .state_at_leaf = true } };

	assert_int_equal(resolve(&opts, NULL, 0, counts, 4), 0);
	assert_string_equal(folded, "app;root;work;__lll_lock_wait;futex_do_wait;schedule 9\n"
				    "app;root;work;__lll_lock_wait;[blocked] 8\n"
				    "app;root;work;__lll_lock_wait;[runqueue] 7\n"
				    "[runqueue];app;root;work;__lll_lock_wait 6\n");
	assert_int_equal(stats.nr_samples, 2);
	assert_int_equal(stats.weight, 15);
}

/* What is cut off is not counted: two addresses, which have six frames. */
static void test_trimmed(void **state)
{
	const struct sb_batch_count counts[] = { COUNT(9, .ustack = { 2, 1 },
						       .kstack = { 16, 1 }) };
	const struct sb_resolve_opts opts = { .views[0].trim = trim };

	assert_int_equal(resolve(&opts, NULL, 0, counts, 1), 0);
	assert_string_equal(folded, "app;root;work;__lll_lock_wait;schedule 9\n");
	assert_int_equal(stats.nr_frames, 4);
}

static void test_waits(void **state)
{
	const struct sb_batch_count counts[] = {
		COUNT(9, .ustack = { 3, 1 }, .kstack = { 11, 1 }, .state = SB_STATE_SLEEP),
		COUNT(8, .ustack = { 2, 1 }, .kstack = { 11, 1 }, .state = SB_STATE_SLEEP),
		COUNT(7, .ustack = { 2, 1 }, .kstack = { 12, 1 }, .state = SB_STATE_SLEEP),
		COUNT(6, .ustack = { 2, 1 }, .kstack = { 12, 1 }, .state = SB_STATE_RUNQUEUE),
		COUNT(5, .ustack = { 1, 1 }, .kstack = { 11, 1 }, .state = SB_STATE_SLEEP),
	};
	struct sb_resolve_opts opts = { .views[0].trim = trim, .views[0].has_idle = true };

	assert_int_equal(resolve(&opts, NULL, 0, counts, 5), 0);
	assert_string_equal(
		folded,
		"app;root;wait_for_work;pthread_cond_wait;futex_do_wait;schedule;[idle: worker] 9\n"
		"app;root;work;__lll_lock_wait;futex_do_wait;schedule;[lock: mutex] 8\n"
		"app;root;work;__lll_lock_wait;ep_poll;schedule;[idle: epoll] 7\n"
		"app;root;work;__lll_lock_wait;ep_poll;schedule 6\n"
		"app;root;work;pthread_cond_wait;futex_do_wait;schedule 5\n");
	assert_int_equal(stats.lock_weight, 8);
	opts.idle = SB_IDLE_DIM;
	assert_int_equal(resolve(&opts, NULL, 0, counts, 2), 0);
	assert_string_equal(
		folded, "[idle];app;root;wait_for_work;pthread_cond_wait;futex_do_wait;schedule 9\n"
			"app;root;work;__lll_lock_wait;futex_do_wait;schedule;[lock: mutex] 8\n");
	opts.idle = SB_IDLE_DROP;
	assert_int_equal(resolve(&opts, NULL, 0, counts, 3), 0);
	assert_string_equal(
		folded, "app;root;work;__lll_lock_wait;futex_do_wait;schedule;[lock: mutex] 8\n");
	assert_int_equal(stats.idle_weight, 16);
	assert_int_equal(stats.lock_weight, 8);
	assert_int_equal(stats.nr_samples, 1);
	/* Stacks that were left out are not counted as complete or cut. */
	assert_int_equal(stats.nr_user_stacks, 1);
	assert_int_equal(stats.nr_status[SB_STACK_COMPLETE], 1);
}

static const char *op_name(uint32_t op)
{
	return op == 3 ? "sys_read" : NULL;
}

#define NR_FILES (sizeof(files) / sizeof(*files))

static int resolve_files(const struct sb_resolve_opts *opts)
{
	struct sb_batch_object objects[NR_FILES + 1] = {};
	struct sb_batch_count counts[NR_FILES + 1] = {};
	size_t i;

	for (i = 0; i < NR_FILES; i++) {
		objects[i] = (struct sb_batch_object){
			.id = i + 1,
			.kind = SB_OBJECT_FILE,
			.nr_bytes = sizeof(files[i]),
			.data = &files[i],
		};
		counts[i] = (struct sb_batch_count)COUNT(100 - i, .object = i + 1, .op = 3);
	}
	objects[NR_FILES] = objects[0]; /* shipped again */
	counts[NR_FILES] = (struct sb_batch_count)COUNT(1, .object = 999);
	return resolve(opts, objects, NR_FILES + 1, counts, NR_FILES + 1);
}

static void test_files(void **state)
{
	struct sb_resolve_opts opts = { .views[0].op_name = op_name };

	assert_int_equal(resolve_files(&opts), 0);
	assert_string_equal(folded, "app;sys_read;/ 183\n" /* the directory, and nothing but NULs */
				    "app;sys_read;/a/bb/c 100\n"
				    "app;sys_read;[...]/x (deleted) 99\n"
				    "app;sys_read;ext4:/x 98\n"
				    "app;sys_read;[pipe] 97\n"
				    "app;sys_read;[socket: tcp] 96\n"
				    "app;sys_read;[socket: family 99] 95\n"
				    "app;sys_read;[anon: eventfd] 94\n"
				    "app;sys_read;[file: 5] 92\n"
				    "app;sys_read;/abcdefghijklmno 91\n"
				    "app;[lost object] 1\n");
	assert_int_equal(stats.nr_missing_objects, 1);
	opts.file = SB_FILE_TEXT_FULL;
	assert_int_equal(resolve_files(&opts), 0);
	assert_non_null(strstr(folded, "app;sys_read;pipe:[7] 97\n"));
	assert_non_null(strstr(folded, "app;sys_read;socket:[8] 96\n"));
	opts.file = SB_FILE_TEXT_BASE;
	assert_int_equal(resolve_files(&opts), 0);
	assert_non_null(strstr(folded, "app;sys_read;c 100\n"));
	opts.file = SB_FILE_TEXT_NONE;
	assert_int_equal(resolve_files(&opts), 0);
	assert_non_null(strstr(folded, "app;sys_read 1045\n"));
}

static void test_path(void **state)
{
	const struct sb_resolve_opts opts = { .views[0].op_name = op_name, .path_glob = "/a/*" };

	assert_int_equal(resolve_files(&opts), 0);
	assert_string_equal(folded, "app;sys_read;/a/bb/c 100\napp;[lost object] 1\n");
	assert_int_equal(stats.nr_unwanted, NR_FILES - 1);
}

static void test_short_object(void **state)
{
	const struct sb_resolve_opts opts = {};
	const struct sb_batch_object too_short = {
		.id = 1, .kind = SB_OBJECT_FILE, .nr_bytes = 8, .data = files
	};
	const struct sb_batch_object unknown = {
		.id = 1, .kind = 77, .nr_bytes = 64, .data = files
	};

	assert_int_equal(resolve(&opts, &too_short, 1, NULL, 0), -EBADMSG);
	assert_int_equal(resolve(&opts, &unknown, 1, NULL, 0), -EBADMSG);
}

static void test_wakers(void **state)
{
	const struct sb_resolve_opts opts = { .views[0].trim = trim };
	const struct sb_batch_object objects[] = {
		{ .id = 1, .kind = SB_OBJECT_TASK, .nr_bytes = sizeof(task), .data = &task },
		{ .id = 2, .kind = SB_OBJECT_WAKER, .nr_bytes = sizeof(waker), .data = &waker },
	};
	const struct sb_batch_count counts[] = {
		COUNT(9, .ustack = { 1, 1 }, .kstack = { 11, 1 }, .object = 2),
		COUNT(8, .ustack = { 1, 1 }, .kstack = { 13, 1 }, .object = 1),
		COUNT(7, .object = 2),
	};

	nr_waker_lookups = 0;
	assert_int_equal(resolve(&opts, objects, 2, counts, 3), 0);
	/* Its process may have ended before the second wait. */
	assert_int_equal(nr_waker_lookups, 1);
	assert_string_equal(folded,
			    "app;root;work;pthread_cond_wait;futex_do_wait;schedule;--;wake_up_q;"
			    "__lll_lock_wait;work;root;waker 9\n"
			    "app;root;work;pthread_cond_wait;wake_up_q;sleeper 8\n"
			    "app;--;wake_up_q;__lll_lock_wait;work;root;waker 7\n");
	/* Wakers' stacks are no samples of their own. */
	assert_int_equal(stats.nr_samples, 3);
	assert_int_equal(stats.nr_user_stacks, 2);
}

/* Not who was interrupted wakes, but the interrupt. */
static void test_interrupts(void **state)
{
	const struct sb_resolve_opts opts = { .views[0].trim = trim,
					      .views[0].is_of_wakers = true };
	struct sb_object_waker timer_waker = waker;
	const struct sb_batch_object objects[] = {
		{ .id = 1, .kind = SB_OBJECT_TASK, .nr_bytes = sizeof(task), .data = &task },
		{ .id = 2,
		  .kind = SB_OBJECT_WAKER,
		  .nr_bytes = sizeof(waker),
		  .data = &timer_waker },
	};
	const struct sb_batch_count counts[] = {
		COUNT(9, .ustack = { 1, 1 }, .kstack = { 14, 1 }, .object = 1),
		COUNT(8, .kstack = { 14, 1 }, .object = 1),
		COUNT(7, .ustack = { 2, 1 }, .kstack = { 11, 1 }, .object = 2),
		COUNT(6, .ustack = { 2, 1 }, .object = 1),
		COUNT(5, .ustack = { 1, 1 }, .kstack = { 15, 1 }, .object = 1),
	};

	timer_waker.kstack = (struct sb_stack_id){ 14, 1 };
	assert_int_equal(resolve(&opts, objects, 2, counts, 5), 0);
	assert_string_equal(folded, "[interrupt];asm_sysvec_timer;hrtimer_wakeup;sleeper 22\n"
				    "app;root;work;__lll_lock_wait;futex_do_wait;schedule;--;"
				    "hrtimer_wakeup;asm_sysvec_timer;[interrupt] 7\n"
				    "app;root;work;__lll_lock_wait;sleeper 6\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),	cmocka_unit_test(test_waits),
		cmocka_unit_test(test_views),	cmocka_unit_test(test_files),
		cmocka_unit_test(test_path),	cmocka_unit_test(test_short_object),
		cmocka_unit_test(test_wakers),	cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_trimmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
