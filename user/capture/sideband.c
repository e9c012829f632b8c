// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

/* struct sample_id at the end of every record, for the sample_type below. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
};

/* PERF_RECORD_MMAP2, behind the header. */
struct mmap2_body {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		};
		struct {
			uint8_t build_id_size;
			uint8_t reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t prot, flags;
	char path[];
};

/* PERF_RECORD_FORK and EXIT. */
struct task_body {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

struct comm_body {
	uint32_t pid, tid;
	char comm[];
};

struct lost_body {
	uint64_t id, nr_lost;
};

void sb_sideband_attr(struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.build_id = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = SB_SIDEBAND_WAKE_BYTES,
	};
}

static int decode_mmap(const struct perf_event_header *record, const void *body, size_t len,
		       struct sb_sideband *ret)
{
	const struct mmap2_body *map = body;

	if (len <= sizeof(*map) || !memchr(map->path, '\0', len - sizeof(*map)))
		return -EBADMSG;
	ret->kind = SB_SIDEBAND_MMAP;
	ret->tgid = map->pid;
	ret->map = (struct sb_sym_mmap){
		.time_ns = ret->time_ns,
		.tgid = map->pid,
		.addr = map->addr,
		.len = map->len,
		.pgoff = map->pgoff,
		.path = map->path,
		.fd = -1,
	};
	if (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		if (map->build_id_size > SB_BUILD_ID_MAX)
			return -EBADMSG;
		ret->map.build_id_bytes = map->build_id_size;
		memcpy(ret->map.build_id, map->build_id, map->build_id_size);
	} else {
		ret->map.maj = map->maj;
		ret->map.min = map->min;
		ret->map.ino = map->ino;
		ret->map.ino_generation = map->ino_generation;
	}
	return 1;
}

static int decode_task(const struct perf_event_header *record, const void *body, size_t len,
		       struct sb_sideband *ret)
{
	const struct task_body *task = body;
	bool is_fork = record->type == PERF_RECORD_FORK;

	if (len < sizeof(*task))
		return -EBADMSG;
	if (is_fork ? task->pid == task->ppid : task->pid != task->tid)
		return 0; /* a thread */
	ret->kind = is_fork ? SB_SIDEBAND_FORK : SB_SIDEBAND_EXIT;
	ret->tgid = task->pid;
	ret->parent_tgid = task->ppid;
	return 1;
}

static int decode_comm(const struct perf_event_header *record, const void *body, size_t len,
		       struct sb_sideband *ret)
{
	const struct comm_body *comm = body;

	if (len < sizeof(*comm))
		return -EBADMSG;
	if (!(record->misc & PERF_RECORD_MISC_COMM_EXEC))
		return 0; /* only a new name */
	ret->kind = SB_SIDEBAND_EXEC;
	ret->tgid = comm->pid;
	return 1;
}

static int decode_lost(const void *body, size_t len, struct sb_sideband *ret)
{
	const struct lost_body *lost = body;

	if (len < sizeof(*lost))
		return -EBADMSG;
	ret->kind = SB_SIDEBAND_LOST;
	ret->nr_lost = lost->nr_lost;
	return 1;
}

bool sb_sideband_is_mmap(const struct perf_event_header *record, uint32_t *ret_tgid,
			 uint64_t *ret_time_ns)
{
	const char *body = (const char *)(record + 1);
	struct sample_id id;

	if (record->type != PERF_RECORD_MMAP2 ||
	    record->size < sizeof(*record) + sizeof(struct mmap2_body) + sizeof(id))
		return false;
	memcpy(ret_tgid, body + offsetof(struct mmap2_body, pid), sizeof(*ret_tgid));
	memcpy(&id, body + record->size - sizeof(*record) - sizeof(id), sizeof(id));
	*ret_time_ns = id.time_ns;
	return true;
}

bool sb_sideband_tgid(const struct perf_event_header *record, uint32_t *ret_tgid)
{
	switch (record->type) {
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_COMM:
		break;
	default:
		return false;
	}
	if (record->size < sizeof(*record) + sizeof(*ret_tgid))
		return false;
	memcpy(ret_tgid, record + 1, sizeof(*ret_tgid));
	return true;
}

int sb_sideband_decode(const struct perf_event_header *record, struct sb_sideband *ret)
{
	const char *body = (const char *)(record + 1);
	struct sample_id id;
	size_t len;

	if (record->size < sizeof(*record) + sizeof(id))
		return -EBADMSG;
	len = record->size - sizeof(*record) - sizeof(id);
	memcpy(&id, body + len, sizeof(id));
	memset(ret, 0, sizeof(*ret));
	ret->time_ns = id.time_ns;
	ret->map.fd = -1;
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		return decode_mmap(record, body, len, ret);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return decode_task(record, body, len, ret);
	case PERF_RECORD_COMM:
		return decode_comm(record, body, len, ret);
	case PERF_RECORD_LOST:
		return decode_lost(body, len, ret);
	default:
		return 0;
	}
}
