// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dwarf_lookup [-a ALT] [-q] FILE <addresses: one line each per address, "name|linkage|file:line" per frame, innermost
 * first, and an empty line behind the last. What the agreement test talks to.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "sb_dwarf.h"

#define FRAMES_MAX 256

static const char *or_none(const char *s)
{
	return s ? s : "??";
}

static int look_up(struct sb_dwarf *dwarf, const char *text)
{
	struct sb_dwarf_frame frames[FRAMES_MAX];
	uint64_t addr;
	size_t i, nr;

	if (sb_parse_hex(text, &addr) ||
	    sb_dwarf_lookup(dwarf, addr, true, frames, FRAMES_MAX, &nr))
		return -1;
	for (i = 0; i < nr; i++)
		printf("%s|%s|%s:%u\n", or_none(frames[i].linkage_name), or_none(frames[i].name),
		       or_none(frames[i].file), frames[i].line);
	putchar('\n');
	return 0;
}

int main(int argc, char **argv)
{
	struct sb_dwarf *dwarf;
	struct sb_dwarf_stats stats;
	int fd, alt_fd = -1, err;
	char line[64];

	if (argc < 2)
		return 2;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (argc > 2)
		alt_fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	err = sb_dwarf_new(fd, alt_fd, &dwarf);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	while (!err && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		err = look_up(dwarf, line);
	}
	sb_dwarf_stats(dwarf, &stats);
	fprintf(stderr, "units %lu read %lu bad %lu, dead ranges %lu, cut %lu, bytes %zu\n",
		stats.nr_units, stats.nr_units_read, stats.nr_units_bad, stats.nr_ranges_dead,
		stats.nr_cut, sb_dwarf_bytes(dwarf));
	sb_dwarf_free(dwarf);
	return err ? 1 : 0;
}
