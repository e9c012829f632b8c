// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "base/cleanup.h"
#include "cli/opts.h"

/* Two columns within 80, the width that every terminal has. */
#define TEXT_COLUMN 26
#define LINE_WIDTH  79

static const char *const group_titles[] = {
	[SB_OPT_TARGET] = "What to sample (targets add up; '!' before a value excludes it)",
	[SB_OPT_WINDOW] = "When and how often",
	[SB_OPT_EVENTS] = "Which events to record",
	[SB_OPT_STACKS] = "Which stacks to collect",
	[SB_OPT_SHAPE] = "How frames and root frames look",
	[SB_OPT_STORE] = "Store, time range and tags",
	[SB_OPT_ACCESS] = "Address and access",
	[SB_OPT_OUTPUT] = "Output",
	[SB_OPT_META] = "General",
};
_Static_assert(SB_ARRAY_SIZE(group_titles) == SB_OPT_GROUP_MAX, "a title for each group");

/* "-u, -U, --user", and the value's name. Return: columns written. */
static int print_names(const struct sb_opt *row, FILE *out)
{
	const char *letter = row->letters ? row->letters : "";
	int col = 0;

	col += fprintf(out, *letter ? "  " : "      ");
	for (; *letter; letter++)
		col += fprintf(out, "-%c%s", *letter, letter[1] || row->name ? ", " : "");
	if (row->name)
		col += fprintf(out, "--%s", row->name);
	if (row->metavar)
		col += fprintf(out, " %s", row->metavar);
	return col;
}

/* @col: columns written. Return: the same, behind @text. */
static int print_wrapped(const char *text, int col, FILE *out)
{
	size_t len;

	while (*text) {
		len = strcspn(text, " ");
		if (col + (int)len + 1 > LINE_WIDTH && col > TEXT_COLUMN) {
			fprintf(out, "\n%*s", TEXT_COLUMN, "");
			col = TEXT_COLUMN;
		}
		col += fprintf(out, "%s%.*s", col > TEXT_COLUMN ? " " : "", (int)len, text);
		text += len + strspn(text + len, " ");
	}
	return col;
}

static void print_row(const struct sb_opt *row, FILE *out)
{
	int col = print_names(row, out);

	if (col >= TEXT_COLUMN) {
		fputc('\n', out);
		col = 0;
	}
	col += fprintf(out, "%*s", TEXT_COLUMN - col, "");
	col = print_wrapped(row->help, col, out);
	if (row->help_values)
		print_wrapped(row->help_values(), col, out);
	fputc('\n', out);
}

void sb_opts_print_help(const struct sb_opt *rows, const char *command, FILE *out)
{
	const struct sb_opt *row;
	unsigned int group;
	bool has_title;

	for (group = 0; group < SB_OPT_GROUP_MAX; group++) {
		has_title = false;
		for (row = rows; !sb_opt_is_end(row); row++) {
			if (row->group != group || !row->help || !sb_opt_is_for(row, command))
				continue;
			if (!has_title)
				fprintf(out, "\n%s\n", group_titles[group]);
			has_title = true;
			print_row(row, out);
		}
	}
}
