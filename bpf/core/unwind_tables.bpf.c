// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What user space has put into maps for the walk (sb_abi_unwind.h), and the searches in it: the
 * list of mappings of the process, and in the table of a binary the row for an address, which names
 * the rule. All lists and tables are words of one pool.
 *
 * Functions that are neither static nor hidden are global: see unwind.bpf.c.
 */
#include "bpf/core/sb_last_walk.bpf.h"
#include "bpf/core/sb_proc_cache.bpf.h"
#include "bpf/core/sb_unwind_tables.bpf.h"

/*
 * An address in no mapping may mean that the list is old, or that the stack is garbage. The list is
 * doubted until it was read anew so many times, and was the same: how many samples fall into that
 * time says nothing.
 */
#define NR_CONFIRMED_MAX 64
/* Words that sb_unwind_may_be_returns() looks at; a power of two. */
#define HIDDEN_AT_ONCE	 8u
#define PAGE_BYTES	 4096u

/* A part of the pool. No BTF types, see counts_generation in sample.bpf.c. */
struct uw_part {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SB_UW_PART_CHUNKS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, SB_UW_CHUNK_WORDS * sizeof(__u32));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 16); /* set before load */
	__type(key, __u32);
	__array(values, struct uw_part);
} uw_pool SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SB_UW_BINS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sb_uw_bin);
} uw_bins SEC(".maps");

/*
 * Rules that walks of the timer have found lately, on this CPU. A search reads about ten cache
 * lines of lists and tables, which a timer finds cold, and most callers stand behind calls that
 * were sampled before. A list of mappings says for each address which rule it has, and always the
 * same one, because the list holds its binaries. Its number is given to another list only after
 * SB_UWPOOL_REST_NS (user/capture/uwpool.h), and what is remembered counts for one epoch, which is
 * less.
 */
#define RULES_AT_ONCE 64u /* in one element; a power of two */
#define RULES_PLACES  512u

struct found_rule {
	__u64 addr;
	__u32 segs_word; /* of the list */
	__u32 epoch;
	struct sb_uw_rule rule;
	__u64 reserved; /* so that none is in two cache lines */
};

struct found_rules {
	struct found_rule at[RULES_AT_ONCE];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* set before load: RULES_PLACES / RULES_AT_ONCE */
	__type(key, __u32);
	__type(value, struct found_rules);
} uw_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SB_UW_PROCS_MAX);
	__type(key, __u32);
	__type(value, struct sb_uw_proc);
} uw_procs SEC(".maps");

static __u32 *chunk_of(__u32 word)
{
	__u32 part = word / SB_UW_PART_WORDS;
	__u32 chunk = word / SB_UW_CHUNK_WORDS % SB_UW_PART_CHUNKS;
	void *map = bpf_map_lookup_elem(&uw_pool, &part);

	return map ? bpf_map_lookup_elem(map, &chunk) : NULL;
}

/* Two words next to one another at an even number, or NULL. */
static __u32 *pair_at(__u32 word)
{
	__u32 *chunk = chunk_of(word), at = word;

	sb_opaque(at);
	return chunk ? &chunk[at & (SB_UW_CHUNK_WORDS - 2)] : NULL;
}

/* The segment number @pos of the list in @chunk that begins at the word @first. */
static const struct sb_uw_seg *seg_number(const __u32 *chunk, __u32 first, __u32 pos)
{
	__u32 at = first + pos * SB_UW_SEG_WORDS;

	sb_opaque(at);
	return (const struct sb_uw_seg *)&chunk[at & (SB_UW_CHUNK_WORDS - SB_UW_SEG_WORDS)];
}

/* The number of the last segment that begins at or below @addr, or else 0, in a list that is not
 * empty: ten steps without branches, see sb_uw_row_at(). */
static __always_inline __u32 pos_below(const __u32 *chunk, __u32 first, __u32 nr, __u64 addr)
{
	__u32 half = sb_search_half(nr, SB_UW_SEGS_MAX / 2), pos = 0;
	int i;

	for (i = 0; i < 10 && half; i++, half >>= 1) {
		__s64 is_in, is_above, take;
		__u32 next = pos + half;

		is_in = (__s64)next - (__s64)nr;
		is_above = (__s64)(addr - seg_number(chunk, first, next)->begin);
		take = (is_in & ~is_above) >> 63;
		sb_opaque(take);
		pos += half & (__u32)take;
	}
	return pos;
}

