/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From what the kernel says is mapped to an opened module. Each mapped file is known once and
 * opened when it is first needed. Files that are the same, by inode or by build ID and owner, share
 * a module. The number of open modules and their memory are bounded. No pointer is NULL. The caller
 * passes only numbers of files that it got here; that is not checked. Internal to the symbolizer.
 * Order: sb_modcache_init(); sb_modcache_file() for each mapping; for lookups sb_modcache_get*(),
 * the functions of module.h, and sb_modcache_account(); from time to time sb_modcache_rest() and
 * sb_modcache_forget_*(); sb_modcache_release(). After any error but that of sb_modcache_init() the
 * cache remains usable. modcache_files.c has the table of files, modcache_open.c the
 * sb_modcache_get*(), and modcache.c what holds modules and memory within their bounds. Thread: one
 * at a time for each cache.
 *
 * Whoever makes a file chooses its build ID, and each process sees its own paths. So one user could
 * name the functions of another user's processes with a copy of a file that has other symbols.
 * Therefore modules of different owners are never shared (but files of root may be), and a module
 * whose file is not root's serves a process only if the process maps that very file, or runs as its
 * owner.
 */
#ifndef SB_MODCACHE_H
#define SB_MODCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/index.h"
#include "base/vec.h"
#include "symbolizer/elf/owner.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/sb_sym.h"
#include "symbolizer/symbols/module.h"

/* Bound of distinct mapped files known at a time. */
#define SB_MODCACHE_FILES_MAX	65536u
/* Up to this number, files are kept whether they are mapped or not. */
#define SB_MODCACHE_FILES_FEW	256u
/* The kernel's PATH_MAX. */
#define SB_MODCACHE_PATH_MAX	4096u
/* Bound of modules open at a time, if there are enough descriptors (each may hold two). */
#define SB_MODCACHE_MODULES_MAX 2048u
/* The default of sb_symbolizer_opts.heavy_bytes_max. */
#define SB_MODCACHE_HEAVY_BYTES (256u << 20)

/* The number of all files that were not accepted because of a bound. */
#define SB_MODCACHE_FILE_NONE	0u

/* A mapped file, as an event or a line of /proc/PID/maps describes it. */
struct sb_mapped_file {
	const char *path; /* not terminated */
	size_t path_len;
	uint64_t ino, ino_generation;
	uint32_t maj, min;
	uint8_t build_id[SB_BUILD_ID_MAX];
	uint32_t build_id_bytes;
};

/* A module in the cache, owned by it. */
struct sb_cached_module {
	struct sb_module *module;
	uint32_t id;   /* is never used again */
	uint64_t used; /* time of the last use, in ticks of the cache */
	size_t light_bytes, heavy_bytes;
	uint64_t
		table_ns; /* when its unwind table was last asked for, by the cache's time; 0: never */
	bool is_mapped; /* only while forgetting */
	/* What identifies the file; all 0 for an image. */
	struct sb_file_stamp {
		uint64_t dev, ino, size, mtime_ns, ctime_ns;
	} stamp;
	struct sb_file_owner owner; /* all 0 for an image */
	uint64_t hash;		    /* of the contents of an image */
};

struct sb_modcache {
	struct sb_module_opts opts;
	SB_VEC(struct sb_file {
		char *path;
		const char *name; /* base name for frames; NULL: not asked for yet */
		struct sb_mapped_file id;
		enum sb_map_kind kind;
		int fd;		      /* a pinned descriptor, owned; -1: none */
		uint32_t proven_tgid; /* the last process that was seen to map the module's file */
		bool is_contested;    /* processes map different files under this name */
		uint32_t module_id;   /* its module; 0: not opened */
		int err;	   /* why it could not be opened; 0: it was not tried, or could */
		uint32_t err_tgid; /* the process for which it failed */
		uint32_t nr_tries;
		bool is_used; /* only while forgetting */
	})
	files;
	struct sb_index files_index;
	SB_VEC(uint32_t) free_files;
	SB_VEC(struct sb_cached_module *) modules; /* owned, ascending by id */
	uint32_t last_id;
	uint64_t tick, tick_forgot; /* now, and at the last forget */
	uint64_t now_ns;	    /* time of the last sb_modcache_rest() */
	size_t nr_left;		    /* number of files after the last forget */
	uint32_t nr_pins, pins_max, modules_max, pin_clock;
	size_t light_bytes, heavy_bytes, heavy_bytes_peak, heavy_bytes_max;
	uint64_t nr_opened, nr_evictions, nr_files_refused, nr_pins_dropped;
};

/*
 * Initialize an empty cache. If opts->pool is set, the pool evicts from this cache from now on
 * (opts->pool->reclaim); it keeps the pointer @cache, so the struct must not be moved. @opts is
 * copied; what it borrows must outlive the cache.
 * Return: 0; -ENOMEM: nothing needs to be released, and releasing does no harm.
 */
int sb_modcache_init(struct sb_modcache *cache, const struct sb_module_opts *opts);
/* Free all modules, close all descriptors. The struct is not to be used again. The pool refers to
 * it still, so no budget of the pool may be charged any more. */
void sb_modcache_release(struct sb_modcache *cache);

/*
 * Get the number of a file, which is made known if it is not yet; the path of @id is copied. The
 * number stays valid until sb_modcache_forget_end() forgets the file. Return: 0, with *@ret_file
 * SB_MODCACHE_FILE_NONE if a bound was hit; -ENOMEM, *@ret_file untouched. Functions that take a
 * number take SB_MODCACHE_FILE_NONE, too: a special mapping named "".
 */
