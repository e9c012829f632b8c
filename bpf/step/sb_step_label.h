/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the labels of a thread: begin() finds them, each step() moves over one, end() makes the
 * ID of the set. Both sides compile this source: the kernel (core/label.bpf.c), and user space
 * (user/interp/core/labels.c) for threads that sleep. In addition to what sb_interp_step.h needs,
 * these can be defined before including it:
 *
 *	SB_LABEL_COPY(dst, len, src)	copy between places of struct sb_label_walk
 *	SB_LABEL_READ			used instead of SB_INTERP_READ
 *
 * Order: the caller sets w->conf, thread_pointer, is_of_span and, for GO on arm64, go_register;
 * then sb_label_want_span() if only that label is wanted; sb_label_begin(), or its two halves;
 * while the result is SB_STEP_GO_ON, sb_label_step(), at most SB_LABEL_ATTRS_MAX times; and
 * sb_label_end() if an ID is wanted. The labels are w->nr_bytes bytes of w->data (sb_abi_label.h),
 * until the next begin(). The other functions are parts of these.
 *
 * In all functions, *@w is all the state there is (one thread for each), and @mem is passed to
 * SB_INTERP_READ, which copies from the process and returns 0 on success. Results: SB_STEP_GO_ON:
 * call step() (again); SB_STEP_END: there are no more labels. Memory that cannot be read sets
 * w->is_bad; labels read before remain. No pointer may be NULL, except @mem if the macro does
 * without it, and none is kept.
 *
 * A sample interrupts the thread whose labels it reads, so what the thread writes in the right
 * order is read consistently. Everything may be forged: all sizes are bounded here.
 */
#ifndef SB_STEP_LABEL_H
#define SB_STEP_LABEL_H

#include "bpf/abi/sb_abi_label.h"

#include "bpf/step/sb_interp_step.h"

#ifndef SB_LABEL_READ
#define SB_LABEL_READ SB_INTERP_READ
#endif
#ifndef SB_LABEL_COPY
#define SB_LABEL_COPY(dst, len, src) __builtin_memcpy(dst, src, len)
#endif

/* A mask that bounds offsets for the verifier, and the room that one more label takes. */
#define SB_LABEL_MASK	     1023u
#define SB_LABEL_ROOM	     (SB_LABEL_VALUE_MAX + 2 + 7)

/* Bound of the modules of a process; higher numbers are taken to be invalid. */
#define SB_LABEL_MODULES_MAX 4096

/* GO, for 64-bit programs: g.m of runtime2.go, of which the linker knows the place. */
#define SB_LABEL_GO_M	     48
/* GO: map[string]string of runtime/map.go up to Go 1.23. A bucket has a byte for each of its
 * entries, which is less than SB_LABEL_GO_TOP_MIN where there is none, then their keys, their
 * values, and the next bucket of the same hash. */
#define SB_LABEL_GO_ENTRIES  8
#define SB_LABEL_GO_BUCKET   (SB_LABEL_GO_ENTRIES * (1 + 16 + 16) + 8)
#define SB_LABEL_GO_TOP_MIN  5

#define SB_LABEL_SWAP(a, b)    \
	do {                   \
		__u64 was = a; \
		a = b;         \
		b = was;       \
	} while (0)

/* The state of a walk over the labels of one thread. */
struct sb_label_walk {
	struct sb_label_conf conf;
	__u64 thread_pointer;
	__u64 go_register; /* for conf.go_in_register: that of the thread in user code */
	__u64 at, end;	   /* OTEL: offsets in `record`; else next label's address, number left */
	__u64 entry;	   /* GO, of a map: of the bucket at `at` */
	__u64 goroutine;   /* GO: address of the `g` of the goroutine; 0: the thread runs none */
	__u64 nr_bytes;	   /* used bytes of `data` */
	__u64 nr_cut;	   /* values and labels that did not fit */
	__u64 is_bad;	   /* something could not be read */
	__u64 is_changing; /* OTEL: the thread was just changing its record */
	__u64 has_ids;	   /* OTEL: `data` begins with the IDs */
	__u64 has_unknown; /* OTEL: there was a key that user space does not know yet */
	__u64 is_of_span;  /* set by the caller: leave out keys that user space does not know yet */
	__u64 hash;
	__u64 head[4];
	__u64 key[SB_LABEL_KEY_BYTES / 8];
	__u8 record[SB_LABEL_MASK + 1 + SB_LABEL_ROOM + 7];
	/* Header of the record in which `data` is shipped; whoever ships it fills it in. */
	struct sb_interp_event event;
	__u8 data[SB_LABEL_DATA_MAX + SB_LABEL_ROOM];
};

