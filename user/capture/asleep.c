// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/asleep.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/status.h"
#include "capture/interpwatch.h"
#include "interp/core/pages.h"
#include "interp/core/step.h"
#include "symbolizer/process/reader.h"
#include "views/view.h"

/* Bytes that are kept before they are unwound. */
#define RAW_BYTES_MAX (16u << 20)
/* Pages that a walk of an interpreter may read, each of which tells where the next one is. A walk
 * that needs more reads the others for itself. */
#define ROUNDS_MAX    32u

struct reader {
	struct sb_asleep_stacks *asleep;
	struct sb_pages pages;
	struct sb_interp_walk walk;
	struct sb_str labels;
	struct {
		struct sb_event_raw event;
		uint8_t stack[SB_RAW_BYTES_MAX];
	} piece;
};

/* Return: whether the thread has not run since the iterator saw it. */
static bool still_sleeps(const struct sb_asleep *asleep)
{
	sb_cleanup(sb_freep) char *status = NULL;
	uint64_t nr_voluntary, nr_other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", asleep->raw.tgid, asleep->tid);
	if (sb_read_file(path, SB_STATUS_BYTES_MAX, &status, NULL) ||
	    sb_status_numbers(status, "voluntary_ctxt_switches", &nr_voluntary, 1) != 1 ||
	    sb_status_numbers(status, "nonvoluntary_ctxt_switches", &nr_other, 1) != 1)
		return false;
	return nr_voluntary + nr_other == asleep->nr_switches;
}

static int look_at_interpreters(struct reader *reader, const struct sb_asleep *asleep)
{
	sb_interpwatch_walk(reader->asleep->interps, asleep, &reader->pages, &reader->walk);
	sb_str_clear(&reader->labels);
	return sb_interpwatch_labels(reader->asleep->interps, asleep, &reader->labels);
}

static int keep_interpreters(struct reader *reader, const struct sb_asleep *asleep, bool is_good)
{
	int err = sb_interpwatch_keep(reader->asleep->interps, asleep,
				      is_good ? &reader->walk : NULL);

	if (!is_good)
		sb_str_clear(&reader->labels);
	return err ? err
		   : sb_interpwatch_keep_labels(reader->asleep->interps, asleep, &reader->labels);
}

static uint32_t stack_bytes(const struct sb_asleep *asleep)
{
	uint32_t nr = asleep->raw.nr_stack_bytes;

	return nr < SB_RAW_BYTES_MAX ? nr : SB_RAW_BYTES_MAX;
}

static int take(struct reader *reader, const struct sb_asleep *asleep)
{
	struct sb_interpwatch *interps = reader->asleep->interps;
	ssize_t nr_bytes;
	bool is_good;
	int err = 0;

	nr_bytes = sb_reader_memory(asleep->raw.tgid, asleep->raw.stack_addr, reader->piece.stack,
				    stack_bytes(asleep));
	/* If the main thread has ended before this one, memory is read through the thread. */
	if (nr_bytes == -ESRCH)
		nr_bytes = sb_reader_memory(asleep->tid, asleep->raw.stack_addr,
					    reader->piece.stack, stack_bytes(asleep));
	reader->piece.event = asleep->raw;
	reader->piece.event.nr_stack_bytes = 0;
	reader->asleep->nr++;
	if (interps)
		err = look_at_interpreters(reader, asleep);
	is_good = nr_bytes > 0 && still_sleeps(asleep);
	if (!err && interps)
		err = keep_interpreters(reader, asleep, is_good);
	if (err)
		return err;
	if (is_good) {
		reader->piece.event.nr_stack_bytes = (uint32_t)nr_bytes;
		reader->piece.event.flags &= ~SB_STACK_ASLEEP;
	} else {
		reader->asleep->nr_lost++;
	}
	if (reader->asleep->raw.bytes.nr >= RAW_BYTES_MAX && reader->asleep->unwind)
		err = reader->asleep->unwind(reader->asleep->arg);
	if (err)
		return err;
	return sb_rawstacks_add(&reader->asleep->raw, &reader->piece,
				sizeof(reader->piece.event) + reader->piece.event.nr_stack_bytes);
}

/* Read the stacks of as many threads as one round holds. Return: of how many. */
static size_t read_ahead(const struct sb_asleep *at, size_t nr)
{
	struct sb_reader_want wants[SB_READER_AHEAD_MAX];
	size_t i;

	nr = nr < SB_READER_AHEAD_MAX ? nr : SB_READER_AHEAD_MAX;
	for (i = 0; i < nr; i++)
		wants[i] = (struct sb_reader_want){
			.tgid = at[i].raw.tgid,
			.len = stack_bytes(&at[i]),
			.addr = at[i].raw.stack_addr,
		};
	return sb_reader_ahead(wants, nr);
}

/*
 * Read the pages that the walks of interpreters of as many threads as one round holds will need.
 * The threads' stacks do not change as long as they sleep, which is checked after that. Return: of
 * how many threads.
 */
static size_t read_pages(struct reader *reader, const struct sb_asleep *at, size_t nr)
{
	struct sb_pages *pages = &reader->pages;
	bool is_done[SB_READER_AHEAD_MAX] = {};
	size_t i, round;

	nr = nr < SB_READER_AHEAD_MAX ? nr : SB_READER_AHEAD_MAX;
	if (!reader->asleep->interps)
		return nr;
	sb_pages_clear(pages);
	pages->is_noting = true;
	for (round = 0; round < ROUNDS_MAX && (!round || sb_pages_fetch(pages)); round++) {
		for (i = 0; i < nr; i++) {
			pages->is_short = false;
			if (!is_done[i])
				sb_interpwatch_walk(reader->asleep->interps, &at[i], pages,
						    &reader->walk);
			is_done[i] = !pages->is_short;
		}
	}
	pages->is_noting = pages->is_short = false;
	return nr;
}

static int take_all(struct reader *reader, const struct sb_str *found)
{
	const struct sb_asleep *at = (const struct sb_asleep *)found->s;
	size_t i, ahead = 0, paged = 0, nr = found->len / sizeof(*at);
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		if (i == paged)
			paged += read_pages(reader, &at[i], nr - i);
		if (i == ahead)
			ahead += read_ahead(&at[i], paged - i);
		err = take(reader, &at[i]);
	}
	sb_reader_ahead(NULL, 0);
	return err;
}

/*
 * The iterator runs over all threads before anything is read of them. Reading takes time, and a
 * thread's wait counts from the moment at which the iterator comes to it, so the iterator should
 * not wait for the reading.
 */
int sb_asleep_run(struct sb_asleep_stacks *asleep, const struct bpf_program *prog,
		  void (*found)(void *arg))
{
	sb_cleanup(sb_freep) struct reader *reader = calloc(1, sizeof(*reader));
	struct sb_str threads = {};
	int err;

	if (!reader)
		return -ENOMEM;
	reader->asleep = asleep;
	err = sb_iter_run(prog, &threads);
	/* A second time, for threads for which no state could be made; sched_begin skips all
	 * others. */
	if (!err && found)
		err = sb_iter_run(prog, &threads);
	if (!err && found)
		found(asleep->arg);
	if (!err)
		err = take_all(reader, &threads);
	sb_str_release(&threads);
	sb_pages_release(&reader->pages);
	sb_str_release(&reader->labels);
	return err;
}

void sb_asleep_release(struct sb_asleep_stacks *asleep)
{
	sb_rawstacks_release(&asleep->raw);
}
