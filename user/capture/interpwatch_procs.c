// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The thread that looks at processes, and what the walkers know of each (struct proc_walkers).
 *
 * A process has no entry until somebody asks for it: the session by its tgid (it is "expected", and
 * start_ns is 0), or the BPF side or the unwinder by its key, which an expected one takes over
 * without another look. Asking is a look at once, but for a process of which the unwinder knows
 * that it has no interpreter. A look publishes what it found, and then the entry rests (look_ns is
 * 0), until the BPF side asks once more, or the thread sets look_ns itself:
 *
 *	a runtime has not begun yet	after again_ns: AGAIN_NS, doubled up to AGAIN_NS_MAX
 *	it maps code (is_changed)	after rest_ns: REST_NS_MIN, doubled up to REST_NS_MAX
 *	records were lost		RESTED_NS after the last look
 *	it ended, and had something	at once: threads of it may go on
 *
 * All but the last also wait for next_ns, which holds the looks of all processes together to their
 * share of a CPU (base/ration.h). The entry goes when the process calls exec, ends and had nothing
 * (has_nothing()), is not found by a look, or is asked for by another key.
 *
 * A look need not read the mappings if somebody has read them since changed_ns. If nothing has
 * changed, those of the last look will do (read_ns), unless a record may be missing: see
 * is_told_since(). The walkers read configurations from one BPF map. An index in it that is free
 * again is reused as late as possible, because a walk that began before may still use it.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "capture/interpwatch_priv.h"
#include "capture/thread.h"
#include "capture/walkers.h"
#include "symbolizer/process/reader.h"
#include "views/skel.h"
#include "workers/privileges.h"

/* How soon a runtime that has not begun is looked at again; the pause grows each time. */
#define AGAIN_NS     (2 * SB_NS_PER_MS)
#define AGAIN_NS_MAX (1000 * SB_NS_PER_MS)
/* How soon a process that maps code is looked at again. The first pauses are short, because many
 * processes do not live longer than their start; later ones grow. */
#define REST_NS_MIN  (1 * SB_NS_PER_MS)
#define REST_NS_MAX  (20 * SB_NS_PER_MS)
/* After so long without a look, pauses begin short again. */
#define RESTED_NS    (1000 * SB_NS_PER_MS)

static struct proc_walkers *find_proc(struct sb_interpwatch *watch, uint32_t tgid)
{
	return sb_processes_of(watch->processes, tgid, SB_SLOT_WALKERS);
}

static const struct sb_space_key *key_of(const struct proc_walkers *proc)
{
	return sb_space_key(proc->space);
}

void sb_interpwatch_leave_slot(struct sb_interpwatch *watch, struct proc_walkers *proc)
{
	if (!proc->space)
		return;
	sb_space_set(watch->processes, proc->space, SB_SLOT_WALKERS, NULL);
	sb_processes_put(watch->processes, sb_take(proc->space));
}

/* Give an entry the key of the address space that replaced its own. Return: 0, -ENOMEM, -E2BIG. */
static int set_key(struct sb_interpwatch *watch, struct proc_walkers *proc,
		   const struct sb_space_key *key)
{
	struct sb_space *space;
	int err = sb_processes_get(watch->processes, key, &space);

	if (err)
		return err;
	sb_interpwatch_leave_slot(watch, proc);
	proc->space = space;
	sb_space_set(watch->processes, space, SB_SLOT_WALKERS, proc);
	return 0;
}

/* Return: a new entry; NULL: no memory, and it will be asked for again. */
static struct proc_walkers *make_proc(struct sb_interpwatch *watch, const struct sb_space_key *key)
{
	struct proc_walkers *proc = calloc(1, sizeof(*proc));

	if (!proc || sb_vec_reserve(&watch->procs, watch->procs.nr + 1) ||
	    set_key(watch, proc, key)) {
		free(proc);
		return NULL;
	}
	proc->at = watch->procs.nr;
	watch->procs.at[watch->procs.nr++] = proc;
	return proc;
}

static void give_confs_back(struct sb_interpwatch *watch, struct proc_walkers *proc)
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

