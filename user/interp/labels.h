/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels of threads in processes (sb_abi_label.h): where a process keeps them, and what its keys are called.
 * Internal to interp; all with the lock held.
 */
#ifndef SB_INTERP_LABELS_H
#define SB_INTERP_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interp/image_priv.h"
#include "interp/memory.h"
#include "sb_abi_label.h"

/* The keys of OTEL that are asked for: 256 numbers, each the place in the run's list, or NONE. */
#define SB_LABEL_KEYS	    256
#define SB_LABEL_NOT_WANTED 255
struct sb_label_keys {
	uint32_t nr; /* how many the process has */
	uint8_t place[SB_LABEL_KEYS];
};

/* Keys that a run asks for. */
struct sb_label_names {
	const char *const *at;
	size_t nr;
};

/*
 * Read the table of keys from the process context (OTEP 4719) whose header is at @addr.
 * Return: 0; -EFAULT, -EBADMSG: there is none, *ret_keys is untouched.
 */
int sb_label_keys_read(const struct sb_memory *memory, uint64_t addr,
		       const struct sb_label_names *names, struct sb_label_keys *ret_keys);
/* The same from its payload: protobuf. Return: 0, -EBADMSG. */
int sb_label_keys_parse(const void *payload, size_t len, const struct sb_label_names *names,
			struct sb_label_keys *ret_keys);
/* Return: whether a mapping of this name is a process context. */
bool sb_label_is_context(const char *path, size_t len);

/* How a file's thread-local variable is found in a process. */
struct sb_label_place {
	uint32_t kind;	 /* enum sb_label_kind */
	uint32_t reloc;	 /* enum sb_image_tls */
	uint64_t got;	 /* of the reloc, in the process */
	uint64_t offset; /* in the module's block; without a reloc: from the thread pointer */
};
/* Return: whether the file has labels. */
bool sb_label_place_find(struct sb_image *image, struct sb_label_place *ret_place);
/*
 * By what the dynamic linker has left in the process. Return: 0; -EAGAIN: it has not been there yet;
 * -ENOTSUP.
 */
int sb_label_place_conf(const struct sb_label_place *place, const struct sb_memory *memory,
			const struct sb_process_maps *maps, struct sb_label_conf *ret_conf);

/* The labels of one process. */
struct space;
struct sb_interp;
struct sb_labels {
	struct sb_image image; /* that has them; file NULL: none is known */
	struct sb_label_place place;
	bool is_seen;  /* by the look that goes on */
	bool has_conf; /* conf is valid */
	struct sb_label_conf conf;
	uint64_t context_addr; /* of the process context; 0: not known */
	uint64_t read_ns;      /* when it was looked for last */
	uint32_t nr_again;     /* how often a key had no name */
	struct sb_label_keys keys;
};

/* A look begins, comes to a file that has labels, ends. */
void sb_labels_look_begin(struct space *space, const struct sb_process_maps *maps);
int sb_labels_look_at(struct sb_interp *interp, struct space *space, const struct sb_image *image,
		      const struct sb_process_maps *maps);
void sb_labels_look_end(struct space *space);

#endif
