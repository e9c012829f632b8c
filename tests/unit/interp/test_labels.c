// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a process says of its labels' keys: the header's implementation in this very process, read
 * by the code that reads others; and payloads made by hand, of the specification's other forms.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define SB_LABELS_IMPLEMENTATION
#include "interp/core/interp.h"
#include "interp/core/labels.h"
#include "stackbpf-labels.h"

static const char *const wanted[] = { "vehicle", "region", "absent" };
static const struct sb_label_names names = { .at = wanted, .nr = 3 };

static struct sb_memory self(void)
{
	return (struct sb_memory){ .tgid = (uint32_t)getpid() };
}

static struct sb_interp *interp_of_self(struct sb_interp_confs *confs)
{
	const struct sb_interp_opts opts = { .labels = wanted, .nr_labels = 3, .no_frames = true };
	struct sb_interp *interp;

	assert_int_equal(sb_interp_new(&opts, &interp), 0);
	assert_int_equal(
		sb_interp_look(interp, &(struct sb_space_key){ .tgid = (uint32_t)getpid() }, confs),
		0);
	return interp;
}

static uint64_t thread_pointer(void)
{
#ifdef __x86_64__
	uint64_t fs;

	__asm__("mov %%fs:0, %0" : "=r"(fs));
	return fs;
#else
	return (uint64_t)(uintptr_t)__builtin_thread_pointer();
#endif
}

/* Of the thread that asks. */
static int labels_outside(struct sb_interp *interp, struct sb_str *text)
{
	const struct sb_space_key space = { .tgid = (uint32_t)getpid() };
	const __u64 regs[SB_UNWIND_REGS] = {};

	return sb_interp_labels_outside(interp, &space, thread_pointer(), regs, text);
}

/* From the symbol to the text, for the thread that asks. */
static void test_self(void **state)
{
	struct sb_interp_confs confs;
	struct sb_interp *interp;
	struct sb_str text = {};
	uint64_t published_ns;

	assert_int_equal(sb_label_set("color", "red"), 0);
	assert_int_equal(sb_label_set("region", "eu-north"), 0);
	assert_int_equal(sb_label_set("vehicle", "car"), 0);
	interp = interp_of_self(&confs);
	assert_true(confs.has_labels);
	assert_int_equal(confs.nr, 0);
	assert_int_equal(labels_outside(interp, &text), 0);
	assert_int_equal(text.len, sizeof("car\0eu-north\0"));
	assert_memory_equal(text.s, "car\0eu-north\0", text.len);
	/* A key that was added since. */
	sb_str_clear(&text);
	assert_int_equal(sb_label_set("absent", "now"), 0);
	assert_int_equal(sb_label_clear("vehicle"), 0);
	assert_int_equal(labels_outside(interp, &text), SB_LABELS_CHANGED);
	assert_memory_equal(text.s, "\0eu-north\0now", text.len);
	/* One that has no name at this moment, because the table is being changed, has one at the
	 * next. */
	assert_int_equal(sb_label_set("late", "x"), 0);
	assert_int_equal(sb_label_set("region", "us"), 0);
	published_ns = sb_labels_context->published_ns;
	sb_labels_context->published_ns = 0;
	sb_str_clear(&text);
	assert_int_equal(labels_outside(interp, &text), SB_LABELS_AGAIN);
	assert_memory_equal(text.s, "\0us\0now", text.len);
	sb_labels_context->published_ns = published_ns;
	sb_str_clear(&text);
	assert_int_equal(labels_outside(interp, &text), SB_LABELS_CHANGED);
	/* None. */
	sb_str_clear(&text);
	assert_int_equal(sb_labels_clear(), 0);
	assert_int_equal(labels_outside(interp, &text), 0);
	assert_int_equal(text.len, 0);
	sb_interp_free(interp);
	sb_str_release(&text);
}

/* A call that fails, or has nothing to set, takes no place of a key. */
static void expect_no_new_keys(const char *long_value)
{
	const struct sb_label labels[] = { { "new1", "x" },
					   { "new2", NULL },
					   { "new3", long_value } };
	const uint32_t nr = sb_labels_keys.nr;

	assert_int_equal(sb_label_set("new", long_value), -E2BIG);
	assert_int_equal(sb_label_set("new", NULL), 0);
	assert_int_equal(sb_label_clear("new"), 0);
	assert_int_equal(sb_labels_replace(labels, 3), -E2BIG);
	assert_int_equal(sb_labels_keys.nr, nr);
	assert_int_equal(otel_thread_ctx_v1->nr_bytes, 5);
}

