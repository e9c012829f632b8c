// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The layout of LuaJIT 2.1. There are two, with pointers of 64 bits (GC64) and of 32 bits. Within
 * each, only struct global_State and what follows it differ between versions. What the walker needs
 * of it is found in the code of lua_close(), which loads the main thread and clears cur_L.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/abi/sb_abi_lua.h"
#include "interp/core/runtimes.h"
#include "interp/luajit/luajit_priv.h"
#include "symbolizer/elf/disasm.h"

#include "bpf/step/sb_step_luajit.h"

/* The interpreter: one function by .eh_frame. 16 KiB and more. */
#define LOOP_BYTES_MIN 10240u
#define LOOP_BYTES_MAX 131072u
#define INLINED_MAX    24u

const struct sb_luajit_layout sb_luajit_gc64 = {
	.is_gc64 = 1,
	.ptr_bytes = 8,
	.ptr_mask = (1ull << 47) - 1,
	.gct = 9,
	.p_size = 104,
	.p_nr_code = 12,
	.p_k = 32,
	.p_nr_kgc = 48,
	.p_nr_upvalues = 60,
	.p_chunk = 64,
	.p_line = 72,
	.p_nr_lines = 76,
	.p_line_info = 80,
	.p_upvalues = 88,
	.p_locals = 96,
	.strings = { { 20, 24 }, { 16, 24 } },
	.t_nr_snaps = 10,
	.t_ir = 32,
	.t_nk = 40,
	.t_nr_snap_map = 44,
	.t_snaps = 48,
	.t_snap_map = 56,
	.t_nr_code = 84,
	.t_code = 88,
};

const struct sb_luajit_layout sb_luajit_gc32 = {
	.ptr_bytes = 4,
	.ptr_mask = (1ull << 32) - 1,
	.gct = 5,
	.p_size = 64,
	.p_nr_code = 8,
	.p_k = 16,
	.p_nr_kgc = 24,
	.p_nr_upvalues = 36,
	.p_chunk = 40,
	.p_line = 44,
	.p_nr_lines = 48,
	.p_line_info = 52,
	.p_upvalues = 56,
	.p_locals = 60,
	.strings = { { 16, 20 }, { 12, 16 } },
	.t_nr_snaps = 6,
	.t_ir = 16,
	.t_nk = 24,
	.t_nr_snap_map = 28,
	.t_snaps = 32,
	.t_snap_map = 40,
	.t_nr_code = 60,
	.t_code = 64,
};

static const struct sb_luajit_conf conf_gc64 = {
	.ptr_mask = (1ull << 47) - 1,
	.is_gc64 = 1,
	.cf_l = SB_LUAJIT_CFRAME_L,
	.cf_pc = SB_LUAJIT_CFRAME_PC,
	.cf_results = SB_LUAJIT_CFRAME_RESULTS,
	.l_global = 16,
	.l_base = 32,
	.l_cframe = 80,
	.l_stack_limits = 48,
	.f_header = 8,
	.f_pc = 32,
	.p_size = 104,
	.p_lines = 72,
};

static const struct sb_luajit_conf conf_gc32 = {
	.ptr_mask = (1ull << 32) - 1,
	.cf_l = 24,
	.cf_pc = 28,
	.cf_results = 16,
	.l_global = 8,
	.l_base = 16,
	.l_cframe = 48,
	.l_stack_limits = 32,
	.f_header = 4,
	.f_pc = 16,
	.p_size = 64,
	.p_lines = 44,
};

/*
 * lua_close(L): g = L->glref; L = g->mainthref; ...; g->cur_L = NULL. The store is the first one of
 * zero (as a constant, or from a register) into what the first load has given.
 */
static int find_globals(struct sb_runtime *rt, const struct sb_luajit_conf *conf,
			struct sb_luajit_conf *ret_conf)
{
	struct sb_image_code code;
	struct sb_insn insn;
	uint8_t g = SB_INSN_NO_BASE, ptr_bytes = conf->is_gc64 ? 8 : 4;
	int64_t main_at = 0;
	size_t at = 0;
	int err = sb_image_code(rt->image, "lua_close", &code);

	while (!err && at < code.len) {
		err = sb_image_next_insn(&code, &at, &insn);
		if (err || insn.has_index)
			continue;
		if (insn.kind == SB_INSN_LOAD && insn.base == SB_INSN_HERE->reg_argument &&
		    g == SB_INSN_NO_BASE && insn.disp == conf->l_global &&
		    insn.nr_bytes == ptr_bytes)
			g = insn.reg;
		else if (insn.kind == SB_INSN_LOAD && g != SB_INSN_NO_BASE && insn.base == g &&
			 !main_at)
			main_at = insn.disp;
		else if (main_at && insn.is_mem && insn.base == g && insn.disp > main_at &&
			 insn.disp < main_at + 512 && insn.nr_bytes == ptr_bytes &&
			 insn.kind != SB_INSN_LOAD && insn.kind != SB_INSN_CMP_IMM)
			break;
	}
	if (err || main_at < 64 || main_at > 1024 || at >= code.len || (insn.disp & 3))
		return -ENOENT;
	*ret_conf = *conf;
	ret_conf->g_vmstate = (uint16_t)(main_at - ptr_bytes);
	ret_conf->g_cur_l = (uint16_t)insn.disp;
	ret_conf->g_jit_base = (uint16_t)(insn.disp + ptr_bytes);
	return 0;
}

