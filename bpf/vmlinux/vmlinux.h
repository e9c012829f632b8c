/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that the BPF side reads, kept by hand: each struct lists only the fields we
 * touch, CO-RE finds where they are on the running kernel. No build needs the build machine's BTF.
 * docs/kernel-surface.txt is the list that a lint test holds against the object.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

/*
 * The user registers, whose layout is UAPI (asm/ptrace.h): not relocated. The verifier wants whole
 * words of the context, while newer kernels give cs a type of 16 bits (FRED), so CO-RE would be
 * in the way.
 */
#if defined(__TARGET_ARCH_x86)
struct sb_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct sb_regs {
	u64 regs[31], sp, pc, pstate;
};
#else
#error "no register layout for this architecture"
#endif

/* UAPI (linux/bpf_perf_event.h): the context of perf_event programs. */
struct bpf_perf_event_data {
	struct sb_regs regs;
	u64 sample_period;
	u64 addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* The next four: CONFIG_UPROBES. */
struct xol_area {
	unsigned long vaddr; /* of the mapping [uprobes], which begins with the trampoline */
};

struct uprobes_state {
	struct xol_area *xol_area;
};

/* A call whose return is probed. */
struct return_instance {
	unsigned long stack;	      /* sp where the call began */
	unsigned long orig_ret_vaddr; /* the return address that the trampoline has replaced */
	struct return_instance *next; /* of the call around it */
};

struct uprobe_task {
	struct return_instance *return_instances; /* the newest one */
};

struct mm_struct {
	unsigned long exec_vm;	   /* pages of executable mappings */
	unsigned long start_code;  /* where the program begins; 0 until execve() has mapped it */
	unsigned long brk;	   /* where the heap ends */
	unsigned long start_stack; /* where the first thread's stack begins */
	struct uprobes_state uprobes_state;
};

struct kernfs_node {
	u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid;
};

typedef unsigned short umode_t;

struct file_system_type {
	const char *name;
};

struct dentry;
struct mount;

struct super_block {
	unsigned int s_dev; /* major << 20 | minor */
	unsigned long s_magic;
	struct file_system_type *s_type;
	struct dentry *s_root;
	struct mount *s_mounts; /* the newest one */
};

typedef struct {
	s64 counter;
} atomic_long_t;

struct rw_semaphore {
	atomic_long_t owner; /* the task that may write, or that read last; bits 0 to 2 are flags */
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct list_head {
	struct list_head *next;
};

/* Up to 6.17. */
struct super_block___6_17 {
	struct list_head s_mounts;
};

struct inode {
	umode_t i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_rdev;
	struct hlist_head i_dentry;
	struct rw_semaphore i_rwsem;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev; /* NULL: not in the list */
};

struct qstr {
	u64 hash_len;
	const unsigned char *name;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union {
		struct hlist_node d_alias; /* of the inode's i_dentry */
	} d_u;
};

struct super_block;

struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
};

struct mnt_namespace;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct mnt_namespace *mnt_ns; /* NULL: unmounted, but in use */
	struct mount *mnt_next_for_sb;
};

