/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels that programs set on their threads (sb_abi_label.h): where a process keeps them, and what
 * its label keys are called. Internal to user/interp/core; called on any thread, with the lock of
 * struct sb_interp held. No pointer is NULL; nothing is kept unless it says so, and nothing is to
 * be freed but space->labels. Order: for a file sb_label_place_find(); for a process that maps one
 * sb_labels_look_begin(), _look_at(), which reads the keys, and _look_end(). labels.c reads them
 * again when a thread has a label whose key is not among them.
 */
#ifndef SB_INTERP_LABELS_H
#define SB_INTERP_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi_label.h"
#include "interp/core/image_priv.h"
#include "interp/core/memory.h"

/* The OTEL key table of a process: for each key number its index in the run's list,
 * SB_LABEL_OF_SPAN for the key of spans if it is not in that list, or SB_LABEL_NOT_WANTED. */
#define SB_LABEL_KEYS	    256
#define SB_LABEL_NOT_WANTED 255
#define SB_LABEL_OF_SPAN    254
struct sb_label_keys {
	uint32_t nr; /* length of the process's table */
	uint8_t place[SB_LABEL_KEYS];
};

/* The keys that a run asks for; borrowed. */
struct sb_label_names {
	const char *const *at;
	size_t nr;
	const char *span; /* the one on which spans depend; NULL: none */
};

/*
 * Read the table of keys from the process context (OTEP 4719) whose header is at @addr, the
 * beginning of a mapping for which sb_label_is_context() is true. @names: the keys that the run
 * asks for. A context that changes while it is read is read again. Keys beyond the first
 * SB_LABEL_KEYS are left out.
 * Return: 0; -EBADMSG when there is none, or it kept changing; -ENOMEM; -EFAULT, -ESRCH or -EPERM:
 * memory cannot be read. *ret_keys is untouched on error, so that keys that were read before can be
 * used on.
 */
int sb_label_keys_read(const struct sb_memory *memory, uint64_t addr,
		       const struct sb_label_names *names, struct sb_label_keys *ret_keys);
/* Parse the protobuf payload of a process context, @len bytes of hostile data. @names: the keys
 * that the run asks for. Keys beyond the first SB_LABEL_KEYS are left out. Return: 0; -EBADMSG when
 * it has no table of keys; *ret_keys is untouched then. */
int sb_label_keys_parse(const void *payload, size_t len, const struct sb_label_names *names,
			struct sb_label_keys *ret_keys);
/* Return: whether a mapping with this path in /proc/PID/maps, @len bytes without NUL, is a process
 * context: it begins with "/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX" or "[anon:OTEL_CTX". The first
 * such mapping is for sb_label_keys_read(). Needs no lock. */
bool sb_label_is_context(const char *path, size_t len);

/* How the thread-local variable of a file is reached in a process. */
struct sb_label_place {
	uint32_t kind;	 /* enum sb_label_kind */
	uint32_t reloc;	 /* enum sb_image_tls */
	uint64_t got;	 /* address of the GOT entry; unset with SB_IMAGE_TLS_NONE */
	uint64_t offset; /* in the module's block; with SB_IMAGE_TLS_NONE from the thread pointer */
	uint32_t go_labels, go_curg; /* as in struct sb_label_conf */
	bool go_is_map, go_in_register;
};
/* Look for the thread-local variable of any kind of labels in a file; if there is none, for that of
 * the goroutine in a program of Go, also when it cannot set labels. Return: whether there is one;
 * if not, *@ret_place is untouched. */
bool sb_label_place_find(struct sb_image *image, struct sb_label_place *ret_place);
/* label_go.c: find the thread-local variable of the goroutine in a program of Go 1.18 or newer;
 * go_labels is 0 when it is not known where labels are. Return: whether there is one; if not,
 * *@ret_place is untouched. */
bool sb_label_go_find(struct sb_image *image, struct sb_label_place *ret_place);
/* The TLS block of the main program lies next to the thread pointer: "ELF Handling For Thread-Local
 * Storage", section 3. @offset: in the block, which is empty in a file without PT_TLS. Return: the
 * offset from the thread pointer. */
uint64_t sb_label_program_offset(const struct sb_elf *elf, uint64_t offset);

/* The labels of one address space (struct space is what spaces.c remembers of it). */
struct space;
struct sb_interp;
struct sb_labels {
	struct sb_image image; /* the file with the variable; file NULL: none */
	struct sb_label_place place;
	bool is_seen;  /* the file was met in the look that is in progress */
	bool has_conf; /* conf is valid */
	struct sb_label_conf conf;
	uint64_t context_addr; /* of the process context; 0: not found */
	uint64_t read_ns;      /* when it was last searched for, CLOCK_MONOTONIC */
	uint32_t nr_again;     /* how often SB_LABELS_AGAIN was returned for the process */
	struct sb_label_keys keys;
};

/*
 * Parts of sb_interp_look(), in this order: begin, which looks in @maps for the process context,
 * but does nothing while space->labels is NULL; one look_at() for each file that has labels, of
 * which the first one counts; end, also after an error, which drops labels whose file is not mapped
 * any more. The results are in space->labels, which the first look_at() makes, when it does what
 * begin does, and the owner of @space frees. @maps is borrowed for the call, @image's file until
 * end() drops it. look_at() returns 0, also when the labels cannot be read; -EAGAIN: the dynamic
 * linker is not done, or memory cannot be read; -ENOMEM.
 */
void sb_labels_look_begin(struct space *space, const struct sb_process_maps *maps);
int sb_labels_look_at(struct sb_interp *interp, struct space *space, const struct sb_image *image,
		      const struct sb_process_maps *maps);
void sb_labels_look_end(struct space *space);

#endif
