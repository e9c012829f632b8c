// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes counts of what is known of pages. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/time.h"
#include "bpf/abi/sb_abi_memory.h"
#include "capture/resident_priv.h"
#include "views/skel.h"

/* An owner without pages is evicted after IDLE_GONE looks; that of an ended process after IDLE_TOLD
 * looks or burials. At IDLE_TOLD, the BPF side is told to ship the owner again. Faults that it had
 * shipped before have arrived when the owner is evicted. */
#define IDLE_TOLD      2u
#define IDLE_GONE      4u

/* A burial looks at all owners and pages. So it waits until DEAD_MAX processes have ended, and one
 * for each PAGES_PER_DEAD pages that are remembered. */
#define DEAD_MAX       64u
#define PAGES_PER_DEAD 2048u

struct adding {
	struct sb_resident *resident;
	uint32_t space;
};

bool sb_resident_is_old(const struct sb_resident *resident, const struct sb_page *page,
			uint64_t end_ns)
{
	return (page->time + 1) * resident->time_ns <= (end_ns - resident->begin_ns) / 2;
}

static void take(void *arg, const struct sb_page *fault, bool is_swapped)
{
	const struct adding *adding = arg;
	struct owner *of = &adding->resident->owners.at[fault->owner];
	const uint64_t nr = 1ull << fault->shift;

	*(is_swapped ? &of->swapped : &of->held) += nr;
	if (!is_swapped && sb_resident_is_old(adding->resident, fault, adding->resident->looked_ns))
		of->old += nr;
}

static void gain(void *arg, const struct sb_page *page)
{
	const struct adding *adding = arg;

	sb_resident_gain_page(adding->resident, page);
}

static bool is_followed(void *arg, uint64_t number)
{
	const struct adding *adding = arg;

	return sb_resident_follows(adding->resident, adding->space, number,
				   adding->resident->shift_worst);
}

static int by_first(const void *a, const void *b)
{
	return sb_compare(((const struct gone *)a)->first, ((const struct gone *)b)->first);
}

/* Add the pages of a run but those that have gone. *@at: the first of these, which are sorted, that
 * may be at the run or behind it. */
static int add_run(struct sb_page_account *account, const struct space *space,
		   struct sb_page_run run, size_t *at)
{
	uint64_t first = run.start >> account->page_shift;
	const uint64_t end = first + run.nr;
	int err = 0;

	while (first < end && !err) {
		const struct gone *gone = *at < space->gone.nr ? &space->gone.at[*at] : NULL;
		const bool is_cut = gone && gone->first < end;

		if (gone && gone->first + gone->nr <= first) {
			++*at;
			continue;
		}
		run.start = first << account->page_shift;
		run.nr = (uint32_t)(!is_cut		  ? end - first
				    : gone->first > first ? gone->first - first
							  : 0);
		if (run.nr)
			err = sb_page_account_run(account, &run);
		first = is_cut ? gone->first + gone->nr : end;
	}
	return err;
}

static int add_up_space(struct sb_resident *resident, uint32_t number)
{
	struct space *space = &resident->spaces.at[number];
	struct adding adding = { resident, number };
	struct sb_page_account account = {
		.pages = &resident->pages,
		.before = &space->before,
		.space = number,
		.page_shift = resident->page_shift,
		.shift = resident->shift_worst,
		.is_followed = is_followed,
		.take = take,
		.gain = gain,
		.arg = &adding,
	};
	size_t i, gone = 0;
	int err = 0;

	if (space->gone.nr)
		qsort(space->gone.at, space->gone.nr, sizeof(*space->gone.at), by_first);
	for (i = 0; i < space->runs.nr && !err; i++)
		err = add_run(&account, space, space->runs.at[i], &gone);
	if (!err)
		err = sb_page_account_finish(&account);
	space->sums = account.sums;
	return err;
}

