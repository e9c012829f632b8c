// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Descriptors that come with messages nobody wants; a signal to a child that has just been
 * forked. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/peer.h"

static int pair[2];

static int setup(void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int teardown(void **state)
{
	close(pair[0]);
	close(pair[1]);
	return 0;
}

/* The lowest descriptor that is free. */
static int next_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

/* Receive a message of @len bytes; its descriptors are not wanted. */
static void receive_wrong(size_t len, size_t fds_max, int want)
{
	const int free_fd = next_fd();
	int fds[SB_PEER_FDS_MAX] = { -2, -2 };
	char message[8];
	size_t i;

	assert_int_equal(sb_peer_receive(pair[1], message, len, fds, fds_max), want);
	/* Who closes what it was not given closes what others have opened since. */
	for (i = 0; i < fds_max; i++)
		assert_int_equal(fds[i], -1);
	assert_int_equal(next_fd(), free_fd);
}

static void test_errors_leave_no_descriptor(void **state)
{
	const int fds[] = { pair[0], pair[1] };

	assert_int_equal(sb_peer_send(pair[0], "1234", 4, fds, 2), 0);
	receive_wrong(8, 2, -EPROTO);
	assert_int_equal(sb_peer_send(pair[0], "12345678", 8, fds, 2), 0);
	receive_wrong(4, 2, -EPROTO);
	assert_int_equal(sb_peer_send(pair[0], "1234", 4, fds, 2), 0);
	receive_wrong(4, 1, -EPROTO);
	assert_int_equal(sb_peer_send(pair[0], "1234", 4, fds, 1), 0);
	receive_wrong(4, 0, -EPROTO);
	close(pair[0]);
	receive_wrong(4, 2, -ECHILD);
}

static void test_descriptors(void **state)
{
	const int fds[] = { pair[0], pair[1] };
	int got[SB_PEER_FDS_MAX];
	char message[4];

	assert_int_equal(sb_peer_send(pair[0], "1234", 4, fds, 1), 0);
	assert_int_equal(sb_peer_receive(pair[1], message, 4, got, 2), 1);
	assert_true(got[0] >= 0 && got[1] == -1);
	close(got[0]);
}

static bool is_early;

/* Runs in a child before all else does. */
static void interrupt_early(void)
{
	if (is_early)
		(void)raise(SIGINT);
}

static void say_hello(void *arg, int fd)
{
	(void)sb_peer_send(fd, arg, 4, NULL, 0);
}

/* Ctrl-C comes to a child, too, and it may come before the child runs for the first time. */
static void test_early_signal(void **state)
{
	struct sb_peer peer;
	char message[4];
	sigset_t mask;

	assert_int_equal(pthread_atfork(NULL, NULL, interrupt_early), 0);
	is_early = true;
	assert_int_equal(sb_peer_new(say_hello, "1234", &peer), 0);
	is_early = false;
	assert_int_equal(sb_peer_receive(peer.fd, message, sizeof(message), NULL, 0), 0);
	assert_memory_equal(message, "1234", 4);
	sb_peer_release(&peer);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
	assert_int_equal(sigismember(&mask, SIGINT), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_errors_leave_no_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descriptors, setup, teardown),
		cmocka_unit_test(test_early_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
