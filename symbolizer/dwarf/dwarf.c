// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The index of units, and lookups by address. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "symbolizer/dwarf/dwarf_priv.h"

SB_DEFINE_CLEANUP(struct sb_dwarf, sb_dwarf_free)

static void allow_effort(struct sb_dwarf *dwarf, const struct sb_dwarf_image *image)
{
	const struct sb_dwarf_bytes *sections = image->sections;

	dwarf->ranges_left +=
		EFFORT_FACTOR * (sections[SB_DWARF_INFO].len + sections[SB_DWARF_RANGES].len +
				 sections[SB_DWARF_RNGLISTS].len);
	dwarf->line_bytes_left += EFFORT_FACTOR * sections[SB_DWARF_LINE].len;
	dwarf->abbrev_bytes_left += EFFORT_FACTOR * sections[SB_DWARF_ABBREV].len;
}

int sb_dwarf_file_load(struct sb_dwarf_file *file, int fd)
{
	struct sb_dwarf *dwarf = file->dwarf;
	int err;

	err = sb_dwarf_image_read(fd, file->is_dwo, dwarf->lines, dwarf->budget, &file->image);
	if (err)
		return err;
	if (file->image.len > SB_DWARF_IMAGE_BYTES_MAX - dwarf->nr_image_bytes)
		return -EFBIG;
	dwarf->nr_image_bytes += file->image.len;
	allow_effort(dwarf, &file->image);
	return sb_dwarf_file_load_units(file);
}

void sb_dwarf_file_release(struct sb_dwarf_file *file)
{
	size_t i;

	for (i = 0; i < file->units.nr; i++) {
		struct sb_unit *unit = &file->units.at[i];

		sb_vec_release(&unit->nodes);
		sb_vec_release(&unit->scopes);
		sb_dwarf_map_release(&unit->segs);
		sb_lines_release(&unit->lines);
	}
	sb_vec_release(&file->units);
	sb_index_release(&file->abbrev_users);
	sb_abbrevs_release(file);
	sb_dwarf_image_release(&file->image);
}

