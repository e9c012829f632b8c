// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/command.h"

#include <errno.h>

#include "base/log.h"

int sb_command_parse(const struct sb_command *command, struct sb_opts *opts, char **argv)
{
	const struct sb_common_opts *common = opts->fields;
	int err;

	opts->command = command->name;
	opts->rows = command->opts;
	opts->stop = &common->ask;
	err = sb_opts_parse(opts, argv);
	if (err == -EINVAL)
		return sb_fail(SB_EXIT_USAGE, 0, "%s", opts->error.s);
	if (err)
		return sb_fail(SB_EXIT_FAILED, err, "cannot keep the options of the command line");
	if (common->ask == SB_ASK_HELP)
		sb_print_command_help(command, stdout);
	else if (common->ask == SB_ASK_VERSION)
		sb_print_version();
	if (common->ask)
		return SB_EXIT_DATA;
	if (common->verbose)
		sb_log_init("stackbpf", SB_LOG_DEBUG);
	else if (common->quiet)
		sb_log_init("stackbpf", SB_LOG_ERR);
	return -1;
}

int sb_command_parse_options(const struct sb_command *command, struct sb_opts *opts, char **argv,
			     const char *instead)
{
	int status = sb_command_parse(command, opts, argv);

	if (status >= 0 || (!opts->operands.nr && !opts->tail))
		return status;
	return sb_fail(SB_EXIT_USAGE, 0,
		       "'stackbpf %s' does not take an argument '%s'; name the %s", command->name,
		       opts->operands.nr ? opts->operands.at[0] : "--", instead);
}
