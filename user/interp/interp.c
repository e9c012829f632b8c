// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interp/interp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "elf_file.h"
#include "interp/disasm.h"
#include "interp/interp_priv.h"
#include "procfs.h"

#define NAMES_BYTES_DEFAULT (64u << 20)
/* Mappings of one process that are looked at. The kernel's own limit is 65,530. */
#define MAPS_MAX	    65536u
/* Files that are remembered to have no interpreter in them, or one. More are looked at again. */
#define FILES_MAX	    65536u
/* Of memory, to find out how a runtime is laid out. Each takes half a microsecond, all others wait
 * meanwhile, and none that was tried needs a tenth of it; lists can be made that have no end. */
#define READS_MAX	    20000u

int sb_interp_new(const struct sb_interp_opts *opts, struct sb_interp **ret_interp)
{
	struct sb_interp *interp = calloc(1, sizeof(*interp));

	if (!interp)
		return -ENOMEM;
	interp->opts = *opts;
	if (!interp->opts.names_bytes_max)
		interp->opts.names_bytes_max = NAMES_BYTES_DEFAULT;
	pthread_mutex_init(&interp->lock, NULL);
	*ret_interp = interp;
	return 0;
}

void sb_interp_free(struct sb_interp *interp)
{
	size_t i;

	if (!interp)
		return;
	for (i = 0; i < interp->spaces.nr; i++)
		sb_interp_free_space(interp->spaces.at[i]);
	for (i = 0; i < interp->files.nr; i++)
		sb_image_file_free(interp->files.at[i].file);
	sb_interp_release_past(interp);
	sb_vec_release(&interp->spaces);
	sb_index_release(&interp->spaces_index);
	sb_vec_release(&interp->files);
	sb_index_release(&interp->files_index);
	sb_str_release(&interp->text.name);
	sb_str_release(&interp->text.file);
	pthread_mutex_destroy(&interp->lock);
	free(interp);
}

/* Files. */

static uint32_t runtimes_of(struct sb_image_file *file)
{
	uint32_t runtimes = 0;
	size_t i, at;

	for (i = 0; sb_runtimes[i]->runtime; i++)
		for (at = 0; at < SB_RUNTIME_MARKERS_MAX && sb_runtimes[i]->markers[at]; at++)
			if (sb_image_file_has(file, sb_runtimes[i]->markers[at]))
				runtimes |= 1u << sb_runtimes[i]->runtime;
	return runtimes;
}

static uint64_t hash_file(const struct seen_file *seen)
{
	const uint64_t words[] = { seen->dev, seen->ino };

	return sb_hash(words, sizeof(words), 0);
}

static struct seen_file *find_file(struct sb_interp *interp, const struct seen_file *like)
{
	struct sb_index_iter it;

	for (it = sb_index_first(&interp->files_index, hash_file(like)); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&interp->files_index, it)) {
		struct seen_file *seen = &interp->files.at[it.id];

		if (seen->dev == like->dev && seen->ino == like->ino && seen->size == like->size &&
		    !memcmp(&seen->changed, &like->changed, sizeof(seen->changed)))
			return seen;
	}
	return NULL;
}

/* Those that have no interpreter are looked at again when they are met again; the others are in use. */
static int forget_files(struct sb_interp *interp)
{
	size_t i, nr = 0;
	int err = 0;

	for (i = 0; i < interp->files.nr; i++)
		if (interp->files.at[i].file)
			interp->files.at[nr++] = interp->files.at[i];
	interp->files.nr = nr;
	sb_index_release(&interp->files_index);
	memset(&interp->files_index, 0, sizeof(interp->files_index));
	for (i = 0; i < nr && !err; i++)
		err = sb_index_add(&interp->files_index, hash_file(&interp->files.at[i]),
				   (uint32_t)i);
	return err;
}

