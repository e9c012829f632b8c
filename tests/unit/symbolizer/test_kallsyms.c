// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbolizer/symbols/kallsyms.h"

static const char text[] = "ffffffff81000000 T _stext\n"
			   "ffffffff81000000 T startup_64\n"
			   "ffffffff81000000 t a_long_local_alias\n"
			   "ffffffff81000100 W weak_alias\n"
			   "ffffffff81000100 T strong\n"
			   "ffffffff810001f0 t __pfx_do_read\n"
			   "ffffffff81000200 t do_read\n"
			   "ffffffff81000280 T __ia32_sys_pause\n"
			   "ffffffff81000280 T __x64_sys_pause\n"
			   "ffffffff81000300 T _etext\n"
			   "ffffffff81400000 D some_data\n"
			   "ffffffff81500000 T _sinittext\n"
			   "ffffffff81500000 t init_one\n"
			   "ffffffff81500010 T _einittext\n"
			   "ffffffffc0301000 t nf_second\t[nf_tables]\n"
			   "ffffffffc0300000 t nf_first\t[nf_tables]\n"
			   "ffffffffc0300800 d nf_data\t[nf_tables]\n"
			   "ffffffffc0201000 t ftrace_trampoline\t[__builtin__ftrace]\n"
			   "ffffffffc0400000 t bpf_prog_6deef7357e7b4530_on_tick\t[bpf]\n"
			   "ffffffffc0400200 t bpf_prog_0123456789abcdef\t[bpf]\n";

static const char modules[] = "nf_tables_ipv4 4096 0 - Live 0xffffffffc0200000\n"
			      "nf_tables 12288 2 nft_a,nft_b, Live 0xffffffffc0300000\n";

static struct sb_kallsyms_table table;

static void parse(const char *s, const char *mods)
{
	sb_kallsyms_table_release(&table);
	assert_int_equal(sb_kallsyms_table_parse(&table, s, strlen(s), mods), 0);
}

static int teardown(void **state)
{
	sb_kallsyms_table_release(&table);
	return 0;
}

static void expect(uint64_t addr, const char *name, const char *module, uint64_t offset)
{
	struct sb_ksym sym;

	if (!name) {
		assert_false(sb_kallsyms_table_find(&table, addr, &sym));
		return;
	}
	assert_true(sb_kallsyms_table_find(&table, addr, &sym));
	assert_string_equal(sym.name, name);
	if (module)
		assert_string_equal(sym.module, module);
	else
		assert_null(sym.module);
	assert_true(addr - sym.start == offset);
}

static void test_golden(void **state)
{
	parse(text, modules);
	expect(0xffffffff80ffffff, NULL, NULL, 0);
	expect(0xffffffff81000000, "startup_64", NULL, 0);
	expect(0xffffffff810000ff, "startup_64", NULL, 0xff);
	expect(0xffffffff81000100, "strong", NULL, 0);
	expect(0xffffffff81000280, "__x64_sys_pause", NULL, 0);
	expect(0xffffffff810001f0, NULL, NULL, 0); /* padding */
	expect(0xffffffff81000200, "do_read", NULL, 0);
	expect(0xffffffff8100027f, "do_read", NULL, 0x7f);
	expect(0xffffffff81000300, NULL, NULL, 0); /* behind the text */
	expect(0xffffffff81400000, NULL, NULL, 0);
	expect(0xffffffff81500000, "init_one", NULL, 0);
	expect(0xffffffff81500010, NULL, NULL, 0);
	expect(0xffffffffc0300000, "nf_first", "[nf_tables]", 0);
	expect(0xffffffffc03007ff, "nf_first", "[nf_tables]", 0x7ff);
	expect(0xffffffffc0300800, NULL, NULL, 0);
	expect(0xffffffffc0302fff, "nf_second", "[nf_tables]", 0x1fff);
	expect(0xffffffffc0303000, NULL, NULL, 0); /* behind the module */
	expect(0xffffffffc0201010, "ftrace_trampoline", "[__builtin__ftrace]", 0x10);
	expect(0xffffffffc04001ff, "bpf_prog_6deef7357e7b4530_on_tick", "[bpf]", 0x1ff);
	expect(0xffffffffc0400200 + SB_KALLSYMS_REACH_MAX, NULL, NULL, 0);
	expect(UINT64_MAX, NULL, NULL, 0);
	assert_true(table.nr_bad_lines == 0 && table.nr_lines == 20);
}

