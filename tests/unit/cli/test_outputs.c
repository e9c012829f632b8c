// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What becomes of an output that cannot be written. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/outputs.h"

/* An output that is missing is an error of the run, though it is the format that does not fit. */
static void test_no_durations(void **state)
{
	const struct sb_frame frame = { .name = "main" };
	const struct sb_output_opts opts = {};
	struct sb_outputs outputs = {};
	struct sb_profile *profile;
	uint32_t id;

	(void)state;
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_profile_frame(profile, &frame, &id), 0);
	assert_int_equal(sb_profile_add(profile, &id, 1, 7), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_outputs_add(&outputs, "-", sb_output_find("distr")), -1);
	assert_int_equal(sb_outputs_write(&outputs, profile, &opts), -EINVAL);
	sb_outputs_release(&outputs);
	sb_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
