/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * V8 (Node.js, Chromium). Shared by
 *
 *	v8.c		struct sb_runtime_ops; what kind a frame is
 *	v8_file.c	what is the same for all processes that map the file
 *	v8_layout.c	offsets of fields, from the file's v8dbg_ symbols
 *	v8_heap.c	objects: strings, functions, scripts
 *	v8_code.c	generated code: which function, and what is inlined where
 *
 * Order: attach() calls sb_v8_file_get(), and sets memory, file and at of a zeroed struct sb_v8, on
 * which the others then work: sb_v8_code_find() for a program counter, with its result
 * sb_v8_position() and sb_v8_code_inlined(), or in baseline code sb_v8_code_bytecode_at() and
 * sb_v8_position() of that bytecode offset; and with the function and the offset in its source,
 * which is sb_v8_place.offset, name, file and line. sb_v8_release() comes last.
 *
 * Addresses of objects are given without V8's pointer tag. All but sb_v8_file_get() run with the
 * lock of struct sb_interp held, on any thread; they read the process's memory, which may be
 * anything. No argument is NULL, and nothing that comes back is freed. Where nothing else is said,
 * out-parameters mean nothing after an error, and text before an error stays appended; @v8 can be
 * used further. -EFAULT: memory of the process cannot be read; -EBADMSG: it is not what was
 * expected there. @shared is the address of a function's SharedFunctionInfo.
 */
#ifndef SB_V8_PRIV_H
#define SB_V8_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "interp/core/memory.h"
#include "interp/core/runtime.h"

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
	/* Derived from others or from the version. */
	int32_t shared_builtin, bytecode_positions, code_deopt, code_positions, wrapper_shared;
	bool has_streams; /* instructions are in an object of their own, InstructionStream */
};

/* Read the layout from the file's symbols. Return: 0; -ENOTSUP, with the end of a sentence appended
 * to @why (nothing without memory, or if a symbol's value cannot be read); -EFBIG beyond the file's
 * budget. */
int sb_v8_layout_read(struct sb_image *image, struct sb_v8_layout *ret_layout, struct sb_str *why);

#define SB_V8_MARKER	    "v8dbg_SmiTagMask" /* which is 1 */
#define SB_V8_BYTECODES_MAX 256

/* What is known of a file with V8 in it. */
struct sb_v8_file {
	struct sb_v8_layout layout;
	uint32_t version[3];	  /* 13.6.233 */
	uint64_t marker;	  /* address of SB_V8_MARKER */
	struct sb_range builtins; /* the code of V8's builtins, which is in the file */
	/* Length of each bytecode with its operands: plain, wide, extra wide. */
	uint8_t bytecode_sizes[3 * SB_V8_BYTECODES_MAX];
	size_t nr_bytecodes; /* 0: not known */
};

/* Copy what is known of the file to *@ret_file, with addresses of the process. Files are cached by
 * build ID for all processes; any thread, but the image needs the lock. Return: 0; -ENOTSUP, with
 * the end of a sentence appended to @why; -ENOENT: a symbol is missing; -EFBIG beyond the file's
 * budget; *ret_file is untouched on error. */
int sb_v8_file_get(struct sb_image *image, struct sb_v8_file *ret_file, struct sb_str *why);

/* A piece of generated code. The last ones that were found are cached. */
struct sb_v8_code {
	uint64_t object, head[2];  /* address; first words, to see that it is still there */
	uint64_t begin, end;	   /* instructions */
	uint64_t positions, deopt; /* addresses of its tables; 0: none */
	uint64_t shared;	   /* SharedFunctionInfo of optimised code; 0: not known */
	bool is_baseline;
};
#define SB_V8_CODES_MAX 64

/* The offsets at which the lines of a source end. */
struct sb_v8_lines {
	uint64_t source; /* address of the characters; when they are moved, they are read again */
	uint32_t length;
	SB_VEC(uint32_t) ends;
};
#define SB_V8_LINES_MAX 8

/* rt->state */
struct sb_v8 {
	const struct sb_memory *memory;
	struct sb_v8_file file;
	struct sb_v8_layout at; /* a copy of file.layout */
	struct sb_v8_code code[SB_V8_CODES_MAX];
	size_t next_code;
	uint64_t code_map; /* tagged map of code objects, once one was found; 0: not known */
	struct sb_v8_lines lines[SB_V8_LINES_MAX];
	size_t next_lines;
};

