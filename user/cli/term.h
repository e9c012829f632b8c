/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The terminal: its size, its keys, and its settings (termios(3)). The settings are restored by
 * sb_term_leave(), and by sb_term_restore() when a signal ends the program. One struct sb_term at a
 * time, one thread. Pointers are not NULL unless it says so. Order: sb_term_new(), sb_term_show();
 * loop: poll sb_term_fd(), sb_term_read(), sb_term_key() until there is none, sb_term_show(). At
 * the end, or after an error of sb_term_show() or sb_term_read(), sb_term_leave() before anything
 * is printed, and sb_term_free().
 */
#ifndef SB_CLI_TERM_H
#define SB_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>

struct sb_canvas;
struct sb_term;

enum sb_key {
	SB_KEY_NONE, /* there are no more keys now */
	/* Characters have their own codes. */
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
	SB_KEY_REDRAW, /* not a key: the size changed, or the program was stopped and continued */
};

/* Return: whether the descriptor @fd is a terminal, and one that can be drawn on: $TERM is set, and
 * not "dumb". */
bool sb_term_is_there(int fd);

/*
 * Prepare, before threads are made: signals about the terminal's size and Ctrl-Z are read from a
 * descriptor from here on, and handlers for SIGHUP, SIGQUIT and the signals of crashes call
 * sb_term_restore(). Both last after sb_term_free(). Nothing is drawn yet. Return: 0 and *ret_term,
 * which the caller frees by sb_term_free(); -ENOMEM or another negative errno of making a
 * descriptor or a handler, and it is untouched.
 */
int sb_term_new(struct sb_term **ret_term);
/* Call sb_term_leave(), close the descriptors and free @term; NULL is allowed. */
void sb_term_free(struct sb_term *term);

/* Return: a descriptor, owned by @term, that is readable when sb_term_read() is to be called. */
int sb_term_fd(const struct sb_term *term);
/* Get the size in characters; 80 x 24 when the terminal does not say. */
void sb_term_size(const struct sb_term *term, int *ret_nr_cols, int *ret_nr_rows);

/*
 * Draw @canvas. The first call switches to the alternate screen, reads keys unbuffered, hides the
 * cursor, and holds back log messages that would go to the terminal. While the terminal takes no
 * output, nothing is drawn. @canvas is copied.
 * Return: 0; -ENOMEM; or another negative errno when the terminal is gone, or is none.
 */
int sb_term_show(struct sb_term *term, const struct sb_canvas *canvas);

/* Read pending keys and signals. Keys that sb_term_key() has not returned yet are dropped. Does not
 * block, but Ctrl-Z stops the program here, with the screen restored, until it is continued.
 * Return: 0; or a negative errno when the terminal is gone. */
int sb_term_read(struct sb_term *term);
/*
 * Get the next key that sb_term_read() read. Return: a character or enum sb_key. When no key is
 * left: SB_KEY_REDRAW if the terminal must be drawn again (its size changed, or the program was
 * continued), and it returns that at each call until sb_term_show(); otherwise SB_KEY_NONE.
 */
int sb_term_key(struct sb_term *term);

/* Restore the screen and the settings, and log the messages that were held back. sb_term_show()
 * switches again, but holds back no messages any more. */
void sb_term_leave(struct sb_term *term);

/*
 * Restore the screen and the settings, if they were changed, but log nothing. Async-signal-safe.
 * sb_term_new() does not handle SIGINT and SIGTERM: a handler of the program that ends it by
 * _exit() calls this before.
 */
void sb_term_restore(void);

/* Decode the first key of @nr bytes, at least one. A key is one byte, or a sequence that begins
 * with ESC [ or ESC O. Return: the byte as a number (each byte of UTF-8 is a key of its own) or
 * enum sb_key, and *ret_len, how many bytes the key has; SB_KEY_UNKNOWN for a NUL byte and for
 * other sequences, also for one that is incomplete, which takes all @nr bytes. '\n' is
 * SB_KEY_ENTER, '\b' is SB_KEY_BACKSPACE, ESC alone is SB_KEY_ESCAPE. */
int sb_term_parse_key(const unsigned char *bytes, size_t nr, size_t *ret_len);

#endif
