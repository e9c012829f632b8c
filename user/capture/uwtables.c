// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/uwtables.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/log.h"
#include "base/time.h"
#include "base/vec.h"
#include "symbolizer/elf/debugfile.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/owner.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/symbols/vdso.h"
#include "symbolizer/unwind/cfi.h"
#include "symbolizer/unwind/parser.h"

/* Places in files that are remembered by the file's identity: 3 MB. When there are more, all are
 * dropped. */
#define SPOTS_MAX 32768u

/* What two files must have in common to share a table. Zeroed before use, because it is compared
 * and hashed as bytes. */
struct file_id {
	uint8_t build_id[SB_BUILD_ID_MAX];
	uint32_t build_id_bytes;
	struct sb_file_owner owner;
	uint64_t size;
	/*
	 * These identify a file that has no build ID, or whose owner cannot be trusted; otherwise
	 * they are 0.
	 */
	uint64_t dev, ino, mtime_ns;
};

/* The identity of one file that does not change, and an offset in it. */
struct stamp {
	uint64_t dev, ino, size, mtime_ns, ctime_ns, pgoff;
};

struct spot {
	struct stamp stamp;
	struct sb_uwtables_spot spot;
	uint64_t serial; /* of the bin; it changes when the number is given to another file */
};

struct bin {
	struct file_id id;
	bool is_vdso;
	uint64_t serial;
	uint32_t nr_holders;
	uint64_t idle_since_ns; /* since when nobody holds it */
	uint64_t retry_ns;	/* there was no room: do not try before this time */
	struct sb_uwpool_place place;
};

struct sb_uwtables {
	struct sb_uwtables_opts opts;
	SB_VEC(struct bin) bins;
	struct sb_index bins_index;
	SB_VEC(struct spot) spots;
	struct sb_index spots_index;
	uint64_t last_serial;
	bool has_vdso_addr;
	uint64_t vdso_addr; /* in its ELF file */
	struct sb_uwtables_stats stats;
};

SB_DEFINE_CLEANUP(struct sb_elf, sb_elf_free)
SB_DEFINE_CLEANUP(struct sb_cfi, sb_cfi_free)

int sb_uwtables_new(const struct sb_uwtables_opts *opts, struct sb_uwtables **ret_tables)
{
	struct sb_uwtables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return -ENOMEM;
	tables->opts = *opts;
	if (!tables->opts.now_ns)
		tables->opts.now_ns = sb_now_ns;
	*ret_tables = tables;
	return 0;
}

void sb_uwtables_free(struct sb_uwtables *tables)
{
	if (!tables)
		return;
	sb_vec_release(&tables->bins);
	sb_index_release(&tables->bins_index);
	sb_vec_release(&tables->spots);
	sb_index_release(&tables->spots_index);
	free(tables);
}

/* The clock of struct sb_uw_bin.used_s. */
static uint32_t now_s(const struct sb_uwtables *tables)
{
	return (uint32_t)(tables->opts.now_ns() >> 30);
}

static uint32_t state_of(const struct sb_uwtables *tables, uint32_t bin)
{
	return tables->opts.bins[bin].state;
}

static void set_state(struct sb_uwtables *tables, uint32_t bin, uint32_t state)
{
	/* The walker must not see the state before the words that it stands for. */
	__atomic_store_n(&tables->opts.bins[bin].state, state, __ATOMIC_RELEASE);
}

static struct stamp stamp_of(const struct stat *st, uint64_t pgoff)
{
	return (struct stamp){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = sb_timespec_ns(&st->st_mtim),
		.ctime_ns = sb_timespec_ns(&st->st_ctim),
		.pgoff = pgoff,
	};
}

static struct file_id file_id_of(const struct sb_elf *elf, const struct stat *st)
{
	struct file_id id;

	memset(&id, 0, sizeof(id));
	id.size = (uint64_t)st->st_size;
	id.owner = sb_file_owner(elf->fd, st);
	if (elf->build_id_len) {
		memcpy(id.build_id, elf->build_id, elf->build_id_len);
		id.build_id_bytes = (uint32_t)elf->build_id_len;
	}
	if (!elf->build_id_len || id.owner.ino) {
		id.dev = st->st_dev;
		id.ino = st->st_ino;
		id.mtime_ns = sb_timespec_ns(&st->st_mtim);
	}
	return id;
}

