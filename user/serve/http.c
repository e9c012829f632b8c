// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve/http.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/str.h"

#define HEADERS_MAX 100

size_t sb_http_head_len(const char *bytes, size_t len, size_t *from)
{
	const char *end = *from < len ? memmem(bytes + *from, len - *from, "\r\n\r\n", 4) : NULL;

	/* The last bytes may be the first ones of the end. */
	*from = len > 3 ? len - 3 : 0;
	return end ? (size_t)(end - bytes) + 4 : 0;
}

static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_visible(char c)
{
	return c > ' ' && c < 0x7f;
}

/* Take the text up to @end_char, and skip that. Return: whether it was there. */
static bool take(struct sb_http_text *from, char end_char, struct sb_http_text *ret)
{
	const char *end = memchr(from->s, end_char, from->len);

	if (!end)
		return false;
	*ret = (struct sb_http_text){ from->s, (size_t)(end - from->s) };
	from->len -= ret->len + 1;
	from->s = end + 1;
	return true;
}

/* Take a line without its CRLF. A CR or LF elsewhere makes the head invalid. */
static bool take_line(struct sb_http_text *from, struct sb_http_text *ret)
{
	return take(from, '\r', ret) && from->len && from->s[0] == '\n' && from->s++ &&
	       from->len-- && (!ret->len || !memchr(ret->s, '\n', ret->len));
}

bool sb_http_text_is(struct sb_http_text text, const char *s)
{
	return text.s && sb_text_is(text.s, text.len, s);
}

static bool is_word(struct sb_http_text text, const char *s)
{
	return text.len == strlen(s) && !strncasecmp(text.s, s, text.len);
}

static struct sb_http_text trim(struct sb_http_text text)
{
	while (text.len && (text.s[0] == ' ' || text.s[0] == '\t')) {
		text.s++;
		text.len--;
	}
	while (text.len && (text.s[text.len - 1] == ' ' || text.s[text.len - 1] == '\t'))
		text.len--;
	return text;
}

/* Only the form without a host: we are not a proxy. */
static int parse_target(struct sb_http_text target, struct sb_http_request *ret)
{
	size_t i;

	if (!target.len || target.s[0] != '/')
		return 400;
	for (i = 0; i < target.len; i++)
		if (!is_visible(target.s[i]) || target.s[i] == '#')
			return 400;
	ret->query = target;
	if (!take(&ret->query, '?', &ret->path)) {
		ret->path = target;
		ret->query = (struct sb_http_text){};
	}
	return 0;
}

static int parse_line(struct sb_http_text line, struct sb_http_request *ret)
{
	struct sb_http_text method, target;

	if (line.len > SB_HTTP_LINE_MAX)
		return 414;
	if (!take(&line, ' ', &method) || !take(&line, ' ', &target))
		return 400;
	ret->is_head = sb_http_text_is(method, "HEAD");
	ret->keeps = sb_http_text_is(line, "HTTP/1.1");
	if (!ret->keeps && !sb_http_text_is(line, "HTTP/1.0"))
		return line.len == 8 && !memcmp(line.s, "HTTP/", 5) ? 505 : 400;
	if (!ret->is_head && !sb_http_text_is(method, "GET"))
		return method.len ? 405 : 400;
	return parse_target(target, ret);
}

struct headers {
	struct sb_http_text connection, content_length, transfer_encoding;
};

static int note(const struct sb_http_text name, struct sb_http_text value,
		struct sb_http_request *request, struct headers *headers)
{
	const struct {
		const char *name;
		struct sb_http_text *to;
	} wanted[] = {
		{ "host", &request->host },
		{ "authorization", &request->authorization },
		{ "cookie", &request->cookie },
		{ "accept-encoding", &request->accept_encoding },
		{ "if-none-match", &request->if_none_match },
		{ "sec-fetch-site", &request->fetch_site },
		{ "sec-fetch-mode", &request->fetch_mode },
		{ "connection", &headers->connection },
		{ "content-length", &headers->content_length },
		{ "transfer-encoding", &headers->transfer_encoding },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(wanted); i++) {
		if (!is_word(name, wanted[i].name))
			continue;
		/* Of two headers, a proxy may use the other one. */
		if (wanted[i].to->s)
			return 400;
		*wanted[i].to = value;
	}
	return 0;
}

static int parse_header(struct sb_http_text line, struct sb_http_request *request,
			struct headers *headers)
{
	struct sb_http_text name;
	size_t i;

	if (!take(&line, ':', &name) || !name.len)
		return 400;
	for (i = 0; i < name.len; i++)
		if (!is_token_char(name.s[i]))
			return 400;
	line = trim(line);
	for (i = 0; i < line.len; i++)
		if (((unsigned char)line.s[i] < ' ' && line.s[i] != '\t') || line.s[i] == 0x7f)
			return 400;
	return note(name, line, request, headers);
}

static int judge(const struct headers *headers, struct sb_http_request *request)
{
	if (headers->transfer_encoding.s ||
	    (headers->content_length.s && !sb_http_text_is(headers->content_length, "0")))
		return 413;
	if (!request->host.s)
		return 400;
	if (headers->connection.s && sb_http_list_has(headers->connection, "close"))
		request->keeps = false;
	return 0;
}

int sb_http_parse(const char *bytes, size_t len, struct sb_http_request *ret)
{
	struct sb_http_text rest = { bytes, len }, line;
	struct headers headers = {};
	int status, nr;

	*ret = (struct sb_http_request){};
	if (!take_line(&rest, &line))
		return 400;
	status = parse_line(line, ret);
	for (nr = 0; !status; nr++) {
		if (!take_line(&rest, &line))
			return 400;
		if (!line.len)
			return judge(&headers, ret);
		status = nr < HEADERS_MAX ? parse_header(line, ret, &headers) : 431;
	}
	return status;
}

const char *sb_http_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },
		{ 303, "See Other" },
		{ 304, "Not Modified" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 408, "Request Timeout" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 421, "Misdirected Request" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 503, "Service Unavailable" },
		{ 505, "HTTP Version Not Supported" },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Error";
}

/* ";q=0" and ";q=0.0" refuse the token. */
static bool is_refused(struct sb_http_text weight)
{
	weight = trim(weight);
	if (weight.len < 3 || (weight.s[0] | 32) != 'q' || weight.s[1] != '=')
		return false;
	for (weight.s += 2, weight.len -= 2; weight.len; weight.s++, weight.len--)
		if (weight.s[0] != '0' && weight.s[0] != '.')
			return false;
	return true;
}

bool sb_http_list_has(struct sb_http_text list, const char *token)
{
	struct sb_http_text item, name;

	while (list.s && list.len) {
		if (!take(&list, ',', &item)) {
			item = list;
			list.len = 0;
		}
		if (!take(&item, ';', &name)) {
			name = item;
			item = (struct sb_http_text){};
		}
		if (is_word(trim(name), token))
			return !item.s || !is_refused(item);
	}
	return false;
}
