// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which stacks samples will name that have begun. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "views/skel.h"
#include "views/views.h"

/* Bytes that an iterator is asked for at a time. */
#define READ_BYTES 4096u

SB_DEFINE_CLEANUP(struct bpf_link, bpf_link__destroy)

/* The kernel may hand out half an id at the end of a read. */
static int read_ids(int fd, sb_vec_stack_id *ids)
{
	size_t nr_bytes = ids->nr * sizeof(*ids->at);
	ssize_t n;
	int err;

	for (;;) {
		err = sb_vec_reserve(ids, (nr_bytes + READ_BYTES) / sizeof(*ids->at) + 1);
		if (err)
			return err;
		n = read(fd, (char *)ids->at + nr_bytes, READ_BYTES);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		nr_bytes += (size_t)n;
	}
	ids->nr = nr_bytes / sizeof(*ids->at);
	return n < 0 ? -errno : 0;
}

int sb_pending_of_tasks(const struct bpf_program *iter, sb_vec_stack_id *ids)
{
	sb_cleanup(bpf_link__destroyp) struct bpf_link *link = bpf_program__attach_iter(iter, NULL);
	sb_cleanup(sb_closep) int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -errno;

	return fd < 0 ? fd : read_ids(fd, ids);
}

static int push_stacks(const struct sb_sample_key *key, sb_vec_stack_id *ids)
{
	int err = sb_vec_push(ids, key->kstack);

	if (!err)
		err = sb_vec_push(ids, key->ustack);
	return err ? err : sb_vec_push(ids, key->istack);
}

int sb_pending_of_map(const struct bpf_map *map, sb_vec_stack_id *ids)
{
	uint32_t next, i, nr = bpf_map__max_entries(map);
	size_t value_bytes = bpf_map__value_size(map);
	sb_cleanup(sb_freep) char *keys = calloc(nr, bpf_map__key_size(map));
	sb_cleanup(sb_freep) char *values = calloc(nr, value_bytes);
	int err = -ENOMEM;

	if (keys && values)
		err = bpf_map_lookup_batch(bpf_map__fd(map), NULL, &next, keys, values, &nr, NULL);
	/* At the end of the map there is no next entry. */
	err = err == -ENOENT ? 0 : err;
	for (i = 0; i < nr && !err; i++)
		err = push_stacks((const struct sb_sample_key *)(values + i * value_bytes), ids);
	return err;
}
