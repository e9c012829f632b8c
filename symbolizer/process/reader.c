// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The caller's side of the readers: see reader.h.
 *
 * A request and its answer are in memory that caller and reader share, and two futexes say whose
 * turn it is. While it waits, the caller looks at the state of its reader every few milliseconds.
 * A reader that sleeps, and neither answers nor makes progress, waits for the process or file that
 * it accesses. A reader that could run but gets no CPU does not: a busy machine is no reason to
 * give up. The time that a reader slept in requests that it answered is added up for each process
 * and each file system, so that nobody can slow us down by answering at the last moment each time.
 */
#include "symbolizer/process/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/time.h"
#include "symbolizer/process/pagemap.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader_priv.h"

/* Time between two looks at a reader; reading its state takes 10 us. */
#define SLICE_NS	  (10 * SB_NS_PER_MS)
/* Bound of the time blocked in one request with progress in between: a file that is copied. */
#define TOTAL_NS	  (2 * SB_NS_PER_SEC)
/*
 * Bound of one request that waits for a CPU or is busy; beyond it something is wrong with the
 * reader.
 */
#define STARVED_NS	  (20 * SB_NS_PER_SEC)
/* A known local file system gets so many times the patience. */
#define LOCAL_PATIENCE	  10u
/* At the end of the run: patience for one request, and for all threads together. */
#define HURRY_PATIENCE_NS (50 * SB_NS_PER_MS)
#define HURRY_TOTAL_NS	  (500 * SB_NS_PER_MS)
/* The state of one calling thread. */
struct seat {
	struct sb_reader_area *area; /* shared with the reader, or, without any, our own */
	struct sb_reader_state state;
	pid_t pid; /* 0: there is no reader */
	int socket_fd;
	/* Of the request of sb_reader_ahead() that is under way; else none. */
	const struct sb_reader_want *wants;
	uint32_t nr_wants;
	struct sb_reader_aheads aheads;
	struct seat *next;
};

static struct {
	struct sb_reader_opts opts;
	struct sb_peer spawner; /* pid 0: accesses are made by their callers */
	int settle_err;
	bool is_settled;
	pthread_mutex_t lock; /* of all below; never held while somebody waits for a reader */
	struct seat *seats;
	uint64_t dead_cpu_ns;
	struct sb_reader_stats stats; /* atomic */
	bool is_hurried;	      /* atomic */
	uint64_t hurry_ns;	      /* atomic: what was waited since */
} readers = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t seat_key;
static __thread struct seat *own_seat;

static void count(uint64_t *at)
{
	__atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
}

/* Readers. */

/* Send a request to the spawner, which answers at once. */
static int order(const struct sb_reader_spawn_request *request,
		 struct sb_reader_spawn_answer *ret_answer, int *ret_fds)
{
	int err = sb_reader_settle();

	if (err)
		return err;
	pthread_mutex_lock(&readers.lock);
	err = sb_peer_send(readers.spawner.fd, request, sizeof(*request), NULL, 0);
	if (!err && ret_answer)
		err = sb_peer_receive(readers.spawner.fd, ret_answer, sizeof(*ret_answer), ret_fds,
				      2);
	pthread_mutex_unlock(&readers.lock);
	return err < 0 ? err : 0;
}

/* Abandon the reader. Its memory is not used again, because the reader may still write to it. */
static void abandon(struct seat *seat)
{
	const struct sb_reader_spawn_request request = { SB_READER_ABANDON, seat->pid };
	uint64_t cpu_ns = sb_process_time_ns(seat->pid);

	(void)order(&request, NULL, NULL);
	pthread_mutex_lock(&readers.lock);
	readers.dead_cpu_ns += cpu_ns;
	munmap(seat->area, sizeof(*seat->area));
	seat->area = NULL;
	seat->pid = 0;
	pthread_mutex_unlock(&readers.lock);
	sb_closep(&seat->socket_fd);
	seat->socket_fd = -1;
}

