// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cfi_rows [--debug-dir=DIR] FILE [ADDR...]: the unwind table that is made of a file's call frame
 * information, to be compared with what other tools read there. Without ADDR a line that begins
 * with # comes last, with the figures of the table.
 * cfi_rows --summary FILE...: those figures alone, and their sums.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "cfi_each_row.h"
#include "rule_text.h"
#include "symbolizer/elf/debugfile.h"

SB_DEFINE_CLEANUP(struct sb_elf, sb_elf_free)
SB_DEFINE_CLEANUP(struct sb_cfi, sb_cfi_free)

enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_TARGET = 5 };

struct totals {
	uint64_t nr_files, nr_without, nr_failed;
	uint64_t nr_fdes, nr_rows, nr_unsup, nr_bad, nr_bytes;
};

/* Rows of one file, ascending. */
typedef SB_VEC(struct cfi_row) row_vec;

static int load(const char *path, const char *const *debug_dirs, struct sb_cfi **ret_cfi)
{
	const struct sb_debugfile_opts opts = { .path = path, .dirs = debug_dirs };
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	sb_cleanup(sb_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct sb_debugfile debug = {};
	int err;

	if (fd < 0)
		return -errno;
	err = sb_elf_new_fd(fd, &elf);
	if (err)
		return err;
	err = sb_cfi_new(elf, NULL, ret_cfi);
	if (err != -ENODATA || sb_debugfile_find(elf, &opts, &debug))
		return err;
	err = sb_cfi_new(elf, debug.elf, ret_cfi);
	sb_debugfile_release(&debug);
	return err;
}

static int tell(const char *path, int err)
{
	switch (err) {
	case -ENODATA:
		sb_err(0,
		       "'%s' has no unwind tables (call frame information); stackbpf "
		       "follows frame pointers there",
		       path);
		break;
	case -ENOTSUP:
		sb_err(0, "'%s' is not a program or library for x86-64 or arm64", path);
		break;
	case -ENOEXEC:
		sb_err(0, "'%s' is not an ELF file", path);
		break;
	case -EBADMSG:
		sb_err(0, "'%s': the unwind tables (call frame information) are damaged", path);
		break;
	default:
		sb_err(err, "'%s'", path);
	}
	return err == -ENOENT ? EXIT_NO_TARGET : EXIT_FAILED;
}

static int finish_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_OK;
	sb_err(errno ? -errno : -EIO, "cannot write");
	return EXIT_FAILED;
}

static int collect_row(void *arg, const struct cfi_row *row)
{
	row_vec *rows = arg;

	return sb_vec_push(rows, *row);
}

static void print_row(uint16_t machine, uint64_t addr, const struct sb_uw_rule *rule)
{
	char text[80];

	rule_text(machine, rule, text, sizeof(text));
	printf("%016" PRIx64 " %s\n", addr, text);
}

