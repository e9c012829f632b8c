// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/owner.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

#define NONE SIZE_MAX

struct frame {
	const char *name;
	enum sb_frame_kind kind;
};

/* Marks behind a stack that say what its thread was doing; '*' stands for any text. */
static const char *const state_marks[] = {
	"[idle: *]", "[lock: *]",  "[blocked]",	  "[stopped]",
	"[running]", "[runqueue]", "[throttled]",
};

/* Where the resolver leaves off the kernel stack of a thread that gave its CPU away. */
static const char *const scheduler[] = {
	"schedule*", "preempt_schedule*", "io_schedule*", "*cond_resched*", "rt_mutex_schedule",
};

/* Where the kernel's part of a stack begins: folded text need not say which frames are the kernel's. */
static const char *const kernel_entries[] = {
	"entry_SYSCALL_*", "do_syscall_64", "asm_exc_*",      "asm_sysvec_*",
	"el0t_64_sync*",   "el0_svc*",	    "ret_from_fork*",
};

/* What C libraries and languages wait in: no function of a program. */
static const char *const primitives[] = {
	/* C libraries */
	"*futex*",
	"*lll_lock*",
	"*lll_mutex_lock*",
	"*pthread_cond_*",
	"*pthread_mutex_*lock*",
	"*pthread_rwlock_*lock*",
	"*pthread_*join*",
	"*pthread_once*",
	"*pthread_barrier_wait*",
	"*sem_*wait*",
	"*nanosleep*",
	"usleep",
	"sleep",
	"epoll_wait",
	"epoll_pwait*",
	"poll",
	"__poll",
	"ppoll*",
	"select",
	"pselect*",
	"read",
	"__read",
	"__libc_read",
	"recv*",
	"accept",
	"accept4",
	"wait4",
	"waitpid",
	"*waitid",
	"pause",
	"sigsuspend",
	"*sigtimedwait",
	"sigwait*",
	"syscall",
	"[libc.so*",
	"[libpthread*",
	/* C++ */
	"std::condition_variable::wait*",
	"std::*mutex*::lock*",
	"std::__glibcxx_rwlock_*",
	"std::__shared_mutex_pthread::*",
	"std::this_thread::sleep_*",
	"__gthread_*",
	/* Java */
	"*PlatformEvent::park*",
	"*PlatformMonitor::*",
	"Parker::park",
	"Unsafe_Park",
	"ObjectMonitor::*",
	"ObjectSynchronizer::*",
	"InterpreterRuntime::monitorenter*",
	"JVM_MonitorWait",
	"JVM_Sleep*",
	"JavaThread::sleep*",
	"PosixSemaphore::*",
	"Monitor::wait*",
	"jdk.internal.misc.Unsafe.park",
	"sun.misc.Unsafe.park",
	"java.lang.Object.wait*",
	"java.lang.Thread.sleep*",
	"java.util.concurrent.locks.LockSupport.park*",
	"java.util.concurrent.locks.AbstractQueued*",
	/* CPython, Ruby */
	"PyThread_acquire_lock*",
	"lock_PyThread_acquire_lock*",
	"acquire_timed",
	"rlock_acquire*",
	"take_gil",
	"PyCOND_*",
	"PyEval_RestoreThread",
	"PyEval_AcquireThread",
	"pysleep",
	"time_sleep",
	"rb_native_cond_*",
	"rb_native_mutex_lock",
	"rb_mutex_synchronize",
	/* Go */
	"runtime.futex*",
	"runtime.note*sleep*",
	"runtime.mPark*",
	"runtime.usleep*",
	"runtime.epollwait*",
	/* libuv */
	"uv_cond_*wait",
	"uv_sem_wait",
};

static bool is_among(const char *const *globs, size_t nr, const char *name)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (sb_glob_matches(globs[i], strlen(globs[i]), name))
			return true;
	return false;
}

static struct frame at(const struct sb_owner_path *path, size_t i)
{
	struct frame frame = {};

	frame.name = path->frame_at(path->arg, i, &frame.kind);
	return frame;
}

static bool is_kernel(const struct frame *frame)
{
	return frame->kind == SB_FRAME_KERNEL || frame->kind == SB_FRAME_KERNEL_INLINED ||
	       frame->kind == SB_FRAME_DELIMITER;
}

static bool is_scheduler(const struct frame *frame)
{
	return (frame->kind == SB_FRAME_KERNEL || frame->kind == SB_FRAME_USER) &&
	       is_among(scheduler, SB_ARRAY_SIZE(scheduler), frame->name);
}

static bool is_code(const struct frame *frame)
{
	return frame->kind != SB_FRAME_ROOT && frame->kind != SB_FRAME_MARK && !is_kernel(frame);
}

/* Those of them that say that it waited. */
static const char *const wait_marks[] = { "[idle: *]", "[lock: *]", "[blocked]", "[stopped]" };

/*
 * Return: how many frames are left without the waker's and the state's, which stand behind a stack. *ret_is_wait: one of
 * them says that the thread waited.
 */
static size_t without_state(const struct sb_owner_path *path, bool *ret_is_wait)
{
	size_t nr = path->nr;

	while (nr) {
		const struct frame frame = at(path, nr - 1);

		/* Marks that were read from a file have any kind. */
		if (frame.kind != SB_FRAME_WAKER && frame.kind != SB_FRAME_DELIMITER &&
		    (*frame.name != '[' ||
		     !is_among(state_marks, SB_ARRAY_SIZE(state_marks), frame.name)))
			break;
		if (is_among(wait_marks, SB_ARRAY_SIZE(wait_marks), frame.name))
			*ret_is_wait = true;
		nr--;
	}
	return nr;
}

/* Return: where the kernel's part of the first @nr frames begins, which end in the scheduler; @nr: they do not. */
static size_t kernel_begin(const struct sb_owner_path *path, size_t nr)
{
	struct frame frame = at(path, nr - 1);
	size_t begin = nr, i;

	if (is_kernel(&frame)) {
		while (begin && is_kernel(&frame))
			if (--begin)
				frame = at(path, begin - 1);
		return begin;
	}
	for (i = nr; i--;)
		if (is_among(kernel_entries, SB_ARRAY_SIZE(kernel_entries), at(path, i).name))
			begin = i;
	return begin;
}

size_t sb_owner_find(const struct sb_owner_path *path)
{
	bool is_wait = false;
	size_t nr = without_state(path, &is_wait), leaf = nr - 1, in_kernel = NONE, begin, user;
	struct frame frame;

	if (!nr)
		return path->nr - 1;
	frame = at(path, leaf);
	/* Nobody owns what only a process's or a thread's name stands for. */
	if (frame.kind == SB_FRAME_ROOT)
		return path->nr - 1;
	/* The kernel leaves its scheduler's functions out of the stack of a thread that slept before the run began. */
	if (!is_wait && !is_scheduler(&frame))
		return leaf;
	begin = kernel_begin(path, nr);
	if (!is_wait && begin == nr)
		return leaf;
	for (; nr > begin; nr--) {
		frame = at(path, nr - 1);
		if (in_kernel == NONE && !is_scheduler(&frame) && frame.kind != SB_FRAME_DELIMITER)
			in_kernel = nr - 1;
	}
	for (user = nr; user; user--) {
		frame = at(path, user - 1);
		if (!is_code(&frame))
			break;
		if (!is_among(primitives, SB_ARRAY_SIZE(primitives), frame.name))
			return user - 1;
	}
	/* A thread of the kernel; or nothing but primitives are known. */
	return user < nr ? nr - 1 : in_kernel != NONE ? in_kernel : leaf;
}
