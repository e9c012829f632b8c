/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters of the kernel and of the hardware, as perf_event_open(2) takes them: those that "trace"
 * traces, and those that trigger the samples of "oncpu" (--event). Order: sb_counter_find();
 * sb_counter_set_attr() and perf_event_open(2), and if that fails sb_counter_explain(). Thread:
 * any. Pointers are not NULL; only @reason may be, and then no reason is kept. There is nothing to
 * free.
 */
#ifndef SB_EVENTS_COUNTER_H
#define SB_EVENTS_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

struct perf_event_attr;
struct sb_reason;

struct sb_counter {
	const char *text;   /* as it was spelled, borrowed; NULL in a struct sb_probe */
	uint32_t type;	    /* struct perf_event_attr.type */
	uint64_t config[3]; /* config, config1, config2 */
	uint64_t period;    /* a sample for so many; 0: not said */
	bool no_user, no_kernel;
};

/* The timer of a CPU, "cpu-clock", with no period of its own. */
extern const struct sb_counter sb_counter_clock;

/**
 * sb_counter_find() - find the counter of an event
 * @text: the event as spelled (event.h); borrowed as long as *ret_counter is used
 * @ret_counter: undefined on error
 * @reason: why not, a sentence
 *
 * Whether this machine has it is found out when it is opened, but a PMU is looked up in sysfs. If
 * no period is spelled, it has none (0).
 *
 * Return: 0; -EINVAL: misspelled, or no counter; -ENOENT: no such PMU, or term of a PMU. Both with
 * @reason.
 */
int sb_counter_find(const char *text, struct sb_counter *ret_counter, struct sb_reason *reason);

/* Set type and config[0] of @counter, and nothing else, to those of a name of perf or of a raw
 * event, "r1a8", without modifiers. Return: whether it is one; if not, @counter may have
 * changed. */
bool sb_counter_by_name(const char *name, struct sb_counter *counter);

/* Get the @i-th name, from 0, of a counter that needs no PMU, such as "page-faults". *ret_name is a
 * constant. Return: whether there is one; if not, *ret_name is untouched. */
bool sb_counter_at(unsigned int i, const char **ret_name);

/* Return: whether they count the same, with the same period; spelling does not matter. */
bool sb_counter_is_same(const struct sb_counter *a, const struct sb_counter *b);

/* Return: whether it counts nanoseconds, and so is a timer: "cpu-clock" or "task-clock". */
bool sb_counter_is_clock(const struct sb_counter *counter);

/* Return: what it counts, as perf calls it: "page-faults"; "events" if perf has no name for it. A
 * constant. */
const char *sb_counter_unit(const struct sb_counter *counter);

/* Set the members of @attr that say what is counted (type, config, config1, config2, exclude_user,
 * exclude_kernel) and the period, 0 if none was said; the others stay, so the caller zeroes @attr
 * before. If the period is 0, it may set a frequency instead. */
void sb_counter_set_attr(const struct sb_counter *counter, struct perf_event_attr *attr);

/* If @err, a negative errno of perf_event_open(2), means that the machine lacks the counter @name
 * (-ENOENT, -EOPNOTSUPP, -ENODEV, -EINVAL), say so. @name: as the user spelled it. Return:
 * -EOPNOTSUPP with @reason; 0: it means something else, @reason is untouched, and the caller
 * reports @err itself. */
int sb_counter_explain(const char *name, int err, struct sb_reason *reason);

#endif
