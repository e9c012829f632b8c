/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a view takes its samples: the BPF half. The session (user/capture) opens the BPF object for
 * the views of a run and calls the functions of struct sb_view; each view is a constant of this
 * type. What the view is called and what its weights mean is the other half, struct sb_view_kind.
 *
 * Order: sb_views_add() and check() for each view; sb_views_open(), prepare() of each view, the
 * load; the programs that prepare() switched on are attached, with sb_view_attach() or by attach(),
 * and the timer; begin(); while the run goes on pending() at each drain and thin(); settle() at a
 * snapshot and at the end; expected() and report(); sb_view_destroy_link() for each link, and last
 * sampler_bpf__destroy().
 *
 * Thread: functions that take a skel (struct sampler_bpf, the BPF object), check(), and
 * sb_views_open(), which also changes what sb_view_has_tracepoint() knows, are called by the
 * session's thread; all others by any. Pointers are not NULL unless it says so. After an error of a
 * function that takes a skel and returns an int, some programs or settings may be changed: the
 * caller destroys the object. "Weight in the BPF side's unit" is what the programs count:
 * nanoseconds, bytes, events; divided by the divisor it is in the view's unit.
 *
 * To add one: bpf/views/NAME.bpf.c (programs NAME_*, all SEC("?...")), user/views/NAME.c which
 * defines sb_view_NAME, and a row in user/kinds/views.def. See docs/adding-a-view.md. The views
 * offcpu, wakeup, offwake and wall share bpf/views/sched.bpf.c and user/views/sched.c.
 */
#ifndef SB_VIEWS_VIEW_H
#define SB_VIEWS_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "bpf/abi/sb_abi.h"
#include "kinds/view_kind.h"

_Static_assert(SB_STAT_MAX <= 64, "sets of them are bits of a word");

struct sampler_bpf;
struct bpf_link;
struct bpf_map;
struct bpf_program;
struct sb_counter;
struct sb_probes;
struct sb_reason;
struct sb_str;

/* What keeps a program attached: @of_libbpf; or @fd, of links that our libbpf does not know. Who
 * owns a list of them calls sb_view_destroy_link() for each, then sb_vec_release(). */
struct sb_link {
	struct bpf_link *of_libbpf; /* NULL: @fd */
	int fd;
};
typedef SB_VEC(struct sb_link) sb_vec_link;
typedef SB_VEC(struct sb_stack_id) sb_vec_stack_id;

/* Options that only some views have; the others ignore them. Zero is the default. What pointers
 * point to is borrowed until the run's results are written, since names come from `probes`. */
struct sb_view_opts {
	uint64_t min_ns, max_ns; /* of one wait or call; 0: no bound */
	uint32_t states;	 /* bits 1 << enum sb_task_state; 0: all */
	uint64_t every_ns;	 /* one sample for each so much time of waiting; 0: every wait */
	bool is_governed;	 /* the session may call thin() */
	bool distr;		 /* split by duration or --weight; SB_BY_DURATION is set, too */
	uint32_t io_weight;	 /* enum sb_io_weight */
	uint32_t io_layer;	 /* enum sb_io_layer */
	uint32_t io_dirs;	 /* SB_IO_READ, SB_IO_WRITE; 0: all */
	uint32_t io_kinds;	 /* bits 1 << enum sb_file_kind; 0: all */
	const char *io_fs;	 /* type of filesystem; NULL: all */
	uint32_t io_dev;	 /* (major << 20) | minor; 0: all */
	uint64_t io_ino;	 /* inode; 0: all */
	const char *io_path;	 /* glob, applied when file names are resolved; NULL: all */
	const struct sb_counter *counter; /* triggers the timer's program; NULL: the clock */
	uint32_t slowest;		  /* list so many of the slowest calls; 0: none */
	const struct sb_probes *probes;	  /* of "trace": what to attach to; NULL: nothing */
	const struct sb_probes *in;	  /* events at which spans begin; NULL: no spans */
	/* Events at which they end; NULL: they are the calls of `in`. */
	const struct sb_probes *until;
	const char *in_label;	 /* spans are of the values of this label of threads; NULL: no */
	uint64_t slower_than_ns; /* only spans that take at least so long; 0: all */
	bool span_distr;	 /* the closing report has a histogram of their durations */
	bool is_of_objects;	 /* of allocations: weigh each by 1, not by its bytes */
	uint32_t alloc_layer;	 /* enum sb_alloc_layer */
	const char *value;	 /* the expression that is compiled as sb_probe.value; NULL: none */
	uint32_t memory_what;	 /* enum sb_memory_what */
	bool has_command;	 /* the run is of a command; set by the session */
	bool is_replaceable;	 /* replaceable() will be called; set by the session */
	uint32_t memory_kinds;	 /* bits 1 << enum sb_memory_kind; 0: all */
	uint32_t fallback;	 /* enum sb_fallback */
	/* What programs hold can be had from profiles of their own, in place of a view by pages. */
	bool has_own_profiles;
	/* Bit i: the targets have sb_own_heaps[i] (events/allocator.h), and the view goes by
	 * pages, or can; else 0. 0, too, if the targets are not told by process or command. */
	uint32_t own_heaps;
	bool needs_slices; /* allocations of the whole machine, under a limit */
	bool is_of_time;   /* memory: weigh by how long it is held, so that blocks add up */
};

