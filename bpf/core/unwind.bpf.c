// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Walking of user stacks, step by step. Each step finds one caller from the registers of one
 * frame, by the rule for its address (sb_abi_unwind.h), or by the frame pointer if there is no
 * rule.
 *
 * Functions that are neither static nor hidden are global for the sake of the verifier, which
 * examines each of them once, instead of once for each caller and each iteration of a loop. So
 * they take only numbers, and the state is in the record.
 */
#include "bpf/core/sb_interp.bpf.h"
#include "bpf/core/sb_last_walk.bpf.h"
#include "bpf/core/sb_proc_cache.bpf.h"
#include "bpf/core/sb_returns.bpf.h"
#include "bpf/core/sb_stack.bpf.h"
#include "bpf/core/sb_unwind.bpf.h"

/* Ask again for what was asked for already only after this long. */
#define ASK_AGAIN_NS	 20000000ull
/* See is_about_to_exec(): fork(2) and execve(2) take a tenth of the latter. */
#define FORKED_AGE_NS	 10000000ull
#define FORKED_RUN_NS	 1000000ull
/*
 * An address in no mapping may mean that the list is old, or that the stack is garbage. The list is
 * doubted until it was read anew so many times, and was the same: how many samples fall into that
 * time says nothing.
 */
#define NR_CONFIRMED_MAX 64
/* Words that sb_unwind_may_be_returns() looks at; a power of two. */
#define HIDDEN_AT_ONCE	 8u
/* Also of the mapping [uprobes]. Its trampoline on x86-64 saves three registers around a system
 * call (arch/x86/kernel/uprobes.c, since Linux 6.11). */
#define PAGE_BYTES	 4096u
#define TRAMPOLINE_SAVES 24

/* First address that no user code can have: sb_sym_user_end(). */
const volatile __u64 cfg_user_end = 1ull << 47;

const volatile __u32 cfg_ustack_depth_max = SB_USTACK_DEPTH_MAX;
/* --unwind: SB_UNWIND_*. */
const volatile __u32 cfg_unwind = SB_UNWIND_FP;

__u32 uw_is_busy = 0;

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

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256u << 10);
} uw_needs SEC(".maps");

struct asked {
	__u32 tgid, exec_id;
	__u32 need;
	__u32 about; /* the binary; of a process: the list that will not do, so that the next one
			can be asked for at once: a program that starts maps one library after the
			other */
};

/* What was asked for, and when. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct asked);
	__type(value, __u64);
} uw_asked SEC(".maps");

static __u32 about(const struct sb_scratch *s, __u32 need)
{
	struct sb_uw_proc *proc;

	if (need == SB_UW_NEED_BIN)
		return s->map.bin;
	if (need != SB_UW_NEED_PROC)
		return 0;
	proc = bpf_map_lookup_elem(&uw_procs, &s->capture.key.tgid);
	return proc ? proc->segs_word : 0;
}

static struct asked asked_key(const struct sb_scratch *s, __u32 need, __u32 what)
{
	return (struct asked){
		.tgid = s->capture.key.tgid,
		.exec_id = s->capture.key.exec_id,
		.need = need,
		.about = what,
	};
}

/*
 * Most processes that fork are another program a moment later, before user space could make use of
 * their mappings. So nobody is asked about a process that has not called exec before it is
 * FORKED_AGE_NS old or has had the CPU for FORKED_RUN_NS. Until then its stacks are shipped raw.
 * A process that is seen in another thread than its first is not about to call exec. The first
 * thread has the flag and the CPU time in itself, so that no pointer to it is followed: see
 * start_of_process() in sample.bpf.c.
 */
static bool is_about_to_exec(const struct sb_scratch *s)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return task->pid == task->tgid && (task->flags & PF_FORKNOEXEC) &&
	       task->se.sum_exec_runtime < FORKED_RUN_NS &&
	       bpf_ktime_get_boot_ns() - s->capture.key.start_ns < FORKED_AGE_NS;
}

/*
 * In the midst of execve(2) the old program is gone, and the new one is not mapped yet. An answer
 * would say that there is no code, and the program would not be asked about when it begins.
 */
static bool is_in_exec(void)
{
	return !BPF_CORE_READ(bpf_get_current_task_btf(), mm, start_code);
}

