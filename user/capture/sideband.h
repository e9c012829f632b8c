/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Side-band records, decoded and checked. Internal to capture; hostile only as far as a program
 * chooses its own names and mappings. */
#ifndef SB_CAPTURE_SIDEBAND_H
#define SB_CAPTURE_SIDEBAND_H

#include <stdint.h>

#include "sb_sym.h"

struct perf_event_attr;
struct perf_event_header;

enum sb_sideband_kind {
	SB_SIDEBAND_MMAP,
	SB_SIDEBAND_FORK,
	SB_SIDEBAND_EXEC,
	SB_SIDEBAND_EXIT,
	SB_SIDEBAND_LOST,
};

struct sb_sideband {
	enum sb_sideband_kind kind;
	uint64_t time_ns;
	uint32_t tgid;
	uint32_t parent_tgid;	/* FORK */
	uint64_t nr_lost;	/* LOST */
	struct sb_sym_mmap map; /* MMAP; map.path points into the record */
};

/* The reader is woken by this much, about four programs started. Each wake-up costs the process that
 * causes it an interrupt, so not for every record; the reader looks by itself meanwhile. */
#define SB_SIDEBAND_WAKE_BYTES 4096

/* The event whose ring carries such records. */
void sb_sideband_attr(struct perf_event_attr *attr);

/*
 * Return: 1 and the record in *ret; 0: of no interest (threads, other kinds);
 * -EBADMSG: its sizes do not fit together.
 */
int sb_sideband_decode(const struct perf_event_header *record, struct sb_sideband *ret);

#endif
