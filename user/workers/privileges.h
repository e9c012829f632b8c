/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The privileges of each process and thread, and when they are dropped; docs/privileges.md explains
 * all of it. A session goes through these steps, any other process calls its own function:
 *
 *	start: all privileges that the caller has
 *	  -> sb_privileges_begin(): another user, execve() gains nothing; capabilities are kept for
 *	     loading BPF programs
 *	  -> sb_privileges_thread(), in each thread that serves the session, at its beginning
 *	  -> sb_privileges_settle(), in the session's thread, when everything is attached
 *
 * A kernel without Landlock, and a build without libseccomp, are no errors: what they would forbid
 * stays permitted, and 0 is returned. "A negative errno" is that of the system call that was
 * refused (setresuid(2), capset(2), prctl(2), seccomp(2), ...). After any error the process may be
 * confined in part only, and must exit. No pointer may be NULL unless a contract says so; each is
 * only used during the call. Also -ENOMEM and the errors of libseccomp, when a filter cannot be
 * made. sb_privileges_to_*(), spawner(), reader(), front() and answerer() are for processes with
 * one thread.
 *
 * Dropped privileges never come back. Capabilities, no_new_privs and filters of system calls
 * belong to threads, so each thread drops its own (capabilities(7), seccomp(2)). The user's
 * command (capture/child.h) and the writer of files (workers/writer.h) are forked before, and keep
 * their privileges.
 */
#ifndef SB_WORKERS_PRIVILEGES_H
#define SB_WORKERS_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fs.h"
#include "symbolizer/unwind/parser.h"

/* Who keeps a capability: the bits of struct sb_capability.kept_by. */
enum sb_privileges_role {
	SB_ROLE_SESSION = 1u << 0, /* the session's thread */
	SB_ROLE_TABLES = 1u << 1,  /* threads that write to BPF maps */
	SB_ROLE_READER = 1u << 2,  /* threads that only look at processes */
	SB_ROLE_COMMAND = 1u << 3, /* the process that forwards signals to a command */
	SB_ROLE_LOADER = 1u << 4,  /* the process that loads programs later */
};

/**
 * sb_privileges_own_user() - a user that no other process on the machine has
 *
 * Return: user and group 0x70000000 + the process ID of the caller. No distribution assigns IDs
 * from there on, and user namespaces of containers end below (systemd's "Users, Groups, UIDs and
 * GIDs"). Thread: any; the same for all threads of a process, and another one in a process that it
 * forks.
 */
struct sb_owner sb_privileges_own_user(void);

struct sb_capability {
	unsigned int number;  /* CAP_* of linux/capability.h */
	unsigned int kept_by; /* bits of enum sb_privileges_role */
	bool is_needed;	  /* nothing works without it; the others are each needed for something */
	const char *name; /* "cap_bpf"; NULL: not shown, and what_for is NULL, too */
	const char *what_for; /* what is missing without it */
};

/* All capabilities that are of use, the most important first. */
extern const struct sb_capability sb_capabilities[];
extern const size_t sb_nr_capabilities;

/*
 * Return: the effective capabilities of the calling thread, bit N for capability N, including
 * those that CAP_SYS_ADMIN implies; 0 also if they cannot be read.
 */
uint64_t sb_privileges_have(void);

/*
 * Return: whether kernel.perf_event_paranoid is the reason why a perf event was refused with @err,
 * a negative errno. From level 3 on, which only kernels of Debian and Ubuntu know and which is
 * their default, every event needs CAP_SYS_ADMIN. True only if @err is -EACCES, the calling thread
 * has CAP_PERFMON and not CAP_SYS_ADMIN, and the level, which is read from /proc/sys, is above 2.
 * Call it in the thread whose perf event was refused. That thread must still have its capabilities,
 * and must still be allowed to open /proc/sys: filters of system calls and Landlock come later.
 */
bool sb_privileges_is_paranoid(int err);

/*
 * Return: the version of libseccomp, which makes the filters of system calls, in a static buffer;
 * NULL: there are no filters. Each call writes the same text again, so one thread at a time.
 */
const char *sb_privileges_filter(void);

struct sb_privileges_opts {
	bool writes_files; /* this process makes output files itself */
	bool has_network;  /* debuginfod is used */
	bool has_terminal; /* it draws on a terminal, and restores its settings at the end */
};

/*
 * Change from root to the user and group @who, without other groups, make execve() gain nothing,
 * and hide the process (sb_privileges_hide()). Capabilities are kept. In a user namespace where a
 * user of sb_privileges_own_user() is not mapped, that is 'nobody' (65534). Without CAP_SETUID and
 * CAP_SETGID, or if no such user is mapped, the process remains root. If it is not root, or @who
 * is, the user stays; execve() gains nothing then, either.
 * Thread: the main one, before there are others, after the command was forked.
 * Return: whether the user was changed. False is no error: the process can go on.
 */
bool sb_privileges_begin(const struct sb_owner *who);

