// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lookups of addresses of the kernel, of a process and of a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/time.h"
#include "symbolizer/symbols/demangle.h"
#include "symbolizer/symbols/perfmap.h"
#include "symbolizer/symbols/symbolizer_priv.h"
#include "symbolizer/symbols/vdso.h"

/*
 * Requests that are processed at a time. It bounds the answers kept until they are given in order.
 */
#define CHUNK_MAX	  4096u
/* Module IDs of kernel answers in the memo; IDs of modules never become so large. */
#define KERNEL_MEMO_ID(n) (UINT32_MAX - (uint32_t)((n) % 1000000))
/* The same for names of modules and BPF programs, in second n. */
#define MODULE_MEMO_ID(n) (UINT32_MAX - 1000000 - (uint32_t)((n) % 1000000))
/* Below: 32-bit processes, whose vDSO differs from ours. */
#define ADDR32_MAX	  (1ull << 32)

static uint64_t lookup_addr(const struct sb_sym_req *req)
{
	return req->is_caller && req->addr ? req->addr - 1 : req->addr;
}

static const char *intern(struct sb_symbolizer *sym, const char *s)
{
	uint32_t id;

	if (sb_strtab_add(&sym->strings, s, strlen(s), &id))
		return NULL;
	return sb_strtab_get(&sym->strings, id, NULL);
}

/* Answers: frames are collected in the order of work and passed on in the order of requests. */

static int answers_begin(struct sb_symbolizer *sym)
{
	if (!sym->answers) {
		sym->answers = calloc(CHUNK_MAX, sizeof(*sym->answers));
		if (!sym->answers)
			return -ENOMEM;
	}
	sym->frames.nr = 0;
	sym->places.nr = 0;
	return 0;
}

static int answer(struct sb_symbolizer *sym, size_t idx, const struct sb_sym_frame *frames,
		  size_t nr)
{
	int err = sb_vec_reserve(&sym->frames, sym->frames.nr + nr);

	if (err)
		return err;
	memcpy(sym->frames.at + sym->frames.nr, frames, nr * sizeof(*frames));
	sym->answers[idx] = (struct sb_answer){ .first_frame = sym->frames.nr, .nr_frames = nr };
	sym->frames.nr += nr;
	return 0;
}

/* Users compare the requested address with others, not the one before it that was looked up. */
static void undo_caller(struct sb_sym_frame *frames, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		frames[i].module_addr++;
		if (!frames[i].is_inlined && (frames[i].name || frames[i].has_start))
			frames[i].func_offset++;
	}
}

