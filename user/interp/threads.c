// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a libc keeps thread-specific data. */
#include <errno.h>
#include <string.h>

#include "interp/image.h"
#include "interp/step.h"

/* struct pthread of glibc 2.4 to 2.42, x86-64: nptl/descr.h. pthread_getspecific() of all of them
 * has these numbers in its code; from 2.34 on libc.so exports them as _thread_db_pthread_specific. */
static const struct sb_interp_tsd glibc = { .first_block = 0x310, .blocks = 0x510 };
/* struct pthread.tsd of musl 1.1 to 1.2, x86-64: src/internal/pthread_impl.h. */
static const struct sb_interp_tsd musl = { .is_musl = 1, .blocks = 0x80 };

static bool is_musl(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	return !strncmp(base, "ld-musl-", 8) || !strncmp(base, "libc.musl-", 10);
}

int sb_threads_tsd(const struct sb_process_maps *maps, struct sb_interp_tsd *ret_tsd)
{
	size_t i;

	*ret_tsd = glibc;
	for (i = 0; i < maps->nr; i++) {
		if (is_musl(maps->at[i].path)) {
			*ret_tsd = musl;
			return 0;
		}
		if (strstr(maps->at[i].path, "/libc.so.6") || strstr(maps->at[i].path, "/libc-2."))
			return 0;
	}
	return -ENOENT;
}
