// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Offsets of fields in V8's objects. V8 exports them as symbols v8dbg_*, which its
 * tools/gen-postmortem-metadata.py makes for debuggers; they survive stripping, because they are
 * exported. What some versions leave out was looked up in the sources of V8 9.4, 10.2, 11.3, 12.4
 * and 13.6, and confirmed in processes.
 */
#include <errno.h>
#include <string.h>

#include "interp/core/image.h"
#include "interp/v8/v8_priv.h"

#define PREFIX	      "v8dbg_"
#define SYMBOL_NR_MAX 4096

/* A symbol; where the name ends in "__", any C++ type may follow. */
struct row {
	const char *name;
	size_t field;
	int32_t otherwise; /* where it is not said; REQUIRED */
};
#define REQUIRED INT32_MIN
#define ROW(name, field, otherwise)                                     \
	{                                                               \
		name, offsetof(struct sb_v8_layout, field), (otherwise) \
	}

static const struct row rows[] = {
	ROW("SmiShiftSize", smi_shift, REQUIRED),
	ROW("TaggedSize", tagged_size, REQUIRED),
	ROW("off_fp_function", fp_function, REQUIRED),
	ROW("off_fp_context", fp_context, REQUIRED),
	ROW("off_fp_bytecode_array", fp_bytecode, -32),
	ROW("off_fp_bytecode_offset", fp_bytecode_offset, -40),
	ROW("frametype_BuiltinExitFrame", frame_builtin_exit, REQUIRED),
	ROW("type_JSFunction__", type_function, REQUIRED),
	ROW("FirstJSFunctionType", type_function_first, -1),
	ROW("LastJSFunctionType", type_function_last, -1),
	ROW("type_SharedFunctionInfo__", type_shared, REQUIRED),
	ROW("type_ScopeInfo__", type_scope_info, REQUIRED),
	ROW("type_Script__", type_script, REQUIRED),
	ROW("type_BytecodeArray__", type_bytecode, REQUIRED),
	ROW("type_Code__", type_code, REQUIRED),
	ROW("type_InstructionStream__", type_instructions, -1),
	ROW("type_DebugInfo__", type_debug_info, -1),
	ROW("type_Map__", type_map, REQUIRED),
	ROW("FirstNonstringType", type_nonstring, REQUIRED),
	ROW("type_InterpreterData__", type_interpreter_data, -1),
	ROW("type_BaselineData__", type_baseline_data, -1),
	ROW("type_TrustedByteArray__", type_trusted_bytes, -1),
	ROW("type_SharedFunctionInfoWrapper__", type_shared_wrapper, -1),
	ROW("class_Map__instance_type__", map_type, REQUIRED),
	ROW("class_String__length__", string_length, REQUIRED),
	ROW("class_SeqOneByteString__chars__", seq_chars, REQUIRED),
	ROW("class_ConsString__first__", cons_first, REQUIRED),
	ROW("class_ConsString__second__", cons_second, REQUIRED),
	ROW("class_SlicedString__parent__", sliced_parent, REQUIRED),
	ROW("class_SlicedString__offset__", sliced_offset, REQUIRED),
	ROW("class_ThinString__actual__", thin_actual, REQUIRED),
	ROW("class_ExternalString__resource__", external_resource, REQUIRED),
	ROW("class_FixedArrayBase__length__", array_length, REQUIRED),
	ROW("class_FixedArray__data__", array_data, REQUIRED),
	ROW("class_JSFunction__shared__", function_shared, REQUIRED),
	ROW("class_SharedFunctionInfo__name_or_scope_info__", shared_name, REQUIRED),
	/* "__script__...", or "__script_or_debug_info__..." */
	ROW("class_SharedFunctionInfo__script__", shared_script, REQUIRED),
	ROW("class_SharedFunctionInfo__script_or_debug_info__", shared_script, REQUIRED),
	ROW("class_SharedFunctionInfo__flags__", shared_flags, REQUIRED),
	ROW("class_Script__name__", script_name, REQUIRED),
	ROW("class_Script__source__", script_source, 8),
	ROW("class_Script__line_ends__", script_line_ends, REQUIRED),
	ROW("class_BytecodeArray__data__", bytecode_data, 54),
	ROW("scopeinfo_idx_ncontextlocals", scope_locals, REQUIRED),
	ROW("scopeinfo_idx_first_vars", scope_first, REQUIRED),
	ROW("class_Code__instruction_start__", code_start, 40),
	ROW("class_Code__instruction_size__", code_size, 56),
	ROW("class_Code__flags__", code_flags, 48),
	ROW("class_InstructionStream__instruction_start__", stream_start, -1),
	ROW("CodeKindBaseline", kind_baseline, 11),
	ROW("DeoptimizationDataLiteralArrayIndex", deopt_literals, 2),
	ROW("DeoptimizationDataInliningPositionsIndex", deopt_inlining, 7),
	ROW("DeoptimizationDataSharedFunctionInfoIndex", deopt_shared, 6),
	ROW("DeoptimizationDataWrappedSharedFunctionInfoIndex", deopt_shared, 6),
};
#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

