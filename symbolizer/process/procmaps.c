// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes and their generations: which address space a process had at a time, and which events
 * begin and end one. procgen.c has the mappings of a generation.
 */
#include "symbolizer/process/procmaps.h"

#include <errno.h>
#include <stdlib.h>

#include "symbolizer/process/procmaps_priv.h"

#define NEVER SB_PROCMAPS_NEVER

static struct sb_procmaps_process *find_process(const struct sb_procmaps *pm, uint32_t tgid)
{
	sb_index_each(it, &pm->index, sb_hash(&tgid, sizeof(tgid), 0))
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
		err = sb_index_push(&pm->index, sb_hash(&tgid, sizeof(tgid), 0), &pm->processes,
				    new);
		if (err)
			return err;
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

	sb_procgen_settle(from);
	for (i = 0; i < from->maps.nr; i++) {
		struct sb_mapping map = from->maps.at[i];

		if (map.is_seed && drop_seeds) {
			pm->nr_mappings--;
		} else if (map.time_ns < to->start_ns) {
			from->maps.at[nr_kept++] = map;
		} else {
			pm->nr_mappings--;
			map.seq = to->next_seq++;
			err = err ? err : sb_procgen_insert(pm, to, map);
		}
	}
	sb_procgen_truncate(from, nr_kept);
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
	return sb_procgen_add(pm, gen, time_ns, false, map);
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
		err = sb_procgen_insert(pm, gen, map);
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

void sb_procmaps_seed_end(struct sb_procgen *gen, int err, uint64_t over_ns, uint64_t read_ns)
{
	gen->seed_read_ns = read_ns;
	if (err)
		return;
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
			sb_procgen_forget_hidden(pm, gen, gen->needed_ns);
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
