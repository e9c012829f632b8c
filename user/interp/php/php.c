// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* PHP: names of functions. Structures are those of Zend/zend_types.h and zend_compile.h;
 * php_layout.c finds where they lie. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "base/utf8.h"
#include "interp/core/runtimes.h"
#include "interp/php/php_priv.h"

#include "bpf/step/sb_step_php.h"

/* Of a name: two milliseconds. */
#define TRIES		8
#define REST_NS		250000
/* Of a process: ten milliseconds in a second. Others wait for the lock meanwhile, and a process can
 * make up names that are never readable. */
#define RESTS_A_SECOND	40u
#define NAME_BYTES_MAX	1024u
#define FILE_BYTES_MAX	4096u
/* zend_string: refcount and type, hash, length, characters. */
#define STRING_LEN	16
#define STRING_VAL	24
#define IS_STRING	6
/* The type, and bits that no string has set: from 10 on. */
#define TYPE_MASK	0xfffffc0f
/* zend_class_entry.name */
#define CLASS_NAME	8
/* A walk of a process that runs meanwhile may meet anything: how often it is tried. */
#define SELF_TESTS	16
#define SELF_TEST_STEPS 64

/* Printable characters in UTF-8, which what others have written into a freed string hardly ever
 * is. */
static bool is_utf8(const char *s, size_t len)
{
	size_t i = 0, nr_more;

	while (i < len) {
		unsigned char c = (unsigned char)s[i++];

		if (c < ' ' || c == 0x7f || (c >= 0x80 && (c < 0xc2 || c > 0xf4)))
			return false;
		nr_more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
		for (; nr_more && i < len; nr_more--)
			if (((unsigned char)s[i++] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

/* A path is bytes of any encoding. Words that are pointers or small numbers have bytes that are
 * 0. */
static bool has_no_controls(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			return false;
	return true;
}

/*
 * Whether a string has this hash. zend_inline_hash_func() adds up values of type char. Those of
 * bytes above 127 are negative on x86, unless PHP was built with -funsigned-char, and positive on
 * arm64. Both sums are computed, because nothing in the process says which it is, and a foreign
 * string hits either by chance once in 2^62 times.
 */
static bool has_hash(const char *s, size_t len, uint64_t hash)
{
	uint64_t of_signed = 5381, of_unsigned = 5381;
	size_t i;

	for (i = 0; i < len; i++) {
		of_signed = of_signed * 33 + (uint64_t)(int64_t)(int8_t)s[i];
		of_unsigned = of_unsigned * 33 + (uint8_t)s[i];
	}
	return hash == (of_signed | 1ull << 63) || hash == (of_unsigned | 1ull << 63);
}

/*
 * The characters of a zend_string, at most @max. One that was freed begins with a pointer, and
 * others write into it; a string that was used as a key says what its hash is.
 */
static int read_string(struct sb_runtime *rt, uint64_t addr, char *buf, size_t max, size_t *ret_len,
		       bool *ret_is_proved)
{
	uint64_t head[3];
	size_t len;
	int err = sb_memory_read(rt->memory, head, sizeof(head), addr);

	if (err)
		return err;
	if ((head[0] >> 32 & TYPE_MASK) != IS_STRING || !head[STRING_LEN / 8])
		return -EBADMSG;
	len = head[STRING_LEN / 8] < max ? head[STRING_LEN / 8] : max;
	err = sb_memory_read(rt->memory, buf, len, addr + STRING_VAL);
	if (err)
		return err;
	*ret_is_proved = head[1] && len == head[STRING_LEN / 8];
	if (*ret_is_proved && !has_hash(buf, len, head[1]))
		return -EBADMSG;
	*ret_len = len;
	return 0;
}

/* Append the characters of a string that @is_text says are plausible, or that its hash proves. */
static int add_string(struct sb_runtime *rt, uint64_t addr, size_t max,
		      bool (*is_text)(const char *, size_t), struct sb_str *str)
{
	char buf[FILE_BYTES_MAX];
	bool is_proved;
	size_t len;
	int err =
		read_string(rt, addr, buf, max < sizeof(buf) ? max : sizeof(buf), &len, &is_proved);

	if (!err && !is_proved && !is_text(buf, len))
		err = -EBADMSG;
	if (err)
		return err;
	sb_replace_controls(buf, len);
	return sb_str_addn(str, buf, len);
}

static int add_name(struct sb_runtime *rt, uint64_t addr, struct sb_str *str)
{
	return add_string(rt, addr, NAME_BYTES_MAX, is_utf8, str);
}

static int add_path(struct sb_runtime *rt, uint64_t addr, struct sb_str *str)
{
	return add_string(rt, addr, FILE_BYTES_MAX, has_no_controls, str);
}

/* "A::", when it has a class. The name of one without a name ends with a NUL, its file and more. */
static int add_class(struct sb_runtime *rt, uint64_t scope, struct sb_str *str)
{
	char name[NAME_BYTES_MAX];
	bool is_proved;
	uint64_t at;
	size_t len;
	int err;

	if (!scope)
		return 0;
	err = sb_memory_u64(rt->memory, scope + CLASS_NAME, &at);
	if (!err)
		err = read_string(rt, at, name, sizeof(name), &len, &is_proved);
	if (err)
		return err;
	len = strnlen(name, len);
	sb_replace_controls(name, len);
	err = sb_str_addn(str, name, len);
	return err ? err : sb_str_add(str, "::");
}

/* Code outside of functions, as in PHP's own traces. */
static int describe_code(struct sb_runtime *rt, const struct sb_interp_frame *frame, uint32_t how,
			 struct sb_runtime_text *text)
{
	const char *slash, *word = "include";
	uint64_t len;
	int err;

	text->line = (uint32_t)(sb_where_position(frame->where) & SB_PHP_LINE_MASK);
	err = sb_memory_u64(rt->memory, frame->obj + STRING_LEN, &len);
	if (!err && (len & SB_WHERE_CHECK_MASK) != sb_where_check(frame->where))
		err = -EBADMSG;
	if (!err)
		err = add_path(rt, frame->obj, &text->file);
	if (err == -ENOMEM)
		return err;
	if (err)
		sb_str_clear(&text->file);
	if (!(how & SB_PHP_HOW_INCLUDED))
		return sb_str_add(&text->name, "{main}");
	if (err)
		return err;
	if (how & SB_PHP_HOW_EVAL)
		return sb_str_add(&text->name, "eval");
	if (how & SB_PHP_HOW_REQUIRE1)
		word = "require_once";
	else if (how & SB_PHP_HOW_REQUIRE)
		word = "require";
	else if (how & SB_PHP_HOW_ONCE)
		word = "include_once";
	slash = strrchr(text->file.s, '/');
	return sb_str_addf(&text->name, "%s(%s)", word, slash ? slash + 1 : text->file.s);
}

static bool is_same(const struct sb_interp_frame *frame, const uint64_t *head,
		    const uint64_t *place)
{
	return (sb_php_check(head[1], head[2], place[0], place[1]) & SB_WHERE_CHECK_MASK) ==
	       sb_where_check(frame->where);
}

static int describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	const struct sb_php_conf *conf = (const struct sb_php_conf *)rt->conf.word;
	uint64_t position = sb_where_position(frame->where);
	uint32_t how = (uint32_t)(position >> SB_PHP_HOW_SHIFT) & SB_PHP_HOW_MASK;
	uint64_t head[3]; /* type and flags, function_name, scope */
	uint64_t place[2] = {};
	int err;

	if (how & SB_PHP_HOW_CODE)
		return describe_code(rt, frame, how, text);
	err = sb_memory_read(rt->memory, head, sizeof(head), frame->obj);
	if (err)
		return err;
	if ((uint8_t)head[0] == SB_PHP_USER || (uint8_t)head[0] == SB_PHP_EVAL) {
		err = sb_memory_read(rt->memory, place, sizeof(place), frame->obj + conf->filename);
		if (err)
			return err;
	} else if ((uint8_t)head[0] != SB_PHP_INTERNAL) {
		return -EBADMSG;
	}
	if (!is_same(frame, head, place))
		return -EBADMSG; /* another one by now */
	text->line = (uint32_t)(position & SB_PHP_LINE_MASK);
	err = place[0] ? add_path(rt, place[0], &text->file) : 0;
	if (!err)
		err = add_class(rt, head[2], &text->name);
	return err ? err : add_name(rt, head[1], &text->name);
}

static bool may_rest(struct sb_runtime *rt)
{
	uint64_t now = sb_now_ns();

	if (now - rt->rests_since_ns >= SB_NS_PER_SEC) {
		rt->rests_since_ns = now;
		rt->nr_rests = 0;
	}
	return rt->nr_rests < RESTS_A_SECOND && ++rt->nr_rests;
}

/*
 * Code that is made and freed again and again, as closures and what eval() compiles, mostly lies at
 * one place: what is free at this moment is there again in the next.
 */
int sb_php_describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text)
{
	const struct timespec rest = { .tv_nsec = REST_NS };
	int i, err = describe(rt, frame, text);

	for (i = 1; i < TRIES && err == -EBADMSG && may_rest(rt); i++) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
		sb_memory_forget(rt->memory);
		sb_str_clear(&text->name);
		sb_str_clear(&text->file);
		err = describe(rt, frame, text);
	}
	return err;
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

/* Return: 0 or 1, as above; -EBADMSG: it cannot be so; -ENOMEM. */
static int self_test(struct sb_runtime *rt)
{
	sb_cleanup(sb_freep) struct sb_interp_walk *walk = malloc(sizeof(*walk));
	struct sb_runtime_text text = {};
	int i, ret = -ENOMEM;

	for (i = 0; walk && i < SELF_TESTS; i++) {
		sb_memory_forget(rt->memory);
		ret = test_walk(rt, walk, &text);
		if (ret >= 0 || ret == -ENOMEM)
			break;
		ret = -EBADMSG;
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
		if (err < 0)
			return err == -EBADMSG ? sb_runtime_doubt(rt) : err;
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
	.is_for_any_machine = true,
	.needs_all_maps = true,
	.markers = { "execute_ex" },
	.programs = { "php", "apache2", "httpd" },
	.attach = attach,
	.look_again = sb_php_find_jit,
	.describe = sb_php_describe,
	.begin = sb_php_begin,
	.step = sb_php_step,
	.native = sb_php_native,
	.anchors = anchors,
	.glue = glue,
};
