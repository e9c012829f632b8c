// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A memo of native walks, so that they need not be repeated. It is in the memory of one CPU and
 * one kind of program, indexed by where the walk begins. Nobody else writes it, and a new walk
 * overwrites the one in its place.
 *
 * A list of mappings is known by the number of its first word, which is given to another list
 * only after SB_UWPOOL_REST_NS (user/capture/uwpool.h). A walk is forgotten in less than that.
 */
#include "bpf/core/sb_unwind.bpf.h"

#define NR_PLACES     128u
#define READS_AT_ONCE 8u
/* Of a stack, compared at once; a power of two. One more is read, for a pair that begins with the
 * last. */
#define PIECE_WORDS   128ull
#define PIECE_BYTES   ((PIECE_WORDS + 1) * 8)

/* The first place of each kind of program; SB_MEMO_NONE: its walks are not remembered. */
#define SB_MEMO_NONE  (~0u)
const volatile __u32 cfg_memo_first[SB_SCRATCH_MAX] = {};
const volatile bool cfg_memo = false; /* of any */

struct memo {
	__u64 pc, sp, fp;
#if defined(__TARGET_ARCH_arm64)
	__u64 lr;
#endif
	__u64 start_ns; /* with tgid and exec_id: of struct sb_sample_key */
	__u32 tgid, exec_id;
	__u32 segs_word; /* of the list of mappings it went by; 0: nothing is remembered here */
	__u32 flags;	 /* of the stack */
	__u32 uses;
	__u32 nr_frames;
	__u32 epoch; /* when it was remembered */
	struct sb_stack_id id;
	struct sb_read_log log;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u32);
	__type(value, struct memo);
} memos SEC(".maps");

__hidden int sb_memo_is_on(__u32 slot)
{
	return cfg_memo && slot < SB_SCRATCH_MAX && cfg_memo_first[slot] != SB_MEMO_NONE;
}

static struct memo *memo_of(const struct sb_scratch *s, __u32 slot)
{
	__u64 mixed = (sb_regs_pc(&s->regs) ^ (__u64)s->capture.key.tgid << 32);
	__u32 at;

	mixed += sb_regs_sp(&s->regs) * 0x9e3779b97f4a7c15ull;
	mixed *= 0xc2b2ae3d27d4eb4full;
	/* Linux 5.15 does not know what was checked once it lay on the stack. */
	sb_opaque(slot);
	if (slot >= SB_SCRATCH_MAX)
		return NULL;
	at = cfg_memo_first[slot] + (__u32)(mixed >> 32) % NR_PLACES;
	return bpf_map_lookup_elem(&memos, &at);
}

static bool begins_alike(const struct sb_scratch *s, const struct memo *memo)
{
	const struct sb_sample_key *key = &s->capture.key;

	return memo->segs_word == s->map.segs_word && memo->epoch == sb_unwind_epoch(s) &&
	       memo->pc == s->walk.pc && memo->sp == s->walk.sp && memo->tgid == key->tgid &&
	       memo->start_ns == key->start_ns && memo->exec_id == key->exec_id &&
	       memo->flags == s->stack.flags &&
#if defined(__TARGET_ARCH_arm64)
	       (!(memo->uses & SB_WALK_USES_LR) || memo->lr == sb_regs_lr(&s->regs)) &&
#endif
	       (!(memo->uses & SB_WALK_USES_FP) || memo->fp == s->walk.fp);
}

static bool reads_alike(const struct sb_read *read)
{
	__u64 val[2] = { 0, read->val[1] };
	const void *addr = (const void *)(read->addr & ~SB_LOG_PAIR);

	if (read->addr & SB_LOG_PAIR) {
		if (bpf_probe_read_user(val, 16, addr))
			return false;
	} else if (bpf_probe_read_user(val, 8, addr)) {
		return false;
	}
	return val[0] == read->val[0] && val[1] == read->val[1];
}

/* Compare one read of the memo. A function of its own for the sake of the verifier (unwind.bpf.c).
 * Return: whether the process's memory has the same words. */
__noinline int sb_memo_read_alike(__u32 slot, __u32 nr)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct memo *memo = s ? memo_of(s, slot) : NULL;
	__u32 at = nr;

	sb_opaque(at);
	return memo && at < SB_LOG_READS_MAX && reads_alike(&memo->log.at[at]);
}

/* Put a piece of the stack from @begin on in the record, unless all from there to @end are in it.
 * Return: whether it is there. */
static bool has_piece(struct sb_scratch *s, __u64 begin, __u64 end)
{
	const __u64 piece = s->log.piece;

	if (piece && begin >= piece && end - piece < PIECE_WORDS * 8)
		return true;
	s->log.piece = 0;
	if (bpf_probe_read_user(s->log.at, PIECE_BYTES, (const void *)begin))
		return false;
	s->log.piece = begin;
	return true;
}