/* The rule at @addr; before the first row it is the frame pointer. */
static struct sb_uw_rule find_rule(const row_vec *rows, uint64_t addr)
{
	size_t lo = 0, hi = rows->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (rows->at[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? rows->at[lo - 1].rule : (struct sb_uw_rule){ .cfa = SB_UW_CFA_FP_CHAIN };
}

static double bytes_per_row(uint64_t nr_bytes, uint64_t nr_rows)
{
	return nr_rows ? (double)nr_bytes / (double)nr_rows : 0;
}

/* "# " before it: whoever compares rows skips it. */
static void print_info(const char *path, const struct sb_cfi *cfi)
{
	size_t nr_bytes = sb_cfi_words(cfi, 0) * 4;
	struct sb_cfi_info info;

	sb_cfi_info(cfi, &info);
	printf("# source=%s text=%" PRIx64 "-%" PRIx64 " fdes=%u rows=%u rules=%u granules=%u "
	       "bytes=%zu bytes/row=%.2f unsupported=%u bad=%u %s\n",
	       info.source, info.text_lo, info.text_hi, info.nr_fdes, info.nr_rows, info.nr_rules,
	       info.nr_granules, nr_bytes, bytes_per_row(nr_bytes, info.nr_rows), info.nr_unsup,
	       info.nr_bad, path);
}

static int print_at(uint16_t machine, const row_vec *rows, char **addrs, int nr)
{
	struct sb_uw_rule rule;
	uint64_t addr;
	int i;

	for (i = 0; i < nr; i++) {
		if (sb_parse_hex(addrs[i], &addr)) {
			sb_err(0, "'%s' is not a hexadecimal address", addrs[i]);
			return EXIT_USAGE;
		}
		rule = find_rule(rows, addr);
		print_row(machine, addr, &rule);
	}
	return EXIT_OK;
}

static int print_rows(const char *path, const char *const *debug_dirs, char **addrs, int nr)
{
	sb_cleanup(sb_cfi_freep) struct sb_cfi *cfi = NULL;
	struct sb_cfi_info info;
	row_vec rows = {};
	int err, status = EXIT_OK;
	size_t i;

	err = load(path, debug_dirs, &cfi);
	if (err)
		return tell(path, err);
	sb_cfi_info(cfi, &info);
	err = cfi_each_row(cfi, collect_row, &rows);
	if (err) {
		status = tell(path, err);
	} else if (nr) {
		status = print_at(info.machine, &rows, addrs, nr);
	} else {
		for (i = 0; i < rows.nr; i++)
			print_row(info.machine, rows.at[i].addr, &rows.at[i].rule);
		print_info(path, cfi);
	}
	sb_vec_release(&rows);
	return status ? status : finish_output();
}

static void add_totals(struct totals *totals, const struct sb_cfi *cfi)
{
	struct sb_cfi_info info;

	sb_cfi_info(cfi, &info);
	totals->nr_files++;
	totals->nr_fdes += info.nr_fdes;
	totals->nr_rows += info.nr_rows;
	totals->nr_unsup += info.nr_unsup;
	totals->nr_bad += info.nr_bad;
	totals->nr_bytes += sb_cfi_words(cfi, 0) * 4;
}

static int summarize(const char *const *debug_dirs, char **paths, int nr)
{
	struct totals totals = {};
	int i, err, status = EXIT_OK;

	for (i = 0; i < nr; i++) {
		sb_cleanup(sb_cfi_freep) struct sb_cfi *cfi = NULL;

		err = load(paths[i], debug_dirs, &cfi);
		if (!err) {
			add_totals(&totals, cfi);
			print_info(paths[i], cfi);
		} else if (err == -ENODATA || err == -ENOTSUP) {
			totals.nr_without++;
		} else {
			totals.nr_failed++;
			status = tell(paths[i], err);
		}
	}
	printf("# files=%" PRIu64 " without=%" PRIu64 " failed=%" PRIu64 " fdes=%" PRIu64
	       " rows=%" PRIu64 " bytes=%" PRIu64 " bytes/row=%.2f unsupported=%" PRIu64
	       " bad=%" PRIu64 "\n",
	       totals.nr_files, totals.nr_without, totals.nr_failed, totals.nr_fdes, totals.nr_rows,
	       totals.nr_bytes, bytes_per_row(totals.nr_bytes, totals.nr_rows), totals.nr_unsup,
	       totals.nr_bad);
	return status ? status : finish_output();
}

int main(int argc, char **argv)
{
	static const char debug_dir[] = "--debug-dir=";
	const char *dirs[2] = {}, *const *debug_dirs = NULL;
	int at = 1;

	sb_log_init("cfi_rows", SB_LOG_INFO);
	if (at < argc && !strncmp(argv[at], debug_dir, strlen(debug_dir))) {
		dirs[0] = argv[at++] + strlen(debug_dir);
		debug_dirs = dirs;
	}
	if (at + 1 < argc && sb_streq(argv[at], "--summary"))
		return summarize(debug_dirs, argv + at + 1, argc - at - 1);
	if (at < argc)
		return print_rows(argv[at], debug_dirs, argv + at + 1, argc - at - 1);
	sb_err(0, "of which file?");
	return EXIT_USAGE;
}
