/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Half a second of trial samples of one process, for `doctor -p`. */
#ifndef SB_CLI_DOCTOR_TRIAL_H
#define SB_CLI_DOCTOR_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "sb_abi_interp.h"

/* How the callers of the code in one mapping were found, in samples. */
struct sb_trial_mapping {
	uint64_t start, end;
	uint64_t nr_by_table, nr_by_fp, nr_cut;
};

struct sb_parser;

struct sb_trial {
	SB_VEC(struct sb_trial_mapping) mappings; /* by the caller: what to count by */
	struct sb_trial_mapping elsewhere;
	uint64_t nr_samples; /* that have a user stack */
	uint64_t nr_complete;
	uint64_t nr_status[SB_STACK_STATUS_MAX];
	uint64_t nr_runtime[SB_RUNTIME_MAX]; /* with frames of this interpreter */
};

/*
 * Sample @tgid and count into @trial. @parser: borrowed, may be NULL. Return: 0, also when nothing ran; a negative errno after one
 * sentence about why nothing can be sampled.
 */
int sb_trial_run(struct sb_trial *trial, uint32_t tgid, struct sb_parser *parser);
void sb_trial_release(struct sb_trial *trial);

#endif
