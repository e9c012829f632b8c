/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Structures and numbers that BPF programs and user space share: files, and the calls that read and
 * write them. The rules of sb_abi.h hold: types have a fixed width, and new numbers are appended
 * and never reused.
 */
#ifndef SB_ABI_IO_H
#define SB_ABI_IO_H

#include "bpf/abi/sb_abi.h"

/*
 * Bytes of a path with its slashes. Longer paths, or those with more components, are cut at the
 * root.
 */
#define SB_PATH_BYTES_MAX      4096u
#define SB_PATH_COMPONENTS_MAX 64u
#define SB_FS_NAME_LEN	       16

/* What a file is. */
enum sb_file_kind {
	SB_FILE_OTHER,
	SB_FILE_REG,
	SB_FILE_DIR,
	SB_FILE_PIPE, /* and FIFO */
	SB_FILE_SOCK,
	SB_FILE_TTY,
	SB_FILE_CHR, /* another character device */
	SB_FILE_BLK,
	SB_FILE_ANON, /* eventfd, epoll, ...: anon_inode */
	SB_FILE_NONE, /* there is no file: a bad descriptor */
	SB_FILE_KIND_MAX,
};

/* Bits of sb_object_file.flags. */
enum {
	SB_FILE_DELETED = 1u << 0,
	SB_FILE_PATH_CUT = 1u << 1, /* components at the root are missing */
	SB_FILE_NO_MOUNT =
		1u
		<< 2, /* the mount is not known: the path begins at the root of its file system */
};

/*
 * Followed by path_bytes of path: components from the leaf to the root, each with a NUL. If the
 * file has no path, that is the name of the anonymous inode, or "" for pipes and sockets.
 */
struct sb_object_file {
	__u64 ino;
	__u32 dev;  /* (major << 20) | minor, as in the kernel; 0: none */
	__u32 kind; /* enum sb_file_kind */
	__u32 flags;
	__u16 sock_family, sock_type, sock_protocol;
	__u16 path_bytes;
	char fs[SB_FS_NAME_LEN]; /* type of the file system: "ext4" */
};

_Static_assert(sizeof(struct sb_object_file) == 48, "layout is shared");

/* The layers of --layer. */
enum sb_io_layer {
	SB_LAYER_SYSCALL,
	SB_LAYER_CACHE,
	SB_LAYER_BLOCK,
	SB_LAYER_FSYNC,
	SB_LAYER_FAULT,
	SB_LAYER_MAX,
};

enum sb_io_weight { SB_IO_BYTES, SB_IO_LATENCY, SB_IO_COUNT, SB_IO_WEIGHT_MAX };

/* Directions of a call. */
enum {
	SB_IO_READ = 1u << 0,
	SB_IO_WRITE = 1u << 1,
	SB_IO_NEITHER = 1u << 2, /* open, fsync, ...: weighed by latency or count only */
};

/*
 * One system call; cfg_io_calls of bpf/views/io.bpf.c is indexed by its number, user/views/io.c
 * writes it.
 */
#define SB_IO_CALLS_MAX 512 /* numbers of system calls; a power of two */
#define SB_IO_NO_ARG	0xff

struct sb_io_call {
	__u8 op;      /* sb_sample_key.op; 0: the call is ignored */
	__u8 dirs;    /* SB_IO_* */
	__u8 in_arg;  /* the argument, 0 to 2, that is the file read from, or the file of NEITHER */
	__u8 out_arg; /* the same for the file written to; SB_IO_NO_ARG: none */
	__u8 flags;   /* SB_IO_CALL_* */
	__u8 reserved[3];
};

enum {
	SB_IO_CALL_OPENS = 1u << 0, /* the call returns the file */
	SB_IO_CALL_BY_MODE =
		1u << 1, /* it writes if the file is open for writing; otherwise it reads */
	SB_IO_CALL_NO_FD = 1u << 2,    /* none of its arguments is a descriptor */
	SB_IO_CALL_MESSAGES = 1u << 3, /* it returns the number of messages in a struct mmsghdr[] */
	SB_IO_CALL_SPLICES = 1u << 4,  /* of io_uring: it reads from a second descriptor */
};

/* One request of io_uring; cfg_io_uring_calls of bpf/views/io_uring.bpf.c is indexed by its opcode,
 * user/views/io_uring.c writes it. in_arg and out_arg are 0, the request's file, or SB_IO_NO_ARG.
 */
#define SB_IO_URING_CALLS_MAX 64

/*
 * Values of sb_sample_key.op: system calls, in the order of the table in user/views/io.c, from 1
 * on; requests of io_uring by their opcode, and operations of the other layers, from these numbers
 * on.
 */
#define SB_IO_OP_URING	      64
#define SB_IO_OP_LAYERS	      (SB_IO_OP_URING + SB_IO_URING_CALLS_MAX)

/* Operations of the layers below the system call. */
enum sb_io_op {
	SB_IO_OP_CACHE_MISS = SB_IO_OP_LAYERS, /* pages that the call asked for */
	SB_IO_OP_READAHEAD,		       /* pages that it did not ask for */
	SB_IO_OP_CACHE_FILL,		       /* pages read, asked for or not */
	SB_IO_OP_CACHE_NEW,		       /* pages made by a write */
	SB_IO_OP_BLOCK_READ,
	SB_IO_OP_BLOCK_WRITE,
	SB_IO_OP_BLOCK_WRITEBACK, /* by a kernel thread; has the stack of who dirtied the file */
	SB_IO_OP_BLOCK_FLUSH,
	SB_IO_OP_BLOCK_DISCARD,
	SB_IO_OP_BLOCK_OTHER,
	SB_IO_OP_FAULT_READ,
	SB_IO_OP_FAULT_WRITE,
	SB_IO_OP_FAULT_EXEC,
	SB_IO_OP_KERNEL_READ, /* by a kernel thread, without a call; layer "syscall" */
	SB_IO_OP_KERNEL_WRITE,
	SB_IO_OP_MAX,
};

_Static_assert(sizeof(struct sb_io_call) == 8, "layout is shared");

#endif
