// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/resident.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "capture/resident_priv.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"
#include "views/skel.h"

/* The unit of sb_page.time at the beginning of a run. */
#define TIME_NS_MIN	   (10ull * SB_NS_PER_MS)
/* How many pages may be looked at between two drains because processes map and move memory: for all
 * processes, and for one. Each takes some nanoseconds. */
#define STEPS_MAX	   (32u << 20)
#define STEPS_OF_SPACE_MAX (STEPS_MAX / 4)

int sb_resident_new(const struct sb_resident_opts *opts, struct sb_resident **ret_resident)
{
	struct sb_resident *resident = calloc(1, sizeof(*resident));
	int err;

	if (!resident)
		return -ENOMEM;
	resident->opts = *opts;
	resident->pages.nr_max = opts->pages_max ? opts->pages_max : SB_RESIDENT_PAGES_MAX;
	resident->page_shift = (uint32_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	resident->looked_ns = resident->begin_ns = sb_now_ns();
	resident->time_ns = TIME_NS_MIN;
	resident->seed = resident->pages.seed = opts->skel->rodata->cfg_hash_seed[1];
	resident->buf = malloc(SB_READER_RUNS_MAX * sizeof(*resident->buf));
	err = resident->buf ? sb_vec_push(&resident->spaces, ((struct space){})) : -ENOMEM;
	if (err) {
		sb_resident_free(resident);
		return err;
	}
	*ret_resident = resident;
	return 0;
}

static void release_space(struct space *space)
{
	sb_pageset_release(&space->before);
	sb_vec_release(&space->runs);
	sb_vec_release(&space->gone);
}

void sb_resident_free(struct sb_resident *resident)
{
	size_t i;

	if (!resident)
		return;
	for (i = 0; i < resident->spaces.nr; i++)
		release_space(&resident->spaces.at[i]);
	sb_vec_release(&resident->spaces);
	sb_vec_release(&resident->owners);
	sb_index_release(&resident->owners_by_id);
	sb_vec_release(&resident->counts);
	sb_page_records_release(&resident->late);
	sb_pagetab_release(&resident->pages);
	free(resident->buf);
	free(resident);
}

bool sb_resident_follows(const struct sb_resident *resident, uint32_t space, uint64_t number,
			 uint32_t shift)
{
	const uint32_t tgid = resident->spaces.at[space].key.tgid;

	return sb_window_is_followed(
		sb_window_hash(resident->seed, tgid, number << resident->page_shift), shift);
}

/* Address spaces. */

static uint32_t *chain_of(struct sb_resident *resident, uint32_t tgid)
{
	return &resident->of_tgid[tgid % SPACE_CHAINS];
}

/* Return: the first space of a process from @at on in its chain, which may be 0; 0: there is
 * none. */
static uint32_t next_of(struct sb_resident *resident, uint32_t at, uint32_t tgid)
{
	while (at && resident->spaces.at[at].key.tgid != tgid)
		at = resident->spaces.at[at].next;
	return at;
}

/* Return: the number of a new space, like *@space; 0: there is no room, or no memory. */
static uint32_t new_space(struct sb_resident *resident, const struct space *space)
{
	uint32_t *chain = chain_of(resident, space->key.tgid), i;

	for (i = resident->free_space ?: 1; i < resident->spaces.nr; i++)
		if (!resident->spaces.at[i].is_used)
			break;
	resident->free_space = i;
	if (i == SB_RESIDENT_SPACES_MAX ||
	    (i == resident->spaces.nr && sb_vec_push(&resident->spaces, ((struct space){}))))
		return 0;
	resident->spaces.at[i] = *space;
	resident->spaces.at[i].is_used = true;
	resident->spaces.at[i].next = *chain;
	*chain = i;
	return i;
}

/* Whether its process goes on, with another program, may be known only after it was counted as one
 * that ended: the stacks of the other program come later than the end of the process. */
static void end_space(struct sb_resident *resident, struct space *space, bool is_replaced)
{
	struct sb_resident_stats *stats = &resident->stats;

	if (space->is_ended && (space->is_replaced || !is_replaced))
		return;
	stats->nr_ended -= space->is_ended;
	resident->nr_dead += !space->is_ended;
	*(is_replaced ? &stats->nr_replaced : &stats->nr_ended) += 1;
	space->is_ended = true;
	space->is_replaced = is_replaced;
}

void sb_resident_end_space(struct sb_resident *resident, uint32_t number)
{
	end_space(resident, &resident->spaces.at[number], false);
}

static bool is_of(const struct space *space, const struct sb_sample_key *key)
{
	return space->key.tgid == key->tgid && space->key.start_ns == key->start_ns &&
	       space->key.exec_id == key->exec_id;
}

/* Take out of a key what tells its samples apart, so that the process remains. */
static struct sb_sample_key process_of(const struct sb_sample_key *key)
{
	struct sb_sample_key of = *key;

	of.kstack = of.ustack = of.istack = (struct sb_stack_id){};
	of.labels = 0;
	return of;
}

/* Return: the number of the address space of a key, made if it is new; 0: there is no room. Another
 * address space of the same process has ended then. */
static uint32_t space_of(struct sb_resident *resident, const struct sb_sample_key *key)
{
	const struct space new = {
		.key = process_of(key),
		.start_ticks = key->start_ns / sb_tick_ns(),
	};
	const uint32_t first = next_of(resident, *chain_of(resident, key->tgid), key->tgid);
	struct space *space;
	uint32_t at;

	/* That it has ended, or runs another program, may be known before all of its stacks are. */
	for (at = first; at; at = next_of(resident, resident->spaces.at[at].next, key->tgid))
		if (is_of(&resident->spaces.at[at], key))
			return at;
	for (at = first; at; at = next_of(resident, space->next, key->tgid)) {
		space = &resident->spaces.at[at];
		if (space->is_expected && space->start_ticks == new.start_ticks) {
			space->key = new.key;
			space->is_expected = false;
			return at;
		}
		end_space(resident, space, space->key.start_ns == key->start_ns);
	}
	return new_space(resident, &new);
}

int sb_resident_expect(struct sb_resident *resident, uint32_t tgid)
{
	struct space space = { .key = { .tgid = tgid }, .is_expected = true };
	struct sb_procfs_stat stat;
	uint32_t i;

	if (sb_procfs_stat(tgid, &stat) || stat.is_kernel)
		return 0;
	space.start_ticks = stat.start_ticks;
	i = new_space(resident, &space);
	return i ? sb_resident_meet(resident, i) : 0;
}

/* Pages. */

void sb_resident_gain_page(struct sb_resident *resident, const struct sb_page *page)
{
	resident->owners.at[page->owner].nr_pages++;
	resident->spaces.at[page->space].nr_pages++;
}

/* A page has been removed from the table. */
static void remove_page(struct sb_resident *resident, const struct sb_page *page)
{
	resident->owners.at[page->owner].nr_pages--;
	resident->spaces.at[page->space].nr_pages--;
}

void sb_resident_lose_page(struct sb_resident *resident, const struct sb_page *page, bool is_end)
{
	struct owner *owner = &resident->owners.at[page->owner];

	remove_page(resident, page);
	if (is_end) {
		if (resident->opts.what != SB_MEMORY_OLD ||
		    sb_resident_is_old(resident, page, sb_now_ns()))
			owner->ended += 1ull << page->shift;
		resident->stats.ended += (1ull << page->shift) << resident->page_shift;
	}
	owner->churn += 1ull << page->shift;
	resident->stats.churn += (1ull << page->shift) << resident->page_shift;
}

static bool keeps_alive(void *arg, struct sb_page *page)
{
	struct sb_resident *resident = arg;

	if (!resident->spaces.at[page->space].is_ended)
		return true;
	sb_resident_lose_page(resident, page, true);
	return false;
}

static void free_space(struct sb_resident *resident, uint32_t number)
{
	struct space *space = &resident->spaces.at[number];
	uint32_t *at = chain_of(resident, space->key.tgid);

	while (*at != number)
		at = &resident->spaces.at[*at].next;
	*at = space->next;
	release_space(space);
	*space = (struct space){};
	if (number < resident->free_space)
		resident->free_space = number;
}

void sb_resident_bury(struct sb_resident *resident)
{
	uint32_t i;

	if (resident->nr_dead || resident->has_late)
		sb_pagetab_sweep(&resident->pages, keeps_alive, resident);
	resident->nr_dead = 0;
	resident->has_late = false;
	for (i = 1; i < resident->spaces.nr; i++) {
		const struct space *space = &resident->spaces.at[i];

		if (space->is_used && space->is_ended && !space->nr_owners && !space->said)
			free_space(resident, i);
	}
}

/* Others stand for a page that is not followed any more: it did not go. */
static bool keeps_followed(void *arg, struct sb_page *page)
{
	struct sb_resident *resident = arg;

	if (!sb_resident_follows(resident, page->space, page->number, resident->shift)) {
		remove_page(resident, page);
		return false;
	}
	page->shift = page->shift < resident->shift ? resident->shift : page->shift;
	return true;
}

/* Follow as many windows as the BPF side does now. */
static void follow(struct sb_resident *resident)
{
	const struct sampler_bpf *skel = resident->opts.skel;
	uint32_t room = skel->bss->memory_shift_room, cost = skel->bss->memory_shift_cost;
	uint32_t shift = room > cost ? room : cost, before = resident->shift;

	resident->shift = shift < SB_FOLLOW_SHIFT_MAX ? shift : SB_FOLLOW_SHIFT_MAX;
	if (resident->shift_worst < resident->shift)
		resident->shift_worst = resident->shift;
	if (resident->shift > before)
		sb_pagetab_sweep(&resident->pages, keeps_followed, resident);
}

/* Return: whether there is room now. */
static bool make_room(struct sb_resident *resident)
{
	struct sampler_bpf *skel = resident->opts.skel;

	sb_resident_find_ended(resident);
	sb_resident_bury(resident);
	while (resident->pages.nr > resident->pages.nr_max / 4 * 3 &&
	       resident->shift < SB_FOLLOW_SHIFT_MAX) {
		skel->bss->memory_shift_room = resident->shift + 1;
		follow(resident);
	}
	return resident->pages.nr < resident->pages.nr_max;
}

static uint32_t find_owner(const struct sb_resident *resident, uint64_t id)
{
	sb_index_each(it, &resident->owners_by_id, id)
		if (resident->owners.at[it.id].id == id)
			return it.id;
	return SB_INDEX_NONE;
}

static int add_owner(struct sb_resident *resident, const struct sb_event_owner *event)
{
	struct owner owner = { .key = event->key, .id = event->id, .is_new = true };
	const struct owner unused = {};
	uint32_t i;
	int err;

	if (find_owner(resident, event->id) != SB_INDEX_NONE)
		return 0;
	for (i = resident->free_owner; i < resident->owners.nr && resident->owners.at[i].id;)
		i++;
	resident->free_owner = i;
	if (i == SB_RESIDENT_OWNERS_MAX)
		return 0; /* its faults will be counted as those of nobody */
	owner.space = space_of(resident, &event->key);
	if (!owner.space)
		return 0;
	err = i == resident->owners.nr ? sb_vec_push(&resident->owners, unused) : 0;
	if (!err)
		err = sb_index_add(&resident->owners_by_id, owner.id, i);
	if (err)
		return err;
	resident->owners.at[i] = owner;
	resident->spaces.at[owner.space].nr_owners++;
	return 0;
}

/* The page was there before, and is that of a fault of the run now. While not all windows are
 * followed, such pages stay among those of before, so that their number in the other windows can be
 * estimated: sb_page_account_before(). */
static void forget_before(struct sb_pageset *before, uint64_t number)
{
	const uint64_t first = number & ~63ull;
	uint64_t bits = sb_pageset_bits(before, first);

	if (bits)
		sb_pageset_keep(before, first, bits & ~(1ull << (number - first)));
}

static int put(struct sb_resident *resident, const struct sb_page *page, bool was_there)
{
	struct sb_page old;
	int ret = sb_pagetab_put(&resident->pages, page, &old);

	if (ret == -ENOSPC && make_room(resident)) {
		/* There is more room because fewer are followed. */
		if (!sb_resident_follows(resident, page->space, page->number, resident->shift))
			return 0;
		ret = sb_pagetab_put(&resident->pages, page, &old);
	}
	if (ret == -ENOSPC) {
		resident->stats.nr_unowned++;
		return 0;
	}
	if (ret < 0)
		return ret;
	sb_resident_gain_page(resident, page);
	if (ret == 1 && was_there)
		remove_page(resident, &old);
	else if (ret == 1)
		sb_resident_lose_page(resident, &old, false);
	return 0;
}

static bool halves_time(void *arg, struct sb_page *page)
{
	(void)arg;
	page->time /= 2;
	return true;
}

/* How long the run will last is not known, so the unit doubles when a time has no room. Return: the
 * time of a page that comes now. */
static uint32_t time_of(struct sb_resident *resident, uint64_t now_ns)
{
	uint64_t ns = now_ns > resident->begin_ns ? now_ns - resident->begin_ns : 0;

	while (ns / resident->time_ns >= SB_PAGETAB_TIMES) {
		resident->time_ns *= 2;
		sb_pagetab_sweep(&resident->pages, halves_time, NULL);
	}
	return (uint32_t)(ns / resident->time_ns);
}

static int add_fault(struct sb_resident *resident, const struct sb_fault_record *fault)
{
	uint32_t at = find_owner(resident, fault->owner);
	struct owner *owner;
	struct space *space;
	struct sb_page page = {
		.owner = at,
		.shift = fault->where & SB_FAULT_SHIFT,
		.number = (fault->where & ~SB_FAULT_BITS) >> resident->page_shift,
	};

	if (at == SB_INDEX_NONE) {
		resident->stats.nr_unowned++;
		return 0;
	}
	owner = &resident->owners.at[at];
	space = &resident->spaces.at[owner->space];
	page.space = owner->space;
	resident->has_late |= space->is_ended;
	resident->stats.nr_faults++;
	owner->last_ns = space->fault_ns = fault->now_ns;
	owner->nr_idle = 0;
	if (!page.shift)
		forget_before(&space->before, page.number);
	if (page.shift < resident->shift) {
		if (!sb_resident_follows(resident, page.space, page.number, resident->shift))
			return 0;
		page.shift = resident->shift;
	}
	page.time = time_of(resident, fault->now_ns);
	page.is_seen = resident->is_looking && fault->now_ns > space->look_ns;
	return put(resident, &page, fault->where & SB_FAULT_PRESENT);
}

static void lose(void *arg, const struct sb_page *page)
{
	sb_resident_lose_page(arg, page, false);
}

/* Pages that move, until they are put at their new place. */
struct move {
	SB_VEC(struct sb_page) pages;
	int err;
};

static void take_page(void *arg, const struct sb_page *page)
{
	struct move *move = arg;

	if (!move->err)
		move->err = sb_vec_push(&move->pages, *page);
}

/* mremap(2) moves pages as they are. */
static int move_pages(struct sb_resident *resident, uint32_t number,
		      const struct sb_page_event *mapping, bool is_looking)
{
	const uint64_t from = mapping->from >> resident->page_shift;
	const uint64_t nr_bytes =
		mapping->from_bytes < mapping->nr_bytes ? mapping->from_bytes : mapping->nr_bytes;
	const uint64_t nr = nr_bytes >> resident->page_shift;
	const uint64_t to = mapping->addr >> resident->page_shift;
	const struct sb_pageset_range range = { from, nr, to };
	struct move move = {};
	size_t i;

	sb_pagetab_remove(&resident->pages, number, from, nr, take_page, &move);
	for (i = 0; i < move.pages.nr && !move.err; i++) {
		struct sb_page *page = &move.pages.at[i];

		page->number += to - from;
		page->is_seen = is_looking;
		remove_page(resident, page);
		move.err = put(resident, page, true);
	}
	sb_vec_release(&move.pages);
	return move.err ? move.err : sb_pageset_move(&resident->spaces.at[number].before, &range);
}

/* Return: the address space that the process has at the time of the last fault that was taken: when
 * it runs another program, that faults at once. By now it may have ended. 0: there is none. */
static uint32_t current_space(struct sb_resident *resident, uint32_t tgid)
{
	uint32_t at = next_of(resident, *chain_of(resident, tgid), tgid), found = 0;

	for (; at; at = next_of(resident, resident->spaces.at[at].next, tgid)) {
		resident->nr_steps++;
		if (!found ||
		    resident->spaces.at[at].fault_ns > resident->spaces.at[found].fault_ns)
			found = at;
	}
	return found;
}

/* Return: the steps that a range of pages takes, to be removed or moved; sb_pagetab_remove() looks
 * at them or at the whole table. */
static uint64_t steps_of(const struct sb_resident *resident, uint64_t nr)
{
	return nr > resident->pages.nr ? resident->pages.nr_slots : nr;
}

/*
 * A process can map and move any amount of addresses, as often as it likes, and each time costs us
 * a step for each of its pages. So there is a bound of what one process, and all, may cost at a
 * time. Return: whether it is not reached.
 */
static bool may_cost(struct sb_resident *resident, uint32_t number,
		     const struct sb_page_event *mapping)
{
	struct space *space = &resident->spaces.at[number];
	uint64_t nr_steps = steps_of(resident, mapping->nr_bytes >> resident->page_shift);

	if (mapping->from)
		nr_steps += steps_of(resident, mapping->from_bytes >> resident->page_shift) +
			    space->before.blocks.nr;
	if (space->nr_steps + nr_steps > STEPS_OF_SPACE_MAX ||
	    resident->nr_steps + nr_steps > STEPS_MAX)
		return false;
	space->nr_steps += nr_steps;
	resident->nr_steps += nr_steps;
	return true;
}

/* The look at the pages of a process takes time, and what the process gives back meanwhile may have
 * been seen. */
static int add_gone(struct sb_resident *resident, struct space *space, uint64_t addr,
		    uint64_t nr_bytes)
{
	const struct gone gone = { addr >> resident->page_shift, nr_bytes >> resident->page_shift };

	return nr_bytes ? sb_vec_push(&space->gone, gone) : 0;
}

/* What the process had at these addresses has gone. What it had there before the run is found out
 * later. */
static int add_mapping(struct sb_resident *resident, const struct sb_page_event *mapping)
{
	const uint64_t nr = mapping->nr_bytes >> resident->page_shift;
	bool is_looking;
	uint32_t space;
	int err = 0;

	space = resident->nr_steps < STEPS_MAX ? current_space(resident, mapping->tgid) : 0;
	is_looking = space && resident->spaces.at[space].is_read &&
		     mapping->now_ns > resident->spaces.at[space].look_ns;
	if (is_looking)
		err = add_gone(resident, &resident->spaces.at[space], mapping->addr,
			       mapping->nr_bytes)
			      ?: add_gone(resident, &resident->spaces.at[space], mapping->from,
					  mapping->from ? mapping->from_bytes : 0);
	if (err)
		return err;
	/* Nothing is known that could have gone. */
	if (space && !mapping->from && !resident->spaces.at[space].nr_pages)
		return 0;
	if (resident->nr_steps >= STEPS_MAX || (space && !may_cost(resident, space, mapping))) {
		resident->stats.nr_not_moved++;
		return 0;
	}
	if (!space)
		return 0;
	sb_pagetab_remove(&resident->pages, space, mapping->addr >> resident->page_shift, nr, lose,
			  resident);
	return mapping->from ? move_pages(resident, space, mapping, is_looking) : 0;
}

/* A tick is what is known of the start of a process that was expected. */
static bool is_started(const struct space *space, uint64_t start_ns)
{
	return space->is_expected ? space->start_ticks == start_ns / sb_tick_ns()
				  : space->key.start_ns == start_ns;
}

/* The process may have had several address spaces, one after the other: the most is that of all. */
static void add_end(struct sb_resident *resident, const struct sb_page_event *end)
{
	uint32_t at = next_of(resident, *chain_of(resident, end->tgid), end->tgid);
	bool is_told = false;
	struct space *space;

	for (; at; at = next_of(resident, space->next, end->tgid)) {
		space = &resident->spaces.at[at];
		if (space->is_told || !is_started(space, end->start_ns))
			continue;
		sb_resident_end_space(resident, at);
		space->is_told = true;
		if (!is_told)
			resident->stats.ended_peak += end->peak_pages << resident->page_shift;
		is_told = true;
	}
}

bool sb_resident_counts_ended(const struct sb_resident *resident)
{
	const struct sb_resident_opts *opts = &resident->opts;

	return opts->counts_ended && !opts->is_of_time && !opts->kinds &&
	       (opts->what == SB_MEMORY_HELD || opts->what == SB_MEMORY_OLD);
}

int sb_resident_add_owners(struct sb_resident *resident, const struct sb_event_owner *owners,
			   size_t nr)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		err = add_owner(resident, &owners[i]);
	return err;
}

