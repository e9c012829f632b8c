// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ruby (MRI): struct sb_runtime_ops, attach() and its self-test. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "interp/core/runtimes.h"
#include "interp/ruby/ruby_priv.h"

#include "bpf/step/sb_step_ruby.h"

/* The process runs on while it is walked for a test: some walks meet frames that are just made. */
#define NR_TRIES     16
/* The outermost frames are named for a test: they stay longest. */
#define NR_TRY_NAMES 3

/* ruby_version is "3.1.2". */
static int read_version(struct sb_runtime *rt, unsigned int *ret_major, unsigned int *ret_minor)
{
	char text[16] = {};
	uint64_t addr;

	if (sb_image_symbol(rt->image, "ruby_version", &addr, NULL) ||
	    sb_image_read(rt->image, addr, text, 8) ||
	    sscanf(text, "%2u.%2u.", ret_major, ret_minor) != 2)
		return -ENOENT;
	sb_replace_controls(text, strlen(text));
	snprintf(rt->version, sizeof(rt->version), "%s", text);
	return 0;
}

/* One walk of the main thread, from its thread pointer on. Return: 0, or -EBADMSG. */
static int walk_main(struct sb_runtime *rt, struct sb_interp_walk *walk, uint64_t pointer)
{
	memset(walk, 0, sizeof(*walk));
	walk->conf = rt->conf;
	walk->thread_pointer = pointer;
	walk->wants_lines = 1;
	if (!sb_runtime_walk(rt, walk))
		return -EBADMSG;
	/* A stack may be deeper than a walk, and is right nevertheless. */
	return walk->status == SB_STACK_COMPLETE || walk->status == SB_STACK_DEPTH ? 0 : -EBADMSG;
}

static int try_names(struct sb_runtime *rt, const struct sb_interp_walk *walk)
{
	struct sb_runtime_text text = {};
	uint64_t i, nr = walk->nr_frames < NR_TRY_NAMES ? walk->nr_frames : NR_TRY_NAMES;
	int err = 0;

	for (i = 1; i <= nr && !err; i++) {
		sb_str_clear(&text.name);
		sb_str_clear(&text.file);
		err = sb_ruby_describe(rt->memory, rt->state, &walk->frame[walk->nr_frames - i],
				       &text);
		if (!err && !text.name.len)
			err = -EBADMSG;
	}
	sb_str_release(&text.name);
	sb_str_release(&text.file);
	return err;
}

/* The code of the outermost frame says where the loop is. */
static void find_loop(struct sb_runtime *rt, const struct sb_interp_walk *walk)
{
	uint64_t i, body, code, insn;

	for (i = walk->nr_frames; i-- && !rt->nr_anchors;) {
		uint64_t iseq = sb_ruby_iseq_of(&walk->frame[i]);

		if (iseq && !sb_memory_u64(rt->memory, iseq + 16, &body) &&
		    !sb_memory_u64(rt->memory, body + 8, &code) &&
		    !sb_memory_u64(rt->memory, code, &insn))
			sb_ruby_find_loop(rt, insn);
	}
}

/* Walk the main thread as the kernel will, and read what its outermost frames are called. */
static int self_test(struct sb_runtime *rt, uint64_t pointer)
{
	sb_cleanup(sb_freep) struct sb_interp_walk *walk = malloc(sizeof(*walk));
	int i, err = -ENOMEM;

	for (i = 0; walk && i < NR_TRIES; i++) {
		sb_memory_forget(rt->memory);
		err = walk_main(rt, walk, pointer);
		if (!err && !walk->nr_frames)
			return -EAGAIN;
		if (!err)
			err = try_names(rt, walk);
		if (err)
			continue;
		find_loop(rt, walk);
		return 0;
	}
	return err;
}

