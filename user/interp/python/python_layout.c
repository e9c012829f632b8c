// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From 3.13 on, CPython describes itself: struct _Py_DebugOffsets at the start of _PyRuntime. The
 * description grows with each minor version, so a table says where each number is in it. For older
 * versions, a table by minor version has the offsets themselves; CPython does not change them
 * within a minor version.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "interp/python/python_priv.h"

#define LAST_KNOWN SB_PYTHON(3, 15)
#define COOKIE	   0x7970677562656478ull /* "xdebugpy" */
#define OLD	   (SB_PYTHON_EACH | SB_PYTHON_LASTI)

/*
 * Up to 3.12: the fields of each version, as offsetof() and the DWARF of builds have them. Each
 * version has a column.
 */
enum { NR_VERSIONS = 8 };
typedef uint16_t by_version[NR_VERSIONS];
static const struct {
	by_version version, flags, key, heads, interp_threads;
	by_version state_next, state_interp, state_thread_id, state_frame, cframe_frame;
	by_version frame_from, code, back, instr, owner; /* from the frame's beginning */
	by_version first_line, filename, qualname, line_table, adaptive, text_ascii;
} old = {
	.version = { SB_PYTHON(2, 7), SB_PYTHON(3, 6), SB_PYTHON(3, 7), SB_PYTHON(3, 8),
		     SB_PYTHON(3, 9), SB_PYTHON(3, 10), SB_PYTHON(3, 11), SB_PYTHON(3, 12) },
	.flags = { OLD | SB_PYTHON_LISTED, OLD, OLD, OLD, OLD, OLD,
		   SB_PYTHON_ENTRY | SB_PYTHON_CFRAME,
		   SB_PYTHON_SHIMS | SB_PYTHON_CFRAME | SB_PYTHON_CURRENT },
	.key = { 0, 0, 1508, 1396, 588, 588, 596, 1548 },
	.heads = { 0, 0, 24, 32, 32, 32, 40, 40 },
	.interp_threads = { 8, 8, 8, 8, 8, 8, 16, 72 },
	.state_next = { 0, 8, 8, 8, 8, 8, 8, 8 },
	.state_interp = { 8, 16, 16, 16, 16, 16, 16, 16 },
	.state_thread_id = { 144, 152, 176, 176, 176, 176, 152, 136 },
	.state_frame = { 16, 24, 24, 24, 24, 24, 56, 56 },
	.cframe_frame = { 0, 0, 0, 0, 0, 0, 8, 0 },
	.frame_from = { 24, 24, 24, 24, 24, 24, 0, 0 },
	.code = { 32, 32, 32, 32, 32, 32, 32, 0 },
	.back = { 24, 24, 24, 24, 24, 24, 48, 8 },
	.instr = { 120, 120, 104, 104, 104, 96, 56, 56 },
	.owner = { 0, 0, 0, 0, 0, 0, 68, 70 },
	.first_line = { 96, 36, 36, 40, 40, 40, 72, 68 },
	.filename = { 80, 96, 96, 104, 104, 104, 112, 112 },
	.qualname = { 0, 0, 0, 0, 0, 0, 128, 128 },
	.line_table = { 104, 112, 112, 120, 120, 120, 136, 136 },
	.adaptive = { 0, 0, 0, 0, 0, 0, 184, 192 },
	.text_ascii = { 36, 48, 48, 48, 48, 48, 48, 40 },
};