/* Return: 0 or a negative errno: -EAGAIN when too many were abandoned. */
static int start_reader(struct seat *seat)
{
	const struct sb_reader_spawn_request request = { .order = SB_READER_SPAWN };
	struct sb_reader_spawn_answer said = {};
	int fds[2] = { -1, -1 }, err;
	struct sb_reader_area *area;

	err = order(&request, &said, fds);
	if (!err)
		err = said.err;
	if (!err && fds[1] < 0)
		err = -EPROTO;
	area = err ? MAP_FAILED
		   : mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	sb_closep(&fds[0]);
	if (area == MAP_FAILED) {
		sb_closep(&fds[1]);
		return err ? err : -ENOMEM;
	}
	pthread_mutex_lock(&readers.lock);
	seat->area = area;
	seat->pid = said.pid;
	pthread_mutex_unlock(&readers.lock);
	seat->socket_fd = fds[1];
	count(&readers.stats.nr_readers);
	return 0;
}

static void free_seat(void *arg)
{
	struct seat *seat = arg, **at;

	own_seat = NULL;
	if (seat->pid)
		abandon(seat);
	else
		free(seat->area);
	sb_closep(&seat->state.entry_fd);
	sb_closep(&seat->state.original_fd);
	sb_reader_mounts_release(&seat->state.mounts);
	sb_str_release(&seat->aheads.data);
	pthread_mutex_lock(&readers.lock);
	for (at = &readers.seats; *at; at = &(*at)->next) {
		if (*at == seat) {
			*at = seat->next;
			break;
		}
	}
	pthread_mutex_unlock(&readers.lock);
	free(seat);
}

static void make_key(void)
{
	(void)pthread_key_create(&seat_key, free_seat);
}

static struct seat *seat_of_thread(void)
{
	struct seat *seat = own_seat;

	if (seat)
		return seat;
	pthread_once(&key_once, make_key);
	seat = calloc(1, sizeof(*seat));
	if (!seat)
		return NULL;
	seat->socket_fd = seat->state.entry_fd = seat->state.original_fd = -1;
	if (pthread_setspecific(seat_key, seat)) {
		free(seat);
		return NULL;
	}
	pthread_mutex_lock(&readers.lock);
	seat->next = readers.seats;
	readers.seats = seat;
	pthread_mutex_unlock(&readers.lock);
	return own_seat = seat;
}

/* Waiting. */

struct wait {
	struct seat *seat;
	uint64_t begin_ns, looked_ns;
	uint64_t blocked_ns, total_ns; /* without progress; altogether */
	uint32_t progress;
	uint32_t part; /* of sb_reader_ahead(): all of these count from when it began */
};

void sb_reader_hurry(void)
{
	__atomic_store_n(&readers.is_hurried, true, __ATOMIC_RELAXED);
}

/*
 * Return: whether the run is about to end: threads have its signal blocked, so it may be pending.
 */
static bool is_hurried(void)
{
	sigset_t pending;

	if (__atomic_load_n(&readers.is_hurried, __ATOMIC_RELAXED))
		return true;
	if (sigpending(&pending) ||
	    (sigismember(&pending, SIGINT) != 1 && sigismember(&pending, SIGTERM) != 1))
		return false;
	sb_reader_hurry();
	return true;
}

/* Return: the state in /proc/PID/stat; '\0': no such process. A reader's entry never blocks. */
static char state_of(pid_t pid)
{
	struct sb_procfs_stat stat;

	return sb_procfs_stat((uint32_t)pid, &stat) ? '\0' : stat.state;
}

/*
 * Each access of sb_reader_ahead() may take as long as if it were the only one. The index must
 * increase, so that a reader that lies about it is late, too.
 */
static void look_at_part(struct wait *wait, uint64_t now_ns)
{
	uint32_t part = __atomic_load_n(&wait->seat->area->part, __ATOMIC_RELAXED);

	if (part <= wait->part || part >= wait->seat->nr_wants)
		return;
	wait->part = part;
	wait->begin_ns = now_ns;
	wait->blocked_ns = wait->total_ns = 0;
}

static bool is_beyond_hurry(void)
{
	return __atomic_load_n(&readers.is_hurried, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&readers.hurry_ns, __ATOMIC_RELAXED) >= HURRY_TOTAL_NS;
}

