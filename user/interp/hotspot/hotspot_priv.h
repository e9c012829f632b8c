/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HotSpot (OpenJDK). Shared by hotspot.c (attach, frames), hotspot_structs.c (layout),
 * hotspot_method.c (names) and hotspot_nmethod.c (compiled code). Called on any thread, with the
 * lock of struct sb_interp held. No argument is NULL. After an error out-parameters mean nothing,
 * and strings may have a part appended, and a call can be repeated. What sb_memory_read() returned
 * is -EFAULT, -ESRCH or -EPERM. An nmethod is a compiled method; a bci is the index of a bytecode
 * in its method. Functions with @rt need rt->state, whose layout sb_hotspot_read_layout() fills in
 * first. For a compiled frame sb_hotspot_scopes() comes before sb_hotspot_describe_method() of one
 * of its scopes. A struct sb_runtime_text is empty before.
 */
#ifndef SB_INTERP_HOTSPOT_PRIV_H
#define SB_INTERP_HOTSPOT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "interp/core/runtime.h"

/* Bound on functions that are inlined into one another at one place; -XX:MaxInlineLevel is 15 by
 * default. */
#define SB_HOTSPOT_SCOPES_MAX 48

/* The value of a field that this version of the JVM does not have. */
#define SB_HOTSPOT_NONE	      UINT64_MAX

/*
 * What is used of the tables in which the JVM describes itself: offsets of fields, addresses of
 * static fields, sizes of types. SB_HOTSPOT_FIELDS(row) expands row(member, type, field) for each.
 */
#define SB_HOTSPOT_FIELDS(row)                                                                     \
	row(heaps, "CodeCache", "_heaps")	/* JDK 9 on, static */                             \
		row(heap, "CodeCache", "_heap") /* JDK 8, static */                                \
		row(heap_memory, "CodeHeap", "_memory") row(heap_segmap, "CodeHeap", "_segmap")    \
			row(heap_log2, "CodeHeap",                                                 \
			    "_log2_segment_size") row(space_low, "VirtualSpace", "_low_boundary")  \
				row(space_high, "VirtualSpace",                                    \
				    "_high_boundary") row(space_used, "VirtualSpace", "_high")     \
					row(array_data, "GrowableArray<int>", "_data")             \
						row(blob_name, "CodeBlob", "_name")                \
							row(blob_size, "CodeBlob", "_size")        \
								row(blob_kind, "CodeBlob",         \
								    "_kind") /* JDK 23 on */       \
		row(blob_frame_size, "CodeBlob", "_frame_size")                                    \
			row(blob_complete, "CodeBlob", "_frame_complete_offset")                   \
				row(blob_code_begin, "CodeBlob", "_code_begin") /* JDK 9 to 22 */  \
		row(blob_code_offset, "CodeBlob", "_code_offset")		/* the others */   \
		row(blob_relocation_size, "CodeBlob", "_relocation_size")                          \
			row(blob_mutable, "CodeBlob", "_mutable_data") /* JDK 25 on */             \
		row(nmethod_method, "nmethod", "_method")                                          \
			row(compiled_method, "CompiledMethod", "_method") /* JDK 9 to 22 */        \
		row(compiled_scopes, "CompiledMethod", "_scopes_data_begin")                       \
			row(nmethod_scopes, "nmethod", "_scopes_data_offset")                      \
				row(nmethod_pcs, "nmethod", "_scopes_pcs_offset")                  \
					row(nmethod_deps, "nmethod", "_dependencies_offset")       \
						row(nmethod_immutable, "nmethod",                  \
						    "_immutable_data") /* JDK 23 on */             \
		row(nmethod_metadata, "nmethod", "_metadata_offset")   /* up to JDK 24 */          \
		row(pc_offset, "PcDesc", "_pc_offset") row(pc_scope, "PcDesc",                     \
							   "_scope_decode_offset")                 \
			row(method_const, "Method", "_constMethod")                                \
				row(const_pool, "ConstMethod", "_constants")                       \
					row(const_code_size, "ConstMethod", "_code_size")          \
						row(const_name, "ConstMethod", "_name_index")      \
							row(const_flags, "ConstMethod",            \
							    "_flags") /* up to JDK 20 */           \
		row(const_flags_21, "ConstMethod", "_flags._flags")                                \
			row(pool_holder, "ConstantPool", "_pool_holder")                           \
				row(pool_source, "ConstantPool",                                   \
				    "_source_file_name_index") /* JDK 17 on */                     \
		row(pool_length, "ConstantPool", "_length") row(klass_source, "InstanceKlass",     \
								"_source_file_name_index")         \
			row(klass_methods, "InstanceKlass", "_methods")                            \
				row(methods_data, "Array<Method*>", "_data")                       \
					row(klass_name, "Klass", "_name") row(symbol_length,       \
									      "Symbol", "_length") \
						row(symbol_body, "Symbol", "_body")                \
							row(interpreter, "AbstractInterpreter",    \
							    "_code") /* static */                  \
		row(queue_buffer, "StubQueue", "_stub_buffer") row(queue_limit, "StubQueue",       \
								   "_buffer_limit")                \
			row(vm_major, "Abstract_VM_Version", "_vm_major_version") /* static */     \
		row(vm_release, "Abstract_VM_Version", "_s_vm_release")		  /* static */     \
		row(object_klass, "vmClasses",                                                     \
		    "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]")                    \
			row(object_klass_11, "SystemDictionary",                                   \
			    "_well_known_klasses[SystemDictionary::Object_klass_knum]")
