// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Line number programs (DWARF 5, 6.2), run to rows of address, file and line. Rows that repeat
 * file and line are merged, and sequences of code that the linker dropped are left out.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "symbolizer/dwarf/dwarf_priv.h"

/* A row costs at least a byte of the program; sb_dwarf.line_bytes_left bounds those. */
struct seq {
	uint32_t lo, hi;  /* addresses */
	size_t first, nr; /* rows */
};

struct program {
	struct sb_unit *unit;
	struct sb_cursor cur;
	/* As in the header, DWARF 5, 6.2.4. */
	uint16_t version;
	uint8_t addr_size, offset_size;
	uint8_t min_inst_len, max_ops, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *opcode_lens;
	/* Registers. */
	uint64_t addr;
	uint32_t file;
	uint32_t line;
	bool is_seq_bad; /* the sequence is of dropped code, or goes backwards */
	/* Rows of all sequences, one after the other. */
	SB_VEC(uint32_t) starts;
	SB_VEC(struct sb_dwarf_row) rows;
	SB_VEC(struct seq) seqs;
	size_t seq_first;
};

static int add_source(struct sb_unit *unit, const char *name, uint64_t dir)
{
	struct sb_dwarf_lines *lines = &unit->lines;

	if (lines->files.nr >= UNIT_SOURCES_MAX)
		return -EFBIG;
	return sb_budget_push(
		unit->file->dwarf->budget, &lines->files,
		(struct sb_dwarf_source){ .name = name, .dir = dir > NONE ? NONE : (uint32_t)dir });
}

static int add_dir(struct sb_unit *unit, const char *name)
{
	struct sb_dwarf_lines *lines = &unit->lines;

	if (lines->dirs.nr >= UNIT_SOURCES_MAX)
		return -EFBIG;
	return sb_budget_push(unit->file->dwarf->budget, &lines->dirs, name);
}

/* DWARF 2 to 4: names end with an empty one; file 0 and directory 0 are the unit's own. */
static int read_old_tables(struct program *prog)
{
	struct sb_cursor *cur = &prog->cur;
	const char *name;
	int err;

	err = add_dir(prog->unit, prog->unit->comp_dir);
	while (!err && (name = sb_cursor_string(cur)) && *name)
		err = add_dir(prog->unit, name);
	if (!err)
		err = add_source(prog->unit, NULL, 0);
	while (!err && (name = sb_cursor_string(cur)) && *name) {
		uint64_t dir = sb_cursor_uleb(cur);

		sb_cursor_uleb(cur); /* time of modification */
		sb_cursor_uleb(cur); /* size */
		err = add_source(prog->unit, name, dir);
	}
	return err ?: cur->is_bad ? -EBADMSG : 0;
}

/* Pairs of (content type, form) that say what an entry of the next table is made of. */
struct entry_format {
	struct sb_cursor pairs;
	uint8_t nr;
};

static struct entry_format read_format(struct sb_cursor *cur)
{
	struct entry_format format = { .nr = sb_cursor_u8(cur) };
	uint8_t i;

	format.pairs = *cur;
	for (i = 0; i < format.nr; i++) {
		sb_cursor_uleb(cur);
		sb_cursor_uleb(cur);
	}
	return format;
}

static const char *read_entry(struct program *prog, struct entry_format format,
			      const struct sb_unit *forms, uint64_t *ret_dir)
{
	const char *name = NULL;
	uint8_t i;

	*ret_dir = 0;
	for (i = 0; i < format.nr; i++) {
		uint64_t content = sb_cursor_uleb(&format.pairs);
		uint16_t form = (uint16_t)sb_cursor_uleb(&format.pairs);
		struct sb_die_value val = { .raw = sb_form_read(&prog->cur, forms, &form) };

		val.form = form;
		if (content == DW_LNCT_path)
			name = sb_form_string(forms, val);
		else if (content == DW_LNCT_directory_index)
			*ret_dir = val.raw;
	}
	return name;
}

