// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The process that loads ("loader") is forked by the session when its object is loaded, and so has
 * the object, its settings and the descriptors of its maps. It opens the object once more, gives it
 * the same maps and settings, loads the one program, and puts it into the map by which timers reach
 * it (struct sb_view.replaceable()). The kernel replaces an element of that map at once, so each
 * tick runs the one program or the other. Both count in the same maps, so nothing is lost and
 * nothing is counted twice.
 */
#include "capture/walkers.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/peer.h"
#include "base/str.h"
#include "base/time.h"
#include "capture/session.h"
#include "capture/targets.h"
#include "capture/thread.h"
#include "interp/core/interp.h"
#include "symbolizer/process/procfs.h"
#include "views/skel.h"
#include "views/views.h"
#include "workers/privileges.h"

/* Targets that are looked at one after the other before the start, and for how long. One look can
 * take as long as a reader is waited for (symbolizer/process/reader.h). */
#define TARGETS_MAX 16u
#define LOOKS_NS    (500 * SB_NS_PER_MS)
/* A process that is younger is about to map more. */
#define AGE_NS_MIN  (10 * SB_NS_PER_SEC)
/* The object has 70 maps. */
#define FDS_MAX	    256

struct sb_walkers {
	struct sb_peer peer;
	uint32_t has, all;
	int err; /* of the load; it is not tried again */
};

/* Whether only processes are sampled that are given by process ID, and that run already. */
static bool has_only_processes(const struct sb_targets *targets)
{
	size_t i;

	for (i = 0; i < targets->tgids.nr; i++)
		if ((targets->tgids.at[i].rule & (SB_RULE_ALLOW | SB_RULE_AT_EXEC)) !=
		    SB_RULE_ALLOW)
			return false;
	return targets->tgids.nr && targets->tgids.nr <= TARGETS_MAX && !targets->tids.nr &&
	       !targets->nr_comms && !targets->nr_uids && !targets->nr_cgroups;
}

static bool is_old(uint32_t tgid)
{
	struct sb_procfs_stat stat;

	return !sb_procfs_stat(tgid, &stat) &&
	       stat.start_ticks * sb_tick_ns() + AGE_NS_MIN < sb_boot_ns();
}

/* What was found in the targets, of @wanted. */
static uint32_t look_at_targets(const struct sb_session_opts *opts, uint32_t wanted)
{
	const struct sb_targets *targets = opts->targets;
	struct sb_interp_confs confs;
	const uint64_t begin_ns = sb_now_ns();
	uint32_t chosen = 0;
	size_t i;

	for (i = 0; i < targets->tgids.nr; i++) {
		const struct sb_space_key space = { .tgid = targets->tgids.at[i].pid };

		if (!is_old(space.tgid) || sb_interp_look(opts->interp, &space, &confs) ||
		    sb_now_ns() - begin_ns > LOOKS_NS)
			return wanted;
		chosen |= sb_interp_found_in(opts->interp, &space);
	}
	return chosen & wanted;
}

/* What the names of the programs that run say, of @wanted. To look into all of them would take
 * longer than to load all walkers does. */
static uint32_t guess(const struct sb_interp *interp, uint32_t wanted)
{
	char path[32], program[PATH_MAX];
	sb_cleanup(sb_closedirp) DIR *proc = opendir("/proc");
	uint32_t chosen = 0, tgid;
	ssize_t len;

	if (!proc)
		return wanted;
	while ((tgid = sb_procfs_next_task(proc, 0))) {
		snprintf(path, sizeof(path), "%u/exe", tgid);
		len = readlinkat(dirfd(proc), path, program, sizeof(program) - 1);
		if (len >= 0) {
			program[len] = '\0';
			chosen |= sb_interp_guess(interp, sb_base_name(program));
		} else if (errno == EACCES) {
			chosen = wanted;
		} /* else it is a thread of the kernel, or it is gone */
	}
	return chosen & wanted;
}

uint32_t sb_walkers_choose(const struct sb_session_opts *opts)
{
	const uint32_t wanted = opts->interp ? sb_interp_wanted(opts->interp) : 0;
	const struct sb_targets *targets = opts->targets;

	if (!wanted || opts->views.nr != 1 || !opts->views.at[0]->replaceable ||
	    sb_view_has_spans(&opts->view_opts))
		return wanted;
	if (has_only_processes(targets))
		return look_at_targets(opts, wanted);
	/* A long run has time to load all at once, and the program that it has then is a bit
	 * faster. */
	if (opts->command || opts->is_lasting || targets->tgids.nr || targets->tids.nr)
		return wanted;
	return guess(opts->interp, wanted);
}

/* The loader. */

struct loader {
	const struct sb_session_opts *opts;
	struct sampler_bpf *skel;
	uint32_t all;
	int fds[FDS_MAX]; /* the socket, then those of the maps, in their order */
	int nr_fds;
};

