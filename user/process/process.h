/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The registry of processes: one object for each address space that is of interest, with a slot for
 * each module that keeps something about it. Modules look address spaces up here by their key.
 *
 * What is in SB_SLOT_RUNTIMES is destroyed together with the address space. The modules of the
 * other slots hold a reference to each address space that they have something about, and empty
 * their slot themselves (capture/uwprocs.c, capture/interpwatch_procs.c,
 * recorder/series_process.c); until then the address space stays. The way of one process through
 * all tables is in capture/README.md.
 *
 * An address space is a process between two calls of execve(). It is made when a module asks for
 * it, and dropped when it has ended and nobody holds a reference to it. The registry learns that
 * it has ended from side-band records (sb_processes_exec(), sb_processes_exit()), from a later
 * address space of the same tgid, from a module that noticed (sb_processes_end()), and, because
 * records can be lost, from a look at /proc when the registry has grown.
 *
 * Order: sb_processes_new(); a module that keeps values calls sb_processes_own(), then
 * sb_processes_get(), sb_space_set() and sb_processes_put() for a new one, sb_processes_find()
 * later, and at its end sb_processes_disown(); meanwhile one thread feeds exec and exit, and calls
 * sb_processes_forget() at each drain; at the end sb_processes_free().
 *
 * The symbolizer does not use it: records of mappings, fork and exec name a tgid and a time, but
 * not how often execve() was called. symbolizer/process/procmaps.h finds address spaces by these
 * two. capture/resident.h and capture/goheap.h do not use it either, and say why.
 *
 * Thread: any, unless a function says otherwise. One mutex protects the registry. It is held for
 * lookups only, never during I/O or while a destructor runs. What a slot points to belongs to its
 * module, which says by which thread or under which lock it is used. No pointer may be NULL unless
 * a contract says so, and keys are copied. Keys are compared as they are: start_ns 0 finds only
 * what was made with start_ns 0. A reference (struct sb_space *) keeps its address space in memory
 * until it is given back; each sb_processes_get() takes one.
 */
#ifndef SB_PROCESS_PROCESS_H
#define SB_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Identity of an address space, as in struct sb_sample_key. */
struct sb_space_key {
	uint64_t start_ns; /* CLOCK_BOOTTIME; 0: the process that has the tgid now */
	uint32_t tgid;
	uint32_t exec_id; /* how often the task had called execve() */
};

/* Make a key of @from, a pointer to any struct that has these three members, such as a record of
 * the BPF side. */
#define SB_SPACE_KEY(from) \
	((struct sb_space_key){ (from)->start_ns, (from)->tgid, (from)->exec_id })

/* Return: whether the keys are equal. */
static inline bool sb_space_key_is(const struct sb_space_key *a, const struct sb_space_key *b)
{
	return a->tgid == b->tgid && a->start_ns == b->start_ns && a->exec_id == b->exec_id;
}

/*
 * What is kept about an address space: in which module, used by which thread, and who empties the
 * slot: the registry, by the destructor, or the module, which holds a reference until then.
 */
enum sb_space_slot {
	/* Interpreters and names of their frames: interp, under its lock. Registry. */
	SB_SLOT_RUNTIMES,
	/* Configuration of interpreter walkers: capture/interpwatch, its thread. Module. */
	SB_SLOT_WALKERS,
	/* The list that the unwinder searches: capture/uwprocs, its thread. Module. */
	SB_SLOT_MAPPINGS,
	/* Tags of its samples: the recorder's series, the session's thread. Module. */
	SB_SLOT_TAGS,
	SB_SLOT_MAX,
};

/*
 * Bound of address spaces: beyond it, others are forgotten first. They take 13 MiB without the
 * contents of their slots. kernel.pid_max is 32,768 on small machines.
 */
#define SB_PROCESSES_MAX 65536u

struct sb_processes;
struct sb_space;

