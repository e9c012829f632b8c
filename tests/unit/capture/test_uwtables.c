// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files to bins, on the C library that we run with and on copies of it that differ in what is said
 * to matter. What stands in the pool is read as the walker reads it.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "../symbolizer/cfi_each_row.h"
#include "../symbolizer/cfi_image.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "capture/uwtables.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/unwind/cfi.h"

#define NR_BINS 8u

static uint64_t clock_ns;
static struct sb_uw_bin *bins;
static struct sb_uwpool *pool;
static struct sb_uwtables *tables;
static struct sb_uwtables_stats stats;

static char libc_path[4096];
static uint64_t libc_pgoff; /* of its text */
static char *libc;
static size_t libc_bytes;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static int add_part(void *arg, uint32_t idx, void *at)
{
	void *mem = mmap(at, SB_UWPOOL_PART_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return mem == at ? 0 : -ENOMEM;
}

static int setup(void **state)
{
	const struct sb_uwpool_opts pool_opts = { .add_part = add_part, .now_ns = now_ns };
	struct sb_uwtables_opts opts = { .nr_bins_max = NR_BINS, .now_ns = now_ns };

	clock_ns = 1000ull << 30;
	bins = calloc(NR_BINS, sizeof(*bins));
	assert_non_null(bins);
	assert_int_equal(sb_uwpool_new(&pool_opts, &pool), 0);
	opts.bins = bins;
	opts.pool = pool;
	assert_int_equal(sb_uwtables_new(&opts, &tables), 0);
	return 0;
}

static int teardown(void **state)
{
	sb_uwtables_free(tables);
	sb_uwpool_free(pool);
	free(bins);
	return 0;
}

/* A file in memory, so that nothing is left behind. */
static int file_of(const void *data, size_t len)
{
	int fd = memfd_create("uwtables", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, data, len), 0);
	return fd;
}

/* A copy of the C library with another build ID, or with none when @id is 0. */
static int libc_copy(uint8_t id)
{
	static const char note[] = "\4\0\0\0\x14\0\0\0\3\0\0\0GNU";
	char *at = memmem(libc, libc_bytes, note, sizeof(note)), kept;
	int fd;

	assert_non_null(at);
	at += id ? sizeof(note) : 12;
	kept = *at;
	*at = (char)(id ? kept ^ (char)id : 'X');
	fd = file_of(libc, libc_bytes);
	*at = kept;
	return fd;
}

static uint32_t add(int fd)
{
	struct sb_uwtables_spot spot;

	assert_int_equal(sb_uwtables_add(tables, fd, libc_pgoff, &spot), 0);
	assert_int_equal(spot.elf_addr, libc_pgoff); /* as it is linked */
	return spot.bin;
}

static bool find(int fd, uint32_t *ret_bin)
{
	struct sb_uwtables_spot spot;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	if (!sb_uwtables_find(tables, &st, libc_pgoff, &spot))
		return false;
	assert_int_equal(spot.elf_addr, libc_pgoff);
	*ret_bin = spot.bin;
	return true;
}

static int build(uint32_t bin, int fd)
{
	int err = sb_uwtables_build(tables, bin, fd, (uint32_t)getpid());

	sb_uwtables_stats(tables, &stats);
	return err;
}

static void test_identity(void **state)
{
	sb_cleanup(sb_closep) int original = open(libc_path, O_RDONLY | O_CLOEXEC);
	sb_cleanup(sb_closep) int mine = libc_copy(1), same = libc_copy(1), other = libc_copy(2);
	sb_cleanup(sb_closep) int plain = libc_copy(0), plain_too = libc_copy(0);
	const struct timespec times[2] = { { .tv_sec = 5 }, { .tv_sec = 7 } };
	uint32_t bin, of_mine = add(mine), of_plain = add(plain);

	assert_true(original >= 0);
	assert_int_equal(add(same), of_mine);
	bin = add(other);
	assert_int_not_equal(bin, of_mine);
	bin = add(original);
	assert_int_not_equal(bin, of_mine);
	/* Without a build ID, each file is itself, as long as it does not change. */
	bin = add(plain_too);
	assert_int_not_equal(bin, of_plain);
	assert_int_equal(add(plain), of_plain);
	assert_int_equal(futimens(plain, times), 0);
	bin = add(plain);
	assert_int_not_equal(bin, of_plain);

	if (geteuid()) {
		printf("not tried: files of other users need root\n");
		return;
	}
	assert_int_equal(fchown(same, 12345, 12345), 0);
	bin = add(same);
	assert_int_not_equal(bin, of_mine);
}

