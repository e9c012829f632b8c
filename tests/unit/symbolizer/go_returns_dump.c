// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prints of each function of a Go program: its address, and where it begins and returns, as offsets
 * in the file; or why it cannot be probed. For go_returns.py. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/goreturns.h"

static void print_function(const struct sb_elf *elf, const struct sb_gopcln *table, uint64_t i)
{
	struct sb_go_returns found = {};
	struct sb_gopcln_func func;
	const char *why;
	size_t k;
	int err;

	if (sb_gopcln_func(table, i, &func))
		return;
	err = sb_go_returns_find(elf, table, func.lo, &found, &why);
	printf("%" PRIx64 "\t%s\t", func.lo, func.name);
	if (err)
		printf("%s", why ? why : strerror(-err));
	else
		printf("%" PRIx64, found.begin);
	for (k = 0; k < found.returns.nr; k++)
		printf(" %" PRIx64, found.returns.at[k]);
	printf("\n");
	sb_vec_release(&found.returns);
}

int main(int argc, char **argv)
{
	struct sb_gopcln table = {};
	struct sb_elf *elf;
	uint64_t i;
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || sb_elf_new_fd(fd, &elf) || sb_gopcln_load(elf, &table))
		return 2;
	for (i = 0; i < table.nr_funcs; i++)
		print_function(elf, &table, i);
	sb_gopcln_release(&table);
	sb_elf_free(elf);
	return 0;
}
