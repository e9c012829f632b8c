// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The C library, its lazy binding, the vDSO, signal handlers; callbacks from within. */
#include <locale.h>
#include <regex.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "walk_subject.h"

static volatile int nr_signals;
static jmp_buf jump;

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(void)
{
	static char *words[] = { "pear", "fig",	  "apple", "plum", "kiwi", "lime", "date",
				 "nut",	 "melon", "pea",   "corn", "leek", "kale", "chard" };
	size_t nr = sizeof(words) / sizeof(words[0]), i;
	char *key = "kiwi";
	void *root = NULL;

	qsort(words, nr, sizeof(words[0]), compare);
	if (!bsearch(&key, words, nr, sizeof(words[0]), compare))
		abort();
	for (i = 0; i < nr; i++)
		tsearch(&words[i], &root, compare);
}

static void print(void)
{
	char buf[512];
	wchar_t wide[64];
	double d = strtod("3.14159265358979323846264338327950288e-7", NULL);

	snprintf(buf, sizeof(buf), "%d %s %.17g %p %-20lx|%c %5.2f", 42, "text", d, (void *)buf,
		 123456789ul, 'x', 2.5);
	swprintf(wide, sizeof(wide) / sizeof(wide[0]), L"%ls %d %g", L"wide", 7, d);
	sscanf("12 abc 3.5e7 0x1f", "%*d %15s %lf %*x", buf, &d);
}

static void match(void)
{
	regmatch_t found[4];
	regex_t regex;

	if (regcomp(&regex, "^([a-z]+)[0-9]*-(x|yy?)+$", REG_EXTENDED))
		abort();
	regexec(&regex, "hello42-xyyxy", 4, found, 0);
	regexec(&regex, "hello42-xyyxz", 4, found, 0);
	regfree(&regex);
}

static void allocate(void)
{
	static void *blocks[64];
	size_t i;

	for (i = 0; i < 64; i++)
		blocks[i] = malloc(i * i * 40 + 1);
	for (i = 0; i < 64; i += 2)
		free(blocks[i]);
	for (i = 1; i < 64; i += 2)
		blocks[i] = realloc(blocks[i], 3000);
	for (i = 1; i < 64; i += 2)
		free(blocks[i]);
	free(malloc(8 << 20));
}

static void on_signal(int nr)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "signal %d", nr);
	nr_signals++;
}

static void on_signal_jump(int nr)
{
	longjmp(jump, nr);
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &action, NULL);
	action.sa_handler = on_signal_jump;
	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR1);
	kill(getpid(), SIGUSR1);
	if (!setjmp(jump))
		raise(SIGUSR2);
}

static void times(void)
{
	struct timespec ts;
	struct timeval tv;
	struct tm tm;
	char buf[64];
	time_t now = 1700000000;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	clock_gettime(CLOCK_REALTIME, &ts);
	gettimeofday(&tv, NULL);
	gmtime_r(&now, &tm);
	strftime(buf, sizeof(buf), "%Y-%m-%d %H:%M:%S %A", &tm);
	mktime(&tm);
}

/* Down a chain of frames of all sizes, one of them of a size known at run time only. */
static __attribute__((noinline)) int descend(int depth, volatile char *above)
{
	volatile char frame[1000];

	frame[depth] = above[0];
	if (!depth)
		return (int)strlen("bottom");
	return descend(depth - 1, frame) + frame[depth];
}

static __attribute__((noinline)) int dynamic(size_t size)
{
	volatile char *frame = __builtin_alloca(size);

	frame[0] = frame[size - 1] = 1;
	return descend(3, frame);
}

int main(void)
{
	char zero = 0;

	setlocale(LC_ALL, "C");
	subject_begin();
	sort();
	print();
	match();
	allocate();
	signals();
	times();
	descend(10, &zero);
	dynamic((size_t)nr_signals * 100);
	sort();
	print();
	subject_end();
	return 0;
}
