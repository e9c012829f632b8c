// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/interp.bpf.c, compiled for the host: what a sample costs, whatever a process has forged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core.h"

#define TGID	     42
#define CODE	     0x555500000000ull
#define STACK	     0x7ffd12340000ull
/* What address is what: lua_States, one for each native frame; Lua's stacks; a function. */
#define STATES	     0x100000000000ull
#define BASES	     0x200000000000ull
#define FUNC	     0x300000000000ull

/* What Ruby has: control frames, the end of their environments, and objects, in one piece of
 * memory. */
#define RUBY	     0x400000000000ull
#define RUBY_WORDS   512
#define RUBY_FRAMES  8
#define RUBY_EC	     (RUBY + 8)
#define RUBY_CFP     (RUBY + 0x100)
#define RUBY_ENVS    (RUBY + 0x400)
#define RUBY_ISEQS   (RUBY + 0x600)
#define RUBY_METHODS (RUBY + 0x800)

static uint64_t ruby_word[RUBY_WORDS], ruby_bytes;
static uint64_t nr_reads;
/* What each of Lua's frames is: its link, and the four bytes that say what its function is. */
static uint64_t link_word, func_word;

static const struct sb_luajit_conf luajit = {
	.ptr_mask = (1ull << 47) - 1,
	.is_gc64 = 1,
	.cf_l = 16,
	.cf_pc = 24,
	.cf_results = 8,
	.l_global = 8,
	.l_base = 16,
	.l_cframe = 24,
};

/* A native stack of frames of 64 bytes: each is a C frame of LuaJIT's with a lua_State of its own,
 * and a frame record that leads to the next. */
static uint64_t on_stack(uint64_t addr)
{
	uint64_t frame = (addr - STACK) & ~63ull;

	switch ((addr - STACK) & 63) {
	case 16: /* cf_l */
		return STATES + frame;
	case 48:
		return STACK + frame + 64 + 48; /* the caller's frame pointer */
	case 56:
		return CODE + 100; /* in the hook */
	default:
		return 0;
	}
}

static uint64_t in_state(uint64_t addr)
{
	uint64_t frame = (addr - STATES) & ~63ull;

	switch ((addr - STATES) & 63) {
	case 16: /* l_base: much room below */
		return BASES + frame * 4096 + (1 << 17);
	case 24: /* l_cframe */
		return STACK + frame;
	default:
		return 0;
	}
}

static uint64_t word_at(uint64_t addr)
{
	if (addr >= RUBY && addr < RUBY + sizeof(ruby_word))
		return ruby_word[(addr - RUBY) / 8];
	if (addr >= FUNC && addr < FUNC + 64)
		return func_word;
	if (addr >= BASES && addr < FUNC)
		return addr & 8 ? link_word : FUNC;
	if (addr >= STATES && addr < BASES)
		return in_state(addr);
	return addr >= STACK && addr < STACK + (1 << 20) ? on_stack(addr) : 0;
}

static int read_forged(void *dst, uint32_t size, uint64_t addr)
{
	uint32_t i;

	nr_reads++;
	if (addr >= RUBY && addr < STACK && addr + size > RUBY + ruby_bytes)
		return -EFAULT;
	for (i = 0; i < size; i++)
		((uint8_t *)dst)[i] = (uint8_t)(word_at((addr + i) & ~7ull) >> (addr + i) % 8 * 8);
	return 0;
}

static int setup(void **state)
{
	struct sb_interp_proc proc = { .nr_confs = 1, .hook = 1 };
	uint32_t tgid = TGID, zero = 0;
	struct sb_interp_conf *conf;

	shim_reset();
	shim_core_maps(1 << 20);
	shim.user_read = read_forged;
	shim.now_ns = 1000000000;
	cfg_interp = true;
	cfg_unwind = SB_UNWIND_FP;
	conf = bpf_map_lookup_elem(&interp_confs, &zero);
	*conf = (struct sb_interp_conf){ .runtime = SB_RUNTIME_LUAJIT,
					 .flags = SB_INTERP_BY_NATIVE,
					 .hook_begin = CODE,
					 .hook_end = CODE + 4096 };
	memcpy(conf->word, &luajit, sizeof(luajit));
	bpf_map_update_elem(&interp_procs, &tgid, &proc, BPF_ANY);
	nr_reads = 0;
	ruby_bytes = sizeof(ruby_word);
	func_word = SB_LUAJIT_TFUNC << 8;
	return 0;
}

static struct sb_scratch *sample(void)
{
	static struct mm_struct mm = { .exec_vm = 1, .start_code = CODE };
	static struct task_struct task = { .mm = &mm };
	struct sb_scratch *s = sb_scratch_get(0);