void sb_uwtables_hold(struct sb_uwtables *tables, uint32_t bin)
{
	tables->bins.at[bin].nr_holders++;
}

void sb_uwtables_drop(struct sb_uwtables *tables, uint32_t bin)
{
	if (!--tables->bins.at[bin].nr_holders)
		tables->bins.at[bin].idle_since_ns = tables->opts.now_ns();
}

bool sb_uwtables_is_absent(const struct sb_uwtables *tables, uint32_t bin)
{
	return bin < tables->bins.nr && state_of(tables, bin) == SB_UW_BIN_ABSENT;
}

bool sb_uwtables_is_vdso(const struct sb_uwtables *tables, uint32_t bin)
{
	return bin < tables->bins.nr && tables->bins.at[bin].is_vdso;
}

uint64_t sb_uwtables_file_bytes(const struct sb_uwtables *tables, uint32_t bin)
{
	return bin < tables->bins.nr ? tables->bins.at[bin].id.size : 0;
}

/* Places in files that were looked at. */

static struct spot *find_spot(struct sb_uwtables *tables, const struct stamp *stamp, uint64_t hash)
{
	sb_index_each(it, &tables->spots_index, hash)
		if (!memcmp(&tables->spots.at[it.id].stamp, stamp, sizeof(*stamp)))
			return &tables->spots.at[it.id];
	return NULL;
}

/* Remember a place. If that fails, the file is read again, which is slower but right. */
static void remember_spot(struct sb_uwtables *tables, const struct stat *st, uint64_t pgoff,
			  const struct sb_uwtables_spot *at)
{
	struct spot spot = {
		.stamp = stamp_of(st, pgoff),
		.spot = *at,
		.serial = tables->bins.at[at->bin].serial,
	};
	uint64_t hash = sb_hash(&spot.stamp, sizeof(spot.stamp), 0);
	struct spot *have = find_spot(tables, &spot.stamp, hash);

	if (have) {
		*have = spot;
		return;
	}
	if (tables->spots.nr >= SPOTS_MAX) {
		sb_vec_release(&tables->spots);
		sb_index_release(&tables->spots_index);
	}
	if (sb_vec_push(&tables->spots, spot))
		return;
	if (sb_index_add(&tables->spots_index, hash, (uint32_t)tables->spots.nr - 1))
		tables->spots.nr--;
}

bool sb_uwtables_find(struct sb_uwtables *tables, const struct stat *st, uint64_t pgoff,
		      struct sb_uwtables_spot *ret_spot)
{
	struct stamp stamp = stamp_of(st, pgoff);
	struct spot *spot = find_spot(tables, &stamp, sb_hash(&stamp, sizeof(stamp), 0));

	if (!spot || spot->serial != tables->bins.at[spot->spot.bin].serial)
		return false;
	*ret_spot = spot->spot;
	sb_uwtables_hold(tables, ret_spot->bin);
	return true;
}

/* Bins. */

static void evict(struct sb_uwtables *tables, uint32_t bin)
{
	/* A walk that saw the state "ready" continues with the table, so its words are not reused
	 * yet. */
	set_state(tables, bin, SB_UW_BIN_ABSENT);
	sb_uwpool_release(tables->opts.pool, tables->bins.at[bin].place);
	tables->bins.at[bin].place = (struct sb_uwpool_place){};
	tables->stats.nr_tables--;
	tables->stats.nr_evictions++;
}

/*
 * All numbers are in use: find the least recently used bin that nobody holds, and that nobody held
 * a moment ago, when a walk may have begun with it. Return: the bin, or nr_bins_max.
 */
