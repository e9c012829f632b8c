// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "interp/core/interp.h"
#include "interp/core/runtime.h"
#include "interp/core/runtimes.h"

const struct sb_runtime_ops *const sb_runtimes[] = {
#define SB_RUNTIME(number, name, how) &sb_runtime_##name,
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME
	&(const struct sb_runtime_ops){}, /* the end */
};

const struct sb_runtime_ops *sb_runtime_find(uint32_t runtime)
{
	size_t i;

	for (i = 0; sb_runtimes[i]->runtime; i++)
		if (sb_runtimes[i]->runtime == runtime)
			return sb_runtimes[i];
	return NULL;
}

const char *sb_interp_runtime_name(size_t i)
{
	return i + 1 < sizeof(sb_runtimes) / sizeof(sb_runtimes[0]) ? sb_runtimes[i]->name : NULL;
}

/* fnmatch(3) takes long to see that the first characters differ, and most globs are the beginning
 * of a name. */
static bool is_match(const char *glob, const char *name)
{
	while (*glob && *glob == *name && *glob != '*') {
		glob++;
		name++;
	}
	if (*glob == '*')
		return !glob[1] || !fnmatch(glob, name, 0);
	return *glob == '?' ? !fnmatch(glob, name, 0) : !*glob && !*name;
}

bool sb_runtime_is_glue(uint32_t runtime, const char *name)
{
	const struct sb_runtime_ops *ops = sb_runtime_find(runtime);
	size_t i;

	for (i = 0; ops && ops->glue && ops->glue[i]; i++)
		if (is_match(ops->glue[i], name))
			return true;
	return false;
}

/* What compilers append to the names of clones and pieces begins with a dot. */
bool sb_runtime_is_anchor(const struct sb_runtime_ops *ops, const char *name)
{
	size_t i;

	for (i = 0; ops->anchors && ops->anchors[i]; i++) {
		size_t len = strlen(ops->anchors[i]);

		if (!strncmp(name, ops->anchors[i], len) && (!name[len] || name[len] == '.'))
			return true;
	}
	return false;
}

int sb_runtime_refuse(struct sb_runtime *rt, const char *why)
{
	int err;

	sb_str_clear(&rt->why);
	err = sb_str_addf(&rt->why, "%s (%s)", why, sb_image_build_id(rt->image));
	return err ? err : -ENOTSUP;
}

int sb_runtime_doubt(struct sb_runtime *rt)
{
	int err = sb_runtime_refuse(rt, "its memory does not match the layout of this version");

	return err == -ENOTSUP ? -EBADMSG : err;
}

void sb_runtime_free_state(struct sb_runtime *rt)
{
	free(rt->state);
	rt->state = NULL;
}

bool sb_runtime_walk(const struct sb_runtime *rt, struct sb_interp_walk *walk)
{
	struct sb_memory_recent recent = { .nr = 0 };
	struct sb_memory memory = *rt->memory;
	int i;

	/* A walker reads field by field, and frames lie close together. */
	memory.recent = &recent;
	walk->status = SB_STACK_DEPTH;
	if (rt->ops->begin(walk, &memory) != SB_STEP_GO_ON)
		return false;
	for (i = 0; i < SB_INTERP_STEPS_MAX; i++)
		if (rt->ops->step(walk, &memory) != SB_STEP_GO_ON)
			break;
	return true;
}
