// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/reason.h"

#include <stdarg.h>
#include <stdio.h>

int sb_reason_set(struct sb_reason *reason, int err, const char *fmt, ...)
{
	va_list ap;

	if (!reason || sb_reason_is_set(reason))
		return err;
	reason->err = err;
	va_start(ap, fmt);
	vsnprintf(reason->text, sizeof(reason->text), fmt, ap);
	va_end(ap);
	return err;
}
