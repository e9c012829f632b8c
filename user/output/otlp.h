/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encodes profiles for OpenTelemetry as an ExportProfilesServiceRequest, whose bytes are also those
 * of ProfilesData. A request holds several profiles and one set of tables for all of them. Used by
 * the file format and by the exporter. Not thread-safe.
 */
#ifndef SB_OUTPUT_OTLP_H
#define SB_OUTPUT_OTLP_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "model/profile.h"

#define SB_OTLP_ID_BYTES 16u

/* Which fields have the key of a resource's attribute; receivers differ, see otlp.c. */
enum sb_otlp_attrs { SB_OTLP_BOTH, SB_OTLP_INLINE, SB_OTLP_REF };

struct sb_otlp;

/* Make an encoder, owned by the caller. Return: 0 or -ENOMEM. */
int sb_otlp_new(enum sb_otlp_attrs attrs, struct sb_otlp **ret_otlp);
void sb_otlp_free(struct sb_otlp *otlp);

/**
 * sb_otlp_begin() - begin a profile of a request; then add its stacks and tags, and end it
 * @profile: sealed, the same for all profiles of a request; borrowed until sb_otlp_take()
 * @id: SB_OTLP_ID_BYTES, not all 0; or NULL
 *
 * Return: 0; -ENOMEM; -E2BIG. That is so for all functions up to sb_otlp_end().
 */
int sb_otlp_begin(struct sb_otlp *otlp, const struct sb_profile *profile, uint64_t start_ns,
		  uint64_t dur_ns, const uint8_t *id);
/* Add a stack. @ids: frames of the profile, root first. */
int sb_otlp_add_stack(struct sb_otlp *otlp, const uint32_t *ids, size_t nr, uint64_t weight);
/*
 * Add an attribute of the resource to which the samples belong. Tags get the names of the semantic
 * conventions: "service" becomes "service.name".
 */
int sb_otlp_tag(struct sb_otlp *otlp, const char *tag, const char *value);
int sb_otlp_end(struct sb_otlp *otlp);
/* Return: the approximate length of the request so far. */
size_t sb_otlp_nr_bytes(const struct sb_otlp *otlp);
/* Replace *@out by the finished request, and begin the next one. Return: 0 or -ENOMEM. */
int sb_otlp_take(struct sb_otlp *otlp, struct sb_str *out);

#endif
