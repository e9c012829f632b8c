// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From 3.13 on, CPython describes itself: struct _Py_DebugOffsets at the start of _PyRuntime. The
 * description grows with each minor version, so a table says where each number is in it. For older
 * versions, a table by minor version has the offsets themselves; CPython does not change them
 * within a minor version.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/python/python_priv.h"

#define LAST_KNOWN SB_PYTHON(3, 15)
#define COOKIE	   0x7970677562656478ull /* "xdebugpy" */

/* Fields up to 3.12, as offsetof() and the DWARF of builds of each have them. */
struct row {
	uint32_t version;
	uint16_t flags;
	uint16_t key, heads, interp_next, interp_threads;
	uint16_t state_next, state_interp, state_thread_id, state_frame, cframe_frame;
	uint16_t frame_from, code, back, instr, owner; /* from the frame's beginning */
	uint16_t first_line, filename, qualname, line_table, adaptive;
	uint16_t text_ascii;
};

#define OLD (SB_PYTHON_EACH | SB_PYTHON_LASTI)
static const struct row rows[] = {
	{ SB_PYTHON(2, 7),
	  OLD | SB_PYTHON_LISTED,
	  0,
	  0,
	  0,
	  8,
	  0,
	  8,
	  144,
	  16,
	  0,
	  24,
	  32,
	  24,
	  120,
	  0,
	  96,
	  80,
	  0,
	  104,
	  0,
	  36 },
	{ SB_PYTHON(3, 6),
	  OLD,
	  0,
	  0,
	  0,
	  8,
	  8,
	  16,
	  152,
	  24,
	  0,
	  24,
	  32,
	  24,
	  120,
	  0,
	  36,
	  96,
	  0,
	  112,
	  0,
	  48 },
	{ SB_PYTHON(3, 7),
	  OLD,
	  1508,
	  24,
	  0,
	  8,
	  8,
	  16,
	  176,
	  24,
	  0,
	  24,
	  32,
	  24,
	  104,
	  0,
	  36,
	  96,
	  0,
	  112,
	  0,
	  48 },
	{ SB_PYTHON(3, 8),
	  OLD,
	  1396,
	  32,
	  0,
	  8,
	  8,
	  16,
	  176,
	  24,
	  0,
	  24,
	  32,
	  24,
	  104,
	  0,
	  40,
	  104,
	  0,
	  120,
	  0,
	  48 },
	{ SB_PYTHON(3, 9),
	  OLD,
	  588,
	  32,
	  0,
	  8,
	  8,
	  16,
	  176,
	  24,
	  0,
	  24,
	  32,
	  24,
	  104,
	  0,
	  40,
	  104,
	  0,
	  120,
	  0,
	  48 },
	{ SB_PYTHON(3, 10),
	  OLD,
	  588,
	  32,
	  0,
	  8,
	  8,
	  16,
	  176,
	  24,
	  0,
	  24,
	  32,
	  24,
	  96,
	  0,
	  40,
	  104,
	  0,
	  120,
	  0,
	  48 },
	{ SB_PYTHON(3, 11),
	  SB_PYTHON_ENTRY | SB_PYTHON_CFRAME,
	  596,
	  40,
	  0,
	  16,
	  8,
	  16,
	  152,
	  56,
	  8,
	  0,
	  32,
	  48,
	  56,
	  68,
	  72,
	  112,
	  128,
	  136,
	  184,
	  48 },
	{ SB_PYTHON(3, 12),
	  SB_PYTHON_SHIMS | SB_PYTHON_CFRAME | SB_PYTHON_CURRENT,
	  1548,
	  40,
	  0,
	  72,
	  8,
	  16,
	  136,
	  56,
	  0,
	  0,
	  0,
	  8,
	  56,
	  70,
	  68,
	  112,
	  128,
	  136,
	  192,
	  40 },
};

/* Words of struct _Py_DebugOffsets. */
struct description {
	uint32_t version;
	uint16_t key; /* in _PyRuntime: what it does not say */
	uint8_t heads, interp_next, interp_threads;
	uint8_t state_next, state_interp, state_frame, state_thread_id;
	uint8_t back, code, instr, owner, tlbc;
	uint8_t filename, name, qualname, line_table, first_line, adaptive, code_tlbc;
	uint8_t type, type_name, bytes_length, bytes_data, text_state, text_length, text_ascii;
};

enum { DESCRIPTION_WORDS = 96 };

