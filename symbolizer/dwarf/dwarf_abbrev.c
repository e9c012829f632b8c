// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Abbreviations (DWARF 5, 7.5.3), converted to steps: attributes that are used are steps of their
 * own, and everything between them is merged to one skip if its size is known. So most DIEs are
 * skipped by one addition.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "symbolizer/dwarf/dwarf_priv.h"

int sb_form_size(uint16_t form, const struct sb_unit *unit)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return unit->addr_size;
	case DW_FORM_ref_addr:
		return unit->version == 2 ? unit->addr_size : unit->offset_size;
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return unit->offset_size;
	default:
		return -1;
	}
}

static int attr_of(uint64_t name)
{
	switch (name) {
	case DW_AT_sibling:
		return ATTR_SIBLING;
	case DW_AT_name:
		return ATTR_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return ATTR_LINKAGE_NAME;
	case DW_AT_low_pc:
		return ATTR_LOW_PC;
	case DW_AT_high_pc:
		return ATTR_HIGH_PC;
	case DW_AT_ranges:
		return ATTR_RANGES;
	case DW_AT_abstract_origin:
	case DW_AT_specification:
		return ATTR_ORIGIN;
	case DW_AT_call_line:
		return ATTR_CALL_LINE;
	case DW_AT_call_file:
		return ATTR_CALL_FILE;
	case DW_AT_decl_line:
		return ATTR_DECL_LINE;
	case DW_AT_stmt_list:
		return ATTR_STMT_LIST;
	case DW_AT_comp_dir:
		return ATTR_COMP_DIR;
	case DW_AT_language:
		return ATTR_LANGUAGE;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return ATTR_ADDR_BASE;
	case DW_AT_str_offsets_base:
		return ATTR_STR_OFFSETS_BASE;
	case DW_AT_rnglists_base:
		return ATTR_RNGLISTS_BASE;
	case DW_AT_GNU_ranges_base:
		return ATTR_GNU_RANGES_BASE;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return ATTR_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return ATTR_GNU_DWO_ID;
	default:
		return -1;
	}
}

static enum sb_die_role role_of(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_skeleton_unit:
	case DW_TAG_type_unit:
		return ROLE_UNIT;
	case DW_TAG_subprogram:
		return ROLE_FUNCTION;
	case DW_TAG_inlined_subroutine:
		return ROLE_INLINED;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return ROLE_BLOCK;
	case DW_TAG_namespace:
	case DW_TAG_module:
		return ROLE_NAMESPACE;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return ROLE_TYPE;
	default:
		return ROLE_OTHER;
	}
}

static bool is_wanted(const struct sb_abbrev *abbrev, int attr)
{
	if (attr == ATTR_SIBLING)
		return abbrev->has_children;
	return attr >= 0 && abbrev->role != ROLE_OTHER;
}

static int add_op(const struct sb_unit *unit, struct sb_abbrev_table *table,
		  struct sb_abbrev *abbrev, uint16_t what, uint16_t arg)
{
	if (abbrev->nr_ops >= ABBREV_OPS_MAX || table->ops.nr >= TABLE_OPS_MAX)
		return -EFBIG;
	abbrev->nr_ops++;
	return sb_budget_push(unit->file->dwarf->budget, &table->ops,
			      (struct sb_abbrev_op){ .what = what, .arg = arg });
}

static int add_skip(const struct sb_unit *unit, struct sb_abbrev_table *table,
		    struct sb_abbrev *abbrev, int size)
{
	struct sb_abbrev_op *last = abbrev->nr_ops ? &table->ops.at[table->ops.nr - 1] : NULL;

	if (!size)
		return 0;
	if (last && last->what == OP_SKIP && last->arg + size <= UINT16_MAX) {
		last->arg = (uint16_t)(last->arg + size);
		return 0;
	}
	return add_op(unit, table, abbrev, OP_SKIP, (uint16_t)size);
}

