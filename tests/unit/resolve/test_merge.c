// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frames of interpreters among native ones: a process of known answers in the place of a real
 * one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "bpf/abi/sb_abi_interp.h"
#include "interp/core/interp.h"
#include "model/fold.h"
#include "model/profile.h"
#include "resolve/resolve.h"

/* Addresses of machine code. Code that GLUE names is glue of Python's; see
 * user/interp/python/python.c. */
enum {
	MAIN = 0x1000,
	SORT = 0x1001,
	GLUE = 0x1002,
	GLUE_ELSEWHERE = 0x1003, /* the same name in another file */
	NAMELESS = 0x1004,	 /* in the loop's file */
	NAMELESS_ELSEWHERE = 0x1005,
	LIBC = 0x1006,
	JIT = 0x1007,
	START = 0x1008,
	PY = 0x1100, /* and up: the loop of Python */
	PL = 0x1200, /* and up: of Perl */
};

static void answer_one(uint64_t addr, struct sb_sym_frame *frame)
{
	static const char *const names[] = {
		"main", "list_sort", "PyEval_EvalCode", "PyEval_EvalCode", NULL, NULL,
		"read", NULL,	     "_start"
	};

	*frame = (struct sb_sym_frame){ .module = "python" };
	if (addr >= PL)
		frame->name = "Perl_runops_standard", frame->module = "perl";
	else if (addr >= PY)
		frame->name = "_PyEval_EvalFrameDefault";
	else
		frame->name = names[addr - MAIN];
	if (addr == GLUE_ELSEWHERE || addr == NAMELESS_ELSEWHERE || addr == LIBC)
		frame->module = "libc.so.6";
	if (!frame->name)
		frame->reason = addr == JIT ? SB_SYM_ANON : SB_SYM_NO_MATCH;
	frame->module_addr = addr;
}

int sb_symbolizer_user(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
		       const struct sb_sym_query *query)
{
	struct sb_sym_frame frame;
	size_t i;
	int err = 0;

	for (i = 0; i < query->nr && !err; i++) {
		answer_one(query->reqs[i].addr, &frame);
		err = query->emit(query->arg, i, &frame, 1);
	}
	return err;
}

int sb_symbolizer_kernel(struct sb_symbolizer *sym, const struct sb_sym_query *query)
{
	return 0;
}

uint64_t sb_symbolizer_next_change(struct sb_symbolizer *sym, uint32_t tgid, uint64_t from_ns,
				   uint64_t to_ns, const struct sb_sym_query *query)
{
	return UINT64_MAX;
}

bool sb_interp_anchors(struct sb_interp *interp, const struct sb_space_key *space,
		       struct sb_interp_anchors *ret)
{
	*ret = (struct sb_interp_anchors){
		.runtimes = { SB_RUNTIME_PYTHON, SB_RUNTIME_PERL },
		.files = { "python", "perl" },
		.nr_runtimes = 2,
		.natives = { SB_RUNTIME_V8 },
		.native_files = { "" },
		.nr_natives = 1,
	};
	return true;
}

uint32_t sb_interp_anchor_of(const struct sb_interp_anchors *anchors, uint64_t addr,
			     const char *name)
{
	return addr >= PL ? SB_RUNTIME_PERL : addr >= PY ? SB_RUNTIME_PYTHON : 0;
}

/* The loop of Perl by what it is called by: LIBC stands for call_sv(), GLUE_ELSEWHERE for
 * S_docatch(). */
static bool has_callers;

uint32_t sb_interp_caller_of(const struct sb_interp_anchors *anchors, uint32_t runtime,
			     uint64_t addr)
{
	return runtime != SB_RUNTIME_PERL ? SB_INTERP_ANCHOR_LOOP
	       : addr == LIBC		  ? SB_INTERP_ANCHOR_CALLER
	       : addr == GLUE_ELSEWHERE	  ? SB_INTERP_ANCHOR_INNER
					  : SB_INTERP_ANCHOR_LOOP;
}

bool sb_interp_has_callers(const struct sb_interp_anchors *anchors, uint32_t runtime)
{
	return has_callers && runtime == SB_RUNTIME_PERL;
}

