// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "workers/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/num.h"
#include "workers/landlock.h"
#include "workers/sandbox.h"

#define BIT(number) (1ull << (number))
/* The first user ID of our own processes. No distribution assigns user IDs above it, and a process
 * ID, which is added to it, has at most 22 bits. */
#define OWN_USERS   0x70000000u
#define NOBODY	    65534u /* the kernel's overflow user */
#define CAPS_MAX    64	   /* of the words that capset() takes */

#define ALL	    (SB_ROLE_SESSION | SB_ROLE_TABLES | SB_ROLE_READER)

/* clang-format off */
const struct sb_capability sb_capabilities[] = {
	/* bpf(2): links and iterators; up to Linux 5.18 every command; new maps of unwind
	 * tables. */
	{ CAP_BPF, SB_ROLE_SESSION | SB_ROLE_TABLES | SB_ROLE_LOADER, true, "cap_bpf",
	  "BPF programs and maps" },
	/* Timers and side-band records of CPUs that come online. */
	{ CAP_PERFMON, SB_ROLE_SESSION | SB_ROLE_LOADER, true, "cap_perfmon",
	  "perf events, and BPF programs that read kernel memory" },
	/* /proc/PID/{maps,mem,root,map_files,ns}, process_vm_readv(2). */
	{ CAP_SYS_PTRACE, ALL, false, "cap_sys_ptrace",
	  "complete stacks and names in processes of other users" },
	/* Names of kernel addresses, see capture/kname.c; the addresses in /proc/kallsyms. */
	{ CAP_SYSLOG, SB_ROLE_SESSION, false, "cap_syslog",
	  "names of kernel functions" },
	/* Also /proc/PID/mem: its mode is 0600. */
	{ CAP_DAC_READ_SEARCH, ALL, false, "cap_dac_read_search",
	  "files and memory of other users, tracepoints of system calls ('io')" },
	/* /proc/PID/map_files/: proc_map_files_get_link() of fs/proc/base.c. */
	{ CAP_CHECKPOINT_RESTORE, ALL, false, "cap_checkpoint_restore",
	  "files that were deleted or are in containers" },
	/* To send a signal to the command (pidfd_send_signal(2)) when it runs as another user, or
	 * has changed its user. */
	{ CAP_KILL, SB_ROLE_COMMAND, false, NULL, NULL },
};
/* clang-format on */
const size_t sb_nr_capabilities = SB_ARRAY_SIZE(sb_capabilities);

/* Split off CAP_SYS_ADMIN, which still does for them (Linux 5.8, 5.9). */
#define SPLIT_OFF (BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_CHECKPOINT_RESTORE))

struct caps {
	uint64_t effective, permitted;
};

static int get_caps(struct caps *ret)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	ret->effective = (uint64_t)data[1].effective << 32 | data[0].effective;
	ret->permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	return 0;
}

/* Nothing is inheritable. */
static int set_caps(const struct caps *caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)caps->effective, .permitted = (uint32_t)caps->permitted },
		{ .effective = (uint32_t)(caps->effective >> 32),
		  .permitted = (uint32_t)(caps->permitted >> 32) },
	};

	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

uint64_t sb_privileges_have(void)
{
	struct caps caps;

	if (get_caps(&caps))
		return 0;
	return caps.effective | (caps.effective & BIT(CAP_SYS_ADMIN) ? SPLIT_OFF : 0);
}

bool sb_privileges_is_paranoid(int err)
{
	sb_cleanup(sb_freep) char *text = NULL;
	uint64_t level;

	if (err != -EACCES || sb_read_file("/proc/sys/kernel/perf_event_paranoid", 64, &text, NULL))
		return false;
	text[strcspn(text, "\n")] = '\0';
	/* "-1" is no such number, and allows all. */
	return !sb_parse_u64(text, INT32_MAX, &level) && level > 2 &&
	       (sb_privileges_have() & (BIT(CAP_SYS_ADMIN) | BIT(CAP_PERFMON))) == BIT(CAP_PERFMON);
}

static int keep(unsigned int roles)
{
	struct caps caps;
	uint64_t wanted = 0, kept;
	int err = get_caps(&caps);
	size_t i;

	if (err)
		return err;
	for (i = 0; i < sb_nr_capabilities; i++)
		if (sb_capabilities[i].kept_by & roles)
			wanted |= BIT(sb_capabilities[i].number);
	kept = wanted & caps.permitted;
	/* A container may have it and not those that were split off it. */
	if (wanted & SPLIT_OFF & ~caps.permitted)
		kept |= BIT(CAP_SYS_ADMIN) & caps.permitted;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return set_caps(&(struct caps){ .effective = kept, .permitted = kept });
}

