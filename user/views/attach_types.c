// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs at tracepoints with types ("tp_btf/NAME") and iterators ("iter/NAME") are loaded for a
 * type of the kernel. libbpf looks it up by its name, for which it reads and parses all types of
 * the kernel: 8 ms for each start. kernel_types.c goes through them anyway, so it finds these as
 * well.
 *
 * libbpf knows from the type of a program that it has to parse. So here these programs have that of
 * programs at raw tracepoints until they are loaded, and become what they are in the callback that
 * libbpf calls right before (libbpf_register_prog_handler()).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "views/views.h"

static const struct kind {
	const char *section, *prefix; /* the latter of the type's name */
	enum bpf_attach_type attach_type;
} kinds[] = {
	{ "tp_btf/", SB_TRACEPOINT_TYPE, BPF_TRACE_RAW_TP },
	{ "iter/", SB_ITERATOR_TYPE, BPF_TRACE_ITER },
};

/* Those of the object that was opened last. */
static struct sb_kernel_targets targets;

/* Return: 0, with the name of the type that @prog is loaded for; -ENOENT: it is loaded for none;
 * -E2BIG. */
static int name_of(const struct bpf_program *prog, char *ret_name, size_t size)
{
	const char *section = bpf_program__section_name(prog);
	size_t i, len;

	for (i = 0; i < SB_ARRAY_SIZE(kinds); i++) {
		len = strlen(kinds[i].section);
		if (strncmp(section, kinds[i].section, len))
			continue;
		return (size_t)snprintf(ret_name, size, "%s%s", kinds[i].prefix, section + len) <
				       size
			       ? 0
			       : -E2BIG;
	}
	return -ENOENT;
}

static const struct sb_kernel_target *find(const char *name)
{
	size_t i;

	for (i = 0; i < targets.nr; i++)
		if (!strcmp(targets.at[i].name, name))
			return &targets.at[i];
	return NULL;
}

bool sb_view_has_tracepoint(const char *name)
{
	char type[sizeof(targets.at[0].name)];
	const struct sb_kernel_target *target;

	snprintf(type, sizeof(type), "%s%s", SB_TRACEPOINT_TYPE, name);
	target = targets.are_found ? find(type) : NULL;
	return target ? target->id != 0 : libbpf_find_vmlinux_btf_id(name, BPF_TRACE_RAW_TP) > 0;
}

static int prepare_load(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	const struct kind *kind = &kinds[cookie];
	const char *section = bpf_program__section_name(prog);
	const struct sb_kernel_target *target;
	char name[sizeof(targets.at[0].name)];
	int id, err = name_of(prog, name, sizeof(name));

	if (err)
		return err;
	target = find(name);
	id = target ? (int)target->id : 0;
	if (!id)
		id = libbpf_find_vmlinux_btf_id(section + strlen(kind->section), kind->attach_type);
	if (id < 0)
		return id;
	opts->attach_btf_id = (uint32_t)id;
	return bpf_program__set_type(prog, BPF_PROG_TYPE_TRACING);
}

int sb_attach_types_take_over(void)
{
	static bool is_done;
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_prepare_load_fn = prepare_load);
	int err;

	for (; !is_done && opts.cookie < (long)SB_ARRAY_SIZE(kinds); opts.cookie++) {
		char section[16];

		/* "tp_btf+": also with "/" and more behind it. */
		snprintf(section, sizeof(section), "%s", kinds[opts.cookie].section);
		section[strlen(section) - 1] = '+';
		err = libbpf_register_prog_handler(section, BPF_PROG_TYPE_RAW_TRACEPOINT,
						   kinds[opts.cookie].attach_type, &opts);
		if (err < 0)
			return err;
	}
	is_done = true;
	return 0;
}

/* Since libbpf 1.2, a program whose type was set is of no section any more, so that
 * bpf_program__attach() refuses it. */
struct bpf_link *sb_view_attach(const struct bpf_program *prog)
{
	char name[sizeof(targets.at[0].name)];

	return name_of(prog, name, sizeof(name)) == -ENOENT ? bpf_program__attach(prog)
							    : bpf_program__attach_trace(prog);
}

struct sb_kernel_targets *sb_attach_types_of(const struct bpf_object *object)
{
	struct bpf_program *prog;

	targets.nr = 0;
	targets.are_found = false;
	bpf_object__for_each_program(prog, object) {
		struct sb_kernel_target *target = &targets.at[targets.nr];

		if (targets.nr == SB_ARRAY_SIZE(targets.at))
			break; /* libbpf looks up the others */
		if (name_of(prog, target->name, sizeof(target->name)))
			continue;
		target->id = 0;
		targets.nr++;
	}
	return &targets;
}
