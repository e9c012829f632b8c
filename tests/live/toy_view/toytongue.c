// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runtime "toytongue" of tests/live/toy_view.py: found by its symbol, and refused with a reason. */
#include <errno.h>

#include "base/str.h"
#include "interp/core/runtime.h"
#include "interp/core/runtimes.h"

static int attach(struct sb_runtime *rt)
{
	int err = sb_str_add(&rt->why, "toys have no frames");

	return err ? err : -ENOTSUP;
}

const struct sb_runtime_ops sb_runtime_toytongue = {
	.runtime = SB_RUNTIME_TOYTONGUE,
	.name = "toytongue",
	.is_for_any_machine = true,
	.markers = { "toytongue_main_loop" },
	.attach = attach,
};
