/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol between a caller (reader.c: a thread of the program), the spawner, which forks the
 * readers, and a reader (reader_process.c), which makes the accesses themselves (reader_ops.c); see
 * reader.h.
 *
 * Order of an access: the caller fills in area->request, asks sb_reader_is_refused(), and calls
 * sb_reader_add_devs(). The reader calls sb_reader_serve(). The caller takes the answer, or
 * abandons the reader if none comes. After an answer about a file on a local device it calls
 * sb_reader_note_local(). After another one that took long, and after it has abandoned the reader,
 * it calls sb_reader_blame(). To read ahead, the caller puts sb_reader_aheads_ask() before this
 * access and sb_reader_aheads_keep() after it, and then calls sb_reader_aheads_take().
 *
 * No pointer is NULL. Thread: unless said otherwise, one for each area, state and list; an area has
 * its caller and its reader besides. Functions that take none of these: any.
 */
#ifndef SB_READER_PRIV_H
#define SB_READER_PRIV_H

#include <limits.h>
#include <stdio.h>

#include "base/peer.h"
#include "base/str.h"
#include "base/vec.h"
#include "reader.h"
#include "symbolizer/process/reader.h"

/* Room for one answer, most of it for pieces of stack of 64 KiB that are read ahead. */
#define SB_READER_DATA_BYTES (512u << 10)
/* File systems that are left alone; each request carries the list. */
#define SB_READER_DEVS_MAX   32u

enum sb_reader_op {
	SB_READER_OP_MEMORY,
	SB_READER_OP_ENTRY,
	SB_READER_OP_CODE,
	SB_READER_OP_PAGES,
	SB_READER_OP_OPEN,
	SB_READER_OP_STAT,
	SB_READER_OP_ROOT,
	SB_READER_OP_AHEAD,
	SB_READER_OP_MAX,
};

struct sb_reader_request {
	uint32_t op; /* enum sb_reader_op */
	uint32_t tgid;
	uint64_t addr, len; /* of memory; offset and length in an entry; where code goes on */
	uint32_t entry;	    /* enum sb_reader_entry */
	uint32_t is_first, is_other, is_by_word;
	uint32_t padding;
	uint32_t place; /* enum sb_reader_place */
	uint64_t start, end;
	uint32_t has_root_fd;
	uint32_t nr_devs;
	uint64_t hold_dev, hold_ino; /* struct sb_reader_file */
	uint64_t devs
		[SB_READER_DEVS_MAX]; /* left alone: files on them fail with -ETIMEDOUT untouched */
	uint32_t nr_wants;
	struct sb_reader_want wants[SB_READER_AHEAD_MAX];
	char path[PATH_MAX];
};

/* The answer to one of the accesses of sb_reader_ahead(). Its bytes come behind those of the access
 * before it. */
struct sb_reader_part {
	int64_t ret;   /* number of bytes, or a negative errno; 0: an earlier part has them */
	uint64_t addr; /* of the memory that was read, for a pointer the piece that it led to */
	uint64_t blocked_ns;
};

struct sb_reader_answer {
	int64_t ret; /* number of bytes in @data, or of parts; 0; or a negative errno */
	uint64_t addr;
	uint64_t blocked_ns; /* how long the access took if the reader slept in it; else 0 */
	uint32_t has_fd, is_copy;
	uint32_t is_local; /* the file is on a local file system */
	uint32_t padding;
	uint64_t copy_ino, copy_bytes;
	struct stat st;
};

/* Memory shared by one caller and one reader. It is not used again once the reader was abandoned,
 * because that may still write to it. */
struct sb_reader_area {
	uint32_t asked, answered; /* futexes: numbers of the last request and of the last answer */
	uint32_t progress;	  /* increases while a file is being copied */
	uint32_t part;		  /* of sb_reader_ahead(): which of the accesses is being made */
	uint64_t dev;		  /* file system that is being accessed; 0: not known */
	struct sb_reader_request request;
	struct sb_reader_answer answer;
	struct sb_reader_part parts[SB_READER_AHEAD_MAX];
	uint8_t data[SB_READER_DATA_BYTES];
};

