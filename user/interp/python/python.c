// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* CPython: struct sb_runtime_ops, and the steps of attach(). */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "interp/core/runtimes.h"
#include "interp/python/python_priv.h"

_Static_assert(sizeof(struct sb_python_conf) <= sizeof(((struct sb_interp_conf *)0)->word), "");

static void find_anchors(struct sb_runtime *rt, const struct sb_python_layout *layout)
{
	const char *name = layout->version < SB_PYTHON(3, 0) ? "PyEval_EvalFrameEx"
							     : "_PyEval_EvalFrameDefault";
	uint64_t begin, end, size;

	if (sb_image_symbol(rt->image, name, &begin, &size))
		return;
	end = begin + size;
	if (!size && sb_image_function(rt->image, begin, &begin, &end))
		return;
	rt->anchors[0] = (struct sb_range){ begin, end };
	rt->nr_anchors = 1 + sb_image_cold_parts(rt->image, begin, end, rt->anchors + 1,
						 SB_RUNTIME_ANCHORS_MAX - 1);
}

/* Return: 0, -EAGAIN: there is no interpreter yet. */
static int find_main(struct sb_runtime *rt, const struct sb_python_layout *layout,
		     struct sb_python_conf *conf)
{
	/* In _PyRuntime, the oldest interpreter is next to the youngest one. */
	uint64_t at = layout->runtime ? conf->interps + 8 : conf->interps, interp;

	if (sb_memory_u64(rt->memory, at, &interp) || !interp)
		return -EAGAIN;
	conf->main_interp = interp;
	return 0;
}

static int prove(struct sb_runtime *rt, const struct sb_python_layout *layout,
		 struct sb_python_conf *conf)
{
	uint64_t key_addr = layout->runtime + layout->key;
	int err = sb_python_prove(rt, layout);

	/* The code was not understood: the table has an address, too. */
	if (err == -EBADMSG && layout->key && layout->runtime && conf->key_addr != key_addr) {
		conf->flags &= ~(__u32)(SB_PYTHON_TLS_FS | SB_PYTHON_TLS_GOT);
		conf->key_addr = key_addr;
		err = sb_python_prove(rt, layout);
	}
	return err;
}

static int attach_layout(struct sb_runtime *rt, struct sb_python_layout *layout)
{
	struct sb_python_conf *conf = (struct sb_python_conf *)rt->conf.word;
	int err = sb_python_find_layout(rt, layout, conf);

	if (err)
		return err;
	sb_threads_tsd(rt->maps, &conf->tsd);
	rt->conf.flags = SB_INTERP_BY_STATE;
	err = sb_python_find_state(rt, layout, conf);
	if (!err)
		err = find_main(rt, layout, conf);
	if (!err)
		err = prove(rt, layout, conf);
	if (err == -ENOENT || err == -EBADMSG) {
		sb_str_addf(&rt->why,
			    "no thread stack was found at the place where Python "
			    "%s keeps it (%s)",
			    rt->version, sb_image_build_id(rt->image));
		err = err == -ENOENT ? -ENOTSUP : err;
	}
	if (!err && layout->is_assumed)
		sb_str_add(&rt->why, "assumed to be laid out like the last known version");
	return err;
}

static int attach(struct sb_runtime *rt)
{
	sb_cleanup(sb_freep) struct sb_python_layout *layout = calloc(1, sizeof(*layout));
	int err;

	if (!layout)
		return -ENOMEM;
	err = attach_layout(rt, layout);
	if (err)
		return err;
	find_anchors(rt, layout);
	rt->state = sb_take(layout);
	return 0;
}

static int describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	return sb_python_code(rt->memory, rt->state, frame, text);
}

static const char *const anchors[] = { "_PyEval_EvalFrameDefault", NULL };

/*
 * What calls the loop, and what the loop calls to call something: nobody looks for them in a
 * picture. What runs in them at length has names of its own: sorted(), a lock, an import.
 */
static const char *const glue[] = {
	/* the loop's wrappers */
	"_PyEval_EvalFrame", "PyEval_EvalFrame*", "_PyEval_EvalFrame.*", "_PyEval_Vector*",
	"PyEval_EvalCode*", "_PyEval_EvalCode*", "_PyEvalFrame*", "PyEval_CallObject*",
	/* calls of objects */
	"_PyObject_Vectorcall*", "PyObject_Vectorcall*", "_PyVectorcall_Call*",
	"PyVectorcall_Call*", "_PyObject_Call*", "PyObject_Call*", "_PyObject_FastCall*",
	"_PyObject_MakeTpCall*", "object_vacall*", "callmethod*", "_PyStack_*",
	"vectorcall_method*", "vectorcall_maybe*", "vectorcall_unbound*", "call_method*",
	"call_maybe*", "call_unbound*", "call_attribute*",
	/* of functions in Python */
	"_PyFunction_*", "function_code_fastcall*", "function_call*", "fast_function*", "do_call*",
	"do_call_core*", "ext_do_call*", "call_function*",
	/* of functions in C */
	"_PyMethodDef_RawFastCall*", "_PyMethodDescr_*", "_PyCFunction_*", "PyCFunction_Call*",
	"cfunction_call*", "cfunction_vectorcall_*",
	/* of methods, instances, slots */
	"method_vectorcall*", "method_call*", "methoddescr_call*", "instancemethod_call*",
	"instance_call*", "classmethoddescr_call*", "wrapper_call*", "wrapperdescr_call*",
	"wrapperdescr_raw_call*", "wrap_*", "slot_*", "type_call*", "type_vectorcall*",
	/* of generators */
	"gen_send_ex*", "gen_iternext*", "gen_send*", "_PyGen_Send*", "_PyGen_send*",
	"PyIter_Send*", "PyGen_am_send*", "_gen_throw*", "gen_throw*",
	/* from the program and the thread to the first frame */
	"Py_BytesMain", "Py_Main", "_Py_UnixMain", "Py_RunMain*", "pymain_*", "_PyRun_*", "PyRun_*",
	"pyrun_*", "run_mod*", "run_eval_code_obj*", "run_pyc_file*", "thread_run*", "t_bootstrap*",
	"pythread_wrapper*", NULL
};

const struct sb_runtime_ops sb_runtime_python = {
	.runtime = SB_RUNTIME_PYTHON,
	.name = "python",
	.describes_purely = true,
	.is_for_any_machine = true,
	.settles_ns = SB_NS_PER_SEC,
	.markers = { "_PyRuntime", "_PyThreadState_Current" },
	.programs = { "python", "uwsgi" },
	.attach = attach,
	.detach = sb_runtime_free_state,
	.describe = describe,
	.begin = sb_python_begin,
	.step = sb_python_step,
	.anchors = anchors,
	.glue = glue,
};
