/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* State of struct sb_interp, shared by the files of user/interp/core. Any thread, which holds
 * interp->lock unless a function says otherwise. No pointer is NULL. A struct space or found
 * belongs to the registry's slot, and is valid as long as the lock is held and it is not
 * dropped. */
#ifndef SB_INTERP_INTERP_PRIV_H
#define SB_INTERP_INTERP_PRIV_H

#include <pthread.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/index.h"
#include "base/vec.h"
#include "interp/core/image_priv.h"
#include "interp/core/interp.h"
#include "interp/core/labels.h"
#include "interp/core/runtime.h"
#include "symbolizer/process/procfs.h"

/* What is known of a file that some process maps. */
struct seen_file {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
	uint32_t runtimes;	    /* bits: 1 << enum sb_runtime_kind, FILE_LABELS, FILE_GO */
	struct sb_image_file *file; /* owned; NULL when it has neither runtimes nor labels */
};

/* The file has a thread-local variable with labels. The bit of SB_RUNTIME_NONE, which is not in
 * use. */
#define FILE_LABELS 1u
/* The program is written in Go. Its frames are native ones, so nothing is walked. */
#define FILE_GO	    (1u << 31)

/* A runtime found in a process, one that is not walked included. */
struct found {
	struct sb_runtime rt;
	struct sb_image image;
	bool is_attached;	/* attach() succeeded, so detach() is due */
	bool is_pending;	/* attach() returned -EAGAIN */
	bool is_doubtful;	/* it refused a young process, or -EBADMSG, and is called again */
	bool has_gone_bad;	/* sb_interp_fetch() has returned -ENOTSUP for it */
	uint64_t nr_ok, nr_bad; /* names that were read, and that could not be */
};

/* The names of one frame, inlined functions first. */
struct name {
	uint64_t obj, where; /* without SB_WHERE_END */
	uint32_t first, nr;  /* range in space.texts */
	uint32_t nr_bad;     /* failed attempts to read it; 0: it was read */
	uint32_t bad_ms;     /* time of the last one */
};

struct text {
	const char *name, *file; /* in the arena; file may be NULL */
	uint32_t line;
	bool is_unnamed, is_glue;
	uint64_t native;
};

/* Slots for hashes of files without a runtime, and of their paths; a new one replaces what is in
 * its slot. */
#define PLAIN_NOTES 8192u

/* Runtimes of one process that are remembered, including those that are not walked. */
#define FOUND_MAX   16

/* What is known of one address space. It lies in the registry's slot SB_SLOT_RUNTIMES. */
struct space {
	struct sb_space_key key;
	/* For one that was looked at by its number only: what process that was. start_ticks 0: not
	 * known. */
	struct sb_procfs_stat expected;
	struct sb_memory memory;
	struct found *found[FOUND_MAX]; /* up to SB_INTERP_PER_PROC are attached */
	size_t nr_found;
	struct sb_labels *labels; /* NULL: none were found */
	struct doubts {
		uint64_t until_ns; /* looks before do not make the self-test again */
		uint32_t nr;	   /* self-tests that failed; see DOUBTS_MAX */
	} doubts[SB_RUNTIME_MAX];
	uint64_t met_ns;  /* sb_now_ns() at the first look at this process and program */
	uint64_t look_ns; /* sb_now_ns() at the beginning of the last look */
	bool is_full;	  /* runtimes beyond FOUND_MAX were counted as refused */
	bool has_memory;  /* it had mappings, so it is no kernel thread */
	bool is_go;
	SB_VEC(uint64_t)
	plain; /* hashes of mapped files without runtime or labels, to be skipped next time */
	uint64_t used; /* sb_interp.clock at the last look, for evicting the least recently used */
	SB_VEC(struct name) names;
	SB_VEC(struct text) texts;
	struct sb_index names_index;
	struct sb_arena arena;
};