/* Pieces of memory that are followed at a time; with what is known of each it takes 300 bytes of
 * the kernel's memory. */
#define SB_HELD_MAX 131072u

/* What ends the tracing of all calls of a run that has two views, of which the second one is by
 * pages. */
enum sb_fallback {
	SB_FALLBACK_NONE,      /* there is no second one */
	SB_FALLBACK_IF_COSTLY, /* its cost; or no room for what is held */
	/* The same, or at the end that pages have more than twice as much; of calls in slices, more
	 * than four times as much. */
	SB_FALLBACK_IF_BLIND,
};

/* Return: whether samples are restricted to spans (--in). */
static inline bool sb_view_has_spans(const struct sb_view_opts *opts)
{
	return opts->in || opts->in_label;
}

/* In span.c. Return: whether any span is a call of a Go function. If so, user space has to tell
 * the BPF programs where each process has the pointer to its current goroutine. */
bool sb_view_has_goroutines(const struct sb_view_opts *opts);

/* Where a frame for the thread's state is added to its stack. */
enum sb_state_place {
	SB_STATE_NOWHERE,
	SB_STATE_AT_ROOT, /* root frame "[runqueue]" or "[throttled]"; other states have none */
	SB_STATE_AT_LEAF, /* leaf frame "[running]", "[runqueue]", "[throttled]" or "[blocked]" */
};

/*
 * In which time a view of memory that is held has seen each call that gives memory back: in
 * windows, numbered from 1 on (sb_held_watch). Their number, their time, and when the first one
 * began (CLOCK_MONOTONIC).
 */
struct sb_held_windows {
	uint64_t nr, ns, first_ns;
};

/* What such a view estimates of memory of which no window has seen that it was given back. */
struct sb_held_estimate {
	uint64_t nr; /* pieces that were allocated in a window, outlived it, and would count */
	uint64_t nr_at_once; /* pieces that were given back in the window that saw them allocated */
	double held, gone;   /* weights that are in the result, and that are left out */
	double traced;	     /* the part of the time since the first window that is in windows */
};

/* The row of the view @name (an identifier), as a constant expression. */
#define SB_VIEW_KIND(name) &sb_view_kinds[SB_VIEW_KIND_##name]