/* Sort the index and note how far back a search has to go. */
static int finish_index(struct sb_dwarf *dwarf)
{
	const sb_dwarf_ranges *index = &dwarf->index;
	uint32_t *mem, hi = 0;
	size_t i;

	sb_dwarf_ranges_sort(&dwarf->index);
	mem = realloc(dwarf->index_hi, (index->nr + 1) * sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	dwarf->index_hi = mem;
	for (i = 0; i < index->nr; i++) {
		hi = index->at[i].hi > hi ? index->at[i].hi : hi;
		mem[i] = hi;
	}
	return 0;
}

int sb_dwarf_new(int fd, int alt_fd, bool lines, struct sb_budget *budget,
		 struct sb_dwarf **ret_dwarf)
{
	sb_cleanup(sb_dwarf_freep) struct sb_dwarf *dwarf = calloc(1, sizeof(*dwarf));
	int err;

	if (!dwarf)
		return -ENOMEM;
	dwarf->budget = budget;
	dwarf->lines = lines;
	dwarf->file = (struct sb_dwarf_file){ .dwarf = dwarf, .main = &dwarf->file };
	dwarf->alt = (struct sb_dwarf_file){ .dwarf = dwarf, .main = &dwarf->alt };
	if (alt_fd >= 0) {
		/* Without it names are missing, nothing else. */
		err = sb_dwarf_file_load(&dwarf->alt, alt_fd);
		if (err == -ENOMEM)
			return err;
		if (!err)
			dwarf->file.alt = &dwarf->alt;
	}
	err = sb_dwarf_file_load(&dwarf->file, fd);
	if (!err && dwarf->file.image.is_relocatable)
		err = -ENODATA;
	if (!err)
		err = finish_index(dwarf);
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
	for (i = 0; i < dwarf->splits.nr; i++) {
		sb_dwarf_file_release(dwarf->splits.at[i]);
		free(dwarf->splits.at[i]);
	}
	sb_vec_release(&dwarf->splits);
	sb_dwarf_file_release(&dwarf->file);
	sb_dwarf_file_release(&dwarf->alt);
	sb_vec_release(&dwarf->index);
	free(dwarf->index_hi);
	sb_vec_release(&dwarf->scratch);
	sb_vec_release(&dwarf->funcs);
	sb_index_release(&dwarf->func_index);
	sb_arena_release(&dwarf->arena);
	free(dwarf);
}

/* Return: 0 and the unit whose DIEs are read now, or -ENOMEM. */
static int load_unit(struct sb_unit *unit, struct sb_unit **ret_dies)
{
	int err = sb_unit_load_split(unit);

	if (err)
		return err;
	*ret_dies = unit->split ?: unit;
	return (*ret_dies)->is_built ? 0 : sb_unit_build(*ret_dies);
}

/* Put what functions of unit @id cover into the index. */
static int index_segs(struct sb_dwarf *dwarf, const struct sb_dwarf_map *segs, uint32_t id)
{
	struct sb_dwarf_range range = { .value = id };
	size_t i, next;
	int err = 0;

	for (i = 0; !err && i < segs->nr; i = next) {
		for (next = i; next < segs->nr && segs->values[next] != NONE; next++)
			;
		if (next < segs->nr && next > i) {
			range.lo = segs->starts[i];
			range.hi = segs->starts[next];
			err = sb_budget_push(dwarf->budget, &dwarf->index, range);
		}
		next++;
	}
	return err;
}

/*
 * Units need not tell their ranges. Those that do not are read when an address is in none of the
 * others: mostly they have no code (what gcc writes before LTO).
 */
static int complete_index(struct sb_dwarf *dwarf)
{
	struct sb_unit *dies;
	size_t i;
	int err;

	dwarf->is_index_whole = true;
	for (i = 0; i < dwarf->file.units.nr; i++) {
		struct sb_unit *unit = &dwarf->file.units.at[i];

		if (!unit->is_code || unit->has_ranges)
			continue;
		err = load_unit(unit, &dies);
		if (!err)
			err = index_segs(dwarf, &dies->segs, (uint32_t)i);
		if (err)
			return err;
	}
	return finish_index(dwarf);
}

struct query {
	uint32_t at;
	struct sb_dwarf_frame *frames;
	size_t max, nr;
};

static int add_frame(struct query *query, struct sb_unit *dies, struct sb_dwarf_node *node)
{
	struct sb_dwarf_frame *frame = &query->frames[query->nr++];
	const struct sb_dwarf_func *func;
	int err;

	if (node->func == NONE) {
		err = sb_dwarf_func_load(dies, node);
		if (err)
			return err;
	}
	func = &dies->file->dwarf->funcs.at[node->func];
	*frame = (struct sb_dwarf_frame){ .name = func->name,
					  .linkage_name = func->linkage_name,
					  .decl_line = func->decl_line,
					  .is_inlined = node->parent != NONE };
	return 0;
}

static void set_line(struct query *query, struct sb_unit *unit, struct sb_dwarf_row row)
{
	struct sb_dwarf_frame *frame = &query->frames[query->nr - 1];

	frame->line = row.line;
	frame->file = row.line && unit->file->dwarf->lines ? sb_lines_path(unit, row.file) : NULL;
}

static struct sb_dwarf_row line_at(const struct sb_dwarf_lines *lines, uint32_t at)
{
	size_t i = sb_dwarf_search(lines->starts, lines->nr, at);

	return i == SIZE_MAX ? (struct sb_dwarf_row){ .file = NONE } : lines->rows[i];
}

static int unit_lookup(struct sb_unit *unit, struct query *query)
{
	const bool lines = unit->file->dwarf->lines;
	struct sb_dwarf_row row = { .file = NONE };
	struct sb_unit *dies = unit;
	size_t depth = 0;
	uint32_t id, at;
	int err;

	err = load_unit(unit, &dies);
	if (!err && lines && !unit->is_lines_built)
		err = sb_lines_build(unit);
	if (err == -EFBIG)
		sb_unit_note_damage(unit, err);
	if (err)
		return err;
	if (lines)
		row = line_at(&unit->lines, query->at);
	id = sb_dwarf_map_at(&dies->segs, query->at);
	if (id == NONE && row.line && query->max) {
		/* Assembler has lines, but no functions. */
		query->frames[query->nr++] = (struct sb_dwarf_frame){};
		set_line(query, unit, row);
		return 0;
	}
	for (at = id; at != NONE; at = dies->nodes.at[at].parent)
		depth++;
	for (; id != NONE; id = dies->nodes.at[id].parent) {
		struct sb_dwarf_node *node = &dies->nodes.at[id];

		if (depth-- <= query->max) {
			err = add_frame(query, dies, node);
			if (err)
				return err;
			set_line(query, unit, row);
		}
		row = (struct sb_dwarf_row){ .file = node->call_file, .line = node->call_line };
	}
	return 0;
}

static int index_lookup(struct sb_dwarf *dwarf, struct query *query)
{
	const sb_dwarf_ranges *index = &dwarf->index;
	size_t lo = sb_bisect(index->nr, i, index->at[i].lo <= query->at);
	int err = 0, steps = INDEX_STEPS_MAX;

	while (!err && !query->nr && lo-- > 0 && dwarf->index_hi[lo] > query->at) {
		if (!steps--)
			break;
		if (index->at[lo].hi > query->at)
			err = unit_lookup(&dwarf->file.units.at[index->at[lo].value], query);
	}
	return err;
}

int sb_dwarf_lookup(struct sb_dwarf *dwarf, uint64_t addr, struct sb_dwarf_frame *frames,
		    size_t max, size_t *ret_nr)
{
	uint64_t exec_lo = dwarf->file.image.exec_lo, exec_hi = dwarf->file.image.exec_hi;
	struct query query = { .frames = frames, .max = max };
	int err = 0;

	if (addr >= exec_lo && addr < exec_hi && addr - exec_lo < NONE) {
		query.at = (uint32_t)(addr - exec_lo);
		err = index_lookup(dwarf, &query);
		if (!err && !query.nr && !dwarf->is_index_whole) {
			err = complete_index(dwarf);
			if (!err)
				err = index_lookup(dwarf, &query);
		}
	}
	if (err == -EFBIG) {
		/* What a symbol says is still there. */
		query.nr = 0;
		err = 0;
	}
	if (err)
		return err;
	*ret_nr = query.nr;
	return 0;
}

void sb_dwarf_losses(const struct sb_dwarf *dwarf, struct sb_dwarf_losses *ret_losses)
{
	*ret_losses = dwarf->losses;
}

size_t sb_dwarf_bytes(const struct sb_dwarf *dwarf)
{
	return dwarf->nr_image_bytes + dwarf->nr_bytes + dwarf->arena.nr_bytes +
	       dwarf->scratch.cap * sizeof(struct sb_dwarf_range) +
	       dwarf->index.cap * (sizeof(struct sb_dwarf_range) + sizeof(uint32_t)) +
	       dwarf->funcs.cap * sizeof(struct sb_dwarf_func) +
	       (dwarf->func_index.mask + 1ul) * sizeof(struct sb_index_slot);
}
