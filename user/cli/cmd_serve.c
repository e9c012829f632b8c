// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "capture/privileges.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/store_opts.h"
#include "serve/serve.h"

#define TOKEN_FILE_MAX 4096

struct serve_opts {
	struct sb_common_opts common; /* first */
	struct sb_store_args args;    /* the store alone */
	const char *listen;
	const char *token_file;
	sb_vec_str hosts;
};

/* clang-format off */
const struct sb_opt sb_serve_rows[] = {
	SB_STORE_DIR_ROW(struct serve_opts, args),
	{ .name = "listen", .letters = "l", .metavar = "ADDRESS:PORT", .type = SB_OPT_STRING,
	  .group = SB_OPT_TARGET, .offset = offsetof(struct serve_opts, listen), .suggest = SB_SERVE_LISTEN,
	  .help = "where (default " SB_SERVE_LISTEN "; port 0: one that is free). Any other address than "
		  "127.0.0.1 and [::1] needs --token-file" },
	{ .name = "token-file", .metavar = "FILE", .type = SB_OPT_STRING, .group = SB_OPT_TARGET,
	  .offset = offsetof(struct serve_opts, token_file), .complete = sb_complete_file,
	  .help = "who asks must know what is in it: 16 characters or more" },
	{ .name = "host", .metavar = "NAME", .type = SB_OPT_STRINGS, .group = SB_OPT_TARGET,
	  .offset = offsetof(struct serve_opts, hosts), .complete = sb_complete_host,
	  .help = "a name by which browsers reach this machine, besides its host name and numbers" },
	SB_COMMON_ROWS,
	SB_OPT_END
};
/* clang-format on */

/* The first word of a file that nobody else can read. Return: -1 to go on, or an exit status. */
static int read_token(const char *path, char **ret_token)
{
	sb_cleanup(sb_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	sb_cleanup(sb_freep) char *text = NULL;
	struct stat st;
	size_t len;
	int err = fd < 0 || fstat(fd, &st) ? -errno : 0;

	if (!err && st.st_mode & (S_IRWXG | S_IRWXO)) {
		sb_err(0, "--token-file '%s': others may read it: chmod 600 it first", path);
		return SB_EXIT_USAGE;
	}
	if (!err)
		err = sb_read_fd(fd, TOKEN_FILE_MAX, &text, &len);
	if (err) {
		sb_err(err, "cannot read --token-file '%s'", path);
		return SB_EXIT_FAILED;
	}
	text[strcspn(text, " \t\r\n")] = '\0';
	if (sb_serve_check_token(text)) {
		sb_err(0,
		       "--token-file '%s': a token is %u to %u letters, digits or -._~; make one with "
		       "'openssl rand -hex 32'",
		       path, SB_SERVE_TOKEN_MIN, SB_SERVE_TOKEN_MAX);
		return SB_EXIT_USAGE;
	}
	*ret_token = sb_take(text);
	return -1;
}

static int check_listen(const struct serve_opts *fields)
{
	int ret = sb_serve_is_loopback(fields->listen);

	if (ret < 0) {
		sb_err(0,
		       "--listen '%s': this is no address and port, such as " SB_SERVE_LISTEN
		       " or [::1]:4040",
		       fields->listen);
		return SB_EXIT_USAGE;
	}
	if (!ret && !fields->token_file) {
		sb_err(0,
		       "--listen '%s': others can reach this address, so a --token-file is needed",
		       fields->listen);
		return SB_EXIT_USAGE;
	}
	return -1;
}

/* Whom to be as root: who may read the store. */
static struct sb_owner owner_of(const char *path)
{
	struct sb_owner owner = { .uid = geteuid(), .gid = getegid() };
	struct stat st;

	if (!stat(path, &st))
		owner = (struct sb_owner){ .uid = st.st_uid, .gid = st.st_gid };
	return owner;
}

static struct sb_owner owner;

static int confine_front(void)
{
	return sb_privileges_front(&owner);
}

static int run(const struct serve_opts *fields, struct sb_store *store, const char *token)
{
	struct sb_serve_opts opts = {
		.listen = fields->listen,
		.token = token,
		.hosts = fields->hosts.at,
		.nr_hosts = fields->hosts.nr,
		.store_path = fields->args.dir,
		.store = store,
		.confine_front = confine_front,
		.confine_worker = sb_privileges_answerer,
	};
	struct sb_serve *serve;
	int err = sb_serve_new(&opts, &serve);

	if (err) {
		sb_err(err, "cannot listen on '%s'", fields->listen);
		return SB_EXIT_FAILED;
	}
	owner = owner_of(fields->args.dir);
	sb_info("'%s' is shown at %s", fields->args.dir, sb_serve_url(serve));
	err = sb_serve_run(serve);
	if (err)
		sb_err(err, "cannot serve '%s'", fields->args.dir);
	sb_serve_free(serve);
	return err ? SB_EXIT_FAILED : SB_EXIT_DATA;
}

static int serve(const struct serve_opts *fields)
{
	sb_cleanup(sb_freep) char *token = NULL;
	struct sb_store *store;
	int status = check_listen(fields);

	if (status < 0 && fields->token_file)
		status = read_token(fields->token_file, &token);
	if (status < 0)
		status = sb_store_args_open(&fields->args, &store);
	if (status >= 0)
		return status;
	status = run(fields, store, token);
	sb_store_close(store);
	return status;
}

int sb_cmd_serve(const struct sb_command *command, char **argv)
{
	struct serve_opts fields = { .args.dir = SB_STORE_DIR_DEFAULT, .listen = SB_SERVE_LISTEN };
	struct sb_opts opts = { .fields = &fields };
	int status =
		sb_command_parse_options(command, &opts, argv, "The store is named with --store");

	if (status < 0)
		status = serve(&fields);
	sb_opts_release(&opts);
	sb_vec_release(&fields.hosts);
	return status;
}
