// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/resolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/abi/sb_abi_label.h"
#include "process/process.h"
#include "resolve/assembly.h"
#include "resolve/labels.h"
#include "resolve/roots.h"
#include "resolve/slowest.h"

/* Of what lies below one stack, between two drains. More are taken as one: in a second, no program
 * gives each of them a time worth a sample. */
#define CHANGES_MAX	     1000

/* Stacks and counts between two calls of opts.progress. With names that have to be found, they take
 * some milliseconds. */
#define PROGRESS_EVERY	     64u

#define STACKS_MAX_DEFAULT   16384u
#define IDLE_BATCHES_DEFAULT 128u

struct sb_resolver {
	struct sb_resolve_opts opts;
	struct sb_symbolizer *sym;
	struct sb_profile *profile;
	struct sb_processes *own_processes; /* opts.processes, if it was made here; or NULL */
	uint64_t nr_batches; /* which is the number of the current batch; the caches borrow it */
	struct sb_stack_cache stacks;
	struct sb_object_cache objects;
	struct sb_label_cache labels;
	struct sb_wait_words words;
	struct sb_slowest slowest;
	struct sb_resolve_stats view_stats[SB_VIEWS_MAX];
};

int sb_resolver_new(const struct sb_resolve_opts *opts, struct sb_symbolizer *sym,
		    struct sb_profile *profile, struct sb_resolver **ret_resolver)
{
	struct sb_resolver *resolver = calloc(1, sizeof(*resolver));
	int err;

	if (!resolver)
		return -ENOMEM;
	resolver->opts = *opts;
	if (!opts->processes) {
		err = sb_processes_new(NULL, &resolver->own_processes);
		if (err) {
			free(resolver);
			return err;
		}
		resolver->opts.processes = resolver->own_processes;
	}
	resolver->sym = sym;
	resolver->profile = profile;
	if (!resolver->opts.nr_roots)
		resolver->opts.roots[resolver->opts.nr_roots++] = SB_ATTR_COMM;
	resolver->stacks.nr_max = opts->stacks_max ? opts->stacks_max : STACKS_MAX_DEFAULT;
	resolver->stacks.idle_batches =
		opts->idle_batches ? opts->idle_batches : IDLE_BATCHES_DEFAULT;
	resolver->objects.nr_max = resolver->stacks.nr_max;
	resolver->objects.path_glob = opts->path_glob;
	resolver->stacks.batch = resolver->objects.batch = resolver->labels.batch =
		&resolver->nr_batches;
	*ret_resolver = resolver;
	return 0;
}

void sb_resolver_free(struct sb_resolver *resolver)
{
	if (!resolver)
		return;
	sb_stack_cache_release(&resolver->stacks);
	sb_object_cache_release(&resolver->objects);
	sb_label_cache_release(&resolver->labels);
	sb_wait_words_clear(&resolver->words);
	sb_slowest_release(&resolver->slowest);
	sb_processes_free(resolver->own_processes);
	free(resolver);
}

/* Get the values of the labels that were asked for; NULL where the thread does not have the key. */
static void find_labels(struct assembly *assembly, struct sb_label_cache *cache,
			const struct sb_sample_key *key, const char **values)
{
	const struct sb_known_labels *labels;
	bool has_any = false;
	size_t i;

	memset(values, 0, SB_LABELS_MAX * sizeof(*values));
	if (!key->labels)
		return;
	labels = sb_label_cache_find(cache, key->labels);
	if (!labels)
		assembly->stats->nr_missing_labels += assembly->nr_samples;
	for (i = 0; labels && i < assembly->opts->nr_labels; i++) {
		values[i] = sb_known_labels_value(labels, i);
		has_any |= values[i] != NULL;
	}
	if (has_any)
		assembly->stats->nr_labelled += assembly->nr_samples;
	if (has_any && !labels->text)
		assembly->stats->nr_other_labels += assembly->nr_samples;
}

/* Push the labels that were asked for and that the thread has. */
static int push_labels(struct assembly *assembly, const char *const *values)
{
	int err = 0;
	size_t i;

	for (i = 0; i < assembly->opts->nr_labels && !err; i++) {
		if (values[i])
			err = sb_assembly_push_attr(assembly,
						    &(struct sb_attr){
							    .kind = SB_ATTR_LABEL,
							    .key = assembly->opts->labels[i],
							    .text = values[i],
						    });
	}
	return err;
}

