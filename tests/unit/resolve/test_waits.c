// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits for locks and for work, as stacks of real programs have them: leaf first, '@' before
 * functions of a language. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "resolve/waits.h"

#define GLIBC_COND "__futex_abstimed_wait_common", "__pthread_cond_wait_common", "pthread_cond_wait"
#define GLIBC_SEM  "__futex_abstimed_wait_common", "__new_sem_wait_slow64.constprop.0"
#define JAVA_PARK                                                                    \
	GLIBC_COND, "Parker::park", "Unsafe_Park", "@jdk.internal.misc.Unsafe.park", \
		"@java.util.concurrent.locks.LockSupport.park"
#define JAVA_AQS JAVA_PARK, "@java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire"
#define PY_LOCK \
	GLIBC_SEM, "PyThread_acquire_lock_timed", "acquire_timed", "lock_PyThread_acquire_lock"

static const struct wait_case {
	const char *want; /* "lock: mutex"; NULL: plain */
	const char *kernel;
	const char *user[20];
} cases[] = {
	/* what waits in the primitives of a library, with no caller that says why */
	{ NULL, "futex_do_wait", { GLIBC_COND, "work", "start_thread" } },
	{ NULL, "do_nanosleep", { "clock_nanosleep", "main" } },
	{ NULL, "poll_schedule_timeout.constprop.0", { "poll", "PQgetResult" } },
	{ NULL, "io_cqring_wait", { "io_uring_wait_cqe", "main" } },
	{ NULL,
	  "futex_do_wait",
	  { "__futex_abstimed_wait_common", "__pthread_clockjoin_ex", "main" } },
	{ NULL, "sigsuspend", { "sigsuspend", "GC_suspend_handler" } },
	{ NULL, "do_wait", { "wait4", "waitchld" } },
	{ NULL, NULL, { "main" } },
	/* locks of the C library, with its symbols and without */
	{ "lock: mutex",
	  "futex_do_wait",
	  { "futex_wait", "__GI___lll_lock_wait", "pthread_mutex_lock", "f" } },
	{ "lock: mutex", "futex_wait_queue", { "[libc.so.6+0x8a1]", "pthread_mutex_lock", "f" } },
	{ "lock: mutex",
	  "futex_wait_queue",
	  { "__lll_lock_wait", "__pthread_mutex_cond_lock", "pthread_cond_wait", "f" } },
	{ "lock: rwlock",
	  "futex_do_wait",
	  { "__pthread_rwlock_wrlock_full64", "pthread_rwlock_wrlock", "f" } },
	{ "lock: semaphore", "futex_do_wait", { GLIBC_SEM, "f" } },
	{ "lock: semaphore", "futex_do_wait", { "[libc.so.6+0x8b3]", "f" } },
	{ "lock: malloc",
	  "futex_do_wait",
	  { "[libc.so.6+0x8b3]", "[libc.so.6+0x99]", "malloc", "f" } },
	{ "lock: mutex", NULL, { "pthread_mutex_lock", "f" } }, /* without a kernel stack */
	{ "lock: semaphore", "__do_semtimedop", { "semop", "f" } },
	/* Java */
	{ "lock: monitor",
	  "futex_do_wait",
	  { GLIBC_COND, "os::PlatformEvent::park", "ObjectMonitor::EnterI", "ObjectMonitor::enter",
	    "ObjectSynchronizer::enter", "@App.f" } },
	{ "lock: monitor",
	  "futex_do_wait",
	  { GLIBC_COND, "os::PlatformEvent::park", "ObjectMonitor::ReenterI", "ObjectMonitor::wait",
	    "@java.lang.Object.wait" } },
	{ NULL,
	  "futex_do_wait",
	  { GLIBC_COND, "os::PlatformEvent::park", "ObjectMonitor::wait",
	    "ObjectSynchronizer::wait", "@java.lang.Object.wait", "@App.f" } },
	{ NULL,
	  "futex_do_wait",
	  { GLIBC_COND, "os::PlatformEvent::park", "JavaThread::sleep", "@java.lang.Thread.sleep",
	    "@App.f" } },
	{ "lock: mutex",
	  "futex_do_wait",
	  { JAVA_AQS, "@java.util.concurrent.locks.ReentrantLock.lock", "@App.f" } },
	{ "lock: rwlock",
	  "futex_do_wait",
	  { JAVA_AQS, "@java.util.concurrent.locks.ReentrantReadWriteLock$WriteLock.lock" } },
	{ "lock: semaphore",
	  "futex_do_wait",
	  { JAVA_AQS,
	    "@java.util.concurrent.locks.AbstractQueuedSynchronizer.acquireSharedInterruptibly",
	    "@java.util.concurrent.Semaphore.acquire" } },
	{ NULL,
	  "futex_do_wait",
	  { JAVA_AQS,
	    "@java.util.concurrent.locks.AbstractQueuedSynchronizer.acquireSharedInterruptibly",
	    "@java.util.concurrent.CountDownLatch.await" } },
	{ "idle: worker",
	  "futex_do_wait",
	  { JAVA_PARK, "@java.util.concurrent.LinkedBlockingQueue.take",
	    "@java.util.concurrent.ThreadPoolExecutor.getTask",
	    "@java.util.concurrent.ThreadPoolExecutor.runWorker" } },
	{ NULL,
	  "futex_do_wait",
	  { JAVA_PARK, "@java.util.concurrent.FutureTask.get", "@App.f",
	    "@java.util.concurrent.ThreadPoolExecutor.runWorker" } },
	{ "lock: mutex",
	  "futex_do_wait",
	  { JAVA_AQS, "@java.util.concurrent.LinkedBlockingQueue.take",
	    "@java.util.concurrent.ThreadPoolExecutor.getTask" } },
	{ "idle: worker",
	  "futex_do_wait",
	  { GLIBC_SEM, "PosixSemaphore::wait", "GangWorker::loop" } },
	{ "idle: worker", "futex_do_wait", { GLIBC_COND, "Monitor::wait", "CompileQueue::get" } },
	{ NULL, "futex_do_wait", { GLIBC_COND, "Monitor::wait", "VMThread::wait_until_executed" } },
	/* Python */
	{ "lock: gil",
	  "futex_do_wait",
	  { GLIBC_COND, "PyCOND_TIMEDWAIT", "take_gil", "PyEval_RestoreThread", "@f" } },
	{ "lock: gil",
	  "futex_do_wait",
	  { "__pthread_cond_wait_common", "pthread_cond_timedwait", "[python3.11+0x77]", "@f" } },
	{ "lock: mutex", "futex_do_wait", { PY_LOCK, "@f", "@Thread.run" } },
	{ "lock: mutex", "futex_do_wait", { PY_LOCK, "@_worker", "@Thread.run" } },
	{ "lock: semaphore",
	  "futex_do_wait",
	  { PY_LOCK, "@Condition.wait", "@Semaphore.acquire", "@f" } },
	{ NULL, "futex_do_wait", { PY_LOCK, "@Condition.wait", "@Queue.get", "@f" } },
	{ NULL, "futex_do_wait", { PY_LOCK, "@Condition.wait", "@Event.wait", "@f" } },
	{ NULL,
	  "futex_do_wait",
	  { GLIBC_SEM, "PyThread_acquire_lock_timed", "_queue_SimpleQueue_get_impl", "@f" } },
	{ "idle: worker",
	  "futex_do_wait",
	  { GLIBC_SEM, "PyThread_acquire_lock_timed", "_queue_SimpleQueue_get_impl",
	    "_queue_SimpleQueue_get", "@_worker", "@Thread.run" } },
	{ "lock: mutex",
	  "futex_do_wait",
	  { PY_LOCK, "@task", "@_WorkItem.run", "@_worker", "@Thread.run" } },
	{ NULL,
	  "poll_schedule_timeout",
	  { "poll", "@_PollLikeSelector.select", "@Popen._communicate" } },
	{ "idle: poll",
	  "poll_schedule_timeout",
	  { "poll", "@_PollLikeSelector.select", "@BaseServer.serve_forever" } },
	/* Ruby */
	{ "lock: mutex",
	  "futex_do_wait",
	  { GLIBC_COND, "rb_native_cond_wait", "@Thread::Mutex#lock", "@f" } },
	{ NULL,
	  "futex_do_wait",
	  { GLIBC_COND, "rb_native_cond_wait", "@Thread::Queue#pop", "@f" } },
	{ "lock: gvl",
	  "futex_do_wait",
	  { GLIBC_COND, "rb_native_cond_wait", "thread_sched_to_running", "@Kernel#sleep" } },
	/* Go, Rust */
	{ "idle: scheduler",
	  "futex_do_wait",
	  { "runtime.futex.abi0", "runtime.futexsleep", "runtime.notesleep", "runtime.mPark",
	    "runtime.stopm", "runtime.findRunnable" } },
	{ "lock: mutex",
	  "futex_do_wait",
	  { "runtime.futex.abi0", "runtime.futexsleep", "runtime.lock2", "runtime.findRunnable" } },
	{ "idle: timer", "do_nanosleep", { "runtime.usleep.abi0", "runtime.sysmon" } },
	{ "idle: epoll",
	  "do_epoll_wait",
	  { "runtime.epollwait.abi0", "runtime.netpoll", "runtime.findRunnable" } },
	{ "lock: mutex",
	  "futex_do_wait",
	  { "syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended", "f" } },
	{ "lock: mutex",
	  "futex_do_wait",
	  { "syscall", "std::sys::pal::unix::futex::futex_wait",
	    "<std::sys::sync::mutex::futex::Mutex>::lock_contended", "f" } },
	{ "lock: rwlock",
	  "futex_do_wait",
	  { "syscall", "<std::sys::sync::rwlock::futex::RwLock>::write_contended", "f" } },
	{ NULL,
	  "futex_do_wait",
	  { "syscall", "<std::sys::sync::thread_parking::futex::Parker>::park", "f" } },
	/* PostgreSQL: one primitive, epoll, for all; and semaphores of the C library */
	{ "lock: lwlock",
	  "futex_do_wait",
	  { GLIBC_SEM, "PGSemaphoreLock", "LWLockAcquire", "XLogInsert" } },
	{ "lock: transaction",
	  "do_epoll_wait",
	  { "epoll_wait", "WaitEventSetWait", "WaitLatch", "ProcSleep", "LockAcquireExtended" } },
	{ "idle: client",
	  "do_epoll_wait",
	  { "epoll_wait", "WaitEventSetWait", "secure_read", "pq_recvbuf", "PostgresMain" } },
	{ "idle: worker",
	  "do_epoll_wait",
	  { "epoll_wait", "WaitEventSetWait", "WaitLatch", "WalWriterMain" } },
	{ NULL,
	  "do_epoll_wait",
	  { "epoll_wait", "WaitEventSetWait", "WaitLatch", "CheckpointWriteDelay", "BufferSync",
	    "CheckpointerMain" } },
	{ "idle: worker",
	  "do_epoll_wait",
	  { "epoll_wait", "WaitEventSetWait", "WaitLatch", "[postgres+0x3e54a0]",
	    "StartAutoVacLauncher" } },
	{ "idle: accept", "do_select", { "__select", "[postgres+0x3ee3c0]", "PostmasterMain" } },
	/* the kernel's own; compilers append to the names of functions that they change */
	{ "lock: kernel", "rwsem_down_read_slowpath", { "mmap", "f" } },
	{ "lock: kernel", "__mutex_lock.constprop.0", { "write", "f" } },
	{ "lock: file", "flock_lock_inode_wait", { "flock", "f" } },
	{ "idle: epoll", "do_epoll_wait", { "epoll_wait", "f" } },
	{ "idle: epoll", "ep_poll", { NULL } },
	{ "idle: accept", "inet_csk_accept", { "accept", "f" } },
	{ "idle: signal", "do_sigtimedwait.isra.0", { "sigwait", "f" } },
	{ "idle: worker", "worker_thread", { NULL } },
	/* A page that is not there is no lock, whoever touched it. */
	{ NULL, "folio_wait_bit_common", { "take_gil", "PyEval_RestoreThread" } },
};