int sb_modcache_file(struct sb_modcache *cache, const struct sb_mapped_file *id,
		     uint32_t *ret_file);
/* Do what sb_modcache_file() does for the file of a mapping in /proc/PID/maps, without a build ID.
 * Return: 0, with *@ret_file SB_MODCACHE_FILE_NONE if a bound was hit; -ENOMEM, *@ret_file
 * untouched. */
int sb_modcache_line_file(struct sb_modcache *cache, const struct sb_maps_line *line,
			  uint32_t *ret_file);
/*
 * Pin @fd, an open descriptor of the file, not -1: keep it as a sure way to open the file later.
 * The cache takes ownership, and may close it at once, or later to make room for others.
 */
void sb_modcache_pin(struct sb_modcache *cache, uint32_t file, int fd);
/* Return: what the file is, as its name tells (sb_map_kind()). */
enum sb_map_kind sb_modcache_kind(const struct sb_modcache *cache, uint32_t file);
/*
 * Return: the base name without " (deleted)", which lives as long as opts.strings; NULL: no
 * memory.
 */
const char *sb_modcache_name(struct sb_modcache *cache, uint32_t file);

/* Where a file is mapped, which gives ways to open it. */
struct sb_mapped_at {
	uint32_t tgid;
	uint64_t start, end;
};

/*
 * Get the module of a file; it is opened if necessary. What is opened must be the file that was
 * mapped: it has the same build ID or, if none is known, the same inode. These are tried in turn:
 * the pinned descriptor, /proc/PID/map_files, the path below /proc/PID/root, the path in our own
 * root, another file with the same build ID.
 *
 * The module belongs to the cache and is valid until the next sb_modcache_get*() or
 * sb_modcache_forget_end(), or until another module loads data: it may be closed to make room. Call
 * sb_modcache_account() after lookups in it.
 * Return: 0; -ENOENT (cannot be opened, or is another file by now); -ENOEXEC (not an ELF file, or a
 * broken one); -EFBIG (a bound; always for SB_MODCACHE_FILE_NONE); -ENOMEM; *@ret_module is
 * untouched on error. A failure but -ENOMEM is remembered for the file, and tried again for a few
 * other processes only.
 */
int sb_modcache_get(struct sb_modcache *cache, uint32_t file, const struct sb_mapped_at *at,
		    struct sb_cached_module **ret_module);
/*
 * Get the module of a path in our own root, without a process. It belongs to the cache and is valid
 * until the next sb_modcache_get*() or sb_modcache_forget_end(), or until another module loads
 * data; *@ret_module is untouched on error. Return: 0; -ENOENT, -EACCES, -EINVAL (not a regular
 * file); -ENOEXEC (not an ELF file); -EFBIG (a bound); -ENOMEM; others of opening and reading.
 */
int sb_modcache_get_path(struct sb_modcache *cache, const char *path,
			 struct sb_cached_module **ret_module);
/*
 * Get the module of an image of @len bytes that was read from memory; it is copied. Equal images
 * share a module. @name: what frames call the module, copied; if there is a module of an equal
 * image, it keeps the name that it has, and @name is not used. The module belongs to the cache and
 * is valid until the next sb_modcache_get*() or sb_modcache_forget_end(), or until another module
 * loads data; *@ret_module is untouched on error. Return: 0; -ENOEXEC (no ELF file); -EFBIG (a
 * bound); -ENOMEM.
 */
int sb_modcache_get_image(struct sb_modcache *cache, const void *image, size_t len,
			  const char *name, struct sb_cached_module **ret_module);

/*
 * After lookups: update what is known of the memory that @module takes, settle its budget
 * (sb_module_settle()), and evict data of the least recently used modules beyond the bounds; its
 * own unwind table and DWARF, too, if they alone exceed them. No module is closed. Strings of
 * frames stay valid; unwind tables do not.
 */
void sb_modcache_account(struct sb_modcache *cache, struct sb_cached_module *module);

/* Note that the unwind table of @module is used now. */
static inline void sb_modcache_note_table(const struct sb_modcache *cache,
					  struct sb_cached_module *module)
{
	module->table_ns = cache->now_ns + 1;
}
/*
 * Free unwind tables that were not used for ten seconds, by @now_ns (CLOCK_MONOTONIC), the time up
 * to which samples were worked on. It may be called as often as once a second: it does nothing
 * until @now_ns is five seconds later than at the last call that did something. The modules remain,
 * and sb_module_table() compiles a table again; what it gave before may be invalid. The walk in the
 * kernel has tables of its own, and only what those do not cover yet is unwound by these.
 */
void sb_modcache_rest(struct sb_modcache *cache, uint64_t now_ns);

/*
 * Forget files that are not mapped any more, because a descriptor held open keeps a deleted file on
 * the disk. If begin returns true (there are many more files than after the last time), mark those
 * in use by sb_modcache_mark(), then call end; between the two no file must be added. If it returns
 * false, call neither. Modules of unmapped files stay if they were used since the last time, for
 * programs that are started again and again. After end the numbers of files that were not marked
 * are not valid any more; but if it has no memory, it forgets nothing.
 */
bool sb_modcache_forget_begin(struct sb_modcache *cache);
void sb_modcache_mark(struct sb_modcache *cache, uint32_t file);
void sb_modcache_forget_end(struct sb_modcache *cache);

#endif
