// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The system calls that are allowed once everything is attached. What is not in the tables fails
 * with EPERM: execve, ptrace, process_vm_writev, mount, setns, unshare, sockets, modules, kexec,
 * BPF_PROG_LOAD, signals to others, ... The caller is not killed, because a call that a future C
 * library makes and can do without must not cost anybody an hour of samples.
 *
 * A filter sees registers, but not memory. openat2(2) and clone3(2) have their flags in memory, so
 * neither is allowed: paths in containers are walked with openat(2) (base/beneath.h), and clone3()
 * fails with ENOSYS, so that the C library uses clone().
 */
#include "workers/sandbox.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "workers/privileges.h"

/* Who may. */
#define SESSION	 (1u << 0)
#define THREAD	 (1u << 1)
#define FILES	 (1u << 2) /* a session that makes files itself */
#define NETWORK	 (1u << 3) /* a session that asks debuginfod */
#define ALL	 (SESSION | THREAD)
#define WORKER	 (1u << 4) /* parses, in a process of its own: symbolizer/unwind/parser.h */
#define KEEPER	 (1u << 5) /* starts and ends those */
#define PARSERS	 (WORKER | KEEPER)
#define TERMINAL (1u << 6) /* a session that draws on one */
/* `serve`: the one who has the connections, and makes those who read the store; a filter that those
 * install takes away, and adds nothing. */
#define FRONT	 (1u << 7)
#define ANSWERER (1u << 8)
#define SERVERS	 (FRONT | ANSWERER)
#define STORER	 (1u << 9) /* `record`: writes the store */
/* Makes accesses to foreign memory and files, and starts those that do:
 * symbolizer/process/reader.h. A reader has the filter of the spawner, too. */
#define READER	 (1u << 10)
#define SPAWNER	 (1u << 11)
#define READERS	 (READER | SPAWNER)
#define LOADER	 (1u << 12) /* loads BPF programs while a session runs: capture/walkers.h */

#if HAVE_SECCOMP
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/process/pagemap.h"
#include "symbolizer/process/procmap_query.h"

struct call {
	int number;
	unsigned int who;
};

#define CALL(name, who_)             \
	{                            \
		SCMP_SYS(name), who_ \
	}