static void write_confs(struct sb_interpwatch *watch, struct proc_walkers *proc,
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

void sb_interpwatch_publish(struct sb_interpwatch *watch, const struct sb_space_key *key,
			    const struct proc_walkers *proc)
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
	sb_skel_changed(watch->skel, key->tgid);
}

static uint64_t *missed_ns(struct sb_interpwatch *watch, uint32_t tgid)
{
	return &watch->missed_ns[tgid % SB_INTERPWATCH_MISSED_MAX];
}

static void drop_proc(struct sb_interpwatch *watch, struct proc_walkers *proc)
{
	struct proc_walkers *last = watch->procs.at[--watch->procs.nr];

	bpf_map_delete_elem(bpf_map__fd(watch->skel->maps.interp_procs), &key_of(proc)->tgid);
	sb_skel_changed(watch->skel, key_of(proc)->tgid);
	give_confs_back(watch, proc);
	sb_interp_ended(watch->interp, key_of(proc));
	sb_sideband_queue_unfollow(&watch->queue, key_of(proc)->tgid);
	*missed_ns(watch, key_of(proc)->tgid) = sb_now_ns();
	sb_interpwatch_leave_slot(watch, proc);
	watch->procs.at[proc->at] = last;
	last->at = proc->at;
	free(proc);
}

static void look_at(struct proc_walkers *proc, uint64_t time_ns)
{
	proc->look_ns = time_ns < proc->next_ns ? proc->next_ns : time_ns;
}

/* The cost of reading a file for the first time is no reason to pause, since it is read once. */
static void note_cost(struct sb_interpwatch *watch, struct proc_walkers *proc, uint64_t begin_ns)
{
	uint64_t end_ns = sb_reader_thread_cpu_ns(), before_ns = proc->cost_ns;

	proc->cost_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
	proc->next_ns = sb_ration_next_ns(&watch->ration, proc->looked_ns,
					  proc->cost_ns < before_ns ? proc->cost_ns : before_ns);
}

/* Load the walkers that these configurations are for. If that fails, leave out those that have
 * none. */
static void load_walkers(struct sb_interpwatch *watch, struct sb_interp_confs *confs)
{
	uint32_t runtimes = 0, i, nr = 0;

	for (i = 0; i < confs->nr; i++)
		runtimes |= 1u << confs->conf[i].runtime;
	if (!sb_walkers_need(watch->walkers, runtimes))
		return;
	for (i = 0; i < confs->nr; i++)
		if (1u << confs->conf[i].runtime & sb_walkers_have(watch->walkers))
			confs->conf[nr++] = confs->conf[i];
	__atomic_fetch_add(&watch->stats.nr_refused, confs->nr - nr, __ATOMIC_RELAXED);
	confs->nr = nr;
}

/* @since_ns: mappings that were read then or later are new enough; UINT64_MAX: they are read anew.
 * It is not before changed_ns, because the changes so far count as seen. */
static void look(struct sb_interpwatch *watch, struct proc_walkers *proc, uint64_t since_ns)
{
	uint64_t begin_ns = sb_reader_thread_cpu_ns(), now_ns = sb_now_ns();
	struct sb_interp_confs confs;
	int err = sb_interp_look_since(watch->interp, key_of(proc), since_ns, &confs);

	proc->read_ns = since_ns < now_ns ? since_ns : now_ns;
	proc->looked_ns = sb_now_ns();
	note_cost(watch, proc, begin_ns);
	proc->look_ns = 0;
	proc->is_changed = false;
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
	load_walkers(watch, &confs);
	give_confs_back(watch, proc);
	write_confs(watch, proc, &confs);
	sb_interpwatch_publish(watch, key_of(proc), proc);
}

/* Return: whether what @tgid has mapped since @since_ns was told, or will be. */
static bool is_told_since(struct sb_interpwatch *watch, uint32_t tgid, uint64_t since_ns)
{
	return sb_sideband_queue_follows(&watch->queue, tgid) &&
	       since_ns > *missed_ns(watch, tgid) &&
	       since_ns > __atomic_load_n(&watch->lost_ns, __ATOMIC_RELAXED);
}