/* Free the cached lines, all that @v8 owns, for detach(). @v8 itself stays with the caller, and is
 * not to be used again without being zeroed; accepts one of zeroes. */
void sb_v8_release(struct sb_v8 *v8);

/* Read a word, or a tagged pointer (returned without its tag). Return: 0; -EFAULT; -EBADMSG: it is
 * no pointer. */
int sb_v8_word(const struct sb_v8 *v8, uint64_t addr, uint64_t *ret);
int sb_v8_pointer(const struct sb_v8 *v8, uint64_t addr, uint64_t *ret_object);
/* Read a small integer (Smi). Return: 0; -EFAULT; -EBADMSG: it is none. */
int sb_v8_smi_at(const struct sb_v8 *v8, uint64_t addr, int32_t *ret);
/* Return: the object's instance type, or -1 when it cannot be read. */
int32_t sb_v8_type_of(const struct sb_v8 *v8, uint64_t object);
/* Return: whether the object begins with a valid map, so that it is one of V8's heap. */
bool sb_v8_is_map_of(const struct sb_v8 *v8, uint64_t object);
/* Append the String @object to @str as UTF-8, cut at a fixed length, with '?' for control
 * characters. Return: 0; -EFAULT; -EBADMSG: it is none; -ENOMEM. */
int sb_v8_string(const struct sb_v8 *v8, uint64_t object, struct sb_str *str);

/* Append the name of a function to @name, empty before; "(anonymous)" if it has none. Return: 0;
 * -EFAULT; -EBADMSG; -ENOMEM. */
int sb_v8_function_name(const struct sb_v8 *v8, uint64_t shared, struct sb_str *name);
/* Append the name of the script that a function is in; nothing when there is none or it cannot be
 * found. Return: 0; -EFAULT; -EBADMSG; -ENOMEM. */
int sb_v8_function_file(const struct sb_v8 *v8, uint64_t shared, struct sb_str *file);
/* Return: the line, from 1, of offset @at in its script's source; of a source that is a part of a
 * file, the line in the file. @at: sb_v8_place.offset, or that of sb_v8_function_start(), in UTF-16
 * units. 0: not known, also when @at is negative or memory cannot be read. */
uint32_t sb_v8_function_line(struct sb_v8 *v8, uint64_t shared, int64_t at);
/* Return: where the function begins, as an offset for sb_v8_function_line(): in UTF-16 units from
 * the beginning of its script's source; -1: not known, also when memory cannot be read. */
int64_t sb_v8_function_start(const struct sb_v8 *v8, uint64_t shared);
/* Get the address of a function's BytecodeArray. Return: 0; -EFAULT; -EBADMSG, also when it has
 * none. */
int sb_v8_function_bytecode(const struct sb_v8 *v8, uint64_t shared, uint64_t *ret_bytecode);

/* A place in a source. */
struct sb_v8_place {
	int64_t offset;	 /* in UTF-16 units from the beginning of the source; -1: not known */
	int32_t inlined; /* index of the inlined function; -1: the compiled function itself */
};
/* Look up the code offset @at in a table of source positions. @table: address of a ByteArray.
 * Return: 0; -ENODATA: there is none before @at, or it cannot be read. */
int sb_v8_position(const struct sb_v8 *v8, uint64_t table, int64_t at, struct sb_v8_place *ret);

/* Find the code object that holds @pc. *ret_code belongs to @v8 and is valid until the next call.
 * Return: 0; -ENOENT: there is none, or it cannot be read. */
int sb_v8_code_find(struct sb_v8 *v8, uint64_t pc, const struct sb_v8_code **ret_code);
/* Get the inlined function with index @inlined (sb_v8_place.inlined) of optimised code, and the
 * place that it was called from, which may be in another inlined function: ask again, until inlined
 * is -1. @code: of sb_v8_code_find(). Return: 0; -EBADMSG: there is none, or it cannot be read. */
int sb_v8_code_inlined(const struct sb_v8 *v8, const struct sb_v8_code *code, int32_t inlined,
		       uint64_t *ret_shared, struct sb_v8_place *ret_caller);
/* Return: the bytecode offset that @pc in baseline code belongs to; -1: not known. @code: of
 * sb_v8_code_find(); @bytecode: the BytecodeArray, of sb_v8_function_bytecode(). */
int64_t sb_v8_code_bytecode_at(const struct sb_v8 *v8, const struct sb_v8_code *code, uint64_t pc,
			       uint64_t bytecode);

#endif
