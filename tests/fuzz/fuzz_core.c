// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bpf/core and bpf/interp, compiled for the host, take one sample of a hostile process. Its registers, every word that is read of it, and all that user space has told the
 * kernel about it come from the input: tables of rules (as they are made, or any words), what
 * interpreters it has and how they are laid out.
 *
 * Whatever it is, the sample ends within the bounds that are stated here, writes nowhere but where
 * it may, and is the same when it is taken again. With tables as they are made, each step is looked
 * up a second time, in the plainest way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TGID		 42
#define EXEC_VM		 100
#define SLOT		 SB_SCRATCH_CALL
#define BYSTANDER	 SB_SCRATCH_TIMER
#define STACK		 0x7ffd12340000ull
#define STACK_BYTES	 (64ull << 10)
#define CODE		 0x555500000000ull
#define CODE_BYTES	 0x8000ull /* of each mapping, with as much room between them */
#define NR_SEGS		 4u
#define NR_BINS		 3u
#define NR_CONFS	 SB_INTERP_PER_PROC
#define NR_GRANULES	 (CODE_BYTES / SB_UW_GRANULE_BYTES)
#define NR_RULES	 32u
#define NR_ROWS		 16u /* of a granule */
#define MEMORY_WORDS	 512u

/* Words of the pool. */
#define SEGS_AT		 64u
#define INDEX_AT	 1024u /* 32 words for each binary */
#define RULES_AT	 2048u /* 64 words for each binary */
#define ROWS_AT		 4096u /* NR_ROWS words for each granule of each binary */

/*
 * What a sample may cost in reads of 8 to 144 bytes. A walk has 512 steps, each of which reads at
 * most four times without a hook; a runtime's hook may ask for 1,024 steps of its own.
 */
#define NATIVE_READS_MAX (4u * SB_USTACK_DEPTH_MAX + 64)
#define ALL_READS_MAX	 (64u << 10)

enum {
	HOW_CFI = 1u << 0,
	HOW_FP = 1u << 1,
	HOW_INTERP = 1u << 2,
	HOW_MEMO = 1u << 3,
	HOW_ANY_WORDS = 1u << 4, /* in the pool */
	HOW_ANSWERS = 1u << 5,	 /* at every address, not in the stack only */
	HOW_LINES = 1u << 6,
	HOW_UNKNOWN = 1u << 7, /* no list of mappings */
};

struct head {
	uint8_t how;
	uint8_t depth; /* --depth */
	uint8_t nr_confs;
	uint8_t stale; /* what in the list of mappings is out of date */
	uint8_t seg_flags[NR_SEGS];
	uint8_t bin_state[NR_BINS];
	uint8_t reserved[5];
	uint64_t regs[20], thread_pointer;
	struct {
		uint8_t runtime, flags, hook_first, hook_last; /* mappings: see code_at() */
		uint32_t reserved;
		uint64_t word[SB_INTERP_CONF_WORDS];
	} conf[NR_CONFS];
	struct sb_uw_rule rule[NR_RULES];
};

static struct head head;
static uint64_t memory[MEMORY_WORDS];
static size_t nr_words;
static uint64_t nr_reads;

static uint64_t code_at(uint64_t word)
{
	return CODE + word % (2 * NR_SEGS * CODE_BYTES);
}

/* The uppermost bits say what a word means: a call, the stack, the stack where words lie,
 * anything. */
static uint64_t meaning(uint64_t word)
{
	switch (word >> 61) {
	case 0:
		return code_at(word);
	case 1: /* where a row begins, or just behind its first byte */
		return (code_at(word) & ~(SB_UW_GRANULE_BYTES / NR_ROWS - 1ull)) + (word >> 56 & 1);
	case 2:
		return STACK + word % (2 * STACK_BYTES) - STACK_BYTES / 2;
	case 3:
	case 4:
		return STACK + word % STACK_BYTES / 8 * 8;
	case 5:
		return word & 0xffff;
	default:
		return word << 3 | word >> 58;
	}
}

