/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Filters of system calls, by seccomp(2): each function installs the filter of one kind of process
 * or thread in the calling thread, which must have no_new_privs. Called by workers/privileges.c
 * only, as its last step, since a filter stays for good. There are no filters without libseccomp,
 * and under a sanitizer, which needs more calls: then all return 0.
 *
 * Return: 0; -ENOMEM; -EACCES with neither no_new_privs nor CAP_SYS_ADMIN; or another negative
 * errno of libseccomp or seccomp(2). The process must not go on after an error, because it may be
 * without a filter. A call that a filter forbids fails with EPERM, clone3(2) with ENOSYS. Thread:
 * several may call sb_sandbox_thread() at a time; the other functions are for one thread at a time.
 */
#ifndef SB_WORKERS_SANDBOX_H
#define SB_WORKERS_SANDBOX_H

struct sb_privileges_opts;

/* The session's thread, when everything is attached; the other threads of the session. @opts: not
 * NULL, only used during the call */
int sb_sandbox_session(const struct sb_privileges_opts *opts);
int sb_sandbox_thread(void);
/* Processes that parse files (symbolizer/unwind/parser.h). The supervisor, which forks the workers,
 * also compiles their filter, so supervisor() comes before worker(). */
int sb_sandbox_supervisor(void);
int sb_sandbox_worker(void);
/*
 * Processes that read foreign memory and files (symbolizer/process/reader.h). The spawner, which
 * forks the readers, also compiles their filter, so spawner() comes before reader().
 */
int sb_sandbox_spawner(void);
int sb_sandbox_reader(void);
/*
 * `serve`: the process that has the connections, which also compiles the filter of those it makes,
 * so front() comes before answerer().
 */
int sb_sandbox_front(void);
int sb_sandbox_answerer(void);
/*
 * The process that forwards signals to the command, by @pidfd; no other descriptor can be used for
 * that. It stays the caller's; the filter allows no close(2).
 */
int sb_sandbox_signaller(int pidfd);
/* A process that makes others, which inherit the filter: it forbids what no process that samples or
 * records needs, such as execve(2), ptrace(2), mount(2), and allows the rest. */
int sb_sandbox_starter(void);
/* The process that loads BPF programs while a session runs. */
int sb_sandbox_loader(void);
/* The process of `record` that writes the store, when the store is open. */
int sb_sandbox_storer(void);

/* Return: the version of libseccomp ("2.5.4"), in a static buffer; NULL: there are no filters. Each
 * call writes the same text again, so one thread at a time. */
const char *sb_sandbox_version(void);

#endif
