/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the BPF side and user space: files, and calls that move their bytes. As sb_abi.h:
 * fixed-width types, numbers are appended, never reused.
 */
#ifndef SB_ABI_IO_H
#define SB_ABI_IO_H

#include "sb_abi.h"

/* Bytes of a path with its slashes; more components, or longer ones, are cut at the root side. */
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
	SB_FILE_NONE, /* no file: bad descriptor */
	SB_FILE_KIND_MAX,
};

/* Bits of sb_object_file.flags. */
enum {
	SB_FILE_DELETED = 1u << 0,
	SB_FILE_PATH_CUT = 1u << 1, /* outer components are missing */
	SB_FILE_NO_MOUNT =
		1u << 2, /* the path begins at the root of its filesystem: mount not known */
};

/* path_bytes of path follow: components from the leaf to the root, each ended by NUL. Without a
 * path: the name of the anonymous inode, "" for pipes and sockets. */
struct sb_object_file {
	__u64 ino;
	__u32 dev;  /* (major << 20) | minor, as the kernel has it; 0: none */
	__u32 kind; /* enum sb_file_kind */
	__u32 flags;
	__u16 sock_family, sock_type, sock_protocol;
	__u16 path_bytes;
	char fs[SB_FS_NAME_LEN]; /* type of the filesystem: "ext4" */
};

_Static_assert(sizeof(struct sb_object_file) == 48, "layout is shared");

/* What --layer looks at. */
enum sb_io_layer {
	SB_LAYER_SYSCALL,
	SB_LAYER_CACHE,
	SB_LAYER_BLOCK,
	SB_LAYER_FSYNC,
	SB_LAYER_FAULT,
	SB_LAYER_MAX,
};

enum sb_io_weight { SB_IO_BYTES, SB_IO_LATENCY, SB_IO_COUNT, SB_IO_WEIGHT_MAX };

/* Bits of directions. */
enum {
	SB_IO_READ = 1u << 0,
	SB_IO_WRITE = 1u << 1,
	SB_IO_NEITHER = 1u << 2, /* open, fsync, ...: weighs by latency or count only */
};

/* A system call by its number: cfg_io_calls of bpf/views/io.bpf.c, written by user/views/io.c. */
#define SB_IO_CALLS_MAX 512 /* numbers of system calls; a power of two */
#define SB_IO_NO_ARG	0xff

struct sb_io_call {
	__u8 op;      /* sb_sample_key.op; 0: the call is not looked at */
	__u8 dirs;    /* SB_IO_* */
	__u8 in_arg;  /* the argument, 0 to 2, that is the file read from, or the file of NEITHER */
	__u8 out_arg; /* the file written to; SB_IO_NO_ARG: none */
	__u8 flags;   /* SB_IO_CALL_* */
	__u8 reserved[3];
};

enum {
	SB_IO_CALL_OPENS = 1u << 0, /* the file is what the call returns */
	SB_IO_CALL_BY_MODE =
		1u << 1,	    /* written to if the file can be written to, read from if not */
	SB_IO_CALL_NO_FD = 1u << 2, /* none of its arguments is a descriptor */
	SB_IO_CALL_MESSAGES = 1u << 3, /* returns the number of messages in a struct mmsghdr[] */
	SB_IO_CALL_SPLICES = 1u << 4,  /* of io_uring: it reads from a second descriptor */
};

/* A request of io_uring by its opcode: cfg_io_uring_calls of bpf/views/io_uring.bpf.c, written by
 * user/views/io_uring.c. in_arg and out_arg are 0: the request's file, or SB_IO_NO_ARG. */
#define SB_IO_URING_CALLS_MAX 64

/* Values of sb_sample_key.op: system calls, in the order of the table in user/views/io.c, begin at
 * 1; requests of io_uring, by their opcode, and what other layers have begin here. */
#define SB_IO_OP_URING	      64
#define SB_IO_OP_LAYERS	      (SB_IO_OP_URING + SB_IO_URING_CALLS_MAX)

/* Those of the layers below the system call. */
enum sb_io_op {
	SB_IO_OP_CACHE_MISS = SB_IO_OP_LAYERS, /* pages that the call asked for */
	SB_IO_OP_READAHEAD,		       /* pages that it did not */
	SB_IO_OP_CACHE_FILL,		       /* read, and whether asked for cannot be told */
	SB_IO_OP_CACHE_NEW,		       /* made by a write */
	SB_IO_OP_BLOCK_READ,
	SB_IO_OP_BLOCK_WRITE,
	SB_IO_OP_BLOCK_WRITEBACK, /* by a kernel thread, with the stack of who dirtied the file */
	SB_IO_OP_BLOCK_FLUSH,
	SB_IO_OP_BLOCK_DISCARD,
	SB_IO_OP_BLOCK_OTHER,
	SB_IO_OP_FAULT_READ,
	SB_IO_OP_FAULT_WRITE,
	SB_IO_OP_FAULT_EXEC,
	SB_IO_OP_KERNEL_READ, /* by a kernel thread, without a call; of the layer "syscall" */
	SB_IO_OP_KERNEL_WRITE,
	SB_IO_OP_MAX,
};

_Static_assert(sizeof(struct sb_io_call) == 8, "layout is shared");

#endif
