/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For all layers of the view "io": files as objects. Implemented in views/io_file.bpf.c. */
#ifndef SB_IO_BPF_H
#define SB_IO_BPF_H

#include "vmlinux.h"

#include "sb_abi_io.h"
#include "sb_sample.bpf.h"

extern const volatile __u32 cfg_io_weight; /* enum sb_io_weight; of io.bpf.c */

/* <linux/stat.h> */
#define S_IFMT	       0170000
#define S_IFBLK	       0060000

/* What sb_io_file() returns for a file that --kind, --path and the like leave out. */
#define SB_IO_UNWANTED 1ull

/*
 * The object (sb_sample_key.object) that @file, a struct file *, is; shipped if that was not done
 * before. @slot: of the calling program, enum sb_scratch_slot. @file may be 0, and may be stale.
 * Return: the object; 0: no file, which is asked for; SB_IO_UNWANTED. Global functions take numbers, so that the verifier
 * looks at them once.
 */
__u64 sb_io_file(__u64 file, __u32 slot);

/* The same where there is no struct file, only an inode, and a dentry of it or 0: the path is
 * the one below the mount of the filesystem that the current task sees; if there is none, it begins at
 * the root of the filesystem (SB_FILE_NO_MOUNT). */
__u64 sb_io_inode(__u64 inode, __u64 dentry, __u32 slot);

/* The same for the disk of a struct block_device: "/dev/vda". */
__u64 sb_io_device(__u64 bdev, __u32 slot);

/* Return: whether --kind, --fs, --dev or --inode are in force: what has no file is left out. */
bool sb_io_is_filtered(void);

/* Return: the file (struct file *) that @fd is to @task; 0: none. Pointers of types that BTF knows are
 * followed, not read by copy: this is done for each call. */
static __always_inline __u64 sb_io_file_of_fd(const struct task_struct *task, __u64 fd)
{
	const struct fdtable *table = task->files->fdt;
	struct file *file = NULL;

	if (fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return (__u64)file;
}

/* What was read from, and what was written to. */
struct sb_io_objects {
	__u64 in, out; /* 0: no file; SB_IO_UNWANTED: no sample */
};

/* Return: the weight of a call that moved @result bytes in @ns. */
static __always_inline __u64 sb_io_weight(__u64 ns, long result)
{
	return cfg_io_weight == SB_IO_BYTES	? (__u64)result
	       : cfg_io_weight == SB_IO_LATENCY ? ns
						: 1;
}

/* Account a call of that weight. Latency and number of a call are one, even if it has two files. */
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

/* After sb_begin(): @ns is neither too short nor too long; counted if it is. */
bool sb_io_lasts(__u64 ns);

#endif
