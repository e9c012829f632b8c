// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The layout of PUC Lua 5.1 to 5.4. It depends on the version (lstate.h, lobject.h), which is in
 * the exported string lua_ident; the code of lua_close() and lua_gettop() proves it. Releases of
 * one version do not differ in what is used here, but for the first ones of 5.3.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/runtimes.h"
#include "interp/lua/lua_priv.h"
#include "symbolizer/elf/disasm.h"

#include "bpf/step/sb_step_lua.h"

#define IDENT_BYTES    128u
/* The loop: 5 KiB in 5.1, 13 KiB in 5.4. */
#define LOOP_BYTES_MIN 2048u
#define LOOP_BYTES_MAX 65536u
/* lua_call(), luaD_call(), maybe a third one, luaV_execute(). */
#define CALLS_DEEP     3
#define CALLEES_MAX    256u

#define NONE	       0xff

static const struct sb_lua_layout layouts[] = {
	{
		.version = 501,
		.code = 24,
		.nr_code = 80,
		.k = 16,
		.nr_k = 76,
		.upvalues = 56,
		.nr_upvalues = 72,
		.locals = 48,
		.nr_locals = 92,
		.lines = 40,
		.nr_lines = 84,
		.source = 64,
		.line = 96,
		.upvalue_bytes = 8,
		.ops = {
			.bits = 6,
			.move = 0,
			.load_nil = 3,
			.get_upvalue = 4,
			.get_global = 5,
			.get_tab_up = NONE,
			.get_table = 6,
			.get_field = NONE,
			.self = 11,
			.load_k = 1,
			.jmp = 22,
			.call = 28,
			.tail_call = 29,
			.tfor_call = 33,
			.sets_a = { 0x31bc3ffc7full },
		},
	},
	{
		.version = 502,
		.code = 24,
		.nr_code = 88,
		.k = 16,
		.nr_k = 84,
		.upvalues = 56,
		.nr_upvalues = 80,
		.locals = 48,
		.nr_locals = 100,
		.lines = 40,
		.nr_lines = 92,
		.source = 72,
		.line = 104,
		.upvalue_bytes = 16,
		.ops = {
			.bits = 6,
			.move = 0,
			.load_nil = 4,
			.get_upvalue = 5,
			.get_global = NONE,
			.get_tab_up = 6,
			.get_table = 7,
			.get_field = NONE,
			.self = 12,
			.load_k = 1,
			.jmp = 23,
			.call = 29,
			.tail_call = 30,
			.tfor_call = 34,
			.sets_a = { 0x6b707ff8ffull },
		},
	},
	{
		.version = 503,
		.code = 56,
		.nr_code = 24,
		.k = 48,
		.nr_k = 20,
		.upvalues = 88,
		.nr_upvalues = 16,
		.locals = 80,
		.nr_locals = 36,
		.lines = 72,
		.nr_lines = 28,
		.source = 104,
		.line = 40,
		.upvalue_bytes = 16,
		.ops = {
			.bits = 6,
			.move = 0,
			.load_nil = 4,
			.get_upvalue = 5,
			.get_global = NONE,
			.get_tab_up = 6,
			.get_table = 7,
			.get_field = NONE,
			.self = 12,
			.load_k = 1,
			.jmp = 30,
			.call = 36,
			.tail_call = 37,
			.tfor_call = 41,
			.sets_a = { 0x35b83ffff8ffull },
		},
	},
	{
		.version = 504,
		.code = 64,
		.nr_code = 24,
		.k = 56,
		.nr_k = 20,
		.upvalues = 80,
		.nr_upvalues = 16,
		.locals = 104,
		.nr_locals = 36,
		.lines = 88,
		.nr_lines = 28,
		.source = 112,
		.line = 44,
		.abs_lines = 96,
		.nr_abs_lines = 40,
		.upvalue_bytes = 16,
		.ops = {
			.bits = 7,
			.move = 0,
			.load_nil = 8,
			.get_upvalue = 9,
			.get_global = NONE,
			.get_tab_up = 11,
			.get_table = 12,
			.get_field = 14,
			.self = 20,
			.load_k = 3,
			.jmp = 56,
			.call = 68,
			.tail_call = 69,
			.tfor_call = 76,
			.sets_a = { 0x3e3ffffff87bffull, 0x3a638 },
		},
	},
};