/* An attribute with its value in the abbreviation. */
static int add_implicit(const struct sb_unit *unit, struct sb_abbrev_table *table,
			struct sb_abbrev *abbrev, int attr, int64_t val)
{
	uint32_t val32 = val >= 0 && val <= UINT32_MAX ? (uint32_t)val : 0;
	int err;

	err = add_op(unit, table, abbrev, (uint16_t)attr, DW_FORM_implicit_const);
	err = err ?: add_op(unit, table, abbrev, OP_VALUE, (uint16_t)val32);
	return err ?: add_op(unit, table, abbrev, OP_VALUE, (uint16_t)(val32 >> 16));
}

static int read_attrs(struct sb_cursor *cur, const struct sb_unit *unit,
		      struct sb_abbrev_table *table, struct sb_abbrev *abbrev)
{
	int err = 0;

	while (!err) {
		uint64_t name = sb_cursor_uleb(cur), form = sb_cursor_uleb(cur);
		int64_t implicit = form == DW_FORM_implicit_const ? sb_cursor_sleb(cur) : 0;
		int attr = attr_of(name), size;

		if (cur->is_bad || form > UINT16_MAX)
			return -EBADMSG;
		if (!name && !form)
			return 0;
		size = sb_form_size((uint16_t)form, unit);
		if (size < 0)
			abbrev->size = -1;
		else if (abbrev->size >= 0)
			abbrev->size += size;
		if (!is_wanted(abbrev, attr))
			err = size < 0 ? add_op(unit, table, abbrev, OP_SKIP_FORM, (uint16_t)form)
				       : add_skip(unit, table, abbrev, size);
		else if (form == DW_FORM_implicit_const)
			err = add_implicit(unit, table, abbrev, attr, implicit);
		else
			err = add_op(unit, table, abbrev, (uint16_t)attr, (uint16_t)form);
	}
	return err;
}

static int compare_abbrevs(const void *pa, const void *pb)
{
	const struct sb_abbrev *a = pa, *b = pb;

	return a->code < b->code ? -1 : a->code > b->code;
}

/* @only: stop at that code (to read a root DIE without its whole table), or 0. */
static int read_table(const struct sb_unit *unit, struct sb_abbrev_table *table, uint64_t only)
{
	struct sb_dwarf *dwarf = unit->file->dwarf;
	struct sb_cursor cur =
		sb_dwarf_file_cursor(unit->file, SB_DWARF_ABBREV, unit->abbrev_offset);
	const uint8_t *start = cur.at, *before;
	int err = 0;

	table->is_dense = true;
	while (!err) {
		struct sb_abbrev abbrev = { .code = sb_cursor_uleb(&cur),
					    .ops = (uint32_t)table->ops.nr };
		uint64_t tag;

		if (cur.is_bad)
			return -EBADMSG;
		if (!abbrev.code)
			break;
		before = cur.at;
		tag = sb_cursor_uleb(&cur);
		abbrev.tag = (uint16_t)tag;
		abbrev.role = (uint8_t)role_of(tag);
		abbrev.has_children = sb_cursor_u8(&cur) == DW_CHILDREN_yes;
		err = read_attrs(&cur, unit, table, &abbrev)
			      ?: sb_dwarf_check_full(dwarf, (uint64_t)(cur.at - before),
						     WORK_OF_ABBREVS);
		if (!err && (size_t)(cur.at - start) > dwarf->abbrev_bytes_left)
			err = -EFBIG;
		table->is_dense = table->is_dense && abbrev.code == table->abbrevs.nr + 1;
		if (!err && table->abbrevs.nr >= ABBREVS_MAX)
			err = -EFBIG;
		if (!err)
			err = sb_budget_push(dwarf->budget, &table->abbrevs, abbrev);
		if (only && abbrev.code == only)
			break;
	}
	dwarf->abbrev_bytes_left -= (uint64_t)(cur.at - start) < dwarf->abbrev_bytes_left
					    ? (uint64_t)(cur.at - start)
					    : dwarf->abbrev_bytes_left;
	if (!err && !table->is_dense)
		err = sb_dwarf_check_full(dwarf, table->abbrevs.nr, WORK_OF_SORTED);
	if (!err && !table->is_dense)
		qsort(table->abbrevs.at, table->abbrevs.nr, sizeof(table->abbrevs.at[0]),
		      compare_abbrevs);
	return err;
}