static void check(const struct wait_case *c)
{
	struct sb_wait_frame frames[20];
	const struct sb_wait wait = { .kernel = c->kernel, .user = frames };
	struct sb_wait_reason reason;
	struct sb_wait full = wait;
	char have[64] = "";

	for (; full.nr_user < 20 && c->user[full.nr_user]; full.nr_user++) {
		const char *name = c->user[full.nr_user];
		bool is_interp = *name == '@';

		name += is_interp;
		frames[full.nr_user] = (struct sb_wait_frame){ .name = name,
							       .is_interp = is_interp,
							       .is_word = sb_waits_is_word(name) };
	}
	reason = sb_waits_reason(&full);
	if (reason.class != SB_WAIT_PLAIN)
		snprintf(have, sizeof(have), "%s: %s",
			 reason.class == SB_WAIT_LOCK ? "lock" : "idle", reason.kind);
	if (strcmp(have, c->want ? c->want : ""))
		fail_msg("case %zu, %s in %s: '%s' instead of '%s'", (size_t)(c - cases),
			 c->user[0], c->kernel, have, c->want ? c->want : "");
}

static void test_cases(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check(&cases[i]);
}

/* However deep the stack is, only the frames next to the kernel are looked at. */
static void test_depth(void **state)
{
	struct sb_wait_frame frames[SB_WAIT_FRAMES_MAX + 1];
	struct sb_wait wait = { .kernel = "futex_do_wait", .user = frames };

	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
		frames[i] = (struct sb_wait_frame){ .name = "f" };
	frames[SB_WAIT_FRAMES_MAX] = (struct sb_wait_frame){ .name = "take_gil", .is_word = true };
	wait.nr_user = SB_WAIT_FRAMES_MAX + 1;
	assert_int_equal(sb_waits_reason(&wait).class, SB_WAIT_PLAIN);
	frames[SB_WAIT_FRAMES_MAX - 1] = frames[SB_WAIT_FRAMES_MAX];
	assert_int_equal(sb_waits_reason(&wait).class, SB_WAIT_LOCK);
	/* A chain that the bound cuts does not fit. */
	frames[SB_WAIT_FRAMES_MAX - 1] =
		(struct sb_wait_frame){ .name = "uv_cond_wait", .is_word = true };
	frames[SB_WAIT_FRAMES_MAX] = (struct sb_wait_frame){ .name = "worker" };
	assert_int_equal(sb_waits_reason(&wait).class, SB_WAIT_PLAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
