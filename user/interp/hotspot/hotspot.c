// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * HotSpot, the Java virtual machine of OpenJDK. It describes its own structures
 * (hotspot_structs.c). Names are read by hotspot_method.c, inlined methods by hotspot_nmethod.c;
 * the walker is sb_step_hotspot.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "interp/core/runtimes.h"
#include "interp/hotspot/hotspot_priv.h"

#include "bpf/step/sb_step_hotspot.h"

#define RELEASE_BYTES_MAX 31u
/* What the walker reads of a blob at once. */
#define HEAD_BYTES	  (sizeof(((struct sb_interp_walk *)0)->at))
/* Where an interpreter frame before JDK 9 has its bytecode pointer: struct
 * sb_hotspot_conf.bcp_word. */
#ifdef SB_MACHINE_ARM64
#define OLD_BCP_WORD 2
#else
#define OLD_BCP_WORD 1
#endif
/* A code cache has up to 2 GiB. */
#define HEAP_BYTES_MAX (4ull << 30)

/* Fields without which there is nothing to do. */
static int check_layout(struct sb_runtime *rt, const struct sb_hotspot_layout *l)
{
	const uint64_t offsets[] = {
		l->heap_memory,	  l->heap_segmap,   l->heap_log2,	l->space_low,
		l->space_high,	  l->blob_name,	    l->blob_size,	l->blob_frame_size,
		l->blob_complete, l->nmethod_pcs,   l->pc_offset,	l->pc_scope,
		l->method_const,  l->const_pool,    l->const_code_size, l->const_name,
		l->pool_holder,	  l->pool_length,   l->klass_methods,	l->methods_data,
		l->klass_name,	  l->symbol_length, l->symbol_body,	l->queue_buffer,
		l->queue_limit,	  l->size_block,    l->size_const,	l->size_pool,
		l->size_pc,
	};
	size_t i;

	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		if (offsets[i] > 4096)
			return sb_runtime_refuse(rt, "it does not export its memory layout "
						     "(vmStructs)");
	if ((l->heaps == SB_HOTSPOT_NONE && l->heap == SB_HOTSPOT_NONE) ||
	    (l->blob_code_begin == SB_HOTSPOT_NONE && l->blob_code_offset == SB_HOTSPOT_NONE) ||
	    (l->nmethod_method == SB_HOTSPOT_NONE && l->compiled_method == SB_HOTSPOT_NONE) ||
	    (l->nmethod_scopes == SB_HOTSPOT_NONE && l->compiled_scopes == SB_HOTSPOT_NONE) ||
	    (l->nmethod_deps == SB_HOTSPOT_NONE && l->nmethod_immutable == SB_HOTSPOT_NONE) ||
	    (l->nmethod_metadata == SB_HOTSPOT_NONE && l->blob_mutable == SB_HOTSPOT_NONE) ||
	    (l->pool_source == SB_HOTSPOT_NONE && l->klass_source == SB_HOTSPOT_NONE) ||
	    (l->const_flags == SB_HOTSPOT_NONE && l->const_flags_21 == SB_HOTSPOT_NONE) ||
	    l->interpreter == SB_HOTSPOT_NONE || l->size_pc < 8)
		return sb_runtime_refuse(rt, "it does not export its memory layout "
					     "(vmStructs)");
	return 0;
}

/* Up to JDK 8 the version is that of the VM, not of Java. */
static int find_version(struct sb_runtime *rt, struct sb_hotspot *hs)
{
	const struct sb_hotspot_layout *l = &hs->layout;
	struct sb_str release = {};
	uint64_t at = 0;
	uint32_t major = 0;
	int err = 0;

	if (l->heaps == SB_HOTSPOT_NONE) {
		hs->major = 8;
	} else if (l->vm_major != SB_HOTSPOT_NONE) {
		err = sb_memory_u32(rt->memory, l->vm_major, &major);
		hs->major = major;
	}
	if (!err && l->vm_release != SB_HOTSPOT_NONE)
		err = sb_memory_u64(rt->memory, l->vm_release, &at);
	if (!err && at)
		err = sb_memory_cstr(rt->memory, at, RELEASE_BYTES_MAX, &release);
	if (!err)
		snprintf(rt->version, sizeof(rt->version), "%s%.*s%s", hs->major == 8 ? "8 (" : "",
			 (int)(release.len ? strcspn(release.s, "-") : 0),
			 release.len ? release.s : "", hs->major == 8 ? ")" : "");
	sb_str_release(&release);
	return err;
}

