// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackbpf run: samples a command with one view, and writes a flame graph to a file with a
 * generated name. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/record.h"

#define OPENER		"xdg-open"
#define COMMAND_LEN_MAX 64 /* of its name in that of the picture */
#define SAME_NAME_MAX	100

/* What every shell takes as one word, and no program for an option. */
static int add_word(struct sb_str *to, const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "._+-";
	size_t i;
	int err = 0;

	for (i = 0; i < COMMAND_LEN_MAX && name[i] && !err; i++) {
		bool is_good = strchr(good, name[i]) && (i || (name[i] != '-' && name[i] != '.'));

		err = sb_str_addc(to, is_good ? name[i] : '_');
	}
	return err;
}

/* COMMAND-YYYYmmdd-HHMMSS.svg, and what tells it from one that is there. */
static int make_name(const char *command, struct sb_str *name)
{
	time_t now = time(NULL);
	char when[32];
	struct tm tm;
	size_t stem;
	int err, i;

	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "-%Y%m%d-%H%M%S", &tm);
	err = add_word(name, sb_base_name(command));
	if (!err)
		err = sb_str_add(name, when);
	stem = name->len;
	if (!err)
		err = sb_str_add(name, ".svg");
	for (i = 2; !err && sb_can_access(name->s, F_OK); i++) {
		if (i > SAME_NAME_MAX)
			return -EEXIST;
		name->len = stem;
		err = sb_str_addf(name, "-%d.svg", i);
	}
	return err;
}

/* sudo has taken away most of what says where the user's screen is. */
static void find_screen(const struct sb_owner *who)
{
	const struct passwd *passwd = getpwuid(who->uid);
	char path[64];

	if (passwd)
		setenv("HOME", passwd->pw_dir, 1);
	snprintf(path, sizeof(path), "/run/user/%u", who->uid);
	if (getenv("XDG_RUNTIME_DIR") || !sb_can_access(path, F_OK))
		return;
	setenv("XDG_RUNTIME_DIR", path, 1);
	snprintf(path, sizeof(path), "/run/user/%u/wayland-0", who->uid);
	if (sb_can_access(path, F_OK))
		setenv("WAYLAND_DISPLAY", "wayland-0", 0);
	snprintf(path, sizeof(path), "unix:path=/run/user/%u/bus", who->uid);
	setenv("DBUS_SESSION_BUS_ADDRESS", path, 0);
}

/* With the groups of @who, as a login has them: those of root would go on into the browser. */
static int become(const struct sb_owner *who)
{
	const struct passwd *passwd = getpwuid(who->uid);

	if (passwd ? initgroups(passwd->pw_name, who->gid) : setgroups(1, &who->gid))
		return -errno;
	if (setresgid(who->gid, who->gid, who->gid) || setresuid(who->uid, who->uid, who->uid))
		return -errno;
	return 0;
}

/* In a process of its own. Waits for a byte that says that the picture is there; none comes if it
 * is not. */
static void show(int fd, const char *path)
{
	struct sb_owner who = sb_sudo_owner();
	char byte;

	/* Ctrl-C is for the command, and what is shown outlives the terminal. */
	(void)setsid();
	if (read(fd, &byte, 1) != 1)
		_exit(SB_EXIT_DATA);
	if (geteuid() == 0 && who.uid != 0) {
		if (become(&who))
			_exit(SB_EXIT_FAILED);
		find_screen(&who);
	}
	if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
		sb_info("--open: the file is written, but not shown, because neither $DISPLAY nor "
			"$WAYLAND_DISPLAY is set");
	else if (execlp(OPENER, OPENER, path, (char *)NULL))
		sb_info("--open: the file is written, but not shown, because '" OPENER
			"' cannot be run: %s",
			strerror(errno));
	_exit(SB_EXIT_FAILED);
}

/* Made first: later we may start nothing. Return: 0 and what to write a byte to, or a negative
 * errno. */
static int make_opener(const char *path, int *ret_fd)
{
	int fds[2], err;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	err = pid < 0 ? -errno : 0;
	if (!pid) {
		close(fds[1]);
		show(fds[0], path);
	}
	close(fds[0]);
	if (err)
		close(fds[1]);
	else
		*ret_fd = fds[1];
	return err;
}

static int prepare(struct sb_record_opts *opts, struct sb_str *name, int *ret_opener)
{
	int err = 0;

	if (!opts->run.command)
		return sb_fail(SB_EXIT_USAGE, 0,
			       "run: the command is missing; put it after '--': stackbpf run -- "
			       "make -j4");
	opts->run.targets.follow_children = true;
	if (!opts->output_paths.nr) {
		err = make_name(opts->run.command[0], name);
		if (!err)
			err = sb_vec_push(&opts->output_paths, name->s);
	}
	if (!err && opts->open)
		err = make_opener(opts->output_paths.at[0], ret_opener);
	if (!err)
		return -1;
	return sb_fail(SB_EXIT_FAILED, err, "cannot prepare the flame graph");
}

static void tell(const sb_vec_str *paths)
{
	char whole[PATH_MAX];
	size_t i;

	for (i = 0; i < paths->nr; i++)
		if (!sb_streq(paths->at[i], "-") && realpath(paths->at[i], whole))
			sb_info("wrote '%s'; open it in a browser: file://%s", paths->at[i], whole);
}

int sb_cmd_run(const struct sb_command *command, char **argv)
{
	sb_cleanup(sb_str_release) struct sb_str name = {};
	sb_cleanup(sb_closep) int opener = -1;
	struct sb_record record;
	int status;

	sb_record_init(&record);
	status = sb_record_parse(&record.opts, command, argv);
	if (status < 0)
		status = prepare(&record.opts, &name, &opener);
	if (status < 0)
		status = sb_record_find_events(&record.opts);
	if (status < 0)
		status = sb_record_go(&record, NULL);
	if (record.result.outputs.written == SB_OUTPUTS_ALL) {
		tell(&record.opts.output_paths);
		if (opener >= 0)
			(void)!write(opener, "", 1);
	}
	sb_record_release(&record);
	return status;
}