/* The object's number is its name; of object 'X', an 'x' was inlined into it. */
int sb_interp_name(struct sb_interp *interp, const struct sb_space_key *space,
		   const struct sb_interp_frame *frame, uint32_t i, struct sb_interp_name *name)
{
	sb_str_clear(&name->name);
	sb_str_clear(&name->file);
	name->is_unnamed = frame->obj == '?';
	name->line = 7;
	if (i > (frame->obj == 'X'))
		return -ENODATA;
	if (!i && frame->obj == 'X')
		return sb_str_add(&name->name, "x");
	return sb_str_addc(&name->name, (char)frame->obj);
}

/* 'S' is the list_sort() that Python knows of, 'R' its read(). */
uint64_t sb_interp_c_function(struct sb_interp *interp, const struct sb_space_key *space,
			      const struct sb_interp_frame *frame)
{
	return frame->obj == 'S' ? SORT : frame->obj == 'R' ? LIBC : 0;
}

void sb_interp_name_release(struct sb_interp_name *name)
{
	sb_str_release(&name->name);
	sb_str_release(&name->file);
}

/* One stack, leaf first, and what the walkers found: letters, leaf first; '|' ends a segment; those
 * of Perl are lower case, '.' is SB_INTERP_READY, '#' turns to V8. */
struct given {
	uint64_t ip[8];
	const char *found;
	uint32_t status, interp_status;
	enum sb_interp_mode mode;
	uint32_t depth_max;
};

static uint32_t make_frames(const char *found, struct sb_interp_frame *frames)
{
	uint64_t runtime = SB_RUNTIME_PYTHON;
	uint32_t nr = 0;

	for (; *found; found++) {
		if (*found == '#') {
			runtime = SB_RUNTIME_V8;
		} else if (*found == '|') {
			frames[nr - 1].where |= SB_WHERE_END;
		} else {
			uint64_t is_perl = *found == '.' || (*found >= 'a' && *found <= 'z');

			frames[nr++] = (struct sb_interp_frame){
				.obj = *found == '.' ? SB_INTERP_READY : (uint64_t)*found,
				.where = (is_perl ? SB_RUNTIME_PERL : runtime)
					 << SB_WHERE_RUNTIME_SHIFT,
			};
		}
	}
	return nr;
}

static int collect(void *arg, const char *line, size_t len)
{
	snprintf(arg, 256, "%.*s", (int)len, line);
	return 0;
}

static struct sb_resolve_stats stats;

static const char *merged(const struct given *given)
{
	static char folded[256];
	struct sb_interp_frame frames[32];
	struct sb_batch_stack stacks[2] = {
		{ .id = { 1, 1 }, .status = given->status, .ip = given->ip },
		{ .id = { 2, 1 }, .status = given->interp_status, .flags = SB_STACK_INTERP },
	};
	const struct sb_batch_count count = {
		.key = { .ustack = { 1, 1 }, .istack = { 2, 1 }, .comm = "c", .tgid = 1 },
		.count = { .weight = 1, .nr_samples = 1 },
	};
	const struct sb_batch batch = { &count, 1, stacks, 2, NULL, 0 };
	const struct sb_resolve_opts opts = {
		.interp = (struct sb_interp *)frames, /* not looked into */
		.interp_mode = given->mode,
		.depth_max = given->depth_max,
	};
	struct sb_resolver *resolver;
	struct sb_profile *profile;

	folded[0] = '\0';
	while (stacks[0].nr_frames < 8 && given->ip[stacks[0].nr_frames])
		stacks[0].nr_frames++;
	stacks[1].nr_frames = make_frames(given->found, frames) * 2;
	stacks[1].ip = (const uint64_t *)frames;
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_resolver_new(&opts, NULL, profile, &resolver), 0);
	assert_int_equal(sb_resolver_add(resolver, &batch), 0);
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_fold(profile, &(struct sb_fold_opts){}, collect, folded), 0);
	sb_resolver_free(resolver);
	sb_profile_free(profile);
	return folded;
}

#define assert_merged(text, ...) assert_string_equal(merged(&(struct given){ __VA_ARGS__ }), text)

static void segments_stand_for_loops(void **state)
{
	assert_merged("c;main;A;B;list_sort;C;read 1", .ip = { LIBC, PY, SORT, PY + 8, MAIN },
		      .found = "C|BA|");
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_inside, 1);
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_found, 1);
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_frames, 3);
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_odd, 0);
}

