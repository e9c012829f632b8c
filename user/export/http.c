// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/http.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/utf8.h"
#include "base/version.h"

#define CONNECT_TIMEOUT_MS 10000L

/* From curl/curl.h: numbers that libcurl promises not to change (libcurl.so.4). */
enum option {
	OPT_POST = 47,
	OPT_NOPROGRESS = 43,
	OPT_FOLLOWLOCATION = 52,
	OPT_SSL_VERIFYPEER = 64,
	OPT_FRESH_CONNECT = 74,
	OPT_FORBID_REUSE = 75,
	OPT_HTTPGET = 80,
	OPT_SSL_VERIFYHOST = 81,
	OPT_NOSIGNAL = 99,
	OPT_TIMEOUT_MS = 155,
	OPT_CONNECTTIMEOUT_MS = 156,
	OPT_PROTOCOLS = 181,
	OPT_WRITEDATA = 10001,
	OPT_URL = 10002,
	OPT_ERRORBUFFER = 10010,
	OPT_POSTFIELDS = 10015,
	OPT_USERAGENT = 10018,
	OPT_HTTPHEADER = 10023,
	OPT_HEADERDATA = 10029,
	OPT_XFERINFODATA = 10057,
	OPT_CAINFO = 10065,
	OPT_WRITEFUNCTION = 20011,
	OPT_HEADERFUNCTION = 20079,
	OPT_XFERINFOFUNCTION = 20219,
	OPT_POSTFIELDSIZE_LARGE = 30120,
};
enum { INFO_RESPONSE_CODE = 0x200002 };
enum code {
	CODE_OK = 0,
	CODE_UNSUPPORTED_PROTOCOL = 1,
	CODE_URL_MALFORMAT = 3,
	CODE_TIMED_OUT = 28,
	CODE_GOT_NOTHING = 52,
	CODE_RECV_ERROR = 56,
	CODE_PEER_FAILED_VERIFICATION = 60,
	CODE_SSL_CACERT_BADFILE = 77,
};
#define GLOBAL_DEFAULT	 3L
#define PROTO_HTTP_HTTPS 3L
#define ERROR_BYTES	 256

struct curl {
	int (*global_init)(long flags);
	void *(*easy_init)(void);
	void (*easy_cleanup)(void *easy);
	void (*easy_reset)(void *easy);
	int (*easy_setopt)(void *easy, int option, ...);
	int (*easy_perform)(void *easy);
	int (*easy_getinfo)(void *easy, int info, ...);
	const char *(*easy_strerror)(int code);
	void *(*slist_append)(void *list, const char *s);
	void (*slist_free_all)(void *list);
};

struct sb_http {
	struct curl curl;
	void *easy;
	struct sb_http_opts opts;
	char *token_header, *agent;
	char error[ERROR_BYTES];
	bool is_out_of_memory;
};

/* ---- the library ---- */

static int load_symbols(void *lib, struct curl *curl)
{
	const struct {
		const char *name;
		void *field;
	} symbols[] = {
		{ "curl_global_init", &curl->global_init },
		{ "curl_easy_init", &curl->easy_init },
		{ "curl_easy_cleanup", &curl->easy_cleanup },
		{ "curl_easy_reset", &curl->easy_reset },
		{ "curl_easy_setopt", &curl->easy_setopt },
		{ "curl_easy_perform", &curl->easy_perform },
		{ "curl_easy_getinfo", &curl->easy_getinfo },
		{ "curl_easy_strerror", &curl->easy_strerror },
		{ "curl_slist_append", &curl->slist_append },
		{ "curl_slist_free_all", &curl->slist_free_all },
	};
	void *symbol;

	for (size_t i = 0; i < SB_ARRAY_SIZE(symbols); i++) {
		symbol = dlsym(lib, symbols[i].name);
		if (!symbol)
			return -ELIBACC;
		memcpy(symbols[i].field, &symbol, sizeof(symbol));
	}
	return 0;
}

static int load(struct curl *curl)
{
	void *lib = NULL;

	/*
	 * Never closed: TLS libraries cannot be unloaded safely. A static program would need
	 * exactly the C library that it was linked with.
	 */
#ifndef SB_STATIC
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

	for (size_t i = 0; i < SB_ARRAY_SIZE(names) && !lib; i++)
		lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
#endif
	if (!lib || load_symbols(lib, curl))
		return -ELIBACC;
	return curl->global_init(GLOBAL_DEFAULT) ? -ENOMEM : 0;
}

int sb_http_new(const struct sb_http_opts *opts, struct sb_http **ret_http)
{
	struct sb_http *http = calloc(1, sizeof(*http));
	struct sb_str token = {}, agent = {};
	int err;

	if (!http)
		return -ENOMEM;
	http->opts = *opts;
	err = load(&http->curl);
	if (!err && opts->token)
		err = sb_str_addf(&token, "Authorization: Bearer %s", opts->token);
	err = err ?: sb_str_addf(&agent, "stackbpf/%s", sb_version);
	http->token_header = token.s;
	http->agent = agent.s;
	if (!err)
		http->easy = http->curl.easy_init();
	if (!err && !http->easy)
		err = -ENOMEM;
	if (err) {
		sb_http_free(http);
		return err;
	}
	*ret_http = http;
	return 0;
}

