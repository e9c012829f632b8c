/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Taking programs off what they are attached to, without waiting for it where that takes long. */
#ifndef SB_CAPTURE_DETACH_H
#define SB_CAPTURE_DETACH_H

#include "views/view.h"

/* Make what sb_links_release() needs, while there is the privilege (CAP_SYS_ADMIN). Return: a descriptor,
 * or -1: the kernel does not let us, and each link will be waited for. */
int sb_links_prepare(void);

/* Destroy all links, with @root from sb_links_prepare(), or -1. Their programs may run a little longer: they must know that it is over, and what
 * they count then is not read. */
void sb_links_release(sb_vec_link *links, int root);

#endif