static const struct sb_lua_conf confs[] = {
	{
		.l_global = 32,
		.l_ci = 40,
		.l_saved_pc = 48,
		.l_base_ci = 80,
		.g_main = 176,
		.ci_func = 8,
		.ci_pc = 24,
		.ci_status = 36,
		.ci_bytes = 40,
		.cl_proto = 32,
		.op_call = 28,
		.has_fast_pc = 1,
		.tail = ~0u,
		.tag_mask = ~0u,
		.tag_lua = 6,
	},
	{
		.l_global = 24,
		.l_ci = 32,
		.g_main = 264,
		.ci_prev = 16,
		.ci_pc = 56,
		.ci_status = 34,
		.cl_proto = 24,
		.reentry = 1u << 2,
		.tail = 1u << 6,
		.tag_mask = 0x3f,
		.tag_lua = 6,
	},
	{
		.l_global = 24,
		.l_ci = 32,
		.g_main = 200,
		.ci_prev = 16,
		.ci_pc = 40,
		.ci_status = 66,
		.cl_proto = 24,
		.fresh = 1u << 3,
		.tail = 1u << 5,
		.tag_mask = 0x3f,
		.tag_lua = 6,
	},
	{
		.l_global = 24,
		.l_ci = 32,
		.g_main = 264,
		.ci_prev = 16,
		.ci_pc = 32,
		.ci_status = 62,
		.cl_proto = 24,
		.has_fast_pc = 1,
		.fresh = 1u << 2,
		.tail = 1u << 5,
		.tag_mask = 0x3f,
		.tag_lua = 6,
	},
};

const struct sb_lua_layout *sb_lua_layout_of(uint32_t version)
{
	size_t i;

	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}

/* "$LuaVersion: Lua 5.4.4  Copyright..." Return: 501 to 504, and the release; or 0. */
static uint32_t find_version(struct sb_runtime *rt, uint32_t *ret_release)
{
	char ident[IDENT_BYTES] = "", *at;
	unsigned int major, minor, release = 0;
	uint64_t addr;

	if (sb_image_symbol(rt->image, "lua_ident", &addr, NULL) ||
	    sb_memory_read(rt->memory, ident, sizeof(ident) - 1, addr))
		return 0;
	at = strstr(ident, "Lua 5.");
	if (!at || sscanf(at, "Lua %1u.%2u.%3u", &major, &minor, &release) < 2)
		return 0;
	snprintf(rt->version, sizeof(rt->version), "%u.%u.%u", major, minor, release);
	*ret_release = release;
	return major * 100 + minor;
}

/* lua_close(L) loads L->l_G, and from it mainthread. */
static bool closes(struct sb_runtime *rt, const struct sb_lua_conf *conf)
{
	struct sb_image_code code;
	uint8_t g = SB_INSN_NO_BASE;
	struct sb_insn insn;
	size_t at = 0;

	if (sb_image_code(rt->image, "lua_close", &code))
		return false;
	while (at < code.len && !sb_image_next_insn(&code, &at, &insn)) {
		if (insn.kind != SB_INSN_LOAD || insn.has_index || insn.nr_bytes != 8)
			continue;
		if (g != SB_INSN_NO_BASE && insn.base == g)
			return insn.disp == conf->g_main;
		if (insn.base == SB_INSN_HERE->reg_argument && insn.disp == conf->l_global)
			g = insn.reg;
	}
	return false;
}

/* lua_gettop(L): from L->ci on; in 5.1, L->top - L->base. */
static bool has_top(struct sb_runtime *rt, const struct sb_lua_conf *conf)
{
	struct sb_image_code code;
	struct sb_insn insn;
	size_t at = 0;

	if (sb_image_code(rt->image, "lua_gettop", &code))
		return false;
	while (at < code.len && !sb_image_next_insn(&code, &at, &insn) && insn.kind != SB_INSN_RET)
		if (insn.is_mem && insn.base == SB_INSN_HERE->reg_argument &&
		    insn.disp == (conf->ci_prev ? conf->l_ci : 24))
			return true;
	return false;
}

/* The loop. */

struct callees {
	struct sb_runtime *rt;
	struct sb_range at[CALLEES_MAX];
	size_t nr;
	bool has_table; /* of the function that is looked into */
	struct sb_range loop;
};

static void add_callee(struct callees *callees, uint64_t target)
{
	struct sb_range range;
	size_t i;

	if (callees->nr == CALLEES_MAX ||
	    sb_image_function(callees->rt->image, target, &range.begin, &range.end) ||
	    range.begin != target)
		return;
	for (i = 0; i < callees->nr; i++)
		if (callees->at[i].begin == target)
			return;
	callees->at[callees->nr++] = range;
}

static int look_at(void *arg, const struct sb_insn *insn)
{
	struct callees *callees = arg;

	callees->has_table |= insn->kind == SB_INSN_JMP_MEM;
	if (insn->kind == SB_INSN_CALL || insn->kind == SB_INSN_JMP)
		add_callee(callees, insn->target);
	return 0;
}

