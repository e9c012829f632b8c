// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Leaks memory and keeps an account of it. For each line that it reads, "leaks NR BYTES PAUSE
 * STORM" makes NR rounds, one each PAUSE us: of ten pieces that it keeps forever six are of much(),
 * three of some() and one of little(), each through five layers; ten times as much is allocated and
 * freed in churn(). Then it prints how many bytes and pieces each function has allocated since
 * the program began, and waits for the next line. Before the first rounds it allocates and frees STORM pieces that are in no account. As
 * C++ (leaks.cc) it uses new and delete.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
#define TAKE(size)  new char[size]
#define GIVE(piece) delete[] piece
#else
#define TAKE(size)  (char *)malloc(size)
#define GIVE(piece) free(piece)
#endif
#define DEEP __attribute__((noinline))

static size_t piece_bytes = 200;
static long pause_us;
static long nr_storm;
static volatile uint64_t bytes[4], pieces[4];
static char *volatile kept;

static void count(int of, size_t size)
{
	bytes[of] += size;
	pieces[of]++;
}

/* Pieces of different sizes: once, twice and three times piece_bytes. */
DEEP void keep(int of, int nr)
{
	size_t size = piece_bytes * (size_t)(1 + nr % 3);
	char *piece = TAKE(size);

	memset(piece, 1, size);
	*(char **)(void *)piece = kept;
	kept = piece;
	count(of, size);
}

DEEP void layer_1(int of, int nr)
{
	keep(of, nr);
	count(of, 0);
	pieces[of]--;
}

DEEP void layer_2(int of, int nr)
{
	layer_1(of, nr);
	bytes[of] += 0;
}

DEEP void much(int nr)
{
	layer_2(0, nr);
	bytes[0] += 0;
}

DEEP void some(int nr)
{
	layer_2(1, nr);
	bytes[1] += 0;
}

DEEP void little(int nr)
{
	layer_2(2, nr);
	bytes[2] += 0;
}

/* Ten pieces of the mean size. */
DEEP void churn(void)
{
	char *piece[10];
	int i;

	for (i = 0; i < 10; i++) {
		piece[i] = TAKE(2 * piece_bytes);
		piece[i][0] = 1;
		count(3, 2 * piece_bytes);
	}
	for (i = 0; i < 10; i++)
		GIVE(piece[i]);
}

#ifndef __cplusplus
/* What the other functions allocate is given back. */
DEEP void others(void)
{
	/* Volatile, so that the compiler does not leave out what is given back at once. */
	void *volatile piece = calloc(3, piece_bytes);
	void *aligned = NULL;

	count(3, 3 * piece_bytes);
	free(piece);
	piece = realloc(NULL, piece_bytes);
	count(3, piece_bytes);
	piece = realloc(piece, 5 * piece_bytes);
	count(3, 5 * piece_bytes);
	free(piece);
	piece = aligned_alloc(64, 256);
	free(piece);
	count(3, 256);
	if (!posix_memalign(&aligned, 64, piece_bytes))
		count(3, piece_bytes);
	free(aligned);
}
#endif

DEEP void storm(void)
{
	for (; nr_storm; nr_storm--) {
		char *volatile piece = TAKE(32);

		GIVE(piece);
	}
}

/* Wait for the time of the next round. What comes late does not delay the rounds after it. */
static void pace(struct timespec *next)
{
	next->tv_nsec += pause_us % 1000000 * 1000;
	next->tv_sec += pause_us / 1000000 + next->tv_nsec / 1000000000;
	next->tv_nsec %= 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL))
		;
}

static void work(int nr)
{
	struct timespec next;
	int i, k;

	storm();
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (i = 0; i < nr; i++) {
		for (k = 0; k < 10; k++) {
			if (k < 6)
				much(i);
			else if (k < 9)
				some(i);
			else
				little(i);
			churn();
		}
#ifndef __cplusplus
		others();
#endif
		if (pause_us)
			pace(&next);
	}
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 100, i;
	char line[16], text[256];

	if (argc > 2)
		piece_bytes = (size_t)atoi(argv[2]);
	if (argc > 3)
		pause_us = atol(argv[3]);
	if (argc > 4)
		nr_storm = atol(argv[4]);
	setvbuf(stdout, text, _IOLBF, sizeof(text));
	setvbuf(stdin, NULL, _IONBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		work(nr);
		for (i = 0; i < 4; i++)
			printf("%lu %lu%c", (unsigned long)bytes[i], (unsigned long)pieces[i],
			       i < 3 ? ' ' : '\n');
	}
	return 0;
}
