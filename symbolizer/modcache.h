/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From "what the kernel says is mapped" to an opened module: mapped files, each known once and
 * opened when first needed; modules, shared by all files that are the same by inode, or by build ID
 * and owner; bounds on how many are open and on their memory. Internal to the symbolizer.
 *
 * A build ID is what the maker of a file says it is, and a path is what a process sees: one user could
 * name the functions of another's processes by a copy of a file with other symbols. So modules of
 * different owners are never shared, files of root may be, and a module that is not root's serves a
 * process only if the process maps that very file, or runs as its owner.
 */
#ifndef SB_MODCACHE_H
#define SB_MODCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/index.h"
#include "base/vec.h"
#include "module.h"
#include "owner.h"
#include "procfs.h"
#include "sb_sym.h"

/* Distinct mapped files known at a time. */
#define SB_MODCACHE_FILES_MAX	65536u
/* So few are kept, mapped or not. */
#define SB_MODCACHE_FILES_FEW	256u
/* The kernel's PATH_MAX. */
#define SB_MODCACHE_PATH_MAX	4096u
/* Modules open at a time, if descriptors suffice (each may hold two). */
#define SB_MODCACHE_MODULES_MAX 2048u
/* Default of sb_symbolizer_opts. */
#define SB_MODCACHE_HEAVY_BYTES (256u << 20)

/* The number of a file that could not be taken in: a bound. */
#define SB_MODCACHE_FILE_NONE	0u

/* As an event or a line of /proc/PID/maps has it. */
struct sb_mapped_file {
	const char *path; /* not terminated */
	size_t path_len;
	uint64_t ino, ino_generation;
	uint32_t maj, min;
	uint8_t build_id[SB_BUILD_ID_MAX];
	uint32_t build_id_bytes;
};

struct sb_cached_module {
	struct sb_module *module;
	uint32_t id;   /* never used again */
	uint64_t used; /* when last: ticks of the cache */
	size_t light_bytes, heavy_bytes;
	uint64_t
		table_ns; /* when its unwind table was asked for, by the cache's time; 0: it was not */
	bool is_mapped; /* while forgetting */
	/* How the file itself looks; all 0 for an image. */
	struct sb_file_stamp {
		uint64_t dev, ino, size, mtime_ns, ctime_ns;
	} stamp;
	struct sb_file_owner owner; /* all 0 for an image */
	uint64_t hash;		    /* of an image's contents */
};

struct sb_modcache {
	struct sb_module_opts opts;
	SB_VEC(struct sb_file {
		char *path;
		const char *name; /* base name for frames, interned when needed */
		struct sb_mapped_file id;
		enum sb_map_kind kind;
		int fd;		      /* pinned, or -1 */
		uint32_t proven_tgid; /* the last process that was seen to map the module's file */
		bool is_contested;    /* processes map different files by this name */
		uint32_t module_id;   /* of the module it turned out to be, 0: not opened */
		int err;	      /* why it could not be opened, or 0 */
		uint32_t err_tgid;    /* which it failed for */
		uint32_t nr_tries;
		bool is_used; /* while forgetting */
	})
	files;
	struct sb_index files_index;
	SB_VEC(uint32_t) free_files;
	SB_VEC(struct sb_cached_module *) modules; /* by id, ascending */
	uint32_t last_id;
	uint64_t tick, tick_forgot; /* when files were forgotten last */
	uint64_t now_ns;	    /* when they rested last */
	size_t nr_left;		    /* files that were left then */
	uint32_t nr_pins, pins_max, modules_max, pin_clock;
	size_t light_bytes, heavy_bytes, heavy_bytes_peak, heavy_bytes_max;
	uint64_t nr_opened, nr_evictions, nr_files_refused, nr_pins_dropped;
};

int sb_modcache_init(struct sb_modcache *cache, const struct sb_module_opts *opts);
void sb_modcache_release(struct sb_modcache *cache);

/* The number of a file, SB_MODCACHE_FILE_NONE at a bound. Return: 0 or -ENOMEM. */
int sb_modcache_file(struct sb_modcache *cache, const struct sb_mapped_file *id,
		     uint32_t *ret_file);
/* Keep @fd, taken over, as a way to the file that cannot be lost. */
void sb_modcache_pin(struct sb_modcache *cache, uint32_t file, int fd);
enum sb_map_kind sb_modcache_kind(const struct sb_modcache *cache, uint32_t file);
/* Base name, without " (deleted)"; lives as long as the strings. NULL without memory. */
const char *sb_modcache_name(struct sb_modcache *cache, uint32_t file);

/* Where a file is mapped: the ways to open it. */
struct sb_mapped_at {
	uint32_t tgid;
	uint64_t start, end;
};

/*
 * The module of a file, opened if need be. What is opened must be the file that was mapped: the
 * same build ID, or without one the same inode. In this order: the pinned descriptor,
 * /proc/PID/map_files, the path below /proc/PID/root, the path; a module with the same build ID.
 * The module is valid until the next call that may open another one.
 * Return: 0, -ENOENT (cannot be opened, or is another file by now), -ENOEXEC (no ELF file, or a
 * broken one), -EFBIG (a bound), -ENOMEM.
 */
int sb_modcache_get(struct sb_modcache *cache, uint32_t file, const struct sb_mapped_at *at,
		    struct sb_cached_module **ret_module);
/* A file by its path, no process involved. Return: as above, or of open(2). */
int sb_modcache_get_path(struct sb_modcache *cache, const char *path,
			 struct sb_cached_module **ret_module);
/* An image that was read from memory. Return: 0, -ENOEXEC, -EFBIG, -ENOMEM. */
int sb_modcache_get_image(struct sb_modcache *cache, const void *image, size_t len,
			  const char *name, struct sb_cached_module **ret_module);

/* After lookups in @module: count its memory, and keep all modules within their bounds. */
void sb_modcache_account(struct sb_modcache *cache, struct sb_cached_module *module);

/*
 * The unwind table of @module is asked for. And from time to time, @now_ns: give back those that were not asked for
 * in ten seconds. The walk in the kernel has its own, and only what it has not yet is unwound by these.
 */
static inline void sb_modcache_note_table(const struct sb_modcache *cache,
					  struct sb_cached_module *module)
{
	module->table_ns = cache->now_ns + 1;
}
void sb_modcache_rest(struct sb_modcache *cache, uint64_t now_ns);

/*
 * Forget files, when they have become many more than are mapped: if begin says so, mark those in use, and
 * end. A descriptor of ours keeps a file on the disk that was deleted long ago. Modules of files that nobody
 * maps stay if they were used since the last time, for programs that come again.
 */
bool sb_modcache_forget_begin(struct sb_modcache *cache);
void sb_modcache_mark(struct sb_modcache *cache, uint32_t file);
void sb_modcache_forget_end(struct sb_modcache *cache);

#endif
