/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages to stderr. Library code logs at debug only; the command logs an error once. Thread-safe,
 * but for sb_log_init() and sb_log_to(), which no other thread may call or log beside: a message is
 * one write, whose failure is ignored; errno may change. Before sb_log_init() the defaults hold, so
 * it need not be called. Control characters in a message, but for newlines and tabs, are shown as
 * '?', as is invalid UTF-8. No pointer is NULL.
 */
#ifndef SB_BASE_LOG_H
#define SB_BASE_LOG_H

#include <stdarg.h>

enum sb_log_level { SB_LOG_ERR, SB_LOG_WARN, SB_LOG_INFO, SB_LOG_DEBUG };

/* Set once at start: what precedes each message (default "stackbpf"; borrowed for good) and the
 * most verbose level that is shown (default SB_LOG_INFO; SB_LOG_ERR with -q, SB_LOG_DEBUG with
 * -v). */
void sb_log_init(const char *program, enum sb_log_level max);

/* Where messages go from here on: a descriptor of the caller's, which has to stay open;
 * STDERR_FILENO at the start. */
void sb_log_to(int fd);

/* Return: the most verbose level that is shown. */
enum sb_log_level sb_log_max(void);

/* Write one message, to which a newline is added, if @level is not beyond sb_log_max(). "warning: "
 * or "debug: " precedes messages of these levels. A long message is cut to 1,023 bytes when there
 * is no memory. */
void sb_log(enum sb_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write one message as sb_log() does, if @level is not beyond sb_log_max(), with the arguments in
 * @ap, for the print callbacks of libraries. In all messages one newline at the end is taken off
 * before another is added. The caller ends @ap. */
void sb_vlog(enum sb_log_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/*
 * Log "PROGRAM: MESSAGE: REASON; NEXT STEP" at SB_LOG_ERR for the negative errno @err and give @err
 * back, so that a caller can `return sb_err(err, ...)`. The next step is what stands in the message
 * after its last "; "; a message without one gets the usual step of the errno, if there is one (the
 * table in log.c). When memory or descriptors are short, the usual step follows that of the
 * message. With @err == 0 the message stays as it is.
 */
int sb_err(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define sb_warn(...)  sb_log(SB_LOG_WARN, __VA_ARGS__)
#define sb_info(...)  sb_log(SB_LOG_INFO, __VA_ARGS__)
#define sb_debug(...) sb_log(SB_LOG_DEBUG, __VA_ARGS__)

#endif