static int add_file(struct sb_interp *interp, const struct seen_file *seen)
{
	int err = interp->files.nr >= FILES_MAX ? forget_files(interp) : 0;

	if (err)
		return err;
	if (interp->files.nr >= FILES_MAX)
		return -ENOSPC;
	err = sb_vec_push(&interp->files, *seen);
	if (err)
		return err;
	err = sb_index_add(&interp->files_index, hash_file(seen), (uint32_t)interp->files.nr - 1);
	if (err)
		interp->files.nr--; /* its image stays the caller's */
	return err;
}

static int open_map(uint32_t tgid, const struct sb_process_map *map)
{
	return sb_procfs_open_line(tgid, &(struct sb_maps_line){
						 .start = map->start,
						 .end = map->end,
						 .ino = map->ino,
						 .path = map->path,
						 .path_len = strlen(map->path),
					 });
}

/* Return: 0, even if it can tell nothing; -ENOMEM: what it is is not known. */
static int examine(struct sb_interp *interp, int fd, const char *path, struct seen_file *seen)
{
	int err = sb_image_file_new(fd, path, &seen->file);

	if (err)
		return err == -ENOMEM ? err : 0;
	seen->file->parser = interp->opts.parser;
	seen->runtimes = runtimes_of(seen->file);
	sb_image_file_unload(seen->file);
	if (!seen->runtimes) {
		sb_image_file_free(seen->file);
		seen->file = NULL;
	}
	return 0;
}

/* What runtimes the mapped file has. Return: 0 and NULL: none, or it cannot be had; -ENOMEM. */
static int look_at_file(struct sb_interp *interp, uint32_t tgid, const struct sb_process_map *map,
			struct seen_file **ret_file)
{
	sb_cleanup(sb_closep) int fd = -1;
	struct seen_file seen = {}, *known;
	char path[64];
	struct stat st;
	int err;

	*ret_file = NULL;
	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", tgid,
		 (unsigned long long)map->start, (unsigned long long)map->end);
	if (stat(path, &st)) {
		fd = open_map(tgid, map);
		if (fd < 0 || fstat(fd, &st))
			return 0;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	seen.dev = st.st_dev;
	seen.ino = st.st_ino;
	seen.size = st.st_size;
	seen.changed = st.st_ctim;
	known = find_file(interp, &seen);
	if (known) {
		*ret_file = known->runtimes ? known : NULL;
		return 0;
	}
	if (fd < 0)
		fd = open_map(tgid, map);
	if (fd < 0)
		return 0;
	err = examine(interp, fd, map->path, &seen);
	if (!err)
		err = add_file(interp, &seen);
	if (err) {
		sb_image_file_free(seen.file);
		return err == -ENOMEM ? err : 0;
	}
	if (seen.runtimes)
		*ret_file = &interp->files.at[interp->files.nr - 1];
	return 0;
}

/* Mappings. */

struct map_list {
	SB_VEC(struct sb_process_map) maps;
	struct sb_arena arena;
};

static int on_line(void *arg, const struct sb_maps_line *line)
{
	struct map_list *list = arg;
	const struct sb_process_map map = {
		.start = line->start,
		.end = line->end,
		.pgoff = line->pgoff,
		.ino = line->ino,
		.is_exec = line->is_exec,
		.is_writable = line->is_writable,
		.path = sb_arena_strndup(&list->arena, line->path, line->path_len),
	};

	if (list->maps.nr >= MAPS_MAX)
		return -EFBIG;
	return map.path ? sb_vec_push(&list->maps, map) : -ENOMEM;
}

/* Looking. */

static struct found *find_found(struct space *space, const struct sb_runtime_ops *ops,
				const struct sb_image *image)
{
	size_t i;

	for (i = 0; i < space->nr_found; i++)
		if (space->found[i]->rt.ops == ops && !space->found[i]->is_pending &&
		    space->found[i]->image.file == image->file &&
		    space->found[i]->image.bias == image->bias)
			return space->found[i];
	return NULL;
}