static int answers_end(struct sb_symbolizer *sym, const struct sb_sym_query *query, size_t first,
		       size_t nr)
{
	struct sb_sym_frame *frames;
	size_t i, nr_frames;
	int err;

	for (i = 0; i < nr; i++) {
		frames = sym->frames.at + sym->answers[i].first_frame;
		nr_frames = sym->answers[i].nr_frames;
		if (query->reqs[first + i].is_caller && query->reqs[first + i].addr)
			undo_caller(frames, nr_frames);
		else if (frames[nr_frames - 1].func_offset == UINT64_MAX)
			frames[nr_frames - 1].func_offset = 0; /* the byte before a trampoline */
		sym->nr_lookups++;
		sym->nr_reason[frames[nr_frames - 1].reason]++;
		err = query->emit(query->arg, first + i, frames, nr_frames);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Modules */

static bool has_dwarf(const struct sb_symbolizer *sym)
{
	return sym->opts.inlines || sym->opts.lines;
}

/* Only lookups in DWARF are cached: a symbol is found as fast as a cached answer. */
static int lookup_module(struct sb_symbolizer *sym, const struct sb_cached_module *module,
			 uint64_t addr, size_t idx)
{
	const struct sb_sym_frame *known;
	struct sb_sym_frame frames[SB_MODULE_FRAMES_MAX];
	size_t nr;
	int err;

	known = has_dwarf(sym) ? sb_memo_find(&sym->memo, module->id, addr, &nr) : NULL;
	if (known)
		return answer(sym, idx, known, nr);
	err = sb_module_lookup(module->module, addr, frames, SB_MODULE_FRAMES_MAX, &nr);
	if (err)
		return err;
	if (has_dwarf(sym))
		sb_memo_add(&sym->memo, module->id, addr, frames, nr);
	return answer(sym, idx, frames, nr);
}

static enum sb_sym_reason reason_of(int err)
{
	switch (err) {
	case -ENOEXEC:
		return SB_SYM_BAD_FILE;
	case -EFBIG:
		return SB_SYM_LIMIT;
	default:
		return SB_SYM_NO_FILE;
	}
}

/* Processes */

struct user_lookup {
	struct sb_symbolizer *sym;
	uint32_t tgid;
	uint64_t time_ns;
	struct sb_procgen *gen; /* NULL: nothing is known */
	bool limit, is_unsure;
};

static struct sb_sym_frame unnamed(uint64_t addr, const char *module, enum sb_sym_reason reason)
{
	return (struct sb_sym_frame){
		.module = module,
		.module_addr = addr,
		.kind = SB_SYM_USER,
		.reason = (uint8_t)reason,
	};
}

/*
 * Split a name that V8 has written to its perf map to function, file and line. Return: 0 or
 * -ENOMEM.
 */
static int split_jit_name(struct sb_symbolizer *sym, struct sb_sym_frame *frame)
{
	struct sb_perfmap_name parts;

	if (sym->opts.demangle == SB_SYM_DEMANGLE_OFF || !sb_perfmap_split(frame->raw_name, &parts))
		return 0;
	sb_str_clear(&sym->scratch);
	if (sb_str_addn(&sym->scratch, parts.name, parts.name_len))
		return -ENOMEM;
	frame->name = intern(sym, sym->scratch.s);
	if (!frame->name || !sym->opts.lines || !parts.file_len)
		return frame->name ? 0 : -ENOMEM;
	sb_str_clear(&sym->scratch);
	if (sb_str_addn(&sym->scratch, parts.file, parts.file_len))
		return -ENOMEM;
	frame->file = intern(sym, sym->scratch.s);
	frame->line = frame->decl_line = parts.line;
	return frame->file ? 0 : -ENOMEM;
}

/* Return: 1 if the perf map of @gen has the address, 0 if not, or -ENOMEM. */
static int lookup_jit(struct user_lookup *lookup, struct sb_procgen *gen, uint64_t addr,
		      struct sb_sym_frame *ret_frame)
{
	struct sb_symbolizer *sym = lookup->sym;
	struct sb_jit *jit = sb_symbolizer_jit(sym, gen);
	const char *name;
	uint64_t start;

	if (!jit)
		return 0;
	name = sb_jit_lookup(jit, addr, lookup->time_ns, &start);
	if (!name)
		return 0;
	*ret_frame = unnamed(addr, "[jit]", SB_SYM_OK);
	ret_frame->name = ret_frame->raw_name = intern(sym, name);
	ret_frame->func_offset = addr - start;
	ret_frame->kind = SB_SYM_JIT;
	if (!ret_frame->name)
		return -ENOMEM;
	return split_jit_name(sym, ret_frame) ? -ENOMEM : 1;
}

/* A child without exec runs its parent's code; that perf map has the parent's PID in its name. */
static int lookup_any_jit(struct user_lookup *lookup, const struct sb_procmaps_hit *hit,
			  uint64_t addr, struct sb_sym_frame *ret_frame)
{
	int ret = lookup_jit(lookup, lookup->gen, addr, ret_frame);

	if (ret || hit->gen == lookup->gen)
		return ret;
	return lookup_jit(lookup, hit->gen, addr, ret_frame);
}

static bool is_jit_cut(const struct sb_procgen *gen)
{
	return gen->priv ? sb_jit_is_cut(gen->priv) : true;
}

static int push_place(struct sb_symbolizer *sym, const struct sb_mapping *map, uint64_t addr,
		      size_t idx)
{
	return sb_vec_push(&sym->places, (struct sb_place){
						 .addr = addr,
						 .offset = addr - map->start + map->pgoff,
						 .start = map->start,
						 .end = map->end,
						 .file = map->file,
						 .idx = (uint32_t)idx,
					 });
}

/* Look up an address in anonymous memory: generated code, or text that was moved there. */
static int lookup_anon(struct user_lookup *lookup, const struct sb_procmaps_hit *hit, uint64_t addr,
		       size_t idx)
{
	struct sb_symbolizer *sym = lookup->sym;
	struct sb_procmaps_hit below;
	struct sb_sym_frame frame;
	const char *name;
	int ret = lookup_any_jit(lookup, hit, addr, &frame);

	if (ret < 0)
		return ret;
	if (ret)
		return answer(sym, idx, &frame, 1);
	if (lookup->gen->priv &&
	    sb_procgen_lookup(lookup->gen, addr, lookup->time_ns, true, &below) &&
	    sb_jit_is_moved_text(lookup->gen->priv, addr))
		return push_place(sym, &below.map, addr, idx);
	name = sb_modcache_name(&sym->modules, hit->map.file);
	if (!name)
		return -ENOMEM;
	frame = unnamed(addr, name, is_jit_cut(lookup->gen) ? SB_SYM_LIMIT : SB_SYM_ANON);
	frame.is_absolute = true;
	return answer(sym, idx, &frame, 1);
}

/* Our own vDSO is that of all processes of our word size; another one is read from the process. */
int sb_symbolizer_vdso(struct sb_symbolizer *sym, uint32_t tgid, const struct sb_mapping *map,
		       struct sb_cached_module **ret_module)
{
	char image[SB_VDSO_BYTES_MAX];
	size_t len = map->end - map->start, own_len;
	const void *own = sb_vdso_own(&own_len);
	int err;

	if (own && own_len == len && map->start >= ADDR32_MAX)
		return sb_modcache_get_image(&sym->modules, own, len, "[vdso]", ret_module);
	if (len > sizeof(image))
		return -EFBIG;
	err = sb_procfs_read_memory(tgid, map->start, image, len);
	if (err)
		return -ENOENT;
	return sb_modcache_get_image(&sym->modules, image, len, "[vdso]", ret_module);
}

static int lookup_vdso(struct user_lookup *lookup, const struct sb_mapping *map, uint64_t addr,
		       size_t idx)
{
	struct sb_symbolizer *sym = lookup->sym;
	struct sb_cached_module *module;
	struct sb_sym_frame frame;
	uint64_t vaddr;
	size_t i, first = sym->frames.nr;
	int err = sb_symbolizer_vdso(sym, lookup->tgid, map, &module);

	if (err == -ENOMEM)
		return err;
	if (err || !sb_module_offset_to_addr(module->module, addr - map->start, &vaddr)) {
		frame = unnamed(addr - map->start, "[vdso]",
				err ? reason_of(err) : SB_SYM_NO_MATCH);
		frame.kind = SB_SYM_VDSO;
		return answer(sym, idx, &frame, 1);
	}
	err = lookup_module(sym, module, vaddr, idx);
	if (err)
		return err;
	for (i = first; i < sym->frames.nr; i++)
		sym->frames.at[i].kind = SB_SYM_VDSO;
	sb_modcache_account(&sym->modules, module);
	return 0;
}

/* Return: whether mapping events were lost or skipped that may concern this address. */
static bool is_doubtful(const struct user_lookup *lookup, uint64_t addr)
{
	return lookup->gen &&
	       (lookup->is_unsure || sb_procgen_is_in_gap(lookup->gen, addr, lookup->time_ns));
}

static int answer_unmapped(struct user_lookup *lookup, uint64_t addr, size_t idx)
{
	enum sb_sym_reason reason = SB_SYM_UNMAPPED;
	struct sb_sym_frame frame;

	if (lookup->limit || (lookup->gen && sb_procgen_has_hole(lookup->gen)) ||
	    is_doubtful(lookup, addr))
		reason = SB_SYM_LIMIT;
	else if (!lookup->gen || !sb_procgen_has_mappings(lookup->gen))
		reason = SB_SYM_GONE;
	frame = unnamed(addr, "", reason);
	return answer(lookup->sym, idx, &frame, 1);
}

static int answer_vsyscall(struct sb_symbolizer *sym, const char *name, uint64_t offset, size_t idx)
{
	struct sb_sym_frame frame = unnamed(offset, "[vsyscall]", SB_SYM_OK);

	frame.name = frame.raw_name = name;
	frame.func_offset = offset;
	frame.kind = SB_SYM_VDSO;
	return answer(sym, idx, &frame, 1);
}

/* Answer a request that needs no file; note the place of one that does. */
static int locate(struct user_lookup *lookup, uint64_t addr, size_t idx)
{
	struct sb_symbolizer *sym = lookup->sym;
	struct sb_procmaps_hit hit;
	struct sb_sym_frame frame;
	const char *name;
	uint64_t start;

	name = sb_vsyscall_name(addr, &start);
	if (name)
		return answer_vsyscall(sym, name, addr - start, idx);
	if (!lookup->gen || is_doubtful(lookup, addr) ||
	    !sb_procgen_lookup(lookup->gen, addr, lookup->time_ns, false, &hit))
		return answer_unmapped(lookup, addr, idx);
	switch (sb_modcache_kind(&sym->modules, hit.map.file)) {
	case SB_MAP_ANON:
		return lookup_anon(lookup, &hit, addr, idx);
	case SB_MAP_VDSO:
		return lookup_vdso(lookup, &hit.map, addr, idx);
	case SB_MAP_SPECIAL:
		name = sb_modcache_name(&sym->modules, hit.map.file);
		if (!name)
			return -ENOMEM;
		frame = unnamed(addr - hit.map.start, name,
				hit.map.file == SB_MODCACHE_FILE_NONE ? SB_SYM_LIMIT : SB_SYM_ANON);
		return answer(sym, idx, &frame, 1);
	case SB_MAP_FILE:
	case SB_MAP_MEMORY:
		return push_place(sym, &hit.map, addr, idx);
	}
	return -EINVAL;
}

/* Answer for a mapped file that is not a module; it may contain generated code. */
static int answer_no_module(struct user_lookup *lookup, const struct sb_place *place,
			    enum sb_sym_reason reason)
{
	struct sb_symbolizer *sym = lookup->sym;
	bool is_memory = sb_modcache_kind(&sym->modules, place->file) == SB_MAP_MEMORY;
	const char *name = sb_modcache_name(&sym->modules, place->file);
	struct sb_sym_frame frame;
	struct sb_procmaps_hit hit;
	int ret = 0;

	if (!name)
		return -ENOMEM;
	if ((is_memory || reason == SB_SYM_BAD_FILE) &&
	    sb_procgen_lookup(lookup->gen, place->addr, lookup->time_ns, false, &hit))
		ret = lookup_any_jit(lookup, &hit, place->addr, &frame);
	if (ret < 0)
		return ret;
	if (!ret)
		frame = unnamed(place->offset, name, is_memory ? SB_SYM_ANON : reason);
	return answer(sym, place->idx, &frame, 1);
}

static int lookup_place(struct user_lookup *lookup, const struct sb_place *place,
			const struct sb_cached_module *module)
{
	struct sb_sym_frame frame;
	uint64_t vaddr;

	if (sb_module_offset_to_addr(module->module, place->offset, &vaddr))
		return lookup_module(lookup->sym, module, vaddr, place->idx);
	frame = unnamed(place->offset, sb_module_name(module->module), SB_SYM_NO_MATCH);
	return answer(lookup->sym, place->idx, &frame, 1);
}

static int by_file(const void *a, const void *b)
{
	const struct sb_place *x = a, *y = b;

	return sb_compare(x->file, y->file) ?: sb_compare(x->offset, y->offset);
}

/* Look up file by file, in the order of addresses, so that each compilation unit is read once. */
static int lookup_places(struct user_lookup *lookup)
{
	struct sb_symbolizer *sym = lookup->sym;
	struct sb_cached_module *module;
	struct sb_mapped_at at = { .tgid = lookup->tgid };
	size_t i, next;
	int err, ret = 0;

	if (has_dwarf(sym) && sym->places.nr)
		qsort(sym->places.at, sym->places.nr, sizeof(*sym->places.at), by_file);
	for (i = 0; i < sym->places.nr && !ret; i = next) {
		const struct sb_place *place = &sym->places.at[i];

		at.start = place->start;
		at.end = place->end;
		err = sb_modcache_get(&sym->modules, place->file, &at, &module);
		if (err == -ENOMEM)
			return err;
		for (next = i;
		     next < sym->places.nr && !ret && sym->places.at[next].file == place->file;
		     next++)
			ret = err ? answer_no_module(lookup, &sym->places.at[next], reason_of(err))
				  : lookup_place(lookup, &sym->places.at[next], module);
		if (!err)
			sb_modcache_account(&sym->modules, module);
	}
	return ret;
}

int sb_symbolizer_user(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
		       const struct sb_sym_query *query)
{
	struct user_lookup lookup = { .sym = sym, .tgid = tgid, .time_ns = time_ns };
	size_t first, nr, i;
	int err;

	err = sb_symbolizer_generation(sym, tgid, time_ns, &lookup.gen, &lookup.limit);
	if (!err && lookup.gen)
		lookup.is_unsure = sb_symbolizer_is_unsure(sym, lookup.gen, time_ns);
	for (first = 0; first < query->nr && !err; first += nr) {
		nr = query->nr - first < CHUNK_MAX ? query->nr - first : CHUNK_MAX;
		err = answers_begin(sym);
		for (i = 0; i < nr && !err; i++)
			err = locate(&lookup, lookup_addr(&query->reqs[first + i]), i);
		if (!err)
			err = lookup_places(&lookup);
		if (!err)
			err = answers_end(sym, query, first, nr);
	}
	return err;
}

uint64_t sb_symbolizer_next_change(struct sb_symbolizer *sym, uint32_t tgid, uint64_t from_ns,
				   uint64_t to_ns, const struct sb_sym_query *query)
{
	uint64_t first_ns = UINT64_MAX, change_ns;
	struct sb_procgen *gen;
	bool limit;
	size_t i;

	gen = sb_procmaps_find(&sym->procs, tgid, from_ns, &limit);
	if (!gen || gen->newest_ns <= from_ns)
		return first_ns;
	for (i = 0; i < query->nr; i++) {
		change_ns =
			sb_procgen_next_change(gen, lookup_addr(&query->reqs[i]), from_ns, to_ns);
		if (change_ns < first_ns)
			first_ns = change_ns;
	}
	return first_ns;
}

/* Files */

static int lookup_chunk(struct sb_symbolizer *sym, struct sb_cached_module *module,
			const struct sb_sym_req *reqs, size_t nr)
{
	size_t i;
	int err = answers_begin(sym);

	for (i = 0; i < nr && !err; i++)
		err = sb_vec_push(&sym->places, (struct sb_place){
							.offset = lookup_addr(&reqs[i]),
							.idx = (uint32_t)i,
						});
	if (!err && nr && has_dwarf(sym))
		qsort(sym->places.at, nr, sizeof(*sym->places.at), by_file);
	for (i = 0; i < nr && !err; i++)
		err = lookup_module(sym, module, sym->places.at[i].offset, sym->places.at[i].idx);
	return err;
}

int sb_symbolizer_file(struct sb_symbolizer *sym, const char *path,
		       const struct sb_sym_query *query)
{
	struct sb_cached_module *module;
	size_t first, nr;
	int err = sb_modcache_get_path(&sym->modules, path, &module);

	for (first = 0; first < query->nr && !err; first += nr) {
		nr = query->nr - first < CHUNK_MAX ? query->nr - first : CHUNK_MAX;
		err = lookup_chunk(sym, module, query->reqs + first, nr);
		if (!err)
			err = answers_end(sym, query, first, nr);
		sb_modcache_account(&sym->modules, module);
	}
	return err;
}

/* Kernel */

static enum sb_sym_reason kernel_reason(int err)
{
	switch (err) {
	case -EACCES:
		return SB_SYM_RESTRICTED;
	case -EFBIG:
		return SB_SYM_LIMIT;
	case -ENOENT:
		return SB_SYM_NO_MATCH;
	default:
		return SB_SYM_NO_SYMBOLS;
	}
}

static enum sb_sym_kind kernel_kind(const char *module)
{
	if (!module || !strncmp(module, "[__builtin__", strlen("[__builtin__")))
		return SB_SYM_KERNEL;
	return sb_streq(module, "[bpf]") ? SB_SYM_BPF : SB_SYM_KMOD;
}

static int name_kernel(struct sb_symbolizer *sym, uint64_t addr, const struct sb_ksym *ksym,
		       struct sb_sym_frame *frame)
{
	int err;

	sb_str_clear(&sym->scratch);
	err = sb_demangle(ksym->name, sym->opts.demangle, &sym->scratch);
	if (err)
		return err;
	frame->raw_name = intern(sym, ksym->name);
	frame->name = sym->scratch.len ? intern(sym, sym->scratch.s) : frame->raw_name;
	frame->module = ksym->module ? intern(sym, ksym->module) : "[kernel]";
	frame->func_offset = addr - ksym->start;
	frame->kind = (uint8_t)kernel_kind(ksym->module);
	return frame->raw_name && frame->name && frame->module ? 0 : -ENOMEM;
}

static int lookup_kernel(struct sb_symbolizer *sym, uint64_t addr, size_t idx)
{
	uint32_t memo_id = KERNEL_MEMO_ID(sym->kallsyms.nr_reads);
	struct sb_sym_frame frame = unnamed(addr, "[kernel]", SB_SYM_OK);
	const struct sb_sym_frame *known;
	struct sb_ksym ksym;
	uint32_t module_memo_id = 0;
	size_t nr;
	int err;

	known = sb_memo_find(&sym->memo, memo_id, addr, &nr);
	if (!known && sym->kallsyms.ask) {
		/* What comes and goes is asked for again, but not at each frame: in a module the
		 * kernel goes through all symbols. */
		module_memo_id = MODULE_MEMO_ID(sb_now_ns() / SB_NS_PER_SEC);
		known = sb_memo_find(&sym->memo, module_memo_id, addr, &nr);
	}
	if (known)
		return answer(sym, idx, known, nr);
	frame.kind = SB_SYM_KERNEL;
	err = sb_kallsyms_lookup(&sym->kallsyms, addr, &ksym);
	if (err == -ENOMEM)
		return err;
	if (err) {
		frame.is_absolute = true;
		frame.reason = (uint8_t)kernel_reason(err);
		return answer(sym, idx, &frame, 1);
	}
	err = name_kernel(sym, addr, &ksym, &frame);
	if (err)
		return err;
	/* The lookup may have read the file. */
	memo_id = ksym.module && sym->kallsyms.ask ? module_memo_id
						   : KERNEL_MEMO_ID(sym->kallsyms.nr_reads);
	sb_memo_add(&sym->memo, memo_id, addr, &frame, 1);
	return answer(sym, idx, &frame, 1);
}

void sb_symbolizer_ask_kernel(struct sb_symbolizer *sym,
			      int (*ask)(void *arg, uint64_t addr, char *text, size_t size),
			      void *arg)
{
	sym->kallsyms.ask = ask;
	sym->kallsyms.ask_arg = arg;
}

int sb_symbolizer_kernel(struct sb_symbolizer *sym, const struct sb_sym_query *query)
{
	size_t first, nr, i;
	int err = 0;

	for (first = 0; first < query->nr && !err; first += nr) {
		nr = query->nr - first < CHUNK_MAX ? query->nr - first : CHUNK_MAX;
		err = answers_begin(sym);
		for (i = 0; i < nr && !err; i++)
			err = lookup_kernel(sym, lookup_addr(&query->reqs[first + i]), i);
		if (!err)
			err = answers_end(sym, query, first, nr);
	}
	return err;
}

/* Sources */

struct sources {
	struct sb_symbolizer *sym;
	uint32_t tgid;
	struct sb_procgen *gen;
	int (*fn)(void *arg, const struct sb_sym_source *source);
	void *arg;
};

static int describe(struct sources *sources, const struct sb_maps_line *line, uint32_t file,
		    struct sb_sym_source *source)
{
	struct sb_modcache *modules = &sources->sym->modules;
	struct sb_mapped_at at = { sources->tgid, line->start, line->end };
	struct sb_mapping map = { .start = line->start, .end = line->end };
	enum sb_map_kind kind = sb_modcache_kind(modules, file);
	struct sb_cached_module *module;
	struct sb_jit *jit;
	int err = -ENOENT;

	if (kind == SB_MAP_VDSO)
		err = sb_symbolizer_vdso(sources->sym, sources->tgid, &map, &module);
	else if (kind == SB_MAP_FILE || kind == SB_MAP_MEMORY)
		err = sb_modcache_get(modules, file, &at, &module);
	if (err == -ENOMEM)
		return err;
	if (!err) {
		sb_module_source(module->module, source);
		sb_modcache_account(modules, module);
		return 0;
	}
	if (kind != SB_MAP_ANON && kind != SB_MAP_MEMORY)
		return 0;
	jit = sb_symbolizer_jit(sources->sym, sources->gen);
	if (jit && sb_jit_has_map(jit))
		source->symbols = "perf map";
	return 0;
}

static int on_source_line(void *arg, const struct sb_maps_line *line)
{
	struct sources *sources = arg;
	struct sb_sym_source source = {
		.addr = line->start,
		.len = line->end - line->start,
		.symbols = "none",
		.unwind = "none",
	};
	uint32_t file, path_id;
	int err;

	if (!line->is_exec)
		return 0;
	err = sb_strtab_add(&sources->sym->strings, line->path, line->path_len, &path_id);
	if (!err)
		err = sb_modcache_line_file(&sources->sym->modules, line, &file);
	if (err)
		return err;
	source.path = sb_strtab_get(&sources->sym->strings, path_id, NULL);
	err = describe(sources, line, file, &source);
	return err ? err : sources->fn(sources->arg, &source);
}

int sb_symbolizer_sources(struct sb_symbolizer *sym, uint32_t tgid,
			  int (*fn)(void *arg, const struct sb_sym_source *source), void *arg)
{
	struct sources sources = { .sym = sym, .tgid = tgid, .fn = fn, .arg = arg };
	uint64_t now_ns = sb_now_ns();
	struct sb_jit *jit;
	bool limit;
	int err;

	err = sb_symbolizer_seed(sym, now_ns, tgid);
	if (!err)
		err = sb_symbolizer_generation(sym, tgid, now_ns, &sources.gen, &limit);
	if (err)
		return err;
	if (!sources.gen)
		return limit ? -EFBIG : -ESRCH;
	jit = sb_symbolizer_jit(sym, sources.gen);
	if (jit)
		sb_jit_read(jit);
	err = sb_procfs_maps(tgid, on_source_line, &sources);
	return err;
}
