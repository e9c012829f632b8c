/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Filters of system calls, by seccomp(2). Internal to capture/privileges.c. The calling thread must
 * have no_new_privs. Without libseccomp, and below a sanitizer, which needs more, there are none.
 */
#ifndef SB_CAPTURE_SANDBOX_H
#define SB_CAPTURE_SANDBOX_H

struct sb_privileges_opts;

/* From here on this thread makes only the calls of its row in the table. Return: 0 or a negative errno. */
int sb_sandbox_session(const struct sb_privileges_opts *opts);
int sb_sandbox_thread(void);
/* The same for the processes that parse. The keeper compiles the filter of its workers, too. */
int sb_sandbox_keeper(void);
int sb_sandbox_worker(void);
/* The same for the processes that read foreign memory and files (symbolizer/reader.h). The spawner compiles the
 * filter of the readers, too. */
int sb_sandbox_spawner(void);
int sb_sandbox_reader(void);
/* The same for `serve`: the process that has the connections, which compiles the filter of those it makes. */
int sb_sandbox_front(void);
int sb_sandbox_answerer(void);
/* The same for the process that passes signals on to the command: by @pidfd, and no other descriptor. */
int sb_sandbox_signaller(int pidfd);
/* What this process, and all that it makes, do without from the beginning on; see sb_privileges_to_start(). */
int sb_sandbox_starter(void);
/* The same for the process of `record` that writes the store, when it is open. */
int sb_sandbox_storer(void);

/* Return: the version of libseccomp, or NULL. */
const char *sb_sandbox_version(void);

#endif