static void look_again(struct found *found, const struct sb_process_maps *maps)
{
	if (!found->is_attached || !found->rt.ops->look_again)
		return;
	found->rt.maps = maps;
	found->rt.ops->look_again(&found->rt);
	found->rt.maps = NULL;
}

static void drop_pending(struct space *space)
{
	size_t i;

	for (i = space->nr_found; i--;)
		if (space->found[i]->is_pending)
			sb_interp_drop_found(space, i);
}

/* Return: as ops->attach(). */
static int attach_bounded(struct space *space, struct sb_runtime *rt)
{
	uint64_t nr_left = READS_MAX;
	int err;

	if (!SB_DISASM_HERE && !rt->ops->is_for_any_machine) {
		err = sb_str_add(&rt->why, "its walker is for x86-64 only");
		return err ? err : -ENOTSUP;
	}
	space->memory.nr_left = &nr_left;
	err = rt->ops->attach(rt);
	space->memory.nr_left = NULL;
	/* These are other people's words, and are printed. */
	sb_replace_controls(rt->version, strlen(rt->version));
	if (rt->why.len)
		sb_replace_controls(rt->why.s, rt->why.len);
	sb_debug("%s in process %u: %llu reads", rt->ops->name, space->key.tgid,
		 (unsigned long long)(READS_MAX - nr_left));
	if (!err || nr_left || err == -ESRCH || err == -ENOMEM)
		return err;
	sb_str_clear(&rt->why);
	err = sb_str_addf(&rt->why, "there is no end to what it says of itself (%s)",
			  sb_image_build_id(rt->image));
	return err ? err : -ENOTSUP;
}

static size_t nr_attached(const struct space *space)
{
	size_t i, nr = 0;

	for (i = 0; i < space->nr_found; i++)
		nr += space->found[i]->is_attached;
	return nr;
}

/* Return: -ENOTSUP or -ENOMEM. */
static int refuse(struct sb_interp *interp, struct sb_runtime *rt)
{
	int err = sb_str_addf(&rt->why, "it has %u others, and no more are walked in one process",
			      SB_INTERP_PER_PROC);

	interp->stats.nr_refused++;
	return err ? err : -ENOTSUP;
}

