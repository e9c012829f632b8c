// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The option table as text, for options.py: "COMMAND OPTION value|flag". */
#include <stdio.h>

#include "cli/command.h"

static void print_row(const char *command, const struct sb_opt *row)
{
	const char *kind = row->metavar ? "value" : "flag", *letter;

	for (letter = row->letters ? row->letters : ""; *letter; letter++)
		printf("%s -%c %s\n", command, *letter, kind);
	if (row->name)
		printf("%s --%s %s\n", command, row->name, kind);
}

int main(void)
{
	struct sb_command command;
	const struct sb_opt *row;
	size_t i;

	for (i = 0; sb_command_at(i, &command); i++)
		for (row = command.opts; !sb_opt_is_end(row); row++)
			if (sb_opt_is_for(row, command.name))
				print_row(command.name, row);
	return 0;
}
