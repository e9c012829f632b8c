/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the views share: their definitions, and helpers for the functions of struct sb_view. Used in
 * this folder; capture and cli ask only what the kernel can do, what a run lacks without a program,
 * and what a trap takes. Thread: the session's, for all that take a skel, a program, a list of
 * links or a struct sb_attaching; any for the others. Pointers are not NULL unless it says so. "A
 * negative errno" is -ENOMEM, or what libbpf or bpf(2) returned; after it the caller destroys the
 * BPF object, with all links. What is for prepare() is called after the BPF object was opened and
 * before it is loaded; what is for attach(), after it was loaded. "Implements" a function of struct
 * sb_view: view.h says when the session calls it. To "switch on" a program is to let libbpf load
 * it. Links that were appended belong to the list, also after an error. @opts and @probes are
 * borrowed until the run's results are written. A @reason is set unless it has one already.
 */
#ifndef SB_VIEWS_VIEWS_H
#define SB_VIEWS_VIEWS_H

#include <sys/types.h>

#include "base/index.h"
#include "bpf/abi/sb_abi_io.h"
#include "bpf/abi/sb_abi_latency.h"
#include "events/probe.h"
#include "views/view.h"

struct bpf_map;

#define SB_VIEW(name, ...) extern const struct sb_view sb_view_##name;
#include "kinds/views.def"
#undef SB_VIEW

/* memory.c: what the views of memory that is held are by pages (sb_view.by_pages). */
extern const struct sb_view sb_view_heap_by_pages, sb_view_leak_by_pages;

/* Values of the setting sched_waker in bpf/views/sb_sched.bpf.h. */
enum { SB_SCHED_WAKER_WEIGHS = 1, SB_SCHED_WAKER_NAMED };

/* For sb_view.prepare(): switch on these programs, none of which is NULL. Return: 0; -EINVAL if the
 * object is loaded already, and nothing has changed. */
int sb_view_switch_on(struct bpf_program *const *programs, size_t nr);

/*
 * Implements sb_view.thin() (view.h) for views that drop events by chance (sb_thin() of
 * bpf/core/thin.bpf.c), after the load, as often as wanted: from now on samples get the weight
 * @mean * 2^@step, and an event is one with the probability that fits. @opts: not used. @mean: in
 * the BPF side's unit; not 0. The product must fit in 64 bits.
 * Return: that weight, in the same unit; 0 for step 0, which takes every event.
 */
uint64_t sb_view_thin_events(struct sampler_bpf *skel, const struct sb_view_opts *opts,
			     uint32_t step, uint64_t mean);

/* pending.c: helpers for sb_view.pending(). */

/* Run the loaded iterator @iter over tasks, which writes struct sb_stack_id and nothing else, and
 * append these to @ids. Return: 0; -ENOMEM, or a negative errno of running the iterator, and then
 * nothing is appended, and the run ends with the error, because stacks that are needed would be
 * evicted. */
int sb_pending_of_tasks(const struct bpf_program *iter, sb_vec_stack_id *ids);
/* Call each() for the entries of a hash map, with copies of key and value, until it returns an
 * error. Entries may be added and removed meanwhile, also by each(); those may be missing. Return:
 * 0; what each() returned; -ENOMEM or a negative errno of bpf(2). */
int sb_map_each(const struct bpf_map *map,
		int (*each)(void *arg, const void *key, const void *value), void *arg);
/* Append the three stack IDs, zeros among them, of each entry of a hash map whose values begin with
 * a struct sb_sample_key. Entries may be added and removed meanwhile; those may be missing. Return:
 * 0; -ENOMEM, and a part may have been appended; or a negative errno of bpf(2), and then nothing is
 * appended. */
int sb_pending_of_map(const struct bpf_map *map, sb_vec_stack_id *ids);

/* sched.c: what the views of waits share; the user half of bpf/views/sched.bpf.c. */