void sb_page_records_clear(struct sb_page_records *records)
{
	sb_vec_clear(&records->faults);
	sb_vec_clear(&records->events);
}

void sb_page_records_release(struct sb_page_records *records)
{
	sb_vec_release(&records->faults);
	sb_vec_release(&records->events);
}

/* Append the records of @from that begin at a fault and an event. */
static int append_records(struct sb_page_records *to, const struct sb_page_records *from,
			  size_t fault, size_t event)
{
	int err = 0;

	for (; fault < from->faults.nr && !err; fault++)
		err = sb_vec_push(&to->faults, from->faults.at[fault]);
	for (; event < from->events.nr && !err; event++)
		err = sb_vec_push(&to->events, from->events.at[event]);
	return err;
}

static int compare_faults(const void *a, const void *b)
{
	const struct sb_fault_record *x = a, *y = b;

	return (x->now_ns > y->now_ns) - (x->now_ns < y->now_ns);
}

static int compare_events(const void *a, const void *b)
{
	const struct sb_page_event *x = a, *y = b;

	return (x->now_ns > y->now_ns) - (x->now_ns < y->now_ns);
}

/* Each CPU has its batch, so those of a thread that changes its CPU, or of two threads, can be
 * mixed up. */
static void sort_records(struct sb_page_records *records)
{
	const struct sb_fault_record *all = records->faults.at;
	size_t i;

	for (i = 1; i < records->faults.nr && all[i - 1].now_ns <= all[i].now_ns;)
		i++;
	if (i < records->faults.nr)
		qsort(records->faults.at, records->faults.nr, sizeof(*all), compare_faults);
	if (records->events.nr)
		qsort(records->events.at, records->events.nr, sizeof(*records->events.at),
		      compare_events);
}

