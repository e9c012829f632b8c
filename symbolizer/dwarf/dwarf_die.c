// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Units, and the attributes of one DIE: strings, addresses, references, ranges. */
#include <dwarf.h>
#include <errno.h>

#include "base/search.h"
#include "symbolizer/dwarf/dwarf_priv.h"

struct sb_cursor sb_dwarf_file_cursor(const struct sb_dwarf_file *file, enum sb_dwarf_section which,
				      uint64_t offset)
{
	const struct sb_dwarf_bytes *section = &file->image.sections[which];

	if (!section->at || offset > section->len)
		return (struct sb_cursor){ .is_bad = true };
	return (struct sb_cursor){ .at = section->at + offset, .end = section->at + section->len };
}

struct sb_cursor sb_unit_cursor(const struct sb_unit *unit, uint64_t offset)
{
	const uint8_t *info = unit->file->image.sections[SB_DWARF_INFO].at;

	if (offset < unit->offset + unit->header_bytes || offset > unit->end)
		return (struct sb_cursor){ .is_bad = true };
	return (struct sb_cursor){ .at = info + offset, .end = info + unit->end };
}

uint64_t sb_form_read(struct sb_cursor *cur, const struct sb_unit *unit, uint16_t *form)
{
	int size;

	if (*form == DW_FORM_indirect) {
		uint64_t actual = sb_cursor_uleb(cur);

		if (actual > UINT16_MAX || actual == DW_FORM_indirect ||
		    actual == DW_FORM_implicit_const) {
			sb_cursor_fail(cur);
			return 0;
		}
		*form = (uint16_t)actual;
	}
	size = sb_form_size(*form, unit);
	if (size > 8) {
		sb_cursor_skip(cur, (uint64_t)size);
		return 0;
	}
	if (size >= 0)
		return *form == DW_FORM_flag_present ? 1 : sb_cursor_uint(cur, (size_t)size);
	switch (*form) {
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_rnglistx:
	case DW_FORM_loclistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return sb_cursor_uleb(cur);
	case DW_FORM_sdata:
		return (uint64_t)sb_cursor_sleb(cur);
	case DW_FORM_string:
		return (uintptr_t)sb_cursor_string(cur);
	case DW_FORM_block1:
		sb_cursor_skip(cur, sb_cursor_uint(cur, 1));
		return 0;
	case DW_FORM_block2:
		sb_cursor_skip(cur, sb_cursor_uint(cur, 2));
		return 0;
	case DW_FORM_block4:
		sb_cursor_skip(cur, sb_cursor_uint(cur, 4));
		return 0;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		sb_cursor_skip(cur, sb_cursor_uleb(cur));
		return 0;
	default:
		sb_cursor_fail(cur); /* its size is not known: nothing behind it can be read */
		return 0;
	}
}

void sb_die_read(struct sb_cursor *cur, const struct sb_unit *unit, const struct sb_abbrev *abbrev,
		 struct sb_die *ret_die)
{
	const struct sb_abbrev_op *ops = unit->abbrevs->ops.at; /* NULL if none has any */
	const struct sb_abbrev_op *op = abbrev->nr_ops ? ops + abbrev->ops : NULL;
	const struct sb_abbrev_op *end = op ? op + abbrev->nr_ops : NULL;

	ret_die->mask = 0;
	ret_die->tag = abbrev->tag;
	ret_die->role = abbrev->role;
	ret_die->has_children = abbrev->has_children;
	for (; op < end; op++) {
		struct sb_die_value *val;
		uint16_t form = op->arg;

		if (op->what == OP_SKIP) {
			sb_cursor_skip(cur, op->arg);
			continue;
		}
		if (op->what == OP_SKIP_FORM) {
			sb_form_read(cur, unit, &form);
			continue;
		}
		val = &ret_die->attrs[op->what];
		ret_die->mask |= 1u << op->what;
		if (form == DW_FORM_implicit_const) {
			val->raw = op[1].arg | (uint32_t)op[2].arg << 16;
			op += 2;
		} else {
			val->raw = sb_form_read(cur, unit, &form);
		}
		val->form = form;
	}
}

/* Return: the unit whose bytes in .debug_info include @offset; NULL: none. */
static struct sb_unit *unit_at(struct sb_dwarf_file *file, uint64_t offset)
{
	struct sb_unit *units = file->units.at;
	size_t at = sb_bisect(file->units.nr, i, units[i].end <= offset);

