/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names of views, and what their profiles mean, without BPF. The command line, the store, the
 * formats, flame graphs and the page use it. One table, views.def, has a row for each view; the
 * view's name is also the metadata "kind" of its profiles. How samples are taken is the other half:
 * struct sb_view of views/view.h. Everything here is constant: safe on any thread, nothing is
 * freed.
 */
#ifndef SB_KINDS_VIEW_KIND_H
#define SB_KINDS_VIEW_KIND_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The colours of plain, kernel, inlined and interpreter frames, which pictures and the page share.
 */
enum sb_colors {
	SB_COLORS_FLAME, /* also of profiles that no view made */
	SB_COLORS_ICE,
	SB_COLORS_WAKE,
	SB_COLORS_SLATE,
	SB_COLORS_DISK,
	SB_COLORS_MAX,
};

/* Which groups of options a view has; the row of an option names the groups that it is in. */
enum sb_view_options {
	SB_VIEW_TIMED = 1 << 0,	  /* --freq, --event: samples are taken by a timer */
	SB_VIEW_PER_CPU = 1 << 1, /* --cpu: of some CPUs only */
	SB_VIEW_LASTING = 1 << 2, /* --min, --max, --distr: what is sampled takes time */
	SB_VIEW_STATES = 1 << 3,  /* --state: waits of some thread states only */
	SB_VIEW_IDLE = 1 << 4,	  /* --idle: stacks are those of the thread that waits */
	SB_VIEW_EVERY = 1 << 5,	  /* --every: a sample for so much time of waiting */
	SB_VIEW_FILES = 1 << 6,	  /* --layer, --fs, ...: which files, and how they are weighed */
	SB_VIEW_EVENTS = 1 << 7,  /* --list: events are operands */
	SB_VIEW_EXPRS = 1 << 8,	  /* --when, --weight: expressions over their arguments; --distr: of
				   * --weight, unless what is sampled takes time */
	SB_VIEW_PAIRS = 1 << 9,	  /* --from, --to, --key: what two events are the ends of */
	SB_VIEW_SPANS = 1 << 10,  /* --in, --slower-than: samples of slow calls only */
	SB_VIEW_RATE = 1 << 11,	  /* --rate: events that can be counted without stacks */
	SB_VIEW_PAGES = 1 << 12,  /* --churn, --swapped: which pages */
	SB_VIEW_ALLOCS = 1 << 13, /* --objects, --allocator: allocations of memory */
	SB_VIEW_LIVE = 1 << 14,	  /* --live: the view named `live` instead */
	SB_VIEW_HELD = 1 << 15,	  /* of these, they are followed until they are given back */
};

struct sb_view_kind {
	const char *name;  /* the command, and "kind" in outputs; at most 11 bytes, for the store */
	const char *title; /* of a picture, before "flame graph": "On-CPU" */
	const char
		*unit; /* of the weight, unless the view's unit_of() says another one: "samples" */
	const char *event;     /* what a sample is, plural: "samples", "waits" */
	const char *event_one; /* the singular */
	const char *summary;   /* one line for help */
	const char *
		empty; /* the end of "nothing was sampled: ..." when nothing happened; NULL: none */
	enum sb_colors colors;
	bool is_estimate; /* weights have a sampling error, since not every event is a sample */
	bool has_files;	  /* stacks may end in a file */
	bool is_of_growth; /* weights came in the first half of the run and stayed: they are a growth */
	bool takes_events; /* its command has operands, which are events */
	bool takes_calls;  /* and these are functions, whose calls it measures */
	/* The name of its values in each format; NULL: `name`. */
	const char *pprof, *otlp, *pyroscope;
	const char
		*objects; /* the same in all formats, if the weights are objects; NULL: as above */
	const char *live; /* of SB_VIEW_LIVE: the view of what is held; NULL */
	uint32_t options; /* bits of enum sb_view_options */
};

/* The number of a row: SB_VIEW_KIND_oncpu. */
enum sb_view_kind_nr {
#define SB_VIEW(name, ...) SB_VIEW_KIND_##name,
#include "kinds/views.def"
#undef SB_VIEW
	SB_VIEW_KIND_MAX,
};

/* Indexed by enum sb_view_kind_nr. */
extern const struct sb_view_kind sb_view_kinds[SB_VIEW_KIND_MAX];

/* Return: the first row of the table, a constant: what is sampled or asked for when nothing else is
 * said. */
static inline const struct sb_view_kind *sb_view_kind_default(void)
{
	return &sb_view_kinds[0];
}

/* Between a view and the name of a definition of events or spans: "trace:ssl", "oncpu:slow". */
#define SB_VIEW_KIND_OF ":"

/* Return: the row of the view @name, or of the one before a colon in @name, if that takes events or
 * has spans; a constant. NULL when no view is called that, or @name is NULL. */
const struct sb_view_kind *sb_view_kind_find(const char *name);

/* Return: whether what the view @name samples takes time, so that its histograms are those of
 * durations; true if there is no such view, or @name is NULL. */
bool sb_view_kind_is_lasting(const char *name);

/* Return: whether there can be profiles of the kind in a store. What is held is known at the end of
 * a run only. */
static inline bool sb_view_kind_is_recorded(const struct sb_view_kind *kind)
{
	return !(kind->options & SB_VIEW_HELD);
}

#define SB_VIEW_KIND_LIST_BYTES 160
/* Set @names to the names of the views for which @is_in() is true, "oncpu, offcpu, ...": "" if
 * there are none; all of them fit. Return: @names. */
const char *sb_view_kind_list(bool (*is_in)(const struct sb_view_kind *kind),
			      char names[SB_VIEW_KIND_LIST_BYTES]);
/* Return: the names of the views that can be recorded, "oncpu, offcpu, ...", in a static buffer
 * that is filled anew by each call, with the same. Thread: the main one. */
const char *sb_view_kind_names(void);

/* Return: what pprof, OTLP and Pyroscope call the values of profiles of the view @name, a constant.
 * If the view has no other name for them, or no view is called exactly that, as for "trace:ssl",
 * @name itself, which may be NULL. */
const char *sb_view_kind_pprof(const char *name);
const char *sb_view_kind_otlp(const char *name);
const char *sb_view_kind_pyroscope(const char *name);
/* Return: what all formats call the values of the view @name, which may be NULL, if their @unit,
 * which may not, is SB_VIEW_UNIT_OBJECTS; a constant. NULL: it is another unit, or they have no
 * such name, or no view is called that. */
const char *sb_view_kind_objects(const char *name, const char *unit);

/* The unit of views whose weights are objects. */
#define SB_VIEW_UNIT_OBJECTS "objects"

#endif