/* Return: 0: continue to wait; -ETIMEDOUT: the reader is late; -ECHILD: it has ended. */
static int look_at(struct wait *wait)
{
	uint64_t now_ns = sb_now_ns(), slice_ns = now_ns - wait->looked_ns, patience_ns;
	uint32_t progress = __atomic_load_n(&wait->seat->area->progress, __ATOMIC_RELAXED);
	char state = state_of(wait->seat->pid);

	wait->looked_ns = now_ns;
	look_at_part(wait, now_ns);
	if (!state || state == 'Z' || state == 'X')
		return -ECHILD;
	if (progress != wait->progress)
		wait->blocked_ns = 0;
	wait->progress = progress;
	/* If the last look was longer ago, it is unknown what the reader did meanwhile. */
	if (state != 'R') {
		slice_ns = slice_ns > 2 * SLICE_NS ? 2 * SLICE_NS : slice_ns;
		wait->blocked_ns += slice_ns;
		wait->total_ns += slice_ns;
	}
	patience_ns = readers.opts.patience_ns;
	if (wait->blocked_ns >= patience_ns &&
	    sb_reader_is_local(__atomic_load_n(&wait->seat->area->dev, __ATOMIC_RELAXED)))
		patience_ns *= LOCAL_PATIENCE;
	if (is_hurried()) {
		__atomic_fetch_add(&readers.hurry_ns, slice_ns, __ATOMIC_RELAXED);
		patience_ns = patience_ns < HURRY_PATIENCE_NS ? patience_ns : HURRY_PATIENCE_NS;
	}
	if (wait->blocked_ns >= patience_ns || wait->total_ns >= TOTAL_NS ||
	    now_ns - wait->begin_ns >= STARVED_NS || (wait->seat->nr_wants && is_beyond_hurry()))
		return -ETIMEDOUT;
	return 0;
}

static int wait_for_answer(struct wait *wait, uint32_t asked)
{
	static const struct timespec slice = { .tv_nsec = SLICE_NS };
	uint32_t *answered = &wait->seat->area->answered, at;
	int err = 0;

	while (!err && (at = __atomic_load_n(answered, __ATOMIC_ACQUIRE)) != asked) {
		(void)syscall(SYS_futex, answered, FUTEX_WAIT, at, &slice, NULL, 0);
		if (__atomic_load_n(answered, __ATOMIC_ACQUIRE) != asked &&
		    sb_now_ns() - wait->looked_ns >= SLICE_NS)
			err = look_at(wait);
	}
	return __atomic_load_n(answered, __ATOMIC_ACQUIRE) == asked ? 0 : err;
}

/*
 * What came without being asked for is none of ours. Return: 0, and the descriptor of the original
 * is in @seat if it is one of a copy; or a negative errno.
 */
static int take_fd(struct seat *seat, uint32_t asked, int *ret_fd)
{
	struct pollfd poll_fd = { .fd = seat->socket_fd, .events = POLLIN };
	int fds[2] = { -1, -1 }, nr;
	uint32_t number;

	if (poll(&poll_fd, 1, 0) != 1)
		return -EPROTO;
	nr = sb_peer_receive(seat->socket_fd, &number, sizeof(number), fds, 2);
	if (nr < 0)
		return nr;
	if (nr == 1 + !!seat->area->answer.is_copy && number == asked) {
		*ret_fd = fds[0];
		seat->state.original_fd = fds[1];
		return 0;
	}
	sb_closep(&fds[0]);
	sb_closep(&fds[1]);
	return -EPROTO;
}

static void note_answer(struct seat *seat)
{
	struct sb_reader_area *area = seat->area;
	uint64_t blocked_ns;
	uint32_t i;

	for (i = 0; i < seat->nr_wants; i++) {
		blocked_ns = __atomic_load_n(&area->parts[i].blocked_ns, __ATOMIC_RELAXED);
		if (!blocked_ns)
			continue;
		area->request.tgid = seat->wants[i].tgid;
		sb_reader_blame(&area->request, 0, blocked_ns, false);
	}
	if (sb_reader_is_of_file(&area->request) && area->answer.is_local) {
		sb_reader_note_local(area->dev);
		return;
	}
	if (area->answer.blocked_ns)
		sb_reader_blame(&area->request, area->dev, area->answer.blocked_ns, false);
}

