// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/targets.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/str.h"
#include "capture/refused.h"
#include "symbolizer/process/procfs.h"
#include "views/skel.h"

/* Processes that may be targets at one time when children are followed: as many as a default
 * pid_max allows. 64 bytes each. */
#define FOLLOWED_MAX 32768u
/* Of stackbpf: itself, its helper processes, and the command of the run. */
#define OWN_MAX	     256u

void sb_targets_release(struct sb_targets *targets)
{
	size_t i;

	sb_vec_release(&targets->tgids);
	sb_vec_release(&targets->tids);
	for (i = 0; i < targets->nr_cgroups; i++)
		free(targets->cgroups[i].path);
	*targets = (struct sb_targets){};
}

int sb_comm_matcher_init(struct sb_comm_matcher *matcher, const char *glob, uint32_t rule)
{
	uint32_t nr = 0;
	int c;

	memset(matcher, 0, sizeof(*matcher));
	for (; *glob; glob++) {
		if (*glob == '*' && nr && (matcher->stars & (1u << (nr - 1))))
			continue; /* ** is * */
		if (nr == SB_GLOB_POSITIONS_MAX)
			return -E2BIG;
		if (*glob == '*')
			matcher->stars |= 1u << nr;
		for (c = 0; c < 256; c++)
			if (*glob == '*' || *glob == '?' || c == (unsigned char)*glob)
				matcher->may_consume[c] |= 1u << nr;
		nr++;
	}
	matcher->accept = 1u << nr;
	matcher->rule = rule;
	return 0;
}

static uint32_t count_allow(const struct sb_targets *targets)
{
	uint32_t nr = 0;
	size_t i;

	for (i = 0; i < targets->tgids.nr; i++)
		nr += targets->tgids.at[i].rule & SB_RULE_ALLOW;
	for (i = 0; i < targets->tids.nr; i++)
		nr += targets->tids.at[i].rule & SB_RULE_ALLOW;
	for (i = 0; i < targets->nr_comms; i++)
		nr += targets->comms[i].rule & SB_RULE_ALLOW;
	for (i = 0; i < targets->nr_uids; i++)
		nr += targets->uids[i].rule & SB_RULE_ALLOW;
	for (i = 0; i < targets->nr_cgroups; i++)
		nr += targets->cgroups[i].rule & SB_RULE_ALLOW;
	return nr;
}

static int prepare_comms(const struct sb_targets *targets, struct sampler_bpf *skel,
			 struct sb_reason *reason)
{
	/* The skeleton's copy is const volatile for the BPF side; here it is ours until load. */
	struct sb_comm_matcher *rules = (struct sb_comm_matcher *)skel->rodata->cfg_comm_rules;
	size_t i;

	skel->rodata->cfg_nr_comm_rules = (uint32_t)targets->nr_comms;
	for (i = 0; i < targets->nr_comms; i++) {
		const struct sb_comm_rule *rule = &targets->comms[i];
		int err = sb_comm_matcher_init(&rules[i], rule->glob, rule->rule);

		if (err)
			return sb_reason_set(reason, err,
					     "the pattern '%s' for thread names is longer than %u "
					     "characters; choose a shorter one",
					     rule->glob, SB_GLOB_POSITIONS_MAX);
	}
	return 0;
}

/* The rule of a pid must not outlive its process, whether children are followed or not. */
static int prepare_hooks(struct sampler_bpf *skel)
{
	struct bpf_program *const hooks[] = { skel->progs.proc_fork, skel->progs.proc_exec,
					      skel->progs.proc_free };
	size_t i;
	int err = 0;

	for (i = 0; i < SB_ARRAY_SIZE(hooks) && !err; i++)
		err = bpf_program__set_autoload(hooks[i], true);
	return err;
}

int sb_targets_prepare(const struct sb_targets *targets, struct sampler_bpf *skel,
		       struct sb_reason *reason)
{
	struct sb_uid_rule *uids = (struct sb_uid_rule *)skel->rodata->cfg_uid_rules;
	size_t nr_tgids = targets->follow_children ? FOLLOWED_MAX : targets->tgids.nr + OWN_MAX, i;
	int err;

