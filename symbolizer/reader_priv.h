/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What caller (reader.c), spawner and reader (reader_process.c) say to each other; accesses (reader_ops.c). */
#ifndef SB_READER_PRIV_H
#define SB_READER_PRIV_H

#include <limits.h>

#include "base/peer.h"
#include "reader.h"

/* A piece of stack is 64 KiB; an answer of /proc/PID/maps a page or more. */
#define SB_READER_DATA_BYTES SB_READER_CODE_BYTES
/* File systems that are left alone, which a request carries along. */
#define SB_READER_DEVS_MAX   32u

enum sb_reader_op {
	SB_READER_OP_MEMORY,
	SB_READER_OP_ENTRY,
	SB_READER_OP_CODE,
	SB_READER_OP_OPEN,
	SB_READER_OP_STAT,
	SB_READER_OP_ROOT,
	SB_READER_OP_MAX,
};

struct sb_reader_request {
	uint32_t op; /* enum sb_reader_op */
	uint32_t tgid;
	uint64_t addr, len; /* of memory; of an entry: offset and bytes; of code: where to go on */
	uint32_t entry;	    /* enum sb_reader_entry */
	uint32_t is_first, is_other;
	uint32_t place; /* enum sb_reader_place */
	uint64_t start, end;
	uint32_t has_root_fd;
	uint32_t nr_devs;
	uint64_t devs
		[SB_READER_DEVS_MAX]; /* left alone: fail with -ETIMEDOUT before anything is asked of them */
	char path[PATH_MAX];
};

struct sb_reader_answer {
	int64_t ret; /* bytes of data, 0, or a negative errno */
	uint64_t addr;
	uint64_t blocked_ns; /* 0 unless the reader slept in the access */
	uint32_t has_fd, is_copy;
	uint32_t is_local; /* of a file: its file system is one */
	uint32_t padding;
	uint64_t copy_ino, copy_bytes;
	struct stat st;
};

/* Shared memory of one caller and one reader. Not reused after the reader was abandoned: it may write there yet. */
struct sb_reader_area {
	uint32_t asked, answered; /* futexes: numbers of the last request and of the last answer */
	uint32_t progress;	  /* grows while a file is copied */
	uint64_t dev;		  /* file system of the access that is under way; 0: not known */
	struct sb_reader_request request;
	struct sb_reader_answer answer;
	uint8_t data[SB_READER_DATA_BYTES];
};

/* What an access leaves behind. */
struct sb_reader_state {
	/* For the next one: the entry that is open. */
	uint32_t tgid, entry;
	int entry_fd; /* -1: none */
	/* For the caller: the file that was copied (O_PATH), or -1. As long as somebody has it, its device and inode
	 * number are those of no other file: a file system that is gone gives its number to the next one. */
	int original_fd;
};

/*
 * Make the access of @area->request and write @area->answer. @root_fd: -1, or what came with the request; borrowed.
 * Return: a descriptor to hand over, or -1; if it is of a copy, @state->original_fd is to be handed over with it.
 */
int sb_reader_serve(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd);

/* What the spawner is asked, and answers; with the first, descriptors of the area and of the socket. */
enum sb_reader_order { SB_READER_SPAWN, SB_READER_ABANDON };
struct sb_reader_spawn_request {
	uint32_t order;
	int32_t pid; /* whom to abandon */
};
struct sb_reader_spawn_answer {
	int32_t err; /* -EAGAIN: too many were abandoned */
	int32_t pid;
};

/* The life of the spawner. @arg: struct sb_reader_opts. */
void sb_reader_spawner(void *arg, int fd);

#endif