/* A view. Functions may be NULL where it is said. */
struct sb_view {
	const struct sb_view_kind *kind; /* its row: names, unit, options */
	uint32_t slots; /* bits 1 << enum sb_scratch_slot: of its programs that take user stacks */
	uint32_t other_slots; /* the same, of its programs that take samples without user stacks */
	uint32_t objects_max; /* objects that the BPF side remembers; 0: samples have none */
	uint64_t divisor;     /* BPF weight / divisor = weight in the unit: 1000 for ns to us */
	bool needs_file_object; /* its programs are in the larger of the two BPF objects only */
	bool follows_pages; /* its samples are page faults, and its counts come from sb_resident */
	/* The same by pages, for programs whose allocations are not followed; NULL: there is
	 * none. */
	const struct sb_view *by_pages;
	bool counts_ended; /* with follows_pages: what a process held at its end is in the counts */
	bool is_of_all_threads; /* each thread is in a sample at any time, so 'snap' can use it */
	/* Bits 1 << enum sb_stat: counters of lost samples that only this view has. */
	uint64_t losses;
	const char *prefix; /* that the names of its programs begin with */
	enum sb_state_place state_place;
	/* An interrupt's stack stands for itself, not for the thread that it interrupted. */
	bool is_of_wakers;
	bool has_idle; /* waits for work are told from waits for locks: resolve/waits.h */
	/* Globs for names of kernel frames that are not part of the sample: of the first few from
	 * the leaf on, the one nearest to the root that matches is cut off, with all behind it.
	 * NULL-terminated; NULL: none. */
	const char *const *trim;
	/* Get unit and divisor by the options, in place of those of the row. NULL, or it returns
	 * NULL: they stay. */
	const char *(*unit_of)(const struct sb_view_opts *opts, uint64_t *ret_divisor);
	/* Name the operation sb_sample_key.op, for a frame between stack and object; it returns
	 * NULL when there is none. NULL: none has. */
	const char *(*op_name)(uint32_t op);

	/* Check that the options go together and that the kernel can do it. Return: 0; -EINVAL or
	 * -EOPNOTSUPP with the reason, a sentence that is not to be freed; *ret_why is not to be
	 * used after 0. NULL: nothing to check. */
	int (*check)(const struct sb_view_opts *opts, const char **ret_why);
	/* Called between open and load: switch on programs and maps, write settings. Return: 0 or a
	 * negative errno. */
	int (*prepare)(struct sampler_bpf *skel, const struct sb_view_opts *opts);
	/* Get the program that a timer on each CPU runs. NULL: no timer. */
	struct bpf_program *(*timer)(struct sampler_bpf *skel);
	/*
	 * Get the program that takes the samples, and the map of programs at whose index 0 another
	 * one replaces it at once, while timers run it. Before timers are attached, the caller puts
	 * the program itself there. Only after prepare() with is_replaceable. NULL: it cannot be
	 * replaced.
	 */
	struct bpf_program *(*replaceable)(struct sampler_bpf *skel, struct bpf_map **ret_place);
	/*
	 * Attach programs whose section does not say to what, e.g. one program to many tracepoints.
	 * Links are appended to @links, on failure too; the caller owns them. All other programs
	 * that prepare() switched on are attached by the session. Return: 0 or a negative errno,
	 * with @reason; when it is called again (is_sliced()) also -ESRCH: the process has ended,
	 * and -ENODATA: nothing is left to attach to, or what begins would have no end. NULL:
	 * nothing to attach.
	 */
	int (*attach)(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		      struct sb_reason *reason);
	/* After prepare(): whether attach() can be called again and again, each time after its
	 * links were destroyed, because the programs are to be attached in slices of time
	 * (capture/slicer.h), or may have to be when they cost too much. NULL: they are not. */
	bool (*is_sliced)(const struct sampler_bpf *skel);
	/* With is_sliced(): how many of the links that attach() has appended, from the first one
	 * on, are of what ends pairs; they can stay when the others are destroyed. NULL: none. */
	size_t (*nr_ends)(void);
	/* With is_sliced(), before `settle`: remove from what is held what was probably given back
	 * between windows. *@ret_estimate is zeroed by the caller. Return: 0; or a negative errno,
	 * and then neither it nor the result is to be used. NULL: nothing is held. */
	int (*survive)(struct sampler_bpf *skel, const struct sb_held_windows *windows,
		       struct sb_held_estimate *ret_estimate);
	/* Whether attach() attaches this program, so that the session does not. NULL: it attaches
	 * none. */
	bool (*attaches)(struct sampler_bpf *skel, const struct bpf_program *prog);
	/* Whether no sample is lost where the kernel skips a program because it runs already: it
	 * can trigger its own event, or another one counts such events. NULL: none is like that. */
	bool (*nests)(const struct sampler_bpf *skel, const struct bpf_program *prog);
	/* Get the iterators over tasks that account for waits which began before the run, or are
	 * not over at its end. `begin` runs when all is attached, `settle` at the end of the run or
	 * before a snapshot. They write a sequence of struct sb_asleep. NULL: none. */
	struct bpf_program *(*begin)(struct sampler_bpf *skel);
	struct bpf_program *(*settle)(struct sampler_bpf *skel);
	/*
	 * Append the IDs of stacks that pending samples (waits, requests) reference; zeros and
	 * duplicates may be among them. They were shipped when they were taken, so they must not be
	 * evicted yet. Return: 0 or a negative errno. NULL: stacks are taken together with their
	 * samples.
	 */
	int (*pending)(const struct sampler_bpf *skel, sb_vec_stack_id *ids);
	/*
	 * Throttle the view while it runs. Each step halves the number of samples, roughly, and
	 * doubles their weight, so that sums stay right on average.
	 * @step: 0 is the rate that was asked for
	 * @mean: mean weight of a sample at step 0, in the BPF side's unit; not 0
	 *
	 * Return: the weight of a sample from now on, in the BPF side's unit; 0 at the rate that
	 * was asked for. NULL: the view is throttled by its timer, or not at all if it has none.
	 */
	uint64_t (*thin)(struct sampler_bpf *skel, const struct sb_view_opts *opts, uint32_t step,
			 uint64_t mean);
	/* Each step of thin() halves what the programs of the view cost, whatever the load is. */
	bool thins_exactly;
	/* After prepare(): why the view cannot be throttled, the end of a sentence; it returns NULL
	 * when it can. NULL: it can if it has thin() or timer(). */
	const char *(*cannot_thin)(const struct sampler_bpf *skel, const struct sb_view_opts *opts);
	/* After the run: the sum of weights that a complete accounting has, in the BPF side's unit
	 * (wall: threads x time). NULL: it is not known. */
	uint64_t (*expected)(const struct sampler_bpf *skel);
	/* Call @row for each line of --stats and --rate on how the view works on this machine.
	 * @wall_ns: duration of the run. NULL: no lines. */
	void (*report)(const struct sampler_bpf *skel, uint64_t wall_ns,
		       void (*row)(const char *name, const char *value));
};

