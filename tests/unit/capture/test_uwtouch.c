// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pages brought in, as /proc/self/pagemap sees them; and one that never comes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "capture/uwtouch.h"

#define NR_PAGES 8u

static uint8_t *pages;
static size_t page_bytes;
static struct sb_uwtouch *touch;

static int setup(void **state)
{
	page_bytes = (size_t)getpagesize();
	pages = mmap(NULL, NR_PAGES * page_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	/* No huge page: one would bring in the neighbours. */
	madvise(pages, NR_PAGES * page_bytes, MADV_NOHUGEPAGE);
	return sb_uwtouch_new(&touch);
}

static int teardown(void **state)
{
	sb_uwtouch_free(touch);
	munmap(pages, NR_PAGES * page_bytes);
	return 0;
}

static uint64_t addr_of(uint32_t page)
{
	return (uint64_t)(uintptr_t)(pages + page * page_bytes);
}

/* Bit 63: present; Documentation/admin-guide/mm/pagemap.rst. */
static bool is_there(uint32_t page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	assert_int_equal(pread(fd, &entry, 8, (off_t)(addr_of(page) / page_bytes * 8)), 8);
	close(fd);
	return entry >> 63;
}

static void wait_for(uint64_t nr)
{
	while (sb_uwtouch_nr_touched(touch) < nr)
		poll(NULL, 0, 1);
	assert_int_equal(sb_uwtouch_nr_touched(touch), nr);
}

static void test_brings_in(void **state)
{
	uint32_t self = (uint32_t)getpid(), i;

	for (i = 0; i < NR_PAGES; i++)
		assert_false(is_there(i));
	assert_int_equal(sb_uwtouch_ask(touch, self, addr_of(3) + 77), 0);
	wait_for(1);
	for (i = 0; i < NR_PAGES; i++)
		assert_int_equal(is_there(i), i == 3);
	/* What does not exist is not counted. */
	assert_int_equal(sb_uwtouch_ask(touch, self, 8), 0);
	assert_int_equal(sb_uwtouch_ask(touch, INT32_MAX, addr_of(4)), 0);
	assert_int_equal(sb_uwtouch_ask(touch, self, addr_of(5)), 0);
	wait_for(2);
	assert_false(is_there(4));
	assert_true(is_there(5));
}

/* Return: a descriptor that is told of missing pages, and serves none; or -1. */
static int serve_pages_never(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = addr_of(0), .len = NR_PAGES * page_bytes },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Neither those who ask wait for it, nor the end of the run. */
static void test_never_comes(void **state)
{
	uint32_t self = (uint32_t)getpid(), nr = 0;
	struct pollfd fault = { .events = POLLIN };
	int err;

	fault.fd = serve_pages_never();
	if (fault.fd < 0) {
		printf("not tried: userfaultfd(2) is not there, or not for us\n");
		return;
	}
	assert_int_equal(sb_uwtouch_ask(touch, self, addr_of(0)), 0);
	assert_int_equal(poll(&fault, 1, -1), 1);
	assert_int_equal(fault.revents, POLLIN); /* now it waits */
	while (!(err = sb_uwtouch_ask(touch, self, addr_of(1))))
		assert_true(++nr < 10000);
	assert_int_equal(err, -EAGAIN);
	assert_int_equal(sb_uwtouch_nr_touched(touch), 0);
	sb_uwtouch_free(touch);
	touch = NULL;
	close(fault.fd); /* the page comes after all */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_brings_in, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never_comes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
