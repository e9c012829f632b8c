// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/str.h"
#include "cli/command.h"

/* What libbpf says is for those who asked for everything; our own sentence is for all. */
static int __attribute__((format(printf, 2, 0)))
print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	sb_vlog(SB_LOG_DEBUG, fmt, ap);
	return 0;
}

/*
 * A file of ours that becomes number 1 or 2, because that was closed, would be written over. What
 * takes the place fails as a closed one does, so that a result is not lost without a word.
 */
static int fill_std_fds(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return -EBADF;
	return 0;
}

static int run(char **argv)
{
	struct sb_command command;
	const char *name = argv[0] ? argv[1] : NULL;

	if (!name) {
		sb_print_usage(stderr);
		return SB_EXIT_USAGE;
	}
	if (sb_streq(name, "-V") || sb_streq(name, "--version")) {
		sb_print_version();
		return SB_EXIT_DATA;
	}
	if (sb_streq(name, "-h") || sb_streq(name, "--help")) {
		sb_print_overview(stdout);
		return SB_EXIT_DATA;
	}
	if (name[0] == '-')
		return sb_fail(SB_EXIT_USAGE, 0,
			       "'%s' must follow a command, such as 'stackbpf oncpu %s'", name,
			       name);
	if (!sb_command_find(name, &command))
		return sb_command_unknown(name);
	return command.run(&command, argv + 2);
}

int main(int argc, char **argv)
{
	int status;

	if (fill_std_fds())
		return SB_EXIT_FAILED;
	sb_log_init("stackbpf", SB_LOG_INFO);
	sb_signals_survive_limit();
	libbpf_set_print(print_libbpf);
	status = run(argv);
	/* Text for people (help, doctor) is checked here; results were checked where written. */
	if (fflush(stdout) && status == SB_EXIT_DATA && errno != EPIPE) {
		sb_err(-errno, "cannot write to standard output");
		status = SB_EXIT_FAILED;
	}
	return status;
}