struct mount___6_17 {
	struct list_head mnt_instance; /* of the superblock's s_mounts */
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct fs_struct {
	struct path root, pwd;
};

struct file {
	unsigned int f_mode;
	unsigned int f_flags;
	long long f_pos;
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* Of a request of io_uring; since 5.19. */
struct io_cqe {
	s32 res;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	struct io_cqe cqe;
};

/* What a request of io_uring has beyond that: its first bytes, since 6.0. */
struct io_cmd_data {
	struct file *file;
};

struct io_splice {
	int splice_fd_in;
	unsigned int flags;
};

struct io_open {
	u32 file_slot; /* 0: the result is a descriptor */
};

struct sock_common {
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
};

struct socket {
	short type;
	struct sock *sk;
};

/* The user registers as CO-RE finds them, for single words of them: see struct sb_regs. */
struct pt_regs {
#if defined(__TARGET_ARCH_x86)
	unsigned long di, si, dx, ax, orig_ax, cs;
#elif defined(__TARGET_ARCH_arm64)
	u64 regs[31];
	u64 pstate;
	u64 orig_x0;
	s32 syscallno;
#endif
};

struct rq;

struct cfs_rq {
	struct rq *rq;	    /* CONFIG_FAIR_GROUP_SCHED */
	int throttle_count; /* of the cgroup and those above it; CONFIG_CFS_BANDWIDTH */
};

struct sched_entity {
	u64 sum_exec_runtime;  /* ns, up to date where a thread leaves its CPU */
	struct cfs_rq *cfs_rq; /* CONFIG_FAIR_GROUP_SCHED */
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	long unsigned int fsbase;
};
#elif defined(__TARGET_ARCH_arm64)
struct sb_thread_uw {
	long unsigned int tp_value;
};
struct thread_struct {
	struct sb_thread_uw uw;
};
#endif

#if defined(__TARGET_ARCH_x86)
/* Where variables are in the memory of each CPU. user/views/kernel_types.c makes this type; their own
 * types do not matter. */
struct sb_percpu {
	int pcpu_hot;			   /* from 6.2 to 6.14 */
	int current_task, __preempt_count; /* before and after */
	int runqueues;
};

struct pcpu_hot {
	struct task_struct *current_task;
	int preempt_count;
};
#elif defined(__TARGET_ARCH_arm64)
struct sb_preempt {
	u32 count;
};

struct thread_info {
	struct sb_preempt preempt;
};
#endif

struct signal_struct {
	struct {
		int counter;
	} live;		      /* threads of the process that have not begun to exit */
	unsigned long maxrss; /* pages, when the last of them has */
};

struct task_struct {
#if defined(__TARGET_ARCH_arm64)
	struct thread_info thread_info;
#endif
	unsigned int __state;
	void *stack; /* lowest address */
	unsigned int flags;
	int on_cpu; /* CONFIG_SMP */
	struct sched_entity se;
	bool throttled; /* since 6.18 */
	unsigned int sched_contributes_to_load : 1;
	unsigned int frozen : 1; /* CONFIG_CGROUPS */
	int exit_state;
	struct files_struct *files;
	int pid; /* of the thread */
	int tgid;
	u64 start_boottime;
	u64 self_exec_id;
	unsigned long nvcsw, nivcsw; /* voluntary switches, and others */
	int pagefault_disabled;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	const struct cred *cred;
	struct css_set *cgroups;
	struct fs_struct *fs;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct uprobe_task *utask; /* NULL: the thread came to no probe yet */
	char comm[16];
	struct thread_struct thread;
};

struct vm_area_struct {
	struct file *vm_file;
};

struct address_space {
	struct inode *host;
};

enum pageflags { PG_head };

struct page {
	unsigned long compound_head; /* bit 0: of a tail, to its head; up to 7.1 */
	struct address_space *mapping;
	unsigned long index;
	unsigned int compound_nr; /* in the first tail; up to 6.2 */
};

struct page___7_2 {
	unsigned long compound_info; /* bit 0: of a tail */
};

/* From 5.16 on, over the pages that belong together. */
struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned int _nr_pages; /* from 6.15 on */
};

struct folio___6_0 {
	unsigned int _folio_nr_pages; /* from 6.0 to 6.14 */
};

struct bio_vec {
	struct page *bv_page;
};

struct bvec_iter {
	unsigned int bi_size; /* bytes that are left */
	unsigned int bi_idx;
};

struct gendisk {
	char disk_name[32];
};

struct block_device {
	unsigned int bd_dev; /* major << 20 | minor */
	struct gendisk *bd_disk;
};

struct bdev_inode {
	struct block_device bdev;
	struct inode vfs_inode;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	u8 bi_status;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};

struct request {
	unsigned int __data_len;
	struct bio *bio;
};

struct request_queue;

struct vm_unmapped_area_info {
	unsigned long length;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task; /* NULL: after the last one */
};

#pragma clang attribute pop

#endif
