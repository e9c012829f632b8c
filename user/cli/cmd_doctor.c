// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/command.h"
const struct sb_opt sb_doctor_rows[] = { SB_COMMON_ROWS, SB_OPT_END };
int sb_cmd_doctor(const struct sb_command *command, char **argv)
{
	return 1;
}