/* Not inlined, as sb_unwind_need(): the walk has no room for either on its stack on Linux 5.15. */
__hidden __noinline int sb_unwind_was_asked(struct sb_scratch *s, __u32 need, __u32 what)
{
	struct asked key = asked_key(s, need, what);
	__u64 now_ns = s->capture.now_ns, *asked_ns = bpf_map_lookup_elem(&uw_asked, &key);

	if (asked_ns && now_ns - *asked_ns < ASK_AGAIN_NS)
		return 1;
	if (need != SB_UW_NEED_TOUCH &&
	    (s->capture.is_brief || is_about_to_exec(s) || is_in_exec()))
		return 1;
	/* Where this fails, it is asked for once too often. */
	bpf_map_update_elem(&uw_asked, &key, &now_ns, BPF_ANY);
	return 0;
}

__hidden void sb_unwind_not_asked(struct sb_scratch *s, __u32 need, __u32 what)
{
	struct asked key = asked_key(s, need, what);

	bpf_map_delete_elem(&uw_asked, &key);
}

__hidden __noinline int sb_unwind_need(struct sb_scratch *s, __u32 need, __u64 addr)
{
	struct sb_uw_need_event event = {
		.start_ns = s->capture.key.start_ns,
		.addr = addr,
		.tgid = s->capture.key.tgid,
		.exec_id = s->capture.key.exec_id,
		.need = need,
		.bin = s->map.bin,
	};
	__u32 what = about(s, need);

	if (sb_unwind_was_asked(s, need, what))
		return 0;
	if (bpf_ringbuf_output(&uw_needs, &event, sizeof(event), BPF_RB_FORCE_WAKEUP)) {
		sb_unwind_not_asked(s, need, what);
		sb_stat_add(SB_STAT_NEEDS_FULL, 1);
	}
	return 0;
}

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

/* The list of mappings of the process, if there is one and it is up to date. */
static void find_proc(struct sb_scratch *s, __u32 slot)
{
	const struct sb_sample_key *key = &s->capture.key;
	struct sb_proc_cache *known = sb_proc_cache_of(slot, s);
	struct sb_uw_proc *proc;

	if (known && (known->has & SB_PROC_CACHE_LIST) && known->exec_vm == s->map.exec_vm) {
		s->map.segs_word = s->stack.list = known->segs_word;
		s->map.nr_segs = known->nr_segs;
		return;
	}
	proc = bpf_map_lookup_elem(&uw_procs, &key->tgid);
	if (!proc)
		return;
	/* Read before the run, and before anybody knew which process this is. */
	if (!proc->start_ns) {
		proc->start_ns = key->start_ns;
		proc->exec_id = key->exec_id;
	}
	if (proc->start_ns != key->start_ns || proc->exec_id != key->exec_id)
		return;
	if (proc->exec_vm != s->map.exec_vm && is_doubtful(proc))
		return;
	s->map.segs_word = s->stack.list = proc->segs_word;
	s->map.nr_segs = proc->nr_segs;
	if (known && proc->exec_vm == s->map.exec_vm) {
		known->segs_word = s->map.segs_word;
		known->nr_segs = s->map.nr_segs;
		known->exec_vm = s->map.exec_vm;
		known->has |= SB_PROC_CACHE_LIST;
	}
}

static bool is_list_doubtful(struct sb_scratch *s)
{
	struct sb_uw_proc *proc = bpf_map_lookup_elem(&uw_procs, &s->capture.key.tgid);

	return !proc || is_doubtful(proc);
}

static enum sb_step end(struct sb_scratch *s, __u32 status)
{
	s->walk.status = status;
	return SB_STEP_END;
}

/* Frames that a runtime has found on the native stack are known here only: user space, which would
 * walk a piece of the stack anew, has no walker for them. */
static bool has_hooked(const struct sb_scratch *s)
{
	return s->interp.has_hook && s->interp.walk.nr_frames;
}

/* Something is missing that user space can provide: let it unwind this stack, or else go on by
 * frame pointers, which will be said. */
static enum sb_step table_missing(struct sb_scratch *s, __u32 slot, __u32 need)
{
	sb_unwind_need(s, need, sb_walk_key(&s->walk));
	if (has_hooked(s))
		return end(s, SB_STACK_NO_TABLE);
	if (!sb_rawstack_capture(slot)) {
		s->map.is_raw = 1;
		return end(s, SB_STACK_NO_TABLE);
	}
	s->map.is_cut_off = 1;
	s->map.modes &= ~SB_UNWIND_CFI;
	return SB_STEP_FP_CHAIN;
}

