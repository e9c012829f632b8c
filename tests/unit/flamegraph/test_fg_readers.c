// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Each input format: text in, the tree's folded text and the complaints out. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/str.h"
#include "flamegraph/fg.h"
#include "flamegraph/opts.h"
#include "flamegraph/reader.h"
#include "flamegraph/text.h"
#include "folded_line.h"

static int put_str(void *arg, const char *s, size_t len)
{
	return sb_str_addn(arg, s, len);
}

static void read_text(struct sb_fg *fg, const char *text, size_t len)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, text, len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(sb_fg_read(fg, fd), 0);
	close(fd);
}

static void expect_folded(struct sb_fg *fg, const char *expected)
{
	struct sb_str text = {};

	assert_int_equal(sb_tree_seal(&fg->tree, SB_TREE_SORT_NAME), 0);
	assert_int_equal(sb_fg_tree_fold(&fg->tree, put_str, &text), 0);
	assert_string_equal(text.s ? text.s : "", expected);
	sb_str_release(&text);
}

struct golden {
	const char *format, *input, *folded;
	const char *complaint; /* the first; NULL: none */
};

static void check(const struct golden *golden)
{
	struct sb_fg *fg;
	const char *complaint;

	assert_int_equal(sb_fg_new(&fg), 0);
	read_text(fg, golden->input, strlen(golden->input));
	assert_string_equal(fg->reader->name, golden->format);
	complaint = sb_fg_complaint(fg);
	if (golden->complaint)
		assert_string_equal(complaint ? complaint : "no complaint", golden->complaint);
	else
		assert_null(complaint);
	expect_folded(fg, golden->folded);
	sb_fg_free(fg);
}

static void check_all(const struct golden *goldens, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		print_message("  case %zu\n", i);
		check(&goldens[i]);
	}
}

#define CHECK_ALL(goldens) check_all(goldens, sizeof(goldens) / sizeof((goldens)[0]))

static void test_folded(void **state)
{
	static const struct golden goldens[] = {
		/* One b below a, although the whole lines do not sort so. */
		{ "folded", "a;b 100\na;b(int);x 100\na;b;e 100\n",
		  "a;b 100\na;b;e 100\na;b(int);x 100\n", NULL },
		/* The count is the last number only. */
		{ "folded", "operator new 12 5\noperator new 12 5\nmain 1\n",
		  "main 1\noperator new 12 10\n", NULL },
		{ "folded", "a;b 0.5\na;b 1.25\na 7.\n", "a 7\na;b 1.75\n", NULL },
		{ "folded", "a 0.1\nb 360000023322440.5\nc 1.000000001\nd 0.000000123\ne 3.14\n",
		  "a 0.1\nb 360000023322440.5\nc 1.000000001\nd 0.000000123\ne 3.14\n", NULL },
		{ "folded", "a;b 9007199254740992\n", "a;b 9007199254740992\n", NULL },
		/* Line ends, spaces, nothing at the end. */
		{ "folded",
		  "\xef\xbb\xbf"
		  "a;b 1\r\n",
		  "a;b 1\n", NULL },
		{ "folded", "a;b  1\r\n\n  \na;c\t2\na;c 3  ", "a;b 1\na;c 5\n", NULL },
		/* Empty frames stay, those behind the leaf do not. */
		{ "folded", "a;;b 1\na;c;; 2\n;d 3\n", "[empty];d 3\na;[empty];b 1\na;c 2\n",
		  NULL },
		/* No count, no stack. */
		{ "folded", "a 1\nb\nc d\n", "a 1\n",
		  "ignored 2 lines without a count, first at line 2" },
		{ "folded", "a 1\n 5\n; 5\n", "a 1\n",
		  "ignored 2 lines without a stack, first at line 2" },
		{ "folded", "a -1\na 1e5\na 0x10\na .5\na 1\na 99999999999999999999\n", "a 1\n",
		  "ignored 5 lines without a count, first at line 1" },
		/* Comments and the header. */
		{ "folded", "# no stack 5\n#stackbpf;v=1;unit=us\na 1\n", "a 1\n", NULL },
		/* Kinds: annotated, or behind a delimiter. */
		{ "folded", "a;b_[k];c_[i];d_[j];e_[w] 1\n", "a;b_[k];c_[i];d_[j];e_[w] 1\n",
		  NULL },
		{ "folded", "a;-;k;--;w;-;v 1\n", "a;-;k_[k];--;w_[w];-;v_[w] 1\n", NULL },
		{ "folded", "a;b 1\na;b_[k] 1\n", "a;b 1\na;b_[k] 1\n", NULL },
		{ "folded", "_[k] 1\n", "_[k] 1\n", NULL },
		/* Bytes that are no text; U+FFFD is ef bf bd. */
		{ "folded", "a;\x80\x01;\xc3\xa9 1\n", "a;\xef\xbf\xbd\xef\xbf\xbd;\xc3\xa9 1\n",
		  "replaced bytes that are not valid text in 1 line, at line 1" },
	};

	CHECK_ALL(goldens);
}

