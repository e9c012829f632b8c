// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The same by operator new and delete. */
#include "leaks.c"
