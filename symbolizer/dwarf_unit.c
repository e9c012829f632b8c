// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions and lines of one unit, through libdw's primitive calls. */
#include <dwarf.h>
#include <errno.h>

#include "dwarf_priv.h"

int sb_dwarf_add_range(struct sb_dwarf *dwarf, sb_dwarf_ranges *ranges, uint64_t lo, uint64_t hi,
		       struct sb_dwarf_range to)
{
	uint64_t exec_lo = dwarf->image.exec_lo, exec_hi = dwarf->image.exec_hi;

	if (lo >= hi)
		return 0;
	if (lo < exec_lo || hi > exec_hi || hi - exec_lo > UINT32_MAX) {
		dwarf->stats.nr_ranges_dead++;
		return 0;
	}
	if (ranges->nr >= UNIT_RANGES_MAX)
		return -EFBIG;
	to.lo = (uint32_t)(lo - exec_lo);
	to.hi = (uint32_t)(hi - exec_lo);
	return sb_vec_push(ranges, to);
}

int sb_dwarf_add_die_ranges(struct sb_dwarf *dwarf, Dwarf_Die *die, sb_dwarf_ranges *ranges,
			    struct sb_dwarf_range to)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t it = 0;
	int nr = 0, err;

	while ((it = dwarf_ranges(die, it, &base, &lo, &hi)) > 0) {
		err = sb_dwarf_add_range(dwarf, ranges, lo, hi, to);
		if (err)
			return err;
		nr++;
	}
	return it < 0 ? -EBADMSG : nr;
}

struct walk {
	struct sb_dwarf *dwarf;
	struct sb_dwarf_unit *unit;
	Dwarf_Off last; /* DIEs are read in the order of the file, or not at all: no loops */
};

struct scope {
	uint32_t node, depth, nr_inlined;
};

static uint32_t udata(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word val;

	if (dwarf_formudata(dwarf_attr(die, name, &attr), &val) || val > UINT32_MAX)
		return 0;
	return (uint32_t)val;
}

/* Return: whether @die has code; then @scope is what its children are in. */
static int add_node(struct walk *walk, Dwarf_Die *die, int tag, struct scope *scope)
{
	bool is_inlined = tag == DW_TAG_inlined_subroutine;
	struct sb_dwarf_node node = {
		.parent = is_inlined ? scope->node : SB_DWARF_NONE,
		.die = (uint32_t)dwarf_cuoffset(die),
		.func = SB_DWARF_NONE,
	};
	uint32_t id = (uint32_t)walk->unit->nodes.nr;
	uint32_t nr_inlined = is_inlined ? scope->nr_inlined + 1 : 0;
	int nr;

	nr = sb_dwarf_add_die_ranges(walk->dwarf, die, &walk->dwarf->scratch,
				     (struct sb_dwarf_range){ .value = id, .depth = nr_inlined });
	if (nr <= 0)
		return nr == -EBADMSG ? 0 : nr;
	if (is_inlined) {
		node.call_line = udata(die, DW_AT_call_line);
		node.call_file = udata(die, DW_AT_call_file);
	}
	scope->node = id;
	scope->nr_inlined = nr_inlined;
	return sb_vec_push(&walk->unit->nodes, node) ?: 1;
}

static int walk_children(struct walk *walk, Dwarf_Die *parent, struct scope scope);

static int visit(struct walk *walk, Dwarf_Die *die, struct scope scope)
{
	int tag = dwarf_tag(die), ret;

	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		ret = add_node(walk, die, tag, &scope);
		if (ret <= 0)
			return ret;
		break;
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		break;
	default:
		return 0;
	}
	if (!dwarf_haschildren(die))
		return 0;
	return walk_children(walk, die, scope);
}