/* For sb_view.trim: kernel frames of the context switch and the tracer; of the wake-up; of both. */
extern const char *const sb_sched_trim[];
extern const char *const sb_sched_trim_waking[];
extern const char *const sb_sched_trim_both[];

/* For sb_view.prepare(): write the settings (--min, --max, --state) and switch on the programs that
 * all of them need: those at fork and context switch, and two iterators. Enough for a view that
 * accounts at the wake-up, by a program of its own: nothing is accounted for the time in the run
 * queue, nor for waits that are not over at the end of the run. Return: 0 or a negative errno. */
int sb_sched_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);
/* sb_sched_prepare(), and in addition the programs at wake-ups and the iterator sb_sched_settle():
 * for views that account a wait up to its end, with the time in the run queue after the wake-up as
 * a state of its own. Return: 0 or a negative errno. */
int sb_sched_prepare_whole(struct sampler_bpf *skel, const struct sb_view_opts *opts);
/* Implement begin(), settle() and pending() of struct sb_view (views/view.h), for views prepared by
 * sb_sched_prepare(); settle() only after sb_sched_prepare_whole(). The first two return a program
 * of @skel, which is an iterator over tasks; never NULL. The session runs that of begin() when all
 * is attached, for waits that began before the run, and that of settle() before a snapshot and at
 * the end, for waits that are not over. pending() appends the IDs of stacks of waits that are not
 * over; it returns 0, or -ENOMEM or a negative errno of running an iterator, and then nothing is
 * appended. */
struct bpf_program *sb_sched_begin(struct sampler_bpf *skel);
struct bpf_program *sb_sched_settle(struct sampler_bpf *skel);
int sb_sched_pending(const struct sampler_bpf *skel, sb_vec_stack_id *ids);

/* io.c: the layers "syscall" and "fsync" of "io". */

/* A system call or io_uring operation that "io" samples. */
struct sb_io_row {
	const char *frame; /* the frame before the file: "sys_read", "uring_read" */
	int nr;		   /* of the system call, or the opcode of io_uring */
	struct sb_io_call how;
	bool is_sync; /* it belongs to the layer "fsync" */
};

/*
 * Find out whether the options want samples of a call, and of which directions.
 * @op: the number of the call that becomes sb_sample_key.op
 * @ret_how: the setting for the BPF side, overwritten; meaningful only if true is returned
 *
 * Return: whether they do.
 */
bool sb_io_is_wanted(const struct sb_io_row *row, const struct sb_view_opts *opts, uint8_t op,
		     struct sb_io_call *ret_how);

/* io_uring.c: I/O that programs request through io_uring. They do for it what the functions of
 * struct sb_view with these names do: prepare(), first, switches on programs and writes settings;
 * attach() appends links to @links; attaches() returns whether attach() attaches @prog; op_name()
 * returns the name of an operation of io_uring by sb_sample_key.op, a constant, or NULL. The first
 * two return 0, also on a kernel that lacks something, which sb_io_uring_missing() tells; or a
 * negative errno, attach() with @reason. */
int sb_io_uring_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);
int sb_io_uring_attach(struct sampler_bpf *skel, sb_vec_link *links, struct sb_reason *reason);
bool sb_io_uring_attaches(const struct sampler_bpf *skel, const struct bpf_program *prog);
const char *sb_io_uring_op_name(uint32_t op);

/* Return: NULL when requests of io_uring are seen in this run; or why not, a part of a sentence, a
 * constant. After attach(). */
const char *sb_io_uring_missing(const struct sampler_bpf *skel);

/* io_kernel.c: reads and writes of kernel threads, in the layer "syscall"; for sb_view.prepare():
 * switch on the programs and write settings. Return: 0, also for another layer or on a kernel that
 * lacks something; or a negative errno. */
int sb_io_kernel_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);

/* Return: NULL when I/O of kernel threads is seen in this run; or why not, a part of a sentence, a
 * constant. After prepare(). */
const char *sb_io_kernel_missing(const struct sampler_bpf *skel);

