// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * V8, as Node.js has it. How it is found and read is in docs/interpreters.md; the walker is
 * sb_step_v8.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/runtime.h"
#include "interp/core/runtimes.h"
#include "interp/v8/v8_priv.h"
#include "symbolizer/elf/elf_file.h"

#include "bpf/step/sb_step_v8.h"

#define PAGE_BYTES	4096ull
/* Part of the main thread's stack that is searched for a function. */
#define STACK_BYTES_MAX (128u << 10)
#define VERSION_MIN	904

/*
 * V8 may put its builtins once more next to its generated code, so that short calls reach them
 * (--short-builtin-calls): a second mapping of the file, or a copy.
 */
static struct sb_range find_copy(struct sb_runtime *rt, const struct sb_range *builtins)
{
	uint64_t length = builtins->end - builtins->begin, middle = length / 2 & ~63ull, addr;
	/* Copies begin with a page. */
	uint64_t begin = (builtins->begin + PAGE_BYTES - 1) & -PAGE_BYTES;
	uint8_t here[256], there[256];
	size_t i;

	if (sb_image_read(rt->image, begin + middle, here, sizeof(here)))
		return (struct sb_range){};
	for (i = 0; i < rt->maps->nr; i++) {
		const struct sb_maps_line *map = &rt->maps->at[i];

		if (!map->is_exec || map->end - map->start < length / 2)
			continue;
		if (sb_streq(map->path, sb_image_path(rt->image)) &&
		    sb_elf_offset_to_addr(sb_image_elf(rt->image), map->pgoff, &addr) &&
		    map->start - addr != sb_image_bias(rt->image))
			return (struct sb_range){ map->start, map->end };
		if (map->path[0] ||
		    sb_memory_read(rt->memory, there, sizeof(there), map->start + middle) ||
		    memcmp(here, there, sizeof(here)))
			continue;
		return (struct sb_range){ map->start, map->start + length };
	}
	return (struct sb_range){};
}

/* A second mapping of the file, where its data is not: this is not how it was loaded. */
static bool is_loaded_here(struct sb_runtime *rt, const struct sb_v8_file *file)
{
	uint32_t value;

	return !sb_memory_u32(rt->memory, file->marker, &value) && value == 1;
}

/* Whether a word leads to a function, whose parts are what they should be. Return: 1; 0: it does
 * not lead to a function; -1: to one that is otherwise. */
static int try_function(struct sb_v8 *v8, uint64_t word)
{
	const struct sb_v8_layout *at = &v8->at;
	sb_cleanup(sb_str_release) struct sb_str name = {};
	uint64_t function = word - SB_V8_TAG, shared;
	int32_t type;

	if ((word & 7) != SB_V8_TAG || word < PAGE_BYTES || word >> SB_USER_ADDR_BITS)
		return 0;
	type = sb_v8_type_of(v8, function);
	if (type < at->type_function_first || type > at->type_function_last ||
	    !sb_v8_is_map_of(v8, function))
		return 0;
	if (sb_v8_pointer(v8, function + (uint64_t)at->function_shared, &shared) ||
	    sb_v8_function_name(v8, shared, &name))
		return -1;
	return 1;
}

/*
 * Functions stand on the stack, if only as what was left there. Return: whether one was found, and
 * none that is not as it should be; -ENOENT: there was none at all.
 */
static int self_test(struct sb_runtime *rt, struct sb_v8 *v8)
{
	const struct sb_maps_line *stack = NULL;
	uint64_t *words, len;
	size_t i;
	int ret = -ENOENT, is_good;

	for (i = 0; i < rt->maps->nr; i++)
		if (sb_streq(rt->maps->at[i].path, "[stack]"))
			stack = &rt->maps->at[i];
	if (!stack)
		return -ENOENT;
	len = stack->end - stack->start;
	if (len > STACK_BYTES_MAX)
		len = STACK_BYTES_MAX;
	words = malloc(len);
	if (!words)
		return -ENOMEM;
	if (sb_memory_read(v8->memory, words, len, stack->end - len))
		len = 0;
	for (i = 0; i < len / 8 && ret; i++) {
		is_good = try_function(v8, words[i]);
		if (is_good)
			ret = is_good > 0 ? 0 : -ENOTSUP;
	}
	free(words);
	return ret;
}

/* Versions whose layout was looked at: of Node.js 16, 18, 20, 22, 24. */
static bool is_known(uint32_t version)
{
	return version == 904 || version == 1002 || version == 1103 || version == 1204 ||
	       version == 1306;
}

static int refuse(struct sb_runtime *rt, const char *why)
{
	if (why)
		sb_str_addf(&rt->why, "V8 %s: %s",
			    rt->version[0] ? rt->version
					   : "of "
					     "unknown "
					     "version",
			    why);
	sb_str_addf(&rt->why, " (%s)", sb_image_build_id(rt->image));
	return -ENOTSUP;
}

/* Return: 0; -EAGAIN; -ENOTSUP; -EBADMSG. */
static int check_version(struct sb_runtime *rt, struct sb_v8 *v8)
{
	const uint32_t *number = v8->file.version;
	uint32_t version = number[1] < 100 ? number[0] * 100 + number[1] : 0;
	int err;

	snprintf(rt->version, sizeof(rt->version), "%u.%u.%u", number[0], number[1], number[2]);
	if (version < VERSION_MIN)
		return refuse(rt, "stackbpf does not support this version");
	err = self_test(rt, v8);
	if (err == -ENOTSUP)
		return sb_runtime_doubt(rt);
	if (err == -ENOENT && !is_known(version))
		return -EAGAIN;
	return err == -ENOENT ? 0 : err;
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
		.builtin_exit = (uint16_t)at->frame_builtin_exit,
	};
	for (i = 0; i < 2; i++) {
		conf->builtins[i] = builtins[i].begin;
		conf->builtins_end[i] = builtins[i].end;
	}
	rt->conf.flags = SB_INTERP_BY_NATIVE;
}

static int attach_to(struct sb_runtime *rt, struct sb_v8 *v8)
{
	struct sb_range builtins[2] = {};
	int err = sb_v8_file_get(rt->image, &v8->file, &rt->why);

	if (err == -ENOTSUP)
		return refuse(rt, NULL);
	if (err)
		return err;
	if (!is_loaded_here(rt, &v8->file))
		return -EFAULT;
	v8->at = v8->file.layout;
	err = check_version(rt, v8);
	if (err)
		return err;
	builtins[0] = v8->file.builtins;
	builtins[1] = find_copy(rt, &builtins[0]);
	fill_conf(rt, &v8->at, builtins);
	return 0;
}

static int attach(struct sb_runtime *rt)
{
	struct sb_v8 *v8 = calloc(1, sizeof(*v8));
	int err;

	if (!v8)
		return -ENOMEM;
	v8->memory = rt->memory;
	err = attach_to(rt, v8);
	if (err) {
		sb_v8_release(v8);
		free(v8);
		return err;
	}
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
 * Function @i of those that were inlined at @pc, 0 being the innermost. Return: 0; -ENODATA: there
 * are not so many, and @ret is the function of the frame itself.
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

/* Builtins that only lead from one function into another, and what V8 goes through on the way
 * in. */
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
	.is_for_any_machine = true,
	.needs_all_maps = true,
	.markers = { SB_V8_MARKER },
	.programs = { "node" },
	.attach = attach,
	.detach = detach,
	.describe = describe,
	.describe_inlined = describe_inlined,
	.native = sb_v8_native,
	.glue = glue,
};
