// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/fsuser.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/serve_token.h"
#include "cli/store_opts.h"
#include "serve/serve.h"
#include "workers/privileges.h"

struct serve_opts {
	struct sb_common_opts common; /* first */
	struct sb_store_args args;    /* the store alone */
	const char *listen;
	const char *token_file;
	bool has_no_token;
	bool shows_url; /* and no more */
	sb_vec_str hosts;
};

/* clang-format off */
const struct sb_opt sb_serve_rows[] = {
	SB_STORE_DIR_ROW(struct serve_opts, args),
	{ .name = "listen", .letters = "l", .metavar = "ADDRESS:PORT|unix:PATH", .type = SB_OPT_STRING,
	  .group = SB_OPT_ACCESS, .offset = offsetof(struct serve_opts, listen), .suggest = SB_SERVE_LISTEN,
	  .help = "address to listen on (default " SB_SERVE_LISTEN "; port 0: any free "
		  "port), or a Unix socket, which its owner and the store's group may use "
		  "without a token. Every address except 127.0.0.1 and [::1] needs "
		  "--token-file" },
	{ .name = "token-file", .metavar = "FILE", .type = SB_OPT_STRING, .group = SB_OPT_ACCESS,
	  .offset = offsetof(struct serve_opts, token_file), .complete = sb_complete_file,
	  .help = "read the access token from FILE, which is created if it is missing "
		  "(default: a new token for each run, which is part of the printed address)" },
	{ .name = "no-token", .type = SB_OPT_ON, .group = SB_OPT_ACCESS,
	  .offset = offsetof(struct serve_opts, has_no_token),
	  .help = "require no token: every user of this machine can see everything" },
	{ .name = "url", .type = SB_OPT_ON, .group = SB_OPT_ACCESS, .offset = offsetof(struct serve_opts, shows_url),
	  .help = "only print the address with the token of --token-file (default "
		  SB_SERVE_TOKEN_FILE ", the file of stackbpf-serve.service)" },
	{ .name = "host", .metavar = "NAME", .type = SB_OPT_STRINGS, .group = SB_OPT_ACCESS,
	  .offset = offsetof(struct serve_opts, hosts), .complete = sb_complete_host,
	  .help = "another name under which browsers reach this machine, besides its host "
		  "name and IP addresses; can be repeated" },
	SB_COMMON_ROWS,
	SB_OPT_END
};
/* clang-format on */

static int wrong(const struct serve_opts *fields, const char *why)
{
	return sb_fail(SB_EXIT_USAGE, 0, "--listen '%s': %s", fields->listen, why);
}

static int check_listen(const struct serve_opts *fields)
{
	int reach = sb_serve_reach(fields->listen);

	if (reach < 0)
		return wrong(fields, "this is neither an address and port, such as " SB_SERVE_LISTEN
				     " or [::1]:4040, nor unix:PATH");
	if (reach == SB_SERVE_REACH_OTHERS && fields->has_no_token)
		return wrong(fields, "other machines can reach this address, so --no-token is not "
				     "allowed: use --token-file");
	if (reach == SB_SERVE_REACH_OTHERS && !fields->token_file)
		return wrong(fields, "other machines can reach this address, so --token-file is "
				     "required");
	return -1;
}

static int check_token(const struct serve_opts *fields)
{
	const char *why = NULL;

	if (fields->has_no_token && fields->token_file)
		why = "--no-token and --token-file exclude each other";
	else if (fields->has_no_token && fields->shows_url)
		why = "--url prints an address with a token, but --no-token was given, too";
	else if (fields->common.quiet && !fields->has_no_token && !fields->token_file &&
		 sb_serve_reach(fields->listen) != SB_SERVE_REACH_FILE && !fields->shows_url)
		why = "--quiet would hide the token of this run: use --token-file";
	if (!why)
		return -1;
	return sb_fail(SB_EXIT_USAGE, 0, "%s", why);
}

/* The token, or NULL where none is needed. Return: -1 to go on, or the exit status. */
static int choose_token(const struct serve_opts *fields, char **ret_token)
{
	int err;

	if (fields->token_file)
		return sb_serve_token_of_file(fields->token_file, true, ret_token);
	/* The mode of a socket says who may ask. */
	if (fields->has_no_token || sb_serve_reach(fields->listen) == SB_SERVE_REACH_FILE)
		return -1;
	err = sb_serve_token_new(ret_token);
	if (!err)
		return -1;
	return sb_fail(SB_EXIT_FAILED, err, "serve: cannot create the access token");
}