/* Return: the segment of pos_below(); NULL: there is no such chunk. */
static __always_inline const struct sb_uw_seg *seg_below(__u32 first, __u32 nr, __u64 addr)
{
	__u32 *chunk = chunk_of(first);

	return chunk ? seg_number(chunk, first, pos_below(chunk, first, nr, addr)) : NULL;
}

/* The mapping that holds the address of the walk becomes the walk's. */
__noinline int sb_unwind_find_seg(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	const struct sb_uw_seg *seg;
	__u64 addr;

	if (!s)
		return -ENOENT;
	addr = sb_walk_key(&s->walk);
	seg = seg_below(s->map.segs_word, s->map.nr_segs, addr);
	if (!seg || addr < seg->begin || addr >= seg->end)
		return -ENOENT;
	s->map.begin = seg->begin;
	s->map.end = seg->end;
	s->map.bias = seg->bias;
	s->map.bin = seg->bin;
	s->map.seg_flags = seg->flags;
	s->map.seg_list = s->map.segs_word;
	s->map.seg_epoch = sb_unwind_epoch(s);
	return 0;
}

__hidden int sb_unwind_mapped(__u32 tgid, __u64 addr, __u64 len)
{
	struct sb_uw_proc *proc = bpf_map_lookup_elem(&uw_procs, &tgid);
	const struct sb_uw_seg *seg;

	if (!proc || !proc->nr_segs)
		return 0;
	seg = seg_below(proc->segs_word, proc->nr_segs, addr + len - 1);
	if (!seg || seg->begin >= addr + len || seg->end <= addr)
		return 0;
	proc->nr_confirmed = 0;
	proc->exec_vm = SB_UW_EXEC_VM_STALE;
	return sb_proc_cache_changed(tgid);
}

/* Return: whether what is known of the process is doubted (again), which ends some time. */
static bool is_doubtful(const struct sb_uw_proc *proc)
{
	return proc->nr_confirmed < NR_CONFIRMED_MAX;
}

__hidden int sb_unwind_find_list(struct sb_scratch *s, __u32 slot)
{
	const struct sb_sample_key *key = &s->capture.key;
	struct sb_proc_cache *known = sb_proc_cache_of(slot, s);
	struct sb_uw_proc *proc;

	if (known && (known->has & SB_PROC_CACHE_LIST) && known->exec_vm == s->map.exec_vm) {
		s->map.segs_word = s->stack.list = known->segs_word;
		s->map.nr_segs = known->nr_segs;
		return 0;
	}
	proc = bpf_map_lookup_elem(&uw_procs, &key->tgid);
	if (!proc)
		return 0;
	/* Read before the run, and before anybody knew which process this is. */
	if (!proc->start_ns) {
		proc->start_ns = key->start_ns;
		proc->exec_id = key->exec_id;
	}
	if (proc->start_ns != key->start_ns || proc->exec_id != key->exec_id)
		return 0;
	if (proc->exec_vm != s->map.exec_vm && is_doubtful(proc))
		return 0;
	s->map.segs_word = s->stack.list = proc->segs_word;
	s->map.nr_segs = proc->nr_segs;
	if (known && proc->exec_vm == s->map.exec_vm) {
		known->segs_word = s->map.segs_word;
		known->nr_segs = s->map.nr_segs;
		known->exec_vm = s->map.exec_vm;
		known->has |= SB_PROC_CACHE_LIST;
	}
	return 0;
}

__hidden __u32 sb_unwind_list_of(const struct sb_scratch *s)
{
	struct sb_uw_proc *proc = bpf_map_lookup_elem(&uw_procs, &s->capture.key.tgid);

	return proc ? proc->segs_word : 0;
}

__hidden int sb_unwind_is_list_doubtful(const struct sb_scratch *s)
{
	struct sb_uw_proc *proc = bpf_map_lookup_elem(&uw_procs, &s->capture.key.tgid);

	return !proc || is_doubtful(proc);
}

/* The rule for @elf_addr. Return: 0, or -ENOENT when there is none. */
static int find_rule(const struct sb_uw_bin *bin, __u64 elf_addr, struct sb_uw_rule *ret_rule)
{
	__u64 granule = (elf_addr - bin->text_lo) >> SB_UW_GRANULE_BITS;
	__u32 *pair, *chunk, first, nr, id;

	if (elf_addr < bin->text_lo || granule >= bin->nr_granules)
		return -ENOENT;
	pair = pair_at(bin->index_word + (__u32)granule * 2);
	if (!pair)
		return -ENOENT;
	id = first = pair[0];
	nr = pair[1];
	if (nr) {
		chunk = chunk_of(first);
		if (!chunk)
			return -ENOENT;
		id = sb_uw_row_at(chunk, first, nr, (__u32)elf_addr & (SB_UW_GRANULE_BYTES - 1)) >>
		     16;
	}
	if (id >= bin->nr_rules)
		return -ENOENT;
	pair = pair_at(bin->rules_word + id * 2);
	if (!pair)
		return -ENOENT;
	*ret_rule = *(struct sb_uw_rule *)pair;
	return 0;
}

