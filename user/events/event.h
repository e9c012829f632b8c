/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events as users spell them. perf, bcc and bpftrace each have names for tracepoints, functions,
 * USDT probes and counters; sb_event_parse() takes all of them (the table is in
 * stackbpf-trace(8)) and looks at nothing but the text. What a spelling means on this machine is
 * found out by sb_probes_add() (probe.h), which calls it, and of a counter by sb_counter_find().
 * Pointers are not NULL unless it says so. Thread: any.
 */
#ifndef SB_EVENTS_EVENT_H
#define SB_EVENTS_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "events/counter.h"

struct sb_reason;

#define SB_EVENT_FILE_BYTES 512u
#define SB_EVENT_NAME_BYTES 512u

enum sb_probe_kind {
	SB_PROBE_TRACEPOINT,
	SB_PROBE_KERNEL, /* a function of the kernel */
	SB_PROBE_USER,	 /* a function of a program or library */
	SB_PROBE_USDT,
	SB_PROBE_PERF, /* a counter of the kernel or of the hardware */
	SB_PROBE_KIND_MAX,
};

/* One spelling, taken apart. Strings are "" if the spelling has no such part. */
struct sb_event_spec {
	enum sb_probe_kind kind;
	bool is_return; /* at the end of the function */
	/* "A:B", a tracepoint for perf and a user function for bcc: @kind is SB_PROBE_TRACEPOINT,
	 * and SB_PROBE_USER is meant if there is no category of tracepoints named A. */
	bool is_either;
	/* The category of a tracepoint; the program or library of a function or USDT probe, a path
	 * or a name such as "c"; the PMU of a counter. */
	char file[SB_EVENT_FILE_BYTES];
	char provider[SB_EVENT_NAME_BYTES]; /* of a USDT probe; "": any */
	/* The tracepoint, function, probe or counter; all but a counter may be a glob with * and ?.
	 * With a PMU: its terms, such as "event=0xa8". "": @offset is an address in the file. */
	char name[SB_EVENT_NAME_BYTES];
	uint64_t offset;	   /* in the function, bytes */
	struct sb_counter counter; /* with a PMU: without type and config */
};

/**
 * sb_event_parse() - take the spelling of an event apart
 * @text: not NULL; "" is an error; not kept
 * @ret_spec: overwritten, also on error; holds copies, so nothing is to be freed
 * @reason: why not, a sentence that names @text; NULL: nobody wants to know
 *
 * Return: 0; -EINVAL with @reason.
 */
int sb_event_parse(const char *text, struct sb_event_spec *ret_spec, struct sb_reason *reason);

/* Return: whether @name has * or ?. */
bool sb_event_is_glob(const char *name);

#endif
