// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stackbpf snap: shows what each thread does now. It is a very short run of `wall`: the stacks of
 * sleeping threads are read by its iterator, those of running threads are sampled by its timer. No
 * thread is stopped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/index.h"
#include "base/log.h"
#include "base/search.h"
#include "base/time.h"
#include "cli/command.h"
#include "cli/record.h"
#include "cli/snap.h"
#include "symbolizer/process/procfs.h"

/* So long threads are awaited that run, and so often looked at: a tick comes to each CPU twenty
 * times. */
#define WINDOW_NS (20 * SB_NS_PER_MS)
#define FREQ_HZ	  997

/* A thread in one state, as samples name it. */
struct key {
	uint32_t tgid, tid, state;
	char comm[SB_COMM_LEN + 1];
};

struct snap {
	struct sb_run_sink sink; /* first */
	struct sb_snap snap;
	struct sb_outputs *outputs; /* borrowed */
	SB_VEC(struct key) keys;
	struct sb_index keys_index;
};

static int series(void *arg, const struct sb_sample_key *from, const char *const *labels,
		  uint32_t *ret_series)
{
	struct snap *snap = arg;
	uint64_t hash = (uint64_t)from->tid << 8 | from->state;
	struct key key = { .tgid = from->tgid, .tid = from->tid };
	int err;

	key.state = from->state < SB_STATE_MAX ? from->state : SB_STATE_NONE;
	memcpy(key.comm, from->comm, SB_COMM_LEN);
	hash = sb_hash(&hash, sizeof(hash), 0);
	sb_index_each(it, &snap->keys_index, hash) {
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

	/* Of one thread, the heaviest comes first. */
	return sb_compare(a->tgid, b->tgid) ?: sb_compare(a->tid, b->tid) ?:
	       sb_compare(b->weight, a->weight);
}

/*
 * The frames without the state of the thread and why it waits, which are told otherwise. The marks
 * of a stack that was cut remain.
 */
static void strip(const struct sb_profile *profile, struct sb_snap_thread *thread)
{
	for (; thread->nr_ids; thread->nr_ids--) {
		const struct sb_attr *leaf =
			sb_profile_attr_at(profile, thread->ids[thread->nr_ids - 1]);

		if (leaf->kind < SB_ATTR_IDLE || leaf->kind > SB_ATTR_NOT_SAMPLED)
			break;
		if (leaf->kind == SB_ATTR_IDLE)
			thread->idle = leaf->text;
		if (leaf->kind == SB_ATTR_LOCK)
			thread->lock = leaf->text;
		/* It ran, and no tick found it: any other stack says more. */
		if (leaf->kind == SB_ATTR_NOT_SAMPLED)
			thread->weight = 0;
	}
}

static int add_stack(struct snap *snap, const struct sb_profile *profile, size_t i)
{
	const struct sb_row row = sb_profile_row_at(profile, i);
	const struct key *key = &snap->keys.at[row.series];
	struct sb_snap_thread thread = {
		.tgid = key->tgid,
		.tid = key->tid,
		.state = key->state,
		.ids = row.frames,
		.nr_ids = row.nr,
		.weight = row.weight,
	};

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
	sb_cleanup(sb_closedirp) DIR *dir = sb_procfs_threads(tgid);
	const size_t nr_known = snap->threads.nr;
	uint32_t tid;
	int err = 0;

	while (dir && !err && (tid = sb_procfs_next_task(dir, 0))) {
		struct sb_snap_thread thread = { .tgid = tgid, .tid = tid };

		if (has_thread(snap, nr_known, tid))
			continue;
		read_comm(&thread);
		err = sb_vec_push(&snap->threads, thread);
	}
	return err;
}

static int collect(struct snap *snap, struct sb_run *run)
{
	const struct sb_targets *targets = &run->config->targets;
	struct sb_snap *to = &snap->snap;
	size_t i;
	int err = sb_profile_seal(run->profile);

	for (i = 0; i < sb_profile_nr_stacks(run->profile) && !err; i++)
		err = add_stack(snap, run->profile, i);
	keep_heaviest(to);
	for (i = 0; i < targets->tgids.nr && !err; i++)
		if (targets->tgids.at[i].rule & SB_RULE_ALLOW)
			err = add_others(to, targets->tgids.at[i].pid);
	if (!err)
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
		return sb_err(err, "cannot add up the stacks that were read");
	return sb_outputs_write(snap->outputs, run->profile, &snap->snap.opts);
}

static int prepare_outputs(struct sb_run_sink *sink, struct sb_run *run)
{
	return sb_outputs_prepare(((struct snap *)sink)->outputs, run);
}

static int prepare(struct snap *snap, struct sb_record *record)
{
	struct sb_record_opts *opts = &record->opts;
	const struct sb_output *format = sb_snap_format(opts->format ? opts->format : "stacks");
	size_t i;
	int status = -1;

	if (!sb_run_has_allow_rule(&opts->run.targets))
		return sb_fail(SB_EXIT_USAGE, 0,
			       "snap: the process is missing; name it with -p PID");
	opts->modules = true;
	opts->run.freq_hz = FREQ_HZ;
	opts->run.time_ns = WINDOW_NS;
	/* It is too short for that, and to be exact. */
	opts->run.overhead_max_ppm = 0;
	(void)sb_views_add(&opts->run.views, sb_view_of_all_threads());
	snap->snap.group = opts->group;
	snap->sink = (struct sb_run_sink){
		.prepare = prepare_outputs,
		.take = take,
		.series = series,
		.series_arg = snap,
		.by = SB_BY_THREAD,
	};
	record->no_report = true;
	snap->outputs = &record->result.outputs;
	if (!opts->output_paths.nr)
		return sb_outputs_add(snap->outputs, "-", format);
	for (i = 0; i < opts->output_paths.nr && status < 0; i++)
		status = sb_outputs_add(snap->outputs, opts->output_paths.at[i], format);
	return status;
}

int sb_cmd_snap(const struct sb_command *command, char **argv)
{
	struct snap snap = {};
	struct sb_record record;
	int status;

	sb_record_init(&record);
	status = sb_record_parse(&record.opts, command, argv);
	if (status < 0)
		status = prepare(&snap, &record);
	if (status < 0)
		status = sb_record_go(&record, &snap.sink);
	sb_record_release(&record);
	sb_vec_release(&snap.snap.threads);
	sb_vec_release(&snap.keys);
	sb_index_release(&snap.keys_index);
	return status;
}
