/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The arithmetic of sampling bytes, for preload/alloc.c. From one sampled byte to the next it is a
 * geometric distance with the mean R, so an allocation of S bytes is sampled with the probability
 * 1 - exp(-S/R). It weighs S / (1 - exp(-S/R)) bytes then, and so the sum of the weights is an
 * unbiased estimate of all bytes. Without libm, which would be loaded into every program.
 *
 * Thread: any; functions of their arguments, and of *@state, which one thread uses. R is from 1 to
 * 2^40.
 */
#ifndef SB_PRELOAD_WEIGHT_H
#define SB_PRELOAD_WEIGHT_H

#include <stdint.h>
#include <string.h>

#define SB_LN2 0.693147180559945309417

/* Return: the natural logarithm of @x, which is a normal number above 0; to 12 digits. */
static inline double sb_weight_ln(double x)
{
	uint64_t bits;
	double t, square, term, sum = 0;
	int exponent, i;

	memcpy(&bits, &x, sizeof(bits));
	exponent = (int)(bits >> 52) - 1023;
	bits = (bits & 0xfffffffffffffull) | 1023ull << 52;
	memcpy(&x, &bits, sizeof(x)); /* 1 <= x < 2 */
	/* ln x = 2 (t + t^3/3 + t^5/5 ...), and t <= 1/3 */
	t = (x - 1) / (x + 1);
	square = t * t;
	for (term = t, i = 1; i < 26; i += 2, term *= square)
		sum += term / i;
	return 2 * sum + exponent * SB_LN2;
}

/* Return: 1 - exp(-@x), @x >= 0; to 12 digits, also if @x is tiny. */
static inline double sb_weight_chance(double x)
{
	double half, chance;
	int i;

	if (x > 40)
		return 1;
	/* By (1 - e^-2h) = (1 - e^-h) (2 - (1 - e^-h)), down to an argument whose series is
	 * short. */
	if (x > 0.0625) {
		half = sb_weight_chance(x / 2);
		return half * (2 - half);
	}
	for (chance = 0, i = 9; i > 0; i--)
		chance = x / i * (1 - chance);
	return chance;
}

/* Return: what a sampled allocation of @size bytes, more than 0, weighs, in bytes: at least @size,
 * and at least about @mean, which is R. */
static inline uint64_t sb_weight_of(uint64_t size, uint64_t mean)
{
	return (uint64_t)((double)size / sb_weight_chance((double)size / (double)mean) + 0.5);
}

/* Return: bytes up to and with the next one that is sampled, at least 1. @random: 64 random bits,
 * all values equally likely. @mean: R */
static inline int64_t sb_weight_distance(uint64_t random, uint64_t mean)
{
	double even = (double)((random >> 11) + 1) / 9007199254740992.0; /* of (0, 1] */

	return (int64_t)(-sb_weight_ln(even) * (double)mean) + 1;
}

/* Return: the next one of a sequence of random numbers, and advance *@state, which is not 0 before
 * and not afterwards. xorshift64*, by Vigna. */
static inline uint64_t sb_weight_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717ull;
}

#endif