/* DWARF 5: file 0 and directory 0 stand in the tables. */
static int read_new_tables(struct program *prog)
{
	struct sb_unit forms = *prog->unit;
	bool is_files;
	int err = 0;

	forms.offset_size = prog->offset_size;
	forms.addr_size = prog->addr_size;
	forms.version = prog->version;
	for (is_files = false; !err; is_files = true) {
		struct entry_format format = read_format(&prog->cur);
		uint64_t i, dir, nr = sb_cursor_uleb(&prog->cur);

		/* An entry without bytes could be there any number of times. */
		if (prog->cur.is_bad || nr > sb_cursor_left(&prog->cur))
			return -EBADMSG;
		for (i = 0; !err && i < nr; i++) {
			const char *name;

			/* Forms without bytes take none of those that the program was charged
			 * for. */
			err = sb_dwarf_check_full(forms.file->dwarf, format.nr, WORK_OF_LINES);
			if (err)
				return err;
			name = read_entry(prog, format, &forms, &dir);
			if (prog->cur.is_bad)
				return -EBADMSG;
			err = is_files ? add_source(prog->unit, name, dir)
				       : add_dir(prog->unit, name);
		}
		if (is_files)
			break;
	}
	return err;
}

static int read_header(struct program *prog)
{
	struct sb_dwarf *dwarf = prog->unit->file->dwarf;
	struct sb_cursor *cur = &prog->cur;
	const uint8_t *code;
	uint64_t len = sb_cursor_uint(cur, 4);
	int err;

	prog->offset_size = 4;
	prog->addr_size = prog->unit->addr_size;
	if (len == UINT32_MAX) {
		prog->offset_size = 8;
		len = sb_cursor_uint(cur, 8);
	}
	if (cur->is_bad || len > sb_cursor_left(cur))
		return -EBADMSG;
	if (len > dwarf->line_bytes_left)
		return -EFBIG;
	dwarf->line_bytes_left -= len;
	err = sb_dwarf_check_full(dwarf, len, WORK_OF_LINES);
	if (err)
		return err;
	cur->end = cur->at + len;
	prog->version = (uint16_t)sb_cursor_uint(cur, 2);
	if (prog->version < 2 || prog->version > 5)
		return -EBADMSG;
	if (prog->version >= 5) {
		prog->addr_size = sb_cursor_u8(cur);
		sb_cursor_u8(cur); /* segment selector size */
	}
	len = sb_cursor_uint(cur, prog->offset_size);
	if (len > sb_cursor_left(cur))
		return -EBADMSG;
	code = cur->at + len;
	prog->min_inst_len = sb_cursor_u8(cur);
	prog->max_ops = prog->version >= 4 ? sb_cursor_u8(cur) : 1;
	sb_cursor_u8(cur); /* default is_stmt */
	prog->line_base = (int8_t)sb_cursor_u8(cur);
	prog->line_range = sb_cursor_u8(cur);
	prog->opcode_base = sb_cursor_u8(cur);
	prog->opcode_lens = cur->at;
	sb_cursor_skip(cur, prog->opcode_base ? prog->opcode_base - 1u : 0);
	if (cur->is_bad || !prog->line_range || !prog->opcode_base || prog->addr_size > 8)
		return -EBADMSG;
	err = prog->version >= 5 ? read_new_tables(prog) : read_old_tables(prog);
	cur->at = code;
	return err;
}

static void start_seq(struct program *prog)
{
	prog->starts.nr = prog->rows.nr = prog->seq_first;
	prog->addr = 0;
	prog->file = prog->line = 1;
	prog->is_seq_bad = false;
}

static int add_row(struct program *prog)
{
	const struct sb_dwarf_image *image = &prog->unit->file->dwarf->file.image;
	struct sb_dwarf_row row = { .file = prog->file, .line = prog->line };
	struct sb_budget *budget = prog->unit->file->dwarf->budget;
	size_t nr = prog->rows.nr;
	uint32_t at;
	int err;

	if (prog->is_seq_bad)
		return 0;
	if (prog->addr < image->exec_lo || prog->addr >= image->exec_hi ||
	    prog->addr - image->exec_lo >= NONE) {
		prog->is_seq_bad = true;
		return 0;
	}
	at = (uint32_t)(prog->addr - image->exec_lo);
	if (nr > prog->seq_first) {
		if (at < prog->starts.at[nr - 1]) {
			prog->is_seq_bad = true;
			return 0;
		}
		if (at == prog->starts.at[nr - 1]) {
			prog->rows.at[nr - 1] = row;
			return 0;
		}
		if (row.file == prog->rows.at[nr - 1].file &&
		    row.line == prog->rows.at[nr - 1].line)
			return 0;
	}
	if (nr >= UNIT_ROWS_MAX)
		return -EFBIG;
	err = sb_budget_push(budget, &prog->starts, at);
	return err ?: sb_budget_push(budget, &prog->rows, row);
}

