// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds Ruby's variables in a process. Most have hidden symbols, which stripped libraries do not
 * have. But exported functions use them, so their addresses are read from the code of these
 * functions, and proven by what is at the address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/stub.h"
#include "interp/ruby/ruby_priv.h"

#include "bpf/step/sb_step_ruby.h"

/* Words of rb_vm_t, rb_thread_t, rb_native_thread that are searched. */
#define VM_WORDS	  64u
#define THREAD_WORDS	  192u
#define NATIVE_WORDS	  64u
#define CONTEXT_WORDS	  16u
#define KEYS_MAX	  32u
/* Initialized data is searched in pieces; it has 100 KB. */
#define DATA_BYTES_MAX	  (4u << 20)
#define PIECE_WORDS	  2048u
/* vm_exec() and the loop are next to one another: vm.c. */
#define LOOP_BYTES_AROUND (256u << 10)
#define LOOP_CALLERS_MAX  4u
#define X86_CALL	  0xe8
/* struct pthread.robust_head of glibc for arm64, 2.17 to 2.41. */
#define ROBUST_HEAD	  224u

static bool is_pointer(uint64_t val)
{
	return val >= 65536 && !(val & 7) && val < 1ull << SB_USER_ADDR_BITS;
}

static uint64_t word(const struct sb_runtime *rt, uint64_t addr)
{
	uint64_t val;

	sb_memory_u64(rt->memory, addr, &val);
	return val;
}

/* A register that was loaded from a variable. */
static int on_vm(void *arg, const struct sb_stub *stub)
{
	struct sb_stub_value *ret = arg;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(stub->reg); i++)
		if (stub->reg[i].base == SB_STUB_CONST && stub->reg[i].nr_loads == 1 &&
		    !stub->reg[i].off[1]) {
			*ret = stub->reg[i];
			return 1;
		}
	return 0;
}

/* ruby_vm_at_exit() has it in a register when it calls ruby_xmalloc(). */
int sb_ruby_find_vm(struct sb_runtime *rt, uint64_t *ret_addr)
{
	struct sb_stub_value val = {};
	uint64_t addr;

	if (!sb_image_symbol(rt->image, "ruby_current_vm_ptr", ret_addr, NULL))
		return 0;
	if (sb_image_symbol(rt->image, "ruby_vm_at_exit", &addr, NULL) ||
	    sb_stub_follow(rt->image, addr, on_vm, &val) <= 0)
		return -ENOENT;
	return sb_stub_address(rt->memory, &val, ret_addr);
}

/* What is learned of rb_thread_current(), and a function of the library that it calls. */
struct context_search {
	size_t nr_loads;
	struct sb_stub_value val;
	uint64_t callee;
};

static int on_context(void *arg, const struct sb_stub *stub)
{
	struct context_search *search = arg;
	const struct sb_stub_value *val = &stub->reg[SB_STUB_RESULT];

	if (stub->exit == SB_STUB_CALL && stub->target && !search->callee)
		search->callee = stub->target;
	if (stub->exit != SB_STUB_RET || val->nr_loads != search->nr_loads)
		return 0;
	search->val = *val;
	return 1;
}

/*
 * rb_thread_current() returns ruby_current_ec->thread_ptr->self. In 3.3 for arm64 it gets
 * ruby_current_ec from rb_current_ec_noinline().
 */
static int find_access(struct sb_runtime *rt, struct sb_stub_value *ret_val)
{
	struct context_search search = { .nr_loads = 3 };
	uint64_t addr;

	if (sb_image_symbol(rt->image, "rb_thread_current", &addr, NULL))
		return -ENOENT;
	if (sb_stub_follow(rt->image, addr, on_context, &search) <= 0) {
		addr = search.callee;
		search = (struct context_search){ .nr_loads = 1 };
		if (!addr || sb_stub_follow(rt->image, addr, on_context, &search) <= 0)
			return -ENOENT;
	}
	*ret_val = search.val;
	return 0;
}