/* Return: where the rule for @addr is if it was found lately; NULL: this slot remembers none. */
static struct found_rule *rule_place(const struct sb_scratch *s, __u32 slot, __u64 addr)
{
	__u64 mixed = sb_hash_word(s->map.segs_word, addr) >> 32;
	__u32 which = mixed / RULES_AT_ONCE % (RULES_PLACES / RULES_AT_ONCE);
	struct found_rules *rules;

	if (!cfg_last_walk || slot != SB_SCRATCH_TIMER)
		return NULL;
	rules = bpf_map_lookup_elem(&uw_rules, &which);
	sb_opaque(mixed);
	return rules ? &rules->at[mixed & (RULES_AT_ONCE - 1)] : NULL;
}

/* Return: whether @found is the rule for @addr, which becomes the walk's then. */
static bool take_rule(struct sb_scratch *s, const struct found_rule *found, __u64 addr)
{
	if (found->addr != addr || found->segs_word != s->map.segs_word ||
	    found->epoch != sb_unwind_epoch(s))
		return false;
	s->map.rule = found->rule;
	/* Generated code has no rules, so the mapping that was found last is not that of @addr. */
	if (s->map.seg_flags)
		s->map.begin = s->map.end = s->map.seg_flags = 0;
	return true;
}

__noinline int sb_unwind_find_rule(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct found_rule *found;
	struct sb_uw_bin *bin;
	__u32 now_s;
	__u64 addr;

	if (!s)
		return -ENOENT;
	addr = sb_walk_key(&s->walk);
	s->map.rule.cfa = SB_UW_CFA_FP_CHAIN;
	if (!s->map.nr_segs)
		return -ENOENT;
	found = rule_place(s, slot, addr);
	if (found && take_rule(s, found, addr))
		return 0;
	if ((addr < s->map.begin || addr >= s->map.end) && sb_unwind_find_seg(slot))
		return -ENOENT;
	if (s->map.seg_flags & SB_UW_SEG_ANON)
		return 0;
	bin = bpf_map_lookup_elem(&uw_bins, &s->map.bin);
	if (!bin || bin->state == SB_UW_BIN_FP_CHAIN)
		return 0;
	if (bin->state != SB_UW_BIN_READY)
		return -EAGAIN;
	now_s = s->capture.now_ns >> 30;
	if (bin->used_s != now_s)
		bin->used_s = now_s;
	if (!find_rule(bin, addr - s->map.bias, &s->map.rule) && found) {
		found->addr = addr;
		found->segs_word = s->map.segs_word;
		found->epoch = sb_unwind_epoch(s);
		found->rule = s->map.rule;
	}
	return 0;
}

#if defined(__TARGET_ARCH_x86)
/*
 * Words between the stack pointer and a frame are mostly pointers to the stack, to the heap and to
 * tables of the runtime, and numbers. To look each of them up in the list of mappings would cost
 * more than all else in the step. So they are copied at once, and a word is not looked up if it
 * points between the same two mappings as an earlier one: what lies there is remembered as a hole.
 */

/* Where the hole around @addr is remembered. */
static __always_inline __u64 hole_place(__u64 addr)
{
	__u64 place = (addr >> 21) * 0x9e3779b97f4a7c15ull >> 32;

	sb_opaque(place);
	return place & (SB_HOLES - 1);
}

/* Return: 1 if code may end right below @word: it is in no known hole, and no number below 0. There
 * are no branches, because the verifier would follow each. */
static __always_inline __u64 may_be_return(const struct sb_scratch *s, __u64 word)
{
	const struct sb_hole *hole = &s->holes.at[hole_place(--word)];
	__u64 above = word - hole->begin;

	return ~(word | ((above - hole->bytes) & ~above)) >> 63;
}