static uint32_t reuse_bin(struct sb_uwtables *tables)
{
	uint64_t now_ns = tables->opts.now_ns();
	uint32_t bin, best = tables->opts.nr_bins_max;

	for (bin = 0; bin < tables->bins.nr; bin++) {
		if (tables->bins.at[bin].nr_holders ||
		    now_ns - tables->bins.at[bin].idle_since_ns < SB_UWPOOL_REST_NS)
			continue;
		if (best == tables->opts.nr_bins_max ||
		    tables->opts.bins[bin].used_s < tables->opts.bins[best].used_s)
			best = bin;
	}
	if (best < tables->opts.nr_bins_max && state_of(tables, best) == SB_UW_BIN_READY)
		evict(tables, best);
	return best;
}

/* Add a bin to the index. Outdated entries stay in the index until they are most of it; then it is
 * built anew. */
static int index_bin(struct sb_uwtables *tables, uint32_t bin)
{
	struct sb_index fresh = {};
	uint32_t i;
	int err = 0;

	if (tables->bins_index.nr < 2 * tables->opts.nr_bins_max)
		return sb_index_add(&tables->bins_index,
				    sb_hash(&tables->bins.at[bin].id, sizeof(struct file_id), 0),
				    bin);
	for (i = 0; i < tables->bins.nr && !err; i++)
		err = sb_index_add(&fresh,
				   sb_hash(&tables->bins.at[i].id, sizeof(struct file_id), 0), i);
	if (err) {
		sb_index_release(&fresh);
		return err;
	}
	sb_index_release(&tables->bins_index);
	tables->bins_index = fresh;
	return 0;
}

static int new_bin(struct sb_uwtables *tables, const struct bin *file, uint32_t *ret_bin)
{
	uint32_t bin = (uint32_t)tables->bins.nr;
	int err;

	if (bin < tables->opts.nr_bins_max) {
		err = sb_vec_push(&tables->bins, *file);
		if (err)
			return err;
	} else {
		bin = reuse_bin(tables);
		if (bin == tables->opts.nr_bins_max) {
			tables->stats.nr_refused++;
			return -ENOSPC;
		}
		set_state(tables, bin, SB_UW_BIN_ABSENT);
		tables->bins.at[bin] = *file;
	}
	tables->bins.at[bin].serial = ++tables->last_serial;
	tables->bins.at[bin].idle_since_ns = tables->opts.now_ns();
	tables->opts.bins[bin].used_s = now_s(tables);
	err = index_bin(tables, bin);
	if (err)
		return err; /* nobody holds the bin, so it will be reused */
	*ret_bin = bin;
	return 0;
}

static int find_or_new_bin(struct sb_uwtables *tables, const struct file_id *id, bool is_vdso,
			   uint32_t *ret_bin)
{
	const struct bin file = { .id = *id, .is_vdso = is_vdso };
	int err;

	sb_index_each(it, &tables->bins_index, sb_hash(id, sizeof(*id), 0)) {
		if (!memcmp(&tables->bins.at[it.id].id, id, sizeof(*id))) {
			*ret_bin = it.id;
			sb_uwtables_hold(tables, it.id);
			return 0;
		}
	}
	err = new_bin(tables, &file, ret_bin);
	if (!err)
		sb_uwtables_hold(tables, *ret_bin);
	return err;
}

int sb_uwtables_add(struct sb_uwtables *tables, int fd, uint64_t pgoff,
		    struct sb_uwtables_spot *ret_spot)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	struct sb_uwtables_spot spot;
	struct file_id id;
	struct stat st;
	int err;

	err = sb_reader_fstat(fd, &st);
	if (err)
		return err;
	err = sb_elf_new_fd(fd, &elf);
	if (err)
		return err;
	if (!sb_elf_offset_to_addr(elf, pgoff, &spot.elf_addr))
		return -ENODATA;
	id = file_id_of(elf, &st);
	err = find_or_new_bin(tables, &id, false, &spot.bin);
	if (err)
		return err;
	remember_spot(tables, &st, pgoff, &spot);
	*ret_spot = spot;
	return 0;
}

