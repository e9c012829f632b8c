// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What views do with programs and links. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "views/skel.h"
#include "views/views.h"

int sb_view_switch_on(struct bpf_program *const *programs, size_t nr)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		err = bpf_program__set_autoload(programs[i], true);
	return err;
}

int sb_view_keep_link(sb_vec_link *links, struct bpf_link *link)
{
	int err = link ? sb_vec_push(links, link) : -errno;

	if (err && link)
		bpf_link__destroy(link);
	return err;
}

uint64_t sb_view_thin_events(struct sampler_bpf *skel, const struct sb_view_opts *opts,
			     uint32_t step, uint64_t mean)
{
	skel->bss->thin_weight = step ? mean << step : 0;
	return skel->bss->thin_weight;
}

bool sb_view_has_tracepoint(const char *name)
{
	return libbpf_find_vmlinux_btf_id(name, BPF_TRACE_RAW_TP) > 0;
}