static void test_limits(void **state)
{
	char value[300], key[80];
	int i;

	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	assert_int_equal(sb_label_set("vehicle", "car"), 0);
	assert_int_equal(sb_label_set("vehicle", value), -E2BIG);
	expect_no_new_keys(value);
	assert_int_equal(sb_label_set(key, "x"), -E2BIG);
	assert_int_equal(sb_label_set("", "x"), -EINVAL);
	assert_int_equal(sb_label_set(NULL, "x"), -EINVAL);
	/* Nothing has changed, and a thread that is in the midst of it is left alone. */
	assert_int_equal(otel_thread_ctx_v1->nr_bytes, 5);
	sb_labels_thread.is_busy = 1;
	assert_int_equal(sb_label_set("vehicle", "bike"), -EBUSY);
	sb_labels_thread.is_busy = 0;
	value[255] = '\0';
	assert_int_equal(sb_label_set("a", value), 0);
	assert_int_equal(sb_label_set("b", value), 0);
	assert_int_equal(sb_label_set("c", value), -E2BIG);
	assert_int_equal(sb_labels_clear(), 0);
	for (i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		if (sb_label_set(key, "x"))
			break;
		assert_int_equal(sb_label_clear(key), 0);
	}
	assert_in_range(i, SB_LABEL_KEYS_LIMIT - 8, SB_LABEL_KEYS_LIMIT);
	assert_int_equal(sb_label_set("new", "x"), -E2BIG);
	assert_int_equal(sb_label_clear("new"), 0);
	assert_int_equal(sb_label_set("vehicle", "car"), 0);
}

/* The process context of ourselves, at each of its ends cut off, and with each byte another. */
static void test_payload(void **state)
{
	struct sb_label_keys keys = {}, again;
	const struct sb_memory memory = self();
	uint8_t payload[8192];
	size_t len, i;

	assert_int_equal(sb_label_set("vehicle", "car"), 0);
	assert_int_equal(sb_label_keys_read(&memory, (uintptr_t)sb_labels_context, &names, &keys),
			 0);
	assert_int_equal(keys.nr, sb_labels_keys.nr);
	for (i = 0; i < keys.nr; i++)
		assert_int_equal(keys.place[i], !strcmp(sb_labels_keys.name[i], "vehicle")  ? 0
						: !strcmp(sb_labels_keys.name[i], "region") ? 1
						: !strcmp(sb_labels_keys.name[i], "absent") ? 2
											    : 255);
	len = sb_labels_context->payload_bytes;
	memcpy(payload, (const void *)(uintptr_t)sb_labels_context->payload, len);
	for (i = 0; i < len; i++) {
		again = keys;
		if (!sb_label_keys_parse(payload, i, &names, &again))
			assert_true(again.nr <= keys.nr);
		payload[i] ^= 0x81;
		(void)sb_label_keys_parse(payload, len, &names, &again);
		assert_true(again.nr <= SB_LABEL_KEYS);
		payload[i] ^= 0x81;
	}
	/* A header that is none, or that is being changed. */
	sb_labels_context->published_ns = 0;
	assert_int_equal(sb_label_keys_read(&memory, (uintptr_t)sb_labels_context, &names, &keys),
			 -EBADMSG);
	sb_labels_context->published_ns = 1;
	sb_labels_context->payload_bytes = 1u << 30;
	assert_int_equal(sb_label_keys_read(&memory, (uintptr_t)sb_labels_context, &names, &keys),
			 -EBADMSG);
	sb_labels_context->payload_bytes = (uint32_t)len;
	sb_labels_context->payload = 1;
	assert_int_equal(sb_label_keys_read(&memory, (uintptr_t)sb_labels_context, &names, &keys),
			 -EFAULT);
}

