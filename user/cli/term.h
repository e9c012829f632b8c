/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The terminal: its size, its keys, and how it was before. It is as it was again after sb_term_leave(), and
 * after any end of the program that a signal handler sees; see termios(3). One at a time.
 */
#ifndef SB_CLI_TERM_H
#define SB_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>

struct sb_canvas;
struct sb_term;

enum sb_key {
	SB_KEY_NONE, /* no more now */
	/* Characters are themselves. */
	SB_KEY_ENTER = '\r',
	SB_KEY_ESCAPE = 27,
	SB_KEY_BACKSPACE = 127,
	SB_KEY_UP = 256,
	SB_KEY_DOWN,
	SB_KEY_RIGHT,
	SB_KEY_LEFT,
	SB_KEY_HOME,
	SB_KEY_END,
	SB_KEY_PAGE_UP,
	SB_KEY_PAGE_DOWN,
	SB_KEY_UNKNOWN,
	SB_KEY_REDRAW, /* no key: the size has changed, or we were stopped */
};

/* Return: whether standard output is a terminal that can be drawn on. */
bool sb_term_is_there(void);

/*
 * Before threads are made: signals of the terminal's size and of Ctrl-Z are read from a descriptor from here
 * on. Nothing is drawn yet. Return: 0 or a negative errno.
 */
int sb_term_new(struct sb_term **ret_term);
/* Leaves it, too. Accepts NULL. */
void sb_term_free(struct sb_term *term);

/* Return: a descriptor that is readable when there is a key. */
int sb_term_fd(const struct sb_term *term);
void sb_term_size(const struct sb_term *term, int *ret_nr_cols, int *ret_nr_rows);

/*
 * Show it. The first time the terminal is entered: other screen, keys as they come, no cursor; messages of the
 * log are kept if they would go there. Nothing is done as long as the terminal takes no more.
 * Return: 0 or a negative errno: it is gone.
 */
int sb_term_show(struct sb_term *term, const struct sb_canvas *canvas);

/* Reads once, as the descriptor said that it can. Return: 0 or a negative errno: it is gone. */
int sb_term_read(struct sb_term *term);
/* Return: enum sb_key or a character, of what was read. */
int sb_term_key(struct sb_term *term);

/* As it was before; then the messages. It is entered again by sb_term_show(). */
void sb_term_leave(struct sb_term *term);

/* The same without the messages; for signal handlers. */
void sb_term_restore(void);

/* The first key of @bytes. Return: it, *ret_len: its bytes. */
int sb_term_parse_key(const unsigned char *bytes, size_t nr, size_t *ret_len);

#endif
