// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lua's and LuaJIT's names and frames, in memory made by hand, and of any kind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "interp/core/runtimes.h"
#include "interp/core/step.h"
#include "interp/lua/lua_priv.h"
#include "interp/luajit/luajit_priv.h"

#include "bpf/step/sb_step_lua.h"
#include "bpf/step/sb_step_luajit.h"

#define BASE 0x10000ull

static uint8_t image[8192];

static int read_image(void *arg, void *dst, size_t len, uint64_t addr)
{
	if (addr < BASE || addr + len > BASE + sizeof(image) || addr + len < addr)
		return -EFAULT;
	memcpy(dst, image + (addr - BASE), len);
	return 0;
}

static struct sb_memory memory = { .read = read_image };

static void put(uint64_t addr, uint64_t val, size_t len)
{
	memcpy(image + (addr - BASE), &val, len);
}

static void put_string(uint64_t addr, const char *text)
{
	put(addr + 8, 4, 1); /* LUA_TSTRING */
	memcpy(image + (addr - BASE) + 24, text, strlen(text) + 1);
}

static void chunks_have_names(void **state)
{
	static const struct {
		const char *chunk;
		uint32_t line;
		const char *name, *file;
	} cases[] = {
		{ "@/srv/app/page.lua", 12, "page.lua:12", "/srv/app/page.lua" },
		{ "@page.lua", 0, "{main}", "page.lua" },
		{ "=stdin", 0, "{main}", "stdin" },
		{ "=(command line)", 0, "{main}", "(command line)" },
		{ "=content_by_lua(nginx.conf:9)", 0, "content_by_lua(nginx.conf:9)",
		  "content_by_lua(nginx.conf:9)" },
		{ "return 1", 3, "[string \"return 1\"]:3", "[string \"return 1\"]" },
		{ "", 3, "?:3", "?" },
	};
	struct sb_runtime_text text = {};
	struct sb_str chunk = {};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sb_str_clear(&text.name);
		sb_str_clear(&text.file);
		sb_str_clear(&chunk);
		sb_str_add(&chunk, cases[i].chunk);
		assert_int_equal(sb_lua_name_by_place(&chunk, cases[i].line, &text), 0);
		assert_string_equal(text.name.s, cases[i].name);
		assert_string_equal(text.file.s, cases[i].file);
	}
	sb_str_release(&chunk);
	sb_str_release(&text.name);
	sb_str_release(&text.file);
}

/* A function of 5.4 at BASE that calls the global "work", defined at BASE + 1024 and called at line
 * 7. */
static void make_54(void)
{
	const struct sb_lua_layout *at = sb_lua_layout_of(504);
	uint64_t caller = BASE, callee = BASE + 1024, code = BASE + 256, k = BASE + 512;

	memset(image, 0, sizeof(image));
	put(caller + at->code, code, 8);
	put(caller + at->nr_code, 2, 4);
	put(caller + at->k, k, 8);
	put(caller + at->nr_k, 1, 4);
	put(k, BASE + 640, 8);
	put(k + 8, 0x44, 1);
	put_string(BASE + 640, "work");
	put(code, at->ops.get_tab_up | 0 << 7, 4);
	put(code + 4, at->ops.call | 0 << 7 | 1u << 16 | 1u << 24, 4);
	put(callee + at->line, 5, 4);
	put(callee + at->source, BASE + 768, 8);
	put_string(BASE + 768, "@a.lua");
	put(callee + at->nr_lines, 2, 4);
	put(callee + at->lines, BASE + 896, 8);
	put(BASE + 896, 1, 1); /* lines 6, 7 */
	put(BASE + 897, 1, 1);
}

static void functions_are_called_what_the_call_loads(void **state)
{
	struct sb_runtime rt = { .ops = &sb_runtime_lua, .memory = &memory };
	struct sb_runtime_text text = {};

	make_54();
	rt.state = (void *)sb_lua_layout_of(504);
	assert_int_equal(sb_lua_describe_function(&rt, BASE + 1024, 2, BASE, 2, &text), 0);
	assert_string_equal(text.name.s, "work");
	assert_string_equal(text.file.s, "a.lua");
	assert_int_equal(text.line, 7);
	sb_str_clear(&text.name);
	sb_str_clear(&text.file);
	assert_int_equal(sb_lua_describe_function(&rt, BASE + 1024, 2, 0, 0, &text), 0);
	assert_string_equal(text.name.s, "a.lua:5");
	/* Constants beyond the end are none. */
	put(BASE + sb_lua_layout_of(504)->nr_k, 0, 4);
	sb_str_clear(&text.name);
	assert_int_equal(sb_lua_call_name(&rt, BASE, 2, &text.name), -EBADMSG);
	sb_str_release(&text.name);
	sb_str_release(&text.file);
}

/* Walks end, whatever the memory is. */
static void walks_end(void **state)
{
	static struct sb_interp_walk walk;
	struct sb_walk native = { .pc = 5000, .user_end = 1ull << 47, .flags = SB_WALK_LEAF };
	uint64_t seed = 88172645463325252ull;
	size_t round, i, nr_steps;

	for (round = 0; round < 2000; round++) {
		for (i = 0; i < sizeof(image) / 8; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			put(BASE + 8 * i, round & 1 ? seed : BASE + (seed & 0xff8), 8);
		}
		memset(&walk, 0, sizeof(walk));
		memcpy(walk.conf.word, image, sizeof(struct sb_luajit_conf));
		walk.conf.hook_begin = 4096;
		walk.conf.hook_end = 8192;
		native.sp = BASE + 2048;
		native.fp = BASE + 3000;
		native.pc = round & 2 ? 5000 : BASE;
		native.flags = round & 4 ? SB_WALK_LEAF : 0;
		sb_luajit_native(&walk, &native, &memory);
		for (nr_steps = 0; nr_steps < SB_INTERP_STEPS_MAX; nr_steps++)
			if (sb_luajit_step(&walk, &memory) != SB_STEP_GO_ON)
				break;
		memset(walk.at, 0, sizeof(walk.at));
		native.pc = 5000;
		sb_lua_native(&walk, &native, &memory);
		for (nr_steps = 0; nr_steps < SB_INTERP_STEPS_MAX; nr_steps++)
			if (sb_lua_step(&walk, &memory) != SB_STEP_GO_ON)
				break;
		assert_true(walk.nr_frames <= SB_INTERP_FRAMES_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_have_names),
		cmocka_unit_test(functions_are_called_what_the_call_loads),
		cmocka_unit_test(walks_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
