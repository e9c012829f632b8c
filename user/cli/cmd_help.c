// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>
#include <elfutils/version.h>

#include "base/version.h"
#include "cli/command.h"
#include "interp/core/interp.h"
#include "output/output.h"
#include "workers/privileges.h"

const struct sb_opt sb_help_rows[] = { SB_COMMON_ROWS, SB_OPT_END };

void sb_print_usage(FILE *out)
{
	fputs("usage: stackbpf COMMAND [options]\n"
	      "\n"
	      "  sudo stackbpf oncpu -t 5 -o cpu.svg     CPU time of the machine, as flame "
	      "graph\n"
	      "  sudo stackbpf oncpu -p 1302 -t 5        CPU time of a process, as folded "
	      "stacks\n"
	      "  sudo stackbpf offcpu -p 1302 -t 5       where the process waits, and how "
	      "long\n"
	      "  sudo stackbpf io -t 5 -o io.svg         which code reads and writes which "
	      "files\n"
	      "  sudo stackbpf doctor                    what works on this machine\n"
	      "\n"
	      "'stackbpf help' lists all commands.\n",
	      out);
}

void sb_print_overview(FILE *out)
{
	struct sb_command command;
	size_t i;

	fputs("usage: stackbpf COMMAND [options] [-- COMMAND [ARGUMENT...]]\n"
	      "\n"
	      "stackbpf samples the stacks of running processes.\n"
	      "\n",
	      out);
	for (i = 0; sb_command_at(i, &command); i++)
		fprintf(out, "  %-10s %s\n", command.name, command.summary);
	fputs("\n"
	      "'stackbpf help COMMAND' and the man page stackbpf-COMMAND(8) say more.\n",
	      out);
}

void sb_print_command_help(const struct sb_command *command, FILE *out)
{
	fprintf(out, "usage: stackbpf %s %s\n\n%c%s.\n", command->name, command->synopsis,
		command->summary[0] - 'a' + 'A', command->summary + 1);
	if (command->notes)
		fprintf(out, "%s", command->notes);
	sb_opts_print_help(command->opts, command->name, out);
}

/* What was compiled in: of the kernel's features, which are another thing, doctor tells. */
void sb_print_version(void)
{
	const char *filter = sb_privileges_filter();
	struct sb_command command;
	size_t i;

	sb_version_print("stackbpf");
	printf("%s%s, libbpf %u.%u, elfutils 0.%d, %s%s\ncommands:", SB_ARCH,
	       SB_IS_STATIC ? ", static" : "", libbpf_major_version(), libbpf_minor_version(),
	       _ELFUTILS_VERSION, filter ? "libseccomp " : "no system call filter",
	       filter ? filter : "");
	for (i = 0; sb_command_at(i, &command); i++)
		printf(" %s", command.name);
	printf("\ninterpreters:");
	for (i = 0; sb_interp_runtime_name(i); i++)
		printf(" %s", sb_interp_runtime_name(i));
	printf("\noutputs:");
	for (i = 0; sb_output_at(i); i++)
		printf(" %s", sb_output_at(i)->name);
	putchar('\n');
}

int sb_cmd_help(const struct sb_command *command, char **argv)
{
	struct sb_common_opts fields = {};
	struct sb_opts opts = { .fields = &fields };
	struct sb_command about;
	int status = sb_command_parse(command, &opts, argv);

	if (status < 0) {
		status = SB_EXIT_DATA;
		if (!opts.operands.nr)
			sb_print_overview(stdout);
		else if (sb_command_find(opts.operands.at[0], &about))
			sb_print_command_help(&about, stdout);
		else
			status = sb_command_unknown(opts.operands.at[0]);
	}
	sb_opts_release(&opts);
	return status;
}
