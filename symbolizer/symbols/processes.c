// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The state of processes: from events that the caller feeds, and from /proc for what happened
 * before them.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "base/vec.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/symbols/symbolizer_priv.h"

struct sb_jit *sb_symbolizer_jit(struct sb_symbolizer *sym, struct sb_procgen *gen)
{
	struct sb_jit *jit;

	if (gen->priv)
		return gen->priv;
	jit = sb_jit_new(&sym->perfmaps, gen->tgid, sym->nr_jit_roots < SB_JIT_ROOTS_MAX);
	if (jit && sb_jit_keeps_root(jit))
		sym->nr_jit_roots++;
	gen->priv = jit;
	return jit;
}

void sb_symbolizer_free_jit(void *arg, void *jit)
{
	struct sb_symbolizer *sym = arg;

	sym->nr_jit_roots -= sb_jit_keeps_root(jit);
	sb_jit_free(jit);
}

static bool is_jit_memory(enum sb_map_kind kind)
{
	return kind == SB_MAP_ANON || kind == SB_MAP_MEMORY;
}

/* Takes ownership of @ev->fd in any case. */
int sb_symbolizer_mmap(struct sb_symbolizer *sym, const struct sb_sym_mmap *ev)
{
	sb_cleanup(sb_closep) int fd = ev->fd;
	struct sb_mapped_file id = {
		.path = ev->path,
		.path_len = strlen(ev->path),
		.ino = ev->ino,
		.ino_generation = ev->ino_generation,
		.maj = ev->maj,
		.min = ev->min,
		.build_id_bytes = ev->build_id_bytes,
	};
	struct sb_procmaps_new map = {
		.start = ev->addr,
		.end = ev->addr + ev->len,
		.pgoff = ev->pgoff,
	};
	enum sb_map_kind kind = sb_map_kind(id.path, id.path_len);
	struct sb_procgen *gen;
	bool limit;
	int err;

	if (ev->build_id_bytes > SB_BUILD_ID_MAX || !ev->len || map.end < map.start)
		return -EINVAL;
	memcpy(id.build_id, ev->build_id, ev->build_id_bytes);
	err = sb_modcache_file(&sym->modules, &id, &map.file);
	if (err)
		return err;
	if (fd >= 0)
		sb_modcache_pin(&sym->modules, map.file, sb_take_fd(fd));
	map.is_anon = kind == SB_MAP_ANON;
	err = sb_procmaps_mmap(&sym->procs, ev->time_ns, ev->tgid, &map);
	if (err || !is_jit_memory(kind))
		return err;
	/* The process may run generated code: note its IDs while it lives. */
	gen = sb_procmaps_find(&sym->procs, ev->tgid, ev->time_ns, &limit);
	if (gen)
		sb_symbolizer_jit(sym, gen);
	return 0;
}

int sb_symbolizer_fork(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid,
		       uint32_t parent_tgid)
{
	return sb_procmaps_fork(&sym->procs, time_ns, tgid, parent_tgid);
}

int sb_symbolizer_exec(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid)
{
	return sb_procmaps_exec(&sym->procs, time_ns, tgid);
}

int sb_symbolizer_exit(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid)
{
	struct sb_procgen *gen;
	bool limit;

	gen = sb_procmaps_find(&sym->procs, tgid, time_ns, &limit);
	if (gen && gen->priv)
		sb_jit_read(gen->priv);
	return sb_procmaps_exit(&sym->procs, time_ns, tgid);
}

int sb_symbolizer_lost(struct sb_symbolizer *sym, uint64_t time_ns)
{
	if (time_ns > sym->lost_ns)
		sym->lost_ns = time_ns;
	return 0;
}

int sb_symbolizer_skipped(struct sb_symbolizer *sym, const struct sb_sym_skip *skip)
{
	return sb_procmaps_skip(&sym->procs, skip->tgid, skip->first_ns, skip->last_ns);
}

struct sb_ration *sb_symbolizer_ration(struct sb_symbolizer *sym)
{
	return &sym->ration;
}

static void mark_file(void *arg, const struct sb_mapping *map)
{
	sb_modcache_mark(arg, map->file);
}

void sb_symbolizer_forget(struct sb_symbolizer *sym, uint64_t time_ns)
{
	sb_procmaps_forget(&sym->procs, time_ns);
	sb_modcache_rest(&sym->modules, time_ns);
	if (!sb_modcache_forget_begin(&sym->modules))
		return;
	sb_procmaps_each(&sym->procs, mark_file, &sym->modules);
	sb_modcache_forget_end(&sym->modules);
}

/* Seeding from /proc. All lines are read before anything is changed. */

struct seeding {
	struct sb_modcache *modules;
	SB_VEC(struct sb_procmaps_new) maps;
	struct sb_moved_text moved;
	uint32_t files[3]; /* of the lines of @moved */
};