void sb_http_free(struct sb_http *http)
{
	if (!http)
		return;
	if (http->easy)
		http->curl.easy_cleanup(http->easy);
	free(http->token_header);
	free(http->agent);
	free(http);
}

/* ---- text ---- */

bool sb_http_header_is_good(const char *header)
{
	size_t len = strspn(header, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	if (!len || header[len] != ':')
		return false;
	for (; header[len]; len++)
		if (iscntrl((unsigned char)header[len]) && header[len] != '\t')
			return false;
	return true;
}

bool sb_http_retry_after(const char *value, int64_t now_s, uint32_t *ret_s)
{
	size_t len = strlen(value);
	char text[64];
	uint64_t seconds;
	struct tm tm = {};
	const char *end;

	while (len && isspace((unsigned char)value[len - 1]))
		len--;
	while (len && isspace((unsigned char)*value)) {
		value++;
		len--;
	}
	if (!len || len >= sizeof(text))
		return false;
	memcpy(text, value, len);
	text[len] = '\0';
	if (sb_parse_u64(text, UINT64_MAX, &seconds)) {
		end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
		if (!end || *end)
			return false;
		now_s = (int64_t)timegm(&tm) - now_s;
		seconds = now_s > 0 ? (uint64_t)now_s : 0;
	}
	*ret_s = seconds < SB_HTTP_RETRY_MAX_S ? (uint32_t)seconds : SB_HTTP_RETRY_MAX_S;
	return true;
}

int sb_http_escape(struct sb_str *url, const char *text)
{
	int err = 0;

	for (; *text && !err; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			err = sb_str_addc(url, *text);
		else
			err = sb_str_addf(url, "%%%02X", (unsigned char)*text);
	}
	return err;
}

int sb_http_add_shown(struct sb_str *out, const char *url)
{
	const char *host = strstr(url, "://");
	size_t len = strcspn(url, "?#"), host_len;
	const char *at;
	int err;

	host = host && host < url + len ? host + 3 : url;
	host_len = strcspn(host, "/?#");
	/* The last one: a password may contain others. */
	at = memrchr(host, '@', host_len);
	if (!at)
		return sb_str_addn(out, url, len);
	err = sb_str_addn(out, url, (size_t)(host - url));
	return err ?: sb_str_addn(out, at + 1, (size_t)(url + len - at - 1));
}

/* ---- one request ---- */

struct transfer {
	struct sb_http *http;
	struct sb_http_reply *reply;
	bool is_stopped;
};

static size_t take_body(char *data, size_t size, size_t nr, void *arg)
{
	struct transfer *transfer = arg;
	struct sb_str *body = &transfer->reply->body;
	size_t len = size * nr, room = SB_HTTP_BODY_MAX - body->len;

	/* Read and drop what exceeds the limit. */
	if (len && room && sb_str_addn(body, data, len < room ? len : room)) {
		transfer->http->is_out_of_memory = true;
		return 0;
	}
	return len;
}

static bool header_value(const char *line, const char *key, char *value, size_t value_bytes)
{
	size_t len = strlen(key);

	if (strncasecmp(line, key, len) != 0 || line[len] != ':')
		return false;
	line += len + 1 + strspn(line + len + 1, " \t");
	len = strcspn(line, "\r\n");
	if (len >= value_bytes)
		return false;
	memcpy(value, line, len);
	value[len] = '\0';
	return true;
}

static size_t take_header(char *data, size_t size, size_t nr, void *arg)
{
	struct transfer *transfer = arg;
	struct sb_http_reply *reply = transfer->reply;
	size_t len = size * nr;
	char line[2048], value[1024];

	/* A longer header is none of those that we read. */
	if (len >= sizeof(line))
		return len;
	memcpy(line, data, len);
	line[len] = '\0';
	if (header_value(line, "Retry-After", value, sizeof(value)))
		reply->has_retry_after =
			sb_http_retry_after(value, time(NULL), &reply->retry_after_s);
	if (header_value(line, "Location", value, sizeof(value))) {
		sb_str_clear(&reply->location);
		sb_replace_controls(value, strlen(value));
		if (sb_str_add(&reply->location, value)) {
			transfer->http->is_out_of_memory = true;
			return 0;
		}
	}
	return len;
}

/* libcurl calls this about once a second, and more often during transfers. */
static int look_for_stop(void *arg, int64_t down_total, int64_t down, int64_t up_total, int64_t up)
{
	struct transfer *transfer = arg;
	struct pollfd poll_fd = { .fd = transfer->http->opts.stop_fd, .events = POLLIN };

	if (poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) > 0)
		transfer->is_stopped = true;
	return transfer->is_stopped;
}

