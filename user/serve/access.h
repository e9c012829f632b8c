/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Access control of the HTTP server: addresses to listen on, Host headers, requests from other
 * sites, tokens. Called by server.c. Thread: any. Pointers are not NULL unless it says so, and
 * nothing that is given is kept. For each request: sb_access_check_host() alone for what needs no
 * token, else sb_access_check(), and then the reply.
 */
#ifndef SB_SERVE_ACCESS_H
#define SB_SERVE_ACCESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "serve/http.h"

/* Who we are; the caller sets all members. Strings are borrowed as long as it is used. */
struct sb_access {
	const char *token; /* NULL: no token is needed */
	const char *const *hosts;
	size_t nr_hosts;
	char host_name[256]; /* of the machine */
	char cookie[32]; /* its name, which has the port: browsers share cookies between ports */
};

union sb_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un path;
};

/*
 * Parse an address to listen on: "127.0.0.1:4040", "[::1]:4040", "localhost:4040", ":4040"
 * (loopback), "unix:PATH". Names are not looked up. Return: 0; -EINVAL, also for a path that is
 * longer than unix(7) allows, and *ret_address is untouched.
 */
int sb_address_parse(const char *text, union sb_address *ret_address);
/* Return: the length of the address for bind(2). */
socklen_t sb_address_len(const union sb_address *address);

/*
 * Check a request that sb_http_parse() accepted: its Host must be a name of this machine (against
 * DNS rebinding), which is a number, "localhost", or one of @access, with any port; it must not
 * come from a script of another site, as its headers Sec-Fetch-Site and Sec-Fetch-Mode say; it must
 * have the token, if there is one, in the Authorization header or a cookie. Return: 0; or the HTTP
 * status to refuse it with, 421, 403 or 401 (no token), and *ret_why is a static sentence; it is
 * untouched if 0 is returned.
 */
int sb_access_check(const struct sb_access *access, const struct sb_http_request *request,
		    const char **ret_why);
/* Check a request as sb_access_check() does, but not its token. Return: 0; 421 for another Host;
 * 403 for a script of another site; then *ret_why is a static sentence, else untouched. */
int sb_access_check_host(const struct sb_access *access, const struct sb_http_request *request,
			 const char **ret_why);
/* Return: whether @query, the part of an address behind "?", has a parameter "token" with the right
 * token; false, too, if it has none. Percent signs are not decoded: no token contains what would be
 * encoded. access->token is not NULL. */
bool sb_access_query_has_token(const struct sb_access *access, struct sb_http_text query);

#endif