static int end_seq(struct program *prog)
{
	const struct sb_dwarf_image *image = &prog->unit->file->dwarf->file.image;
	struct seq seq = { .first = prog->seq_first };
	int err = 0;

	if (!prog->is_seq_bad && prog->rows.nr > seq.first && prog->addr >= image->exec_lo &&
	    prog->addr <= image->exec_hi && prog->addr - image->exec_lo < NONE) {
		seq.lo = prog->starts.at[seq.first];
		seq.hi = (uint32_t)(prog->addr - image->exec_lo);
		/* The last row may be for no byte at all. */
		while (prog->rows.nr > seq.first && prog->starts.at[prog->rows.nr - 1] >= seq.hi)
			prog->starts.nr = --prog->rows.nr;
		seq.nr = prog->rows.nr - seq.first;
		if (seq.nr)
			err = sb_budget_push(prog->unit->file->dwarf->budget, &prog->seqs, seq);
		prog->seq_first = prog->rows.nr;
	}
	start_seq(prog);
	return err;
}

static void advance(struct program *prog, uint64_t ops)
{
	/* max_ops > 1: VLIW machines only; the operation inside of the instruction is left out. */
	prog->addr += prog->min_inst_len * (prog->max_ops > 1 ? ops / prog->max_ops : ops);
}

static int run_extended(struct program *prog)
{
	struct sb_cursor *cur = &prog->cur;
	uint64_t len = sb_cursor_uleb(cur);
	const uint8_t *next;
	const char *name;
	int err = 0;

	if (!len || len > sb_cursor_left(cur))
		return -EBADMSG;
	next = cur->at + len;
	switch (sb_cursor_u8(cur)) {
	case DW_LNE_end_sequence:
		err = end_seq(prog);
		break;
	case DW_LNE_set_address:
		if (len - 1 > 8)
			return -EBADMSG;
		prog->addr = sb_cursor_uint(cur, len - 1);
		break;
	case DW_LNE_define_file:
		name = sb_cursor_string(cur);
		err = add_source(prog->unit, name, sb_cursor_uleb(cur));
		break;
	default:
		break;
	}
	cur->at = next;
	return err;
}

