// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Java in the memory of an adversary: its walk as in the kernel, and the names of its frames. */
#include "interp/core/step.h"
#include "interp/hotspot/hotspot_priv.h"
#include "interp_input.h"

#include "bpf/step/sb_step_hotspot.h"

/* Where check_layout() lets fields lie. */
#define OFFSET_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void bound_layout(struct sb_hotspot_layout *layout)
{
	uint64_t *word = (uint64_t *)layout;
	size_t i;

	for (i = 0; i < sizeof(*layout) / sizeof(*word); i++)
		if (word[i] != SB_HOTSPOT_NONE)
			word[i] %= OFFSET_MAX + 1;
	if (layout->size_pc < 8 || layout->size_pc == SB_HOTSPOT_NONE)
		layout->size_pc = 16;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input input;
	struct input_run run;
	struct sb_hotspot hs = {};
	struct sb_runtime rt = { .ops = &sb_runtime_hotspot, .memory = &run.memory, .state = &hs };

	_Static_assert(sizeof(hs.layout) <= INPUT_LAYOUT_BYTES, "");
	if (!input_init(&input, data, size))
		return 0;
	input_begin(&run, &input, SB_RUNTIME_HOTSPOT);
	memcpy(&hs.layout, input.head.layout, sizeof(hs.layout));
	bound_layout(&hs.layout);
	hs.major = input.head.version;
	rt.conf = run.walk->conf;
	rt.wants_lines = true;
	input_by_native(&run, (input_native_fn)sb_hotspot_native, NULL);
	input_check(&run);
	input_describe(&run, &rt);
	return 0;
}