static int read_heap(struct sb_runtime *rt, const struct sb_hotspot_layout *l, uint64_t heap,
		     struct sb_hotspot_conf *conf, struct sb_hotspot_heap *ret)
{
	uint64_t low, high, segmap;
	uint32_t log2;
	int err = sb_memory_u64(rt->memory, heap + l->heap_memory + l->space_low, &low);

	if (!err)
		err = sb_memory_u64(rt->memory, heap + l->heap_memory + l->space_high, &high);
	if (!err)
		err = sb_memory_u64(rt->memory, heap + l->heap_segmap + l->space_low, &segmap);
	if (!err)
		err = sb_memory_u32(rt->memory, heap + l->heap_log2, &log2);
	if (err)
		return err;
	if (!low || !segmap)
		return -EAGAIN;
	if (log2 > 16 || high <= low || high - low > HEAP_BYTES_MAX ||
	    (conf->log2_segment && log2 != conf->log2_segment))
		return -EBADMSG;
	*ret = (struct sb_hotspot_heap){ .low = low, .high = high, .segmap = segmap };
	conf->log2_segment = (uint16_t)log2;
	if (!rt->conf.hook_begin || low < rt->conf.hook_begin)
		rt->conf.hook_begin = low;
	if (high > rt->conf.hook_end)
		rt->conf.hook_end = high;
	return 0;
}

/* One heap, or an array of some (GrowableArray: its length comes first). All are reserved when the
 * virtual machine starts. */
static int read_heaps(struct sb_runtime *rt, const struct sb_hotspot_layout *l,
		      struct sb_hotspot_conf *conf)
{
	uint64_t array, heap = 0, data = 0;
	uint32_t nr = 1, i;
	int err;

	err = sb_memory_u64(rt->memory, l->heaps == SB_HOTSPOT_NONE ? l->heap : l->heaps, &array);
	if (err)
		return err;
	if (!array)
		return -EAGAIN;
	heap = array;
	if (l->heaps != SB_HOTSPOT_NONE) {
		err = sb_memory_u32(rt->memory, array, &nr);
		if (!err)
			err = sb_memory_u64(rt->memory, array + l->array_data, &data);
		if (err)
			return err;
	}
	if (!nr)
		return -EAGAIN;
	if (nr > SB_HOTSPOT_HEAPS_MAX)
		return sb_runtime_refuse(rt, "it has more code heaps than stackbpf supports");
	for (i = 0; i < nr && !err; i++) {
		if (data)
			err = sb_memory_u64(rt->memory, data + 8ull * i, &heap);
		if (!err)
			err = read_heap(rt, l, heap, conf, &conf->heap[i]);
	}
	return err;
}

static int read_interpreter(struct sb_runtime *rt, const struct sb_hotspot_layout *l,
			    struct sb_hotspot_conf *conf)
{
	uint64_t queue, begin;
	uint32_t limit;
	int err = sb_memory_u64(rt->memory, l->interpreter, &queue);

	if (err)
		return err;
	if (!queue)
		return -EAGAIN;
	err = sb_memory_u64(rt->memory, queue + l->queue_buffer, &begin);
	if (!err)
		err = sb_memory_u32(rt->memory, queue + l->queue_limit, &limit);
	if (err)
		return err;
	conf->interp_begin = begin;
	conf->interp_end = begin + limit;
	return 0;
}

