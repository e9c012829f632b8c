// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Leaks memory beside memory of several ages. "ages LEAKS NOW SOON LATER SECONDS": in each second
 * LEAKS pieces are kept forever, of ten six by much(), three by some() and one by little(); NOW
 * pieces are given back at once, SOON ones after 2 ms, and LATER ones after SECONDS. A piece has
 * 200 bytes. It ends with its standard input, and prints how many pieces it has kept. On a busy
 * machine it handles fewer pieces in a second. It leaves out the rest, because while it caught up,
 * other pieces would get older than they should.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEEP   __attribute__((noinline))
#define PIECE  200
#define PIECES (1u << 20) /* of one age, at most */
#define TURN_S 0.01	  /* what is not done within this time is left out */

struct queue {
	struct {
		char *piece;
		double until;
	} at[PIECES];
	unsigned int first, end;
	double seconds;
};

static struct queue soon, later;
static char *volatile kept;
static volatile unsigned long nr_kept;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

DEEP char *take(void)
{
	char *piece = malloc(PIECE);

	memset(piece, 1, PIECE);
	return piece;
}

DEEP void keep(void)
{
	char *piece = take();

	*(char **)(void *)piece = kept;
	kept = piece;
	nr_kept++;
}

DEEP void much(void)
{
	keep();
	nr_kept += 0;
}

DEEP void some(void)
{
	keep();
	nr_kept += 0;
}

DEEP void little(void)
{
	keep();
	nr_kept += 0;
}

DEEP void churn(void)
{
	char *volatile piece = take();

	free(piece);
}

DEEP void churn_in(struct queue *queue, double time)
{
	unsigned int i = queue->end++ % PIECES;

	free(queue->at[i].piece);
	queue->at[i].piece = take();
	queue->at[i].until = time + queue->seconds;
}

static void give_back(struct queue *queue, double time)
{
	while (queue->first < queue->end && queue->at[queue->first % PIECES].until <= time) {
		free(queue->at[queue->first % PIECES].piece);
		queue->at[queue->first++ % PIECES].piece = NULL;
	}
}

static void leak(void)
{
	static int turn;

	turn = (turn + 1) % 10;
	if (turn < 6)
		much();
	else if (turn < 9)
		some();
	else
		little();
}

int main(int argc, char **argv)
{
	struct pollfd input = { .events = POLLIN };
	double rate[4], done[4] = {}, began = now(), last = began, time;
	int i;

	if (argc < 6)
		return 1;
	for (i = 0; i < 4; i++)
		rate[i] = atof(argv[1 + i]);
	soon.seconds = 0.002;
	later.seconds = atof(argv[5]);
	puts("ready");
	fflush(stdout);
	while (!poll(&input, 1, 1)) {
		time = now();
		began += time - last > TURN_S ? time - last - TURN_S : 0;
		last = time;
		for (; done[0] < rate[0] * (time - began); done[0]++)
			leak();
		for (; done[1] < rate[1] * (time - began); done[1]++)
			churn();
		for (; done[2] < rate[2] * (time - began); done[2]++)
			churn_in(&soon, time);
		for (; done[3] < rate[3] * (time - began); done[3]++)
			churn_in(&later, time);
		give_back(&soon, time);
		give_back(&later, time);
	}
	printf("%lu\n", nr_kept);
	return 0;
}
