/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interpreters in processes. This module finds which language runtimes a process has, tells the
 * walkers in the kernel where things lie in them, and reads the names of the frames that the
 * walkers found. The capture side asks it to look at processes and to read names, the resolver asks
 * it for names. A name is read once for each code object and kept, because the process may be gone
 * a moment later.
 *
 *	interp.c	finding the runtimes of a process
 *	spaces.c	processes that are remembered, and what is kept of those that are not
 *	names.c		names of frames
 *	anchors.c	where the loops of interpreters are; what a process runs
 *	runtime.h	the interface of one runtime; table.c has all of them
 *	files.c		files that processes map, each of which is examined once for runtimes
 *	image.c		such a file, as a process maps it; split_functions.c finds the second part
 *			of functions that the compiler has split
 *	stub.c		what a short function does, read from its machine code
 *	threads.c	how a libc stores thread-specific data
 *	memory.c	reading a process's memory; pages.c reads many pages at once
 *	lua_text.c	names of functions and files, for LuaJIT and PUC Lua
 *	user_walk.c	the kernel's walkers, run in user space for threads that sleep
 *	go_heap.c	the heap profile that programs of Go keep; it stands alone
 *	labels.c	labels of threads; label_keys.c reads the names of their keys, label_go.c
 *			finds those of goroutines
 *
 * A frame is a struct sb_interp_frame, two numbers without a name. A segment is a run of frames
 * from one entry of the interpreter by C code to the next; an anchor is a range of machine code,
 * the interpreter's main loop, of which the native stack has one frame for each segment.
 *
 * Order: sb_interp_new(); for each address space sb_interp_look(), and again when its mappings have
 * changed, after each of which the caller writes the confs to the BPF maps of the walkers;
 * sb_interp_fetch() for the frames of each new stack, while the process lives; sb_interp_ended();
 * sb_interp_name() at any time; at the end sb_interp_free(). Where only the tgid was known at the
 * look, sb_interp_adopt() follows. struct sb_interp_anchors is filled in by sb_interp_anchors()
 * before it is asked. After an error all functions can be used as before.
 *
 * Thread: any, for all functions; one lock protects everything, and is held while a process is
 * read, so a call may wait for as long as that takes. No pointer may be NULL unless a function says
 * so; keys, frames and sets are not kept. An address space that was not looked at, or that was
 * evicted, is unknown, which is no error unless a function says so.
 */
#ifndef SB_INTERP_INTERP_H
#define SB_INTERP_INTERP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "bpf/abi/sb_abi_interp.h"
#include "process/process.h"

struct sb_interp;

/* Return: the name of the i-th runtime of sb_runtimes.def, a constant; NULL past the end. */
const char *sb_interp_runtime_name(size_t i);

struct sb_interp_opts {
	struct sb_processes *processes; /* borrowed; NULL: a private registry, which never evicts */
	bool lines;			/* read files and lines of frames, too */
	size_t names_bytes_max; /* bytes of names that are kept, see sb_interp_ended(); 0: 64 MiB */
	/* Borrowed: the process that reads call frame information; NULL: it is read in this one. */
	struct sb_parser_seat *parser;
	const char *const *labels; /* borrowed: the keys of the labels to read; NULL: none */
	size_t nr_labels;	   /* up to SB_LABELS_MAX */
	const char *span_label;	   /* borrowed: the key on which spans depend; NULL: none */
	bool goroutines;	   /* find where programs of Go say which goroutine a thread runs */
	bool no_frames;		   /* read labels only, look for no runtimes */
};

/* Make a struct sb_interp, owned by the caller, who ends it with sb_interp_free(). @opts is copied;
 * what it borrows has to outlive it. It becomes the owner of a slot of opts->processes, which may
 * be NULL, so it is to be called before other threads use that registry.
 * Return: 0; -ENOMEM: *ret_interp is untouched. */
int sb_interp_new(const struct sb_interp_opts *opts, struct sb_interp **ret_interp);
/* Free it with all names; no other thread may use it any more. Accepts NULL. */
void sb_interp_free(struct sb_interp *interp);

/* Return: the runtimes that are looked for, bits 1 << enum sb_runtime_kind: all, or none with
 * no_frames. */