/* Pages of processes that were read, and that were not found, have gone. */
static bool keeps_seen(void *arg, struct sb_page *page)
{
	struct sb_resident *resident = arg;
	const struct space *space = &resident->spaces.at[page->space];

	if (space->is_ended || (space->is_read && !page->is_seen)) {
		sb_resident_lose_page(resident, page, space->is_ended);
		return false;
	}
	page->is_seen = false;
	return true;
}

static uint64_t bytes_of(const struct sb_resident *resident, uint64_t nr_pages)
{
	return nr_pages << resident->page_shift;
}

static void note_top(struct sb_resident_stats *stats, const struct sb_resident_process *process)
{
	size_t i, at = SB_RESIDENT_TOP_MAX;

	while (at && stats->top[at - 1].held + stats->top[at - 1].unaccounted <
			     process->held + process->unaccounted)
		at--;
	if (at == SB_RESIDENT_TOP_MAX)
		return;
	for (i = SB_RESIDENT_TOP_MAX - 1; i > at; i--)
		stats->top[i] = stats->top[i - 1];
	stats->top[at] = *process;
}

static void note_process(struct sb_resident *resident, const struct space *space)
{
	struct sb_resident_stats *stats = &resident->stats;
	const uint64_t page_bytes = bytes_of(resident, space->sums.resident);
	/* If it had a fault since its pages were looked at, or gave some of them back, its Rss is
	 * of another moment. */
	const bool is_same = space->rss_bytes >= page_bytes && space->fault_ns < space->look_ns &&
			     !space->gone.nr;
	struct sb_resident_process process = {
		.tgid = space->key.tgid,
		.rss = is_same ? space->rss_bytes : page_bytes,
		.before = bytes_of(resident, sb_page_account_before(&space->sums)),
		.held = bytes_of(resident, space->sums.held),
		.unaccounted = bytes_of(resident, space->sums.unaccounted),
		.swapped = bytes_of(resident, space->sums.swapped),
		.along = bytes_of(resident, space->sums.along),
	};

	memcpy(process.comm, space->key.comm, sizeof(process.comm));
	stats->nr_processes++;
	stats->sum.rss += process.rss;
	stats->sum.before += process.before;
	stats->sum.held += process.held;
	stats->sum.unaccounted += process.unaccounted;
	stats->sum.swapped += process.swapped;
	stats->sum.along += process.along;
	note_top(stats, &process);
}

static int add_up(struct sb_resident *resident)
{
	size_t i;
	int err = 0;

	for (i = 0; i < resident->owners.nr; i++) {
		struct owner *owner = &resident->owners.at[i];

		owner->held = owner->old = owner->swapped = 0;
	}
	memset(&resident->stats.sum, 0, sizeof(resident->stats.sum));
	memset(resident->stats.top, 0, sizeof(resident->stats.top));
	resident->stats.nr_processes = 0;
	for (i = 1; i < resident->spaces.nr && !err; i++) {
		struct space *space = &resident->spaces.at[i];

		if (!space->is_used || space->is_ended || !space->is_read) {
			space->sums = (struct sb_sums){};
			continue;
		}
		err = add_up_space(resident, (uint32_t)i);
		note_process(resident, space);
	}
	sb_pagetab_sweep(&resident->pages, keeps_seen, resident);
	return err;
}

/* Return: the weight of pages that were found at the last look. */
static uint64_t weight_of(const struct sb_resident *resident, uint64_t nr_pages)
{
	const double seconds =
		(double)(resident->looked_ns - resident->last_looked_ns) / (double)SB_NS_PER_SEC;

	if (!resident->opts.is_of_time || resident->opts.what == SB_MEMORY_CHURN)
		return bytes_of(resident, nr_pages);
	return (uint64_t)((double)bytes_of(resident, nr_pages) * seconds + 0.5);
}

static int push(struct sb_resident *resident, const struct sb_sample_key *key, uint64_t nr,
		uint64_t time_ns)
{
	return sb_vec_push(&resident->counts, ((struct sb_batch_count){
						      .key = *key,
						      .count = {
							      .weight = weight_of(resident, nr),
							      .nr_samples = nr,
							      .first_ns = time_ns,
							      .last_ns = time_ns,
						      },
					      }));
}