struct sb_processes_opts {
	size_t nr_max; /* address spaces; 0: SB_PROCESSES_MAX */
};

/**
 * sb_processes_new() - make an empty registry
 * @opts: copied; NULL for the defaults
 * @ret_processes: owned by the caller, who frees it by sb_processes_free() after all modules that
 *	use it have ended; untouched on error
 *
 * Return: 0 or -ENOMEM.
 */
int sb_processes_new(const struct sb_processes_opts *opts, struct sb_processes **ret_processes);
/*
 * Free the registry with all address spaces, also those that have references. All modules have
 * called sb_processes_disown(); destructors still set are called, and must not call functions of
 * the registry. Thread: the last one that uses it. Accepts NULL.
 */
void sb_processes_free(struct sb_processes *processes);

/**
 * sb_processes_own() - set the destructor of a slot
 * @slot: the calling module is its only user
 * @destroy: called when an address space with something in @slot is forgotten, on the thread that
 *	calls sb_processes_forget(), sb_processes_disown() or sb_processes_free(), without the
 *	registry's lock; it must not call these three. NULL: there is nothing to destroy,
 *	or the module holds a reference to each address space that has something in the slot
 * @arg: passed to @destroy; borrowed until sb_processes_disown()
 *
 * Another call replaces the destructor. Thread: any, while no other thread calls this function,
 * sb_processes_disown(), sb_processes_forget() or sb_processes_free(): the mutex does not protect
 * it.
 */
void sb_processes_own(struct sb_processes *processes, enum sb_space_slot slot,
		      void (*destroy)(void *arg, void *value), void *arg);
/*
 * Empty @slot of all address spaces by its destructor, on the calling thread; it is not called any
 * more afterwards. Also destroys what the registry has evicted, in all slots. Values in a slot
 * without a destructor stay where they are and are never destroyed: its module takes them before,
 * or sets a destructor by sb_processes_own() right before. Each module calls this when it ends.
 * Thread: any, while no other thread calls this function, sb_processes_own(), sb_processes_forget()
 * or sb_processes_free().
 */
void sb_processes_disown(struct sb_processes *processes, enum sb_space_slot slot);

/**
 * sb_processes_get() - find an address space, or make it
 * @ret_space: a reference, which the caller gives back by sb_processes_put(); untouched on error
 *
 * When it is made, earlier processes of the same tgid, and earlier address spaces of the same
 * process, are taken to have ended; so is the new one, if a later one is known.
 *
 * Return: 0; -ENOMEM; -E2BIG: the bound is reached, and none of the 64 processes that were asked
 * for longest ago can be forgotten, because their address spaces have references; this is counted.
 * After an error, others may have been forgotten.
 */
int sb_processes_get(struct sb_processes *processes, const struct sb_space_key *key,
		     struct sb_space **ret_space);
/* Give a reference back; @space is not to be used any more. @space may be NULL. */
void sb_processes_put(struct sb_processes *processes, struct sb_space *space);

/* Return: the key of an address space, valid as long as the caller's reference. */
const struct sb_space_key *sb_space_key(const struct sb_space *space);

/*
 * Set a slot of an address space that the caller has a reference to; NULL empties it. The value
 * before is not destroyed. From then on it is destroyed with the address space, see
 * sb_processes_own().
 */
void sb_space_set(struct sb_processes *processes, struct sb_space *space, enum sb_space_slot slot,
		  void *value);
/*
 * Empty a slot without calling its destructor. Return: the value, now the caller's; NULL: the
 * address space is not known, the slot was empty, or its value is being destroyed.
 */
void *sb_processes_take(struct sb_processes *processes, const struct sb_space_key *key,
			enum sb_space_slot slot);
/*
 * Return: the value in @slot of the address space, or NULL: it is not known, or the slot is empty.
 * No address space is made, and no reference is taken: the module of the slot says how long the
 * value lives.
 */