/*
 * Put the mapping of the file below the anonymous one that replaced it, as events would have done.
 */
static int add_moved_text(struct seeding *seeding)
{
	struct sb_procmaps_new anon = seeding->maps.at[seeding->maps.nr - 1], file = anon;
	const struct sb_maps_line *before = &seeding->moved.before;

	file.file = seeding->files[0];
	file.pgoff = before->pgoff + (anon.start - before->start);
	file.is_anon = false;
	seeding->maps.at[seeding->maps.nr - 1] = file;
	return sb_vec_push(&seeding->maps, anon);
}

static int on_line(void *arg, const struct sb_maps_line *line)
{
	struct seeding *seeding = arg;
	struct sb_procmaps_new map = {
		.start = line->start,
		.end = line->end,
		.pgoff = line->pgoff,
		.is_anon = sb_map_kind(line->path, line->path_len) == SB_MAP_ANON,
	};
	int err = 0;

	if (line->is_exec)
		err = sb_modcache_line_file(seeding->modules, line, &map.file);
	seeding->files[0] = seeding->files[1];
	seeding->files[1] = seeding->files[2];
	seeding->files[2] = map.file;
	if (!err && sb_moved_text_feed(&seeding->moved, line))
		err = add_moved_text(seeding);
	if (!err && line->is_exec)
		err = sb_vec_push(&seeding->maps, map);
	return err;
}

static int apply_seeding(struct sb_symbolizer *sym, const struct seeding *seeding,
			 struct sb_procgen *gen, uint64_t over_ns)
{
	int err = sb_procmaps_seed(&sym->procs, gen, over_ns, seeding->maps.at, seeding->maps.nr);

	sb_procmaps_seed_end(gen, err, over_ns, sb_now_ns());
	return err;
}

/* Return: whether the process has ended, as far as events have told. Until its parent has waited
 * for it, /proc has it without mappings, which is no new process. */
static bool has_ended(const struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid)
{
	bool limit;
	const struct sb_procgen *gen = sb_procmaps_find(&sym->procs, tgid, time_ns, &limit);

	return gen && gen->end_ns <= time_ns;
}

/*
 * @over_ns: 0, or up to when events were lost. A file too long to read whole is as good as what
 * was read of it: the rest is missing, and counted as refused.
 */
static int seed(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid, uint64_t over_ns)
{
	struct seeding seeding = { .modules = &sym->modules };
	struct sb_procgen *gen;
	int err = sb_procfs_code(tgid, on_line, &seeding);
	bool is_cut = err == -EFBIG || err == -EBADMSG;

	if (!err && !seeding.maps.nr && has_ended(sym, time_ns, tgid))
		err = -ESRCH;
	if (!err || is_cut)
		err = sb_procmaps_seed_begin(&sym->procs, time_ns, tgid, &gen);
	if (!err && gen) {
		err = apply_seeding(sym, &seeding, gen, over_ns);
		gen->has_hole |= is_cut;
		sym->procs.nr_mappings_refused += is_cut;
	}
	sb_vec_release(&seeding.maps);
	return err;
}

int sb_symbolizer_seed(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid)
{
	return seed(sym, time_ns, tgid, 0);
}

struct wants {
	SB_VEC(struct sb_reader_want) all;
};

static int list_processes(struct wants *wants)
{
	sb_cleanup(sb_closedirp) DIR *proc = opendir("/proc");
	int err = proc ? 0 : -errno;
	uint32_t tgid;

	while (!err && (tgid = sb_procfs_next_task(proc, 0)))
		err = sb_vec_push(&wants->all, ((struct sb_reader_want){ .tgid = tgid }));
	return err;
}

static int seed_each(struct sb_symbolizer *sym, uint64_t time_ns, const struct wants *wants)
{
	size_t i, ahead = 0;
	int err = 0;

	for (i = 0; i < wants->all.nr && err != -ENOMEM; i++) {
		if (i == ahead)
			ahead += sb_reader_ahead(&wants->all.at[i], wants->all.nr - i);
		err = seed(sym, time_ns, wants->all.at[i].tgid, 0);
	}
	sb_reader_ahead(NULL, 0);
	return err == -ENOMEM ? err : 0;
}

int sb_symbolizer_seed_all(struct sb_symbolizer *sym, uint64_t time_ns)
{
	struct wants wants = {};
	int err = list_processes(&wants);

	if (!err)
		err = seed_each(sym, time_ns, &wants);
	sb_vec_release(&wants.all);
	return err;
}

/* Return: up to when events were lost or skipped that a lookup of @time_ns must know of, if @gen
 * was not read since; or 0. */
