// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lists the stacks that pending samples reference. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "views/skel.h"
#include "views/views.h"

int sb_pending_of_tasks(const struct bpf_program *iter, sb_vec_stack_id *ids)
{
	struct sb_str bytes = {};
	int err = sb_iter_run(iter, &bytes);
	size_t nr = bytes.len / sizeof(*ids->at);

	err = err ?: sb_vec_reserve(ids, ids->nr + nr);
	if (!err && nr) {
		memcpy(ids->at + ids->nr, bytes.s, nr * sizeof(*ids->at));
		ids->nr += nr;
	}
	sb_str_release(&bytes);
	return err;
}

static int push_stacks(const struct sb_sample_key *key, sb_vec_stack_id *ids)
{
	int err = sb_vec_push(ids, key->kstack);

	if (!err)
		err = sb_vec_push(ids, key->ustack);
	return err ? err : sb_vec_push(ids, key->istack);
}

int sb_map_each(const struct bpf_map *map,
		int (*each)(void *arg, const void *key, const void *value), void *arg)
{
	uint32_t next, i, nr = bpf_map__max_entries(map);
	const size_t key_bytes = bpf_map__key_size(map), value_bytes = bpf_map__value_size(map);
	sb_cleanup(sb_freep) char *keys = calloc(nr, key_bytes);
	sb_cleanup(sb_freep) char *values = calloc(nr, value_bytes);
	int err = -ENOMEM;

	if (keys && values)
		err = bpf_map_lookup_batch(bpf_map__fd(map), NULL, &next, keys, values, &nr, NULL);
	/* ENOENT says that the end of the map was reached. */
	err = err == -ENOENT ? 0 : err;
	for (i = 0; i < nr && !err; i++)
		err = each(arg, keys + i * key_bytes, values + i * value_bytes);
	return err;
}

static int push_pending(void *arg, const void *key, const void *value)
{
	(void)key;
	return push_stacks(value, arg);
}

int sb_pending_of_map(const struct bpf_map *map, sb_vec_stack_id *ids)
{
	return sb_map_each(map, push_pending, ids);
}
