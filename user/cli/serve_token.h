/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The token that whoever asks `stackbpf serve` must know: a new one for each run, or that of a file. */
#ifndef SB_CLI_SERVE_TOKEN_H
#define SB_CLI_SERVE_TOKEN_H

#include <stdbool.h>

/* The file of stackbpf-serve.service, in its StateDirectory=. */
#define SB_SERVE_TOKEN_FILE "/var/lib/stackbpf-serve/token"

/*
 * sb_serve_token_new() - make a token of 32 random bytes
 * @ret_token: 64 hexadecimal digits that the caller frees; untouched on error
 *
 * Return: 0, -ENOMEM, or what getrandom(2) returned.
 */
int sb_serve_token_new(char **ret_token);

/*
 * sb_serve_token_of_file() - the first word of a file
 * @path: a regular file that only its owner can write, and at most its group can read
 * @serves: the token will let people in: the file must belong to root, to the caller or to who called sudo; one that is
 *          not there is made, mode 0640, with a new token
 * @ret_token: the caller frees it; untouched on error
 *
 * Errors are logged.
 * Return: -1 to go on, or the exit status.
 */
int sb_serve_token_of_file(const char *path, bool serves, char **ret_token);

#endif
