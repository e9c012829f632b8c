/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attributes of a sample that --by makes root frames of: process, thread, CPU, cgroup. Internal
 * to resolve. Thread: any, one for each @text, which the caller initializes and releases, and which
 * is overwritten. No pointer is NULL.
 */
#ifndef SB_RESOLVE_ROOTS_H
#define SB_RESOLVE_ROOTS_H

#include "base/str.h"
#include "model/profile.h"
#include "resolve/resolve.h"

/*
 * Get one attribute of a sample. @root: which one, from SB_ATTR_COMM to SB_ATTR_CONTAINER; the
 * cgroup and the container are looked up in the cgroup file system. ret_attr->text points into
 * @text, and is valid until that changes. For a cgroup whose path is not known the text is "[cgroup
 * ID]"; outside of containers it is "[host]".
 * Return: 0; -ENOMEM, and then *ret_attr is not to be used.
 */
int sb_root_attr(enum sb_attr_kind root, const struct sb_sample_key *key, struct sb_str *text,
		 struct sb_attr *ret_attr);

/*
 * Set @text to @comm, a thread's name of at most SB_COMM_LEN bytes that need not end in NUL, or to
 * "[no name]" if that is empty. Return: 0; -ENOMEM: @text is not to be used.
 */
int sb_comm_text(const char *comm, struct sb_str *text);

#endif