static void the_last_segment_needs_no_end(void **state)
{
	assert_merged("c;main;A;B 1", .ip = { PY, MAIN }, .found = "BA");
}

static void glue_is_left_out_of_the_loops_file(void **state)
{
	assert_merged("c;main;A;PyEval_EvalCode;[libc.so.6+0x1005] 1",
		      .ip = { NAMELESS_ELSEWHERE, GLUE_ELSEWHERE, NAMELESS, GLUE, PY, GLUE, MAIN },
		      .found = "A|");
}

static void nothing_is_left_out_of_stacks_without_frames(void **state)
{
	assert_merged("c;main;PyEval_EvalCode;[python+0x1004] 1", .ip = { NAMELESS, GLUE, MAIN },
		      .found = "");
	assert_merged("c;main;_PyEval_EvalFrameDefault 1", .ip = { PY, MAIN }, .found = "");
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_inside, 1);
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_found, 0);
}

static void a_loop_just_entered_has_no_frames(void **state)
{
	assert_merged("c;main;A;list_sort 1", .ip = { PY, SORT, PY, MAIN }, .found = "A|");
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_odd, 1);
}

/* A callback's frame is made by C code, before that calls the loop: of whole stacks it is the
 * leaf's. */
static void a_loop_about_to_begin_is_not_the_roots(void **state)
{
	assert_merged("c;_start;A;list_sort;read;B 1", .ip = { LIBC, SORT, PY, START },
		      .found = "B|A|");
	assert_merged("c;_start;A;list_sort;B;read;C 1", .ip = { LIBC, PY, SORT, PY, START },
		      .found = "C|B|A|");
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_odd, 1);
	/* Or code that was compiled runs without a loop. */
	assert_merged("c;_start;A;B;C;read 1", .ip = { LIBC, JIT, PY, START }, .found = "C|B|A|");
	/* What is not shown is no frame without a name. */
	assert_int_equal(stats.nr_unnamed[SB_SYM_ANON], 0);
	/* Without a loop nothing is known of where they belong. */
	assert_merged("c;A;B;_start;read 1", .ip = { LIBC, START }, .found = "B|A|");
	/* A coroutine's own stack, whole as it is, has the frames of its callers' loops
	 * elsewhere. */
	assert_merged("c;A;B;read 1", .ip = { LIBC, PY, NAMELESS }, .found = "B|A|");
}

static void a_native_stack_that_was_cut_lacks_its_root(void **state)
{
	assert_merged("c;[truncated: unreadable stack];A;list_sort;B 1", .ip = { PY, SORT },
		      .found = "B|A|", .status = SB_STACK_FAULT);
	assert_merged("c;[truncated: unreadable stack];A;B;read 1", .ip = { LIBC }, .found = "B|A|",
		      .status = SB_STACK_FAULT);
}

static void callers_tell_loops_apart(void **state)
{
	has_callers = true;
	/* A sort that calls its block, and that block a sub, by C. */
	assert_merged("c;main;read;m;list_sort;s;read;a 1",
		      .ip = { PL, LIBC, PL, SORT, PL, LIBC, MAIN }, .found = "a|s.|m|");
	assert_int_equal(stats.runtime[SB_RUNTIME_PERL].nr_odd, 0);
	assert_int_equal(stats.runtime[SB_RUNTIME_PERL].nr_frames, 3);
	/* The same between two calls of the block: comparing calls a sub, by C. */
	assert_merged("c;main;read;m;list_sort;read;a 1", .ip = { PL, LIBC, SORT, PL, LIBC, MAIN },
		      .found = "a|s.|m|");
	assert_merged("c;main;read;m;list_sort 1", .ip = { SORT, PL, LIBC, MAIN },
		      .found = "s.|m|");
	/* A block without frames. */
	assert_merged("c;main;read;m;list_sort;read;a 1",
		      .ip = { PL, LIBC, PL, SORT, PL, LIBC, MAIN }, .found = "a|.|m|");
	assert_int_equal(stats.runtime[SB_RUNTIME_PERL].nr_odd, 0);
	/* One more loop for the same frames. */
	assert_merged("c;main;read;m;list_sort;read;e;a;PyEval_EvalCode 1",
		      .ip = { PL, GLUE_ELSEWHERE, PL, LIBC, SORT, PL, LIBC, MAIN },
		      .found = "ae|m|");
	has_callers = false;
}