/*
 * Compare the next reads of the memo, from @first on. They are words of one piece of the stack, as
 * a rule, and each read by itself takes longer than the whole piece. It is put into the scratch
 * record's log: a walk that is looked for has none yet. The first loop does not branch, so that the
 * verifier has little to follow. Return: as above.
 */
__noinline int sb_memo_alike(__u32 slot, __u32 first)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct memo *memo = s ? memo_of(s, slot) : NULL;
	/* Bits that differ; those of addresses of words that the piece does not have. */
	__u64 differ = 0, missing = 0, begin, next, last;
	/* Of 64 bits: Linux 5.15 forgets what a comparison of 32 bits says. */
	__u64 at = first;
	__u32 i;

	sb_opaque(at);
	if (!memo || at > SB_LOG_READS_MAX - READS_AT_ONCE)
		return 0;
	last = at + READS_AT_ONCE - 1;
	sb_opaque(last);
	if (last >= memo->log.nr)
		last = memo->log.nr - 1;
	if (last >= SB_LOG_READS_MAX)
		return 0;
	begin = memo->log.at[at].addr & ~SB_LOG_PAIR;
	/* Registers are saved below the return address, which is read first. */
	next = memo->log.at[at + 1].addr & ~SB_LOG_PAIR;
	if (at < last && next < begin)
		begin = next;
	missing = !has_piece(s, begin, memo->log.at[last].addr & ~SB_LOG_PAIR);
	begin = s->log.piece;
	for (i = 0; i < READS_AT_ONCE; i++) {
		const struct sb_read *read = &memo->log.at[at + i];
		const __u64 *words = (const __u64 *)s->log.at;
		__u64 is_pair = 0 - (read->addr >> 63), offset, word;

		if (at + i >= memo->log.nr)
			break;
		offset = (read->addr & ~SB_LOG_PAIR) - begin;
		word = offset / sizeof(*words);
		missing |= offset % sizeof(*words) | (word & ~(PIECE_WORDS - 1));
		sb_opaque(word);
		word &= PIECE_WORDS - 1;
		differ |=
			(words[word] ^ read->val[0]) | ((words[word + 1] ^ read->val[1]) & is_pair);
	}
	if (!missing)
		return !differ;
	for (i = 0; i < READS_AT_ONCE; i++) {
		if (at + i >= memo->log.nr)
			break;
		if (!sb_memo_read_alike(slot, at + i))
			return 0;
	}
	return 1;
}

__noinline int sb_memo_find(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct memo *memo;
	__u32 i;

	if (!s || !s->map.nr_segs)
		return 0;
	s->log.nr = s->log.piece = 0;
	memo = memo_of(s, slot);
	if (!memo || !begins_alike(s, memo))
		return 0;
	for (i = 0; i < SB_LOG_READS_MAX; i += READS_AT_ONCE) {
		if (i >= memo->log.nr)
			break;
		if (!sb_memo_alike(slot, i))
			return 0;
	}
	/* A stack that was lost on its way to user space is walked again. */
	if (!sb_stack_is_shipped(&memo->id))
		return 0;
	s->stack.id = memo->id;
	sb_stat_add(SB_STAT_KNOWN, 1);
	sb_stat_add(SB_STAT_CFI_FRAMES, memo->nr_frames - 1);
	return 1;
}

__noinline int sb_memo_keep(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct memo *memo;
	__u64 nr;

	if (!s || s->stack.status != SB_STACK_COMPLETE || s->log.nr > SB_LOG_READS_MAX ||
	    s->map.nr_by_fp || !s->map.nr_segs)
		return 0;
	memo = memo_of(s, slot);
	if (!memo)
		return 0;
	memo->segs_word = 0;
	if (s->walk.uses & SB_WALK_USES_REGS)
		return 0;
	nr = s->log.nr;
	sb_opaque(nr);
	/* Too many bytes for the compiler to copy, and most of them are not in use. */
	if (nr > SB_LOG_READS_MAX ||
	    bpf_probe_read_kernel(&memo->log, sizeof(nr) + nr * sizeof(s->log.at[0]), &s->log))
		return 0;
	memo->pc = sb_regs_pc(&s->regs);
	memo->sp = sb_regs_sp(&s->regs);
	memo->fp = sb_regs_fp(&s->regs);
#if defined(__TARGET_ARCH_arm64)
	memo->lr = sb_regs_lr(&s->regs);
#endif
	memo->start_ns = s->capture.key.start_ns;
	memo->tgid = s->capture.key.tgid;
	memo->exec_id = s->capture.key.exec_id;
	memo->flags = s->stack.flags;
	memo->uses = s->walk.uses;
	memo->nr_frames = s->stack.nr_frames;
	memo->epoch = sb_unwind_epoch(s);
	memo->id = s->capture.key.ustack;
	memo->segs_word = s->map.segs_word;
	return 0;
}