/* lua_gettop(L): L->top - L->base, which proves the layout of lua_State. */
static bool has_base_at(struct sb_runtime *rt, uint16_t base)
{
	struct sb_image_code code;
	struct sb_insn insn;
	bool has_top = false, has_base = false;
	size_t at = 0;

	if (sb_image_code(rt->image, "lua_gettop", &code))
		return false;
	while (at < code.len && !sb_image_next_insn(&code, &at, &insn) && insn.kind != SB_INSN_RET)
		if (insn.is_mem && insn.base == SB_INSN_HERE->reg_argument) {
			has_top |= insn.disp + 8 * insn.is_pair == base + 8;
			has_base |= insn.disp == base;
		}
	return has_top && has_base;
}

struct loop_search {
	struct sb_runtime *rt;
	uint64_t targets[8];
	size_t nr_targets;
	uint64_t begin, end;
};

static int is_loop(void *arg, uint64_t begin, uint64_t end)
{
	struct loop_search *search = arg;
	size_t i;

	if (end - begin < LOOP_BYTES_MIN || end - begin > LOOP_BYTES_MAX)
		return 0;
	for (i = 0; i < search->nr_targets; i++)
		if (search->targets[i] > begin && search->targets[i] < end) {
			search->begin = begin;
			search->end = end;
			return 1;
		}
	return 0;
}

/* The interpreter is the big function into the midst of which lua_call() and lua_pcall() call. */
static int find_loop(struct sb_runtime *rt)
{
	static const char *const callers[] = { "lua_call", "lua_pcall" };
	struct loop_search search = { .rt = rt };
	struct sb_image_code code;
	struct sb_insn insn;
	size_t i, at;

	for (i = 0; i < 2; i++) {
		if (sb_image_code(rt->image, callers[i], &code))
			continue;
		for (at = 0; at < code.len && !sb_image_next_insn(&code, &at, &insn);)
			if ((insn.kind == SB_INSN_CALL || insn.kind == SB_INSN_JMP) &&
			    search.nr_targets < 8)
				search.targets[search.nr_targets++] = insn.target;
	}
	if (sb_image_functions(rt->image, is_loop, &search) <= 0)
		return -ENOENT;
	rt->conf.hook_begin = search.begin;
	rt->conf.hook_end = search.end;
	return 0;
}

/* add $GG_G2DISP,%r14: what makes the register of global_State, in each of the entries; the bytes
 * may be found elsewhere. Without it generated code is still found, by a search of the stack. */
static uint32_t find_dispatch(struct sb_runtime *rt, uint64_t begin, uint64_t end)
{
	sb_cleanup(sb_freep) uint8_t *code = malloc(end - begin);
	uint32_t vals[8], counts[8] = {}, val, best = 0;
	size_t i, at, nr = 0;

	if (!code || sb_image_read(rt->image, begin, code, end - begin))
		return 0;
	for (i = 0; i + 7 <= end - begin; i++) {
		if (code[i] != 0x49 || code[i + 1] != 0x81 || code[i + 2] != 0xc6)
			continue;
		memcpy(&val, &code[i + 3], sizeof(val));
		for (at = 0; at < nr && vals[at] != val; at++)
			;
		if (val < 1024 || val > 65536 || at == 8)
			continue;
		vals[at] = val;
		nr += at == nr;
		if (++counts[at] > counts[best])
			best = (uint32_t)at;
	}
	return nr && counts[best] > 1 ? vals[best] : 0;
}

static int on_version(void *arg, const char *name, uint64_t addr, uint64_t size)
{
	struct sb_runtime *rt = arg;
	size_t i;

	(void)addr;
	(void)size;
	snprintf(rt->version, sizeof(rt->version), "%s", name + strlen("luaJIT_version_"));
	for (i = 0; rt->version[i]; i++)
		if (rt->version[i] == '_')
			rt->version[i] = i < 4 ? '.' : '-';
	return 1;
}

static int attach(struct sb_runtime *rt)
{
	struct sb_luajit_conf *conf = (struct sb_luajit_conf *)rt->conf.word;
	struct sb_luajit_state *state;

	if (sb_image_symbols(rt->image, "luaJIT_version_", on_version, rt) <= 0)
		snprintf(rt->version, sizeof(rt->version), "2.1");
	if (strncmp(rt->version, "2.1", 3) != 0)
		return sb_runtime_refuse(rt, "stackbpf supports only version 2.1");
	if (has_base_at(rt, conf_gc64.l_base)	? find_globals(rt, &conf_gc64, conf)
	    : has_base_at(rt, conf_gc32.l_base) ? find_globals(rt, &conf_gc32, conf)
						: -ENOENT)
		return sb_runtime_refuse(rt, "the memory layout of this version is not known");
	if (find_loop(rt))
		return sb_runtime_refuse(
			rt, "its interpreter loop was not found, because unwind information "
			    "is missing");
	if (conf->is_gc64 && SB_INSN_HERE == &sb_insn_x86)
		conf->g_to_dispatch = find_dispatch(rt, rt->conf.hook_begin, rt->conf.hook_end);
	state = calloc(1, sizeof(*state));
	if (!state)
		return -ENOMEM;
	state->layout = conf->is_gc64 ? &sb_luajit_gc64 : &sb_luajit_gc32;
	rt->state = state;
	rt->conf.flags = SB_INTERP_BY_NATIVE;
	return 0;
}

