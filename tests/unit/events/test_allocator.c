// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The places at which functions of allocators are hooked: this program has some, which are not
 * called. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/reason.h"
#include "base/str.h"
#include "events/allocator.h"

#if defined(__x86_64__)
#define FUNCTION(name, code)                                                                  \
	__asm__(".text\n.globl " name "\n.type " name ",@function\n" name ": " code "\nret\n" \
		".size " name ", .-" name "\n")
FUNCTION("je_malloc", "endbr64\npush %r12\npop %r12");
FUNCTION("je_calloc", "endbr64\nlea 1(%rdi), %rax");
FUNCTION("je_valloc", "test %rdi, %rdi\nje 1f\npush %rbp\npop %rbp\n1:");
FUNCTION("je_free", "endbr64\ntest %rdi, %rdi\n.byte 0x0f, 0x84\n.long 2\npush %rbp\npop %rbp");
/* As a program of Go 1.27 has them. */
FUNCTION("runtime.goexit.abi0", "nop");
FUNCTION("runtime.mallocgc", "nop");
FUNCTION("runtime.mallocgcLarge", "nop");
FUNCTION("runtime.mallocgcTinySC2", "nop");
FUNCTION("runtime.mallocgcSmallScanNoHeaderSC17", "nop");
FUNCTION("runtime.mallocgcTinySlowPath", "nop");
FUNCTION("runtime.mallocinit", "nop");

static bool has_place(const struct sb_probes *probes, const char *function)
{
	size_t i;

	for (i = 0; i < probes->places.nr; i++)
		if (sb_streq(probes->places.at[i].function, function))
			return true;
	return false;
}

static void find_own(struct sb_probes *probes, bool is_held, struct sb_alloc_found *ret_found)
{
	const char *const files[] = { "/proc/self/exe" };
	const struct sb_alloc_ask ask = { .files = files, .nr_files = 1, .is_held = is_held };
	struct sb_reason reason = {};

	if (sb_alloc_find(probes, &ask, ret_found, &reason))
		fail_msg("%s", reason.text);
}

/* Each allocation once: in what the allocator calls, which compiled code calls as well. */
static void test_go_by_size(void **state)
{
	struct sb_probes probes = {};
	struct sb_alloc_found found;

	(void)state;
	find_own(&probes, false, &found);
	assert_int_equal(found.own_heaps, 0);
	assert_true(has_place(&probes, "runtime.mallocgcLarge"));
	assert_true(has_place(&probes, "runtime.mallocgcTinySC2"));
	assert_true(has_place(&probes, "runtime.mallocgcSmallScanNoHeaderSC17"));
	assert_false(has_place(&probes, "runtime.mallocgc"));
	assert_false(has_place(&probes, "runtime.mallocgcTinySlowPath"));
	assert_false(has_place(&probes, "runtime.mallocinit"));
	sb_probes_release(&probes);
}

static uint64_t behind(const struct sb_probes *probes, const char *function)
{
	size_t i;

	for (i = 0; i < probes->places.nr; i++)
		if (sb_streq(probes->places.at[i].function, function))
			return probes->places.at[i].behind;
	fail_msg("there is no place for %s()", function);
	return 0;
}

/* Where the kernel can do without a debug exception, and no call is missed that allocates or gives
 * back. */
static void test_cheap_places(void **state)
{
	struct sb_probes probes = {};
	struct sb_alloc_found found;

	(void)state;
	find_own(&probes, true, &found);
	assert_int_equal(found.source, SB_ALLOC_FUNCTIONS);
	assert_int_equal(behind(&probes, "je_malloc"), 4);
	assert_int_equal(behind(&probes, "je_calloc"), 0);
	assert_int_equal(behind(&probes, "je_valloc"), 0);
	assert_int_equal(behind(&probes, "je_free"), 4 + 3 + 6);
	sb_probes_release(&probes);
}

/* Any function is hooked behind endbr64 if a push follows; but no call may be missed, whatever its
 * arguments. */
static void test_cheap_events(void **state)
{
	static const char *const names[] = { "je_malloc", "je_calloc", "je_free" };
	static const uint64_t expected[] = { 4, 0, 0 };
	struct sb_probes probes = {};
	struct sb_reason reason = {};
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "/proc/self/exe:%s", names[i]);
		if (sb_probes_add(&probes, text, &reason))
			fail_msg("%s", reason.text);
		assert_int_equal(behind(&probes, names[i]), expected[i]);
	}
	sb_probes_release(&probes);
}

/* The kernel is led to the file that was read, whatever has its path now; until the list is
 * released. */
static void test_file_is_kept(void **state)
{
	char path[] = "/tmp/test_allocator.XXXXXX";
	const char *const files[] = { path };
	const struct sb_alloc_ask ask = { .files = files, .nr_files = 1 };
	struct sb_probes probes = {};
	struct sb_reason reason = {};
	struct sb_alloc_found found;
	struct stat was, is;
	char link[SB_PROBE_LINK_BYTES];
	int fd = mkstemp(path), from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0 && from >= 0);
	while (sendfile(fd, from, NULL, 1 << 20) > 0)
		;
	assert_int_equal(fstat(fd, &was), 0);
	close(fd);
	close(from);
	if (sb_alloc_find(&probes, &ask, &found, &reason))
		fail_msg("%s", reason.text);
	assert_true(probes.places.nr > 1);
	assert_int_equal(probes.files.nr, 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/proc/self/exe", path), 0);
	snprintf(link, sizeof(link), "%s", probes.places.at[0].link);
	assert_string_equal(probes.places.at[1].link, link);
	assert_int_equal(stat(link, &is), 0);
	assert_true(is.st_dev == was.st_dev && is.st_ino == was.st_ino);
	sb_probes_release(&probes);
	assert_int_equal(stat(link, &is), -1);
	assert_int_equal(unlink(path), 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test(test_go_by_size),
		cmocka_unit_test(test_cheap_places),
		cmocka_unit_test(test_cheap_events),
		cmocka_unit_test(test_file_is_kept),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
