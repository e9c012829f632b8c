/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What we may do, and when we lay it down: docs/privileges.md tells it whole.
 *
 *	start: everything that the caller has
 *	  -> sb_privileges_begin(): another user, no exec gains anything; capabilities stay, for loading
 *	  -> sb_privileges_thread(), in each thread that serves the session, at its beginning
 *	  -> sb_privileges_settle(), in the thread of the session, when all is attached
 *
 * Nothing comes back. Capabilities, no_new_privs and filters of system calls belong to threads, so
 * each lays down its own (capabilities(7), seccomp(2)). What we run for the user (capture/child.h)
 * and what writes files as root (base/writer.h) are made before, and keep what they have.
 */
#ifndef SB_CAPTURE_PRIVILEGES_H
#define SB_CAPTURE_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fs.h"
#include "parser.h"

/* Who keeps a capability: bits of struct sb_capability.kept_by. */
enum sb_keeper {
	SB_KEEPER_SESSION = 1u << 0, /* the thread of the session */
	SB_KEEPER_TABLES = 1u << 1,  /* threads that write into BPF maps */
	SB_KEEPER_READER = 1u << 2,  /* threads that only look at processes */
	SB_KEEPER_COMMAND = 1u << 3, /* the process that passes signals on to a command */
};

/**
 * sb_privileges_own_user() - a user that no other process on the machine is
 *
 * Return: the user and group with the number 0x70000000 + the process ID of the caller. No distribution hands out
 * numbers from there on, and user namespaces of containers end below (systemd's "Users, Groups, UIDs and GIDs").
 */
struct sb_owner sb_privileges_own_user(void);

struct sb_capability {
	unsigned int number; /* CAP_* of linux/capability.h */
	unsigned int kept_by;
	bool is_needed; /* nothing goes without it; the others are each needed for something */
	const char *name;
	const char *what_for; /* what is missing without it */
};

/* All that are of use, in the order of their importance. */
extern const struct sb_capability sb_capabilities[];
extern const size_t sb_nr_capabilities;

/* Return: the effective capabilities of the calling thread, bit N is capability N; with those that
 * CAP_SYS_ADMIN stands for. */
uint64_t sb_privileges_have(void);

/*
 * Return: whether a perf event was refused with @err for kernel.perf_event_paranoid: from 3 on, which upstream
 * does not know and which is the default of Debian and Ubuntu, their kernels demand CAP_SYS_ADMIN for each. Not where CAP_PERFMON is missing as well.
 */
bool sb_privileges_is_paranoid(int err);

/* Return: the version of libseccomp, by which system calls are filtered, or NULL: they are not. */
const char *sb_privileges_filter(void);

struct sb_privileges_opts {
	bool writes_files; /* this process itself makes files */
	bool has_network;  /* debuginfod is asked */
	bool has_terminal; /* that is drawn on, and left as it was */
};

/*
 * Before there are threads, after the command: from here on execve() gives nothing, and as root we
 * become @who, with no group but its own. Capabilities stay. Where a user of sb_privileges_own_user() is not mapped
 * (a user namespace), it is 'nobody' (65534). What is refused stays as it was: without CAP_SETUID and CAP_SETGID, or
 * where no such user is mapped, we remain root.
 * Return: whether we have become @who.
 */
bool sb_privileges_begin(const struct sb_owner *who);

/* Before a thread is made that will call sb_privileges_thread(); and if it could not be made. */
void sb_privileges_thread_begins(void);
void sb_privileges_thread_done(int err);

/* At the beginning of a thread. @keeper: SB_KEEPER_TABLES or SB_KEEPER_READER. */
void sb_privileges_thread(enum sb_keeper keeper);

/* When all is attached: keep what is needed from here on, and wait until the threads have done so. Return:
 * 0, or a negative errno when something could not be laid down. */
int sb_privileges_settle(const struct sb_privileges_opts *opts);

/*
 * For a process that only makes and writes files of @who, and has one thread: as root it becomes @who; it keeps
 * no capability. Where it may not become another it remains who it is. Return: 0 or a negative errno.
 */
int sb_privileges_to_write(const struct sb_owner *who);
/* The same process, when its store is open: it opens and makes files below @dir only, and has a filter. */
int sb_privileges_to_store(const char *dir);

/**
 * sb_privileges_to_start() - what nobody who samples or records needs, not even before all is attached
 *
 * For a process that makes others and keeps its user and capabilities for that, and all that it makes: no other
 * program (execve), no tracing or writing of processes, no mounts, modules, namespaces, keys, clocks.
 *
 * Return: 0 or a negative errno.
 */
int sb_privileges_to_start(void);

/**
 * sb_privileges_hide() - let no process of the same user look into this one
 *
 * From here on /proc/PID belongs to root: processes without CAP_SYS_PTRACE cannot trace this one, nor open its memory,
 * and it leaves no core. To be called again after each change of the user, which may undo it. Nothing is done below a
 * sanitizer, whose leak checker traces its own process.
 */
void sb_privileges_hide(void);

/**
 * sb_privileges_to_signal() - keep nothing but the right to signal one process
 * @pidfd: that process
 *
 * For a process with one thread. It keeps CAP_KILL, if it has it, and a filter that leaves pidfd_send_signal(2) on
 * @pidfd, and answers.
 *
 * Return: 0 or a negative errno.
 */
int sb_privileges_to_signal(int pidfd);

/* For processes that parse files (parser.h), which need nothing: no capability, as root another user, and a
 * filter that leaves them memory and their socket. */
extern const struct sb_parser_opts sb_privileges_of_parsers;

/*
 * For the processes that read foreign memory and files (reader.h): as root they become @who, a struct sb_owner; they
 * keep what SB_KEEPER_READER keeps, and have a filter. struct sb_reader_opts.confine_spawner and confine_reader.
 * Return: 0 or a negative errno.
 */
int sb_privileges_spawner(void *who);
int sb_privileges_reader(void *who);

/* For `serve`, which needs nothing either: no capability, no way to any, a filter, no files but those below @dir, to
 * read. @who: whom to become as root. Return: 0 or a negative errno. */
int sb_privileges_front(const struct sb_owner *who, const char *dir);
int sb_privileges_answerer(void);

#endif
