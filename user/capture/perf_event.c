// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/perf_event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/time.h"
#include "events/counter.h"

#define RECORD_BYTES_MAX 65536u /* perf_event_header.size has 16 bits */
/* No record of ours is longer: a path has 4 KiB (PATH_MAX). */
#define RECORD_ROOM	 8192u
#define FORMAT_LOST	 (1u << 4) /* PERF_FORMAT_LOST; headers may be older than the kernel */

int sb_perf_open(struct perf_event_attr *attr, int cpu)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int sb_perf_open_telling_lost(struct perf_event_attr *attr, int cpu, bool *ret_tells_lost)
{
	int fd;

	attr->read_format |= FORMAT_LOST;
	*ret_tells_lost = true;
	fd = sb_perf_open(attr, cpu);
	if (fd != -EINVAL)
		return fd;
	attr->read_format &= ~(uint64_t)FORMAT_LOST;
	*ret_tells_lost = false;
	return sb_perf_open(attr, cpu);
}

int sb_perf_open_timer(const struct sb_counter *counter, uint32_t freq_hz, int cpu)
{
	struct perf_event_attr attr = {
		.disabled = 1,
		/* Only clocks tick while a CPU is idle, and some PMUs refuse to be asked. */
		.exclude_idle = sb_counter_is_clock(counter),
	};

	sb_counter_set_attr(counter, &attr);
	if (!attr.sample_period) {
		attr.freq = 1;
		attr.sample_freq = freq_hz;
	}
	return sb_perf_open(&attr, cpu);
}

/* The clock is an event of periods, from its making on (perf_swevent_init_hrtimer() of
 * kernel/events/core.c); others keep to their frequency, of whole hertz. */
uint64_t sb_perf_timer_period_ns(const struct sb_counter *counter, uint32_t freq_hz)
{
	if (!sb_counter_is_clock(counter))
		return 0;
	return counter->period ? counter->period : SB_NS_PER_SEC / freq_hz;
}

int sb_perf_slow_down(int fd, const struct sb_counter *counter, uint32_t freq_hz, uint32_t divisor)
{
	uint64_t period_ns = sb_perf_timer_period_ns(counter, freq_hz);
	uint64_t period = period_ns ? period_ns : counter->period;
	uint64_t value = period ? period * divisor : (freq_hz + divisor / 2) / divisor;

	return ioctl(fd, PERF_EVENT_IOC_PERIOD, &value) ? -errno : 0;
}

int sb_cpus_online(sb_vec_u32 *cpus)
{
	sb_cleanup(sb_freep) char *text = NULL;
	size_t len;
	int err = sb_read_file("/sys/devices/system/cpu/online", 65536, &text, &len);

	if (err)
		return err;
	if (len && text[len - 1] == '\n')
		text[len - 1] = '\0';
	return sb_parse_list(text, INT32_MAX, cpus);
}

int sb_perf_ring_init(struct sb_perf_ring *ring, int fd, size_t nr_bytes)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	int err;

	*ring = (struct sb_perf_ring){ .fd = fd, .nr_bytes = nr_bytes };
	ring->wrapped = malloc(RECORD_BYTES_MAX);
	if (!ring->wrapped) {
		sb_perf_ring_release(ring);
		return -ENOMEM;
	}
	ring->page = mmap(NULL, page_bytes + nr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring->page == MAP_FAILED) {
		err = -errno;
		ring->page = NULL;
		sb_perf_ring_release(ring);
		return err;
	}
	return 0;
}

void sb_perf_ring_release(struct sb_perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, (size_t)sysconf(_SC_PAGESIZE) + ring->nr_bytes);
	free(ring->wrapped);
	if (ring->fd >= 0)
		close(ring->fd);
	*ring = (struct sb_perf_ring){ .fd = -1 };
}

/* The record at @at in one piece. */
static const struct perf_event_header *record_at(const struct sb_perf_ring *ring, uint64_t at)
{
	const char *data = (const char *)ring->page + sysconf(_SC_PAGESIZE);
	size_t offset = at & (ring->nr_bytes - 1), till_end = ring->nr_bytes - offset;
	const struct perf_event_header *record = (const void *)(data + offset);

	/* Records are multiples of 8, so the header itself is never split. */
	if (record->size <= till_end)
		return record;
	memcpy(ring->wrapped, data + offset, till_end);
	memcpy(ring->wrapped + till_end, data, record->size - till_end);
	return (const void *)ring->wrapped;
}

int sb_perf_ring_read(struct sb_perf_ring *ring,
		      int (*fn)(void *arg, const struct perf_event_header *record), void *arg)
{
	/* perf_event_open(2): read the data after the head, release the tail after the data. */
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	int err = 0;

	ring->was_full = head - tail + RECORD_ROOM > ring->nr_bytes;
	while (tail < head && !err) {
		const struct perf_event_header *record = record_at(ring, tail);
		uint16_t size = record->size;

		if (size < sizeof(*record))
			return -EBADMSG;
		err = fn(arg, record);
		tail += size;
		__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
	}
	return err;
}

int sb_perf_ring_lost(struct sb_perf_ring *ring, uint64_t *ret_nr)
{
	struct {
		uint64_t value, nr_lost;
	} now; /* "struct read_format" of perf_event_open(2) */

	ssize_t nr = read(ring->fd, &now, sizeof(now));

	if (nr != sizeof(now))
		return nr < 0 ? -errno : -EBADMSG;
	*ret_nr = now.nr_lost - ring->nr_lost;
	ring->nr_lost = now.nr_lost;
	return 0;
}
