/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What samples are about beyond their stacks (sb_sample_key.object), kept for as long as a sample may name it:
 * the BPF side ships each once. Internal to resolve.
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
#include "capture/batch.h"
#include "resolve/resolve.h"
#include "sb_abi_io.h"

struct sb_object {
	uint64_t id;
	uint32_t kind, nr_bytes;
	const void *data;
	bool is_unwanted; /* by --path */
	/* The frames it stands for, once they are known; in sb_objects.frames. */
	bool is_resolved;
	size_t first_frame, nr_frames;
	uint64_t batch; /* that it was last named in */
};

struct sb_objects {
	SB_VEC(struct sb_object) at;
	struct sb_index index;
	struct sb_arena data;
	SB_VEC(uint32_t) frames;
	SB_VEC(uint64_t) unwanted; /* ids, in the order they came */
};
void sb_objects_release(struct sb_objects *objects);

/*
 * Keep a copy, named in @batch; one that is known already is passed over. @path_glob: or NULL.
 * Return: 0, -EBADMSG: less data than its kind has; -ENOMEM.
 */
int sb_objects_keep(struct sb_objects *objects, const struct sb_batch_object *from,
		    const char *path_glob, uint64_t batch);
/* Copy the frames that @object stands for. Return: 0 or -ENOMEM. */
int sb_objects_set_frames(struct sb_objects *objects, struct sb_object *object,
			  const uint32_t *frames, size_t nr);
/* Forget all but those that @is_of_use, told nobody: no sample names them any more. Return: 0 or -ENOMEM, and
 * then all are there. */
int sb_objects_shed(struct sb_objects *objects,
		    bool (*is_of_use)(void *arg, const struct sb_object *object), void *arg);
/* Return: the object, valid until the next one is kept; NULL: it never came. */
struct sb_object *sb_objects_find(struct sb_objects *objects, uint64_t id);

/* Append what is said of a file. Return: 0 or -ENOMEM. */
int sb_object_file_text(const struct sb_object *object, enum sb_file_text how, struct sb_str *text);

#endif
