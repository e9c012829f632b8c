/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of table.c, and what several of them have in common; for the views themselves only. */
#ifndef SB_VIEWS_VIEWS_H
#define SB_VIEWS_VIEWS_H

#include "sb_abi_io.h"
#include "views/view.h"

struct bpf_map;

extern const struct sb_view sb_view_io;
extern const struct sb_view sb_view_offcpu;
extern const struct sb_view sb_view_offwake;
extern const struct sb_view sb_view_oncpu;
extern const struct sb_view sb_view_wakeup;
extern const struct sb_view sb_view_wall;

/* sched_waker of bpf/views/sched.bpf.c. */
enum { SB_SCHED_WAKER_WEIGHS = 1, SB_SCHED_WAKER_NAMED };

/* For prepare(): programs are loaded only if they are switched on. */
int sb_view_switch_on(struct bpf_program *const *programs, size_t nr);

/* sb_view.thin of views whose events are thinned one by one (sb_thin() of bpf/core/thin.bpf.c). */
uint64_t sb_view_thin_events(struct sampler_bpf *skel, const struct sb_view_opts *opts,
			     uint32_t step, uint64_t mean);

/* pending.c: parts of sb_view.pending. */
/* What an iterator over tasks writes: ids, nothing else. */
int sb_pending_of_tasks(const struct bpf_program *iter, sb_vec_stack_id *ids);
/* Of a hash whose values begin with a struct sb_sample_key; entries may come and go meanwhile. */
int sb_pending_of_map(const struct bpf_map *map, sb_vec_stack_id *ids);

/* sched.c, the user half of bpf/views/sched.bpf.c: of the views of waits. */

/* Frames of the kernel that are the switch's and the tracer's; of the wake-up; of both. */
extern const char *const sb_sched_trim[];
extern const char *const sb_sched_trim_waking[];
extern const char *const sb_sched_trim_both[];

/* Settings and programs that all of them need. Return: 0 or a negative errno. */
int sb_sched_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);
/* With these, all of a wait is accounted, the part in the run queue included. */
int sb_sched_prepare_whole(struct sampler_bpf *skel, const struct sb_view_opts *opts);
struct bpf_program *sb_sched_begin(struct sampler_bpf *skel);
struct bpf_program *sb_sched_settle(struct sampler_bpf *skel);
int sb_sched_pending(const struct sampler_bpf *skel, sb_vec_stack_id *ids);

/* io.c: the layers "syscall" and "fsync" of "io". */

/* A kind of call. */
struct sb_io_row {
	const char *frame; /* what stands before the file: "sys_read", "uring_read" */
	int nr;		   /* of the system call, or the opcode of io_uring */
	struct sb_io_call how;
	bool is_sync; /* of the layer "fsync" */
};

/* Return: whether samples are wanted of such calls, and what of them, as @op (sb_sample_key.op). */
bool sb_io_is_wanted(const struct sb_io_row *row, const struct sb_view_opts *opts, uint8_t op,
		     struct sb_io_call *ret_how);

/* io_uring.c: the same asked for through io_uring. As the functions of struct sb_view. */
int sb_io_uring_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);
int sb_io_uring_attach(struct sampler_bpf *skel, sb_vec_link *links);
bool sb_io_uring_attaches(const struct sampler_bpf *skel, const struct bpf_program *prog);
const char *sb_io_uring_op_name(uint32_t op);

/* Return: NULL: requests of io_uring are seen here; or why they are not, a part of a sentence. */
const char *sb_io_uring_missing(const struct sampler_bpf *skel);

/* io_kernel.c: what threads of the kernel read and write, in the layer "syscall". */
int sb_io_kernel_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);

/* As sb_io_uring_missing(). */
const char *sb_io_kernel_missing(const struct sampler_bpf *skel);

/* io_layers.c: the layers of "io" below the system call. */

struct sb_io_below {
	uint32_t layer;		/* enum sb_io_layer */
	const char *count_unit; /* of --count */
	const char *no_time;	/* why nothing can be measured in time; NULL: it can */
	/* Return: what the kernel lacks for it, or NULL. */
	const char *(*missing)(void);
	/* Switch on its programs and maps. */
	int (*prepare)(struct sampler_bpf *skel);
};

/* Return: the row of @layer; NULL: it is one of system calls. */
const struct sb_io_below *sb_io_layer_find(uint32_t layer);

/* As sb_view.prepare, of the layer in @opts, for which sb_io_layer_find() has a row. */
int sb_io_layer_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);

/* Return: 0; -EINVAL: the options do not go with the layer; -EOPNOTSUPP: this kernel cannot. Why is
 * in *ret_why then. */
int sb_io_layer_check(const struct sb_view_opts *opts, const char **ret_why);

/* What the kernel does for a program between a tracepoint and the program; as sb_view.trim. */
extern const char *const sb_io_layer_trim[];

/* As sb_view.nests. */
bool sb_io_layer_nests(const struct sampler_bpf *skel, const struct bpf_program *prog);

/* Return: the name of an operation (sb_sample_key.op) of these layers, or NULL. */
const char *sb_io_layer_op_name(uint32_t op);

#endif