static uint8_t byte_at(uint64_t addr)
{
	uint64_t word = memory[addr / 8 % nr_words];

	return (uint8_t)(word >> addr % 8 * 8);
}

static int read_forged(void *dst, uint32_t size, uint64_t addr)
{
	uint32_t i;

	nr_reads++;
	/* access_ok() */
	if (addr >= 1ull << 47 || size > (1ull << 47) - addr || !nr_words)
		return -EFAULT;
	if (!(head.how & HOW_ANSWERS) &&
	    (addr - STACK >= STACK_BYTES || addr + size - STACK > STACK_BYTES))
		return -EFAULT;
	for (i = 0; i < size; i++)
		((uint8_t *)dst)[i] = byte_at(addr + i);
	return 0;
}

static uint32_t *pool(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&shim_part, &zero);
}

static struct sb_uw_bin *bin_at(uint32_t at)
{
	return bpf_map_lookup_elem(&uw_bins, &at);
}

static void setup(void)
{
	static bool is_done;

	if (is_done)
		return;
	is_done = true;
	shim_reset();
	shim_core_maps(256 << 10);
	shim.user_read = read_forged;
}

static void forget(void)
{
	shim_map_clear(&stats);
	shim_map_clear(&raw_full_ns);
	shim_map_clear(&stacks_seen);
	shim_map_clear(&memos);
	shim_map_clear(&last_walks);
	shim_map_clear(&this_walks);
	shim_map_clear(&uw_rules);
	shim_map_clear(&uw_procs);
	shim_map_clear(&uw_asked);
	shim_map_clear(&uw_needs);
	shim_map_clear(&events);
	shim_map_clear(&interp_procs);
	shim_map_clear(&interp_events);
	shim.now_ns = 1000000000;
}

/* Tables as the compiler makes them: ascending rows, rules that are there. What a rule says is the
 * input's. */
static void fill_bin(uint32_t at)
{
	uint32_t *words = pool(), granule, i;

	*bin_at(at) = (struct sb_uw_bin){
		.index_word = INDEX_AT + 32 * at,
		.nr_granules = NR_GRANULES - at,
		.rules_word = RULES_AT + 64 * at,
		.nr_rules = NR_RULES,
		.state = head.bin_state[at] % 3,
	};
	memcpy(&words[RULES_AT + 64 * at], head.rule, sizeof(head.rule));
	for (granule = 0; granule < NR_GRANULES; granule++) {
		uint32_t rows = ROWS_AT + (uint32_t)(at * NR_GRANULES + granule) * NR_ROWS;

		words[INDEX_AT + 32 * at + 2 * granule] = granule % 3 ? rows : granule % NR_RULES;
		words[INDEX_AT + 32 * at + 2 * granule + 1] = granule % 3 ? NR_ROWS : 0;
		for (i = 0; i < NR_ROWS; i++)
			words[rows + i] = SB_UW_ROW((i + at + granule) % NR_RULES,
						    i * SB_UW_GRANULE_BYTES / NR_ROWS);
	}
}

static void fill_segs(void)
{
	struct sb_uw_seg *segs = (struct sb_uw_seg *)&pool()[SEGS_AT];
	uint32_t i;

	for (i = 0; i < NR_SEGS; i++)
		segs[i] = (struct sb_uw_seg){ .begin = CODE + 2 * i * CODE_BYTES,
					      .end = CODE + (2 * i + 1) * CODE_BYTES,
					      .bias = CODE + 2 * i * CODE_BYTES,
					      .bin = i % NR_BINS,
					      .flags = head.seg_flags[i] };
}