/*
 * The overlay and virtiofs mounts of our own mount table. Their files may be read in place,
 * although file systems of these types could be a user's: an overlay shows files of other file
 * systems, and virtiofs is FUSE that the host of this machine serves. Only root can mount in our
 * table. All zeroes: not read yet. Thread: one.
 */
enum sb_reader_mount_kind { SB_READER_OVERLAY, SB_READER_VIRTIOFS, SB_READER_MOUNT_MAX };
struct sb_reader_mounts {
	FILE *table; /* stays open, so that poll(2) reports changes */
	bool is_read;
	SB_VEC(struct sb_reader_mount {
		dev_t dev;
		enum sb_reader_mount_kind kind;
	})
	found;
};

/*
 * Return: whether such a mount has the device @dev now; false also when the table cannot be read.
 * The caller holds a file of that device open.
 */
bool sb_reader_is_mounted(struct sb_reader_mounts *mounts, dev_t dev,
			  enum sb_reader_mount_kind kind);
/* Close the table, free the list, and zero @mounts, which can be used again. */
void sb_reader_mounts_release(struct sb_reader_mounts *mounts);

/* What one access leaves for the next access, or for its caller. It begins zeroed, with -1 in the
 * two descriptors; its owner closes them and releases @mounts at the end. */
struct sb_reader_state {
	/* For the next access: the entry that is open. */
	uint32_t tgid, entry;
	int entry_fd; /* -1: none */
	/* For the caller: the original of a copied file (O_PATH), or -1. While it is open, no other
	 * file can get its device and inode number: the number of a file system that is gone is
	 * given to the next one. */
	int original_fd;
	struct sb_reader_mounts mounts; /* for the next access */
	struct sb_reader_root {
		bool is_known;
		dev_t dev;
		uint64_t mount_id; /* 0: the kernel does not tell it (before 5.8) */
	} root;			   /* our own root directory */
};

/*
 * Carry out @area->request and write @area->answer, errors included (answer.ret). It may block for
 * as long as the process or file wants. Without a spawner the calling thread does it itself.
 * @state: of this reader or thread, kept from access to access; original_fd is -1 before
 * @root_fd: the descriptor that came with the request, borrowed; -1: none
 *
 * Return: a descriptor that the caller owns, or -1: none was asked for, or the access failed. If it
 * is of a copy, the caller also takes @state->original_fd over, and sets it to -1.
 */
int sb_reader_serve(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd);

/*
 * What a thread read ahead and has not taken yet (reader_ahead.c). All zeroes is empty. Its owner
 * sets nr to 0 and empties `data` before each round, and releases `data` at the end.
 */
struct sb_reader_aheads {
	uint32_t nr;
	struct sb_reader_ready {
		struct sb_reader_want want;
		size_t first, len; /* in `data` */
		bool is_taken;
	} ready[SB_READER_AHEAD_MAX];
	struct sb_str data;
};
/*
 * Fill in wants and tgid of @area->request, whose op the caller has set, with the first of @wants,
 * at most @nr, which is not 0, and SB_READER_AHEAD_MAX, up to one whose process is refused
 * (sb_reader_is_refused()). They are copied. Return: how many of them; if 0, make no access.
 */
uint32_t sb_reader_aheads_ask(struct sb_reader_area *area, const struct sb_reader_want *wants,
			      size_t nr);
/*
 * Append the first @nr_done of @area->parts, the answers to @wants, to @aheads, which is empty
 * before; those that failed are skipped, and so are those beyond SB_READER_AHEAD_MAX. Sizes are
 * checked, because an attacker may control the reader. The bytes are copied. Return: 0; -EPROTO: a
 * size is impossible; -ENOMEM. What was added remains after both, and can be taken; the reader need
 * not be abandoned.
 */
int sb_reader_aheads_keep(struct sb_reader_aheads *aheads, const struct sb_reader_want *wants,
			  size_t nr_done, const struct sb_reader_area *area);
/* Return: whether sb_reader_aheads_take() would return the bytes of @want. */
bool sb_reader_aheads_have(struct sb_reader_aheads *aheads, const struct sb_reader_want *want);
/* Return: the bytes of @want, valid until the next round; they are not returned again. NULL: there
 * are none, and *@ret_len is untouched. */
