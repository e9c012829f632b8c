// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "flamegraph/text.h"

struct sb_tree_frame sb_fg_tree_deep_mark(void)
{
	static const char name[] = "[truncated: deeper than 16384 frames]";

	_Static_assert(SB_FG_DEPTH_MAX == 16384, "the name says the number");
	return (struct sb_tree_frame){ .name = name, .len = sizeof(name) - 1, SB_FG_MARK };
}

int sb_fg_tree_add(struct sb_tree *tree, const struct sb_tree_frame *frames, size_t nr,
		   double weight, const struct sb_tree_pair *pair)
{
	const struct sb_tree_frame mark = sb_fg_tree_deep_mark();
	uint32_t node = 0;
	size_t i, nr_kept = nr > SB_FG_DEPTH_MAX ? SB_FG_DEPTH_MAX - 1 : nr;
	int err;

	/* A gap may be added on each level, too. */
	if (tree->nodes.nr + 2 * (nr_kept + 1) > SB_TREE_NODES_MAX)
		return -E2BIG;
	for (i = 0; i < nr_kept; i++) {
		err = sb_tree_child(tree, node, &frames[i], &node);
		if (err)
			return err;
	}
	if (nr_kept < nr) {
		err = sb_tree_child(tree, node, &mark, &node);
		if (err)
			return err;
		nr_kept++;
		tree->nr_deep++;
	}
	return sb_tree_weigh(tree, node, (uint32_t)nr_kept, weight, pair);
}

/* " 12\n". Return: its length. */
static int print_whole(char *buf, uint64_t weight)
{
	char digits[20];
	size_t at = sizeof(digits), len;

	do {
		digits[--at] = (char)('0' + weight % 10);
		weight /= 10;
	} while (weight);
	len = sizeof(digits) - at;
	buf[0] = ' ';
	memcpy(buf + 1, digits + at, len);
	buf[len + 1] = '\n';
	return (int)len + 2;
}

/* " 12.5\n": the shortest form that gives the same weight, without exponent. Return: its length. */
static int print_weight(char *buf, size_t size, double weight, bool has_fractions)
{
	int len, digits;
	double again;

	/* Nearly all weights; printf() takes 2,000 instructions for one. */
	if (weight >= 0 && weight < 1e15 && weight == floor(weight))
		return print_whole(buf, (uint64_t)weight);
	len = snprintf(buf, size, " %.0f", weight);
	for (digits = 15; has_fractions && digits <= 17; digits++) {
		len = snprintf(buf, size, " %.*g", digits, weight);
		if (sb_parse_decimal(buf + 1, (size_t)len - 1, &again) && again == weight)
			break;
	}
	if (strchr(buf, 'e')) {
		/* Tiny or huge. Readers use 15 decimals. */
		len = snprintf(buf, size, weight < 1 ? " %.15f" : " %.0f", weight);
		while (weight < 1 && buf[len - 1] == '0')
			len--;
	}
	buf[len++] = '\n';
	return len;
}

/*
 * Round to 12 digits, three of them after the point, so that reading and writing again changes
 * nothing.
 */
static double rounded(double nr)
{
	double scale;

	nr = fmin(fmax(nr, 0.001), 1e18);
	scale = pow(10, 11 - floor(log10(nr)));
	return round(nr * scale) / scale;
}

/* "#n;12;3.5\n": how many samples the weights have, if they are not counts of samples. */
static int print_samples(char *buf, size_t size, const struct sb_tree_pair *pair)
{
	double nr[2];
	int side;

	for (side = 0; side < 2; side++) {
		double weight = pair->weight[side], squares = pair->squares[side];

		if (isnan(squares))
			return 0;
		nr[side] = squares > 0 ? rounded(weight * weight / squares) : 0;
	}
	if (fabs(nr[0] - pair->weight[0]) <= nr[0] * 1e-9 &&
	    fabs(nr[1] - pair->weight[1]) <= nr[1] * 1e-9)
		return 0;
	return snprintf(buf, size, "#n;%.*f;%.*f\n", nr[0] == floor(nr[0]) ? 0 : 3, nr[0],
			nr[1] == floor(nr[1]) ? 0 : 3, nr[1]);
}

