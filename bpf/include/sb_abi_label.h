/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between what reads the labels of threads in the kernel (core/label.bpf.c) and user space
 * (user/interp/labels.c), which finds where a process keeps them, and says which keys are asked for.
 *
 * Labels are what a program says of itself, thread by thread: "vehicle=car". Two forms are read:
 *
 *	OTEL	OpenTelemetry's thread context (OTEP 4947): the thread-local pointer otel_thread_ctx_v1
 *		leads to {trace 16, span 8, valid 1, flags 1, size 2, then (key 1, length 1, value)*}.
 *		A key is a number in the process's own table, which user space reads (OTEP 4719).
 *	CUSTOM	Polar Signals' custom labels, version 1: custom_labels_current_set leads to {storage,
 *		count, capacity}, storage to {key length, key, value length, value}*.
 */
#ifndef SB_ABI_LABEL_H
#define SB_ABI_LABEL_H

#include "sb_abi_interp.h"

/* Keys that a run may ask for. */
#define SB_LABELS_MAX	    8
/* Of a value: what OTEL's length can say. Longer ones of CUSTOM are cut, which is counted. */
#define SB_LABEL_VALUE_MAX  255u
/* Of a key of CUSTOM; longer ones are not asked for. */
#define SB_LABEL_KEY_BYTES  64u
/* Of OTEL's attributes; the specification recommends 612. More are not looked at, which is counted. */
#define SB_LABEL_RECORD_MAX 996u
/* Labels of one thread that are looked at. */
#define SB_LABEL_ATTRS_MAX  64
/* Of those that are asked for, packed: as many as there may be. */
#define SB_LABEL_DATA_MAX   1024u

enum sb_label_kind {
	SB_LABEL_NONE,
	SB_LABEL_OTEL,
	SB_LABEL_CUSTOM,
	SB_LABEL_KIND_MAX,
};

/* Over the words of a struct sb_interp_conf: where the thread-local variable is, and what is asked for. */
struct sb_label_conf {
	__u32 kind; /* enum sb_label_kind */
	/* The vector of thread-local blocks, with @module: of glibc, or of musl. */
	__u32 is_musl;
	__u64 dtv_at; /* from the thread pointer */
	__u64 module; /* 0: @at is from the thread pointer; else from the beginning of the module's block */
	__u64 at;
	/* OTEL: keys below @nr_keys are known to user space, which wants those whose bit is set. Of the
	 * others it does not know what they are: they are shipped. */
	__u64 nr_keys;
	__u64 wanted[4];
	/* CUSTOM: sb_label_key_hash() of each key; 0: no more. */
	__u64 key_hash[SB_LABELS_MAX];
};

/*
 * SB_INTERP_LABELS of the ring `interp_events`: struct sb_interp_event with id.lo, the name of the set,
 * id.hi, enum sb_label_kind; nr_frames bytes follow: (key 1, length 1, value)*. A key is a number in the
 * process's table (OTEL), or in the list of those asked for (CUSTOM).
 */

_Static_assert(sizeof(struct sb_label_conf) <= 8 * SB_INTERP_CONF_WORDS, "lies over its words");
_Static_assert(sizeof(struct sb_label_conf) == 72 + 8 * SB_LABELS_MAX, "no padding");

#endif
