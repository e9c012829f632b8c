/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPython. Shared by
 *
 *	python.c		struct sb_runtime_ops; the steps of attach()
 *	python_layout.c		the version, and the offsets of fields
 *	python_state.c		where a thread's state is found
 *	python_proof.c		the self-test
 *	python_names.c		names of code objects
 *	python_lines.c		line tables
 *
 * Called on any thread, with the lock of struct sb_interp held, but for sb_python_line(), which any
 * thread may call. No argument is NULL. After an error out-parameters mean nothing, and strings may
 * have a part appended. What sb_memory_read() returned is -EFAULT, -ESRCH or -EPERM. attach() calls
 * find_layout, find_state and prove in this order, ends after the first error, and makes @layout
 * rt->state, which describe() passes to sb_python_code().
 */
#ifndef SB_INTERP_PYTHON_PRIV_H
#define SB_INTERP_PYTHON_PRIV_H

#include "interp/core/runtime.h"

#include "bpf/step/sb_step_python.h"

/* Major and minor version, encoded as in Py_Version: 3.11 is 0x030b. */
#define SB_PYTHON(major, minor) ((major) << 8 | (minor))

/* Offsets of fields that only user space needs. rt->state. */
struct sb_python_layout {
	uint32_t version; /* SB_PYTHON() */
	bool is_free_threaded;
	bool is_assumed;  /* the version is newer than all known ones: taken for the last of them */
	uint64_t runtime; /* address of _PyRuntime; 0: before 3.7 */
	uint64_t code_type; /* address of PyCode_Type */
	uint16_t heads;	    /* in _PyRuntime: the youngest interpreter, then the oldest one */
	uint16_t key; /* in _PyRuntime: the TSD key, when code does not tell it; 0: not known */
	uint16_t state_interp;
	uint16_t first_line, name, qualname, line_table; /* qualname: 0 before 3.11 */
	uint16_t type, type_name;
	uint16_t bytes_length, bytes_data;
	uint16_t text_length, text_state, text_ascii, text_compact;
	uint8_t text_kind_shift;
};

/*
 * Find out the version of rt->image; fill in @layout, which is zeroed before, the offsets in @conf,
 * and rt->version.
 * Return: 0; -ENOTSUP when the version is not known, or what it says of itself does not fit, and
 * the end of a sentence is appended to rt->why, which belongs to @rt; or what sb_memory_read()
 * returned.
 */
int sb_python_find_layout(struct sb_runtime *rt, struct sb_python_layout *layout,
			  struct sb_python_conf *conf);
/*
 * Find out how a thread's state is reached; sets members of @conf. Return: 0; -ENOENT: not found,
 * and some of them may have been set.
 */
int sb_python_find_state(struct sb_runtime *rt, const struct sb_python_layout *layout,
			 struct sb_python_conf *conf);
/*
 * Prove @layout, and the configuration in rt->conf, which sb_python_find_layout() and
 * sb_python_find_state() have filled in, on the process's threads, with the kernel's walker (see
 * python_proof.c).
 * Return: 0, also when no thread runs Python just now and the version is known; -EAGAIN when there
 * is no thread yet, or, with is_assumed, none that runs Python; -EBADMSG when stacks cannot be
 * walked; -ENOMEM.
 */
int sb_python_prove(struct sb_runtime *rt, const struct sb_python_layout *layout);

/* Append name and file of the code object of @frame to @text, and set the line of the frame's
 * position; a file that cannot be read is left empty. Return: as describe() of struct
 * sb_runtime_ops: 0; -EFAULT, -ESRCH or -EPERM: unreadable; -EBADMSG: there is no code object, or
 * not the one that the frame had when it was sampled; -ENOMEM. */
int sb_python_code(const struct sb_memory *memory, const struct sb_python_layout *layout,
		   const struct sb_interp_frame *frame, struct sb_runtime_text *text);

/*
 * Look up the line of @position (as sb_step_python.h defines it) in a copy of a code object's line
 * table.
 * @version: SB_PYTHON(major, minor)
 * @first_line: where the code object begins
 *
 * Return: the line; 0 when the instruction has none. A damaged or short table gives a wrong line,
 * or 0, but is not read beyond @len.
 */
uint32_t sb_python_line(uint32_t version, const uint8_t *table, size_t len, uint32_t first_line,
			uint64_t position);

#endif
