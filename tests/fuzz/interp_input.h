/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walkers of interpreters, as the kernel runs them, in the memory of an adversary. An input is what
 * the walker is told (struct input_head), and behind it that memory, of one of two kinds:
 *
 *	pieces	{u64 address, u16 length, bytes}...: tests/fuzz/record.c writes such of processes. What
 *		lies in no piece faults.
 *	wraps	(INPUT_WRAPS) the bytes again and again at all addresses, so that every word is a pointer
 *		to something, and chains lead back to themselves; a quarter of the addresses faults.
 *
 * Each fuzzer includes this after "sb_step_<runtime>.h" and has an input_fill() and an input_walk().
 */
#ifndef FUZZ_INTERP_INPUT_H
#define FUZZ_INTERP_INPUT_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/runtime.h"
#include "interp/core/runtimes.h"
#include "interp/core/step.h"
#include "must.h"

enum {
	INPUT_WRAPS = 1u << 0,
	INPUT_LINES = 1u << 1,
	INPUT_LEAF = 1u << 2, /* the native walk begins at what was interrupted */
};

#define INPUT_LAYOUT_BYTES 768

/* Numbers as the recorder found them; the fuzzers make them such as attach() lets through. */
struct input_head {
	uint8_t how;	 /* INPUT_* */
	uint8_t version; /* the runtime's own: of Ruby and Lua which one, of Python its minor */
	uint8_t reserved[6];
	uint64_t thread_pointer, pc, sp, fp;
	uint64_t regs[SB_UNWIND_REGS];
	uint64_t hook_begin, hook_end;
	uint64_t word[SB_INTERP_CONF_WORDS];
	uint8_t layout[INPUT_LAYOUT_BYTES]; /* what describe() knows besides */
};

#define INPUT_PIECES_MAX 2048u
#define INPUT_PIECE_HEAD (sizeof(uint64_t) + sizeof(uint16_t))

struct input_piece {
	uint64_t addr;
	const uint8_t *bytes;
	size_t len;
};

struct input {
	struct input_head head;
	const uint8_t *data;
	size_t size;
	struct input_piece piece[INPUT_PIECES_MAX];
	size_t nr_pieces, last; /* last: that was read of last */
	uint64_t nr_reads;	/* so far */
};

/*
 * What a walk may cost. The verifier has looked at each path, so these are not about safety in the
 * kernel but about time: one step of a walk does not read on and on. The names are read by user
 * space.
 */
#define INPUT_STEP_READS_MAX 64u
#define INPUT_NAME_READS_MAX 20000u
#define INPUT_NAME_BYTES_MAX 65536u

/* Pieces are in no order; of those that hold an address, any will do. */
static inline int input_read_piece(struct input *input, void *dst, size_t len, uint64_t addr)
{
	size_t i;

	for (i = 0; i < input->nr_pieces; i++) {
		size_t at = (input->last + i) % input->nr_pieces;
		const struct input_piece *piece = &input->piece[at];

		if (addr - piece->addr < piece->len && len <= piece->len - (addr - piece->addr)) {
			memcpy(dst, piece->bytes + (addr - piece->addr), len);
			input->last = at;
			return 0;
		}
	}
	return -EFAULT;
}

static inline int input_read(void *arg, void *dst, size_t len, uint64_t addr)
{
	struct input *input = arg;
	size_t i;

	input->nr_reads++;
	if (!(input->head.how & INPUT_WRAPS))
		return input_read_piece(input, dst, len, addr);
	if (!input->size || addr >> 62 == 1)
		return -EFAULT;
	for (i = 0; i < len; i++)
		((uint8_t *)dst)[i] = input->data[(addr + i) % input->size];
	return 0;
}

static inline void input_find_pieces(struct input *input)
{
	const uint8_t *at = input->data;
	size_t left = input->size;

	while (left > INPUT_PIECE_HEAD && input->nr_pieces < INPUT_PIECES_MAX) {
		struct input_piece *piece = &input->piece[input->nr_pieces++];
		uint16_t len;

		memcpy(&piece->addr, at, sizeof(piece->addr));
		memcpy(&len, at + sizeof(piece->addr), sizeof(len));
		at += INPUT_PIECE_HEAD;
		left -= INPUT_PIECE_HEAD;
		piece->bytes = at;
		piece->len = len < left ? len : left;
		at += piece->len;
		left -= piece->len;
	}
}

static inline bool input_init(struct input *input, const uint8_t *data, size_t size)
{
	if (size < sizeof(input->head))
		return false;
	memcpy(&input->head, data, sizeof(input->head));
	input->data = data + sizeof(input->head);
	input->size = size - sizeof(input->head);
	input->nr_pieces = input->last = 0;
	input->nr_reads = 0;
	if (!(input->head.how & INPUT_WRAPS))
		input_find_pieces(input);
	return true;
}