	return at < file->units.nr && units[at].offset <= offset ? &units[at] : NULL;
}

int sb_die_at(struct sb_die_ref ref, struct sb_unit **ret_unit, struct sb_die *ret_die)
{
	struct sb_unit *unit = unit_at(ref.file, ref.offset);
	const struct sb_abbrev *abbrev;
	struct sb_cursor cur;
	int err;

	if (!unit)
		return -EBADMSG;
	err = sb_abbrevs_load(unit);
	if (err)
		return err;
	cur = sb_unit_cursor(unit, ref.offset);
	abbrev = sb_abbrev_find(unit->abbrevs, sb_cursor_uleb(&cur));
	if (!abbrev)
		return -EBADMSG;
	sb_die_read(&cur, unit, abbrev, ret_die);
	if (cur.is_bad)
		return -EBADMSG;
	*ret_unit = unit;
	return 0;
}

static const char *section_string(const struct sb_dwarf_file *file, enum sb_dwarf_section which,
				  uint64_t offset)
{
	struct sb_cursor cur = sb_dwarf_file_cursor(file, which, offset);
	const uint8_t *begin;
	const char *s;

	if (sb_cursor_left(&cur) > STRING_BYTES_MAX)
		cur.end = cur.at + STRING_BYTES_MAX;
	if (!cur.at)
		return NULL;
	begin = cur.at;
	s = sb_cursor_string(&cur);
	/* The same long string may be asked for again and again. */
	return sb_dwarf_check_full(file->dwarf, (uint64_t)(cur.at - begin), WORK_OF_STRINGS) ? NULL
											     : s;
}

/* Entry @idx of a table of offsets or addresses at @base. */
static bool table_entry(struct sb_cursor cur, uint64_t idx, size_t entry_bytes, uint64_t *ret_val)
{
	if (idx >= sb_cursor_left(&cur) / entry_bytes)
		return false;
	sb_cursor_skip(&cur, idx * entry_bytes);
	*ret_val = sb_cursor_uint(&cur, entry_bytes);
	return true;
}

const char *sb_form_string(const struct sb_unit *unit, struct sb_die_value val)
{
	const struct sb_dwarf_file *file = unit->file;
	uint64_t offset;

	switch (val.form) {
	case DW_FORM_string:
		return (const char *)(uintptr_t)val.raw;
	case DW_FORM_strp:
		return section_string(file, SB_DWARF_STR, val.raw);
	case DW_FORM_line_strp:
		return section_string(file, SB_DWARF_LINE_STR, val.raw);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return file->alt ? section_string(file->alt, SB_DWARF_STR, val.raw) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		if (!table_entry(sb_dwarf_file_cursor(file, SB_DWARF_STR_OFFSETS,
						      unit->str_offsets_base),
				 val.raw, unit->offset_size, &offset))
			return NULL;
		return section_string(file, SB_DWARF_STR, offset);
	default:
		return NULL;
	}
}

const char *sb_die_string(const struct sb_unit *unit, const struct sb_die *die,
			  enum sb_die_attr attr)
{
	return sb_die_has(die, attr) ? sb_form_string(unit, die->attrs[attr]) : NULL;
}

uint32_t sb_die_u32(const struct sb_die *die, enum sb_die_attr attr)
{
	return sb_die_has(die, attr) && die->attrs[attr].raw <= UINT32_MAX
		       ? (uint32_t)die->attrs[attr].raw
		       : 0;
}

bool sb_die_origin(const struct sb_unit *unit, const struct sb_die *die, struct sb_die_ref *ret_ref)
{
	const struct sb_die_value *val = &die->attrs[ATTR_ORIGIN];
	struct sb_die_ref ref = { .file = unit->file, .offset = val->raw };

	if (!sb_die_has(die, ATTR_ORIGIN))
		return false;
	switch (val->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		if (val->raw >= unit->end - unit->offset)
			return false;
		ref.offset += unit->offset;
		break;
	case DW_FORM_ref_addr:
		break;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		ref.file = unit->file->alt;
		break;
	default:
		return false; /* DW_FORM_ref_sig8: type units are not read */
	}
	if (!ref.file)
		return false;
	*ret_ref = ref;
	return true;
}

static bool read_addr_at(const struct sb_unit *unit, uint64_t idx, uint64_t *ret_addr)
{
	return table_entry(sb_dwarf_file_cursor(unit->file->main, SB_DWARF_ADDR, unit->addr_base),
			   idx, unit->addr_size, ret_addr);
}

