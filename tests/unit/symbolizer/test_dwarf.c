// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The DWARF reader, asked about this very program: what is inlined where stands below, on lines
 * the compiler tells us. Compilers, versions and packings: dwarf_matrix.py. Real programs:
 * dwarf_agree.py.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "symbolizer/dwarf/dwarf_map.h"
#include "symbolizer/dwarf/sb_dwarf.h"

#define FRAMES_MAX    8
#define EXE_BYTES_MAX (256u << 20)

/* clang-format off: what is on which line matters */
static const int inner_line = __LINE__ + 1;
static inline __attribute__((always_inline)) int inner(int a)
{
	__asm__ volatile(".globl probe_inner\nprobe_inner: nop" : "+r"(a));
	return a + 1;
}
static const int middle_line = __LINE__ + 1;
static inline __attribute__((always_inline)) int middle(int a)
{
	return inner(a) * 2;
}
static const int outer_line = __LINE__ + 1;
static __attribute__((noinline, noclone)) int outer(int a)
{
	int sum = middle(a);
	__asm__ volatile(".globl probe_outer\nprobe_outer: nop" : "+r"(sum));
	return sum;
}
/* clang-format on */
extern const char probe_inner[], probe_outer[];

static int note_bias(struct dl_phdr_info *info, size_t size, void *ret_bias)
{
	*(uintptr_t *)ret_bias = info->dlpi_addr;
	return 1; /* the first one is the program */
}

/* Address in the file of one in this process. */
static uint64_t file_addr(const void *at)
{
	uintptr_t bias = 0;

	dl_iterate_phdr(note_bias, &bias);
	return (uintptr_t)at - bias;
}

static int open_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	sb_cleanup(sb_closep) int fd = open_self();

	assert_int_equal(outer(1), 4);
	assert_int_equal(sb_dwarf_new(fd, -1, true, NULL, (struct sb_dwarf **)state), 0);
	return 0;
}

static int teardown(void **state)
{
	sb_dwarf_free(*state);
	return 0;
}

static void assert_frame(const struct sb_dwarf_frame *frame, const char *name, int line,
			 int decl_line)
{
	assert_string_equal(frame->name, name);
	assert_null(frame->linkage_name);
	assert_int_equal(frame->line, line);
	assert_int_equal(frame->decl_line, decl_line);
	assert_non_null(frame->file);
	assert_string_equal(strrchr(frame->file, '/'), "/test_dwarf.c");
	assert_int_equal(frame->file[0], '/');
}

static void test_chain(void **state)
{
	struct sb_dwarf_frame frames[FRAMES_MAX];
	size_t nr = 0;

	assert_int_equal(sb_dwarf_lookup(*state, file_addr(probe_inner), frames, FRAMES_MAX, &nr),
			 0);
	assert_int_equal(nr, 3);
	assert_frame(&frames[0], "inner", inner_line + 2, inner_line);
	assert_frame(&frames[1], "middle", middle_line + 2, middle_line);
	assert_frame(&frames[2], "outer", outer_line + 2, outer_line);
	assert_true(frames[0].is_inlined && frames[1].is_inlined && !frames[2].is_inlined);

	assert_int_equal(sb_dwarf_lookup(*state, file_addr(probe_outer), frames, FRAMES_MAX, &nr),
			 0);
	assert_int_equal(nr, 1);
	assert_frame(&frames[0], "outer", outer_line + 3, outer_line);
}

static void test_outermost_kept(void **state)
{
	struct sb_dwarf_frame frames[2];
	size_t nr = 0;

	assert_int_equal(sb_dwarf_lookup(*state, file_addr(probe_inner), frames, 2, &nr), 0);
	assert_int_equal(nr, 2);
	assert_frame(&frames[0], "middle", middle_line + 2, middle_line);
	assert_frame(&frames[1], "outer", outer_line + 2, outer_line);
	assert_int_equal(sb_dwarf_lookup(*state, file_addr(probe_inner), frames, 0, &nr), 0);
	assert_int_equal(nr, 0);
}

static void test_without_lines(void **state)
{
	sb_cleanup(sb_closep) int fd = open_self();
	struct sb_dwarf_frame frames[FRAMES_MAX];
	struct sb_dwarf *dwarf;
	size_t nr = 0;

	assert_int_equal(sb_dwarf_new(fd, -1, false, NULL, &dwarf), 0);
	/* .debug_line is not even in memory. */
	assert_true(sb_dwarf_bytes(dwarf) < sb_dwarf_bytes(*state));
	assert_int_equal(sb_dwarf_lookup(dwarf, file_addr(probe_inner), frames, FRAMES_MAX, &nr),
			 0);
	assert_int_equal(nr, 3);
	assert_int_equal(frames[0].line, 0);
	assert_int_equal(frames[1].line, middle_line + 2);
	assert_null(frames[1].file);
	sb_dwarf_free(dwarf);
}

static void test_unknown_address(void **state)
{
	struct sb_dwarf_frame frames[FRAMES_MAX];
	size_t nr = 7;

	assert_int_equal(sb_dwarf_lookup(*state, 0, frames, FRAMES_MAX, &nr), 0);
	assert_int_equal(nr, 0);
	assert_int_equal(sb_dwarf_lookup(*state, UINT64_MAX, frames, FRAMES_MAX, &nr), 0);
	assert_int_equal(nr, 0);
	/* Data, not code. */
	assert_int_equal(sb_dwarf_lookup(*state, file_addr(&inner_line), frames, FRAMES_MAX, &nr),
			 0);
	assert_int_equal(nr, 0);
}

