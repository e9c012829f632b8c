/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Detaches BPF programs without waiting for the kernel where it waits long: see detach.c. The
 * session's thread. No pointer is NULL or kept. */
#ifndef SB_CAPTURE_DETACH_H
#define SB_CAPTURE_DETACH_H

#include "views/view.h"

/* Prepare for sb_links_release(), while CAP_SYS_ADMIN is there. Return: what the caller passes to
 * that: a descriptor (of a BPF file system of our own), owned by the caller, who closes it after
 * sb_links_release(); -1: the kernel does not allow it, so that sb_links_release() waits for each
 * link, which takes some 40 ms. */
int sb_links_prepare(void);

/* Destroy all links and empty @links, whose memory stays the caller's, as does @root, a descriptor
 * from sb_links_prepare() that is to be closed afterwards and not used again, or -1. Cannot fail.
 * With a root, programs may run until it is closed and a little longer: they must know that the run
 * is over, and what they count then is not read. */
void sb_links_release(sb_vec_link *links, int root);

#endif
