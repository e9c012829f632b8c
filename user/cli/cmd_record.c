// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/record_opts.h"

static int parse(const struct sb_command *command, struct sb_record_opts *fields, char **argv)
{
	struct sb_opts opts = { .fields = fields };
	int status = sb_command_parse(command, &opts, argv), err;

	if (status < 0) {
		err = sb_record_opts_finish(fields, &opts);
		if (err) {
			sb_err(err == -EINVAL ? 0 : err, "%s",
			       err == -EINVAL ? opts.error.s : "cannot read the options");
			status = err == -EINVAL ? SB_EXIT_USAGE : SB_EXIT_FAILED;
		}
	}
	sb_opts_release(&opts);
	return status;
}

int sb_cmd_record(const struct sb_command *command, char **argv)
{
	struct sb_record_opts fields = {};
	int status = parse(command, &fields, argv);

	sb_record_opts_release(&fields);
	return status;
}