/* probes.c: attaching programs to the places of events, for sb_view.attach(). */

/* The kernel's own: an instruction that a probe cannot replace. */
#define SB_ENOTSUPP 524

/* What is attached, and where it fires: @pid and @cpu as for perf_event_open(2). */
struct sb_probe_hook {
	const struct bpf_program *program;
	uint64_t cookie; /* bpf_get_attach_cookie() */
	pid_t pid;
	int cpu;
};

/* Open the event of @probe, which counts from then on; @pid and @cpu as for perf_event_open(2).
 * Return: a descriptor, owned by the caller; or a negative errno as sb_probe_attach() has it,
 * without those of libbpf and memory. */
int sb_probe_open(const struct sb_probe *probe, pid_t pid, int cpu);

/* Attach a loaded program to one event of the kernel; @probe and @hook are not kept. The link is
 * appended to @links.
 * Return: 0; -EOPNOTSUPP if this kernel has no such probes; -SB_ENOTSUPP if it cannot replace the
 * instruction; or another negative errno of perf_event_open(2), libbpf or memory. On error nothing
 * is attached, the object can be used further, and sb_probe_explain() finds words for it. */
int sb_probe_attach(const struct sb_probe *probe, const struct sb_probe_hook *hook,
		    sb_vec_link *links);

/* Say in @reason why @probe, one of @probes, could not be attached. @err: what sb_probe_attach()
 * returned, not 0. Return: the error for the caller of the view: -EOPNOTSUPP, -EINVAL, or @err. */
int sb_probe_explain(const struct sb_probes *probes, const struct sb_probe *probe, int err,
		     struct sb_reason *reason);

/* Write the name @idx of @probes (sb_probe.name_idx, not checked) as it was spelled, without the
 * brackets of its frame, to the @size bytes at @ret, at least 1, with NUL; it is cut if it is
 * longer. */
void sb_probe_name(const struct sb_probes *probes, uint32_t idx, char *ret, size_t size);

/* trap.c: measure what a trap at a user function takes on this machine, in ns of CPU time, without
 * what programs do. It takes some 30 ms, most of it waiting. Return: that time; where it cannot be
 * measured, that of another machine. */
uint64_t sb_trap_ns(void);

/* attach.c: attaching to all places of a list. */

/* For sb_view.objects_max: different values of --value that the BPF side remembers. */
#define SB_VALUES_MAX 16384u

/* The programs of a view by the kind of the place that they are attached to. */
struct sb_programs {
	struct bpf_program *of[SB_PROBE_KIND_MAX];
};

/* Programs and the places that they are attached to. A program finds the index of its place in
 * bpf_get_attach_cookie(). Zero-initialize it, and set the members that are "in". */
struct sb_attaching {
	const struct sb_probes *probes; /* in */
	struct sb_programs programs;	/* in */
	bool at_returns; /* in: functions are hooked where they return, not where they begin */
	/* In: which places the programs are for; NULL: all. */
	bool (*wants)(const struct sb_probe *probe);
	/* In and out: by index of the place. A function that a glob matched, and that the kernel
	 * cannot hook, is left out, and so is one that another sb_attach() left out before. */
	bool is_left_out[SB_PROBES_MAX];
	int why; /* out: the error by which one of them was left out last; 0 */
	/* In: it was attached before, and detached. At any error but -ESRCH, those that were to be
	 * attached together are left out. */
	bool is_again;
	size_t nr_told; /* of those left out; sb_attach_tell()'s own */
};

/* Between open and load: switch on the programs of the places, and choose how each is attached, by
 * what this kernel can do. job->programs has one for the kind of each of these places. @job is not
 * kept: sb_attach() can have another one with the same members. Return: 0 or a negative errno. */
int sb_attach_prepare(const struct sb_attaching *job);

/* Attach the programs of @job, for which sb_attach_prepare() was called before the load;
 * sb_attach_tell() follows. Links are appended to @links. Places that are left out, see
 * job->is_left_out, are no error. Return: 0; or a negative errno with @reason; with job->is_again
 * only -ESRCH: the process has ended, and the BPF object can stay. */
