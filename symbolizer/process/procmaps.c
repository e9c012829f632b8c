// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/process/procmaps.h"

#include <errno.h>
#include <string.h>

#include "base/search.h"
#include "base/time.h"

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

static struct sb_procmaps_process *find_process(const struct sb_procmaps *pm, uint32_t tgid)
{
	struct sb_index_iter it;

	for (it = sb_index_first(&pm->index, sb_hash(&tgid, sizeof(tgid), 0));
	     it.id != SB_INDEX_NONE; it = sb_index_next(&pm->index, it))
		if (pm->processes.at[it.id].tgid == tgid)
			return &pm->processes.at[it.id];
	return NULL;
}

static int get_process(struct sb_procmaps *pm, uint32_t tgid, struct sb_procmaps_process **ret)
{
	struct sb_procmaps_process new = { .tgid = tgid, .limit_ns = NEVER };
	struct sb_procmaps_process *process = find_process(pm, tgid);
	int err;

	if (!process) {
		err = sb_vec_push(&pm->processes, new);
		if (err)
			return err;
		err = sb_index_add(&pm->index, sb_hash(&tgid, sizeof(tgid), 0),
				   (uint32_t)pm->processes.nr - 1);
		if (err) {
			pm->processes.nr--;
			return err;
		}
		process = &pm->processes.at[pm->processes.nr - 1];
	}
	*ret = process;
	return 0;
}

static void gen_free(struct sb_procmaps *pm, struct sb_procgen *gen)
{
	if (gen->parent)
		gen->parent->nr_children--;
	if (gen->priv && pm->free_priv)
		pm->free_priv(pm->free_arg, gen->priv);
	pm->nr_mappings -= gen->maps.nr;
	pm->nr_generations--;
	sb_vec_release(&gen->maps);
	free(gen);
}

void sb_procmaps_release(struct sb_procmaps *pm)
{
	struct sb_procgen *gen;
	size_t i;

	/* Children refer to parents in other processes: clear these references before freeing. */
	for (i = 0; i < pm->processes.nr; i++)
		for (gen = pm->processes.at[i].newest; gen; gen = gen->older)
			gen->parent = NULL;
	for (i = 0; i < pm->processes.nr; i++) {
		while ((gen = pm->processes.at[i].newest)) {
			pm->processes.at[i].newest = gen->older;
			gen_free(pm, gen);
		}
	}
	sb_vec_release(&pm->processes);
	sb_index_release(&pm->index);
}

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

