// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Vectors on the stack, to be built with -O3 -mavx2 and without frame pointers: GCC realigns the
 * stack in the prologue, and how to find the caller becomes an expression. Runs until it is killed.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define NR	 256

typedef float vec8 __attribute__((vector_size(32)));

static volatile float sink;

static NOINLINE void scale(vec8 *out, const vec8 *in, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		out[i] = in[i] * 0.99f + 1.0f;
}

static NOINLINE float fold(const float *at, int nr)
{
	float sum = 0;
	int i;

	for (i = 0; i < nr; i++)
		sum += at[i] * at[i];
	return sum;
}

struct on_stack {
	long at[6];
};

/* An argument on the stack has to be found, too, though the stack was realigned. */
static NOINLINE vec8 blend(vec8 a, vec8 b, int depth, struct on_stack c)
{
	vec8 room[8];
	float line[NR] __attribute__((aligned(64)));
	int i;

	for (i = 0; i < 8; i++)
		room[i] = a * (float)i + b;
	for (i = 0; i < NR; i++)
		line[i] = (float)i * a[i & 7] + (float)c.at[i % 6];
	c.at[depth]++;
	scale(room, room, 8);
	room[0][0] += fold(line, NR);
	if (depth > 0)
		room[1] = blend(room[2], room[3], depth - 1, c);
	return room[0] + room[1];
}

static NOINLINE float of_any_size(int nr)
{
	struct on_stack numbers = { { 1, 2, 3, 4, 5, nr } };
	vec8 room[nr];
	vec8 local[4];

	memset(room, 0, sizeof(room));
	scale(room, room, nr);
	local[nr & 3] = blend(room[0], room[1], nr % 5, numbers);
	return sinf(local[nr & 3][0]) + fold((const float *)room, nr * 8);
}

int main(void)
{
	int i;

	for (i = 0;; i = (i + 1) & 31)
		sink += of_any_size(i + 2);
	return 0;
}