/* Return: @hash, the hash of all words before, combined with @word. */
static __always_inline __u64 sb_label_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

/* Return: the hash of @key, SB_LABEL_KEY_BYTES bytes of text and zeros, for conf.key_hash and
 * span_key; never 0. */
static __always_inline __u64 sb_label_key_hash(const __u64 *key)
{
	__u64 hash = 0;
	int i;

	for (i = 0; i < (int)SB_LABEL_KEY_BYTES / 8; i++)
		hash = sb_label_mix(hash, key[i]);
	return hash | 1;
}

/* Return: the word at @addr of the process; 0, with w->is_bad set, when it cannot be read. */
static __always_inline __u64 sb_label_word(struct sb_label_walk *w, void *mem, __u64 addr)
{
	__u64 val = 0;

	if (SB_LABEL_READ(mem, &val, sizeof(val), addr)) {
		w->is_bad = 1;
		return 0;
	}
	return val;
}

/*
 * Return: the address of the thread-local variable; 0: the thread does not have it, or that cannot
 * be read, and then w->is_bad is set. "ELF Handling For Thread-Local Storage" (Drepper), section 3.
 * glibc: dtv_t is two words, dtv[-1] says how many there are, a block that is not there yet is -1
 * (sysdeps/generic/dl-dtv.h); musl: one word, dtv[0] is their number (src/env/__init_tls.c).
 */
static __always_inline __u64 sb_label_variable(struct sb_label_walk *w, void *mem)
{
	const struct sb_label_conf *conf = &w->conf;
	__u64 dtv, block;

	if (!conf->module)
		return conf->at ? w->thread_pointer + conf->at : 0;
	if (conf->module > SB_LABEL_MODULES_MAX)
		return 0;
	dtv = sb_label_word(w, mem, w->thread_pointer + conf->dtv_at);
	if (!dtv || sb_label_word(w, mem, conf->is_musl ? dtv : dtv - 16) < conf->module)
		return 0;
	block = sb_label_word(w, mem, dtv + conf->module * (conf->is_musl ? 8 : 16));
	return block && block != ~0ull ? block + conf->at : 0;
}

/* For OTEL: write the IDs of trace and span that are wanted (w->conf.ids) from w->head to the
 * beginning of w->data, and set w->has_ids. If they are all 0, w->data stays empty. */
static __always_inline void sb_label_put_ids(struct sb_label_walk *w)
{
	__u64 *words = (__u64 *)w->data;
	__u32 ids = w->conf.ids;

	words[0] = ids & SB_LABEL_TRACE_ID ? w->head[0] : 0;
	words[1] = ids & SB_LABEL_TRACE_ID ? w->head[1] : 0;
	words[2] = ids & SB_LABEL_SPAN_ID ? w->head[2] : 0;
	if (!(words[0] | words[1] | words[2]))
		return;
	w->has_ids = 1;
	w->nr_bytes = SB_LABEL_IDS_BYTES;
}

/*
 * sb_label_begin() for OTEL: copy all attributes of the record at @record of the process to
 * w->record, for sb_label_step_otel(), and the wanted IDs to w->data, where they remain after
 * SB_STEP_END. A record that the thread is changing right now counts as empty; one that is too long
 * is cut, and counted in w->nr_cut. Return: SB_STEP_GO_ON: there may be labels; SB_STEP_END: there
 * are none, it is being changed (w->is_changing), or it cannot be read (w->is_bad).
 */
