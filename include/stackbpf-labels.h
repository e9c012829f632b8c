/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels for profilers: a program says what each of its threads is working on, "vehicle=car". The
 * samples that stackbpf takes of the thread carry the labels (`--label vehicle`), and so do those
 * of any other reader of OpenTelemetry's thread context. Nothing is sent and no profiler need be
 * running: a label is some bytes in memory.
 *
 * This is one header without a library. In one source file of the program or library:
 *
 *	#define SB_LABELS_IMPLEMENTATION
 *	#include "stackbpf-labels.h"
 *
 * and only the #include in those that set labels. It needs Linux, gcc or clang, C99 or C++11. A
 * program (not a library) whose symbols are stripped also needs the linker option
 *
 *	-Wl,--export-dynamic-symbol=otel_thread_ctx_v1		or -rdynamic
 *
 * because readers find the variable by its name.
 *
 * The format is OpenTelemetry's thread context, OTEP 4947: the thread-local pointer
 * otel_thread_ctx_v1 leads to the labels of the thread, with keys as numbers. The names of the
 * keys are in the process context, OTEP 4719. If the program uses OpenTelemetry's own SDK for
 * this, set labels by that instead.
 *
 * Thread: any, each for its own labels; no lock is needed. A new thread has no labels; after fork()
 * the child has those of the thread that called it, and can set labels whatever other threads were
 * doing. Calls need no order, and others can follow after an error: nothing is to be freed,
 * initialized or cleared.
 */
#ifndef STACKBPF_LABELS_H
#define STACKBPF_LABELS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Limits, the greatest numbers that are allowed: different keys in one process, which are never
 * removed; bytes of a key, without the NUL; bytes of a value; bytes of all values of a thread,
 * where each takes two more.
 */
#define SB_LABEL_KEYS_LIMIT   64
#define SB_LABEL_KEY_LIMIT    64
#define SB_LABEL_VALUE_LIMIT  255
#define SB_LABEL_THREAD_LIMIT 612

struct sb_label {
	const char *key, *value; /* value NULL or "": no label */
};

/*
 * Set or change one label of the calling thread. The strings are UTF-8, which is not checked, end
 * with a NUL, and are copied.
 * @value: NULL or "": clear the label
 *
 * It takes 20 ns; the first use of a key in the process takes a lock and some microseconds. A
 * reader sees, at any moment, the labels before or those after, or, during the first call of a
 * thread, none; never half of each. A signal handler may call this; if it has interrupted a call
 * in the same thread, it gets -EBUSY.
 *
 * Return: 0; -EINVAL: @key is NULL or ""; -E2BIG: beyond a limit above; -EBUSY; or the errno of
 * mmap(2), negative, when the process context could not be made. Clearing a label checks no limit,
 * and can only return 0, -EINVAL or -EBUSY. On error the labels are not changed, and the key is not
 * added to those of the process.
 */
int sb_label_set(const char *key, const char *value);

/*
 * Set the @nr labels at @labels (NULL if @nr is 0) for the calling thread at once, and clear all
 * others. No reader sees only some of them. One without a value (NULL or "") is left out, but has a
 * key. The keys are different, which is not checked; the strings are copied. Return: 0; -EINVAL: a
 * key is NULL or ""; -E2BIG: beyond a limit above; -EBUSY: a signal handler has interrupted a call
 * in this thread; or the errno of mmap(2), negative, when the process context could not be made. On
 * error the labels are not changed; but a call that fails because the process has too many keys may
 * have added some of the new ones.
 */
int sb_labels_replace(const struct sb_label *labels, size_t nr);

/*
 * Clear one label of the calling thread, or all; nothing need be cleared when a thread ends.
 * Return: 0, also if there is no such label; -EBUSY: a signal handler has interrupted a call in
 * this thread; -EINVAL, of sb_label_clear() only: @key is NULL or "".
 */
int sb_label_clear(const char *key);
int sb_labels_clear(void);

#ifdef __cplusplus
}
#endif

#endif /* STACKBPF_LABELS_H */

#if defined(SB_LABELS_IMPLEMENTATION) && !defined(SB_LABELS_IMPLEMENTED)
#define SB_LABELS_IMPLEMENTED

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA	     0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

/* As the specification defines it: no padding, native byte order. */
struct sb_labels_record {
	uint8_t trace_id[16], span_id[8];
	uint8_t is_valid, trace_flags;
	uint16_t nr_bytes;
	uint8_t attrs[SB_LABEL_THREAD_LIMIT]; /* (key 1, length 1, value)* */
};