/* What was seen is known again by stat alone, until it changes. */
static void test_find(void **state)
{
	sb_cleanup(sb_closep) int fd = libc_copy(1), same = libc_copy(1);
	const struct timespec times[2] = { { .tv_sec = 5 }, { .tv_sec = 7 } };
	uint32_t bin, of_fd;

	assert_false(find(fd, &bin));
	of_fd = add(fd);
	assert_true(find(fd, &bin));
	assert_int_equal(bin, of_fd);
	assert_false(find(same, &bin));
	assert_int_equal(futimens(fd, times), 0);
	assert_false(find(fd, &bin));
}

static void test_no_elf(void **state)
{
	sb_cleanup(sb_closep) int text = file_of("#!/bin/sh\n", 10);
	sb_cleanup(sb_closep) int cut = file_of(libc, 20), elf = libc_copy(1);
	struct sb_uwtables_spot spot = { .bin = 77 };

	assert_int_equal(sb_uwtables_add(tables, text, 0, &spot), -ENOEXEC);
	assert_int_equal(sb_uwtables_add(tables, cut, 0, &spot), -ENOEXEC);
	assert_int_equal(sb_uwtables_add(tables, elf, 1ull << 40, &spot), -ENODATA);
	assert_int_equal(spot.bin, 77);
}

/* As the walker does, but one by one. */
static struct sb_uw_rule rule_at(const struct sb_uw_bin *bin, uint64_t addr)
{
	const uint32_t *words = sb_uwpool_words(pool), *index;
	uint64_t granule = (addr - bin->text_lo) >> SB_UW_GRANULE_BITS;
	uint32_t row, id;
	struct sb_uw_rule rule;

	assert_true(addr >= bin->text_lo && granule < bin->nr_granules);
	index = words + bin->index_word + 2 * granule;
	id = index[0];
	if (index[1]) {
		for (row = index[1]; row; row--)
			if ((words[index[0] + row - 1] & 0xffff) <= addr % SB_UW_GRANULE_BYTES)
				break;
		assert_true(row);
		id = words[index[0] + row - 1] >> 16;
	}
	assert_true(id < bin->nr_rules);
	memcpy(&rule, words + bin->rules_word + 2 * id, sizeof(rule));
	return rule;
}

static int check_row(void *arg, const struct cfi_row *row)
{
	const struct sb_uw_bin *bin = arg;
	struct sb_uw_rule rule;

	if ((row->addr - bin->text_lo) >> SB_UW_GRANULE_BITS >= bin->nr_granules)
		return 0;
	rule = rule_at(bin, row->addr);
	assert_memory_equal(&rule, &row->rule, sizeof(rule));
	return 0;
}

static void check_table(const struct sb_uw_bin *bin, int fd)
{
	struct sb_elf *elf = NULL;
	struct sb_cfi *cfi = NULL;

	assert_int_equal(bin->state, SB_UW_BIN_READY);
	assert_int_equal(sb_elf_new_fd(fd, &elf), 0);
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), 0);
	assert_int_equal(cfi_each_row(cfi, check_row, (void *)bin), 0);
	sb_cfi_free(cfi);
	sb_elf_free(elf);
}

static void test_build(void **state)
{
	sb_cleanup(sb_closep) int first = libc_copy(1);
	sb_cleanup(sb_closep) int second = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct sb_uwtables_spot spot;
	struct sb_uwpool_stats used;
	uint32_t a = add(first), b;

	assert_int_equal(sb_uwtables_add(tables, second, 0, &spot), 0);
	b = spot.bin;

	assert_true(sb_uwtables_is_absent(tables, a));
	assert_int_equal(build(a, second), -ESTALE);
	assert_true(sb_uwtables_is_absent(tables, a));
	assert_int_equal(build(a, first), 0);
	assert_int_equal(build(b, second), 0);
	assert_int_equal(build(b, second), 0); /* stands already */
	check_table(&bins[a], first);
	check_table(&bins[b], second);
	assert_int_equal(bins[a].used_s, 1000);
	assert_int_equal(stats.nr_tables, 2);
	assert_int_equal(stats.nr_built, 2);
	assert_int_equal(stats.nr_failed, 0);
	sb_uwpool_stats(pool, &used);
	assert_true(used.nr_bytes > stats.nr_rows * 4 && used.nr_bytes < stats.nr_rows * 6);
}