/* Whatever the arguments are. Calls that an architecture does not have are negative numbers. */
static const struct call calls[] = {
	/* What is open already. */
	CALL(read, ALL | SERVERS | STORER | READER | LOADER),
	CALL(pread64, ALL | PARSERS | READERS),
	CALL(readv, ALL),
	CALL(write, ALL | SERVERS | STORER | LOADER),
	CALL(writev, ALL | SERVERS | STORER),
	CALL(lseek, ALL | SERVERS | STORER | READER | LOADER),
	CALL(close, ALL | PARSERS | READERS),
	CALL(dup, ALL),
	CALL(getdents64, ALL | SERVERS | STORER | READER),
	CALL(fadvise64, ALL | SERVERS),
	CALL(bpf, LOADER),
	/* Names of files. */
	CALL(stat, ALL | SERVERS | READER),
	CALL(lstat, ALL | SERVERS),
	CALL(fstat, ALL | PARSERS | READERS),
	CALL(newfstatat, ALL | SERVERS | STORER | READER | LOADER),
	CALL(statx, ALL | SERVERS | STORER | READER | LOADER),
	CALL(statfs, ALL),
	CALL(fstatfs, ALL | READER),
	CALL(access, ALL | LOADER),
	CALL(faccessat, ALL | LOADER),
	CALL(faccessat2, ALL | LOADER),
	CALL(readlink, ALL | LOADER),
	CALL(readlinkat, ALL | READER),
	CALL(getcwd, ALL),
	/* Other processes: their memory, to read. */
	CALL(process_vm_readv, READER),
	/* Own memory. mmap() and mprotect() are below. */
	CALL(brk, ALL | PARSERS | READERS),
	CALL(munmap, ALL | PARSERS | READERS),
	CALL(mremap, ALL | PARSERS | READERS),
	CALL(madvise, ALL | PARSERS | READERS),
	CALL(mincore, ALL),
	/* Waiting. */
	CALL(futex, ALL | PARSERS | READERS),
	CALL(epoll_wait, ALL | FRONT),
	CALL(epoll_pwait, ALL | FRONT),
	CALL(epoll_ctl, ALL | FRONT),
	CALL(poll, ALL | KEEPER | FRONT | STORER | READER),
	CALL(ppoll, ALL | KEEPER | FRONT | STORER | READER),
	CALL(nanosleep, ALL),
	CALL(clock_nanosleep, ALL),
	CALL(restart_syscall, ALL | PARSERS | READERS),
	CALL(sched_yield, ALL | PARSERS | READERS),
	CALL(timerfd_settime, SESSION),
	/* Time, and what is known of ourselves. */
	CALL(clock_gettime, ALL | PARSERS | READERS),
	CALL(clock_getres, ALL | KEEPER | STORER),
	CALL(gettimeofday, ALL | SERVERS | STORER),
	CALL(time, ALL | SERVERS | STORER),
	CALL(getrusage, ALL | READER),
	CALL(times, ALL),
	CALL(getpid, ALL | KEEPER | STORER | SPAWNER),
	CALL(gettid, ALL | KEEPER | SPAWNER),
	CALL(getppid, ALL),
	CALL(getuid, ALL),
	CALL(geteuid, ALL | STORER),
	CALL(getgid, ALL),
	CALL(getegid, ALL),
	CALL(getrandom, ALL | PARSERS | READERS),
	CALL(getrlimit, ALL),
	CALL(getcpu, ALL),
	CALL(sched_getaffinity, ALL),
	CALL(sysinfo, ALL | SERVERS),
	CALL(uname, ALL | SERVERS | LOADER),
	CALL(capget, ALL),
	/* Signals to us; threads; the end. */
	CALL(rt_sigaction, ALL | KEEPER | SPAWNER),
	CALL(rt_sigprocmask, ALL | PARSERS | READERS),
	CALL(rt_sigreturn, ALL | PARSERS | READERS),
	CALL(sigaltstack, ALL),
	CALL(set_robust_list, ALL | KEEPER | SPAWNER),
	CALL(rseq, ALL | KEEPER | SPAWNER),
	CALL(membarrier, ALL),
	CALL(exit, ALL | PARSERS | READERS),
	CALL(exit_group, ALL | PARSERS | READERS),
	/* The status of the command. Its signals are sent by another process: SIGNALLER. */
	CALL(wait4, SESSION | KEEPER | SPAWNER),
	CALL(waitid, SESSION),
	/* The writer of files and the processes that parse, by the sockets that are open. */
	CALL(recvmsg, ALL | PARSERS | READERS),
	CALL(recvfrom, SESSION | FRONT | STORER),
	/* Connections; answers, which are files in memory. */
	CALL(accept4, FRONT),
	CALL(sendfile, FRONT),
	CALL(memfd_create, SERVERS | READERS | LOADER),
	/* Processes that parse: to make one, which drops more, and to end it. */
	CALL(close_range, KEEPER | SPAWNER),
	CALL(seccomp, KEEPER | SPAWNER),
	CALL(setrlimit, KEEPER | SPAWNER),
	/* Files of our own. */
	CALL(open, FILES | NETWORK),
	CALL(openat, FILES | NETWORK | STORER),
	CALL(rename, FILES | NETWORK),
	CALL(renameat, FILES | NETWORK),
	CALL(renameat2, FILES | NETWORK),
	CALL(unlink, FILES | NETWORK),
	CALL(unlinkat, FILES | NETWORK | STORER),
	CALL(fchmod, NETWORK),
	CALL(linkat, FILES),
	CALL(umask, NETWORK),
	/* What libdebuginfod, libcurl and the resolver do; what dlopen() does is below. */
	CALL(socket, NETWORK),
	CALL(socketpair, NETWORK | KEEPER | SPAWNER),
	CALL(connect, NETWORK),
	CALL(bind, NETWORK),
	CALL(getsockname, NETWORK),
	CALL(getpeername, NETWORK),
	CALL(getsockopt, NETWORK),
	CALL(setsockopt, NETWORK),
	CALL(sendmmsg, NETWORK),
	CALL(shutdown, NETWORK | FRONT),
	CALL(pipe2, NETWORK),
	CALL(eventfd2, NETWORK),
	CALL(select, NETWORK),
	CALL(pselect6, NETWORK),
	CALL(mmap, NETWORK),
	CALL(mprotect, NETWORK),
	CALL(mkdir, NETWORK),
	CALL(mkdirat, NETWORK),
	CALL(rmdir, NETWORK),
	CALL(pwrite64, STORER | READER | LOADER),
	CALL(fdatasync, STORER),
	CALL(ftruncate, STORER | NETWORK | READER | LOADER),
	CALL(utimensat, NETWORK),
	CALL(flock, NETWORK),
	CALL(dup2, NETWORK | KEEPER | SPAWNER),
	CALL(dup3, NETWORK | KEEPER | SPAWNER | LOADER),
};