/* The resource's attributes, as the first version had them at the top; fields that nobody knows. */
static void test_other_forms(void **state)
{
	static const char map[] = "\x0a\x1dthreadlocal.attribute_key_map"
				  "\x12\x13\x2a\x11\x0a\x06\x0a\x04"
				  "ride\x0a\x07\x12\x05"
				  "x";
	/* KeyValue { key, value { array { values: "ride", "region" } } } */
	static const char good[] = "\x0a\x1dthreadlocal.attribute_key_map"
				   "\x12\x14\x2a\x12\x0a\x06\x0a\x04"
				   "ride\x0a\x08\x0a\x06"
				   "region";
	struct sb_label_keys keys = {};
	uint8_t payload[256];
	size_t n = 0;

	/* A varint, 64 bits, 32 bits; then field 1: the attribute itself. */
	memcpy(payload,
	       "\x18\x96\x01\x21"
	       "12345678"
	       "\x2d"
	       "1234",
	       17);
	n = 17;
	payload[n++] = 0x0a;
	payload[n++] = sizeof(good) - 1;
	memcpy(payload + n, good, sizeof(good) - 1);
	n += sizeof(good) - 1;
	assert_int_equal(sb_label_keys_parse(payload, n, &names, &keys), 0);
	assert_int_equal(keys.nr, 2);
	assert_int_equal(keys.place[0], 255);
	assert_int_equal(keys.place[1], 1);
	/* A length that leads out of it. */
	keys.nr = 0;
	payload[17] = 0x12;
	payload[18] = sizeof(map) - 1;
	memcpy(payload + 19, map, sizeof(map) - 1);
	(void)sb_label_keys_parse(payload, 19 + sizeof(map) - 1, &names, &keys);
	assert_true(keys.nr <= 2);
	/* Groups are no part of it. */
	assert_int_equal(sb_label_keys_parse("\x0b\x0c", 2, &names, &keys), -EBADMSG);
	assert_int_equal(sb_label_keys_parse("", 0, &names, &keys), -EBADMSG);
}

static void test_names(void **state)
{
	static const char *const yes[] = { "/memfd:OTEL_CTX (deleted)", "[anon_shmem:OTEL_CTX]",
					   "[anon:OTEL_CTX]" };
	size_t i;

	for (i = 0; i < 3; i++)
		assert_true(sb_label_is_context(yes[i], strlen(yes[i])));
	assert_false(sb_label_is_context("/memfd:OTEL", 11));
	assert_false(sb_label_is_context("/tmp/OTEL_CTX", 13));
	assert_false(sb_label_is_context("", 0));
}

/* A thread that stops while it adds a key, where the header asks for the time. */
static __thread bool is_to_stop;
static sem_t has_stopped, may_go_on;

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (is_to_stop) {
		is_to_stop = false;
		sem_post(&has_stopped);
		while (sem_wait(&may_go_on))
			;
	}
	return __real_clock_gettime(clock, ret);
}

static void *add_key_and_stop(void *arg)
{
	is_to_stop = true;
	*(int *)arg = sb_label_set("of the thread", "x");
	return NULL;
}

/* In the child: what was published is whole, and a label can be set. Return: its exit status. */
static int use_labels(void)
{
	if (!__atomic_load_n(&sb_labels_context->published_ns, __ATOMIC_SEQ_CST))
		return 1;
	if (sb_label_set("of the child", "y") || sb_label_set("of the thread", "z"))
		return 2;
	return sb_labels_known_key("of the child") < 0 || sb_labels_known_key("of the thread") < 0;
}

/* fork(), while another thread holds the lock of the keys and has half written them. */
static void test_fork(void **state)
{
	pthread_t thread;
	int err = 1, status = 0;
	pid_t child;

	(void)state;
	assert_int_equal(sem_init(&has_stopped, 0, 0), 0);
	assert_int_equal(sem_init(&may_go_on, 0, 0), 0);
	assert_int_equal(sb_label_set("vehicle", "car"), 0);
	assert_int_equal(pthread_create(&thread, NULL, add_key_and_stop, &err), 0);
	while (sem_wait(&has_stopped))
		;
	__atomic_store_n(&sb_labels_context->published_ns, (uint64_t)0, __ATOMIC_SEQ_CST);
	child = fork();
	if (!child) {
		alarm(20); /* would wait for ever otherwise */
		_exit(use_labels());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sem_post(&may_go_on);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(err, 0);
	assert_int_equal(sb_labels_known_key("of the child"), -1);
	assert_true(sb_labels_known_key("of the thread") >= 0);
	assert_int_equal(sb_labels_clear(), 0);
	assert_int_equal(sb_label_set("vehicle", "car"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_self),	    cmocka_unit_test(test_fork),
		cmocka_unit_test(test_limits),	    cmocka_unit_test(test_payload),
		cmocka_unit_test(test_other_forms), cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
