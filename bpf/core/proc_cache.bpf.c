// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the last sample of a thread found in maps about its process. It counts as long as nobody
 * has changed what these maps say about processes with such an ID (proc_changes[]), for the same
 * thread and the same program, and for one epoch: maps that evict what is not used are to see that
 * it is.
 *
 * Who changes a map counts that afterwards, and here the count is read before the map. So what is
 * remembered is never older than what a program may have that looked it up and is still running. On
 * arm64, where a plain load of the count may come after the later load of the map, an old answer
 * can be remembered beside the new count, and is trusted until the epoch, of about 1 s, ends. The
 * view "memory", which compares the count as well, trusts it for 1 ms (AGAIN_NS).
 *
 * The memory belongs to one CPU, and only programs of one kind use it, which do not interrupt one
 * another. Threads that share a place overwrite each other's record.
 */
#include "bpf/core/sb_proc_cache.bpf.h"
#include "bpf/core/sb_unwind.bpf.h"

#define CACHE_PLACES 64u /* threads for each CPU; a power of two */

/* By tgid: how often the rule, the interpreters or the list of mappings of a process changed. */
__u32 proc_changes[SB_PROC_CHANGES] = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CACHE_PLACES);
	__type(key, __u32);
	__type(value, struct sb_proc_cache);
} proc_caches SEC(".maps");

static struct sb_proc_cache *known_at(__u32 tid)
{
	__u32 place = tid % CACHE_PLACES;

	return bpf_map_lookup_elem(&proc_caches, &place);
}

__hidden struct sb_proc_cache *sb_proc_cache_begin(__u32 slot, const struct task_struct *task)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	__u32 tid = task->pid, tgid = task->tgid, exec_id = task->self_exec_id, epoch, changes;
	__u64 thread_start_ns = task->start_boottime;
	struct sb_proc_cache *known;

	if (!s || slot != SB_SCRATCH_TIMER)
		return NULL;
	known = known_at(tid);
	if (!known)
		return NULL;
	epoch = sb_unwind_epoch(s);
	changes = sb_proc_changes(tgid);
	if (known->tid == tid && known->thread_start_ns == thread_start_ns && known->tgid == tgid &&
	    known->exec_id == exec_id && known->epoch == epoch && known->changes == changes)
		return known;
	known->thread_start_ns = thread_start_ns;
	known->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	known->tgid = tgid;
	known->tid = tid;
	known->exec_id = exec_id;
	known->epoch = epoch;
	known->changes = changes;
	known->has = 0;
	return known;
}

__hidden struct sb_proc_cache *sb_proc_cache_of(__u32 slot, const struct sb_scratch *s)
{
	const struct sb_sample_key *key = &s->capture.key;
	struct sb_proc_cache *known;

	if (slot != SB_SCRATCH_TIMER)
		return NULL;
	known = known_at((__u32)bpf_get_current_pid_tgid());
	if (!known || known->start_ns != key->start_ns || known->tgid != key->tgid ||
	    known->exec_id != key->exec_id)
		return NULL;
	return known;
}

__hidden __u32 sb_proc_changes(__u32 tgid)
{
	return *(volatile __u32 *)&proc_changes[tgid % SB_PROC_CHANGES];
}

__hidden int sb_proc_cache_changed(__u32 tgid)
{
	__sync_fetch_and_add(&proc_changes[tgid % SB_PROC_CHANGES], 1);
	return 0;
}
