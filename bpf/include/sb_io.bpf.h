/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For all layers of the view "io": files as objects. Implemented in views/io_file.bpf.c. */
#ifndef SB_IO_BPF_H
#define SB_IO_BPF_H

#include "vmlinux.h"

#include "sb_abi_io.h"
#include "sb_sample.bpf.h"

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

/* After sb_begin(): @ns is neither too short nor too long; counted if it is. */
bool sb_io_lasts(__u64 ns);

#endif
