// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A self-test that fails is made again, a bounded number of times, and not by each of the looks
 * that follow closely. This program looks as if it were one of Perl's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "interp/core/interp_priv.h"

/* As in user/interp/core/interp.c. */
#define DOUBTS_MAX 10

#define EXPORTED   __attribute__((used, visibility("default")))
EXPORTED const uint8_t PL_revision = 5, PL_version = 36, PL_subversion = 0;
/* struct stackinfo: no context, the main stack. */
static const uint32_t whole[12] = { [8] = UINT32_MAX, [11] = 1 };
/* In the middle of a change: a stack that has more contexts than there can be. */
static const uint32_t torn[12] = { [8] = INT32_MAX, [11] = 1 };
EXPORTED const void *PL_curstackinfo = torn, *PL_curcop = whole;

/* The time: pauses between looks are those that the watch makes, unless a test says so. */
static uint64_t now_ns = 1;

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
	(void)id;
	*ret = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				  .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

struct said {
	size_t nr_all, nr_walked, nr_pending;
	char why[256];
};

static int note(void *arg, const struct sb_interp_found *found)
{
	struct said *said = arg;

	said->nr_all++;
	said->nr_walked += !found->why;
	said->nr_pending += found->is_pending;
	strncpy(said->why, found->why ? found->why : "", sizeof(said->why) - 1);
	return 0;
}

/* Look @nr times, @pause_ns apart, each of which has to return @wanted. */
static struct said look_fast(struct sb_interp *interp, int nr, uint64_t pause_ns, int wanted)
{
	const struct sb_space_key key = { .start_ns = 1, .tgid = (uint32_t)getpid() };
	struct sb_interp_confs confs;
	struct said said = {};

	for (; nr--; now_ns += pause_ns)
		assert_int_equal(sb_interp_look(interp, &key, &confs), wanted);
	sb_interp_each(interp, note, &said);
	assert_int_equal(said.nr_all, 1);
	assert_int_equal(said.nr_pending, 0); /* it is said why it is not walked */
	assert_int_equal(confs.nr, said.nr_walked);
	return said;
}

/* With pauses as long as they become. */
static struct said look(struct sb_interp *interp, int nr, int wanted)
{
	return look_fast(interp, nr, 1000000000, wanted);
}

static struct sb_interp *make(const void *stack)
{
	struct sb_interp *interp;

	PL_curstackinfo = stack;
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){}, &interp), 0);
	return interp;
}

static void one_that_was_changing_is_walked_later(void **state)
{
	struct sb_interp *interp = make(torn);
	struct said said = look(interp, DOUBTS_MAX - 1, -EAGAIN);

	(void)state;
	assert_non_null(strstr(said.why, "its memory does not match the layout of this version"));
	PL_curstackinfo = whole;
	assert_int_equal(look(interp, 1, 0).nr_walked, 1);
	sb_interp_free(interp);
}

/* A process that maps much code is looked at every 20 ms. */
static void looks_in_a_row_do_not_use_all_tests(void **state)
{
	struct sb_interp *interp = make(torn);

	(void)state;
	look_fast(interp, 45, 20000000, -EAGAIN);
	PL_curstackinfo = whole;
	now_ns += 1000000000;
	assert_int_equal(look(interp, 1, 0).nr_walked, 1);
	sb_interp_free(interp);
}

static void one_that_is_never_right_is_refused(void **state)
{
	struct sb_interp *interp = make(torn);

	(void)state;
	look(interp, DOUBTS_MAX - 1, -EAGAIN);
	look(interp, 1, 0);
	/* For good. */
	PL_curstackinfo = whole;
	assert_int_equal(look(interp, 1, 0).nr_walked, 0);
	sb_interp_free(interp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_was_changing_is_walked_later),
		cmocka_unit_test(looks_in_a_row_do_not_use_all_tests),
		cmocka_unit_test(one_that_is_never_right_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
