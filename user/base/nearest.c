// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

#define NAME_MAX_LEN 32 /* longer words are nobody's misspelling of ours */

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Optimal string alignment: insert, delete, replace, or swap two neighbours, one each. */
static size_t distance(const char *a, size_t nr_a, const char *b, size_t nr_b)
{
	size_t d[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];
	size_t i, j;

	for (i = 0; i <= nr_a; i++)
		d[i][0] = i;
	for (j = 0; j <= nr_b; j++)
		d[0][j] = j;
	for (i = 1; i <= nr_a; i++) {
		for (j = 1; j <= nr_b; j++) {
			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1,
				       d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	}
	return d[nr_a][nr_b];
}

void sb_nearest_offer(struct sb_nearest *nearest, const char *name)
{
	size_t nr_typed = strlen(nearest->typed), nr_name = strlen(name);
	size_t shorter = nr_typed < nr_name ? nr_typed : nr_name, dist, rank;

	if (nr_typed > NAME_MAX_LEN || nr_name > NAME_MAX_LEN)
		return;
	dist = distance(nearest->typed, nr_typed, name, nr_name);
	rank = dist;
	/* One begins like the other: an abbreviation, or somebody else's longer name for it. */
	if (shorter >= 3 && !memcmp(nearest->typed, name, shorter))
		dist = dist ? 1 : 0;
	if (dist > (shorter + 1) / 3)
		return;
	/* Of several such names the one with the least difference. */
	rank += dist * (NAME_MAX_LEN + 1);
	if (nearest->name && rank >= nearest->rank)
		return;
	nearest->name = name;
	nearest->rank = rank;
}
