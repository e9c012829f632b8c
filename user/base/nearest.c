// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/nearest.h"

#include <string.h>

#define NAME_MAX_LEN 80 /* functions have names as long; the table below is their square */

static size_t min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: insert, delete, replace, or swap two neighbours, one each. Return: the
 * distance; or something above @max, as soon as it is known to be above. */
static size_t distance(const char *a, size_t nr_a, const char *b, size_t nr_b, size_t max)
{
	unsigned char d[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];
	size_t i, j, least = 0, least_before, cell;

	for (j = 0; j <= nr_b; j++)
		d[0][j] = (unsigned char)j;
	for (i = 1; i <= nr_a; i++) {
		d[i][0] = (unsigned char)i;
		least_before = least;
		least = i;
		for (j = 1; j <= nr_b; j++) {
			cell = min2(min2(d[i - 1][j], d[i][j - 1]) + 1u,
				    d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cell = min2(cell, d[i - 2][j - 2] + 1u);
			d[i][j] = (unsigned char)cell;
			least = min2(least, cell);
		}
		/* A swap reaches back by two rows. */
		if (least > max && least_before > max)
			return max + 1;
	}
	return d[nr_a][nr_b];
}

void sb_nearest_offer(struct sb_nearest *nearest, const char *name)
{
	size_t nr_typed = strlen(nearest->typed), nr_name = strlen(name);
	size_t shorter = min2(nr_typed, nr_name), max = (shorter + 1) / 3;
	size_t apart = nr_typed + nr_name - 2 * shorter, dist, rank;

	if (nr_typed > NAME_MAX_LEN || nr_name > NAME_MAX_LEN)
		return;
	/* One begins like the other: an abbreviation, or somebody else's longer name for it. */
	if (shorter >= 3 && !memcmp(nearest->typed, name, shorter)) {
		rank = apart;
		dist = apart ? 1 : 0;
	} else {
		if (apart > max)
			return;
		rank = dist = distance(nearest->typed, nr_typed, name, nr_name, max);
	}
	if (dist > max)
		return;
	/* Of several such names the one with the least difference. */
	rank += dist * (NAME_MAX_LEN + 1);
	if (nearest->name && rank >= nearest->rank)
		return;
	nearest->name = name;
	nearest->rank = rank;
}