int sb_attach(struct sb_attaching *job, sb_vec_link *links, struct sb_reason *reason);

/* After sb_attach() has succeeded: warn of functions that it left out since the last call. Return:
 * 0, also if none was left out since; or if all places are left out a negative errno with @reason,
 * and without a warning; with job->is_again -ENODATA with a warning. */
int sb_attach_tell(struct sb_attaching *job, struct sb_reason *reason);

/* For kernels without tracepoints of page faults: run a loaded perf_event program at each fault of
 * the machine, by a software counter on each CPU. Return: 0, or a negative errno with @reason. */
int sb_view_attach_faults(const struct bpf_program *program, sb_vec_link *links,
			  struct sb_reason *reason);

/* probes.c, for attach.c and probe_multi.c. */

/* Return: the cookie that a BPF program at @probe gets (bpf_get_attach_cookie()): @idx, the index
 * of its place, with the bit SB_COOKIE_GO for functions of Go whose returns are probed. */
uint64_t sb_probe_cookie(const struct sb_probe *probe, uint32_t idx);
/* Return: whether the program is attached to the return instructions of @probe, which is a function
 * of Go, instead of one place. */
bool sb_probe_is_at_returns(const struct sb_attaching *job, const struct sb_probe *probe);

/* probe_multi.c, for attach.c: one BPF link attaches a program to many functions. */

/* Return: whether this kernel has links to many places at once (kprobe_multi, uprobe_multi) for
 * functions of @kind, as far as the privileges of the caller show. */
bool sb_probe_multi_is_there(enum sb_probe_kind kind);
/* Return: whether the program for the places of @kind may be loaded for links to many places
 * (kprobe_multi, uprobe_multi): such places are in @probes, of the kernel at least two, and each of
 * them can be in such a link. If not, each place gets a link of its own. Asked before
 * sb_probe_multi_prepare(), which finds out whether this kernel has such links. */
bool sb_probe_multi_can(enum sb_probe_kind kind, const struct sb_probes *probes);
/* Between open and load: have @program loaded for links to many places (kprobe_multi, uprobe_multi)
 * if this kernel has them. Return: 0, also if it has none; or a negative errno. */
int sb_probe_multi_prepare(struct bpf_program *program, enum sb_probe_kind kind);
/* Return: whether @program is loaded for links to many places (kprobe_multi, uprobe_multi). Then it
 * can be attached by them only. */
bool sb_probe_multi_is_on(const struct bpf_program *program);
/* Attach to the @nr places of job->probes with the indexes @idx, at least one, which are functions
 * of the kernel, or of the same file; all are hooked at the beginning, or all at the return. Their
 * program is loaded, and sb_probe_multi_is_on() of it. The link is appended to @links.
 * Return: 0; or a negative errno, and none is hooked: it may be tried again with fewer places. */
int sb_probe_multi_attach(const struct sb_attaching *job, const uint32_t *idx, size_t nr,
			  sb_vec_link *links);

/* trace.c: members of sb_view.prepare, attach and attaches that the view "alloc" shares: a stack at
 * each place of opts->probes. prepare(), first, makes room for the places and switches on the
 * programs that they need; it returns 0 or a negative errno. attach(), after the load, goes by the
 * options of the last prepare(), not by @opts; it appends links to @links, and returns 0, or a
 * negative errno with @reason; when it is called again, after its links were destroyed, also
 * -ENODATA without: no place is left that can be attached. attaches() returns whether attach()
 * attaches @prog. */
int sb_trace_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);
int sb_trace_attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		    struct sb_reason *reason);
bool sb_trace_attaches(struct sampler_bpf *skel, const struct bpf_program *prog);

/* places.c: all places of the events of a run. */

/* Implements sb_view.attaches(). Return: whether @program is one of @programs. */
bool sb_programs_have(const struct sb_programs *programs, const struct bpf_program *program);

