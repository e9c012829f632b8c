// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fsuser.h"
#include "base/peer.h"
#include "base/vec.h"
#include "workers/privileges.h"

/* More than are open when it is created. */
#define FDS_MAX 4096

struct sb_child {
	pid_t pid;
	int pidfd; /* to wait for its end */
	struct sb_peer signaller;
	int fd; /* a byte to it: go, end of file: do not; from it: an errno, end of file: it runs */
	int err;    /* why the command does not run; 0: it does, or it is not known yet */
	int status; /* after the wait */
	bool is_started, is_waited;
};

/* Everything the new process needs, made before fork(): after it only system calls are safe. */
struct plan {
	char *const *argv;
	char **envp;
	struct sb_owner owner;
	bool is_other_user;
	sb_vec_gid groups;
	SB_VEC(char *) env;
};

static void plan_release(struct plan *plan)
{
	size_t i;

	for (i = 0; i < plan->env.nr; i++)
		free(plan->env.at[i]);
	sb_vec_release(&plan->env);
	sb_vec_release(&plan->groups);
}

static int add_env(struct plan *plan, const char *name, const char *value)
{
	char *entry;

	if (asprintf(&entry, "%s=%s", name, value) < 0)
		return -ENOMEM;
	if (sb_vec_push(&plan->env, entry)) {
		free(entry);
		return -ENOMEM;
	}
	return 0;
}

/* Variables that speak of root, or of a sudo which the command is not under any more. */
static bool is_of_root(const char *entry)
{
	static const char *const names[] = {
		"HOME=",     "USER=",	  "LOGNAME=",	"SHELL=",     "MAIL=",
		"SUDO_UID=", "SUDO_GID=", "SUDO_USER=", "SUDO_HOME=", "SUDO_COMMAND=",
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(names); i++)
		if (!strncmp(entry, names[i], strlen(names[i])))
			return true;
	return false;
}

static int plan_env(struct plan *plan, const struct passwd *passwd)
{
	char **entry, *copy;
	int err = 0;

	for (entry = environ; *entry && !err; entry++) {
		if (is_of_root(*entry))
			continue;
		copy = strdup(*entry);
		if (!copy)
			return -ENOMEM;
		err = sb_vec_push(&plan->env, copy);
		if (err)
			free(copy);
	}
	if (passwd) {
		err = err ? err : add_env(plan, "HOME", passwd->pw_dir);
		err = err ? err : add_env(plan, "USER", passwd->pw_name);
		err = err ? err : add_env(plan, "LOGNAME", passwd->pw_name);
		err = err ? err : add_env(plan, "SHELL", passwd->pw_shell);
	}
	err = err ? err : sb_vec_push(&plan->env, NULL);
	plan->envp = plan->env.at;
	return err;
}

static int plan_init(struct plan *plan, char *const *argv, struct sb_owner owner)
{
	int err;

	*plan = (struct plan){ .argv = argv, .envp = environ, .owner = owner };
	plan->is_other_user = owner.uid != geteuid() || owner.gid != getegid();
	if (!plan->is_other_user)
		return 0;
	err = sb_user_groups(&plan->owner, &plan->groups);
	return err ? err : plan_env(plan, getpwuid(owner.uid));
}

static int become(const struct plan *plan)
{
	if (!plan->is_other_user)
		return 0;
	if (setgroups(plan->groups.nr, plan->groups.at) ||
	    setresgid(plan->owner.gid, plan->owner.gid, plan->owner.gid) ||
	    setresuid(plan->owner.uid, plan->owner.uid, plan->owner.uid))
		return -errno;
	return 0;
}

/*
 * Close what execve(2) would close, which may never end: our other processes end when nobody has
 * their sockets any more.
 */
static void close_ours(int except)
{
	int fd, flags;

	for (fd = STDERR_FILENO + 1; fd < FDS_MAX; fd++) {
		flags = fd == except ? 0 : fcntl(fd, F_GETFD);
		if (flags > 0 && (flags & FD_CLOEXEC))
			close(fd);
	}
}

