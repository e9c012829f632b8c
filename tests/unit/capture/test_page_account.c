// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the pages of an address space add up to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "capture/page_account.h"
#include "capture/resident.h"
#include "views/skel.h"

#define OWNERS	   8
#define PAGE_SHIFT 12
#define NOBODY	   4194303 /* PID_MAX_LIMIT - 1: no process */

struct fixture {
	struct sb_pagetab pages;
	struct sb_pageset before;
	struct sb_page_account account;
	uint64_t held[OWNERS], swapped[OWNERS], gained[OWNERS];
};

static void take(void *arg, const struct sb_page *fault, bool is_swapped)
{
	struct fixture *f = arg;

	assert_in_range(fault->owner, 0, OWNERS - 1);
	*(is_swapped ? &f->swapped[fault->owner] : &f->held[fault->owner]) += 1ull << fault->shift;
}

static void gain(void *arg, const struct sb_page *page)
{
	struct fixture *f = arg;

	f->gained[page->owner]++;
}

static bool is_followed(void *arg, uint64_t number)
{
	(void)arg;
	return number / 16 % 4 == 0;
}

static void begin(struct fixture *f)
{
	memset(f->held, 0, sizeof(f->held));
	memset(f->swapped, 0, sizeof(f->swapped));
	memset(f->gained, 0, sizeof(f->gained));
	f->account = (struct sb_page_account){
		.pages = &f->pages,
		.before = &f->before,
		.space = 1,
		.page_shift = PAGE_SHIFT,
		.is_followed = is_followed,
		.take = take,
		.gain = gain,
		.arg = f,
	};
}

static void fault(struct fixture *f, uint64_t number, uint32_t owner, uint32_t shift)
{
	const struct sb_page page = {
		.space = 1, .number = number, .owner = owner, .shift = shift
	};
	struct sb_page old;

	assert_int_equal(sb_pagetab_put(&f->pages, &page, &old), 0);
}

static void run(struct fixture *f, uint64_t number, uint32_t nr, uint32_t kind)
{
	const struct sb_page_run of = { number << f->account.page_shift, nr, kind };

	assert_int_equal(sb_page_account_run(&f->account, &of), 0);
}

static const struct sb_sums *finish(struct fixture *f)
{
	const struct sb_sums *sums = &f->account.sums;
	uint64_t held = 0;
	size_t i;

	assert_int_equal(sb_page_account_finish(&f->account), 0);
	for (i = 0; i < OWNERS; i++)
		held += f->held[i];
	assert_int_equal(held, sums->held);
	return sums;
}

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .pages = { .nr_max = 10000 } };
	begin(&f);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sb_pagetab_release(&f->pages);
	sb_pageset_release(&f->before);
	return 0;
}

static void test_own_faults(void **state)
{
	struct fixture *f = *state;
	const struct sb_sums *sums;
	struct sb_page page;

	sb_pageset_append(&f->before, 1000);
	sb_pageset_append(&f->before, 1001);
	sb_pageset_append(&f->before, 5000);
	fault(f, 1002, 1, 0);
	fault(f, 1003, 2, 0);
	fault(f, 1004, 3, 0);
	fault(f, 90000, 4, 0);
	run(f, 1000, 3, SB_PAGE_PRESENT);
	run(f, 1003, 1, SB_PAGE_SWAPPED);
	run(f, 90001 + 512, 1, SB_PAGE_PRESENT);
	sums = finish(f);
	assert_int_equal(sums->resident, 4);
	assert_int_equal(sums->before, 2);
	assert_int_equal(sums->held, 1);
	assert_int_equal(f->held[1], 1);
	assert_int_equal(sums->swapped, 1);
	assert_int_equal(f->swapped[2], 1);
	assert_int_equal(sums->unaccounted, 1);
	/* What was found is marked as seen; what was not has gone. */
	assert_true(sb_pagetab_find(&f->pages, 1, 1002, false, &page) && page.is_seen);
	assert_true(sb_pagetab_find(&f->pages, 1, 1003, false, &page) && page.is_seen);
	assert_true(sb_pagetab_find(&f->pages, 1, 1004, false, &page) && !page.is_seen);
	assert_true(sb_pagetab_find(&f->pages, 1, 90000, false, &page) && !page.is_seen);
}

