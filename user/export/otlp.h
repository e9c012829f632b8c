/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a receiver of OTLP says. */
#ifndef SB_EXPORT_OTLP_H
#define SB_EXPORT_OTLP_H

#include <stdint.h>

#include "base/str.h"

/* Of a reply, ExportProfilesServiceResponse: how many profiles were left out, and why. Return: 0 or -ENOMEM. */
int sb_otlp_rejected(const struct sb_str *reply, uint64_t *ret_nr, struct sb_str *message);

#endif