	shim.task = &task;
	s->capture.now_ns = bpf_ktime_get_ns();
	s->capture.key = (struct sb_sample_key){ .tgid = TGID, .start_ns = 7, .exec_id = 1 };
	s->regs = (struct sb_regs){ .ip = CODE + 50, .sp = STACK, .bp = STACK + 48, .cs = 0x33 };
	capture_user(&task, s, 0);
	return s;
}

/*
 * Frames of Lua that are none (of functions with variable arguments, which are noted twice), a
 * thousand of them in each of five hundred native frames: that is not walked to its end in an
 * interrupt.
 */
static void test_steps_are_bounded(void **state)
{
	struct sb_scratch *s;

	link_word = 16 | SB_LUAJIT_FRAME_VARG;
	s = sample();
	assert_true(s->stack.nr_frames > 100);
	assert_in_range(s->interp.nr_steps, SB_INTERP_STEPS_MAX,
			SB_INTERP_STEPS_MAX + SB_INTERP_ROUND);
	assert_in_range(nr_reads, 1, 3 * SB_INTERP_STEPS_MAX + 16 * SB_USTACK_DEPTH_MAX);
	assert_int_equal(s->interp.walk.event.status, SB_STACK_DEPTH);
	/* The next sample begins anew. */
	link_word = 16 | SB_LUAJIT_FRAME_C;
	func_word |= 1 << 16; /* of C, which has a name on the native stack */
	s = sample();
	assert_int_equal(s->interp.walk.event.status, SB_STACK_COMPLETE);
	assert_int_equal(s->interp.nr_steps, s->stack.nr_frames);
}

/* More frames than there is room for: those at the leaf are kept, and it is said. */
static void test_frames_are_bounded(void **state)
{
	const struct sb_interp_event *event;
	struct sb_scratch *s;
	uint32_t len;

	link_word = 0x400000000000ull; /* called from Lua code there */
	s = sample();
	assert_int_equal(s->interp.walk.nr_frames, SB_INTERP_FRAMES_MAX);
	event = shim_ring_next(&interp_events, &len);
	assert_non_null(event);
	assert_int_equal(event->nr_frames, SB_INTERP_FRAMES_MAX);
	assert_int_equal(event->status, SB_STACK_DEPTH);
}

/* Only a process that has a runtime whose frames lie on the native stack is asked about it. */
static void test_hook(void **state)
{
	struct sb_interp_proc *proc;
	struct sb_interp_conf *conf;
	uint32_t tgid = TGID, zero = 0, two = 2;

	link_word = 0x400000000000ull;
	proc = bpf_map_lookup_elem(&interp_procs, &tgid);
	proc->hook = 0;
	assert_int_equal(sample()->interp.walk.nr_frames, 0);
	/* It need not be the first. */
	conf = bpf_map_lookup_elem(&interp_confs, &two);
	*conf = *(struct sb_interp_conf *)bpf_map_lookup_elem(&interp_confs, &zero);
	conf = bpf_map_lookup_elem(&interp_confs, &zero);
	*conf = (struct sb_interp_conf){ .runtime = SB_RUNTIME_PYTHON };
	proc->nr_confs = 2;
	proc->conf_at[1] = 2;
	proc->hook = 2;
	assert_int_equal(sample()->interp.walk.nr_frames, SB_INTERP_FRAMES_MAX);
	/* What is not in the list is not looked for. */
	proc->hook = 3;
	assert_int_equal(sample()->interp.walk.nr_frames, 0);
}

static void ruby_put(uint64_t addr, uint64_t word)
{
	ruby_word[(addr - RUBY) / 8] = word;
}

/* Frame number @i, from the leaf, is in the method @method, and the address of its code is
 * @body. */
static void ruby_frame(uint64_t i, uint64_t method, uint64_t body)
{
	uint64_t cfp = RUBY_CFP + 56 * i, ep = RUBY_ENVS + 32 * i + 16;
	uint64_t iseq = RUBY_ISEQS + 40 * method, entry = RUBY_METHODS + 40 * method;

	ruby_put(cfp + 16, iseq);
	ruby_put(cfp + 32, ep);
	ruby_put(ep - 16, entry);
	ruby_put(ep, (uint64_t)SB_RUBY_METHOD << 16 | SB_RUBY_LOCAL);
	ruby_put(entry, SB_RUBY_IMEMO_MENT << 12 | 0x1a);
	ruby_put(iseq + 16, body);
}

