// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Functions and inlined functions of one unit, found in one pass over its DIEs. DIEs that cannot
 * contain code are skipped by DW_AT_sibling if the compiler gives one (gcc does, clang does not).
 */
#include <dwarf.h>
#include <errno.h>

#include "symbolizer/dwarf/dwarf_priv.h"

/* Go to the sibling, if the DIE says where it is. */
static bool jump(struct sb_die_walk *walk, const struct sb_die *die)
{
	const struct sb_unit *unit = walk->unit;
	const uint8_t *start = unit->file->image.sections[SB_DWARF_INFO].at;
	uint64_t to = die->attrs[ATTR_SIBLING].raw;

	if (!sb_die_has(die, ATTR_SIBLING))
		return false;
	if (die->attrs[ATTR_SIBLING].form != DW_FORM_ref_addr)
		to += unit->offset;
	if (to <= (uint64_t)(walk->cur.at - start) || to > unit->end)
		sb_cursor_fail(&walk->cur);
	else
		walk->cur.at = start + to;
	return true;
}

static uint32_t offset_of(const struct sb_die_walk *walk)
{
	const uint8_t *start = walk->unit->file->image.sections[SB_DWARF_INFO].at;

	return (uint32_t)((uint64_t)(walk->cur.at - start) - walk->unit->offset);
}

/* One DIE. */
static int step(struct sb_die_walk *walk)
{
	struct sb_die_level level = walk->levels[walk->depth - 1];
	uint32_t offset = offset_of(walk);
	uint64_t code = sb_cursor_uleb(&walk->cur);
	const struct sb_abbrev *abbrev;
	struct sb_die die;
	int err = 0;

	if (!code) {
		walk->depth--;
		if (walk->leave)
			walk->leave(walk, &level, offset);
		return 0;
	}
	abbrev = sb_abbrev_find(walk->unit->abbrevs, code);
	if (!abbrev)
		return -EBADMSG;
	if (!abbrev->has_children && abbrev->size >= 0 &&
	    (level.is_skipped || abbrev->role == ROLE_OTHER)) {
		sb_cursor_skip(&walk->cur, (uint64_t)abbrev->size);
		return 0;
	}
	sb_die_read(&walk->cur, walk->unit, abbrev, &die);
	if (walk->cur.is_bad)
		return -EBADMSG;
	if (abbrev->role == ROLE_OTHER)
		level.is_skipped = true;
	else if (!level.is_skipped)
		err = walk->enter(walk, &die, offset, &level);
	if (err || !abbrev->has_children || (level.is_skipped && jump(walk, &die)))
		return err;
	if (walk->depth == DIE_DEPTH_MAX)
		return -EFBIG;
	walk->levels[walk->depth++] = level;
	return 0;
}

int sb_die_walk_run(struct sb_die_walk *walk)
{
	struct sb_unit *unit = walk->unit;
	int err;

	err = sb_dwarf_check_full(unit->file->dwarf, unit->end - unit->offset, WORK_OF_DIES);
	if (!err)
		err = sb_abbrevs_load(unit);
	if (err)
		return err;
	walk->cur = sb_unit_cursor(unit, unit->offset + unit->header_bytes);
	walk->depth = 1;
	walk->levels[0] = (struct sb_die_level){ .id = NONE };
	/* Some producers leave out the last null DIEs. */
	while (!err && walk->depth && sb_cursor_left(&walk->cur))
		err = step(walk);
	return err ?: walk->cur.is_bad ? -EBADMSG : 0;
}

/* Return: whether the DIE has code (then @level is what its children are in), or an error. */
static int add_node(struct sb_unit *unit, const struct sb_die *die, uint32_t offset,
		    struct sb_die_level *level)
{
	bool is_inlined = die->role == ROLE_INLINED;
	uint32_t id = (uint32_t)unit->nodes.nr;
	uint32_t nr_inlined = is_inlined ? level->nr_inlined + 1 : 0;
	struct sb_dwarf_node node = { .parent = is_inlined ? level->id : NONE,
				      .die = offset,
				      .func = NONE };
	sb_dwarf_ranges *ranges = &unit->file->dwarf->scratch;
	size_t nr_ranges = ranges->nr;
	int ret;

	if (id >= UNIT_NODES_MAX)
		return -EFBIG;
	ret = sb_die_ranges(unit, die, ranges,
			    (struct sb_dwarf_range){ .value = id, .depth = nr_inlined });
	if (ret < 0)
		ranges->nr = nr_ranges; /* there is no such node */
	if (ret == -EBADMSG)
		return sb_unit_forgive(unit, ret);
	/* Where a compiler has no word for code in several places (DWARF 2), inner ones have
	 * some. */
	if (!ret && is_inlined && level->id != NONE)
		ret = 1;
	if (ret <= 0)
		return ret;
	if (is_inlined) {
		node.call_line = sb_die_u32(die, ATTR_CALL_LINE);
		node.call_file = sb_die_u32(die, ATTR_CALL_FILE);
	}
	level->id = id;
	level->nr_inlined = nr_inlined;
	return sb_budget_push(unit->file->dwarf->budget, &unit->nodes, node) ?: 1;
}

static int enter_code(struct sb_die_walk *walk, const struct sb_die *die, uint32_t offset,
		      struct sb_die_level *level)
{
	int ret;

	if (die->role == ROLE_FUNCTION || die->role == ROLE_INLINED) {
		ret = add_node(walk->unit, die, offset, level);
		if (ret < 0)
			return ret;
		level->is_skipped = !ret;
	} else if (die->role == ROLE_TYPE) {
		/*
		 * Functions of a C++ class stand behind it, unless it is a local one (a lambda);
		 * other languages (Rust, D, Swift) have them inside.
		 */
		level->is_skipped = sb_unit_is_c(walk->unit) ||
				    (sb_unit_is_cplusplus(walk->unit) && level->id == NONE);
	}
	return 0;
}

int sb_unit_build(struct sb_unit *unit)
{
	struct sb_die_walk walk = { .unit = unit, .enter = enter_code };
	struct sb_dwarf *dwarf = unit->file->dwarf;
	int err;

	unit->is_built = true;
	dwarf->scratch.nr = 0;
	err = sb_die_walk_run(&walk);
	err = sb_unit_forgive(unit, err);
	if (!err)
		err = sb_budget_charge(dwarf->budget,
				       dwarf->scratch.nr * 2 * sizeof(struct sb_dwarf_range))
			      ?: sb_dwarf_check_full(dwarf, dwarf->scratch.nr, WORK_OF_RANGE);
	if (!err)
		err = sb_dwarf_map_build(&dwarf->scratch, &unit->segs);
	if (err)
		return err;
	dwarf->nr_bytes += unit->nodes.cap * sizeof(struct sb_dwarf_node) +
			   unit->segs.nr * 2 * sizeof(uint32_t);
	return 0;
}