/* Pages that were there before, were gone at a look, and come again are not those of before. */
static void test_before_goes(void **state)
{
	struct fixture *f = *state;

	sb_pageset_append(&f->before, 70);
	sb_pageset_append(&f->before, 71);
	run(f, 70, 1, SB_PAGE_PRESENT);
	assert_int_equal(finish(f)->before, 1);
	begin(f);
	run(f, 70, 2, SB_PAGE_PRESENT);
	assert_int_equal(finish(f)->before, 1);
	assert_int_equal(f->account.sums.unaccounted, 1);
}

/* A fault in a file brings its neighbours within 16 pages, and none beyond. */
static void test_fault_around(void **state)
{
	struct fixture *f = *state;

	fault(f, 32, 1, 0);
	fault(f, 47, 2, 0);
	run(f, 30, 2, SB_PAGE_PRESENT);
	run(f, 32, 16, SB_PAGE_PRESENT | SB_PAGE_FILE);
	run(f, 49, 1, SB_PAGE_PRESENT | SB_PAGE_FILE);
	assert_int_equal(finish(f)->held, 16 + 2);
	assert_int_equal(f->held[1], 8 + 2);
	assert_int_equal(f->held[2], 8);
	assert_int_equal(f->account.sums.along, 14 + 2);
	assert_int_equal(f->account.sums.unaccounted, 1);
}

/* The kernel maps a large folio of a file as a whole: it lies around the fault, without gaps. */
static void test_folio(void **state)
{
	struct fixture *f = *state;

	fault(f, 130, 1, 0);
	fault(f, 300, 2, 0);
	run(f, 100, 100, SB_PAGE_PRESENT | SB_PAGE_FILE);
	run(f, 220, 30, SB_PAGE_PRESENT | SB_PAGE_FILE);
	run(f, 250, 30, SB_PAGE_PRESENT | SB_PAGE_ACCOUNT_PASS);
	run(f, 280, 40, SB_PAGE_PRESENT | SB_PAGE_FILE);
	assert_int_equal(finish(f)->held, 140);
	assert_int_equal(f->held[1], 100);
	assert_int_equal(f->held[2], 40);
	assert_int_equal(f->account.sums.unaccounted, 30);
}

static void test_huge(void **state)
{
	struct fixture *f = *state;
	struct sb_page page;

	fault(f, 1024 + 100, 1, 0);
	fault(f, 512 + 10, 2, 0);
	run(f, 512, 10, SB_PAGE_PRESENT);
	run(f, 523, 489, SB_PAGE_PRESENT);
	run(f, 1024, 512, SB_PAGE_PRESENT | SB_PAGE_HUGE);
	run(f, 1536, 512, SB_PAGE_PRESENT | SB_PAGE_HUGE);
	assert_int_equal(finish(f)->held, 512 + 511 - 12);
	assert_int_equal(f->held[1], 512);
	assert_int_equal(f->account.sums.unaccounted, 512);
	/* The page of the second fault is gone: another one stands for it from now on. */
	assert_true(sb_pagetab_find(&f->pages, 1, 512 + 9, false, &page));
	assert_int_equal(page.owner, 2);
	assert_int_equal(f->gained[2], 499);
	assert_int_equal(f->gained[1], 0);
}

/* The page of zeros is no memory. */
static void test_zeros(void **state)
{
	struct fixture *f = *state;

	fault(f, 7, 1, 0);
	run(f, 7, 3, SB_PAGE_PRESENT | SB_PAGE_ZERO);
	assert_int_equal(finish(f)->resident, 0);
	assert_int_equal(f->account.sums.held, 0);
}

/* One window in four is followed: the others say nothing. */
static void test_sampled(void **state)
{
	struct fixture *f = *state;
	uint32_t i;

	f->account.shift = 2;
	for (i = 0; i < 16; i++)
		fault(f, 64 + i, 1, 2);
	run(f, 64, 64, SB_PAGE_PRESENT);
	run(f, 128 + 1024, 64, SB_PAGE_PRESENT);
	assert_int_equal(finish(f)->held, 64);
	assert_int_equal(f->account.sums.along, 0);
	assert_int_equal(f->account.sums.unaccounted, 64);
}