static struct image img;

static void test_no_cfi(void **state)
{
	sb_cleanup(sb_closep) int none = -1, foreign = -1;
	struct sb_uwtables_spot spot;

	image_init(&img);
	image_finish(&img);
	none = file_of(img.at, img.len);
	assert_int_equal(sb_uwtables_add(tables, none, TEXT_ADDR & 0xfff, &spot), 0);
	assert_int_equal(build(spot.bin, none), 0);
	assert_int_equal(bins[spot.bin].state, SB_UW_BIN_FP_CHAIN);
	assert_int_equal(stats.nr_failed, 0);

	((Elf64_Ehdr *)img.at)->e_machine = EM_S390;
	foreign = file_of(img.at, img.len);
	assert_int_equal(sb_uwtables_add(tables, foreign, TEXT_ADDR & 0xfff, &spot), 0);
	assert_int_equal(build(spot.bin, foreign), 0);
	assert_int_equal(bins[spot.bin].state, SB_UW_BIN_FP_CHAIN);
	assert_int_equal(stats.nr_failed, 1);
}

static void test_vdso(void **state)
{
	struct sb_uwtables_spot spot, again;
	int err = sb_uwtables_add_vdso(tables, &spot);

	if (err == -ENOENT) {
		printf("not tried: there is no vDSO\n");
		return;
	}
	assert_int_equal(err, 0);
	assert_int_equal(sb_uwtables_add_vdso(tables, &again), 0);
	assert_int_equal(again.bin, spot.bin);
	assert_true(sb_uwtables_is_vdso(tables, spot.bin));
	assert_int_equal(build(spot.bin, -1), 0);
	assert_int_equal(bins[spot.bin].state, SB_UW_BIN_READY);
}

/* Leave room for two tables of the C library, with what lies between chunks, besides the share of
 * lists. */
static void fill_pool(uint32_t table_words)
{
	const struct sb_uwpool_want want = { .nr_words = SB_UW_CHUNK_WORDS };
	uint32_t nr = SB_UW_PART_CHUNKS / 16 * 15 - (2 * table_words / SB_UW_CHUNK_WORDS + 1);
	struct sb_uwpool_place place;

	while (nr--)
		assert_int_equal(sb_uwpool_alloc(pool, &want, &place), 0);
}

static uint32_t libc_words(void)
{
	sb_cleanup(sb_closep) int fd = libc_copy(0);
	struct sb_elf *elf = NULL;
	struct sb_cfi *cfi = NULL;
	size_t nr;

	assert_int_equal(sb_elf_new_fd(fd, &elf), 0);
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), 0);
	nr = sb_cfi_words(cfi, 0);
	sb_cfi_free(cfi);
	sb_elf_free(elf);
	return (uint32_t)nr;
}

/* What served longest ago goes; its words are not written to before they have rested. */
static void test_eviction(void **state)
{
	int fds[4] = { libc_copy(1), libc_copy(2), libc_copy(3), libc_copy(4) };
	uint32_t bin[4], i;

	fill_pool(libc_words());
	for (i = 0; i < 4; i++)
		bin[i] = add(fds[i]);
	assert_int_equal(build(bin[0], fds[0]), 0);
	assert_int_equal(build(bin[1], fds[1]), 0);
	bins[bin[0]].used_s = 1500; /* as the walker writes it */
	bins[bin[1]].used_s = 1400;
	clock_ns = 1500ull << 30;

	assert_int_equal(build(bin[2], fds[2]), -EAGAIN);
	assert_int_equal(bins[bin[0]].state, SB_UW_BIN_READY);
	assert_int_equal(bins[bin[1]].state, SB_UW_BIN_ABSENT);
	assert_int_equal(bins[bin[2]].state, SB_UW_BIN_ABSENT);
	assert_int_equal(stats.nr_evictions, 1);
	/* Room is coming: nothing else is evicted, and the file is not even looked at in vain. */
	clock_ns += SB_UWPOOL_REST_NS - 1;
	assert_int_equal(build(bin[2], -1), -EAGAIN);
	assert_int_equal(stats.nr_evictions, 1);
	check_table(&bins[bin[0]], fds[0]);
	clock_ns++;
	assert_int_equal(build(bin[2], fds[2]), 0);
	check_table(&bins[bin[2]], fds[2]);
	check_table(&bins[bin[0]], fds[0]);

	/* The next victim is the other one, now that it served longer ago. */
	bins[bin[2]].used_s = 1600;
	assert_int_equal(build(bin[1], fds[1]), -EAGAIN);
	assert_int_equal(bins[bin[0]].state, SB_UW_BIN_ABSENT);
	clock_ns += SB_UWPOOL_REST_NS;
	assert_int_equal(build(bin[1], fds[1]), 0);
	check_table(&bins[bin[1]], fds[1]);
	check_table(&bins[bin[2]], fds[2]);
	assert_int_equal(stats.nr_tables, 2);
	assert_int_equal(stats.nr_built, 4);
	assert_int_equal(stats.nr_refused, 0);
	for (i = 0; i < 4; i++)
		close(fds[i]);
}