/* Stacks that are new get their names while the process lives, and not all at the end: by a count
 * of nothing. */
static int announce(struct sb_resident *resident)
{
	size_t i;
	int err = 0;

	for (i = 0; i < resident->owners.nr && !err; i++) {
		struct owner *owner = &resident->owners.at[i];

		if (owner->is_new && owner->last_ns)
			err = push(resident, &owner->key, 0, owner->last_ns);
		owner->is_new &= !owner->last_ns;
	}
	return err;
}

/* What is added to the sum that counts had so far, to make it @now; modulo 2^64. */
static uint64_t change(const struct sb_resident *resident, uint64_t now, uint64_t *said)
{
	uint64_t ret = now - *said;

	if (!resident->opts.is_summed)
		return now;
	*said = now;
	return ret;
}

static int count_came_and_went(struct sb_resident *resident)
{
	uint64_t nr;
	size_t i;
	int err = 0;

	for (i = 0; i < resident->owners.nr && !err; i++) {
		struct owner *owner = &resident->owners.at[i];

		nr = owner->churn - owner->said;
		owner->said = owner->churn;
		if (nr)
			err = push(resident, &owner->key, nr, owner->last_ns);
	}
	return err;
}

static int count_ended(struct sb_resident *resident)
{
	struct sb_sample_key key;
	uint64_t nr;
	size_t i;
	int err = 0;

	for (i = 0; i < resident->owners.nr && !err; i++) {
		struct owner *owner = &resident->owners.at[i];

		nr = owner->ended - owner->ended_said;
		owner->ended_said = owner->ended;
		if (!nr || resident->spaces.at[owner->space].is_left)
			continue;
		key = owner->key;
		key.op = SB_MEMORY_OP_ENDED;
		err = push(resident, &key, nr, owner->last_ns);
	}
	return err;
}

static int count_unaccounted(struct sb_resident *resident)
{
	uint64_t nr;
	size_t i;
	int err = 0;

	for (i = 1; i < resident->spaces.nr && !err; i++) {
		struct space *space = &resident->spaces.at[i];
		struct sb_sample_key key = space->key;

		if (!space->is_used || space->is_expected)
			continue;
		key.op = SB_MEMORY_OP_UNACCOUNTED;
		nr = change(resident, space->is_left ? 0 : space->sums.unaccounted, &space->said);
		if (nr)
			err = push(resident, &key, nr, space->look_ns);
	}
	return err;
}

void sb_resident_leave(struct sb_resident *resident, uint32_t tgid, struct sb_sample_key *key)
{
	size_t i;

	for (i = 1; i < resident->spaces.nr; i++) {
		struct space *space = &resident->spaces.at[i];

		if (space->key.tgid != tgid)
			continue;
		space->is_left = true;
		if (space->is_ended || space->is_expected)
			continue;
		key->start_ns = space->key.start_ns;
		key->exec_id = space->key.exec_id;
	}
}

/* Return: the pages of an owner that are asked for. */
static uint64_t pages_of(const struct sb_resident *resident, const struct owner *owner)
{
	if (resident->spaces.at[owner->space].is_left)
		return 0;
	switch (resident->opts.what) {
	case SB_MEMORY_SWAPPED:
		return owner->swapped;
	case SB_MEMORY_OLD:
		return owner->old;
	default:
		return owner->held;
	}
}

static int count_resident(struct sb_resident *resident)
{
	uint64_t nr;
	size_t i;
	int err = 0;

	for (i = 0; i < resident->owners.nr && !err; i++) {
		struct owner *owner = &resident->owners.at[i];

		nr = change(resident, pages_of(resident, owner), &owner->said);
		if (nr)
			err = push(resident, &owner->key, nr,
				   resident->spaces.at[owner->space].look_ns);
	}
	/* Nobody knows when what is unaccounted came. */
	return err || resident->opts.what != SB_MEMORY_HELD ? err : count_unaccounted(resident);
}

