/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel as BPF code sees it, for tests that compile BPF code for the host (with sanitizers, a
 * debugger, and every branch within reach): the machine's state is a struct that the test fills in,
 * maps are registered by the test and behave as the kernel's do, error numbers included.
 */
#ifndef SHIM_H
#define SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHIM_CGROUPS_MAX 16

struct task_struct;

struct shim {
	uint64_t pid_tgid, uid_gid, cgroup_id;
	uint32_t cpu;
	char comm[16];
	uint64_t counter; /* what the event of a perf_event program has counted */
	uint64_t now_ns;  /* each look at the clock moves it on by 1 ns */
	void *task;	  /* struct task_struct */
	void *task_regs;  /* struct sb_regs */
	bool is_in_cgroup[SHIM_CGROUPS_MAX];

	uint64_t attach_cookie;

	/* The memory of the process: one region. What is outside of it faults. */
	uint64_t user_addr;
	const void *user_mem;
	size_t user_bytes;
	/* Instead of that region, if it is set. Return: 0 or -EFAULT. */
	int (*user_read)(void *dst, uint32_t size, uint64_t addr);

	/* What bpf_get_stack() gives: bytes, or a negative errno. */
	const uint64_t *kstack;
	long kstack_bytes;

	/* The output of an iterator: how much was written, and what the next write gives. */
	size_t seq_bytes;
	long seq_err;

	/* What happens on other CPUs when a task has just got its storage; NULL: nothing. */
	void (*on_storage_made)(struct task_struct *task);

	const void *fail_map; /* updates of this map fail with fail_err */
	long fail_err;
};
extern struct shim shim;

/* Forget all maps, records and settings. */
void shim_reset(void);

struct shim_map_def {
	const void *map;
	uint32_t type, key_bytes, value_bytes, entries_max;
};
void shim_map_add(struct shim_map_def def);

/* Make a map known, as its definition in the BPF source has it. */
#define SHIM_UINT(map_, field) ((uint32_t)(sizeof(*(map_).field) / sizeof(int)))
#define SHIM_MAP(map_)                                                                           \
	shim_map_add((struct shim_map_def){ &(map_), SHIM_UINT(map_, type), sizeof(*(map_).key), \
					    sizeof(*(map_).value), SHIM_UINT(map_, max_entries) })
/* The same for maps whose definition gives sizes, not types. */
#define SHIM_MAP_OF_BYTES(map_, entries_max_)                               \
	shim_map_add((struct shim_map_def){ &(map_), SHIM_UINT(map_, type), \
					    SHIM_UINT(map_, key_size),      \
					    SHIM_UINT(map_, value_size), (entries_max_) })
#define SHIM_TASK_STORAGE(map_)                                                             \
	shim_map_add((struct shim_map_def){ &(map_), SHIM_UINT(map_, type), sizeof(void *), \
					    sizeof(*(map_).value), 16 })
#define SHIM_MAP_OF_MAPS(map_)                                                                   \
	shim_map_add((struct shim_map_def){ &(map_), SHIM_UINT(map_, type), sizeof(*(map_).key), \
					    sizeof(void *), SHIM_UINT(map_, max_entries) })
#define SHIM_RING(map_, bytes_) \
	shim_map_add((struct shim_map_def){ &(map_), SHIM_UINT(map_, type), 0, 0, (bytes_) })

/* Empty a map; of an array, each element is zero. */
void shim_map_clear(const void *map);
/* Put @inner into slot @at of a map of maps, as user space does. */
void shim_set_inner(const void *map, uint32_t at, const void *inner);
/* Return: how many entries a hash map holds. */
uint32_t shim_map_nr(const void *map);
/* Copy the entry at @at of a hash map: 0 to shim_map_nr() - 1. */
void shim_map_at(const void *map, uint32_t at, void *ret_key, void *ret_value);

/* Return: the next record of a ring buffer and its size, valid until shim_reset(); NULL: none. */
const void *shim_ring_next(const void *map, uint32_t *ret_bytes);
/* Return: how many records asked for a wake-up. */
uint32_t shim_ring_nr_wakeups(const void *map);

#endif
