/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* In the place of libbpf's header of this name: helpers are ordinary functions, see shim.c. */
#ifndef __BPF_HELPERS__ /* libbpf's guard: its header is pulled in by bpf_tracing.h, and must not */
#define __BPF_HELPERS__

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#define SEC(name)
#define __uint(name, val)  int(*name)[val]
#define __type(name, val)  typeof(val) *name
#define __array(name, val) typeof(val) *name[]

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline	__attribute__((noinline))
#define __weak		__attribute__((weak))
#define __hidden	__attribute__((visibility("hidden")))

struct task_struct;
struct seq_file;

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
long bpf_for_each_map_elem(void *map, void *callback, void *ctx, __u64 flags);

void *bpf_task_storage_get(void *map, struct task_struct *task, void *value, __u64 flags);
long bpf_task_storage_delete(void *map, struct task_struct *task);

__u64 bpf_get_attach_cookie(void *ctx);
__u64 bpf_get_current_pid_tgid(void);
__u64 bpf_get_current_uid_gid(void);
__u64 bpf_get_current_cgroup_id(void);
long bpf_get_current_comm(void *buf, __u32 size);
struct task_struct *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(struct task_struct *task);
long bpf_current_task_under_cgroup(void *map, __u32 index);
__u32 bpf_get_smp_processor_id(void);
__u64 bpf_ktime_get_ns(void);
__u64 bpf_ktime_get_boot_ns(void);
__u32 bpf_get_prandom_u32(void);
struct bpf_perf_event_data;
struct bpf_perf_event_value;
long bpf_perf_prog_read_value(struct bpf_perf_event_data *ctx, struct bpf_perf_event_value *buf,
			      __u32 buf_size);
/* The map has no program: it returns, and the caller goes on. */
long bpf_tail_call(void *ctx, void *map, __u32 at);

long bpf_get_stack(void *ctx, void *buf, __u32 size, __u64 flags);
long bpf_get_task_stack(struct task_struct *task, void *buf, __u32 size, __u64 flags);
long bpf_probe_read_user(void *dst, __u32 size, const void *addr);
long bpf_probe_read_kernel_str(void *dst, __u32 size, const void *addr);
long bpf_probe_read_kernel(void *dst, __u32 size, const void *addr);

long bpf_ringbuf_output(void *ringbuf, void *data, __u64 size, __u64 flags);
__u64 bpf_ringbuf_query(void *ringbuf, __u64 flags);

long bpf_seq_write(struct seq_file *seq, const void *data, __u32 size);

#endif