/* The address lies in no mapping we know. If that is the truth, it was no return address. */
static enum sb_step address_unknown(struct sb_scratch *s, __u32 slot)
{
	if (!s->map.nr_segs || is_list_doubtful(s))
		return table_missing(s, slot, SB_UW_NEED_PROC);
	if (s->stack.nr_frames > 1)
		s->stack.nr_frames--;
	return end(s, s->walk.mark & SB_IP_BY_FP ? SB_STACK_BAD_FP : SB_STACK_BAD_PC);
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

/*
 * The rule for the address of the walk becomes the walk's; FP_CHAIN where there is none.
 * Return: 0, or -ENOENT: the address lies in no mapping; -EAGAIN: the binary has no table yet.
 */
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

#if defined(__TARGET_ARCH_arm64)
/*
 * A leaf without a rule: code written by hand, a vDSO. Whether it has a frame of its own, nobody
 * says. But as long as it has called nothing, x30 is its return address; and when it has, x30
 * points into itself, where there is no rule either.
 */
static void look_at_lr(struct sb_scratch *s, __u32 slot)
{
	struct sb_walk *walk = &s->walk;
	__u64 pc = walk->pc;
	__u32 flags = walk->flags;
	int err;

	walk->pc = sb_code_addr(walk, walk->regs[SB_REG_LR]);
	walk->flags = 0;
	err = sb_unwind_find_rule(slot);
	/* A table that is missing will be asked for when the walk is there. */
	if (err == -EAGAIN || (!err && sb_is_callers_rule(s->map.rule.cfa)))
		flags |= SB_WALK_LR_IS_CALLER;
	walk->pc = pc;
	walk->flags = flags;
	s->map.rule.cfa = SB_UW_CFA_FP_CHAIN;
}
#endif

static enum sb_step table_step(struct sb_scratch *s, __u32 slot)
{
	int err = sb_unwind_find_rule(slot);

	if (err == -ENOENT)
		return address_unknown(s, slot);
	if (err)
		return table_missing(s, slot, SB_UW_NEED_BIN);
	if (s->map.seg_flags & SB_UW_SEG_ANON)
		s->walk.flags |= SB_WALK_GENERATED;
#if defined(__TARGET_ARCH_arm64)
	if (s->map.rule.cfa == SB_UW_CFA_FP_CHAIN && (s->walk.flags & SB_WALK_LEAF))
		look_at_lr(s, slot);
#endif
	return sb_cfi_step(&s->walk, &s->map.rule, s);
}

static enum sb_step push(struct sb_scratch *s, __u64 ip)
{
	__u32 at = s->stack.nr_frames;

	sb_opaque(at);
	if (at >= SB_USTACK_DEPTH_MAX || at >= cfg_ustack_depth_max)
		return end(s, SB_STACK_DEPTH);
	s->ip[at & (SB_USTACK_DEPTH_MAX - 1)] = ip;
	s->stack.nr_frames = at + 1;
	return SB_STEP_GO_ON;
}

/* What a runtime has to say about the frame the walk stands at. */
static enum sb_step hook_step(struct sb_scratch *s, __u32 slot)
{
	enum sb_step step = sb_interp_native(slot);

	if (s->interp.walk.has_steps)
		sb_interp_run(slot);
	sb_interp_native_done(slot);
	return step;
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
 * not;
 * -ENOENT: from here on, none may be. Global, so that the verifier examines it once and not for each
 * word.
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

/* Return: whether a word between the stack pointer and the frame can be a return address. */
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
#else
#define sb_unwind_hides(slot) 0
#endif

/* By the frame pointer, where there is no rule. */
static enum sb_step fp_step(struct sb_scratch *s, __u32 slot)
{
	__u64 fp = s->walk.fp;
	bool hides = false;
	enum sb_step step;

	/* A walker of an interpreter knows what it leaves to the frame pointer. */
	if ((s->walk.flags & SB_WALK_GENERATED) && !s->interp.has_hook)
		hides = sb_unwind_hides(slot);
	step = sb_fp_step(&s->walk, s);
	s->map.nr_by_fp += step == SB_STEP_GO_ON;
	/* And not by the code at pc, which may say that no frame stands yet. */
	if (hides && s->walk.sp == fp + 16)
		s->walk.mark |= SB_IP_HIDES;
	return step;
}

__noinline int sb_returns_next(struct sb_returns *returns)
{
	struct return_instance *call;

	if (!returns || !returns->next)
		return -ENOENT;
	call = (struct return_instance *)returns->next;
	returns->stack = BPF_CORE_READ(call, stack);
	returns->addr = BPF_CORE_READ(call, orig_ret_vaddr);
	returns->next = (__u64)BPF_CORE_READ(call, next);
	return 0;
}

/*
 * Advance map.returns by one call. Global, as is sb_returns_next(). Return: 1 if it is the one that
 * sb_returns_find() looks for, 0 if not; -ENOENT: there is none.
 */
__noinline int sb_returns_is_next(__u32 slot, __u64 sp, __u64 more)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || sb_returns_next(&s->map.returns))
		return -ENOENT;
	return s->map.returns.stack + SB_RETURN_BYTES - sp <= more;
}