static int by_place(const void *a, const void *b)
{
	const struct sb_mapping *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
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
 * Put the mappings that came since the last lookup in order, all at once: to do so for each would move half of the
 * array each time, and a program can map and unmap hundreds of thousands of times a second.
 */
static void settle(struct sb_procgen *gen)
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
 * Is @map what lay there before it, just the same? The first @nr_kept elements are looked at, and those from @next on
 * which are in order.
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

	settle(gen);
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

/* Append @map, whose seq is set. */
static int insert(struct sb_procmaps *pm, struct sb_procgen *gen, struct sb_mapping map)
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

static int gen_add(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t time_ns, bool is_seed,
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

	return insert(pm, gen, map);
}

/* Return: the link to the newest generation that began at @time_ns or before. */
static struct sb_procgen **link_at(struct sb_procmaps_process *process, uint64_t time_ns)
{
	struct sb_procgen **link = &process->newest;

	while (*link && (*link)->start_ns > time_ns)
		link = &(*link)->older;
	return link;
}

/* Move mappings since the beginning of @to, and children forked since then, from @from to @to. */
static int split(struct sb_procmaps *pm, struct sb_procgen *from, struct sb_procgen *to)
{
	bool drop_seeds = from->seed_read_ns >= to->start_ns;
	struct sb_procgen *gen;
	size_t i, nr_kept = 0;
	int err = 0;

	settle(from);
	for (i = 0; i < from->maps.nr; i++) {
		struct sb_mapping map = from->maps.at[i];

		if (map.is_seed && drop_seeds) {
			pm->nr_mappings--;
		} else if (map.time_ns < to->start_ns) {
			from->maps.at[nr_kept++] = map;
		} else {
			pm->nr_mappings--;
			map.seq = to->next_seq++;
			err = err ? err : insert(pm, to, map);
		}
	}
	from->maps.nr = from->nr_sorted = nr_kept;
	fix_max_ends(from, 0);
	for (i = 0; from->nr_children && i < pm->processes.nr; i++) {
		for (gen = pm->processes.at[i].newest; gen; gen = gen->older) {
			if (gen->parent != from || gen->fork_ns < to->start_ns)
				continue;
			from->nr_children--;
			gen->parent = to;
			to->nr_children++;
		}
	}
	return err;
}

/*
 * Begin a generation at @time_ns. One that is known from before ends there; what it holds of later
 * times moves over.
 */
static int gen_new(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid,
		   struct sb_procgen **ret_gen)
{
	struct sb_procmaps_process *process;
	struct sb_procgen *gen, **link;
	int err = get_process(pm, tgid, &process);

	if (err)
		return err;
	if (pm->nr_generations >= SB_PROCMAPS_GENERATIONS_MAX) {
		pm->nr_generations_refused++;
		if (time_ns < process->limit_ns)
			process->limit_ns = time_ns;
		gen = *link_at(process, time_ns);
		if (gen && time_ns < gen->end_ns)
			gen->end_ns = time_ns;
		*ret_gen = NULL;
		return 0;
	}
	gen = calloc(1, sizeof(*gen));
	if (!gen)
		return -ENOMEM;
	link = link_at(process, time_ns);
	gen->tgid = tgid;
	gen->start_ns = time_ns;
	gen->end_ns = NEVER;
	gen->older = *link;
	*link = gen;
	pm->nr_generations++;
	if (time_ns >= process->limit_ns)
		process->limit_ns = NEVER;
	*ret_gen = gen;
	if (!gen->older)
		return 0;
	/* An exit that is known already may be that of either generation. */
	if (gen->older->end_ns != NEVER && gen->older->end_ns >= time_ns)
		gen->end_ns = gen->older->end_ns;
	if (gen->older->end_ns > time_ns)
		gen->older->end_ns = time_ns;
	return split(pm, gen->older, gen);
}

/* Get the generation of @time_ns; if there is none, make one of unknown origin. */
static int gen_get(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid,
		   struct sb_procgen **ret_gen)
{
	struct sb_procmaps_process *process = find_process(pm, tgid);
	struct sb_procgen *gen = process ? *link_at(process, time_ns) : NULL;

	if (!gen)
		return gen_new(pm, 0, tgid, ret_gen);
	*ret_gen = time_ns >= process->limit_ns ? NULL : gen;
	return 0;
}

int sb_procmaps_mmap(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid,
		     const struct sb_procmaps_new *map)
{
	struct sb_procgen *gen;
	int err;

	if (map->start >= map->end)
		return 0;
	err = gen_get(pm, time_ns, tgid, &gen);
	if (err)
		return err;
	if (!gen) {
		pm->nr_mappings_refused++;
		return 0;
	}
	return gen_add(pm, gen, time_ns, false, map);
}

/* Copy what @gen inherits from @from and its ancestors, the oldest first. */
static int copy_inherited(struct sb_procmaps *pm, struct sb_procgen *gen,
			  const struct sb_procgen *from, uint64_t until_ns)
{
	int err = 0;
	size_t i;

	if (from->parent)
		err = copy_inherited(pm, gen, from->parent,
				     from->fork_ns < until_ns ? from->fork_ns : until_ns);
	for (i = 0; i < from->maps.nr && !err; i++) {
		struct sb_mapping map = from->maps.at[i];

		if (map.time_ns > until_ns)
			continue;
		map.seq += gen->next_seq;
		err = insert(pm, gen, map);
	}
	gen->next_seq += from->next_seq;
	gen->has_hole |= from->has_hole;
	return err;
}

static int detach(struct sb_procmaps *pm, struct sb_procgen *gen)
{
	int err = copy_inherited(pm, gen, gen->parent, gen->fork_ns);

	gen->parent->nr_children--;
	gen->parent = NULL;
	gen->nr_forks = 0;
	return err;
}

int sb_procmaps_fork(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid, uint32_t parent_tgid)
{
	struct sb_procgen *parent, *gen;
	int err;

	if (tgid == parent_tgid)
		return 0;
	err = gen_get(pm, time_ns, parent_tgid, &parent);
	if (err)
		return err;
	err = gen_new(pm, time_ns, tgid, &gen);
	if (err || !gen || !parent)
		return err;
	gen->parent = parent;
	gen->fork_ns = time_ns;
	gen->is_complete = parent->is_complete;
	gen->nr_forks = parent->nr_forks + 1;
	parent->nr_children++;
	return gen->nr_forks > SB_PROCMAPS_FORKS_MAX ? detach(pm, gen) : 0;
}

int sb_procmaps_exec(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid)
{
	struct sb_procgen *gen;
	int err = gen_new(pm, time_ns, tgid, &gen);

	if (!err && gen)
		gen->is_complete = true;
	return err;
}

int sb_procmaps_exit(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid)
{
	struct sb_procgen *gen;
	int err = gen_get(pm, time_ns, tgid, &gen);

	if (!err && gen && time_ns < gen->end_ns)
		gen->end_ns = time_ns;
	return err;
}

int sb_procmaps_skip(struct sb_procmaps *pm, uint32_t tgid, uint64_t first_ns, uint64_t last_ns)
{
	struct sb_procgen *gen;
	int err = gen_get(pm, last_ns, tgid, &gen);

	for (; !err && gen && gen->end_ns >= first_ns; gen = gen->older) {
		/* A gap that was not repaired is extended. */
		if (gen->gap_to_ns <= gen->lost_ns)
			gen->gap_from_ns = first_ns > gen->start_ns ? first_ns : gen->start_ns;
		if (gen->gap_to_ns < last_ns)
			gen->gap_to_ns = last_ns;
	}
	return err;
}

int sb_procmaps_seed_begin(struct sb_procmaps *pm, uint64_t time_ns, uint32_t tgid,
			   struct sb_procgen **ret_gen)
{
	struct sb_procmaps_process *process = find_process(pm, tgid);
	struct sb_procgen *gen = process ? process->newest : NULL;

	if (!gen)
		return gen_new(pm, 0, tgid, ret_gen);
	if (gen->start_ns > time_ns || time_ns >= process->limit_ns) {
		*ret_gen = NULL;
		return 0;
	}
	if (gen->end_ns <= time_ns)
		return gen_new(pm, time_ns, tgid, ret_gen);
	*ret_gen = gen;
	return 0;
}

/*
 * Drop what /proc does not show any more and what no sample can ask about: there is no event for munmap, so a process
 * that maps at ever new places would fill its bound with what is gone. @maps is in order.
 */
static void drop_unmapped(struct sb_procmaps *pm, struct sb_procgen *gen,
			  const struct sb_procmaps_new *maps, size_t nr)
{
	size_t i, k = 0, nr_kept = 0;

	if (gen->nr_children)
		return; /* they may have it still */
	settle(gen);
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
	gen->maps.nr = gen->nr_sorted = nr_kept;
	fix_max_ends(gen, 0);
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
		err = gen_add(pm, gen, over_ns, true, map);
	}
	return err;
}

