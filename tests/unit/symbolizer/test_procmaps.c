// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Versioned mappings: the cases by name, then random histories, delivered out of order, against a
 * model that sorts all events and paints them page by page.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "symbolizer/process/procmaps.h"

#define NOTHING UINT32_MAX

static struct sb_procmaps pm;

static int setup(void **state)
{
	pm = (struct sb_procmaps){};
	return 0;
}

static int teardown(void **state)
{
	sb_procmaps_release(&pm);
	assert_true(pm.nr_mappings == 0);
	assert_int_equal(pm.nr_generations, 0);
	return 0;
}

static void map(uint64_t time_ns, uint32_t tgid, uint64_t start, uint64_t len, uint32_t file)
{
	struct sb_procmaps_new new = { .start = start, .end = start + len, .file = file };

	assert_int_equal(sb_procmaps_mmap(&pm, time_ns, tgid, &new), 0);
}

static void map_anon(uint64_t time_ns, uint32_t tgid, uint64_t start, uint64_t len, uint32_t file)
{
	struct sb_procmaps_new new = {
		.start = start, .end = start + len, .file = file, .is_anon = true
	};

	assert_int_equal(sb_procmaps_mmap(&pm, time_ns, tgid, &new), 0);
}

static uint32_t file_at(uint32_t tgid, uint64_t time_ns, uint64_t addr)
{
	struct sb_procmaps_hit hit;
	struct sb_procgen *gen;
	bool limit;

	gen = sb_procmaps_find(&pm, tgid, time_ns, &limit);
	assert_false(limit);
	return gen && sb_procgen_lookup(gen, addr, time_ns, false, &hit) ? hit.map.file : NOTHING;
}

static void test_replaced(void **state)
{
	map(10, 1, 0x1000, 0x4000, 7);
	map(20, 1, 0x2000, 0x1000, 8); /* dlclose, dlopen at the same address */
	assert_int_equal(file_at(1, 9, 0x2000), NOTHING);
	assert_int_equal(file_at(1, 10, 0x2000), 7);
	assert_int_equal(file_at(1, 19, 0x2fff), 7);
	assert_int_equal(file_at(1, 20, 0x2000), 8);
	assert_int_equal(file_at(1, 20, 0x1fff), 7);
	assert_int_equal(file_at(1, 20, 0x3000), 7);
	assert_int_equal(file_at(1, 20, 0x5000), NOTHING);
	map(15, 1, 0x2000, 0x2000, 9); /* late */
	assert_int_equal(file_at(1, 19, 0x2fff), 9);
	assert_int_equal(file_at(1, 20, 0x2fff), 8);
	assert_int_equal(file_at(1, 20, 0x3000), 9);
}

static uint64_t change(uint32_t tgid, uint64_t addr, uint64_t from_ns, uint64_t to_ns)
{
	bool limit;

	return sb_procgen_next_change(sb_procmaps_find(&pm, tgid, from_ns, &limit), addr, from_ns,
				      to_ns);
}

static void test_next_change(void **state)
{
	map(10, 1, 0x1000, 0x4000, 7);
	map(20, 1, 0x1000, 0x4000, 7); /* a change of protection */
	map(30, 1, 0x2000, 0x1000, 8);
	map(40, 1, 0x1000, 0x4000, 7);
	assert_true(change(1, 0x2000, 9, 99) == UINT64_MAX); /* nothing lay there */
	assert_int_equal(change(1, 0x2000, 10, 99), 30);
	assert_int_equal(change(1, 0x2fff, 29, 30), 30);
	assert_true(change(1, 0x2000, 10, 29) == UINT64_MAX);
	assert_int_equal(change(1, 0x2000, 30, 99), 40);
	assert_true(change(1, 0x2000, 40, 99) == UINT64_MAX);
	assert_true(change(1, 0x1fff, 10, 99) == UINT64_MAX);
	assert_true(change(1, 0x3000, 10, 99) == UINT64_MAX);
	/* Of what its parent maps later a child sees nothing. */
	assert_int_equal(sb_procmaps_fork(&pm, 25, 2, 1), 0);
	assert_true(change(2, 0x2000, 26, 99) == UINT64_MAX);
	map(50, 2, 0x2000, 0x1000, 9);
	assert_int_equal(change(2, 0x2000, 26, 99), 50);
}