#ifdef __cplusplus
extern "C" {
#define SB_LABELS_THREAD thread_local
#else
#define SB_LABELS_THREAD __thread
#endif
/* Readers find it by this name. It is kept even if everything else is hidden. */
extern __attribute__((visibility("default")))
SB_LABELS_THREAD struct sb_labels_record *otel_thread_ctx_v1;
__attribute__((visibility("default"), used))
SB_LABELS_THREAD struct sb_labels_record *otel_thread_ctx_v1;

/*
 * Each thread has two records: the one that readers see, and the one that is being written. A
 * reader interrupts the thread, so only the store of the pointer has to be atomic. Order of a
 * change: sb_labels_begin(), sb_labels_copy() of what stays, sb_labels_put(), sb_labels_put_keys(),
 * and, after an error, too, sb_labels_end().
 */
static SB_LABELS_THREAD struct sb_labels_thread {
	struct sb_labels_record record[2];
	uint8_t shown;	 /* index of the record that readers see, once there is one */
	uint8_t is_busy; /* this thread is changing its labels */
} sb_labels_thread;

#define SB_LABELS_BARRIER() __asm__ volatile("" ::: "memory")

/* The keys of the process. They are added but never changed, so reading `nr` takes no lock. */
static struct sb_labels_keys {
	const struct sb_labels_thread *owner; /* the thread that holds the lock, or NULL */
	uint32_t nr;
	char name[SB_LABEL_KEYS_LIMIT][SB_LABEL_KEY_LIMIT + 1];
} sb_labels_keys;

/* OTEP 4719: the header, and room for the current payload and for the next one. */
struct sb_labels_context {
	char signature[8];
	uint32_t version, payload_bytes;
	uint64_t published_ns, payload;
	uint8_t room[2][8192];
};
static struct sb_labels_context *sb_labels_context;

/*
 * Protobuf: begin field @number, 1 to 15, which holds bytes, at @at. Return: where its content
 * goes. Before the content, two bytes are left for its length, which sb_labels_field_end() fills
 * in. The room is not checked: the limits on keys bound the payload.
 */
static uint8_t *sb_labels_field(uint8_t *at, unsigned number)
{
	*at = (uint8_t)(number << 3 | 2);
	return at + 3;
}

/*
 * End a field whose content lies from @begin, which sb_labels_field() returned, to @end, less than
 * 16 KiB. Return: @end, where the next field may begin.
 */
static uint8_t *sb_labels_field_end(uint8_t *begin, uint8_t *end)
{
	size_t len = (size_t)(end - begin);

	begin[-2] = (uint8_t)(len | 0x80);
	begin[-1] = (uint8_t)(len >> 7);
	return end;
}

/* Write field @number with the string @text at @at. Return: its end. */
static uint8_t *sb_labels_text(uint8_t *at, unsigned number, const char *text)
{
	uint8_t *begin = sb_labels_field(at, number);
	size_t len = strlen(text);

	memcpy(begin, text, len);
	return sb_labels_field_end(begin, begin + len);
}

/*
 * Write the process context with the first @nr keys to @to, one of the rooms of struct
 * sb_labels_context. Return: its length in bytes.
 * ProcessContext { attributes = 2: KeyValue { key = 1, value = 2: AnyValue } }
 */
static size_t sb_labels_payload(uint8_t *to, uint32_t nr)
{
	uint8_t *attr, *value, *array, *name, *at;
	uint32_t i;

	attr = sb_labels_field(to, 2);
	at = sb_labels_text(attr, 1, "threadlocal.schema_version");
	value = sb_labels_field(at, 2);
	at = sb_labels_field_end(value, sb_labels_text(value, 1, "tlsdesc_v1_dev"));
	at = sb_labels_field_end(attr, at);
	attr = sb_labels_field(at, 2);
	at = sb_labels_text(attr, 1, "threadlocal.attribute_key_map");
	value = sb_labels_field(at, 2);
	array = sb_labels_field(value, 5);
	for (at = array, i = 0; i < nr; i++) {
		name = sb_labels_field(at, 1);
		at = sb_labels_field_end(name, sb_labels_text(name, 1, sb_labels_keys.name[i]));
	}
	at = sb_labels_field_end(array, at);
	at = sb_labels_field_end(value, at);
	at = sb_labels_field_end(attr, at);
	return (size_t)(at - to);
}

/*
 * Make the mapping sb_labels_context, with the name that readers look for: of a memfd, or else
 * anonymous. Called with the lock of sb_labels_keys held, while there is none; it is never
 * unmapped. A child inherits it by fork(), with the same keys. Return: 0; or the errno of mmap(2),
 * negative, and sb_labels_context stays NULL.
 */
static int sb_labels_map(void)
{
	void *map;
	int fd = (int)syscall(SYS_memfd_create, "OTEL_CTX", 1u /* MFD_CLOEXEC */);

	if (fd >= 0 && ftruncate(fd, sizeof(*sb_labels_context))) {
		close(fd);
		fd = -1;
	}
	map = mmap(NULL, sizeof(*sb_labels_context), PROT_READ | PROT_WRITE,
		   fd >= 0 ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED)
		return -errno;
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, map, sizeof(*sb_labels_context), "OTEL_CTX");
	sb_labels_context = (struct sb_labels_context *)map;
	return 0;
}