/* The new process, until it is the command. */
static _Noreturn void be_child(const struct plan *plan, int fd)
{
	ssize_t n;
	char go;
	int err;

	err = become(plan);
	if (!err) {
		do
			n = read(fd, &go, 1);
		while (n < 0 && errno == EINTR);
		if (n != 1)
			_exit(0);
		close_ours(fd);
		execvpe(plan->argv[0], plan->argv, plan->envp);
		err = -errno;
	}
	/* Nobody is left to tell if this fails. */
	(void)send(fd, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(127);
}

static int fork_child(struct sb_child *child, const struct plan *plan)
{
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	child->fd = fds[0];
	child->pid = fork();
	err = child->pid < 0 ? -errno : 0;
	if (!child->pid) {
		/* Our end, or it would never see us die. */
		close(fds[0]);
		be_child(plan, fds[1]);
	}
	close(fds[1]);
	if (err)
		return err;
	child->pidfd = pidfd_open(child->pid, 0);
	return child->pidfd < 0 ? -errno : 0;
}

/*
 * Who sends it signals: a process that can do nothing else. pidfd_send_signal(2) takes a descriptor
 * of any /proc/PID as well, and a session opens these all the time: so it is not to have that call.
 */
static void be_signaller(void *arg, int fd)
{
	const struct sb_child *child = arg;
	const int fds[] = { child->fd, STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	int32_t sig, err;
	size_t i;

	(void)prctl(PR_SET_NAME, "stackbpf-signal");
	/* The command is not to wait for our end as well. */
	for (i = 0; i < SB_ARRAY_SIZE(fds); i++)
		close(fds[i]);
	if (sb_privileges_to_signal(child->pidfd))
		return;
	while (!sb_peer_receive(fd, &sig, sizeof(sig), NULL, 0)) {
		err = pidfd_send_signal(child->pidfd, sig, NULL, 0) ? -errno : 0;
		if (sb_peer_send(fd, &err, sizeof(err), NULL, 0))
			return;
	}
}

int sb_child_new(char *const *argv, struct sb_owner owner, struct sb_child **ret_child)
{
	struct sb_child *child = calloc(1, sizeof(*child));
	struct plan plan;
	int err;

	if (!child)
		return -ENOMEM;
	child->fd = child->pidfd = -1;
	err = plan_init(&plan, argv, owner);
	if (!err)
		err = fork_child(child, &plan);
	plan_release(&plan);
	if (!err)
		err = sb_peer_new(be_signaller, child, &child->signaller);
	if (err) {
		sb_child_free(child);
		return err;
	}
	*ret_child = child;
	return 0;
}

void sb_child_free(struct sb_child *child)
{
	if (!child)
		return;
	if (child->fd >= 0) {
		close(sb_take_fd(child->fd));
		if (child->is_started)
			(void)sb_child_kill(child, SIGKILL);
		else if (child->pid > 0)
			sb_child_wait(child);
	}
	if (child->pidfd >= 0)
		close(child->pidfd);
	sb_peer_release(&child->signaller);
	free(child);
}

pid_t sb_child_pid(const struct sb_child *child)
{
	return child->pid;
}

int sb_child_fd(const struct sb_child *child)
{
	return child->pidfd;
}

void sb_child_start(struct sb_child *child)
{
	child->is_started = true;
	/* A failure here is its end, for want of the right to become the user: what it said
	 * counts. */
	(void)send(child->fd, "g", 1, MSG_NOSIGNAL);
}

int sb_child_answer_fd(const struct sb_child *child)
{
	return child->fd;
}

int sb_child_answer(struct sb_child *child)
{
	int err = 0;
	ssize_t n;

	if (child->fd < 0)
		return child->err;
	n = recv(child->fd, &err, sizeof(err), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	close(sb_take_fd(child->fd));
	if (n == 0)
		return 0;
	sb_child_wait(child);
	return child->err = n == sizeof(err) && err < 0 ? err : -EIO;
}

bool sb_child_has_run(const struct sb_child *child)
{
	return child->fd < 0 && !child->err;
}

int sb_child_kill(const struct sb_child *child, int sig)
{
	int fd = child->signaller.fd;
	int32_t number = sig, answer = 0;
	int err = sb_peer_send(fd, &number, sizeof(number), NULL, 0);

	if (!err)
		err = sb_peer_receive(fd, &answer, sizeof(answer), NULL, 0);
	return err < 0 ? err : answer;
}

bool sb_child_has_ended(const struct sb_child *child)
{
	struct pollfd pollfd = { .fd = child->pidfd, .events = POLLIN };

	return child->is_waited || poll(&pollfd, 1, 0) == 1;
}

int sb_child_wait(struct sb_child *child)
{
	int status;

	if (child->is_waited)
		return child->status;
	while (waitpid(child->pid, &status, 0) < 0) {
		/* ECHILD: whoever started us ignores SIGCHLD, so the status is gone. */
		if (errno != EINTR) {
			status = 0;
			break;
		}
	}
	child->is_waited = true;
	child->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return child->status;
}