static int run_standard(struct program *prog, uint8_t opcode)
{
	struct sb_cursor *cur = &prog->cur;
	uint8_t i;

	switch (opcode) {
	case DW_LNS_copy:
		return add_row(prog);
	case DW_LNS_advance_pc:
		advance(prog, sb_cursor_uleb(cur));
		return 0;
	case DW_LNS_advance_line:
		prog->line += (uint32_t)sb_cursor_sleb(cur);
		return 0;
	case DW_LNS_set_file:
		prog->file = (uint32_t)sb_cursor_uleb(cur);
		return 0;
	case DW_LNS_const_add_pc:
		advance(prog, (255u - prog->opcode_base) / prog->line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		prog->addr += sb_cursor_uint(cur, 2);
		return 0;
	default:
		for (i = 0; i < prog->opcode_lens[opcode - 1]; i++)
			sb_cursor_uleb(cur);
		return 0;
	}
}

static int run(struct program *prog)
{
	struct sb_cursor *cur = &prog->cur;
	int err = 0;

	start_seq(prog);
	while (!err && sb_cursor_left(cur)) {
		uint8_t opcode = *cur->at++;

		if (opcode >= prog->opcode_base) {
			uint8_t adjusted = (uint8_t)(opcode - prog->opcode_base);

			advance(prog, adjusted / prog->line_range);
			prog->line += (uint32_t)(prog->line_base + adjusted % prog->line_range);
			err = add_row(prog);
		} else if (opcode) {
			err = run_standard(prog, opcode);
		} else {
			err = run_extended(prog);
		}
	}
	return err ?: cur->is_bad ? -EBADMSG : 0;
}

static int compare_seqs(const void *pa, const void *pb)
{
	const struct seq *a = pa, *b = pb;

	return sb_compare(a->lo, b->lo) ?: sb_compare(a->first, b->first);
}

/* Sequences in the order of addresses, with an entry of line 0 where there is none. */
static int flatten(struct program *prog, struct sb_dwarf_lines *lines)
{
	size_t i, j, nr = 0, max = prog->seq_first + prog->seqs.nr;
	uint32_t *starts = malloc((max + 1) * sizeof(*starts));
	struct sb_dwarf_row *rows = malloc((max + 1) * sizeof(*rows));

	lines->starts = starts;
	lines->rows = rows;
	if (!starts || !rows)
		return -ENOMEM;
	qsort(prog->seqs.at, prog->seqs.nr, sizeof(prog->seqs.at[0]), compare_seqs);
	for (i = 0; i < prog->seqs.nr; i++) {
		const struct seq *seq = &prog->seqs.at[i];

		/* Where sequences overlap, the one that starts later is right. */
		while (nr && starts[nr - 1] >= seq->lo)
			nr--;
		for (j = seq->first; j < seq->first + seq->nr; j++) {
			starts[nr] = prog->starts.at[j];
			rows[nr++] = prog->rows.at[j];
		}
		starts[nr] = seq->hi;
		rows[nr++] = (struct sb_dwarf_row){ .file = NONE };
	}
	lines->nr = nr;
	return 0;
}

int sb_lines_build(struct sb_unit *unit)
{
	struct sb_dwarf *dwarf = unit->file->dwarf;
	struct program prog = { .unit = unit };
	int err;

	unit->is_lines_built = true;
	if (!unit->has_stmt_list)
		return 0;
	prog.cur = sb_dwarf_file_cursor(unit->file, SB_DWARF_LINE, unit->stmt_list);
	err = prog.cur.is_bad ? -EBADMSG : 0;
	if (!err)
		err = read_header(&prog);
	if (!err)
		err = run(&prog);
	/* What came before a fault is good. */
	err = sb_unit_forgive(unit, err);
	if (!err && prog.seqs.nr)
		err = sb_budget_charge(dwarf->budget,
				       prog.rows.nr * 2 *
					       (sizeof(uint32_t) + sizeof(struct sb_dwarf_row)));
	if (!err && prog.seqs.nr)
		err = flatten(&prog, &unit->lines);
	sb_vec_release(&prog.starts);
	sb_vec_release(&prog.rows);
	sb_vec_release(&prog.seqs);
	dwarf->nr_bytes += unit->lines.nr * (sizeof(uint32_t) + sizeof(struct sb_dwarf_row)) +
			   unit->lines.files.cap * sizeof(struct sb_dwarf_source) +
			   unit->lines.dirs.cap * sizeof(char *);
	return err;
}

void sb_lines_release(struct sb_dwarf_lines *lines)
{
	free(lines->starts);
	free(lines->rows);
	sb_vec_release(&lines->files);
	sb_vec_release(&lines->dirs);
}

/* @dir and @name as one path in @buf. Return: its length, or 0 when it does not fit. */
static size_t join(char *buf, const char *dir, const char *name)
{
	size_t dir_len = dir ? strlen(dir) : 0, name_len = strlen(name);
	bool slash = dir_len && dir[dir_len - 1] != '/';

	if (dir_len + slash + name_len >= PATH_BYTES_MAX)
		return 0;
	memmove(buf + dir_len + slash, name, name_len + 1);
	if (dir_len)
		memcpy(buf, dir, dir_len);
	if (slash)
		buf[dir_len] = '/';
	return dir_len + slash + name_len;
}

const char *sb_lines_path(struct sb_unit *unit, uint32_t file)
{
	struct sb_dwarf_lines *lines = &unit->lines;
	struct sb_arena *arena = &unit->file->dwarf->arena;
	struct sb_dwarf_source *source;
	char buf[PATH_BYTES_MAX];
	const char *dir = NULL;
	size_t len;

	if (file >= lines->files.nr)
		return NULL;
	source = &lines->files.at[file];
	if (source->path || !source->name || source->name[0] == '/')
		return source->path ?: source->name;
	if (source->dir < lines->dirs.nr)
		dir = lines->dirs.at[source->dir];
	len = join(buf, dir, source->name);
	if (len && buf[0] != '/')
		len = join(buf, unit->comp_dir, buf);
	if (len && !sb_dwarf_check_full(unit->file->dwarf, len, WORK_OF_STRINGS))
		source->path = sb_arena_strndup(arena, buf, len);
	return source->path ?: source->name;
}