/*
 * Publish the first @nr keys, with the lock of sb_labels_keys held; the first call makes the
 * mapping. The payload that readers may be reading is not changed. Return: 0; or the errno of
 * mmap(2), negative.
 */
static int sb_labels_publish(uint32_t nr)
{
	struct sb_labels_context *context = sb_labels_context;
	struct timespec now;
	uint8_t *to;
	int err;

	if (!context) {
		err = sb_labels_map();
		if (err)
			return err;
		context = sb_labels_context;
	}
	to = context->payload == (uintptr_t)context->room[0] ? context->room[1] : context->room[0];
	clock_gettime(CLOCK_BOOTTIME, &now);
	__atomic_store_n(&context->published_ns, (uint64_t)0, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	context->version = 2;
	context->payload_bytes = (uint32_t)sb_labels_payload(to, nr);
	context->payload = (uintptr_t)to;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&context->published_ns,
			 (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 1,
			 __ATOMIC_SEQ_CST);
	memcpy(context->signature, "OTEL_CTX", sizeof(context->signature));
	return 0;
}

/* Wait for the lock of sb_labels_keys and take it; the same thread must not hold it, which
 * sb_labels_begin() ensures. sb_labels_unlock() gives it back. */
static void sb_labels_lock(void)
{
	const struct sb_labels_thread *nobody = NULL;

	while (!__atomic_compare_exchange_n(&sb_labels_keys.owner, &nobody, &sb_labels_thread, 0,
					    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		nobody = NULL;
		usleep(50);
	}
}

static void sb_labels_unlock(void)
{
	__atomic_store_n(&sb_labels_keys.owner, (const struct sb_labels_thread *)NULL,
			 __ATOMIC_RELEASE);
}

/*
 * In the child of a fork(), whose only thread is this one: if another held the lock, it does not
 * exist here and will never give it back. The key that it was adding does not count yet, but the
 * process context may be half written. If this thread holds the lock, a signal handler has called
 * fork(), and the call that it interrupted goes on here, too.
 */
static void sb_labels_in_child(void)
{
	if (!sb_labels_keys.owner || sb_labels_keys.owner == &sb_labels_thread)
		return;
	if (sb_labels_context)
		(void)sb_labels_publish(sb_labels_keys.nr);
	sb_labels_unlock();
}

/* When the program or library is loaded: before anybody can take the lock. */
__attribute__((constructor)) static void sb_labels_on_load(void)
{
	/* Without memory for the handler, a child that finds the lock taken waits for ever. */
	(void)pthread_atfork(NULL, NULL, sb_labels_in_child);
}

/* Return: the number of @key, if it is one of the keys from number @from to below @nr; else -1. */
static int sb_labels_find_key(const char *key, uint32_t from, uint32_t nr)
{
	uint32_t i;

	for (i = from; i < nr; i++)
		if (!strcmp(sb_labels_keys.name[i], key))
			return (int)i;
	return -1;
}

/*
 * Find or add a key, which is not too long; takes the lock. Return: its number; -E2BIG: there are
 * SB_LABEL_KEYS_LIMIT others; or the negative errno of mmap(2). After an error it was not added.
 */
static int sb_labels_add_key(const char *key)
{
	size_t len = strlen(key);
	uint32_t nr;
	int number, err = 0;

	sb_labels_lock();
	nr = sb_labels_keys.nr;
	number = sb_labels_find_key(key, 0, nr);
	if (number < 0 && nr == SB_LABEL_KEYS_LIMIT) {
		err = -E2BIG;
	} else if (number < 0) {
		memcpy(sb_labels_keys.name[nr], key, len + 1);
		err = sb_labels_publish(nr + 1);
		if (!err)
			__atomic_store_n(&sb_labels_keys.nr, nr + 1, __ATOMIC_RELEASE);
		number = (int)nr;
	}
	sb_labels_unlock();
	return err ? err : number;
}

/* Return: the number of a key that the process has; -1: it has not. */
static int sb_labels_known_key(const char *key)
{
	return sb_labels_find_key(key, 0, __atomic_load_n(&sb_labels_keys.nr, __ATOMIC_ACQUIRE));
}

/*
 * Append labels to the record that readers do not see; those without a value are left out. Their
 * keys are still to be filled in. Return: 0; -EINVAL: no key; -E2BIG: beyond a limit.
 */
static int sb_labels_put(struct sb_labels_record *record, const struct sb_label *labels, size_t nr)
{
	size_t i, len;

	for (i = 0; i < nr; i++) {
		if (!labels[i].key || !*labels[i].key)
			return -EINVAL;
		len = labels[i].value ? strlen(labels[i].value) : 0;
		if (!len)
			continue;
		if (strlen(labels[i].key) > SB_LABEL_KEY_LIMIT || len > SB_LABEL_VALUE_LIMIT ||
		    record->nr_bytes + 2 + len > sizeof(record->attrs))
			return -E2BIG;
		record->attrs[record->nr_bytes + 1] = (uint8_t)len;
		memcpy(&record->attrs[record->nr_bytes + 2], labels[i].value, len);
		record->nr_bytes = (uint16_t)(record->nr_bytes + 2 + len);
	}
	return 0;
}

/*
 * Fill in the keys of the labels that begin at @at, where sb_labels_put() has put @labels. This
 * comes last, because a key that was added to those of the process stays. @labels: the array that
 * sb_labels_put() had; those without a value are passed over. Return: 0; -E2BIG: there are too many
 * keys; or the negative errno of mmap(2). After an error some keys are missing, so the record must
 * not be shown.
 */
static int sb_labels_put_keys(struct sb_labels_record *record, size_t at,
			      const struct sb_label *labels)
{
	int number;

	for (; at < record->nr_bytes; at += 2u + record->attrs[at + 1], labels++) {
		while (!labels->value || !*labels->value)
			labels++;
		number = sb_labels_known_key(labels->key);
		if (number < 0)
			number = sb_labels_add_key(labels->key);
		if (number < 0)
			return number;
		record->attrs[at] = (uint8_t)number;
	}
	return 0;
}

/* Append copies of the labels of @from, the record that readers see now, to @to, the next one,
 * except the one whose key has number @key; -1: all. Those of one record always fit into an empty
 * one. */
static void sb_labels_copy(struct sb_labels_record *to, const struct sb_labels_record *from,
			   int key)
{
	size_t at, len;

	for (at = 0; at < from->nr_bytes; at += len) {
		len = 2u + from->attrs[at + 1];
		if (from->attrs[at] == key)
			continue;
		memcpy(&to->attrs[to->nr_bytes], &from->attrs[at], len);
		to->nr_bytes = (uint16_t)(to->nr_bytes + len);
	}
}

/*
 * Return: the record that readers do not see, emptied, for the caller to fill in and to pass to
 * sb_labels_end(); NULL: this thread is already writing it.
 */
static struct sb_labels_record *sb_labels_begin(struct sb_labels_thread *thread)
{
	struct sb_labels_record *record;

	if (thread->is_busy)
		return NULL;
	thread->is_busy = 1;
	SB_LABELS_BARRIER();
	record = &thread->record[!thread->shown];
	record->nr_bytes = 0;
	record->is_valid = 1;
	return record;
}

/* End what sb_labels_begin() began; if @err is 0, readers see the record from now on. Return:
 * @err. */
static int sb_labels_end(struct sb_labels_thread *thread, struct sb_labels_record *record, int err)
{
	SB_LABELS_BARRIER();
	if (!err) {
		__atomic_store_n(&otel_thread_ctx_v1, record, __ATOMIC_RELAXED);
		thread->shown = !thread->shown;
	}
	SB_LABELS_BARRIER();
	thread->is_busy = 0;
	return err;
}

int sb_label_set(const char *key, const char *value)
{
	struct sb_labels_thread *thread = &sb_labels_thread;
	struct sb_labels_record *record = sb_labels_begin(thread);
	struct sb_label label;
	size_t at;
	int err;

	if (!record)
		return -EBUSY;
	label.key = key;
	label.value = value;
	if (key)
		sb_labels_copy(record, &thread->record[thread->shown], sb_labels_known_key(key));
	at = record->nr_bytes;
	err = sb_labels_put(record, &label, 1);
	if (!err)
		err = sb_labels_put_keys(record, at, &label);
	return sb_labels_end(thread, record, err);
}

int sb_labels_replace(const struct sb_label *labels, size_t nr)
{
	struct sb_labels_thread *thread = &sb_labels_thread;
	struct sb_labels_record *record = sb_labels_begin(thread);
	int err;

	if (!record)
		return -EBUSY;
	err = sb_labels_put(record, labels, nr);
	if (!err)
		err = sb_labels_put_keys(record, 0, labels);
	return sb_labels_end(thread, record, err);
}

int sb_label_clear(const char *key)
{
	return sb_label_set(key, NULL);
}

int sb_labels_clear(void)
{
	return sb_labels_replace(NULL, 0);
}

#ifdef __cplusplus
}
#endif

#endif /* SB_LABELS_IMPLEMENTATION */
