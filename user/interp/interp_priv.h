/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by interp.c, spaces.c, names.c and outside.c. */
#ifndef SB_INTERP_INTERP_PRIV_H
#define SB_INTERP_INTERP_PRIV_H

#include <pthread.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/index.h"
#include "base/vec.h"
#include "interp/image_priv.h"
#include "interp/interp.h"
#include "interp/labels.h"
#include "interp/runtime.h"
#include "procfs.h"

/* A file that some process maps. */
struct seen_file {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
	uint32_t runtimes;	    /* bits: whose markers it has, FILE_LABELS and FILE_GO */
	struct sb_image_file *file; /* with runtimes or labels only */
};

/* In the place of SB_RUNTIME_NONE. */
#define FILE_LABELS 1u
/* Above all of them. Its frames are native ones: nothing is walked, but it has a name. */
#define FILE_GO	    (1u << 31)

/* A runtime found in a process. */
struct found {
	struct sb_runtime rt;
	struct sb_image image;
	bool is_attached;	/* rt is filled in, and detach() is due */
	bool is_pending;	/* it has not begun */
	bool has_gone_bad;	/* that it is unreadable has been said */
	uint64_t nr_ok, nr_bad; /* names read, and not read */
};

struct name {
	uint64_t obj, where; /* without SB_WHERE_END */
	uint32_t first, nr;  /* in texts */
	uint32_t nr_bad;     /* how often it could not be read, if it was not; */
	uint32_t bad_ms;     /* when that was last */
};

struct text {
	const char *name, *file; /* in the arena; file may be NULL */
	uint32_t line;
	bool is_unnamed, is_glue;
	uint64_t native;
};

/* Files without a runtime, and paths, that are remembered; two of one place push each other out. */
#define PLAIN_NOTES 8192u

/* Runtimes in one process that are remembered, with those that are not walked. */
#define FOUND_MAX   16

struct space {
	struct sb_interp_space key;
	/* Of one that was expected: what it was when it was looked at, with start_ticks 0 if that is not known. */
	struct sb_procfs_stat expected;
	struct sb_memory memory;
	struct found *found[FOUND_MAX]; /* up to SB_INTERP_PER_PROC are attached */
	size_t nr_found;
	struct sb_labels *labels; /* NULL: none were found */
	bool is_full;		  /* that there are more has been counted */
	bool has_memory;	  /* there was anything to look at: it is no thread of the kernel */
	bool is_go;
	SB_VEC(uint64_t)
	plain; /* hashes of files it maps that have nothing for us: not looked at again */
	uint64_t ended_ns; /* when that was noticed; 0: it has not */
	uint64_t used;	   /* count of looks at it: the one unused for longest goes first */
	SB_VEC(struct name) names;
	SB_VEC(struct text) texts;
	struct sb_index names_index;
	struct sb_arena arena;
};

/* What was found in processes that are forgotten: one stands for all that are alike. */
struct past {
	struct sb_interp_space space;
	uint32_t runtime;
	const char *runtime_name, *path; /* they live as long as struct sb_interp */
	char version[sizeof(((struct sb_runtime *)0)->version)];
	char *why; /* or NULL */
};

struct sb_interp {
	struct sb_interp_opts opts;
	pthread_mutex_t lock; /* of everything */
	SB_VEC(struct space *) spaces;
	struct sb_index spaces_index; /* rebuilt when some are dropped */
	SB_VEC(struct past) past;
	SB_VEC(struct seen_file) files;
	struct sb_index files_index;
	/* Hashes of files without a runtime, and of their paths, each in its place. Of all threads, by atomic operations. */
	uint64_t plain[PLAIN_NOTES];
	struct sb_interp_stats stats;
	uint64_t clock;
	struct sb_runtime_text text; /* scratch */
};

/* All with the lock held. Return: the space, or NULL. */
struct space *sb_interp_find(struct sb_interp *interp, const struct sb_interp_space *key);
/* Find it, or make it. Return: 0 or -ENOMEM. */
int sb_interp_make_space(struct sb_interp *interp, const struct sb_interp_space *key,
			 struct space **ret_space);
void sb_interp_free_space(struct space *space);
void sb_interp_drop_found(struct space *space, size_t i);
void sb_interp_release_past(struct sb_interp *interp);
/* What runtimes the mapped file has. Return: 0, and NULL: none; -ENOENT: it cannot be had; -ENOMEM. */
int sb_interp_look_at_file(struct sb_interp *interp, uint32_t tgid,
			   const struct sb_process_map *map, struct seen_file **ret_seen);
void sb_interp_note_plain(struct sb_interp *interp, const char *path);
/* The runtime of a frame in a process, or NULL. */
struct found *sb_interp_found_of(struct space *space, uint32_t runtime);
/* Not one of its names can be read: it is not walked. */
bool sb_interp_is_unreadable(const struct found *found);
void sb_interp_release_names(struct space *space);

#endif