/* Waits: what kind frames are of, and that it survives in the text. */
static void test_waits(void **state)
{
	static const struct golden goldens[] = {
		{ "folded", "a;b_[k];--;w_[k];u;c 1\n", "a;b_[k];--;w_[k];u_[w];c_[w] 1\n", NULL },
		{ "folded", "a;b;--;w_[w];c_[w] 1\n", "a;b;--;w_[w];c_[w] 1\n", NULL },
		/* Of a name that ends like an annotation only the last is one. */
		{ "folded", "a_[j]_[j];b_[k]_[z]_[c] 1\n", "a_[j]_[j];b_[k]_[z]_[c] 1\n", NULL },
		/* All code under an idle root is idle, what is no code is not. */
		{ "folded", "[idle];a;[x+0x1];f_[i];-;k;[truncated: x];--;w_[w] 1\n",
		  "[idle];a_[z];[x+0x1]_[z];f_[z];-;k_[z];[truncated: x];--;w_[z] 1\n", NULL },
		/* Only as the root. */
		{ "folded", "a;[idle];f;k_[k] 1\n", "a;[idle];f;k_[k] 1\n", NULL },
		{ "folded", "a;f;[idle: epoll] 1\n", "a;f;[idle: epoll] 1\n", NULL },
		/* The last stack's state is its own. */
		{ "folded", "[idle];a;b 1\n[idle];a;c 1\na;c 1\n",
		  "[idle];a_[z];b_[z] 1\n[idle];a_[z];c_[z] 1\na;c 1\n", NULL },
	};

	CHECK_ALL(goldens);
}

#define IO "#stackbpf;v=1;kind=io;unit=bytes\n"

/* I/O without annotations: the last frames are a call and its file. */
static void test_io(void **state)
{
	static const struct golden goldens[] = {
		{ "folded", IO "a;m;sys_read;/x y 1\n", "a;m;sys_read_[k];/x y_[f] 1\n", NULL },
		{ "folded", "a;m;sys_read;/x 1\n", "a;m;sys_read;/x 1\n", NULL },
		{ "folded", "#stackbpf;kind=oncpu\na;sys_read;/x 1\n", "a;sys_read;/x 1\n", NULL },
		{ "folded", IO "a;sys_read;[pipe] 1\na;sys_read;[socket: tcp] 1\n",
		  "a;sys_read_[k];[pipe]_[f] 1\na;sys_read_[k];[socket: tcp]_[f] 1\n", NULL },
		/* Below other calls than the system's: by its shape. */
		{ "folded", IO "a;submit_bio;/x 1\na;k;pipe:[12] 1\na;k;[...]/b 1\n",
		  "a;k;[...]/b_[f] 1\na;k;pipe:[12]_[f] 1\na;submit_bio;/x_[f] 1\n", NULL },
		{ "folded",
		  IO
		  "a;k;nfs:/b c 1\na;k;[btrfs: 7] 1\na;k;go f:/x 1\na;sys_read;[lost object] 1\n",
		  "a;k;[btrfs: 7]_[f] 1\na;k;go f:/x 1\na;k;nfs:/b c_[f] 1\n"
		  "a;sys_read_[k];[lost object] 1\n",
		  NULL },
		/* Its last name only: by its place. No file at all. */
		{ "folded", IO "a;sys_read;passwd 1\na;sys_read 2\n",
		  "a;sys_read_[k] 2\na;sys_read_[k];passwd_[f] 1\n", NULL },
		/* Neither the name of a thread, nor what stands farther below. */
		{ "folded", IO "/usr/sbin/apach 1\n/usr/sbin/apach;sys_read;/x 1\n",
		  "/usr/sbin/apach 1\n/usr/sbin/apach;sys_read_[k];/x_[f] 1\n", NULL },
		{ "folded", IO "a;sys_x;f;/b;sys_read;/x 1\n",
		  "a;sys_x;f;/b;sys_read_[k];/x_[f] 1\n", NULL },
		{ "folded", IO "sys_a;b 1\n", "sys_a;b_[f] 1\n", NULL },
		/* A stack that ends where another goes on, in either order. */
		{ "folded", IO "a;/b 1\na;/b;c;sys_read;/x 1\n",
		  "a;/b;c;sys_read_[k];/x_[f] 1\na;/b_[f] 1\n", NULL },
		{ "folded", IO "a;/b;c;sys_read;/x 1\na;/b 1\na;/b 1\n",
		  "a;/b;c;sys_read_[k];/x_[f] 1\na;/b_[f] 2\n", NULL },
		/* Said, not guessed; marks remain marks; the kernel's part does not spread. */
		{ "folded", IO "a;sys_read_[k];x_[f] 1\n", "a;sys_read_[k];x_[f] 1\n", NULL },
		{ "folded", IO "a;sys_read;[truncated: x] 1\n", "a;sys_read_[k];[truncated: x] 1\n",
		  NULL },
		{ "folded", IO "a;-;k;sys_read;/x 1\n", "a;-;k_[k];sys_read_[k];/x_[f] 1\n", NULL },
	};

	CHECK_ALL(goldens);
}