static bool is_addr_index(uint16_t form)
{
	return form == DW_FORM_addrx || (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4) ||
	       form == DW_FORM_GNU_addr_index;
}

static bool form_addr(const struct sb_unit *unit, struct sb_die_value val, uint64_t *ret_addr)
{
	if (is_addr_index(val.form))
		return read_addr_at(unit, val.raw, ret_addr);
	*ret_addr = val.raw;
	return val.form == DW_FORM_addr;
}

/* Ranges on their way from a DIE into a list. */
struct collect {
	struct sb_unit *unit;
	sb_dwarf_ranges *ranges;
	struct sb_dwarf_range to;
	bool has_any;
};

static int collect_range(struct collect *col, uint64_t lo, uint64_t hi)
{
	struct sb_dwarf *dwarf = col->unit->file->dwarf;
	uint64_t exec_lo = dwarf->file.image.exec_lo, exec_hi = dwarf->file.image.exec_hi;

	if (!dwarf->ranges_left || col->ranges->nr >= UNIT_RANGES_MAX)
		return -EFBIG;
	dwarf->ranges_left--;
	/* The linker has dropped code that is outside of executable sections. */
	if (lo >= hi || lo < exec_lo || hi > exec_hi || hi - exec_lo >= NONE)
		return 0;
	col->has_any = true;
	col->to.lo = (uint32_t)(lo - exec_lo);
	col->to.hi = (uint32_t)(hi - exec_lo);
	return sb_budget_push(dwarf->budget, col->ranges, col->to);
}

/* DWARF 2 to 4, 2.17.3: pairs of offsets from a base. */
static int collect_old_list(struct collect *col, uint64_t offset)
{
	const struct sb_unit *unit = col->unit;
	struct sb_cursor cur = sb_dwarf_file_cursor(unit->file->main, SB_DWARF_RANGES, offset);
	uint64_t base = unit->low_pc, is_base = UINT64_MAX >> (64 - 8 * unit->addr_size);
	int err = 0;

	while (!err) {
		uint64_t lo = sb_cursor_uint(&cur, unit->addr_size);
		uint64_t hi = sb_cursor_uint(&cur, unit->addr_size);

		if (cur.is_bad)
			return -EBADMSG;
		if (!lo && !hi)
			return 0;
		if (lo == is_base)
			base = hi;
		else
			err = collect_range(col, base + lo, base + hi);
	}
	return err;
}

struct rnglist {
	struct sb_cursor cur;
	uint64_t base, lo, hi;
	bool is_bad;
};

static uint64_t rnglist_addrx(struct rnglist *list, const struct sb_unit *unit)
{
	uint64_t addr = 0;

	if (!read_addr_at(unit, sb_cursor_uleb(&list->cur), &addr))
		list->is_bad = true;
	return addr;
}

/* DWARF 5, 7.25. Return: whether there is an entry, which may be an empty range. */
static bool rnglist_next(struct rnglist *list, const struct sb_unit *unit)
{
	struct sb_cursor *cur = &list->cur;

	list->lo = list->hi = 0;
	switch (sb_cursor_u8(cur)) {
	case DW_RLE_end_of_list:
		return false;
	case DW_RLE_base_addressx:
		list->base = rnglist_addrx(list, unit);
		break;
	case DW_RLE_startx_endx:
		list->lo = rnglist_addrx(list, unit);
		list->hi = rnglist_addrx(list, unit);
		break;
	case DW_RLE_startx_length:
		list->lo = rnglist_addrx(list, unit);
		list->hi = list->lo + sb_cursor_uleb(cur);
		break;
	case DW_RLE_offset_pair:
		list->lo = list->base + sb_cursor_uleb(cur);
		list->hi = list->base + sb_cursor_uleb(cur);
		break;
	case DW_RLE_base_address:
		list->base = sb_cursor_uint(cur, unit->addr_size);
		break;
	case DW_RLE_start_end:
		list->lo = sb_cursor_uint(cur, unit->addr_size);
		list->hi = sb_cursor_uint(cur, unit->addr_size);
		break;
	case DW_RLE_start_length:
		list->lo = sb_cursor_uint(cur, unit->addr_size);
		list->hi = list->lo + sb_cursor_uleb(cur);
		break;
	default:
		list->is_bad = true;
	}
	return true;
}