static void fill_pool(void)
{
	struct sb_uw_proc proc = { .start_ns = 7,
				   .exec_vm = EXEC_VM,
				   .exec_id = 1,
				   .segs_word = SEGS_AT,
				   .nr_segs = NR_SEGS,
				   .nr_confirmed = head.stale & 128 ? 1000 : 0 };
	uint32_t tgid = TGID, i;

	for (i = 0; i < NR_BINS; i++)
		fill_bin(i);
	fill_segs();
	if (head.how & HOW_ANY_WORDS) {
		uint32_t *words = pool();

		for (i = 0; i < SB_UW_CHUNK_WORDS && nr_words; i++)
			words[i] = (uint32_t)(memory[i / 2 % nr_words] >> i % 2 * 32);
		for (i = 0; i < NR_BINS && nr_words; i++) {
			memcpy(bin_at(i), head.rule + 4 * i, sizeof(struct sb_uw_bin));
			bin_at(i)->state = head.bin_state[i] % 3;
		}
		/* Its mappings as they are, or any; a list lies in one chunk, which is seen to
		 * where it is written. */
		if (head.stale & 1) {
			fill_segs();
		} else {
			proc.segs_word = head.stale * 32u % SB_UW_CHUNK_WORDS;
			proc.nr_segs = 1 + head.depth * 4u;
		}
	}
	if (head.stale % 7 == 6)
		proc.exec_vm = EXEC_VM - 1;
	if (!(head.how & HOW_UNKNOWN))
		bpf_map_update_elem(&uw_procs, &tgid, &proc, BPF_ANY);
}

static void fill_interp(void)
{
	struct sb_interp_proc proc = { .nr_confs = head.nr_confs % (NR_CONFS + 1) };
	uint32_t tgid = TGID, i;

	for (i = 0; i < NR_CONFS; i++) {
		struct sb_interp_conf *conf = bpf_map_lookup_elem(&interp_confs, &i);

		proc.conf_at[i] = i;
		*conf = (struct sb_interp_conf){
			.runtime = head.conf[i].runtime % (SB_RUNTIME_MAX + 1),
			.flags = head.conf[i].flags,
			.hook_begin = CODE + head.conf[i].hook_first % (2 * NR_SEGS) * CODE_BYTES,
			.hook_end = CODE + head.conf[i].hook_last % (2 * NR_SEGS) * CODE_BYTES,
		};
		memcpy(conf->word, head.conf[i].word, sizeof(conf->word));
		if (!proc.hook && i < proc.nr_confs && (conf->flags & SB_INTERP_BY_NATIVE))
			proc.hook = i + 1;
	}
	if (head.nr_confs < 128)
		bpf_map_update_elem(&interp_procs, &tgid, &proc, BPF_ANY);
}