/* Where the library's own code is mapped. */
static void find_vm(const struct sb_runtime *rt, struct sb_hotspot_conf *conf)
{
	const char *path = sb_image_path(rt->image);
	size_t i;

	for (i = 0; rt->maps && i < rt->maps->nr; i++) {
		const struct sb_maps_line *map = &rt->maps->at[i];

		if (!map->is_exec || !sb_streq(map->path, path))
			continue;
		if (!conf->vm_begin)
			conf->vm_begin = map->start;
		conf->vm_end = map->end;
	}
}

static uint16_t head_offset(uint64_t off, bool *is_far)
{
	*is_far |= off > HEAD_BYTES - 8;
	return (uint16_t)off;
}

static int make_conf(struct sb_runtime *rt, const struct sb_hotspot *hs)
{
	struct sb_hotspot_conf *conf = (struct sb_hotspot_conf *)rt->conf.word;
	const struct sb_hotspot_layout *l = &hs->layout;
	bool is_far = false, has_begin = l->blob_code_begin != SB_HOTSPOT_NONE;

	conf->block_header = (uint16_t)l->size_block;
	conf->blob_name = head_offset(l->blob_name, &is_far);
	conf->blob_size = head_offset(l->blob_size, &is_far);
	conf->blob_code =
		head_offset(has_begin ? l->blob_code_begin : l->blob_code_offset, &is_far);
	conf->is_code_offset = !has_begin;
	conf->blob_frame_size = head_offset(l->blob_frame_size, &is_far);
	conf->blob_complete = head_offset(l->blob_complete, &is_far);
	conf->is_short_complete = l->blob_kind != SB_HOTSPOT_NONE;
	conf->blob_method = head_offset(l->nmethod_method != SB_HOTSPOT_NONE ? l->nmethod_method
									     : l->compiled_method,
					&is_far);
	conf->method_const = (uint16_t)l->method_const;
	conf->const_code_size = (uint16_t)l->const_code_size;
	conf->const_size = (uint16_t)l->size_const;
	conf->bcp_word = hs->major < 9 ? OLD_BCP_WORD : 0;
	conf->sender_reg = hs->major < 19 ? 13 : 19;
	if (is_far)
		return sb_runtime_refuse(rt, "stackbpf does not support the layout of its code");
	return 0;
}

/* The root of all classes, and its methods, have names that are known; so has the interpreter's
 * blob, and it is found by its address. */
static int test_names(struct sb_runtime *rt, const struct sb_hotspot_layout *l,
		      struct sb_runtime_text *text)
{
	uint64_t klass_at =
		l->object_klass != SB_HOTSPOT_NONE ? l->object_klass : l->object_klass_11;
	uint64_t klass, methods, method;
	int err;

	if (klass_at == SB_HOTSPOT_NONE)
		return -EBADMSG;
	err = sb_memory_u64(rt->memory, klass_at, &klass);
	if (!err && !klass)
		return -EAGAIN;
	if (!err)
		err = sb_memory_u64(rt->memory, klass + l->klass_methods, &methods);
	if (!err)
		err = sb_memory_u64(rt->memory, methods + l->methods_data, &method);
	if (!err)
		err = sb_hotspot_describe_method(rt, method, 0, text);
	if (!err && (strncmp(text->name.s, "java.lang.Object.", 17) ||
		     !sb_streq(text->file.s ? text->file.s : "", "Object.java")))
		err = -EBADMSG;
	return err;
}

static int test_blobs(struct sb_runtime *rt, struct sb_runtime_text *text)
{
	const struct sb_hotspot_conf *conf = (const struct sb_hotspot_conf *)rt->conf.word;
	struct sb_interp_walk *walk = calloc(1, sizeof(*walk));
	struct sb_hotspot_blob blob;
	uint64_t name;
	int err = 0;

	if (!walk)
		return -ENOMEM;
	walk->conf = rt->conf;
	if (hs_find(walk, (void *)rt->memory, conf->interp_begin, &blob))
		err = -EBADMSG;
	name = hs_u64(walk, conf->blob_name);
	free(walk);
	if (!err)
		err = sb_memory_cstr(rt->memory, name, 32, &text->name);
	if (!err && !sb_streq(text->name.s, "Interpreter"))
		err = -EBADMSG;
	return err;
}