/* The variable is reached by a TLS descriptor. */
static int by_descriptor(struct sb_runtime *rt, uint64_t got, uint64_t off,
			 struct sb_ruby_conf *conf)
{
	uint64_t arg;
	bool is_pair;
	int err = sb_threads_descriptor(rt->memory, got, &is_pair, &arg);

	if (err)
		return err;
	conf->by = is_pair ? SB_RUBY_BY_GOT : SB_RUBY_BY_OFFSET;
	conf->ec_got = is_pair ? arg : 0;
	conf->ec_offset = is_pair ? off : off + arg;
	return 0;
}

static int decode_context(struct sb_runtime *rt, struct sb_ruby_conf *conf)
{
	struct sb_stub_value val = {};
	uint64_t slot;

	if (find_access(rt, &val))
		return -ENOENT;
	if (val.base == SB_STUB_DESC)
		return by_descriptor(rt, val.addr, (uint64_t)val.off[0], conf);
	conf->by = val.base == SB_STUB_TLS ? SB_RUBY_BY_GOT : SB_RUBY_BY_OFFSET;
	conf->ec_offset = (uint64_t)val.off[0];
	if (val.base == SB_STUB_TLS) {
		conf->ec_got = val.addr;
		return 0;
	}
	if (val.base == SB_STUB_FS)
		return 0;
	if (val.base != SB_STUB_FS_SLOT || sb_memory_u64(rt->memory, val.addr, &slot))
		return -ENOENT;
	conf->ec_offset += slot;
	return 0;
}

int sb_ruby_find_context(struct sb_runtime *rt, struct sb_ruby_conf *conf)
{
	static const char name[] = "ruby_current_ec";
	uint64_t got, offset;

	if (!sb_image_tls_got(rt->image, name, &got)) {
		conf->by = SB_RUBY_BY_GOT;
		conf->ec_got = got;
		return 0;
	}
	if (!sb_image_symbol(rt->image, name, &offset, NULL) &&
	    sb_image_tls_access(rt->image, name, offset, &got) == SB_IMAGE_TLS_DESC)
		return by_descriptor(rt, got, 0, conf);
	return decode_context(rt, conf);
}

/* A context names its thread, which names the context. */
static bool is_thread(const struct sb_runtime *rt, const struct sb_ruby_layout *layout, uint64_t vm,
		      uint64_t thread)
{
	uint64_t words[CONTEXT_WORDS], context;
	size_t i;

	if (!is_pointer(thread) || word(rt, thread + layout->thread_vm) != vm)
		return false;
	context = word(rt, thread + layout->thread_ec);
	if (!is_pointer(context) || sb_memory_read(rt->memory, words, sizeof(words), context))
		return false;
	for (i = 3; i < CONTEXT_WORDS; i++)
		if (words[i] == thread)
			return true;
	return false;
}

int sb_ruby_find_main(struct sb_runtime *rt, const struct sb_ruby_layout *layout, uint64_t vm_addr,
		      uint64_t *ret_thread)
{
	uint64_t vm = word(rt, vm_addr), words[VM_WORDS];
	size_t i;

	if (!vm)
		return -EAGAIN;
	if (!is_pointer(vm) || sb_memory_read(rt->memory, words, sizeof(words), vm))
		return -ENOENT;
	for (i = 0; i < VM_WORDS; i++)
		if (is_thread(rt, layout, vm, words[i])) {
			*ret_thread = words[i];
			return 0;
		}
	/* vm->self is set when its threads have long been made. */
	return words[0] ? -ENOENT : -EAGAIN;
}

/* Return: whether @val is a pthread_t; then *ret_pointer is its thread pointer. */
#ifdef SB_MACHINE_ARM64
/*
 * The thread pointer is behind struct pthread of glibc (nptl/descr.h), whose list of robust mutexes
 * is empty here: robust_prev points to the head of the list, and so does the head.
 */