static __always_inline enum sb_step sb_label_begin_otel(struct sb_label_walk *w, void *mem,
							__u64 record)
{
	__u64 size;

	w->head[3] = 0;
	if (SB_LABEL_READ(mem, w->head, 28, record)) {
		w->is_bad = 1;
		return SB_STEP_END;
	}
	if ((w->head[3] & 0xff) != 1) {
		w->is_changing = 1;
		return SB_STEP_END;
	}
	sb_label_put_ids(w);
	size = w->head[3] >> 16 & 0xffff;
	if (size > SB_LABEL_RECORD_MAX) {
		size = SB_LABEL_RECORD_MAX;
		w->nr_cut++;
	}
	SB_STEP_OPAQUE(size);
	size &= SB_LABEL_MASK;
	if (!size)
		return SB_STEP_END;
	if (SB_LABEL_READ(mem, w->record, size, record + 28)) {
		w->is_bad = 1;
		return SB_STEP_END;
	}
	w->at = 0;
	w->end = size;
	return SB_STEP_GO_ON;
}

/*
 * sb_label_begin() for CUSTOM and GO: read the head of the set at @set of the process: the address
 * of its labels to w->at, their number to w->end. Return: SB_STEP_GO_ON; SB_STEP_END: it cannot be
 * read, and w->is_bad is set.
 */
static __always_inline enum sb_step sb_label_begin_custom(struct sb_label_walk *w, void *mem,
							  __u64 set)
{
	if (SB_LABEL_READ(mem, w->head, 24, set)) {
		w->is_bad = 1;
		return SB_STEP_END;
	}
	w->at = w->head[0];
	w->end = w->head[1];
	return SB_STEP_GO_ON;
}

/*
 * sb_label_begin_go() for a map whose header is at @map (0: w->is_bad is set). The address of its
 * buckets, which are an array, becomes w->at, and the number of their entries w->end. More than
 * eight buckets are not examined, which is counted once in w->nr_cut. Return: SB_STEP_GO_ON: there
 * may be labels, or the map is empty; SB_STEP_END: it cannot be read, and w->is_bad is set.
 */
static __always_inline enum sb_step sb_label_begin_map(struct sb_label_walk *w, void *mem,
						       __u64 map)
{
	__u64 log2;

	if (!map || SB_LABEL_READ(mem, w->head, 24, map)) {
		w->is_bad = 1;
		return SB_STEP_END;
	}
	log2 = w->head[1] >> 8 & 0xff;
	if (log2 > 3) {
		log2 = 3;
		w->nr_cut++;
	}
	w->at = w->head[2];
	w->end = w->head[0] ? (__u64)SB_LABEL_GO_ENTRIES << log2 : 0;
	w->entry = 0;
	return SB_STEP_GO_ON;
}

/*
 * sb_label_begin() for GO: find the goroutine that the thread runs, for w->goroutine, which remains
 * 0 if there is none, and the set of its labels. @g: the address of the `g` of whatever stack the
 * thread is on, which may be one of the runtime's. Return: SB_STEP_GO_ON: there may be labels;
 * SB_STEP_END: there are none, or they cannot be read, and w->is_bad is set.
 */
static __always_inline enum sb_step sb_label_begin_go(struct sb_label_walk *w, void *mem, __u64 g)
{
	__u64 m = sb_label_word(w, mem, g + SB_LABEL_GO_M);
	__u64 goroutine = m ? sb_label_word(w, mem, m + w->conf.go_curg) : 0;
	__u64 set;

	if (!goroutine || sb_label_word(w, mem, goroutine + SB_LABEL_GO_M) != m)
		return SB_STEP_END;
	w->goroutine = goroutine;
	set = w->conf.go_labels ? sb_label_word(w, mem, goroutine + w->conf.go_labels) : 0;
	if (!set)
		return SB_STEP_END;
	return w->conf.go_is_map ? sb_label_begin_map(w, mem, sb_label_word(w, mem, set))
				 : sb_label_begin_custom(w, mem, set);
}

