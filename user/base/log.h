/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages to stderr. Library code logs at debug only; the command logs an error once.
 * Thread-safe: a message is one write, whose failure is ignored. Control characters in it are shown
 * as '?'.
 */
#ifndef SB_BASE_LOG_H
#define SB_BASE_LOG_H

#include <stdarg.h>

enum sb_log_level { SB_LOG_ERR, SB_LOG_WARN, SB_LOG_INFO, SB_LOG_DEBUG };

/* Set once at start: what precedes each message (default "stackbpf"; borrowed for good) and the most
 * verbose level that is shown (default SB_LOG_INFO; SB_LOG_ERR with -q, SB_LOG_DEBUG with -v). */
void sb_log_init(const char *program, enum sb_log_level max);

/* Where messages go from here on: a descriptor of the caller's; STDERR_FILENO at the start. */
void sb_log_to(int fd);

/* Return: the most verbose level that is shown. */
enum sb_log_level sb_log_max(void);

/* Write one message, to which a newline is added, if @level is shown. */
void sb_log(enum sb_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* For the print callbacks of libraries. A newline at the end is taken off. */
void sb_vlog(enum sb_log_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/*
 * Log "PROGRAM: MESSAGE: REASON" for the negative errno @err and give @err back, so that a caller
 * can `return sb_err(err, ...)`. With @err == 0 no reason is appended.
 */
int sb_err(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define sb_warn(...)  sb_log(SB_LOG_WARN, __VA_ARGS__)
#define sb_info(...)  sb_log(SB_LOG_INFO, __VA_ARGS__)
#define sb_debug(...) sb_log(SB_LOG_DEBUG, __VA_ARGS__)

#endif
