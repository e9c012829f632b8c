// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/sums.h"

#include <errno.h>

int sb_sums_fit(struct sb_sums *sums, const struct sb_dict *dict)
{
	/* Without rows there must be an array, too. */
	int err = sb_vec_reserve(&sums->weight, dict->rows.nr + 1);

	if (!err)
		err = sb_vec_fit(&sums->weight, dict->rows.nr, 0);
	if (!err)
		sums->sums.weight = sums->weight.at;
	return err;
}

void sb_sums_release(struct sb_sums *sums)
{
	sb_vec_release(&sums->weight);
	sums->sums.weight = NULL;
}

/*
 * Sums of one query after another. Each block has a state: a bit for each of the kept sums that it
 * is in, and two bits of the current query. A query adds blocks that are in no kept sums to `fresh`
 * at once (sb_resum_add()). At its end, choose() looks for the kept sums from which the fewest
 * blocks have to be read: those that are missing are added, and those that are not asked for are
 * subtracted.
 */

/* Lower bits of a state: the kept sums that have the block. */
#define IS_KEPT	   ((1u << SB_RESUM_KEPT) - 1)
#define IS_ASKED   (1u << SB_RESUM_KEPT)
/* It is in some kept sums; whether it must be added is decided at the end. */
#define IS_LATER   (2u << SB_RESUM_KEPT)
#define NR_STATES  (4u << SB_RESUM_KEPT)
/* In place of a slot: start with empty sums. */
#define NOTHING	   SB_RESUM_KEPT
/* If at most one in this many blocks differs, the range has moved: overwrite the old sums. */
#define MOVED_PART 4

static void empty(struct sb_sums *sums)
{
	sums->weight.nr = 0;
	sums->sums = (struct sb_segment_sums){};
}

static void clear_states(struct sb_resum *resum, unsigned int bits)
{
	size_t i;

	for (i = 0; i < resum->state.nr; i++)
		resum->state.at[i] &= (uint16_t)~bits;
}

static void drop(struct sb_resum *resum, size_t k)
{
	resum->kept[k].question = 0;
	clear_states(resum, 1u << k);
}

void sb_resum_forget(struct sb_resum *resum)
{
	size_t k;

	for (k = 0; k < SB_RESUM_KEPT; k++)
		resum->kept[k].question = 0;
	resum->state.nr = 0;
	resum->question = 0;
}

int sb_resum_begin(struct sb_resum *resum, const struct sb_segment *segment, uint64_t question)
{
	size_t k;
	int err;

	if (resum->question == question)
		return 0;
	/* Block indexes are valid until the blocks are sorted again. */
	if (resum->nr_sorts != segment->nr_sorts)
		sb_resum_forget(resum);
	/* Rows that the dictionary lacked may be there now. */
	for (k = 0; k < SB_RESUM_KEPT; k++)
		if (resum->kept[k].question && resum->kept[k].sums.sums.lost_weight)
			drop(resum, k);
	clear_states(resum, IS_ASKED | IS_LATER);
	resum->result = NULL;
	empty(&resum->fresh);
	err = sb_vec_fit(&resum->state, segment->blocks.nr, 0);
	if (!err)
		err = sb_sums_fit(&resum->fresh, &segment->dict);
	if (err)
		return err;
	resum->nr_sorts = segment->nr_sorts;
	resum->question = question;
	return 0;
}

int sb_resum_add(struct sb_resum *resum, struct sb_segment *segment, const struct sb_record *block)
{
	uint16_t *state = &resum->state.at[block - segment->blocks.at];
	int err = 0;

	if (*state & IS_KEPT)
		*state |= IS_LATER;
	else
		err = sb_segment_add(segment, block, &resum->fresh.sums);
	if (!err)
		*state |= IS_ASKED;
	return err;
}

/* The end of a question. */

struct ending {
	struct sb_resum *resum;
	struct sb_segment *segment;
	size_t nr_of[NR_STATES]; /* blocks */
	size_t nr_asked, nr_differ;
	size_t from;	     /* kept sums to start with, or NOTHING: so that few blocks are read */
	unsigned int unsure; /* kept sums that contain a block that cannot be read any more */
	uint64_t nr_damaged;
};

