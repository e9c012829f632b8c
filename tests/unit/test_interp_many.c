// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* More runtimes in one process than are walked. This program looks as if it were one of Lua's, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "interp/interp_priv.h"

extern const char lua_ident[];
__attribute__((used, visibility("default"))) const char lua_ident[] = "$LuaVersion: Lua 5.4 $";

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
		said->is_said_why = found->why && strstr(found->why, "4 others");
	}
	return 0;
}

/* The fifth is said, and counted once. */
static void test_fifth(void **state)
{
	const struct sb_interp_space key = { .start_ns = 1, .tgid = (uint32_t)getpid() };
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
	sb_str_release(&space->found[0].rt.why);
	for (i = 0; i < SB_INTERP_PER_PROC; i++) {
		space->found[i] = (struct found){ .is_attached = true };
		space->found[i].rt.ops = &other;
		space->found[i].rt.memory = &space->memory;
	}
	space->nr_found = SB_INTERP_PER_PROC;
	for (i = 0; i < 2; i++) {
		assert_int_equal(sb_interp_look(interp, &key, &confs), 0);
		assert_int_equal(confs.nr, SB_INTERP_PER_PROC);
	}
	sb_interp_stats(interp, &stats);
	assert_int_equal(stats.nr_refused, 1);
	for (i = 0; i < SB_INTERP_PER_PROC; i++)
		space->found[i].image = space->found[SB_INTERP_PER_PROC].image;
	sb_interp_each(interp, note, &said);
	assert_int_equal(said.nr_walked, SB_INTERP_PER_PROC);
	assert_int_equal(said.nr_lua, 1);
	assert_true(said.is_said_why);
	sb_interp_free(interp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
