// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The index of units, lookups and names. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "dwarf_priv.h"
#include "sb_dwarf.h"

SB_DEFINE_CLEANUP(struct sb_dwarf, sb_dwarf_free)

static int open_image(int fd, struct sb_dwarf_image *image, Elf **ret_elf, Dwarf **ret_dbg)
{
	int err = sb_dwarf_image_read(fd, image);

	if (err)
		return err;
	*ret_elf = elf_memory(image->mem, image->len);
	if (!*ret_elf)
		return -ENOMEM;
	*ret_dbg = dwarf_begin_elf(*ret_elf, DWARF_C_READ, NULL);
	return *ret_dbg ? 0 : -EBADMSG;
}

static int index_unit(struct sb_dwarf *dwarf, Dwarf_Die *root)
{
	struct sb_dwarf_range to = { .value = (uint32_t)dwarf->units.nr };
	int nr;

	if (dwarf->units.nr >= UNITS_MAX)
		return -EFBIG;
	nr = sb_dwarf_add_die_ranges(dwarf, root, &dwarf->index, to);
	if (nr == -EBADMSG)
		dwarf->stats.nr_units_bad++;
	else if (nr < 0)
		return nr;
	return sb_vec_push(&dwarf->units, (struct sb_dwarf_unit){ .root = *root });
}

static int index_units(struct sb_dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die root;
	uint32_t hi = 0;
	size_t i;
	int err, ret;

	while (!(ret = dwarf_get_units(dwarf->dbg, unit, &unit, NULL, NULL, &root, NULL))) {
		int tag = dwarf_tag(&root);

		dwarf->stats.nr_units++;
		if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
			continue;
		err = index_unit(dwarf, &root);
		if (err)
			return err;
	}
	if (ret < 0)
		dwarf->stats.nr_units_bad++;
	sb_dwarf_ranges_sort(&dwarf->index);
	dwarf->index_hi = malloc((dwarf->index.nr + 1) * sizeof(*dwarf->index_hi));
	if (!dwarf->index_hi)
		return -ENOMEM;
	for (i = 0; i < dwarf->index.nr; i++) {
		hi = dwarf->index.at[i].hi > hi ? dwarf->index.at[i].hi : hi;
		dwarf->index_hi[i] = hi;
	}
	return 0;
}

int sb_dwarf_new(int fd, int alt_fd, struct sb_dwarf **ret_dwarf)
{
	sb_cleanup(sb_dwarf_freep) struct sb_dwarf *dwarf = calloc(1, sizeof(*dwarf));
	int err;

	if (!dwarf)
		return -ENOMEM;
	err = open_image(fd, &dwarf->image, &dwarf->elf, &dwarf->dbg);
	if (err)
		return err;
	if (alt_fd >= 0) {
		err = open_image(alt_fd, &dwarf->alt_image, &dwarf->alt_elf, &dwarf->alt_dbg);
		if (err == -ENOMEM)
			return err;
		if (!err)
			dwarf_setalt(dwarf->dbg, dwarf->alt_dbg);
	}
	err = index_units(dwarf);
	if (err)
		return err;
	*ret_dwarf = sb_take(dwarf);
	return 0;
}

void sb_dwarf_free(struct sb_dwarf *dwarf)
{
	size_t i;

	if (!dwarf)
		return;
	for (i = 0; i < dwarf->units.nr; i++) {
		struct sb_dwarf_unit *unit = &dwarf->units.at[i];

		sb_vec_release(&unit->nodes);
		sb_vec_release(&unit->lines);
		sb_dwarf_map_release(&unit->segs);
		sb_dwarf_map_release(&unit->rows);
	}
	sb_vec_release(&dwarf->units);
	sb_vec_release(&dwarf->index);
	free(dwarf->index_hi);
	sb_vec_release(&dwarf->scratch);
	sb_vec_release(&dwarf->funcs);
	sb_index_release(&dwarf->func_index);
	dwarf_end(dwarf->dbg);
	dwarf_end(dwarf->alt_dbg);
	elf_end(dwarf->elf);
	elf_end(dwarf->alt_elf);
	sb_dwarf_image_release(&dwarf->image);
	sb_dwarf_image_release(&dwarf->alt_image);
	free(dwarf);
}

static void read_func(Dwarf_Die *die, struct sb_dwarf_func *func)
{
	Dwarf_Attribute attr;
	Dwarf_Word line;

	func->name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attr));
	func->linkage_name = dwarf_formstring(
		dwarf_attr_integrate(die, DW_AT_linkage_name, &attr)
			?: dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr));
	if (!dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_line, &attr), &line) &&
	    line <= UINT32_MAX)
		func->decl_line = (uint32_t)line;
}

