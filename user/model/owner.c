// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/owner.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

#define NONE SIZE_MAX

/* Functions where the resolver stops unwinding a thread that gave up its CPU. */
static const char *const scheduler[] = {
	"schedule*", "preempt_schedule*", "io_schedule*", "*cond_resched*", "rt_mutex_schedule",
};

/*
 * First functions of the kernel's part of a stack: folded text may not say which frames are the
 * kernel's.
 */
static const char *const kernel_entries[] = {
	"entry_SYSCALL_*", "do_syscall_64", "asm_exc_*",      "asm_sysvec_*",
	"el0t_64_sync*",   "el0_svc*",	    "ret_from_fork*",
};

/* Functions of C libraries and languages that wait: not part of the program. */
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

static struct sb_owner_frame at(const struct sb_owner_path *path, size_t i)
{
	return path->frame_at(path->arg, i);
}

static bool is_kernel(const struct sb_owner_frame *frame)
{
	return frame->kind == SB_FRAME_KERNEL || frame->kind == SB_FRAME_KERNEL_INLINED ||
	       frame->kind == SB_FRAME_DELIMITER;
}

static bool is_scheduler(const struct sb_owner_frame *frame)
{
	return (frame->kind == SB_FRAME_KERNEL || frame->kind == SB_FRAME_USER) &&
	       is_among(scheduler, SB_ARRAY_SIZE(scheduler), frame->name);
}

static bool is_code(const struct sb_owner_frame *frame)
{
	return frame->kind != SB_FRAME_ROOT && frame->kind != SB_FRAME_MARK && !is_kernel(frame);
}

/*
 * Return: how many frames are left without those of the waker and the state, which are at the end
 * of a stack. *ret_is_wait is set if one of them says that the thread waited.
 */
static size_t without_state(const struct sb_owner_path *path, bool *ret_is_wait)
{
	size_t nr = path->nr;

	while (nr) {
		const struct sb_owner_frame frame = at(path, nr - 1);

		if (frame.kind != SB_FRAME_WAKER && frame.kind != SB_FRAME_DELIMITER &&
		    (frame.mark < SB_ATTR_IDLE || frame.mark > SB_ATTR_THROTTLED))
			break;
		*ret_is_wait |= frame.mark >= SB_ATTR_IDLE && frame.mark <= SB_ATTR_STOPPED;
		nr--;
	}
	return nr;
}

/*
 * Return: where the kernel's part of the first @nr frames begins; @nr if they do not end in the
 * scheduler.
 */
static size_t kernel_begin(const struct sb_owner_path *path, size_t nr)
{
	struct sb_owner_frame frame = at(path, nr - 1);
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
	struct sb_owner_frame frame;

	if (!nr)
		return path->nr - 1;
	frame = at(path, leaf);
	/* A stack that is only the name of a process or a thread has no function. */
	if (frame.kind == SB_FRAME_ROOT)
		return path->nr - 1;
	/*
	 * For a thread that slept before the recording began, the kernel omits its scheduler's
	 * functions.
	 */
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
	/* A kernel thread; or all known frames are primitives. */
	return user < nr ? nr - 1 : in_kernel != NONE ? in_kernel : leaf;
}