static void choose(struct ending *ending)
{
	size_t nr[SB_RESUM_KEPT + 1] = {}, k, state;

	for (state = 1; state < NR_STATES; state++) {
		bool is_asked = state & IS_ASKED;
		size_t nr_of = ending->nr_of[state];

		ending->nr_asked += is_asked ? nr_of : 0;
		ending->nr_differ += is_asked && !(state & IS_LATER) ? nr_of : 0;
		if (!nr_of || (is_asked && !(state & IS_LATER)))
			continue;
		for (k = 0; k < SB_RESUM_KEPT; k++)
			nr[k] += is_asked != (state >> k & 1) ? nr_of : 0;
		nr[NOTHING] += is_asked ? nr_of : 0;
	}
	for (ending->from = NOTHING, k = 0; k < SB_RESUM_KEPT; k++)
		if (ending->resum->kept[k].question && nr[k] < nr[ending->from])
			ending->from = k;
	ending->nr_differ += nr[ending->from];
}

/* The slot that was not used for longest, other than @but: new sums go there. */
static size_t oldest(const struct sb_resum *resum, size_t but)
{
	size_t k, at = !but;

	for (k = 0; k < SB_RESUM_KEPT; k++)
		if (k != but && resum->kept[k].question < resum->kept[at].question)
			at = k;
	return at;
}

static int copy(struct sb_resum *resum, size_t from, size_t to)
{
	const struct sb_sums *of = &resum->kept[from].sums;
	struct sb_sums *sums = &resum->kept[to].sums;
	int err = sb_vec_reserve(&sums->weight, of->weight.nr + 1);
	size_t i;

	if (err)
		return err;
	memcpy(sums->weight.at, of->weight.at, of->weight.nr * sizeof(*of->weight.at));
	sums->weight.nr = of->weight.nr;
	sums->sums = of->sums;
	sums->sums.weight = sums->weight.at;
	resum->kept[to].question = resum->kept[from].question;
	for (i = 0; i < resum->state.nr; i++)
		resum->state.at[i] |= (uint16_t)((resum->state.at[i] >> from & 1) << to);
	return 0;
}

/*
 * Subtract the blocks that are not asked for. Return: as sb_segment_take(); on error the partial
 * sums are discarded.
 */
static int take_rest(struct ending *ending)
{
	struct sb_resum *resum = ending->resum;
	struct sb_sums *sums = &resum->kept[ending->from].sums;
	uint16_t bit = (uint16_t)(1u << ending->from);
	size_t i;
	int err = sb_sums_fit(sums, &ending->segment->dict);

	for (i = 0; i < resum->state.nr && !err; i++) {
		if (!(resum->state.at[i] & bit) || resum->state.at[i] & IS_ASKED)
			continue;
		err = sb_segment_take(ending->segment, &ending->segment->blocks.at[i], &sums->sums);
		ending->unsure |= err ? resum->state.at[i] & IS_KEPT : 0;
		resum->state.at[i] &= (uint16_t)~bit;
	}
	if (!err)
		return 0;
	drop(resum, ending->from);
	ending->from = NOTHING;
	return err;
}

/* Add blocks that are in other kept sums, but not in those we started with. */
static int add_missing(struct ending *ending)
{
	struct sb_resum *resum = ending->resum;
	size_t i, k;
	int err = 0;

	for (i = 0; i < resum->state.nr && !err; i++) {
		uint16_t *state = &resum->state.at[i];

		if (!(*state & IS_LATER) || (ending->from < NOTHING && *state >> ending->from & 1))
			continue;
		err = sb_segment_add(ending->segment, &ending->segment->blocks.at[i],
				     &resum->fresh.sums);
		if (err != -EBADMSG)
			continue;
		err = 0;
		ending->nr_damaged++;
		ending->unsure |= *state & IS_KEPT;
		*state &= (uint16_t) ~(IS_ASKED | IS_LATER);
	}
	for (k = 0; k < SB_RESUM_KEPT; k++)
		if (ending->unsure >> k & 1)
			drop(resum, k);
	return err;
}

