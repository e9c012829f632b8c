// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* CPython. */
#include <errno.h>
#include <stdio.h>

#include "interp/runtime.h"
#include "interp/runtimes.h"
#include "interp/step.h"
#include "sb_step_python.h"

#define NAME_BYTES_MAX 1024u

static int attach(struct sb_runtime *rt)
{
	struct sb_python_conf *conf = (struct sb_python_conf *)rt->conf.word;
	uint64_t runtime, version_at, loop, size;
	uint32_t version;

	if (sb_image_symbol(rt->image, "_PyRuntime", &runtime, NULL) ||
	    sb_image_symbol(rt->image, "Py_Version", &version_at, NULL) ||
	    sb_image_read(rt->image, version_at, &version, sizeof(version)) ||
	    version >> 16 != 0x030b) {
		sb_str_addf(&rt->why, "this version of Python is not known (%s)",
			    sb_image_build_id(rt->image));
		return -ENOTSUP;
	}
	snprintf(rt->version, sizeof(rt->version), "%u.%u.%u", version >> 24, version >> 16 & 255,
		 version >> 8 & 255);
	*conf = (struct sb_python_conf){
		.key_addr = runtime + 596,
		.cframe = 56,
		.current = 8,
		.code = 32,
		.back = 48,
		.instr = 56,
		.is_entry = 68,
		.code_adaptive = 184,
		.first_line = 72,
	};
	sb_threads_tsd(rt->maps, &conf->tsd);
	rt->conf.flags = SB_INTERP_BY_STATE;
	if (!sb_image_symbol(rt->image, "_PyEval_EvalFrameDefault", &loop, &size))
		rt->anchors[rt->nr_anchors++] = (struct sb_range){ loop, loop + size };
	return 0;
}

/* A string of ASCII characters: PyASCIIObject. */
static int add_string(struct sb_runtime *rt, uint64_t addr, struct sb_str *str)
{
	uint64_t len;
	int err = sb_memory_u64(rt->memory, addr + 16, &len);

	return err ? err : sb_memory_text(rt->memory, addr + 48, len, NAME_BYTES_MAX, str);
}

static int describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	uint64_t name, file;
	int err = sb_memory_u64(rt->memory, frame->obj + 128, &name);

	if (!err)
		err = sb_memory_u64(rt->memory, frame->obj + 112, &file);
	if (!err)
		err = add_string(rt, name, &text->name);
	if (!err)
		err = add_string(rt, file, &text->file);
	return err;
}

static int begin(struct sb_interp_walk *walk, void *memory)
{
	return sb_python_begin(walk, memory);
}

static int step(struct sb_interp_walk *walk, void *memory)
{
	return sb_python_step(walk, memory);
}

static const char *const anchors[] = { "_PyEval_EvalFrameDefault", NULL };
static const char *const glue[] = { "_PyObject_Vectorcall*", "PyEval_EvalCode", "_PyEval_Vector",
				    "_PyFunction_Vectorcall", NULL };

const struct sb_runtime_ops sb_runtime_python = {
	.runtime = SB_RUNTIME_PYTHON,
	.name = "python",
	.markers = { "_PyRuntime", "_PyThreadState_Current" },
	.attach = attach,
	.describe = describe,
	.begin = begin,
	.step = step,
	.anchors = anchors,
	.glue = glue,
};
