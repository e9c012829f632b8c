/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the spelling of an event (event.h) to the places in the kernel and in files that a program
 * is attached to: tracepoints by tracefs, functions and USDT probes by the symbol tables and notes
 * of ELF files, counters by sysfs. The command line makes a list of them, and the view "trace"
 * attaches to it.
 *
 * Thread: any, one at a time for each struct sb_probes. Files and processes that are named are read
 * by the calling thread if sb_reader_begin() was not called, and else by its reader processes;
 * tracefs is always read by the calling thread. Pointers are not NULL unless it says so; that
 * includes @reason, which is zeroed before its first use. What is found and compiled belongs to the
 * list.
 *
 * A struct sb_probes begins zeroed, with the members that are "In" set. For each event
 * sb_probes_add(), then sb_probes_compile() once, and for pairs sb_probes_compile_keys(); the view
 * attaches; sb_probes_release(), also after an error.
 */
#ifndef SB_EVENTS_PROBE_H
#define SB_EVENTS_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/num.h"
#include "base/vec.h"
#include "bpf/abi/sb_abi_trace.h"
#include "events/counter.h"
#include "events/event.h"

struct sb_preset;
struct sb_reason;

/* Places of one run. Each is a hook of the kernel, which takes time to attach. */
#define SB_PROBES_MAX	    1000u
#define SB_PROBE_LINK_BYTES sizeof("/proc/self/fd/-2147483648")

/* A file that has places, kept open. */
struct sb_probe_file {
	int fd; /* owned */
	dev_t dev;
	ino_t ino;
};

enum sb_probe_args {
	SB_ARGS_OF_C,
	SB_ARGS_OF_GO,	  /* since Go 1.17: in registers, but in others than those of C */
	SB_ARGS_ON_STACK, /* Go before 1.17, Go's assembly functions: no arg0 to arg5, no retval */
};

/* One place. Which members mean something depends on the kind. */
struct sb_probe {
	enum sb_probe_kind kind;
	bool is_return;
	const struct sb_preset *preset; /* that the place was named by; NULL: none */
	bool is_call;			/* its return is hooked, too, whatever the others are */
	bool is_of_glob; /* one of many: if the kernel cannot hook it, the others are traced */
	enum sb_probe_args of_args; /* user: where the function finds its arguments */
	uint32_t name_idx;	    /* of sb_probes.names: samples of this place are shown by it */
	char *path;		    /* user, USDT: the file, as we can open it; owned */
	/* User, USDT: what the kernel is to open, a link below /proc/self/fd: the very file that
	 * was read, wherever `path` leads to since. Valid as long as the list. */
	char link[SB_PROBE_LINK_BYTES];
	char *function;	 /* kernel; tracepoint: "CATEGORY:NAME"; others: for messages; owned */
	uint64_t offset; /* kernel: in the function; user, USDT: in the file */
	uint64_t behind; /* user: of `offset`, what is behind the function's beginning */
	/* A Go function whose returns are hooked: its return instructions, offsets in the file. At
	 * calls `offset` is where each call passes once (goreturns.h). Owned. Others: empty. */
	sb_vec_u64 returns;
	/* A user function that does nothing but jump to another one, if sb_resolving.wants_jumps:
	 * where that is in the file. 0: it does more, or that was not asked for. */
	uint64_t jumps_to;
	/* User, unless places are listed: how many bytes behind its beginning a function can be
	 * hooked at less cost; and where that misses calls whose first argument is 0. 0: no such
	 * place is known. */
	uint8_t cheap, cheap_of_pointer;
	uint64_t semaphore; /* USDT: where in the file the counter of listeners is; 0: none */
	char *args;	    /* USDT: descriptors of the arguments, "8@%rdi -4@$1"; owned */
	uint64_t id;	    /* tracepoint: its number in the kernel */
	struct sb_counter counter; /* with a period */
	/* 1 + index in sb_probes.exprs; 0: none. By sb_probes_compile(): --when, --weight, --value.
	 * By sb_probes_compile_keys(): --key, where a pair begins and where it ends. */
	uint32_t when, weigh, value, begin_key, end_key;
	uint32_t roles;	 /* of a pair, SB_EVENT_* */
	uint32_t at_end; /* of a call, SB_AT_END_*; by sb_probes_compile() */
	struct sb_trace_arg
		arg[SB_TRACE_ARGS_MAX]; /* USDT, if there are expressions: where args are */
};

struct sb_probes {
	/* In: libraries are looked up in what this process maps. 0: as the dynamic linker does. */
	uint32_t tgid;
	/* In: user functions are hooked in the address space of @tgid only. */
	bool is_of_tgid_only;
	/* In: beginning and return of each place are hooked, so only functions of programs will do;
	 * and of the kernel. */
	bool is_of_calls, is_of_kernel_calls;
	/* In: no stacks are taken, so names tell the functions of a pattern apart. */
	bool is_without_stacks;
	/* In: places that are added begin or end pairs, SB_EVENT_*; 0: they are no pairs. A place
	 * that is added with both is one place. */
	uint32_t roles;
	SB_VEC(struct sb_probe) places;
	SB_VEC(struct sb_probe_file) files;
	SB_VEC(char *) names;	      /* as frames: "[c:malloc]"; owned */
	SB_VEC(struct sb_expr) exprs; /* of all places, each once */
	/* By sb_probes_compile(): the text of the values, borrowed from the caller or a preset;
	 * NULL: there are none, or those of several presets. */
	const char *value_name;
};

