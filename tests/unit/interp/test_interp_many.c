// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* More runtimes in one process than are walked, and more processes than are remembered. This
 * program looks as if it were one of Lua's, too, and of Go's. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/time.h"
#include "interp/core/interp_priv.h"

extern const char lua_ident[];
__attribute__((used, visibility("default"))) const char lua_ident[] = "$LuaVersion: Lua 5.4 $";
__attribute__((used, section(".go.buildinfo"))) static const char go_info[] = "";

static const struct sb_runtime_ops other = { .runtime = SB_RUNTIME_PYTHON, .name = "python" };

struct said {
	size_t nr_walked, nr_lua;
	bool is_said_why;
};

static int note(void *arg, const struct sb_interp_found *found)
{
	struct said *said = arg;

	said->nr_walked += !found->why;
	if (found->runtime == SB_RUNTIME_LUA) {
		said->nr_lua++;
		said->is_said_why = found->why && strstr(found->why, "4 other interpreters");
	}
	return 0;
}

/* The fifth is said, and counted once. */
static void test_fifth(void **state)
{
	const struct sb_space_key key = { .start_ns = 1, .tgid = (uint32_t)getpid() };
	struct sb_interp_confs confs;
	struct sb_interp_stats stats;
	struct sb_interp *interp;
	struct said said = {};
	struct space *space;
	size_t i;

	(void)state;
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){}, &interp), 0);
	assert_int_equal(sb_interp_look(interp, &key, &confs), 0);
	sb_interp_stats(interp, &stats);
	assert_int_equal(stats.nr_refused, 0);
	space = sb_interp_find(interp, &key);
	assert_int_equal(space->nr_found, 1); /* refused for what it is */
	assert_string_equal(sb_interp_runtime_of(interp, &key), "lua");
	sb_interp_drop_found(space, 0);
	assert_string_equal(sb_interp_runtime_of(interp, &key), "go");
	for (i = 0; i < SB_INTERP_PER_PROC; i++) {
		space->found[i] = calloc(1, sizeof(struct found));
		assert_non_null(space->found[i]);
		space->found[i]->is_attached = true;
		space->found[i]->rt.ops = &other;
		space->found[i]->rt.memory = &space->memory;
	}
	space->nr_found = SB_INTERP_PER_PROC;
	for (i = 0; i < 2; i++) {
		assert_int_equal(sb_interp_look(interp, &key, &confs), 0);
		assert_int_equal(confs.nr, SB_INTERP_PER_PROC);
	}
	sb_interp_stats(interp, &stats);
	assert_int_equal(stats.nr_refused, 1);
	for (i = 0; i < SB_INTERP_PER_PROC; i++)
		space->found[i]->image = space->found[SB_INTERP_PER_PROC]->image;
	sb_interp_each(interp, note, &said);
	assert_int_equal(said.nr_walked, SB_INTERP_PER_PROC);
	assert_int_equal(said.nr_lua, 1);
	assert_true(said.is_said_why);
	sb_interp_free(interp);
}

/* Processes come and go; what is left of them does not grow. */
static void test_forgotten(void **state)
{
	struct sb_space_key key = { .tgid = (uint32_t)getpid() };
	struct sb_interp_confs confs;
	struct sb_interp_stats stats;
	struct sb_processes *processes;
	struct sb_interp *interp;
	struct said said = {};
	const size_t nr = 100;
	uint64_t before_ns;

	(void)state;
	assert_int_equal(sb_processes_new(NULL, &processes), 0);
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){ .processes = processes }, &interp),
			 0);
	/* Each takes the place of the one before. */
	for (key.start_ns = 1; key.start_ns <= nr; key.start_ns++)
		assert_int_equal(sb_interp_look(interp, &key, &confs), 0);
	/* Somebody may still ask. */
	sb_processes_forget(processes, 1);
	key.start_ns = 1;
	assert_true(sb_interp_knows(interp, &key));
	sb_processes_forget(processes, UINT64_MAX);
	assert_false(sb_interp_knows(interp, &key));
	/* The last one lives, though its first thread may have ended before it was looked at. */
	key.start_ns = nr;
	assert_true(sb_interp_knows(interp, &key));
	before_ns = sb_now_ns();
	assert_int_equal(sb_interp_look(interp, &key, &confs), 0);
	sb_processes_exit(processes, key.tgid, before_ns);
	sb_processes_forget(processes, UINT64_MAX);
	assert_true(sb_interp_knows(interp, &key));
	sb_interp_each(interp, note, &said);
	assert_int_equal(said.nr_lua, 2); /* of all that have ended, and of the one that lives */
	sb_interp_stats(interp, &stats);
	assert_int_equal(stats.nr_processes, nr);
	assert_int_equal(stats.nr_unlisted, 0);
	sb_interp_free(interp);
	sb_processes_free(processes);
}

/* What a process runs, by its number before anybody knows more of it; nothing is said of one that
 * is not there. */
static void test_runtime(void **state)
{
	const uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
	struct sb_space_key key = { .tgid = (uint32_t)getpid() }, dead = { .start_ns = 1 };
	struct sb_interp_confs confs;
	struct sb_procfs_stat stat;
	struct sb_interp *interp;
	siginfo_t info;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){}, &interp), 0);
	assert_int_equal(sb_interp_look(interp, &key, &confs), 0);
	assert_int_equal(sb_procfs_stat(key.tgid, &stat), 0);
	key.exec_id = 5;
	key.start_ns = stat.start_ticks * tick_ns + 1;
	assert_string_equal(sb_interp_runtime_of(interp, &key), "lua");
	key.start_ns += tick_ns;
	assert_null(sb_interp_runtime_of(interp, &key));
	/* It has no memory any more. */
	dead.tgid = (uint32_t)child;
	assert_int_equal(sb_interp_look(interp, &dead, &confs), -ESRCH);
	assert_null(sb_interp_runtime_of(interp, &dead));
	assert_int_equal(waitpid(child, NULL, 0), child);
	sb_interp_free(interp);
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){ .no_frames = true }, &interp), 0);
	key.start_ns = 1;
	assert_int_equal(sb_interp_look(interp, &key, &confs), 0);
	assert_null(sb_interp_runtime_of(interp, &key)); /* nobody looked for any */
	sb_interp_free(interp);
}

/* Nobody tells when one that has ended is waited for: then it would be remembered for ever. */
static void test_ended(void **state)
{
	struct sb_space_key key = { .start_ns = 1 }, kernel = { .start_ns = 1, .tgid = 2 };
	struct sb_interp_confs confs;
	struct sb_procfs_stat stat;
	struct sb_processes *processes;
	struct sb_interp *interp;
	siginfo_t info;
	pid_t child;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(1);
	}
	key.tgid = (uint32_t)child;
	assert_int_equal(sb_processes_new(NULL, &processes), 0);
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){ .processes = processes }, &interp),
			 0);
	assert_int_equal(sb_interp_look(interp, &key, &confs), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(sb_interp_look(interp, &key, &confs), -ESRCH);
	/* What is known of it is good for samples that come still. */
	assert_true(sb_interp_knows(interp, &key));
	sb_interp_ended(interp, &key);
	sb_processes_forget(processes, UINT64_MAX);
	assert_false(sb_interp_knows(interp, &key));
	assert_int_equal(waitpid(child, NULL, 0), child);
	/* One of the kernel has no memory, either, and goes on; in a container there is none. */
	if (!sb_procfs_stat(kernel.tgid, &stat) && stat.is_kernel)
		assert_int_equal(sb_interp_look(interp, &kernel, &confs), 0);
	sb_interp_free(interp);
	sb_processes_free(processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifth),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_runtime),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
