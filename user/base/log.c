// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static const char *program_name = "stackbpf";
static enum sb_log_level level_max = SB_LOG_INFO;
static int log_fd = STDERR_FILENO;

void sb_log_init(const char *program, enum sb_log_level max)
{
	program_name = program;
	level_max = max;
}

void sb_log_to(int fd)
{
	log_fd = fd;
}

enum sb_log_level sb_log_max(void)
{
	return level_max;
}

static const char *level_prefix(enum sb_log_level level)
{
	switch (level) {
	case SB_LOG_WARN:
		return "warning: ";
	case SB_LOG_DEBUG:
		return "debug: ";
	default:
		return "";
	}
}

/* Names of processes and files are other people's bytes: they must not drive the terminal. */
static void neutralize(char *s)
{
	size_t len;

	/* The verifier's log has lines of its own. */
	for (; *s; s += len + (s[len] != '\0')) {
		len = strcspn(s, "\n\t");
		sb_replace_controls(s, len);
	}
}

static struct iovec part(const char *s)
{
	return (struct iovec){ .iov_base = (char *)s, .iov_len = strlen(s) };
}

/* What to do about an error, where that is the same whatever it was that failed. */
static const char *usual_step(int err)
{
	static const struct {
		int err;
		const char *step;
	} steps[] = {
		{ -EACCES, "check owner and permissions, or try as root" },
		{ -EADDRINUSE, "stop the program that listens there, or choose another address" },
		{ -EDQUOT, "delete files, or choose a place on another file system" },
		{ -EFBIG, "raise the limit: ulimit -f" },
		{ -EISDIR, "name a file in it" },
		{ -EIO, "the kernel's log (dmesg) may say why" },
		{ -EMFILE, "raise the limit: ulimit -n" },
		{ -ENFILE, "close programs, or raise sysctl fs.file-max" },
		{ -ENOMEM, "free memory, or raise the limit of the process or its cgroup" },
		{ -ENOSPC, "delete files, or choose a place on another file system" },
		{ -EPERM, "try as root; a container or security module may also forbid it" },
		{ -EROFS, "choose a place that can be written" },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(steps); i++)
		if (steps[i].err == err)
			return steps[i].step;
	return NULL;
}

/* Cut @msg before its last "; ", unless that is in a quoted name. Return: what stood behind it, or
 * NULL. */
static const char *cut_step(char *msg)
{
	char *last = NULL, *next = msg;
	size_t i, nr_quotes = 0;

	while ((next = strstr(next, "; "))) {
		last = next;
		next += 2;
	}
	if (!last)
		return NULL;
	for (i = 0; last[i]; i++)
		nr_quotes += last[i] == '\'';
	if (nr_quotes % 2)
		return NULL;
	*last = '\0';
	return last + 2;
}

static void put(enum sb_log_level level, int err, char *msg)
{
	size_t len = strlen(msg);
	const char *steps[2] = {}; /* the message's own, and the usual one */
	struct iovec line[11];
	int nr = 0, i;

	if (len && msg[len - 1] == '\n')
		msg[len - 1] = '\0'; /* libbpf's messages carry their own */
	neutralize(msg);
	if (err) {
		steps[0] = cut_step(msg);
		/* What is at a limit may be well otherwise. */
		if (!steps[0] || err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
		    err == -EFBIG)
			steps[1] = usual_step(err);
	}
	line[nr++] = part(program_name);
	line[nr++] = part(": ");
	line[nr++] = part(level_prefix(level));
	line[nr++] = part(msg);
	if (err) {
		line[nr++] = part(": ");
		line[nr++] = part(strerror(-err));
	}
	for (i = 0; i < 2; i++) {
		if (!steps[i])
			continue;
		line[nr++] = part("; ");
		line[nr++] = part(steps[i]);
	}
	line[nr++] = part("\n");
	/* One call, so that messages of two threads do not mix; there is nobody to tell if it
	 * fails. */
	if (writev(log_fd, line, nr) < 0)
		return;
}

static void __attribute__((format(printf, 3, 0)))
vlog(enum sb_log_level level, int err, const char *fmt, va_list ap)
{
	sb_cleanup(sb_freep) char *big = NULL;
	char small[1024];
	va_list again;
	int n;

	if (level > level_max)
		return;
	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	if (n < 0)
		small[0] = '\0';
	/* The verifier's log is long. Without memory a message is cut rather than lost. */
	if (n >= (int)sizeof(small) && vasprintf(&big, fmt, again) < 0)
		big = NULL;
	va_end(again);
	put(level, err, big ? big : small);
}

void sb_vlog(enum sb_log_level level, const char *fmt, va_list ap)
{
	vlog(level, 0, fmt, ap);
}

void sb_log(enum sb_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(level, 0, fmt, ap);
	va_end(ap);
}

int sb_err(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(SB_LOG_ERR, err, fmt, ap);
	va_end(ap);
	return err;
}
