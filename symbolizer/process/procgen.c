// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The mappings of one generation: an array ordered by place, with the highest end so far in each
 * element, so that a lookup goes backwards from the last mapping that begins at or below the
 * address, and stops where nothing before can reach it. New mappings are appended, and put in order
 * by the next lookup.
 *
 * A generation must not grow with each event. Three kinds of mappings are dropped: repeated ones
 * that tell nothing (when there are twice as many as the last time), those that /proc does not show
 * any more (when it is read again), and those that later ones hide (when old times are forgotten).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/time.h"
#include "symbolizer/process/procmaps_priv.h"

/*
 * Bound of neighbours that are examined to see whether a mapping is redundant; beyond it is kept.
 */
#define STEPS_MAX	64u
/* Number of mappings of a generation from which on repeated ones are searched. */
#define REPEATS_FROM	64u
/* Records of different CPUs come in the order of their CPU's buffer: older ones than this are
 * complete. */
#define OUT_OF_ORDER_NS SB_NS_PER_SEC
#define NEVER		SB_PROCMAPS_NEVER

/* Return: whether @a replaces @b: it was made later or, at the same time, arrived later. */
static bool is_later(const struct sb_mapping *a, const struct sb_mapping *b)
{
	return a->time_ns != b->time_ns ? a->time_ns > b->time_ns : a->seq > b->seq;
}

/* Return: the index of the first sorted mapping that is greater than (@start, @time_ns). */
static size_t upper_bound(const struct sb_procgen *gen, uint64_t start, uint64_t time_ns)
{
	const struct sb_mapping *maps = gen->maps.at;

	return sb_bisect(gen->nr_sorted, i,
			 maps[i].start < start ||
				 (maps[i].start == start && maps[i].time_ns <= time_ns));
}

static void fix_max_ends(struct sb_procgen *gen, size_t from)
{
	uint64_t max_end = from ? gen->maps.at[from - 1].max_end : 0;
	size_t i;

	for (i = from; i < gen->maps.nr; i++) {
		if (gen->maps.at[i].end > max_end)
			max_end = gen->maps.at[i].end;
		gen->maps.at[i].max_end = max_end;
	}
}

void sb_procgen_truncate(struct sb_procgen *gen, size_t nr)
{
	gen->maps.nr = gen->nr_sorted = nr;
	fix_max_ends(gen, 0);
}

static int by_place(const void *a, const void *b)
{
	const struct sb_mapping *x = a, *y = b;

	return sb_compare(x->start, y->start) ?: sb_compare(x->time_ns, y->time_ns) ?:
	       sb_compare(x->seq, y->seq);
}

/* Merge the sorted @tail into the mappings before it; from the end, so that none is overwritten. */
static size_t merge(struct sb_procgen *gen, const struct sb_mapping *tail, size_t nr_tail)
{
	struct sb_mapping *at = gen->maps.at;
	size_t i = gen->nr_sorted, to = gen->maps.nr;

	while (nr_tail) {
		if (i && by_place(&at[i - 1], &tail[nr_tail - 1]) > 0)
			at[--to] = at[--i];
		else
			at[--to] = tail[--nr_tail];
	}
	return to;
}

/*
 * All at once: to do so for each would move half of the array each time, and a program can map and
 * unmap hundreds of thousands of times a second.
 */
void sb_procgen_settle(struct sb_procgen *gen)
{
	size_t first = gen->nr_sorted, nr_tail = gen->maps.nr - first;
	struct sb_mapping *tail;

	if (!nr_tail)
		return;
	qsort(gen->maps.at + first, nr_tail, sizeof(*gen->maps.at), by_place);
	if (first && by_place(&gen->maps.at[first - 1], &gen->maps.at[first]) > 0) {
		tail = malloc(nr_tail * sizeof(*tail));
		if (tail) {
			memcpy(tail, gen->maps.at + first, nr_tail * sizeof(*tail));
			first = merge(gen, tail, nr_tail);
			free(tail);
		} else { /* slower, and needs no memory */
			qsort(gen->maps.at, gen->maps.nr, sizeof(*gen->maps.at), by_place);
			first = 0;
		}
	}
	gen->nr_sorted = gen->maps.nr;
	fix_max_ends(gen, first);
}

static bool is_overlapping(const struct sb_mapping *a, const struct sb_mapping *b)
{
	return a->start < b->end && b->start < a->end;
}

static bool is_same(const struct sb_mapping *a, const struct sb_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->file == b->file &&
	       (a->is_anon || a->pgoff == b->pgoff);
}

/*
 * Is @map what lay there before it, just the same? The first @nr_kept elements are looked at, and
 * those from @next on which are in order.
 */
