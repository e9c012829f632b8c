// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who a run is while it samples. capture/privileges.c lays down; here is decided for whom. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "capture/landlock.h"
#include "capture/privileges.h"
#include "cli/command.h"
#include "cli/record.h"

/*
 * The sudo user, and one of this run alone if there is none. What debuginfod brings is kept in the home directory,
 * so that root without sudo who asks for it remains root.
 */
static struct sb_owner who_to_be(const struct sb_run *run)
{
	struct sb_owner who = sb_sudo_owner();

	if (geteuid() == 0 && who.uid == 0 && !run->opts.debuginfod)
		who = sb_privileges_own_user();
	return who;
}

int sb_run_make_writer(struct sb_run *run)
{
	sb_vec_str paths = {};
	size_t i;
	int err = 0;

	if (geteuid() != 0 || who_to_be(run).uid == 0)
		return -1;
	for (i = 0; i < run->outputs.nr && !err; i++) {
		struct sb_run_output *output = &run->outputs.at[i];

		if (sb_streq(output->path, "-") || sb_output_is_fd(output->path))
			continue;
		output->is_by_writer = true;
		output->writer_i = paths.nr;
		err = sb_vec_push(&paths, output->path);
	}
	if (!err && paths.nr)
		err = sb_writer_new((const char *const *)paths.at, paths.nr, sb_privileges_to_start,
				    &run->writer);
	sb_vec_release(&paths);
	if (!err)
		return -1;
	sb_err(err, "cannot make a process that writes files");
	return SB_EXIT_FAILED;
}

int sb_run_make_parser(struct sb_run *run)
{
	int err;

	if (!(run->opts.unwind & SB_UNWIND_CFI) && run->opts.interp == SB_INTERP_OFF)
		return -1;
	err = sb_parser_new(&sb_privileges_of_parsers, &run->parser);
	if (!err)
		return -1;
	sb_err(err, "cannot make a process that parses files");
	return SB_EXIT_FAILED;
}

int sb_run_make_readers(struct sb_run *run)
{
	static struct sb_owner who;
	int err;

	who = who_to_be(run);
	err = sb_reader_begin(&(struct sb_reader_opts){
		.confine_spawner = sb_privileges_spawner,
		.confine_reader = sb_privileges_reader,
		.arg = &who,
	});
	if (!err)
		return -1;
	sb_err(err, "cannot make a process that reads other processes");
	return SB_EXIT_FAILED;
}

/* sudo leaves the home directory of root, where the user cannot keep anything. */
static void move_home(const struct sb_owner *who)
{
	const struct passwd *passwd = getpwuid(who->uid);

	if (passwd && !setenv("HOME", passwd->pw_dir, 1))
		unsetenv("XDG_CACHE_HOME");
}

int sb_run_begin_privileges(struct sb_run *run)
{
	struct sb_owner who = who_to_be(run);

	if (run->opts.debuginfod && geteuid() == 0 && who.uid != 0)
		move_home(&who);
	sb_privileges_begin(&who);
	return -1;
}

int sb_run_settle_privileges(struct sb_run *run)
{
	struct sb_privileges_opts opts = {
		.has_network = run->opts.debuginfod,
		.has_terminal = run->sink && run->sink->has_terminal,
	};
	size_t i;
	int err;

	for (i = 0; i < run->outputs.nr; i++)
		opts.writes_files |=
			!run->outputs.at[i].is_by_writer && !sb_streq(run->outputs.at[i].path, "-");
	err = sb_privileges_settle(&opts);
	if (!err && run->parser)
		err = sb_parser_settle(run->parser);
	if (!err)
		err = sb_reader_settle();
	if (!err)
		return -1;
	sb_err(err, "cannot lay down privileges that are not needed any more");
	return SB_EXIT_FAILED;
}

void sb_run_report_privileges(const struct sb_run *run,
			      void (*row)(const char *name, const char *value))
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	uint64_t have = sb_privileges_have();
	int err = sb_str_addf(&text, "user %u", geteuid());
	size_t i;

	for (i = 0; i < sb_nr_capabilities && !err; i++)
		if (sb_capabilities[i].name && (have & (1ull << sb_capabilities[i].number)))
			err = sb_str_addf(&text, ", %s", sb_capabilities[i].name);
	if (!err)
		err = sb_str_addf(&text, "; system calls %sfiltered",
				  sb_privileges_filter() ? "" : "not ");
	if (!err && run->parser)
		err = sb_str_addf(&text, "; unwind tables by a process without any, %s",
				  sb_landlock_version() ? "which can open no file"
							: "but without Landlock");
	if (!err)
		err = sb_str_addf(&text, "; other processes are read by processes that can be "
					 "abandoned");
	if (!err && run->writer)
		err = sb_str_addf(&text, "; files by a process of its own");
	if (!err)
		row("privileges left", text.s);
}