static void ruby_setup(void)
{
	struct sb_ruby_conf ruby = { .by = SB_RUBY_BY_OFFSET, .cfp_bytes = 56 };
	struct sb_interp_proc *proc;
	struct sb_interp_conf *conf;
	uint32_t tgid = TGID, zero = 0;
	uint64_t i;

	conf = bpf_map_lookup_elem(&interp_confs, &zero);
	*conf = (struct sb_interp_conf){ .runtime = SB_RUNTIME_RUBY, .flags = SB_INTERP_BY_STATE };
	ruby.ec_offset = RUBY;
	memcpy(conf->word, &ruby, sizeof(ruby));
	proc = bpf_map_lookup_elem(&interp_procs, &tgid);
	proc->hook = 0;
	cfg_unwind = 0;
	memset(ruby_word, 0, sizeof(ruby_word));
	ruby_put(RUBY, RUBY_EC);
	ruby_put(RUBY_EC, RUBY_CFP); /* the stack, its size, the frame that runs */
	ruby_put(RUBY_EC + 8, 7 * RUBY_FRAMES);
	ruby_put(RUBY_EC + 16, RUBY_CFP);
	for (i = 0; i < RUBY_FRAMES; i++)
		ruby_frame(i, i % 3, 0x5000 + 0x100 * (i % 3));
	nr_reads = 0;
}

/*
 * What a sample has read is not taken for what stands there at the next: the frames in the middle
 * are others, while leaf and root are as they were, and so are the addresses of all records.
 */
static void test_middle_changes(void **state)
{
	struct sb_interp_frame first[RUBY_FRAMES];
	struct sb_scratch *s;
	struct sb_stack_id id;
	int i;

	ruby_setup();
	s = sample();
	assert_int_equal(s->interp.walk.nr_frames, RUBY_FRAMES);
	assert_int_equal(s->interp.walk.event.status, SB_STACK_COMPLETE);
	memcpy(first, s->interp.walk.frame, sizeof(first));
	id = s->capture.key.istack;
	for (i = 2; i < RUBY_FRAMES - 2; i++)
		ruby_frame((uint64_t)i, 4, 0x6000);
	s = sample();
	assert_int_equal(s->interp.walk.nr_frames, RUBY_FRAMES);
	for (i = 0; i < RUBY_FRAMES; i++) {
		bool is_same = !memcmp(&first[i], &s->interp.walk.frame[i], sizeof(first[i]));

		assert_int_equal(is_same, i < 2 || i >= RUBY_FRAMES - 2);
	}
	assert_memory_not_equal(&id, &s->capture.key.istack, sizeof(id));
	/* The object at one address is another one now, while all pointers to it stay the same. */
	id = s->capture.key.istack;
	ruby_put(RUBY_ISEQS + 40 * 4 + 16, 0x7770);
	s = sample();
	assert_memory_not_equal(&id, &s->capture.key.istack, sizeof(id));
	/* And as it was at first. */
	for (i = 0; i < RUBY_FRAMES; i++)
		ruby_frame((uint64_t)i, (uint64_t)i % 3, 0x5000 + 0x100 * ((uint64_t)i % 3));
	s = sample();
	assert_memory_equal(first, s->interp.walk.frame, sizeof(first));
}

/* Words that are near to each other are read together, where they can be. */
static void test_pieces(void **state)
{
	struct sb_scratch *s;
	uint64_t by_pieces;

	ruby_setup();
	s = sample();
	assert_int_equal(s->interp.walk.nr_frames, RUBY_FRAMES);
	by_pieces = nr_reads;
	assert_in_range(by_pieces, 1, 2 * RUBY_FRAMES);
	/* The next sample knows which pieces are worth reading at the first touch. */
	nr_reads = 0;
	s = sample();
	assert_int_equal(s->interp.walk.nr_frames, RUBY_FRAMES);
	assert_true(nr_reads < by_pieces);
	by_pieces = nr_reads;
	/* Programs of a slot without pieces read words. */
	((uint32_t *)cfg_interp_pieces)[0] = UINT32_MAX;
	nr_reads = 0;
	assert_int_equal(sample()->interp.walk.nr_frames, RUBY_FRAMES);
	assert_true(nr_reads > 3 * RUBY_FRAMES);
	((uint32_t *)cfg_interp_pieces)[0] = 0;
	/* Memory ends behind the last word that is needed. */
	nr_reads = 0;
	ruby_bytes = RUBY_METHODS + 40 * 2 + 24 - RUBY;
	s = sample();
	assert_int_equal(s->interp.walk.nr_frames, RUBY_FRAMES);
	assert_int_equal(s->interp.walk.event.status, SB_STACK_COMPLETE);
	assert_true(nr_reads > by_pieces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_steps_are_bounded, setup),
		cmocka_unit_test_setup(test_frames_are_bounded, setup),
		cmocka_unit_test_setup(test_hook, setup),
		cmocka_unit_test_setup(test_middle_changes, setup),
		cmocka_unit_test_setup(test_pieces, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
