// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Descendants of a target, with a BPF map that is only these functions. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "capture/targets.h"
#include "views/skel.h"

int __wrap_bpf_map__fd(const struct bpf_map *map);
int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value);
int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags);

static uint32_t child;
static bool is_followed;
static int update_errno;

int __wrap_bpf_map__fd(const struct bpf_map *map)
{
	return -1;
}

int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const uint32_t rule = SB_RULE_ALLOW | SB_RULE_FOLLOW;
	uint32_t tgid;

	memcpy(&tgid, key, sizeof(tgid));
	if (tgid != (uint32_t)getpid() && (tgid != child || !is_followed)) {
		errno = ENOENT;
		return -1;
	}
	memcpy(value, &rule, sizeof(rule));
	return 0;
}

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	errno = update_errno;
	if (update_errno)
		return -1;
	is_followed = true;
	return 0;
}

static uint64_t left_out(int err)
{
	const struct sb_targets targets = { .follow_children = true };
	struct sampler_bpf skel = {};
	uint64_t nr;

	is_followed = false;
	update_errno = err;
	assert_int_equal(sb_targets_follow_existing(&targets, &skel, &nr), 0);
	return nr;
}

static void test_left_out_is_counted(void **state)
{
	uint64_t nr[3];
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	child = (uint32_t)pid;
	nr[0] = left_out(E2BIG);
	nr[1] = left_out(EEXIST); /* the hook of fork was faster */
	nr[2] = left_out(0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(nr[0], 1);
	assert_int_equal(nr[1], 0);
	assert_int_equal(nr[2], 0);
	assert_true(is_followed);
}

static void *fork_child(void *arg)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	child = (uint32_t)pid;
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	return NULL;
}

/* Without targets, every helper process gets our rule, whichever thread has forked it. */
static void test_helpers_are_found(void **state)
{
	const struct sb_targets targets = {};
	struct sampler_bpf skel = {};
	pthread_barrier_t barrier;
	pthread_t thread;
	uint64_t nr;
	int err;

	is_followed = false;
	update_errno = 0;
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, fork_child, &barrier), 0);
	pthread_barrier_wait(&barrier);
	err = sb_targets_follow_existing(&targets, &skel, &nr);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	kill((pid_t)child, SIGKILL);
	assert_int_equal(waitpid((pid_t)child, NULL, 0), child);
	assert_int_equal(err, 0);
	assert_int_equal(nr, 0);
	assert_true(is_followed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_helpers_are_found),
		cmocka_unit_test(test_left_out_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