static bool is_pthread(const struct sb_runtime *rt, const struct sb_interp_tsd *tsd, uint64_t val,
		       uint64_t *ret_pointer)
{
	uint64_t robust[2], head = val + ROBUST_HEAD;

	if (!tsd->below || !is_pointer(val) ||
	    sb_memory_read(rt->memory, robust, sizeof(robust), head - 8) || robust[0] != head ||
	    robust[1] != head)
		return false;
	*ret_pointer = val + tsd->below;
	return true;
}
#else
/* A pthread_t of glibc and musl is the thread pointer, and what is there begins with its own
 * address: x86-64's psABI wants that. {self, vector, self} of glibc, {self, vector, ...} of musl;
 * the head of an empty list is {self, self}. */
static bool is_pthread(const struct sb_runtime *rt, const struct sb_interp_tsd *tsd, uint64_t val,
		       uint64_t *ret_pointer)
{
	uint64_t block[3];

	if (!is_pointer(val) || sb_memory_read(rt->memory, block, sizeof(block), val) ||
	    block[0] != val || !is_pointer(block[1]) || block[1] == val ||
	    (!tsd->is_musl && block[2] != val))
		return false;
	*ret_pointer = val;
	return true;
}
#endif

static int find_pointer_in(struct sb_runtime *rt, uint64_t addr, size_t nr_words,
			   const struct sb_interp_tsd *tsd, uint64_t *ret_pointer)
{
	uint64_t val;
	size_t i;

	for (i = 0; i < nr_words; i++) {
		if (sb_memory_u64(rt->memory, addr + 8 * i, &val))
			return -ENOENT;
		if (is_pthread(rt, tsd, val, ret_pointer))
			return 0;
	}
	return -ENOENT;
}

int sb_ruby_find_pointer(struct sb_runtime *rt, const struct sb_ruby_layout *layout,
			 uint64_t thread, uint64_t *ret_pointer)
{
	const struct sb_ruby_conf *conf = (const struct sb_ruby_conf *)rt->conf.word;

	if (layout->thread_nt)
		return find_pointer_in(rt, word(rt, thread + layout->thread_nt), NATIVE_WORDS,
				       &conf->tsd, ret_pointer);
	return find_pointer_in(rt, thread, THREAD_WORDS, &conf->tsd, ret_pointer);
}

int sb_ruby_find_key(struct sb_runtime *rt, struct sb_ruby_conf *conf, uint64_t pointer,
		     uint64_t thread)
{
	struct sb_interp_walk *walk = calloc(1, sizeof(*walk));
	uint32_t key;

	if (!walk)
		return -ENOMEM;
	walk->thread_pointer = pointer;
	for (key = 0; key < KEYS_MAX; key++)
		if (sb_interp_tsd_get(walk, (void *)rt->memory, &conf->tsd, key) == thread)
			break;
	conf->key = key;
	free(walk);
	return key < KEYS_MAX ? 0 : -ENOENT;
}

/* The array in which the ID of '+' has the name "+". */
static bool is_ids(struct sb_runtime *rt, struct sb_ruby *ruby, uint64_t addr)
{
	sb_cleanup(sb_str_release) struct sb_str str = {};

	ruby->ids_addr = addr;
	if (!sb_ruby_id(rt->memory, ruby, '+', &str) && str.len == 1 && str.s[0] == '+')
		return true;
	ruby->ids_addr = 0;
	return false;
}

/* symbol.c: global_symbols is { last number, hash, array, ... }, in initialized data. */
static int search_ids(struct sb_runtime *rt, struct sb_ruby *ruby, uint64_t addr, uint64_t len)
{
	sb_cleanup(sb_freep) uint64_t *words = malloc(PIECE_WORDS * sizeof(*words));
	uint64_t at, i, nr;

	if (!words)
		return -ENOMEM;
	len = len < DATA_BYTES_MAX ? len : DATA_BYTES_MAX;
	for (at = 0; at + 24 <= len; at += (nr - 2) * 8) { /* pieces overlap */
		nr = (len - at) / 8 < PIECE_WORDS ? (len - at) / 8 : PIECE_WORDS;
		if (sb_memory_read(rt->memory, words, nr * 8, addr + at))
			return -EFAULT;
		for (i = 0; i + 2 < nr; i++)
			if (words[i] > 100 && words[i] >> 28 == 0 && is_pointer(words[i + 1]) &&
			    is_pointer(words[i + 2]) && is_ids(rt, ruby, addr + at + 8 * (i + 2)))
				return 0;
	}
	return -ENOENT;
}

