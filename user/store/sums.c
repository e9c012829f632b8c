// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/sums.h"

#include <errno.h>

int sb_sums_fit(struct sb_sums *sums, const struct sb_dict *dict)
{
	/* Of no rows there is an array, too. */
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

/* Question by question. */

/* Of a block: of which sums it is. */
enum {
	IS_KEPT = 1,
	IS_ASKED = 2,
};

void sb_resum_forget(struct sb_resum *resum)
{
	resum->is_whole = false;
}

/* What the question before asked for is what is kept. */
static void keep(struct sb_resum *resum)
{
	struct sb_sums before = resum->kept;
	size_t i;

	resum->kept = resum->sums;
	resum->sums = before;
	for (i = 0; i < resum->state.nr; i++)
		resum->state.at[i] = resum->state.at[i] & IS_ASKED ? IS_KEPT : 0;
}

static void empty(struct sb_sums *sums)
{
	sums->weight.nr = 0;
	sums->sums = (struct sb_segment_sums){};
}

int sb_resum_begin(struct sb_resum *resum, const struct sb_segment *segment, uint64_t question)
{
	int err;

	if (resum->question == question)
		return 0;
	/* A block has its number until they are sorted. Rows that were not known may be known now. */
	if (resum->is_whole && resum->nr_sorts == segment->nr_sorts &&
	    !resum->sums.sums.lost_weight) {
		keep(resum);
	} else {
		resum->state.nr = 0;
		empty(&resum->kept);
	}
	resum->is_whole = false;
	empty(&resum->sums);
	err = sb_vec_fit(&resum->state, segment->blocks.nr, 0);
	if (!err)
		err = sb_sums_fit(&resum->kept, &segment->dict);
	if (!err)
		err = sb_sums_fit(&resum->sums, &segment->dict);
	if (err)
		return err;
	resum->nr_sorts = segment->nr_sorts;
	resum->question = question;
	return 0;
}

int sb_resum_add(struct sb_resum *resum, struct sb_segment *segment, const struct sb_record *block)
{
	uint8_t *state = &resum->state.at[block - segment->blocks.at];
	int err = 0;

	/* If it is kept, whether to add it is known at the end. */
	if (!(*state & IS_KEPT))
		err = sb_segment_add(segment, block, &resum->sums.sums);
	if (!err)
		*state |= IS_ASKED;
	return err;
}

/* What is kept, less blocks that are not asked for. Return: as sb_segment_take(); then kept is of no use. */
static int use_kept(struct sb_resum *resum, struct sb_segment *segment)
{
	const struct sb_sums *kept = &resum->kept;
	size_t i;
	int err = 0;

	for (i = 0; i < resum->state.nr && !err; i++)
		if (resum->state.at[i] == IS_KEPT)
			err = sb_segment_take(segment, &segment->blocks.at[i], &resum->kept.sums);
	if (err)
		return err;
	for (i = 0; i < kept->weight.nr; i++)
		resum->sums.weight.at[i] += kept->weight.at[i];
	for (i = 0; i < SB_BLOCK_FIGURE_MAX; i++)
		resum->sums.sums.figure[i] += kept->sums.figure[i];
	return 0;
}

/* Those that are kept and asked for, from the file. */
static int add_again(struct sb_resum *resum, struct sb_segment *segment, uint64_t *nr_damaged)
{
	size_t i;
	int err = 0;

	for (i = 0; i < resum->state.nr && !err; i++) {
		if (resum->state.at[i] != (IS_KEPT | IS_ASKED))
			continue;
		err = sb_segment_add(segment, &segment->blocks.at[i], &resum->sums.sums);
		if (err != -EBADMSG)
			continue;
		resum->state.at[i] = 0;
		(*nr_damaged)++;
		err = 0;
	}
	return err;
}

int sb_resum_end(struct sb_resum *resum, struct sb_segment *segment, uint64_t *ret_nr_damaged)
{
	size_t i, nr_again = 0, nr_gone = 0;
	int err = -EBADMSG;

	*ret_nr_damaged = 0;
	for (i = 0; i < resum->state.nr; i++) {
		nr_again += resum->state.at[i] == (IS_KEPT | IS_ASKED);
		nr_gone += resum->state.at[i] == IS_KEPT;
	}
	if (nr_gone < nr_again)
		err = use_kept(resum, segment);
	if (err == -EBADMSG)
		err = add_again(resum, segment, ret_nr_damaged);
	resum->is_whole = !err;
	return err;
}

size_t sb_resum_bytes(const struct sb_resum *resum)
{
	return (resum->sums.weight.nr + resum->kept.weight.nr) * sizeof(uint64_t) + resum->state.nr;
}

void sb_resum_release(struct sb_resum *resum)
{
	sb_sums_release(&resum->sums);
	sb_sums_release(&resum->kept);
	sb_vec_release(&resum->state);
}
