// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/wrap.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

#define COLUMNS_DEFAULT 80
#define COLUMNS_MIN	40
#define LOG_INDENT	6
#define PREFIX		"stackbpf: " /* what the log puts before each message */

void sb_wrap_clear_line(void)
{
	static const char clear[] = "\r\033[K";

	(void)!write(STDERR_FILENO, clear, sizeof(clear) - 1);
}

unsigned int sb_wrap_columns(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col)
		return COLUMNS_DEFAULT;
	return size.ws_col < COLUMNS_MIN ? COLUMNS_MIN : size.ws_col;
}

/* Columns of UTF-8: its bytes but those that continue a character. */
static unsigned int width(const char *s, size_t len)
{
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < len; i++)
		nr += ((unsigned char)s[i] & 0xc0) != 0x80;
	return nr;
}

/* A line of @len bytes, without its end. */
static int wrap_line(struct sb_str *out, const char *line, size_t len, unsigned int nr_columns,
		     unsigned int indent)
{
	const char *at = line, *end = line + len;
	unsigned int column = 0;
	bool is_first = true;
	int err = 0;

	while (at < end && !err) {
		size_t nr_spaces = strspn(at, " "), nr;

		/* Spaces are never broken apart: those before a word go with it, or away. */
		if (nr_spaces > (size_t)(end - at))
			nr_spaces = (size_t)(end - at);
		nr = strcspn(at + nr_spaces, " \n");
		if (!is_first && column + nr_spaces + width(at + nr_spaces, nr) > nr_columns) {
			err = sb_str_addf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else {
			err = sb_str_addn(out, at, nr_spaces);
			column += (unsigned int)nr_spaces;
		}
		if (!err)
			err = sb_str_addn(out, at + nr_spaces, nr);
		column += width(at + nr_spaces, nr);
		at += nr_spaces + nr;
		is_first = false;
	}
	return err;
}

int sb_wrap(struct sb_str *out, const char *text, unsigned int nr_columns, unsigned int indent)
{
	int err = 0;

	while (!err) {
		size_t len = strcspn(text, "\n");

		err = wrap_line(out, text, len, nr_columns, indent);
		if (err || !text[len])
			break;
		text += len + 1;
		err = sb_str_addc(out, '\n');
	}
	return err;
}

void sb_wrap_info(const char *text)
{
	sb_cleanup(sb_str_release) struct sb_str out = {};
	char *line, *rest;

	if (sb_wrap(&out, text, sb_wrap_columns(STDERR_FILENO) - (sizeof(PREFIX) - 1),
		    LOG_INDENT) ||
	    !out.s) {
		sb_info("%s", text);
		return;
	}
	for (line = strtok_r(out.s, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		sb_info("%s", line);
}