/* What one input says of itself says nothing of the next one. */
static void test_io_then_other(void **state)
{
	static const char io[] = IO "a;sys_read;/x 1\n", other[] = "a;sys_read;/x 1\n";
	struct sb_fg *fg;

	assert_int_equal(sb_fg_new(&fg), 0);
	read_text(fg, io, sizeof(io) - 1);
	read_text(fg, other, sizeof(other) - 1);
	expect_folded(fg, "a;sys_read;/x 1\na;sys_read_[k];/x_[f] 1\n");
	sb_fg_free(fg);
}

static void test_nul_bytes(void **state)
{
	static const char input[] = "a\0b;c 1\n\0\0\n";
	struct sb_fg *fg;

	assert_int_equal(sb_fg_new(&fg), 0);
	read_text(fg, input, sizeof(input) - 1);
	assert_string_equal(sb_fg_complaint(fg), "ignored 1 line without a count, at line 2");
	assert_string_equal(sb_fg_complaint(fg),
			    "replaced bytes that are not valid text in 2 lines, first at line 1");
	assert_null(sb_fg_complaint(fg));
	expect_folded(fg, "a\xef\xbf\xbd"
			  "b;c 1\n");
	sb_fg_free(fg);
}

#define BAD "\xef\xbf\xbd"

/* What is no UTF-8 (Unicode, table 3-7) or no character of XML 1.0. */
static void test_text(void **state)
{
	static const struct {
		const char *in, *out;
		long nr_bad;
	} cases[] = {
		{ "plain ~", "plain ~", 0 },
		{ "a\tb", "a b", 0 },
		{ "\xc2\xa0\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\xc2\xa0\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 0 },
		{ "\xef\xbf\xbd\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbd",
		  "\xef\xbf\xbd\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbd", 0 },
		{ "\x01\x1f\x7f", BAD BAD BAD, 3 },
		{ "\xc2\x85", BAD BAD, 2 }, /* a C1 control */
		{ "\x80x\xff", BAD "x" BAD, 2 },
		{ "\xc0\xaf\xc1\xbf", BAD BAD BAD BAD, 4 }, /* overlong */
		{ "\xe0\x80\xaf\xe0\x9f\xbf", BAD BAD BAD BAD BAD BAD, 6 },
		{ "\xf0\x8f\xbf\xbd", BAD BAD BAD BAD, 4 },
		{ "\xf4\x90\x80\x80", BAD BAD BAD BAD, 4 }, /* beyond U+10FFFF */
		{ "\xf5\x80\x80\x80", BAD BAD BAD BAD, 4 },
		{ "\xed\xa0\x80\xed\xbf\xbf", BAD BAD BAD BAD BAD BAD, 6 }, /* surrogates */
		{ "\xef\xbf\xbe\xf0\x9f\xbf\xbf", BAD BAD BAD BAD BAD BAD BAD, 7 },
		{ "\xe2\x82", BAD BAD, 2 },
		{ "\xe2\x82z", BAD BAD "z", 2 },
	};
	struct sb_str out = {};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sb_str_clear(&out);
		assert_int_equal(sb_fg_text_clean(&out, cases[i].in, strlen(cases[i].in)),
				 cases[i].nr_bad);
		assert_string_equal(out.s, cases[i].out);
		assert_int_equal(sb_fg_text_is_plain(cases[i].in, strlen(cases[i].in)), i == 0);
	}
	sb_str_release(&out);
}