static int collect_rnglist(struct collect *col, struct sb_die_value val)
{
	struct sb_unit *unit = col->unit;
	struct rnglist list = { .base = unit->low_pc };
	uint64_t offset = val.raw;
	int err = 0;

	if (val.form == DW_FORM_rnglistx) {
		if (!table_entry(sb_dwarf_file_cursor(unit->file, SB_DWARF_RNGLISTS,
						      unit->rnglists_base),
				 val.raw, unit->offset_size, &offset))
			return -EBADMSG;
		offset += unit->rnglists_base;
	}
	list.cur = sb_dwarf_file_cursor(unit->file, SB_DWARF_RNGLISTS, offset);
	while (!err && rnglist_next(&list, unit)) {
		if (list.is_bad || list.cur.is_bad)
			return -EBADMSG;
		err = collect_range(col, list.lo, list.hi);
	}
	return err ?: list.cur.is_bad ? -EBADMSG : 0;
}

int sb_die_ranges(struct sb_unit *unit, const struct sb_die *die, sb_dwarf_ranges *ranges,
		  struct sb_dwarf_range to)
{
	const struct sb_die_value *list = &die->attrs[ATTR_RANGES],
				  *high = &die->attrs[ATTR_HIGH_PC];
	struct collect col = { .unit = unit, .ranges = ranges, .to = to };
	uint64_t lo, hi;
	int err = 0;

	if (sb_die_has(die, ATTR_RANGES)) {
		err = unit->version >= 5 ? collect_rnglist(&col, *list)
					 : collect_old_list(&col, list->raw + unit->ranges_base);
	} else if (sb_die_has(die, ATTR_LOW_PC) && sb_die_has(die, ATTR_HIGH_PC)) {
		if (!form_addr(unit, die->attrs[ATTR_LOW_PC], &lo))
			return -EBADMSG;
		/* An address, or (from DWARF 4 on) the length. */
		if (!form_addr(unit, *high, &hi))
			hi = lo + high->raw;
		err = collect_range(&col, lo, hi);
	}
	return err ?: col.has_any;
}

bool sb_unit_is_c(const struct sb_unit *unit)
{
	switch (unit->language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		return true;
	default:
		return false;
	}
}

