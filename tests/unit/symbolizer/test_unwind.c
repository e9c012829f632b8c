// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sb_symbolizer_unwind() on stacks of this very process, taken in deep and in odd places. The truth
 * is backtrace(3), whose unwinder (libgcc's) has its own reader of CFI.
 */
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/time.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/sb_sym.h"

#ifdef __x86_64__

#define NOBODY 5000000u /* above PID_MAX_LIMIT: never a process */
#define BOTH   (SB_UNWIND_CFI | SB_UNWIND_FP)

enum { MAX = 300, STACK_MAX = 1 << 20 };

static struct sb_symbolizer *sym;
static char stack[STACK_MAX];
static struct sb_sym_unwind from;
static void *truth[MAX];
static int nr_truth;
static uint64_t ip[MAX];
static size_t nr_ip;
static uint32_t status;

static int setup_with(size_t heavy_bytes_max)
{
	struct sb_symbolizer_opts opts = { .heavy_bytes_max = heavy_bytes_max };

	return sb_symbolizer_new(&opts, &sym);
}

static int setup(void **state)
{
	return setup_with(0);
}

static int teardown(void **state)
{
	sb_symbolizer_free(sym);
	return 0;
}

static uint64_t stack_end(void)
{
	pthread_attr_t attr;
	size_t size;
	void *low;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	assert_int_equal(pthread_attr_getstack(&attr, &low, &size), 0);
	pthread_attr_destroy(&attr);
	return (uint64_t)(uintptr_t)low + size;
}

/* backtrace() begins with the frame that called it, which may be a sanitizer's. */
static void take_truth(const void *caller)
{
	int skip = 1;

	nr_truth = backtrace(truth, MAX);
	while (skip < nr_truth && truth[skip] != caller)
		skip++;
	assert_true(skip < nr_truth);
	nr_truth -= skip - 1;
	memmove(truth, truth + skip - 1, (size_t)nr_truth * sizeof(*truth));
}

/* The stack as it is here, and what backtrace() makes of it; what differs is where in here. */
static __attribute__((noinline)) int take(void)
{
	static const int regs[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				    REG_RBP, REG_RSP, REG_R8,  REG_R9,	REG_R10, REG_R11,
				    REG_R12, REG_R13, REG_R14, REG_R15 };
	ucontext_t here;
	uint64_t low;
	size_t i;

	take_truth(__builtin_return_address(0));
	assert_int_equal(getcontext(&here), 0);
	from = (struct sb_sym_unwind){
		.time_ns = sb_now_ns(),
		.tgid = (uint32_t)getpid(),
		.modes = BOTH,
		.pc = (uint64_t)here.uc_mcontext.gregs[REG_RIP],
		.stack = stack,
	};
	for (i = 0; i < SB_UNWIND_REGS; i++)
		from.regs[i] = (uint64_t)here.uc_mcontext.gregs[regs[i]];
	low = from.stack_addr = from.regs[7] - SB_RED_ZONE_BYTES;
	from.stack_bytes = stack_end() - low;
	if (from.stack_bytes > STACK_MAX)
		from.stack_bytes = STACK_MAX;
	/* By the kernel: a sanitizer would not have us read others' frames. */
	assert_int_equal(sb_procfs_read_memory(from.tgid, low, stack, from.stack_bytes), 0);
	return nr_truth;
}

static void unwind(void)
{
	nr_ip = status = 0xee;
	assert_int_equal(sb_symbolizer_unwind(sym, &from, ip, MAX, &nr_ip, &status), 0);
	assert_int_equal(ip[0], from.pc);
}

/* The first frames are as they should be. */
static void expect_frames(size_t nr)
{
	size_t i;

	assert_int_equal(nr_ip, nr);
	assert_true(nr <= (size_t)nr_truth);
	for (i = 1; i < nr; i++)
		assert_int_equal(ip[i] & ~SB_IP_MARKS, (uintptr_t)truth[i]);
}

static void expect_complete(void)
{
	unwind();
	assert_int_equal(status, SB_STACK_COMPLETE);
	expect_frames((size_t)nr_truth);
}

/* Down through the C library, which has no frame pointers, with frames of some size. */
static int depth;

static __attribute__((noinline)) int descend(const void *a, const void *b)
{
	volatile char frame[700];
	int two[2] = { 2, 1 };

	frame[0] = 1;
	if (depth < 0)
		return 0; /* a sanitizer compares more often */
	if (!depth--)
		return take();
	qsort(two, 2, sizeof(*two), descend);
	return frame[0];
}

static void test_deep(void **state)
{
	struct sb_sym_stats stats;
	size_t bytes;

	depth = 20;
	descend(NULL, NULL);
	assert_true(nr_truth > 40);
	expect_complete();
	sb_symbolizer_stats(sym, &stats);
	bytes = stats.nr_heavy_bytes;
	assert_true(bytes > 100000); /* the C library's table */
	expect_complete();
	sb_symbolizer_stats(sym, &stats);
	assert_int_equal(stats.nr_heavy_bytes, bytes);
}

/* The tables of all modules are dropped as soon as they were used, and made again. */
static void test_evicted(void **state)
{
	struct sb_sym_stats stats;

	teardown(state);
	assert_int_equal(setup_with(1), 0);
	depth = 5;
	descend(NULL, NULL);
	expect_complete();
	expect_complete();
	sb_symbolizer_stats(sym, &stats);
	assert_int_equal(stats.nr_heavy_bytes, 0);
	assert_true(stats.nr_heavy_bytes_peak > 100000);
	assert_true(stats.nr_evictions > 2);
}

static void test_piece(void **state)
{
	depth = 60;
	descend(NULL, NULL);
	from.stack_bytes = SB_RAW_BYTES_MAX;
	unwind();
	assert_int_equal(status, SB_STACK_PIECE);
	assert_true(nr_ip > 20);
	expect_frames(nr_ip);
	from.stack_bytes = 8192; /* less than a full one: a page behind it could not be read */
	unwind();
	assert_int_equal(status, SB_STACK_FAULT);
	assert_true(nr_ip > 2);
	expect_frames(nr_ip);
	from.stack_bytes = 0;
	unwind();
	assert_int_equal(status, SB_STACK_FAULT);
	expect_frames(1);
}

static void test_depth(void **state)
{
	depth = 5;
	descend(NULL, NULL);
	assert_int_equal(sb_symbolizer_unwind(sym, &from, ip, 7, &nr_ip, &status), 0);
	assert_int_equal(status, SB_STACK_DEPTH);
	expect_frames(7);
}

static void test_modes(void **state)
{
	depth = 3;
	descend(NULL, NULL);
	from.modes = SB_UNWIND_CFI;
	expect_complete();
	from.modes = 0;
	unwind();
	assert_int_equal(status, SB_STACK_COMPLETE);
	assert_int_equal(nr_ip, 1);
}

/* Nothing is known of a process: whatever is found is not by tables. */
static void test_nobody(void **state)
{
	depth = 3;
	descend(NULL, NULL);
	from.tgid = NOBODY;
	unwind();
	assert_int_equal(status, SB_STACK_NO_TABLE);
	from.modes = SB_UNWIND_CFI;
	unwind();
	assert_int_equal(status, SB_STACK_NO_TABLE);
	assert_int_equal(nr_ip, 1);
}

static void handler(int nr)
{
	depth = 2;
	descend(NULL, NULL);
}

static void test_signal(void **state)
{
	struct sigaction action = { .sa_handler = handler };
	size_t i, nr_exact = 0;

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	raise(SIGUSR1);
	expect_complete();
	for (i = 0; i < nr_ip; i++) {
		nr_exact += !!(ip[i] & SB_IP_EXACT);
		assert_false(ip[i] & SB_IP_BY_FP);
	}
	assert_int_equal(nr_exact, 1);
}

/* Code without CFI: the frame pointer, in the middle of a walk by tables, and at its start. */
int without_cfi(int (*fn)(void));
extern const char without_cfi_ret[];
__asm__(".text\n"
	"	.skip	64, 0x90\n"
	"	.globl	without_cfi\n"
	"	.type	without_cfi, @function\n"
	"without_cfi:\n"
	"	push	%rbp\n"
	"	mov	%rsp, %rbp\n"
	"	call	*%rdi\n"
	"	pop	%rbp\n"
	"without_cfi_ret:\n"
	"	ret\n"
	"	.size	without_cfi, . - without_cfi\n"
	"	.skip	64, 0x90\n");

/* At rsp + @at. */
static uint64_t put_word(size_t at, uint64_t word)
{
	memcpy(stack + SB_RED_ZONE_BYTES + at, &word, sizeof(word));
	return word;
}

static void test_without_cfi(void **state)
{
	uint64_t code = (uintptr_t)without_cfi;
	size_t i;

	without_cfi(take);
	unwind();
	assert_int_equal(status, SB_STACK_COMPLETE);
	assert_true(nr_ip > 4);
	assert_in_range(ip[1], code, (uintptr_t)without_cfi_ret);
	assert_true(ip[2] & SB_IP_BY_FP);
	for (i = 3; i < nr_ip; i++)
		assert_false(ip[i] & SB_IP_BY_FP);
	from.modes = SB_UNWIND_CFI;
	unwind();
	assert_int_equal(status, SB_STACK_NO_RULE);
	assert_int_equal(nr_ip, 2);

	/* Interrupted at each of its instructions: the bytes in the file say where rbp is. */
	for (i = 0; i < 4; i++) {
		static const uint8_t offsets[] = { 0, 1, 4, 7 };
		uint64_t rsp = from.regs[7], word = i == 1 || i == 2 ? 8 : 0, caller;

		from.modes = BOTH;
		from.pc = code + offsets[i];
		put_word(0, 0);
		caller = put_word(word, (uintptr_t)truth[1]);
		from.regs[6] = i == 2 ? rsp : rsp + 512;
		put_word(512 + 8,
			 (uintptr_t)without_cfi_ret); /* what following rbp would lead to */
		from.stack_bytes = 1024;
		unwind();
		assert_true(nr_ip > 1);
		assert_int_equal(ip[1], caller | SB_IP_BY_FP);
	}
}

/* A process with mappings that are not those of the stack: what lies nowhere is no frame. */
static void test_unmapped(void **state)
{
	take();
	put_word(0, 0);
	from.pc = (uintptr_t)stack; /* data */
	unwind();
	assert_int_equal(status, SB_STACK_BAD_PC);
	assert_int_equal(nr_ip, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_deep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_evicted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_piece, setup, teardown),
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_modes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_cfi, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unmapped, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
int main(void)
{
	puts("skipped: rules are for x86-64");
	return 77;
}
#endif
