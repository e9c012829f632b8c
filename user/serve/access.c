// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/str.h"
#include "serve/serve.h"

#define PORT_MAX    65535

#define UNIX_PREFIX "unix:"

static int parse_path(const char *path, union sb_address *ret_address)
{
	union sb_address address = { .path.sun_family = AF_UNIX };
	size_t len = strlen(path);

	if (!len || len >= sizeof(address.path.sun_path))
		return -EINVAL;
	memcpy(address.path.sun_path, path, len);
	*ret_address = address;
	return 0;
}

/* Only numeric addresses: what a name resolves to may change. */
int sb_address_parse(const char *text, union sb_address *ret_address)
{
	const char *colon = strrchr(text, ':');
	union sb_address address = {};
	char host[INET6_ADDRSTRLEN + 2];
	size_t len = colon ? (size_t)(colon - text) : 0;
	uint64_t port;

	if (!strncmp(text, UNIX_PREFIX, sizeof(UNIX_PREFIX) - 1))
		return parse_path(text + sizeof(UNIX_PREFIX) - 1, ret_address);
	if (!colon || len >= sizeof(host) || sb_parse_u64(colon + 1, PORT_MAX, &port))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		address.v6.sin6_family = AF_INET6;
		address.v6.sin6_port = htons((uint16_t)port);
		if (inet_pton(AF_INET6, host + 1, &address.v6.sin6_addr) != 1)
			return -EINVAL;
	} else {
		address.v4.sin_family = AF_INET;
		address.v4.sin_port = htons((uint16_t)port);
		if (inet_pton(AF_INET, !len || sb_streq(host, "localhost") ? "127.0.0.1" : host,
			      &address.v4.sin_addr) != 1)
			return -EINVAL;
	}
	*ret_address = address;
	return 0;
}

socklen_t sb_address_len(const union sb_address *address)
{
	if (address->any.sa_family == AF_UNIX)
		return sizeof(address->path);
	return address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
}

static bool is_loopback(const union sb_address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

int sb_serve_reach(const char *listen)
{
	union sb_address address;
	int err = sb_address_parse(listen, &address);

	if (err)
		return err;
	if (address.any.sa_family == AF_UNIX)
		return SB_SERVE_REACH_FILE;
	return is_loopback(&address) ? SB_SERVE_REACH_MACHINE : SB_SERVE_REACH_OTHERS;
}

int sb_serve_check_token(const char *token)
{
	static const char chars[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	size_t len = strlen(token);

	return len >= SB_SERVE_TOKEN_MIN && len <= SB_SERVE_TOKEN_MAX && strspn(token, chars) == len
		       ? 0
		       : -EINVAL;
}

static bool is_name(struct sb_http_text text, const char *name)
{
	return name[0] && text.len == strlen(name) && !strncasecmp(text.s, name, text.len);
}

/* Remove the port: whoever forwards a port to us uses another number. */
static struct sb_http_text without_port(struct sb_http_text host)
{
	size_t len = host.len;

	while (len && host.s[len - 1] >= '0' && host.s[len - 1] <= '9')
		len--;
	if (len && host.s[len - 1] == ':')
		host.len = len - 1;
	return host;
}

/* A numeric address cannot be rebound; a name resolves to whatever its owner wants. */
static bool is_number(struct sb_http_text host)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;
	bool is_v6 = host.len > 2 && host.s[0] == '[' && host.s[host.len - 1] == ']';

	if (is_v6) {
		host.s++;
		host.len -= 2;
	}
	if (!host.len || host.len >= sizeof(text))
		return false;
	memcpy(text, host.s, host.len);
	text[host.len] = '\0';
	return inet_pton(is_v6 ? AF_INET6 : AF_INET, text, &address) == 1;
}

static bool is_us(const struct sb_access *access, struct sb_http_text host)
{
	size_t i;

	host = without_port(host);
	if (is_number(host) || is_name(host, "localhost") || is_name(host, access->host_name))
		return true;
	for (i = 0; i < access->nr_hosts; i++)
		if (is_name(host, access->hosts[i]))
			return true;
	return false;
}

/* Compare with the token, which must exist, in a time that does not depend on where they differ. */
static bool is_token(const struct sb_access *access, struct sb_http_text text)
{
	size_t len = strlen(access->token), i;
	unsigned char differs = text.len != len;

	for (i = 0; i < len && text.len; i++)
		differs |= (unsigned char)(access->token[i] ^ text.s[i % text.len]);
	return !differs;
}

/* Look for "@name=TOKEN" among the items that @separator separates. */
static bool has_token_at(const struct sb_access *access, struct sb_http_text text, const char *name,
			 char separator)
{
	size_t len = strlen(name);

	while (text.s && text.len) {
		const char *end = memchr(text.s, separator, text.len);
		struct sb_http_text item = { text.s, end ? (size_t)(end - text.s) : text.len };

		text.len -= item.len + !!end;
		text.s += item.len + !!end;
		while (item.len && item.s[0] == ' ') {
			item.s++;
			item.len--;
		}
		if (item.len <= len || memcmp(item.s, name, len) || item.s[len] != '=')
			continue;
		item.s += len + 1;
		item.len -= len + 1;
		if (is_token(access, item))
			return true;
	}
	return false;
}

bool sb_access_query_has_token(const struct sb_access *access, struct sb_http_text query)
{
	return has_token_at(access, query, "token", '&');
}

/* RFC 6750 */
static bool has_bearer(const struct sb_access *access, struct sb_http_text authorization)
{
	static const char scheme[] = "Bearer ";
	const size_t len = sizeof(scheme) - 1;

	if (authorization.len <= len || strncasecmp(authorization.s, scheme, len))
		return false;
	authorization.s += len;
	authorization.len -= len;
	return is_token(access, authorization);
}

int sb_access_check_host(const struct sb_access *access, const struct sb_http_request *request,
			 const char **ret_why)
{
	if (!is_us(access, request->host)) {
		*ret_why = "the host name in the address is not known to this server; start "
			   "it with --host NAME to allow the name";
		return 421;
	}
	/* Links from other sites may lead to us, but their scripts may not make us work. */
	if (sb_http_text_is(request->fetch_site, "cross-site") &&
	    !sb_http_text_is(request->fetch_mode, "navigate")) {
		*ret_why = "requests from pages of other sites are not allowed";
		return 403;
	}
	return 0;
}

int sb_access_check(const struct sb_access *access, const struct sb_http_request *request,
		    const char **ret_why)
{
	int status = sb_access_check_host(access, request, ret_why);

	if (status || !access->token || has_bearer(access, request->authorization) ||
	    has_token_at(access, request->cookie, access->cookie, ';'))
		return status;
	*ret_why = "a token is required: open the address that 'stackbpf serve' printed at "
		   "startup, or that 'stackbpf serve --url' prints for the service; programs "
		   "send 'Authorization: Bearer TOKEN'";
	return 401;
}