/* Each byte at each place of a word. */
static void test_is_plain(void **state)
{
	char text[19];
	size_t at;
	int c;

	for (at = 0; at < sizeof(text); at++) {
		for (c = 0; c < 256; c++) {
			memset(text, 'x', sizeof(text));
			text[at] = (char)c;
			assert_int_equal(sb_fg_text_is_plain(text, sizeof(text)),
					 c >= 0x20 && c < 0x7f);
		}
	}
}

static void test_kinds(void **state)
{
	static const struct {
		const char *name;
		enum sb_fg_kind kind;
	} cases[] = {
		{ "main", SB_FG_PLAIN },
		{ "-", SB_FG_DELIMITER },
		{ "--", SB_FG_DELIMITER },
		{ "---", SB_FG_PLAIN },
		{ "[unknown]", SB_FG_UNKNOWN },
		{ "[unknown]_[k]", SB_FG_UNKNOWN },
		{ "[libc.so.6+0x12f]", SB_FG_UNKNOWN },
		{ "[libc.so.6+0x12g]", SB_FG_PLAIN },
		{ "[truncated: no frame pointer]", SB_FG_MARK },
		{ "[Missed User Stack]", SB_FG_MARK },
		{ "[worker]", SB_FG_PLAIN },
		{ "f_[x]", SB_FG_PLAIN },
		{ "f_[k]", SB_FG_KERNEL },
		{ "/etc/passwd", SB_FG_PLAIN },
		{ "/etc/passwd_[f]", SB_FG_FILE },
		{ "[unknown]_[f]", SB_FG_FILE }, /* a file may have any name */
		{ "[running]", SB_FG_RUNNING },
		{ "[running: not sampled]", SB_FG_RUNNING },
		{ "[running away]", SB_FG_PLAIN },
		{ "[runqueue]", SB_FG_WAITING },
		{ "[runqueue] x]", SB_FG_PLAIN },
		{ "[throttled]", SB_FG_WAITING },
		{ "[blocked]", SB_FG_BLOCKED },
		{ "[stopped]", SB_FG_BLOCKED },
		{ "[lost stack]", SB_FG_MARK },
		{ "[residual]", SB_FG_RESIDUAL },
		{ "[idle: epoll]", SB_FG_IDLE },
		{ "[idle]", SB_FG_IDLE },
		{ "[idler]", SB_FG_PLAIN },
		{ "[lock: mutex]", SB_FG_LOCK },
		{ "[lock]", SB_FG_PLAIN },
		{ "f_[z]", SB_FG_IDLE },
		{ "[x+0x1]_[z]", SB_FG_IDLE },
		{ "Foo::bar_[p]", SB_FG_INTERP },
		{ "[unreadable python frame]_[p]", SB_FG_UNKNOWN },
		{ "[unknown x]", SB_FG_UNKNOWN },
		{ "[Unknown]", SB_FG_PLAIN },
		{ "[a+0x1F]", SB_FG_UNKNOWN },
		{ "[a+0X1f]", SB_FG_PLAIN },
		{ "[a+0xg+0x1]", SB_FG_PLAIN },
		{ "[python truncated: unreadable stack]", SB_FG_MARK },
		{ "[my python truncated: x]", SB_FG_PLAIN },
		{ "[ truncated: x]", SB_FG_PLAIN },
	};
	struct sb_fg *fg;
	size_t i;

	assert_int_equal(sb_fg_new(&fg), 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[64];
		int len = snprintf(line, sizeof(line), "%s 1", cases[i].name);

		assert_int_equal(add_folded(fg, line, (size_t)len), 0);
		assert_int_equal(fg->tree.kinds.at[fg->tree.kinds.nr - 1], cases[i].kind);
	}
	sb_fg_free(fg);
}