/* Return: the error of the access. */
static int give_up(const struct wait *wait, int err)
{
	struct sb_reader_area *area = wait->seat->area;
	bool is_at_fault =
		wait->blocked_ns >= readers.opts.patience_ns || wait->total_ns >= TOTAL_NS;

	if (err == -ETIMEDOUT) {
		count(&readers.stats.nr_abandoned);
		if (wait->seat->nr_wants)
			area->request.tgid = wait->seat->wants[wait->part].tgid;
		/* At the end of the run the wait is too short to blame anybody. */
		if (is_at_fault && !sb_reader_is_local(area->dev))
			sb_reader_blame(&area->request, area->dev, wait->total_ns, true);
	} else {
		count(&readers.stats.nr_crashed);
		err = -EIO;
	}
	abandon(wait->seat);
	return err;
}

/* Return: 0 when there is an answer; or a negative errno, and then the reader was abandoned. */
static int ask(struct seat *seat, int root_fd)
{
	struct sb_reader_area *area = seat->area;
	uint32_t asked = area->asked + 1;
	struct wait wait = { .seat = seat, .begin_ns = sb_now_ns() };
	int err = 0;

	wait.looked_ns = wait.begin_ns;
	wait.progress = area->progress;
	area->request.has_root_fd = root_fd >= 0;
	if (root_fd >= 0)
		err = sb_peer_send(seat->socket_fd, &asked, sizeof(asked), &root_fd, 1);
	if (!err) {
		__atomic_store_n(&area->asked, asked, __ATOMIC_RELEASE);
		(void)syscall(SYS_futex, &area->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
		err = wait_for_answer(&wait, asked);
	}
	if (!err)
		note_answer(seat);
	else
		err = give_up(&wait, err);
	return err;
}

/*
 * Make sure that @seat has an area, and a reader if there is a spawner.
 * Return: 0; -ENOMEM; or -ETIMEDOUT when no reader could be started.
 */
static int need_area(struct seat *seat)
{
	int err;

	if (seat->area)
		return 0;
	if (!readers.spawner.pid) {
		seat->area = calloc(1, sizeof(*seat->area));
		return seat->area ? 0 : -ENOMEM;
	}
	err = is_beyond_hurry() ? -ETIMEDOUT : start_reader(seat);
	if (err)
		count(&readers.stats.nr_refused);
	return err && err != -ENOMEM ? -ETIMEDOUT : err;
}

/* Get the seat of this thread, to fill in its request. Return: 0, or as need_area(). */
static int begin_access(enum sb_reader_op op, uint32_t tgid, struct seat **ret_seat)
{
	struct seat *seat = seat_of_thread();
	int err = seat ? need_area(seat) : -ENOMEM;

	if (err)
		return err;
	seat->area->request.op = op;
	seat->area->request.tgid = tgid;
	seat->area->request.is_first = seat->area->request.is_other = 0;
	seat->area->request.path[0] = '\0';
	*ret_seat = seat;
	return 0;
}

/*
 * Return: what the access returned, or -ETIMEDOUT: it was not made, or not finished; then the seat
 * has no area any more. *ret_fd: a descriptor that is the caller's, or -1.
 */
static int64_t make_access(struct seat *seat, int root_fd, int *ret_fd)
{
	struct sb_reader_request *request = &seat->area->request;
	int err, fd = -1;

	*ret_fd = -1;
	count(&readers.stats.nr_requests);
	if (!seat->pid) {
		*ret_fd = sb_reader_serve(seat->area, &seat->state, root_fd);
		return seat->area->answer.ret;
	}
	if (sb_reader_is_refused(request) || is_beyond_hurry()) {
		count(&readers.stats.nr_refused);
		return -ETIMEDOUT;
	}
	sb_reader_add_devs(request);
	err = ask(seat, root_fd);
	if (err)
		return err;
	if (seat->area->answer.has_fd) {
		err = take_fd(seat, seat->area->asked, &fd);
		if (err) {
			sb_closep(&fd);
			return err;
		}
		*ret_fd = fd;
	}
	if (seat->area->answer.ret == -ETIMEDOUT)
		count(&readers.stats.nr_refused);
	return seat->area->answer.ret;
}

/* Accesses. */

/* Return: how many accesses were made, at least 1; 0: none is known to have been. */
static size_t ask_ahead(struct seat *seat, const struct sb_reader_want *wants, size_t nr)
{
	int64_t nr_done;
	int fd;

	seat->wants = wants;
	seat->nr_wants = sb_reader_aheads_ask(seat->area, wants, nr);
	nr_done = seat->nr_wants ? make_access(seat, -1, &fd) : 0;
	nr = seat->nr_wants;
	seat->nr_wants = 0;
	if (nr_done <= 0 || (uint64_t)nr_done > nr ||
	    sb_reader_aheads_keep(&seat->aheads, wants, (size_t)nr_done, seat->area))
		return 0;
	return (size_t)nr_done;
}

size_t sb_reader_ahead(const struct sb_reader_want *wants, size_t nr)
{
	struct seat *seat = readers.spawner.pid ? seat_of_thread() : NULL;
	size_t nr_done = 0;

	if (!seat)
		return nr;
	seat->aheads.nr = 0;
	sb_str_clear(&seat->aheads.data);
	if (!nr)
		return 0;
	if (!begin_access(SB_READER_OP_AHEAD, wants[0].tgid, &seat))
		nr_done = ask_ahead(seat, wants, nr);
	return nr_done ? nr_done : 1;
}

/* Return: the bytes that were read ahead; NULL: none were. */
static const char *take_memory(uint32_t tgid, uint64_t addr, size_t *len)
{
	if (!own_seat || !*len || *len > SB_READER_DATA_BYTES)
		return NULL;
	return sb_reader_aheads_take(
		&own_seat->aheads,
		&(struct sb_reader_want){ .tgid = tgid, .len = (uint32_t)*len, .addr = addr }, len);
}

bool sb_reader_has_read(uint32_t tgid, uint64_t addr, uint32_t len)
{
	return own_seat && sb_reader_aheads_have(&own_seat->aheads, &(struct sb_reader_want){
									    .tgid = tgid,
									    .len = len,
									    .addr = addr,
								    });
}

ssize_t sb_reader_memory(uint32_t tgid, uint64_t addr, void *buf, size_t len)
{
	const char *ready = take_memory(tgid, addr, &len);
	size_t done = 0;
	int64_t nr = 0;
	int fd;

	if (ready) {
		memcpy(buf, ready, len);
		return (ssize_t)len;
	}
	while (done < len) {
		size_t want = len - done < SB_READER_DATA_BYTES ? len - done : SB_READER_DATA_BYTES;
		struct seat *seat;
		int err = begin_access(SB_READER_OP_MEMORY, tgid, &seat);

		if (err)
			return err;
		seat->area->request.addr = addr + done;
		seat->area->request.len = want;
		nr = make_access(seat, -1, &fd);
		if (nr <= 0 || (uint64_t)nr > want)
			break;
		memcpy((uint8_t *)buf + done, seat->area->data, (size_t)nr);
		done += (size_t)nr;
		if ((size_t)nr < want)
			break;
	}
	return done ? (ssize_t)done : nr < 0 ? (ssize_t)nr : -EFAULT;
}

ssize_t sb_reader_entry(uint32_t tgid, enum sb_reader_entry entry, uint64_t offset, void *buf,
			size_t len)
{
	struct seat *seat;
	int64_t nr;
	int fd, err = begin_access(SB_READER_OP_ENTRY, tgid, &seat);

	if (err)
		return err;
	len = len < SB_READER_CODE_BYTES ? len : SB_READER_CODE_BYTES;
	seat->area->request.entry = entry;
	seat->area->request.addr = offset;
	seat->area->request.len = len;
	nr = make_access(seat, -1, &fd);
	if (nr > (int64_t)len)
		return -EPROTO;
	if (nr > 0)
		memcpy(buf, seat->area->data, (size_t)nr);
	return (ssize_t)nr;
}

ssize_t sb_reader_code(uint32_t tgid, bool is_first, uint64_t *at, struct sb_str *records)
{
	struct seat *seat;
	int64_t nr;
	int fd, err = begin_access(SB_READER_OP_CODE, tgid, &seat);
	uint64_t began_ns;
	const char *ready;
	bool is_whole;
	size_t len;

	if (err)
		return err;
	ready = is_first ? sb_reader_aheads_take(&seat->aheads,
						 &(struct sb_reader_want){ .tgid = tgid }, &len)
			 : NULL;
	if (ready) {
		sb_str_clear(records);
		err = sb_str_addn(records, ready, len);
		if (err)
			return err;
		*at = UINT64_MAX;
		return (ssize_t)len;
	}
	seat->area->request.addr = *at;
	seat->area->request.is_first = is_first;
	began_ns = sb_now_ns();
	nr = make_access(seat, -1, &fd);
	is_whole = nr < 0 || seat->area->answer.addr == UINT64_MAX;
	if (is_first)
		sb_reader_codes_keep(tgid, began_ns, is_whole ? nr : -E2BIG, seat->area->data);
	if (nr < 0)
		return (ssize_t)nr;
	if (nr > SB_READER_CODE_BYTES)
		return -EPROTO;
	sb_str_clear(records);
	err = sb_str_addn(records, (const char *)seat->area->data, (size_t)nr);
	if (err)
		return err;
	*at = seat->area->answer.addr;
	return (ssize_t)nr;
}

int sb_reader_pages(uint32_t tgid, bool is_first, bool is_by_word, uint64_t end, uint64_t *at,
		    struct sb_page_run *runs)
{
	struct seat *seat;
	int64_t nr;
	int fd, err = begin_access(SB_READER_OP_PAGES, tgid, &seat);

	if (err)
		return err;
	seat->area->request.addr = *at;
	seat->area->request.end = end;
	seat->area->request.is_first = is_first;
	seat->area->request.is_by_word = is_by_word;
	nr = make_access(seat, -1, &fd);
	if (nr < 0)
		return (int)nr;
	if (nr > SB_READER_RUNS_MAX || seat->area->answer.addr > end ||
	    (seat->area->answer.addr <= *at && *at < end))
		return -EPROTO;
	memcpy(runs, seat->area->data, (size_t)nr * sizeof(*runs));
	*at = seat->area->answer.addr;
	return (int)nr;
}

/*
 * Get the seat of this thread, with its request filled in. Return: 0; -ENAMETOOLONG; or as
 * need_area().
 */
static int begin_file(enum sb_reader_op op, const struct sb_reader_file *file,
		      struct seat **ret_seat)
{
	const char *path = file->path ? file->path : "";
	struct seat *seat;
	int err = strlen(path) < PATH_MAX ? begin_access(op, file->tgid, &seat) : -ENAMETOOLONG;

	if (err)
		return err;
	seat->area->request.place = file->place;
	seat->area->request.start = file->start;
	seat->area->request.end = file->end;
	seat->area->request.hold_dev = file->hold_dev;
	seat->area->request.hold_ino = file->hold_ino;
	memcpy(seat->area->request.path, path, strlen(path) + 1);
	*ret_seat = seat;
	return 0;
}

/*
 * The reader has another working directory, so a relative path is sent with a descriptor of ours.
 */
static int make_file_access(struct seat *seat, const struct sb_reader_file *file, int *ret_fd)
{
	sb_cleanup(sb_closep) int cwd_fd = -1;
	int root_fd = file->place == SB_READER_BELOW ? file->root_fd : -1;
	int64_t ret;

	if (file->place == SB_READER_HERE && file->path[0] != '/' && seat->pid) {
		root_fd = cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (cwd_fd < 0)
			return -errno;
	}
	ret = make_access(seat, root_fd, ret_fd);
	return ret < 0 ? (int)ret : 0;
}

int sb_reader_open(const struct sb_reader_file *file)
{
	struct seat *seat;
	int fd = -1, err = begin_file(SB_READER_OP_OPEN, file, &seat);

	if (err)
		return err;
	err = make_file_access(seat, file, &fd);
	if (err == -EWOULDBLOCK)
		count(&readers.stats.nr_leased);
	if (!err && fd < 0)
		err = -EMFILE;
	if (!err && seat->area->answer.is_copy)
		err = sb_reader_copies_keep(&seat->area->answer, fd, &seat->state.original_fd);
	if (!err && seat->area->answer.is_copy)
		count(&readers.stats.nr_copies);
	sb_closep(&seat->state.original_fd);
	seat->state.original_fd = -1;
	if (!err)
		return fd;
	sb_closep(&fd);
	return err;
}

int sb_reader_stat(const struct sb_reader_file *file, struct stat *ret_st)
{
	struct seat *seat;
	int fd = -1, err = begin_file(SB_READER_OP_STAT, file, &seat);

	if (err)
		return err;
	err = make_file_access(seat, file, &fd);
	if (!err)
		*ret_st = seat->area->answer.st;
	if (!err && fd >= 0)
		sb_reader_hold(fd);
	else
		sb_closep(&fd);
	return err;
}

int sb_reader_root(uint32_t tgid, bool is_other)
{
	struct seat *seat;
	int fd = -1;
	int64_t err = begin_access(SB_READER_OP_ROOT, tgid, &seat);

	if (err)
		return (int)err;
	seat->area->request.is_other = is_other;
	err = make_access(seat, -1, &fd);
	if (!err)
		return fd < 0 ? -EMFILE : fd;
	sb_closep(&fd);
	return (int)err;
}

/* Begin and end. */

int sb_reader_begin(const struct sb_reader_opts *opts)
{
	int err;

	readers.opts = *opts;
	if (!readers.opts.patience_ns)
		readers.opts.patience_ns = SB_READER_PATIENCE_NS;
	readers.is_settled = false;
	/* Threads made their accesses themselves until now; from now on they get readers. */
	if (own_seat) {
		free_seat(own_seat);
		pthread_setspecific(seat_key, NULL);
	}
	err = sb_peer_new(sb_reader_spawner, &readers.opts, &readers.spawner);
	return err;
}

int sb_reader_settle(void)
{
	struct sb_reader_spawn_answer said;
	int err;

	if (!readers.spawner.pid)
		return 0;
	pthread_mutex_lock(&readers.lock);
	if (!readers.is_settled) {
		err = sb_peer_receive(readers.spawner.fd, &said, sizeof(said), NULL, 0);
		readers.settle_err = err ? err : said.err;
		readers.is_settled = true;
	}
	err = readers.settle_err;
	pthread_mutex_unlock(&readers.lock);
	return err;
}

void sb_reader_end(void)
{
	if (own_seat) {
		pthread_setspecific(seat_key, NULL);
		free_seat(own_seat);
	}
	sb_reader_copies_release();
	sb_reader_held_release();
	sb_peer_release(&readers.spawner);
	sb_reader_culprits_clear();
	readers.is_hurried = false;
	readers.hurry_ns = readers.dead_cpu_ns = 0;
	readers.stats = (struct sb_reader_stats){};
}

uint64_t sb_reader_thread_cpu_ns(void)
{
	return sb_thread_time_ns() + (own_seat ? sb_process_time_ns(own_seat->pid) : 0);
}

void sb_reader_stats(struct sb_reader_stats *ret_stats)
{
	const struct sb_reader_stats *stats = &readers.stats;
	const struct seat *seat;

	*ret_stats = (struct sb_reader_stats){
		.nr_requests = __atomic_load_n(&stats->nr_requests, __ATOMIC_RELAXED),
		.nr_readers = __atomic_load_n(&stats->nr_readers, __ATOMIC_RELAXED),
		.nr_abandoned = __atomic_load_n(&stats->nr_abandoned, __ATOMIC_RELAXED),
		.nr_crashed = __atomic_load_n(&stats->nr_crashed, __ATOMIC_RELAXED),
		.nr_refused = __atomic_load_n(&stats->nr_refused, __ATOMIC_RELAXED),
		.nr_copies = __atomic_load_n(&stats->nr_copies, __ATOMIC_RELAXED),
		.nr_leased = __atomic_load_n(&stats->nr_leased, __ATOMIC_RELAXED),
	};
	pthread_mutex_lock(&readers.lock);
	ret_stats->cpu_ns = readers.dead_cpu_ns + sb_process_time_ns(readers.spawner.pid);
	for (seat = readers.seats; seat; seat = seat->next)
		ret_stats->cpu_ns += sb_process_time_ns(seat->pid);
	pthread_mutex_unlock(&readers.lock);
}