uint32_t sb_interp_wanted(const struct sb_interp *interp);

/* Return: the runtimes that a program of this name (without its folder) mostly has, bits 1 << enum
 * sb_runtime_kind, of sb_interp_wanted(). Nothing is read. Any thread, does not block. */
uint32_t sb_interp_guess(const struct sb_interp *interp, const char *program);

/* Return: the runtimes that were found in the process by its last look, bits 1 << enum
 * sb_runtime_kind; those that have not begun, and those that are not walked, included. UINT32_MAX:
 * there may be more than are remembered, or it was not looked at. */
uint32_t sb_interp_found_in(struct sb_interp *interp, const struct sb_space_key *space);

/* What the walkers in the kernel have to know of one process. */
struct sb_interp_confs {
	uint32_t nr;
	struct sb_interp_conf conf[SB_INTERP_PER_PROC];
	bool has_labels;
	struct sb_interp_conf labels; /* struct sb_label_conf */
};
/**
 * sb_interp_look() - find the runtimes of a process, or look at it again after its mappings changed
 * @space: its address space; or {.tgid} alone, when it is not known yet: see sb_interp_adopt()
 * @ret_confs: overwritten, and nothing is to be freed; on error it has what was found until then,
 *	and nothing if the mappings could not be read; it goes into the BPF maps after an error,
 *	too, but for -ESRCH
 *
 * It may be called again at any time, also after an error.
 *
 * Return: 0; -EAGAIN when a runtime has not begun yet, or the dynamic linker is not done: call
 * again soon; -ESRCH when the process has ended, even if it is still a zombie: sb_interp_ended() is
 * next; -ENOMEM; -E2BIG when the registry of processes is full; or the errno of reading
 * /proc/PID/maps or memory of the process, such as -EPERM.
 */
int sb_interp_look(struct sb_interp *interp, const struct sb_space_key *space,
		   struct sb_interp_confs *ret_confs);
/* Find the runtimes of a process as sb_interp_look() does, but with mappings that another thread
 * has read, if they are kept and it began to read them at @since_ns (CLOCK_MONOTONIC) or later
 * (sb_procfs_code_since()); UINT64_MAX: they are read anew. *ret_confs is overwritten, and nothing
 * is to be freed; on error it has what was found until then. Return: 0; -EAGAIN: call again soon;
 * -ESRCH when the process has ended; -ENOMEM; -E2BIG when the registry of processes is full; or
 * another negative errno of reading the process. */
int sb_interp_look_since(struct sb_interp *interp, const struct sb_space_key *space,
			 uint64_t since_ns, struct sb_interp_confs *ret_confs);
/*
 * Return: whether a file that was once looked at under this path had no interpreter in it. Another
 * file may have the same path by now, so the answer is good for delaying a look, not for skipping
 * it. True of paths that begin with '[', too (the vDSO); false when it is not known, or no longer.
 * Any thread, does not block.
 */
bool sb_interp_seems_plain(const struct sb_interp *interp, const char *path);
/* Return: whether the file with this identity (device, inode, size, time of change) is known to
 * have no interpreter; false when it is not known, or no longer. Any thread, does not block. */
struct stat;
bool sb_interp_is_plain(const struct sb_interp *interp, const struct stat *st);
/* Note that none of the files a process maps has an interpreter, in place of a look: it counts as
 * looked at, and sb_interp_runtime_of() returns "native". Return: 0; -ENOMEM; -E2BIG when the
 * registry of processes is full; nothing is noted then. */
int sb_interp_note_native(struct sb_interp *interp, const struct sb_space_key *space);
/* Return: whether the process has been looked at under this key, also if the look then failed. If
 * not, sb_interp_adopt() is next, and if that fails, sb_interp_look(). */
bool sb_interp_knows(struct sb_interp *interp, const struct sb_space_key *space);
/**
 * sb_interp_adopt() - move what was found in a process to its address space
 * @space: start_ns is not 0; the address space of a process that may have been looked at as {.tgid}
 *	when only its number was known; all that was found in it, with the names that were read,
 *	belongs to @space afterwards, or is dropped if @space was known
 *
 * Return: 0 when @space is known now; -ENOENT when neither it nor {.tgid} has been looked at;
 * -ESTALE when {.tgid} was another process, or another program of this one; -ENOMEM; -E2BIG when
 * the registry of processes is full. After the last three what was found in it is dropped.
 */
