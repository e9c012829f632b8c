// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds which functions an address in generated code stands for. A trace has snapshots (lj_jit.h:
 * SnapShot) of what the interpreter's stack would be, one for each place where the trace may be
 * left, with the offset of the code that follows it. The last snapshot before an address has the
 * bytecode instruction, and the links of the functions that were inlined around it, in the form
 * that they would have on Lua's stack.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/abi/sb_abi_lua.h"
#include "interp/luajit/luajit_priv.h"

/* Of one trace: LuaJIT's own limits are 500 snapshots and 4000 instructions. */
#define SNAPS_MAX   4096u
/* Where in global_State and behind the array of traces may begin. */
#define TRACES_FROM 512u
#define TRACES_TO   2560u
#define TRACES_MAX  65536u

struct snap {
	uint32_t map;
	uint16_t ref, code;
	uint8_t nr_slots, top, nr, count;
};
_Static_assert(sizeof(struct snap) == 12, "as in lj_jit.h");

enum {
	SNAP_BYTES = sizeof(struct snap),
	SNAP_FRAME = 0x010000,
	REF_BIAS = 0x8000,
	ENTRIES_MAX = 255,
	/* Types of links: sb_step_luajit.h. */
	FRAME_CONT = 2,
	FRAME_VARG = 3,
};

struct trace {
	uint64_t at, code, snaps, map, ir;
	uint32_t nr_code, nr_map, nk;
	uint16_t nr_snaps;
};

static const struct sb_luajit_layout *layout_of(const struct sb_runtime *rt)
{
	return ((const struct sb_luajit_state *)rt->state)->layout;
}

static uint64_t low_pc(uint64_t pc)
{
	return pc & ((1ull << SB_LUA_BASE_PC_BITS) - 1);
}

static int read_trace(struct sb_runtime *rt, uint64_t at, struct trace *trace)
{
	const struct sb_luajit_layout *layout = layout_of(rt);
	uint8_t gct;
	int err = sb_memory_u8(rt->memory, at + layout->gct, &gct);

	if (!err && gct != SB_LUAJIT_GCT_TRACE)
		return -EBADMSG;
	trace->at = at;
	if (!err)
		err = sb_memory_u64(rt->memory, at + layout->t_code, &trace->code);
	if (!err)
		err = sb_memory_u32(rt->memory, at + layout->t_nr_code, &trace->nr_code);
	if (!err)
		err = sb_memory_u16(rt->memory, at + layout->t_nr_snaps, &trace->nr_snaps);
	if (!err)
		err = sb_memory_u64(rt->memory, at + layout->t_snaps, &trace->snaps);
	if (!err)
		err = sb_memory_u64(rt->memory, at + layout->t_snap_map, &trace->map);
	if (!err)
		err = sb_memory_u32(rt->memory, at + layout->t_nr_snap_map, &trace->nr_map);
	if (!err)
		err = sb_memory_u64(rt->memory, at + layout->t_ir, &trace->ir);
	return err ? err : sb_memory_u32(rt->memory, at + layout->t_nk, &trace->nk);
}

/* Is @pc in it? A return address may be the first byte behind. */
static bool holds(const struct trace *trace, uint64_t pc, bool is_low)
{
	uint64_t offset = is_low ? low_pc(pc - trace->code) : pc - trace->code;

	return offset <= trace->nr_code;
}

/* Trace @number of those at @traces, if @pc is in it. */
static int trace_at(struct sb_runtime *rt, uint64_t traces, uint32_t number, uint64_t pc,
		    bool is_low, struct trace *trace)
{
	uint64_t at;
	int err = sb_luajit_read_ptr(rt, traces + (uint64_t)number * layout_of(rt)->ptr_bytes, &at);

	if (!err && !at)
		err = -ENOENT;
	if (!err)
		err = read_trace(rt, at, trace);
	return err ? err : holds(trace, pc, is_low) ? 0 : -ENOENT;
}

/* The array of traces, as jit_State has it: {GCRef *trace; TraceNo freetrace; MSize sizetrace}. */
struct traces {
	uint64_t at;
	uint32_t free, nr;
};

/* The trace among @traces that holds @pc: @number, if it is known as a whole, or one that ends in
 * its bits. */
static int trace_among(struct sb_runtime *rt, const struct traces *traces, uint32_t number,
		       uint64_t pc, bool is_low, struct trace *trace)
{
	const uint32_t next = is_low ? TRACES_MAX : SB_WHERE_CHECK_MASK + 1;
	int err = -ENOENT;

	for (; err && number < traces->nr && number < TRACES_MAX; number += next)
		err = trace_at(rt, traces->at, number, pc, is_low, trace);
	return err;
}

