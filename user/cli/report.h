/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What report.c, which logs the closing report, and report_stats.c, which logs all figures, need of
 * each other. Internal to report*.c. Nothing is NULL. Thread: the main one, after sb_run_go().
 */
#ifndef SB_CLI_REPORT_H
#define SB_CLI_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "run/run.h"

/* Return: @part of @whole in percent; 0 if @whole is 0. */
static inline double sb_report_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Call @row with a number as text. */
static inline void sb_report_nr(void (*row)(const char *name, const char *value), const char *name,
				uint64_t nr)
{
	char value[32];

	snprintf(value, sizeof(value), "%llu", (unsigned long long)nr);
	row(name, value);
}

/* In report_stats.c: write the lowest rate or longest period to which sampling was lowered into
 * @text: "24.75 Hz", "one sample per 4000 us", "one of 4 allocations". It is truncated to @nr_bytes
 * with its NUL. */
void sb_report_lowest(const struct sb_run *run, const struct sb_run_figures *figures, char *text,
		      size_t nr_bytes);
/* In report_stats.c: log all figures of a view. The time of the first sample in @figures is changed
 * to one since the program was started. */
void sb_report_stats(const struct sb_run *run, struct sb_run_figures *figures);

#endif