static int find_vdso_addr(struct sb_uwtables *tables)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	const void *image;
	size_t len;
	int err;

	image = sb_vdso_own(&len);
	if (!image)
		return -ENOENT;
	err = sb_elf_new_image(image, len, &elf);
	if (err)
		return err;
	tables->has_vdso_addr = sb_elf_offset_to_addr(elf, 0, &tables->vdso_addr);
	return tables->has_vdso_addr ? 0 : -ENODATA;
}

int sb_uwtables_add_vdso(struct sb_uwtables *tables, struct sb_uwtables_spot *ret_spot)
{
	struct sb_uwtables_spot spot;
	struct file_id id;
	int err = tables->has_vdso_addr ? 0 : find_vdso_addr(tables);

	if (err)
		return err;
	/* No file has this identity. */
	memset(&id, 0, sizeof(id));
	id.owner.uid = id.ino = UINT64_MAX;
	err = find_or_new_bin(tables, &id, true, &spot.bin);
	if (err)
		return err;
	spot.elf_addr = tables->vdso_addr;
	*ret_spot = spot;
	return 0;
}

/* Tables. */

/* Evict the least recently used table. Return: whether there was one. */
static bool evict_one(struct sb_uwtables *tables)
{
	uint32_t bin, best = tables->opts.nr_bins_max;

	for (bin = 0; bin < tables->bins.nr; bin++) {
		if (state_of(tables, bin) == SB_UW_BIN_READY &&
		    (best == tables->opts.nr_bins_max ||
		     tables->opts.bins[bin].used_s < tables->opts.bins[best].used_s))
			best = bin;
	}
	if (best == tables->opts.nr_bins_max)
		return false;
	evict(tables, best);
	return true;
}

static int alloc(struct sb_uwtables *tables, const struct sb_uwpool_want *want,
		 struct sb_uwpool_place *ret_place)
{
	int err = sb_uwpool_alloc(tables->opts.pool, want, ret_place);

	if (err != -ENOSPC)
		return err;
	while (!sb_uwpool_will_fit(tables->opts.pool, want) && evict_one(tables))
		;
	return -EAGAIN;
}

int sb_uwtables_alloc_list(struct sb_uwtables *tables, uint32_t nr_words,
			   struct sb_uwpool_place *ret_place)
{
	const struct sb_uwpool_want want = { .nr_words = nr_words };

	return alloc(tables, &want, ret_place);
}

static size_t cfi_words_at(const void *arg, uint32_t word)
{
	return sb_cfi_words(arg, word);
}

static int place(struct sb_uwtables *tables, uint32_t bin, const struct sb_cfi *cfi)
{
	const struct sb_uwpool_want want = { .words_at = cfi_words_at, .arg = cfi };
	struct sb_uw_bin *shared = &tables->opts.bins[bin], table;
	struct bin *file = &tables->bins.at[bin];
	int err;

	err = alloc(tables, &want, &file->place);
	if (err)
		return err;
	sb_cfi_place(cfi, sb_uwpool_words(tables->opts.pool), file->place.word, &table);
	shared->text_lo = table.text_lo;
	shared->index_word = table.index_word;
	shared->nr_granules = table.nr_granules;
	shared->rules_word = table.rules_word;
	shared->nr_rules = table.nr_rules;
	shared->used_s = now_s(tables);
	set_state(tables, bin, table.state);
	return 0;
}

static int compile(struct sb_parser_seat *parser, const struct sb_elf *elf, int fd, uint32_t tgid,
		   struct sb_cfi **ret_cfi)
{
	char path[PATH_MAX], link[64], root[64];
	struct sb_debugfile_opts opts = { .path = path, .root = root };
	struct sb_debugfile debug;
	ssize_t len;
	int err = sb_parser_cfi(parser, elf, NULL, ret_cfi);

	if (err != -ENODATA)
		return err;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	snprintf(root, sizeof(root), "/proc/%u/root", tgid);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return -ENODATA;
	path[len] = '\0';
	err = sb_debugfile_find(elf, &opts, &debug);
	if (err)
		return err == -ENOENT ? -ENODATA : err;
	err = sb_parser_cfi(parser, elf, debug.elf, ret_cfi);
	sb_debugfile_release(&debug);
	return err;
}