static int attach(struct sb_interp *interp, struct space *space, const struct sb_runtime_ops *ops,
		  const struct sb_image *image, const struct sb_process_maps *maps)
{
	struct found *found = find_found(space, ops, image);
	int err;

	if (found) {
		look_again(found, maps);
		return 0;
	}
	if (space->nr_found == FOUND_MAX) {
		interp->stats.nr_refused += !space->is_full;
		space->is_full = true;
		return 0;
	}
	found = calloc(1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	space->found[space->nr_found++] = found;
	found->image = *image;
	found->rt.ops = ops;
	found->rt.memory = &space->memory;
	found->rt.image = &found->image;
	found->rt.maps = maps;
	found->rt.conf.runtime = ops->runtime;
	err = nr_attached(space) < SB_INTERP_PER_PROC ? attach_bounded(space, &found->rt)
						      : refuse(interp, &found->rt);
	found->rt.maps = NULL;
	found->is_attached = !err;
	found->is_pending = err == -EAGAIN;
	if (err == -ENOTSUP || err == -EAGAIN)
		sb_debug("%s in process %u: %s", ops->name, space->key.tgid,
			 err == -EAGAIN	     ? "not begun"
			 : found->rt.why.len ? found->rt.why.s
					     : "unknown layout");
	else if (err)
		sb_interp_drop_found(space, space->nr_found - 1);
	return err == -ENOTSUP || err == -EFAULT ? 0 : err;
}

/* Where the file's addresses are in the process, by one of its mappings. */
static int image_of(const struct seen_file *seen, const struct sb_process_map *map,
		    struct sb_image *ret_image)
{
	uint64_t addr;

	if (!sb_elf_offset_to_addr(seen->file->elf, map->pgoff, &addr))
		return -ENOENT;
	*ret_image = (struct sb_image){ .file = seen->file, .bias = map->start - addr };
	return 0;
}

static int look_at_map(struct sb_interp *interp, struct space *space,
		       const struct sb_process_maps *maps, const struct sb_process_map *map)
{
	struct seen_file *seen;
	struct sb_image image;
	int err = look_at_file(interp, space->key.tgid, map, &seen), ret = 0;
	size_t i;

	if (err)
		return err;
	if (!seen || image_of(seen, map, &image))
		return 0;
	for (i = 0; sb_runtimes[i]->runtime; i++) {
		if (!(seen->runtimes & 1u << sb_runtimes[i]->runtime))
			continue;
		err = attach(interp, space, sb_runtimes[i], &image, maps);
		if (err)
			ret = err;
	}
	sb_image_file_unload(seen->file);
	return ret;
}

static int look_at_all(struct sb_interp *interp, struct space *space, struct map_list *list)
{
	const struct sb_process_maps maps = {
		.at = list->maps.at,
		.nr = list->maps.nr,
		.tgid = space->key.tgid,
	};
	uint64_t last_ino = 0;
	int err, ret = 0;
	size_t i;

	drop_pending(space);
	for (i = 0; i < maps.nr; i++) {
		const struct sb_process_map *map = &maps.at[i];

		/* The pieces of one file lie next to one another. */
		if (!map->is_exec || map->path[0] != '/' || map->ino == last_ino)
			continue;
		last_ino = map->ino;
		err = look_at_map(interp, space, &maps, map);
		if (err && (!ret || err != -EAGAIN))
			ret = err;
	}
	return ret;
}

/* What was found in another program, or another process, is not in this one. */
static void expect(struct space *space, const struct sb_procfs_stat *now)
{
	if (space->expected.start_ticks != now->start_ticks ||
	    space->expected.stack_addr != now->stack_addr)
		while (space->nr_found)
			sb_interp_drop_found(space, space->nr_found - 1);
	space->expected = *now;
}

static void confs_of(struct space *space, struct sb_interp_confs *ret)
{
	size_t i;

	ret->nr = 0;
	for (i = 0; i < space->nr_found; i++) {
		struct found *found = space->found[i];

		if (!found->is_attached || sb_interp_is_unreadable(found))
			continue;
		ret->conf[ret->nr++] = found->rt.conf;
	}
}

int sb_interp_look(struct sb_interp *interp, const struct sb_interp_space *key,
		   struct sb_interp_confs *ret_confs)
{
	struct map_list list = {};
	uint64_t start_ns = sb_now_ns();
	struct sb_procfs_stat now = {};
	struct space *space = NULL;
	int err;

	/* Before its mappings: what they are of is this, or what has taken its place. */
	if (!key->start_ns && sb_procfs_stat(key->tgid, &now))
		now.start_ticks = 0;
	err = sb_procfs_maps(key->tgid, on_line, &list);
	pthread_mutex_lock(&interp->lock);
	if (!err || err == -EFBIG)
		err = sb_interp_make_space(interp, key, &space);
	ret_confs->nr = 0;
	if (!err) {
		space->used = ++interp->clock;
		space->ended_ns = 0;
		if (!key->start_ns)
			expect(space, &now);
		err = look_at_all(interp, space, &list);
		confs_of(space, ret_confs);
	}
	interp->stats.nr_looks++;
	interp->stats.look_ns += sb_now_ns() - start_ns;
	pthread_mutex_unlock(&interp->lock);
	sb_vec_release(&list.maps);
	sb_arena_release(&list.arena);
	return err;
}

/* What others ask. */

static void add_anchors(struct sb_interp_anchors *to, const struct sb_runtime *rt,
			const struct sb_range *ranges, size_t nr, uint32_t kind)
{
	size_t i;

	for (i = 0; i < nr && to->nr < SB_INTERP_ANCHORS_MAX; i++)
		to->at[to->nr++] = (struct sb_interp_anchor){
			.begin = ranges[i].begin,
			.end = ranges[i].end,
			.runtime = rt->ops->runtime,
			.kind = kind,
		};
}

bool sb_interp_anchors(struct sb_interp *interp, const struct sb_interp_space *key,
		       struct sb_interp_anchors *ret)
{
	struct space *space;
	size_t i;

	ret->nr = ret->nr_runtimes = ret->nr_natives = 0;
	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	for (i = 0; space && i < space->nr_found; i++) {
		const struct sb_runtime *rt = &space->found[i]->rt;

		if (!space->found[i]->is_attached)
			continue;
		/* One that is both has all its frames in its state. */
		if (!(rt->conf.flags & SB_INTERP_BY_STATE)) {
			ret->native_files[ret->nr_natives] =
				rt->conf.hook_end ? sb_base_name(sb_image_path(rt->image)) : "";
			ret->natives[ret->nr_natives++] = rt->ops->runtime;
			continue;
		}
		ret->files[ret->nr_runtimes] = sb_base_name(sb_image_path(rt->image));
		ret->runtimes[ret->nr_runtimes++] = rt->ops->runtime;
		add_anchors(ret, rt, rt->anchors, rt->nr_anchors, SB_INTERP_ANCHOR_LOOP);
		add_anchors(ret, rt, rt->callers, rt->nr_callers, SB_INTERP_ANCHOR_CALLER);
		add_anchors(ret, rt, rt->inner, rt->nr_inner, SB_INTERP_ANCHOR_INNER);
	}
	pthread_mutex_unlock(&interp->lock);
	return ret->nr_runtimes + ret->nr_natives > 0;
}

uint32_t sb_interp_anchor_of(const struct sb_interp_anchors *anchors, uint64_t addr,
			     const char *name)
{
	size_t i;

	for (i = 0; i < anchors->nr; i++)
		if (anchors->at[i].kind == SB_INTERP_ANCHOR_LOOP && addr >= anchors->at[i].begin &&
		    addr < anchors->at[i].end)
			return anchors->at[i].runtime;
	for (i = 0; name && i < anchors->nr_runtimes; i++) {
		const struct sb_runtime_ops *ops = sb_runtime_find(anchors->runtimes[i]);

		if (ops && sb_runtime_is_anchor(ops, name))
			return ops->runtime;
	}
	return 0;
}

uint32_t sb_interp_caller_of(const struct sb_interp_anchors *anchors, uint32_t runtime,
			     uint64_t addr)
{
	size_t i;

	for (i = 0; i < anchors->nr; i++)
		if (anchors->at[i].kind != SB_INTERP_ANCHOR_LOOP &&
		    anchors->at[i].runtime == runtime && addr >= anchors->at[i].begin &&
		    addr < anchors->at[i].end)
			return anchors->at[i].kind;
	return SB_INTERP_ANCHOR_LOOP;
}

bool sb_interp_has_callers(const struct sb_interp_anchors *anchors, uint32_t runtime)
{
	size_t i;

	for (i = 0; i < anchors->nr; i++)
		if (anchors->at[i].kind == SB_INTERP_ANCHOR_CALLER &&
		    anchors->at[i].runtime == runtime)
			return true;
	return false;
}

void sb_interp_code_rule(struct sb_interp *interp, const struct sb_interp_space *key,
			 struct sb_sym_rule *ret_rule)
{
	struct space *space;
	size_t i;

	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	for (i = 0; space && i < space->nr_found; i++)
		if (space->found[i]->is_attached && space->found[i]->rt.code.end)
			*ret_rule = space->found[i]->rt.code;
	pthread_mutex_unlock(&interp->lock);
}
