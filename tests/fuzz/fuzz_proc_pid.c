// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* /proc/PID/status and /proc/PID/stat, whose names are the process's: what is found in a text is
 * what stands there for one who reads it line by line. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "must.h"
#include "symbolizer/process/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUMS_MAX 8u

/* The first line "KEY:...", by the C library. */
static char *plain_line(const char *text, const char *key)
{
	char *copy = strdup(text), *rest = copy, *line, *found = NULL;

	must(copy);
	while (!found && (line = strsep(&rest, "\n")))
		if (strlen(line) > strlen(key) && !memcmp(line, key, strlen(key)) &&
		    line[strlen(key)] == ':')
			found = strdup(line + strlen(key) + 1);
	free(copy);
	return found;
}

static void check_numbers(const char *text, const char *key)
{
	uint64_t nums[NUMS_MAX + 1] = { [NUMS_MAX] = 77 };
	size_t nr = sb_status_numbers(text, key, nums, NUMS_MAX), i;
	char *line = plain_line(text, key), *p = line, *end;

	must(line || !nr);
	must(nums[NUMS_MAX] == 77);
	for (i = 0; i < nr && i < NUMS_MAX; i++) {
		p += strspn(p, " \t");
		must(*p >= '0' && *p <= '9');
		must(nums[i] == strtoull(p, &end, 10));
		p = end;
	}
	free(line);
}

static void check_status(const char *text)
{
	static const char *const keys[] = { "NStgid", "Tgid", "Uid", "voluntary_ctxt_switches",
					    "nonvoluntary_ctxt_switches" };
	struct sb_procfs_ids ids;
	uint64_t nums[2];
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		check_numbers(text, keys[i]);
	if (sb_procfs_ids_parse(text, &ids))
		return;
	must(sb_status_numbers(text, "NStgid", nums, 1) >= 1);
	must(sb_status_numbers(text, "Uid", nums, 2) >= 2);
	must(ids.uid == nums[0] && ids.euid == nums[1]);
}

/* The same process by another name, which has all that names can have. */
static void check_stat(const char *text, size_t size)
{
	static const char name[] = "7 (a) R 1 (\n) S 2 (";
	const char *end = memrchr(text, ')', size);
	struct sb_procfs_stat stat, other;
	size_t len;
	char *renamed;

	if (sb_procfs_stat_parse(text, size, &stat))
		return;
	must(end && stat.state == end[2]);
	len = sizeof(name) - 1 + size - (size_t)(end - text);
	renamed = malloc(len);
	must(renamed);
	memcpy(renamed, name, sizeof(name) - 1);
	memcpy(renamed + sizeof(name) - 1, end, size - (size_t)(end - text));
	must(!sb_procfs_stat_parse(renamed, len, &other));
	must(other.state == stat.state && other.ppid == stat.ppid &&
	     other.start_ticks == stat.start_ticks && other.stack_addr == stat.stack_addr);
	free(renamed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	check_status(text);
	free(text);
	/* This one need not end. */
	text = malloc(size ? size : 1);
	must(text);
	memcpy(text, data, size);
	check_stat(text, size);
	free(text);
	return 0;
}