__noinline int sb_returns_find(__u32 slot, __u64 sp, __u64 more)
{
	__u32 i;
	int is;

	for (i = 0; i < SB_RETURNS_MAX; i++) {
		is = sb_returns_is_next(slot, sp, more);
		if (is)
			return is > 0 ? 0 : -ENOENT;
	}
	return -ENOENT;
}

#if defined(__TARGET_ARCH_x86)
/*
 * The kernel has dealt with the return, and the list does not have the call any more: the
 * trampoline goes on with pop %r11; pop %rcx; ret. Return: how far above sp the true address is, or
 * -1.
 */
static int after_trampoline(__u64 offset)
{
	switch (offset) {
	case 0x0d:
		return 16;
	case 0x0f:
		return 8;
	case 0x10:
		return 0;
	default:
		return -1;
	}
}
#else
#define after_trampoline(offset) (-1)
#endif

/* The thread has returned to the trampoline: correct the registers to those after it. */
static void return_leaf(struct sb_scratch *s, __u32 slot)
{
	__u64 sp = sb_regs_sp(&s->regs), offset, pc;
	int above;

	offset = sb_regs_pc(&s->regs) - s->map.returns.trampoline;
	if (!s->map.returns.trampoline || offset >= PAGE_BYTES)
		return;
	above = after_trampoline(offset);
	if (!sb_returns_find(slot, sp, TRAMPOLINE_SAVES)) {
		pc = s->map.returns.addr;
		sp = s->map.returns.stack + SB_RETURN_BYTES;
	} else if (above >= 0 && !bpf_probe_read_user(&pc, sizeof(pc), (void *)(sp + above))) {
		sp += above + sizeof(pc);
		sb_returns_begin(s, bpf_get_current_task_btf());
	} else {
		return;
	}
	s->regs.sp = sp;
#if defined(__TARGET_ARCH_x86)
	s->regs.ip = pc;
#elif defined(__TARGET_ARCH_arm64)
	s->regs.pc = pc;
#endif
}

/* From the trampoline, at which the walk has come, to the true return address. */
static enum sb_step return_step(struct sb_scratch *s, __u32 slot)
{
	__u64 more = s->walk.flags & SB_WALK_SP_LOST ? SB_FP_FRAME_BYTES_MAX : 0;

	s->log.nr = SB_LOG_OFF; /* the memo knows walks by the stack, which does not have it */
	if (sb_returns_find(slot, s->walk.sp, more))
		return end(s, SB_STACK_RETURN_PROBE);
	return sb_step_to(&s->walk, s->map.returns.addr, s->map.returns.stack + SB_RETURN_BYTES,
			  s->walk.fp);
}

__noinline int sb_unwind_step(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	enum sb_step step = SB_STEP_FP_CHAIN;
	bool is_hooked;

	if (!s)
		return SB_STEP_END;
	is_hooked = sb_interp_has_hook(s);
	if (is_hooked)
		step = hook_step(s, slot);
	if (step == SB_STEP_FP_CHAIN && (s->map.modes & SB_UNWIND_CFI))
		step = table_step(s, slot);
	/* Code without a rule, which no hook covers. */
	if (step == SB_STEP_FP_CHAIN && s->interp.has_hook && !is_hooked)
		step = hook_step(s, slot);
	if (step == SB_STEP_FP_CHAIN) {
		if (!(s->map.modes & SB_UNWIND_FP))
			return end(s, s->map.modes ? SB_STACK_NO_RULE : SB_STACK_COMPLETE);
		step = fp_step(s, slot);
	}
	if (step == SB_STEP_GO_ON && s->walk.pc == s->map.returns.trampoline)
		step = return_step(s, slot);
	return step == SB_STEP_GO_ON ? push(s, s->walk.pc | s->walk.mark) : step;
}

