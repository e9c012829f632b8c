// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which symbol owns an address, by the rules of symtab.h. The symbols are sorted by where they
 * start, and aliases by how well they name; then each layer (functions, other sized symbols,
 * labels) is swept once with a stack of the symbols that are open, which gives pieces that do not
 * overlap; at last a layer shows where the layers before it leave a gap.
 *
 * Files can be made to be expensive here, so the comparison of names has a bound that is divided
 * among the aliases.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/symbols/symtab_priv.h"

/*
 * Names of one address are compared by so many bytes at most, and count as equal if these are the
 * same: comparing a million longer names would take minutes.
 */
#define NAME_COMPARED_MAX   1024
/*
 * Bytes of names that are compared to choose among aliases, so many and so many more for each
 * symbol. All C++ libraries of a distribution stay far below. A million symbols of one address and
 * one name would cost 20 s.
 */
#define COMPARED_BYTES	    (16u << 20)
#define COMPARED_BYTES_MORE 64u
/* A shorter prefix is not worth comparing. */
#define NAME_COMPARED_MIN   8u

/* How names are compared, and the remaining budget for that. */
struct comparison {
	const struct sb_symtab *tab;
	size_t len_max;	     /* bytes of a name that are compared; 0: none */
	uint64_t bytes_left; /* of all comparisons */
};

/* The version does not count: "memcpy@@GLIBC_2.14" is as long as "memcpy". */
static size_t name_len(const char *name, size_t max)
{
	size_t len = strnlen(name, max);
	const char *version = memchr(name, '@', len);

	return version ? (size_t)(version - name) : len;
}

static size_t nr_underscores(const char *name, size_t max)
{
	size_t nr = 0;

	while (nr < max && name[nr] == '_')
		nr++;
	return nr;
}

static int compare_names(struct comparison *comparison, const struct candidate *a,
			 const struct candidate *b)
{
	const struct sb_symtab *tab = comparison->tab;
	const size_t max = comparison->len_max;
	const char *name_a = tab->names[a->names_idx].mem + a->name;
	const char *name_b = tab->names[b->names_idx].mem + b->name;
	size_t a_scores = nr_underscores(name_a, max), b_scores = nr_underscores(name_b, max);
	size_t a_len = name_len(name_a, max), b_len = name_len(name_b, max);
	uint64_t spent = a_len + b_len;
	int diff;

	comparison->bytes_left -= spent < comparison->bytes_left ? spent : comparison->bytes_left;
	if (a_scores != b_scores)
		return a_scores > b_scores ? -1 : 1;
	if (a_len != b_len)
		return a_len < b_len ? -1 : 1;
	diff = strncmp(name_b, name_a, max);
	if (diff)
		return diff;
	return b->names_idx - a->names_idx;
}

/* Compare symbols that start together; the best one sorts last. */
static int compare(const void *pa, const void *pb, void *arg)
{
	const struct candidate *a = pa, *b = pb;
	struct comparison *comparison = arg;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->names_idx == b->names_idx && a->name == b->name)
		return 0;
	return comparison->len_max ? compare_names(comparison, a, b) : 0;
}

/*
 * Sort @nr that start together. The length to compare is set before, so that the order is one
 * order: what the sort will compare is at most nr log2(nr) pairs, and what is left has to do for
 * all of them.
 */
static void sort_aliases(struct candidate *at, size_t nr, struct comparison *comparison)
{
	unsigned int steps = 1;
	uint64_t len;

	while (nr >> steps)
		steps++;
	len = comparison->bytes_left / (2 * (uint64_t)nr * steps);
	comparison->len_max = len < NAME_COMPARED_MIN	? 0
			      : len < NAME_COMPARED_MAX ? (size_t)len
							: NAME_COMPARED_MAX;
	qsort_r(at, nr, sizeof(*at), compare, comparison);
}

/*
 * Sort by one byte of the start, stable. Return: false if it is equal in all; then nothing was
 * moved.
 */
static bool sort_by_byte(const struct candidate *from, size_t nr, unsigned int shift,
			 struct candidate *to)
{
	size_t places[257] = {}, i;

	for (i = 0; i < nr; i++)
		places[(from[i].start >> shift & 0xff) + 1]++;
	if (places[(from[0].start >> shift & 0xff) + 1] == nr)
		return false;
	for (i = 1; i < SB_ARRAY_SIZE(places); i++)
		places[i] += places[i - 1];
	for (i = 0; i < nr; i++)
		to[places[from[i].start >> shift & 0xff]++] = from[i];
	return true;
}

/*
 * By start, byte by byte: most of the time to open a library would go into comparing. Only those
 * that start together are compared, by name at last.
 */
static int sort_candidates(struct sb_symtab *tab)
{
	struct candidate *from = tab->candidates.at, *to, *swap;
	const size_t nr = tab->candidates.nr;
	struct comparison comparison = {
		.tab = tab,
		.bytes_left = COMPARED_BYTES + (uint64_t)nr * COMPARED_BYTES_MORE,
	};
	unsigned int shift;
	size_t i, end;

	to = nr ? malloc(nr * sizeof(*to)) : NULL;
	if (!to)
		return nr ? -ENOMEM : 0;
	for (shift = 0; shift < 64; shift += 8) {
		if (!sort_by_byte(from, nr, shift, to))
			continue;
		swap = from;
		from = to;
		to = swap;
	}
	free(to);
	tab->candidates.at = from;
	tab->candidates.cap = nr;
	for (i = 0; i < nr; i = end) {
		for (end = i + 1; end < nr && from[end].start == from[i].start;)
			end++;
		if (end - i > 1)
			sort_aliases(from + i, end - i, &comparison);
	}
	return 0;
}

