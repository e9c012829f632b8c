// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The head of a request that is anything, in pieces that are anything; who may ask; the query
 * behind it. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "serve/access.h"
#include "serve/http.h"
#include "serve/params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In the request, or none. */
static void check_text(struct sb_http_text text, const char *bytes, size_t len)
{
	must(!text.s || (text.s >= bytes && text.s + text.len <= bytes + len));
}

static void check_params(struct sb_http_text query)
{
	struct sb_params params;
	size_t at = 0, nr = 0;

	if (!sb_params_parse(&params, query.len ? query.s : "", query.len)) {
		while (sb_params_next(&params, "tag", &at))
			nr++;
		must(nr <= params.nr);
		(void)sb_params_get(&params, "from");
		(void)sb_params_unknown(&params);
	}
	sb_params_release(&params);
}

static void check_request(const char *bytes, size_t len)
{
	static const char *const hosts[] = { "given.example" };
	struct sb_access access = { .token = "0123456789abcdef",
				    .hosts = hosts,
				    .nr_hosts = 1,
				    .host_name = "machine",
				    .cookie = "stackbpf-4040" };
	struct sb_http_request request;
	const char *why = NULL;
	int status = sb_http_parse(bytes, len, &request);

	must(!status || (status >= 400 && status < 600));
	must(strcmp(sb_http_reason(status ? status : 200), "Error"));
	if (status)
		return;
	must(request.path.len && request.path.s[0] == '/' && request.host.s);
	check_text(request.path, bytes, len);
	check_text(request.query, bytes, len);
	check_text(request.host, bytes, len);
	check_text(request.cookie, bytes, len);
	status = sb_access_check(&access, &request, &why);
	must(!status == !why);
	/* Nobody comes in who does not say it. */
	must(status || memmem(bytes, len, access.token, strlen(access.token)));
	(void)sb_access_query_has_token(&access, request.query);
	(void)sb_http_list_has(request.accept_encoding, "gzip");
	check_params(request.query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t from = 0, len, step = size ? 1 + data[0] % 64 : 1, head = 0, whole_from = 0;
	char *bytes = malloc(size + 1);

	must(bytes);
	/* As it comes, of its own size, so that what is behind it is seen to be touched. */
	for (len = 0; len < size && !head; len += step) {
		size_t nr = len + step < size ? len + step : size;

		memcpy(bytes, data, nr);
		head = sb_http_head_len(bytes, nr, &from);
	}
	must(head == (size ? sb_http_head_len((const char *)data, size, &whole_from) : 0) ||
	     !head || head <= size);
	free(bytes);
	if (head) {
		bytes = malloc(head);
		must(bytes);
		memcpy(bytes, data, head);
		check_request(bytes, head);
		free(bytes);
	}
	check_params((struct sb_http_text){ (const char *)data, size });
	return 0;
}
