// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dwarf_lookup FILE [ALT] <addresses: one line in hexadecimal for each. For each address a line
 * "LINKAGE<tab>NAME<tab>FILE:LINE" per frame, innermost first, and an empty line behind the last.
 * What could not be read is said on stderr. What tests of the DWARF reader from outside talk to.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "symbolizer/dwarf/sb_dwarf.h"

#define FRAMES_MAX 256

static const char *or_none(const char *s)
{
	return s ? s : "??";
}

static int look_up(struct sb_dwarf *dwarf, const char *text)
{
	struct sb_dwarf_frame frames[FRAMES_MAX];
	size_t i, nr = 0;
	uint64_t addr;
	int err;

	err = sb_parse_hex(text, &addr);
	if (!err)
		err = sb_dwarf_lookup(dwarf, addr, frames, FRAMES_MAX, &nr);
	for (i = 0; i < nr; i++)
		printf("%s\t%s\t%s:%u\n", or_none(frames[i].linkage_name), or_none(frames[i].name),
		       or_none(frames[i].file), frames[i].line);
	putchar('\n');
	return err;
}

int main(int argc, char **argv)
{
	sb_cleanup(sb_closep) int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	sb_cleanup(sb_closep) int alt_fd = argc > 2 ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1;
	struct sb_dwarf_losses losses;
	struct sb_dwarf *dwarf;
	char line[64];
	int err;

	if (fd < 0 || (argc > 2 && alt_fd < 0)) {
		fprintf(stderr, "usage: dwarf_lookup FILE [ALT] <ADDRESSES\n");
		return 2;
	}
	err = sb_dwarf_new(fd, alt_fd, true, NULL, &dwarf);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	while (!err && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		err = look_up(dwarf, line);
	}
	sb_dwarf_losses(dwarf, &losses);
	if (losses.nr_units || losses.nr_splits)
		fprintf(stderr, "%" PRIu64 " units damaged, %" PRIu64 " .dwo files missing\n",
			losses.nr_units, losses.nr_splits);
	sb_dwarf_free(dwarf);
	return err ? 1 : 0;
}