/* From 3.13 on: which word of struct _Py_DebugOffsets says it. Each version has a column. */
enum { NR_DESCRIBED = 3, DESCRIPTION_WORDS = 96 };
typedef uint16_t by_described[NR_DESCRIBED];
static const struct {
	by_described version;
	by_described key; /* in _PyRuntime: what it does not say */
	by_described heads, interp_next, interp_threads;
	by_described state_next, state_interp, state_frame, state_thread_id;
	by_described back, code, instr, owner, tlbc;
	by_described filename, name, qualname, line_table, first_line, adaptive, code_tlbc;
	by_described type, type_name, bytes_length, bytes_data, text_state, text_length, text_ascii;
} described = {
	.version = { SB_PYTHON(3, 13), SB_PYTHON(3, 14), SB_PYTHON(3, 15) },
	.key = { 2164, 2340, 0 },
	.heads = { 5, 5, 5 },
	.interp_next = { 8, 8, 8 },
	.interp_threads = { 9, 9, 9 },
	.state_next = { 21, 24, 24 },
	.state_interp = { 22, 25, 25 },
	.state_frame = { 23, 26, 26 },
	.state_thread_id = { 24, 27, 30 },
	.back = { 29, 32, 40 },
	.code = { 30, 33, 41 },
	.instr = { 31, 34, 42 },
	.owner = { 33, 36, 44 },
	.tlbc = { 0, 38, 46 },
	.filename = { 35, 40, 48 },
	.name = { 36, 41, 49 },
	.qualname = { 37, 42, 50 },
	.line_table = { 38, 43, 51 },
	.first_line = { 39, 44, 52 },
	.adaptive = { 43, 48, 56 },
	.code_tlbc = { 0, 49, 57 },
	.type = { 45, 51, 59 },
	.type_name = { 47, 53, 61 },
	.bytes_length = { 65, 75, 87 },
	.bytes_data = { 66, 76, 88 },
	.text_state = { 68, 78, 90 },
	.text_length = { 69, 79, 91 },
	.text_ascii = { 70, 80, 92 },
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

static void use_row(size_t i, struct sb_python_layout *layout, struct sb_python_conf *conf)
{
	bool has_unicode = old.version[i] >= SB_PYTHON(3, 0);

	conf->flags = old.flags[i];
	conf->interp_threads = old.interp_threads[i];
	conf->state_next = old.state_next[i];
	conf->state_thread_id = old.state_thread_id[i];
	conf->state_frame = old.state_frame[i];
	conf->cframe_frame = old.cframe_frame[i];
	conf->frame_from = old.frame_from[i];
	conf->code_word = (old.code[i] - old.frame_from[i]) / 8;
	conf->back_word = (old.back[i] - old.frame_from[i]) / 8;
	conf->instr_word = (old.instr[i] - old.frame_from[i]) / 8;
	conf->lasti = old.instr[i];
	conf->owner_byte = old.owner[i];
	conf->code_filename = old.filename[i];
	conf->code_adaptive = old.adaptive[i];
	layout->heads = old.heads[i];
	layout->key = old.key[i];
	layout->state_interp = old.state_interp[i];
	layout->first_line = old.first_line[i];
	layout->name = old.filename[i] + 8;
	layout->qualname = old.qualname[i];
	layout->line_table = old.line_table[i];
	layout->type = 8;
	layout->type_name = 24;
	layout->bytes_length = 16;
	layout->bytes_data = has_unicode ? 32 : 36;
	layout->text_length = 16;
	layout->text_state = 32;
	layout->text_ascii = old.text_ascii[i];
	layout->text_compact = old.text_ascii[i] + (old.text_ascii[i] == 40 ? 16 : 24);
	layout->text_kind_shift = 2;
}

/* Offsets of one process's description, all of them small. */
struct words {
	const uint64_t *word;
	bool is_odd;
};

static uint16_t get(struct words *d, uint16_t at)
{
	uint64_t val = at ? d->word[at] : 0;

	if (val > UINT16_MAX)
		d->is_odd = true;
	return (uint16_t)val;
}

static int use_description(size_t i, const uint64_t *words, struct sb_python_layout *layout,
			   struct sb_python_conf *conf)
{
	struct words d = { .word = words };

	conf->flags = SB_PYTHON_SHIMS | SB_PYTHON_CURRENT;
	if (layout->is_free_threaded && described.tlbc[i])
		conf->flags |= SB_PYTHON_TLBC;
	conf->interp_next = get(&d, described.interp_next[i]);
	conf->interp_threads = get(&d, described.interp_threads[i]);
	conf->state_next = get(&d, described.state_next[i]);
	conf->state_thread_id = get(&d, described.state_thread_id[i]);
	conf->state_frame = get(&d, described.state_frame[i]);
	conf->code_word = get(&d, described.code[i]) / 8;
	conf->back_word = get(&d, described.back[i]) / 8;
	conf->instr_word = get(&d, described.instr[i]) / 8;
	conf->owner_byte = get(&d, described.owner[i]);
	conf->tlbc_byte = get(&d, described.tlbc[i]);
	conf->code_filename = get(&d, described.filename[i]);
	conf->code_adaptive = get(&d, described.adaptive[i]);
	conf->code_tlbc = get(&d, described.code_tlbc[i]);
	layout->heads = get(&d, described.heads[i]);
	layout->key = described.key[i];
	layout->state_interp = get(&d, described.state_interp[i]);
	layout->first_line = get(&d, described.first_line[i]);
	layout->name = get(&d, described.name[i]);
	layout->qualname = get(&d, described.qualname[i]);
	layout->line_table = get(&d, described.line_table[i]);
	layout->type = get(&d, described.type[i]);
	layout->type_name = get(&d, described.type_name[i]);
	layout->bytes_length = get(&d, described.bytes_length[i]);
	layout->bytes_data = get(&d, described.bytes_data[i]);
	layout->text_length = get(&d, described.text_length[i]);
	layout->text_state = get(&d, described.text_state[i]);
	layout->text_ascii = get(&d, described.text_ascii[i]);
	layout->text_compact = layout->text_ascii + 16;
	/* Interned strings are marked by a byte there, not by two bits. */
	layout->text_kind_shift =
		layout->is_free_threaded && described.version[i] >= SB_PYTHON(3, 14) ? 8 : 2;
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
	for (size_t i = 0; i < NR_VERSIONS; i++)
		if (old.version[i] == version) {
			use_row(i, layout, conf);
			return 0;
		}
	for (size_t i = 0; i < NR_DESCRIBED; i++)
		if (described.version[i] == version && words[0] == COOKIE)
			return use_description(i, words, layout, conf);
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
		sb_str_addf(&rt->why,
			    "stackbpf does not support this version of Python "
			    "(%s%s%s)",
			    rt->version, rt->version[0] ? ", " : "", sb_image_build_id(rt->image));
	return err;
}