static void serve_need(struct sb_interpwatch *watch, const struct sb_space_key *key,
		       uint64_t since_ns)
{
	struct proc_walkers *proc = find_proc(watch, key->tgid);

	/* It was expected: now its address space is known, and so is what is in it. */
	if (proc && !key_of(proc)->start_ns && !sb_interp_adopt(watch->interp, key) &&
	    !set_key(watch, proc, key)) {
		sb_interpwatch_publish(watch, key, proc);
		return;
	}
	if (proc && !sb_space_key_is(key_of(proc), key)) {
		drop_proc(watch, proc);
		proc = NULL;
	}
	if (!is_told_since(watch, key->tgid, since_ns))
		since_ns = UINT64_MAX;
	if (!proc) {
		proc = make_proc(watch, key);
		if (!proc)
			return;
		/* Before the look, so that changes that come during it are not missed. */
		sb_sideband_queue_follow(&watch->queue, key->tgid);
	}
	/* The mappings may have been read before those changes that wait for a look. */
	if (proc->is_changed && since_ns < proc->changed_ns)
		since_ns = proc->changed_ns;
	look(watch, proc, since_ns);
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
		/* An interrupt is no process, and was not expected. */
		if (!needs.at[i].space.tgid)
			continue;
		serve_need(watch, &needs.at[i].space, needs.at[i].since_ns);
		if (needs.at[i].space.start_ns)
			continue;
		pthread_mutex_lock(&watch->ring_lock);
		watch->nr_expected--;
		pthread_cond_signal(&watch->is_looked_at);
		pthread_mutex_unlock(&watch->ring_lock);
	}
	sb_vec_release(&needs);
}

static void serve_names(struct sb_interpwatch *watch)
{
	struct sb_interp_frame frames[SB_INTERP_FRAMES_MAX];
	struct sb_space_key space;
	struct proc_walkers *proc;
	size_t nr;

	while (sb_interpwatch_take_unnamed(watch, &space, frames, &nr)) {
		proc = find_proc(watch, space.tgid);
		if ((proc && !key_of(proc)->start_ns) || !sb_interp_knows(watch->interp, &space))
			serve_need(watch, &space, UINT64_MAX);
		if (sb_interp_fetch(watch->interp, &space, frames, nr) != -ENOTSUP)
			continue;
		proc = find_proc(watch, space.tgid);
		if (proc && sb_now_ns() >= proc->next_ns)
			look(watch, proc, UINT64_MAX);
	}
}

static void rest(struct proc_walkers *proc)
{
	bool has_rested = sb_now_ns() - proc->looked_ns > RESTED_NS;

	proc->rest_ns = has_rested || !proc->rest_ns ? REST_NS_MIN : proc->rest_ns * 2;
	if (proc->rest_ns > REST_NS_MAX)
		proc->rest_ns = REST_NS_MAX;
	look_at(proc, proc->looked_ns + proc->rest_ns);
}

static bool has_nothing(const struct proc_walkers *proc)
{
	return !proc->nr_confs && !proc->labels && !proc->again_ns;
}

/* Note a process whose mappings at @since_ns or later had no interpreter, which is published
 * already; drop what was known of another program of its number. */
static void take_native(struct sb_interpwatch *watch, const struct sb_space_key *key,
			uint64_t since_ns)
{
	struct proc_walkers *proc = find_proc(watch, key->tgid);
	struct sb_space_key old;

	if (proc && sb_space_key_is(key_of(proc), key)) {
		sb_interpwatch_publish(watch, key, proc);
		return;
	}
	/* It may have mapped an interpreter since. */
	if (!is_told_since(watch, key->tgid, since_ns) ||
	    (proc && proc->is_changed && since_ns < proc->changed_ns)) {
		serve_need(watch, key, UINT64_MAX);
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
		*proc = (struct proc_walkers){ .space = proc->space, .at = proc->at };
	}
	if (proc) {
		proc->looked_ns = sb_now_ns();
		proc->read_ns = since_ns;
	}
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
		take_native(watch, &native.at[i].space, native.at[i].since_ns);
	sb_vec_release(&native);
}

