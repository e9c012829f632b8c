/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who may ask. */
#ifndef SB_SERVE_ACCESS_H
#define SB_SERVE_ACCESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "serve/http.h"

struct sb_access {
	const char *token; /* NULL: none is needed */
	const char *const *hosts;
	size_t nr_hosts;
	char host_name[256]; /* of the machine */
	char cookie[32];     /* its name: cookies know no ports */
};

union sb_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un path;
};

/*
 * "127.0.0.1:4040", "[::1]:4040", "localhost:4040", ":4040" (loopback), "unix:PATH". Return: 0; -EINVAL, also of a
 * path that is longer than unix(7) allows.
 */
int sb_address_parse(const char *text, union sb_address *ret_address);
/* Return: how long it is, as bind(2) has it. */
socklen_t sb_address_len(const union sb_address *address);

/*
 * Whether @request is one that we answer: of a host that is us (a page of another site whose name was made to
 * lead to us, DNS rebinding, says its own name), not by a page of another site, and with the token.
 * Return: 0, or a status and in *ret_why a sentence.
 */
int sb_access_check(const struct sb_access *access, const struct sb_http_request *request,
		    const char **ret_why);
/* Return: 0, 421 or 403, and a sentence: all but the token. */
int sb_access_check_host(const struct sb_access *access, const struct sb_http_request *request,
			 const char **ret_why);
/* In time that does not depend on where they differ. */
bool sb_access_is_token(const struct sb_access *access, struct sb_http_text text);
/* Return: whether @query has "token=" with the right one. */
bool sb_access_query_has_token(const struct sb_access *access, struct sb_http_text query);

#endif