static bool is_repeat(const struct sb_procgen *gen, const struct sb_mapping *map, size_t nr_kept,
		      size_t next)
{
	const struct sb_mapping *at, *top = NULL;
	size_t k, nr_steps = 0;

	for (k = nr_kept; k-- > 0 && gen->maps.at[k].max_end > map->start;) {
		at = &gen->maps.at[k];
		if (++nr_steps > STEPS_MAX)
			return false;
		if (is_overlapping(at, map) && !is_later(at, map) && (!top || is_later(at, top)))
			top = at;
	}
	for (k = next; k < gen->nr_sorted && gen->maps.at[k].start < map->end; k++) {
		at = &gen->maps.at[k];
		if (++nr_steps > STEPS_MAX)
			return false;
		if (!is_later(at, map) && (!top || is_later(at, top)))
			top = at;
	}
	/* A late exec drops mappings that were read from /proc, but not those of events. */
	return top && is_same(top, map) && (map->is_seed || !top->is_seed);
}

/*
 * JITs toggle the protection of their memory and get an event each time. Drop those that tell
 * nothing, unless a late event could still fall between.
 */
static void drop_repeats(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t newest_ns)
{
	uint64_t max_end = 0;
	size_t i, nr_kept = 0;

	sb_procgen_settle(gen);
	for (i = 0; i < gen->maps.nr; i++) {
		struct sb_mapping map = gen->maps.at[i];

		if (map.time_ns + OUT_OF_ORDER_NS < newest_ns &&
		    is_repeat(gen, &gen->maps.at[i], nr_kept, i + 1))
			continue;
		if (map.end > max_end)
			max_end = map.end;
		map.max_end = max_end;
		gen->maps.at[nr_kept++] = map;
	}
	pm->nr_mappings -= gen->maps.nr - nr_kept;
	gen->maps.nr = gen->nr_sorted = nr_kept;
	gen->repeats_from =
		(uint32_t)nr_kept * 2 > REPEATS_FROM ? (uint32_t)nr_kept * 2 : REPEATS_FROM;
}

int sb_procgen_insert(struct sb_procmaps *pm, struct sb_procgen *gen, struct sb_mapping map)
{
	if (gen->maps.nr >= REPEATS_FROM && gen->maps.nr >= gen->repeats_from)
		drop_repeats(pm, gen, map.time_ns);
	if (gen->maps.nr >= SB_PROCMAPS_MAPPINGS_MAX ||
	    pm->nr_mappings >= SB_PROCMAPS_ALL_MAPPINGS_MAX) {
		gen->has_hole = true;
		pm->nr_mappings_refused++;
		return 0;
	}
	if (sb_vec_push(&gen->maps, map))
		return -ENOMEM;
	if (map.time_ns > gen->newest_ns)
		gen->newest_ns = map.time_ns;
	pm->nr_mappings++;
	return 0;
}

int sb_procgen_add(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t time_ns, bool is_seed,
		   const struct sb_procmaps_new *new)
{
	struct sb_mapping map = {
		.start = new->start,
		.end = new->end,
		.pgoff = new->pgoff,
		.time_ns = time_ns,
		.seq = gen->next_seq++,
		.file = new->file,
		.is_anon = new->is_anon,
		.is_seed = is_seed,
	};

	return sb_procgen_insert(pm, gen, map);
}

/*
 * Drop what /proc does not show any more and what no sample can ask about: there is no event for
 * munmap, so a process that maps at ever new places would fill its bound with what is gone. @maps
 * is in order.
 */
static void drop_unmapped(struct sb_procmaps *pm, struct sb_procgen *gen,
			  const struct sb_procmaps_new *maps, size_t nr)
{
	size_t i, k = 0, nr_kept = 0;

	if (gen->nr_children)
		return; /* they may have it still */
	sb_procgen_settle(gen);
	for (i = 0; i < gen->maps.nr; i++) {
		const struct sb_mapping *map = &gen->maps.at[i];

		while (k < nr && maps[k].end <= map->start)
			k++;
		/*
		 * Mappings above the last one are kept: /proc may have been too long to be read to
		 * its end.
		 */
		if (map->time_ns > gen->unhidden_ns || k == nr || maps[k].start < map->end)
			gen->maps.at[nr_kept++] = *map;
	}
	pm->nr_mappings -= gen->maps.nr - nr_kept;
	sb_procgen_truncate(gen, nr_kept);
}

int sb_procmaps_seed(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t over_ns,
		     const struct sb_procmaps_new *maps, size_t nr)
{
	uint64_t last_end = 0;
	size_t i, at;
	int err = 0;

	if (over_ns)
		drop_unmapped(pm, gen, maps, nr);
	gen->has_hole &= !over_ns;
	if (over_ns < gen->start_ns)
		over_ns = gen->start_ns;
	for (i = 0; i < nr && !err; i++) {
		const struct sb_procmaps_new *map = &maps[i];

		if (map->start >= map->end)
			continue;
		at = upper_bound(gen, map->start, over_ns);
		/*
		 * A mapping that covers the one before it, as moved text does, belongs together
		 * with it.
		 */
		if (map->start >= last_end && is_repeat(gen,
							&(struct sb_mapping){
								.start = map->start,
								.end = map->end,
								.pgoff = map->pgoff,
								.time_ns = over_ns,
								.seq = UINT32_MAX,
								.file = map->file,
								.is_anon = map->is_anon,
								.is_seed = true,
							},
							at, at))
			continue;
		last_end = map->end;
		err = sb_procgen_add(pm, gen, over_ns, true, map);
	}
	return err;
}

