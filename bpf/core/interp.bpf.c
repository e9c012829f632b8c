// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Frames of interpreters. Here they are numbers. User space learns of each new stack at once, and
 * reads the names as long as the process lives. Owns `interp_procs`, `interp_confs` and
 * `interp_events`.
 */
#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_interp.bpf.h"
#include "bpf/core/sb_proc_cache.bpf.h"
#include "bpf/core/sb_unwind.bpf.h"

const volatile bool cfg_interp = false;
const volatile bool cfg_interp_lines = false;
const volatile __u32 cfg_interp_walkers = ~0u;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u32);
	__type(value, struct sb_interp_proc);
} interp_procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u32);
	__type(value, struct sb_interp_conf);
} interp_confs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set before load */
} interp_events SEC(".maps");

/*
 * Pieces of the process's memory that this sample has read. The kernel takes about as long to copy
 * a piece as a word, and most of what a walk reads is near to what it has read before: records of
 * one stack, objects of one arena. So a step finds most of its words here. What is touched once or
 * twice, as objects that lie alone, is read as words: a piece of them would bring cache lines that
 * nobody needs. How often a piece is touched is remembered from sample to sample, but no word of
 * it.
 */
#define READ_BYTES   1024ull /* a power of two, and part of a page, so it is readable as a whole */
#define READ_PIECES  16u     /* a power of two */
#define READ_PLACES  128u    /* a power of two; many, so that few pieces share one */
#define READ_TOUCHES 3u
#define READ_WORDS   (READ_BYTES / 8)

/* What is known of a piece. */
struct interp_place {
	__u64 at;     /* its address */
	__u64 nr;     /* it was the nr-th one that was read; 0: it was not */
	__u64 sample; /* which touched it last */
	__u32 nr_touches, is_hot;
};

struct interp_pieces {
	__u64 sample; /* number of the current one */
	__u64 nr;     /* pieces that were read, of all samples; the last READ_PIECES are in @word */
	__u64 nr_before; /* of earlier samples */
	struct interp_place place[READ_PLACES];
	__u64 word[READ_PIECES * READ_WORDS];
};

/*
 * Which element of interp_pieces the programs of a slot use, as long as its record is theirs;
 * READ_NEVER: none.
 */
const volatile __u32 cfg_interp_pieces[SB_SCRATCH_MAX] = {};
#define READ_NEVER (~0u)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* set before load: the slots that take user stacks */
	__type(key, __u32);
	__type(value, struct interp_pieces);
} interp_pieces SEC(".maps");

__hidden struct sb_interp_conf *sb_interp_conf_at(__u32 at)
{
	return bpf_map_lookup_elem(&interp_confs, &at);
}

__hidden int sb_interp_ship(const void *event, __u64 nr_bytes)
{
	return bpf_ringbuf_output(&interp_events, (void *)event, nr_bytes, BPF_RB_FORCE_WAKEUP);
}

static void begin_event(struct sb_scratch *s, __u32 kind)
{
	struct sb_interp_event *event = &s->interp.walk.event;
	const struct sb_sample_key *key = &s->capture.key;

	event->kind = kind;
	event->nr_frames = 0;
	event->start_ns = key->start_ns;
	event->tgid = key->tgid;
	event->exec_id = key->exec_id;
	event->status = SB_STACK_COMPLETE;
	event->tid = (__u32)bpf_get_current_pid_tgid();
}

/*
 * A process that is not known: user space will look at it. Who reads its mappings for the unwinder
 * sees whether there can be an interpreter in it: in most there is none.
 */
static void ask(struct sb_scratch *s)
{
	if ((cfg_unwind & SB_UNWIND_CFI) && !*(volatile __u32 *)&uw_is_busy) {
		sb_unwind_need(s, SB_UW_NEED_INTERP, 0);
		return;
	}
	if (sb_unwind_was_asked(s, SB_UW_NEED_INTERP, 0))
		return;
	begin_event(s, SB_INTERP_NEED);
	if (bpf_ringbuf_output(&interp_events, &s->interp.walk.event,
			       sizeof(struct sb_interp_event), BPF_RB_FORCE_WAKEUP)) {
		sb_unwind_not_asked(s, SB_UW_NEED_INTERP, 0);
		sb_stat_add(SB_STAT_INTERP_FULL, 1);
	}
}

__hidden __u64 sb_interp_thread_pointer(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(task, thread.uw.tp_value);
#endif
}

/* The @i-th runtime's conf becomes the walk's. Return: 0, or -ENOENT. */
static int load_conf(struct sb_scratch *s, __u32 i)
{
	struct sb_interp_conf *conf;
	__u32 at = i;

	sb_opaque(at);
	if (at >= s->interp.nr_confs || at >= SB_INTERP_PER_PROC)
		return -ENOENT;
	at = s->interp.proc.conf_at[at & (SB_INTERP_PER_PROC - 1)];
	conf = bpf_map_lookup_elem(&interp_confs, &at);
	if (!conf)
		return -ENOENT;
	s->interp.walk.conf = *conf;
	return 0;
}

