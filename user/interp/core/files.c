// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files that processes map. Each file is examined once for runtimes. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "interp/core/interp.h"
#include "interp/core/interp_priv.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

/* What the linker of Go puts into each program, stripped or not. */
#define GO_SECTION ".go.buildinfo"

/* Files that are remembered to have no interpreter in them, or one. More are looked at again. */
#define FILES_MAX  65536u

static uint32_t runtimes_of(const struct sb_interp *interp, struct sb_image_file *file)
{
	struct sb_image image = { .file = file };
	struct sb_label_place place;
	uint32_t runtimes = 0;
	size_t i, at;

	if (sb_interp_wants_labels(interp) && sb_label_place_find(&image, &place))
		runtimes |= FILE_LABELS;
	if (sb_elf_section_named(file->elf, GO_SECTION))
		runtimes |= FILE_GO;
	for (i = 0; !interp->opts.no_frames && sb_runtimes[i]->runtime; i++)
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
	sb_index_each(it, &interp->files_index, hash_file(like)) {
		struct seen_file *seen = &interp->files.at[it.id];

		if (seen->dev == like->dev && seen->ino == like->ino && seen->size == like->size &&
		    !memcmp(&seen->changed, &like->changed, sizeof(seen->changed)))
			return seen;
	}
	return NULL;
}

/* Forget files without interpreters, which are examined again if they are met again. The others are
 * in use. */
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
		interp->files.nr--; /* the caller frees the image */
	return err;
}

/* Examine a file. Return: 0, also if it cannot be read as ELF; -ENOMEM when nothing is known. */
static int examine(struct sb_interp *interp, int fd, const char *path, struct seen_file *seen)
{
	int err = sb_image_file_new(fd, path, &seen->file);

	if (err)
		return err == -ENOMEM ? err : 0;
	seen->file->parser = interp->opts.parser;
	seen->runtimes = runtimes_of(interp, seen->file);
	/* The caller frees it, and looks at the file again. */
	if (seen->file->has_lacked_memory)
		return -ENOMEM;
	sb_image_file_unload(seen->file);
	if (!(seen->runtimes & ~FILE_GO)) {
		sb_image_file_free(seen->file);
		seen->file = NULL;
	}
	return 0;
}

static struct seen_file seen_of(const struct stat *st)
{
	return (struct seen_file){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.changed = st->st_ctim,
	};
}

static uint64_t hash_stamp(const struct seen_file *file)
{
	const uint64_t words[] = { file->dev, file->ino, (uint64_t)file->size,
				   (uint64_t)file->changed.tv_sec,
				   (uint64_t)file->changed.tv_nsec };

	return sb_hash(words, sizeof(words), 0) | 1;
}

static uint64_t hash_path(const char *path)
{
	return sb_hash(path, strlen(path), 1) | 1;
}

static void note(struct sb_interp *interp, uint64_t hash)
{
	__atomic_store_n(&interp->plain[hash / 2 % PLAIN_NOTES], hash, __ATOMIC_RELAXED);
}

static bool is_noted(const struct sb_interp *interp, uint64_t hash)
{
	return __atomic_load_n(&interp->plain[hash / 2 % PLAIN_NOTES], __ATOMIC_RELAXED) == hash;
}

int sb_interp_look_at_file(struct sb_interp *interp, uint32_t tgid, const struct sb_maps_line *map,
			   struct seen_file **ret_file)
{
	sb_cleanup(sb_closep) int fd = -1;
	struct seen_file seen, *known;
	struct stat st;
	int err;

	*ret_file = NULL;
	if (sb_procfs_stat_line(tgid, map, &st)) {
		fd = sb_procfs_open_line(tgid, map);
		if (fd < 0 || sb_reader_fstat(fd, &st))
			return -ENOENT;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	seen = seen_of(&st);
	known = find_file(interp, &seen);
	if (known && !known->runtimes)
		note(interp, hash_stamp(known));
	if (known) {
		*ret_file = known->runtimes ? known : NULL;
		return 0;
	}
	if (fd < 0)
		fd = sb_procfs_open_line(tgid, map);
	if (fd < 0)
		return -ENOENT;
	err = examine(interp, fd, map->path, &seen);
	if (!err)
		err = add_file(interp, &seen);
	if (err) {
		sb_image_file_free(seen.file);
		return err == -ENOMEM ? err : -ENOENT;
	}
	if (!seen.runtimes)
		note(interp, hash_stamp(&seen));
	else
		*ret_file = &interp->files.at[interp->files.nr - 1];
	return 0;
}

void sb_interp_note_plain(struct sb_interp *interp, const char *path)
{
	note(interp, hash_path(path));
}

bool sb_interp_seems_plain(const struct sb_interp *interp, const char *path)
{
	/* The vDSO and such. */
	return path[0] == '[' || is_noted(interp, hash_path(path));
}

bool sb_interp_is_plain(const struct sb_interp *interp, const struct stat *st)
{
	const struct seen_file file = seen_of(st);

	return is_noted(interp, hash_stamp(&file));
}
