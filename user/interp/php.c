// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * PHP: what its functions are called. Structures are those of Zend/zend_types.h and zend_compile.h;
 * where things lie is found out in php_layout.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/php_priv.h"
#include "interp/runtimes.h"
#include "interp/step.h"
#include "sb_step_php.h"

#define NAME_BYTES_MAX	1024u
#define FILE_BYTES_MAX	4096u
/* zend_string: refcount and type, hash, length, characters. */
#define STRING_TYPE	4
#define STRING_LEN	16
#define STRING_VAL	24
#define IS_STRING	6
#define TYPE_MASK	15
/* zend_class_entry.name */
#define CLASS_NAME	8
/* A walk of a process that runs meanwhile may meet anything: how often it is tried. */
#define SELF_TESTS	16
#define SELF_TEST_STEPS 64

static int add_string(struct sb_runtime *rt, uint64_t addr, size_t max, struct sb_str *str)
{
	uint64_t head[3];
	int err = sb_memory_read(rt->memory, head, sizeof(head), addr);

	if (err)
		return err;
	if ((head[0] >> 32 & TYPE_MASK) != IS_STRING || !head[STRING_LEN / 8])
		return -EBADMSG;
	return sb_memory_text(rt->memory, addr + STRING_VAL, head[STRING_LEN / 8], max, str);
}

/* "A::", when it has a class. The name of one without a name ends with a NUL, its file and more. */
static int add_class(struct sb_runtime *rt, uint64_t scope, struct sb_str *str)
{
	char name[NAME_BYTES_MAX];
	uint64_t at, head[3];
	size_t len;
	int err;

	if (!scope)
		return 0;
	err = sb_memory_u64(rt->memory, scope + CLASS_NAME, &at);
	if (!err)
		err = sb_memory_read(rt->memory, head, sizeof(head), at);
	if (err)
		return err;
	if ((head[0] >> 32 & TYPE_MASK) != IS_STRING || !head[STRING_LEN / 8])
		return -EBADMSG;
	len = head[STRING_LEN / 8] < sizeof(name) ? head[STRING_LEN / 8] : sizeof(name);
	err = sb_memory_read(rt->memory, name, len, at + STRING_VAL);
	len = err ? 0 : strnlen(name, len);
	if (len)
		err = sb_memory_text(rt->memory, at + STRING_VAL, len, sizeof(name), str);
	return err ? err : sb_str_add(str, "::");
}

/* Code outside of functions, as in PHP's own traces. */
static int add_how(const struct sb_interp_frame *frame, uint8_t type, struct sb_runtime_text *text)
{
	uint32_t how = (uint32_t)(sb_where_position(frame->where) >> SB_PHP_HOW_SHIFT);
	const char *base = text->file.len ? strrchr(text->file.s, '/') : NULL;
	const char *word = "include";

	if (!(how & SB_PHP_HOW_INCLUDED))
		return sb_str_add(&text->name, "{main}");
	how &= SB_PHP_HOW_MASK;
	if (type == SB_PHP_EVAL || how == 1)
		return sb_str_add(&text->name, "eval");
	if (how == 4)
		word = "include_once";
	else if (how == 8)
		word = "require";
	else if (how == 16)
		word = "require_once";
	base = base ? base + 1 : text->file.len ? text->file.s : "";
	return sb_str_addf(&text->name, "%s(%s)", word, base);
}

static int check_of(uint64_t name, uint64_t file, uint64_t lines)
{
	return (int)(((name >> 3) ^ (file >> 3) ^ lines << 2) & SB_WHERE_CHECK_MASK);
}

static int describe_user(struct sb_runtime *rt, const struct sb_interp_frame *frame,
			 const uint64_t *head, struct sb_runtime_text *text)
{
	const struct sb_php_conf *conf = (const struct sb_php_conf *)rt->conf.word;
	uint64_t place[2];
	int err = sb_memory_read(rt->memory, place, sizeof(place), frame->obj + conf->filename);

	if (err)
		return err;
	if (check_of(head[1], place[0], place[1]) != (int)sb_where_check(frame->where))
		return -EBADMSG; /* another one by now */
	text->line = (uint32_t)(sb_where_position(frame->where) & SB_PHP_LINE_MASK);
	err = add_string(rt, place[0], FILE_BYTES_MAX, &text->file);
	if (err)
		return err;
	return head[1] ? 0 : add_how(frame, (uint8_t)head[0], text);
}