/* Find the series of a sample; without series, its labels become root frames. */
static int find_series(struct assembly *assembly, struct sb_label_cache *cache,
		       const struct sb_sample_key *key)
{
	const struct sb_resolve_opts *opts = assembly->opts;
	const char *values[SB_LABELS_MAX];

	find_labels(assembly, cache, key, values);
	return opts->series ? opts->series(opts->series_arg, key, values, &assembly->series)
			    : push_labels(assembly, values);
}

static int push_roots(struct assembly *assembly, const struct sb_sample_key *key)
{
	const struct sb_resolve_opts *opts = assembly->opts;
	struct sb_attr attr;
	size_t i;
	int err = 0;

	for (i = 0; !opts->series && i < opts->nr_roots && !err; i++) {
		err = sb_root_attr(opts->roots[i], key, &assembly->text, &attr);
		if (!err)
			err = sb_assembly_push_attr(assembly, &attr);
	}
	return err;
}

static int push_stacks(struct assembly *assembly, struct sb_stack_cache *stacks,
		       const struct sb_batch_count *count)
{
	const struct sb_sample_key *key = &count->key;
	bool has_user = sb_stack_is_there(key->ustack);
	bool has_kernel = sb_stack_is_there(key->kstack);
	int err = 0;

	assembly->is_cut = false;
	assembly->user_count = NULL;
	assembly->user_at = assembly->frames.nr;
	if (has_user)
		err = sb_assembly_push_user(assembly, stacks,
					    &(struct user_stack){
						    .ustack = key->ustack,
						    .istack = key->istack,
						    .start_ns = key->start_ns,
						    .time_ns = count->count.first_ns,
						    .tgid = key->tgid,
						    .exec_id = key->exec_id,
					    });
	if (!err && assembly->opts->delimited && has_user && has_kernel)
		err = sb_assembly_push(assembly, "-", SB_FRAME_DELIMITER);
	assembly->kernel_at = assembly->frames.nr;
	if (!err && has_kernel)
		err = sb_assembly_push_kernel(assembly, stacks, key->kstack);
	assembly->end = assembly->frames.nr;
	return err;
}

/* Push the roots and the stacks of a sample. */
static int push_sample(struct sb_resolver *resolver, struct assembly *assembly,
		       const struct sb_batch_count *count)
{
	int err = find_series(assembly, &resolver->labels, &count->key);

	if (!err)
		err = sb_assembly_push_state_root(assembly, &count->key);
	if (!err)
		err = push_roots(assembly, &count->key);
	if (!err)
		err = push_stacks(assembly, &resolver->stacks, count);
	/* The interrupted thread's labels are not the interrupt's. */
	if (!err && assembly->view->is_of_wakers)
		err = sb_assembly_cut_interrupted(assembly, 0, assembly->kernel_at);
	return err;
}

static int count_sample(struct sb_resolver *resolver, const struct assembly *assembly,
			const struct sb_batch_count *count)
{
	const struct sb_sample_key *key = &count->key;
	struct sb_resolve_stats *stats = assembly->stats;
	int ret = sb_processes_mark(resolver->opts.processes, &SB_SPACE_KEY(key),
				    key->view % SB_VIEWS_MAX);

	stats->nr_processes += ret == 1;
	stats->nr_samples += count->count.nr_samples;
	stats->weight += count->count.weight;
	if (assembly->is_cut)
		stats->nr_cut += count->count.nr_samples;
	if (key->state < SB_STATE_MAX)
		stats->state_weight[key->state] += count->count.weight;
	if (assembly->reason.class == SB_WAIT_LOCK)
		stats->lock_weight += count->count.weight;
	/* Processes for which the registry has no room are counted there. */
	return ret == -ENOMEM ? ret : 0;
}

static int add_to_profile(const struct assembly *assembly, const struct sb_batch_count *count)
{
	return sb_profile_add_row(assembly->profile, &(struct sb_row){
							     .frames = assembly->frames.at,
							     .nr = assembly->frames.nr,
							     .series = assembly->series,
							     .log2_ns = count->key.log2_ns,
							     .weight = count->count.weight,
							     .nr_samples = count->count.nr_samples,
						     });
}

