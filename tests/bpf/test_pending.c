// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A wait that goes on names the stacks it began with when it is over: sb_session_pending() lists
 * them, or user space would have forgotten them by then. A child waits in read(), is asked after,
 * and goes on.
 */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/status.h"
#include "capture/session.h"
#include "symbolizer/sb_sym.h"

struct child {
	pid_t pid;
	int to, from; /* pipes */
};

/* Reads until the other end closes; says when it has run. */
static void start_child(struct child *child)
{
	int in[2], out[2];
	char c = 0;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(in[1]);
		while (read(in[0], &c, 1) == 1)
			(void)!write(out[1], &c, 1);
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	child->to = in[1];
	child->from = out[0];
}

static void wake(const struct child *child)
{
	char c = 'x';

	assert_int_equal(write(child->to, &c, 1), 1);
	assert_int_equal(read(child->from, &c, 1), 1);
}

/* Until it waits. */
static void see_it_wait(const struct child *child)
{
	sb_cleanup(sb_freep) char *status = NULL;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)child->pid);
	do {
		free(status);
		status = NULL;
		sched_yield();
		assert_int_equal(sb_read_file(path, SB_STATUS_BYTES_MAX, &status, NULL), 0);
	} while (!strstr(status, "State:\tS"));
}

static void end_child(struct child *child)
{
	close(child->to);
	close(child->from);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

static bool is_among(struct sb_stack_id id, const struct sb_stack_id *ids, size_t nr)
{
	size_t i;

	if (!id.lo && !id.hi)
		return true;
	for (i = 0; i < nr; i++)
		if (ids[i].lo == id.lo && ids[i].hi == id.hi)
			return true;
	return false;
}

/* Return: how many counts there are of the child's waits, all stacks of which are among @ids. */
static size_t check_waits(const struct sb_batch *batch, const struct child *child,
			  const struct sb_stack_id *ids, size_t nr)
{
	size_t i, nr_found = 0;

	for (i = 0; i < batch->nr_counts; i++) {
		const struct sb_sample_key *key = &batch->counts[i].key;

		if (key->tgid != (uint32_t)child->pid || key->state != SB_STATE_SLEEP)
			continue;
		assert_true(key->kstack.lo || key->kstack.hi);
		assert_true(is_among(key->kstack, ids, nr));
		assert_true(is_among(key->ustack, ids, nr));
		nr_found++;
	}
	return nr_found;
}

static void look(struct sb_session *session, const struct child *child)
{
	const struct sb_stack_id *ids;
	const struct sb_batch *batch;
	size_t nr, nr_found = 0;
	int i;

	assert_int_equal(sb_session_start(session), 0);
	/* A wait that the run saw from its beginning on. */
	wake(child);
	see_it_wait(child);
	assert_int_equal(sb_session_drain(session, &batch), 0);
	assert_int_equal(sb_session_pending(session, &ids, &nr), 0);
	assert_true(nr > 0);
	wake(child);
	/* In this batch, or in the next. */
	for (i = 0; i < 2; i++) {
		assert_int_equal(sb_session_drain(session, &batch), 0);
		nr_found += check_waits(batch, child, ids, nr);
	}
	assert_true(nr_found > 0);
	assert_int_equal(sb_session_stop(session), 0);
}

static void test_view(void **state)
{
	struct child child;
	struct sb_targets targets = {};
	struct sb_session_opts opts = {
		.views = { .at = { sb_view_find(*state) }, .nr = 1 },
		.targets = &targets,
		.freq_hz = 99,
		.sides = SB_SIDE_USER | SB_SIDE_KERNEL,
		.unwind = SB_UNWIND_FP,
	};
	struct sb_session *session;

	start_child(&child);
	assert_int_equal(sb_vec_push(&targets.tgids,
				     (struct sb_pid_rule){ (uint32_t)child.pid, SB_RULE_ALLOW }),
			 0);
	assert_int_equal(sb_symbolizer_new(&(struct sb_symbolizer_opts){}, &opts.symbolizer), 0);
	assert_int_equal(sb_processes_new(NULL, &opts.processes), 0);
	assert_int_equal(sb_session_new(&opts, &session), 0);
	look(session, &child);
	end_child(&child);
	sb_session_free(session);
	sb_symbolizer_free(opts.symbolizer);
	sb_processes_free(opts.processes);
	sb_targets_release(&targets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_view, "offcpu"),
		cmocka_unit_test_prestate(test_view, "offwake"),
		cmocka_unit_test_prestate(test_view, "wall"),
	};

	sb_log_init("test", SB_LOG_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
