// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stackbpf snap: what each thread does now. A run of `wall` that is over at once: threads that sleep are read by
 * its iterator, with whatever they wait in; those that run by its timer. Nothing is stopped.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/index.h"
#include "base/log.h"
#include "base/num.h"
#include "base/time.h"
#include "cli/command.h"
#include "cli/record.h"
#include "cli/snap.h"

/* So long threads are awaited that run, and so often looked at: a tick comes to each CPU twenty times. */
#define WINDOW_NS	 (20 * SB_NS_PER_MS)
#define FREQ_HZ		 997
#define IDLE_MARK	 "[idle: "
#define LOCK_MARK	 "[lock: "
#define NOT_SAMPLED_MARK "[running: not sampled]"

/* A thread in one state, as samples name it. */
struct key {
	uint32_t tgid, tid, state;
	char comm[SB_COMM_LEN + 1];
};

struct snap {
	struct sb_run_sink sink; /* first */
	struct sb_snap snap;
	SB_VEC(struct key) keys;
	struct sb_index keys_index;
};

static int series(void *arg, const struct sb_sample_key *from, const char *const *labels,
		  uint32_t *ret_series)
{
	struct snap *snap = arg;
	uint64_t hash = (uint64_t)from->tid << 8 | from->state;
	struct sb_index_iter it;
	struct key key = { .tgid = from->tgid, .tid = from->tid };
	int err;

	key.state = from->state < SB_STATE_MAX ? from->state : SB_STATE_NONE;
	memcpy(key.comm, from->comm, SB_COMM_LEN);
	hash = sb_hash(&hash, sizeof(hash), 0);
	for (it = sb_index_first(&snap->keys_index, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&snap->keys_index, it)) {
		const struct key *known = &snap->keys.at[it.id];

		if (known->tid == key.tid && known->state == key.state) {
			*ret_series = it.id;
			return 0;
		}
	}
	err = sb_vec_push(&snap->keys, key);
	if (!err)
		err = sb_index_add(&snap->keys_index, hash, (uint32_t)snap->keys.nr - 1);
	if (!err)
		*ret_series = (uint32_t)snap->keys.nr - 1;
	return err;
}

static int by_ids(const void *va, const void *vb)
{
	const struct sb_snap_thread *a = va, *b = vb;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	/* Of one thread, the heaviest comes first. */
	return a->weight > b->weight ? -1 : a->weight < b->weight;
}

/* "epoll" of "[idle: epoll]", if the name is of that shape. */
static void take_kind(const char *name, const char *mark, char *ret, size_t size)
{
	size_t len = strlen(mark);

	if (!strncmp(name, mark, len))
		snprintf(ret, size, "%.*s", (int)strcspn(name + len, "]"), name + len);
}

/*
 * The frames without what stands for the thread, its state and why it waits, which are told otherwise. The marks
 * of a stack that was cut remain.
 */
static void strip(const struct sb_profile *profile, struct sb_snap_thread *thread)
{
	thread->ids++; /* the series */
	thread->nr_ids--;
	while (thread->nr_ids) {
		const struct sb_frame *leaf =
			sb_profile_frame_at(profile, thread->ids[thread->nr_ids - 1]);

		if (leaf->kind != SB_FRAME_MARK || !strncmp(leaf->name, "[truncated", 10) ||
		    !strncmp(leaf->name, "[lost", 5))
			break;
		take_kind(leaf->name, IDLE_MARK, thread->idle, sizeof(thread->idle));
		take_kind(leaf->name, LOCK_MARK, thread->lock, sizeof(thread->lock));
		/* It ran, and no tick found it: any other stack says more. */
		if (sb_streq(leaf->name, NOT_SAMPLED_MARK))
			thread->weight = 0;
		thread->nr_ids--;
	}
}

static int add_stack(struct snap *snap, const struct sb_profile *profile, size_t i)
{
	struct sb_snap_thread thread = {};
	const struct key *key;
	uint64_t series_nr;

	thread.ids = sb_profile_stack_at(profile, i, &thread.nr_ids, &thread.weight);
	if (!thread.nr_ids ||
	    sb_parse_u64(sb_profile_frame_at(profile, thread.ids[0])->name, UINT32_MAX,
			 &series_nr) ||
	    series_nr >= snap->keys.nr)
		return 0;
	key = &snap->keys.at[series_nr];
	thread.tgid = key->tgid;
	thread.tid = key->tid;
	thread.state = key->state;
	memcpy(thread.comm, key->comm, sizeof(thread.comm));
	strip(profile, &thread);
	return sb_vec_push(&snap->snap.threads, thread);
}

