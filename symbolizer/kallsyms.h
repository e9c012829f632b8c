/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of kernel addresses: kernel, modules, BPF programs. Internal to the symbolizer. The table
 * is read at the first lookup; again when an address is not in it, something was loaded or
 * unloaded since, and the last reading is not too recent. Format: kernel/kallsyms.c, s_show().
 */
#ifndef SB_KALLSYMS_H
#define SB_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* Lines beyond are not read; a kernel with everything built in has about 250,000. */
#define SB_KALLSYMS_MAX	      4000000u
/* KSYM_NAME_LEN is 512. */
#define SB_KALLSYMS_NAME_MAX  1024u
/* How far the last symbol before an unknown end (a module's last, a BPF program) may reach. */
#define SB_KALLSYMS_REACH_MAX (256u << 10)
#define SB_KALLSYMS_MODS_MAX  65535u

struct sb_ksym {
	const char *name;   /* valid until the next lookup */
	const char *module; /* with its brackets, "[bpf]"; NULL: the kernel itself; as above */
	uint64_t start;
};

struct sb_kallsyms_entry {
	uint64_t addr;
	uint32_t size;
	uint32_t name; /* offset of the name; before it, two bytes: the module's number */
};

struct sb_kallsyms_table {
	SB_VEC(struct sb_kallsyms_entry) syms; /* by address, without overlap */
	SB_VEC(char) names;
	SB_VEC(struct sb_kallsyms_mod {
		char *name;
		uint64_t end; /* of its memory, 0: not known */
	})
	mods; /* number 0 is the kernel itself */
	uint64_t nr_lines, nr_bad_lines, nr_zero;
	bool is_cut; /* a bound was hit */
};

struct sb_kallsyms {
	const char *path; /* borrowed; NULL: /proc/kallsyms */
	struct sb_kallsyms_table table;
	bool is_read;
	int err; /* of the last reading */
	uint64_t read_ns, wait_ns, state;
	uint64_t nr_reads;
	uint64_t wait_min_ns; /* between two readings; 0: a second, doubling to a minute */
};

void sb_kallsyms_release(struct sb_kallsyms *ks);

/*
 * Return: 0, -ENOENT (no symbol covers @addr), -EACCES (addresses or the file are hidden from us),
 * -ENODATA (there is no symbol table, or a broken one), -EFBIG (it was cut at a bound and @addr is
 * in no part read), -ENOMEM.
 */
int sb_kallsyms_lookup(struct sb_kallsyms *ks, uint64_t addr, struct sb_ksym *ret_sym);

size_t sb_kallsyms_bytes(const struct sb_kallsyms *ks);

/* For tests and the fuzzer: the table out of text, module ends out of the text of /proc/modules.
 * Return: 0 or -ENOMEM. */
int sb_kallsyms_table_parse(struct sb_kallsyms_table *table, const char *text, size_t len,
			    const char *modules);
bool sb_kallsyms_table_find(const struct sb_kallsyms_table *table, uint64_t addr,
			    struct sb_ksym *ret_sym);
void sb_kallsyms_table_release(struct sb_kallsyms_table *table);

#endif