/* For sb_view.op_name(). Return: the frame of the event with the name @op - 1, valid as long as
 * @probes, which may be NULL; NULL: none, as for @op 0 and beyond the number of names. */
const char *sb_places_op_name(const struct sb_probes *probes, uint32_t op);

/* For sb_view.unit_of(). Return: whether samples weigh what --weight says. @probes: may be NULL. */
bool sb_places_have_weight(const struct sb_probes *probes);

/* For sb_view.prepare(): make room in the BPF maps for @probes, which sb_places_write() fills after
 * the load. Return: 0 or a negative errno. */
int sb_places_make_room(struct sampler_bpf *skel, const struct sb_probes *probes);

/* For sb_view.prepare(): make room in the BPF maps for @probes, and switch on those of @programs
 * that its places need, one for the kind of each. Next, after the load, is sb_places_attach().
 * Return: 0 or a negative errno. */
int sb_places_prepare(struct sampler_bpf *skel, const struct sb_probes *probes,
		      const struct sb_programs *programs);

/* After sb_places_write(), which would undo it: say to the BPF side, by its map of places, that
 * another program, which is attached now, takes the stacks at the place @idx (SB_EVENT_SPLIT), so
 * that the first one leaves them to it. Return: 0; or a negative errno of bpf(2): the first one
 * still takes them. */
int sb_places_split(const struct sampler_bpf *skel, const struct sb_probes *probes, uint32_t idx);

/* tracepoint_pairs.c: have latency_stacks take the stacks where pairs begin at tracepoints. For
 * sb_view.prepare(). Return: 0, also if no pair does; or a negative errno. */
int sb_tracepoint_pairs_prepare(struct sampler_bpf *skel, const struct sb_probes *probes);
/* For sb_view.attach(), after sb_places_write(), and after latency_tracepoint was attached to the
 * places, so that it is called first. If the kernel refuses a place, latency_tracepoint goes on to
 * take the stacks there, and more ends may be lost, which is counted. Return: 0; or a negative
 * errno with @reason. */
int sb_tracepoint_pairs_attach(const struct sampler_bpf *skel, const struct sb_probes *probes,
			       sb_vec_link *links, struct sb_reason *reason);

/* For sb_view.attach(): tell the BPF side what each place is. Return: 0; or a negative errno with
 * @reason. */
int sb_places_write(const struct sampler_bpf *skel, const struct sb_probes *probes,
		    struct sb_reason *reason);

/* For sb_view.attach(), after sb_places_prepare() and the load: sb_places_write(), sb_attach() and
 * sb_attach_tell(). Return: 0; or their negative errno with @reason; of sb_attach_tell() with
 * job->is_again without. */
int sb_places_attach(const struct sampler_bpf *skel, struct sb_attaching *job, sb_vec_link *links,
		     struct sb_reason *reason);

/* held.c: memory that is held, for the views of it: pairs of bpf/views/latency.bpf.c that are
 * accounted if they are open at the end. */

/*
 * Implement the functions of struct sb_view (view.h) that have their names. Those that return int
 * return 0 or a negative errno, attach() with @reason (but see struct sb_view when it is called
 * again), check() -EINVAL with *ret_why, a constant sentence, if opts->probes has no places; else
 * *ret_why is untouched.
 * check() and prepare() come first; attach() appends links to @links; attaches() tells whether
 * attach() attaches @prog; nests() returns whether no sample is lost where the kernel skips @prog
 * because it runs already; settle() returns a program of @skel, never NULL; pending() appends the
 * IDs of stacks that open pairs have, a part of them if it returns -ENOMEM; cannot_thin() returns
 * NULL unless opts->fallback is set, and then a constant; thin() returns SB_ALLOC_OBJECT * 2^@step,
 * 0 for step 0, whatever @mean is; unit_of() returns the unit of objects, a constant, with
 * *ret_divisor, if opts->is_of_objects is set, else NULL, and *ret_divisor is untouched.
 */
