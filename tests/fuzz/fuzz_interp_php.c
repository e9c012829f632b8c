// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* PHP in the memory of an adversary: its walk as in the kernel, and the names of its frames. */
#include "interp/core/step.h"
#include "interp/php/php_priv.h"
#include "interp_input.h"

#include "bpf/step/sb_step_php.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input input;
	struct input_run run;
	struct sb_runtime rt = { .ops = &sb_runtime_php, .memory = &run.memory };

	if (!input_init(&input, data, size))
		return 0;
	input_begin(&run, &input, SB_RUNTIME_PHP);
	rt.conf = run.walk->conf;
	rt.wants_lines = true;
	input_by_native(&run, (input_native_fn)sb_php_native, NULL);
	must(!run.walk->nr_frames); /* it knows how to unwind code, and has no frames there */
	input_by_state(&run, sb_runtime_php.begin, sb_runtime_php.step);
	input_check(&run);
	input_describe(&run, &rt);
	return 0;
}