/* Half of the pages of before were written to since, as far as is known. */
static void test_sampled_before(void **state)
{
	struct fixture *f = *state;
	uint32_t i;

	f->account.shift = 2;
	for (i = 0; i < 256; i++)
		assert_int_equal(sb_pageset_append(&f->before, i), 0);
	for (i = 0; i < 16; i++) {
		fault(f, i, 1, 2);
		fault(f, 64 + i, 1, 2);
	}
	run(f, 0, 256, SB_PAGE_PRESENT);
	assert_int_equal(finish(f)->held, 128);
	assert_int_equal(sb_page_account_before(&f->account.sums), 128);
}

/* A huge page, or a folio of a file, can have come by a fault in a window that is not followed. */
static void test_sampled_along(void **state)
{
	struct fixture *f = *state;

	f->account.shift = 2;
	fault(f, 64, 1, 2);
	run(f, 0, 512, SB_PAGE_PRESENT | SB_PAGE_HUGE);
	run(f, 512, 512, SB_PAGE_PRESENT | SB_PAGE_HUGE);
	run(f, 1024 + 8, 32, SB_PAGE_PRESENT | SB_PAGE_FILE);
	run(f, 1024 + 128, 16, SB_PAGE_PRESENT | SB_PAGE_FILE);
	assert_int_equal(finish(f)->held, 512 * 4);
	assert_int_equal(f->account.sums.unaccounted, 16 * 4);
}

/* A window has 64 KiB, however large a page is: a page of a file behind a gap came with the fault
 * only if both are in one. */
static void test_large_pages(void **state)
{
	static const struct {
		uint32_t page_shift, nr_along;
	} cases[] = { { 12, 3 }, { 14, 1 }, { 16, 0 } };
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(f);
		f->account.page_shift = cases[i].page_shift;
		fault(f, 512 * i, 1, 0);
		run(f, 512 * i, 1, SB_PAGE_PRESENT | SB_PAGE_FILE);
		run(f, 512 * i + 2, 1, SB_PAGE_PRESENT | SB_PAGE_FILE);
		run(f, 512 * i + 6, 1, SB_PAGE_PRESENT | SB_PAGE_FILE);
		run(f, 512 * i + 14, 1, SB_PAGE_PRESENT | SB_PAGE_FILE);
		assert_int_equal(finish(f)->along, cases[i].nr_along);
		assert_int_equal(f->account.sums.unaccounted, 3 - cases[i].nr_along);
	}
}

/* The end of a process is known before the stacks of the last program that it ran. */
static void test_replaced_late(void **state)
{
	static __typeof__(*((struct sampler_bpf *)NULL)->rodata) rodata;
	static __typeof__(*((struct sampler_bpf *)NULL)->bss) bss;
	struct sampler_bpf skel = { .rodata = &rodata, .bss = &bss };
	struct sb_event_owner first = { .id = 1, .key = { .tgid = NOBODY, .start_ns = 1000 } },
			      last = first;
	const struct sb_page_event end = { .kind = SB_EVENT_ENDED,
					   .tgid = NOBODY,
					   .start_ns = 1000 };
	struct sb_page_records records = {};
	struct sb_resident *resident;
	struct sb_resident_stats stats;

	last.id = 2;
	last.key.exec_id = 1;
	assert_int_equal(sb_resident_new(&(struct sb_resident_opts){ .skel = &skel }, &resident),
			 0);
	assert_int_equal(sb_resident_add_owners(resident, &first, 1), 0);
	assert_int_equal(sb_vec_push(&records.events, end), 0);
	assert_int_equal(sb_resident_add(resident, &records, 1), 0);
	sb_resident_stats(resident, &stats);
	assert_int_equal(stats.nr_ended, 1);
	assert_int_equal(stats.nr_replaced, 0);
	assert_int_equal(sb_resident_add_owners(resident, &last, 1), 0);
	assert_int_equal(sb_resident_add(resident, &records, 2), 0);
	sb_resident_stats(resident, &stats);
	assert_int_equal(stats.nr_ended, 1);
	assert_int_equal(stats.nr_replaced, 1);
	sb_page_records_release(&records);
	sb_resident_free(resident);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_own_faults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fault_around, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_folio, setup, teardown),
		cmocka_unit_test_setup_teardown(test_huge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_zeros, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sampled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sampled_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sampled_along, setup, teardown),
		cmocka_unit_test(test_replaced_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
