// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/status.h"

/* As the kernel writes it; the name of a process may be the beginning of any line. */
static const char status[] = "Name:\tNSpid:\t7 8\n"
			     "Umask:\t0022\n"
			     "Tgid:\t4242\n"
			     "Uid:\t1000\t0\t0\t1000\n"
			     "Groups:\t \n"
			     "NStgid:\t4242\t17\t1\n"
			     "NSpid:\t4243\t18\t2\n"
			     "VmRSS:\t    1204 kB\n"
			     "Big:\t18446744073709551615 18446744073709551616 3\n"
			     "voluntary_ctxt_switches:\t12\n"
			     "nonvoluntary_ctxt_switches:\t3";

static void test_numbers(void **state)
{
	static const struct {
		const char *key;
		size_t nr;
		uint64_t first, last;
	} rows[] = {
		{ "Tgid", 1, 4242, 4242 },
		{ "Uid", 4, 1000, 1000 },
		{ "NStgid", 3, 4242, 1 },
		{ "NSpid", 3, 4243, 2 },
		{ "Umask", 1, 22, 22 },
		{ "VmRSS", 1, 1204, 1204 },		   /* up to what is no number */
		{ "Big", 1, UINT64_MAX, UINT64_MAX },	   /* or too large a one */
		{ "voluntary_ctxt_switches", 1, 12, 12 },  /* not the end of the other's name */
		{ "nonvoluntary_ctxt_switches", 1, 3, 3 }, /* a last line without its end */
		{ "Groups", 0, 0, 0 },
		{ "gid", 0, 0, 0 },
		{ "NS", 0, 0, 0 },
		{ "Name", 0, 0, 0 },
		{ "", 0, 0, 0 },
	};
	uint64_t nums[4];
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		assert_int_equal(sb_status_numbers(status, rows[i].key, nums, 4), rows[i].nr);
		if (!rows[i].nr)
			continue;
		assert_true(nums[0] == rows[i].first);
		assert_true(nums[rows[i].nr - 1] == rows[i].last);
	}
	nums[2] = 77; /* what there is no room for is counted, and left out */
	assert_int_equal(sb_status_numbers(status, "Uid", nums, 2), 4);
	assert_true(nums[1] == 0 && nums[2] == 77);
	assert_int_equal(sb_status_numbers("", "Uid", nums, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