/* fold_line() for a comparison. */
static int fold_pair(const struct sb_tree *tree, uint32_t node, const struct sb_str *line,
		     int (*put)(void *arg, const char *s, size_t len), void *arg)
{
	const struct sb_tree_pair *pair = &tree->pairs.at[node];
	char samples[96], a[64], b[64];
	int nr_samples, nr_a, nr_b, err = 0;

	if (!(pair->weight[0] > 0 || pair->weight[1] > 0) || !line->s || line->len < 2)
		return 0;
	nr_samples = print_samples(samples, sizeof(samples), pair);
	nr_a = print_weight(a, sizeof(a), pair->weight[0], tree->has_fractions);
	nr_b = print_weight(b, sizeof(b), pair->weight[1], tree->has_fractions);
	if (nr_samples)
		err = put(arg, samples, (size_t)nr_samples);
	if (!err && line->s[0] == '#')
		err = put(arg, " ", 1);
	err = err ?: put(arg, line->s, line->len - 1);
	/* The newline comes after the second weight. */
	err = err ?: put(arg, a, (size_t)nr_a - 1);
	return err ?: put(arg, b, (size_t)nr_b);
}

/* Write the line of a node whose stack is in @line, without its last ';'. */
static int fold_line(const struct sb_tree *tree, uint32_t node, struct sb_str *line,
		     int (*put)(void *arg, const char *s, size_t len), void *arg)
{
	double self;
	char number[64];
	int n, err;

	if (tree->pairs.nr)
		return fold_pair(tree, node, line, put, arg);
	self = sb_tree_self(tree, node, SB_TREE_A);
	if (self <= 0 || !line->s || line->len < 2)
		return 0;
	n = print_weight(number, sizeof(number), self, tree->has_fractions);
	/* A line that begins with '#' would be a comment. */
	err = line->s[0] == '#' ? put(arg, " ", 1) : 0;
	if (!err)
		err = put(arg, line->s, line->len - 1);
	if (!err)
		err = put(arg, number, (size_t)n);
	return err;
}

/* "[idle: epoll]" and "main" need no suffix: the name tells the kind. */
static const char *suffix_of(const struct sb_tree *tree, uint32_t node)
{
	enum sb_fg_kind kind = tree->kinds.at[node];
	size_t len;
	const char *name = sb_strtab_get(&tree->names, tree->nodes.at[node].name, &len);
	struct sb_tree_frame read = { .len = len, .kind = SB_FG_PLAIN };

	if (len && !sb_fg_name_is_plain(name, len))
		read = sb_fg_frame_parse(name, len);
	/* A name that ends like a suffix needs one of its own, or would lose that end. */
	if (read.kind == kind && read.len == len)
		return "";
	return sb_fg_kinds[kind].suffix;
}

/* Append "name_[k];" to @line. A gap is time of its parent and has no name. */
static int fold_name(const struct sb_tree *tree, uint32_t node, struct sb_str *line)
{
	size_t len;
	const char *name = sb_strtab_get(&tree->names, tree->nodes.at[node].name, &len);
	int err;

	if (tree->kinds.at[node] == SB_FG_GAP)
		return 0;
	err = sb_str_addn(line, name, len);
	if (!err)
		err = sb_str_add(line, suffix_of(tree, node));
	if (!err)
		err = sb_str_addc(line, ';');
	return err;
}

/* Remove what fold_name() appended. */
static void unfold_name(const struct sb_tree *tree, uint32_t node, struct sb_str *line)
{
	size_t len;

	if (tree->kinds.at[node] == SB_FG_GAP)
		return;
	sb_strtab_get(&tree->names, tree->nodes.at[node].name, &len);
	line->len -= len + strlen(suffix_of(tree, node)) + 1;
}

int sb_fg_tree_fold(const struct sb_tree *tree, int (*put)(void *arg, const char *s, size_t len),
		    void *arg)
{
	struct sb_str line = {};
	uint32_t node, next;
	int err = 0;

	for (node = 1; node < tree->nodes.nr && !err; node = next) {
		next = node + 1;
		err = fold_name(tree, node, &line);
		if (!err)
			err = fold_line(tree, node, &line, put, arg);
		/* Remove the names of complete nodes. */
		for (; node && tree->nodes.at[node].end == next; node = tree->nodes.at[node].parent)
			unfold_name(tree, node, &line);
	}
	sb_str_release(&line);
	return err;
}