static bool may_be_traces(const struct traces *traces, uint32_t number)
{
	return traces->at >= 4096 && !(traces->at >> 47) && !(traces->at & 3) &&
	       number < traces->nr && traces->nr <= TRACES_MAX && traces->free <= traces->nr;
}

/*
 * Where the array of traces is: it moves from version to version, but whatever leads to a trace
 * that holds the place proves itself. All is read at once, up to the end of a page, beyond which
 * there may be nothing: word by word it would be 256 calls for each frame that is not found.
 */
static int find_traces(struct sb_runtime *rt, uint64_t global, uint32_t number, uint64_t pc,
		       struct trace *trace)
{
	struct sb_luajit_state *state = rt->state;
	uint8_t piece[TRACES_TO - TRACES_FROM] = {};
	struct traces traces;
	uint32_t off, in_page = 4096 - (uint32_t)((global + TRACES_FROM) % 4096);

	if (in_page > sizeof(piece))
		in_page = sizeof(piece);
	if (sb_memory_read(rt->memory, piece, in_page, global + TRACES_FROM))
		return -ENOENT;
	if (in_page < sizeof(piece) &&
	    sb_memory_read(rt->memory, piece + in_page, sizeof(piece) - in_page,
			   global + TRACES_FROM + in_page))
		memset(piece + in_page, 0, sizeof(piece) - in_page);
	for (off = 0; off + sizeof(traces) <= sizeof(piece); off += 8) {
		memcpy(&traces, piece + off, sizeof(traces));
		if (!may_be_traces(&traces, number) ||
		    trace_among(rt, &traces, number, pc, false, trace))
			continue;
		state->g_traces = TRACES_FROM + off;
		return 0;
	}
	return -ENOENT;
}

static int find_trace(struct sb_runtime *rt, uint64_t global, uint32_t number, uint64_t pc,
		      bool is_low, struct trace *trace)
{
	struct sb_luajit_state *state = rt->state;
	struct traces traces;
	int err;

	if (!state->g_traces)
		return is_low ? -ENOENT : find_traces(rt, global, number, pc, trace);
	err = sb_memory_read(rt->memory, &traces, sizeof(traces), global + state->g_traces);
	return err ? err : trace_among(rt, &traces, number, pc, is_low, trace);
}

/*
 * Are these snapshots as we know them? Builds before March of 2021 have none that know their code,
 * and lay them out differently. The pieces of the map follow one another: entries, and one word
 * (two with GC64) or more for the links.
 */
static bool are_snaps(const struct sb_runtime *rt, const struct trace *trace,
		      const struct snap *snaps)
{
	uint64_t at = 0;
	bool has_code = false;
	size_t i;

	for (i = 0; i < trace->nr_snaps; i++) {
		if (snaps[i].map < at || snaps[i].code > trace->nr_code)
			return false;
		at = (uint64_t)snaps[i].map + snaps[i].nr + 1 + layout_of(rt)->is_gc64;
		has_code |= snaps[i].code != 0;
	}
	return at <= trace->nr_map && (has_code || trace->nr_snaps == 1);
}

/* The last snapshot before @offset in the code. */
static int find_snap(struct sb_runtime *rt, const struct trace *trace, uint64_t offset,
		     struct snap *ret_snap)
{
	sb_cleanup(sb_freep) struct snap *snaps = NULL;
	size_t i, best = 0;
	int err;

	if (!trace->nr_snaps || trace->nr_snaps > SNAPS_MAX)
		return -EBADMSG;
	snaps = malloc(trace->nr_snaps * SNAP_BYTES);
	if (!snaps)
		return -ENOMEM;
	err = sb_memory_read(rt->memory, snaps, trace->nr_snaps * SNAP_BYTES, trace->snaps);
	if (err)
		return err;
	if (!are_snaps(rt, trace, snaps))
		return -EBADMSG;
	for (i = 1; i < trace->nr_snaps; i++)
		if (snaps[i].code && snaps[i].code <= offset && snaps[i].code >= snaps[best].code)
			best = i;
	*ret_snap = snaps[best];
	return 0;
}

/* What a snapshot says of frames: their links, outermost last. */
struct links {
	uint64_t pc;	   /* of the innermost */
	uint64_t link[16]; /* innermost first */
	size_t nr;
};

/* The constant that a slot of the snapshot has. */
static int read_constant(struct sb_runtime *rt, const struct trace *trace, uint32_t entry,
			 uint64_t *ret)
{
	uint32_t ref = entry & 0xffff;

	if (ref >= REF_BIAS || ref < trace->nk)
		return -EBADMSG;
	/* It is in the word behind its instruction. */
	return sb_memory_u64(rt->memory, trace->ir + 8ull * ref + 8, ret);
}