int sb_php_describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	uint64_t head[3]; /* type and flags, function_name, scope */
	int err = sb_memory_read(rt->memory, head, sizeof(head), frame->obj);

	if (err)
		return err;
	switch ((uint8_t)head[0]) {
	case SB_PHP_INTERNAL:
		if (check_of(head[1], 0, 0) != (int)sb_where_check(frame->where))
			return -EBADMSG;
		break;
	case SB_PHP_USER:
	case SB_PHP_EVAL:
		err = describe_user(rt, frame, head, text);
		if (err || !head[1])
			return err;
		break;
	default:
		return -EBADMSG;
	}
	err = add_class(rt, head[2], &text->name);
	return err ? err : add_string(rt, head[1], NAME_BYTES_MAX, &text->name);
}

static int begin(struct sb_interp_walk *walk, void *memory)
{
	return sb_php_begin(walk, memory);
}

static int step(struct sb_interp_walk *walk, void *memory)
{
	return sb_php_step(walk, memory);
}

/* Return: 1 when all frames of a walk have names, 0 when there are none; or why not. */
static int test_walk(struct sb_runtime *rt, struct sb_interp_walk *walk,
		     struct sb_runtime_text *text)
{
	const struct sb_php_conf *conf = (const struct sb_php_conf *)rt->conf.word;
	void *memory = (void *)rt->memory;
	enum sb_step step;
	int i, err = 0;
	uint64_t sp;
	size_t at;

	memset(walk, 0, sizeof(*walk));
	walk->conf = rt->conf;
	if (sb_memory_u64(rt->memory, conf->globals + SB_PHP_BAILOUT, &sp))
		return -EFAULT;
	walk->sp = sp;
	step = sb_php_begin(walk, memory);
	for (i = 0; i < SELF_TEST_STEPS && step == SB_STEP_GO_ON; i++)
		step = sb_php_step(walk, memory);
	if (step != SB_STEP_GO_ON && walk->status != SB_STACK_COMPLETE)
		return -EFAULT;
	for (at = 0; at < walk->nr_frames && !err; at++) {
		sb_str_clear(&text->name);
		sb_str_clear(&text->file);
		err = sb_php_describe(rt, &walk->frame[at], text);
	}
	return err ? err : walk->nr_frames > 0;
}

/* Return: 0 or 1, as above; -ENOTSUP: it cannot be so; -ENOMEM. */
static int self_test(struct sb_runtime *rt)
{
	sb_cleanup(sb_freep) struct sb_interp_walk *walk = malloc(sizeof(*walk));
	struct sb_runtime_text text = {};
	int i, ret = -ENOMEM;

	for (i = 0; walk && i < SELF_TESTS; i++) {
		ret = test_walk(rt, walk, &text);
		if (ret >= 0 || ret == -ENOMEM)
			break;
		ret = -ENOTSUP;
	}
	sb_str_release(&text.name);
	sb_str_release(&text.file);
	return ret;
}

static int attach(struct sb_runtime *rt)
{
	const struct sb_php_conf *conf = (const struct sb_php_conf *)rt->conf.word;
	int err;

	err = sb_php_layout(rt);
	if (err)
		return err;
	if (conf->state == SB_PHP_GLOBAL) {
		err = self_test(rt);
		if (err == -ENOTSUP)
			sb_str_addf(&rt->why, "what runs in it does not look like PHP %s (%s)",
				    rt->version, sb_image_build_id(rt->image));
		if (err < 0)
			return err;
	}
	rt->conf.flags |= SB_INTERP_BY_STATE;
	sb_php_find_jit(rt);
	return 0;
}

static const char *const anchors[] = { "execute_ex", NULL };
static const char *const glue[] = {
	"zend_call_function",
	"zend_call_known_*",
	"_call_user_function_*",
	"zend_call_method",
	"zend_execute",
	"zend_execute_script*",
	"php_execute_s*",
	"zend_execute_ex",
	"dtrace_execute_*",
	"execute_internal",
	"zend_generator_*",
	"zif_*",
	"zim_*",
	"ZEND_*_HANDLER*",
	"zend_user_it_*",
	"zend_eval_string*",
	"zend_include_or_eval",
	"do_cli",
	"zend_fiber_execute",
	"zend_fiber_trampoline",
	NULL,
};

const struct sb_runtime_ops sb_runtime_php = {
	.runtime = SB_RUNTIME_PHP,
	.name = "php",
	.markers = { "execute_ex" },
	.attach = attach,
	.look_again = sb_php_find_jit,
	.describe = sb_php_describe,
	.begin = begin,
	.step = step,
	.anchors = anchors,
	.glue = glue,
};
