// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Containers by the name of their cgroup. Ids to paths: test_base_root.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cgroup.h"
#include "base/cleanup.h"

#define ID_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void test_container(void **state)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{ "/system.slice/docker-" ID_A ".scope", "0123456789ab" },
		{ "/docker/" ID_A, "0123456789ab" },
		{ "/docker/" ID_A "/init.scope", "0123456789ab" },
		{ "/kubepods.slice/x.slice/cri-containerd-" ID_B ".scope", "fedcba987654" },
		{ "/docker/" ID_A "/docker/" ID_B,
		  "fedcba987654" }, /* one inside another: the inner */
		{ "/libpod-" ID_B ".scope/container", "fedcba987654" },
		{ "/docker/" ID_A "0", NULL }, /* 65 digits are something else */
		{ "/user.slice/user-1000.slice/session-2.scope", NULL },
		{ "/", NULL },
		{ "", NULL },
	};
	struct sb_str str = {};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		sb_str_clear(&str);
		assert_int_equal(sb_str_add(&str, "in "), 0);
		assert_int_equal(sb_cgroup_container(rows[i].path, &str),
				 rows[i].want ? 0 : -ENOENT);
		assert_string_equal(str.s + 3, rows[i].want ? rows[i].want : "");
	}
	sb_str_release(&str);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
