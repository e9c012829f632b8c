/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Half a second of trial samples of one process, for `doctor -p`: zero a struct sb_trial, set its
 * mappings, whose list it then owns, sb_trial_run(), read the numbers, and sb_trial_release(), also
 * after an error. One thread. Pointers are not NULL unless it says so. */
#ifndef SB_CLI_DOCTOR_TRIAL_H
#define SB_CLI_DOCTOR_TRIAL_H

#include <stdint.h>

#include "base/vec.h"
#include "bpf/abi/sb_abi_interp.h"

/* How the callers of frames in one mapping were found; numbers of samples. */
struct sb_trial_mapping {
	uint64_t start, end;
	uint64_t nr_by_table, nr_by_fp, nr_cut;
};

struct sb_parser;

struct sb_trial {
	SB_VEC(struct sb_trial_mapping) mappings; /* set by the caller before the trial */
	struct sb_trial_mapping elsewhere;	  /* frames in none of them */
	uint64_t nr_samples;			  /* with a user stack */
	uint64_t nr_complete;			  /* with a complete user stack */
	uint64_t nr_status[SB_STACK_STATUS_MAX];
	uint64_t nr_runtime[SB_RUNTIME_MAX]; /* with frames of this interpreter */
};

/*
 * Sample the process @tgid for half a second, and add to the numbers in @trial. @parser: the
 * process that parses its files, used during the call only; NULL: this process does. Return: 0,
 * also when the process did not run; -ESRCH when there is no such process; -EPERM, -EACCES without
 * privilege; -EOPNOTSUPP when the kernel cannot do it; -ENOMEM; or another negative errno of a
 * system call: some samples may have been counted, and if there is a reason beyond the errno, it
 * was logged.
 */
int sb_trial_run(struct sb_trial *trial, uint32_t tgid, struct sb_parser *parser);
/* Free the list of mappings, also after an error or without a trial. */
void sb_trial_release(struct sb_trial *trial);

#endif