static int add_part(struct sb_resolver *resolver, struct assembly *assembly,
		    const struct sb_batch_count *count)
{
	struct sb_resolve_stats before = *assembly->stats;
	int err;

	assembly->nr_samples = count->count.nr_samples;
	assembly->frames.nr = 0;
	assembly->call = NULL;
	err = push_sample(resolver, assembly, count);
	if (err)
		return err;
	sb_assembly_find_reason(assembly, &resolver->words, &count->key);
	if (sb_assembly_is_left_out(assembly, &resolver->objects, count)) {
		/* Undo what its stacks added to the figures. */
		before.idle_weight = assembly->stats->idle_weight;
		before.nr_unwanted = assembly->stats->nr_unwanted;
		*assembly->stats = before;
		return 0;
	}
	err = count_sample(resolver, assembly, count);
	if (!err)
		err = sb_assembly_push_beyond(assembly, &resolver->objects, &resolver->stacks,
					      &count->key);
	if (!err && assembly->call)
		err = sb_slowest_add(&resolver->slowest, assembly->call, assembly->frames.at,
				     assembly->frames.nr);
	/* A count of nothing is there for the names of its stack. */
	if (!err && (count->count.nr_samples || count->count.weight))
		err = add_to_profile(assembly, count);
	return err;
}

/* How many of the samples of @count came before @time_ns, if they were evenly spaced. */
static uint64_t nr_samples_before(const struct sb_count *count, uint64_t time_ns)
{
	uint64_t nr_between =
		count->nr_samples - 2; /* the times of the first and the last are known */
	double part =
		(double)(time_ns - count->first_ns) / (double)(count->last_ns - count->first_ns);

	return 1 + (uint64_t)((double)nr_between * part + 0.5);
}

/*
 * Add samples that were counted together although mappings below their stack changed meanwhile.
 * Only the times of the first and the last sample are known, so the others are divided by time.
 */
static int add_split(struct sb_resolver *resolver, struct assembly *assembly,
		     const struct sb_batch_count *count, uint64_t change_ns)
{
	const struct sb_count *whole = &count->count;
	struct sb_batch_count part = *count;
	uint64_t nr_done = 0, nr_until, nr_changes = 0;
	int err = 0;

	while (nr_done < whole->nr_samples && !err) {
		nr_until = change_ns > whole->last_ns || ++nr_changes > CHANGES_MAX
				   ? whole->nr_samples
				   : nr_samples_before(whole, change_ns);
		part.count.nr_samples = nr_until - nr_done;
		part.count.weight = whole->weight / whole->nr_samples * part.count.nr_samples;
		if (nr_until == whole->nr_samples)
			part.count.weight += whole->weight % whole->nr_samples;
		if (nr_until > nr_done)
			err = add_part(resolver, assembly, &part);
		nr_done = nr_until;
		part.count.first_ns = change_ns;
		if (!err && nr_done < whole->nr_samples)
			err = sb_assembly_next_change(assembly, &resolver->stacks, count, change_ns,
						      &change_ns);
	}
	assembly->stats->nr_shared_out += whole->nr_samples;
	return err;
}

static int add_count(struct sb_resolver *resolver, struct assembly *assembly,
		     const struct sb_batch_count *count)
{
	const uint32_t view = count->key.view % SB_VIEWS_MAX;
	uint64_t change_ns = UINT64_MAX;
	int err = 0;

	assembly->view = &resolver->opts.views[view];
	assembly->stats = &resolver->view_stats[view];
	if (count->count.nr_samples > 1 && sb_stack_is_there(count->key.ustack))
		err = sb_assembly_next_change(assembly, &resolver->stacks, count,
					      count->count.first_ns, &change_ns);
	if (err)
		return err;
	return change_ns == UINT64_MAX ? add_part(resolver, assembly, count)
				       : add_split(resolver, assembly, count, change_ns);
}

static void tell_progress(const struct sb_resolver *resolver, size_t nr_done)
{
	if (resolver->opts.progress && nr_done % PROGRESS_EVERY == 0)
		resolver->opts.progress(resolver->opts.progress_arg);
}

/* Add to the caches what samples of this batch or of later ones reference. */
static int add_to_caches(struct sb_resolver *resolver, const struct sb_batch *batch)
{
	size_t i;
	int err = 0;

	for (i = 0; i < batch->nr_stacks && !err; i++) {
		tell_progress(resolver, i);
		err = sb_stack_cache_add(&resolver->stacks, &batch->stacks[i]);
	}
	for (i = 0; i < batch->nr_objects && !err; i++)
		err = sb_object_cache_add(&resolver->objects, &batch->objects[i]);
	for (i = 0; i < batch->nr_labels && !err; i++)
		err = sb_label_cache_add(&resolver->labels, &batch->labels[i]);
	return err;
}

