/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ruby. Shared by
 *
 *	ruby.c		struct sb_runtime_ops; attach() and its self-test
 *	ruby_layout.c	what differs between versions
 *	ruby_find.c	where things are in a process: contexts, the VM, symbols, the loop
 *	ruby_names.c	names of frames
 *
 * Called on any thread, with the lock of struct sb_interp held. No argument is NULL. After an error
 * out-parameters mean nothing, and strings may have a part appended. attach() sets ruby->layout,
 * and calls sb_ruby_find_vm(), _main(), _pointer(), _context() (Ruby 3) or _key() (Ruby 2), and
 * _ids(), without which it goes on; then, when it has walked a thread, _loop(). Those that return
 * an int return 0; -ENOENT when the thing is not found or memory cannot be read; -ENOMEM; -EINVAL:
 * its address is computed in a way that is not followed; -EFAULT, -ESRCH or -EPERM: memory cannot
 * be read.
 */
#ifndef SB_INTERP_RUBY_PRIV_H
#define SB_INTERP_RUBY_PRIV_H

#include "interp/core/runtime.h"

#include "bpf/step/sb_step_ruby.h"

/* Where a class object keeps its name. */
enum sb_ruby_class {
	SB_RUBY_CLASS_IVARS,  /* hash of instance variables: __classpath__, __attached__ */
	SB_RUBY_CLASS_SHAPES, /* array of instance variables, whose names are in its shape */
	SB_RUBY_CLASS_FIELDS, /* fields of rb_classext_t */
};

/* Offsets of fields in vm_core.h, iseq.h, internal/class.h and internal/string.h of one version. */
struct sb_ruby_layout {
	uint8_t major, minor;
	uint8_t cfp_bytes;		     /* sizeof(rb_control_frame_t) */
	uint8_t thread_vm, thread_ec;	     /* in rb_thread_t */
	uint8_t thread_nt;		     /* in it, the rb_native_thread; 0: there is none */
	uint8_t info, info_size, info_index; /* in an iseq's body: insns_info; index 0: none */
	uint8_t parent;			     /* in an iseq's body: parent_iseq */
	uint8_t entry_bytes, entry_line;     /* of struct iseq_insn_info_entry */
	uint8_t string_at;		     /* offset of the characters of a short String */
	uint8_t singleton_bit;		     /* bit number in a class's flags */
	uint8_t class_name;		     /* enum sb_ruby_class */
};

/* Return: the layout of a version, a constant; NULL: it is not known. */
const struct sb_ruby_layout *sb_ruby_layout(unsigned int major, unsigned int minor);

/* rt->state */
struct sb_ruby {
	const struct sb_ruby_layout *layout;
	uint64_t ids_addr; /* address of the variable with the array of ID names; 0: not found */
};

/* Find the address of the variable ruby_current_vm_ptr in the process, for sb_ruby_find_main(). */
int sb_ruby_find_vm(struct sb_runtime *rt, uint64_t *ret_addr);
/* For Ruby 3 or newer, where Ruby 2 has sb_ruby_find_key(): find out how a thread finds its
 * execution context, which is thread-local. Sets by, and ec_got or ec_offset or both, of @conf; on
 * error they mean nothing. -EAGAIN: the dynamic linker has not filled in the TLS descriptor yet, or
 * it cannot be read. */
int sb_ruby_find_context(struct sb_runtime *rt, struct sb_ruby_conf *conf);
/* Find the main thread's rb_thread_t. @vm_addr: of the variable, from sb_ruby_find_vm(). -EAGAIN:
 * the VM has not made it yet. */
int sb_ruby_find_main(struct sb_runtime *rt, const struct sb_ruby_layout *layout, uint64_t vm_addr,
		      uint64_t *ret_thread);
/* Find the thread pointer (FS base, tpidr_el0) of a thread, by the address of its rb_thread_t, from
 * sb_ruby_find_main(). The caller has set `tsd` of the struct sb_ruby_conf in rt->conf, and
 * passes the pointer to sb_ruby_find_key() and to the self-test. */
int sb_ruby_find_pointer(struct sb_runtime *rt, const struct sb_ruby_layout *layout,
			 uint64_t thread, uint64_t *ret_pointer);
/* For Ruby 2: find the TSD key under which the thread with thread pointer @pointer keeps the value
 * @thread, its rb_thread_t; sets conf->key, which means nothing on error. conf->tsd is set before.
 */
int sb_ruby_find_key(struct sb_runtime *rt, struct sb_ruby_conf *conf, uint64_t pointer,
		     uint64_t thread);
/* Find the array that maps IDs to names, for sb_ruby_id(); sets ruby->ids_addr, which is 0 before,
 * and 0 after an error. */
int sb_ruby_find_ids(struct sb_runtime *rt, struct sb_ruby *ruby);
/* Find the functions on the native stack that stand for the loop, and append them to rt->anchors;
 * what is not found is left out. @insn: the address of any instruction's code in vm_exec_core(), as
 * it is in compiled code. */
void sb_ruby_find_loop(struct sb_runtime *rt, uint64_t insn);

/* ruby_names.c. */

/*
 * Implements describe() of struct sb_runtime_ops: append name and file of @frame to @text, and set
 * the line. Return: 0; -EFAULT, -ESRCH or -EPERM: unreadable; -EBADMSG: there is no code object;
 * -ENODATA: it has no name of its own; -ENOMEM.
 */
int sb_ruby_describe(const struct sb_memory *memory, const struct sb_ruby *ruby,
		     const struct sb_interp_frame *frame, struct sb_runtime_text *text);
/* Append the name of an ID, a number by which Ruby knows a name. Return: 0; -EBADMSG: it has none;
 * -ENOMEM; -EFAULT, -ESRCH or -EPERM: memory cannot be read. */
int sb_ruby_id(const struct sb_memory *memory, const struct sb_ruby *ruby, uint64_t id,
	       struct sb_str *str);

/* Return: the address of the iseq that is packed into a frame; 0: none. */
static inline uint64_t sb_ruby_iseq_of(const struct sb_interp_frame *frame)
{
	return (frame->obj & SB_RUBY_ADDR_MASK) << 3;
}

/* Return: the address of the method entry that is packed into a frame; 0: none. */
static inline uint64_t sb_ruby_method_of(const struct sb_interp_frame *frame)
{
	uint64_t high = frame->where & ((1ull << SB_RUBY_METHOD_HIGH) - 1);

	return (frame->obj >> SB_RUBY_ADDR_BITS | high << SB_RUBY_METHOD_LOW) << 3;
}

#endif
