// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads that wait in known functions, and measure themselves how long.
 *
 * waits MODE SECONDS FILE [NR]: after SECONDS, or SIGTERM, FILE has as JSON for each thread, and
 * for each function of it, the time it took by CLOCK_MONOTONIC, how much of it the thread ran
 * (CLOCK_THREAD_CPUTIME_ID), and how much it was runnable and had no CPU (schedstat(5)); what is
 * left is the time that it was blocked. Of the main thread, FILE has how long main() took. NR is a
 * number of threads where the mode has one.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE    __attribute__((noinline))
#define NSEC	    1000000000ull
#define THREADS_MAX 8192
#define SPANS_MAX   4

struct clocks {
	uint64_t wall_ns, cpu_ns, queue_ns;
};

struct span {
	const char *function;
	struct clocks sum;
	uint64_t nr;
};

struct thread {
	pthread_t thread;
	const char *name;
	void (*work)(void);
	int tid;
	int schedstat_fd;
	uint64_t created_ns;
	struct clocks life;
	uint64_t ending_ns; /* at most, from the last look at its clocks to its end */
	struct span spans[SPANS_MAX];
};

static struct thread threads[THREADS_MAX];
static int nr_threads;
static uint64_t begin_ns; /* of main() */
static __thread struct thread *self;
static volatile sig_atomic_t is_over;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static struct clocks now(void)
{
	struct clocks c = { 0 };
	char text[96] = "";

	if (self->schedstat_fd >= 0 && pread(self->schedstat_fd, text, sizeof(text) - 1, 0) > 0)
		sscanf(text, "%*u %" SCNu64, &c.queue_ns);
	c.cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
	c.wall_ns = read_clock(CLOCK_MONOTONIC);
	return c;
}

static void add(struct clocks *sum, struct clocks since, struct clocks until)
{
	sum->wall_ns += until.wall_ns - since.wall_ns;
	sum->cpu_ns += until.cpu_ns - since.cpu_ns;
	sum->queue_ns += until.queue_ns - since.queue_ns;
}

static void note(const char *function, struct clocks since)
{
	struct clocks until = now();
	struct span *span = self->spans;

	while (span->function && strcmp(span->function, function))
		span++;
	span->function = function;
	span->nr++;
	add(&span->sum, since, until);
}

/* The measurement is the caller's, so that the stacks of the function are the wait's and no
 * other. */
