/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of kernel addresses: the kernel, modules, BPF programs. Internal to the symbolizer. The
 * table is read at the first lookup. It is read again when an address is not in it, something was
 * loaded or unloaded since, and the last reading is not too recent. Order: zero a struct, set @path
 * and @ask if wanted, look up, release. No pointer is NULL unless a contract says so. Thread: one
 * at a time for each struct. Format: kernel/kallsyms.c, s_show().
 */
#ifndef SB_KALLSYMS_H
#define SB_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/*
 * Bound of lines; further ones are not read. A kernel with everything built in has about 250,000.
 */
#define SB_KALLSYMS_MAX	      4000000u
/* KSYM_NAME_LEN is 512. */
#define SB_KALLSYMS_NAME_MAX  1024u
/* How far a symbol may reach if its end is unknown (the last one of a module, a BPF program). */
#define SB_KALLSYMS_REACH_MAX (256u << 10)
#define SB_KALLSYMS_MODS_MAX  65535u

struct sb_ksym {
	const char *name;   /* valid until the next lookup */
	const char *module; /* with brackets, "[bpf]"; NULL: the kernel itself; valid as @name */
	uint64_t start;
};

struct sb_kallsyms_entry {
	uint64_t addr;
	uint32_t size;
	uint32_t
		name; /* offset of the name, which the number of its module precedes in two bytes */
};

struct sb_kallsyms_table {
	SB_VEC(struct sb_kallsyms_entry) syms; /* ascending, not overlapping */
	SB_VEC(char) names;
	SB_VEC(struct sb_kallsyms_mod {
		char *name;
		uint64_t end; /* of its memory; 0: unknown */
	})
	mods; /* number 0 is the kernel itself */
	uint64_t nr_lines, nr_bad_lines, nr_zero;
	bool is_cut; /* a bound was hit */
};

/* All zeroes, with @path set if wanted, is an empty one. */
struct sb_kallsyms {
	const char *path; /* borrowed; NULL: /proc/kallsyms */
	struct sb_kallsyms_table table;
	bool is_read;
	int err; /* of the first reading, until one succeeds */
	uint64_t read_ns, wait_ns, state;
	uint64_t nr_reads;
	uint64_t
		wait_min_ns; /* least time between two readings; 0: a second, doubling to a minute */
	/* See sb_symbolizer_ask_kernel(). NULL: the file is read at the first lookup. */
	int (*ask)(void *arg, uint64_t addr, char *text, size_t size);
	void *ask_arg;
	char asked[SB_KALLSYMS_NAME_MAX]; /* the last answer, in pieces */
};

/* Free the table, but not @ks, which can be used again once the caller has zeroed it. */
void sb_kallsyms_release(struct sb_kallsyms *ks);

/*
 * Find the symbol that covers @addr: ask the kernel, if @ks->ask is set, or read the file.
 * *@ret_sym is untouched on error.
 * Return: 0; -ENOENT (there is none); -EACCES (the file or its addresses are hidden from us);
 * -ENODATA (the file is not there, cannot be read, or has no symbols, or there was no file
 * descriptor); -EFBIG (the table is larger than its bound, and @addr is not in the part that
 * was read); -ENOMEM.
 * After -ENOMEM in the first reading, the next call reads the file again. Any other error of the
 * first reading is returned until the table is read again, as said at the top; that there was no
 * descriptor counts as a change there.
 */
int sb_kallsyms_lookup(struct sb_kallsyms *ks, uint64_t addr, struct sb_ksym *ret_sym);

/*
 * Split what the kernel prints for "%pS", "name+0x1d/0x40 [module]", into what *@ret_sym then
 * points to; NULs are written to @text, perhaps also on error. @addr: what it was printed for.
 * Return: 0; -ENOENT: it is an address, which has no name; -EAGAIN: it is not understood, or it is
 * a mark of the linker, a padding, or the alias for 32-bit programs of an entry point, so that the
 * file may have a better name. *@ret_sym is untouched on error.
 */
int sb_kallsyms_split(char *text, uint64_t addr, struct sb_ksym *ret_sym);

/* Return: the bytes of memory in use. */
size_t sb_kallsyms_bytes(const struct sb_kallsyms *ks);

/*
 * For tests and the fuzzer: parse a table from @len bytes of text, and ends of modules from the
 * text of /proc/modules, a string (or NULL). @table: zeroed; released by the caller, after an
 * error, too. Nothing that is passed is kept, and what find() returns is valid as long as @table.
 * Return: 0; -ENOMEM: the table can only be released. find() returns false, with *@ret_sym
 * untouched, when no symbol covers @addr. release() frees what @table holds and zeroes it.
 */
int sb_kallsyms_table_parse(struct sb_kallsyms_table *table, const char *text, size_t len,
			    const char *modules);
bool sb_kallsyms_table_find(const struct sb_kallsyms_table *table, uint64_t addr,
			    struct sb_ksym *ret_sym);
void sb_kallsyms_table_release(struct sb_kallsyms_table *table);

#endif