	skel->rodata->cfg_nr_allow_rules = count_allow(targets);
	skel->rodata->cfg_nr_tid_rules = (uint32_t)targets->tids.nr;
	skel->rodata->cfg_nr_uid_rules = (uint32_t)targets->nr_uids;
	memcpy(uids, targets->uids, targets->nr_uids * sizeof(*uids));
	skel->rodata->cfg_nr_cgroup_rules = (uint32_t)targets->nr_cgroups;
	for (i = 0; i < targets->nr_cgroups; i++)
		((uint32_t *)skel->rodata->cfg_cgroup_rules)[i] = targets->cgroups[i].rule;
	err = bpf_map__set_max_entries(skel->maps.target_tgids, (uint32_t)nr_tgids);
	if (err)
		return sb_explain_setting(reason, err, "the BPF map of processes");
	err = bpf_map__set_max_entries(skel->maps.target_tids, (uint32_t)targets->tids.nr + 1);
	if (err)
		return sb_explain_setting(reason, err, "the BPF map of threads");
	err = prepare_hooks(skel);
	if (err)
		return sb_explain_setting(reason, err, "the BPF programs for fork, exec and exit");
	return prepare_comms(targets, skel, reason);
}

static int apply_pids(const struct bpf_map *map, const struct sb_pid_rule *rules, size_t nr,
		      const char *what, struct sb_reason *reason)
{
	char path[32];
	size_t i;

	for (i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "/proc/%u", rules[i].pid);
		if (!sb_can_access(path, F_OK)) {
			sb_reason_set(reason, 0, "there is no %s %u; it may have ended", what,
				      rules[i].pid);
			return -ESRCH;
		}
		if (bpf_map_update_elem(bpf_map__fd(map), &rules[i].pid, &rules[i].rule, BPF_ANY))
			return sb_reason_set(reason, -errno, "cannot make %s %u a target", what,
					     rules[i].pid);
	}
	return 0;
}

/* cgroup2 is mounted in the unified hierarchy, or beside the old one. A path that is not of
 * cgroup2, such as "/", is looked up below the mount point. Return: a descriptor; -ENOTDIR: there
 * are such paths, but not of cgroup2; or another negative errno of opening them. */