static void what_has_not_begun_or_has_ended_has_no_place(void **state)
{
	has_callers = true;
	assert_merged("c;main;read;m;list_sort;read 1", .ip = { LIBC, SORT, PL, LIBC, MAIN },
		      .found = "a|m|");
	assert_int_equal(stats.runtime[SB_RUNTIME_PERL].nr_odd, 1);
	assert_merged("c;main;read;m;list_sort;read 1", .ip = { PL, LIBC, SORT, PL, LIBC, MAIN },
		      .found = "m|");
	assert_int_equal(stats.runtime[SB_RUNTIME_PERL].nr_odd, 1);
	/* Cut: from the leaf. */
	assert_merged("c;[truncated: unreadable stack];m;list_sort;read;a 1",
		      .ip = { PL, LIBC, SORT }, .found = "a|m|", .status = SB_STACK_FAULT);
	has_callers = false;
}

static void a_walk_that_was_cut_says_so(void **state)
{
	assert_merged("c;main;list_sort;[python truncated: too deep];A;B 1",
		      .ip = { PY, SORT, PY, MAIN }, .found = "BA", .interp_status = SB_STACK_DEPTH);
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_cut, 1);
	assert_int_equal(stats.nr_status[SB_STACK_DEPTH], 1);
	assert_int_equal(stats.nr_status[SB_STACK_COMPLETE], 0);
	assert_int_equal(stats.nr_cut, 1);
}

/* Both parts are cut, for reasons of their own: the sample counts once, by its native part. */
static void what_is_cut_twice_counts_once(void **state)
{
	merged(&(struct given){ .ip = { PY, SORT },
				.found = "B",
				.status = SB_STACK_FAULT,
				.interp_status = SB_STACK_DEPTH });
	assert_int_equal(stats.nr_cut, 1);
	assert_int_equal(stats.nr_status[SB_STACK_FAULT], 1);
	assert_int_equal(stats.nr_status[SB_STACK_DEPTH], 0);
}

static void depth_holds_for_what_is_shown(void **state)
{
	assert_merged("c;[truncated: too deep];C;list_sort;D 1", .ip = { PY, SORT, PY, MAIN },
		      .found = "D|CBA|", .depth_max = 3);
	assert_int_equal(stats.nr_status[SB_STACK_DEPTH], 1);
	assert_int_equal(stats.nr_cut, 1);
	assert_merged("c;main;A;B;C;list_sort;D 1", .ip = { PY, SORT, PY, MAIN }, .found = "D|CBA|",
		      .depth_max = 6);
	assert_int_equal(stats.nr_cut, 0);
	/* What was inlined is no frame of its own; what is not shown is none at all. */
	assert_merged("c;[truncated: too deep];X;x;read 1",
		      .ip = { LIBC, JIT | SB_IP_INTERP, GLUE, MAIN }, .found = "#X|",
		      .depth_max = 2);
	/* One reason is enough. */
	assert_merged("c;[truncated: too deep];B 1", .ip = { PY, PY, MAIN }, .found = "BA",
		      .interp_status = SB_STACK_FAULT, .depth_max = 1);
	assert_merged("c;[truncated: too deep];B 1", .ip = { PY, SORT }, .found = "B|A|",
		      .status = SB_STACK_FAULT, .depth_max = 1);
	/* Frames of C alone are what the walk has left. */
	assert_merged("c;main;list_sort;read 1", .ip = { LIBC, SORT, MAIN }, .found = "",
		      .depth_max = 2);
}

static void runtimes_call_one_another(void **state)
{
	assert_merged("c;main;A;p;B;read 1", .ip = { LIBC, PY, PL, PY, MAIN }, .found = "B|A|p|");
	assert_int_equal(stats.runtime[SB_RUNTIME_PERL].nr_found, 1);
}