/* What a user asks to trace. Strings are borrowed; NULL: not said. Which members go together is not
 * checked here. */
struct sb_event_request {
	sb_vec_str events;		   /* as users spell them */
	sb_vec_str from, to;		   /* events that begin and end a pair */
	const char *when, *weight, *value; /* expressions over their arguments */
	const char *key, *to_key;	   /* expressions that match the ends of pairs */
};

/* Free the lists, not the strings; they are empty then. */
void sb_event_request_release(struct sb_event_request *request);

/**
 * sb_probes_add() - add the places of an event
 * @text: the event as spelled, which may be a glob; or a preset (preset.h), which is preferred to a
 *	function of the kernel with its name; not kept
 * @reason: why not, a sentence, with the nearest name if something is misspelled
 *
 * A place that is in the list already is not added again.
 *
 * Return: 0; -EINVAL (misspelled; more than SB_PROBES_MAX places); -ENOENT (no such file, function,
 * tracepoint, probe); -ENOEXEC (not an ELF file); -ESRCH (no such process); -EACCES, -EPERM (no
 * privilege); -EOPNOTSUPP (this kernel cannot); -ENOMEM; or another negative errno of reading a
 * file or tracefs. All with @reason. After an error the list may have a part of the places, and
 * more can be added.
 */
int sb_probes_add(struct sb_probes *probes, const char *text, struct sb_reason *reason);

/**
 * sb_probes_compile() - compile expressions for each place, with the names of its arguments
 * @when: of whether an event is a sample; NULL: as the place's preset says, else it always is
 * @weight: of the weight of a sample; NULL: as the preset says, else the number of events
 * @value: of what samples are told apart by; may be a string; borrowed as probes->value_name until
 *	the list is released, while @when and @weight are not kept; NULL: as the preset says, else
 *	nothing
 * @reason: why not, a sentence that names the option and the event
 *
 * Where a pair ends, they are not needed. All places have comm, pid, tid and cpu; a tracepoint has
 * the fields of its record, a function arg0 to arg5 or, at its return, retval, and a USDT probe its
 * arguments as arg0, arg1, ... Calls have arg0 to arg5, retval, and elapsed, in nanoseconds.
 *
 * Return: 0; -EINVAL: an expression is wrong, or no number; -ENOMEM; or a negative errno of reading
 * tracefs. All with @reason; after an error the list is only to be released.
 */
int sb_probes_compile(struct sb_probes *probes, const char *when, const char *weight,
		      const char *value, struct sb_reason *reason);

/**
 * sb_probes_compile_keys() - compile what begins and ends of pairs are matched by
 * @key: of where a pair begins, and also of where it ends if @to_key is NULL; NULL: as the place's
 *	preset says, else the thread
 * @to_key: of where a pair ends; NULL: @key. Neither is kept
 * @reason: why not, a sentence that names the option and the event
 *
 * A key may be a string. Then it is one at all places.
 *
 * Return: 0; -EINVAL: an expression is wrong, or a key is a string at some places only; -ENOMEM; or
 * a negative errno of reading tracefs. All with @reason; after an error the list is only to be
 * released.
 */
int sb_probes_compile_keys(struct sb_probes *probes, const char *key, const char *to_key,
			   struct sb_reason *reason);

/* Add all places of @request to @probes, which has no places yet, and compile the expressions;
 * @probes borrows request->value. Return: 0; a negative errno with @reason, as of sb_probes_add()
 * and sb_probes_compile(), and @probes is only to be released. */
int sb_probes_find(struct sb_probes *probes, const struct sb_event_request *request,
		   struct sb_reason *reason);

/* Add the places of @event, at which spans begin or end, to @probes, as sb_probes_add() does. The
 * list does not say which of the two they do, and its roles are 0: the caller has a list for each,
 * or, if spans end where the functions return, one with is_of_calls. It may have no counter before,
 * and is attached without being compiled. @event is not kept. Return: 0; -EINVAL if it is a
 * counter, or what sb_probes_add() returned; with @reason. After an error a part of the places may
 * be there, or the counter, and the list is only to be released. */
int sb_probes_find_boundary(struct sb_probes *probes, const char *event, struct sb_reason *reason);

/* Free what the list holds, also after an error and of a zeroed one; it has no places then, and
 * what is "In" stays. No view may use it any more. */
void sb_probes_release(struct sb_probes *probes);

/**
 * sb_probes_list() - call a function for each event that matches a pattern
 * @pattern: an event with a glob: "c:pthread_*", "u:/usr/bin/python3:*" or, of tracepoints,
 *	"sched:*"; or, without a colon, a glob for names of presets, counters and tracepoints
 * @tgid: of the process in whose mappings libraries such as "c" are looked up; 0: they are looked
 *	up as the dynamic linker does
 * @fn: gets @arg, a spelling that sb_probes_add() takes, and more about the event or NULL, valid
 *	during the call; a negative return value ends the list and is returned
 *
 * Without a colon, presets come first. No list is made, so nothing is to be released.
 *
 * Return: 0, also if a pattern without a colon matches none; what @fn returned; -ENOENT: there is
 * no such file, or a pattern with a colon matches none; or another errno as of sb_probes_add(). All
 * with @reason, which means nothing if @fn ended the list.
 */
int sb_probes_list(const char *pattern, uint32_t tgid,
		   int (*fn)(void *arg, const char *event, const char *detail), void *arg,
		   struct sb_reason *reason);

#endif