static const struct description descriptions[] = {
	{ SB_PYTHON(3, 13),
	  2164,
	  5,
	  8,
	  9,
	  21,
	  22,
	  23,
	  24,
	  29,
	  30,
	  31,
	  33,
	  0,
	  35,
	  36,
	  37,
	  38,
	  39,
	  43,
	  0,
	  45,
	  47,
	  65,
	  66,
	  68,
	  69,
	  70 },
	{ SB_PYTHON(3, 14),
	  2340,
	  5,
	  8,
	  9,
	  24,
	  25,
	  26,
	  27,
	  32,
	  33,
	  34,
	  36,
	  38,
	  40,
	  41,
	  42,
	  43,
	  44,
	  48,
	  49,
	  51,
	  53,
	  75,
	  76,
	  78,
	  79,
	  80 },
	{ SB_PYTHON(3, 15),
	  0,
	  5,
	  8,
	  9,
	  24,
	  25,
	  26,
	  30,
	  40,
	  41,
	  42,
	  44,
	  46,
	  48,
	  49,
	  50,
	  51,
	  52,
	  56,
	  57,
	  59,
	  61,
	  87,
	  88,
	  90,
	  91,
	  92 },
};

static bool defines(struct sb_runtime *rt, const char *name)
{
	uint64_t addr;

	return !sb_image_symbol(rt->image, name, &addr, NULL);
}

/* Before Py_Version: what each minor version brought. */
static uint32_t version_by_symbols(struct sb_runtime *rt)
{
	if (!defines(rt, "_PyRuntime"))
		return defines(rt, "_PyEval_EvalFrameDefault") ? SB_PYTHON(3, 6)
		       : defines(rt, "PyString_FromString") && defines(rt, "PyCapsule_New")
			       ? SB_PYTHON(2, 7)
			       : 0;
	if (defines(rt, "PyIter_Send"))
		return SB_PYTHON(3, 10);
	if (defines(rt, "PyFrame_GetCode"))
		return SB_PYTHON(3, 9);
	return defines(rt, "PyVectorcall_Call") ? SB_PYTHON(3, 8) : SB_PYTHON(3, 7);
}

static void set_version(struct sb_runtime *rt, struct sb_python_layout *layout, uint32_t hex)
{
	layout->version = hex >> 16;
	snprintf(rt->version, sizeof(rt->version), "%u.%u.%u%s", hex >> 24, hex >> 16 & 255,
		 hex >> 8 & 255, layout->is_free_threaded ? "t" : "");
}

/* Either Py_Version or the description says it, to the patch. */
static int find_version(struct sb_runtime *rt, struct sb_python_layout *layout,
			const uint64_t *description)
{
	uint64_t addr;
	uint32_t hex;

	if (description[0] == COOKIE) {
		layout->is_free_threaded = description[2] & 1;
		set_version(rt, layout, (uint32_t)description[1]);
		return 0;
	}
	if (!sb_image_symbol(rt->image, "Py_Version", &addr, NULL) &&
	    !sb_image_read(rt->image, addr, &hex, sizeof(hex))) {
		set_version(rt, layout, hex);
		return 0;
	}
	layout->version = version_by_symbols(rt);
	if (!layout->version)
		return -ENOTSUP;
	snprintf(rt->version, sizeof(rt->version), "%u.%u", layout->version >> 8,
		 layout->version & 255);
	return 0;
}

static void use_row(const struct row *row, struct sb_python_layout *layout,
		    struct sb_python_conf *conf)
{
	bool has_unicode = row->version >= SB_PYTHON(3, 0);

	conf->flags = row->flags;
	conf->interp_next = row->interp_next;
	conf->interp_threads = row->interp_threads;
	conf->state_next = row->state_next;
	conf->state_thread_id = row->state_thread_id;
	conf->state_frame = row->state_frame;
	conf->cframe_frame = row->cframe_frame;
	conf->frame_from = row->frame_from;
	conf->code_word = (row->code - row->frame_from) / 8;
	conf->back_word = (row->back - row->frame_from) / 8;
	conf->instr_word = (row->instr - row->frame_from) / 8;
	conf->lasti = row->instr;
	conf->owner_byte = row->owner;
	conf->code_filename = row->filename;
	conf->code_adaptive = row->adaptive;
	layout->heads = row->heads;
	layout->key = row->key;
	layout->state_interp = row->state_interp;
	layout->first_line = row->first_line;
	layout->name = row->filename + 8;
	layout->qualname = row->qualname;
	layout->line_table = row->line_table;
	layout->type = 8;
	layout->type_name = 24;
	layout->bytes_length = 16;
	layout->bytes_data = has_unicode ? 32 : 36;
	layout->text_length = 16;
	layout->text_state = 32;
	layout->text_ascii = row->text_ascii;
	layout->text_compact = row->text_ascii + (row->text_ascii == 40 ? 16 : 24);
	layout->text_kind_shift = 2;
}