static const struct sb_mapping *find_in(const struct sb_procgen *gen, uint64_t addr,
					uint64_t time_ns, bool files)
{
	const struct sb_mapping *map, *best = NULL;
	size_t i = upper_bound(gen, addr, NEVER);

	while (i-- > 0 && gen->maps.at[i].max_end > addr) {
		map = &gen->maps.at[i];
		if (map->end <= addr || map->time_ns > time_ns || (files && map->is_anon))
			continue;
		if (!best || is_later(map, best))
			best = map;
	}
	return best;
}

bool sb_procgen_lookup(struct sb_procgen *gen, uint64_t addr, uint64_t time_ns, bool files,
		       struct sb_procmaps_hit *ret_hit)
{
	const struct sb_mapping *map;

	for (; gen; gen = gen->parent) {
		sb_procgen_settle(gen);
		map = find_in(gen, addr, time_ns, files);
		if (map) {
			*ret_hit = (struct sb_procmaps_hit){ .map = *map, .gen = gen };
			return true;
		}
		if (gen->parent && gen->fork_ns < time_ns)
			time_ns = gen->fork_ns;
	}
	return false;
}

/* Return: whether an address means the same in both. Anonymous memory has no offset to compare. */
static bool is_same_at(const struct sb_mapping *a, const struct sb_mapping *b)
{
	return a->file == b->file && a->is_anon == b->is_anon &&
	       (a->is_anon || a->start - a->pgoff == b->start - b->pgoff);
}

bool sb_procgen_is_in_gap(struct sb_procgen *gen, uint64_t addr, uint64_t time_ns)
{
	struct sb_procmaps_hit then, later;

	if (time_ns < gen->gap_from_ns || time_ns >= gen->gap_to_ns)
		return false;
	return gen->gap_to_ns == NEVER || !sb_procgen_lookup(gen, addr, time_ns, false, &then) ||
	       !sb_procgen_lookup(gen, addr, gen->gap_to_ns, false, &later) ||
	       !is_same_at(&then.map, &later.map);
}

uint64_t sb_procgen_next_change(struct sb_procgen *gen, uint64_t addr, uint64_t from_ns,
				uint64_t to_ns)
{
	uint64_t change_ns = NEVER;
	struct sb_procmaps_hit before;
	size_t i;

	/* Inherited mappings do not change any more, so only this generation is examined. */
	if (gen->newest_ns <= from_ns || !sb_procgen_lookup(gen, addr, from_ns, false, &before))
		return NEVER;
	for (i = upper_bound(gen, addr, NEVER); i-- > 0 && gen->maps.at[i].max_end > addr;) {
		const struct sb_mapping *map = &gen->maps.at[i];

		if (map->end > addr && map->time_ns > from_ns && map->time_ns <= to_ns &&
		    map->time_ns < change_ns && !is_same_at(map, &before.map))
			change_ns = map->time_ns;
	}
	return change_ns;
}

bool sb_procgen_has_mappings(const struct sb_procgen *gen)
{
	for (; gen; gen = gen->parent)
		if (gen->maps.nr)
			return true;
	return false;
}

bool sb_procgen_has_hole(const struct sb_procgen *gen)
{
	for (; gen; gen = gen->parent)
		if (gen->has_hole)
			return true;
	return false;
}

/*
 * Is @map, at @time_ns, hidden by one later mapping? A file stays under anonymous memory: a
 * program that moves its text to huge pages hides it so, and it still says what the text is.
 */
static bool is_hidden(const struct sb_procgen *gen, const struct sb_mapping *map, uint64_t time_ns)
{
	size_t i = upper_bound(gen, map->start, NEVER), nr_steps;

	for (nr_steps = 0; nr_steps < STEPS_MAX && i-- > 0; nr_steps++) {
		const struct sb_mapping *over = &gen->maps.at[i];

		if (over->max_end < map->end)
			return false;
		if (over->end >= map->end && over->time_ns <= time_ns && is_later(over, map) &&
		    (map->is_anon || !over->is_anon))
			return true;
	}
	return false;
}

/* In any order: what hides a mapping also hides those that it hides. */
void sb_procgen_forget_hidden(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t time_ns)
{
	bool is_checked;
	size_t i, nr_kept = 0;

	is_checked = gen->maps.nr == gen->nr_unhidden && gen->newest_ns <= gen->unhidden_ns;
	gen->unhidden_ns = time_ns;
	if (is_checked)
		return;
	sb_procgen_settle(gen);
	for (i = 0; i < gen->maps.nr; i++)
		if (is_hidden(gen, &gen->maps.at[i], time_ns))
			gen->maps.at[i].end = gen->maps.at[i].start;
	for (i = 0; i < gen->maps.nr; i++)
		if (gen->maps.at[i].end != gen->maps.at[i].start)
			gen->maps.at[nr_kept++] = gen->maps.at[i];
	gen->nr_unhidden = nr_kept;
	if (nr_kept == gen->maps.nr)
		return;
	pm->nr_mappings -= gen->maps.nr - nr_kept;
	sb_procgen_truncate(gen, nr_kept);
}
