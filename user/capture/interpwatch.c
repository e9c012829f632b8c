// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/interpwatch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/time.h"
#include "base/vec.h"
#include "bpf/abi/sb_abi_label.h"
#include "capture/news.h"
#include "capture/server.h"
#include "capture/thread.h"
#include "interp/core/step.h"
#include "symbolizer/process/reader.h"
#include "views/skel.h"
#include "workers/privileges.h"

#define PROCS_MAX	 16384u
#define EVENTS_BYTES	 (1u << 20)
/* Words of stacks that may wait for a drain: 64 MB. */
#define WORDS_MAX	 (8u << 20)
/* Label sets that may wait for a drain: 16 MB. */
#define LABELS_MAX	 65536u
#define LABELS_BYTES_MAX (16u << 20)
/* Label sets that the BPF side remembers as shipped: 2 MB. */
#define LABELS_SEEN_MAX	 32768u
/* How soon a runtime that has not begun is looked at again; the pause grows each time. */
#define AGAIN_NS	 (2 * SB_NS_PER_MS)
#define AGAIN_NS_MAX	 (1000 * SB_NS_PER_MS)
/* How soon a process that maps code is looked at again. The first pauses are short, because many
 * processes do not live longer than their start; later ones grow. */
#define REST_NS_MIN	 (1 * SB_NS_PER_MS)
#define REST_NS_MAX	 (20 * SB_NS_PER_MS)
/* After so long without a look, pauses begin short again. */
#define RESTED_NS	 (1000 * SB_NS_PER_MS)

/* A process that the walkers know, in the slot of its address space. */
struct proc {
	struct sb_space *space; /* a reference */
	size_t at;		/* in procs */
	uint32_t nr_confs;
	uint32_t conf_at[SB_INTERP_PER_PROC];
	uint32_t hook;	   /* as in struct sb_interp_proc */
	uint32_t labels;   /* the same */
	uint64_t look_ns;  /* when to look at it again; 0: no need */
	uint64_t again_ns; /* the time from one look to the next, while something has not begun */
	uint64_t looked_ns;
	uint64_t rest_ns; /* the time to the next look, if it maps code */
	uint64_t cost_ns; /* of the last look, in CPU time */
	uint64_t next_ns; /* no look before that: the last ones took so much of our time */
	bool is_changed;
};

/* A stack that waits for the drain. */
struct waiting {
	struct sb_stack_id id;
	struct sb_space_key space;
	uint32_t status, nr_frames;
	size_t first; /* in words */
	bool is_single;
};

/* Label sets, and their texts one after the other. */
struct labels {
	SB_VEC(struct sb_batch_labels) at;
	struct sb_str texts;
};

struct sb_interpwatch {
	struct sampler_bpf *skel;	/* borrowed */
	struct sb_processes *processes; /* borrowed */
	struct sb_interp *interp;	/* borrowed */
	struct sb_server server;

	/* Used by the thread only. */
	SB_VEC(struct proc *) procs; /* in no order */
	struct sb_ration ration;
	SB_VEC(uint32_t)
	free_confs; /* first in, first out: what was given back last rests longest */
	size_t next_free;

	pthread_mutex_t ring_lock; /* of reading the ring, and of what comes from it */
	SB_VEC(struct sb_space_key) needs;
	SB_VEC(struct sb_space_key) native; /* known to have nothing, and published */
	SB_VEC(struct waiting) waiting;
	SB_VEC(uint64_t) words;
	struct labels labels;
	uint32_t nr_expected; /* asked for by sb_interpwatch_expect(), and not yet looked at */
	pthread_cond_t is_looked_at;
	size_t nr_named;	    /* of waiting: those before are named, or being named */
	struct labels taken_labels; /* the drain's: what it was given last */

	struct sb_newsbox news; /* of procs */
	struct sb_interpwatch_stats stats;
};

/* Records of the ring. */