/* Return: the unit of the view's weights, a constant such as "microseconds". *@ret_divisor, always
 * set: weight of the BPF side / divisor = weight in that unit. */
const char *sb_view_unit(const struct sb_view *view, const struct sb_view_opts *opts,
			 uint64_t *ret_divisor);

/* Return: what @nr samples of the view are, a constant: "pages", or "page" if it is one, of views
 * that follow pages, else sb_view_kind.event or event_one. */
const char *sb_view_event(const struct sb_view *view, uint64_t nr);

/* The views of one run, in one BPF object. The index of a view is sb_sample_key.view. */
struct sb_views {
	const struct sb_view *at[SB_VIEWS_MAX];
	size_t nr;
};

/* Add @view, borrowed as long as @views is used, to @views, which is zeroed before the first, if it
 * can run beside the others: they share neither a scratch slot nor the setting that throttles them,
 * and are at most SB_VIEWS_MAX. Its check() is called later. Return: whether it was added; if not,
 * nothing changes. */
bool sb_views_add(struct sb_views *views, const struct sb_view *view);

/*
 * Open the smallest BPF object that has the programs of @views, all switched off. The caller owns
 * it and frees it with sampler_bpf__destroy(). Programs and maps that the object lacks are NULL.
 * @ret_types_fd: overwritten; the caller's, to be closed when the object has been loaded; libbpf
 *	reads the types of the kernel from it. -1: it finds them itself, or there was an error
 *
 * Next are prepare() of each view and the load. Return: the object; NULL, and errno says why, such
 * as ENOMEM: nothing is to be freed.
 */
struct sampler_bpf *sb_views_open(const struct sb_views *views, int *ret_types_fd);

