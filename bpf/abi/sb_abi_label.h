/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the reader of threads' labels in the kernel (core/label.bpf.c) and user space
 * (user/interp/core/labels.c), which finds where a process keeps them, and says which keys are
 * wanted.
 *
 * Labels are what a program says about itself for each thread: "vehicle=car". Three formats are
 * read:
 *
 *	OTEL	OpenTelemetry's thread context (OTEP 4947): the thread-local pointer
 *		otel_thread_ctx_v1 leads to {trace 16, span 8, valid 1, flags 1, size 2, then
 *		(key 1, length 1, value)*}. A key is a number in the process's own table,
 *		which user space reads (OTEP 4719). The two IDs are labels, too; they are
 *		called trace_id and span_id.
 *	CUSTOM	Polar Signals' custom labels, version 1: custom_labels_current_set
 *		leads to {storage, count, capacity}, storage to {key length, key, value
 *		length, value}*.
 *	GO	Labels of goroutines (runtime/pprof): the thread-local runtime.tlsg, on arm64
 *		runtime.tls_g or the register x28, is the address of a `g`, which leads to the
 *		goroutine that the thread runs, and that to its labels: a map of strings, or
 *		since Go 1.24 {storage, count, capacity} with {key, key length, value, value
 *		length}*.
 */
#ifndef SB_ABI_LABEL_H
#define SB_ABI_LABEL_H

#include "bpf/abi/sb_abi_interp.h"

/* Keys that a run can ask for. */
#define SB_LABELS_MAX	    8
/* Bytes of a value: the most that OTEL can express. Longer ones of others are cut and counted. */
#define SB_LABEL_VALUE_MAX  255u
/* Bytes of a key of CUSTOM and GO; longer keys cannot be asked for. */
#define SB_LABEL_KEY_BYTES  64u
/*
 * Bytes of OTEL's attributes; the specification recommends 612. More are not read, which is
 * counted.
 */
#define SB_LABEL_RECORD_MAX 996u
/* Labels of one thread that are examined. */
#define SB_LABEL_ATTRS_MAX  64
/* Bytes of the wanted labels, packed. */
#define SB_LABEL_DATA_MAX   1024u

enum sb_label_kind {
	SB_LABEL_NONE,
	SB_LABEL_OTEL,
	SB_LABEL_CUSTOM,
	SB_LABEL_GO,
	SB_LABEL_KIND_MAX,
};

/* sb_label_conf.ids */
#define SB_LABEL_TRACE_ID  (1u << 0)
#define SB_LABEL_SPAN_ID   (1u << 1)
/* Bytes of the two IDs in a record of OTEL, and in a set. */
#define SB_LABEL_IDS_BYTES 24u
/* sb_label_conf.span_key: spans do not depend on a label of the process's table. */
#define SB_LABEL_NO_KEY	   (~0ull)

/*
 * Stored in the words of a struct sb_interp_conf: where the thread-local variable is, and what is
 * wanted.
 */
struct sb_label_conf {
	__u32 kind; /* enum sb_label_kind */
	/*
	 * The layout of the vector of thread-local blocks, for @module: that of glibc, or of musl.
	 */
	__u32 is_musl;
	__u64 dtv_at; /* of the vector, relative to the thread pointer */
	__u64 module; /* 0: @at is relative to the thread pointer; else to the module's block */
	__u64 at;     /* with @module 0: 0: there is no variable */
	/*
	 * OTEL: user space knows keys below @nr_keys, and wants those whose bit is set. Other keys
	 * are unknown, so they are shipped.
	 */
	__u64 nr_keys;
	__u64 wanted[4];
	/* CUSTOM, GO: sb_label_key_hash() of each key; 0 ends the list. */
	__u64 key_hash[SB_LABELS_MAX];
	__u32 ids;	/* OTEL: which of its IDs are wanted: SB_LABEL_TRACE_ID, SB_LABEL_SPAN_ID */
	__u32 span_ids; /* OTEL: on which of its IDs spans depend (--in label:trace_id) */
	/* The label on which spans depend: OTEL: number of its key; else sb_label_key_hash(). */
	__u64 span_key;
	__u32 go_labels;      /* GO: where a `g` has its labels; 0: the program cannot set any */
	__u32 go_is_map;      /* GO: they are a map */
	__u32 go_curg;	      /* GO: where an `m`, a thread, has the goroutine that it runs */
	__u32 go_in_register; /* GO: a thread whose variable is 0 has the address of its `g` in a
			       * register: sb_label_walk.go_register */
};

/*
 * Records of kind SB_INTERP_LABELS of the ring `interp_events`: struct sb_interp_event with the ID
 * of the set in id.lo and enum sb_label_kind in id.hi, followed by nr_frames bytes: (key 1, length
 * 1, value)*. A key is a number in the process's table (OTEL), or in the list of wanted keys
 * (CUSTOM, GO). With SB_LABEL_HAS_IDS in id.hi, too, the bytes begin with {trace 16, span 8}, in
 * which an ID that is not wanted is 0.
 */
#define SB_LABEL_HAS_IDS (1u << 8)

_Static_assert(sizeof(struct sb_label_conf) <= 8 * SB_INTERP_CONF_WORDS, "lies over its words");
_Static_assert(sizeof(struct sb_label_conf) == 104 + 8 * SB_LABELS_MAX, "no padding");

#endif
