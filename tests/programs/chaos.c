// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs that are hard to look at. Each says "ready" on its output when it is what it is to be,
 * and goes on until it is killed; its children end with it.
 *
 * chaos threads NR             NR threads, asleep in sleep_here()
 * chaos processes NR           NR processes, asleep in sleep_here()
 * chaos regions NR             maps and unmaps NR regions all the time, of which one in 16 is
 *                              executable; another thread works in work_here()
 * chaos busy                   a thread works in work_here(), another sleeps in sleep_here()
 * chaos same-pid ROUNDS A B    runs A and B (of turns.c) in turn, both under one pid; ends by itself
 * chaos wrap ROUNDS A B        runs some of A and of B in each round, and between rounds uses up all pids up to
 *                              those of the round before; says under how many pids both have run; ends by itself
 * chaos memory                 takes memory in take_memory() until it is killed for it
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE	  __attribute__((noinline))
#define STACK_BYTES	  32768u
#define PAGE_BYTES	  4096u
#define EXECUTABLE_ONE_IN 16u
#define CHUNK_BYTES	  (1u << 20)
#define NR_PROGRAMS	  16u
#define PIDS_MAX	  (1u << 22) /* of any kernel */

static volatile uint64_t sink;

static void die(const char *what)
{
	fprintf(stderr, "chaos: cannot %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static NOINLINE void sleep_here(void)
{
	for (;;)
		pause();
}

static NOINLINE void work_here(void)
{
	for (;;)
		sink++;
}

static void *sleeper(void *arg)
{
	pthread_barrier_t *barrier = arg;

	if (barrier)
		pthread_barrier_wait(barrier);
	sleep_here();
	return NULL;
}

static void *worker(void *arg)
{
	(void)arg;
	work_here();
	return NULL;
}

static void start(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	errno = pthread_create(&thread, &attr, run, arg);
	if (errno)
		die("make a thread");
	pthread_attr_destroy(&attr);
}

static void threads(unsigned long nr)
{
	pthread_barrier_t barrier;
	unsigned long i;

	pthread_barrier_init(&barrier, NULL, (unsigned int)nr + 1);
	for (i = 0; i < nr; i++)
		start(sleeper, &barrier);
	pthread_barrier_wait(&barrier);
	say_ready();
	sleep_here();
}

static void processes(unsigned long nr)
{
	pid_t parent = getpid(), child;
	unsigned long i;

	for (i = 0; i < nr; i++) {
		child = fork();
		if (child < 0)
			die("make a process");
		if (child)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		sleep_here();
	}
	say_ready();
	sleep_here();
}

/* Neighbours differ in what they allow, so the kernel does not make one region of them. */
static NOINLINE void map_and_unmap(char *space, unsigned long nr)
{
	static const int cycle[] = { PROT_READ, PROT_READ | PROT_WRITE };
	unsigned long i;
	int prot;

	for (i = 0; i < nr; i++) {
		prot = i % EXECUTABLE_ONE_IN ? cycle[i % 2] : PROT_READ | PROT_EXEC;
		if (mmap(space + i * PAGE_BYTES, PAGE_BYTES, prot,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			die("map a region");
	}
	munmap(space, nr * PAGE_BYTES);
}

static void regions(unsigned long nr)
{
	char *space = mmap(NULL, nr * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (space == MAP_FAILED)
		die("find room");
	start(worker, NULL);
	map_and_unmap(space, nr);
	say_ready();
	for (;;)
		map_and_unmap(space, nr);
}

static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&pid,
		.set_tid_size = 1,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void run(const char *program, const char *const *argv)
{
	execv(program, (char *const *)argv);
	_exit(127);
}

/* The pid is one that was free a moment ago: that of a child that has ended. */
static void same_pid(unsigned long nr_rounds, char *const *programs)
{
	const char *argv[] = { NULL, "0", "-", "-", NULL };
	pid_t pid = fork(), child;
	unsigned long i;

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	for (i = 0; i < nr_rounds; i++) {
		argv[0] = programs[i % 2];
		child = fork_as(pid);
		if (child < 0)
			die("make a process of that pid");
		if (!child)
			run(argv[0], argv);
		waitpid(child, NULL, 0);
	}
	printf("%lu processes of pid %d\n", nr_rounds, pid);
}

/* The pid that was given to somebody last: the end of the line. */
static pid_t last_pid(void)
{
	char text[128] = "", *at;
	FILE *file = fopen("/proc/loadavg", "re");

	if (!file || !fgets(text, sizeof(text), file))
		die("read /proc/loadavg");
	fclose(file);
	at = strrchr(text, ' ');
	return at ? (pid_t)strtol(at, NULL, 10) : 0;
}

/*
 * Use up pids until the next one is @pid or soon will be, the next time round. A process that has
 * its pid, and cannot be made because there is no place for its pidfd, costs a hundredth of one
 * that is made.
 */
static void use_up_pids(pid_t pid)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_VM | CLONE_VFORK,
		.pidfd = 1, /* nobody's address */
		.exit_signal = SIGCHLD,
	};
	bool has_wrapped = false;
	pid_t had, now = last_pid();
	long child;

	do {
		child = syscall(SYS_clone3, &args, sizeof(args));
		if (!child)
			_exit(1);
		if (child > 0 || errno != EFAULT)
			die("use up a pid");
		had = now;
		now = last_pid();
		has_wrapped |= now < had;
	} while (!has_wrapped || now < pid - 1);
}

/* Others use pids as well, so it is by chance which program gets the pid of which. */
static void wrap(unsigned long nr_rounds, char *const *programs)
{
	uint8_t *had = calloc(PIDS_MAX, 1); /* bits: which programs had the pid */
	unsigned long nr_both = 0, i, k;
	pid_t first = 0, pid;

	for (i = 0; i < nr_rounds; i++) {
		if (i)
			use_up_pids(first);
		for (k = 0; k < NR_PROGRAMS; k++) {
			const char *const argv[] = { programs[(i + k) % 2], "0", "-", "-", NULL };

			pid = fork();
			if (!had || pid < 0 || (unsigned long)pid >= PIDS_MAX)
				die("make a process");
			if (!pid)
				run(argv[0], argv);
			first = first ? first : pid;
			had[pid] |= 1u << ((i + k) % 2);
		}
		while (wait(NULL) > 0)
			;
	}
	for (i = 0; i < PIDS_MAX; i++)
		nr_both += had[i] == 3;
	free(had);
	printf("%lu\n", nr_both);
}

static NOINLINE void take_memory(void)
{
	char *chunk;

	for (;;) {
		chunk = malloc(CHUNK_BYTES);
		if (chunk)
			memset(chunk, 1, CHUNK_BYTES);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	unsigned long nr = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	if (!strcmp(mode, "threads"))
		threads(nr);
	else if (!strcmp(mode, "processes"))
		processes(nr);
	else if (!strcmp(mode, "regions"))
		regions(nr);
	else if (!strcmp(mode, "busy")) {
		start(sleeper, NULL);
		start(worker, NULL);
		say_ready();
		sleep_here();
	} else if (!strcmp(mode, "same-pid") && argc == 5)
		same_pid(nr, argv + 3);
	else if (!strcmp(mode, "wrap") && argc == 5)
		wrap(nr, argv + 3);
	else if (!strcmp(mode, "memory"))
		take_memory();
	else
		return 2;
	return 0;
}
