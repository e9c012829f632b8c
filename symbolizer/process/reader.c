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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/index.h"
#include "base/log.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/vec.h"
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
/*
 * Bound of the time blocked in answered requests of one process or file system. It recovers by a
 * fiftieth of the time that passes.
 */
#define SLOW_NS		  (2 * SB_NS_PER_SEC)
#define SLOW_PART	  50
/* How long the first time; then twice as long each time. Even a good disk has bad moments, and a recorder runs for
 * months. */
#define LEFT_ALONE_NS	  (60 * SB_NS_PER_SEC)
#define OFFENCES_MAX	  12u
/* A known local file system gets so many times the patience. */
#define LOCAL_PATIENCE	  10u
#define LOCAL_DEVS_MAX	  64u
/* At the end of the run: patience for one request, and for all threads together. */
#define HURRY_PATIENCE_NS (50 * SB_NS_PER_MS)
#define HURRY_TOTAL_NS	  (500 * SB_NS_PER_MS)
/* Culprits: what is left alone, or slow. When the table is full, the least slow one is evicted. */
#define CULPRITS_MAX	  128u
#define COPIES_MAX	  256u

enum culprit_kind { PROCESS, FILE_SYSTEM, DIRECTORY };

struct culprit {
	enum culprit_kind kind;
	uint64_t id; /* tgid, device, or hash of the directory */
	uint64_t start_ticks;
	uint64_t slow_ns, noted_ns; /* up to when time that went by is taken off */
	uint64_t left_until_ns;	    /* 0: it has not been left alone */
	uint32_t nr_offences;
	char text[SB_READER_CULPRIT_BYTES];
};

/* A copy of a file whose descriptor somebody still has open. */
struct copy {
	int probe_fd;
	int original_fd; /* sb_reader_state */
	uint64_t ino, nr_bytes;
	struct stat original;
};

/* The state of one calling thread. */
struct seat {
	struct sb_reader_area *area; /* shared with the reader, or, without any, our own */
	struct sb_reader_state state;
	pid_t pid; /* 0: there is no reader */
	int socket_fd;
	struct seat *next;
};