int sb_held_check(const struct sb_view_opts *opts, const char **ret_why);
int sb_held_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);
int sb_held_attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		   struct sb_reason *reason);
bool sb_held_attaches(struct sampler_bpf *skel, const struct bpf_program *prog);
bool sb_held_nests(const struct sampler_bpf *skel, const struct bpf_program *prog);
struct bpf_program *sb_held_settle(struct sampler_bpf *skel);
int sb_held_pending(const struct sampler_bpf *skel, sb_vec_stack_id *ids);
const char *sb_held_cannot_thin(const struct sampler_bpf *skel, const struct sb_view_opts *opts);
uint64_t sb_held_thin(struct sampler_bpf *skel, const struct sb_view_opts *opts, uint32_t step,
		      uint64_t mean);
const char *sb_held_unit_of(const struct sb_view_opts *opts, uint64_t *ret_divisor);
bool sb_held_is_sliced(const struct sampler_bpf *skel);
size_t sb_held_nr_ends(void);
int sb_held_survive(struct sampler_bpf *skel, const struct sb_held_windows *windows,
		    struct sb_held_estimate *ret_estimate);
/* Return: whether the programs at opts->probes, one of which is @prog, can be attached in slices of
 * time: the overhead is limited (opts->is_governed), all places are functions of programs, and
 * @prog has links for many places (sb_probe_multi_is_on()). For prepare(), which calls it after
 * sb_attach_prepare() of @prog and stores the result in cfg_slices, for sb_held_is_sliced(). */
bool sb_held_can_slice(const struct sb_view_opts *opts, const struct bpf_program *prog);

/*
 * survival.c, for held.c: how much of the memory that windows have seen allocated is still held. It
 * is known of a piece that it was given back if a later window has seen its address given back or
 * handed out again; of others it is not known. The estimate is made for each stack, from how often
 * such proof came. Order: a zeroed struct sb_survival, add() for each piece, judge(), then part()
 * as often as needed; release() at the end, also after an error.
 */

/* The pieces of one stack. All sums are weighted by what a piece stands for. */
struct sb_survival_group {
	uint64_t hash;
	double unproven, proven; /* without and with proof that they were given back */
	double watched, silent;	 /* of the proven: address watched since, and never seen since */
	/* In which proof came, of all and of the watched, as bits 1 << window % 64. */
	uint64_t windows, windows_watched;
	double part; /* of the unproven that are held */
};

struct sb_survival {
	SB_VEC(struct sb_survival_group) groups;
	struct sb_index by_hash;
};

/* Add a piece of memory that would be in the result if it is held. @stack: a hash of its stack.
 * @nr: pieces that it stands for. Return: 0; -ENOMEM or -E2BIG, and nothing was added. */
int sb_survival_add(struct sb_survival *survival, uint64_t stack, const struct sb_held_watch *watch,
		    double nr);
/* After all pieces were added, estimate for each stack which part of those without proof is held.
 * @traced: the part of the time that is in windows, from 0 to 1. */
void sb_survival_judge(struct sb_survival *survival, double traced);
/* Return: this part, from 0 to 1, of a stack; 0 if it cannot be distinguished from zero; 1 for a
 * stack that was not added. */
double sb_survival_part(const struct sb_survival *survival, uint64_t stack);
void sb_survival_release(struct sb_survival *survival);

/* Counters of samples that these views lose. */
#define SB_HELD_LOSSES \
	(1ull << SB_STAT_TRACE_BUSY | 1ull << SB_STAT_CALLS_FULL | 1ull << SB_STAT_CALLS_JUMPED)

/* io_layers.c: the layers of "io" below the system call: page cache, block devices, page faults. */

struct sb_io_below {
	uint32_t layer;		/* enum sb_io_layer */
	const char *count_unit; /* the unit with --count */
	const char *no_time;	/* why durations cannot be measured, a sentence; NULL: they can */
	/* Return: what the kernel lacks for this layer, a sentence; NULL: nothing. */
	const char *(*missing)(void);
	/* Switch on its programs and maps. Return: 0 or a negative errno. */
	int (*prepare)(struct sampler_bpf *skel);
};