/* Whether @who, in no further group, can get to the store at @path and read its files: by the first
 * that is made. */
static bool may_read(const struct sb_owner *who, const char *path)
{
	sb_cleanup(sb_freep) char *mark = NULL;
	sb_cleanup(sb_closep) int fd = -1;
	struct sb_fsuser before;

	if (asprintf(&mark, "%s/" SB_STORE_MARK, path) < 0) {
		mark = NULL;
		return false;
	}
	if (sb_fsuser_begin(who, NULL, 0, &before))
		return false;
	fd = open(mark, O_RDONLY | O_CLOEXEC);
	sb_fsuser_end(&before);
	return fd >= 0;
}

/* Whom to be as root: who may read the store. */
static struct sb_owner owner_of(const char *path)
{
	struct sb_owner owner = { .uid = geteuid(), .gid = getegid() };
	struct stat st;

	if (stat(path, &st))
		return owner;
	owner = (struct sb_owner){ .uid = st.st_uid, .gid = st.st_gid };
	/* Whoever only reads need not be root, nor the user who writes. */
	if (geteuid() == 0) {
		struct sb_owner own = sb_privileges_own_user();

		own.gid = st.st_gid;
		if (may_read(&own, path))
			owner = own;
	}
	return owner;
}

static struct sb_owner owner;
static const char *store_dir;

static int confine_front(void)
{
	return sb_privileges_front(&owner, store_dir);
}

/* A token of a file stays in its file: what is said may be kept by a journal. */
static void say_where(const struct serve_opts *fields, const char *url, const char *token)
{
	if (fields->token_file && sb_serve_reach(fields->listen) == SB_SERVE_REACH_FILE)
		sb_info("serving '%s' at %s; the access token is in '%s': requests need the header "
			"Authorization: Bearer TOKEN",
			fields->args.dir, url, fields->token_file);
	else if (fields->token_file)
		sb_info("serving '%s' at %s; the access token is in '%s'; print the address with "
			"it: stackbpf serve --url --listen '%.*s' --token-file '%s'",
			fields->args.dir, url, fields->token_file,
			(int)strcspn(url + strlen("http://"), "/"), url + strlen("http://"),
			fields->token_file);
	else if (token)
		sb_info("serving '%s' at %s?token=%s", fields->args.dir, url, token);
	else
		sb_info("serving '%s' at %s", fields->args.dir, url);
}

static int show_url(const struct serve_opts *fields)
{
	sb_cleanup(sb_freep) char *token = NULL;
	const char *path = fields->token_file ? fields->token_file : SB_SERVE_TOKEN_FILE;
	int status;

	if (sb_serve_reach(fields->listen) == SB_SERVE_REACH_FILE)
		return wrong(fields, "--url: a Unix socket has no web address, and needs no "
				     "token");
	status = sb_serve_token_of_file(path, false, &token);
	if (status >= 0)
		return status;
	/* ":4040" is an address to listen at, and none to go to. */
	printf("http://%s%s/?token=%s\n", fields->listen[0] == ':' ? "127.0.0.1" : "",
	       fields->listen, token);
	return SB_EXIT_DATA;
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
	int err;

	store_dir = fields->args.dir;
	owner = owner_of(store_dir);
	opts.group = owner.gid;
	err = sb_serve_new(&opts, &serve);
	if (err)
		return sb_fail(SB_EXIT_FAILED, err, "cannot listen on '%s'", fields->listen);
	say_where(fields, sb_serve_url(serve), token);
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

	/* Named, the file of the zone is read once: workers may not be able to open it again. */
	(void)setenv("TZ", ":/etc/localtime", 0);
	tzset();

	if (status < 0)
		status = check_token(fields);
	if (status < 0 && fields->shows_url)
		return show_url(fields);
	if (status < 0)
		status = sb_store_args_open(&fields->args, &store);
	if (status >= 0)
		return status;
	status = choose_token(fields, &token);
	if (status < 0)
		status = run(fields, store, token);
	sb_store_close(store);
	return status;
}

int sb_cmd_serve(const struct sb_command *command, char **argv)
{
	struct serve_opts fields = { .args.dir = SB_STORE_DIR_DEFAULT, .listen = SB_SERVE_LISTEN };
	struct sb_opts opts = { .fields = &fields };
	int status = sb_command_parse_options(command, &opts, argv, "store with --store");

	sb_privileges_hide();
	if (status < 0)
		status = serve(&fields);
	sb_opts_release(&opts);
	sb_vec_release(&fields.hosts);
	return status;
}
