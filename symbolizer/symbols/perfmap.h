/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names that a JIT writes for its code: /tmp/perf-PID.map, lines "START SIZE NAME" in
 * hexadecimal. The observed process writes the file while it is read, so it may be hostile, and its
 * last line incomplete. Internal to the symbolizer. Order: sb_perfmaps_read() for each process,
 * from a zeroed struct sb_perfmaps with @pool set; sb_perfmap_lookup() in the map;
 * sb_perfmaps_put(); and sb_perfmaps_release(). sb_perfmap_add() and sb_perfmap_release() are for
 * those who have a map of their own, such as tests. No pointer is NULL unless a contract says so.
 * Thread: one at a time for each pool of maps. Format: tools/perf/Documentation/jit-interface.txt.
 */
#ifndef SB_PERFMAP_H
#define SB_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "symbolizer/elf/budget.h"

/* Bounds of one file; what is beyond them is not read. Node.js writes some 10 MiB. */
#define SB_PERFMAP_BYTES_MAX   (256u << 20)
#define SB_PERFMAP_ENTRIES_MAX 1000000u
/* Longer names are cut off here. */
#define SB_PERFMAP_NAME_MAX    4096u
/* How far an entry without a size may reach. */
#define SB_PERFMAP_REACH_MAX   (64u << 10)

struct sb_perfmap_entry {
	uint64_t start, end;
	uint64_t func_start; /* of the function; parts of it may have been overwritten */
	uint32_t name;	     /* offset in @names */
	uint32_t seq;
};

/* The map of one file. Zeroed, with @budget set by sb_budget_init(), it is an empty one. */
struct sb_perfmap {
	SB_VEC(struct sb_perfmap_entry)
	entries; /* the first @nr_flat ordered by start, without overlap; then in order of arrival */
	size_t nr_flat;
	SB_VEC(char) names;
	struct sb_budget budget;
	bool is_cut; /* a bound was hit: lines are missing, or not sorted yet */
	dev_t dev;   /* the file that was read, up to @offset */
	ino_t ino;
	uint64_t birth_ns; /* when the file was made; 0: its file system does not tell */
	uint64_t offset;
	uint32_t nr_users; /* how many processes share the map */
	uint64_t nr_lines, nr_bad_lines;
};

/* Free what the map holds and give its charge back; then it is empty, without a pool. */
void sb_perfmap_release(struct sb_perfmap *map);

/*
 * Add the complete lines of @text, @len bytes; later lines win. They are copied; bad ones are only
 * counted. *@ret_used: how many bytes they have, set on success only; the next call gets what
 * follows them. Return: 0, also when a bound left lines out (is_cut); -EFBIG (the budget), -ENOMEM:
 * the lines that were added before the failure remain.
 */
int sb_perfmap_add(struct sb_perfmap *map, const char *text, size_t len, size_t *ret_used);

/*
 * Find the entry that covers @addr. New entries are sorted first if the budget allows it; otherwise
 * only those that were sorted before are found.
 * Return: the name, valid until the next reading, and in *@ret_start the address where the function
 * begins; NULL: there is none, *@ret_start is untouched.
 */
const char *sb_perfmap_lookup(struct sb_perfmap *map, uint64_t addr, uint64_t *ret_start);

struct sb_perfmap_name {
	const char *name, *file; /* not terminated; file: NULL if there is none */
	size_t name_len, file_len;
	uint32_t line; /* where the function begins; 0: not known */
};
/*
 * Split a name that V8 writes: "JS:*leaf /dir/x.js:3:14" is the optimized code of leaf() in line 3;
 * before version 10 "LazyCompile:*leaf /dir/x.js:3". The parts point into @text; an empty name
 * becomes the constant "(anonymous)".
 * Return: whether it is such a name; if not, *@ret_name is untouched.
 */
bool sb_perfmap_split(const char *text, struct sb_perfmap_name *ret_name);

/*
 * The maps of all processes. Processes that name the same file share one map, so that a file is in
 * memory once. The caller decides whether a process can be trusted when it names a file.
 */
struct sb_perfmaps {
	struct sb_budget_pool *pool; /* borrowed, or NULL */
	SB_VEC(struct sb_perfmap *) at;
};

/**
 * sb_perfmaps_read() - read what was appended to the file behind @fd, into the map of that file
 * @map: the caller's map of the process, or NULL; replaced when the file is another one, or has
 *       shrunk
 *
 * A last line without a newline is read next time, and what the budget does not allow when it
 * allows it again. The caller gives each map back with sb_perfmaps_put(); one that is replaced is
 * given back here. @fd stays the caller's. Return: 0, also when a bound was hit (map->is_cut);
 * -ENOMEM; others of fstat(2) and pread(2). *@map is valid (or NULL) on error, too, and what was
 * read before remains.
 */
int sb_perfmaps_read(struct sb_perfmaps *maps, int fd, struct sb_perfmap **map);
/* Give a map of @maps back; the last process that does frees it. @map may be NULL. */
void sb_perfmaps_put(struct sb_perfmaps *maps, struct sb_perfmap *map);
/* Free the list of @maps, which is empty then and can be used again. All maps must have been given
 * back. maps->pool is borrowed and stays. */
void sb_perfmaps_release(struct sb_perfmaps *maps);
/* Return: the bytes of memory that all maps take. */
size_t sb_perfmaps_bytes(const struct sb_perfmaps *maps);

#endif