static uint64_t loss_before(const struct sb_symbolizer *sym, const struct sb_procgen *gen,
			    uint64_t time_ns)
{
	uint64_t loss_ns = 0;

	if (sym->lost_ns > gen->start_ns && time_ns >= sym->lost_ns)
		loss_ns = sym->lost_ns;
	if (gen->gap_to_ns != SB_PROCMAPS_NEVER && gen->gap_to_ns > loss_ns &&
	    time_ns >= gen->gap_from_ns)
		loss_ns = gen->gap_to_ns;
	return loss_ns > gen->lost_ns ? loss_ns : 0;
}

bool sb_symbolizer_is_unsure(const struct sb_symbolizer *sym, const struct sb_procgen *gen,
			     uint64_t time_ns)
{
	return loss_before(sym, gen, time_ns) != 0;
}

/* Return: whether events, or reading /proc before, have told all that @tgid maps at @time_ns. */
static bool is_known(const struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns)
{
	bool limit;
	const struct sb_procgen *gen = sb_procmaps_find(&sym->procs, tgid, time_ns, &limit);

	return gen && gen->is_complete && gen->end_ns > time_ns && !loss_before(sym, gen, time_ns);
}

int sb_symbolizer_seed_unknown(struct sb_symbolizer *sym, uint64_t time_ns, const uint32_t *tgids,
			       size_t nr)
{
	struct wants wants = {};
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		if (!is_known(sym, tgids[i], time_ns))
			err = sb_vec_push(&wants.all,
					  ((struct sb_reader_want){ .tgid = tgids[i] }));
	if (!err && wants.all.nr)
		err = seed_each(sym, time_ns, &wants);
	sb_vec_release(&wants.all);
	return err;
}

/* Return: whether @gen was forked while events of its parent were skipped. */
static bool inherits_gap(const struct sb_procgen *gen)
{
	return gen->parent && gen->parent->gap_to_ns && gen->fork_ns >= gen->parent->gap_from_ns &&
	       !gen->seed_read_ns;
}

/*
 * What is known of @gen before this lookup is not all: events were lost, or it was never seen from
 * its beginning. Return: whether /proc can help, and with what kind of seeding.
 */
static bool needs_seeding(const struct sb_symbolizer *sym, const struct sb_procgen *gen,
			  uint64_t time_ns, uint64_t *ret_over_ns)
{
	*ret_over_ns = 0;
	if (!gen)
		return true;
	*ret_over_ns = loss_before(sym, gen, time_ns);
	if (*ret_over_ns)
		return true;
	return (!gen->is_complete || inherits_gap(gen)) && !gen->is_tried && gen->end_ns > time_ns;
}

/* Remember that reading /proc failed, so that the next lookup does not try again. */
static int note_failure(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
			struct sb_procgen *gen)
{
	int err;

	if (!gen) {
		err = sb_procmaps_seed_begin(&sym->procs, time_ns, tgid, &gen);
		if (err || !gen)
			return err;
		gen->end_ns = time_ns;
	}
	gen->is_tried = true;
	if (gen->gap_to_ns > gen->lost_ns)
		gen->gap_to_ns = SB_PROCMAPS_NEVER;
	if (gen->lost_ns < sym->lost_ns)
		gen->lost_ns = sym->lost_ns;
	return 0;
}

/* Read the process again, and note when that may be done the next time. */
static int seed_again(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid, uint64_t over_ns)
{
	uint64_t begin_ns = sb_reader_thread_cpu_ns(), end_ns;
	int err = seed(sym, time_ns, tgid, over_ns);
	struct sb_procgen *gen;
	bool limit;

	end_ns = sb_reader_thread_cpu_ns();
	gen = sb_procmaps_find(&sym->procs, tgid, time_ns, &limit);
	/* The first reading is not rationed. */
	if (gen && over_ns)
		gen->next_seed_ns = sb_ration_next_ns(&sym->ration, sb_now_ns(),
						      end_ns > begin_ns ? end_ns - begin_ns : 0);
	return err;
}

int sb_symbolizer_generation(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
			     struct sb_procgen **ret_gen, bool *ret_limit)
{
	struct sb_procgen *gen = sb_procmaps_find(&sym->procs, tgid, time_ns, ret_limit);
	uint64_t over_ns;
	int err;

	if (!*ret_limit && needs_seeding(sym, gen, time_ns, &over_ns)) {
		if (gen && sb_now_ns() < gen->next_seed_ns) {
			*ret_gen = gen;
			return 0;
		}
		err = seed_again(sym, time_ns, tgid, over_ns);
		gen = sb_procmaps_find(&sym->procs, tgid, time_ns, ret_limit);
		if (err == -ENOMEM)
			return err;
		if (err || (gen && needs_seeding(sym, gen, time_ns, &over_ns))) {
			err = note_failure(sym, tgid, time_ns, gen);
			if (err)
				return err;
			gen = sb_procmaps_find(&sym->procs, tgid, time_ns, ret_limit);
		}
	}
	*ret_gen = gen;
	return 0;
}