/* Calls of which one argument is looked at, or two: those with (argument & mask) == value. */
struct judged {
	int number;
	unsigned int who;
	unsigned int argument;
	uint64_t mask, value;
	unsigned int argument2;
	uint64_t mask2, value2; /* mask2 0: one argument only */
};

#define TERMIOS2_BYTES 44 /* struct termios2, which glibc's headers do not have */
#define WHOLE	       UINT64_MAX
#define IS(nr, val)    (nr), WHOLE, (uint64_t)(val)
#define WITHOUT(nr, m) (nr), (uint64_t)(m), 0
#define NAMESPACES                                                                                 \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)

static const struct judged judged[] = {
	/* To read only, and nothing new. */
	{ SCMP_SYS(openat), ALL | SERVERS | READER | LOADER,
	  WITHOUT(2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC) },
	{ SCMP_SYS(open), ALL | SERVERS | READER | LOADER,
	  WITHOUT(1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC) },
	{ SCMP_SYS(open_by_handle_at), ALL, WITHOUT(2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC) },
	/* No code that was not there. */
	{ SCMP_SYS(mmap), ALL | PARSERS | READERS, WITHOUT(2, PROT_EXEC) },
	{ SCMP_SYS(mprotect), ALL | PARSERS | READERS, WITHOUT(2, PROT_EXEC) },
	/* A thread, no process. */
	{ SCMP_SYS(clone), ALL | SPAWNER, 0, CLONE_VM | CLONE_THREAD | NAMESPACES,
	  CLONE_VM | CLONE_THREAD },
	/* The other way round; glibc's fork(). */
	{ SCMP_SYS(clone), KEEPER | SPAWNER,
	  IS(0, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD) },
	/* fstat(), and nothing by its name; a descriptor once more. */
	{ SCMP_SYS(newfstatat), PARSERS | SPAWNER, IS(3, AT_EMPTY_PATH) },
	{ SCMP_SYS(fcntl), ALL | PARSERS | SERVERS | STORER | READERS, IS(1, F_DUPFD_CLOEXEC) },
	/*
	 * What a descriptor is. Not F_SETOWN, F_SETSIG and O_ASYNC, by which the kernel sends
	 * signals to any process of the same user, nor F_SETLEASE and F_NOTIFY. musl's open() sets
	 * FD_CLOEXEC once more.
	 */
	{ SCMP_SYS(fcntl), ALL | SERVERS | STORER, IS(1, F_GETFD) },
	{ SCMP_SYS(fcntl), ALL | SERVERS | STORER, IS(1, F_SETFD) },
	{ SCMP_SYS(fcntl), ALL | SERVERS | STORER | READER, IS(1, F_GETFL) },
	{ SCMP_SYS(fcntl), NETWORK, IS(1, F_SETFL), WITHOUT(2, O_ASYNC) },
	/* Memory that is shared, and copies of files: see symbolizer/process/reader_ops.c and
	 * reader.c. */
	{ SCMP_SYS(fcntl), READERS, IS(1, F_ADD_SEALS) },
	{ SCMP_SYS(fcntl), READER, IS(1, F_OFD_SETLK) },
	{ SCMP_SYS(fcntl), ALL, IS(1, F_OFD_GETLK) },
	/* Maps, which are ours; detaching; no new programs, nothing of others by its number. */
	{ SCMP_SYS(bpf), ALL, IS(0, BPF_MAP_LOOKUP_ELEM) },
	{ SCMP_SYS(bpf), ALL, IS(0, BPF_MAP_UPDATE_ELEM) },
	{ SCMP_SYS(bpf), ALL, IS(0, BPF_MAP_DELETE_ELEM) },
	{ SCMP_SYS(bpf), ALL, IS(0, BPF_MAP_GET_NEXT_KEY) },
	{ SCMP_SYS(bpf), ALL, IS(0, BPF_MAP_LOOKUP_BATCH) },
	{ SCMP_SYS(bpf), ALL, IS(0, BPF_MAP_LOOKUP_AND_DELETE_BATCH) },
	{ SCMP_SYS(bpf), ALL, IS(0, BPF_MAP_DELETE_BATCH) },
	{ SCMP_SYS(bpf), ALL, IS(0, BPF_OBJ_GET_INFO_BY_FD) },
	{ SCMP_SYS(bpf), THREAD, IS(0, BPF_MAP_CREATE) },   /* more room for unwind tables */
	{ SCMP_SYS(bpf), SESSION, IS(0, BPF_LINK_CREATE) }, /* timers of new CPUs, iterators */
	{ SCMP_SYS(bpf), SESSION, IS(0, BPF_LINK_DETACH) },
	{ SCMP_SYS(bpf), SESSION, IS(0, BPF_ITER_CREATE) },
	{ SCMP_SYS(bpf), SESSION, IS(0, BPF_OBJ_PIN) }, /* see capture/detach.c */
	{ SCMP_SYS(bpf), SESSION,
	  IS(0, BPF_PROG_GET_NEXT_ID) }, /* see symbolizer/symbols/kallsyms.c */
	/* Without MSG_FASTOPEN, which is a connect(2). */
	{ SCMP_SYS(sendmsg), ALL | PARSERS | READERS, WITHOUT(2, MSG_FASTOPEN) },
	{ SCMP_SYS(sendto), SESSION | FRONT, WITHOUT(3, MSG_FASTOPEN) },
	/* Events of CPUs that come online, by the process -1. One in a process can send it SIGTRAP,
	 * as perf_event_attr says, which a filter cannot see. */
	{ SCMP_SYS(perf_event_open), SESSION, 1, UINT32_MAX, UINT32_MAX },
	/* Timers: of new CPUs, and their rate; whether there is a terminal. */
	{ SCMP_SYS(ioctl), SESSION, IS(1, PERF_EVENT_IOC_ENABLE) },
	{ SCMP_SYS(ioctl), SESSION, IS(1, PERF_EVENT_IOC_DISABLE) },
	{ SCMP_SYS(ioctl), SESSION, IS(1, PERF_EVENT_IOC_SET_BPF) },
	{ SCMP_SYS(ioctl), SESSION, IS(1, PERF_EVENT_IOC_PERIOD) }, /* --max-overhead */
	{ SCMP_SYS(ioctl), ALL, IS(1, TCGETS) },
	{ SCMP_SYS(ioctl), ALL, IS(1, TIOCGWINSZ) },
	{ SCMP_SYS(ioctl), TERMINAL, IS(1, TCSETS) },
	/* What libcurl and the resolver ask of sockets. Not TIOCSTI, which types on a terminal. */
	{ SCMP_SYS(ioctl), NETWORK, IS(1, FIONBIO) },
	{ SCMP_SYS(ioctl), NETWORK, IS(1, FIONREAD) },
	/* What a process has mapped. */
	{ SCMP_SYS(ioctl), READER, 1, UINT32_MAX, SB_PROCMAP_QUERY },
	{ SCMP_SYS(ioctl), READER, 1, UINT32_MAX, SB_PAGEMAP_SCAN },
	/* What newer C libraries do instead, TCGETS2 and TCSETS2 of asm/termbits.h. */
	{ SCMP_SYS(ioctl), TERMINAL, IS(1, _IOC(_IOC_READ, 'T', 0x2a, TERMIOS2_BYTES)) },
	{ SCMP_SYS(ioctl), TERMINAL, IS(1, _IOC(_IOC_WRITE, 'T', 0x2b, TERMIOS2_BYTES)) },
	/* Limits to read, by those who share descriptors out. */
	{ SCMP_SYS(prlimit64), ALL, IS(2, 0) },
	/* One's own; that of no other process. */
	{ SCMP_SYS(prlimit64), KEEPER | SPAWNER, IS(0, 0) },
	/* One process, at once. Which one cannot be judged, since workers come and go: Landlock
	 * does, where it can. */
	{ SCMP_SYS(kill), KEEPER, WITHOUT(0, INT32_MIN), IS(1, SIGKILL) },
	{ SCMP_SYS(prctl), ALL, IS(0, PR_SET_NAME) },
	{ SCMP_SYS(prctl), ALL, IS(0, PR_SET_VMA) },
	{ SCMP_SYS(prctl), KEEPER | SPAWNER, IS(0, PR_SET_NAME) },
	{ SCMP_SYS(prctl), KEEPER | SPAWNER, IS(0, PR_SET_PDEATHSIG) },
};