static void test_bt(void **state)
{
	static const struct golden goldens[] = {
		{ "stap",
		  "WARNING: Tracing 1302 (/usr/bin/x) in user-space only...\n"
		  " 0x7f2a3c4d5e6f : memcpy+0x12/0x40 [libc.so.6]\n"
		  " 0x401234 : foo::operator+(int)+0x20/0x30 [prog]\n"
		  "\t17\n"
		  "WARNING: Time's up. Quitting now...(it may take a while)\n"
		  " 0xffffffff81234567 : vfs_read+0xab/0x180 [kernel]\n"
		  " 0x7f0012345678 : 0x7f0012345678 [libx.so]\n"
		  " 0x401234 [libq.so+0x234/0x5678]\n"
		  " 0x401235 : read;write+0x1/0x2 [x] (inexact)\n"
		  " 0x44\n"
		  "\t3\n",
		  "[unknown];read:write;[libq.so+0x234];[libx.so]_[u];vfs_read_[k] 3\n"
		  "foo::operator+(int);memcpy 17\n",
		  NULL },
		/* Frames of an interpreter: names only. */
		{ "stap", "C:ngx_http_lua_ngx_exec\n@/a b.lua:12\n@x.lua:3\n\t4\n@x.lua:3\n\t1\n",
		  "@x.lua:3 1\n@x.lua:3;@/a b.lua:12;C:ngx_http_lua_ngx_exec 4\n", NULL },
		{ "stap", " 0x1 : f+0x1/0x2 [m]\n\t1\n 0x1 : g+0x1/0x2 [m]\n", "f 1\n",
		  "ignored 1 stack without a count at the end, at line 3" },
		{ "stap", " 0x1 : f+0x1/0x2 [m]\n\t1\n\t2\n", "f 1\n",
		  "ignored 1 line without a stack, at line 3" },
	};

	CHECK_ALL(goldens);
}

static void test_perf(void **state)
{
	static const struct golden goldens[] = {
		/* Names with spaces, kinds by file, weight 1, no empty line at the end. */
		{ "perf",
		  "# cmdline : perf record -g\n"
		  "ssh worker  24636/25607 [000] 94564.109216:     250000 cpu-clock:u: \n"
		  "\t    7f2a3c4d5e6f memcpy+0x12 (/usr/lib/libc.so.6)\n"
		  "\t          401234 pick(int, char) (inlined)\n"
		  "\t          401234 (anonymous namespace)::run(int)+0x3 (/opt/a b (deleted))\n"
		  "\t          401200 [unknown] (/opt/prog)\n"
		  "\t               0 [unknown] ([unknown])\n"
		  "\n"
		  "swapper     0 [001] 94564.2:     1 cpu-clock:u: \n"
		  "\tffffffff81234567 native_safe_halt+0xe ([kernel.kallsyms])\n"
		  "\tffffffffc0234567 f+0xe ([nf_conntrack])\n"
		  "\t    7ffc00000000 __vdso_gettimeofday ([vdso])\n",
		  "ssh_worker;[unknown];[prog]_[u];(anonymous namespace)::run;pick_[i];memcpy 1\n"
		  "swapper;__vdso_gettimeofday;f_[k];native_safe_halt_[k] 1\n",
		  NULL },
		/* C++, Go and Java names; JIT code with bodies inlined. */
		{ "perf",
		  "java 1 1.1: 1 cycles:\n"
		  "\t 1 Ljava/util/Map;::get->Lx/Y;::z+0x1 (/tmp/perf-1.map)\n"
		  "\t 2 std::function<void (int)>::operator()(int) const (/a)\n"
		  "\t 3 net/http.(*Client).Do (/a)\n"
		  "\t 4 A::operator->() (/a)\n\n",
		  "java;A::operator->;net/http.(*Client).Do;std::function<void ;"
		  "java/util/Map:::get_[j];x/Y:::z_[i] 1\n",
		  NULL },
		/* Only the first event; a sample without a chain. */
		{ "perf",
		  "a 1 1.1: 1 cycles:\n\t 1 f (/a)\n\nb 1 1.1: 1 instructions:\n\t 1 g (/a)\n\n"
		  "c 1 1.1: 1 cycles:      12ab h+0x1 (/a)\n",
		  "a;f 1\nc;h 1\n",
		  "ignored 1 sample of other events than the first one, at line 4" },
		/* A tracepoint's fields are no frames. */
		{ "perf",
		  "a 1 [000] 1.1: sched:sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b\n"
		  "\tffffffff81234567 __schedule ([kernel.kallsyms])\n\n",
		  "a;__schedule_[k] 1\n", NULL },
		/* No time, frames not indented. */
		{ "perf", "java 19983 cycles:\nff01 f ([kernel.kallsyms])\n7f01 g (/b)\n\n",
		  "java;g;f_[k] 1\n", NULL },
		{ "perf", "a 1 1.1: 1 cycles:\n\t 1 f (/a)\n  a.c:12\n\n", "a;f 1\n",
		  "ignored 1 line without a frame, a sample or a count, at line 3" },
	};

	CHECK_ALL(goldens);
}