/*
 * The first half of sb_label_begin(): reset the results of the last walk, and store the value of
 * the thread-local variable in w->at, for sb_label_begin_at(); 0: it has none, or, with w->is_bad,
 * it cannot be read. Go without C in it does not set its own on arm64 (save_g() of
 * runtime/tls_arm64.s): then it is w->go_register.
 */
static __always_inline void sb_label_find(struct sb_label_walk *w, void *mem)
{
	__u64 var;

	w->nr_bytes = w->nr_cut = w->is_bad = w->hash = 0;
	w->is_changing = w->has_ids = w->has_unknown = w->goroutine = 0;
	var = sb_label_variable(w, mem);
	w->at = var ? sb_label_word(w, mem, var) : 0;
	if (!w->at && w->conf.go_in_register)
		w->at = w->go_register;
}

/* The second half of sb_label_begin(), after sb_label_find(). Return: what sb_label_begin()
 * returns. */
static __always_inline enum sb_step sb_label_begin_at(struct sb_label_walk *w, void *mem)
{
	__u64 at = w->at;

	if (!at)
		return SB_STEP_END;
	if (w->conf.kind == SB_LABEL_GO)
		return sb_label_begin_go(w, mem, at);
	return w->conf.kind == SB_LABEL_OTEL ? sb_label_begin_otel(w, mem, at)
					     : sb_label_begin_custom(w, mem, at);
}

/*
 * Find the labels of the thread. What the caller has to set before is kept; all results are reset.
 * Return: SB_STEP_GO_ON: there may be labels; SB_STEP_END: there are none, or they cannot be read
 * (w->is_bad) or are being changed (w->is_changing). Only IDs of OTEL may be in w->data then, so
 * call sb_label_end() all the same.
 */
static __always_inline enum sb_step sb_label_begin(struct sb_label_walk *w, void *mem)
{
	sb_label_find(w, mem);
	return sb_label_begin_at(w, mem);
}

/*
 * Append the head of a label to w->data: the number @key, which is one of the process's table
 * (OTEL) or an index in w->conf.key_hash, and @len, the bytes of its value, each below 256; head
 * and value are counted in w->nr_bytes. Return: where the caller copies the value to, in w->data;
 * if it cannot, it takes 2 + @len bytes off w->nr_bytes again. NULL: there is no room, which is
 * counted in w->nr_cut, and nothing was appended.
 */
static __always_inline __u8 *sb_label_put(struct sb_label_walk *w, __u64 key, __u64 len)
{
	__u64 out = w->nr_bytes;

	SB_STEP_OPAQUE(out);
	if (out + 2 + len > SB_LABEL_DATA_MAX) {
		w->nr_cut++;
		return 0;
	}
	SB_STEP_OPAQUE(out);
	out &= SB_LABEL_MASK;
	w->data[out] = (__u8)key;
	w->data[out + 1] = (__u8)len;
	w->nr_bytes = out + 2 + len;
	return &w->data[out + 2];
}

/* sb_label_step() for OTEL: move over one label in w->record, and append it to w->data if it is
 * wanted. A key that user space does not know yet is wanted, unless w->is_of_span. Return:
 * SB_STEP_GO_ON; SB_STEP_END: there are no more. */
static __always_inline enum sb_step sb_label_step_otel(struct sb_label_walk *w)
{
	__u64 at = w->at, key, len;
	__u8 *to;

	SB_STEP_OPAQUE(at);
	if (at + 2 > w->end)
		return SB_STEP_END;
	at &= SB_LABEL_MASK;
	key = w->record[at];
	len = w->record[at + 1];
	if (at + 2 + len > w->end)
		return SB_STEP_END;
	w->at = at + 2 + len;
	if (key >= w->conf.nr_keys) {
		w->has_unknown = 1;
		if (w->is_of_span)
			return SB_STEP_GO_ON;
	} else if (!(w->conf.wanted[key >> 6 & 3] >> (key & 63) & 1)) {
		return SB_STEP_GO_ON;
	}
	SB_STEP_OPAQUE(len);
	len &= 255;
	to = sb_label_put(w, key, len);
	if (to)
		SB_LABEL_COPY(to, len, &w->record[at + 2]);
	return SB_STEP_GO_ON;
}

