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
	entries; /* flat: by start, without overlap, when !is_dirty */
	SB_VEC(char) names;
	bool is_dirty;
	bool is_cut; /* a bound was hit */
	dev_t dev;   /* the file it was read from, and how far */
	ino_t ino;
	uint64_t offset;
	uint64_t nr_lines, nr_bad_lines;
};

void sb_perfmap_release(struct sb_perfmap *map);

/*
 * Read what the file behind @fd has gained since the last time; a file that is another one or has
 * shrunk is read from its start and replaces all. A last line without newline waits for its rest.
 * Return: 0, -ENOMEM, or of I/O.
 */
int sb_perfmap_read(struct sb_perfmap *map, int fd);

/* Add the complete lines of @text; later ones win. Return: 0 or -ENOMEM, and how much was used. */
int sb_perfmap_add(struct sb_perfmap *map, const char *text, size_t len, size_t *ret_used);

/* Return: the name of what covers @addr, valid until the next reading, and its start; or NULL. */
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

#endif