static void begin(struct sb_scratch *s)
{
	const struct sb_regs *regs = &s->regs;
	struct sb_walk *walk = &s->walk;

	walk->pc = sb_regs_pc(regs);
	walk->sp = sb_regs_sp(regs);
	walk->fp = sb_regs_fp(regs);
	sb_regs_by_dwarf(regs, walk->regs);
	walk->user_end = cfg_user_end;
	walk->flags = SB_WALK_LEAF;
	walk->mark = 0;
	walk->bx_at = 0;
	walk->uses = 0;
	walk->status = SB_STACK_DEPTH;
	s->map.nr_segs = 0;
	s->map.nr_by_fp = s->map.is_cut_off = s->map.is_raw = s->map.is_known = 0;
	s->map.modes = cfg_unwind;
	s->map.is_last_walk_on = 0;
}

/* The leaf is often in the mapping where the last walk found one. As in uw_rules, what was found in
 * a list counts for one epoch. */
static void keep_seg(struct sb_scratch *s)
{
	if (s->map.seg_list == s->map.segs_word && s->map.seg_epoch == sb_unwind_epoch(s))
		return;
	s->map.begin = s->map.end = 0;
	s->map.bin = SB_UW_BINS_MAX;
}

/*
 * A walk that ended in nonsense may have gone by tables of what was mapped there a moment ago (two
 * libraries that take turns at one address): user space knows what was there at what time.
 */
static bool is_worth_a_look(struct sb_scratch *s, __u32 slot)
{
	__u32 status = s->walk.status;

	if (!(s->map.modes & SB_UNWIND_CFI) ||
	    (status != SB_STACK_BAD_PC && status != SB_STACK_BAD_FP && status != SB_STACK_BAD_CFA &&
	     status != SB_STACK_NO_RULE))
		return false;
	if (!is_list_doubtful(s) || has_hooked(s))
		return false;
	sb_unwind_need(s, SB_UW_NEED_PROC, sb_walk_key(&s->walk));
	return !sb_rawstack_capture(slot);
}

static void finish(struct sb_scratch *s, __u32 slot)
{
	__u32 nr_callers = s->stack.nr_frames - 1, nr_by_fp = s->map.nr_by_fp;

	if (is_worth_a_look(s, slot)) {
		s->map.is_raw = 1;
		return;
	}
	s->stack.status = s->map.is_cut_off ? SB_STACK_NO_TABLE : s->walk.status;
	if (nr_by_fp)
		sb_stat_add(SB_STAT_FP_FRAMES, nr_by_fp);
	if (nr_callers > nr_by_fp)
		sb_stat_add(SB_STAT_CFI_FRAMES, nr_callers - nr_by_fp);
	if (s->walk.status == SB_STACK_FAULT && (cfg_unwind & SB_UNWIND_CFI))
		sb_unwind_need(s, SB_UW_NEED_TOUCH, s->map.fault_addr);
}

__noinline int sb_unwind_begin(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	sb_returns_begin(s, bpf_get_current_task_btf());
	return_leaf(s, slot);
	begin(s);
	s->stack.nr_frames = 0;
	push(s, s->walk.pc);
	s->log.nr = SB_LOG_OFF;
	if (!(cfg_unwind & SB_UNWIND_CFI))
		return SB_STEP_GO_ON;
	find_proc(s, slot);
	keep_seg(s);
	if (cfg_last_walk)
		sb_last_walk_begin(slot);
	if (s->interp.has_hook || !sb_memo_is_on(slot) || !sb_memo_find(slot))
		return SB_STEP_GO_ON;
	s->map.is_known = 1;
	return SB_STEP_END;
}

__noinline int sb_unwind_round(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	__u32 i;

	if (cfg_last_walk && s && s->map.is_last_walk_on) {
		for (i = 0; i < SB_UNWIND_ROUND; i++)
			if (sb_last_walk_after(slot, sb_unwind_step(slot)) != SB_STEP_GO_ON)
				return SB_STEP_END;
		return SB_STEP_GO_ON;
	}
	for (i = 0; i < SB_UNWIND_ROUND; i++)
		if (sb_unwind_step(slot) != SB_STEP_GO_ON)
			return SB_STEP_END;
	return SB_STEP_GO_ON;
}

__noinline int sb_unwind_end(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (s && !s->map.is_raw)
		finish(s, slot);
	if (cfg_last_walk && s && !s->map.is_raw && s->map.is_last_walk_on)
		sb_last_walk_keep(slot);
	return 0;
}