/* What looks like another format at first sight is still folded text. */
/* What difffolded.pl writes, and what says of how many samples weights are. */
static void test_difference(void **state)
{
	static const struct golden goldens[] = {
		{ "difference", "a;b 1 2\na;b 10 20.5\na 0 3\na;c 4 0\n",
		  "a 0 3\na;b 11 22.5\na;c 4 0\n", NULL },
		{ "difference", "a;-;k 1 2\r\n 5 6\n", "a;-;k_[k] 1 2\n",
		  "ignored 1 line without a stack, at line 2" },
		{ "difference", "a b 7 1 2\na 0 0\n", "a b 7 1 2\n", NULL },
		{ "difference", "#n;4;5\na 8 20\na;b 3 3\n#n;1.5;0\nc 7 0\n",
		  "#n;4;5\na 8 20\na;b 3 3\n#n;1.500;0\nc 7 0\n", NULL },
		/* Two lines of the same stack: their samples add up, as squares do. */
		{ "difference", "#n;1;1\na 8 1\n#n;1;1\na 8 1\n", "#n;2;2\na 16 2\n", NULL },
		{ "difference", "#n;1\na 8 1\n", "a 8 1\n",
		  "ignored a part of 1 header, at line 1" },
		/* Times of an unknown number of waits. */
		{ "difference", "#stackbpf;unit=us;norm=share\na 8 1\n", "a 8 1\n", NULL },
	};

	CHECK_ALL(goldens);
}

static void test_one_count_and_two(void **state)
{
	static const char *const texts[] = { "a 1\n", "b 1 2\n" };
	struct sb_fg *fg;
	int i, fd;

	for (i = 0; i < 2; i++) {
		assert_int_equal(sb_fg_new(&fg), 0);
		read_text(fg, texts[i], strlen(texts[i]));
		fd = memfd_create("input", 0);
		assert_int_equal(sb_write_all(fd, texts[!i], strlen(texts[!i])), 0);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(sb_fg_read(fg, fd), -EINVAL);
		assert_non_null(strstr(sb_fg_complaint(fg), "draw it separately"));
		close(fd);
		sb_fg_free(fg);
	}
}

/* A stack of which only the leaf could be read does not become a part of the next stream's
 * first. */
