// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The header's implementation as a library: loaded by tests/programs/labels.c, and by Python. */
#define SB_LABELS_IMPLEMENTATION
#include "stackbpf-labels.h"