int sb_interp_adopt(struct sb_interp *interp, const struct sb_space_key *space);
/*
 * Note that a process has ended or called execve(); one that is not known is ignored. Its names are
 * kept until the registry evicts the address space. When all names take more than names_bytes_max,
 * ended processes are evicted here, least recently looked at first. Only what sb_interp_each()
 * reports outlives that.
 */
void sb_interp_ended(struct sb_interp *interp, const struct sb_space_key *space);

/**
 * sb_interp_fetch() - read the names of frames that are not known yet, while the process lives
 *
 * After a look at the process. A frame that cannot be read is not an error: it is tried again,
 * after growing pauses, when a later call or sb_interp_name() has it, unless the registry knows
 * that the address space has ended. An address space that is not known is ignored.
 *
 * Return: 0; -ENOTSUP, once, when many names of a runtime were tried and not one could be read:
 * call sb_interp_look(), which leaves that runtime out; the names of all other @frames were read;
 * -ENOMEM: the names before it were read, and it may be called again.
 */
int sb_interp_fetch(struct sb_interp *interp, const struct sb_space_key *space,
		    const struct sb_interp_frame *frames, size_t nr);

/* One function of a frame. Zero-initialise it; sb_interp_name_release() frees the strings. */
struct sb_interp_name {
	struct sb_str name; /* "[unreadable python frame]", "[forgotten frame]": when is_unnamed */
	struct sb_str file; /* empty: not known */
	uint32_t line;	    /* 0: not known */
	bool is_unnamed;    /* the name could not be read */
	bool is_glue;	    /* of interest only to those who look at the runtime itself */
};
/*
 * Get the @i-th name of a frame. Name 0 is the innermost function that was inlined into the frame,
 * the last one is the frame's own function; most frames have one name. The strings in @name are
 * overwritten; one struct can be used for many calls. A name that was not fetched is read here; one
 * that cannot be read is no error, but is_unnamed, and so is "[forgotten frame]": the address space
 * is not known, or has too many names. Return: 0; -ENODATA when there are no more, with
 * empty strings; -ENOMEM: @name is only to be reused or released.
 */
int sb_interp_name(struct sb_interp *interp, const struct sb_space_key *space,
		   const struct sb_interp_frame *frame, uint32_t i, struct sb_interp_name *name);
/* Free the strings, which are empty then. Accepts a zeroed struct. */
void sb_interp_name_release(struct sb_interp_name *name);
/* Return: the address of the C function that an interpreter frame stands for; 0: it is none, or it
 * is not known because sb_interp_fetch() or sb_interp_name() has not read the frame's name yet. The
 * process is not read here. */
uint64_t sb_interp_c_function(struct sb_interp *interp, const struct sb_space_key *space,
			      const struct sb_interp_frame *frame);

/* Labels of a thread, packed as the kernel ships them: see sb_abi_label.h. */
struct sb_interp_label_set {
	uint32_t kind; /* enum sb_label_kind */
	bool has_ids;  /* data begins with SB_LABEL_IDS_BYTES of IDs */
	size_t nr_bytes;
	const void *data; /* (key 1, length 1, value)* */
};
/* Bits that sb_interp_labels() returns. */
enum {
	/* What sb_interp_look() returns for the process has changed: call it. */
	SB_LABELS_CHANGED = 1 << 0,
	/* The process's table lacked a key of the set; it may be there at the next attempt. */
	SB_LABELS_AGAIN = 1 << 1,
};
/*
 * Append the values of a set's labels to @text: for each key of the options, in their order, the
 * value or nothing, then a NUL. Control characters are replaced. In an address space that is not
 * known all values are nothing.
 * Return: 0; or SB_LABELS_CHANGED: call sb_interp_look(), whose has_labels or labels have changed;
 * SB_LABELS_AGAIN: a value may be missing, and the set is worth another attempt later; or both;
 * -ENOMEM, and a part may have been appended.
 */
int sb_interp_labels(struct sb_interp *interp, const struct sb_space_key *space,
		     const struct sb_interp_label_set *set, struct sb_str *text);