bool sb_unit_is_cplusplus(const struct sb_unit *unit)
{
	switch (unit->language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

/* DWARF 5, 7.5.1. Return: false when nothing behind this header can be read. */
static bool read_header(struct sb_cursor *cur, struct sb_unit *unit)
{
	const uint8_t *start = cur->at;
	uint64_t len = sb_cursor_uint(cur, 4);

	unit->offset_size = 4;
	if (len == UINT32_MAX) {
		unit->offset_size = 8;
		len = sb_cursor_uint(cur, 8);
	}
	if (cur->is_bad || len > sb_cursor_left(cur))
		return false;
	unit->end = unit->offset + (uint64_t)(cur->at - start) + len;
	unit->version = (uint16_t)sb_cursor_uint(cur, 2);
	if (unit->version >= 5) {
		unit->type = sb_cursor_u8(cur);
		unit->addr_size = sb_cursor_u8(cur);
		unit->abbrev_offset = sb_cursor_uint(cur, unit->offset_size);
	} else {
		unit->type = DW_UT_compile;
		unit->abbrev_offset = sb_cursor_uint(cur, unit->offset_size);
		unit->addr_size = sb_cursor_u8(cur);
	}
	if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
		unit->dwo_id = sb_cursor_uint(cur, 8);
	unit->header_bytes = (uint32_t)(cur->at - start);
	return true;
}

/* Return: whether it is a unit of types, which is not needed, or the zeros of a linker's
 * padding. */
static bool is_skipped(const struct sb_unit *unit)
{
	return unit->type == DW_UT_type || unit->type == DW_UT_split_type ||
	       unit->end == unit->offset + unit->offset_size;
}

static bool is_readable(const struct sb_unit *unit)
{
	return unit->version >= 2 && unit->version <= 5 &&
	       (unit->addr_size == 4 || unit->addr_size == 8) &&
	       unit->offset + unit->header_bytes < unit->end;
}

static uint64_t base_of(const struct sb_die *die, enum sb_die_attr attr, uint64_t fallback)
{
	return sb_die_has(die, attr) ? die->attrs[attr].raw : fallback;
}

static void take_root(struct sb_unit *unit, const struct sb_die *die)
{
	/* Without a base, tables start behind the header of the section's first contribution. */
	uint64_t header = unit->version < 5 ? 0 : unit->offset_size == 8 ? 16 : 8;

	unit->is_code = die->tag == DW_TAG_compile_unit || die->tag == DW_TAG_skeleton_unit;
	unit->addr_base = base_of(die, ATTR_ADDR_BASE, header);
	unit->str_offsets_base = base_of(die, ATTR_STR_OFFSETS_BASE, header);
	unit->rnglists_base = base_of(die, ATTR_RNGLISTS_BASE, header ? header + 4 : 0);
	unit->dwo_id = base_of(die, ATTR_GNU_DWO_ID, unit->dwo_id);
	unit->language = (uint16_t)sb_die_u32(die, ATTR_LANGUAGE);
	unit->comp_dir = sb_die_string(unit, die, ATTR_COMP_DIR);
	unit->dwo_name = sb_die_string(unit, die, ATTR_DWO_NAME);
	unit->has_stmt_list = sb_die_has(die, ATTR_STMT_LIST);
	unit->stmt_list = base_of(die, ATTR_STMT_LIST, 0);
	/* In DWARF 2 there is one range, and parts of the code may be elsewhere. */
	unit->has_ranges = sb_die_has_ranges(die) && unit->version > 2;
	if (sb_die_has(die, ATTR_LOW_PC))
		form_addr(unit, die->attrs[ATTR_LOW_PC], &unit->low_pc);
}

/* Put the ranges of a unit into the index. GNU_ranges_base is for the .dwo's DIEs, not for this. */
static int index_root(struct sb_unit *unit, uint32_t id, const struct sb_die *die)
{
	struct sb_dwarf *dwarf = unit->file->dwarf;
	int ret = sb_die_ranges(unit, die, &dwarf->index, (struct sb_dwarf_range){ .value = id });

	unit->ranges_base = base_of(die, ATTR_GNU_RANGES_BASE, 0);
	return ret < 0 ? ret : 0;
}

static int load_unit(struct sb_dwarf_file *file, struct sb_unit *unit)
{
	uint64_t hash = sb_hash(&unit->abbrev_offset, sizeof(unit->abbrev_offset), 0);
	struct sb_index_iter it;
	struct sb_die die;
	int err;

	/* The units dwz makes share tables; reading those up to the root each time takes long. */
	for (it = sb_index_first(&file->abbrev_users, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&file->abbrev_users, it))
		if (file->units.at[it.id].abbrev_offset == unit->abbrev_offset)
			break;
	err = sb_unit_read_root(unit, it.id != SB_INDEX_NONE, &die);
	if (!err && it.id == SB_INDEX_NONE)
		err = sb_index_add(&file->abbrev_users, hash, (uint32_t)file->units.nr);
	if (!err) {
		take_root(unit, &die);
		if (unit->is_code && file == &file->dwarf->file)
			err = index_root(unit, (uint32_t)file->units.nr, &die);
	}
	return err;
}

int sb_dwarf_file_load_units(struct sb_dwarf_file *file)
{
	const uint8_t *start = file->image.sections[SB_DWARF_INFO].at;
	struct sb_cursor cur = sb_dwarf_file_cursor(file, SB_DWARF_INFO, 0);
	int err;

	while (sb_cursor_left(&cur)) {
		struct sb_unit unit = { .file = file, .offset = (uint64_t)(cur.at - start) };

		if (!read_header(&cur, &unit)) {
			sb_unit_note_damage(&unit, -EBADMSG);
			break; /* what precedes the defect is used */
		}
		cur.at = start + unit.end;
		if (is_skipped(&unit))
			continue;
		if (!is_readable(&unit)) {
			sb_unit_note_damage(&unit, -EBADMSG);
			continue;
		}
		if (file->units.nr >= UNITS_MAX) {
			sb_unit_note_damage(&unit, -E2BIG);
			break;
		}
		err = sb_dwarf_check_full(file->dwarf, 1, WORK_OF_UNIT);
		if (!err)
			err = sb_unit_forgive(&unit, load_unit(file, &unit));
		if (!err)
			err = sb_budget_push(file->dwarf->budget, &file->units, unit);
		if (err)
			return err;
	}
	sb_index_release(&file->abbrev_users);
	file->dwarf->nr_bytes += file->units.cap * sizeof(struct sb_unit);
	return 0;
}
