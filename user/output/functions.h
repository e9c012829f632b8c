/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of a profile: frames that differ by line or offset only are one function. Formats that have
 * tables of functions number them by this. Not thread-safe.
 */
#ifndef SB_OUTPUT_FUNCTIONS_H
#define SB_OUTPUT_FUNCTIONS_H

#include "base/index.h"
#include "base/vec.h"
#include "model/profile.h"

#define SB_FUNCTION_NONE UINT32_MAX

struct sb_functions {
	const struct sb_profile *profile; /* borrowed */
	uint32_t *of_frame;	 /* by frame number; SB_FUNCTION_NONE: in none of the stacks */
	SB_VEC(uint32_t) frames; /* of each function, one frame that shows it */
	struct sb_index index;
};

/*
 * Number the functions in the heaviest @nr_stacks stacks of the sealed @profile, in the order in which
 * they are met. Return: 0, -ENOMEM, -E2BIG. To be released in any case.
 */
int sb_functions_init(struct sb_functions *functions, const struct sb_profile *profile,
		      size_t nr_stacks);
void sb_functions_release(struct sb_functions *functions);

/* Return: a frame of that function: name, module, file and kind are those of all of them. */
const struct sb_frame *sb_functions_at(const struct sb_functions *functions, uint32_t function);

/*
 * Number the frames that are in the stacks, from 0 on, in the order of their numbers in the profile. The
 * caller frees *ret_numbers, which is indexed by these. Return: 0 or -ENOMEM.
 */
int sb_functions_number_frames(const struct sb_functions *functions, uint32_t **ret_numbers);

/* Return: "user", "kernel", ...; for readers, so it does not change. Inlined ones as those that are not. */
const char *sb_function_kind_name(enum sb_frame_kind kind);

#endif