/*
 * Read the labels of a thread that sleeps and append them as sb_interp_labels() does: a value and a
 * NUL for each key of the options, but nothing for a thread without labels, or that cannot be read.
 * @thread_pointer: its FS base, or tpidr_el0 on arm64. @regs: its registers, by DWARF number.
 * Return: 0; or bits of SB_LABELS_CHANGED, to look at the process, and SB_LABELS_AGAIN, to try
 * again later; -ENOMEM, and a part may have been appended.
 */
int sb_interp_labels_outside(struct sb_interp *interp, const struct sb_space_key *space,
			     uint64_t thread_pointer, const __u64 *regs, struct sb_str *text);

/*
 * Say what a process runs. Return: the name of a runtime, that of the program itself before those
 * of libraries; "go"; "native" when no runtime was found; NULL when the process was not looked at
 * while it had memory, or with no_frames. The string is a constant.
 */
const char *sb_interp_runtime_of(struct sb_interp *interp, const struct sb_space_key *space);

/* Where the main loops of a process's interpreters are, whose frames on the native stack stand for
 * segments of interpreter frames. */
#define SB_INTERP_ANCHORS_MAX 128
enum sb_interp_anchor_kind {
	SB_INTERP_ANCHOR_LOOP,
	SB_INTERP_ANCHOR_CALLER, /* calls the loop and has a segment: see struct sb_runtime */
	SB_INTERP_ANCHOR_INNER,	 /* calls the loop and has none */
};
struct sb_interp_anchors {
	uint32_t runtimes[SB_INTERP_PER_PROC]; /* enum sb_runtime_kind; runtimes walked by state */
	const char *files
		[SB_INTERP_PER_PROC]; /* base names of their files; valid as long as @interp is */
	size_t nr_runtimes;
	uint32_t natives[SB_INTERP_PER_PROC]; /* runtimes whose frames the native walk finds only */
	/* Their base names, or "" for those whose loop is not in a file. */
	const char *native_files[SB_INTERP_PER_PROC];
	size_t nr_natives;
	struct sb_interp_anchor {
		uint64_t begin, end;
		uint32_t runtime;
		uint32_t kind; /* enum sb_interp_anchor_kind */
	} at[SB_INTERP_ANCHORS_MAX];
	size_t nr;
};
/* Fill in *ret_anchors, in any case; it holds nothing to free, and its names live as long as
 * @interp. Ranges beyond SB_INTERP_ANCHORS_MAX are left out. Return: whether the process has an
 * interpreter that is walked. */
bool sb_interp_anchors(struct sb_interp *interp, const struct sb_space_key *space,
		       struct sb_interp_anchors *ret_anchors);
/* Return: the runtime (enum sb_runtime_kind) whose main loop has the native frame at @addr; 0:
 * none. An address in a range of kind LOOP decides. In no such range, @name (of the frame's symbol;
 * may be NULL) is compared with the names by which the runtimes of the process call their loop. */
uint32_t sb_interp_anchor_of(const struct sb_interp_anchors *anchors, uint64_t addr,
			     const char *name);

/* Return: SB_INTERP_ANCHOR_CALLER or _INNER when @addr, an address in the process, lies in such a
 * caller of @runtime's loop; SB_INTERP_ANCHOR_LOOP: in neither. */
uint32_t sb_interp_caller_of(const struct sb_interp_anchors *anchors, uint32_t runtime,
			     uint64_t addr);
/* Return: whether CALLER ranges are known for @runtime, so that its frames can be counted by them.
 */
bool sb_interp_has_callers(const struct sb_interp_anchors *anchors, uint32_t runtime);

/* Get the unwind rule of the generated code of a runtime in the process, the last one found if
 * there are several, for sb_symbolizer_unwind(). *ret_rule is untouched when no rule is known, so
 * zero it before. */
struct sb_sym_rule;
void sb_interp_code_rule(struct sb_interp *interp, const struct sb_space_key *space,
			 struct sb_sym_rule *ret_rule);

