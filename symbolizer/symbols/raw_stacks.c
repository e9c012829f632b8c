// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Unwinding of captured pieces of user stacks: which table covers each address, and what memory is
 * read.
 */
#include <errno.h>
#include <string.h>

#include "symbolizer/symbols/symbolizer_priv.h"
#include "symbolizer/unwind/walk.h"

/* A piece of at least this size was cut; a smaller one ends at a page that could not be read. */
#define FULL_PIECE_BYTES (SB_RAW_BYTES_MAX - 4096)

struct unwinding {
	struct sb_symbolizer *sym;
	const struct sb_sym_unwind *from;
	struct sb_procgen *gen; /* NULL: nothing is known */
	bool may_have_more;	/* the process may have mappings that are not known */
	bool is_blind;		/* the walk came to an address whose mapping may be such a one */
	bool is_above_piece;	/* the last read that failed was above the piece */
	/* The last result of find_code(). */
	struct sb_cached_module *module; /* NULL: no file */
	struct sb_mapping map;
	uint64_t bias;
};

/* Memory is counted when the walk leaves a module; this may evict the table of any module. */
static void leave_module(struct unwinding *unwinding)
{
	if (unwinding->module)
		sb_modcache_account(&unwinding->sym->modules, unwinding->module);
	unwinding->module = NULL;
}

/* Anonymous memory that text was moved to (for huge pages) is unwound as the file it covers. */
static void see_moved_text(struct unwinding *unwinding, uint64_t addr)
{
	struct sb_jit *jit = sb_symbolizer_jit(unwinding->sym, unwinding->gen);
	struct sb_procmaps_hit below;

	if (jit &&
	    sb_procgen_lookup(unwinding->gen, addr, unwinding->from->time_ns, true, &below) &&
	    sb_jit_is_moved_text(jit, addr))
		unwinding->map = below.map;
}

/* Find the module mapped at unwinding->map. Return: 0; -ENOMEM; other errors: there is none. */
static int find_module(struct unwinding *unwinding)
{
	struct sb_modcache *modules = &unwinding->sym->modules;
	const struct sb_mapping *map = &unwinding->map;
	struct sb_mapped_at at = { unwinding->from->tgid, map->start, map->end };

	switch (sb_modcache_kind(modules, map->file)) {
	case SB_MAP_FILE:
	case SB_MAP_MEMORY:
		return sb_modcache_get(modules, map->file, &at, &unwinding->module);
	case SB_MAP_VDSO:
		return sb_symbolizer_vdso(unwinding->sym, at.tgid, map, &unwinding->module);
	default:
		return -ENOENT;
	}
}

static bool find_mapping(struct unwinding *unwinding, uint64_t addr)
{
	struct sb_modcache *modules = &unwinding->sym->modules;
	struct sb_procmaps_hit hit;

	if (!unwinding->gen ||
	    !sb_procgen_lookup(unwinding->gen, addr, unwinding->from->time_ns, false, &hit))
		return false;
	unwinding->map = hit.map;
	switch (sb_modcache_kind(modules, hit.map.file)) {
	case SB_MAP_ANON:
		see_moved_text(unwinding, addr);
		break;
	case SB_MAP_VDSO: /* the whole image is mapped */
		unwinding->map.pgoff = 0;
		break;
	default:
		break;
	}
	return true;
}

/* See struct sb_walk_env. Code without a readable file has no table. */
static int find_code(void *arg, uint64_t addr, struct sb_walk_code *ret_code)
{
	struct unwinding *unwinding = arg;
	const struct sb_mapping *map = &unwinding->map;
	uint64_t elf_addr;
	int err;

	*ret_code = (struct sb_walk_code){};
	leave_module(unwinding);
	if (!find_mapping(unwinding, addr)) {
		unwinding->is_blind |= unwinding->may_have_more;
		return unwinding->may_have_more;
	}
	ret_code->is_generated =
		sb_modcache_kind(&unwinding->sym->modules, map->file) == SB_MAP_ANON;
	err = find_module(unwinding);
	if (!err && !sb_module_offset_to_addr(unwinding->module->module,
					      addr - map->start + map->pgoff, &elf_addr))
		err = -ENOENT;
	if (!err) {
		unwinding->bias = ret_code->bias = addr - elf_addr;
		sb_modcache_note_table(&unwinding->sym->modules, unwinding->module);
		err = sb_module_table(unwinding->module->module, &ret_code->table);
	} else {
		leave_module(unwinding);
	}
	return err == -ENOMEM ? err : 1;
}

/* Read from the captured piece, or code of the current module, which is examined for prologues. */
static int read_memory(void *arg, void *buf, size_t len, uint64_t addr)
{
	struct unwinding *unwinding = arg;
	const struct sb_sym_unwind *from = unwinding->from;
	uint64_t begin = from->stack_addr, offset = addr - begin;

	if (offset < from->stack_bytes && len <= from->stack_bytes - offset) {
		memcpy(buf, (const char *)from->stack + offset, len);
		return 0;
	}
	if (unwinding->module && addr >= unwinding->map.start && addr < unwinding->map.end &&
	    len <= unwinding->map.end - addr)
		return sb_module_read(unwinding->module->module, addr - unwinding->bias, buf, len);
	unwinding->is_above_piece = addr >= begin;
	return -EFAULT;
}

static uint32_t status_of(const struct unwinding *unwinding, uint32_t status)
{
	if (unwinding->is_blind)
		return SB_STACK_NO_TABLE;
	if (status == SB_STACK_FAULT && unwinding->is_above_piece &&
	    unwinding->from->stack_bytes >= FULL_PIECE_BYTES)
		return SB_STACK_PIECE;
	return status;
}

int sb_symbolizer_unwind(struct sb_symbolizer *sym, const struct sb_sym_unwind *from, uint64_t *ip,
			 size_t max, size_t *ret_nr, uint32_t *ret_status)
{
	struct unwinding unwinding = { .sym = sym, .from = from };
	struct sb_walk_env env = {
		.find = find_code,
		.read = read_memory,
		.arg = &unwinding,
		.modes = from->modes,
		.known = from->known,
		.hook = from->hook,
	};
	struct sb_walk_frames frames = { .ip = ip, .max = max };
	struct sb_walk_from start = { .pc = from->pc, .trampoline = from->trampoline };
	bool limit;
	int err;

	memcpy(start.regs, from->regs, sizeof(start.regs));
	err = sb_symbolizer_generation(sym, from->tgid, from->time_ns, &unwinding.gen, &limit);
	if (err)
		return err;
	unwinding.may_have_more = !unwinding.gen || !sb_procgen_has_mappings(unwinding.gen) ||
				  sb_procgen_has_hole(unwinding.gen) ||
				  sb_symbolizer_is_unsure(sym, unwinding.gen, from->time_ns);
	err = sb_walk_run(&env, &start, &frames);
	leave_module(&unwinding);
	if (err)
		return err;
	*ret_nr = frames.nr;
	*ret_status = status_of(&unwinding, frames.status);
	return 0;
}