static void test_fork_exec_exit(void **state)
{
	map(10, 1, 0x1000, 0x1000, 7);
	assert_int_equal(sb_procmaps_fork(&pm, 20, 2, 1), 0);
	map(30, 1, 0x1000, 0x1000, 8); /* the parent's, after the fork */
	assert_int_equal(file_at(2, 40, 0x1000), 7);
	map(15, 1, 0x8000, 0x1000, 9); /* the parent's, before the fork, late */
	assert_int_equal(file_at(2, 40, 0x8000), 9);
	assert_int_equal(sb_procmaps_exec(&pm, 50, 2), 0);
	map(51, 2, 0x4000, 0x1000, 10);
	assert_int_equal(file_at(2, 49, 0x1000), 7);
	assert_int_equal(file_at(2, 51, 0x1000), NOTHING);
	assert_int_equal(file_at(2, 51, 0x4000), 10);
	assert_int_equal(file_at(2, 49, 0x4000), NOTHING);
	assert_int_equal(sb_procmaps_exit(&pm, 60, 2), 0);
	assert_int_equal(file_at(2, 70, 0x4000), 10);
	assert_int_equal(sb_procmaps_fork(&pm, 80, 2, 1), 0); /* the number again */
	assert_int_equal(file_at(2, 79, 0x4000), 10);
	assert_int_equal(file_at(2, 80, 0x4000), NOTHING);
	assert_int_equal(file_at(2, 80, 0x1000), 8);
}

/* exec and fork arrive after the mappings that follow them. */
static void test_late_generations(void **state)
{
	map(10, 1, 0x1000, 0x1000, 7);
	map(30, 1, 0x1000, 0x1000, 8);
	assert_int_equal(sb_procmaps_fork(&pm, 40, 2, 1), 0);
	map(60, 2, 0x2000, 0x1000, 9);
	assert_int_equal(sb_procmaps_exec(&pm, 20, 1), 0);
	assert_int_equal(file_at(1, 19, 0x1000), 7);
	assert_int_equal(file_at(1, 25, 0x1000), NOTHING);
	assert_int_equal(file_at(2, 50, 0x1000), 8);
	assert_int_equal(sb_procmaps_exec(&pm, 55, 2), 0);
	assert_int_equal(file_at(2, 54, 0x1000), 8);
	assert_int_equal(file_at(2, 60, 0x1000), NOTHING);
	assert_int_equal(file_at(2, 60, 0x2000), 9);
}

static void seed_one(uint64_t time_ns, uint64_t over_ns, uint32_t tgid, uint32_t file)
{
	struct sb_procmaps_new new = { .start = 0x1000, .end = 0x3000, .file = file };
	struct sb_procgen *gen;

	assert_int_equal(sb_procmaps_seed_begin(&pm, time_ns, tgid, &gen), 0);
	assert_non_null(gen);
	assert_int_equal(sb_procmaps_seed(&pm, gen, over_ns, &new, 1), 0);
	sb_procmaps_seed_end(gen, 0, over_ns, time_ns + 5);
}

static void test_seed(void **state)
{
	struct sb_procgen *gen;

	/* Events win, before or after; what only /proc knows holds from the beginning. */
	map(10, 1, 0x1000, 0x1000, 7);
	seed_one(20, 0, 1, 8);
	assert_int_equal(file_at(1, 30, 0x1000), 7);
	assert_int_equal(file_at(1, 30, 0x2000), 8);
	assert_int_equal(file_at(1, 5, 0x2000), 8);
	map(22, 1, 0x2000, 0x1000, 9);
	assert_int_equal(file_at(1, 22, 0x2000), 9);
	/* An exec while it was read: what was read is of which address space? */
	assert_int_equal(sb_procmaps_exec(&pm, 24, 1), 0);
	assert_int_equal(file_at(1, 23, 0x1000), 7);
	assert_int_equal(file_at(1, 21, 0x2000), NOTHING);
	assert_int_equal(file_at(1, 24, 0x2000), NOTHING);
	/* An exec after that leaves it alone. */
	seed_one(30, 0, 1, 10);
	assert_int_equal(sb_procmaps_exec(&pm, 36, 1), 0);
	assert_int_equal(file_at(1, 35, 0x2000), 10);
	assert_int_equal(file_at(1, 24, 0x2000), 10);
	assert_int_equal(file_at(1, 36, 0x2000), NOTHING);
	/* Of a time before the generation: nothing to do. */
	assert_int_equal(sb_procmaps_seed_begin(&pm, 33, 1, &gen), 0);
	assert_null(gen);
}

