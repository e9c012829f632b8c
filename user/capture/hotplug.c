// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/hotplug.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of uevents, the group of the kernel; udev speaks in another one (lib/kobject_uevent.c). */
#define UEVENTS_OF_KERNEL 1u
/* UEVENT_BUFFER_SIZE, and the path. */
#define UEVENT_BYTES_MAX  8192u

int sb_hotplug_open(void)
{
	const struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = UEVENTS_OF_KERNEL,
	};
	int fd, err;

	fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	if (fd < 0)
		return -errno;
	if (!bind(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* A message begins with "ACTION@PATH". */
static bool is_offline(const char *message, uint32_t *ret_cpu)
{
	static const char begin[] = "offline@/devices/system/cpu/cpu";
	size_t len = sizeof(begin) - 1;
	uint64_t cpu;

	if (strncmp(message, begin, len) || sb_parse_u64(message + len, INT32_MAX, &cpu))
		return false;
	*ret_cpu = (uint32_t)cpu;
	return true;
}

int sb_hotplug_read(int fd, sb_vec_u32 *gone)
{
	char message[UEVENT_BYTES_MAX + 1];
	struct sockaddr_nl from;
	struct iovec into = { .iov_base = message, .iov_len = UEVENT_BYTES_MAX };
	struct msghdr msg = { .msg_name = &from, .msg_iov = &into, .msg_iovlen = 1 };
	uint32_t cpu;
	ssize_t len;
	int err = 0;

	while (!err) {
		msg.msg_namelen = sizeof(from);
		len = recvmsg(fd, &msg, MSG_DONTWAIT);
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return errno == ENOBUFS ? -ENOBUFS : 0;
		message[len] = '\0';
		/* Whoever may can send to the group; the kernel is nobody. */
		if (!from.nl_pid && is_offline(message, &cpu))
			err = sb_vec_push(gone, cpu);
	}
	return err;
}