static int add_event(struct sb_resident *resident, const struct sb_page_event *event)
{
	if (event->kind == SB_EVENT_MAPPED)
		return add_mapping(resident, event);
	add_end(resident, event);
	return 0;
}

/* Take the records in order, up to a time; the others wait. Return: 0 or -ENOMEM. */
static int take_records(struct sb_resident *resident, const struct sb_page_records *records,
			uint64_t until_ns)
{
	size_t fault = 0, event = 0;
	uint64_t fault_ns, event_ns;
	int err = 0, late;

	while (!err) {
		fault_ns =
			fault < records->faults.nr ? records->faults.at[fault].now_ns : UINT64_MAX;
		event_ns =
			event < records->events.nr ? records->events.at[event].now_ns : UINT64_MAX;
		if (fault_ns >= until_ns && event_ns >= until_ns)
			break;
		err = event_ns <= fault_ns ? add_event(resident, &records->events.at[event++])
					   : add_fault(resident, &records->faults.at[fault++]);
	}
	late = append_records(&resident->late, records, fault, event);
	return err ? err : late;
}

int sb_resident_add(struct sb_resident *resident, struct sb_page_records *records,
		    uint64_t until_ns)
{
	size_t i;
	int err = append_records(records, &resident->late, 0, 0);

	sb_page_records_clear(&resident->late);
	sort_records(records);
	follow(resident);
	resident->nr_steps = 0;
	for (i = 1; i < resident->spaces.nr; i++)
		resident->spaces.at[i].nr_steps = 0;
	if (!err)
		err = take_records(resident, records, until_ns);
	/* Before the table of pages grows on, in the next call. */
	sb_page_records_clear(records);
	for (i = 1; i < resident->spaces.nr && !err; i++) {
		const struct space *space = &resident->spaces.at[i];

		if (space->is_used && !space->is_known && !space->is_ended)
			err = sb_resident_meet(resident, (uint32_t)i);
	}
	return err;
}

