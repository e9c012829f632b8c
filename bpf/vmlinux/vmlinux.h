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

struct mm_struct {
	unsigned long exec_vm; /* pages of executable mappings */
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

struct super_block {
	unsigned int s_dev; /* major << 20 | minor */
	unsigned long s_magic;
	struct file_system_type *s_type;
};

struct inode {
	umode_t i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_rdev;
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
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mnt_namespace;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct mnt_namespace *mnt_ns; /* NULL: unmounted, but in use */
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
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

struct cfs_rq {
	int throttle_count; /* of the cgroup and those above it; CONFIG_CFS_BANDWIDTH */
};

struct sched_entity {
	struct cfs_rq *cfs_rq; /* CONFIG_FAIR_GROUP_SCHED */
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int on_cpu; /* CONFIG_SMP */
	struct sched_entity se;
	bool throttled; /* since 6.18 */
	unsigned int sched_contributes_to_load : 1;
	int exit_state;
	struct files_struct *files;
	int pid; /* of the thread */
	int tgid;
	u64 start_boottime;
	u64 self_exec_id;
	unsigned long nvcsw, nivcsw; /* voluntary switches, and others */
	struct mm_struct *mm;
	struct task_struct *group_leader;
	const struct cred *cred;
	struct css_set *cgroups;
	char comm[16];
};

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
