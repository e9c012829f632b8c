/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Spans of --in: which programs note their beginnings and ends, for a run with sb_view_opts.in.
 * They run beside those of the views. The user half of bpf/core/span.bpf.c; what samples in spans
 * are worth is decided in capture/spans.h.
 *
 * Order: sb_span_prepare(), the load, sb_span_attach() before the programs of the views are
 * attached.
 * Thread: the session's. Pointers are not NULL, and none is kept. "A negative errno" is -ENOMEM or
 * of libbpf or bpf(2); after it the BPF object is only to be destroyed, with all links.
 */
#ifndef SB_VIEWS_SPAN_H
#define SB_VIEWS_SPAN_H

#include "views/view.h"

/* After the BPF object is opened and before it is loaded: switch on the programs that spans need,
 * and write the settings from @opts. Does nothing without spans. Return: 0 or a negative errno. */
int sb_span_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);
/* After it is loaded: attach the programs that spans need. Does nothing without spans. Links are
 * appended to @links, which owns them, on failure too. Return: 0; or a negative errno, with
 * @reason, also -EOPNOTSUPP when the kernel cannot hook any of the functions. */
int sb_span_attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		   struct sb_reason *reason);
/* Return: whether sb_span_attach() attaches @prog, so that the session does not. */
bool sb_span_attaches(const struct sampler_bpf *skel, const struct bpf_program *prog);

#endif
