// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "views/skel.h"
#include "views/view.h"
#include "views/views.h"
/* Generated: the same without the programs that look at files. */
#include "sampler_base.skel.h"

/* The variables of the smaller object are the first of the larger one, in the same order. */
_Static_assert(sizeof(struct sampler_base_bpf__rodata) <= sizeof(struct sampler_bpf__rodata) &&
		       offsetof(struct sampler_base_bpf__rodata, cfg_sides) ==
			       offsetof(struct sampler_bpf__rodata, cfg_sides) &&
		       offsetof(struct sampler_base_bpf__rodata, cfg_sched_states) ==
			       offsetof(struct sampler_bpf__rodata, cfg_sched_states),
	       "settings lie at the same places");
_Static_assert(sizeof(struct sampler_base_bpf__bss) <= sizeof(struct sampler_bpf__bss) &&
		       offsetof(struct sampler_base_bpf__bss, end_ns) ==
			       offsetof(struct sampler_bpf__bss, end_ns) &&
		       offsetof(struct sampler_base_bpf__bss, sched_nr_owing) ==
			       offsetof(struct sampler_bpf__bss, sched_nr_owing),
	       "variables lie at the same places");

static bool is_of_files(const char *name)
{
	const struct sb_view *view;
	size_t i;

	for (i = 0; (view = sb_view_at(i)); i++)
		if (view->needs_file_object && sb_begins(name, view->prefix))
			return true;
	return false;
}

/* Make the skeleton one of the smaller object, without the programs and maps of views that look at
 * files. */
static void leave_out_files(struct bpf_object_skeleton *skeleton)
{
	int i, nr = 0;

	for (i = 0; i < skeleton->map_cnt; i++)
		if (!is_of_files(skeleton->maps[i].name))
			skeleton->maps[nr++] = skeleton->maps[i];
	skeleton->map_cnt = nr;
	for (i = 0, nr = 0; i < skeleton->prog_cnt; i++)
		if (!is_of_files(skeleton->progs[i].name))
			skeleton->progs[nr++] = skeleton->progs[i];
	skeleton->prog_cnt = nr;
	skeleton->data = (void *)sampler_base_bpf__elf_bytes(&skeleton->data_sz);
}

/* Return: whether the map @name belongs to one of @views, or to no view. */
static bool is_map_used(const struct sb_views *views, const char *name)
{
	const struct sb_view *view;
	bool is_of_view = false;
	size_t i;

	for (i = 0; i < views->nr; i++)
		if (sb_begins(name, views->at[i]->prefix))
			return true;
	for (i = 0; (view = sb_view_at(i)); i++)
		is_of_view |= sb_begins(name, view->prefix);
	return !is_of_view;
}

/* Do not create the maps of views that do not run: those of `latency` take 5 MB. */
static int leave_out_maps(const struct sampler_bpf *skel, const struct sb_views *views)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, skel->obj)
		if (!err && !is_map_used(views, bpf_map__name(map)))
			err = bpf_map__set_autocreate(map, false);
	return err;
}

static bool have_files(const struct sb_views *views)
{
	bool have = false;
	size_t i;

	for (i = 0; i < views->nr; i++)
		have |= views->at[i]->needs_file_object;
	return have;
}

/* libbpf wants the path of the types when it opens the object, and reads them when it loads it. */
static int open_object(struct sampler_bpf *skel, int types_fd)
{
	char path[sizeof("/proc/self/fd/-2147483648")];
	struct bpf_object_open_opts opts = { .sz = sizeof(opts), .btf_custom_path = path };
	int err;

	err = sb_attach_types_take_over();
	if (err)
		return err;
	if (types_fd < 0)
		return bpf_object__open_skeleton(skel->skeleton, NULL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", types_fd);
	err = bpf_object__open_skeleton(skel->skeleton, &opts);
	return err ? err
		   : sb_kernel_types_write(types_fd, bpf_object__btf(skel->obj),
					   sb_attach_types_of(skel->obj));
}

struct sampler_bpf *sb_views_open(const struct sb_views *views, int *ret_types_fd)
{
	struct sampler_bpf *skel = calloc(1, sizeof(*skel));
	int err = skel ? sampler_bpf__create_skeleton(skel) : -ENOMEM;

	if (!err && !have_files(views))
		leave_out_files(skel->skeleton);
	/* Without it, libbpf searches all types of the kernel, which takes longer. */
	*ret_types_fd = memfd_create("stackbpf-types", MFD_CLOEXEC);
	if (!err)
		err = open_object(skel, *ret_types_fd);
	if (!err)
		err = leave_out_maps(skel, views);
	if (!err)
		return skel;
	sb_closep(ret_types_fd);
	*ret_types_fd = -1;
	if (skel)
		sampler_bpf__destroy(skel);
	errno = -err;
	return NULL;
}