void sb_privileges_hide(void)
{
#ifndef SB_SANITIZED
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

/* No execve() from here on gives what we do not have, in threads that are begun from here on,
 * too. */
static void close_the_way_up(void)
{
	int number;

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* Refused without CAP_SETPCAP, and then no_new_privs has to do. */
	for (number = 0; number < CAPS_MAX && !prctl(PR_CAPBSET_DROP, number, 0, 0, 0); number++)
		;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static int become(const struct sb_owner *who)
{
	struct caps caps;
	int err = get_caps(&caps);

	if (err)
		return err;
	if (!(caps.effective & BIT(CAP_SETUID)) || !(caps.effective & BIT(CAP_SETGID)))
		return -EPERM;
	/* The groups first: it is the last thing that can be refused and undone by nobody. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setgroups(0, NULL) ||
	    setresgid(who->gid, who->gid, who->gid) || setresuid(who->uid, who->uid, who->uid))
		return -errno;
	/* Only the permitted ones were kept. */
	return set_caps(&caps);
}

const char *sb_privileges_filter(void)
{
	return sb_sandbox_version();
}

struct sb_owner sb_privileges_own_user(void)
{
	uint32_t id = OWN_USERS + (uint32_t)getpid();

	return (struct sb_owner){ .uid = id, .gid = id };
}

bool sb_privileges_begin(const struct sb_owner *who)
{
	static const struct sb_owner nobody = { .uid = NOBODY, .gid = NOBODY };
	int err;

	close_the_way_up();
	sb_privileges_hide();
	(void)sb_landlock_version(); /* to be told later */
	if (geteuid() != 0 || who->uid == 0)
		return false;
	err = become(who);
	/* It is not mapped here. */
	if (err == -EINVAL && who->uid >= OWN_USERS)
		err = become(&nobody);
	if (err)
		sb_debug("cannot become user %u: %s", who->uid, strerror(-err));
	sb_privileges_hide();
	return !err;
}

/* Threads that were begun and have not dropped their privileges; and what went wrong in one. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t has_changed;
	unsigned int nr_begun;
	int err;
} threads = { .lock = PTHREAD_MUTEX_INITIALIZER, .has_changed = PTHREAD_COND_INITIALIZER };

void sb_privileges_thread_begins(void)
{
	pthread_mutex_lock(&threads.lock);
	threads.nr_begun++;
	pthread_mutex_unlock(&threads.lock);
}

void sb_privileges_thread_done(int err)
{
	pthread_mutex_lock(&threads.lock);
	threads.nr_begun--;
	threads.err = threads.err ? threads.err : err;
	pthread_cond_signal(&threads.has_changed);
	pthread_mutex_unlock(&threads.lock);
}

static int wait_for_threads(void)
{
	int err;

	pthread_mutex_lock(&threads.lock);
	while (threads.nr_begun)
		pthread_cond_wait(&threads.has_changed, &threads.lock);
	err = threads.err;
	pthread_mutex_unlock(&threads.lock);
	return err;
}

void sb_privileges_thread(enum sb_privileges_role role)
{
	int err = keep(role);

	if (!err)
		err = sb_sandbox_thread();
	sb_privileges_thread_done(err);
}

int sb_privileges_settle(const struct sb_privileges_opts *opts)
{
	int err = keep(SB_ROLE_SESSION);

	if (!err)
		err = sb_sandbox_session(opts);
	return err ? err : wait_for_threads();
}

int sb_privileges_to_write(const struct sb_owner *who)
{
	(void)sb_privileges_begin(who);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return set_caps(&(struct caps){});
}

int sb_privileges_to_store(const char *dir)
{
	int err = sb_landlock(SB_LANDLOCK_WRITE, dir, false);

	return err ? err : sb_sandbox_storer();
}

int sb_privileges_to_start(void)
{
	sb_privileges_hide();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return sb_sandbox_starter();
}

static int confine_supervisor(void)
{
	struct sb_owner own = sb_privileges_own_user();
	int err = sb_privileges_to_write(&own);

	/* Not in the group of processes that kill(0, ...) ends. */
	(void)setpgid(0, 0);
	if (!err)
		err = sb_landlock(SB_LANDLOCK_NONE, NULL, false);
	return err ? err : sb_sandbox_supervisor();
}

int sb_privileges_to_signal(int pidfd)
{
	struct sb_owner own = sb_privileges_own_user();
	int err;

	(void)sb_privileges_begin(&own);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	err = keep(SB_ROLE_COMMAND);
	if (!err)
		err = sb_landlock(SB_LANDLOCK_NONE, NULL, true);
	return err ? err : sb_sandbox_signaller(pidfd);
}

int sb_privileges_to_load(void)
{
	int err;

	sb_privileges_hide();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	err = keep(SB_ROLE_LOADER);
	return err ? err : sb_sandbox_loader();
}

const struct sb_parser_opts sb_privileges_of_parsers = {
	.confine_supervisor = confine_supervisor,
	.confine_worker = sb_sandbox_worker,
};

int sb_privileges_spawner(void *who)
{
	int err;

	(void)sb_privileges_begin(who);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
	err = keep(SB_ROLE_READER);
	return err ? err : sb_sandbox_spawner();
}

int sb_privileges_reader(void *who)
{
	(void)who;
	return sb_sandbox_reader();
}

int sb_privileges_front(const struct sb_owner *who, const char *dir)
{
	int err = sb_privileges_to_write(who);

	tzset(); /* of a file that cannot be opened any more */
	if (!err)
		err = sb_landlock(SB_LANDLOCK_READ, dir, false);
	return err ? err : sb_sandbox_front();
}

int sb_privileges_answerer(void)
{
	return sb_sandbox_answerer();
}
