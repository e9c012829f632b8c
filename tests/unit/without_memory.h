/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Allocations of our own code that fail when a test says so. Linked with the wraps that meson.build
 * lists as allocations_wrapped; what libraries allocate does not fail.
 */
#ifndef SB_UNIT_WITHOUT_MEMORY_H
#define SB_UNIT_WITHOUT_MEMORY_H

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The allocations from number @from to number @to fail, counted while @is_on. */
static struct {
	uint64_t nr, from, to;
	bool is_on;
} allocs;

static bool is_due(void)
{
	if (!allocs.is_on)
		return false;
	allocs.nr++;
	if (allocs.nr < allocs.from || allocs.nr > allocs.to)
		return false;
	errno = ENOMEM;
	return true;
}

#define WRAP(ret, name, params, ...)                                 \
	ret __real_##name params;                                    \
	ret __wrap_##name params;                                    \
	ret __wrap_##name params                                     \
	{                                                            \
		return is_due() ? NULL : __real_##name(__VA_ARGS__); \
	}

WRAP(void *, malloc, (size_t size), size)
WRAP(void *, calloc, (size_t nr, size_t size), nr, size)
WRAP(void *, realloc, (void *old, size_t size), old, size)
WRAP(char *, strdup, (const char *s), s)
WRAP(char *, strndup, (const char *s, size_t len), s, len)
WRAP(FILE *, fopen, (const char *path, const char *mode), path, mode)
WRAP(FILE *, fdopen, (int fd, const char *mode), fd, mode)
WRAP(DIR *, opendir, (const char *path), path)

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);
int __real_vasprintf(char **ret, const char *fmt, va_list ap);
int __wrap_asprintf(char **ret, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	return is_due() ? -1 : __real_vasprintf(ret, fmt, ap);
}

int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = __wrap_vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

#endif