/*
 * Announce a thread that will call sb_privileges_thread(), before it is made, so that
 * sb_privileges_settle() waits for it; and end the announcement, once for each, with an error (a
 * negative errno, of which sb_privileges_settle() then returns the first) or 0.
 * sb_privileges_thread() ends it; who announced it does if the thread could not be made. Until each
 * one is ended, sb_privileges_settle() waits. sb_thread_start() of capture does both, with 0.
 * Thread: any.
 */
void sb_privileges_thread_begins(void);
void sb_privileges_thread_done(int err);

/*
 * Drop the privileges of the calling thread, at its beginning: it keeps the capabilities of @role,
 * SB_ROLE_TABLES or SB_ROLE_READER, and gets a filter. After sb_privileges_begin(), once in each
 * thread that was announced; it calls sb_privileges_thread_done(). sb_privileges_settle() reports
 * an error; the thread goes on.
 */
void sb_privileges_thread(enum sb_privileges_role role);

/*
 * Drop the privileges of the calling thread, the session's, when everything is attached, and wait
 * until the announced threads have dropped theirs. Return: 0, or a negative errno: the calling
 * thread could not drop something, or another one could not. The process must not go on then.
 */
int sb_privileges_settle(const struct sb_privileges_opts *opts);

/*
 * For a process with one thread that only makes and writes files of @who, as the store writer
 * (recorder/store_writer.h), not the writer of workers/writer.h: root becomes @who if that is
 * possible (if not, it stays root without capabilities), no capability is kept, and execve() gains
 * none. It installs no filter of system calls and no Landlock: sb_privileges_to_store() does, which
 * can follow when files are open. Return: 0 or a negative errno.
 */
int sb_privileges_to_write(const struct sb_owner *who);
/*
 * For the process that called sb_privileges_to_write(), when its store is open: from now on only
 * files below the directory @dir, which must exist, can be opened and made (Landlock), and a filter
 * of system calls is installed. Open descriptors remain usable. Return: 0, also where the kernel
 * has no Landlock; or a negative errno, also of opening @dir: the process has to exit.
 */
int sb_privileges_to_store(const char *dir);

/**
 * sb_privileges_to_start() - give up what no process that samples or records needs, not even at
 * its start
 *
 * For a process that makes others and keeps its user and capabilities for that, and for all that
 * it makes: no other program (execve), no tracing or writing of processes, no mounts, modules,
 * namespaces, keys, clocks. These calls and others, which sb_sandbox_starter() lists (io_uring,
 * symbolic links, device files), fail with EPERM. It also does what sb_privileges_hide() does.
 *
 * Return: 0 or a negative errno.
 */
int sb_privileges_to_start(void);

/**
 * sb_privileges_hide() - prevent processes of the same user from looking into this one
 *
 * From now on /proc/PID belongs to root: a process without CAP_SYS_PTRACE cannot trace this one or
 * open its memory, and no core is dumped. A change of the user may undo this, so it is called
 * again after each. It has no effect under a sanitizer, whose leak checker traces its own process.
 * Thread: any.
 */
void sb_privileges_hide(void);

/**
 * sb_privileges_to_signal() - keep nothing but the right to signal one process
 * @pidfd: that process; it stays the caller's, who keeps it open
 *
 * Root becomes the user of sb_privileges_own_user() if it can, and else remains root. The process
 * keeps CAP_KILL, if it has it, cannot open files (Landlock), and gets a filter that allows
 * pidfd_send_signal(2) on @pidfd, messages on sockets that are open, and to exit.
 *
 * Return: 0 or a negative errno.
 */
int sb_privileges_to_signal(int pidfd);

/**
 * sb_privileges_to_load() - keep nothing but the right to load BPF programs
 *
 * For the process that loads a program while a session runs (capture/walkers.h), which is forked by
 * the session after sb_privileges_begin(), and has its user. It keeps CAP_BPF and CAP_PERFMON, if
 * it has them, and gets a filter that allows bpf(2), own memory, and to open files for reading.
 *
 * Return: 0 or a negative errno.
 */
int sb_privileges_to_load(void);

/*
 * For processes that parse files (parser.h), which need nothing: no capability, another user
 * instead of root, and a filter that allows only memory and their socket.
 */
extern const struct sb_parser_opts sb_privileges_of_parsers;

/*
 * For the processes that read foreign memory and files (reader.h), as struct
 * sb_reader_opts.confine_spawner and confine_reader: the spawner becomes @who (a struct sb_owner)
 * if it is root and can, else it keeps its user; both cases are 0. It keeps the capabilities of
 * SB_ROLE_READER, which readers inherit. Each installs its filter; spawner() also makes that of
 * reader(), which ignores @who. Return: 0 or a negative errno.
 */
int sb_privileges_spawner(void *who);
int sb_privileges_reader(void *who);

/*
 * For the two kinds of processes of `serve`, which need nothing. front(), in the one that has the
 * connections: no capability and no way to get one, a filter, and no files but those below @dir, to
 * read; root becomes @who if it can, and else remains root. answerer(), in those that it forks and
 * that inherit all of this: a narrower filter, which front() makes. @dir must exist. Return: 0 or a
 * negative errno, also of opening @dir.
 */
int sb_privileges_front(const struct sb_owner *who, const char *dir);
int sb_privileges_answerer(void);

#endif