int sb_ruby_find_ids(struct sb_runtime *rt, struct sb_ruby *ruby)
{
	static const char *const names[] = { "ruby_global_symbols", "global_symbols" };
	uint64_t addr, len;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(names); i++)
		if (!sb_image_symbol(rt->image, names[i], &addr, NULL) &&
		    is_ids(rt, ruby, addr + 16))
			return 0;
	if (sb_image_section(rt->image, ".data", &addr, &len))
		return -ENOENT;
	return search_ids(rt, ruby, addr & ~7ull, len);
}

static void add_anchor(struct sb_runtime *rt, uint64_t begin, uint64_t end)
{
	struct sb_range *anchors = rt->anchors;

	if (rt->nr_anchors == SB_RUNTIME_ANCHORS_MAX)
		return;
	anchors[rt->nr_anchors++] = (struct sb_range){ begin, end };
	rt->nr_anchors += sb_image_cold_parts(rt->image, begin, end, anchors + rt->nr_anchors,
					      SB_RUNTIME_ANCHORS_MAX - rt->nr_anchors);
}

static bool is_anchor(const struct sb_runtime *rt, uint64_t addr)
{
	size_t i;

	for (i = 0; i < rt->nr_anchors; i++)
		if (addr >= rt->anchors[i].begin && addr < rt->anchors[i].end)
			return true;
	return false;
}

/* Return: whether the instruction at @addr is a direct call of @callee. */
static bool is_call(const uint8_t *code, size_t len, uint64_t addr, uint64_t callee)
{
	struct sb_insn insn;

	/* Decoding from each byte on would take too long. */
	if (SB_INSN_HERE == &sb_insn_x86 && code[0] != X86_CALL)
		return false;
	return !SB_INSN_HERE->decode(code, len, addr, &insn) && insn.kind == SB_INSN_CALL &&
	       insn.target == callee;
}

/* The functions that call @loop. */
static void add_callers(struct sb_runtime *rt, uint64_t loop)
{
	sb_cleanup(sb_freep) uint8_t *code = malloc(2 * LOOP_BYTES_AROUND);
	uint64_t text, size, from, to, at, begin, end;

	if (!code || sb_image_section(rt->image, ".text", &text, &size))
		return;
	from = loop - text > LOOP_BYTES_AROUND ? loop - LOOP_BYTES_AROUND : text;
	to = text + size - loop > LOOP_BYTES_AROUND ? loop + LOOP_BYTES_AROUND : text + size;
	if (loop < text || loop >= text + size || sb_image_read(rt->image, from, code, to - from))
		return;
	for (at = from; at < to; at++)
		if (is_call(code + (at - from), to - at, at, loop) && !is_anchor(rt, at) &&
		    rt->nr_anchors < LOOP_CALLERS_MAX &&
		    !sb_image_function(rt->image, at, &begin, &end))
			add_anchor(rt, begin, end);
}

/*
 * Compiled code is the addresses of the instructions in vm_exec_core() (vm.inc, direct threading),
 * and the function that calls it is on the native stack once for each frame with FINISH:
 * rb_vm_exec().
 */
void sb_ruby_find_loop(struct sb_runtime *rt, uint64_t insn)
{
	uint64_t begin, end, size;

	if (!sb_image_symbol(rt->image, "rb_vm_exec", &begin, &size) && size) {
		add_anchor(rt, begin, begin + size);
		return;
	}
	if (sb_image_function(rt->image, insn, &begin, &end))
		return;
	add_callers(rt, begin);
	/* It is a part of its caller. */
	if (!rt->nr_anchors)
		add_anchor(rt, begin, end);
}