/* Return: NULL without memory. */
static void *headers_of(struct sb_http *http, const struct sb_http_request *request)
{
	char type[128], encoding[64];
	const char *own[] = { type, encoding, http->token_header, "Expect:" };
	void *list = NULL, *more;
	size_t i, nr_own = SB_ARRAY_SIZE(own);

	snprintf(type, sizeof(type), "Content-Type: %s",
		 request->type ? request->type : "text/plain");
	snprintf(encoding, sizeof(encoding), "Content-Encoding: %s",
		 request->encoding ? request->encoding : "");
	if (!request->encoding)
		own[1] = NULL;
	for (i = 0; i < nr_own + http->opts.nr_headers; i++) {
		const char *header = i < nr_own ? own[i] : http->opts.headers[i - nr_own];

		if (!header)
			continue;
		more = http->curl.slist_append(list, header);
		if (!more) {
			http->curl.slist_free_all(list);
			return NULL;
		}
		list = more;
	}
	return list;
}

/* Return: 0, or the first code of an option that was refused. */
static int set_options(struct transfer *transfer, const struct sb_http_request *request,
		       void *headers)
{
	struct sb_http *http = transfer->http;
	int (*set)(void *easy, int option, ...) = http->curl.easy_setopt;
	void *easy = http->easy;
	int code = set(easy, OPT_URL, request->url);

	code = code ?: set(easy, OPT_PROTOCOLS, PROTO_HTTP_HTTPS);
	code = code ?: set(easy, OPT_FOLLOWLOCATION, 0L);
	code = code ?: set(easy, OPT_SSL_VERIFYPEER, 1L);
	code = code ?: set(easy, OPT_SSL_VERIFYHOST, 2L);
	if (http->opts.ca_file)
		code = code ?: set(easy, OPT_CAINFO, http->opts.ca_file);
	/* If a reused connection was closed, libcurl repeats the request without telling us. */
	code = code ?: set(easy, OPT_FRESH_CONNECT, 1L);
	code = code ?: set(easy, OPT_FORBID_REUSE, 1L);
	code = code ?: set(easy, OPT_NOSIGNAL, 1L);
	code = code ?: set(easy, OPT_TIMEOUT_MS, (long)http->opts.timeout_ms);
	code = code ?: set(easy, OPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	code = code ?: set(easy, OPT_USERAGENT, http->agent);
	code = code ?: set(easy, OPT_HTTPHEADER, headers);
	code = code ?: set(easy, OPT_ERRORBUFFER, http->error);
	code = code ?: set(easy, OPT_WRITEFUNCTION, take_body);
	code = code ?: set(easy, OPT_WRITEDATA, transfer);
	code = code ?: set(easy, OPT_HEADERFUNCTION, take_header);
	code = code ?: set(easy, OPT_HEADERDATA, transfer);
	code = code ?: set(easy, OPT_XFERINFOFUNCTION, look_for_stop);
	code = code ?: set(easy, OPT_XFERINFODATA, transfer);
	code = code ?: set(easy, OPT_NOPROGRESS, 0L);
	if (!request->body)
		return code ?: set(easy, OPT_HTTPGET, 1L);
	code = code ?: set(easy, OPT_POST, 1L);
	code = code ?: set(easy, OPT_POSTFIELDS, request->body);
	return code ?: set(easy, OPT_POSTFIELDSIZE_LARGE, (int64_t)request->len);
}

static int explain(struct transfer *transfer, int code)
{
	struct sb_http *http = transfer->http;
	struct sb_http_reply *reply = transfer->reply;
	const char *why = http->error[0] ? http->error : http->curl.easy_strerror(code);

	if (transfer->is_stopped)
		return -ECANCELED;
	if (http->is_out_of_memory)
		return -ENOMEM;
	reply->is_unsure =
		code == CODE_TIMED_OUT || code == CODE_GOT_NOTHING || code == CODE_RECV_ERROR;
	reply->is_hopeless = code == CODE_UNSUPPORTED_PROTOCOL || code == CODE_URL_MALFORMAT ||
			     code == CODE_PEER_FAILED_VERIFICATION ||
			     code == CODE_SSL_CACERT_BADFILE;
	return sb_str_add(&reply->error, why) ?: -EIO;
}

int sb_http_send(struct sb_http *http, const struct sb_http_request *request,
		 struct sb_http_reply *reply)
{
	struct transfer transfer = { .http = http, .reply = reply };
	void *headers = headers_of(http, request);
	int code;

	reply->status = 0;
	reply->has_retry_after = reply->is_unsure = reply->is_hopeless = false;
	sb_str_clear(&reply->body);
	sb_str_clear(&reply->location);
	sb_str_clear(&reply->error);
	if (!headers)
		return -ENOMEM;
	http->error[0] = '\0';
	http->is_out_of_memory = false;
	http->curl.easy_reset(http->easy);
	code = set_options(&transfer, request, headers);
	if (code == CODE_OK)
		code = http->curl.easy_perform(http->easy);
	if (code == CODE_OK)
		code = http->curl.easy_getinfo(http->easy, INFO_RESPONSE_CODE, &reply->status);
	http->curl.slist_free_all(headers);
	return code == CODE_OK ? 0 : explain(&transfer, code);
}

void sb_http_reply_release(struct sb_http_reply *reply)
{
	sb_str_release(&reply->body);
	sb_str_release(&reply->location);
	sb_str_release(&reply->error);
}