/* Read the next label of a list of CUSTOM or GO into w->head. Return: SB_STEP_GO_ON; SB_STEP_END:
 * there are no more, or it cannot be read, and w->is_bad is set. */
static __always_inline enum sb_step sb_label_next_of_list(struct sb_label_walk *w, void *mem)
{
	if (!w->end)
		return SB_STEP_END;
	if (SB_LABEL_READ(mem, w->head, 32, w->at)) {
		w->is_bad = 1;
		return SB_STEP_END;
	}
	w->at += 32;
	w->end--;
	if (w->conf.kind == SB_LABEL_CUSTOM) {
		SB_LABEL_SWAP(w->head[0], w->head[1]);
		SB_LABEL_SWAP(w->head[2], w->head[3]);
	}
	return SB_STEP_GO_ON;
}

/*
 * Read the next label of a map of GO into w->head; w->head[1], the length of its key, is 0 if the
 * entry is empty. Buckets that follow another one of the same hash are not examined, which is
 * counted in w->nr_cut. Return: SB_STEP_GO_ON; SB_STEP_END: there are no more, or it cannot be
 * read, and w->is_bad is set.
 */
static __always_inline enum sb_step sb_label_next_of_map(struct sb_label_walk *w, void *mem)
{
	__u64 entry = w->entry, keys = w->at + SB_LABEL_GO_ENTRIES, tops;

	if (!w->end)
		return SB_STEP_END;
	tops = sb_label_word(w, mem, w->at);
	if (w->is_bad)
		return SB_STEP_END;
	w->end--;
	if (!entry && sb_label_word(w, mem, w->at + SB_LABEL_GO_BUCKET - 8))
		w->nr_cut++;
	w->entry = entry + 1;
	if (entry >= SB_LABEL_GO_ENTRIES - 1) {
		w->at += SB_LABEL_GO_BUCKET;
		w->entry = 0;
	}
	SB_STEP_OPAQUE(entry);
	entry &= SB_LABEL_GO_ENTRIES - 1;
	w->head[1] = 0;
	if ((tops >> 8 * entry & 0xff) < SB_LABEL_GO_TOP_MIN)
		return SB_STEP_GO_ON;
	keys += 16 * entry;
	if (SB_LABEL_READ(mem, w->head, 16, keys) ||
	    SB_LABEL_READ(mem, w->head + 2, 16, keys + 16 * SB_LABEL_GO_ENTRIES)) {
		w->is_bad = 1;
		return SB_STEP_END;
	}
	return SB_STEP_GO_ON;
}

/* Read the next label of CUSTOM or GO, {key, its length, value, its length}, into w->head. A length
 * of 0 of the key says that there is none here. Return: SB_STEP_GO_ON; SB_STEP_END: there are no
 * more, or it cannot be read, and w->is_bad is set. */
static __always_inline enum sb_step sb_label_next(struct sb_label_walk *w, void *mem)
{
	return w->conf.kind == SB_LABEL_GO && w->conf.go_is_map ? sb_label_next_of_map(w, mem)
								: sb_label_next_of_list(w, mem);
}

/*
 * Append the label that sb_label_next() left in w->head, if it is wanted. Values of more than
 * SB_LABEL_VALUE_MAX bytes are cut, and counted in w->nr_cut. One whose key or value cannot be read
 * is left out, and w->is_bad is set. Return: SB_STEP_GO_ON, always.
 */
