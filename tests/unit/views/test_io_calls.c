// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view of I/O on a kernel that has none of the tracepoints. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/reason.h"
#include "views/skel.h"
#include "views/views.h"

struct bpf_link *__wrap_bpf_program__attach_tracepoint(const struct bpf_program *prog,
						       const char *category, const char *name);
int __wrap_sb_io_uring_attach(struct sampler_bpf *skel, sb_vec_link *links,
			      struct sb_reason *reason);
const char *__wrap_sb_io_uring_missing(const struct sampler_bpf *skel);
const char *__wrap_sb_io_kernel_missing(const struct sampler_bpf *skel);

static char missing[2048];

struct bpf_link *__wrap_bpf_program__attach_tracepoint(const struct bpf_program *prog,
						       const char *category, const char *name)
{
	errno = ENOENT;
	return NULL;
}

int __wrap_sb_io_uring_attach(struct sampler_bpf *skel, sb_vec_link *links,
			      struct sb_reason *reason)
{
	return 0;
}

const char *__wrap_sb_io_uring_missing(const struct sampler_bpf *skel)
{
	return NULL;
}

const char *__wrap_sb_io_kernel_missing(const struct sampler_bpf *skel)
{
	return NULL;
}

static void row(const char *name, const char *value)
{
	if (!strcmp(name, "calls without tracepoint"))
		strncpy(missing, value, sizeof(missing) - 1);
}

static void test_all_missing_are_named(void **state)
{
	const struct sb_view_opts opts = { .io_weight = SB_IO_COUNT };
	struct sampler_bpf skel = {};
	struct sb_reason reason = {};
	sb_vec_link links = {};

	assert_int_equal(sb_view_io.attach(&skel, &opts, &links, &reason), 0);
	sb_view_io.report(&skel, 0, row);
	assert_memory_equal(missing, "sys_read sys_write ", 19);
	assert_non_null(strstr(missing, " sys_sendmmsg "));
	assert_string_equal(missing + strlen(missing) - 14, " sys_fallocate");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_missing_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
