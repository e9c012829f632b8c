// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *program_name = "stackbpf";
static enum sb_log_level level_max = SB_LOG_INFO;

void sb_log_init(const char *program, enum sb_log_level max)
{
	program_name = program;
	level_max = max;
}

enum sb_log_level sb_log_max(void)
{
	return level_max;
}

static const char *level_prefix(enum sb_log_level level)
{
	switch (level) {
	case SB_LOG_WARN:
		return "warning: ";
	case SB_LOG_DEBUG:
		return "debug: ";
	default:
		return "";
	}
}

static void vlog(enum sb_log_level level, int err, const char *fmt, va_list ap)
{
	char line[2048];
	size_t len = 0;
	int n;

	if (level > level_max)
		return;
	n = snprintf(line, sizeof(line), "%s: %s", program_name, level_prefix(level));
	if (n > 0)
		len = (size_t)n;
	n = vsnprintf(line + len, sizeof(line) - len, fmt, ap);
	if (n > 0)
		len += (size_t)n;
	if (err && len < sizeof(line)) {
		n = snprintf(line + len, sizeof(line) - len, ": %s", strerror(-err));
		if (n > 0)
			len += (size_t)n;
	}
	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	line[len++] = '\n';
	/* One write, so that messages of two threads do not mix; there is nobody to tell if it fails. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void sb_log(enum sb_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(level, 0, fmt, ap);
	va_end(ap);
}

int sb_err(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(SB_LOG_ERR, err, fmt, ap);
	va_end(ap);
	return err;
}
