// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recorder/watchdog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/time.h"

/* Samplers come round once a second. */
#define STUCK_NS_MIN (3 * SB_NS_PER_SEC)
#define LOOKS	     4 /* in a period */
#define BEATS_BYTES  (SB_WATCH_PARTS_MAX * sizeof(uint64_t))
#define YEAR_US	     (366ull * 86400 * 1000000)

void sb_watch_notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	sb_cleanup(sb_closep) int fd = -1;
	size_t len = path ? strlen(path) : 0;

	if (!len || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

/* Return: 0: nobody asks us. */
static uint64_t asked_ns(void)
{
	const char *period = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t period_us, asked_pid;

	if (!period || sb_parse_u64(period, YEAR_US, &period_us))
		return 0;
	if (pid && (sb_parse_u64(pid, INT32_MAX, &asked_pid) || asked_pid != (uint64_t)getpid()))
		return 0;
	return period_us * 1000;
}

int sb_watch_init(struct sb_watch *watch)
{
	*watch = (struct sb_watch){ .period_ns = asked_ns(), .told_ns = sb_now_ns() };
	if (!watch->period_ns)
		return 0;
	watch->beats =
		mmap(NULL, BEATS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (watch->beats != MAP_FAILED)
		return 0;
	*watch = (struct sb_watch){};
	return -errno;
}

void sb_watch_release(struct sb_watch *watch)
{
	if (watch->beats)
		munmap(watch->beats, BEATS_BYTES);
	*watch = (struct sb_watch){};
}

void sb_watch_keep(const struct sb_watch *watch)
{
	if (watch->beats)
		(void)madvise(watch->beats, BEATS_BYTES, MADV_DONTFORK);
}

void sb_watch_beat(const struct sb_watch *watch, size_t part)
{
	if (watch->beats)
		__atomic_store_n(&watch->beats[part], sb_now_ns(), __ATOMIC_RELAXED);
}

int sb_watch_beat_ms(const struct sb_watch *watch)
{
	uint64_t ms = watch->period_ns / LOOKS / SB_NS_PER_MS + 1;

	if (!watch->period_ns)
		return -1;
	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

bool sb_watch_is_stuck(const struct sb_watch *watch, size_t part)
{
	uint64_t limit_ns = watch->period_ns / 2, now_ns = sb_now_ns(), beat_ns;

	if (!watch->beats)
		return false;
	beat_ns = __atomic_load_n(&watch->beats[part], __ATOMIC_RELAXED);
	if (limit_ns < STUCK_NS_MIN)
		limit_ns = STUCK_NS_MIN;
	return now_ns > beat_ns && now_ns - beat_ns > limit_ns;
}

bool sb_watch_is_due(const struct sb_watch *watch)
{
	return watch->period_ns && sb_now_ns() - watch->told_ns >= watch->period_ns / LOOKS;
}

bool sb_watch_tell(struct sb_watch *watch, const char *stuck)
{
	bool is_new = stuck && !watch->is_stuck;
	char status[128]; /* names have 80 bytes at most (recorder.c) */

	if (stuck) {
		snprintf(status, sizeof(status), "STATUS=%s is stuck", stuck);
		if (is_new)
			sb_watch_notify(status);
	} else {
		sb_watch_notify(watch->is_stuck ? "WATCHDOG=1\nSTATUS=recording" : "WATCHDOG=1");
		watch->told_ns = sb_now_ns();
	}
	watch->is_stuck = stuck;
	return is_new;
}
