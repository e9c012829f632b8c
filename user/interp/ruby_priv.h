/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the files of Ruby:
 *
 *	ruby.c		the row; attach, and its self-test
 *	ruby_layout.c	versions, and what they differ in
 *	ruby_find.c	where things are in a process: contexts, the VM, symbols, the loop
 *	ruby_names.c	what frames are called
 */
#ifndef SB_INTERP_RUBY_PRIV_H
#define SB_INTERP_RUBY_PRIV_H

#include "interp/runtime.h"

struct sb_ruby_conf;
struct sb_interp_walk;

/* Where a class keeps its name. */
enum sb_ruby_class {
	SB_RUBY_CLASS_IVARS,  /* hash of instance variables: __classpath__, __attached__ */
	SB_RUBY_CLASS_SHAPES, /* array of instance variables, whose names are in its shape */
	SB_RUBY_CLASS_FIELDS, /* fields of rb_classext_t */
};

/* Offsets are of vm_core.h, iseq.h, internal/class.h and internal/string.h of that version. */
struct sb_ruby_layout {
	uint8_t major, minor;
	uint8_t cfp_bytes;		     /* sizeof(rb_control_frame_t) */
	uint8_t thread_vm, thread_ec;	     /* of rb_thread_t */
	uint8_t thread_nt;		     /* its rb_native_thread, or 0: there is none */
	uint8_t info, info_size, info_index; /* of the body: insns_info; index 0: there is none */
	uint8_t parent;			     /* its parent_iseq */
	uint8_t entry_bytes, entry_line;     /* of struct iseq_insn_info_entry */
	uint8_t string_at;		     /* bytes of a short String */
	uint8_t singleton_bit;		     /* of a class's flags */
	uint8_t class_name;		     /* enum sb_ruby_class */
};

/* Return: that of this version, or NULL. */
const struct sb_ruby_layout *sb_ruby_layout(unsigned int major, unsigned int minor);
const struct sb_ruby_layout *sb_ruby_layout_newest(void);

struct sb_ruby {
	const struct sb_ruby_layout *layout;
	uint64_t ids_addr; /* where the array of names is; 0: not found */
};

/* ruby_find.c. All return 0 or a negative errno. */

/* ruby_current_vm_ptr. */
int sb_ruby_find_vm(struct sb_runtime *rt, uint64_t *ret_addr);
/* How threads find their context; of TSD, all but the key. */
int sb_ruby_find_context(struct sb_runtime *rt, struct sb_ruby_conf *conf);
/* The main thread's rb_thread_t. -EAGAIN: there is none yet. */
int sb_ruby_find_main(struct sb_runtime *rt, const struct sb_ruby_layout *layout, uint64_t vm_addr,
		      uint64_t *ret_thread);
/* A thread's thread pointer. */
int sb_ruby_find_pointer(struct sb_runtime *rt, const struct sb_ruby_layout *layout,
			 uint64_t thread, uint64_t *ret_pointer);
/* The key whose value in the thread with that thread pointer is @thread. */
int sb_ruby_find_key(struct sb_runtime *rt, struct sb_ruby_conf *conf, uint64_t pointer,
		     uint64_t thread);
/* The array that IDs are looked up in. */
int sb_ruby_find_ids(struct sb_runtime *rt, struct sb_ruby *ruby);
/* The functions that run the loop, by an instruction of compiled code: its address in the loop. */
void sb_ruby_find_loop(struct sb_runtime *rt, uint64_t insn);

/* ruby_names.c */
int sb_ruby_describe(const struct sb_memory *memory, const struct sb_ruby *ruby,
		     const struct sb_interp_frame *frame, struct sb_runtime_text *text);
/* Append the name of @id. */
int sb_ruby_id(const struct sb_memory *memory, const struct sb_ruby *ruby, uint64_t id,
	       struct sb_str *str);

/* The iseq and the method entry of a frame; 0: none. */
static inline uint64_t sb_ruby_iseq_of(const struct sb_interp_frame *frame)
{
	return (frame->obj & ((1ull << 44) - 1)) << 3;
}

static inline uint64_t sb_ruby_method_of(const struct sb_interp_frame *frame)
{
	return (frame->obj >> 44 | (frame->where & 0xffffff) << 20) << 3;
}

#endif