static int open_cgroup(const char *path)
{
	static const char *const mounts[] = { "", "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	sb_cleanup(sb_str_release) struct sb_str full = {};
	struct statfs fs;
	size_t i;
	int fd, err = -ENOENT;

	for (i = path[0] == '/' ? 0 : 1; i < SB_ARRAY_SIZE(mounts); i++) {
		sb_str_clear(&full);
		if (sb_str_addf(&full, "%s/%s", mounts[i], path + (path[0] == '/')))
			return -ENOMEM;
		fd = open(full.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return fd;
		if (fd >= 0)
			err = -ENOTDIR;
		else if (errno != ENOENT)
			err = -errno;
		sb_closep(&fd);
	}
	return err;
}

static bool is_cgroup2_mounted(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	struct statfs fs;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(mounts); i++)
		if (!statfs(mounts[i], &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return true;
	return false;
}

/* Tell why open_cgroup() returned @err, -ENOENT or -ENOTDIR. Return: -ESRCH. */
static int no_cgroup(const char *path, int err, struct sb_reason *reason)
{
	if (!is_cgroup2_mounted())
		sb_reason_set(
			reason, 0,
			"there is no cgroup '%s': cgroup2 is not mounted at /sys/fs/cgroup or "
			"/sys/fs/cgroup/unified; 'mount -t cgroup2 none DIRECTORY' mounts it, "
			"and -G takes whole paths, too",
			path);
	else if (err == -ENOTDIR)
		sb_reason_set(reason, 0,
			      "'%s' is not a directory of a cgroup2 file system; name one "
			      "below its mount point, which is usually /sys/fs/cgroup",
			      path);
	else
		sb_reason_set(reason, 0,
			      "there is no cgroup '%s' below the cgroup2 mount point; "
			      "systemd-cgls(1) lists cgroups",
			      path);
	return -ESRCH;
}

static int apply_cgroups(const struct sb_targets *targets, struct sampler_bpf *skel,
			 struct sb_reason *reason)
{
	int map_fd = bpf_map__fd(skel->maps.target_cgroups);
	uint32_t i;

	for (i = 0; i < targets->nr_cgroups; i++) {
		const char *path = targets->cgroups[i].path;
		sb_cleanup(sb_closep) int fd = open_cgroup(path);
		struct stat st = {};

		if (fd == -ENOENT || fd == -ENOTDIR)
			return no_cgroup(path, fd, reason);
		if (fd < 0)
			return sb_reason_set(reason, fd, "cannot open cgroup '%s'", path);
		if (fstat(fd, &st))
			return sb_reason_set(reason, -errno, "cannot inspect cgroup '%s'", path);
		skel->bss->target_cgroup_ids[i] = st.st_ino; /* of kernfs: it is the id */
		if (bpf_map_update_elem(map_fd, &i, &fd, BPF_ANY))
			return sb_reason_set(reason, -errno, "cannot make cgroup '%s' a target",
					     path);
	}
	return 0;
}

/*
 * The hook of fork gives our rule to the helper processes that are to come, and
 * sb_targets_follow_existing() to those that run already. The command of the run is a child, too,
 * and runs our program until it is started: when all processes are sampled, it gets a rule that
 * neither allows nor denies, so that it does not get ours.
 */
static int apply_own(struct sampler_bpf *skel, uint32_t command_tgid)
{
	const int map_fd = bpf_map__fd(skel->maps.target_tgids);
	const uint32_t self = (uint32_t)getpid(), rule = SB_RULE_DENY | SB_RULE_FOLLOW, neutral = 0;

	if (bpf_map_update_elem(map_fd, &self, &rule, BPF_ANY))
		return -errno;
	if (command_tgid && bpf_map_update_elem(map_fd, &command_tgid, &neutral, BPF_NOEXIST) &&
	    errno != EEXIST)
		return -errno;
	return 0;
}

int sb_targets_apply(const struct sb_targets *targets, uint32_t command_tgid,
		     struct sampler_bpf *skel, struct sb_reason *reason)
{
	int err;

	err = apply_pids(skel->maps.target_tgids, targets->tgids.at, targets->tgids.nr, "process",
			 reason);
	if (err)
		return err;
	err = apply_pids(skel->maps.target_tids, targets->tids.at, targets->tids.nr, "thread",
			 reason);
	if (err)
		return err;
	err = apply_own(skel, command_tgid);
	if (err)
		return sb_explain(reason, err, "exclude stackbpf itself from sampling");
	return apply_cgroups(targets, skel, reason);
}

struct found {
	size_t nr, nr_left_out;
};

/* Whether a process runs the program that we run. If that cannot be read, it does not. */
static bool is_our_program(uint32_t tgid)
{
	struct stat ours, its;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	return !stat("/proc/self/exe", &ours) && !stat(path, &its) && ours.st_dev == its.st_dev &&
	       ours.st_ino == its.st_ino;
}

/* Give it the rule of its parent, if that is one that children get. Return: 0, or a negative errno:
 * whether it has that parent is not known. */
static int follow_process(int fd, uint32_t tgid, struct found *found)
{
	struct sb_procfs_stat stat;
	uint32_t rule, own;
	int err = sb_procfs_stat(tgid, &stat);

	if (err) /* or it is gone */
		return err == -ENOMEM || err == -EMFILE || err == -ENFILE ? err : 0;
	if (bpf_map_lookup_elem(fd, &stat.ppid, &rule) || !(rule & SB_RULE_FOLLOW))
		return 0;
	if (!bpf_map_lookup_elem(fd, &tgid, &own))
		return 0;
	/* The only rule that denies and that children get is ours. A child that runs another
	 * program was started by a shell whose process we are now. */
	if (rule & SB_RULE_DENY && !is_our_program(tgid))
		return 0;
	if (!bpf_map_update_elem(fd, &tgid, &rule, BPF_NOEXIST))
		found->nr++;
	else if (errno != EEXIST) /* the hook of fork was faster */
		found->nr_left_out++;
	return 0;
}

/* One look at every process: children of processes that have the rule get it, too. */
static int follow_once(struct sampler_bpf *skel, struct found *found)
{
	int fd = bpf_map__fd(skel->maps.target_tgids), err = 0;
	sb_cleanup(sb_closedirp) DIR *proc = opendir("/proc");
	uint32_t tgid;

	if (!proc)
		return -errno;
	*found = (struct found){};
	while (!err && (tgid = sb_procfs_next_task(proc, 0)))
		err = follow_process(fd, tgid, found);
	return err;
}

/* What one thread may have as children: 7 digits and a blank each. */
#define CHILDREN_BYTES_MAX (1u << 20)

/* Append the children that thread @tid of process @tgid has. None if it is gone. */
static int list_thread_children(uint32_t tgid, uint32_t tid, sb_vec_u32 *children)
{
	sb_cleanup(sb_freep) char *text = NULL;
	char path[64], *rest, *word;
	uint64_t child;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", tgid, tid);
	err = sb_read_file(path, CHILDREN_BYTES_MAX, &text, NULL);
	if (err == -ENOENT || err == -ESRCH)
		return 0;
	for (rest = text; !err && (word = strsep(&rest, " "));)
		if (!sb_parse_u64(word, INT32_MAX, &child))
			err = sb_vec_push(children, (uint32_t)child);
	return err;
}

static int list_children(uint32_t tgid, sb_vec_u32 *children)
{
	sb_cleanup(sb_closedirp) DIR *threads = sb_procfs_threads(tgid);
	uint32_t tid;
	int err = 0;

	if (!threads)
		return errno == ENOENT ? 0 : -errno;
	while (!err && (tid = sb_procfs_next_task(threads, 0)))
		err = list_thread_children(tgid, tid, children);
	return err;
}

/* One look at the children of this process, and at theirs if they are helper processes. */
static int follow_own_once(struct sampler_bpf *skel, struct found *found)
{
	int fd = bpf_map__fd(skel->maps.target_tgids), err;
	sb_vec_u32 tgids = {};
	uint32_t rule;
	size_t i;

	*found = (struct found){};
	err = list_children((uint32_t)getpid(), &tgids);
	for (i = 0; !err && i < tgids.nr; i++) {
		err = follow_process(fd, tgids.at[i], found);
		if (!err && !bpf_map_lookup_elem(fd, &tgids.at[i], &rule) && rule & SB_RULE_FOLLOW)
			err = list_children(tgids.at[i], &tgids);
	}
	sb_vec_release(&tgids);
	return err;
}

/* Rules for processes and threads alone do not select helper processes. */
static bool may_select_helpers(const struct sb_targets *targets)
{
	return !count_allow(targets) || targets->nr_comms || targets->nr_uids ||
	       targets->nr_cgroups;
}

int sb_targets_follow_existing(const struct sb_targets *targets, struct sampler_bpf *skel,
			       uint64_t *ret_nr_left_out)
{
	/* To look at all processes takes 2 ms. Not all kernels list children
	 * (CONFIG_PROC_CHILDREN), and of one that forks all the time, the list may lack some. */
	const bool is_own =
		!targets->follow_children && sb_can_access("/proc/thread-self/children", R_OK);
	struct found found = { .nr = targets->follow_children || may_select_helpers(targets) };
	int err = 0;

	/* A child may be listed before its parent, or go to another thread: until nothing new is
	 * found. */
	while (found.nr && !err)
		err = is_own ? follow_own_once(skel, &found) : follow_once(skel, &found);
	*ret_nr_left_out = found.nr_left_out;
	return err;
}