void sb_procmaps_seed_end(struct sb_procgen *gen, uint64_t over_ns, uint64_t read_ns)
{
	gen->seed_read_ns = read_ns;
	gen->is_complete = true;
	if (over_ns > gen->lost_ns)
		gen->lost_ns = over_ns;
}

struct sb_procgen *sb_procmaps_find(const struct sb_procmaps *pm, uint32_t tgid, uint64_t time_ns,
				    bool *ret_limit)
{
	struct sb_procmaps_process *process = find_process(pm, tgid);

	*ret_limit = process && time_ns >= process->limit_ns;
	if (!process || *ret_limit)
		return NULL;
	return *link_at(process, time_ns);
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
		settle(gen);
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

/* Remove hidden mappings, in any order: what hides a mapping also hides those that it hides. */
static void forget_hidden(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t time_ns)
{
	bool is_checked;
	size_t i, nr_kept = 0;

	is_checked = gen->maps.nr == gen->nr_unhidden && gen->newest_ns <= gen->unhidden_ns;
	gen->unhidden_ns = time_ns;
	if (is_checked)
		return;
	settle(gen);
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
	gen->maps.nr = gen->nr_sorted = nr_kept;
	fix_max_ends(gen, 0);
}

/* Find for each generation the earliest time for which children still need its mappings. */
static void find_needed_times(struct sb_procmaps *pm, uint64_t time_ns)
{
	struct sb_procgen *gen;
	size_t i;

	for (i = 0; i < pm->processes.nr; i++)
		for (gen = pm->processes.at[i].newest; gen; gen = gen->older)
			gen->needed_ns = time_ns;
	for (i = 0; i < pm->processes.nr; i++)
		for (gen = pm->processes.at[i].newest; gen; gen = gen->older)
			if (gen->parent && gen->fork_ns < gen->parent->needed_ns)
				gen->parent->needed_ns = gen->fork_ns;
}

/* Free the generations of a process that ended before @time_ns. Return: how many. */
static size_t forget_ended(struct sb_procmaps *pm, struct sb_procmaps_process *process,
			   uint64_t time_ns)
{
	struct sb_procgen **link = &process->newest, *gen;
	size_t nr = 0;

	while ((gen = *link)) {
		if (gen->end_ns >= time_ns || gen->nr_children) {
			link = &gen->older;
			continue;
		}
		*link = gen->older;
		gen_free(pm, gen);
		nr++;
	}
	return nr;
}

/* The index cannot remove single elements, so it is rebuilt without the empty processes. */
static void drop_empty_processes(struct sb_procmaps *pm)
{
	struct sb_index index = {};
	size_t i, nr_kept = 0;

	for (i = 0; i < pm->processes.nr; i++) {
		struct sb_procmaps_process process = pm->processes.at[i];

		if (process.newest || process.limit_ns != NEVER)
			nr_kept++;
	}
	if (nr_kept == pm->processes.nr)
		return;
	for (i = nr_kept = 0; i < pm->processes.nr; i++) {
		struct sb_procmaps_process process = pm->processes.at[i];
		uint64_t hash = sb_hash(&process.tgid, sizeof(process.tgid), 0);

		if (!process.newest && process.limit_ns == NEVER)
			continue;
		/* Without memory nothing is dropped, and the old index remains valid. */
		if (sb_index_add(&index, hash, (uint32_t)nr_kept++)) {
			sb_index_release(&index);
			return;
		}
	}
	for (i = nr_kept = 0; i < pm->processes.nr; i++)
		if (pm->processes.at[i].newest || pm->processes.at[i].limit_ns != NEVER)
			pm->processes.at[nr_kept++] = pm->processes.at[i];
	pm->processes.nr = nr_kept;
	sb_index_release(&pm->index);
	pm->index = index;
}

void sb_procmaps_forget(struct sb_procmaps *pm, uint64_t time_ns)
{
	struct sb_procgen *gen;
	size_t i, nr_freed;

	/* A child that is freed may have been the last one to need its parent. */
	do {
		nr_freed = 0;
		for (i = 0; i < pm->processes.nr; i++)
			nr_freed += forget_ended(pm, &pm->processes.at[i], time_ns);
	} while (nr_freed);
	find_needed_times(pm, time_ns);
	for (i = 0; i < pm->processes.nr; i++) {
		if (pm->processes.at[i].limit_ns < time_ns &&
		    pm->nr_generations < SB_PROCMAPS_GENERATIONS_MAX / 2)
			pm->processes.at[i].limit_ns = NEVER;
		for (gen = pm->processes.at[i].newest; gen; gen = gen->older)
			forget_hidden(pm, gen, gen->needed_ns);
	}
	drop_empty_processes(pm);
}

void sb_procmaps_each(const struct sb_procmaps *pm,
		      void (*fn)(void *arg, const struct sb_mapping *map), void *arg)
{
	const struct sb_procgen *gen;
	size_t i, k;

	for (i = 0; i < pm->processes.nr; i++)
		for (gen = pm->processes.at[i].newest; gen; gen = gen->older)
			for (k = 0; k < gen->maps.nr; k++)
				fn(arg, &gen->maps.at[k]);
}
