// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * V8, as Node.js has it. How it is found and read is in docs/interpreters.md; the walker is
 * sb_step_v8.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/runtime.h"
#include "interp/runtimes.h"
#include "interp/step.h"
#include "interp/v8_priv.h"
#include "sb_step_v8.h"

/* The builtins of any version are larger, and smaller than this. */
#define BUILTINS_BYTES_MIN (512u << 10)
#define BUILTINS_BYTES_MAX (64u << 20)
#define BYTECODES_MAX	   256u

/* Where the file has its builtins: generated code, without unwind information. */
struct gap_search {
	struct sb_image *image;
	uint64_t end;		/* of the function before */
	struct sb_range widest; /* gap between two functions */
};

static int look_at_gap(void *arg, uint64_t begin, uint64_t end)
{
	struct gap_search *search = arg;

	if (search->end && begin > search->end &&
	    begin - search->end > search->widest.end - search->widest.begin)
		search->widest = (struct sb_range){ search->end, begin };
	if (end > search->end)
		search->end = end;
	return 0;
}

static int find_builtins(struct sb_runtime *rt, struct sb_range *ret)
{
	/* The second name was that of a pointer as long as the first one existed: to V8 10. */
	static const char *const names[] = { "v8_Default_embedded_blob_code_data_",
					     "v8_Default_embedded_blob_code_" };
	struct gap_search search = { .image = rt->image };
	uint64_t begin, size_at;
	uint32_t size;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sb_image_symbol(rt->image, names[i], &begin, NULL) ||
		    sb_image_symbol(rt->image, "v8_Default_embedded_blob_code_size_", &size_at,
				    NULL) ||
		    sb_image_read(rt->image, size_at, &size, sizeof(size)) ||
		    size < BUILTINS_BYTES_MIN || size > BUILTINS_BYTES_MAX)
			continue;
		*ret = (struct sb_range){ begin, begin + size };
		return 0;
	}
	/* A stripped file: nothing else that large is without it. */
	sb_image_functions(rt->image, look_at_gap, &search);
	if (search.widest.end - search.widest.begin < BUILTINS_BYTES_MIN ||
	    search.widest.end - search.widest.begin > BUILTINS_BYTES_MAX)
		return -ENOENT;
	*ret = search.widest;
	return 0;
}

/*
 * V8 may put its builtins once more next to its generated code, so that short calls reach them
 * (--short-builtin-calls): a second mapping of the file, or a copy.
 */
static struct sb_range find_copy(struct sb_runtime *rt, const struct sb_range *builtins)
{
	uint64_t length = builtins->end - builtins->begin, at, offset;
	uint8_t here[256], there[256];
	size_t i;

	/* Not the first bytes, which a widest gap may have others before. */
	offset = length / 2 & ~63ull;
	if (!rt->maps || sb_image_read(rt->image, builtins->begin + offset, here, sizeof(here)))
		return (struct sb_range){};
	for (i = 0; i < rt->maps->nr; i++) {
		const struct sb_process_map *map = &rt->maps->at[i];
		uint64_t slack = builtins->begin & 4095;

		if (!map->is_exec ||
		    (map->start <= builtins->begin && map->end > builtins->begin) ||
		    map->end - map->start < length / 2)
			continue;
		at = map->start + slack;
		if (sb_memory_read(rt->memory, there, sizeof(there), at + offset) ||
		    memcmp(here, there, sizeof(here)))
			continue;
		return (struct sb_range){ at, at + length };
	}
	return (struct sb_range){};
}

/* Bytecodes::kBytecodeSizes, for lines in code that was compiled without optimisation. */
static void read_bytecode_sizes(struct sb_runtime *rt, struct sb_v8 *v8)
{
	uint64_t addr, size;

	if (sb_image_symbol(rt->image, "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE",
			    &addr, &size) ||
	    !size || size % 3 || size > 3 * BYTECODES_MAX)
		return;
	v8->bytecode_sizes = malloc(size);
	if (!v8->bytecode_sizes)
		return;
	v8->nr_bytecodes = size / 3;
	if (sb_image_read(rt->image, addr, v8->bytecode_sizes, size)) {
		free(v8->bytecode_sizes);
		v8->bytecode_sizes = NULL;
	}
}