/* One stack for each thread. */
static void keep_heaviest(struct sb_snap *snap)
{
	size_t i, nr = 0;

	if (snap->threads.nr)
		qsort(snap->threads.at, snap->threads.nr, sizeof(snap->threads.at[0]), by_ids);
	for (i = 0; i < snap->threads.nr; i++)
		if (!nr || snap->threads.at[nr - 1].tid != snap->threads.at[i].tid)
			snap->threads.at[nr++] = snap->threads.at[i];
	snap->threads.nr = nr;
}

static bool has_thread(const struct sb_snap *snap, size_t nr, uint32_t tid)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (snap->threads.at[i].tid == tid)
			return true;
	return false;
}

static void read_comm(struct sb_snap_thread *thread)
{
	sb_cleanup(sb_freep) char *comm = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", thread->tgid, thread->tid);
	if (sb_read_file(path, 64, &comm, NULL))
		return;
	comm[strcspn(comm, "\n")] = '\0';
	snprintf(thread->comm, sizeof(thread->comm), "%.*s", SB_COMM_LEN, comm);
}

/* Threads of which there is no stack are said to be so. */
static int add_others(struct sb_snap *snap, uint32_t tgid)
{
	size_t nr_known = snap->threads.nr;
	const struct dirent *entry;
	char path[32];
	uint64_t tid;
	int err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	dir = opendir(path);
	while (dir && !err && (entry = readdir(dir))) {
		struct sb_snap_thread thread = { .tgid = tgid };

		if (sb_parse_u64(entry->d_name, UINT32_MAX, &tid) ||
		    has_thread(snap, nr_known, (uint32_t)tid))
			continue;
		thread.tid = (uint32_t)tid;
		read_comm(&thread);
		err = sb_vec_push(&snap->threads, thread);
	}
	if (dir)
		closedir(dir);
	return err;
}

static int collect(struct snap *snap, struct sb_run *run)
{
	const struct sb_targets *targets = &run->opts.targets;
	struct sb_snap *to = &snap->snap;
	size_t i;
	int err = sb_profile_seal(run->profile);

	for (i = 0; i < sb_profile_nr_stacks(run->profile) && !err; i++)
		err = add_stack(snap, run->profile, i);
	keep_heaviest(to);
	for (i = 0; i < targets->tgids.nr && !err; i++)
		if (targets->tgids.at[i].rule & SB_RULE_ALLOW)
			err = add_others(to, targets->tgids.at[i].pid);
	if (err)
		return err;
	keep_heaviest(to);
	return err;
}

static int take(struct sb_run_sink *sink, struct sb_run *run)
{
	struct snap *snap = (struct snap *)sink;
	int err;

	/* SIGUSR1: it is over before anybody can want more. */
	if (!run->end_ns)
		return 0;
	err = collect(snap, run);
	if (err)
		return sb_err(err, "cannot put the stacks together");
	return sb_run_write_as(run, run->profile, &snap->snap.opts);
}

static int prepare(struct snap *snap, struct sb_run *run)
{
	struct sb_record_opts *opts = &run->opts;
	const struct sb_output *format = sb_snap_format(opts->format ? opts->format : "stacks");
	size_t i;
	int status = -1;

	if (!sb_targets_have_allow_rule(&opts->targets)) {
		sb_err(0, "snap: of which process? Name it with -p");
		return SB_EXIT_USAGE;
	}
	opts->modules = true;
	opts->freq_hz = FREQ_HZ;
	opts->time_ns = WINDOW_NS;
	/* It is too short for that, and to be exact. */
	opts->overhead_max_ppm = 0;
	(void)sb_views_add(&run->views, sb_view_find("wall"));
	snap->snap.group = opts->group;
	snap->sink = (struct sb_run_sink){
		.take = take,
		.series = series,
		.series_arg = snap,
		.by = SB_BY_THREAD,
		.has_report = true,
	};
	run->sink = &snap->sink;
	if (!opts->output_paths.nr)
		return sb_run_add_output(run, "-", format);
	for (i = 0; i < opts->output_paths.nr && status < 0; i++)
		status = sb_run_add_output(run, opts->output_paths.at[i], format);
	return status;
}

int sb_cmd_snap(const struct sb_command *command, char **argv)
{
	struct snap snap = {};
	struct sb_run run;
	int status;

	sb_run_init(&run);
	status = sb_run_parse(&run, command, argv);
	if (status < 0)
		status = prepare(&snap, &run);
	if (status < 0)
		status = sb_run_go(&run);
	sb_run_release(&run);
	sb_vec_release(&snap.snap.threads);
	sb_vec_release(&snap.keys);
	sb_index_release(&snap.keys_index);
	return status;
}