/* Lists of mappings push out tables, too. */
static void test_list_evicts(void **state)
{
	sb_cleanup(sb_closep) int fd = libc_copy(1);
	struct sb_uwpool_place place;
	uint32_t bin = add(fd), nr = 0;
	int err;

	assert_int_equal(build(bin, fd), 0);
	while (!(err = sb_uwtables_alloc_list(tables, SB_UW_CHUNK_WORDS, &place)))
		nr++;
	assert_int_equal(err, -EAGAIN);
	assert_true(nr > 100 && nr < SB_UW_PART_CHUNKS);
	assert_int_equal(bins[bin].state, SB_UW_BIN_ABSENT);
	clock_ns += SB_UWPOOL_REST_NS;
	assert_int_equal(sb_uwtables_alloc_list(tables, SB_UW_CHUNK_WORDS, &place), 0);
}

/* Numbers are used again when nobody holds them, nor a walk may still have them. */
static void test_bins_run_out(void **state)
{
	struct sb_uwtables_spot spot;
	int fds[NR_BINS + 1];
	uint32_t i, bin;

	for (i = 0; i <= NR_BINS; i++)
		fds[i] = libc_copy((uint8_t)(i + 1));
	for (i = 0; i < NR_BINS; i++)
		assert_int_equal(add(fds[i]), i);
	assert_int_equal(build(3, fds[3]), 0);
	bins[3].used_s = bins[4].used_s = 500;
	bins[4].used_s = 600;
	clock_ns += SB_UWPOOL_REST_NS;
	assert_int_equal(sb_uwtables_add(tables, fds[NR_BINS], libc_pgoff, &spot), -ENOSPC);
	assert_true(find(fds[3], &bin)); /* a second holder */
	sb_uwtables_drop(tables, 3);
	sb_uwtables_drop(tables, 4);
	assert_int_equal(sb_uwtables_add(tables, fds[NR_BINS], libc_pgoff, &spot), -ENOSPC);
	sb_uwtables_drop(tables, 3);
	clock_ns += SB_UWPOOL_REST_NS;
	assert_int_equal(add(fds[NR_BINS]), 3);
	assert_int_equal(bins[3].state, SB_UW_BIN_ABSENT);
	sb_uwtables_stats(tables, &stats);
	assert_int_equal(stats.nr_refused, 2);
	assert_int_equal(stats.nr_tables, 0);
	/* What it was before has no number now. */
	assert_false(find(fds[3], &bin));
	assert_int_equal(add(fds[3]), 4);
	assert_int_equal(build(3, fds[3]), -ESTALE);
	assert_int_equal(build(3, fds[NR_BINS]), 0);
	check_table(&bins[3], fds[NR_BINS]);
	for (i = 0; i <= NR_BINS; i++)
		close(fds[i]);
}

static int find_libc(void *arg, const struct sb_maps_line *line)
{
	if (!line->is_exec || !memmem(line->path, line->path_len, "/libc.so.", 9))
		return 0;
	memcpy(libc_path, line->path, line->path_len);
	libc_pgoff = line->pgoff;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_identity), TEST(test_find),	     TEST(test_no_elf),
		TEST(test_build),    TEST(test_no_cfi),	     TEST(test_vdso),
		TEST(test_eviction), TEST(test_list_evicts), TEST(test_bins_run_out),
	};
	int ret;

	if (sb_procfs_maps((uint32_t)getpid(), find_libc, NULL) || !libc_path[0] ||
	    sb_read_file(libc_path, 64u << 20, &libc, &libc_bytes)) {
		printf("skipped: no C library 'libc.so' is mapped\n");
		return 77;
	}
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	free(libc);
	return ret;
}
