// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shim.h"

#include <bpf/bpf_helpers.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_MAX 32
#define CPUS_MAX 4

struct map {
	struct shim_map_def def;
	unsigned char *keys,
		*values; /* of a ring buffer: values are the records, each with a length */
	uint32_t nr, cap;
	uint32_t nr_bytes, read_at, nr_wakeups; /* of a ring buffer */
};

struct shim shim;
static struct map maps[MAPS_MAX];
static uint32_t nr_maps;

void shim_reset(void)
{
	while (nr_maps) {
		struct map *map = &maps[--nr_maps];

		free(map->keys);
		free(map->values);
		*map = (struct map){};
	}
	memset(&shim, 0, sizeof(shim));
}

static bool is_array(const struct map *map)
{
	return map->def.type == BPF_MAP_TYPE_ARRAY || map->def.type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	       map->def.type == BPF_MAP_TYPE_ARRAY_OF_MAPS;
}

void shim_map_add(struct shim_map_def def)
{
	struct map *map = &maps[nr_maps];

	if (nr_maps++ == MAPS_MAX)
		abort();
	map->def = def;
	if (def.type == BPF_MAP_TYPE_RINGBUF) {
		map->values = calloc(1, def.entries_max);
		return;
	}
	map->cap = def.entries_max * (def.type == BPF_MAP_TYPE_PERCPU_ARRAY ? CPUS_MAX : 1);
	map->keys = calloc(map->cap, def.key_bytes);
	map->values = calloc(map->cap, def.value_bytes);
}

static struct map *find_map(const void *id)
{
	uint32_t i;

	for (i = 0; i < nr_maps; i++)
		if (maps[i].def.map == id)
			return &maps[i];
	abort(); /* the test has not registered it */
}

uint32_t shim_map_nr(const void *map)
{
	return find_map(map)->nr;
}

static void *value_at(const struct map *map, uint32_t at)
{
	return map->values + (size_t)at * map->def.value_bytes;
}

static void *key_at(const struct map *map, uint32_t at)
{
	return map->keys + (size_t)at * map->def.key_bytes;
}

void shim_map_at(const void *id, uint32_t at, void *ret_key, void *ret_value)
{
	const struct map *map = find_map(id);

	if (at >= map->nr)
		abort();
	memcpy(ret_key, key_at(map, at), map->def.key_bytes);
	memcpy(ret_value, value_at(map, at), map->def.value_bytes);
}

/* Return: the index of a key in a hash map, map->nr when it is not there. */
static uint32_t find_key(const struct map *map, const void *key)
{
	uint32_t at;

	for (at = 0; at < map->nr; at++)
		if (!memcmp(key_at(map, at), key, map->def.key_bytes))
			break;
	return at;
}

void shim_map_clear(const void *id)
{
	struct map *map = find_map(id);

	if (is_array(map))
		memset(map->values, 0, (size_t)map->cap * map->def.value_bytes);
	map->nr = map->nr_bytes = map->read_at = map->nr_wakeups = 0;
}

void shim_set_inner(const void *id, uint32_t at, const void *inner)
{
	*(const void **)value_at(find_map(id), at) = inner;
}