/* V8::GetVersion() formats four numbers, which are next to one another. */
static void read_version(struct sb_runtime *rt)
{
	static const char *const names[] = { "_ZN2v88internal7Version6major_E",
					     "_ZN2v88internal7Version6minor_E",
					     "_ZN2v88internal7Version6build_E" };
	uint32_t number[3];
	uint64_t addr;
	size_t i;

	for (i = 0; i < 3; i++)
		if (sb_image_symbol(rt->image, names[i], &addr, NULL) ||
		    sb_memory_u32(rt->memory, addr, &number[i]))
			return;
	snprintf(rt->version, sizeof(rt->version), "%u.%u.%u", number[0], number[1], number[2]);
}

static void fill_conf(struct sb_runtime *rt, const struct sb_v8_layout *at,
		      const struct sb_range *builtins)
{
	struct sb_v8_conf *conf = (struct sb_v8_conf *)rt->conf.word;
	size_t i;

	*conf = (struct sb_v8_conf){
		.map_type = (uint16_t)at->map_type,
		.function_type = (uint16_t)at->type_function_first,
		.function_type_last = (uint16_t)at->type_function_last,
		.function_shared = (uint16_t)at->function_shared,
		.shared_builtin = (uint16_t)at->shared_builtin,
		.shared_script = (uint16_t)at->shared_script,
		.shared_id = (uint16_t)at->shared_flags,
	};
	for (i = 0; i < 2; i++) {
		conf->builtins[i] = builtins[i].begin;
		conf->builtins_end[i] = builtins[i].end;
	}
	rt->conf.flags = SB_INTERP_BY_NATIVE;
}

static int attach(struct sb_runtime *rt)
{
	struct sb_range builtins[2] = {};
	struct sb_v8 *v8 = calloc(1, sizeof(*v8));
	int err;

	if (!v8)
		return -ENOMEM;
	v8->memory = rt->memory;
	err = sb_v8_layout_read(rt->image, rt->memory, &v8->at, &rt->why);
	if (!err && find_builtins(rt, &builtins[0])) {
		err = -ENOTSUP;
		sb_str_add(&rt->why, "its builtins were not found");
	}
	if (err) {
		if (rt->why.len)
			sb_str_addf(&rt->why, " (%s)", sb_image_build_id(rt->image));
		free(v8);
		return err;
	}
	builtins[1] = find_copy(rt, &builtins[0]);
	read_bytecode_sizes(rt, v8);
	read_version(rt);
	fill_conf(rt, &v8->at, builtins);
	rt->state = v8;
	return 0;
}

static void detach(struct sb_runtime *rt)
{
	sb_v8_release(rt->state);
	free(rt->state);
	rt->state = NULL;
}

/* A function, and the place in it. */
struct named {
	uint64_t shared;
	int64_t offset; /* in its source; -1: not known */
};

static int64_t offset_of_bytecode(struct sb_v8 *v8, uint64_t shared, int64_t at)
{
	struct sb_v8_place place;
	uint64_t bytecode, table;

	if (at < 0 || sb_v8_function_bytecode(v8, shared, &bytecode) ||
	    sb_v8_pointer(v8, bytecode + (uint64_t)v8->at.bytecode_positions, &table) ||
	    sb_v8_position(v8, table, at, &place))
		return -1;
	return place.offset;
}

/* In code without optimisation: by way of its bytecode. */
static int64_t offset_in_baseline(struct sb_v8 *v8, const struct sb_v8_code *code, uint64_t shared,
				  uint64_t pc)
{
	uint64_t bytecode;

	if (sb_v8_function_bytecode(v8, shared, &bytecode))
		return -1;
	return offset_of_bytecode(v8, shared, sb_v8_code_bytecode_at(v8, code, pc, bytecode));
}

/*
 * Function @i of those that were inlined at @pc, 0 being the innermost. Return: 0; -ENODATA: there are
 * not so many, and @ret is the function of the frame itself.
 */
