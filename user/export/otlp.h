/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parses replies of OTLP receivers. Called by the OTLP destination and its fuzzer. Thread: any.
 * Pointers are not NULL. */
#ifndef SB_EXPORT_OTLP_H
#define SB_EXPORT_OTLP_H

#include <stdint.h>

#include "base/str.h"

/*
 * Parse an ExportProfilesServiceResponse: *@ret_nr, 0 for an empty reply, profiles were rejected;
 * @message, which the caller has initialized and releases, is replaced by the reason, without
 * control characters, if one is given, and else untouched. Bytes that are not valid end the reply.
 * Nothing is kept. Return: 0; -ENOMEM, and @message is only to be released.
 */
int sb_otlp_rejected(const struct sb_str *reply, uint64_t *ret_nr, struct sb_str *message);

#endif