static int evict(struct sb_resolver *resolver)
{
	sb_cleanup(sb_ended_release) struct sb_ended ended = {};
	int err = sb_label_cache_evict(&resolver->labels);

	if (!err)
		err = sb_stack_cache_evict(&resolver->stacks, &ended);
	return err ? err : sb_object_cache_evict(&resolver->objects, &ended);
}

int sb_resolver_add(struct sb_resolver *resolver, const struct sb_batch *batch)
{
	sb_cleanup(sb_assembly_release) struct assembly assembly = {
		.opts = &resolver->opts,
		.sym = resolver->sym,
		.profile = resolver->profile,
	};
	size_t i;
	int err;

	resolver->nr_batches++;
	resolver->objects.unwanted.nr = 0;
	err = add_to_caches(resolver, batch);
	for (i = 0; i < batch->nr_counts && !err; i++) {
		tell_progress(resolver, i);
		err = add_count(resolver, &assembly, &batch->counts[i]);
	}
	return err ? err : evict(resolver);
}

bool sb_resolver_wants_pending(const struct sb_resolver *resolver)
{
	return sb_stack_cache_wants_pending(&resolver->stacks);
}

void sb_resolver_note_pending(struct sb_resolver *resolver, const struct sb_stack_id *ids,
			      size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		(void)sb_stack_cache_find(&resolver->stacks, ids[i]);
	/* The stacks of a waker are resolved only when the wait that it ended comes. */
	for (i = 0; i < resolver->objects.at.nr; i++) {
		const struct sb_object *object = &resolver->objects.at.at[i];
		const struct sb_object_waker *waker = object->data;

		if (object->kind != SB_OBJECT_WAKER || object->frames.at)
			continue;
		(void)sb_stack_cache_find(&resolver->stacks, waker->kstack);
		(void)sb_stack_cache_find(&resolver->stacks, waker->ustack);
		(void)sb_stack_cache_find(&resolver->stacks, waker->istack);
	}
}

static int move_frames(const struct sb_profile *from, struct sb_profile *to, uint32_t *ids,
		       size_t nr)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		err = sb_profile_copy_frame(to, from, ids[i], &ids[i]);
	return err;
}

int sb_resolver_move(struct sb_resolver *resolver, struct sb_profile *profile)
{
	const struct sb_profile *from = resolver->profile;
	size_t i;
	int err = 0;

	resolver->profile = profile;
	sb_wait_words_clear(&resolver->words); /* frames have other numbers in the new profile */
	for (i = 0; i < resolver->stacks.at.nr && !err; i++) {
		const struct sb_frame_ids *frames = &resolver->stacks.at.at[i].frames;

		err = move_frames(from, profile, frames->at, frames->nr);
	}
	for (i = 0; i < resolver->objects.at.nr && !err; i++) {
		const struct sb_frame_ids *frames = &resolver->objects.at.at[i].frames;

		err = move_frames(from, profile, frames->at, frames->nr);
	}
	for (i = 0; i < resolver->slowest.nr && !err; i++) {
		const struct sb_slow_call *slow = &resolver->slowest.at[i];

		err = move_frames(from, profile, slow->frames, slow->nr_frames);
	}
	return err;
}

void sb_resolver_evicted(const struct sb_resolver *resolver, struct sb_batch_evicted *ret_evicted)
{
	*ret_evicted = (struct sb_batch_evicted){
		.stacks = resolver->stacks.evicted.at,
		.nr_stacks = resolver->stacks.evicted.nr,
		.labels = resolver->labels.evicted.at,
		.nr_labels = resolver->labels.evicted.nr,
		.unwanted = resolver->objects.unwanted.at,
		.nr_unwanted = resolver->objects.unwanted.nr,
	};
}

void sb_resolver_stats(const struct sb_resolver *resolver, uint32_t view,
		       struct sb_resolve_stats *ret_stats)
{
	*ret_stats = resolver->view_stats[view];
	ret_stats->nr_stacks = resolver->stacks.nr_added;
	ret_stats->nr_evicted = resolver->stacks.nr_evicted;
}

const struct sb_slowest *sb_resolver_slowest(const struct sb_resolver *resolver)
{
	return &resolver->slowest;
}
