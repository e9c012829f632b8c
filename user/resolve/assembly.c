// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/assembly.h"

#include <string.h>

void sb_assembly_release(struct assembly *assembly)
{
	sb_vec_release(&assembly->frames);
	sb_str_release(&assembly->text);
	sb_vec_release(&assembly->part.reqs);
	sb_vec_release(&assembly->merge.natives);
	sb_vec_release(&assembly->merge.segments);
	sb_vec_release(&assembly->merge.merged);
	sb_vec_release(&assembly->merge.units);
	sb_interp_name_release(&assembly->merge.name);
}

int sb_assembly_push_frame(struct assembly *assembly, const struct sb_frame *frame)
{
	uint32_t id;
	int err = sb_profile_frame(assembly->profile, frame, &id);

	return err ? err : sb_vec_push(&assembly->frames, id);
}

int sb_assembly_push(struct assembly *assembly, const char *name, enum sb_frame_kind kind)
{
	return sb_assembly_push_frame(assembly, &(struct sb_frame){ .name = name, .kind = kind });
}

int sb_assembly_push_attr(struct assembly *assembly, const struct sb_attr *attr)
{
	uint32_t id;
	int err = sb_profile_attr(assembly->profile, attr, &id);

	return err ? err : sb_vec_push(&assembly->frames, id);
}

int sb_assembly_push_mark(struct assembly *assembly, enum sb_attr_kind kind, const char *text)
{
	return sb_assembly_push_attr(assembly, &(struct sb_attr){ .kind = kind, .text = text });
}

int sb_assembly_push_ids(struct assembly *assembly, const uint32_t *ids, size_t nr)
{
	int err = sb_vec_reserve(&assembly->frames, assembly->frames.nr + nr);

	if (err || !nr)
		return err;
	memcpy(assembly->frames.at + assembly->frames.nr, ids, nr * sizeof(*ids));
	assembly->frames.nr += nr;
	return 0;
}

void sb_assembly_move_last(struct assembly *assembly, size_t to)
{
	uint32_t *at = assembly->frames.at + to;
	const size_t nr = assembly->frames.nr - 1 - to;
	const uint32_t last = at[nr];

	memmove(at + 1, at, nr * sizeof(*at));
	*at = last;
}

void sb_reverse_ids(uint32_t *ids, size_t nr)
{
	size_t i;

	for (i = 0; i < nr / 2; i++) {
		uint32_t swapped = ids[i];

		ids[i] = ids[nr - 1 - i];
		ids[nr - 1 - i] = swapped;
	}
}

const struct sb_frame *sb_assembly_frame_at(const struct assembly *assembly, size_t i)
{
	return sb_profile_frame_at(assembly->profile, assembly->frames.at[i]);
}