static int keep_stack(struct sb_interpwatch *watch, const struct waiting *from,
		      const struct sb_interp_frame *frames)
{
	size_t nr_words = from->nr_frames * sizeof(*frames) / sizeof(uint64_t);
	struct waiting stack = *from;
	int err;

	stack.first = watch->words.nr;
	if (watch->words.nr + nr_words > WORDS_MAX) {
		__atomic_fetch_add(&watch->stats.nr_lost, 1, __ATOMIC_RELAXED);
		return 0;
	}
	err = sb_vec_reserve(&watch->words, watch->words.nr + nr_words);
	if (!err)
		err = sb_vec_push(&watch->waiting, stack);
	if (err)
		return err;
	if (nr_words)
		memcpy(watch->words.at + watch->words.nr, frames, nr_words * sizeof(uint64_t));
	watch->words.nr += nr_words;
	return 0;
}

/* The names of label keys are read at once, as names of frames are: the process may be gone at the
 * drain. */
static int keep_labels(struct sb_interpwatch *watch, uint64_t id, struct sb_space_key space,
		       const struct sb_interp_label_set *set)
{
	struct sb_batch_labels labels = { .id = id };
	size_t first = watch->labels.texts.len;
	int ret = 0, err = 0;

	if (watch->labels.at.nr >= LABELS_MAX || first >= LABELS_BYTES_MAX) {
		__atomic_fetch_add(&watch->stats.nr_labels_lost, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if (set)
		ret = sb_interp_labels(watch->interp, &space, set, &watch->labels.texts);
	if (ret < 0)
		return ret;
	/* Its keys are known now, and the thread publishes them. */
	if (ret & SB_LABELS_NEWS)
		err = sb_vec_push(&watch->needs, space);
	/* It will be shipped again with the next sample, and replace this one. */
	if (ret & SB_LABELS_AGAIN)
		bpf_map_delete_elem(bpf_map__fd(watch->skel->maps.labels_seen), &id);
	labels.nr_bytes = (uint32_t)(watch->labels.texts.len - first);
	return err ? err : sb_vec_push(&watch->labels.at, labels);
}

static int on_labels(struct sb_interpwatch *watch, const struct sb_interp_event *event, size_t len)
{
	const struct sb_space_key space = SB_SPACE_KEY(event);
	const struct sb_interp_label_set set = {
		.kind = (uint32_t)event->id.hi,
		.nr_bytes = event->nr_frames,
		.data = event + 1,
	};

	if (event->nr_frames > SB_LABEL_DATA_MAX || len - sizeof(*event) < event->nr_frames)
		return -EBADMSG;
	/* It was expected, and is known by its number only. The thread will adopt it under this
	 * key. */
	if (!sb_interp_knows(watch->interp, &space) &&
	    (sb_interp_adopt(watch->interp, &space) || sb_vec_push(&watch->needs, space)))
		return 0;
	return keep_labels(watch, event->id.lo, space, &set);
}

static int on_event(void *arg, void *data, size_t len)
{
	const struct sb_interp_event *event = data;
	struct sb_interpwatch *watch = arg;
	struct waiting stack;

	if (len < sizeof(*event))
		return -EBADMSG;
	if (event->kind == SB_INTERP_LABELS)
		return on_labels(watch, event, len);
	if (event->nr_frames > SB_INTERP_FRAMES_MAX ||
	    len - sizeof(*event) < event->nr_frames * sizeof(struct sb_interp_frame))
		return -EBADMSG;
	stack = (struct waiting){
		.id = event->id,
		.space = SB_SPACE_KEY(event),
		.status = event->status,
		.nr_frames = event->nr_frames,
	};
	if (event->kind == SB_INTERP_NEED)
		return sb_vec_push(&watch->needs, stack.space);
	return keep_stack(watch, &stack, (const struct sb_interp_frame *)(event + 1));
}

/* Processes. */

static struct proc *find_proc(struct sb_interpwatch *watch, uint32_t tgid)
{
	return sb_processes_of(watch->processes, tgid, SB_SLOT_WALKERS);
}

static const struct sb_space_key *key_of(const struct proc *proc)
{
	return sb_space_key(proc->space);
}

static void leave_slot(struct sb_interpwatch *watch, struct proc *proc)
{
	if (!proc->space)
		return;
	sb_space_set(watch->processes, proc->space, SB_SLOT_WALKERS, NULL);
	sb_processes_put(watch->processes, sb_take(proc->space));
}

/* Give an entry the key of the address space that replaced its own. Return: 0, -ENOMEM, -E2BIG. */
static int set_key(struct sb_interpwatch *watch, struct proc *proc, const struct sb_space_key *key)
{
	struct sb_space *space;
	int err = sb_processes_get(watch->processes, key, &space);

	if (err)
		return err;
	leave_slot(watch, proc);
	proc->space = space;
	sb_space_set(watch->processes, space, SB_SLOT_WALKERS, proc);
	return 0;
}

/* Return: a new entry; NULL: no memory, and it will be asked for again. */
static struct proc *make_proc(struct sb_interpwatch *watch, const struct sb_space_key *key)
{
	struct proc *proc = calloc(1, sizeof(*proc));

	if (!proc || sb_vec_reserve(&watch->procs, watch->procs.nr + 1) ||
	    set_key(watch, proc, key)) {
		free(proc);
		return NULL;
	}
	proc->at = watch->procs.nr;
	watch->procs.at[watch->procs.nr++] = proc;
	return proc;
}

static void give_confs_back(struct sb_interpwatch *watch, struct proc *proc)
{
	uint32_t i;

	/* Cannot fail: room was reserved for all of them. */
	for (i = 0; i < proc->nr_confs; i++)
		sb_vec_push(&watch->free_confs, proc->conf_at[i]);
	if (proc->labels)
		sb_vec_push(&watch->free_confs, proc->labels - 1);
	proc->nr_confs = proc->hook = proc->labels = 0;
}

/* Return: the index of the configuration, or a negative errno. */
static int64_t write_conf(struct sb_interpwatch *watch, const struct sb_interp_conf *conf)
{
	uint32_t at;

	if (watch->next_free == watch->free_confs.nr) {
		__atomic_fetch_add(&watch->stats.nr_refused, 1, __ATOMIC_RELAXED);
		return -ENOSPC;
	}
	at = watch->free_confs.at[watch->next_free];
	if (bpf_map_update_elem(bpf_map__fd(watch->skel->maps.interp_confs), &at, conf, BPF_ANY))
		return -errno;
	watch->next_free++;
	return at;
}

static void write_confs(struct sb_interpwatch *watch, struct proc *proc,
			const struct sb_interp_confs *confs)
{
	int64_t at = confs->has_labels ? write_conf(watch, &confs->labels) : -1;
	uint32_t i;

	proc->labels = at < 0 ? 0 : (uint32_t)at + 1;
	for (i = 0; i < confs->nr; i++) {
		at = write_conf(watch, &confs->conf[i]);
		if (at < 0)
			break;
		proc->conf_at[proc->nr_confs++] = (uint32_t)at;
		if (confs->conf[i].flags & SB_INTERP_BY_NATIVE && !proc->hook)
			proc->hook = proc->nr_confs;
	}
	if (watch->next_free > SB_INTERP_CONFS_MAX) {
		watch->free_confs.nr -= watch->next_free;
		memmove(watch->free_confs.at, watch->free_confs.at + watch->next_free,
			watch->free_confs.nr * sizeof(watch->free_confs.at[0]));
		watch->next_free = 0;
	}
}

static void publish(struct sb_interpwatch *watch, const struct sb_space_key *key,
		    const struct proc *proc)
{
	struct sb_interp_proc shown = {
		.start_ns = key->start_ns,
		.exec_id = key->exec_id,
		.nr_confs = proc->nr_confs,
		.hook = proc->hook,
		.labels = proc->labels,
	};

	memcpy(shown.conf_at, proc->conf_at, sizeof(shown.conf_at));
	/* The map evicts entries that are not used; a process that is missing is asked for
	 * again. */
	if (bpf_map_update_elem(bpf_map__fd(watch->skel->maps.interp_procs), &key->tgid, &shown,
				BPF_ANY))
		sb_debug("cannot publish the interpreters of process %u", key->tgid);
}

static void drop_proc(struct sb_interpwatch *watch, struct proc *proc)
{
	struct proc *last = watch->procs.at[--watch->procs.nr];

	bpf_map_delete_elem(bpf_map__fd(watch->skel->maps.interp_procs), &key_of(proc)->tgid);
	give_confs_back(watch, proc);
	sb_interp_ended(watch->interp, key_of(proc));
	sb_newsbox_unfollow(&watch->news, key_of(proc)->tgid);
	leave_slot(watch, proc);
	watch->procs.at[proc->at] = last;
	last->at = proc->at;
	free(proc);
}

static void look_at(struct proc *proc, uint64_t time_ns)
{
	proc->look_ns = time_ns < proc->next_ns ? proc->next_ns : time_ns;
}

/* The cost of reading a file for the first time is no reason to pause, since it is read once. */
static void note_cost(struct sb_interpwatch *watch, struct proc *proc, uint64_t begin_ns)
{
	uint64_t end_ns = sb_reader_thread_cpu_ns(), before_ns = proc->cost_ns;

	proc->cost_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
	proc->next_ns = sb_ration_next_ns(&watch->ration, proc->looked_ns,
					  proc->cost_ns < before_ns ? proc->cost_ns : before_ns);
}

static void look(struct sb_interpwatch *watch, struct proc *proc)
{
	uint64_t begin_ns = sb_reader_thread_cpu_ns();
	struct sb_interp_confs confs;
	int err = sb_interp_look(watch->interp, key_of(proc), &confs);

	proc->looked_ns = sb_now_ns();
	note_cost(watch, proc, begin_ns);
	proc->look_ns = 0;
	if (err == -ESRCH) {
		drop_proc(watch, proc);
		return;
	}
	if (err == -EAGAIN || err == -ENOMEM || err == -E2BIG) {
		proc->again_ns = proc->again_ns ? proc->again_ns * 2 : AGAIN_NS;
		if (proc->again_ns > AGAIN_NS_MAX)
			proc->again_ns = AGAIN_NS_MAX;
		look_at(proc, proc->looked_ns + proc->again_ns);
	}
	give_confs_back(watch, proc);
	write_confs(watch, proc, &confs);
	publish(watch, key_of(proc), proc);
}

static void serve_need(struct sb_interpwatch *watch, const struct sb_space_key *key)
{
	struct proc *proc = find_proc(watch, key->tgid);

	/* It was expected: now its address space is known, and so is what is in it. */
	if (proc && !key_of(proc)->start_ns && !sb_interp_adopt(watch->interp, key) &&
	    !set_key(watch, proc, key)) {
		publish(watch, key, proc);
		return;
	}
	if (proc && !sb_space_key_is(key_of(proc), key)) {
		drop_proc(watch, proc);
		proc = NULL;
	}
	if (!proc) {
		proc = make_proc(watch, key);
		if (!proc)
			return;
		/* Before the look, so that changes that come during it are not missed. */
		sb_newsbox_follow(&watch->news, key->tgid);
	}
	look(watch, proc);
}

static void serve_needs(struct sb_interpwatch *watch)
{
	__typeof__(watch->needs) needs;
	size_t i;

	pthread_mutex_lock(&watch->ring_lock);
	ring_buffer__consume(watch->server.ring);
	needs = watch->needs;
	memset(&watch->needs, 0, sizeof(watch->needs));
	pthread_mutex_unlock(&watch->ring_lock);
	for (i = 0; i < needs.nr; i++) {
		serve_need(watch, &needs.at[i]);
		if (needs.at[i].start_ns)
			continue;
		pthread_mutex_lock(&watch->ring_lock);
		watch->nr_expected--;
		pthread_cond_signal(&watch->is_looked_at);
		pthread_mutex_unlock(&watch->ring_lock);
	}
	sb_vec_release(&needs);
}

/* Take the next stack whose names nobody has read. Its frames are copied, because their memory may
 * be reallocated. */
static bool take_unnamed(struct sb_interpwatch *watch, struct sb_space_key *ret_space,
			 struct sb_interp_frame *ret_frames, size_t *ret_nr)
{
	bool is_there;

	pthread_mutex_lock(&watch->ring_lock);
	is_there = watch->nr_named < watch->waiting.nr;
	if (is_there) {
		const struct waiting *stack = &watch->waiting.at[watch->nr_named++];

		*ret_space = stack->space;
		*ret_nr = stack->nr_frames;
		if (*ret_nr)
			memcpy(ret_frames, watch->words.at + stack->first,
			       *ret_nr * sizeof(*ret_frames));
	}
	pthread_mutex_unlock(&watch->ring_lock);
	return is_there;
}

static void serve_names(struct sb_interpwatch *watch)
{
	struct sb_interp_frame frames[SB_INTERP_FRAMES_MAX];
	struct sb_space_key space;
	struct proc *proc;
	size_t nr;

	while (take_unnamed(watch, &space, frames, &nr)) {
		proc = find_proc(watch, space.tgid);
		if ((proc && !key_of(proc)->start_ns) || !sb_interp_knows(watch->interp, &space))
			serve_need(watch, &space);
		if (sb_interp_fetch(watch->interp, &space, frames, nr) != -ENOTSUP)
			continue;
		proc = find_proc(watch, space.tgid);
		if (proc && sb_now_ns() >= proc->next_ns)
			look(watch, proc);
	}
}

static void rest(struct proc *proc)
{
	bool has_rested = sb_now_ns() - proc->looked_ns > RESTED_NS;

	proc->rest_ns = has_rested || !proc->rest_ns ? REST_NS_MIN : proc->rest_ns * 2;
	if (proc->rest_ns > REST_NS_MAX)
		proc->rest_ns = REST_NS_MAX;
	look_at(proc, proc->looked_ns + proc->rest_ns);
}

static bool has_nothing(const struct proc *proc)
{
	return !proc->nr_confs && !proc->labels && !proc->again_ns;
}

/* Note a process without interpreters, which is published already; drop what was known of another
 * program of its number. */
static void take_native(struct sb_interpwatch *watch, const struct sb_space_key *key)
{
	struct proc *proc = find_proc(watch, key->tgid);
	struct sb_space_key old;

	if (proc && sb_space_key_is(key_of(proc), key)) {
		publish(watch, key, proc);
		return;
	}
	if (proc) {
		old = *key_of(proc);
		give_confs_back(watch, proc);
		sb_interp_ended(watch->interp, &old);
	}
	/* Without memory it stays unknown, and is asked for when the BPF side has evicted it. */
	if (sb_interp_note_native(watch->interp, key))
		return;
	if (!proc) {
		proc = make_proc(watch, key);
	} else if (!set_key(watch, proc, key)) {
		*proc = (struct proc){ .space = proc->space, .at = proc->at };
	}
	if (proc)
		proc->looked_ns = sb_now_ns();
}

static void serve_native(struct sb_interpwatch *watch)
{
	__typeof__(watch->native) native;
	size_t i;

	pthread_mutex_lock(&watch->ring_lock);
	native = watch->native;
	memset(&watch->native, 0, sizeof(watch->native));
	pthread_mutex_unlock(&watch->ring_lock);
	for (i = 0; i < native.nr; i++)
		take_native(watch, &native.at[i]);
	sb_vec_release(&native);
}

static void serve_piece(struct sb_interpwatch *watch, const struct sb_news *news)
{
	struct proc *proc = find_proc(watch, news->tgid);

	if (!proc)
		return;
	/* The next program has another key, by which it will be asked for; so will threads that
	 * continue. */
	if (news->kind == SB_SIDEBAND_EXEC ||
	    (news->kind == SB_SIDEBAND_EXIT && has_nothing(proc))) {
		if (proc->looked_ns < news->time_ns)
			drop_proc(watch, proc);
	} else if (news->kind == SB_SIDEBAND_EXIT) {
		proc->is_changed = true;
		proc->look_ns = news->time_ns; /* at once: it is gone, but for threads that go on */
	} else if (!proc->is_changed) {
		proc->is_changed = true;
		rest(proc);
	}
}

static void serve_news(struct sb_interpwatch *watch)
{
	sb_news_list list = sb_newsbox_take(&watch->news, sb_now_ns());
	size_t i;

	for (i = 0; i < list.nr; i++)
		serve_piece(watch, &list.at[i]);
	sb_vec_release(&list);
}

/* Return: when the next look is due, in ms, or -1. */
static int serve_looks(struct sb_interpwatch *watch)
{
	uint64_t now_ns = sb_now_ns(), next_ns = UINT64_MAX;
	size_t i;

	for (i = watch->procs.nr; i--;) {
		struct proc *proc = watch->procs.at[i];

		if (!proc->look_ns)
			continue;
		if (proc->look_ns <= now_ns) {
			proc->is_changed = false;
			look(watch, proc);
			continue;
		}
		if (proc->look_ns < next_ns)
			next_ns = proc->look_ns;
	}
	for (i = 0; i < watch->procs.nr; i++)
		if (watch->procs.at[i]->look_ns && watch->procs.at[i]->look_ns < next_ns)
			next_ns = watch->procs.at[i]->look_ns;
	if (next_ns == UINT64_MAX)
		return -1;
	return next_ns > now_ns ? (int)((next_ns - now_ns) / SB_NS_PER_MS) + 1 : 0;
}

static void *serve(void *arg)
{
	struct sb_interpwatch *watch = arg;
	int timeout_ms = -1;

	sb_thread_hurry();
	sb_privileges_thread(SB_ROLE_TABLES);
	while (sb_server_wait(&watch->server, timeout_ms)) {
		serve_native(watch);
		serve_needs(watch);
		serve_names(watch);
		serve_news(watch);
		timeout_ms = serve_looks(watch);
	}
	return NULL;
}

/* Called by other threads. */

static void keep_news(struct sb_interpwatch *watch, const struct sb_sideband *event)
{
	const struct sb_news news = { event->tgid, event->kind, event->time_ns };

	if (sb_newsbox_follows(&watch->news, news.tgid))
		sb_newsbox_put(&watch->news, &news,
			       news.kind == SB_SIDEBAND_MMAP &&
				       !sb_interp_seems_plain(watch->interp, event->map.path));
}

void sb_interpwatch_tell(struct sb_interpwatch *watch, const struct sb_sideband *event)
{
	if (event)
		keep_news(watch, event);
	else if (sb_newsbox_is_due(&watch->news, sb_now_ns()))
		sb_server_wake(&watch->server);
}

/* Read names in the drain, because the thread has not done it yet. */
static void name_late(struct sb_interpwatch *watch, const struct waiting *stack)
{
	struct sb_interp_confs confs;

	if (!sb_interp_knows(watch->interp, &stack->space)) {
		if (sb_interp_adopt(watch->interp, &stack->space))
			sb_interp_look(watch->interp, &stack->space, &confs);
		/* The thread will adopt it under this key, and notice its end. */
		sb_vec_push(&watch->needs, stack->space);
	}
	sb_interp_fetch(watch->interp, &stack->space,
			(const struct sb_interp_frame *)(watch->words.at + stack->first),
			stack->nr_frames);
}

int sb_interpwatch_drain(struct sb_interpwatch *watch,
			 int (*add)(void *arg, const struct sb_batch_stack *stack), void *arg)
{
	bool has_needs;
	size_t i;
	int err = 0;

	pthread_mutex_lock(&watch->ring_lock);
	ring_buffer__consume(watch->server.ring);
	/* So that whoever asks from here on what they run gets an answer. */
	for (i = 0; i < watch->native.nr && !err; i++) {
		err = sb_interp_note_native(watch->interp, &watch->native.at[i]);
		err = err == -E2BIG ? 0 : err;
	}
	for (i = 0; i < watch->waiting.nr && !err; i++) {
		const struct waiting *stack = &watch->waiting.at[i];
		const struct sb_batch_stack into = {
			.id = stack->id,
			.status = stack->status,
			.flags = SB_STACK_INTERP,
			.is_single = stack->is_single,
			.nr_frames = stack->nr_frames * 2,
			.ip = watch->words.at + stack->first,
		};

		if (i >= watch->nr_named)
			name_late(watch, stack);
		err = add(arg, &into);
	}
	sb_vec_clear(&watch->waiting);
	sb_vec_clear(&watch->words);
	watch->nr_named = 0;
	has_needs = watch->needs.nr > 0;
	pthread_mutex_unlock(&watch->ring_lock);
	/* The thread serves the processes that were asked for. */
	if (has_needs)
		sb_server_wake(&watch->server);
	return err;
}

size_t sb_interpwatch_take_labels(struct sb_interpwatch *watch, const struct sb_batch_labels **ret)
{
	struct labels taken = watch->taken_labels;
	size_t i, at = 0;

	taken.at.nr = 0;
	sb_str_clear(&taken.texts);
	pthread_mutex_lock(&watch->ring_lock);
	watch->taken_labels = watch->labels;
	watch->labels = taken;
	pthread_mutex_unlock(&watch->ring_lock);
	/* The texts were reallocated while they grew. */
	for (i = 0; i < watch->taken_labels.at.nr; i++) {
		watch->taken_labels.at.at[i].text = watch->taken_labels.texts.s + at;
		at += watch->taken_labels.at.at[i].nr_bytes;
	}
	*ret = watch->taken_labels.at.at;
	return watch->taken_labels.at.nr;
}

/* Request a look. If it fails, the process is asked for again later. Return: 0 or -ENOMEM. */
static int need(struct sb_interpwatch *watch, const struct sb_space_key *space)
{
	int err;

	pthread_mutex_lock(&watch->ring_lock);
	err = sb_vec_push(&watch->needs, *space);
	if (!err && !space->start_ns)
		watch->nr_expected++;
	pthread_mutex_unlock(&watch->ring_lock);
	sb_server_wake(&watch->server);
	return err;
}

void sb_interpwatch_follow(struct sb_interpwatch *watch, uint32_t tgid)
{
	sb_newsbox_follow(&watch->news, tgid);
}

void sb_interpwatch_need(struct sb_interpwatch *watch, const struct sb_space_key *space,
			 bool is_plain)
{
	bool is_kept = false;

	if (is_plain) {
		pthread_mutex_lock(&watch->ring_lock);
		is_kept = !sb_vec_push(&watch->native, *space);
		pthread_mutex_unlock(&watch->ring_lock);
	}
	if (is_kept)
		publish(watch, space, &(struct proc){});
	else
		need(watch, space);
}

void sb_interpwatch_expect(struct sb_interpwatch *watch, uint32_t tgid)
{
	need(watch, &(struct sb_space_key){ .tgid = tgid });
}

void sb_interpwatch_settle(struct sb_interpwatch *watch, const struct timespec *until)
{
	pthread_mutex_lock(&watch->ring_lock);
	while (watch->nr_expected)
		if (pthread_cond_timedwait(&watch->is_looked_at, &watch->ring_lock, until))
			break;
	pthread_mutex_unlock(&watch->ring_lock);
}

void sb_interpwatch_walk(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			 struct sb_interp_walk *walk)
{
	const struct sb_space_key space = SB_SPACE_KEY(&asleep->raw);
	struct sb_interp_confs confs = {};
	bool is_adopted;
	int err = 0;

	walk->nr_frames = 0;
	walk->thread_pointer = asleep->raw.thread_pointer;
	walk->pc = asleep->raw.pc;
	walk->sp = asleep->raw.regs[SB_REG_SP];
	memcpy(walk->regs, asleep->raw.regs, sizeof(walk->regs));
	if (!sb_interp_knows(watch->interp, &space)) {
		is_adopted = !sb_interp_adopt(watch->interp, &space);
		if (!is_adopted)
			err = sb_interp_look(watch->interp, &space, &confs);
		/* So that the thread publishes it for when it wakes up, and notices its end. */
		if (err != -ESRCH)
			need(watch, &space);
	}
	sb_interp_walk_outside(watch->interp, &space, walk);
}

int sb_interpwatch_keep(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			const struct sb_interp_walk *walk)
{
	const struct waiting stack = {
		.id = asleep->istack,
		.space = SB_SPACE_KEY(&asleep->raw),
		.status = walk ? walk->event.status : SB_STACK_RAN,
		.nr_frames = walk ? (uint32_t)walk->nr_frames : 0,
		.is_single = true,
	};
	int err;

	pthread_mutex_lock(&watch->ring_lock);
	err = keep_stack(watch, &stack, walk ? walk->frame : NULL);
	pthread_mutex_unlock(&watch->ring_lock);
	if (stack.nr_frames)
		sb_server_wake(&watch->server);
	return err;
}

int sb_interpwatch_labels(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			  struct sb_str *text)
{
	const struct sb_space_key space = SB_SPACE_KEY(&asleep->raw);

	int ret;

	if (!asleep->labels)
		return 0;
	ret = sb_interp_labels_outside(watch->interp, &space, asleep->raw.thread_pointer, text);
	/* New keys are known, and the thread publishes them. */
	return ret > 0 && ret & SB_LABELS_NEWS ? need(watch, &space) : ret < 0 ? ret : 0;
}

int sb_interpwatch_keep_labels(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			       const struct sb_str *text)
{
	const struct sb_batch_labels labels = { .id = asleep->labels,
						.nr_bytes = (uint32_t)text->len };
	int err = 0;

	if (!asleep->labels)
		return 0;
	pthread_mutex_lock(&watch->ring_lock);
	if (text->len)
		err = sb_str_addn(&watch->labels.texts, text->s, text->len);
	if (!err)
		err = sb_vec_push(&watch->labels.at, labels);
	pthread_mutex_unlock(&watch->ring_lock);
	return err;
}

struct sb_ration *sb_interpwatch_ration(struct sb_interpwatch *watch)
{
	return &watch->ration;
}

void sb_interpwatch_stats(struct sb_interpwatch *watch, struct sb_interpwatch_stats *ret_stats)
{
	ret_stats->nr_refused = __atomic_load_n(&watch->stats.nr_refused, __ATOMIC_RELAXED) +
				sb_newsbox_nr_lost(&watch->news);
	ret_stats->nr_lost = __atomic_load_n(&watch->stats.nr_lost, __ATOMIC_RELAXED);
	ret_stats->nr_labels_lost = __atomic_load_n(&watch->stats.nr_labels_lost, __ATOMIC_RELAXED);
}

/* Construction and destruction. */

int sb_interpwatch_prepare(struct sampler_bpf *skel, bool lines, bool labels)
{
	int err = 0;

	skel->rodata->cfg_interp = true;
	skel->rodata->cfg_interp_lines = lines;
	skel->rodata->cfg_labels = labels;
	if (labels)
		err = bpf_map__set_max_entries(skel->maps.labels_seen, LABELS_SEEN_MAX);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.interp_procs, PROCS_MAX);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.interp_confs, SB_INTERP_CONFS_MAX);
	return err ? err : bpf_map__set_max_entries(skel->maps.interp_events, EVENTS_BYTES);
}