/* Forget what earlier samples have read. */
static void begin_reads(struct sb_scratch *s, __u32 slot)
{
	struct interp_pieces *pieces;
	__u32 at = READ_NEVER;

	/* Linux 5.15 does not know what was checked once it lay on the stack. */
	sb_opaque(slot);
	if (slot < SB_SCRATCH_MAX)
		at = cfg_interp_pieces[slot];
	s->interp.got.pieces = at;
	pieces = bpf_map_lookup_elem(&interp_pieces, &at);
	if (!pieces)
		return;
	pieces->sample++;
	pieces->nr_before = pieces->nr;
}

/* Note a touch. Return: whether the piece is worth reading: at the last sample, or by now, it had
 * many. */
static bool is_worth_it(const struct interp_pieces *pieces, struct interp_place *place, __u64 at)
{
	if (place->at != at) {
		place->at = at;
		place->nr = place->nr_touches = 0;
		place->is_hot = 0;
	} else if (place->sample != pieces->sample) {
		place->is_hot = place->nr_touches >= READ_TOUCHES;
		place->nr_touches = 0;
	}
	place->sample = pieces->sample;
	place->nr_touches++;
	return place->is_hot || place->nr_touches >= READ_TOUCHES;
}

/*
 * Find the piece that has the words from @addr to @end, and read it if it is worth it. Return: the
 * index of the first one in pieces->word; -ENOENT if they are not in one piece, or it is not worth
 * it, or cannot be read.
 */
static __always_inline int find_piece(struct interp_pieces *pieces, __u64 addr, __u64 end)
{
	__u64 at = addr & ~(READ_BYTES - 1), mixed = at * 0x9e3779b97f4a7c15ull >> 32, word;
	struct interp_place *place;

	if (end - at > READ_BYTES)
		return -ENOENT;
	sb_opaque(mixed);
	place = &pieces->place[mixed & (READ_PLACES - 1)];
	if (!is_worth_it(pieces, place, at))
		return -ENOENT;
	word = place->nr;
	if (word <= pieces->nr_before || pieces->nr - word >= READ_PIECES) {
		word = ++pieces->nr;
		place->nr = 0;
		sb_opaque(word);
		if (bpf_probe_read_user(&pieces->word[word % READ_PIECES * READ_WORDS], READ_BYTES,
					(const void *)at))
			return -ENOENT;
		place->nr = pieces->nr;
	}
	return word % READ_PIECES * READ_WORDS + (addr - at) / 8;
}

__noinline int sb_interp_get(struct sb_interp_got *got, __u64 addr, __u32 len)
{
	__u32 i, nr, which, shift = addr % 8;
	struct interp_pieces *pieces;
	int at = -ENOENT;

	sb_opaque(len);
	if (!cfg_interp_walkers || !got || len > SB_INTERP_GOT_BYTES)
		return -EFAULT;
	which = got->pieces;
	pieces = bpf_map_lookup_elem(&interp_pieces, &which);
	nr = (len + 7) / 8;
	if (pieces && (!shift || shift + len <= 8))
		at = find_piece(pieces, addr - shift, addr - shift + 8 * nr);
	if (at < 0)
		return bpf_probe_read_user(got->word, len, (const void *)addr);
	for (i = 0; i < SB_INTERP_GOT_BYTES / 8; i++) {
		if (i >= nr)
			break;
		got->word[i] = pieces->word[(at + i) & (READ_PIECES * READ_WORDS - 1)];
	}
	got->word[0] >>= 8 * shift;
	return 0;
}

static void begin_walks(struct sb_scratch *s)
{
	struct sb_interp_walk *walk = &s->interp.walk;
	const struct sb_sample_key *key = &s->capture.key;

	begin_event(s, SB_INTERP_STACK);
	walk->thread_pointer = sb_interp_thread_pointer(bpf_get_current_task_btf());
	walk->pc = sb_regs_pc(&s->regs);
	walk->sp = sb_regs_sp(&s->regs);
	sb_regs_by_dwarf(&s->regs, walk->regs);
	walk->wants_lines = cfg_interp_lines;
	walk->nr_frames = 0;
	/* What a walker on the native stack notes from frame to frame; begin() is not for it. */
	__builtin_memset(walk->at, 0, sizeof(walk->at));
	/* Addresses of code objects mean something in their process only. */
	walk->hash[0] = sb_stack_seed(0) ^ key->start_ns;
	walk->hash[1] = sb_stack_seed(1) ^ ((__u64)key->tgid << 32 | key->exec_id);
}