static void test_seed_after_loss(void **state)
{
	map(10, 1, 0x1000, 0x1000, 7);
	map(40, 1, 0x2000, 0x1000, 8);
	seed_one(50, 30, 1, 9); /* lost until 30, read at 50 */
	assert_int_equal(file_at(1, 29, 0x1000), 7);
	assert_int_equal(file_at(1, 30, 0x1000), 9);
	assert_int_equal(file_at(1, 39, 0x2000), 9);
	assert_int_equal(file_at(1, 40, 0x2000), 8);
	/* The process is another one by now. */
	assert_int_equal(sb_procmaps_exit(&pm, 60, 1), 0);
	seed_one(70, 70, 1, 10);
	assert_int_equal(file_at(1, 65, 0x1000), 9);
	assert_int_equal(file_at(1, 70, 0x1000), 10);
}

static struct sb_procgen *reseed(uint64_t time_ns, const struct sb_procmaps_new *maps, size_t nr)
{
	struct sb_procgen *gen;

	assert_int_equal(sb_procmaps_seed_begin(&pm, time_ns, 1, &gen), 0);
	assert_non_null(gen);
	assert_int_equal(sb_procmaps_seed(&pm, gen, time_ns, maps, nr), 0);
	sb_procmaps_seed_end(gen, 0, time_ns, time_ns + 5);
	return gen;
}

/* What could not be kept is missing, so the process is to be read again. */
static void test_seed_without_memory(void **state)
{
	struct sb_procgen *gen;

	assert_int_equal(sb_procmaps_seed_begin(&pm, 50, 1, &gen), 0);
	sb_procmaps_seed_end(gen, -ENOMEM, 50, 55);
	assert_true(!gen->is_complete && !gen->lost_ns && gen->seed_read_ns == 55);
	sb_procmaps_seed_end(gen, 0, 50, 60);
	assert_true(gen->is_complete && gen->lost_ns == 50);
}

/* Of a process that is read again and again, only what changed is added, and what it has unmapped
 * goes. */
static void test_seed_again(void **state)
{
	const struct sb_procmaps_new maps[] = {
		{ .start = 0x1000, .end = 0x2000, .file = 7 },
		{ .start = 0x4000, .end = 0x5000, .file = 8 },
		/* Text that was moved: the file below, the anonymous memory above. */
		{ .start = 0x6000, .end = 0x7000, .file = 9 },
		{ .start = 0x6000, .end = 0x7000, .file = 10, .is_anon = true },
	};
	struct sb_procmaps_hit hit;
	struct sb_procgen *gen;

	map(10, 1, 0x1000, 0x1000, 7);
	map(11, 1, 0x3000, 0x1000, 8);
	gen = reseed(50, maps, 4);
	assert_int_equal(pm.nr_mappings, 5);
	assert_int_equal(file_at(1, 60, 0x3000), 8); /* a sample of before can still come */
	sb_procmaps_forget(&pm, 70);
	gen = reseed(80, maps, 4);
	assert_true(sb_procgen_lookup(gen, 0x6000, 90, false, &hit));
	assert_int_equal(hit.map.file, 10);
	assert_true(sb_procgen_lookup(gen, 0x6000, 90, true, &hit));
	assert_int_equal(hit.map.file, 9);
	sb_procmaps_forget(&pm, 100);
	assert_int_equal(file_at(1, 110, 0x3000), NOTHING);
	assert_int_equal(file_at(1, 110, 0x4000), 8);
	assert_int_equal(pm.nr_mappings, 4);
}

/* A process at its bound that unmaps is known again once it has been read. */
static void test_bound_is_left(void **state)
{
	const struct sb_procmaps_new maps[] = {
		{ .start = 0x1000, .end = 0x2000, .file = 9 },
		{ .start = 0x10002000, .end = 0x10003000, .file = 9 },
	};
	struct sb_procgen *gen;
	uint32_t i;

	for (i = 0; i <= SB_PROCMAPS_MAPPINGS_MAX; i++)
		map(10 + i, 1, 0x10000000 - 0x2000ull * i, 0x1000, i);
	gen = reseed(40000, maps, 1);
	/* Of what lies above the last one nothing was said: the file could have been too long to be
	 * read. */
	assert_true(sb_procgen_has_hole(gen));
	assert_int_equal(pm.nr_mappings, SB_PROCMAPS_MAPPINGS_MAX);
	sb_procmaps_forget(&pm, 50000);
	gen = reseed(60000, maps, 2);
	assert_false(sb_procgen_has_hole(gen));
	assert_int_equal(file_at(1, 60000, 0x1000), 9);
	assert_int_equal(pm.nr_mappings, 2);
}