/* What a walker may not touch, and the frames that it did not push. */
static inline void input_check_untouched(const struct sb_interp_walk *walk,
					 const struct sb_interp_walk *before)
{
	size_t nr = walk->nr_frames;

	must(nr <= SB_INTERP_FRAMES_MAX);
	must(!memcmp(&walk->conf, &before->conf, sizeof(walk->conf)));
	must(!memcmp(&walk->thread_pointer, &before->thread_pointer,
		     offsetof(struct sb_interp_walk, at) -
			     offsetof(struct sb_interp_walk, thread_pointer)));
	must(walk->wants_lines == before->wants_lines);
	must(walk->reserved == before->reserved);
	must(!memcmp(&walk->event, &before->event, sizeof(walk->event)));
	must(!memcmp(walk->frame + nr, before->frame + nr,
		     (SB_INTERP_FRAMES_MAX - nr) * sizeof(*walk->frame)));
}

/* The hash is that of the frames, told here in the plainest way. */
static inline void input_check_hash(const struct sb_interp_walk *walk)
{
	uint64_t lo = 0, hi = 0;
	size_t i, j;

	for (i = 0; i < walk->nr_frames; i++) {
		const struct sb_interp_frame *frame = &walk->frame[i];
		uint64_t words[3] = { frame->obj, frame->where & ~SB_WHERE_END, SB_WHERE_END };

		must(sb_where_runtime(frame->where) == walk->conf.runtime);
		for (j = 0; j < (frame->where & SB_WHERE_END ? 3 : 2); j++) {
			lo = (lo ^ words[j]) * 0x9e3779b97f4a7c15ull;
			lo ^= lo >> 29;
			hi = (hi + words[j]) * 0xc2b2ae3d27d4eb4full;
			hi ^= hi >> 32;
		}
	}
	must(walk->hash[0] == lo && walk->hash[1] == hi);
}

struct input_run {
	struct input *input;
	struct sb_memory memory;
	struct sb_walk native;
	struct sb_interp_walk *walk, *before;
};

/* One call of a walker reads so much, and pushes so many frames, and no more. */
#define input_step(run, nr_frames_max, call)                                                       \
	({                                                                                         \
		uint64_t nr_reads_ = (run)->input->nr_reads, nr_frames_ = (run)->walk->nr_frames;  \
		int step_ = (call);                                                                \
                                                                                                   \
		must((run)->input->nr_reads - nr_reads_ <= INPUT_STEP_READS_MAX);                  \
		must((run)->walk->nr_frames - nr_frames_ <= (nr_frames_max));                      \
		must(step_ == SB_STEP_GO_ON || step_ == SB_STEP_END || step_ == SB_STEP_FP_CHAIN); \
		must(step_ != SB_STEP_END || (run)->walk->status < SB_STACK_STATUS_MAX);           \
		step_;                                                                             \
	})

static inline void input_begin(struct input_run *run, struct input *input, uint32_t runtime)
{
	static struct sb_interp_walk walk, before;
	const struct input_head *head = &input->head;

	memset(&walk, 0, offsetof(struct sb_interp_walk, frame));
	memset(walk.frame, 0xa5, sizeof(walk.frame));
	walk.conf.runtime = runtime;
	walk.conf.hook_begin = head->hook_begin;
	walk.conf.hook_end = head->hook_end;
	memcpy(walk.conf.word, head->word, sizeof(walk.conf.word));
	walk.thread_pointer = head->thread_pointer;
	walk.pc = head->pc;
	walk.sp = head->sp;
	memcpy(walk.regs, head->regs, sizeof(walk.regs));
	walk.wants_lines = !!(head->how & INPUT_LINES);
	walk.status = SB_STACK_DEPTH;
	before = walk;
	*run = (struct input_run){
		.input = input,
		.memory = { .read = input_read, .arg = input },
		.native = { .pc = head->pc,
			    .sp = head->sp,
			    .fp = head->fp,
			    .user_end = 1ull << 47,
			    .flags = head->how & INPUT_LEAF ? SB_WALK_LEAF : 0 },
		.walk = &walk,
		.before = &before,
	};
	memcpy(run->native.regs, head->regs, sizeof(head->regs));
}

typedef enum sb_step (*input_step_fn)(struct sb_interp_walk *walk, void *memory);

/* As core/interp.bpf.c: sb_interp_run(). */
static inline void input_run_steps(struct input_run *run, input_step_fn step)
{
	size_t i;

	for (i = 0; i < SB_INTERP_STEPS_MAX; i++)
		if (input_step(run, 1, step(run->walk, &run->memory)) != SB_STEP_GO_ON)
			break;
}

