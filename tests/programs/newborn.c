// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A thread that is held where it was born, behind the system call that made it, and goes on by one
 * instruction for each line of input: "PID TID" when it is born, "PC", in hexadecimal, behind each
 * step. It ends with its input.
 */
#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void *newborn(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static __attribute__((noinline)) int traced(void)
{
	pthread_t thread;

	if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
		return 1;
	if (pthread_create(&thread, NULL, newborn, NULL))
		return 1;
	return pthread_join(thread, NULL);
}

static void must(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(1);
}

static unsigned long pc_of(pid_t tid)
{
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof(regs) };

	must(!ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov), "PTRACE_GETREGSET");
#ifdef __x86_64__
	return regs.rip;
#else
	return regs.pc;
#endif
}

/* Up to the birth of its thread. */
static pid_t wait_for_birth(pid_t pid)
{
	unsigned long tid;
	int status;

	must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "waitpid");
	must(!ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL),
	     "PTRACE_SETOPTIONS");
	must(!ptrace(PTRACE_CONT, pid, 0, 0), "PTRACE_CONT");
	must(waitpid(pid, &status, 0) == pid && status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8),
	     "waitpid");
	must(!ptrace(PTRACE_GETEVENTMSG, pid, 0, &tid), "PTRACE_GETEVENTMSG");
	must(waitpid((pid_t)tid, &status, __WALL) == (pid_t)tid && WIFSTOPPED(status), "waitpid");
	return (pid_t)tid;
}

int main(void)
{
	char line[8];
	pid_t pid = fork(), tid;
	int status;

	if (!pid)
		return traced();
	must(pid > 0, "fork");
	tid = wait_for_birth(pid);
	printf("%d %d\n", pid, tid);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		must(!ptrace(PTRACE_SINGLESTEP, tid, 0, 0), "PTRACE_SINGLESTEP");
		must(waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status), "waitpid");
		printf("%lx\n", pc_of(tid));
		fflush(stdout);
	}
	return 0;
}