/* A finding of an evicted address space, which stands for all that are equal to it. */
struct past {
	struct sb_space_key space;
	uint32_t runtime;
	const char *runtime_name, *path; /* valid as long as struct sb_interp */
	char version[sizeof(((struct sb_runtime *)0)->version)];
	char *why; /* or NULL */
};

struct sb_interp {
	struct sb_interp_opts opts;
	struct sb_processes
		*own_processes; /* opts.processes, if sb_interp_new() made it; or NULL */
	/* Protects everything below, and what lies in the registry's slots. Lock order: this one,
	 * then the registry's. It is held while a process is read. */
	pthread_mutex_t lock;
	SB_VEC(struct past) past;
	SB_VEC(struct seen_file) files;
	struct sb_index files_index;
	/* Hashes of files without a runtime and of their paths, by slot. Read and written by any
	 * thread, atomically. */
	uint64_t plain[PLAIN_NOTES];
	struct sb_interp_stats stats;
	uint64_t clock;
	struct sb_runtime_text text, inlined; /* scratch */
};

/* Return: what is known of the address space; NULL: nothing (sb_interp_make_space() adds it). */
struct space *sb_interp_find(struct sb_interp *interp, const struct sb_space_key *key);
/* Return: whether the run reads labels of threads (opts has keys of labels, or a label of spans),
 * or finds out which goroutines they run. */
static inline bool sb_interp_wants_labels(const struct sb_interp *interp)
{
	return interp->opts.nr_labels || interp->opts.span_label || interp->opts.goroutines;
}
/* Find what is known of an address space, or make an empty struct for it, which the registry owns.
 * Return: 0; -ENOMEM; -E2BIG when the registry is full; *ret_space is untouched on error. */
int sb_interp_make_space(struct sb_interp *interp, const struct sb_space_key *key,
			 struct space **ret_space);
/* For sb_interp_new(): register the destructor of the registry's slot SB_SLOT_RUNTIMES, once,
 * before any thread uses the registry; it takes interp->lock. The registry borrows @interp until
 * sb_interp_free_spaces(), for sb_interp_free(), which empties the slots of all address spaces and
 * frees what was in them, when no other thread uses @interp any more. Both are called without the
 * lock. */
void sb_interp_own_spaces(struct sb_interp *interp);
void sb_interp_free_spaces(struct sb_interp *interp);
/* Detach and free the runtime space->found[@i] of a process; the ones behind it move up. The names
 * of its frames stay. */
void sb_interp_drop_found(struct space *space, size_t i);
/* Free the findings of evicted address spaces; there are none then. */
void sb_interp_release_past(struct sb_interp *interp);
/*
 * Find out which runtimes a mapped file has, by its identity if it is known, else from its symbols.
 * Return: 0, and the file or NULL when it has none, nor labels, nor is of Go; -ENOENT when it
 * cannot be opened or remembered; -ENOMEM: the next call looks at it again. *ret_seen is valid
 * until the next call, and NULL on error; the struct sb_image_file in it as long as @interp.
 */
int sb_interp_look_at_file(struct sb_interp *interp, uint32_t tgid, const struct sb_maps_line *map,
			   struct seen_file **ret_seen);
/* Remember that a file of this path had no runtime, for sb_interp_seems_plain(), until another path
 * takes its place. Any thread, also without the lock. */
void sb_interp_note_plain(struct sb_interp *interp, const char *path);
/* Return: the attached runtime of a process, by enum sb_runtime_kind, the first if it has several;
 * or NULL. */
struct found *sb_interp_found_of(struct space *space, uint32_t runtime);
/* Return: whether many names of the runtime were tried and none could be read. It is not walked any
 * more. */
bool sb_interp_is_unreadable(const struct found *found);
/* Free all names of an address space; others can be added to it then. The caller subtracts
 * space->arena.nr_bytes from stats.nr_bytes before. */
void sb_interp_release_names(struct space *space);

#endif
