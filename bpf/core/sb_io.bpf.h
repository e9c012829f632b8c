/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For all layers of the view "io": files as objects. Implemented in views/io_file.bpf.c. The
 * functions take addresses as numbers, because they are global: the verifier examines each once.
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

/* Returned for a file that --kind, --path and the like leave out: its sample is not wanted. */
#define SB_IO_UNWANTED 1ull

/*
 * Find the object (sb_sample_key.object) of @file, a struct file *, which may be 0 or stale. A new
 * object is shipped. @slot: enum sb_scratch_slot of the calling program.
 * Return: the object; 0: there is no file, and no filter that needs one; SB_IO_UNWANTED.
 */
__u64 sb_io_file(__u64 file, __u32 slot);

/*
 * The same where there is no struct file, only an inode, and a dentry of it or 0. The path is the
 * one below the mount of the file system that the current task sees; if there is none, it begins
 * at the root of the file system (SB_FILE_NO_MOUNT). Return: as above.
 */
__u64 sb_io_inode(__u64 inode, __u64 dentry, __u32 slot);

/* The same for the disk of a struct block_device: "/dev/vda". Return: as above. */
__u64 sb_io_device(__u64 bdev, __u32 slot);

/*
 * Return: whether --kind, --fs, --dev or --inode is given, so that calls without a file are left
 * out.
 */
bool sb_io_is_filtered(void);

/*
 * Return: the file (struct file *) behind descriptor @fd of @task; 0: none. Pointers of types that
 * BTF knows are followed, not read by copy, because this runs for each call.
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

/* Return: the weight, by --weight, of a call that moved @result bytes in @ns. */
static __always_inline __u64 sb_io_weight(__u64 ns, long result)
{
	return cfg_io_weight == SB_IO_BYTES	? (__u64)result
	       : cfg_io_weight == SB_IO_LATENCY ? ns
						: 1;
}

/* Account a call. Latency and count are accounted once, even if the call has two files. */
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

/* After sb_begin(). Return: whether @ns is within --min and --max; if not, it is counted. */
bool sb_io_lasts(__u64 ns);

#endif