int sb_resident_pending(const struct sb_resident *resident, sb_vec_stack_id *ids)
{
	size_t i;
	int err = 0;

	for (i = 0; i < resident->owners.nr && !err; i++) {
		const struct owner *owner = &resident->owners.at[i];

		if (!owner->id)
			continue;
		err = sb_vec_push(ids, owner->key.kstack);
		if (!err)
			err = sb_vec_push(ids, owner->key.ustack);
		if (!err)
			err = sb_vec_push(ids, owner->key.istack);
	}
	return err;
}

/* The memory of a running process is counted with the mappings that it has when it is counted, that
 * of an ended one with the mappings at its last fault. So a running process with an early page does
 * not keep mappings of others. */
uint64_t sb_resident_oldest_ns(const struct sb_resident *resident)
{
	uint64_t oldest_ns = UINT64_MAX;
	size_t i;

	if (resident->opts.what != SB_MEMORY_CHURN && !sb_resident_counts_ended(resident))
		return oldest_ns;
	for (i = 0; i < resident->owners.nr; i++) {
		const struct owner *owner = &resident->owners.at[i];

		if (owner->id && owner->last_ns && owner->last_ns < oldest_ns &&
		    (resident->opts.what == SB_MEMORY_CHURN ||
		     resident->spaces.at[owner->space].is_ended))
			oldest_ns = owner->last_ns;
	}
	return oldest_ns;
}