/*
 * Symbols without a size end where anything else starts, and those inside of one that has a size,
 * at its end: they are labels of its code, not of what follows.
 */
static void bound_unsized(struct sb_symtab *tab)
{
	struct candidate *at = tab->candidates.at;
	uint64_t next_start = UINT64_MAX, start = UINT64_MAX, sized_end = 0;
	size_t i;

	for (i = 0; i < tab->candidates.nr; i++) {
		if (at[i].layer != LAYER_UNSIZED)
			sized_end = at[i].end > sized_end ? at[i].end : sized_end;
		else if (at[i].start < sized_end && at[i].end > sized_end)
			at[i].end = sized_end;
	}
	for (i = tab->candidates.nr; i-- > 0;) {
		if (at[i].start != start) {
			next_start = start;
			start = at[i].start;
		}
		if (at[i].layer == LAYER_UNSIZED && at[i].end > next_start)
			at[i].end = next_start;
	}
}

struct sweep {
	const struct candidate *at;
	SB_VEC(uint32_t) open; /* symbols that have not ended, innermost last */
	segment_vec out;
};

static int emit(segment_vec *out, uint64_t start, uint32_t owner)
{
	if (out->nr && out->at[out->nr - 1].start == start)
		out->nr--;
	if (out->nr ? out->at[out->nr - 1].owner == owner : owner == SB_SYMBOL_NONE)
		return 0;
	return sb_vec_push(out, (struct segment){ .start = start, .owner = owner });
}

/* Close symbols that end at or before @upto; the symbol around them continues. */
static int close_until(struct sweep *sweep, uint64_t upto)
{
	uint64_t end;
	int err;

	while (sweep->open.nr) {
		end = sweep->at[sweep->open.at[sweep->open.nr - 1]].end;
		if (end > upto)
			break;
		/* A symbol that ended under another one does not appear again. */
		while (sweep->open.nr && sweep->at[sweep->open.at[sweep->open.nr - 1]].end <= end)
			sweep->open.nr--;
		err = emit(&sweep->out, end,
			   sweep->open.nr ? sweep->open.at[sweep->open.nr - 1] : SB_SYMBOL_NONE);
		if (err)
			return err;
	}
	return 0;
}

/* Find the segments that symbols of one layer own. The caller frees @ret_out. */
static int flatten_layer(struct sb_symtab *tab, enum layer layer, segment_vec *ret_out)
{
	struct sweep sweep = { .at = tab->candidates.at };
	size_t i;
	int err = 0;

	for (i = 0; i < tab->candidates.nr && !err; i++) {
		if (sweep.at[i].layer != layer)
			continue;
		err = close_until(&sweep, sweep.at[i].start);
		if (!err)
			err = emit(&sweep.out, sweep.at[i].start, (uint32_t)i);
		if (!err)
			err = sb_vec_push(&sweep.open, (uint32_t)i);
	}
	if (!err)
		err = close_until(&sweep, UINT64_MAX);
	sb_vec_release(&sweep.open);
	*ret_out = sweep.out;
	return err;
}

/* Combine two layers: @under is used where @over has no owner. The caller frees @ret_out. */
static int merge(const segment_vec *over, const segment_vec *under, segment_vec *ret_out)
{
	uint32_t over_owner = SB_SYMBOL_NONE, under_owner = SB_SYMBOL_NONE;
	size_t i = 0, j = 0;
	uint64_t at;
	int err;

	while (i < over->nr || j < under->nr) {
		if (j == under->nr || (i < over->nr && over->at[i].start <= under->at[j].start))
			at = over->at[i].start;
		else
			at = under->at[j].start;
		if (i < over->nr && over->at[i].start == at)
			over_owner = over->at[i++].owner;
		if (j < under->nr && under->at[j].start == at)
			under_owner = under->at[j++].owner;
		err = emit(ret_out, at, over_owner != SB_SYMBOL_NONE ? over_owner : under_owner);
		if (err)
			return err;
	}
	return 0;
}

static segment_vec take_segments(segment_vec *from)
{
	segment_vec taken = *from;

	*from = (segment_vec){};
	return taken;
}

/* Most files have symbols in one layer only; then nothing needs merging. */
static int merge_layers(struct sb_symtab *tab, segment_vec *ret_out)
{
	segment_vec all = {}, one = {}, merged;
	int layer, err = 0;

	for (layer = 0; layer < LAYER_MAX && !err; layer++) {
		merged = (segment_vec){};
		err = flatten_layer(tab, layer, &one);
		if (!err && all.nr && one.nr)
			err = merge(&all, &one, &merged);
		else
			merged = take_segments(all.nr ? &all : &one);
		sb_vec_release(&all);
		sb_vec_release(&one);
		all = merged;
	}
	*ret_out = all;
	return err;
}

int sb_symtab_flatten(struct sb_symtab *tab, segment_vec *ret_segments)
{
	int err = sort_candidates(tab);

	if (err)
		return err;
	bound_unsized(tab);
	return merge_layers(tab, ret_segments);
}
