// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* V8 in the memory of an adversary: its walk as in the kernel, and the names of its frames. */
#include "interp/core/step.h"
#include "interp/v8/v8_priv.h"
#include "interp_input.h"

#include "bpf/step/sb_step_v8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fields lie where v8_layout.c lets them: is_in_bounds(). */
static void bound_layout(struct sb_v8_layout *at)
{
	int32_t *const fields[] = {
		&at->map_type,		 &at->string_length,	&at->seq_chars,
		&at->cons_first,	 &at->cons_second,	&at->sliced_parent,
		&at->sliced_offset,	 &at->thin_actual,	&at->external_resource,
		&at->array_length,	 &at->array_data,	&at->script_name,
		&at->script_source,	 &at->script_line_ends, &at->bytecode_data,
		&at->code_start,	 &at->code_size,	&at->code_flags,
		&at->bytecode_positions, &at->code_deopt,	&at->code_positions,
		&at->wrapper_shared,	 &at->stream_start,
	};
	int32_t *const words[] = { &at->scope_locals, &at->scope_first, &at->deopt_literals,
				   &at->deopt_inlining, &at->deopt_shared };
	int32_t *const shared[] = { &at->function_shared, &at->shared_name, &at->shared_script,
				    &at->shared_flags };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(fields); i++)
		*fields[i] &= 255;
	for (i = 0; i < SB_ARRAY_SIZE(words); i++)
		*words[i] &= 31;
	for (i = 0; i < SB_ARRAY_SIZE(shared); i++)
		*shared[i] = i ? 16 + (*shared[i] - 16u) % 41 : 8 + (*shared[i] - 8u) % 25;
	at->shared_builtin = at->shared_name - 8;
}

static void take_layout(struct sb_v8 *v8, const struct input_head *head)
{
	_Static_assert(sizeof(v8->at) <= INPUT_LAYOUT_BYTES - 8, "");
	memcpy(&v8->at, head->layout, offsetof(struct sb_v8_layout, has_streams));
	v8->at.has_streams = head->version & 1;
	bound_layout(&v8->at);
	v8->file.layout = v8->at;
	v8->file.nr_bytecodes = SB_V8_BYTECODES_MAX;
	memset(v8->file.bytecode_sizes, 1 + (head->version >> 1 & 3),
	       sizeof(v8->file.bytecode_sizes));
	memcpy(&v8->file.builtins, head->regs, sizeof(v8->file.builtins));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input input;
	static struct sb_v8 v8;
	struct input_run run;
	struct sb_runtime rt = { .ops = &sb_runtime_v8, .memory = &run.memory, .state = &v8 };

	if (!input_init(&input, data, size))
		return 0;
	input_begin(&run, &input, SB_RUNTIME_V8);
	memset(&v8, 0, sizeof(v8));
	v8.memory = &run.memory;
	take_layout(&v8, &input.head);
	rt.wants_lines = true;
	input_by_native(&run, (input_native_fn)sb_v8_native, NULL);
	input_check(&run);
	input_describe(&run, &rt);
	sb_v8_release(&v8);
	return 0;
}