static __always_inline enum sb_step sb_label_take(struct sb_label_walk *w, void *mem)
{
	__u64 len, hash;
	__u8 *to;
	int i;

	len = w->head[1];
	if (!len || len > SB_LABEL_KEY_BYTES)
		return SB_STEP_GO_ON;
	SB_STEP_OPAQUE(len); /* here, or the mask is folded away, which verifiers up to 6.1 need */
	len &= 127;
	__builtin_memset(w->key, 0, sizeof(w->key));
	if (len > SB_LABEL_KEY_BYTES || SB_LABEL_READ(mem, w->key, len, w->head[0])) {
		w->is_bad = 1;
		return SB_STEP_GO_ON;
	}
	hash = sb_label_key_hash(w->key);
	for (i = 0; i < SB_LABELS_MAX; i++)
		if (w->conf.key_hash[i] == hash)
			break;
	if (i == SB_LABELS_MAX)
		return SB_STEP_GO_ON;
	len = w->head[3];
	if (len > SB_LABEL_VALUE_MAX) {
		len = SB_LABEL_VALUE_MAX;
		w->nr_cut++;
	}
	SB_STEP_OPAQUE(len);
	len &= 255;
	to = sb_label_put(w, i, len);
	if (to && len && SB_LABEL_READ(mem, to, len, w->head[2])) {
		w->is_bad = 1;
		w->nr_bytes -= 2 + len;
	}
	return SB_STEP_GO_ON;
}

/*
 * Of the keys in w->conf, which is changed and so has to be set again for another walk, want only
 * the one that spans depend on. To be called before sb_label_begin(). w->is_of_span stays as the
 * caller has set it.
 */
static __always_inline void sb_label_want_span(struct sb_label_walk *w)
{
	struct sb_label_conf *conf = &w->conf;
	__u64 key = conf->span_key;

	conf->ids = conf->span_ids;
	__builtin_memset(conf->wanted, 0, sizeof(conf->wanted));
	__builtin_memset(conf->key_hash, 0, sizeof(conf->key_hash));
	if (conf->kind != SB_LABEL_OTEL)
		conf->key_hash[0] = key;
	else if (key != SB_LABEL_NO_KEY)
		conf->wanted[key >> 6 & 3] = 1ull << (key & 63);
}

/*
 * Move over one label, and append it to w->data if it is wanted. Return: SB_STEP_GO_ON: call it
 * again, at most SB_LABEL_ATTRS_MAX times together; SB_STEP_END: there are no more, or the next one
 * cannot be read, and w->is_bad is set.
 */
static __always_inline enum sb_step sb_label_step(struct sb_label_walk *w, void *mem)
{
	enum sb_step step;

	if (w->conf.kind == SB_LABEL_OTEL)
		return sb_label_step_otel(w);
	step = sb_label_next(w, mem);
	return step == SB_STEP_GO_ON ? sb_label_take(w, mem) : step;
}

/*
 * After the last step: hash w->data, starting from @seed, and store the ID of the set in w->hash:
 * not 0; it remains 0 if no label is in w->data. Labels that were cut or could not be read do not
 * change that. @seed: a hash of the run's random seed and of the address space (start time, tgid,
 * exec_id), since numbers of keys mean something in their process only; for spans, the run's seed.
 */
static __always_inline void sb_label_end(struct sb_label_walk *w, __u64 seed)
{
	const __u64 *words = (const __u64 *)w->data;
	__u64 nr = w->nr_bytes, hash;
	__u32 i;

	SB_STEP_OPAQUE(nr);
	if (!nr || nr > SB_LABEL_DATA_MAX)
		return;
	/* The last word's rest is what an earlier set has left. */
	__builtin_memset(&w->data[nr], 0, 8);
	hash = sb_label_mix(seed, nr);
	for (i = 0; i < SB_LABEL_DATA_MAX / 8; i++) {
		if (8 * i >= nr)
			break;
		hash = sb_label_mix(hash, words[i]);
	}
	w->hash = hash | 1;
}

#endif
