/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A view says when a sample is taken and what its weight means.
 *
 * To add one: bpf/views/NAME.bpf.c (programs NAME_*, all SEC("?...")), user/views/NAME.c which
 * defines sb_view_NAME, and a row in table.c. See docs/adding-a-view.md.
 */
#ifndef SB_VIEWS_VIEW_H
#define SB_VIEWS_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "sb_abi.h"

_Static_assert(SB_STAT_MAX <= 64, "sets of them are bits of a word");

struct sampler_bpf;
struct bpf_link;
struct bpf_program;
struct sb_str;

typedef SB_VEC(struct bpf_link *) sb_vec_link;
typedef SB_VEC(struct sb_stack_id) sb_vec_stack_id;

/* What only some views have; the others ignore it. Zero: the default. Strings are borrowed. */
struct sb_view_opts {
	uint64_t min_ns, max_ns; /* of one wait or call; 0: no bound */
	uint32_t states;	 /* bits 1 << enum sb_task_state; 0: all */
	uint64_t every_ns;	 /* a sample for so much time of waiting; 0: every wait */
	bool is_governed;	 /* thin() may be called */
	bool distr;		 /* split by duration: SB_BY_DURATION is set too */
	uint32_t io_weight;	 /* enum sb_io_weight */
	uint32_t io_layer;	 /* enum sb_io_layer */
	uint32_t io_dirs;	 /* SB_IO_READ, SB_IO_WRITE; 0: all */
	uint32_t io_kinds;	 /* bits 1 << enum sb_file_kind; 0: all */
	const char *io_fs;	 /* type of filesystem; NULL: all */
	uint32_t io_dev;	 /* (major << 20) | minor; 0: all */
	uint64_t io_ino;	 /* 0: all */
	const char *io_path;	 /* glob; applied where objects are resolved */
};

/* Where frames say what state the thread was in. */
enum sb_state_place {
	SB_STATE_NOWHERE,
	SB_STATE_AT_ROOT, /* "[runqueue]" and "[throttled]" stand outermost; others need no word */
	SB_STATE_AT_LEAF, /* "[running]", "[runqueue]", "[throttled]", "[blocked]" */
};

struct sb_view {
	const char *name;     /* the command, and "kind" in outputs */
	const char *title;    /* of a picture: "On-CPU" */
	const char *unit;     /* of the weight: "samples" */
	const char *summary;  /* one line for help */
	const char *event;    /* what is counted, plural: "samples", "waits" */
	const char *empty;    /* the end of "nothing was sampled: ..." when nothing happened */
	uint32_t slots;	      /* bits 1 << enum sb_scratch_slot of programs that take user stacks */
	uint32_t other_slots; /* of those that take samples without */
	uint32_t objects_max; /* distinct objects that the BPF side remembers; 0: it has none */
	uint64_t divisor;     /* weights of the BPF side for one of the unit: 1000 for ns to us */
	bool has_files;	      /* its programs look at files: those of the larger object */
	uint64_t
		losses; /* bits 1 << enum sb_stat of samples that are lost, and are nobody else's */
	const char *prefix; /* of the names of its programs */
	enum sb_state_place state_place;
	bool is_of_wakers; /* stacks are those of wakers: an interrupt is not who it interrupted */
	bool has_idle;	   /* waits for locks and for work are told apart, see resolve/waits.h */
	/* Frames of the kernel that are not what the sample is about: leaf frames up to the last
	 * one of these names are cut. NULL-terminated; NULL: none. */
	const char *const *trim;
	/* The unit by options: NULL, or what replaces `unit` and `divisor`. */
	const char *(*unit_of)(const struct sb_view_opts *opts, uint64_t *ret_divisor);
	/* The name of a call by its number (sb_sample_key.op), a frame between stack and object;
	 * NULL where there is none. */
	const char *(*op_name)(uint32_t op);

