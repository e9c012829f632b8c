// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *sb_function_kind_name(enum sb_frame_kind kind)
{
	return sb_frame_kinds[sb_function_kind(kind)].name;
}

/* Strings of a profile are interned, so that equal ones have the same address. */
struct key {
	const char *name, *module, *file;
	uint64_t kind;
};

static struct key key_of(const struct sb_frame *frame)
{
	return (struct key){ frame->name, frame->module, frame->file,
			     sb_function_kind(frame->kind) };
}

static int add_frame(struct sb_functions *functions, uint32_t id)
{
	struct key key = key_of(sb_profile_frame_at(functions->profile, id)), other;
	uint64_t hash = sb_hash(&key, sizeof(key), 0);

	sb_index_each(it, &functions->index, hash) {
		other = key_of(sb_functions_at(functions, it.id));
		if (!memcmp(&key, &other, sizeof(key))) {
			functions->of_frame[id] = it.id;
			return 0;
		}
	}
	functions->of_frame[id] = (uint32_t)functions->frames.nr;
	return sb_index_push(&functions->index, hash, &functions->frames, id);
}

int sb_functions_init(struct sb_functions *functions, const struct sb_profile *profile,
		      size_t nr_stacks)
{
	size_t i, at;
	int err = 0;

	*functions = (struct sb_functions){ .profile = profile };
	functions->of_frame =
		malloc((sb_profile_nr_frames(profile) + 1) * sizeof(*functions->of_frame));
	if (!functions->of_frame)
		return -ENOMEM;
	memset(functions->of_frame, 0xff,
	       (sb_profile_nr_frames(profile) + 1) * sizeof(*functions->of_frame));
	for (i = 0; i < nr_stacks && !err; i++) {
		const struct sb_row row = sb_profile_row_at(profile, i);

		for (at = 0; at < row.nr && !err; at++)
			if (functions->of_frame[row.frames[at]] == SB_FUNCTION_NONE)
				err = add_frame(functions, row.frames[at]);
	}
	return err;
}

void sb_functions_release(struct sb_functions *functions)
{
	free(functions->of_frame);
	sb_vec_release(&functions->frames);
	sb_index_release(&functions->index);
}

const struct sb_frame *sb_functions_at(const struct sb_functions *functions, uint32_t function)
{
	return sb_profile_frame_at(functions->profile, functions->frames.at[function]);
}

int sb_functions_number_frames(const struct sb_functions *functions, uint32_t **ret_numbers)
{
	size_t nr = sb_profile_nr_frames(functions->profile), i;
	uint32_t *numbers = calloc(nr + 1, sizeof(*numbers)), next = 0;

	if (!numbers)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		if (functions->of_frame[i] != SB_FUNCTION_NONE)
			numbers[i] = next++;
	*ret_numbers = numbers;
	return 0;
}
