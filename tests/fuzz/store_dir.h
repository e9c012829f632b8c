/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A store of one day, of a fuzzer's own: where it is, when that day begins, and its end. */
#ifndef FUZZ_STORE_DIR_H
#define FUZZ_STORE_DIR_H

#include <stddef.h>
#include <unistd.h>

#include "must.h"
#include "store/level.h"

#define T0 2208988800ll /* 2040-01-01 */

static char dir[] = "/tmp/sb-fuzz-store-XXXXXX"; /* for mkdtemp() */

/* For atexit(). */
static void forget_dir(void)
{
	static const char *const files[] = { "10s/20400101.sb", "10min/20400101.sb", "1h/204001.sb",
					     "1d/204001.sb",	"stackbpf-store",    "LOCK" };
	size_t i;

	must(!chdir(dir));
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)!unlink(files[i]);
	for (i = 0; i < SB_STORE_LEVELS; i++)
		(void)!rmdir(sb_levels[i].name);
	(void)!rmdir(dir);
}

#endif
