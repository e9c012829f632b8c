/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the parts of `stackbpf doctor`. */
#ifndef SB_CLI_DOCTOR_H
#define SB_CLI_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum sb_verdict {
	SB_VERDICT_OK,
	SB_VERDICT_LESS, /* it works, with less */
	SB_VERDICT_NO,	 /* nothing works until this is mended */
};

struct sb_parser;

struct sb_doctor {
	FILE *out;
	struct sb_parser *parser; /* parses files of the process that is looked at; NULL: we do */
	unsigned int nr_no;	  /* findings that are SB_VERDICT_NO */
};

void sb_doctor_title(struct sb_doctor *doctor, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* One finding: what was looked at, and what was found. */
void sb_doctor_say(struct sb_doctor *doctor, enum sb_verdict verdict, const char *what,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* More of the finding before, below it. */
void sb_doctor_more(struct sb_doctor *doctor, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* What to do about the finding before. */
void sb_doctor_advise(struct sb_doctor *doctor, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void sb_doctor_kernel(struct sb_doctor *doctor);
void sb_doctor_privileges(struct sb_doctor *doctor);
/* Return: 0, -ESRCH when there is no such process, or another negative errno. */
int sb_doctor_process(struct sb_doctor *doctor, uint32_t tgid);

/* The interpreters in it. @trial: samples of it; @files: that it maps, by which those are known that we
 * know nothing else of. Return: 0 or a negative errno. */
struct sb_trial;
int sb_doctor_runtimes(struct sb_doctor *doctor, uint32_t tgid, const struct sb_trial *trial,
		       const char *const *files, size_t nr_files);

#endif
