/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The generated skeleton, behind the types it names but does not define. */
#ifndef SB_VIEWS_SKEL_H
#define SB_VIEWS_SKEL_H

#include "sb_abi.h"
#include "sb_abi_io.h"
/* Generated. */
#include "sampler.skel.h"

#endif
