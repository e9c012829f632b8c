/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For all layers of the view "io": files as objects. Implemented in views/io_file.bpf.c, for BPF
 * programs; the current task is the one that does the I/O. No pointer may be NULL. Kernel addresses
 * are passed as numbers, because the functions are global: the verifier examines each once. They
 * are used during the call only, and no reference is taken or needed: memory that is gone reads as
 * 0.
 * @slot: enum sb_scratch_slot of the calling program, in which the description of a new file is
 * made.
 *
 * An object is a 64-bit ID of a file, for sb_sample_key.object. Its description (path, kind,
 * device) is sent to user space once, when the ID is new. If the ring is full, that is counted
 * (SB_STAT_OBJECT_FULL), and the next sample tries again. The filters of files are --kind, --fs,
 * --dev and --inode.
 *
 * sb_io_file(), sb_io_inode() and sb_io_device() return the object, whether it was shipped or not,
 * which is neither 0 nor SB_IO_UNWANTED; 0: the address is 0, and there is no filter of files;
 * SB_IO_UNWANTED: the filters or --path leave the file out, or the address is 0 and there is a
 * filter of files: the caller takes no sample, and counts that (SB_STAT_OTHER_STATE).
 *
 * Order at the end of a call: sb_begin(); sb_io_lasts(); sb_io_weight(), and sb_thin() of it; the
 * objects; sb_take_stacks(); sb_io_account(). A call of io_uring has its capture already.
 */
#ifndef SB_IO_BPF_H
#define SB_IO_BPF_H

#include "vmlinux.h"

#include "bpf/abi/sb_abi_io.h"
#include "bpf/core/sb_sample.bpf.h"

extern const volatile __u32 cfg_io_weight; /* enum sb_io_weight; of io.bpf.c */

/* <linux/stat.h> */
#define S_IFMT	       0170000
#define S_IFBLK	       0060000

/*
 * Returned in place of an object for a file that --kind, --fs, --dev or --inode leave out, or whose
 * path user space found to be left out by --path: take no sample.
 */
#define SB_IO_UNWANTED 1ull

/* Return: the object of @file, a struct file *, which may be 0 or stale; 0 or SB_IO_UNWANTED, see
 * the top. */
__u64 sb_io_file(__u64 file, __u32 slot);

/*
 * Find the object of a struct inode, where there is no struct file. @dentry: a struct dentry of it,
 * which gives the path; 0: none. The path is the one below the mount of the file system that the
 * current task sees; if there is none, it begins at the root of the file system (SB_FILE_NO_MOUNT).
 * Return: the object; 0 or SB_IO_UNWANTED, see the top.
 */
__u64 sb_io_inode(__u64 inode, __u64 dentry, __u32 slot);

/* Return: the object of the disk of @bdev, a struct block_device: "/dev/vda"; 0 or SB_IO_UNWANTED,
 * see the top. --fs and --inode leave out every disk. */
__u64 sb_io_device(__u64 bdev, __u32 slot);

/*
 * Return: whether --kind, --fs, --dev or --inode is given, so that calls without a file are left
 * out. --path does not count: user space applies it to the objects.
 */
bool sb_io_is_filtered(void);

/*
 * Return: the file (struct file *) behind descriptor @fd of @task, of which no reference is taken;
 * 0: none. Pointers of types that BTF knows are followed, not read by copy, because this runs for
 * each call; so @task must be such a pointer (bpf_get_current_task_btf()).
 */
static __always_inline __u64 sb_io_file_of_fd(const struct task_struct *task, __u64 fd)
{
	const struct fdtable *table = task->files->fdt;
	struct file *file = NULL;

	if (fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return (__u64)file;
}

/* The file that was read from and the one that was written to. */
struct sb_io_objects {
	__u64 in, out; /* objects; 0: no file; SB_IO_UNWANTED: no sample */
};

/*
 * Return: the weight of a call that moved @result bytes (not negative) and took @ns nanoseconds, in
 * the unit that --weight asks for: bytes, nanoseconds, or calls (1).
 */
static __always_inline __u64 sb_io_weight(__u64 ns, long result)
{
	return cfg_io_weight == SB_IO_BYTES	? (__u64)result
	       : cfg_io_weight == SB_IO_LATENCY ? ns
						: 1;
}

/*
 * Account a call: @weight, of sb_io_weight(), thinned or not, for the file read from and the one
 * written to.
 * Latency and count are accounted once, even if the call has two files: for the file read from, or,
 * if that is SB_IO_UNWANTED, for the file written to. Overwrites @capture->key.object, whose other
 * fields the caller has set; losses are counted by sb_account().
 */
static __always_inline void sb_io_account(struct sb_capture *capture,
					  const struct sb_io_objects *about, __u64 weight)
{
	if (about->in != SB_IO_UNWANTED) {
		capture->key.object = about->in;
		sb_account(capture, weight);
		if (cfg_io_weight != SB_IO_BYTES)
			return;
	}
	if (about->out != SB_IO_UNWANTED) {
		capture->key.object = about->out;
		sb_account(capture, weight);
	}
}

/*
 * Return: whether a duration of @ns is within --min and --max, both included, as far as they were
 * given. If not, the caller takes no sample, and that is counted here (SB_STAT_UNDER_MIN,
 * SB_STAT_OVER_MAX); so call it once per call, after sb_begin() accepted it.
 */
bool sb_io_lasts(__u64 ns);

#endif