/* Return: the interpreters of the process; NULL: it is not known. */
static const struct sb_interp_proc *find_proc_confs(const struct sb_scratch *s, __u32 slot)
{
	const struct sb_sample_key *key = &s->capture.key;
	struct sb_proc_cache *known = sb_proc_cache_of(slot, s);
	struct sb_interp_proc *proc;

	if (known && (known->has & SB_PROC_CACHE_INTERP))
		return &known->interp;
	proc = bpf_map_lookup_elem(&interp_procs, &key->tgid);
	if (!proc ||
	    (proc->start_ns && (proc->start_ns != key->start_ns || proc->exec_id != key->exec_id)))
		return NULL;
	if (known) {
		known->interp = *proc;
		known->has |= SB_PROC_CACHE_INTERP;
	}
	return proc;
}

__noinline int sb_interp_restart(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!cfg_interp_walkers || !s)
		return 0;
	begin_reads(s, slot);
	begin_walks(s);
	return 0;
}

__noinline int sb_interp_start(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	const struct sb_interp_proc *proc;

	if (!s)
		return 0;
	s->interp.nr_confs = s->interp.has_hook = s->interp.labels = 0;
	s->interp.nr_steps = 0;
	s->interp.walk.nr_frames = 0;
	if (!cfg_interp)
		return 0;
	proc = find_proc_confs(s, slot);
	if (!proc) {
		ask(s);
		return 0;
	}
	s->interp.labels = proc->labels;
	if (!proc->nr_confs)
		return 0;
	s->interp.proc = *proc;
	s->interp.nr_confs = proc->nr_confs;
	sb_interp_restart(slot);
	if (proc->hook)
		s->interp.has_hook = !load_conf(s, proc->hook - 1);
	return 0;
}

__noinline int sb_interp_native_done(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	__u32 at;

	if (!cfg_interp_walkers || !s || s->interp.walk.nr_frames == s->interp.nr_before)
		return 0;
	sb_interp_segment_end(&s->interp.walk);
	if (s->interp.walk.nr_frames >= SB_INTERP_FRAMES_MAX)
		s->interp.walk.event.status = SB_STACK_DEPTH;
	at = s->stack.nr_frames - 1;
	sb_opaque(at);
	if (at < SB_USTACK_DEPTH_MAX)
		s->ip[at] |= SB_IP_INTERP;
	return 0;
}

__noinline int sb_interp_walk(__u32 slot, __u32 i)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct sb_interp_walk *walk;
	__u32 pieces;
	int step;

	if (!cfg_interp_walkers || !s || load_conf(s, i) ||
	    !(s->interp.walk.conf.flags & SB_INTERP_BY_STATE))
		return 0;
	walk = &s->interp.walk;
	__builtin_memset(walk->at, 0, sizeof(walk->at));
	walk->status = SB_STACK_DEPTH;
	s->interp.nr_steps = 0;
	/* What leads to the thread's state is scattered. */
	pieces = s->interp.got.pieces;
	s->interp.got.pieces = READ_NEVER;
	step = sb_interp_begin(slot);
	s->interp.got.pieces = pieces;
	if (step == SB_STEP_GO_ON)
		sb_interp_run(slot);
	if (walk->status == SB_STACK_FAULT)
		sb_unwind_need(s, SB_UW_NEED_TOUCH, walk->fault_addr);
	if (walk->status != SB_STACK_COMPLETE)
		walk->event.status = walk->status;
	return 0;
}

static int ship_frames(struct sb_scratch *s)
{
	__u64 nr = s->interp.walk.nr_frames;

	sb_opaque(nr);
	if (nr > SB_INTERP_FRAMES_MAX)
		return -E2BIG;
	s->interp.walk.event.nr_frames = nr;
	return bpf_ringbuf_output(&interp_events, &s->interp.walk.event,
				  sizeof(struct sb_interp_event) +
					  nr * sizeof(struct sb_interp_frame),
				  BPF_RB_FORCE_WAKEUP);
}

__noinline int sb_interp_finish(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct sb_stack_id *id;

	if (!cfg_interp_walkers || !s || !s->interp.walk.nr_frames)
		return 0;
	sb_interp_mix(&s->interp.walk, s->interp.walk.nr_frames << 8 | s->interp.walk.event.status);
	id = &s->interp.walk.event.id;
	id->lo = s->interp.walk.hash[0] ^ (s->interp.walk.hash[1] >> 31);
	id->hi = s->interp.walk.hash[1] | 1; /* {0, 0} means no stack */
	s->capture.key.istack = *id;
	sb_stat_add(SB_STAT_INTERP_FRAMES, s->interp.walk.nr_frames);
	if (sb_stack_claim(id) && ship_frames(s)) {
		sb_stack_unclaim(id);
		sb_stat_add(SB_STAT_INTERP_FULL, 1);
	}
	return 0;
}

__hidden int sb_interp_name_asleep(struct sb_sample_key *key)
{
	if (!cfg_interp)
		return 0;
	key->istack.lo = ~key->ustack.lo;
	key->istack.hi = key->ustack.hi;
	return 0;
}
