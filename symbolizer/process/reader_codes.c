// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A cache of the executable mappings that sb_reader_code() read last, for sb_reader_code_since().
 * Several threads look at each process that begins, one just after the other, and to ask a reader
 * costs more than all else that they do with its answer.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "symbolizer/process/reader_priv.h"

/* Requests of two threads about one process are milliseconds apart, so few processes lie between
 * them. Longer lists belong to few processes. */
#define CODES_MAX  32u
#define CODE_BYTES (8u << 10)

static struct {
	pthread_mutex_t lock;
	struct code {
		uint64_t began_ns; /* 0: there is none */
		uint32_t tgid;
		int32_t err;
		size_t len;
		char records[CODE_BYTES];
	} at[CODES_MAX];
} codes = { .lock = PTHREAD_MUTEX_INITIALIZER };

void sb_reader_codes_keep(uint32_t tgid, uint64_t began_ns, int64_t ret, const void *records)
{
	struct code *code = &codes.at[tgid % CODES_MAX];

	pthread_mutex_lock(&codes.lock);
	if (ret > (int64_t)sizeof(code->records) || (ret < 0 && ret != -ESRCH)) {
		/* What is kept is no longer what was read last. */
		if (code->tgid == tgid)
			code->began_ns = 0;
		pthread_mutex_unlock(&codes.lock);
		return;
	}
	code->began_ns = began_ns;
	code->tgid = tgid;
	code->err = ret < 0 ? (int32_t)ret : 0;
	code->len = ret < 0 ? 0 : (size_t)ret;
	if (code->len)
		memcpy(code->records, records, code->len);
	pthread_mutex_unlock(&codes.lock);
}

ssize_t sb_reader_code_since(uint32_t tgid, uint64_t since_ns, struct sb_str *records)
{
	const struct code *code = &codes.at[tgid % CODES_MAX];
	ssize_t ret = -ENODATA;

	sb_str_clear(records);
	pthread_mutex_lock(&codes.lock);
	if (code->began_ns && code->tgid == tgid && code->began_ns >= since_ns) {
		ret = code->err ? code->err : (ssize_t)code->len;
		if (!code->err && sb_str_addn(records, code->records, code->len))
			ret = -ENOMEM;
	}
	pthread_mutex_unlock(&codes.lock);
	return ret;
}
