/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The position of each export of a store, with counters for users and for /metrics. Each export has
 * one small file DIR/export/NAME.state, which is replaced as a whole: text, "stackbpf-export 1" and
 * then lines "KEY VALUE"; unknown keys are skipped. Files may be hostile: they are bounded and
 * checked. Thread: any, one at a time for each file. Pointers are not NULL, and nothing that is
 * given is kept. A state holds its texts itself, so that there is nothing to free; a zeroed one is
 * that of an export that has not begun.
 */
#ifndef SB_EXPORT_STATE_H
#define SB_EXPORT_STATE_H

#include <stddef.h>
#include <stdint.h>

/* Directory below the store's. */
#define SB_EXPORT_DIR	    "export"
#define SB_EXPORT_TEXT_MAX  512
/* How many states are listed; further ones are counted. */
#define SB_EXPORT_STATE_MAX 64

struct sb_export_state {
	char to[SB_EXPORT_TEXT_MAX];   /* destination, without user, password and query string */
	char what[SB_EXPORT_TEXT_MAX]; /* tags and kind of the query; "": everything */
	char error
		[SB_EXPORT_TEXT_MAX]; /* the last error, a sentence; "" if the last attempt succeeded */
	/* Which blocks of the store are known: the text of sb_read_place_print(). */
	char seen[SB_EXPORT_TEXT_MAX];
	int64_t next_s; /* everything before is done; 0: nothing yet */
	/*
	 * The period that begins at next_s: its end, and how many pieces were sent. 0: not begun.
	 */
	int64_t part_end_s;
	uint64_t nr_part_pieces;
	/* Counted since the file was created. */
	uint64_t nr_periods, nr_pieces, nr_bytes; /* sent */
	uint64_t nr_failed;			  /* attempts that were to be repeated */
	uint64_t nr_refused; /* pieces or profiles that the destination refused, and are left out */
	uint64_t nr_unsure;  /* attempts after which it is not known if the piece was accepted */
	uint64_t expired_s;  /* seconds that the store removed before they were sent */
	uint64_t nr_late;    /* blocks that came for a time before next_s; they are not sent */
	uint64_t coarse_s;   /* seconds of which only aggregates were left */
	uint64_t behind_s;   /* at updated_s: from next_s to the newest time that could be sent */
	int64_t sent_s;	     /* last success, seconds since the epoch; 0: never */
	int64_t updated_s;   /* when this was written */
};

/* Copy @text, truncated between two characters to fit; control characters become '?'. */
void sb_export_text(char to[SB_EXPORT_TEXT_MAX], const char *text);

/*
 * Parse the @len bytes of a state's file, which need not end with NUL; or read the file @name
 * ("NAME.state") in the directory @dir_fd, which is DIR/export. Return: 0; -EBADMSG if it is not a
 * state, or not a whole one; -ENOMEM; for a file also -ENOENT of an export that has no state yet,
 * -EBADMSG if it is over 8 KiB, and others of I/O. On error *ret_state is untouched.
 */
int sb_export_state_parse(const char *text, size_t len, struct sb_export_state *ret_state);
int sb_export_state_read(int dir_fd, const char *name, struct sb_export_state *ret_state);
/* Write a state, whose texts have no control characters (sb_export_text()), to the file @name in
 * @dir_fd, which is replaced as a whole by NAME.part, and wait for the disk. Return: 0; -ENOMEM;
 * -ENAMETOOLONG and other errors of I/O, and then the file has the old state or the new one. */
int sb_export_state_write(int dir_fd, const char *name, const struct sb_export_state *state);

/**
 * sb_export_state_each() - call a function for each state of a store
 * @path: directory of the store
 * @fn: gets the states in the order of their files' names, each valid during the call; returns 0,
 *	or a negative errno to stop
 *
 * Return: how many states were left out, because they cannot be read or are more than
 * SB_EXPORT_STATE_MAX; 0, too, if there was never an export; the negative errno of reading the
 * directories, and then @fn was not called; or the one that @fn returned.
 */
int sb_export_state_each(const char *path,
			 int (*fn)(void *arg, const struct sb_export_state *state), void *arg);

#endif