static int self_test(struct sb_runtime *rt, const struct sb_hotspot *hs)
{
	struct sb_runtime_text text = {};
	int err = test_names(rt, &hs->layout, &text);

	if (!err) {
		sb_str_clear(&text.name);
		err = test_blobs(rt, &text);
	}
	sb_str_release(&text.name);
	sb_str_release(&text.file);
	if (err && err != -EAGAIN && err != -ENOMEM)
		return sb_runtime_refuse(rt, "its memory does not match the layout it exports");
	return err;
}

static int look(struct sb_runtime *rt, struct sb_hotspot *hs)
{
	struct sb_hotspot_conf *conf = (struct sb_hotspot_conf *)rt->conf.word;
	int err = sb_hotspot_read_layout(rt, &hs->layout);

	if (!err)
		err = check_layout(rt, &hs->layout);
	if (!err)
		err = find_version(rt, hs);
	if (!err)
		err = read_heaps(rt, &hs->layout, conf);
	if (!err)
		err = read_interpreter(rt, &hs->layout, conf);
	if (!err)
		err = make_conf(rt, hs);
	find_vm(rt, conf);
	if (!err)
		err = self_test(rt, hs);
	rt->conf.flags = SB_INTERP_BY_NATIVE;
	return err;
}

static int attach(struct sb_runtime *rt)
{
	struct sb_hotspot *hs = calloc(1, sizeof(*hs));
	int err;

	if (!hs)
		return -ENOMEM;
	rt->state = hs;
	err = look(rt, hs);
	if (err)
		sb_runtime_free_state(rt);
	return err == -EBADMSG ? sb_runtime_doubt(rt) : err;
}

static int describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	const struct sb_hotspot *hs = rt->state;
	uint64_t position = sb_where_position(frame->where);
	const struct sb_hotspot_scope *scope;
	int err;

	if (position & SB_HOTSPOT_STUB) {
		/* At the leaf it is what runs; further out it only leads to something. */
		text->is_glue = !(position & SB_HOTSPOT_EXACT);
		return sb_hotspot_describe_stub(rt, frame, text);
	}
	if (!(position & SB_HOTSPOT_COMPILED))
		return sb_hotspot_describe_method(rt, frame->obj, (int32_t)(position & 0xffff),
						  text);
	err = sb_hotspot_scopes(rt, frame);
	if (err)
		return err;
	scope = &hs->scope[hs->nr_scopes - 1];
	return sb_hotspot_describe_method(rt, scope->method, scope->bci, text);
}

static int describe_inlined(struct sb_runtime *rt, const struct sb_interp_frame *frame, size_t i,
			    struct sb_runtime_text *text)
{
	const struct sb_hotspot *hs = rt->state;
	int err;

	if (!(sb_where_position(frame->where) & SB_HOTSPOT_COMPILED))
		return -ENODATA;
	err = sb_hotspot_scopes(rt, frame);
	if (err)
		return err;
	if (i + 1 >= hs->nr_scopes)
		return -ENODATA;
	return sb_hotspot_describe_method(rt, hs->scope[i].method, hs->scope[i].bci, text);
}

/* How the virtual machine calls a method, and what a thread of it begins with. */
static const char *const glue[] = {
	"JavaCalls::*",
	"jni_invoke_*",
	"thread_entry",
	"thread_native_entry",
	"Thread::call_run",
	"JavaThread::run",
	"JavaThread::thread_main_inner",
	NULL,
};

const struct sb_runtime_ops sb_runtime_hotspot = {
	.runtime = SB_RUNTIME_HOTSPOT,
	.name = "java",
	.is_for_any_machine = true,
	.needs_all_maps = true,
	.settles_ns = SB_NS_PER_SEC,
	.markers = { "gHotSpotVMStructs" },
	.programs = { "java" },
	.attach = attach,
	.detach = sb_runtime_free_state,
	.describe = describe,
	.describe_inlined = describe_inlined,
	.native = sb_hotspot_native,
	.glue = glue,
};