static int keep_fds(struct loader *loader, int socket_fd)
{
	struct bpf_map *map;

	loader->fds[loader->nr_fds++] = socket_fd;
	bpf_object__for_each_map(map, loader->skel->obj) {
		if (!bpf_map__autocreate(map))
			continue;
		if (loader->nr_fds == FDS_MAX)
			return -E2BIG;
		loader->fds[loader->nr_fds++] = bpf_map__fd(map);
	}
	return sb_peer_keep_fds(loader->fds, loader->nr_fds);
}

/* Give @skel the settings and the maps of the object that is loaded, but for the map of settings,
 * which is to differ. */
static int copy_settings(const struct loader *loader, struct sampler_bpf *skel)
{
	struct bpf_map *map = NULL, *old = NULL;
	size_t nr_bytes;
	int i = 1, err = 0;

	if (!bpf_map__initial_value(skel->maps.rodata, &nr_bytes))
		return -EINVAL;
	memcpy(skel->rodata, loader->skel->rodata, nr_bytes);
	skel->rodata->cfg_interp_walkers = loader->all;
	while ((old = bpf_object__next_map(loader->skel->obj, old)) && !err) {
		map = bpf_object__next_map(skel->obj, map);
		if (!map || strcmp(bpf_map__name(map), bpf_map__name(old)))
			return -EINVAL;
		if (!bpf_map__autocreate(old))
			err = bpf_map__set_autocreate(map, false);
		else if (map == skel->maps.rodata)
			i++;
		else
			err = bpf_map__reuse_fd(map, loader->fds[i++]);
	}
	return err;
}

static int replace(const struct loader *loader, struct sampler_bpf *skel)
{
	struct bpf_program *prog, *wanted;
	struct bpf_map *place;
	const uint32_t zero = 0;
	int err = 0, fd;

	wanted = loader->opts->views.at[0]->replaceable(skel, &place);
	bpf_object__for_each_program(prog, skel->obj)
		if (!err)
			err = bpf_program__set_autoload(prog, prog == wanted);
	if (!err)
		err = copy_settings(loader, skel);
	if (!err)
		err = sampler_bpf__load(skel);
	if (err)
		return err;
	fd = bpf_program__fd(wanted);
	return bpf_map_update_elem(bpf_map__fd(place), &zero, &fd, BPF_ANY) ? -errno : 0;
}

static int load(const struct loader *loader)
{
	sb_cleanup(sb_closep) int types_fd = -1;
	struct sampler_bpf *skel = sb_views_open(&loader->opts->views, &types_fd);
	int err;

	if (!skel)
		return -errno;
	err = replace(loader, skel);
	sampler_bpf__destroy(skel);
	return err;
}

static void run_loader(void *arg, int socket_fd)
{
	struct loader *loader = arg;
	int32_t answer;
	char request;

	(void)prctl(PR_SET_NAME, "stackbpf-load");
	sb_thread_hurry();
	if (keep_fds(loader, socket_fd) || sb_peer_leave_terminal() || sb_privileges_to_load() ||
	    sb_peer_receive(loader->fds[0], &request, sizeof(request), NULL, 0))
		return;
	answer = load(loader);
	(void)sb_peer_send(loader->fds[0], &answer, sizeof(answer), NULL, 0);
}

/* The session. */

int sb_walkers_new(const struct sb_session_opts *opts, struct sampler_bpf *skel, uint32_t has,
		   struct sb_walkers **ret_walkers)
{
	struct loader loader = { .opts = opts,
				 .skel = skel,
				 .all = sb_interp_wanted(opts->interp) };
	struct sb_walkers *walkers = calloc(1, sizeof(*walkers));
	struct bpf_map *place;
	const uint32_t zero = 0;
	int fd, err = 0;

	if (!walkers)
		return -ENOMEM;
	walkers->has = has;
	walkers->all = loader.all;
	fd = bpf_program__fd(opts->views.at[0]->replaceable(skel, &place));
	if (bpf_map_update_elem(bpf_map__fd(place), &zero, &fd, BPF_ANY))
		err = -errno;
	if (!err)
		err = sb_peer_new(run_loader, &loader, &walkers->peer);
	if (err) {
		free(walkers);
		return err;
	}
	*ret_walkers = walkers;
	return 0;
}

void sb_walkers_free(struct sb_walkers *walkers)
{
	if (!walkers)
		return;
	sb_peer_release(&walkers->peer);
	free(walkers);
}

int sb_walkers_need(struct sb_walkers *walkers, uint32_t runtimes)
{
	int32_t answer;
	int err;

	if (!walkers || !(runtimes & ~walkers->has))
		return 0;
	if (walkers->err)
		return walkers->err;
	err = sb_peer_send(walkers->peer.fd, "", 1, NULL, 0);
	if (!err)
		err = sb_peer_receive(walkers->peer.fd, &answer, sizeof(answer), NULL, 0);
	if (!err)
		err = answer;
	if (err)
		sb_warn("cannot load the walkers of more interpreters: %s; programs in these have the "
			"C functions of the interpreter only",
			strerror(-err));
	else
		walkers->has = walkers->all;
	walkers->err = err;
	return err;
}

uint32_t sb_walkers_have(const struct sb_walkers *walkers)
{
	return walkers ? walkers->has : ~0u;
}
