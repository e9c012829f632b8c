/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of this folder share that find the places of an event. Thread: that of
 * sb_probes_add() and sb_probes_list(), which call it. Pointers are not NULL unless it says so.
 * For each search there is one struct sb_resolving, zeroed but for text, spec, found, arg and
 * reason (itself zeroed), and what the search is to have of tgid, preset, is_list, is_call and
 * wants_jumps. After an error to->found() may have been called for some places. */
#ifndef SB_EVENTS_PROBE_PRIV_H
#define SB_EVENTS_PROBE_PRIV_H

#include "base/nearest.h"
#include "events/probe.h"

/* Keeps the nearest of names that do not outlast the call. */
struct sb_nearest_copy {
	struct sb_nearest nearest;
	char name[SB_EVENT_NAME_BYTES];
};
/* Offer a name as sb_nearest_offer() does, and copy it if it is the nearest so far: copy->name, cut
 * to its size, is what copy->nearest.name points to; NULL: no name is near. @copy begins zeroed but
 * for nearest.typed, and may not be moved afterwards. */
void sb_nearest_offer_copy(struct sb_nearest_copy *copy, const char *name);

struct sb_resolving {
	const char *text; /* as spelled */
	const struct sb_event_spec *spec;
	const struct sb_preset *preset; /* that `text` is an event of; NULL: none */
	uint32_t tgid;
	bool is_list; /* places are listed, so none is missed */
	bool is_call; /* the return is hooked, too */
	bool is_go;   /* out, of sb_resolve_user(): a program in Go, with symbols or without */
	/* sb_probe.jumps_to is to be found, and the caller chooses between cheap and
	 * cheap_of_pointer; without it, places are at cheap already. User functions only. */
	bool wants_jumps;
	/* Take a place. @name: of this place, as sb_probes_add() takes it; @probe: its strings are
	 * borrowed. Return: 0 or a negative errno, with the reason. */
	int (*found)(struct sb_resolving *to, const char *name, const struct sb_probe *probe);
	void *arg;
	struct sb_reason *reason;
	size_t nr_found;
	int events_fd; /* of tracefs, while tracepoints are looked for; or why it is not open */
	int file_fd;   /* of the file, while its functions and USDT probes are looked for */
};

/* probe.c: add a place, @probe, whose strings are borrowed, to a list, unless it is there; then it
 * keeps its name, and gets the roles of the list (sb_probes.roles) in addition. It is there if
 * kind, path, offset, id, counter, is_return and is_call are the same, and for the kernel the
 * function; names do not count. @to: the search that found it, of which text, preset, file_fd (if
 * the place is in a file) and reason are used; to->found() may call it. @name: that it is shown by.
 * All strings are copied, and the file is kept open. Return: 0, also if it is there; -EINVAL: there
 * are SB_PROBES_MAX; -ENOMEM; -EMFILE. After an error, with which the search ends, to->reason says
 * why, and the list has the same places as before the call; the name may have been added to
 * probes->names, and the file to probes->files. */
int sb_probes_take(struct sb_probes *probes, const struct sb_resolving *to, const char *name,
		   const struct sb_probe *probe);
/* probe.c: drop and free the places from index @first on that only jump to another one of the same
 * file (jumps_to), which sees their calls; those behind move up. Called when all places of the file
 * were added, from @first on. */
void sb_probes_drop_jumps(struct sb_probes *probes, size_t first);

/* library.c: find the file of a mapping. @path and @ino: of /proc/@tgid/maps. @ret_path: a path for
 * us to open: @path if that leads us to a file with this inode, or if the process has our root
 * directory; else a path of ours to what the process sees as @path. The file may be missing there,
 * or another one be: sb_library_is_mapped() tells, and the inode alone does not, because that of
 * overlayfs may differ. Freed by the caller with free(); undefined on error. Return: 0;
 * -ENAMETOOLONG; -ENOMEM; or another negative errno of finding the file. */
int sb_library_of_mapping(uint32_t tgid, const char *path, uint64_t ino, char **ret_path);

/* library.c: find the file of a program or library that to->spec->file names by its path, as
 * process to->tgid sees it, or by a word such as "c". A word is looked up in what this process
 * maps, unless to->tgid is 0, then in the dynamic linker's cache, then in PATH. @ret_path: a path
 * for us to open, where a file that was named by its path may be missing; freed by the caller with
 * free(); undefined on error. Return: 0; -ENOENT if there is none; -ESRCH if there is no process
 * to->tgid; -ENOMEM; or another negative errno of reading a file. All with to->reason, but -ENOMEM
 * may be without. */
int sb_library_find(struct sb_resolving *to, char **ret_path);

/* library.c: Return: whether process @tgid maps the file that is open as @fd, whose path is @path,
 * as code. True also when this cannot be told, or if it maps another file with the same base
 * name. */
bool sb_library_is_mapped(uint32_t tgid, const char *path, int fd);

/* elf_probe.c: find the functions, or the USDT probes, of the file in to->spec. to->spec->kind says
 * what is looked for; to->found() counts to->nr_found, which begins with 0. Return: 0, and
 * to->found() was called for each; -ENOENT: there is no such file, to->found() has counted none, or
 * the one that is named is chosen when the file is loaded (IFUNC); what to->found() returned; or
 * another negative errno of reading the file. All with to->reason, but -ENOMEM may be without. */
int sb_resolve_user(struct sb_resolving *to);
int sb_resolve_usdt(struct sb_resolving *to);

struct sb_elf;

/**
 * sb_boundary_check() - check that an instruction begins where a user function is to be probed
 * (boundary.c)
 * @begin: where the function begins
 * @addr: where the probe is to be, not below @begin; both ELF addresses in @elf
 *
 * Return: 0; -EINVAL: none begins there, or this cannot be told; -ENOMEM or another negative errno
 * of reading @elf. All with to->reason.
 */
int sb_boundary_check(struct sb_resolving *to, const struct sb_elf *elf, uint64_t begin,
		      uint64_t addr);
/* Check that an instruction begins at @addr, an ELF address in @elf, where a user function is to be
 * probed; the function that contains it is found by the unwind tables. Return: 0; -EINVAL: none
 * begins there, or this cannot be told, as when no function is found; -ENOMEM or another negative
 * errno of reading the machine code. All with to->reason. */
int sb_boundary_check_address(struct sb_resolving *to, const struct sb_elf *elf, uint64_t addr);

/**
 * sb_suggest_find() - find what has the name of a function that the kernel does not have
 * (suggest.c)
 * @ret: the spelling of a tracepoint, or of a function of the process or the C library,
 *	NUL-terminated; undefined if there is none
 * @size: bytes of @ret; a longer spelling is cut
 *
 * Reads tracefs and files; what cannot be read is passed over, and to->reason stays as it is.
 * Return: whether there is one.
 */
bool sb_suggest_find(const struct sb_resolving *to, char *ret, size_t size);

/* counter.c: find the counter of to->spec, and call to->found() for it, with a period. Return: what
 * that returned; -ENOENT with to->reason: no such PMU, or term of a PMU. */
int sb_resolve_counter(struct sb_resolving *to);

#endif