/* GC64: the links are constants in slots of the snapshot; entries are in the order of slots. */
static int read_links_64(struct sb_runtime *rt, const struct trace *trace, const struct snap *snap,
			 struct links *links)
{
	uint32_t entry[ENTRIES_MAX];
	uint64_t last;
	size_t i;
	int err = sb_memory_read(rt->memory, entry, 4ull * snap->nr, trace->map + 4ull * snap->map);

	if (!err)
		err = sb_memory_u64(rt->memory, trace->map + 4ull * snap->map + 4ull * snap->nr,
				    &last);
	if (err)
		return err;
	links->pc = last >> 8;
	for (i = snap->nr; i-- && links->nr < 16;) {
		uint32_t slot = entry[i] >> 24;
		size_t below = i;

		/* Above the innermost frame there may be the beginning of one that is being
		 * made. */
		if (!(entry[i] & SNAP_FRAME) || slot < 2 || slot > (last & 0xff) + 1)
			continue;
		err = read_constant(rt, trace, entry[i], &links->link[links->nr]);
		/* Of a metamethod: the place in the caller is two slots below. */
		while (!err && (links->link[links->nr] & 7) == FRAME_CONT && below--)
			if (entry[below] >> 24 == slot - 2)
				err = read_constant(rt, trace, entry[below],
						    &links->link[links->nr]);
		if (err)
			return err;
		links->nr++;
	}
	return 0;
}

/* Otherwise they follow the entries: as many as there are frames, which their number does not say;
 * the map's next part begins there. */
static int read_links_32(struct sb_runtime *rt, const struct trace *trace, const struct snap *snap,
			 struct links *links)
{
	uint32_t entry[ENTRIES_MAX], word;
	size_t i, nr_frames = 0;
	uint64_t at = trace->map + 4ull * snap->map;
	int err = sb_memory_read(rt->memory, entry, 4ull * snap->nr, at);

	if (err)
		return err;
	at += 4ull * snap->nr;
	err = sb_memory_u32(rt->memory, at, &word);
	links->pc = word;
	for (i = 0; i < snap->nr; i++)
		if ((entry[i] & SNAP_FRAME) && entry[i] >> 24)
			nr_frames++;
	for (i = 0; !err && i < nr_frames && links->nr < 16; i++) {
		at += 4;
		err = sb_memory_u32(rt->memory, at, &word);
		links->link[links->nr++] = word;
		if ((word & 7) == FRAME_CONT) { /* the place in the caller is the next one */
			at += 4;
			if (!err)
				err = sb_memory_u32(rt->memory, at, &word);
			links->link[links->nr - 1] = word;
		}
	}
	return err;
}

/* From links to functions. What stands for variable arguments is none. */
static size_t resolve_links(const struct links *links, struct sb_luajit_inlined *ret, size_t max)
{
	uint64_t pc = links->pc;
	size_t nr = 0, i;

	for (i = 0; i < links->nr && nr < max - 1; i++) {
		uint64_t link = links->link[i];

		if (link & 3) {
			if ((link & 7) == FRAME_VARG)
				continue;
			if (pc)
				ret[nr++] = (struct sb_luajit_inlined){ .pc = pc };
			pc = 0;
			continue;
		}
		ret[nr++] = (struct sb_luajit_inlined){ .pc = pc, .call = link };
		pc = link;
	}
	ret[nr++] = (struct sb_luajit_inlined){ .pc = pc };
	return nr;
}

void sb_luajit_saw_global(struct sb_luajit_state *state, uint64_t global)
{
	size_t i;

	for (i = 0; i < state->nr_globals; i++)
		if (state->globals[i] == global)
			return;
	state->globals[state->next_global] = global;
	state->next_global = (state->next_global + 1) % SB_LUAJIT_STATES_MAX;
	if (state->nr_globals < SB_LUAJIT_STATES_MAX)
		state->nr_globals++;
}

size_t sb_luajit_inlined(struct sb_runtime *rt, uint64_t global, uint32_t number, uint64_t pc,
			 struct sb_luajit_inlined *ret, size_t max)
{
	struct sb_luajit_state *state = rt->state;
	struct trace trace = {};
	struct links links = {};
	struct snap snap;
	uint64_t proto;
	size_t i;
	int err = -ENOENT;

	if (global)
		err = find_trace(rt, global, number, pc, false, &trace);
	else
		for (i = 0; err && i < state->nr_globals; i++)
			err = find_trace(rt, state->globals[i], number, pc, true, &trace);
	if (!err)
		err = find_snap(rt, &trace, low_pc(pc - trace.code), &snap);
	if (!err)
		err = layout_of(rt)->is_gc64 ? read_links_64(rt, &trace, &snap, &links)
					     : read_links_32(rt, &trace, &snap, &links);
	if (!err && links.pc) /* and it is in the code of a function */
		err = sb_luajit_proto_at(rt, links.pc, &proto);
	return err ? 0 : resolve_links(&links, ret, max);
}