struct reading {
	struct sb_image *image;
	struct sb_v8_layout *layout;
	size_t nr_symbols;
};

static int32_t *field_of(struct sb_v8_layout *layout, const struct row *row)
{
	return (int32_t *)((char *)layout + row->field);
}

static bool is_called(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return len > 2 && sb_streq(name + len - 2, "__") ? !strncmp(symbol, name, len)
							 : sb_streq(symbol, name);
}

static int read_symbol(void *arg, const char *name, uint64_t addr, uint64_t size)
{
	struct reading *reading = arg;
	int32_t value;
	size_t i;

	(void)size;
	if (++reading->nr_symbols > SYMBOL_NR_MAX)
		return -E2BIG;
	name += strlen(PREFIX);
	for (i = 0; i < NR_ROWS; i++) {
		if (!is_called(name, rows[i].name))
			continue;
		if (sb_image_read(reading->image, addr, &value, sizeof(value)))
			return -ENOTSUP;
		*field_of(reading->layout, &rows[i]) = value;
	}
	return 0;
}

static int fill_in(struct sb_v8_layout *layout, struct sb_str *why)
{
	size_t i;

	for (i = 0; i < NR_ROWS; i++) {
		int32_t *field = field_of(layout, &rows[i]);

		if (*field != REQUIRED)
			continue;
		if (rows[i].otherwise == REQUIRED) {
			sb_str_addf(why, "it does not export '%s%s...'", PREFIX, rows[i].name);
			return -ENOTSUP;
		}
		*field = rows[i].otherwise;
	}
	return 0;
}

static void derive(struct sb_v8_layout *at)
{
	/* V8 12 moved what the sandbox trusts, and the tables of Code with it. */
	bool has_trusted = at->type_trusted_bytes >= 0;

	at->has_streams = at->type_instructions >= 0;
	if (at->type_function_first < 0) {
		at->type_function_first = at->type_function;
		at->type_function_last = at->type_function + 14;
	}
	at->shared_builtin = at->shared_name - 8;
	at->bytecode_positions = has_trusted ? 24 : 32;
	at->code_deopt = has_trusted ? 8 : 16;
	at->code_positions = has_trusted ? 16 : 24;
	at->wrapper_shared = 8;
}

/* Offsets lie within objects, which are small: none of them makes us read far away. */
static bool is_in_bounds(const struct sb_v8_layout *at)
{
	const int32_t fields[] = {
		at->map_type,	       at->string_length, at->seq_chars,	at->cons_first,
		at->cons_second,       at->sliced_parent, at->sliced_offset,	at->thin_actual,
		at->external_resource, at->array_length,  at->array_data,	at->shared_name,
		at->script_name,       at->script_source, at->script_line_ends, at->bytecode_data,
		at->code_start,	       at->code_size,	  at->code_flags,
	};
	/* Numbers of words. */
	const int32_t words[] = {
		at->scope_locals,   at->scope_first,  at->deopt_literals,
		at->deopt_inlining, at->deopt_shared,
	};
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i] < 0 || fields[i] > 256)
			return false;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i] < 0 || words[i] > 256 / 8)
			return false;
	if (at->type_function > UINT16_MAX)
		return false;
	/* What the kernel's walker reads at once: 40 and 64 bytes. */
	return at->function_shared >= 8 && at->function_shared <= 32 && at->shared_name >= 16 &&
	       at->shared_name <= 56 && at->shared_script >= 8 && at->shared_script <= 56 &&
	       at->shared_flags >= 8 && at->shared_flags <= 56;
}

int sb_v8_layout_read(struct sb_image *image, struct sb_v8_layout *ret_layout, struct sb_str *why)
{
	struct sb_v8_layout layout;
	struct reading reading = { .image = image, .layout = &layout };
	size_t i;
	int err;

	memset(&layout, 0, sizeof(layout));
	for (i = 0; i < NR_ROWS; i++)
		*field_of(&layout, &rows[i]) = REQUIRED;
	err = sb_image_symbols(image, PREFIX, read_symbol, &reading);
	if (err)
		return err;
	err = fill_in(&layout, why);
	if (err)
		return err;
	if (layout.smi_shift != 31 || layout.tagged_size != 8) {
		sb_str_add(why, "it uses compressed pointers, which stackbpf does not support");
		return -ENOTSUP;
	}
	if (layout.fp_function != -16 || layout.fp_context != -8 || layout.fp_bytecode != -32 ||
	    layout.fp_bytecode_offset != -40 || !is_in_bounds(&layout)) {
		sb_str_add(why, "the layout of its frames or objects is not known");
		return -ENOTSUP;
	}
	derive(&layout);
	*ret_layout = layout;
	return 0;
}
