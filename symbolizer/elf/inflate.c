// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/elf/inflate.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* A symbol table, stripped to what .dynsym lacks and packed; Fedora's largest take some 10 MB. */
#define XZ_OUT_BYTES_MAX   (128u << 20)
#define XZ_MEM_BYTES_MAX   (128u << 20) /* xz -9 needs 65 MiB to decode */
#define XZ_MEM_FIRST_BYTES 1u		/* none: all of it is charged */
#define XZ_OUT_FIRST_BYTES (256u << 10)
/* Work of a byte that comes out: some 150 MB/s. */
#define WORK_PER_BYTE	   7u

static int xz_error(lzma_ret ret)
{
	switch (ret) {
	case LZMA_OK:
		return 0;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	default:
		return -EBADMSG;
	}
}

/* Room for @want bytes, of which there were @cap. Return: 0, -EFBIG, -ENOMEM. */
static int grow(struct sb_budget *budget, char **out, size_t cap, size_t want)
{
	char *bigger;
	int err;

	if (want > XZ_OUT_BYTES_MAX)
		return -EFBIG;
	err = sb_budget_charge(budget, want - cap);
	if (!err)
		err = sb_budget_work(budget, (want - cap) * WORK_PER_BYTE);
	if (err)
		return err;
	bigger = realloc(*out, want + 1);
	if (!bigger)
		return -ENOMEM;
	*out = bigger;
	return 0;
}

/*
 * The decoder has read that the next block takes more memory than it may have. Charge the
 * difference. Return: 0, -EFBIG, -ENOMEM.
 */
static int allow_memory(lzma_stream *xz, struct sb_budget *budget)
{
	uint64_t want = lzma_memusage(xz), have = lzma_memlimit_get(xz);
	int err;

	if (want > XZ_MEM_BYTES_MAX)
		return -EFBIG;
	err = sb_budget_charge(budget, want - have);
	return err ? err : xz_error(lzma_memlimit_set(xz, want));
}

/* Decode into *@out, which grows; it is the caller's on failure, too. */
static int run_xz(lzma_stream *xz, struct sb_budget *budget, char **out, size_t *ret_len)
{
	size_t cap = 0, used = 0, want;
	lzma_ret ret = LZMA_OK;
	int err;

	while (ret == LZMA_OK) {
		if (used == cap) {
			want = cap ? cap * 2 : XZ_OUT_FIRST_BYTES;
			err = grow(budget, out, cap, want);
			if (err)
				return err;
			cap = want;
		}
		xz->next_out = (uint8_t *)*out + used;
		xz->avail_out = cap - used;
		ret = lzma_code(xz, LZMA_FINISH);
		used = cap - xz->avail_out;
		if (ret == LZMA_MEMLIMIT_ERROR) {
			err = allow_memory(xz, budget);
			if (err)
				return err;
			ret = LZMA_OK;
		}
	}
	if (ret != LZMA_STREAM_END)
		return xz_error(ret);
	(*out)[used] = '\0';
	*ret_len = used;
	return 0;
}

int sb_inflate_xz(const void *in, size_t in_len, struct sb_budget *budget, char **ret_out,
		  size_t *ret_len)
{
	sb_cleanup(sb_freep) char *out = NULL;
	lzma_stream xz = LZMA_STREAM_INIT;
	lzma_ret ret;
	int err;

	ret = lzma_stream_decoder(&xz, XZ_MEM_FIRST_BYTES, 0);
	if (ret != LZMA_OK)
		return xz_error(ret);
	xz.next_in = in;
	xz.avail_in = in_len;
	err = run_xz(&xz, budget, &out, ret_len);
	lzma_end(&xz);
	if (!err)
		*ret_out = sb_take(out);
	return err;
}