static void note_change(struct proc_walkers *proc, uint64_t time_ns)
{
	if (!proc->is_changed || proc->changed_ns < time_ns)
		proc->changed_ns = time_ns;
}

static void serve_piece(struct sb_interpwatch *watch, const struct sb_process_event *event)
{
	struct proc_walkers *proc = find_proc(watch, event->tgid);
	uint64_t *missed = missed_ns(watch, event->tgid);

	/* The unwinder has it followed, and is about to ask for it. */
	if (!proc) {
		*missed = *missed < event->time_ns ? event->time_ns : *missed;
		return;
	}
	/* The next program has another key, by which it will be asked for; so will threads that
	 * continue. */
	if (event->kind == SB_SIDEBAND_EXEC ||
	    (event->kind == SB_SIDEBAND_EXIT && has_nothing(proc))) {
		if (proc->read_ns < event->time_ns)
			drop_proc(watch, proc);
		return;
	}
	note_change(proc, event->time_ns);
	if (event->kind == SB_SIDEBAND_EXIT) {
		proc->is_changed = true;
		proc->look_ns =
			event->time_ns; /* at once: it is gone, but for threads that go on */
	} else if (!proc->is_changed) {
		proc->is_changed = true;
		rest(proc);
	}
}

static void serve_events(struct sb_interpwatch *watch)
{
	sb_process_events list = sb_sideband_queue_take(&watch->queue, sb_now_ns());
	size_t i;

	for (i = 0; i < list.nr; i++)
		serve_piece(watch, &list.at[i]);
	sb_vec_release(&list);
}

/* Side-band records of any process may be missing: each may have mapped an interpreter, or
 * ended. */
static void serve_lost(struct sb_interpwatch *watch)
{
	const uint64_t lost_ns = __atomic_load_n(&watch->lost_ns, __ATOMIC_RELAXED);
	size_t i;

	if (lost_ns == watch->served_lost_ns)
		return;
	watch->served_lost_ns = lost_ns;
	for (i = 0; i < watch->procs.nr; i++) {
		struct proc_walkers *proc = watch->procs.at[i];

		if (proc->read_ns > lost_ns)
			continue;
		note_change(proc, lost_ns);
		proc->is_changed = true;
		/* Records are lost in storms, which are no reason to look all the time. */
		if (!proc->look_ns)
			look_at(proc, proc->looked_ns + RESTED_NS);
	}
}

/* Return: how new the mappings must be for the look that is due. A runtime that has not begun is
 * looked at again for its memory: no mapping has changed unless that was told. */
static uint64_t mappings_since(struct sb_interpwatch *watch, const struct proc_walkers *proc)
{
	if (proc->is_changed)
		return proc->changed_ns;
	return is_told_since(watch, key_of(proc)->tgid, proc->read_ns) ? proc->read_ns : UINT64_MAX;
}

/* Return: when the next look is due, in ms, or -1. */
static int serve_looks(struct sb_interpwatch *watch)
{
	uint64_t now_ns = sb_now_ns(), next_ns = UINT64_MAX;
	size_t i;

	for (i = watch->procs.nr; i--;) {
		struct proc_walkers *proc = watch->procs.at[i];

		if (!proc->look_ns)
			continue;
		if (proc->look_ns <= now_ns) {
			look(watch, proc, mappings_since(watch, proc));
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

void *sb_interpwatch_serve(void *arg)
{
	struct sb_interpwatch *watch = arg;
	int timeout_ms = -1;

	sb_thread_hurry();
	sb_privileges_thread(SB_ROLE_TABLES);
	while (sb_server_wait(&watch->server, timeout_ms)) {
		serve_native(watch);
		serve_needs(watch);
		serve_names(watch);
		serve_events(watch);
		serve_lost(watch);
		timeout_ms = serve_looks(watch);
	}
	return NULL;
}
