/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Taking programs off what they are attached to, without waiting for it where that takes long. */
#ifndef SB_CAPTURE_DETACH_H
#define SB_CAPTURE_DETACH_H

#include "views/view.h"

/* Destroy all links. Their programs may run a little longer: they must know that it is over, and what
 * they count then is not read. */
void sb_links_release(sb_vec_link *links);

#endif