static void test_read_error(void **state)
{
	const size_t len = 1 << 20; /* more than is read to recognise the format */
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char *text =
		mmap(NULL, 2 * len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sb_fg *fg;
	size_t at;

	assert_true(fd >= 0 && text != MAP_FAILED);
	for (at = 0; at < len; at += 16)
		memcpy(text + at, " 0x1 : a [m]\n\t1\n", 16);
	memcpy(text + len - 16, " 0x1 : half [m]\n", 16);
	assert_int_equal(munmap(text + len, len), 0);
	assert_int_equal(lseek(fd, (off_t)(uintptr_t)text, SEEK_SET), (off_t)(uintptr_t)text);
	assert_int_equal(sb_fg_new(&fg), 0);
	assert_int_equal(sb_fg_read(fg, fd), -EIO);
	read_text(fg, " 0x1 : b [m]\n\t1\n", 16);
	expect_folded(fg, "a 65535\nb 1\n");
	sb_fg_free(fg);
	munmap(text, len);
	close(fd);
}

static void test_sniff(void **state)
{
	static const struct golden goldens[] = {
		{ "folded", "", "", NULL },
		{ "folded", "\n\n", "", NULL },
		{ "folded", "# comment\n", "", NULL },
		{ "folded", "java 1 2\na 1\n", "a 1\njava 1 2\n", NULL },
		{ "folded", "#stackbpf;v=1\njava 1 2\n", "java 1 2\n", NULL },
		{ "difference", "#stackbpf;v=1;norm=raw\n\njava 1 2\nb 3\n", "java 1 2\n",
		  "ignored 1 line without two counts, at line 4" },
		{ "difference", "java 1 2", "java 1 2\n", NULL },
		{ "difference", "java 1 2\n# remark 3\n", "java 1 2\n", NULL },
		{ "folded", "a;b 1\n\t5\n", "a;b 1\n",
		  "ignored 1 line without a stack, at line 2" },
		{ "folded", "0x12;0x13 4\n", "0x12;0x13 4\n", NULL },
		{ "folded", "swapper 0 idle: x;y 12.5\n", "swapper 0 idle: x;y 12.5\n", NULL },
	};

	CHECK_ALL(goldens);
}

static void test_header(void **state)
{
	struct sb_fg *fg;
	const char one[] = "#stackbpf;v=1;kind=io;unit=bytes;lost=12;n=3\na 1\n";
	const char two[] = "#stackbpf;v=1;kind=io;unit=us;lost=30;new=x y\nb 1\n";
	const char bad[] = "#stackbpf;;=;X=1;noequals;lost=no\n";

	assert_int_equal(sb_fg_new(&fg), 0);
	assert_null(sb_fg_metadata(fg)->unit);
	read_text(fg, one, sizeof(one) - 1);
	assert_null(sb_fg_complaint(fg));
	read_text(fg, two, sizeof(two) - 1);
	assert_string_equal(sb_fg_complaint(fg), "added up different units in 1 header, at line 1");
	read_text(fg, bad, sizeof(bad) - 1);
	assert_string_equal(sb_fg_complaint(fg), "ignored a part of 4 headers, first at line 1");
	assert_string_equal(sb_fg_metadata(fg)->unit, "bytes");
	assert_int_equal(sb_fg_metadata(fg)->nr_lost, 42);
	assert_int_equal(sb_fg_metadata(fg)->nr_samples, 3);
	assert_int_equal(fg->metadata.others.nr, 1);
	assert_string_equal(fg->metadata.others.at[0].key, "new");
	assert_string_equal(fg->metadata.others.at[0].value, "x y");
	expect_folded(fg, "a 1\nb 1\n");
	sb_fg_free(fg);
}

/* Neighbours share their upper part in the reader: the same tree as without. */
static void test_neighbours(void **state)
{
	static const struct golden goldens[] = {
		{ "folded", "a;bc;d 1\na;b;d 1\na;b 1\na;bc 1\na;bc;d;e 1\na;bc;d 1\na 1\nab 1\n",
		  "a 1\na;b 1\na;b;d 1\na;bc 1\na;bc;d 2\na;bc;d;e 1\nab 1\n", NULL },
		{ "folded", "a;-;b 1\na;-;b;c 1\na;-;b 1\na;b 1\n",
		  "a;-;b_[k] 2\na;-;b_[k];c_[k] 1\na;b 1\n", NULL },
		{ "folded", "a;b;c 1\nbad\na;b;c 1\n", "a;b;c 2\n",
		  "ignored 1 line without a count, at line 2" },
	};

	CHECK_ALL(goldens);
}

static void test_shape(void **state)
{
	static const char input[] = "a;b;c 1\nx;c 2\na;b 3\n";
	static const char perf[] = "p 1 1.1: 1 cycles:\n\t 1 f (/a)\n\t 2 g (/a)\n\n";
	struct sb_fg_opts *opts;
	struct sb_fg *fg;

	assert_int_equal(sb_fg_opts_new(&opts), 0);
	assert_int_equal(sb_fg_opts_set(opts, "reverse", NULL), 0);
	assert_int_equal(sb_fg_new(&fg), 0);
	sb_fg_shape(fg, opts);
	read_text(fg, input, sizeof(input) - 1);
	read_text(fg, perf, sizeof(perf) - 1);
	expect_folded(fg, "b;a 3\nc;b;a 1\nc;x 2\nf;g;p 1\n");
	assert_true(sb_fg_total(fg) == 7);
	sb_fg_free(fg);
	sb_fg_opts_free(opts);

	assert_int_equal(sb_fg_opts_new(&opts), 0);
	assert_int_equal(sb_fg_opts_set(opts, "flamechart", NULL), 0);
	assert_int_equal(sb_fg_new(&fg), 0);
	sb_fg_shape(fg, opts);
	read_text(fg, input, sizeof(input) - 1);
	expect_folded(fg, "a;b;c 1\nx;c 2\na;b 3\n");
	sb_fg_free(fg);
	sb_fg_opts_free(opts);
}

/* 10,000 frames and names of 1 MB are taken; lines grow the buffer; a line beyond the bound is
 * not. */
static void test_big(void **state)
{
	const size_t nr_frames = 10000, name_len = 1 << 20;
	struct sb_str line = {};
	struct sb_fg *fg;
	const char *complaint;
	size_t i;
	char *name = malloc(name_len);

	memset(name, 'x', name_len);
	assert_int_equal(sb_fg_new(&fg), 0);
	for (i = 0; i < nr_frames; i++)
		assert_int_equal(sb_str_addf(&line, "%sf%zu", i ? ";" : "", i), 0);
	assert_int_equal(sb_str_add(&line, " 1\n"), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(sb_str_addn(&line, name, name_len), 0);
		assert_int_equal(sb_str_add(&line, i < 2 ? ";" : " 2\n"), 0);
	}
	read_text(fg, line.s, line.len);
	assert_int_equal(fg->tree.depth_max, nr_frames);
	assert_int_equal(fg->tree.nr_stacks, 2);
	assert_int_equal(fg->tree.nodes.nr, 1 + nr_frames + 3);
	complaint = sb_fg_complaint(fg);
	assert_string_equal(complaint, "cut names to 4096 bytes in 1 line, at line 2");
	assert_true(sb_fg_total(fg) == 3);

	/* Too deep: cut with a mark, also when the next stack goes on below. */
	sb_str_clear(&line);
	for (i = 0; i < SB_FG_DEPTH_MAX + 5; i++)
		assert_int_equal(sb_str_add(&line, "g;"), 0);
	assert_int_equal(add_folded(fg, line.s, line.len - 1), -EINVAL);
	assert_int_equal(sb_str_add(&line, "g 1"), 0);
	assert_int_equal(add_folded(fg, line.s, line.len), 0);
	assert_int_equal(add_folded(fg, line.s, line.len), 0);
	line.len -= 2;
	assert_int_equal(sb_str_add(&line, ";h 1"), 0);
	assert_int_equal(add_folded(fg, line.s, line.len), 0);
	assert_int_equal(fg->tree.depth_max, SB_FG_DEPTH_MAX);
	assert_int_equal(fg->tree.nr_deep, 3);
	assert_int_equal(fg->tree.nodes.nr, 1 + nr_frames + 3 + SB_FG_DEPTH_MAX);
	sb_fg_free(fg);

	/* Beyond the bound: left out, and the next line is found again. */
	assert_int_equal(sb_fg_new(&fg), 0);
	sb_str_clear(&line);
	while (line.len <= 2ull * SB_FG_LINE_MAX_BYTES + name_len)
		assert_int_equal(sb_str_addn(&line, name, name_len), 0);
	assert_int_equal(sb_str_add(&line, " 1\nnext 4\n"), 0);
	read_text(fg, line.s, line.len);
	complaint = sb_fg_complaint(fg);
	assert_string_equal(complaint, "ignored 1 line longer than 64 MiB, at line 1");
	expect_folded(fg, "next 4\n");
	sb_fg_free(fg);
	sb_str_release(&line);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),	   cmocka_unit_test(test_waits),
		cmocka_unit_test(test_io),	   cmocka_unit_test(test_io_then_other),
		cmocka_unit_test(test_nul_bytes),  cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_text),	   cmocka_unit_test(test_is_plain),
		cmocka_unit_test(test_bt),	   cmocka_unit_test(test_perf),
		cmocka_unit_test(test_difference), cmocka_unit_test(test_one_count_and_two),
		cmocka_unit_test(test_sniff),	   cmocka_unit_test(test_header),
		cmocka_unit_test(test_neighbours), cmocka_unit_test(test_shape),
		cmocka_unit_test(test_read_error), cmocka_unit_test(test_big),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