void *bpf_map_lookup_elem(void *id, const void *key)
{
	struct map *map = find_map(id);
	uint32_t at;

	if (is_array(map)) {
		at = *(const uint32_t *)key;
		if (at >= map->def.entries_max)
			return NULL;
		if (map->def.type == BPF_MAP_TYPE_PERCPU_ARRAY)
			at += shim.cpu * map->def.entries_max;
		if (map->def.type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
			return *(void **)value_at(map, at);
		return value_at(map, at);
	}
	at = find_key(map, key);
	return at < map->nr ? value_at(map, at) : NULL;
}

long bpf_map_update_elem(void *id, const void *key, const void *value, __u64 flags)
{
	struct map *map = find_map(id);
	uint32_t at;

	if (id == shim.fail_map)
		return shim.fail_err;
	if (is_array(map))
		abort(); /* BPF code of ours never does */
	at = find_key(map, key);
	if (at < map->nr && flags == BPF_NOEXIST)
		return -EEXIST;
	if (at == map->nr && flags == BPF_EXIST)
		return -ENOENT;
	if (at == map->cap)
		return -E2BIG;
	if (at == map->nr) {
		memcpy(key_at(map, at), key, map->def.key_bytes);
		map->nr++;
	}
	memcpy(value_at(map, at), value, map->def.value_bytes);
	return 0;
}

long bpf_map_delete_elem(void *id, const void *key)
{
	struct map *map = find_map(id);
	uint32_t at = find_key(map, key);

	if (at == map->nr)
		return -ENOENT;
	map->nr--;
	memcpy(key_at(map, at), key_at(map, map->nr), map->def.key_bytes);
	memcpy(value_at(map, at), value_at(map, map->nr), map->def.value_bytes);
	return 0;
}

int shim_has_fields = 1;

long bpf_for_each_map_elem(void *id, void *callback, void *ctx, __u64 flags)
{
	long (*fn)(void *map, const void *key, void *value, void *ctx) = callback;
	struct map *map = find_map(id);
	uint32_t nr = map->nr, i;

	/* From the end, because @fn may delete the element: then the last one takes its place. */
	for (i = nr; i > 0; i--)
		if (fn(id, key_at(map, i - 1), value_at(map, i - 1), ctx))
			return nr - i + 1;
	return nr;
}

void *bpf_task_storage_get(void *id, struct task_struct *task, void *value, __u64 flags)
{
	struct map *map = find_map(id);
	uint32_t at = find_key(map, &task);

	if (at < map->nr)
		return value_at(map, at);
	if (!(flags & BPF_LOCAL_STORAGE_GET_F_CREATE) || id == shim.fail_map || at == map->cap)
		return NULL;
	memcpy(key_at(map, at), &task, sizeof(task));
	memset(value_at(map, at), 0, map->def.value_bytes);
	if (value)
		memcpy(value_at(map, at), value, map->def.value_bytes);
	map->nr++;
	if (shim.on_storage_made)
		shim.on_storage_made(task);
	return value_at(map, at);
}

long bpf_task_storage_delete(void *id, struct task_struct *task)
{
	return bpf_map_delete_elem(id, &task);
}

long bpf_seq_write(struct seq_file *seq, const void *data, __u32 size)
{
	if (!shim.seq_err)
		shim.seq_bytes += size;
	return shim.seq_err;
}

__u32 bpf_get_prandom_u32(void)
{
	static uint32_t state = 1;

	/* Marsaglia 2003, xorshift32: all bits are of use. */
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

long bpf_perf_prog_read_value(struct bpf_perf_event_data *ctx, struct bpf_perf_event_value *buf,
			      __u32 buf_size)
{
	*buf = (struct bpf_perf_event_value){ .counter = shim.counter };
	return 0;
}

long bpf_tail_call(void *ctx, void *map, __u32 at)
{
	return -ENOENT;
}

__u64 bpf_get_attach_cookie(void *ctx)
{
	return shim.attach_cookie;
}

__u64 bpf_get_current_pid_tgid(void)
{
	return shim.pid_tgid;
}

__u64 bpf_get_current_uid_gid(void)
{
	return shim.uid_gid;
}

__u64 bpf_get_current_cgroup_id(void)
{
	return shim.cgroup_id;
}

long bpf_get_current_comm(void *buf, __u32 size)
{
	memset(buf, 0, size);
	memcpy(buf, shim.comm, size < sizeof(shim.comm) ? size : sizeof(shim.comm));
	((char *)buf)[size - 1] = '\0';
	return 0;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return shim.task;
}

long bpf_task_pt_regs(struct task_struct *task)
{
	return task == shim.task ? (long)shim.task_regs : 0;
}

long bpf_current_task_under_cgroup(void *id, __u32 index)
{
	find_map(id);
	return index < SHIM_CGROUPS_MAX ? shim.is_in_cgroup[index] : -E2BIG;
}

__u32 bpf_get_smp_processor_id(void)
{
	return shim.cpu;
}

__u64 bpf_ktime_get_ns(void)
{
	return shim.now_ns++;
}

/* Since it booted, this machine has not been suspended. */
__u64 bpf_ktime_get_boot_ns(void)
{
	return shim.now_ns;
}

long bpf_get_stack(void *ctx, void *buf, __u32 size, __u64 flags)
{
	long nr_bytes = shim.kstack_bytes;

	if (nr_bytes > (long)size)
		nr_bytes = size;
	if (nr_bytes > 0)
		memcpy(buf, shim.kstack, (size_t)nr_bytes);
	return nr_bytes;
}

long bpf_get_task_stack(struct task_struct *task, void *buf, __u32 size, __u64 flags)
{
	return bpf_get_stack(task, buf, size, flags);
}

long bpf_probe_read_user(void *dst, __u32 size, const void *addr)
{
	uint64_t at = (uintptr_t)addr - shim.user_addr;

	if (shim.user_read) {
		if (!shim.user_read(dst, size, (uintptr_t)addr))
			return 0;
		memset(dst, 0, size);
		return -EFAULT;
	}
	/* As the kernel does: what could not be read is zero. */
	if (at > shim.user_bytes || shim.user_bytes - at < size) {
		memset(dst, 0, size);
		return -EFAULT;
	}
	memcpy(dst, (const char *)shim.user_mem + at, size);
	return 0;
}

long bpf_probe_read_kernel(void *dst, __u32 size, const void *addr)
{
	if (!addr) {
		memset(dst, 0, size);
		return -EFAULT;
	}
	memcpy(dst, addr, size);
	return 0;
}

long bpf_probe_read_kernel_str(void *dst, __u32 size, const void *addr)
{
	size_t len;

	if (!addr)
		return -EFAULT;
	len = strnlen(addr, size - 1);
	memcpy(dst, addr, len);
	((char *)dst)[len] = '\0';
	return (long)len + 1;
}

/* Each record behind its length, aligned to 8. What was read makes no room again. */
static uint32_t record_bytes(uint64_t len)
{
	return (uint32_t)(sizeof(len) + ((len + 7) & ~7ull));
}

long bpf_ringbuf_output(void *id, void *data, __u64 size, __u64 flags)
{
	struct map *map = find_map(id);

	if (size > map->def.entries_max ||
	    map->def.entries_max - map->nr_bytes < record_bytes(size))
		return -EAGAIN;
	memcpy(map->values + map->nr_bytes, &size, sizeof(size));
	memcpy(map->values + map->nr_bytes + sizeof(size), data, size);
	map->nr_bytes += record_bytes(size);
	map->nr_wakeups += flags == BPF_RB_FORCE_WAKEUP;
	return 0;
}

__u64 bpf_ringbuf_query(void *id, __u64 flags)
{
	struct map *map = find_map(id);

	return flags == BPF_RB_AVAIL_DATA ? map->nr_bytes - map->read_at : map->def.entries_max;
}

const void *shim_ring_next(const void *id, uint32_t *ret_bytes)
{
	struct map *map = find_map(id);
	const void *record;
	uint64_t len;

	if (map->read_at == map->nr_bytes)
		return NULL;
	memcpy(&len, map->values + map->read_at, sizeof(len));
	record = map->values + map->read_at + sizeof(len);
	map->read_at += record_bytes(len);
	*ret_bytes = (uint32_t)len;
	return record;
}

uint32_t shim_ring_nr_wakeups(const void *id)
{
	return find_map(id)->nr_wakeups;
}
