/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The attributes of a sample that --by makes root frames of: process, thread, CPU, cgroup. Internal
 * to resolve. */
#ifndef SB_RESOLVE_ROOTS_H
#define SB_RESOLVE_ROOTS_H

#include "base/str.h"
#include "model/profile.h"
#include "resolve/resolve.h"

/* Get the attribute of kind @root of a sample. @text: overwritten; ret_attr->text points into it.
 * Return: 0 or -ENOMEM. */
int sb_root_attr(enum sb_attr_kind root, const struct sb_sample_key *key, struct sb_str *text,
		 struct sb_attr *ret_attr);

/* Make @text the name of a thread, of at most SB_COMM_LEN bytes, or "[no name]". Return: 0 or -ENOMEM. */
int sb_comm_text(const char *comm, struct sb_str *text);

#endif