int sb_interpwatch_new(struct sampler_bpf *skel, struct sb_processes *processes,
		       struct sb_interp *interp, struct sb_interpwatch **ret_watch)
{
	struct sb_interpwatch *watch = calloc(1, sizeof(*watch));
	uint32_t i;
	int err;

	if (!watch)
		return -ENOMEM;
	err = sb_newsbox_init(&watch->news);
	watch->skel = skel;
	watch->processes = processes;
	watch->interp = interp;
	pthread_mutex_init(&watch->ring_lock, NULL);
	sb_cond_init(&watch->is_looked_at);
	for (i = 0; i < SB_INTERP_CONFS_MAX && !err; i++)
		err = sb_vec_push(&watch->free_confs, i);
	/* So that pushing to it later cannot fail. */
	if (!err)
		err = sb_vec_reserve(&watch->free_confs, 3 * SB_INTERP_CONFS_MAX);
	if (!err)
		err = sb_server_open(&watch->server, bpf_map__fd(skel->maps.interp_events),
				     on_event, watch);
	if (!err)
		err = sb_server_start(&watch->server, "stackbpf-interp", serve, watch);
	if (err) {
		sb_interpwatch_free(watch);
		return err;
	}
	*ret_watch = watch;
	return 0;
}

static void release_labels(struct labels *labels)
{
	sb_vec_release(&labels->at);
	sb_str_release(&labels->texts);
}

void sb_interpwatch_free(struct sb_interpwatch *watch)
{
	size_t i;

	if (!watch)
		return;
	sb_server_stop(&watch->server);
	sb_server_release(&watch->server);
	for (i = 0; i < watch->procs.nr; i++) {
		leave_slot(watch, watch->procs.at[i]);
		free(watch->procs.at[i]);
	}
	sb_vec_release(&watch->procs);
	sb_vec_release(&watch->free_confs);
	sb_vec_release(&watch->needs);
	sb_vec_release(&watch->native);
	sb_vec_release(&watch->waiting);
	sb_vec_release(&watch->words);
	release_labels(&watch->labels);
	release_labels(&watch->taken_labels);
	sb_newsbox_release(&watch->news);
	pthread_mutex_destroy(&watch->ring_lock);
	pthread_cond_destroy(&watch->is_looked_at);
	free(watch);
}