const char *sb_reader_aheads_take(struct sb_reader_aheads *aheads,
				  const struct sb_reader_want *want, size_t *ret_len);

/* Return: whether the access is to a file, not to memory or to an entry of /proc. A wait for a file
 * is blamed on its file system or directory, if they are known, and any other on the process. */
static inline bool sb_reader_is_of_file(const struct sb_reader_request *request)
{
	return request->op == SB_READER_OP_OPEN || request->op == SB_READER_OP_STAT;
}

/*
 * Who made readers wait (reader_culprits.c), and local file systems, which are not blamed. Any
 * thread may call these. @dev: st_dev of a file system; 0: not known.
 * sb_reader_is_local() returns whether @dev is among the 64 devices that were last passed to
 * sb_reader_note_local().
 */
bool sb_reader_is_local(uint64_t dev);
void sb_reader_note_local(uint64_t dev);
/* Add the @ns nanoseconds that @request slept to what its file system, directory or process took.
 * @dev: st_dev of that file system; 0: not known. @is_late: the request was abandoned. */
void sb_reader_blame(const struct sb_reader_request *request, uint64_t dev, uint64_t ns,
		     bool is_late);
/* Return: whether accesses to the process or to the directory of a request are refused for a time,
 * because readers had to wait for it (sb_reader_blame()): a minute, then twice as long each time.
 * The caller does not ask a reader then; the access fails with -ETIMEDOUT. */
bool sb_reader_is_refused(const struct sb_reader_request *request);
/* Overwrite request->devs and nr_devs: the file systems to which accesses are refused for a time,
 * because readers had to wait for them, at most SB_READER_DEVS_MAX. */
void sb_reader_add_devs(struct sb_reader_request *request);
/* Forget all culprits and local file systems, at the end. */
void sb_reader_culprits_clear(void);

/*
 * Copies of files (reader_copies.c). Keep the copy @fd that @answer describes; the caller keeps
 * @fd. *@original_fd is taken over, and then -1, if there is no error; else it stays the caller's.
 * Return: 0; -EFBIG when the copies that are open take too much memory, or are too many; -ENOMEM;
 * or a negative errno of open(2) or fstat(2).
 * Thread: any.
 */
int sb_reader_copies_keep(const struct sb_reader_answer *answer, int fd, int *original_fd);
/* At the end: close what is kept of copies that nobody has open any more, and free the list. */
void sb_reader_copies_release(void);

/*
 * Files that are held open (reader_held.c). sb_reader_hold() takes over @fd, which came with the
 * answer to a request with hold_ino; if the file cannot be held, @fd is closed.
 * sb_reader_held_release() lets all of them go. Thread: any.
 */
void sb_reader_hold(int fd);
void sb_reader_held_release(void);

/*
 * Requests to the spawner and its answer, which brings the descriptors of the area and the socket.
 */
enum sb_reader_order { SB_READER_SPAWN, SB_READER_ABANDON };
struct sb_reader_spawn_request {
	uint32_t order;
	int32_t pid; /* of the reader to abandon */
};
struct sb_reader_spawn_answer {
	int32_t err; /* -EAGAIN: too many abandoned readers are still alive */
	int32_t pid;
};

/*
 * The main function of the spawner; returns when the program has closed its end of the socket @fd.
 * @arg: struct sb_reader_opts, borrowed during the call. Requests and answers: struct
 *	sb_reader_spawn_*.
 */
void sb_reader_spawner(void *arg, int fd);

/* reader_codes.c, Thread: any */

/*
 * Keep the executable mappings of @tgid for sb_reader_code_since(). They replace older ones of
 * @tgid, or those of another process.
 * @began_ns: CLOCK_MONOTONIC, before the access began
 * @ret: what the access returned: a number of bytes at @records, or a negative errno, when @records
 *	is not used, and may be NULL
 *
 * More than 8 KiB, or an errno other than -ESRCH, is not kept; what was kept of @tgid is forgotten
 * then.
 */
void sb_reader_codes_keep(uint32_t tgid, uint64_t began_ns, int64_t ret, const void *records);

#endif
