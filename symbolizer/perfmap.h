/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names a JIT writes for its code: /tmp/perf-PID.map, lines "START SIZE NAME" in hexadecimal.
 * Internal to the symbolizer. The file is written by the process we look at while we read it, so
 * it is taken to be hostile and torn. Format: tools/perf/Documentation/jit-interface.txt.
 */
#ifndef SB_PERFMAP_H
#define SB_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "budget.h"

/* Of one file; what is beyond is not read. Node.js writes some 10 MiB. */
#define SB_PERFMAP_BYTES_MAX   (256u << 20)
#define SB_PERFMAP_ENTRIES_MAX 1000000u
/* What is kept of a longer name. */
#define SB_PERFMAP_NAME_MAX    4096u
/* How far an entry without a size may reach, at most. */
#define SB_PERFMAP_REACH_MAX   (64u << 10)

struct sb_perfmap_entry {
	uint64_t start, end;
	uint64_t func_start; /* of the function, parts of which may have been overwritten */
	uint32_t name;	     /* offset of the name */
	uint32_t seq;
};

struct sb_perfmap {
	SB_VEC(struct sb_perfmap_entry)
	entries; /* the first @nr_flat by start, without overlap; then those that came since */
	size_t nr_flat;
	SB_VEC(char) names;
	struct sb_budget budget;
	bool is_cut; /* a bound was hit: lines are missing, or not sorted in yet */
	dev_t dev;   /* the file it was read from, and how far */
	ino_t ino;
	uint64_t birth_ns; /* of the file; 0: its file system does not tell */
	uint64_t offset;
	uint32_t nr_users; /* of a shared map */
	uint64_t nr_lines, nr_bad_lines;
};

void sb_perfmap_release(struct sb_perfmap *map);

/*
 * Read what the file behind @fd has gained since the last time; a file that is another one or has
 * shrunk is read from its start and replaces all. A last line without newline waits for its rest.
 * What is beyond the budget waits until there is some again. Return: 0, -ENOMEM, or of I/O.
 */
int sb_perfmap_read(struct sb_perfmap *map, int fd);

/* Add the complete lines of @text; later ones win. Return: 0 or -ENOMEM, and how much was used. */
int sb_perfmap_add(struct sb_perfmap *map, const char *text, size_t len, size_t *ret_used);

/*
 * Return: the name of what covers @addr, valid until the next reading, and its start; or NULL. Sorts what came since
 * the last call first. Beyond the budget it does not, and answers with what was sorted before.
 */
const char *sb_perfmap_lookup(struct sb_perfmap *map, uint64_t addr, uint64_t *ret_start);

/*
 * What V8 writes, in parts: "JS:*leaf /dir/x.js:3:14" is the optimised code of leaf() in line 3; before
 * version 10 "LazyCompile:*leaf /dir/x.js:3". Parts lie in @text. Return: whether it is such a name.
 */
struct sb_perfmap_name {
	const char *name, *file; /* file: or NULL */
	size_t name_len, file_len;
	uint32_t line; /* where the function begins; 0: not known */
};
bool sb_perfmap_split(const char *text, struct sb_perfmap_name *ret_name);

size_t sb_perfmap_bytes(const struct sb_perfmap *map);

/*
 * The maps of all processes. Processes that link to one file share one map, so that a file is in memory once however
 * many processes name it. Whether a process may be believed when it names a file is up to the caller.
 */
struct sb_perfmaps {
	struct sb_budget_pool *pool; /* borrowed, or NULL */
	SB_VEC(struct sb_perfmap *) at;
};

/*
 * sb_perfmaps_read() - read what the file behind @fd has gained, into the map of that file
 * @map: the map that the caller has, or NULL; replaced when the file is another one
 *
 * The caller gives each map back with sb_perfmaps_put(). Return: 0, -ENOMEM, or of I/O; *@map is valid in any case.
 */
int sb_perfmaps_read(struct sb_perfmaps *maps, int fd, struct sb_perfmap **map);
/* Accepts NULL. */
void sb_perfmaps_put(struct sb_perfmaps *maps, struct sb_perfmap *map);
/* All of them are given back before. */
void sb_perfmaps_release(struct sb_perfmaps *maps);
size_t sb_perfmaps_bytes(const struct sb_perfmaps *maps);

#endif
