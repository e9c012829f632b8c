/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPython: shared by
 *
 *	python.c		the row, and what attach() does in which order
 *	python_layout.c		which version, and where its fields lie
 *	python_state.c		where a thread's state is found
 *	python_proof.c		the self-test
 *	python_names.c		code objects in words
 *	python_lines.c		line tables
 */
#ifndef SB_INTERP_PYTHON_PRIV_H
#define SB_INTERP_PYTHON_PRIV_H

#include "interp/runtime.h"
#include "interp/step.h"
#include "sb_step_python.h"

/* Major and minor version, as in Py_Version: 3.11 is 0x030b. */
#define SB_PYTHON(major, minor) ((major) << 8 | (minor))

/* What the kernel's walker need not know. Offsets in objects. */
struct sb_python_layout {
	uint32_t version; /* SB_PYTHON() */
	bool is_free_threaded;
	bool is_assumed;    /* a version that is not known, taken for the last one that is */
	uint64_t runtime;   /* _PyRuntime; 0: before 3.7 */
	uint64_t code_type; /* PyCode_Type */
	uint16_t heads;	    /* in _PyRuntime: the youngest interpreter, the oldest one */
	uint16_t key;	    /* in _PyRuntime, if all else fails; 0: not known */
	uint16_t state_interp;
	uint16_t first_line, name, qualname, line_table; /* qualname: 0 before 3.11 */
	uint16_t type, type_name;
	uint16_t bytes_length, bytes_data;
	uint16_t text_length, text_state, text_ascii, text_compact;
	uint8_t text_kind_shift;
};

/*
 * Find out the version of rt->image, and fill in the layout, offsets in @conf and rt->version.
 * Return: 0, -ENOTSUP and rt->why, -EFAULT: the process's memory cannot be read.
 */
int sb_python_find_layout(struct sb_runtime *rt, struct sb_python_layout *layout,
			  struct sb_python_conf *conf);
/* Where threads have their state: key_addr, tls, interps. Return: 0, -ENOENT. */
int sb_python_find_state(struct sb_runtime *rt, const struct sb_python_layout *layout,
			 struct sb_python_conf *conf);
/*
 * Try it on the threads of the process. Return: 0; -EAGAIN: there is none yet; -EBADMSG: it is not
 * so; -ENOMEM.
 */
int sb_python_prove(struct sb_runtime *rt, const struct sb_python_layout *layout);

/* Append the text of a string object as UTF-8. Return: 0, -EFAULT, -EBADMSG: it is none, -ENOMEM. */
int sb_python_text(const struct sb_memory *memory, const struct sb_python_layout *layout,
		   uint64_t addr, struct sb_str *str);
/* Name and file of a code object; its line, unless @position is UINT64_MAX. Return: as ops->describe(). */
int sb_python_code(const struct sb_memory *memory, const struct sb_python_layout *layout,
		   uint64_t addr, uint64_t position, struct sb_runtime_text *text);

/*
 * The line of a position as sb_step_python.h has it, by the line table of a code object that begins
 * at @first_line. Return: 0: this instruction has none.
 */
uint32_t sb_python_line(uint32_t version, const uint8_t *table, size_t len, uint32_t first_line,
			uint64_t position);

#endif