/* Return: the row of enum sb_io_layer @layer, a constant; NULL for the layers of system calls. */
const struct sb_io_below *sb_io_layer_find(uint32_t layer);

/* Implements sb_view.prepare() for a layer, opts->io_layer, that sb_io_layer_find() finds; the
 * caller has checked that it does. Write settings, switch on programs and maps. Return: 0 or a
 * negative errno. */
int sb_io_layer_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);

/* Implements sb_view.check(). Return: 0, also for the layers of system calls; -EINVAL when the
 * options do not fit the layer; -EOPNOTSUPP when this kernel cannot do it. On error *ret_why is the
 * reason, a constant sentence; else it is not to be used. */
int sb_io_layer_check(const struct sb_view_opts *opts, const char **ret_why);

/* For sb_view.trim: kernel frames between a tracepoint and the program. */
extern const char *const sb_io_layer_trim[];

/* Implements sb_view.nests(). Return: whether @prog can trigger its own event, as the program for
 * page faults does by reading a stack. */
bool sb_io_layer_nests(const struct sampler_bpf *skel, const struct bpf_program *prog);

/* Return: the name of an operation of these layers by sb_sample_key.op, a constant; or NULL. */
const char *sb_io_layer_op_name(uint32_t op);

/* In kernel_types.c. */

struct sb_str;
struct btf;

/* Types that programs are loaded for: typedefs, one for each tracepoint; functions, one for each
 * iterator. */
#define SB_TRACEPOINT_TYPE "btf_trace_"
#define SB_ITERATOR_TYPE   "bpf_iter_"
struct sb_kernel_targets {
	size_t nr;
	bool are_found; /* all of them were looked for */
	struct sb_kernel_target {
		char name[64];
		uint32_t id; /* 0: the kernel has no such type */
	} at[64];
};

/*
 * Append a BTF to @out that has the structs, unions, enumerations and typedefs of the BTF @all
 * (@nr_bytes) which have a name that one in @object has, too. What follows "___" in a name of
 * @object is not part of it. If @object has a struct sb_percpu, make one with an int at the offset
 * of each per-CPU variable of the kernel, where @all tells them. And set the IDs that @targets,
 * which have names and id 0, have in @all; NULL: none. Nothing is kept. Any thread.
 * Return: 0; -ENOMEM; -EBADMSG: @all is damaged, or has a kind of type that is not known. After an
 * error @out may have a part, and some of @targets an ID.
 */
int sb_kernel_types(const void *all, size_t nr_bytes, const struct btf *object,
		    struct sb_kernel_targets *targets, struct sb_str *out);
/*
 * Write the BTF that sb_kernel_types() makes of the running kernel's to the file @fd, which is
 * empty and stays the caller's; or all types of the kernel if its BTF has types that are not known.
 * Return: 0; -ENOMEM; or a negative errno of reading /sys/kernel/btf/vmlinux or of writing, and the
 * file may have a part. @targets, with id 0 each, as of sb_kernel_types().
 */
int sb_kernel_types_write(int fd, const struct btf *object, struct sb_kernel_targets *targets);

/* In attach_types.c. */

/*
 * Look up the types that programs are loaded for in place of libbpf, from now on and in the whole
 * process. To be called before the object is opened, by one thread; a second call changes nothing.
 * Return: 0; -ENOMEM: libbpf still looks up some of them.
 */
int sb_attach_types_take_over(void);
/* Return: the types for which programs of the open object are loaded, each with id 0, for
 * sb_kernel_types_write(), in a static buffer that is used until the load; another call overwrites
 * it. Those whose ID is 0 at load are looked up by libbpf. Thread: the session's. */
struct bpf_object;
struct sb_kernel_targets *sb_attach_types_of(const struct bpf_object *object);

#endif