static void test_bytes(void **state)
{
	struct sb_dwarf_frame frames[FRAMES_MAX];
	size_t nr, before = sb_dwarf_bytes(*state);

	assert_true(before > 0);
	assert_int_equal(sb_dwarf_lookup(*state, file_addr(probe_inner), frames, FRAMES_MAX, &nr),
			 0);
	assert_true(sb_dwarf_bytes(*state) > before);
}

static int new_from(const void *data, size_t len)
{
	sb_cleanup(sb_closep) int fd = memfd_create("test", MFD_CLOEXEC);
	struct sb_dwarf *dwarf = NULL;
	int err;

	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, data, len), 0);
	err = sb_dwarf_new(fd, -1, true, NULL, &dwarf);
	assert_true(!err == !!dwarf);
	sb_dwarf_free(dwarf);
	return err;
}

static void test_errors(void **state)
{
	sb_cleanup(sb_freep) char *exe = NULL;
	sb_cleanup(sb_closep) int self = open_self();
	sb_cleanup(sb_closep) int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sb_dwarf *dwarf;
	size_t len, cut;

	assert_int_equal(sb_dwarf_new(dir, -1, true, NULL, &dwarf), -EBADMSG);
	assert_int_equal(sb_dwarf_new(-1, -1, true, NULL, &dwarf), -EBADF);
	assert_int_equal(new_from("", 0), -EBADMSG);
	assert_int_equal(sb_read_fd(self, EXE_BYTES_MAX, &exe, &len), 0);
	assert_int_equal(new_from(exe, len), 0);
	/* Section headers are at the end: cut off, or promising more than there is. */
	for (cut = 0; cut < 16; cut++)
		assert_int_equal(new_from(exe, len / 16 * cut), -EBADMSG);
	((Elf64_Ehdr *)exe)->e_shnum = 0;
	assert_int_equal(new_from(exe, len), -ENODATA);
	exe[EI_DATA] = exe[EI_DATA] == ELFDATA2LSB ? ELFDATA2MSB : ELFDATA2LSB;
	((Elf64_Ehdr *)exe)->e_shnum = 1;
	assert_int_equal(new_from(exe, len), -ENODATA);
}

/* Paint nested random ranges into @truth, and append them to @ranges. */
static void nest(sb_dwarf_ranges *ranges, uint32_t *truth, uint32_t lo, uint32_t hi, uint32_t depth)
{
	uint32_t at, value;

	for (at = lo; at < hi;) {
		uint32_t start = at + (uint32_t)rand() % 9, end = start + 1 + (uint32_t)rand() % 40;

		end = end < hi ? end : hi;
		if (start >= end)
			break;
		value = (uint32_t)ranges->nr;
		assert_int_equal(sb_vec_push(ranges, (struct sb_dwarf_range){ .lo = start,
									      .hi = end,
									      .value = value,
									      .depth = depth }),
				 0);
		for (at = start; at < end; at++)
			truth[at] = value;
		if (depth < 4)
			nest(ranges, truth, start, end, depth + 1);
		at = end;
	}
}

static void test_map(void **state)
{
	uint32_t truth[1000], at, round;

	for (round = 0; round < 200; round++) {
		sb_dwarf_ranges ranges = {};
		struct sb_dwarf_map map;

		srand(round);
		memset(truth, 0xff, sizeof(truth));
		nest(&ranges, truth, 0, 1000, 0);
		assert_int_equal(sb_dwarf_map_build(&ranges, &map), 0);
		for (at = 0; at < 1000; at++)
			assert_int_equal(sb_dwarf_map_at(&map, at), truth[at]);
		assert_int_equal(sb_dwarf_map_at(&map, UINT32_MAX), SB_DWARF_NONE);
		sb_dwarf_map_release(&map);
		sb_vec_release(&ranges);
	}
}

/* Compilers have been seen to write all of these. */
static void test_map_odd(void **state)
{
	static const struct sb_dwarf_range odd[] = {
		{ .lo = 10, .hi = 20, .value = 0, .depth = 0 },
		{ .lo = 15, .hi = 30, .value = 1, .depth = 1 }, /* beyond what it is in */
		{ .lo = 40, .hi = 50, .value = 2, .depth = 0 },
		{ .lo = 40, .hi = 50, .value = 3, .depth = 0 }, /* folded code */
		{ .lo = 60, .hi = 70, .value = 4, .depth = 0 },
		{ .lo = 65, .hi = 75, .value = 5, .depth = 0 }, /* overlap */
		{ .lo = 80, .hi = 80, .value = 6, .depth = 0 }, /* nothing */
	};
	static const struct {
		uint32_t at, value;
	} truth[] = {
		{ 9, SB_DWARF_NONE },
		{ 10, 0 },
		{ 15, 1 },
		{ 19, 1 },
		{ 20, SB_DWARF_NONE },
		{ 39, SB_DWARF_NONE },
		{ 40, 3 },
		{ 49, 3 },
		{ 50, SB_DWARF_NONE },
		{ 64, 4 },
		{ 65, 5 },
		{ 74, 5 },
		{ 75, SB_DWARF_NONE },
		{ 80, SB_DWARF_NONE },
	};
	sb_dwarf_ranges ranges = {};
	struct sb_dwarf_map map;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(odd); i++)
		assert_int_equal(sb_vec_push(&ranges, odd[i]), 0);
	assert_int_equal(sb_dwarf_map_build(&ranges, &map), 0);
	for (i = 0; i < SB_ARRAY_SIZE(truth); i++)
		assert_int_equal(sb_dwarf_map_at(&map, truth[i].at), truth[i].value);
	sb_dwarf_map_release(&map);
	sb_vec_release(&ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outermost_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes, setup, teardown),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_map_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