	/* Whether the options go together, and the kernel can do it. Return: 0; -EINVAL, -EOPNOTSUPP
	 * and the reason, a sentence. NULL: always. */
	int (*check)(const struct sb_view_opts *opts, const char **ret_why);
	/* Between open and load: switch on the view's programs and maps, write its settings. */
	int (*prepare)(struct sampler_bpf *skel, const struct sb_view_opts *opts);
	/* The program that a timer on each CPU runs, or NULL. */
	struct bpf_program *(*timer)(struct sampler_bpf *skel);
	/* Attach what sections do not say, e.g. one program to many tracepoints; links are appended
	 * to @links, on failure too. NULL: nothing. All other programs that prepare() switched on are
	 * attached to what their section names. Return: 0 or a negative errno, logged. */
	int (*attach)(struct sampler_bpf *skel, const struct sb_view_opts *opts,
		      sb_vec_link *links);
	/* Whether attach() takes this program and the session is not to attach it; NULL: none. */
	bool (*attaches)(struct sampler_bpf *skel, const struct bpf_program *prog);
	/* Whether a program causes its own event by what it does: that it is skipped then is no loss.
	 * NULL: none does. */
	bool (*nests)(const struct sampler_bpf *skel, const struct bpf_program *prog);
	/* Iterators over tasks, run when all is attached, and when the time is up (or a snapshot is
	 * due): they give waits that began before the run, or go on after it, their due. NULL: none.
	 * Their output is a sequence of struct sb_asleep. */
	struct bpf_program *(*begin)(struct sampler_bpf *skel);
	struct bpf_program *(*settle)(struct sampler_bpf *skel);
	/*
	 * Append the stacks, zeros and doubles among them, of samples that have begun and come later: waits,
	 * requests. They were shipped when they were taken. Return: 0 or a negative errno. NULL: stacks
	 * are taken with their samples.
	 */
	int (*pending)(const struct sampler_bpf *skel, sb_vec_stack_id *ids);
	/*
	 * Make it cheaper while it runs: with each step about half as many samples, of more weight, so
	 * that sums are what they were on average. Step 0: as was asked for. @mean: weight of a sample
	 * while that was so, not 0. Return: what weight makes a sample now, in the BPF side's unit; 0: as
	 * was asked for. NULL: with its timer, if it has one, or not at all.
	 */
	uint64_t (*thin)(struct sampler_bpf *skel, const struct sb_view_opts *opts, uint32_t step,
			 uint64_t mean);
	/* After prepare(): why it cannot be made cheaper, the end of a sentence; NULL: it can. NULL
	 * itself: as thin() and timer() say. */
	const char *(*cannot_thin)(const struct sampler_bpf *skel, const struct sb_view_opts *opts);
	/* After the end: all that should have been accounted for, in the BPF side's unit (wall:
	 * threads x time); NULL: not known. */
	uint64_t (*expected)(const struct sampler_bpf *skel);
	/* Lines of --stats and doctor about how it works here: calls @row for each. NULL: none. */
	void (*report)(const struct sampler_bpf *skel,
		       void (*row)(const char *name, const char *value));
};

/* Return: the unit of its weights as they are shown, and by what those of the BPF side are divided for that. */
const char *sb_view_unit(const struct sb_view *view, const struct sb_view_opts *opts,
			 uint64_t *ret_divisor);

/* Views that run at once, in one object: their places are their numbers (sb_sample_key.view). */
struct sb_views {
	const struct sb_view *at[SB_VIEWS_MAX];
	size_t nr;
};

/* Add @view, unless one of @views takes samples in the same place. Return: whether it could be added. */
bool sb_views_add(struct sb_views *views, const struct sb_view *view);

/*
 * Open the object that has the programs of @views, all switched off; sampler_bpf__destroy() frees it.
 * Programs and maps that it lacks are NULL. Return: NULL with errno when it cannot be opened.
 */
struct sampler_bpf *sb_views_open(const struct sb_views *views);

enum bpf_attach_type;
/* Load and attach "return 0" to a function or tracepoint of the kernel, by its BTF id, and take it away.
 * Return: 0 or a negative errno. */
int sb_try_tracing(uint32_t btf_id, enum bpf_attach_type attach_type);

/* Run an iterator once over all there is, and append what it writes, to its end. Return: 0 or a negative errno. */
int sb_iter_run(const struct bpf_program *iter, struct sb_str *bytes);

/* What a run lacks that does without @program, which the kernel refuses: a part of a sentence; NULL: no run
 * can. */
const char *sb_view_lacks_without(const char *program);
/* Before load: switch it off, and those that make sense only with it. Return: 0 or a negative errno. */
int sb_view_do_without(struct sampler_bpf *skel, const char *program);

/* Append @link, or take it off again where there is no memory. NULL: what libbpf has left in errno is
 * returned. Return: 0 or a negative errno. */
int sb_view_keep_link(sb_vec_link *links, struct bpf_link *link);

/* Return: whether the kernel has that tracepoint for programs (tp_btf). Reads all types: 15 ms. */
bool sb_view_has_tracepoint(const char *name);

/* Return: the view of that name, or NULL. */
const struct sb_view *sb_view_find(const char *name);
/* Return: the i-th row, or NULL past the end. */
const struct sb_view *sb_view_at(size_t i);

#endif