static int add_calls(scmp_filter_ctx ctx, unsigned int who)
{
	size_t i;
	int err = 0;

	for (i = 0; i < SB_ARRAY_SIZE(calls) && !err; i++)
		if ((calls[i].who & who) && calls[i].number >= 0)
			err = seccomp_rule_add_exact(ctx, SCMP_ACT_ALLOW, calls[i].number, 0);
	return err;
}

/* Whether @number is allowed whatever its arguments are, so that a rule on one would be no rule. */
static bool is_free(int number, unsigned int who)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(calls); i++)
		if (calls[i].number == number && (calls[i].who & who))
			return true;
	return false;
}

static int add_judged(scmp_filter_ctx ctx, unsigned int who)
{
	const struct judged *rule;
	int err = 0;

	for (rule = judged; rule < judged + SB_ARRAY_SIZE(judged) && !err; rule++) {
		if (!(rule->who & who) || rule->number < 0 || is_free(rule->number, who))
			continue;
		err = seccomp_rule_add_exact(
			ctx, SCMP_ACT_ALLOW, rule->number, rule->mask2 ? 2 : 1,
			SCMP_CMP(rule->argument, SCMP_CMP_MASKED_EQ, rule->mask, rule->value),
			SCMP_CMP(rule->argument2, SCMP_CMP_MASKED_EQ, rule->mask2, rule->value2));
	}
	return err;
}

