// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Blocks on the way that they take in `record`: encoded, sent, checked and written by the process
 * of the store. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "recorder/store_writer.h"
#include "store/ask.h"
#include "store/block.h"

#define NR_CARS 100u

static char dir[64];
static struct sb_peer writer;
static int stream;
static int64_t begin_s;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	static struct sb_recorder_config opts = { .no_sync = true };
	static const struct sb_watch watch;
	const struct sb_store_writer_kinds kinds = { { { "oncpu", "samples" } }, 1 };
	int fds[2];

	snprintf(dir, sizeof(dir), "/tmp/sb-writer-XXXXXX");
	assert_non_null(mkdtemp(dir));
	opts.store = dir;
	begin_s = sb_level_begin(0, time(NULL) - 60);
	assert_int_equal(sb_store_writer_new(&opts, &watch, &writer), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(sb_store_writer_add(&writer, &kinds, fds[1]), 0);
	close(fds[1]);
	stream = fds[0];
	return 0;
}

static int teardown(void **state)
{
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* All is written. */
static struct sb_store *end(void)
{
	struct sb_recorder_stats stats = {};
	struct sb_store *store;

	close(stream);
	assert_int_equal(sb_store_writer_end(&writer, &stats), 0);
	assert_int_equal(stats.nr_refused + stats.nr_dropped, 0);
	assert_int_equal(sb_store_open(dir, &store), 0);
	return store;
}

/* A stack of one frame for each series. */
static void send_block(int64_t at_s, const struct sb_block_tags *tags, size_t nr,
		       const struct sb_frame *leaf)
{
	struct sb_block_head head = { .begin_s = at_s, .divisor = 1, .figure = { 10000 } };
	struct sb_profile *profile;
	struct sb_str out = {};
	uint64_t tiny;
	struct sb_row row = { .nr = 1, .weight = 3 };
	uint32_t id;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_profile_frame(profile, leaf, &id), 0);
	row.frames = &id;
	for (row.series = 0; row.series < nr; row.series++)
		assert_int_equal(sb_profile_add_row(profile, &row), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_block_encode(&out, &head, profile, tags, nr, &tiny), 0);
	assert_int_equal(sb_write_all(stream, out.s, out.len), 0);
	sb_str_release(&out);
	sb_profile_free(profile);
}

static void send_comms(int64_t at_s, const char *cgroup, const char *prefix, uint32_t nr)
{
	struct sb_block_tags *all = calloc(nr, sizeof(*all));
	struct sb_tag(*tags)[2] = calloc(nr, sizeof(*tags));
	char(*comm)[16] = calloc(nr, sizeof(*comm));
	const struct sb_frame leaf = { .name = "work", .module = "prog", .kind = SB_FRAME_USER };
	uint32_t i;

	assert_true(all && tags && comm);
	for (i = 0; i < nr; i++) {
		snprintf(comm[i], sizeof(comm[i]), "%s%u", prefix, i);
		tags[i][0] = (struct sb_tag){ "cgroup", cgroup, false };
		tags[i][1] = (struct sb_tag){ "comm", comm[i], false };
		all[i] = (struct sb_block_tags){ tags[i], 2, 0 };
	}
	send_block(at_s, all, nr, &leaf);
	free(all);
	free(tags);
	free(comm);
}

static uint64_t weigh(struct sb_store *store, const char *rule)
{
	struct sb_tag_rules rules = {};
	struct sb_store_query query = { begin_s, begin_s + 60, "oncpu", &rules };
	struct sb_store_answer answer;
	struct sb_profile *profile;

	assert_int_equal(sb_tag_rules_add(&rules, rule), 0);
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_store_query(store, &query, profile, &answer), 0);
	sb_profile_free(profile);
	sb_tag_rules_release(&rules);
	return answer.weight;
}

/* One user's threads with generated names take no names from a service that comes later. */
static void test_values(void **state)
{
	struct sb_store *store;
	char rule[32];
	uint32_t i;

	send_comms(begin_s, "/user.slice/user-1000.slice/a", "x", 5000);
	send_comms(begin_s + 10, "/system.slice/car.service", "car", NR_CARS);
	store = end();
	for (i = 0; i < NR_CARS; i++) {
		snprintf(rule, sizeof(rule), "comm=car%u", i);
		assert_int_equal(weigh(store, rule), 3);
	}
	assert_int_equal(weigh(store, "cgroup=/system.slice/car.service"), 3 * NR_CARS);
	assert_int_equal(weigh(store, "cgroup=/user.slice/user-1000.slice/a"), 3 * 5000);
	assert_true(weigh(store, "comm=(other)") > 0);
	sb_store_close(store);
}

/* A user who makes cgroups without end is still told by the slice. */
static void test_cgroups(void **state)
{
	const struct sb_frame leaf = { .name = "work", .module = "prog", .kind = SB_FRAME_USER };
	struct sb_block_tags all[6000];
	struct sb_tag tags[6000];
	char cgroup[6000][48];
	struct sb_store *store;
	uint32_t i;

	for (i = 0; i < 6000; i++) {
		snprintf(cgroup[i], sizeof(cgroup[i]), "/user.slice/user-1000.slice/%u", i);
		tags[i] = (struct sb_tag){ "cgroup", cgroup[i], false };
		all[i] = (struct sb_block_tags){ &tags[i], 1, 0 };
	}
	send_block(begin_s, all, 6000, &leaf);
	send_comms(begin_s + 10, "/system.slice/car.service", "car", 1);
	store = end();
	assert_int_equal(weigh(store, "cgroup=/system.slice/car.service"), 3);
	assert_true(weigh(store, "cgroup=/user.slice/user-1000.slice/(other)") > 0);
	assert_int_equal(weigh(store, "cgroup=~^/user.slice/user-1000.slice/"), 3 * 6000);
	sb_store_close(store);
}

/* A store that could not be made whole is gone again. */
static void test_half_made(void **state)
{
	struct sb_recorder_config opts = {};
	static const struct sb_watch watch;
	struct rlimit before;
	char path[80];

	snprintf(path, sizeof(path), "/tmp/sb-writer-%d", getpid());
	opts.store = path;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 0, before.rlim_max }), 0);
	assert_int_equal(sb_store_writer_new(&opts, &watch, &writer), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(errno, ENOENT);
}

/* Of the process that locks the store; the writer does so once it has made the directory. */
static pid_t survivor;

int flock(int fd, int operation)
{
	if (survivor && getpid() != survivor)
		raise(SIGKILL);
	return (int)syscall(SYS_flock, fd, operation);
}

/* So is one whose writer was killed before it could say anything. */
static void test_killed(void **state)
{
	struct sb_recorder_config opts = {};
	static const struct sb_watch watch;
	char path[80];

	snprintf(path, sizeof(path), "/tmp/sb-writer-%d", getpid());
	opts.store = path;
	survivor = getpid();
	assert_int_equal(sb_store_writer_new(&opts, &watch, &writer), -ECHILD);
	assert_int_equal(access(path, F_OK), -1);
	/* What was there before stays. */
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(sb_store_writer_new(&opts, &watch, &writer), -ECHILD);
	survivor = 0;
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cgroups, setup, teardown),
		cmocka_unit_test(test_half_made),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