static bool is_idle(const struct sb_resident *resident, const struct owner *owner)
{
	if (owner->nr_pages ||
	    (owner->ended != owner->ended_said && sb_resident_counts_ended(resident)))
		return false;
	return resident->opts.what == SB_MEMORY_CHURN ? owner->churn == owner->said : !owner->said;
}

/* Evict the owners that have nothing: after a look; or only those whose process has ended. */
static int evict(struct sb_resident *resident, bool is_looking)
{
	const int map = bpf_map__fd(resident->opts.skel->maps.memory_owners);
	bool any = false;
	size_t i;
	int err = 0;

	for (i = 0; i < resident->owners.nr; i++) {
		struct owner *owner = &resident->owners.at[i];
		const struct space *space = &resident->spaces.at[owner->space];
		const bool is_ended = space->is_ended;

		if (!owner->id || !(is_ended || is_looking))
			continue;
		owner->nr_idle = is_idle(resident, owner) ? owner->nr_idle + 1 : 0;
		/* A process of whose end the BPF side has told has no more faults. */
		if (owner->nr_idle == IDLE_TOLD && !space->is_told)
			bpf_map_delete_elem(map, &owner->id);
		if (owner->nr_idle < (is_ended ? IDLE_TOLD : IDLE_GONE))
			continue;
		resident->spaces.at[owner->space].nr_owners--;
		*owner = (struct owner){};
		any = true;
	}
	if (!any)
		return 0;
	resident->free_owner = 0;
	sb_index_release(&resident->owners_by_id);
	for (i = 0; i < resident->owners.nr && !err; i++)
		if (resident->owners.at[i].id)
			err = sb_index_add(&resident->owners_by_id, resident->owners.at[i].id,
					   (uint32_t)i);
	return err;
}

static void drop_all_runs(struct sb_resident *resident)
{
	size_t i;

	for (i = 1; i < resident->spaces.nr; i++)
		sb_resident_drop_runs(resident, &resident->spaces.at[i]);
	resident->nr_runs = 0;
}

/*
 * Beside a build, hundreds of processes end each second. When enough have ended, what they held is
 * counted, and they are removed. So nothing grows with their number, and names are looked up while
 * the processes are still known. With SB_MEMORY_OLD this has to wait until the run ends, when it is
 * known what came in its first half.
 */
static bool is_time_to_bury(const struct sb_resident *resident)
{
	const bool is_short = resident->owners.nr > SB_RESIDENT_OWNERS_MAX / 2;

	return resident->nr_dead >= DEAD_MAX &&
	       (is_short || resident->nr_dead >= resident->pages.nr / PAGES_PER_DEAD) &&
	       (resident->opts.what != SB_MEMORY_OLD || !sb_resident_counts_ended(resident));
}

/* Remove processes that have ended, after counting what they held, and owners without pages. */
static int take_leave(struct sb_resident *resident, bool is_looking)
{
	int err = 0;

	sb_resident_bury(resident);
	if (sb_resident_counts_ended(resident) && (is_looking || !resident->opts.is_fallback))
		err = count_ended(resident);
	return err ?: evict(resident, is_looking);
}

int sb_resident_counts(struct sb_resident *resident, const struct sb_batch_count **ret_counts,
		       size_t *ret_nr)
{
	const bool is_looking = resident->is_looking;
	int err = 0;

	resident->is_looking = false;
	resident->counts.nr = 0;
	if (is_looking)
		err = add_up(resident);
	drop_all_runs(resident);
	if (!err)
		err = announce(resident);
	if (!err && resident->opts.what == SB_MEMORY_CHURN)
		err = count_came_and_went(resident);
	else if (!err && is_looking)
		err = count_resident(resident);
	if (is_looking || is_time_to_bury(resident))
		err = err ?: take_leave(resident, is_looking);
	*ret_counts = resident->counts.at;
	*ret_nr = resident->counts.nr;
	return err;
}

void sb_resident_stats(const struct sb_resident *resident, struct sb_resident_stats *ret_stats)
{
	*ret_stats = resident->stats;
	ret_stats->shift = resident->shift_worst;
	ret_stats->nr_pages = resident->pages.nr;
}