/* Forget the holes of another list. */
static void begin_holes(struct sb_scratch *s)
{
	__u32 epoch = sb_unwind_epoch(s);

	if (s->holes.list == s->map.segs_word && s->holes.epoch == epoch)
		return;
	__builtin_memset(&s->holes, 0, sizeof(s->holes));
	s->holes.list = s->map.segs_word;
	s->holes.epoch = epoch;
}

/* Remember that around @addr there is no code. @pos: from pos_below() */
static void keep_hole(struct sb_scratch *s, const __u32 *chunk, __u32 pos, __u64 addr)
{
	const struct sb_uw_seg *seg = seg_number(chunk, s->map.segs_word, pos);
	struct sb_hole *hole = &s->holes.at[hole_place(addr)];
	__u64 begin = seg->end, end = 1ull << 63;

	if (addr < seg->begin) {
		begin = 0;
		end = seg->begin;
	} else if (pos + 1 < s->map.nr_segs) {
		end = seg_number(chunk, s->map.segs_word, pos + 1)->begin;
	}
	hole->begin = begin;
	hole->bytes = end - begin;
}

/*
 * Return: 1 if the @i-th word can be a return address: code that is mapped, behind a call; 0 if
 * not; -ENOENT: from here on, none may be. Global, so that the verifier examines it once and not
 * for each word.
 */
__noinline int sb_unwind_is_return(__u32 slot, __u32 i)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	const struct sb_uw_seg *seg;
	__u64 word, left, code = 0;
	__u32 *chunk, pos;

	i &= SB_HIDDEN_WORDS_MAX - 1;
	left = s ? s->may_be_returns >> i : 0;
	if (!left || !s->map.nr_segs)
		return -ENOENT;
	word = s->hidden[i];
	if (!(left & 1) || !may_be_return(s, word))
		return 0;
	chunk = chunk_of(s->map.segs_word);
	if (!chunk)
		return 0;
	pos = pos_below(chunk, s->map.segs_word, s->map.nr_segs, word - 1);
	seg = seg_number(chunk, s->map.segs_word, pos);
	if (word <= seg->begin || word > seg->end) {
		keep_hole(s, chunk, pos, word - 1);
		return 0;
	}
	if (bpf_probe_read_user(&code, sizeof(code), (const void *)(word - 8)))
		return 0;
	return sb_ends_in_call(code);
}

/* Note in may_be_returns which of HIDDEN_AT_ONCE words are, from number @first on. Return: 0, or
 * -ENOENT if there are no such words. */
__noinline int sb_unwind_may_be_returns(__u32 slot, __u32 first)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	__u64 bits = 0;
	__u32 i;

	if (!s || first >= s->nr_hidden)
		return -ENOENT;
	sb_opaque(first);
	first &= SB_HIDDEN_WORDS_MAX - HIDDEN_AT_ONCE;
#pragma unroll
	for (i = 0; i < HIDDEN_AT_ONCE; i++)
		bits |= may_be_return(s, s->hidden[first + i]) << i;
	s->may_be_returns |= bits << first;
	return 0;
}

/* Copy @nr words from the stack pointer on. Return: 0 or -EFAULT. */
static int copy_hidden(struct sb_scratch *s, __u64 nr)
{
	sb_opaque(nr);
	if (nr > SB_HIDDEN_WORDS_MAX)
		nr = SB_HIDDEN_WORDS_MAX;
	s->nr_hidden = nr;
	return bpf_probe_read_user(s->hidden, 8 * nr, (const void *)s->walk.sp);
}

__noinline int sb_unwind_hides(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	__u64 sp;
	__u32 i;
	int is;

	if (!s || s->walk.fp <= s->walk.sp)
		return 0;
	begin_holes(s);
	sp = s->walk.sp;
	/* If they cannot be read up to the frame, those of the first page can. */
	if (copy_hidden(s, (s->walk.fp - sp + 7) / 8) &&
	    copy_hidden(s, (PAGE_BYTES - sp % PAGE_BYTES) / 8))
		return 0;
	s->may_be_returns = 0;
	for (i = 0; i < SB_HIDDEN_WORDS_MAX; i += HIDDEN_AT_ONCE)
		if (sb_unwind_may_be_returns(slot, i))
			break;
	/* The last words may be those of an earlier frame. */
	if (s->nr_hidden < SB_HIDDEN_WORDS_MAX)
		s->may_be_returns &= (1ull << s->nr_hidden) - 1;
	for (i = 0; i < SB_HIDDEN_WORDS_MAX; i++) {
		is = sb_unwind_is_return(slot, i);
		if (is)
			return is > 0;
	}
	return 0;
}
#endif