/* To ourselves, by abort(). */
static int add_tgkill(scmp_filter_ctx ctx)
{
	return seccomp_rule_add_exact(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				      SCMP_A0(SCMP_CMP_EQ, (uint64_t)getpid()));
}

static int build(scmp_filter_ctx ctx, unsigned int who)
{
	/* A binary search instead of a list. */
	int err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);

	if (!err)
		err = add_calls(ctx, who);
	if (!err)
		err = add_judged(ctx, who);
	if (!err && !(who & (PARSERS | READERS)))
		err = add_tgkill(ctx);
	if (!err)
		err = seccomp_rule_add_exact(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return err;
}

struct filter {
	struct sock_filter at[BPF_MAXINSNS];
	unsigned short nr;
};

/* Through a pipe: a file would have the limit of file sizes, which is the user's (RLIMIT_FSIZE). */
static int export(scmp_filter_ctx ctx, struct filter *ret_filter)
{
	sb_cleanup(sb_closep) int in = -1;
	sb_cleanup(sb_closep) int out = -1;
	ssize_t nr_bytes;
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	in = fds[0];
	out = fds[1];
	err = seccomp_export_bpf(ctx, out);
	if (err)
		return err;
	nr_bytes = read(in, ret_filter->at, sizeof(ret_filter->at));
	if (nr_bytes <= 0)
		return -EIO;
	ret_filter->nr = (unsigned short)((size_t)nr_bytes / sizeof(ret_filter->at[0]));
	return 0;
}

