/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cache of objects: what samples are about beyond their stacks (sb_sample_key.object), such as
 * a file or a waker, the thread that ended a wait. The BPF side ships each object once, so it is
 * kept for as long as a sample may reference it. A batch is what one drain of the BPF side gives
 * (capture/batch.h): in each one, clear cache->unwanted, sb_object_cache_add() for the objects in
 * it, then sb_object_cache_find() for its samples, and sb_object_cache_evict() at its end. The BPF
 * side is then told what is in cache->unwanted (sb_resolver_evicted()). Texts (@text) are
 * initialized and released by the caller. Internal to resolve; not thread-safe. No pointer is NULL
 * unless it says so.
 */
#ifndef SB_RESOLVE_OBJECTS_H
#define SB_RESOLVE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"
#include "bpf/abi/sb_abi_io.h"
#include "capture/batch.h"
#include "resolve/cache.h"
#include "resolve/resolve.h"

struct sb_object {
	uint64_t id;
	uint32_t kind, nr_bytes;    /* enum sb_object_kind; of the data */
	void *data;		    /* owned: struct sb_object_file etc., by kind */
	bool is_unwanted;	    /* --path does not match */
	struct sb_frame_ids frames; /* owned; they show the object */
	uint64_t batch;		    /* the last batch that referenced it */
};

/* Initialise the first three members, and the rest with zero. */
struct sb_object_cache {
	size_t nr_max;	       /* number of objects from which eviction begins */
	const char *path_glob; /* borrowed: files that do not match are unwanted; NULL: none */
	const uint64_t *batch; /* borrowed: the number of the current batch, which is not 0 */
	SB_VEC(struct sb_object) at;
	struct sb_index index;
	size_t nr_kept;		   /* number of objects after the last eviction */
	SB_VEC(uint64_t) unwanted; /* IDs of unwanted objects; whoever begins a batch clears it */
};
/* Free all objects and buffers. The cache cannot be used again, unless it is initialised anew. */
void sb_object_cache_release(struct sb_object_cache *cache);

/* Add a copy of an object; if it is an unwanted file, its ID is appended to cache->unwanted. An
 * object with a known ID is only found, and stays as it was; its ID is not appended again. Return:
 * 0; -EBADMSG when the kind is not known or its data are too short, and nothing is added; -ENOMEM,
 * and then sb_object_cache_find() does not find this object; the cache can be used further. */
int sb_object_cache_add(struct sb_object_cache *cache, const struct sb_batch_object *from);
/* Find an object, and note that the current batch references it. Return: the object, valid until
 * the next one is added or objects are evicted; NULL: it was never shipped, or is evicted. */
struct sb_object *sb_object_cache_find(struct sb_object_cache *cache, uint64_t id);
/* At the end of a batch: if there are many objects, evict the wakers whose process has ended, and
 * which neither this batch nor the one before has referenced. The ID of a waker contains its
 * process, so no later sample references it, and the BPF side need not be told. Pointers from
 * sb_object_cache_find() are not valid afterwards, also to objects that stay. @ended: the batch's
 * answers on which processes have ended, which more are added to; it can be used further in any
 * case. Return: 0; -ENOMEM, and then the cache can only be released. */
int sb_object_cache_evict(struct sb_object_cache *cache, struct sb_ended *ended);

/* Overwrite @text with the frame of an object of kind SB_OBJECT_VALUE, "[NAME=4096]", or of one
 * that has names for its numbers, "[syscall=read]"; the kind of the object is not checked. @name:
 * of the value; not NULL. Return: 0; -ENOMEM: @text is not to be used. */
int sb_object_value_text(const struct sb_object *object, const char *name, struct sb_str *text);

/* Append the name of an object of kind SB_OBJECT_FILE, which is not checked, to @text, as @how says
 * (resolve.h); that is not SB_FILE_TEXT_NONE. Return: 0; -ENOMEM, and a part may have been
 * appended. */
int sb_object_file_text(const struct sb_object *object, enum sb_file_text how, struct sb_str *text);

#endif
