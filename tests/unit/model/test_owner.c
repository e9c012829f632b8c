// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whose the weight of a stack is: root first, "_k" behind kernel frames, "_w" behind a waker's,
 * "_r" behind roots, "_j" behind functions compiled just in time, whatever their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/fold.h"
#include "model/owner.h"

struct stack {
	const char *frames[16];
};

static struct sb_owner_frame frame_at(const void *arg, size_t i)
{
	static char names[16][64];
	const struct stack *stack = arg;
	size_t len = strlen(stack->frames[i]);
	struct sb_owner_frame frame = { .name = names[i], .kind = SB_FRAME_USER };

	memcpy(names[i], stack->frames[i], len + 1);
	if (!strcmp(names[i], "-") || !strcmp(names[i], "--")) {
		frame.kind = SB_FRAME_DELIMITER;
	} else if (len > 2 && names[i][len - 2] == '_') {
		frame.kind = names[i][len - 1] == 'k'	? SB_FRAME_KERNEL
			     : names[i][len - 1] == 'w' ? SB_FRAME_WAKER
			     : names[i][len - 1] == 'j' ? SB_FRAME_JIT
							: SB_FRAME_ROOT;
		names[i][len - 2] = 0;
	} else if (names[i][0] == '[' && !strchr(names[i], '+')) {
		frame.kind = SB_FRAME_MARK;
		frame.mark = (uint8_t)sb_fold_mark_kind(names[i]);
	}
	return frame;
}

static const struct {
	const char *want;
	struct stack stack;
} cases[] = {
	/* on a CPU it is the leaf, whatever that is */
	{ "memcpy", { { "app_r", "main", "memcpy" } } },
	{ "pthread_cond_wait", { { "app_r", "main", "pthread_cond_wait" } } },
	{ "do_syscall_64", { { "app_r", "main", "read", "do_syscall_64_k" } } },
	{ "app", { { "app_r" } } },
	{ "(other)", { { "app_r", "main", "(other)" } } },
	{ "[lost stack]", { { "app_r", "[lost stack]" } } },
	/* functions that are called as a state is */
	{ "[lock: mutex]", { { "app_r", "main", "[lock: mutex]_j" } } },
	{ "[idle]", { { "app_r", "main", "work", "[idle]_j" } } },
	{ "[blocked]",
	  { { "app_r", "main", "[blocked]_j", "poll", "do_poll_k", "schedule_k", "[blocked]" } } },
	/* waits: whoever called the primitives */
	{ "work",
	  { { "app_r", "main", "work", "clock_nanosleep", "do_syscall_64_k", "do_nanosleep_k",
	      "schedule_k" } } },
	{ "work",
	  { { "app_r", "main", "work", "__lll_lock_wait", "-", "futex_wait_k", "schedule_k",
	      "[lock: mutex]" } } },
	{ "work",
	  { { "app_r", "work", "pthread_cond_wait", "futex_wait_k", "schedule_k", "[idle: worker]",
	      "[blocked]" } } },
	{ "Queue.get",
	  { { "app_r", "Queue.get", "PyThread_acquire_lock_timed", "[libc.so.6+0x12]",
	      "futex_wait_k", "schedule_k" } } },
	{ "App.work",
	  { { "java_r", "App.work", "ObjectMonitor::enter", "os::PlatformEvent::park",
	      "pthread_cond_wait", "futex_wait_k", "schedule_k" } } },
	{ "App.hold",
	  { { "java_r", "App.hold", "java.lang.Thread.sleep0", "JVM_SleepNanos",
	      "JavaThread::sleep_nanos", "PlatformEvent::park_nanos", "pthread_cond_timedwait",
	      "futex_wait_k", "schedule_k" } } },
	/* a thread that slept before the run began has no functions of the scheduler; nor has a
	 * stack without the kernel's */
	{ "work",
	  { { "app_r", "main", "work", "read", "do_syscall_64_k", "anon_pipe_read_k",
	      "[blocked]" } } },
	{ "work", { { "app_r", "main", "work", "poll", "[idle: poll]", "[blocked]" } } },
	{ "do_syscall_64",
	  { { "app_r", "main", "work", "read", "do_syscall_64_k", "[running]" } } },
	/* a system call that is no primitive has its caller in the C library, too */
	{ "load", { { "app_r", "load", "read", "vfs_read_k", "folio_wait_k", "io_schedule_k" } } },
	/* text that does not say what is the kernel's; and a program that has a function of that
	 * name */
	{ "work",
	  { { "app_r", "main", "work", "read", "entry_SYSCALL_64_after_hwframe", "do_syscall_64",
	      "vfs_read", "schedule", "[blocked]" } } },
	{ "worker_thread",
	  { { "kworker_r", "ret_from_fork_asm", "ret_from_fork", "kthread", "worker_thread",
	      "schedule" } } },
	{ "schedule", { { "app_r", "main", "run", "schedule" } } },
	/* who wakes is none of it */
	{ "work",
	  { { "app_r", "work", "poll", "do_poll_k", "schedule_k", "--", "try_to_wake_up_w",
	      "waker_w" } } },
	/* threads of the kernel, nothing but primitives, nothing but the name of the thread */
	{ "worker_thread",
	  { { "kworker_r", "ret_from_fork_k", "kthread_k", "worker_thread_k", "schedule_k" } } },
	{ "pthread_cond_wait", { { "app_r", "pthread_cond_wait", "futex_wait_k", "schedule_k" } } },
	{ "schedule", { { "app_r", "schedule_k" } } },
	{ "[blocked]", { { "app_r", "[blocked]" } } },
};

static void test_cases(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sb_owner_path path = { .frame_at = frame_at, .arg = &cases[i].stack };

		while (path.nr < 16 && cases[i].stack.frames[path.nr])
			path.nr++;
		assert_string_equal(frame_at(path.arg, sb_owner_find(&path)).name, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
