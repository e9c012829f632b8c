// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "views/view.h"

/* Bytes that an iterator is asked for at a time. */
#define READ_BYTES 4096u

SB_DEFINE_CLEANUP(struct bpf_link, bpf_link__destroy)

/* Read until the end. A read may end inside a record. EAGAIN: the iterator passed so many tasks
 * without output that the kernel lets others run first. */
static int read_all(int fd, struct sb_str *bytes)
{
	ssize_t n;
	int err;

	for (;;) {
		err = sb_str_reserve(bytes, READ_BYTES);
		if (err)
			return err;
		n = read(fd, bytes->s + bytes->len, READ_BYTES);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		bytes->len += (size_t)n;
		bytes->s[bytes->len] = '\0';
	}
}

int sb_iter_run(const struct bpf_program *iter, struct sb_str *bytes)
{
	sb_cleanup(bpf_link__destroyp) struct bpf_link *link = bpf_program__attach_iter(iter, NULL);
	sb_cleanup(sb_closep) int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -errno;

	return fd < 0 ? fd : read_all(fd, bytes);
}