static void frames_of_c_functions_replace_them(void **state)
{
	assert_merged("c;main;A;S;B 1", .ip = { PY, SORT, PY, MAIN }, .found = "B|SA|");
	/* What it calls stands below. */
	assert_merged("c;main;A;S;read;B 1", .ip = { PY, LIBC, SORT, PY, MAIN }, .found = "B|SA|");
	assert_merged("c;main;A;S;list_sort;R;B 1", .ip = { PY, LIBC, SORT, SORT, PY, MAIN },
		      .found = "B|RSA|");
	/* It has not begun yet, or is not there any more; or it is of the next loop. */
	assert_merged("c;main;A;S;B;list_sort 1", .ip = { SORT, PY, PY, MAIN }, .found = "B|SA|",
		      .mode = SB_INTERP_AUTO);
	assert_merged("c;_PyEval_EvalFrameDefault;A;list_sort;S 1", .ip = { SORT, PY },
		      .found = "SA|", .mode = SB_INTERP_BOTH);
	assert_merged("c;[truncated: unreadable stack];S 1", .ip = { SORT, PY }, .found = "S|",
		      .status = SB_STACK_FAULT);
	assert_merged("c;main;[python truncated: too deep];S 1", .ip = { SORT, PY, MAIN },
		      .found = "S", .interp_status = SB_STACK_DEPTH);
}

static void marked_addresses_have_their_segment(void **state)
{
	assert_merged("c;main;A;B;list_sort;X;x;read 1",
		      .ip = { LIBC, JIT | SB_IP_INTERP, SORT, JIT | SB_IP_INTERP, MAIN },
		      .found = "#X|BA|");
	assert_int_equal(stats.runtime[SB_RUNTIME_V8].nr_inside, 1);
	assert_merged("c;main;P;A 1", .ip = { JIT | SB_IP_INTERP, PY, MAIN }, .found = "P|#A|");
}

static void code_without_a_name_counts_as_inside(void **state)
{
	assert_merged("c;main;[python+0x1007] 1", .ip = { JIT, MAIN }, .found = "");
	assert_int_equal(stats.runtime[SB_RUNTIME_V8].nr_inside, 1);
	assert_int_equal(stats.runtime[SB_RUNTIME_V8].nr_found, 0);
}

static void both_leaves_nothing_out(void **state)
{
	assert_merged(
		"c;main;_PyEval_EvalFrameDefault;A;PyEval_EvalCode;_PyEval_EvalFrameDefault;B 1",
		.ip = { PY, GLUE, PY, MAIN }, .found = "B|A|", .mode = SB_INTERP_BOTH);
}

static void only_leaves_machine_code_out(void **state)
{
	assert_merged("c;A;B 1", .ip = { LIBC, PY, SORT, PY, MAIN }, .found = "B|A|",
		      .mode = SB_INTERP_ONLY);
	assert_merged("c;main;read 1", .ip = { LIBC, MAIN }, .found = "", .mode = SB_INTERP_ONLY);
}

static void names_that_cannot_be_read_are_counted(void **state)
{
	assert_merged("c;main;A;? 1", .ip = { PY, MAIN }, .found = "?A|");
	assert_int_equal(stats.runtime[SB_RUNTIME_PYTHON].nr_unreadable, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_stand_for_loops),
		cmocka_unit_test(the_last_segment_needs_no_end),
		cmocka_unit_test(glue_is_left_out_of_the_loops_file),
		cmocka_unit_test(nothing_is_left_out_of_stacks_without_frames),
		cmocka_unit_test(a_loop_just_entered_has_no_frames),
		cmocka_unit_test(a_loop_about_to_begin_is_not_the_roots),
		cmocka_unit_test(a_native_stack_that_was_cut_lacks_its_root),
		cmocka_unit_test(callers_tell_loops_apart),
		cmocka_unit_test(what_has_not_begun_or_has_ended_has_no_place),
		cmocka_unit_test(a_walk_that_was_cut_says_so),
		cmocka_unit_test(what_is_cut_twice_counts_once),
		cmocka_unit_test(depth_holds_for_what_is_shown),
		cmocka_unit_test(runtimes_call_one_another),
		cmocka_unit_test(frames_of_c_functions_replace_them),
		cmocka_unit_test(marked_addresses_have_their_segment),
		cmocka_unit_test(code_without_a_name_counts_as_inside),
		cmocka_unit_test(both_leaves_nothing_out),
		cmocka_unit_test(only_leaves_machine_code_out),
		cmocka_unit_test(names_that_cannot_be_read_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