/*
 * Walk the interpreter stack of a thread that sleeps, from user space, with the kernel's walkers.
 * Only runtimes that are walked by state. @pages: memory of the process is read by it
 * (interp/core/pages.h); its tgid is set here. @walk: the caller sets thread_pointer, pc, sp, regs;
 * the rest is overwritten with the result: nr_frames, frame[], and event.status (SB_STACK_*). The
 * process was looked at before; sb_interp_fetch() of the frames is next.
 *
 * A caller that sets pages->is_noting also resets is_short before the walk. If is_short is set
 * afterwards, the result is not to be used, whatever is returned: read the pages with
 * sb_pages_fetch(), reset is_short, and walk again. Without is_noting the walk reads missing pages
 * itself, so its result counts.
 *
 * Return: 0; -ENOENT when there are no frames, or the address space is not known.
 */
struct sb_interp_walk;
struct sb_pages;
int sb_interp_walk_outside(struct sb_interp *interp, const struct sb_space_key *space,
			   struct sb_pages *pages, struct sb_interp_walk *walk);

/*
 * Walk the interpreter stack of a thread that sleeps, for runtimes whose frames lie on the native
 * stack. The caller fills in @hook and calls sb_interp_hook_begin(); if that returns true, then
 * sb_symbolizer_unwind() with @ret_hook, and after its success sb_interp_hook_end(); hook->walk has
 * the frames then. Nothing is to be freed. @hook, and what its pointers borrow, must outlive the
 * unwinding. The lock is not held in between.
 */
struct sb_sym_hook;
struct sb_interp_hook {
	struct sb_interp *interp; /* borrowed */
	struct sb_space_key space;
	struct sb_interp_walk *walk; /* borrowed; thread_pointer, pc, sp, regs are set */
	/* A copy of the stack from when the thread was seen asleep, read instead of the process's
	 * memory. */
	const void *stack;
	uint64_t stack_addr, nr_stack_bytes;
	/* Private to interp. */
	const void *memory;
	uint32_t nr_steps;
};
/* Prepare hook->walk, and fill in *ret_hook for sb_symbolizer_unwind(). Return: whether the process
 * has a runtime whose frames lie on the native stack; if not, *ret_hook is untouched. */
bool sb_interp_hook_begin(struct sb_interp_hook *hook, struct sb_sym_hook *ret_hook);
/* After the unwinding has succeeded: append to hook->walk the frames of runtimes that are walked by
 * state, if the native stack had frames of a runtime. Return: whether it had; if not, hook->walk
 * has no frames. */
bool sb_interp_hook_end(struct sb_interp_hook *hook);

/* A runtime that was found in a process, for doctor and the closing report. Of address spaces that
 * were evicted, equal findings are merged into one. Strings are valid during the callback. */
struct sb_interp_found {
	struct sb_space_key space;
	uint32_t runtime;
	const char *runtime_name, *version, *path;
	const char *why; /* the end of a sentence that says why it is not walked; NULL: it is */
	bool is_pending; /* the runtime has not begun; @why says so */
};
/* Call @fn for each runtime that was found in a process, until it returns non-zero. Meanwhile this
 * module and the registry of processes are locked, so @fn must not call functions of either. The
 * struct that @fn gets is valid during the call only. Return: what @fn returned last; 0 if no
 * runtime was found. */
int sb_interp_each(struct sb_interp *interp,
		   int (*fn)(void *arg, const struct sb_interp_found *found), void *arg);

struct sb_interp_stats {
	uint64_t nr_looks, nr_processes; /* processes with an interpreter, evicted ones included */
	uint64_t nr_unlisted;		 /* findings that sb_interp_each() had no room to keep */
	uint64_t nr_labelled;		 /* remembered processes that have labels */
	uint64_t nr_label_sets;		 /* label sets that were decoded */
	uint64_t nr_unknown_keys;	 /* labels whose key the process does not name */
	uint64_t nr_refused;		 /* runtimes beyond SB_INTERP_PER_PROC of one process */
	uint64_t nr_names, nr_unreadable,
		nr_late;		 /* read by sb_interp_name() instead of sb_interp_fetch() */
	uint64_t nr_bytes, nr_forgotten; /* bytes of names; processes evicted to make room */
	uint64_t look_ns, fetch_ns;
};
/* Get the figures so far; *ret_stats is overwritten. */
void sb_interp_stats(struct sb_interp *interp, struct sb_interp_stats *ret_stats);

#endif