/* What a function calls; and whether it may be the loop: it jumps by a table. */
static int look_into(struct callees *callees, const struct sb_range *range)
{
	uint64_t bytes = range->end - range->begin;
	int err;

	callees->has_table = false;
	if (bytes > LOOP_BYTES_MAX)
		return 0;
	err = sb_image_each_insn(callees->rt->image, range, look_at, callees);
	if (callees->has_table && bytes >= LOOP_BYTES_MIN &&
	    bytes > callees->loop.end - callees->loop.begin)
		callees->loop = *range;
	return err == -ENOMEM ? err : 0;
}

/* luaV_execute() is not exported. It is the biggest function that is called, by few others between,
 * from lua_call(). */
static int find_loop(struct sb_runtime *rt, struct sb_range *ret_loop)
{
	static const char *const callers[] = { "lua_callk", "lua_call" };
	sb_cleanup(sb_freep) struct callees *callees = calloc(1, sizeof(*callees));
	uint64_t begin, size;
	size_t i, done = 0, nr;
	int deep, err = 0;

	if (!callees)
		return -ENOMEM;
	callees->rt = rt;
	if (!sb_image_symbol(rt->image, "luaV_execute", &begin, &size) && size) {
		*ret_loop = (struct sb_range){ begin, begin + size };
		return 0;
	}
	for (i = 0; i < 2; i++)
		if (!sb_image_symbol(rt->image, callers[i], &begin, NULL))
			add_callee(callees, begin);
	for (deep = 0; deep <= CALLS_DEEP && !callees->loop.end; deep++)
		for (nr = callees->nr; done < nr && !err; done++)
			err = look_into(callees, &callees->at[done]);
	*ret_loop = callees->loop;
	return err ? err : callees->loop.end ? 0 : -ENOENT;
}

static int attach(struct sb_runtime *rt)
{
	struct sb_lua_conf *conf = (struct sb_lua_conf *)rt->conf.word;
	struct sb_range loop;
	const struct sb_lua_layout *layout;
	uint32_t release = 0, version;
	int err;

	version = find_version(rt, &release);
	layout = sb_lua_layout_of(version);
	if (!layout)
		return sb_runtime_refuse(rt, "stackbpf supports only versions 5.1 to 5.4");
	if (version == 503 && release < 3)
		return sb_runtime_refuse(rt, "stackbpf does not support 5.3 before 5.3.3");
	*conf = confs[layout - layouts];
	conf->p_code = layout->code;
	conf->p_nr_code = layout->nr_code;
	conf->p_line = layout->line;
	if (!closes(rt, conf) || !has_top(rt, conf))
		return sb_runtime_refuse(rt, "the memory layout of this version is not known");
	err = find_loop(rt, &loop);
	if (err)
		return err == -ENOMEM ? err
				      : sb_runtime_refuse(rt, "its interpreter loop "
							      "was not found");
	rt->conf.hook_begin = loop.begin;
	rt->conf.hook_end = loop.end;
	rt->conf.flags = SB_INTERP_BY_NATIVE;
	rt->state = (void *)layout;
	return 0;
}

static int describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	uint64_t proto = sb_lua_addr(frame->obj), where = sb_where_position(frame->where);
	uint32_t call = (uint32_t)(where >> SB_LUA_CALLER_SHIFT);
	uint64_t caller = proto + 8 * (uint64_t)(int64_t)(int32_t)(where & SB_LUA_CALLER_MASK);
	int err;

	switch (sb_lua_kind(frame->obj)) {
	case SB_LUA_FUNCTION:
		return sb_lua_describe_function(rt, proto, sb_lua_obj_place(frame->obj), caller,
						call, text);
	case SB_LUA_C: /* what its caller calls it */
		err = sb_lua_call_name(rt, proto, call, &text->name);
		return err ? err : text->name.len ? 0 : -ENODATA;
	default:
		return -EBADMSG;
	}
}

static const char *const glue[] = { "luaV_*", "luaD_*", "lua_call*", "lua_pcall*", "lua_resume",
				    "ccall",  "resume", "f_call",    "precallC",   NULL };

const struct sb_runtime_ops sb_runtime_lua = {
	.runtime = SB_RUNTIME_LUA,
	.name = "lua",
	.describes_purely = true,
	.is_for_any_machine = true,
	.markers = { "lua_ident" },
	.programs = { "lua" },
	.attach = attach,
	.describe = describe,
	.step = sb_lua_step,
	.native = sb_lua_native,
	.glue = glue,
};
