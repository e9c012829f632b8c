// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a thread read ahead, until it asks for it: see sb_reader_ahead() in reader.h. */
#include <errno.h>
#include <string.h>

#include "symbolizer/process/reader_priv.h"

uint32_t sb_reader_aheads_ask(struct sb_reader_area *area, const struct sb_reader_want *wants,
			      size_t nr)
{
	struct sb_reader_request *request = &area->request;
	uint32_t i;

	for (i = 0; i < nr && i < SB_READER_AHEAD_MAX; i++) {
		request->tgid = wants[i].tgid;
		if (sb_reader_is_refused(request))
			break;
		request->wants[i] = wants[i];
		area->parts[i] = (struct sb_reader_part){};
	}
	request->tgid = wants[0].tgid;
	area->part = 0;
	return request->nr_wants = i;
}

int sb_reader_aheads_keep(struct sb_reader_aheads *aheads, const struct sb_reader_want *wants,
			  size_t nr_done, const struct sb_reader_area *area)
{
	size_t i, at = 0;
	int err;

	for (i = 0; i < nr_done && aheads->nr < SB_READER_AHEAD_MAX; i++) {
		/* Read once: the reader can still write to it. */
		const int64_t ret = __atomic_load_n(&area->parts[i].ret, __ATOMIC_RELAXED);

		if (ret < 0 || (wants[i].len && !ret))
			continue;
		if ((uint64_t)ret > SB_READER_DATA_BYTES - at ||
		    (wants[i].len && (uint64_t)ret > wants[i].len))
			return -EPROTO;
		aheads->ready[aheads->nr] = (struct sb_reader_ready){
			.want = wants[i],
			.first = aheads->data.len,
			.len = (size_t)ret,
		};
		if (wants[i].is_pointer)
			aheads->ready[aheads->nr].want.addr =
				__atomic_load_n(&area->parts[i].addr, __ATOMIC_RELAXED);
		err = sb_str_addn(&aheads->data, (const char *)area->data + at, (size_t)ret);
		if (err)
			return err;
		aheads->nr++;
		at += (size_t)ret;
	}
	return 0;
}

static struct sb_reader_ready *find_ready(struct sb_reader_aheads *aheads,
					  const struct sb_reader_want *want)
{
	uint32_t i;

	for (i = 0; i < aheads->nr; i++) {
		struct sb_reader_ready *ready = &aheads->ready[i];

		if (!ready->is_taken && ready->want.tgid == want->tgid &&
		    ready->want.len == want->len && ready->want.addr == want->addr)
			return ready;
	}
	return NULL;
}

bool sb_reader_aheads_have(struct sb_reader_aheads *aheads, const struct sb_reader_want *want)
{
	return find_ready(aheads, want);
}

const char *sb_reader_aheads_take(struct sb_reader_aheads *aheads,
				  const struct sb_reader_want *want, size_t *ret_len)
{
	struct sb_reader_ready *ready = find_ready(aheads, want);

	if (!ready)
		return NULL;
	ready->is_taken = true;
	*ret_len = ready->len;
	return ready->len ? aheads->data.s + ready->first : "";
}
