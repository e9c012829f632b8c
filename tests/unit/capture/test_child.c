// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "capture/child.h"

static struct sb_owner self(void)
{
	return (struct sb_owner){ .uid = geteuid(), .gid = getegid() };
}

/* Return: 0 when it runs, or why not. */
static int start(struct sb_child *child)
{
	struct pollfd pollfd = { .fd = sb_child_answer_fd(child), .events = POLLIN };

	assert_false(sb_child_has_run(child));
	assert_int_equal(sb_child_answer(child), -EAGAIN);
	sb_child_start(child);
	assert_int_equal(poll(&pollfd, 1, -1), 1);
	return sb_child_answer(child);
}

/* Run a shell line to its end. Return: its status. */
static int status_of(char *line)
{
	char *argv[] = { "sh", "-c", line, NULL };
	struct sb_child *child;
	int status;

	assert_int_equal(sb_child_new(argv, self(), &child), 0);
	assert_int_equal(start(child), 0);
	status = sb_child_wait(child);
	assert_true(sb_child_has_ended(child));
	sb_child_free(child);
	return status;
}

static void test_status(void **state)
{
	assert_int_equal(status_of("exit 0"), 0);
	assert_int_equal(status_of("exit 7"), 7);
	assert_int_equal(status_of("kill -9 $$"), 128 + 9);
	assert_int_equal(status_of("kill -15 $$"), 128 + 15);
}

static int start_of(char *path)
{
	char *argv[] = { path, NULL };
	struct sb_child *child;
	int err;

	assert_int_equal(sb_child_new(argv, self(), &child), 0);
	err = start(child);
	/* It failed for good. */
	assert_false(sb_child_has_run(child));
	assert_int_equal(sb_child_answer(child), err);
	sb_child_free(child);
	/* Nothing is left of it. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return err;
}

static void test_exec_failure(void **state)
{
	assert_int_equal(start_of("no-such-command-here"), -ENOENT);
	assert_int_equal(start_of("/no/such/file"), -ENOENT);
	assert_int_equal(start_of("/etc/passwd"), -EACCES);
	assert_int_equal(start_of("/"), -EACCES);
}

/* It exists, has not begun, and never does when it is not started. */
static void test_waits(void **state)
{
	char path[] = "/tmp/test_child.XXXXXX", line[64];
	char *argv[] = { "sh", "-c", line, NULL };
	struct sb_child *child;
	struct stat st;
	pid_t pid;

	close(mkstemp(path));
	snprintf(line, sizeof(line), "echo ran > %s", path);
	assert_int_equal(sb_child_new(argv, self(), &child), 0);
	pid = sb_child_pid(child);
	assert_int_equal(kill(pid, 0), 0);
	assert_false(sb_child_has_ended(child));
	sb_child_free(child);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 0);
	unlink(path);
}

static void test_fd_and_kill(void **state)
{
	char *argv[] = { "sleep", "1000", NULL };
	struct sb_child *child;
	struct pollfd pollfd;

	assert_int_equal(sb_child_new(argv, self(), &child), 0);
	assert_int_equal(start(child), 0);
	pollfd = (struct pollfd){ .fd = sb_child_fd(child), .events = POLLIN };
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(sb_child_kill(child, SIGTERM), 0);
	assert_int_equal(poll(&pollfd, 1, -1), 1);
	assert_int_equal(sb_child_wait(child), 128 + SIGTERM);
	assert_int_equal(sb_child_wait(child), 128 + SIGTERM);
	assert_int_equal(sb_child_kill(child, SIGTERM), -ESRCH);
	sb_child_free(child);
	sb_child_free(NULL);
}

/* What we change afterwards is not passed on: a blocked signal still ends the command. */
static void test_signals(void **state)
{
	char *argv[] = { "sh", "-c", "kill -USR1 $$; kill -PIPE $$; exit 3", NULL };
	struct sb_child *child;
	sigset_t block, old;

	assert_int_equal(sb_child_new(argv, self(), &child), 0);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	assert_int_equal(sigprocmask(SIG_BLOCK, &block, &old), 0);
	assert_int_equal(start(child), 0);
	assert_int_equal(sb_child_wait(child), 128 + SIGUSR1);
	assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
	sb_child_free(child);
}

/* Our line to it is gone when it runs. */
static void test_descriptors(void **state)
{
	char line[] = "for i in 3 4 5 6 7 8 9; do "
		      "case \"$(readlink /proc/$$/fd/$i)\" in socket:*) exit 1;; esac; done";

	assert_int_equal(status_of(line), 0);
}

static void test_other_user(void **state)
{
	char line[] = "test \"$(id -u):$(id -g):$(id -G):$USER:$HOME:$SUDO_UID\" = "
		      "65534:65534:65534:nobody:/nonexistent: && test -n \"$PATH\"";
	char *argv[] = { "sh", "-c", line, NULL };
	struct sb_owner nobody = { .uid = 65534, .gid = 65534 };
	struct sb_child *child;

	if (geteuid()) {
		/* Nobody may become somebody else: it is said, not ignored. */
		assert_int_equal(sb_child_new(argv, nobody, &child), 0);
		assert_int_equal(start(child), -EPERM);
		sb_child_free(child);
		return;
	}
	setenv("SUDO_UID", "65534", 1);
	assert_int_equal(sb_child_new(argv, nobody, &child), 0);
	unsetenv("SUDO_UID");
	assert_int_equal(start(child), 0);
	assert_int_equal(sb_child_wait(child), 0);
	sb_child_free(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),	   cmocka_unit_test(test_exec_failure),
		cmocka_unit_test(test_waits),	   cmocka_unit_test(test_fd_and_kill),
		cmocka_unit_test(test_signals),	   cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_other_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