/* Fill in conf and state. Return: 0; -EAGAIN; others: @why says what was not found. */
static int find_all(struct sb_runtime *rt, struct sb_ruby *ruby, uint64_t *ret_pointer,
		    const char **why)
{
	struct sb_ruby_conf *conf = (struct sb_ruby_conf *)rt->conf.word;
	const struct sb_ruby_layout *layout = ruby->layout;
	uint64_t vm_addr, thread;
	int err;

	conf->thread_vm = layout->thread_vm;
	conf->thread_ec = layout->thread_ec;
	conf->cfp_bytes = layout->cfp_bytes;
	sb_threads_tsd(rt->maps, &conf->tsd);
	*why = "its VM was not found in memory";
	err = sb_ruby_find_vm(rt, &vm_addr);
	if (err)
		return err;
	conf->vm_addr = vm_addr;
	*why = "its threads were not found in memory";
	err = sb_ruby_find_main(rt, layout, vm_addr, &thread);
	if (!err)
		err = sb_ruby_find_pointer(rt, layout, thread, ret_pointer);
	if (err)
		return err;
	*why = "the execution contexts of its threads were not found";
	if (layout->major >= 3)
		err = sb_ruby_find_context(rt, conf);
	else
		err = sb_ruby_find_key(rt, conf, *ret_pointer, thread);
	if (err)
		return err;
	/* Without it, C functions have no names, and no class has before 3.2. */
	sb_ruby_find_ids(rt, ruby);
	return 0;
}

static int attach(struct sb_runtime *rt)
{
	sb_cleanup(sb_freep) struct sb_ruby *ruby = calloc(1, sizeof(*ruby));
	unsigned int major, minor;
	uint64_t pointer = 0;
	const char *why;
	bool is_found;
	int err;

	if (!ruby)
		return -ENOMEM;
	if (read_version(rt, &major, &minor))
		return sb_runtime_refuse(rt, "its version cannot be read");
	ruby->layout = sb_ruby_layout(major, minor);
	if (!ruby->layout)
		return sb_runtime_refuse(rt, "stackbpf does not support this version");
	rt->conf.flags = SB_INTERP_BY_STATE;
	rt->state = ruby;
	err = find_all(rt, ruby, &pointer, &why);
	is_found = !err;
	if (is_found)
		err = self_test(rt, pointer);
	if (err) {
		rt->state = NULL;
		if (err == -EAGAIN || err == -ESRCH || err == -ENOMEM)
			return err;
		return is_found ? sb_runtime_doubt(rt) : sb_runtime_refuse(rt, why);
	}
	ruby = NULL; /* rt->state */
	return 0;
}

static int describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	return sb_ruby_describe(rt->memory, rt->state, frame, text);
}

static const char *const anchors[] = { "rb_vm_exec", "vm_exec", NULL };
/* vm_exec.c, vm_insnhelper.c, vm_eval.c, vm.c, eval.c, thread.c, cont.c: from one method to the
 * next. */
static const char *const glue[] = { "vm_exec_core*",
				    "vm_call*",
				    "vm_sendish*",
				    "vm_yield*",
				    "vm_invoke*",
				    "invoke_*",
				    "call_cfunc_*",
				    "ractor_safe_call_cfunc_*",
				    "rb_vm_invoke*",
				    "rb_vm_call*",
				    "rb_yield*",
				    "rb_funcall*",
				    "rb_call",
				    "rb_call0",
				    "rb_call_super*",
				    "rb_iseq_eval*",
				    "rb_ec_exec_node",
				    "rb_ensure",
				    "rb_protect",
				    "rb_rescue*",
				    "rb_block_call*",
				    "rb_iterate*",
				    "rb_catch*",
				    "rb_proc_call*",
				    "rb_method_call*",
				    "rb_obj_call*",
				    "rb_check_func*",
				    "rb_class_new_inst*",
				    "rb_main",
				    "ruby_run_node",
				    "ruby_exec_node",
				    "thread_start_func_*",
				    "thread_do_start*",
				    "nt_start*",
				    "call_thread_st*",
				    "co_start",
				    "rb_fiber_start",
				    "fiber_entry",
				    NULL };

const struct sb_runtime_ops sb_runtime_ruby = {
	.runtime = SB_RUNTIME_RUBY,
	.name = "ruby",
	.is_for_any_machine = true,
	.describes_purely = true,
	.markers = { "ruby_version" },
	.programs = { "ruby" },
	.attach = attach,
	.detach = sb_runtime_free_state,
	.describe = describe,
	.begin = sb_ruby_begin,
	.step = sb_ruby_step,
	.anchors = anchors,
	.glue = glue,
};
