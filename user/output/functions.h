/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers the functions of a profile. Frames that differ only by line or offset are one function.
 * Used by formats that have a table of functions: sb_functions_init(), read it,
 * sb_functions_release(). IDs and numbers that are given are not checked. Pointers are not NULL.
 * Not thread-safe.
 */
#ifndef SB_OUTPUT_FUNCTIONS_H
#define SB_OUTPUT_FUNCTIONS_H

#include "base/index.h"
#include "base/vec.h"
#include "model/profile.h"

#define SB_FUNCTION_NONE UINT32_MAX

struct sb_functions {
	const struct sb_profile *profile; /* borrowed */
	uint32_t *of_frame;		  /* by frame ID; SB_FUNCTION_NONE: in none of the stacks */
	SB_VEC(uint32_t) frames;	  /* by function: one of its frames */
	struct sb_index index;
};

/*
 * Number the functions in the heaviest @nr_stacks stacks of a sealed profile, in the order in which
 * they are met. @functions: overwritten; released by the caller, also after an error. @profile:
 * borrowed until then, and not modified. @nr_stacks: at most those that the profile has. Return: 0;
 * -ENOMEM, and it can only be released.
 */
int sb_functions_init(struct sb_functions *functions, const struct sb_profile *profile,
		      size_t nr_stacks);
/* Free the numbers, not the profile. It can be used again only after sb_functions_init(). */
void sb_functions_release(struct sb_functions *functions);

/* Return: a frame of the function with this number, borrowed from the profile; all of its frames
 * have the same name, module, file and sb_function_kind(). */
const struct sb_frame *sb_functions_at(const struct sb_functions *functions, uint32_t function);

/*
 * Number the frames that occur in the stacks, from 0 on, in the order of their IDs. *@ret_numbers
 * is indexed by all IDs of the profile, is 0 also for frames that do not occur, and is freed by the
 * caller with free(). Return: 0; -ENOMEM, and it is untouched.
 */
int sb_functions_number_frames(const struct sb_functions *functions, uint32_t **ret_numbers);

/*
 * Return: the name of a kind below SB_FRAME_KIND_MAX, "user", "kernel", ..., a static string. Kinds
 * of inlined frames have the name of their function's kind.
 */
const char *sb_function_kind_name(enum sb_frame_kind kind);

#endif
