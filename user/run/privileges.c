// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which user a run is while it samples. workers/privileges.c drops privileges; this file decides in
 * favour of whom. */
#include "workers/privileges.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "run/run_priv.h"

/*
 * The sudo user, and one of this run alone if there is none. What debuginfod brings is kept in the
 * home directory, so that root without sudo who asks for it remains root.
 */
struct sb_owner sb_run_identity(const struct sb_run_config *config)
{
	struct sb_owner who = sb_sudo_owner();

	if (geteuid() == 0 && who.uid == 0 && !config->debuginfod)
		who = sb_privileges_own_user();
	return who;
}

enum sb_run_status sb_run_make_parser(struct sb_run *run)
{
	struct sb_parser_opts opts = sb_privileges_of_parsers;
	int err;

	opts.is_short_lived = sb_run_is_short(run);
	if (!(run->config->unwind & SB_UNWIND_CFI) && run->config->interp == SB_INTERP_OFF)
		return SB_RUN_OK;
	err = sb_parser_new(&opts, &run->parser);
	return err ? sb_run_fail(run, err, "cannot start the helper process that parses files")
		   : SB_RUN_OK;
}

enum sb_run_status sb_run_make_readers(struct sb_run *run)
{
	static struct sb_owner who;
	int err;

	who = sb_run_identity(run->config);
	err = sb_reader_begin(&(struct sb_reader_opts){
		.confine_spawner = sb_privileges_spawner,
		.confine_reader = sb_privileges_reader,
		.arg = &who,
	});
	return err ? sb_run_fail(run, err,
				 "cannot start the helper process that reads other "
				 "processes")
		   : SB_RUN_OK;
}

/* sudo leaves the home directory of root, where the user cannot keep anything. */
static void move_home(const struct sb_owner *who)
{
	const struct passwd *passwd = getpwuid(who->uid);

	if (passwd && !setenv("HOME", passwd->pw_dir, 1))
		unsetenv("XDG_CACHE_HOME");
}

enum sb_run_status sb_run_begin_privileges(struct sb_run *run)
{
	struct sb_owner who = sb_run_identity(run->config);

	if (run->config->debuginfod && geteuid() == 0 && who.uid != 0)
		move_home(&who);
	sb_privileges_begin(&who);
	return SB_RUN_OK;
}

enum sb_run_status sb_run_settle_privileges(struct sb_run *run)
{
	const struct sb_privileges_opts opts = {
		.has_network = run->config->debuginfod,
		.has_terminal = run->sink->has_terminal,
		.writes_files = run->sink->writes_files,
	};
	int err = sb_privileges_settle(&opts);

	if (!err && run->parser)
		err = sb_parser_settle(run->parser);
	if (!err)
		err = sb_reader_settle();
	return err ? sb_run_fail(run, err, "cannot drop privileges after startup") : SB_RUN_OK;
}