/* Functions inlined in many places share one abstract DIE: names are kept by that. */
static int find_func(struct sb_dwarf *dwarf, struct sb_dwarf_unit *unit, struct sb_dwarf_node *node)
{
	char *start = (char *)unit->root.addr - dwarf_cuoffset(&unit->root);
	Dwarf_Die die = { .addr = start + node->die, .cu = unit->root.cu }, origin;
	struct sb_dwarf_func func = {};
	Dwarf_Attribute attr;
	struct sb_index_iter it;
	uint64_t hash;
	int err;

	if (dwarf_formref_die(dwarf_attr(&die, DW_AT_abstract_origin, &attr), &origin))
		die = origin;
	hash = sb_hash(&die.addr, sizeof(die.addr), 0);
	for (it = sb_index_first(&dwarf->func_index, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&dwarf->func_index, it)) {
		if (dwarf->funcs.at[it.id].key == die.addr) {
			node->func = it.id;
			return 0;
		}
	}
	func.key = die.addr;
	read_func(&die, &func);
	node->func = (uint32_t)dwarf->funcs.nr;
	err = sb_vec_push(&dwarf->funcs, func);
	return err ?: sb_index_add(&dwarf->func_index, hash, node->func);
}

static int fill_frame(struct sb_dwarf *dwarf, struct sb_dwarf_unit *unit, uint32_t id,
		      struct sb_dwarf_frame *frame)
{
	struct sb_dwarf_node *node = &unit->nodes.at[id];
	const struct sb_dwarf_func *func;
	int err;

	if (node->func == SB_DWARF_NONE) {
		err = find_func(dwarf, unit, node);
		if (err)
			return err;
	}
	func = &dwarf->funcs.at[node->func];
	*frame = (struct sb_dwarf_frame){
		.name = func->name,
		.linkage_name = func->linkage_name,
		.decl_line = func->decl_line,
		.is_inlined = node->parent != SB_DWARF_NONE,
	};
	return 0;
}

static const char *file_name(const struct sb_dwarf_unit *unit, uint32_t file)
{
	return unit->files && file < unit->nr_files ? dwarf_filesrc(unit->files, file, NULL, NULL)
						    : NULL;
}

struct chain {
	struct sb_dwarf_frame *frames;
	size_t nr, max;
};

static int unit_lookup(struct sb_dwarf *dwarf, struct sb_dwarf_unit *unit, uint32_t at, bool lines,
		       struct chain *chain)
{
	uint32_t id, depth = 0, file = 0, line = 0, skip;
	struct sb_dwarf_frame *frame;
	int err;

	if (!unit->is_built) {
		err = sb_dwarf_unit_build(dwarf, unit);
		if (err)
			return err;
	}
	if (lines && !unit->is_lines_built) {
		err = sb_dwarf_lines_build(dwarf, unit);
		if (err)
			return err;
	}
	if (lines) {
		uint32_t row = sb_dwarf_map_at(&unit->rows, at);

		if (row != SB_DWARF_NONE) {
			file = unit->lines.at[row].file;
			line = unit->lines.at[row].line;
		}
	}
	id = sb_dwarf_map_at(&unit->segs, at);
	for (skip = id; skip != SB_DWARF_NONE; skip = unit->nodes.at[skip].parent)
		depth++;
	for (; id != SB_DWARF_NONE; id = unit->nodes.at[id].parent) {
		if (depth-- <= chain->max) {
			frame = &chain->frames[chain->nr];
			err = fill_frame(dwarf, unit, id, frame);
			if (err)
				return err;
			frame->line = line;
			frame->file = line ? file_name(unit, file) : NULL;
			chain->nr++;
		}
		file = unit->nodes.at[id].call_file;
		line = unit->nodes.at[id].call_line;
	}
	return 0;
}

int sb_dwarf_lookup(struct sb_dwarf *dwarf, uint64_t addr, bool lines,
		    struct sb_dwarf_frame *frames, size_t max, size_t *ret_nr)
{
	const sb_dwarf_ranges *index = &dwarf->index;
	uint32_t at;
	struct chain chain = { .frames = frames, .max = max };
	size_t lo = 0, hi = index->nr;
	int err;

	if (addr < dwarf->image.exec_lo || addr >= dwarf->image.exec_hi ||
	    addr - dwarf->image.exec_lo > UINT32_MAX)
		goto out;
	at = (uint32_t)(addr - dwarf->image.exec_lo);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (index->at[mid].lo <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; !chain.nr && lo-- > 0 && dwarf->index_hi[lo] > at;) {
		if (index->at[lo].hi <= at)
			continue;
		err = unit_lookup(dwarf, &dwarf->units.at[index->at[lo].value], at, lines, &chain);
		if (err)
			return err;
	}
out:
	*ret_nr = chain.nr;
	return 0;
}

void sb_dwarf_stats(const struct sb_dwarf *dwarf, struct sb_dwarf_stats *ret_stats)
{
	*ret_stats = dwarf->stats;
}

size_t sb_dwarf_bytes(const struct sb_dwarf *dwarf)
{
	return dwarf->image.len + dwarf->alt_image.len + dwarf->nr_table_bytes +
	       dwarf->nr_libdw_bytes;
}