/* The filter as the kernel takes it: libseccomp makes it once, threads install it. */
static int compile(unsigned int who, struct filter *ret_filter)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err;

	if (!ctx)
		return -ENOMEM;
	err = build(ctx, who);
	if (!err)
		err = export(ctx, ret_filter);
	seccomp_release(ctx);
	return err;
}

static int install(struct filter *filter)
{
	struct sock_fprog prog = { .len = filter->nr, .filter = filter->at };

	/* SPEC_ALLOW: up to 5.15 a filter switches off speculation, which makes all else slower. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &prog))
		return -errno;
	return 0;
}

/* Alone with this one: it has no close() and no dup2(), so that @pidfd remains what it is. */
static int compile_signaller(int pidfd, struct filter *ret_filter)
{
	static const int numbers[] = { SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(rt_sigreturn),
				       SCMP_SYS(exit_group) };
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	size_t i;
	int err = ctx ? 0 : -ENOMEM;

	for (i = 0; i < SB_ARRAY_SIZE(numbers) && !err; i++)
		err = seccomp_rule_add_exact(ctx, SCMP_ACT_ALLOW, numbers[i], 0);
	if (!err)
		err = seccomp_rule_add_exact(ctx, SCMP_ACT_ALLOW, SCMP_SYS(pidfd_send_signal), 1,
					     SCMP_A0(SCMP_CMP_EQ, (uint64_t)pidfd));
	if (!err)
		err = export(ctx, ret_filter);
	seccomp_release(ctx);
	return err;
}

/* The other way round: what loading and attaching need differs by kernel and library, and is needed
 * in those that inherit the filter. */
static int compile_starter(struct filter *ret_filter)
{
	static const int refused[] = {
		SCMP_SYS(execve),
		SCMP_SYS(execveat),
		SCMP_SYS(ptrace),
		SCMP_SYS(process_vm_writev),
		SCMP_SYS(pidfd_getfd),
		SCMP_SYS(process_madvise),
		SCMP_SYS(init_module),
		SCMP_SYS(finit_module),
		SCMP_SYS(delete_module),
		SCMP_SYS(kexec_load),
		SCMP_SYS(kexec_file_load),
		SCMP_SYS(reboot),
		SCMP_SYS(mount),
		SCMP_SYS(umount2),
		SCMP_SYS(move_mount),
		SCMP_SYS(open_tree),
		SCMP_SYS(mount_setattr),
		SCMP_SYS(pivot_root),
		SCMP_SYS(chroot),
		SCMP_SYS(setns),
		SCMP_SYS(unshare),
		SCMP_SYS(swapon),
		SCMP_SYS(swapoff),
		SCMP_SYS(acct),
		SCMP_SYS(quotactl),
		SCMP_SYS(settimeofday),
		SCMP_SYS(clock_settime),
		SCMP_SYS(adjtimex),
		SCMP_SYS(clock_adjtime),
		SCMP_SYS(sethostname),
		SCMP_SYS(setdomainname),
		SCMP_SYS(personality),
		SCMP_SYS(userfaultfd),
		SCMP_SYS(keyctl),
		SCMP_SYS(add_key),
		SCMP_SYS(request_key),
		SCMP_SYS(io_uring_setup),
		SCMP_SYS(io_uring_enter),
		SCMP_SYS(io_uring_register),
		SCMP_SYS(mknod),
		SCMP_SYS(mknodat),
		SCMP_SYS(symlink),
		SCMP_SYS(symlinkat),
		SCMP_SYS(link),
	};
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	size_t i;
	int err = ctx ? seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) : -ENOMEM;

	for (i = 0; i < SB_ARRAY_SIZE(refused) && !err; i++)
		if (refused[i] >= 0)
			err = seccomp_rule_add_exact(ctx, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
	if (!err)
		err = export(ctx, ret_filter);
	seccomp_release(ctx);
	return err;
}

const char *sb_sandbox_version(void)
{
	static char text[32];
	const struct scmp_version *version = seccomp_version();

	snprintf(text, sizeof(text), "%u.%u.%u", version->major, version->minor, version->micro);
	return text;
}

#else

struct filter {
};

static int compile(unsigned int who, struct filter *ret_filter)
{
	return 0;
}

static int compile_signaller(int pidfd, struct filter *ret_filter)
{
	return 0;
}

static int compile_starter(struct filter *ret_filter)
{
	return 0;
}

static int install(struct filter *filter)
{
	return 0;
}

const char *sb_sandbox_version(void)
{
	return NULL;
}

#endif

static int confine(unsigned int who)
{
	struct filter filter;
	int err = compile(who, &filter);

	return err ? err : install(&filter);
}

int sb_sandbox_session(const struct sb_privileges_opts *opts)
{
	unsigned int who = SESSION;

	if (opts->writes_files)
		who |= FILES;
	if (opts->has_network)
		who |= NETWORK;
	if (opts->has_terminal)
		who |= TERMINAL;
	return confine(who);
}

static struct filter thread_filter;
static int thread_filter_err;

static void compile_for_threads(void)
{
	thread_filter_err = compile(THREAD, &thread_filter);
}

int sb_sandbox_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, compile_for_threads);
	return thread_filter_err ? thread_filter_err : install(&thread_filter);
}