static struct {
	struct sb_reader_opts opts;
	struct sb_peer spawner; /* pid 0: accesses are made by their callers */
	int settle_err;
	bool is_settled;
	pthread_mutex_t lock; /* of all below; never held while somebody waits for a reader */
	struct seat *seats;
	struct culprit culprits[CULPRITS_MAX];
	uint32_t nr_culprits, nr_left_alone; /* the second is read without the lock */
	SB_VEC(struct copy) copies;
	dev_t copies_dev;
	uint64_t local_devs[LOCAL_DEVS_MAX]; /* a ring; 0: none */
	uint32_t next_local;
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

static uint64_t cpu_ns_of(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (!pid || clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * SB_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

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
	uint64_t cpu_ns = cpu_ns_of(seat->pid);

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

/* Culprits. */

static uint64_t start_ticks_of(uint32_t tgid)
{
	struct sb_procfs_stat stat;

	return sb_procfs_stat(tgid, &stat) ? 0 : stat.start_ticks;
}

static uint64_t hash_dir(const struct sb_reader_request *request)
{
	const char *slash = strrchr(request->path, '/');

	return sb_hash(request->path, slash ? (size_t)(slash - request->path) : 0, request->tgid);
}

static bool is_of_file(const struct sb_reader_request *request)
{
	return request->op == SB_READER_OP_OPEN || request->op == SB_READER_OP_STAT;
}

/* Below the lock. */
static struct culprit *find_culprit(enum culprit_kind kind, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < readers.nr_culprits; i++)
		if (readers.culprits[i].kind == kind && readers.culprits[i].id == id)
			return &readers.culprits[i];
	return NULL;
}

/* A reused tgid does not count: the start time of the process must be the same. */
static bool is_left_alone(enum culprit_kind kind, uint64_t id)
{
	uint64_t start_ticks = 0;
	struct culprit *culprit;
	bool ret;

	pthread_mutex_lock(&readers.lock);
	culprit = find_culprit(kind, id);
	ret = culprit && culprit->left_until_ns > sb_now_ns();
	if (ret)
		start_ticks = culprit->start_ticks;
	pthread_mutex_unlock(&readers.lock);
	return ret && (kind != PROCESS || start_ticks_of((uint32_t)id) == start_ticks);
}

static bool is_refused(const struct sb_reader_request *request)
{
	if (!__atomic_load_n(&readers.nr_left_alone, __ATOMIC_RELAXED))
		return false;
	if (request->tgid && is_left_alone(PROCESS, request->tgid))
		return true;
	return is_of_file(request) && request->path[0] &&
	       is_left_alone(DIRECTORY, hash_dir(request));
}

static void add_devs(struct sb_reader_request *request)
{
	uint64_t now_ns;
	uint32_t i;

	request->nr_devs = 0;
	if (!__atomic_load_n(&readers.nr_left_alone, __ATOMIC_RELAXED))
		return;
	now_ns = sb_now_ns();
	pthread_mutex_lock(&readers.lock);
	for (i = 0; i < readers.nr_culprits && request->nr_devs < SB_READER_DEVS_MAX; i++)
		if (readers.culprits[i].kind == FILE_SYSTEM &&
		    readers.culprits[i].left_until_ns > now_ns)
			request->devs[request->nr_devs++] = readers.culprits[i].id;
	pthread_mutex_unlock(&readers.lock);
}

static void describe(struct culprit *culprit, const struct sb_reader_request *request)
{
	char path[PATH_MAX], comm[32] = "";
	sb_cleanup(sb_freep) char *text = NULL;

	snprintf(path, sizeof(path), "%s", request->path);
	switch (culprit->kind) {
	case PROCESS:
		snprintf(path, sizeof(path), "/proc/%u/comm", request->tgid);
		if (!sb_read_file(path, sizeof(comm), &text, NULL))
			snprintf(comm, sizeof(comm), "%.*s", (int)strcspn(text, "\n"), text);
		snprintf(culprit->text, sizeof(culprit->text), "process %u ('%s')", request->tgid,
			 comm);
		break;
	case FILE_SYSTEM:
		if (!path[0])
			snprintf(path, sizeof(path), "mapped by process %u", request->tgid);
		snprintf(culprit->text, sizeof(culprit->text), "file system %u:%u ('%.120s')",
			 major(culprit->id), minor(culprit->id), path);
		break;
	case DIRECTORY:
		snprintf(culprit->text, sizeof(culprit->text), "the way to '%.120s'", path);
		break;
	}
	sb_replace_controls(culprit->text, strlen(culprit->text));
}

/* With the lock held. If the table is full, evict the one that was waited for least. */
static struct culprit *new_culprit(void)
{
	struct culprit *least = NULL;
	uint32_t i;

	if (readers.nr_culprits < CULPRITS_MAX)
		return &readers.culprits[readers.nr_culprits++];
	for (i = 0; i < CULPRITS_MAX; i++)
		if (!readers.culprits[i].left_until_ns &&
		    (!least || readers.culprits[i].slow_ns < least->slow_ns))
			least = &readers.culprits[i];
	return least;
}

/* Find out who is to blame for a wait: the file system, else the directory, else the process. */
static void find_fault(const struct sb_reader_request *request, uint64_t dev,
		       struct culprit *ret_culprit)
{
	*ret_culprit = (struct culprit){ .kind = PROCESS, .id = request->tgid };
	if (is_of_file(request) && dev) {
		ret_culprit->kind = FILE_SYSTEM;
		ret_culprit->id = dev;
	} else if (is_of_file(request) && request->place != SB_READER_MAPPED) {
		ret_culprit->kind = DIRECTORY;
		ret_culprit->id = hash_dir(request);
	} else {
		ret_culprit->start_ticks = start_ticks_of(request->tgid);
	}
	describe(ret_culprit, request);
}

/* With the lock held. Return: NULL: there is no room for it. */
static struct culprit *note_culprit(const struct culprit *new)
{
	struct culprit *culprit = find_culprit(new->kind, new->id);

	if (culprit && culprit->start_ticks == new->start_ticks)
		return culprit;
	if (!culprit)
		culprit = new_culprit();
	if (culprit)
		*culprit = *new;
	return culprit;
}

static void blame(const struct sb_reader_request *request, uint64_t dev, uint64_t ns, bool is_late)
{
	struct culprit new, *culprit;
	uint64_t now_ns = sb_now_ns(), gone_ns;

	find_fault(request, dev, &new);
	new.noted_ns = now_ns;
	pthread_mutex_lock(&readers.lock);
	culprit = note_culprit(&new);
	if (culprit) {
		gone_ns = (now_ns - culprit->noted_ns) / SLOW_PART;
		culprit->slow_ns -= gone_ns < culprit->slow_ns ? gone_ns : culprit->slow_ns;
		culprit->slow_ns += ns;
		culprit->noted_ns = now_ns;
	}
	if (culprit && (is_late || culprit->slow_ns > SLOW_NS)) {
		if (!culprit->left_until_ns)
			__atomic_fetch_add(&readers.nr_left_alone, 1, __ATOMIC_RELAXED);
		culprit->left_until_ns = now_ns + (LEFT_ALONE_NS << culprit->nr_offences);
		culprit->nr_offences += culprit->nr_offences < OFFENCES_MAX;
		culprit->slow_ns = 0;
		sb_debug("%s made us wait and is left alone", culprit->text);
	}
	pthread_mutex_unlock(&readers.lock);
}

static bool is_local(uint64_t dev)
{
	bool ret = false;
	uint32_t i;

	pthread_mutex_lock(&readers.lock);
	for (i = 0; dev && i < LOCAL_DEVS_MAX && !ret; i++)
		ret = readers.local_devs[i] == dev;
	pthread_mutex_unlock(&readers.lock);
	return ret;
}

static void note_local(uint64_t dev)
{
	if (is_local(dev))
		return;
	pthread_mutex_lock(&readers.lock);
	readers.local_devs[readers.next_local++ % LOCAL_DEVS_MAX] = dev;
	pthread_mutex_unlock(&readers.lock);
}

bool sb_reader_culprit(size_t i, char text[SB_READER_CULPRIT_BYTES])
{
	bool is_there = false;
	uint32_t at;

	pthread_mutex_lock(&readers.lock);
	for (at = 0; at < readers.nr_culprits && !is_there; at++) {
		if (!readers.culprits[at].left_until_ns || i--)
			continue;
		memcpy(text, readers.culprits[at].text, SB_READER_CULPRIT_BYTES);
		is_there = true;
	}
	pthread_mutex_unlock(&readers.lock);
	return is_there;
}

/* Waiting. */

struct wait {
	struct seat *seat;
	uint64_t begin_ns, looked_ns;
	uint64_t blocked_ns, total_ns; /* without progress; altogether */
	uint32_t progress;
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

/* Return: 0: continue to wait; -ETIMEDOUT: the reader is late; -ECHILD: it has ended. */
static int look_at(struct wait *wait)
{
	uint64_t now_ns = sb_now_ns(), slice_ns = now_ns - wait->looked_ns, patience_ns;
	uint32_t progress = __atomic_load_n(&wait->seat->area->progress, __ATOMIC_RELAXED);
	char state = state_of(wait->seat->pid);

	wait->looked_ns = now_ns;
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
	    is_local(__atomic_load_n(&wait->seat->area->dev, __ATOMIC_RELAXED)))
		patience_ns *= LOCAL_PATIENCE;
	if (is_hurried()) {
		__atomic_fetch_add(&readers.hurry_ns, slice_ns, __ATOMIC_RELAXED);
		patience_ns = patience_ns < HURRY_PATIENCE_NS ? patience_ns : HURRY_PATIENCE_NS;
	}
	if (wait->blocked_ns >= patience_ns || wait->total_ns >= TOTAL_NS ||
	    now_ns - wait->begin_ns >= STARVED_NS)
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
 * What came without being asked for is none of ours. Return: 0, and the descriptor of the original is in @seat if it is
 * one of a copy; or a negative errno.
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

static void note_answer(const struct sb_reader_area *area)
{
	if (is_of_file(&area->request) && area->answer.is_local) {
		note_local(area->dev);
		return;
	}
	if (area->answer.blocked_ns)
		blame(&area->request, area->dev, area->answer.blocked_ns, false);
}

/* Return: the error of the access. */
static int give_up(const struct wait *wait, int err)
{
	const struct sb_reader_area *area = wait->seat->area;
	bool is_at_fault =
		wait->blocked_ns >= readers.opts.patience_ns || wait->total_ns >= TOTAL_NS;

	if (err == -ETIMEDOUT) {
		count(&readers.stats.nr_abandoned);
		/* At the end of the run the wait is too short to blame anybody. */
		if (is_at_fault && !is_local(area->dev))
			blame(&area->request, area->dev, wait->total_ns, true);
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
		note_answer(area);
	else
		err = give_up(&wait, err);
	return err;
}

static bool is_beyond_hurry(void)
{
	return __atomic_load_n(&readers.is_hurried, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&readers.hurry_ns, __ATOMIC_RELAXED) >= HURRY_TOTAL_NS;
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
 * Return: what the access returned, or -ETIMEDOUT: it was not made, or not finished; then the seat has no area any more.
 * *ret_fd: a descriptor that is the caller's, or -1.
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
	if (is_refused(request) || is_beyond_hurry()) {
		count(&readers.stats.nr_refused);
		return -ETIMEDOUT;
	}
	add_devs(request);
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

/* Copies. */

/* Return: whether somebody still has the descriptor open: see lock_anew() in reader_ops.c. */
static bool is_open(const struct copy *copy)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return !fcntl(copy->probe_fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/* Forget copies that are closed, with the lock held. Return: how many bytes the others take. */
static uint64_t sweep_copies(void)
{
	uint64_t nr_bytes = 0;
	size_t i;

	for (i = readers.copies.nr; i--;) {
		struct copy *copy = &readers.copies.at[i];

		if (is_open(copy)) {
			nr_bytes += copy->nr_bytes;
			continue;
		}
		close(copy->probe_fd);
		close(copy->original_fd);
		*copy = readers.copies.at[--readers.copies.nr];
	}
	return nr_bytes;
}

static bool has_room_for_copies(void)
{
	bool ret;

	pthread_mutex_lock(&readers.lock);
	ret = sweep_copies() < SB_READER_COPIES_BYTES_MAX && readers.copies.nr < COPIES_MAX;
	pthread_mutex_unlock(&readers.lock);
	return ret;
}

/* *@original_fd is taken over, and then -1, if there is no error. Return: 0 or a negative errno. */
static int keep_copy(const struct sb_reader_answer *answer, int fd, int *original_fd)
{
	struct copy copy = { .original_fd = *original_fd,
			     .ino = answer->copy_ino,
			     .nr_bytes = answer->copy_bytes,
			     .original = answer->st };
	struct stat st;
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	copy.probe_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (copy.probe_fd < 0 || fstat(copy.probe_fd, &st)) {
		err = -errno;
		sb_closep(&copy.probe_fd);
		return err;
	}
	pthread_mutex_lock(&readers.lock);
	readers.copies_dev = st.st_dev;
	err = sb_vec_push(&readers.copies, copy);
	pthread_mutex_unlock(&readers.lock);
	if (err)
		close(copy.probe_fd);
	else
		*original_fd = -1;
	count(&readers.stats.nr_copies);
	return err;
}

/* With the lock held. Return: the copy with the inode number of @st, or NULL. */
static const struct copy *find_copy(const struct stat *st)
{
	size_t i;

	for (i = 0; i < readers.copies.nr && st->st_dev == readers.copies_dev; i++)
		if (readers.copies.at[i].ino == st->st_ino)
			return &readers.copies.at[i];
	return NULL;
}

bool sb_reader_is_copy(int fd)
{
	struct stat st;
	bool ret;

	if (fstat(fd, &st))
		return false;
	pthread_mutex_lock(&readers.lock);
	ret = find_copy(&st);
	pthread_mutex_unlock(&readers.lock);
	return ret;
}

int sb_reader_fstat(int fd, struct stat *ret_st)
{
	const struct copy *copy;

	if (fstat(fd, ret_st))
		return -errno;
	pthread_mutex_lock(&readers.lock);
	copy = find_copy(ret_st);
	if (copy)
		*ret_st = copy->original;
	pthread_mutex_unlock(&readers.lock);
	return 0;
}

/* Accesses. */

ssize_t sb_reader_memory(uint32_t tgid, uint64_t addr, void *buf, size_t len)
{
	size_t done = 0;
	int64_t nr = 0;
	int fd;

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
	len = len < SB_READER_DATA_BYTES ? len : SB_READER_DATA_BYTES;
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

ssize_t sb_reader_code(uint32_t tgid, bool is_first, uint64_t *at,
		       uint8_t buf[SB_READER_CODE_BYTES])
{
	struct seat *seat;
	int64_t nr;
	int fd, err = begin_access(SB_READER_OP_CODE, tgid, &seat);

	if (err)
		return err;
	seat->area->request.addr = *at;
	seat->area->request.is_first = is_first;
	nr = make_access(seat, -1, &fd);
	if (nr < 0)
		return (ssize_t)nr;
	if (nr > SB_READER_CODE_BYTES)
		return -EPROTO;
	memcpy(buf, seat->area->data, (size_t)nr);
	*at = seat->area->answer.addr;
	return (ssize_t)nr;
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
		err = has_room_for_copies()
			      ? keep_copy(&seat->area->answer, fd, &seat->state.original_fd)
			      : -EFBIG;
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
	sb_closep(&fd);
	if (!err)
		*ret_st = seat->area->answer.st;
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
	pthread_mutex_lock(&readers.lock);
	(void)sweep_copies();
	pthread_mutex_unlock(&readers.lock);
	sb_vec_release(&readers.copies);
	sb_peer_release(&readers.spawner);
	readers.nr_culprits = readers.nr_left_alone = 0;
	readers.is_hurried = false;
	readers.hurry_ns = readers.dead_cpu_ns = 0;
	memset(readers.local_devs, 0, sizeof(readers.local_devs));
	readers.stats = (struct sb_reader_stats){};
}

uint64_t sb_reader_thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SB_NS_PER_SEC + (uint64_t)ts.tv_nsec +
	       (own_seat ? cpu_ns_of(own_seat->pid) : 0);
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
	ret_stats->cpu_ns = readers.dead_cpu_ns + cpu_ns_of(readers.spawner.pid);
	for (seat = readers.seats; seat; seat = seat->next)
		ret_stats->cpu_ns += cpu_ns_of(seat->pid);
	pthread_mutex_unlock(&readers.lock);
}