static int walk_children(struct walk *walk, Dwarf_Die *parent, struct scope scope)
{
	Dwarf_Die die;
	int ret, err;

	if (scope.depth++ >= DIE_DEPTH_MAX) {
		walk->dwarf->stats.nr_cut++;
		return 0;
	}
	for (ret = dwarf_child(parent, &die); !ret; ret = dwarf_siblingof(&die, &die)) {
		Dwarf_Off off = dwarf_dieoffset(&die);

		if (off <= walk->last)
			return -EBADMSG;
		walk->last = off;
		err = visit(walk, &die, scope);
		if (err)
			return err;
	}
	return ret < 0 ? -EBADMSG : 0;
}

int sb_dwarf_unit_build(struct sb_dwarf *dwarf, struct sb_dwarf_unit *unit)
{
	struct walk walk = { .dwarf = dwarf, .unit = unit, .last = dwarf_dieoffset(&unit->root) };
	int err;

	unit->is_built = true;
	dwarf->scratch.nr = 0;
	dwarf->stats.nr_units_read++;
	err = walk_children(&walk, &unit->root, (struct scope){ .node = SB_DWARF_NONE });
	if (err == -EBADMSG)
		dwarf->stats.nr_units_bad++;
	else if (err == -EFBIG)
		dwarf->stats.nr_cut++;
	else if (err)
		return err;
	err = sb_dwarf_map_build(&dwarf->scratch, &unit->segs);
	if (err)
		return err;
	dwarf->nr_table_bytes +=
		unit->nodes.cap * sizeof(unit->nodes.at[0]) + unit->segs.nr * 2 * sizeof(uint32_t);
	return 0;
}

static int add_row(struct sb_dwarf_unit *unit, struct sb_dwarf_map *rows, uint32_t at,
		   struct sb_dwarf_row row)
{
	struct sb_dwarf_row *last = unit->lines.nr ? &unit->lines.at[unit->lines.nr - 1] : NULL;

	if (rows->nr && rows->starts[rows->nr - 1] == at) {
		*last = row;
		return 0;
	}
	if (last && last->file == row.file && last->line == row.line)
		return 0;
	rows->starts[rows->nr] = at;
	rows->values[rows->nr] = (uint32_t)unit->lines.nr;
	rows->nr++;
	return sb_vec_push(&unit->lines, row);
}

int sb_dwarf_lines_build(struct sb_dwarf *dwarf, struct sb_dwarf_unit *unit)
{
	uint64_t exec_lo = dwarf->image.exec_lo, exec_hi = dwarf->image.exec_hi;
	Dwarf_Lines *lines;
	size_t i, nr;
	int err = 0;

	unit->is_lines_built = true;
	if (dwarf_getsrclines(&unit->root, &lines, &nr) ||
	    dwarf_getsrcfiles(&unit->root, &unit->files, &unit->nr_files)) {
		dwarf->stats.nr_units_bad++;
		return 0;
	}
	if (nr > UNIT_ROWS_MAX) {
		dwarf->stats.nr_cut++;
		return 0;
	}
	unit->rows.starts = malloc((nr + 1) * sizeof(uint32_t));
	unit->rows.values = malloc((nr + 1) * sizeof(uint32_t));
	if (!unit->rows.starts || !unit->rows.values)
		return -ENOMEM;
	for (i = 0; !err && i < nr; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		struct sb_dwarf_row row = {};
		Dwarf_Files *files;
		size_t file = 0;
		Dwarf_Addr addr;
		bool is_end = false;
		int lineno = 0;

		dwarf_lineaddr(line, &addr);
		dwarf_lineno(line, &lineno);
		dwarf_lineendsequence(line, &is_end);
		dwarf_line_file(line, &files, &file);
		if (addr < exec_lo || addr > exec_hi || addr - exec_lo > UINT32_MAX)
			continue;
		if (!is_end)
			row = (struct sb_dwarf_row){ .file = (uint32_t)file,
						     .line = (uint32_t)lineno };
		err = add_row(unit, &unit->rows, (uint32_t)(addr - exec_lo), row);
	}
	dwarf->nr_libdw_bytes += nr * 48;
	dwarf->nr_table_bytes += unit->lines.cap * 8 + unit->rows.nr * 8;
	return err;
}
