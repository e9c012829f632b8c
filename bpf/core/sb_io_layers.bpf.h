/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the layers of "io" below the system call: which call an event belongs to, and which file it
 * is about. Everything here refers to the current task and runs in BPF programs of SB_SCRATCH_CALL.
 * Kernel addresses are passed as numbers; what is returned as one is borrowed, no reference is
 * taken, and it may be stale, so it is read by copy only; memory that cannot be read counts as 0. A
 * task that is in no system call, a thread of the kernel, and a 32-bit program have no system call
 * in progress. Implemented in views/io_layers.bpf.c.
 *
 * Order: sb_io_layer_wants(); sb_io_layer_capture(); sb_io_layer_object(); sb_account(), now or of
 * a copy later.
 */
#ifndef SB_IO_LAYERS_BPF_H
#define SB_IO_LAYERS_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_io.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Set by user/views/io_layers.c. */
extern const volatile __u32 cfg_layer_page_bytes;

/* The capturing programs. Each remembers its last capture, for further events of the same call. */
enum sb_io_event { SB_IO_EVENT_CACHE, SB_IO_EVENT_DIRTY, SB_IO_EVENT_BLOCK, SB_IO_EVENT_MAX };

/* The last capture on this CPU. */
struct sb_io_captured {
	struct sb_capture capture;
	__u64 call;   /* hash that identifies the call or page fault; 0: not known */
	__u64 object; /* the object of @inode; 0: not looked up yet */
	__u64 inode;
	__u64 seen_ns; /* time of its last event */
};

/*
 * Return: whether the user asked for this direction (one of SB_IO_READ, SB_IO_WRITE,
 * SB_IO_NEITHER). NEITHER is never asked for when samples are weighed by bytes.
 */
bool sb_io_layer_wants(__u32 dir);

/*
 * Capture the current task with its kernel stack and its user stack, in SB_SCRATCH_CALL. The events
 * of one system call or page fault that follow one another within 20 us share a capture, unless
 * events of another task on this CPU come in between. Nothing is accounted: the caller passes the
 * capture to sb_account(), or keeps a copy of it to account that later.
 * @ctx: the program's context, for bpf_get_stack(); not NULL
 * @event: enum sb_io_event, the calling program
 * @ret_captured: valid until the next capture of this @event on this CPU. The caller sets
 *	capture.key.object, op and log2_ns each time; `object` and `inode` are the caller's cache of
 *	the last look-up, 0 in a new capture. The time of the capture, capture.now_ns, is that of
 *	the first event; seen_ns is that of this one.
 *
 * Return: 0; -ENOENT when the task is not asked for or is the idle task, is in no span, or the run
 * is over: *@ret_captured means nothing.
 */
int sb_io_layer_capture(void *ctx, __u32 event, struct sb_io_captured **ret_captured);

/*
 * Return: the file (struct file *) behind one of the first three arguments of the system call in
 * progress, taken for descriptors, whose inode is @inode (struct inode *); 0: none, or no system
 * call.
 */
__u64 sb_io_call_file(__u64 inode);

/*
 * Take the first argument of the system call in progress for a descriptor. Return: the file (struct
 * file *) that is open there, if it is open for direct I/O; 0: it is not, or no system call is in
 * progress.
 */
__u64 sb_io_direct_file(void);

/*
 * Get the bytes [*ret_begin, *ret_end) of @file (struct file *, not 0) that the system call in
 * progress wants to read, which may be beyond the end of the file. @file is the one that it reads
 * from, as sb_io_call_file() returns it, which is not checked. Return: 0; -ENOENT: there is no
 * call, or it is not read() or pread(), whose range is in registers; the out-parameters are
 * unchanged.
 */
int sb_io_call_range(__u64 file, __u64 *ret_begin, __u64 *ret_end);

/*
 * Return: the struct inode whose page cache @page (struct page *, head or tail of a folio) belongs
 * to; 0: @page is 0, or anonymous memory.
 */
__u64 sb_io_inode_of_page(__u64 page);

/* Return: a struct dentry of the inode, the newest one if there are several; 0: none, or @inode is
 * NULL. */
static __always_inline __u64 sb_io_entry_of(const struct inode *inode)
{
	__u64 alias;

	if (!bpf_core_field_exists(struct dentry, d_u.d_alias))
		return 0;
	alias = (__u64)BPF_CORE_READ(inode, i_dentry.first);
	return alias ? alias - bpf_core_field_offset(struct dentry, d_u.d_alias) : 0;
}

/* Return: whether the inode (struct inode *) is that of a block device; false for 0 and for memory
 * that cannot be read. A stale @inode may give either answer. */
static __always_inline bool sb_io_is_block_device(__u64 inode)
{
	return (BPF_CORE_READ((const struct inode *)inode, i_mode) & S_IFMT) == S_IFBLK;
}

/*
 * Return: the struct block_device whose page cache this inode is; 0: @inode is 0 or of no block
 * device, or the layout of the kernel's struct bdev_inode is not known. An entry in /dev has an
 * inode of its own, without a page cache; it must not be passed, which is not checked.
 */
static __always_inline __u64 sb_io_device_of_inode(__u64 inode)
{
	if (!sb_io_is_block_device(inode) || !bpf_core_field_exists(struct bdev_inode, vfs_inode))
		return 0;
	return inode - bpf_core_field_offset(struct bdev_inode, vfs_inode) +
	       bpf_core_field_offset(struct bdev_inode, bdev);
}

/*
 * Find the object (ID for sb_sample_key.object) of a struct inode. If an argument of the system
 * call in progress is a file with this inode, its path is that file's; the inode of a block device
 * stands for its disk; otherwise it is found as by sb_io_inode(). Inlined, because calls may be
 * eight deep. @slot: enum sb_scratch_slot of the calling program.
 * Return: the object; 0 or SB_IO_UNWANTED, see the top of sb_io.bpf.h.
 */
static __always_inline __u64 sb_io_layer_object(__u64 inode, __u32 slot)
{
	__u64 file = sb_io_call_file(inode), bdev;

	if (file)
		return sb_io_file(file, slot);
	bdev = sb_io_device_of_inode(inode);
	if (bdev)
		return sb_io_device(bdev, slot);
	return sb_io_inode(inode, sb_io_entry_of((void *)inode), slot);
}

#endif
