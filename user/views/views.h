/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of table.c; for the views themselves only. */
#ifndef SB_VIEWS_VIEWS_H
#define SB_VIEWS_VIEWS_H

#include "views/view.h"

extern const struct sb_view sb_view_oncpu;

#endif
