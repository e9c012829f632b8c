/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encodes profiles for OpenTelemetry as an ExportProfilesServiceRequest, whose bytes are also those
 * of ProfilesData. A request holds several profiles and one set of tables for all of them. Used by
 * the file format and by the exporter. Not thread-safe.
 *
 * Order: sb_otlp_new(); for each profile sb_otlp_begin(), its stacks and tags in any order,
 * sb_otlp_end(); when the request is large enough, and at the end, sb_otlp_take() between profiles;
 * sb_otlp_free(). Functions that return int return 0, -ENOMEM, or -E2BIG for more than 2^31 bytes
 * of strings; after an error the encoder can only be freed. Pointers are not NULL unless it says
 * so.
 */
#ifndef SB_OUTPUT_OTLP_H
#define SB_OUTPUT_OTLP_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "model/profile.h"

#define SB_OTLP_ID_BYTES 16u

/* How the key of a resource's attribute is written: as text (INLINE), as an index of the table of
 * strings (REF), or both; receivers differ, see otlp.c. */
enum sb_otlp_attrs { SB_OTLP_BOTH, SB_OTLP_INLINE, SB_OTLP_REF };

struct sb_otlp;

/* Make an encoder. @attrs: what the receiver understands. Return: 0 and *ret_otlp, owned by the
 * caller; -ENOMEM, and it is untouched. */
int sb_otlp_new(enum sb_otlp_attrs attrs, struct sb_otlp **ret_otlp);
/* Free an encoder, with what was not taken; NULL is allowed. */
void sb_otlp_free(struct sb_otlp *otlp);

/**
 * sb_otlp_begin() - begin a profile of a request
 * @profile: has the frames and the metadata; sealed, the same for all profiles of a request, and
 *	borrowed until sb_otlp_take()
 * @start_ns: nanoseconds since the epoch
 * @dur_ns: its duration in nanoseconds
 * @id: written as profile_id, by which a receiver recognizes a profile that it gets twice:
 *	SB_OTLP_ID_BYTES, not all 0, copied; NULL: no ID is written
 */
int sb_otlp_begin(struct sb_otlp *otlp, const struct sb_profile *profile, uint64_t start_ns,
		  uint64_t dur_ns, const uint8_t *id);
/* Add a stack. @ids: IDs of @nr frames of the profile, root first, not kept; @weight: in the unit
 * of its metadata; times are written in ns, and at most INT64_MAX of any unit. */
int sb_otlp_add_stack(struct sb_otlp *otlp, const uint32_t *ids, size_t nr, uint64_t weight);
/*
 * Add an attribute of the resource to which the samples of the profile that was begun belong. Tags
 * get the names of the semantic conventions: "service" becomes "service.name". Both strings are
 * copied.
 */
int sb_otlp_tag(struct sb_otlp *otlp, const char *tag, const char *value);
/* End the profile: it becomes a part of the request. */
int sb_otlp_end(struct sb_otlp *otlp);
/* Return: the approximate length of the request so far, with the profile that was begun, in bytes.
 */
size_t sb_otlp_nr_bytes(const struct sb_otlp *otlp);
/* Replace the contents of @out by the finished request, and begin the next one. @out: the caller's;
 * borrows nothing; after an error it may hold a part. */
int sb_otlp_take(struct sb_otlp *otlp, struct sb_str *out);

#endif