/* Offsets of one process's description, all of them small. */
struct described {
	const uint64_t *word;
	bool is_odd;
};

static uint16_t get(struct described *d, uint8_t at)
{
	uint64_t val = at ? d->word[at] : 0;

	if (val > UINT16_MAX)
		d->is_odd = true;
	return (uint16_t)val;
}

static int use_description(const struct description *row, const uint64_t *words,
			   struct sb_python_layout *layout, struct sb_python_conf *conf)
{
	struct described d = { .word = words };

	conf->flags = SB_PYTHON_SHIMS | SB_PYTHON_CURRENT;
	if (layout->is_free_threaded && row->tlbc)
		conf->flags |= SB_PYTHON_TLBC;
	conf->interp_next = get(&d, row->interp_next);
	conf->interp_threads = get(&d, row->interp_threads);
	conf->state_next = get(&d, row->state_next);
	conf->state_thread_id = get(&d, row->state_thread_id);
	conf->state_frame = get(&d, row->state_frame);
	conf->code_word = get(&d, row->code) / 8;
	conf->back_word = get(&d, row->back) / 8;
	conf->instr_word = get(&d, row->instr) / 8;
	conf->owner_byte = get(&d, row->owner);
	conf->tlbc_byte = get(&d, row->tlbc);
	conf->code_filename = get(&d, row->filename);
	conf->code_adaptive = get(&d, row->adaptive);
	conf->code_tlbc = get(&d, row->code_tlbc);
	layout->heads = get(&d, row->heads);
	layout->key = row->key;
	layout->state_interp = get(&d, row->state_interp);
	layout->first_line = get(&d, row->first_line);
	layout->name = get(&d, row->name);
	layout->qualname = get(&d, row->qualname);
	layout->line_table = get(&d, row->line_table);
	layout->type = get(&d, row->type);
	layout->type_name = get(&d, row->type_name);
	layout->bytes_length = get(&d, row->bytes_length);
	layout->bytes_data = get(&d, row->bytes_data);
	layout->text_length = get(&d, row->text_length);
	layout->text_state = get(&d, row->text_state);
	layout->text_ascii = get(&d, row->text_ascii);
	layout->text_compact = layout->text_ascii + 16;
	/* Interned strings are marked by a byte there, not by two bits. */
	layout->text_kind_shift =
		layout->is_free_threaded && row->version >= SB_PYTHON(3, 14) ? 8 : 2;
	return d.is_odd || layout->name != conf->code_filename + 8 ? -ENOTSUP : 0;
}

static int use_version(struct sb_python_layout *layout, struct sb_python_conf *conf,
		       const uint64_t *words)
{
	uint32_t version = layout->version;

	if (version > LAST_KNOWN && version >> 8 == 3) {
		layout->is_assumed = true;
		version = LAST_KNOWN;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].version == version) {
			use_row(&rows[i], layout, conf);
			return 0;
		}
	for (size_t i = 0; i < sizeof(descriptions) / sizeof(descriptions[0]); i++)
		if (descriptions[i].version == version && words[0] == COOKIE)
			return use_description(&descriptions[i], words, layout, conf);
	return -ENOTSUP;
}

int sb_python_find_layout(struct sb_runtime *rt, struct sb_python_layout *layout,
			  struct sb_python_conf *conf)
{
	uint64_t words[DESCRIPTION_WORDS] = {};
	int err;

	if (!sb_image_symbol(rt->image, "_PyRuntime", &layout->runtime, NULL)) {
		err = sb_memory_read(rt->memory, words, sizeof(words), layout->runtime);
		if (err)
			return err;
	}
	if (sb_image_symbol(rt->image, "PyCode_Type", &layout->code_type, NULL))
		layout->code_type = 0;
	err = find_version(rt, layout, words);
	if (!err)
		err = use_version(layout, conf, words);
	if (err == -ENOTSUP)
		sb_str_addf(&rt->why, "this version of Python is not known (%s%s%s)", rt->version,
			    rt->version[0] ? ", " : "", sb_image_build_id(rt->image));
	return err;
}