static struct filter worker_filter;

int sb_sandbox_supervisor(void)
{
	int err = compile(WORKER, &worker_filter);

	return err ? err : confine(KEEPER);
}

int sb_sandbox_worker(void)
{
	return install(&worker_filter);
}

static struct filter reader_filter;

int sb_sandbox_spawner(void)
{
	int err = compile(READER, &reader_filter);

	return err ? err : confine(READER | SPAWNER);
}

int sb_sandbox_reader(void)
{
	return install(&reader_filter);
}

static struct filter answerer_filter;

int sb_sandbox_front(void)
{
	int err = compile(WORKER | ANSWERER, &answerer_filter);

	return err ? err : confine(FRONT | ANSWERER | KEEPER | WORKER);
}

int sb_sandbox_answerer(void)
{
	return install(&answerer_filter);
}

int sb_sandbox_signaller(int pidfd)
{
	struct filter filter;
	int err = compile_signaller(pidfd, &filter);

	return err ? err : install(&filter);
}

int sb_sandbox_starter(void)
{
	struct filter filter;
	int err = compile_starter(&filter);

	return err ? err : install(&filter);
}

int sb_sandbox_storer(void)
{
	return confine(STORER | WORKER);
}

int sb_sandbox_loader(void)
{
	return confine(LOADER | WORKER);
}