static void add_fresh(struct sb_resum *resum, struct sb_sums *sums)
{
	const struct sb_segment_sums *fresh = &resum->fresh.sums;
	size_t i;

	for (i = 0; i < resum->fresh.weight.nr; i++)
		sums->weight.at[i] += fresh->weight[i];
	for (i = 0; i < SB_BLOCK_FIGURE_MAX; i++)
		sums->sums.figure[i] += fresh->figure[i];
	sums->sums.lost_weight += fresh->lost_weight;
}

/* The sums of this query are in kept[@at]. */
static void note_result(struct sb_resum *resum, size_t at)
{
	size_t i;

	resum->kept[at].question = resum->question;
	resum->result = &resum->kept[at].sums.sums;
	for (i = 0; i < resum->state.nr; i++)
		if (resum->state.at[i] & IS_ASKED)
			resum->state.at[i] |= (uint16_t)(1u << at);
		else
			resum->state.at[i] &= (uint16_t) ~(1u << at);
}

/* Start with kept sums; with a copy of them if the range is another one. */
static int go_on_from(struct ending *ending)
{
	struct sb_resum *resum = ending->resum;
	size_t to = ending->from;
	int err = 0;

	if (ending->nr_differ * MOVED_PART > ending->nr_asked) {
		to = oldest(resum, ending->from);
		drop(resum, to);
		err = copy(resum, ending->from, to);
		ending->from = to;
	}
	return err ? err : take_rest(ending);
}

int sb_resum_end(struct sb_resum *resum, struct sb_segment *segment, uint64_t *ret_nr_damaged)
{
	struct ending ending = { .resum = resum, .segment = segment };
	struct sb_sums before;
	size_t i, at;
	int err = 0;

	*ret_nr_damaged = 0;
	for (i = 0; i < resum->state.nr; i++)
		ending.nr_of[resum->state.at[i]]++;
	choose(&ending);
	if (!ending.nr_asked)
		return 0;
	if (ending.from < NOTHING)
		err = go_on_from(&ending);
	if (!err || err == -EBADMSG)
		err = add_missing(&ending);
	if (err)
		return err;
	at = ending.from;
	if (at < NOTHING && ending.nr_differ) {
		add_fresh(resum, &resum->kept[at].sums);
	} else if (at == NOTHING) {
		at = oldest(resum, NOTHING);
		before = resum->kept[at].sums;
		resum->kept[at].sums = resum->fresh;
		resum->fresh = before;
	}
	note_result(resum, at);
	*ret_nr_damaged = ending.nr_damaged;
	return 0;
}

/* What is kept. */

size_t sb_resum_bytes(const struct sb_resum *resum)
{
	size_t k, nr = resum->fresh.weight.cap;

	for (k = 0; k < SB_RESUM_KEPT; k++)
		nr += resum->kept[k].sums.weight.cap;
	return nr * sizeof(uint64_t) + resum->state.cap * sizeof(resum->state.at[0]);
}

uint64_t sb_resum_oldest(const struct sb_resum *resum)
{
	uint64_t question, least = UINT64_MAX;
	size_t k;

	for (k = 0; k < SB_RESUM_KEPT; k++) {
		question = resum->kept[k].question;
		if (question && question < least)
			least = question;
	}
	return least;
}

void sb_resum_drop(struct sb_resum *resum, uint64_t question)
{
	size_t k;

	for (k = 0; k < SB_RESUM_KEPT; k++)
		if (resum->kept[k].question == question) {
			drop(resum, k);
			sb_sums_release(&resum->kept[k].sums);
		}
	resum->result = NULL;
}

void sb_resum_release(struct sb_resum *resum)
{
	size_t k;

	for (k = 0; k < SB_RESUM_KEPT; k++)
		sb_sums_release(&resum->kept[k].sums);
	sb_sums_release(&resum->fresh);
	sb_vec_release(&resum->state);
}