static bool input_take(const uint8_t *data, size_t size)
{
	if (size < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	size -= sizeof(head);
	nr_words = size / sizeof(memory[0]);
	nr_words = nr_words < MEMORY_WORDS ? nr_words : MEMORY_WORDS;
	memcpy(memory, data + sizeof(head), nr_words * sizeof(memory[0]));
	for (size_t i = 0; i < nr_words; i++)
		memory[i] = meaning(memory[i]);
	cfg_unwind = head.how & (HOW_CFI | HOW_FP);
	cfg_interp = head.how & HOW_INTERP;
	cfg_interp_lines = head.how & HOW_LINES;
	cfg_memo = cfg_last_walk = head.how & HOW_MEMO;
	cfg_ustack_depth_max = head.depth == 255 ? SB_USTACK_DEPTH_MAX : 1u + head.depth;
	return true;
}

static struct task_struct task;
static struct mm_struct mm;

static struct sb_scratch *sample(void)
{
	struct sb_scratch *s = sb_scratch_get(SLOT), *other = sb_scratch_get(BYSTANDER);
	struct sb_regs *regs = &s->regs;

	mm.exec_vm = EXEC_VM;
	mm.start_code = 1;
	task = (struct task_struct){ .pid = TGID, .tgid = TGID, .mm = &mm, .group_leader = &task };
	task.thread.fsbase = head.thread_pointer;
	shim.task = &task;
	shim.pid_tgid = (uint64_t)TGID << 32 | TGID;
	memset(other, 0x5a, sizeof(*other));
	memset(s, 0x5a, sizeof(*s));
	memset(&s->capture, 0, sizeof(s->capture));
	s->capture.now_ns = bpf_ktime_get_ns();
	s->capture.key.tgid = TGID;
	s->capture.key.start_ns = 7;
	s->capture.key.exec_id = 1;
	for (size_t i = 0; i < sizeof(*regs) / sizeof(uint64_t); i++)
		((uint64_t *)regs)[i] = meaning(head.regs[i % 20]);
	regs->cs = 0x33;
	regs->orig_ax = ~0ull;
	nr_reads = 0;
	capture_user(&task, s, SLOT);
	return s;
}

static void check_bystander(void)
{
	const uint8_t *byte = (const uint8_t *)sb_scratch_get(BYSTANDER);
	size_t i;

	for (i = 0; i < sizeof(struct sb_scratch); i++)
		must(byte[i] == 0x5a);
}

static bool has_interp(const struct sb_scratch *s)
{
	return (head.how & HOW_INTERP) && s->interp.nr_confs;
}

static void check_native(const struct sb_scratch *s)
{
	uint32_t i, nr = s->stack.nr_frames;

	if (s->map.is_raw || s->map.is_known)
		return;
	must(nr >= 1 && nr <= cfg_ustack_depth_max && nr <= SB_USTACK_DEPTH_MAX);
	must((s->ip[0] & ~SB_IP_MARKS) == (s->regs.ip & ~SB_IP_MARKS));
	must(s->stack.status < SB_STACK_STATUS_MAX && s->stack.status != SB_STACK_NONE);
	/* SB_IP_MARKS are above all of user space, so marks and addresses do not mix. */
	for (i = 1; i < nr; i++)
		must((s->ip[i] & ~(SB_IP_MARKS | SB_IP_INTERP)) >= SB_PC_MIN &&
		     (s->ip[i] & ~(SB_IP_MARKS | SB_IP_INTERP)) < SB_IP_HIDES);
}

static void check_interp(const struct sb_scratch *s)
{
	const struct sb_interp_walk *walk = &s->interp.walk;
	const uint8_t *byte = (const uint8_t *)(walk->frame + walk->nr_frames);
	size_t i;

	must(walk->nr_frames <= SB_INTERP_FRAMES_MAX);
	if (!has_interp(s))
		return;
	must(walk->event.status < SB_STACK_STATUS_MAX);
	if (s->map.is_raw)
		return; /* frames were pushed, and given up */
	for (i = 0; i < (SB_INTERP_FRAMES_MAX - walk->nr_frames) * sizeof(*walk->frame); i++)
		must(byte[i] == 0x5a);
}

/* Records are as long as they say, and there is nothing in them but what they say. */
static void check_rings(void)
{
	const struct sb_interp_event *interp;
	const struct sb_event *event;
	uint32_t len;

	while ((event = shim_ring_next(&events, &len)))
		must(event->nr_bytes == len);
	while ((interp = shim_ring_next(&interp_events, &len)))
		must(len == sizeof(*interp) + interp->nr_frames * sizeof(struct sb_interp_frame) &&
		     interp->tgid == TGID && interp->nr_frames <= SB_INTERP_FRAMES_MAX);
	while (shim_ring_next(&uw_needs, &len))
		must(len == sizeof(struct sb_uw_need_event));
}

/* The rule for an address, looked for from the first mapping and the first row on. -1: unmapped. */
static int plain_rule(uint64_t addr, struct sb_uw_rule *rule, bool *is_anon)
{
	uint64_t at = addr - CODE, off = at % CODE_BYTES;
	uint32_t seg = (uint32_t)(at / CODE_BYTES / 2), bin = seg % NR_BINS, granule, i, id = 0;

	*rule = (struct sb_uw_rule){ .cfa = SB_UW_CFA_FP_CHAIN };
	if (at >= 2 * NR_SEGS * CODE_BYTES || at / CODE_BYTES % 2)
		return -1;
	*is_anon = head.seg_flags[seg] & SB_UW_SEG_ANON;
	granule = (uint32_t)(off / SB_UW_GRANULE_BYTES);
	if (*is_anon || head.bin_state[bin] % 3 == SB_UW_BIN_FP_CHAIN ||
	    granule >= NR_GRANULES - bin)
		return 0;
	must(head.bin_state[bin] % 3 == SB_UW_BIN_READY);
	for (i = 0; i < NR_ROWS; i++)
		if (i * SB_UW_GRANULE_BYTES / NR_ROWS <= off % SB_UW_GRANULE_BYTES)
			id = (i + bin + granule) % NR_RULES;
	*rule = head.rule[granule % 3 ? id : granule % NR_RULES];
	return 0;
}

/* Whether a word between the stack pointer and the frame is the address behind a call. */
static bool plain_hides(uint64_t sp, uint64_t fp)
{
	uint64_t at, word, code;
	uint32_t i;

	for (i = 0, at = sp; i < SB_HIDDEN_WORDS_MAX && at < fp; i++, at += 8) {
		if (read_forged(&word, sizeof(word), at))
			break;
		if (word - 1 - CODE < 2 * NR_SEGS * CODE_BYTES &&
		    (word - 1 - CODE) / CODE_BYTES % 2 == 0 &&
		    !read_forged(&code, sizeof(code), word - 8) && sb_ends_in_call(code))
			return true;
	}
	return false;
}

/* The same walk, as one would write it down. */
static void check_against_plain(const struct sb_scratch *s)
{
	static struct sb_scratch mine;
	struct sb_walk *walk = &mine.walk;
	enum sb_step step = SB_STEP_GO_ON;
	struct sb_uw_rule rule;
	bool is_anon = false, hides;
	uint32_t nr = 1;
	uint64_t fp;

	mine = *s;
	mine.log.nr = SB_LOG_OFF;
	*walk = (struct sb_walk){ .pc = s->regs.ip,
				  .sp = s->regs.sp,
				  .fp = s->regs.bp,
				  .user_end = s->walk.user_end,
				  .flags = SB_WALK_LEAF,
				  .status = SB_STACK_DEPTH };
	sb_regs_by_dwarf(&mine.regs, walk->regs);
	while (nr < s->stack.nr_frames && step == SB_STEP_GO_ON) {
		must(!plain_rule(sb_walk_key(walk), &rule, &is_anon));
		walk->flags |= is_anon ? SB_WALK_GENERATED : 0;
		fp = walk->fp;
		hides = is_anon && plain_hides(walk->sp, fp);
		step = sb_cfi_step(walk, &rule, &mine);
		if (step == SB_STEP_FP_CHAIN)
			step = sb_fp_step(walk, &mine);
		must(step == SB_STEP_GO_ON);
		if (hides && walk->sp == fp + 16)
			walk->mark |= SB_IP_HIDES;
		must(s->ip[nr] == (walk->pc | walk->mark));
		nr++;
	}
}

static bool is_plain(const struct sb_scratch *s)
{
	return (head.how & (HOW_CFI | HOW_FP | HOW_ANY_WORDS | HOW_UNKNOWN)) ==
		       (HOW_CFI | HOW_FP) &&
	       !s->interp.has_hook && !s->map.is_raw && !s->map.is_known && !s->map.is_cut_off &&
	       head.stale % 7 != 6;
}

static void check(const struct sb_scratch *s)
{
	must(nr_reads <= (has_interp(s) ? ALL_READS_MAX : NATIVE_READS_MAX));
	check_bystander();
	check_native(s);
	check_interp(s);
	if (is_plain(s))
		check_against_plain(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_stack_id ustack, istack;
	struct sb_scratch *s;
	bool is_raw;

	if (!input_take(data, size))
		return 0;
	setup();
	forget();
	fill_pool();
	fill_interp();
	s = sample();
	check(s);
	check_rings();
	ustack = s->capture.key.ustack;
	istack = s->capture.key.istack;
	is_raw = s->map.is_raw;
	/* Again: the name is the same, found by a walk, by a memory of one, or in another place. */
	s = sample();
	check(s);
	if (!is_raw && !s->map.is_raw)
		must(!memcmp(&ustack, &s->capture.key.ustack, sizeof(ustack)) &&
		     !memcmp(&istack, &s->capture.key.istack, sizeof(istack)));
	check_rings();
	return 0;
}
