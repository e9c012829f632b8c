/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of OTLP profiles: ExportProfilesServiceRequest. Not thread-safe. */
#ifndef SB_EXPORT_OTLP_H
#define SB_EXPORT_OTLP_H

#include "export/export.h"

struct sb_otlp;

int sb_otlp_new(const struct sb_export_opts *opts, struct sb_otlp **ret_otlp);
void sb_otlp_free(struct sb_otlp *otlp);

/*
 * Begin a profile of @series, from its stack number @first on; then its stacks, then the end. All of one request are
 * of the same period. Both are borrowed until sb_otlp_take(). Return: 0, -ENOMEM, -E2BIG.
 */
int sb_otlp_begin(struct sb_otlp *otlp, const struct sb_export_period *period,
		  const struct sb_export_series *series, size_t first);
int sb_otlp_add_stack(struct sb_otlp *otlp, uint32_t i);
int sb_otlp_end(struct sb_otlp *otlp);
/* Return: about how long the request is by now. */
size_t sb_otlp_nr_bytes(const struct sb_otlp *otlp);
/* The request replaces *out; the next one is begun. Return: 0 or -ENOMEM. */
int sb_otlp_take(struct sb_otlp *otlp, struct sb_str *out);

/* Of a reply, ExportProfilesServiceResponse: how many profiles were left out, and why. Return: 0 or -ENOMEM. */
int sb_otlp_rejected(const struct sb_str *reply, uint64_t *ret_nr, struct sb_str *message);

#endif