static void table_release(struct sb_abbrev_table *table)
{
	sb_vec_release(&table->abbrevs);
	sb_vec_release(&table->ops);
}

static bool fits(const struct sb_abbrev_table *table, const struct sb_unit *unit)
{
	return table->offset == unit->abbrev_offset && table->version == unit->version &&
	       table->addr_size == unit->addr_size && table->offset_size == unit->offset_size;
}

int sb_abbrevs_load(struct sb_unit *unit)
{
	struct sb_dwarf_file *file = unit->file;
	uint64_t hash = sb_hash(&unit->abbrev_offset, sizeof(unit->abbrev_offset), 0);
	struct sb_abbrev_table *table;
	int err;

	if (unit->abbrevs)
		return 0;
	sb_index_each(it, &file->table_index, hash) {
		if (fits(file->tables.at[it.id], unit)) {
			unit->abbrevs = file->tables.at[it.id];
			return 0;
		}
	}
	err = sb_dwarf_check_full(file->dwarf, 0, 0);
	if (err)
		return err;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	*table = (struct sb_abbrev_table){ .offset = unit->abbrev_offset,
					   .version = unit->version,
					   .addr_size = unit->addr_size,
					   .offset_size = unit->offset_size };
	err = read_table(unit, table, 0);
	if (!err)
		err = sb_vec_push(&file->tables, table);
	if (err) {
		table_release(table);
		free(table);
		return err;
	}
	unit->abbrevs = table;
	file->dwarf->nr_bytes += sizeof(*table) + table->abbrevs.cap * sizeof(struct sb_abbrev) +
				 table->ops.cap * sizeof(struct sb_abbrev_op);
	return sb_index_add(&file->table_index, hash, (uint32_t)file->tables.nr - 1);
}

int sb_unit_read_root(struct sb_unit *unit, bool is_shared, struct sb_die *ret_die)
{
	struct sb_cursor cur = sb_unit_cursor(unit, unit->offset + unit->header_bytes);
	uint64_t code = sb_cursor_uleb(&cur);
	const struct sb_abbrev *abbrev = NULL;
	struct sb_abbrev_table table = {};
	int err;

	if (!code)
		return -EBADMSG;
	if (is_shared) {
		err = sb_abbrevs_load(unit);
	} else {
		err = read_table(unit, &table, code);
		unit->abbrevs = &table;
	}
	if (!err)
		abbrev = sb_abbrev_find(unit->abbrevs, code);
	if (abbrev)
		sb_die_read(&cur, unit, abbrev, ret_die);
	if (!err && (!abbrev || cur.is_bad))
		err = -EBADMSG;
	if (!is_shared)
		unit->abbrevs = NULL;
	table_release(&table);
	return err;
}

void sb_abbrevs_release(struct sb_dwarf_file *file)
{
	size_t i;

	for (i = 0; i < file->tables.nr; i++) {
		table_release(file->tables.at[i]);
		free(file->tables.at[i]);
	}
	sb_vec_release(&file->tables);
	sb_index_release(&file->table_index);
}

const struct sb_abbrev *sb_abbrev_find(const struct sb_abbrev_table *table, uint64_t code)
{
	const struct sb_abbrev *abbrevs = table->abbrevs.at;
	size_t nr = table->abbrevs.nr, at;

	if (table->is_dense)
		return code && code <= nr ? &abbrevs[code - 1] : NULL;
	at = sb_bisect(nr, i, abbrevs[i].code < code);
	return at < nr && abbrevs[at].code == code ? &abbrevs[at] : NULL;
}
