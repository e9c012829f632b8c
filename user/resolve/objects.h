/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of samples: what they are about beyond their stacks (sb_sample_key.object), such as a
 * file or a waker. The BPF side ships each one once, so it is kept while a sample may reference it.
 * Internal to resolve.
 */
#ifndef SB_RESOLVE_OBJECTS_H
#define SB_RESOLVE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"
#include "bpf/abi/sb_abi_io.h"
#include "capture/batch.h"
#include "resolve/resolve.h"

struct sb_object {
	uint64_t id;
	uint32_t kind, nr_bytes;
	const void *data;
	bool is_unwanted; /* --path does not match */
	/* Its frames, once they were made; in sb_objects.frames. */
	bool is_resolved;
	size_t first_frame, nr_frames;
	uint64_t batch; /* the last batch that referenced it */
};

struct sb_objects {
	SB_VEC(struct sb_object) at;
	struct sb_index index;
	struct sb_arena data;
	SB_VEC(uint32_t) frames;
	SB_VEC(uint64_t) unwanted; /* IDs of unwanted objects, in the order they came */
};
void sb_objects_release(struct sb_objects *objects);

/*
 * Keep a copy of an object; if its ID is known, only @batch is noted. @path_glob: of --path, or
 * NULL.
 * Return: 0; -EBADMSG when the kind is not known or its data are too short; -ENOMEM.
 */
int sb_objects_keep(struct sb_objects *objects, const struct sb_batch_object *from,
		    const char *path_glob, uint64_t batch);
/* Remember the frames of an object; they are copied. Return: 0 or -ENOMEM. */
int sb_objects_set_frames(struct sb_objects *objects, struct sb_object *object,
			  const uint32_t *frames, size_t nr);
/* Drop all objects for which @is_of_use returns false. The BPF side is not told, so no sample may
 * reference them any more. Return: 0; -ENOMEM, and nothing was dropped. */
int sb_objects_shed(struct sb_objects *objects,
		    bool (*is_of_use)(void *arg, const struct sb_object *object), void *arg);
/* Return: the object, valid until the next one is kept; NULL: it was never shipped. */
struct sb_object *sb_objects_find(struct sb_objects *objects, uint64_t id);

/* Append the name of a file object. Return: 0 or -ENOMEM. */
int sb_object_file_text(const struct sb_object *object, enum sb_file_text how, struct sb_str *text);

#endif
