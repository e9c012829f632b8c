/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far each export of a store has come: one small file for each destination, DIR/export/NAME.state, replaced
 * as a whole. The store itself is the queue; what is in this file is the place in it, and counters for people
 * and for /metrics. It is text: "stackbpf-export 1", then lines "KEY VALUE"; keys that are not known are
 * skipped. The file may be anything: it is bounded and checked. Not thread-safe.
 */
#ifndef SB_EXPORT_STATE_H
#define SB_EXPORT_STATE_H

#include <stddef.h>
#include <stdint.h>

/* Below the store's directory. */
#define SB_EXPORT_DIR	    "export"
#define SB_EXPORT_TEXT_MAX  512
/* States that are listed; more are counted. */
#define SB_EXPORT_STATE_MAX 64

struct sb_export_state {
	char to[SB_EXPORT_TEXT_MAX]; /* the destination, without user, password and what follows '?' */
	char what[SB_EXPORT_TEXT_MAX]; /* tags and kind that were asked for; "": everything */
	char error
		[SB_EXPORT_TEXT_MAX]; /* the last one, one sentence; "": none since it last went well */
	/* How far files of the store are known, see store/late.h. */
	char seen[SB_EXPORT_TEXT_MAX];
	int64_t next_s; /* all before it is sent, or was not there; 0: nothing yet */
	/* Of the period that begins at next_s: its end, and how many pieces of it are sent. 0: none. */
	int64_t part_end_s;
	uint64_t nr_part_pieces;
	/* Since the file was made. */
	uint64_t nr_periods, nr_pieces, nr_bytes; /* sent */
	uint64_t nr_failed;			  /* attempts that were to be tried again */
	uint64_t nr_refused; /* pieces that the other side will not have, and were left out */
	uint64_t nr_unsure;  /* sent again without knowing whether the first was taken */
	uint64_t expired_s;  /* seconds that were gone from the store before they could be sent */
	uint64_t nr_late;    /* blocks that came for a time before next_s, and are not sent */
	uint64_t coarse_s;   /* seconds of which only sums over 10 minutes or more were left */
	uint64_t
		behind_s; /* from next_s to the newest time that could be sent, when this was written */
	int64_t sent_s;	   /* when it last went well, since 1970; 0: never */
	int64_t updated_s; /* when this was written */
};

/* Text is cut to its room at a character's boundary; control characters are '?'. */
void sb_export_text(char to[SB_EXPORT_TEXT_MAX], const char *text);

/* Return: 0; -ENOENT; -EBADMSG: not such a file; others of I/O. */
int sb_export_state_parse(const char *text, size_t len, struct sb_export_state *ret_state);
int sb_export_state_read(int dir_fd, const char *name, struct sb_export_state *ret_state);
/* Replace the file as a whole, on the disk before this returns. Return: 0 or a negative errno. */
int sb_export_state_write(int dir_fd, const char *name, const struct sb_export_state *state);

/*
 * Call @fn with each state below the store at @path, in the order of the names of their files. Those that cannot
 * be read are left out. Return: how many were left out, for that or beyond SB_EXPORT_STATE_MAX; a negative errno;
 * 0 if there are none. @fn returns 0, or a negative errno that ends it.
 */
int sb_export_state_each(const char *path,
			 int (*fn)(void *arg, const struct sb_export_state *state), void *arg);

#endif