void *sb_processes_find(struct sb_processes *processes, const struct sb_space_key *key,
			enum sb_space_slot slot);
/* Return: the value in @slot of the latest address space of @tgid that has one there; NULL if none
 * has. The latest is that with the highest exec_id of the process that was made last here; if that
 * process has no value, earlier ones with the same number are asked. No reference is taken: the
 * module of the slot says how long the value lives. */
void *sb_processes_of(struct sb_processes *processes, uint32_t tgid, enum sb_space_slot slot);

/* Return: whether the address space is known to have ended; false if it is not known at all. */
bool sb_processes_has_ended(struct sb_processes *processes, const struct sb_space_key *key);

/* Return: whether an address space of @tgid is known, or one that has ended is still kept. */
bool sb_processes_knows(struct sb_processes *processes, uint32_t tgid);

/*
 * Call @fn with each value in @slot that is not NULL, and the time when its address space ended
 * (CLOCK_MONOTONIC; 0: it has not), in no order. @fn runs under the registry's lock and must not
 * call functions of the registry.
 */
void sb_processes_each(struct sb_processes *processes, enum sb_space_slot slot,
		       void (*fn)(void *arg, void *value, uint64_t ended_ns), void *arg);

/**
 * sb_processes_mark() - mark the process of an address space, to count distinct processes
 * @bit: 0 to 31; not checked
 *
 * Makes the address space as sb_processes_get() does, but keeps no reference. Marks are of the
 * process, so they survive execve(); they are lost when the registry drops the process.
 *
 * Return: 1 when the process did not have this mark; 0 when it had; -ENOMEM or -E2BIG, as
 * sb_processes_get(): nothing was marked.
 */
int sb_processes_mark(struct sb_processes *processes, const struct sb_space_key *key, uint32_t bit);

/*
 * The process called execve(), or exited, at @time_ns (CLOCK_MONOTONIC): its address spaces that
 * were made before that have ended. An exit is remembered even if the tgid is not known: a process
 * that began before it and is asked for later has ended, too. Each tgid shares this memory with
 * others, of which the last exit counts.
 */
void sb_processes_exec(struct sb_processes *processes, uint32_t tgid, uint64_t time_ns);
void sb_processes_exit(struct sb_processes *processes, uint32_t tgid, uint64_t time_ns);
/*
 * The address space is alive now, whatever earlier records say: the threads of a process can go on
 * when its first one has ended. Records of an exec or exit before now are ignored from here on.
 * Nothing happens if the address space is not known, is not the latest of its process, or another
 * process has taken its tgid.
 */
void sb_processes_alive(struct sb_processes *processes, const struct sb_space_key *key);
/* The address space has ended, at the latest now. Nothing happens if it is not known, or has ended
 * already. */
void sb_processes_end(struct sb_processes *processes, const struct sb_space_key *key);

/**
 * sb_processes_forget() - drop address spaces that nobody will ask about any more
 * @before_ns: CLOCK_MONOTONIC; 0: none, only what the registry itself evicted at its bound is
 *	destroyed
 *
 * The slots of each address space that ended before @before_ns, and that sb_processes_get() was not
 * asked for since, are emptied by their destructors. It is dropped if it has no reference.
 * When the registry has grown, it also looks in /proc for each process that is not known to have
 * ended, and takes those that are not there for ended.
 *
 * Thread: one, always the same, which holds no lock that a destructor takes.
 */
void sb_processes_forget(struct sb_processes *processes, uint64_t before_ns);

struct sb_processes_stats {
	uint64_t nr_spaces;    /* now */
	uint64_t nr_forgotten; /* because of the bound: the least recently asked for goes first */
	uint64_t nr_refused;   /* because of the bound, when nothing could be forgotten */
};
/* Get the figures so far; *ret_stats is overwritten. */
void sb_processes_stats(struct sb_processes *processes, struct sb_processes_stats *ret_stats);

#endif
