/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Root frames of a sample: process, thread, CPU, cgroup. Internal to resolve. */
#ifndef SB_RESOLVE_ROOTS_H
#define SB_RESOLVE_ROOTS_H

#include "base/str.h"
#include "resolve/resolve.h"

/* Append the text of one root frame. Return: 0 or -ENOMEM. */
int sb_root_text(enum sb_root root, const struct sb_sample_key *key, struct sb_str *text);

#endif
