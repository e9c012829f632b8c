// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of functions. A concrete function refers to its abstract origin, and that to its
 * declaration, which may be in another unit (LTO, dwz) or another file (dwz). The first name on
 * the way is used. Functions that are inlined in many places share the origin, so names are cached
 * by origin.
 */
#include <dwarf.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/str.h"
#include "symbolizer/dwarf/dwarf_priv.h"

static int enter_scope(struct sb_die_walk *walk, const struct sb_die *die, uint32_t offset,
		       struct sb_die_level *level)
{
	struct sb_unit *unit = walk->unit;
	struct sb_dwarf_scope scope = { .start = offset,
					.end = (uint32_t)(unit->end - unit->offset),
					.parent = level->id };

	if (die->role == ROLE_UNIT || !die->has_children)
		return 0;
	if (die->role != ROLE_NAMESPACE && die->role != ROLE_TYPE) {
		level->is_skipped = true;
		return 0;
	}
	scope.name = sb_die_string(unit, die, ATTR_NAME)
			     ?: die->role == ROLE_NAMESPACE ? "(anonymous namespace)"
							    : "(anonymous class)";
	if (unit->scopes.nr >= UNIT_SCOPES_MAX)
		return -EFBIG;
	level->id = (uint32_t)unit->scopes.nr;
	return sb_budget_push(unit->file->dwarf->budget, &unit->scopes, scope);
}

static void leave_scope(struct sb_die_walk *walk, const struct sb_die_level *level, uint32_t offset)
{
	/* Only levels of scopes and of the unit are not skipped. */
	if (level->id != NONE && !level->is_skipped)
		walk->unit->scopes.at[level->id].end = offset;
}

static int scopes_load(struct sb_unit *unit)
{
	struct sb_die_walk walk = { .unit = unit, .enter = enter_scope, .leave = leave_scope };
	int err;

	if (unit->is_scopes_built)
		return 0;
	unit->is_scopes_built = true;
	err = sb_die_walk_run(&walk);
	err = sb_unit_forgive(unit, err);
	unit->file->dwarf->nr_bytes += unit->scopes.cap * sizeof(struct sb_dwarf_scope);
	return err;
}

/* Return: the innermost scope around the DIE at @offset, or NONE. */
static uint32_t scope_at(const struct sb_unit *unit, uint32_t offset)
{
	size_t from = sb_bisect(unit->scopes.nr, i, unit->scopes.at[i].start < offset);
	uint32_t id = from ? (uint32_t)from - 1 : NONE;

	while (id != NONE && unit->scopes.at[id].end <= offset)
		id = unit->scopes.at[id].parent;
	return id;
}

/* Put namespaces and classes before the name of the DIE at @offset. */
static int qualify(struct sb_unit *unit, uint32_t offset, const char **name)
{
	struct sb_dwarf *dwarf = unit->file->dwarf;
	sb_cleanup(sb_str_release) struct sb_str str = {};
	uint32_t path[DIE_DEPTH_MAX], id;
	size_t nr = 0;
	int err;

	err = !sb_unit_is_c(unit) ? scopes_load(unit) : 0;
	if (err)
		return err;
	for (id = scope_at(unit, offset); id != NONE && nr < DIE_DEPTH_MAX;
	     id = unit->scopes.at[id].parent)
		path[nr++] = id;
	if (!nr)
		return 0;
	while (!err && nr && str.len < NAME_BYTES_MAX) {
		err = sb_str_add(&str, unit->scopes.at[path[--nr]].name);
		err = err ?: sb_str_addn(&str, "::", 2);
	}
	err = err ?: sb_str_add(&str, *name);
	if (err)
		return err;
	if (str.len > NAME_BYTES_MAX || sb_dwarf_check_full(dwarf, str.len, WORK_OF_STRINGS))
		return 0;
	*name = sb_arena_strndup(&dwarf->arena, str.s, str.len);
	return *name ? 0 : -ENOMEM;
}

/* Follow @ref to its declaration. Return: 0, or what went wrong; what was found so far counts. */
static int read_func(struct sb_die_ref ref, struct sb_dwarf_func *func)
{
	struct sb_unit *unit = NULL;
	struct sb_die die;
	int hops, err;

	for (hops = 0; hops < NAME_HOPS_MAX; hops++) {
		struct sb_die_ref next;

		err = sb_die_at(ref, &unit, &die);
		if (err)
			return err;
		func->name = func->name ?: sb_die_string(unit, &die, ATTR_NAME);
		func->linkage_name =
			func->linkage_name ?: sb_die_string(unit, &die, ATTR_LINKAGE_NAME);
		func->decl_line = func->decl_line ?: sb_die_u32(&die, ATTR_DECL_LINE);
		if (!sb_die_origin(unit, &die, &next))
			break;
		ref = next;
	}
	if (hops == NAME_HOPS_MAX)
		return -EFBIG;
	if (func->name && !func->linkage_name)
		return qualify(unit, (uint32_t)(ref.offset - unit->offset), &func->name);
	return 0;
}

static uint32_t find_func(const struct sb_dwarf *dwarf, struct sb_die_ref ref, uint64_t hash)
{
	sb_index_each(it, &dwarf->func_index, hash)
		if (dwarf->funcs.at[it.id].file == ref.file &&
		    dwarf->funcs.at[it.id].offset == ref.offset)
			return it.id;
	return SB_INDEX_NONE;
}

int sb_dwarf_func_load(struct sb_unit *unit, struct sb_dwarf_node *node)
{
	struct sb_dwarf *dwarf = unit->file->dwarf;
	struct sb_die_ref ref = { .file = unit->file, .offset = unit->offset + node->die };
	struct sb_dwarf_func func;
	struct sb_die die;
	uint64_t hash;
	int err;

	err = sb_die_at(ref, &unit, &die);
	if (!err)
		sb_die_origin(unit, &die, &ref);
	err = sb_unit_forgive(unit, err);
	if (err)
		return err;
	hash = sb_hash(&ref.offset, sizeof(ref.offset), (uintptr_t)ref.file);
	node->func = find_func(dwarf, ref, hash);
	if (node->func != NONE)
		return 0;
	func = (struct sb_dwarf_func){ .file = ref.file, .offset = ref.offset };
	err = sb_unit_forgive(unit, read_func(ref, &func));
	if (!err)
		err = sb_budget_push(dwarf->budget, &dwarf->funcs, func);
	if (!err)
		err = sb_index_add(&dwarf->func_index, hash, (uint32_t)dwarf->funcs.nr - 1);
	if (!err)
		node->func = (uint32_t)dwarf->funcs.nr - 1;
	return err;
}