static double seconds_to_map(int64_t step)
{
	clock_t begin = clock();
	uint32_t i;

	for (i = 0; i < SB_PROCMAPS_MAPPINGS_MAX; i++)
		map(10 + i, 1, (uint64_t)(0x10000000 + step * i), 0x1000, 7);
	file_at(1, 50000, 0x1000);
	sb_procmaps_release(&pm);
	pm = (struct sb_procmaps){};
	return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* A program that maps downward, as the kernel gives out addresses, costs about as much as one that
 * maps upward. */
static void test_descending(void **state)
{
	double up = 0, down = 0;
	int i;

	for (i = 0; i < 3; i++) {
		up += seconds_to_map(0x2000);
		down += seconds_to_map(-0x2000);
	}
	if (down > 20 * up)
		fail_msg("%.3f s instead of %.3f s", down, up);
}

static void test_shadow(void **state)
{
	struct sb_procmaps_hit hit;
	struct sb_procgen *gen;
	bool limit;

	map(10, 1, 0x1000, 0x4000, 7);
	map_anon(20, 1, 0x2000, 0x1000, 0);
	sb_procmaps_forget(&pm, 100);
	gen = sb_procmaps_find(&pm, 1, 100, &limit);
	assert_true(sb_procgen_lookup(gen, 0x2000, 100, false, &hit));
	assert_true(hit.map.is_anon);
	assert_true(sb_procgen_lookup(gen, 0x2000, 100, true, &hit));
	assert_int_equal(hit.map.file, 7);
	assert_false(sb_procgen_lookup(gen, 0x2000, 9, true, &hit));
}

static void test_fork_chain(void **state)
{
	const uint32_t nr = SB_PROCMAPS_FORKS_MAX * 3;
	uint32_t i;

	map(1, 1, 0x1000, 0x1000, 7);
	for (i = 1; i <= nr; i++) {
		map(i * 10, i, 0x10000 + i * 0x1000, 0x1000, 100 + i);
		assert_int_equal(sb_procmaps_fork(&pm, i * 10 + 5, i + 1, i), 0);
	}
	assert_int_equal(file_at(nr + 1, nr * 20, 0x1000), 7);
	for (i = 1; i <= nr; i++)
		assert_int_equal(file_at(nr + 1, nr * 20, 0x10000 + i * 0x1000), 100 + i);
	/* Parents that ended are kept for their children, and go with them. */
	for (i = 1; i <= nr; i++)
		assert_int_equal(sb_procmaps_exit(&pm, nr * 20 + i, i), 0);
	sb_procmaps_forget(&pm, nr * 40);
	assert_int_equal(file_at(nr + 1, nr * 50, 0x10000 + nr * 0x1000), 100 + nr);
	assert_int_equal(sb_procmaps_exit(&pm, nr * 50, nr + 1), 0);
	sb_procmaps_forget(&pm, nr * 60);
	assert_int_equal(pm.nr_generations, 0);
	assert_int_equal(pm.processes.nr, 0);
	assert_true(pm.nr_mappings == 0);
}

/* A JIT that toggles two of its regions for ever needs no memory for it. */
static void test_repeats(void **state)
{
	uint64_t time_ns = 0;
	int i;

	for (i = 0; i < 100000; i++) {
		time_ns += SB_NS_PER_MS * 50;
		map_anon(time_ns, 1, i % 2 ? 0x1000 : 0x8000, 0x1000, 0);
	}
	assert_true(pm.nr_mappings < 200);
	assert_int_equal(file_at(1, time_ns, 0x1000), 0);
	assert_int_equal(file_at(1, time_ns, 0x8000), 0);
	assert_true(pm.nr_mappings_refused == 0);
}

static void test_bounds(void **state)
{
	struct sb_procgen *gen;
	bool limit;
	uint32_t i;

	for (i = 0; i < SB_PROCMAPS_MAPPINGS_MAX + 10; i++)
		map(i, 1, 0x100000 + i * 0x1000ull, 0x1000, i);
	assert_true(pm.nr_mappings == SB_PROCMAPS_MAPPINGS_MAX);
	assert_true(pm.nr_mappings_refused == 10);
	gen = sb_procmaps_find(&pm, 1, i, &limit);
	assert_true(sb_procgen_has_hole(gen));
	assert_int_equal(sb_procmaps_fork(&pm, i, 2, 1), 0);
	assert_true(sb_procgen_has_hole(sb_procmaps_find(&pm, 2, i, &limit)));
	/* One generation too many: not known, rather than known wrong. */
	for (i = pm.nr_generations; i < SB_PROCMAPS_GENERATIONS_MAX; i++)
		assert_int_equal(sb_procmaps_exec(&pm, SB_NS_PER_SEC + i, i), 0);
	assert_true(pm.nr_generations_refused == 0);
	assert_int_equal(sb_procmaps_exec(&pm, SB_NS_PER_SEC * 2, 1), 0);
	assert_true(pm.nr_generations_refused == 1);
	assert_non_null(sb_procmaps_find(&pm, 1, SB_NS_PER_SEC, &limit));
	assert_null(sb_procmaps_find(&pm, 1, SB_NS_PER_SEC * 2, &limit));
	assert_true(limit);
	/* Once there is room again, the next exec is taken. */
	for (i = 3; i < SB_PROCMAPS_GENERATIONS_MAX; i++)
		assert_int_equal(sb_procmaps_exit(&pm, SB_NS_PER_SEC * 3, i), 0);
	sb_procmaps_forget(&pm, SB_NS_PER_SEC * 4);
	assert_int_equal(sb_procmaps_exec(&pm, SB_NS_PER_SEC * 5, 1), 0);
	assert_non_null(sb_procmaps_find(&pm, 1, SB_NS_PER_SEC * 5, &limit));
}

/* Random histories */

enum { NR_PIDS = 6, NR_PAGES = 24, NR_EVENTS = 1500, MAX_GENS = NR_EVENTS };

enum kind { MMAP, FORK, EXEC, EXIT };

struct event {
	enum kind kind;
	uint64_t time_ns;
	uint32_t tgid, parent;
	struct sb_procmaps_new map;
	uint64_t arrival;
};

/* What is mapped where in each process; a fork copies it, an exec clears it. */
struct model {
	struct page {
		uint32_t file;
		uint64_t pgoff;
	} pages[NR_PIDS][NR_PAGES];
	bool is_dead[NR_PIDS];
};

static uint64_t random_state;

static uint32_t rnd(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

static int by_arrival(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return x->arrival < y->arrival ? -1 : x->arrival > y->arrival;
}

/* Only what can happen: the dead do nothing, and fork makes a process out of a dead number. */
static void choose(struct event *ev, bool *is_dead)
{
	uint32_t what = rnd(100);

	ev->tgid = rnd(NR_PIDS);
	ev->parent = (ev->tgid + 1 + rnd(NR_PIDS - 1)) % NR_PIDS;
	ev->kind = what < 97 ? MMAP : what < 99 ? EXEC : EXIT;
	if (is_dead[ev->parent])
		ev->parent = 0;
	if (is_dead[ev->tgid])
		ev->kind = FORK;
	else if (ev->kind == EXIT && ev->tgid == 0)
		ev->kind = MMAP;
	if (ev->kind == EXIT || ev->kind == FORK)
		is_dead[ev->tgid] = ev->kind == EXIT;
}

static void make_events(struct event *events, uint64_t max_delay_ns)
{
	bool is_dead[NR_PIDS] = {};
	uint64_t time_ns = 0;
	size_t i;

	for (i = 0; i < NR_EVENTS; i++) {
		struct event *ev = &events[i];
		uint32_t page = rnd(NR_PAGES);

		time_ns += 1 + rnd(20 * SB_NS_PER_MS);
		*ev = (struct event){
			.time_ns = time_ns,
			.arrival = time_ns + (max_delay_ns ? rnd((uint32_t)max_delay_ns) : 0),
		};
		choose(ev, is_dead);
		ev->map.start = (page + 1) * 0x1000;
		ev->map.end = ev->map.start + (1 + rnd(NR_PAGES - page)) * 0x1000ull;
		ev->map.file = 1 + rnd(4);
		ev->map.is_anon = ev->map.file == 4;
		ev->map.pgoff = rnd(2) * 0x1000;
		if (rnd(2)) { /* the same few again and again, as JITs do */
			ev->map.start = 0x5000;
			ev->map.end = 0x9000;
			ev->map.file = 4;
			ev->map.is_anon = true;
		}
	}
}

static void apply_to_model(struct model *model, const struct event *ev)
{
	struct page *pages = model->pages[ev->tgid];
	uint64_t addr;

	model->is_dead[ev->tgid] = ev->kind == EXIT;
	switch (ev->kind) {
	case MMAP:
		for (addr = ev->map.start; addr < ev->map.end; addr += 0x1000)
			pages[addr / 0x1000 - 1] =
				(struct page){ ev->map.file, ev->map.pgoff + addr - ev->map.start };
		break;
	case FORK:
		memcpy(pages, model->pages[ev->parent], sizeof(model->pages[0]));
		break;
	case EXEC:
		memset(pages, 0, sizeof(model->pages[0]));
		break;
	case EXIT:
		break;
	}
}

static void deliver(const struct event *ev)
{
	switch (ev->kind) {
	case MMAP:
		assert_int_equal(sb_procmaps_mmap(&pm, ev->time_ns, ev->tgid, &ev->map), 0);
		break;
	case FORK:
		assert_int_equal(sb_procmaps_fork(&pm, ev->time_ns, ev->tgid, ev->parent), 0);
		break;
	case EXEC:
		assert_int_equal(sb_procmaps_exec(&pm, ev->time_ns, ev->tgid), 0);
		break;
	case EXIT:
		assert_int_equal(sb_procmaps_exit(&pm, ev->time_ns, ev->tgid), 0);
		break;
	}
}

static void compare(const struct model *model, uint64_t time_ns)
{
	struct sb_procmaps_hit hit;
	struct sb_procgen *gen;
	uint32_t tgid, page;
	bool limit, found;

	for (tgid = 0; tgid < NR_PIDS; tgid++) {
		if (model->is_dead[tgid]) /* may be forgotten or not */
			continue;
		for (page = 0; page < NR_PAGES; page++) {
			const struct page *want = &model->pages[tgid][page];

			gen = sb_procmaps_find(&pm, tgid, time_ns, &limit);
			found = gen && sb_procgen_lookup(gen, (page + 1) * 0x1000 + 0x123, time_ns,
							 false, &hit);
			assert_int_equal(found ? hit.map.file : 0, want->file);
			if (found && !hit.map.is_anon)
				assert_int_equal((page + 1) * 0x1000 - hit.map.start +
							 hit.map.pgoff,
						 want->pgoff);
		}
	}
}

static void run_random(uint64_t seed, uint64_t max_delay_ns, bool with_forget, bool with_lookups)
{
	sb_cleanup(sb_freep) struct event *events = calloc(NR_EVENTS, sizeof(*events));
	sb_cleanup(sb_freep) struct event *arriving = calloc(NR_EVENTS, sizeof(*events));
	struct model model = {};
	uint64_t forgotten_ns = 0;
	size_t i;

	assert_non_null(events);
	assert_non_null(arriving);
	random_state = seed;
	make_events(events, max_delay_ns);
	memcpy(arriving, events, NR_EVENTS * sizeof(*events));
	qsort(arriving, NR_EVENTS, sizeof(*arriving), by_arrival);
	for (i = 0; i < NR_EVENTS; i++) {
		deliver(&arriving[i]);
		if (with_lookups)
			file_at(arriving[i].tgid, arriving[i].time_ns, 0x5000);
		if (with_forget && i % 100 == 99 && arriving[i].arrival > 2 * max_delay_ns) {
			forgotten_ns = arriving[i].arrival - 2 * max_delay_ns;
			sb_procmaps_forget(&pm, forgotten_ns);
		}
	}
	for (i = 0; i < NR_EVENTS; i++) {
		apply_to_model(&model, &events[i]);
		if (events[i].time_ns >= forgotten_ns)
			compare(&model, events[i].time_ns);
	}
	sb_procmaps_release(&pm);
	pm = (struct sb_procmaps){};
}

static void test_random(void **state)
{
	uint64_t seed;

	for (seed = 1; seed <= 20; seed++) {
		run_random(seed, 0, false, false);
		run_random(seed, 300 * SB_NS_PER_MS, false, true);
		run_random(seed, 300 * SB_NS_PER_MS, true, seed % 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_next_change, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_exec_exit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_generations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seed_after_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seed_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seed_without_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bound_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descending, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shadow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_repeats, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