enum bpf_attach_type;
/* Test, with the privileges of the caller, whether the kernel lets tracing programs attach: load
 * and attach a program that does nothing to the function or tracepoint with the ID @btf_id in the
 * running kernel's BTF, and detach it. For an attach type of BPF_PROG_TYPE_TRACING: raw tracepoint,
 * fentry, fexit. Nothing remains.
 * Return: 0: it works; or the negative errno by which the kernel refused. */
int sb_try_tracing(uint32_t btf_id, enum bpf_attach_type attach_type);

/* Run a loaded BPF iterator once, and append all that it writes to @bytes; it can be run again.
 * Return: 0; -ENOMEM; or a negative errno of attaching the iterator or reading from it; what it
 * wrote before, which may end inside a record, stays appended. */
int sb_iter_run(const struct bpf_program *iter, struct sb_str *bytes);

/* Return: what is missing from a run's results when the kernel refuses to load the program named
 * @program, as a clause for a message, a constant; NULL when no run is possible without it. */
const char *sb_view_lacks_without(const char *program);
/* Switch off @program, and the programs that depend on it, after prepare(), in an object that is
 * not loaded. When the kernel has refused to load an object because of a program, and
 * sb_view_lacks_without() returns what the run lacks, the object is destroyed and another one
 * opened, prepared, and told to do without each program that was refused so far. Return: 0; -ENOENT
 * when no run is possible without the program, or it is not known, and nothing is switched off; or
 * the negative errno of libbpf, when the object was loaded already. */
int sb_view_do_without(struct sampler_bpf *skel, const char *program);

/* Return: whether a sample of the view is an allocation that is still held, as in heap and leak
 * when they trace calls, and not a page: false for what sb_view.by_pages names. Such samples exist
 * only when the run ends. */
static inline bool sb_view_is_of_held(const struct sb_view *view)
{
	return view->kind->options & SB_VIEW_HELD && !view->follows_pages;
}

/* In attach_types.c: attach a loaded program to what its section names, as bpf_program__attach()
 * does. Return: its link, which the caller owns, and passes to sb_view_keep_link() or ends with
 * bpf_link__destroy(); NULL, with errno. */
struct bpf_link *sb_view_attach(const struct bpf_program *prog);

/* Append @link, as an attach function of libbpf returned it, to @links, which owns it then. NULL
 * stands for a failed attach, whose error is still in errno. Return: 0; -ENOMEM, and @link is
 * destroyed; or -errno for NULL. */
int sb_view_keep_link(sb_vec_link *links, struct bpf_link *link);
/* Append a link by its descriptor, as bpf(2) returned it, to @links, which owns it then. Return: 0;
 * or -ENOMEM, and @fd is closed. */
int sb_view_keep_link_fd(sb_vec_link *links, int fd);
/* Return: the link's descriptor, which stays the link's: valid until sb_view_destroy_link(). */
int sb_view_link_fd(const struct sb_link *link);
/* Detach the program of a link, and close its descriptor. The element of a list of links stays, and
 * is not to be used any more. */
void sb_view_destroy_link(struct sb_link *link);

/* Return: whether BPF programs can attach to this tracepoint (tp_btf), by its name without a
 * category; false also when the kernel's types cannot be read. If the BPF object that was opened
 * last has a program for the tracepoint, the answer is already known. Otherwise the call takes 15
 * ms, because all types of the kernel are read. Thread: any, but not during sb_views_open(). */
bool sb_view_has_tracepoint(const char *name);
/* Return: whether programs can attach to the tracepoints of single system calls: the caller may
 * read their IDs in tracefs. */
bool sb_view_has_calls(void);

/* Return: the view named @name, which is not NULL, a constant; NULL if there is none. */
const struct sb_view *sb_view_find(const char *name);
/* Return: the first view with is_of_all_threads, a constant. */
const struct sb_view *sb_view_of_all_threads(void);
/* Return: the view with number @i, a constant; NULL past the end. View 0, the default, always
 * exists. */
const struct sb_view *sb_view_at(size_t i);

#endif
