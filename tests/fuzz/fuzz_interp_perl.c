// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Perl in the memory of an adversary: its walk as in the kernel, and the names of its frames. */
#include "interp/perl/perl_priv.h"
#include "interp_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input input;
	struct input_run run;
	struct sb_perl perl = {};
	struct sb_runtime rt = { .ops = &sb_runtime_perl, .memory = &run.memory, .state = &perl };

	if (!input_init(&input, data, size))
		return 0;
	input_begin(&run, &input, SB_RUNTIME_PERL);
	rt.conf = run.walk->conf;
	rt.wants_lines = true;
	perl.minor = input.head.version & 127;
	perl.has_threads = input.head.version & 128;
	input_by_state(&run, sb_runtime_perl.begin, sb_runtime_perl.step);
	input_check(&run);
	input_describe(&run, &rt);
	return 0;
}
