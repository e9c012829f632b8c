/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the parts of `stackbpf doctor`: cmd_doctor.c is the command and prints,
 * doctor_kernel.c, doctor_process.c and doctor_runtime.c check. They print to doctor->out; the
 * caller checks it for errors with ferror(). Texts are not kept; @fmt is as for printf().
 * Without memory a text is shorter or missing. For each check: a title, then for each finding
 * sb_doctor_say(), and perhaps sb_doctor_more() and sb_doctor_advise(). Pointers are not NULL
 * unless it says so. One thread. */
#ifndef SB_CLI_DOCTOR_H
#define SB_CLI_DOCTOR_H

#include <stdint.h>
#include <stdio.h>

enum sb_verdict {
	SB_VERDICT_OK,
	SB_VERDICT_LESS, /* it works, with limitations */
	SB_VERDICT_NO,	 /* nothing works until this is fixed */
};

struct sb_parser;
struct sb_trial;

/* The caller sets `out` and `parser`, which are borrowed, and zeroes nr_no. */
struct sb_doctor {
	FILE *out;
	struct sb_parser
		*parser;    /* parses files of the process; NULL: they are parsed in this one */
	unsigned int nr_no; /* findings with SB_VERDICT_NO so far */
};

/* Print a heading. */
void sb_doctor_title(struct sb_doctor *doctor, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Print a finding: what was checked, and the result. Counts SB_VERDICT_NO in nr_no. */
void sb_doctor_say(struct sb_doctor *doctor, enum sb_verdict verdict, const char *what,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Print more about the last finding, below it. */
void sb_doctor_more(struct sb_doctor *doctor, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Print what to do about the last finding. */
void sb_doctor_advise(struct sb_doctor *doctor, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Check the kernel. */
void sb_doctor_kernel(struct sb_doctor *doctor);
/* Check our privileges, and what confines us: filters, Landlock, the process that parses, and the
 * namespace of PIDs. */
void sb_doctor_privileges(struct sb_doctor *doctor);
/* Check a process, with trial samples, and print what was found. Return: 0, also if the trial
 * failed, which was logged; -ESRCH when there is no such process; -ETIMEDOUT when reading it hangs;
 * -ENOMEM; or another negative errno of reading it, and a part may have been printed. Call
 * sb_reader_begin() before. */
int sb_doctor_process(struct sb_doctor *doctor, uint32_t tgid);

/*
 * Check the interpreters in a process.
 * @trial: samples of it
 * @files: paths that it maps, to recognise by name interpreters that are not supported; used during
 *	the call only; may be NULL if @nr_files is 0
 *
 * Call sb_reader_begin() before. Return: 0, also if reading the process hangs, which is printed; or
 * a negative errno of reading it, or -ENOMEM, and a part may have been printed.
 */
int sb_doctor_runtimes(struct sb_doctor *doctor, uint32_t tgid, const struct sb_trial *trial,
		       const char *const *files, size_t nr_files);

#endif