/* A function in C is called what its caller calls it. */
static int describe_c(struct sb_runtime *rt, uint64_t call, struct sb_runtime_text *text)
{
	int err = call ? sb_luajit_call_name(rt, call, &text->name) : 0;

	if (err || text->name.len)
		return err;
	return -ENODATA;
}

/* Sign-extended: @nr_bits of a distance in instructions. */
static uint64_t call_of(uint64_t proto, uint64_t field, uint32_t nr_bits)
{
	int64_t distance = (int64_t)(field << (64 - nr_bits)) >> (64 - nr_bits);

	return distance ? proto + 4 * (uint64_t)distance : 0;
}

static int describe_base(struct sb_runtime *rt, const struct sb_interp_frame *frame,
			 struct sb_runtime_text *text)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	struct sb_luajit_inlined inlined[INLINED_MAX];
	uint64_t where = sb_where_position(frame->where), proto = sb_lua_addr(frame->obj);
	uint64_t pc = (uint64_t)sb_where_check(frame->where) << SB_LUA_BASE_PC_LOW |
		      where >> SB_LUA_BASE_CALL_BITS;
	uint64_t call = call_of(proto, where & SB_LUA_BASE_CALL_MASK, SB_LUA_BASE_CALL_BITS);
	uint32_t place = 0;
	size_t nr =
		sb_luajit_inlined(rt, 0, sb_lua_obj_place(frame->obj), pc, inlined, INLINED_MAX);

	if (nr && inlined[nr - 1].pc > proto + layout->p_size &&
	    inlined[nr - 1].pc - proto - layout->p_size < 4 * SB_LUA_PLACE_MAX)
		place = (uint32_t)((inlined[nr - 1].pc - proto - layout->p_size) / 4);
	return sb_luajit_describe_function(rt, proto, place, call, text);
}

static int describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	uint64_t proto = sb_lua_addr(frame->obj), where = sb_where_position(frame->where);

	switch (sb_lua_kind(frame->obj)) {
	case SB_LUA_FUNCTION:
		return sb_luajit_describe_function(rt, proto, sb_lua_obj_place(frame->obj),
						   call_of(proto, where, 48), text);
	case SB_LUA_C:
		return describe_c(rt, where, text);
	case SB_LUA_TRACE:
		return -ENODATA;
	case SB_LUA_TRACE_BASE:
		return describe_base(rt, frame, text);
	default:
		return -EBADMSG;
	}
}

static int describe_inlined(struct sb_runtime *rt, const struct sb_interp_frame *frame, size_t i,
			    struct sb_runtime_text *text)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	struct sb_luajit_inlined inlined[INLINED_MAX];
	uint64_t proto, place;
	size_t nr;
	int err;

	if (sb_lua_kind(frame->obj) != SB_LUA_TRACE)
		return -ENODATA;
	sb_luajit_saw_global(rt->state, sb_lua_addr(frame->obj));
	nr = sb_luajit_inlined(rt, sb_lua_addr(frame->obj), sb_where_check(frame->where),
			       sb_where_position(frame->where), inlined, INLINED_MAX);
	if (i + 1 >= nr)
		return -ENODATA;
	if (!inlined[i].pc) {
		err = describe_c(rt, inlined[i].call, text);
		return err == -ENODATA ? 0 : err; /* nothing to be shown, and others follow */
	}
	err = sb_luajit_proto_at(rt, inlined[i].pc, &proto);
	if (err)
		return err;
	place = (inlined[i].pc - proto - layout->p_size) / 4;
	return sb_luajit_describe_function(rt, proto, (uint32_t)place, inlined[i].call, text);
}

static const char *const glue[] = { "lj_vm_*",	      "lj_BC_*",   "lj_cont_*",	 "lj_ff_*",
				    "lua_call",	      "lua_pcall", "lua_cpcall", "lua_resume",
				    "lj_ccallback_*", NULL };

const struct sb_runtime_ops sb_runtime_luajit = {
	.runtime = SB_RUNTIME_LUAJIT,
	.name = "luajit",
	.is_for_any_machine = true,
	.markers = { "luaJIT_setmode" },
	.programs = { "luajit", "nginx", "openresty" },
	.attach = attach,
	.detach = sb_runtime_free_state,
	.describe = describe,
	.describe_inlined = describe_inlined,
	.step = sb_luajit_step,
	.native = sb_luajit_native,
	.glue = glue,
};