static int find_in_code(struct sb_v8 *v8, uint64_t shared, uint64_t pc, size_t i, struct named *ret)
{
	struct sb_v8_place place = { .offset = -1, .inlined = -1 }, caller;
	const struct sb_v8_code *code;
	uint64_t inlined;

	*ret = (struct named){ .shared = shared, .offset = -1 };
	if (sb_v8_code_find(v8, pc, &code))
		return -ENODATA;
	if (code->is_baseline) {
		ret->offset = offset_in_baseline(v8, code, shared, pc);
		return -ENODATA;
	}
	/* Code of another function: it has not made its frame yet, this one is its caller's. */
	if (code->shared != shared || !code->positions ||
	    sb_v8_position(v8, code->positions, (int64_t)(pc - code->begin), &place))
		return -ENODATA;
	for (; place.inlined >= 0; place = caller, i--) {
		if (sb_v8_code_inlined(v8, code, place.inlined, &inlined, &caller))
			return -ENODATA;
		if (i)
			continue;
		*ret = (struct named){ .shared = inlined, .offset = place.offset };
		return 0;
	}
	ret->offset = place.offset;
	return -ENODATA;
}

static int say(struct sb_runtime *rt, const struct named *named, struct sb_runtime_text *text)
{
	struct sb_v8 *v8 = rt->state;
	int64_t offset = named->offset;
	int err = sb_v8_function_name(v8, named->shared, &text->name);

	if (err || !rt->wants_lines)
		return err;
	err = sb_v8_function_file(v8, named->shared, &text->file);
	if (err || !text->file.len)
		return err;
	if (offset < 0)
		offset = sb_v8_function_start(v8, named->shared);
	text->line = sb_v8_function_line(v8, named->shared, offset);
	return 0;
}

static int describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	struct sb_v8 *v8 = rt->state;
	struct named named = { .shared = frame->obj & ~7ull, .offset = -1 };
	uint64_t position = sb_where_position(frame->where);

	switch (frame->obj & 7) {
	case SB_V8_BUILTIN:
		break;
	case SB_V8_BYTECODE:
		/* What is in the frame counts from the pointer to the array, with its tag. */
		if (position)
			named.offset = offset_of_bytecode(
				v8, named.shared, (int64_t)position - v8->at.bytecode_data + 1);
		break;
	case SB_V8_CODE:
		find_in_code(v8, named.shared, position, SIZE_MAX, &named);
		break;
	default:
		return -EBADMSG;
	}
	return say(rt, &named, text);
}

static int describe_inlined(struct sb_runtime *rt, const struct sb_interp_frame *frame, size_t i,
			    struct sb_runtime_text *text)
{
	struct named named;
	int err;

	if ((frame->obj & 7) != SB_V8_CODE)
		return -ENODATA;
	err = find_in_code(rt->state, frame->obj & ~7ull, sb_where_position(frame->where), i,
			   &named);
	return err ? err : say(rt, &named, text);
}

/* Builtins that only lead from one function into another, and what V8 goes through on the way in. */
static const char *const glue[] = {
	"Builtins_*Handler",
	"Builtins_InterpreterEntryTrampoline*",
	"Builtins_InterpreterPushArgs*",
	"Builtins_InterpreterEnter*",
	"Builtins_BaselineOutOfLinePrologue*",
	"Builtins_BaselineOrInterpreter*",
	"Builtins_Call*",
	"Builtins_Construct*",
	"Builtins_JSEntry*",
	"Builtins_JSConstruct*",
	"Builtins_JSBuiltinsConstructStub*",
	"Builtins_JSRunMicrotasksEntry*",
	"Builtins_RunMicrotasks*",
	"Builtins_ArgumentsAdaptor*",
	"Builtins_AdaptorWithBuiltinExitFrame*",
	"Builtins_CEntry*",
	"Builtins_HandleApiCall*",
	"v8::internal::*::Invoke*",
	"v8::internal::*InvokeWithTryCatch*",
	"v8::internal::Execution::*",
	"v8::Function::Call*",
	"v8::internal::Builtin_HandleApiCall*",
	"v8::internal::*HandleApiCallHelper*",
	"v8::internal::FunctionCallbackArguments::Call*",
	"v8::internal::MicrotaskQueue::*",
	NULL,
};

const struct sb_runtime_ops sb_runtime_v8 = {
	.runtime = SB_RUNTIME_V8,
	.name = "v8",
	.markers = { "v8dbg_SmiTagMask" },
	.attach = attach,
	.detach = detach,
	.describe = describe,
	.describe_inlined = describe_inlined,
	.glue = glue,
};
