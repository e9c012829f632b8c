/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The access token of `stackbpf serve`: a new one for each run, or one from a file. Thread: any.
 * Pointers are not NULL, and nothing is kept. */
#ifndef SB_CLI_SERVE_TOKEN_H
#define SB_CLI_SERVE_TOKEN_H

#include <stdbool.h>

/* The token file of stackbpf-serve.service, in its StateDirectory=. */
#define SB_SERVE_TOKEN_FILE "/var/lib/stackbpf-serve/token"

/*
 * sb_serve_token_new() - make a token of 32 random bytes
 * @ret_token: 64 hexadecimal digits, freed by the caller with free(); untouched on error
 *
 * Return: 0; -ENOMEM; or the error of getrandom(2).
 */
int sb_serve_token_new(char **ret_token);

/*
 * sb_serve_token_of_file() - read the token from a file: what is before its first blank or newline
 * @path: a regular file that only its owner can write, and that others than its group cannot read
 * @serves: the token will grant access. Then the file must belong to root, to this user or to the
 *	user behind sudo, and if it does not exist it is created, mode 0640, with a new token
 * @ret_token: freed by the caller with free(); untouched on error
 *
 * Return: -1 to go on; SB_EXIT_USAGE if others may know the token, or it is none that `serve`
 * takes; SB_EXIT_FAILED if the file cannot be read or created. Errors were logged.
 */
int sb_serve_token_of_file(const char *path, bool serves, char **ret_token);

#endif