#define MEASURED(function)                   \
	do {                                 \
		struct clocks since = now(); \
		function();                  \
		note(#function, since);      \
	} while (0)

static NOINLINE void doze(uint64_t us)
{
	struct timespec ts = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* sleeps */

static NOINLINE void sleep_30ms(void)
{
	doze(30000);
}

static NOINLINE void sleep_50ms(void)
{
	doze(50000);
}

static NOINLINE void sleep_20ms(void)
{
	doze(20000);
}

static void sleeper(void)
{
	while (!is_over) {
		MEASURED(sleep_30ms);
		MEASURED(sleep_50ms);
		MEASURED(sleep_20ms);
	}
}

/* naps: many short waits, each still much longer than a switch. */

static NOINLINE void nap_1ms(void)
{
	doze(1000);
}

static NOINLINE void nap_3ms(void)
{
	doze(3000);
}

static void napper(void)
{
	while (!is_over) {
		MEASURED(nap_1ms);
		MEASURED(nap_3ms);
	}
}

/* bursts: runs that are a bit shorter than a millisecond, between sleeps of different lengths.
 * Preferred to others, so that nothing but the sleeps interrupts them. */

static void run_for(uint64_t ns)
{
	uint64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static NOINLINE void run_first(void)
{
	run_for(NSEC / 1000 * 45 / 100);
}

static NOINLINE void run_second(void)
{
	run_for(NSEC / 1000 * 45 / 100);
}

static void burster(void)
{
	const struct sched_param param = { .sched_priority = 1 };

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	while (!is_over) {
		MEASURED(run_first);
		MEASURED(run_second);
		doze(500 + (uint64_t)rand() % 1000);
	}
}

/* convoy: whoever has the lock sleeps, so that the others wait for it and are woken by it. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static NOINLINE void wait_for_lock(void)
{
	pthread_mutex_lock(&lock);
}

static NOINLINE void hold_lock(void)
{
	doze(8000);
}

static NOINLINE void release_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static NOINLINE void stay_away(void)
{
	doze(3000);
}

static void rival(void)
{
	while (!is_over) {
		MEASURED(wait_for_lock);
		MEASURED(hold_lock);
		release_lock();
		MEASURED(stay_away);
	}
}

/* pair: ping waits in ping_reads for as long as pong thinks, and pong in pong_reads for ping. */

static int to_pong[2], to_ping[2];

static NOINLINE void ping_reads(void)
{
	char c;

	if (read(to_ping[0], &c, 1) != 1)
		is_over = 1;
}

static NOINLINE void ping_writes(void)
{
	if (write(to_pong[1], "", 1) != 1)
		is_over = 1;
}

static NOINLINE void ping_thinks(void)
{
	doze(4000);
}

static NOINLINE void pong_reads(void)
{
	char c;

	if (read(to_pong[0], &c, 1) != 1)
		is_over = 1;
}

static NOINLINE void pong_writes(void)
{
	if (write(to_ping[1], "", 1) != 1)
		is_over = 1;
}

static NOINLINE void pong_thinks(void)
{
	doze(6000);
}

static void ping(void)
{
	while (!is_over) {
		ping_writes();
		MEASURED(ping_reads);
		MEASURED(ping_thinks);
	}
	close(to_pong[1]);
}

static void pong(void)
{
	while (!is_over) {
		MEASURED(pong_reads);
		MEASURED(pong_thinks);
		pong_writes();
	}
	close(to_ping[1]);
}

/* pause */

static NOINLINE void wait_forever(void)
{
	while (!is_over)
		pause();
}

static void pauser(void)
{
	MEASURED(wait_forever);
}

/* dstate: the parent of a vfork() is in state D until its child has exited or become another. */

static NOINLINE void child_naps(void)
{
	doze(40000);
	_exit(0);
}

static NOINLINE void wait_for_vfork(void)
{
	pid_t child = vfork();

	if (!child)
		child_naps();
	if (child > 0)
		waitpid(child, NULL, 0);
}

static void parent(void)
{
	while (!is_over)
		MEASURED(wait_for_vfork);
}

/* queue: threads that share one CPU, and want all of it. */

static NOINLINE void burn(void)
{
	uint64_t end = read_clock(CLOCK_MONOTONIC) + NSEC / 10;

	while (read_clock(CLOCK_MONOTONIC) < end)
		;
}

static void burner(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	while (!is_over)
		MEASURED(burn);
}

/* locks: whoever has the semaphore or the rwlock sleeps, as in a convoy. */

static sem_t semaphore;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static NOINLINE void wait_for_semaphore(void)
{
	while (sem_wait(&semaphore))
		;
}

static NOINLINE void wait_for_rwlock(void)
{
	pthread_rwlock_wrlock(&rwlock);
}

static void semaphore_rival(void)
{
	while (!is_over) {
		MEASURED(wait_for_semaphore);
		MEASURED(hold_lock);
		sem_post(&semaphore);
		MEASURED(stay_away);
	}
}

static void rwlock_rival(void)
{
	while (!is_over) {
		MEASURED(wait_for_rwlock);
		MEASURED(hold_lock);
		pthread_rwlock_unlock(&rwlock);
		MEASURED(stay_away);
	}
}

/* idle: threads that wait in a loop for what does not come, some of them where only workers
 * wait. */

static NOINLINE void wait_in_epoll(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd = eventfd(0, EFD_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	while (!is_over)
		epoll_wait(epoll, &event, 1, -1);
	close(fd);
	close(epoll);
}

static NOINLINE void wait_in_poll(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	struct pollfd pollfd = { fd, POLLIN, 0 };

	while (!is_over)
		poll(&pollfd, 1, -1);
	close(fd);
}

/* A second at a time: the end comes without a signal to the condition. */
static inline __attribute__((always_inline)) void wait_in_condition(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	struct timespec until;

	pthread_mutex_lock(&mutex);
	while (!is_over) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&condition, &mutex, &until);
	}
	pthread_mutex_unlock(&mutex);
}

static NOINLINE void wait_for_condition(void)
{
	wait_in_condition();
	__asm__ volatile(""); /* no jump in the place of the call */
}

static NOINLINE void wait_for_work(void)
{
	wait_in_condition();
	__asm__ volatile("");
}

static void poller(void)
{
	MEASURED(wait_in_poll);
}

static void epoller(void)
{
	MEASURED(wait_in_epoll);
}

static void waiter(void)
{
	MEASURED(wait_for_condition);
}

static void worker(void)
{
	MEASURED(wait_for_work);
}

/* mixed: all of it, and threads that come and go. */

static void start(const char *name, void (*work)(void));

static void guest(void)
{
	MEASURED(sleep_20ms);
	MEASURED(burn);
	MEASURED(sleep_30ms);
}

static NOINLINE void let_guests_in(void)
{
	struct thread *last;

	while (!is_over && nr_threads < THREADS_MAX - 2) {
		start("guest", guest);
		last = &threads[nr_threads - 1];
		pthread_join(last->thread, NULL);
		/* It is joined before it has ended, and may have to wait for a CPU once more. */
		while (!syscall(SYS_tgkill, getpid(), last->tid, 0))
			doze(100);
		last->thread = 0;
		last->ending_ns =
			read_clock(CLOCK_MONOTONIC) - last->created_ns - last->life.wall_ns;
	}
}

static void host(void)
{
	MEASURED(let_guests_in);
}

/* The frame of this function is the root of what the mode does. */
static void *run(void *arg)
{
	self = arg;
	self->schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	self->tid = (int)syscall(SYS_gettid);
	prctl(PR_SET_NAME, self->name);
	self->work();
	self->life = now(); /* all but the first count from the thread's beginning */
	self->life.wall_ns -= self->created_ns;
	close(self->schedstat_fd);
	return NULL;
}

/* Only one thread at a time starts others. */
static void start(const char *name, void (*work)(void))
{
	struct thread *thread = &threads[nr_threads++];

	thread->name = name;
	thread->work = work;
	thread->created_ns = read_clock(CLOCK_MONOTONIC);
	if (pthread_create(&thread->thread, NULL, run, thread))
		_exit(1);
}

static void start_many(int nr, const char *name, void (*work)(void))
{
	while (nr-- > 0)
		start(name, work);
}

static void mode_sleeps(int nr)
{
	start_many(nr ? nr : 1, "sleeper", sleeper);
}

static void mode_bursts(int nr)
{
	start_many(nr ? nr : 1, "burster", burster);
}

static void mode_naps(int nr)
{
	start_many(nr ? nr : 1, "napper", napper);
}

static void mode_convoy(int nr)
{
	start_many(nr ? nr : 4, "rival", rival);
}

static void mode_pair(int nr)
{
	if (pipe2(to_pong, O_CLOEXEC) || pipe2(to_ping, O_CLOEXEC))
		_exit(1);
	start("ping", ping);
	start("pong", pong);
}

static void mode_pause(int nr)
{
	start_many(nr ? nr : 1, "pauser", pauser);
}

static void mode_dstate(int nr)
{
	start_many(nr ? nr : 1, "parent", parent);
}

static void mode_queue(int nr)
{
	start_many(nr ? nr : 3, "burner", burner);
}

static void mode_locks(int nr)
{
	sem_init(&semaphore, 0, 1);
	start_many(nr ? nr : 3, "rival", rival);
	start_many(nr ? nr : 3, "sem_rival", semaphore_rival);
	start_many(nr ? nr : 3, "rw_rival", rwlock_rival);
}

static void mode_idle(int nr)
{
	start("poller", poller);
	start("epoller", epoller);
	start("waiter", waiter);
	start("worker", worker);
	start("pauser", pauser);
}

static void mode_mixed(int nr)
{
	mode_sleeps(1);
	mode_convoy(3);
	mode_pair(0);
	mode_queue(2);
	mode_idle(0);
	mode_dstate(1);
	start("host", host);
}

static const struct {
	const char *name;
	void (*begin)(int nr);
} modes[] = {
	{ "sleeps", mode_sleeps }, { "convoy", mode_convoy }, { "pair", mode_pair },
	{ "pause", mode_pause },   { "dstate", mode_dstate }, { "queue", mode_queue },
	{ "idle", mode_idle },	   { "mixed", mode_mixed },   { "naps", mode_naps },
	{ "bursts", mode_bursts }, { "locks", mode_locks },
};

static void put_clocks(FILE *out, const struct clocks *c)
{
	fprintf(out, "\"wall_ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64 ", \"queue_ns\": %" PRIu64,
		c->wall_ns, c->cpu_ns, c->queue_ns);
}

static int put_truth(const char *path)
{
	const struct span *span;
	FILE *out = fopen(path, "we");
	int i;

	if (!out)
		return 1;
	fprintf(out, "{\"main_ns\": %" PRIu64 ", \"threads\": [",
		read_clock(CLOCK_MONOTONIC) - begin_ns);
	for (i = 0; i < nr_threads; i++) {
		fprintf(out, "%s\n{\"tid\": %d, \"name\": \"%s\", ", i ? "," : "", threads[i].tid,
			threads[i].name);
		put_clocks(out, &threads[i].life);
		fprintf(out, ", \"ending_ns\": %" PRIu64, threads[i].ending_ns);
		fprintf(out, ", \"functions\": {");
		for (span = threads[i].spans; span < threads[i].spans + SPANS_MAX && span->function;
		     span++) {
			fprintf(out, "%s\"%s\": {\"nr\": %" PRIu64 ", ",
				span == threads[i].spans ? "" : ", ", span->function, span->nr);
			put_clocks(out, &span->sum);
			fprintf(out, "}");
		}
		fprintf(out, "}}");
	}
	fprintf(out, "\n]}\n");
	return fclose(out) != 0;
}

static void on_signal(int signal) {}

/* Until the time is over, or SIGTERM. All threads but this one have the signal blocked. */
static NOINLINE void main_waits(int seconds)
{
	struct timespec ts = { seconds, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigtimedwait(&set, NULL, &ts);
}

/* Those that wait for ever are woken by signals, until they are seen to have ended. */
static void end_all(void)
{
	struct timespec until;
	int i;

	is_over = 1;
	for (i = 0; i < nr_threads; i++) {
		while (threads[i].thread) {
			pthread_kill(threads[i].thread, SIGUSR1);
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_nsec += 10000000;
			until.tv_sec += until.tv_nsec / (long)NSEC;
			until.tv_nsec %= (long)NSEC;
			if (!pthread_timedjoin_np(threads[i].thread, NULL, &until))
				break;
		}
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t set;
	size_t i;

	begin_ns = read_clock(CLOCK_MONOTONIC);
	if (argc < 4)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, argv[1]))
			break;
	if (i == sizeof(modes) / sizeof(*modes))
		return 2;
	modes[i].begin(argc > 4 ? atoi(argv[4]) : 0);
	main_waits(atoi(argv[2]));
	end_all();
	return put_truth(argv[3]);
}