static void test_no_modules_file(void **state)
{
	parse(text, NULL);
	expect(0xffffffffc0301000 + SB_KALLSYMS_REACH_MAX - 1, "nf_second", "[nf_tables]",
	       SB_KALLSYMS_REACH_MAX - 1);
	expect(0xffffffffc0301000 + SB_KALLSYMS_REACH_MAX, NULL, NULL, 0);
}

static void test_bad_lines(void **state)
{
	parse("\n"
	      "x T a\n"
	      "1000\n"
	      "1000 T\n"
	      "1000 T \n"
	      "1000  T a\n"
	      "1000 T a\t\n"
	      "1000 T a\tnf\n"
	      "1000 T \t[nf]\n"
	      "11111111111111111 T a\n"
	      "2000 T good",
	      NULL);
	assert_true(table.nr_bad_lines == 10 && table.nr_lines == 11);
	expect(0x1000, NULL, NULL, 0);
	expect(0x2000, "good", NULL, 0);
}

static void write_file(const char *path, const char *content)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(content, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Hidden addresses, and a table that changes while we run. */
static void test_file(void **state)
{
	struct sb_kallsyms ks = { .wait_min_ns = 1 };
	char path[] = "/tmp/sb-kallsyms-XXXXXX";
	struct sb_ksym sym;
	uint64_t nr_reads;
	int fd = mkstemp(path), i;

	assert_true(fd >= 0);
	close(fd);
	ks.path = path;
	write_file(path, "0000000000000000 T _stext\n0000000000000000 t f\n");
	assert_int_equal(sb_kallsyms_lookup(&ks, 0xffffffff81000000, &sym), -EACCES);
	write_file(path, text);
	assert_int_equal(sb_kallsyms_lookup(&ks, 0xffffffff81000000, &sym), 0);
	assert_string_equal(sym.name, "startup_64");
	/* An unknown address does not make it read again and again. */
	nr_reads = ks.nr_reads;
	for (i = 0; i < 10; i++)
		assert_int_equal(sb_kallsyms_lookup(&ks, 0x1000, &sym), -ENOENT);
	assert_true(ks.nr_reads == nr_reads);
	write_file(path, "0000000000001000 t loaded\t[new]\n0000000000002000 d end\t[new]\n");
	assert_int_equal(sb_kallsyms_lookup(&ks, 0x1010, &sym), 0);
	assert_string_equal(sym.name, "loaded");
	assert_string_equal(sym.module, "[new]");
	assert_true(ks.nr_reads == nr_reads + 1);
	/* Gone: what is known stays. */
	unlink(path);
	assert_int_equal(sb_kallsyms_lookup(&ks, 0x3000, &sym), -ENOENT);
	assert_int_equal(sb_kallsyms_lookup(&ks, 0x1010, &sym), 0);
	sb_kallsyms_release(&ks);
	ks = (struct sb_kallsyms){ .path = path };
	assert_int_equal(sb_kallsyms_lookup(&ks, 0x1010, &sym), -ENODATA);
	sb_kallsyms_release(&ks);
}

/* A shortage of descriptors passes, and is no answer for the rest of the run. */
static void test_no_descriptor(void **state)
{
	struct sb_kallsyms ks = { .wait_min_ns = 1 };
	char path[] = "/tmp/sb-kallsyms-XXXXXX";
	struct rlimit all, none;
	struct sb_ksym sym;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	write_file(path, text);
	ks.path = path;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = (struct rlimit){ 0, all.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(sb_kallsyms_lookup(&ks, 0xffffffff81000000, &sym), -ENODATA);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	assert_int_equal(sb_kallsyms_lookup(&ks, 0xffffffff81000000, &sym), 0);
	sb_kallsyms_release(&ks);
	unlink(path);
}

/* Real text comes in pieces: the same table whatever the pieces are is what the file test and
 * this one, with a line across the boundary of 64 KiB, say together. */
static void test_pieces(void **state)
{
	struct sb_kallsyms ks = {};
	char path[] = "/tmp/sb-kallsyms-XXXXXX";
	struct sb_ksym sym;
	FILE *file;
	int fd = mkstemp(path), i;
	char name[32];

	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	assert_non_null(file);
	for (i = 0; i < 20000; i++)
		fprintf(file, "%016x t function_%d\n", 0x1000 + i * 16, i);
	fprintf(file, "%016x t end_\n", 0x1000 + i * 16);
	assert_int_equal(fclose(file), 0);
	ks.path = path;
	for (i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		assert_int_equal(sb_kallsyms_lookup(&ks, (uint64_t)(0x1008 + i * 16), &sym), 0);
		assert_string_equal(sym.name, name);
	}
	assert_true(ks.table.nr_bad_lines == 0);
	assert_true(ks.nr_reads == 1);
	unlink(path);
	sb_kallsyms_release(&ks);
}

static int answer(void *arg, uint64_t addr, char *to, size_t size)
{
	return (size_t)snprintf(to, size, "%s", *(const char **)arg) < size ? 0 : -ENAMETOOLONG;
}

/* What the kernel prints, which is asked before the file is read. */
static void test_asked(void **state)
{
	const char *printed;
	struct sb_kallsyms ks = { .path = "/nonexistent", .ask = answer, .ask_arg = &printed };
	struct sb_ksym sym;

	printed = "do_read+0x1d/0x40";
	assert_int_equal(sb_kallsyms_lookup(&ks, 0xffffffff8100021d, &sym), 0);
	assert_string_equal(sym.name, "do_read");
	assert_null(sym.module);
	assert_true(sym.start == 0xffffffff81000200);
	printed = "nf_first+0x0/0x800 [nf_tables]";
	assert_int_equal(sb_kallsyms_lookup(&ks, 0xffffffffc0300000, &sym), 0);
	assert_string_equal(sym.name, "nf_first");
	assert_string_equal(sym.module, "[nf_tables]");
	printed = "0xffffffffc0500000";
	assert_int_equal(sb_kallsyms_lookup(&ks, 0xffffffffc0500000, &sym), -ENOENT);
	assert_int_equal(ks.nr_reads, 0);
	sb_kallsyms_release(&ks);
}

/* The file is read for what is not understood, and where it may have a better alias. */
static void test_asked_in_vain(void **state)
{
	static const char *const texts[] = {
		"__ia32_sys_pause+0x0/0x40",
		"__pfx_do_read+0x1/0x10",
		"_stext+0x0/0x10",
		"",
		"+0x1/0x2",
		"f+0x1",
		"f+0x/0x2",
		"f+1/2",
		"f+0x1/0x2 ",
		"f+0x1/0x2 [",
		"f+0x1/0x2 [m",
		"f+0xfff/0x1",
		"0x",
	};
	struct sb_ksym sym;
	char copy[64];
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(copy, sizeof(copy), "%s", texts[i]);
		if (sb_kallsyms_split(copy, 0x100, &sym) != -EAGAIN)
			fail_msg("'%s' is understood", texts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_asked_in_vain),
		cmocka_unit_test_teardown(test_golden, teardown),
		cmocka_unit_test_teardown(test_no_modules_file, teardown),
		cmocka_unit_test_teardown(test_bad_lines, teardown),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_no_descriptor),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