/* Open the ELF file of a bin, if @fd is still that file. */
static int open_elf(const struct bin *file, int fd, struct sb_elf **ret_elf)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	struct file_id id;
	struct stat st;
	const void *image;
	size_t len;
	int err;

	if (file->is_vdso) {
		image = sb_vdso_own(&len);
		return image ? sb_elf_new_image(image, len, ret_elf) : -ENODATA;
	}
	err = sb_reader_fstat(fd, &st);
	if (err)
		return err;
	err = sb_elf_new_fd(fd, &elf);
	if (err)
		return err;
	id = file_id_of(elf, &st);
	if (memcmp(&id, &file->id, sizeof(id)))
		return -ESTALE;
	*ret_elf = sb_take(elf);
	return 0;
}

static int try_build(struct sb_uwtables *tables, uint32_t bin, int fd, uint32_t tgid)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	sb_cleanup(sb_cfi_freep) struct sb_cfi *cfi = NULL;
	struct bin *file = &tables->bins.at[bin];
	struct sb_cfi_info info;
	int err;

	err = open_elf(file, fd, &elf);
	if (err)
		return err;
	/* The vDSO comes from the kernel, so it can be parsed in this process. */
	err = file->is_vdso ? sb_cfi_new_native(elf, NULL, &cfi)
			    : compile(tables->opts.parser, elf, fd, tgid, &cfi);
	if (err)
		return err;
	err = place(tables, bin, cfi);
	if (err)
		return err;
	sb_cfi_info(cfi, &info);
	tables->stats.nr_rows += info.nr_rows;
	tables->stats.nr_tables++;
	tables->stats.nr_built++;
	return 0;
}

int sb_uwtables_build(struct sb_uwtables *tables, uint32_t bin, int fd, uint32_t tgid)
{
	uint64_t begin_ns = tables->opts.now_ns();
	int err;

	if (!sb_uwtables_is_absent(tables, bin))
		return 0;
	if (begin_ns < tables->bins.at[bin].retry_ns)
		return -EAGAIN;
	err = try_build(tables, bin, fd, tgid);
	tables->stats.build_ns += tables->opts.now_ns() - begin_ns;
	/* These errors say nothing about the file. */
	if (!err || err == -ENOMEM || err == -ESTALE || err == -EMFILE || err == -ENFILE)
		return err;
	if (err == -EAGAIN) {
		tables->bins.at[bin].retry_ns = begin_ns + SB_UWPOOL_REST_NS;
		return err;
	}
	tables->stats.nr_refused += err == -EFBIG;
	tables->stats.nr_failed += err != -ENODATA;
	sb_debug("no unwind table for bin %u of process %u: %s", bin, tgid, strerror(-err));
	set_state(tables, bin, SB_UW_BIN_FP_CHAIN);
	return 0;
}

/* Find the offset from which the kernel or the loader will map its code. Return: 0, or as
 * sb_elf_new_fd(). */
static int find_code(int fd, uint64_t *ret_pgoff)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	int err = sb_elf_new_fd(fd, &elf);
	size_t i;

	if (err)
		return err;
	for (i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		*ret_pgoff = phdr->p_offset & ~((uint64_t)getpagesize() - 1);
		return 0;
	}
	return -ENODATA;
}

void sb_uwtables_build_early(struct sb_uwtables *tables, int fd, uint32_t tgid)
{
	struct sb_uwtables_spot spot;
	uint64_t pgoff;
	int err;

	if (fd < 0) {
		err = sb_uwtables_add_vdso(tables, &spot);
	} else {
		err = find_code(fd, &pgoff);
		if (!err)
			err = sb_uwtables_add(tables, fd, pgoff, &spot);
	}
	if (err)
		return;
	sb_uwtables_build(tables, spot.bin, fd, tgid);
	sb_uwtables_drop(tables, spot.bin);
}

void sb_uwtables_stats(const struct sb_uwtables *tables, struct sb_uwtables_stats *ret_stats)
{
	*ret_stats = tables->stats;
}
