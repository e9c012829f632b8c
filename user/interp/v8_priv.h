/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * V8, in stages:
 *
 *	v8.c		a row of the table: which frames are what
 *	v8_file.c	what is the same for all processes with a file
 *	v8_layout.c	where fields lie, as the file says of itself
 *	v8_heap.c	objects: strings, functions, scripts
 *	v8_code.c	generated code: of what function, inlined where
 *
 * Addresses of objects are without the tag.
 */
#ifndef SB_V8_PRIV_H
#define SB_V8_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "interp/memory.h"
#include "interp/runtime.h"

/* What the file's v8dbg_ symbols say, by the names of V8's objects; -1: it does not say. */
struct sb_v8_layout {
	/* Of values. */
	int32_t smi_shift, tagged_size;
	/* Of frames. */
	int32_t fp_function, fp_context, fp_bytecode, fp_bytecode_offset;
	int32_t frame_builtin_exit;
	/* Instance types. */
	int32_t type_function, type_function_first, type_function_last, type_shared,
		type_scope_info, type_script, type_bytecode, type_code, type_instructions,
		type_debug_info, type_nonstring, type_map, type_interpreter_data,
		type_baseline_data, type_trusted_bytes, type_shared_wrapper;
	/* Fields. */
	int32_t map_type;
	int32_t string_length, seq_chars, cons_first, cons_second, sliced_parent, sliced_offset,
		thin_actual, external_resource;
	int32_t array_length, array_data;
	int32_t function_shared;
	int32_t shared_name, shared_script, shared_flags;
	int32_t script_name, script_source, script_line_ends;
	int32_t bytecode_data;
	int32_t scope_locals, scope_first;
	int32_t code_start, code_size, code_flags, stream_start;
	int32_t kind_baseline;
	int32_t deopt_literals, deopt_inlining, deopt_shared;
	/* Derived. */
	int32_t shared_builtin, bytecode_positions, code_deopt, code_positions, wrapper_shared;
	bool has_streams; /* instructions are objects beside their Code */
};

/* Return: 0, or -ENOTSUP and @why. */
int sb_v8_layout_read(struct sb_image *image, struct sb_v8_layout *ret_layout, struct sb_str *why);

#define SB_V8_MARKER	    "v8dbg_SmiTagMask" /* which is 1 */
#define SB_V8_BYTECODES_MAX 256

struct sb_v8_file {
	struct sb_v8_layout layout;
	uint32_t version[3];	  /* 13.6.233 */
	uint64_t marker;	  /* address of SB_V8_MARKER */
	struct sb_range builtins; /* code of what V8 comes with */
	/* Bytes of each bytecode with its operands: plain ones, wide ones, extra wide ones. */
	uint8_t bytecode_sizes[3 * SB_V8_BYTECODES_MAX];
	size_t nr_bytecodes; /* 0: not known */
};

/* Addresses are the process's. Return: 0, or -ENOTSUP and @why. */
int sb_v8_file_get(struct sb_image *image, struct sb_v8_file *ret_file, struct sb_str *why);

/* A piece of generated code: found once, asked for many times. */
struct sb_v8_code {
	uint64_t object, head[2];  /* where it begins, and what must still be there */
	uint64_t begin, end;	   /* instructions */
	uint64_t positions, deopt; /* tables; 0: none */
	uint64_t shared;	   /* the function, if it is optimised; 0: not known */
	bool is_baseline;
};
#define SB_V8_CODES_MAX 64 /* most recent ones */

/* Where the lines of a source end. */
struct sb_v8_lines {
	uint64_t source; /* the string; moving it makes it another one */
	uint32_t length;
	SB_VEC(uint32_t) ends;
};
#define SB_V8_LINES_MAX 8

struct sb_v8 {
	const struct sb_memory *memory;
	struct sb_v8_file file;
	struct sb_v8_layout at; /* the file's */
	struct sb_v8_code code[SB_V8_CODES_MAX];
	size_t next_code;
	uint64_t code_map; /* that instructions have, once it is known; tagged */
	struct sb_v8_lines lines[SB_V8_LINES_MAX];
	size_t next_lines;
};

/* Free what was kept. */
void sb_v8_release(struct sb_v8 *v8);

/* Words of objects. Return: 0 or -EFAULT; -EBADMSG when it is no pointer. */
int sb_v8_word(const struct sb_v8 *v8, uint64_t addr, uint64_t *ret);
int sb_v8_pointer(const struct sb_v8 *v8, uint64_t addr, uint64_t *ret_object);
/* A small integer. Return: 0, -EFAULT, -EBADMSG: is none. */
int sb_v8_smi_at(const struct sb_v8 *v8, uint64_t addr, int32_t *ret);
/* Return: the instance type, or -1. */
int32_t sb_v8_type_of(const struct sb_v8 *v8, uint64_t object);
/* Return: whether what it begins with is a map. */
bool sb_v8_is_map_of(const struct sb_v8 *v8, uint64_t object);
/* Append a string. Return: 0, -EFAULT, -EBADMSG: is none, -ENOMEM. */
int sb_v8_string(const struct sb_v8 *v8, uint64_t object, struct sb_str *str);

/* The name of a function, by its SharedFunctionInfo. Return: as above. */
int sb_v8_function_name(const struct sb_v8 *v8, uint64_t shared, struct sb_str *name);
/* The file it is in. Nothing when it is in none. */
int sb_v8_function_file(const struct sb_v8 *v8, uint64_t shared, struct sb_str *file);
/* The line of offset @at in its script's source; 0: not known. */
uint32_t sb_v8_function_line(struct sb_v8 *v8, uint64_t shared, int64_t at);
/* Offset in the source where the function begins, -1: not known. */
int64_t sb_v8_function_start(const struct sb_v8 *v8, uint64_t shared);
/* Its BytecodeArray. Return: 0, -EFAULT, -EBADMSG. */
int sb_v8_function_bytecode(const struct sb_v8 *v8, uint64_t shared, uint64_t *ret_bytecode);

/* A place in a function's source. */
struct sb_v8_place {
	int64_t offset;	 /* -1: not known */
	int32_t inlined; /* number of the inlining, -1: the function itself */
};
/* The place of @at in a table of positions, a byte array. Return: 0, -ENODATA. */
int sb_v8_position(const struct sb_v8 *v8, uint64_t table, int64_t at, struct sb_v8_place *ret);

/* The code that holds @pc. Return: 0, -ENOENT. */
int sb_v8_code_find(struct sb_v8 *v8, uint64_t pc, const struct sb_v8_code **ret_code);
/* The function inlined as number @inlined, and where it was called. Return: 0, -EBADMSG. */
int sb_v8_code_inlined(const struct sb_v8 *v8, const struct sb_v8_code *code, int32_t inlined,
		       uint64_t *ret_shared, struct sb_v8_place *ret_caller);
/* How far baseline code is in its bytecode. Return: offset, or -1. */
int64_t sb_v8_code_bytecode_at(const struct sb_v8 *v8, const struct sb_v8_code *code, uint64_t pc,
			       uint64_t bytecode);

#endif