/* As sb_interp_walk(). */
static inline void input_by_state(struct input_run *run, input_step_fn begin, input_step_fn step)
{
	memset(run->walk->at, 0, sizeof(run->walk->at));
	run->walk->status = SB_STACK_DEPTH;
	if (input_step(run, 1, begin(run->walk, &run->memory)) == SB_STEP_GO_ON)
		input_run_steps(run, step);
}

typedef enum sb_step (*input_native_fn)(struct sb_interp_walk *walk, struct sb_walk *native,
					struct sb_memory *memory);

/* Frames of one native frame: generated code with as many inlined into it as a walker will tell. */
#define INPUT_NATIVE_FRAMES_MAX 32u

/* As the loop of core/unwind.bpf.c, with nothing but frame pointers beside the hook; @step may be
 * NULL. */
static inline void input_by_native(struct input_run *run, input_native_fn native,
				   input_step_fn step)
{
	struct sb_interp_walk *walk = run->walk;
	size_t i;

	for (i = 0; i < SB_USTACK_DEPTH_MAX; i++) {
		uint64_t nr_before = walk->nr_frames;
		int next;

		walk->has_steps = 0;
		next = input_step(run, INPUT_NATIVE_FRAMES_MAX,
				  native(walk, &run->native, &run->memory));
		if (walk->has_steps && step)
			input_run_steps(run, step);
		if (walk->nr_frames != nr_before)
			sb_interp_segment_end(walk);
		if (next == SB_STEP_FP_CHAIN)
			next = sb_fp_step(&run->native, &run->memory);
		if (next != SB_STEP_GO_ON)
			break;
		must(run->native.pc >= SB_PC_MIN && run->native.pc < run->native.user_end);
	}
}

/* What holds of every walk that has ended. */
static inline void input_check(const struct input_run *run)
{
	input_check_untouched(run->walk, run->before);
	/* Ruby may end a segment twice: a frame that has no name, behind the last one that has. */
	if (run->walk->conf.runtime != SB_RUNTIME_RUBY)
		input_check_hash(run->walk);
}

/* The names of its frames; of deep walks those of the first ones. */
static inline void input_describe(struct input_run *run, struct sb_runtime *rt)
{
	static struct sb_runtime_text text;
	size_t i, at, nr = run->walk->nr_frames < 24 ? run->walk->nr_frames : 24;

	for (i = 0; i < nr; i++) {
		const struct sb_interp_frame *frame = &run->walk->frame[i];
		uint64_t nr_reads = run->input->nr_reads;
		int err = 0;

		if (!frame->obj)
			continue;
		for (at = 0; at < 64 && rt->ops->describe_inlined && !err; at++) {
			sb_str_clear(&text.name);
			sb_str_clear(&text.file);
			err = rt->ops->describe_inlined(rt, frame, at, &text);
		}
		must(at < 64);
		sb_str_clear(&text.name);
		sb_str_clear(&text.file);
		err = rt->ops->describe(rt, frame, &text);
		must(text.name.len <= INPUT_NAME_BYTES_MAX &&
		     text.file.len <= INPUT_NAME_BYTES_MAX);
		must(run->input->nr_reads - nr_reads <= INPUT_NAME_READS_MAX);
	}
}

#ifndef INPUT_NO_MUTATOR
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned int seed);

/*
 * What an adversary does, and bytes changed at random seldom do: a word becomes the address of
 * another piece, or of itself, or a count beyond all bounds.
 */
static inline void input_forge(struct input *input, unsigned int seed)
{
	static const uint64_t far[] = {
		0,	    1,		~0ull,	    1ull << 63, (1ull << 47) - 8,
		1ull << 47, 0x7fffffff, 0x80000000, 0xffffffff, ~0ull - 7
	};
	const struct input_piece *from, *to;
	uint64_t word, at;

	from = &input->piece[rand_r(&seed) % input->nr_pieces];
	to = rand_r(&seed) % 4 ? &input->piece[rand_r(&seed) % input->nr_pieces] : from;
	if (from->len < sizeof(word))
		return;
	at = (uint64_t)rand_r(&seed) % (from->len / sizeof(word)) * sizeof(word);
	word = to->addr;
	if (rand_r(&seed) % 3 == 0)
		word += (uint64_t)rand_r(&seed) % (to->len + 1);
	if (rand_r(&seed) % 3 == 0)
		word = far[(unsigned int)rand_r(&seed) % SB_ARRAY_SIZE(far)];
	/* The input is the fuzzer's to change. */
	memcpy((uint8_t *)from->bytes + at, &word,
	       rand_r(&seed) % 4 ? sizeof(word) : sizeof(uint32_t));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned int seed)
{
	static struct input input;

	if (seed % 2 == 0 || !input_init(&input, data, size) || !input.nr_pieces)
		return LLVMFuzzerMutate(data, size, size_max);
	do
		input_forge(&input, seed++);
	while (seed % 4);
	return size;
}
#endif

#endif
