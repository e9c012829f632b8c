// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "alloc": what programs allocate, by the stack of the allocation. The programs are those of the view
 * "trace", at the places that events/allocator.h finds. */
#include "views/skel.h"
#include "views/views.h"

const struct sb_view sb_view_alloc = {
	.kind = SB_VIEW_KIND(alloc),
	.slots = 1u << SB_SCRATCH_TRACE | 1u << SB_SCRATCH_PROBE,
	.losses = 1ull << SB_STAT_TRACE_BUSY,
	.prefix = "trace_",
	.divisor = 1,
	.unit_of = sb_held_unit_of,
	.trim = sb_io_layer_trim,
	.check = sb_held_check,
	.prepare = sb_trace_prepare,
	.attach = sb_trace_attach,
	.attaches = sb_trace_attaches,
	.thin = sb_view_thin_events,
};
