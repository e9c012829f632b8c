// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/serve_token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "cli/exit.h"
#include "serve/serve.h"

#define TOKEN_FILE_MAX 4096
#define TOKEN_BYTES    32
/* Root and the service's group, as of the store. */
#define TOKEN_MODE     (S_IRUSR | S_IWUSR | S_IRGRP)

int sb_serve_token_new(char **ret_token)
{
	unsigned char bytes[TOKEN_BYTES];
	char *token;
	size_t i;

	/* Up to 256 bytes come at once, or not at all: getrandom(2). */
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return errno ? -errno : -EIO;
	token = malloc(2 * sizeof(bytes) + 1);
	if (!token)
		return -ENOMEM;
	for (i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	*ret_token = token;
	return 0;
}

/* Return: 0, or a negative errno: -EEXIST if somebody else was faster. */
static int make_file(const char *path)
{
	sb_cleanup(sb_freep) char *token = NULL;
	sb_cleanup(sb_closep) int fd = -1;
	int err = sb_serve_token_new(&token);

	if (err)
		return err;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return -errno;
	err = sb_write_all(fd, token, strlen(token));
	if (!err)
		err = sb_write_all(fd, "\n", 1);
	/* Whatever the umask is. */
	if (!err && fchmod(fd, TOKEN_MODE))
		err = -errno;
	if (err)
		(void)unlink(path);
	return err;
}

/* Who owns the file knows the token: that may be root, we ourselves, or who called sudo. */
static bool owner_may_know(uid_t uid)
{
	return uid == 0 || uid == geteuid() || uid == sb_sudo_owner().uid;
}

/*
 * @serves: its token will let people in, so its owner counts; who only shows it changes nothing.
 * Return: 0 or a negative errno; -EPERM: others may read or change it.
 */
static int read_file(const char *path, bool serves, char **ret_text)
{
	/* O_NONBLOCK: what has the name may be a FIFO, whose open would wait. */
	sb_cleanup(sb_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	size_t len;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((st.st_mode & (S_IRWXO | S_IWGRP)) || (serves && !owner_may_know(st.st_uid)))
		return -EPERM;
	return sb_read_fd(fd, TOKEN_FILE_MAX, ret_text, &len);
}

int sb_serve_token_of_file(const char *path, bool serves, char **ret_token)
{
	sb_cleanup(sb_freep) char *text = NULL;
	int err = read_file(path, serves, &text);

	if (err == -ENOENT && serves) {
		err = make_file(path);
		if (err && err != -EEXIST)
			return sb_fail(SB_EXIT_FAILED, err, "cannot create --token-file '%s'",
				       path);
		err = read_file(path, serves, &text);
	}
	if (err == -EPERM)
		return sb_fail(SB_EXIT_USAGE, 0,
			       "--token-file '%s': another user owns, can read or can change this "
			       "file; make it yours with chown and chmod 600",
			       path);
	if (err)
		return sb_fail(SB_EXIT_FAILED, err, "cannot read --token-file '%s'", path);
	text[strcspn(text, " \t\r\n")] = '\0';
	if (sb_serve_check_token(text))
		return sb_fail(
			SB_EXIT_USAGE, 0,
			"--token-file '%s': the file has no valid token (%u to %u letters, "
			"digits or -._~); delete the file, and 'stackbpf serve' creates a new "
			"one",
			path, SB_SERVE_TOKEN_MIN, SB_SERVE_TOKEN_MAX);
	*ret_token = sb_take(text);
	return -1;
}
