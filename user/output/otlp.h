/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Profiles as OpenTelemetry has them: ExportProfilesServiceRequest, whose bytes are those of ProfilesData. A request
 * has several profiles and one set of tables for them. Not thread-safe.
 */
#ifndef SB_OUTPUT_OTLP_H
#define SB_OUTPUT_OTLP_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "model/profile.h"

#define SB_OTLP_ID_BYTES 16u

/* Which fields say the key of a resource's attribute; see otlp.c. */
enum sb_otlp_attrs { SB_OTLP_BOTH, SB_OTLP_INLINE, SB_OTLP_REF };

struct sb_otlp;

int sb_otlp_new(enum sb_otlp_attrs attrs, struct sb_otlp **ret_otlp);
void sb_otlp_free(struct sb_otlp *otlp);

/*
 * Begin a profile; then its stacks, its tags, its end. All of one request are made of stacks of the same @profile,
 * which is sealed, and borrowed until sb_otlp_take(). @id: SB_OTLP_ID_BYTES, not all 0, or NULL.
 * Return: 0, -ENOMEM, -E2BIG.
 */
int sb_otlp_begin(struct sb_otlp *otlp, const struct sb_profile *profile, uint64_t start_ns,
		  uint64_t dur_ns, const uint8_t *id);
/* @ids: frames of the profile, root first. */
int sb_otlp_add_stack(struct sb_otlp *otlp, const uint32_t *ids, size_t nr, uint64_t weight);
/* An attribute of the resource that these are the samples of. Tags have the names of the semantic conventions:
 * "service" is "service.name". */
int sb_otlp_tag(struct sb_otlp *otlp, const char *tag, const char *value);
int sb_otlp_end(struct sb_otlp *otlp);
/* Return: about how long the request is by now. */
size_t sb_otlp_nr_bytes(const struct sb_otlp *otlp);
/* The request replaces *out; the next one is begun. Return: 0 or -ENOMEM. */
int sb_otlp_take(struct sb_otlp *otlp, struct sb_str *out);

#endif
