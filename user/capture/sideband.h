/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decodes perf side-band records, and checks their sizes. Internal to capture. The kernel writes
 * them; a program controls only its names and mappings. Any thread. No pointer may be NULL. */
#ifndef SB_CAPTURE_SIDEBAND_H
#define SB_CAPTURE_SIDEBAND_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/sb_sym.h"

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
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t tgid;
	uint32_t parent_tgid;	/* FORK */
	uint64_t nr_lost;	/* LOST */
	struct sb_sym_mmap map; /* MMAP; map.path points into the record, map.fd is -1 */
};

/* The reader is woken each time so many bytes were written to a ring: what a static program has at
 * its start and its end, a quarter of what one with libraries has, or five records of threads. Each
 * wake-up costs the process that causes it an interrupt, so there is none for each record; the
 * reader also looks by itself. */
#define SB_SIDEBAND_WAKE_BYTES 256

/* Fill in the attributes of the event whose ring carries these records, for
 * sb_perf_open_telling_lost(); @attr is overwritten. */
void sb_sideband_attr(struct perf_event_attr *attr);

/*
 * Decode a record of the ring. @record: header.size bytes in one piece, so one that wraps around
 * the end of the ring was copied before. Return: 1 with *ret set, zeros where the kind has nothing
 * (map.fd is -1), whose strings are valid as long as the record; 0 when the record is of no
 * interest (threads, names that change without an exec, other types); -EBADMSG when its sizes do
 * not fit together. Without 1, *ret is undefined.
 */
int sb_sideband_decode(const struct perf_event_header *record, struct sb_sideband *ret);

/* Return: whether @record is about a process (false, too, if it is too short to say which); then
 * *ret_tgid is that process, of a fork the new one; otherwise it is untouched. Nothing else of the
 * record is checked: sb_sideband_decode() does that. */
bool sb_sideband_tgid(const struct perf_event_header *record, uint32_t *ret_tgid);

/* Return: whether it is a PERF_RECORD_MMAP2 that is long enough for its fixed fields and sample ID;
 * then its process and time (CLOCK_MONOTONIC) are set, otherwise they are untouched. Its path is
 * not checked. */
bool sb_sideband_is_mmap(const struct perf_event_header *record, uint32_t *ret_tgid,
			 uint64_t *ret_time_ns);

#endif