#define SB_HOTSPOT_SIZES(row)                                                                      \
	row(size_block, "HeapBlock") row(size_const, "ConstMethod") row(size_pool, "ConstantPool") \
		row(size_pc, "PcDesc")

struct sb_hotspot_layout {
#define SB_HOTSPOT_DECLARE(name, ...) uint64_t name;
	SB_HOTSPOT_FIELDS(SB_HOTSPOT_DECLARE)
	SB_HOTSPOT_SIZES(SB_HOTSPOT_DECLARE)
#undef SB_HOTSPOT_DECLARE
};

/* One method of a compiled frame. */
struct sb_hotspot_scope {
	uint64_t method; /* address of the Method */
	int32_t bci;	 /* bytecode index; -1: not known */
};

/* rt->state */
struct sb_hotspot {
	struct sb_hotspot_layout layout;
	uint32_t major; /* of the JDK */
	/* Cache: the methods of the compiled frame that was asked for last, innermost first. */
	struct sb_interp_frame scopes_of;
	struct sb_hotspot_scope scope[SB_HOTSPOT_SCOPES_MAX];
	size_t nr_scopes;
};

/* Read the layout from the tables that libjvm.so exports; *ret is overwritten, and what this
 * version does not have is SB_HOTSPOT_NONE. Return: 0; -EAGAIN when they are not initialised yet;
 * -ENOTSUP: it does not export one of them, and the end of a sentence that says so is appended to
 * rt->why, which belongs to @rt; -EBADMSG: a table is not valid; -ENOMEM; or what sb_memory_read()
 * returned. */
int sb_hotspot_read_layout(struct sb_runtime *rt, struct sb_hotspot_layout *ret);

/* Append the name of a Method ("Class.method") and its file to @text, and set the line if @bci is
 * not negative. A missing file or line is no error. Return: 0; -EBADMSG: a name is empty or not in
 * the class's table; -ENOMEM; or what sb_memory_read() returned. @method is the address of the
 * Method. */
int sb_hotspot_describe_method(struct sb_runtime *rt, uint64_t method, int32_t bci,
			       struct sb_runtime_text *text);
/* Look up the line of the bytecode @bci in a copy of a method's compressed line table, @len bytes.
 * @excluded: sb_hotspot_excluded(). Return: the line; 0 when it is not known. Any thread. */
uint32_t sb_hotspot_line(const uint8_t *table, size_t len, uint32_t excluded, uint32_t bci);
/* Decode one number of the JDK's UNSIGNED5 at bytes[*@at], and advance *@at behind it. @excluded:
 * sb_hotspot_excluded(). Return: 0; -EBADMSG: it is cut off or not valid, and *@at is somewhere in
 * it. Any thread. */
int sb_hotspot_unsigned5(const uint8_t *bytes, size_t len, size_t *at, uint32_t excluded,
			 uint32_t *ret);
/* Return: how many of the lowest byte values never occur in a number that this version of the JDK
 * has encoded as UNSIGNED5: 0 before JDK 20; 1, the byte 0, since then (JDK-8292758). */
static inline uint32_t sb_hotspot_excluded(const struct sb_hotspot *hs)
{
	return hs->major >= 20;
}

/* Find the methods of a compiled frame, inlined ones included, and leave them in scope[] of
 * rt->state, innermost first; those of the last frame are cached. Without debug information at that
 * place, it is the compiled method alone. Return: 0; -EFAULT, -EBADMSG: the code is gone; -ENOMEM;
 * or what sb_memory_read() returned; then nr_scopes means nothing. */
int sb_hotspot_scopes(struct sb_runtime *rt, const struct sb_interp_frame *frame);
/* Append the name of a code blob that is no compiled method, e.g. a stub, to text->name. Return: 0;
 * -EFAULT, -EBADMSG: the code is gone; -ENOMEM; or what sb_memory_read() returned. */
int sb_hotspot_describe_stub(struct sb_runtime *rt, const struct sb_interp_frame *frame,
			     struct sb_runtime_text *text);

#endif
