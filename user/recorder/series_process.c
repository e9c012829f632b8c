// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a process says of itself, and what /proc says of it: the tags that its samples share. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "recorder/series_priv.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

/* Of an environment that are looked at: more than a shell's, less than all that ARG_MAX allows. */
#define ENVIRON_BYTES_MAX (128u << 10)
#define CGROUP_BYTES_MAX  (16u << 10)
/* Processes that are remembered: of two blocks. Those beyond their owner's share are looked at
 * again for each sample's key. */
#define PROCS_MAX	  16384u
/* Cgroups whose path is remembered, for processes that ended before we looked. */
#define CGROUPS_MAX	  4096u
/* The parent of all other threads of the kernel. */
#define KTHREADD_TGID	  2u

static void proc_release(struct proc_tags *proc)
{
	free(proc->cgroup);
	free(proc->unit);
	free(proc->container);
	free(proc->service);
}

/* What others wrote becomes a value: bounded, printable; nothing is left of one that is empty. */
static int value_of(const char *s, size_t len, char **ret_value)
{
	char *value;

	if (!len)
		return 0;
	value = strndup(s, len < SB_SERIES_VALUE_BYTES_MAX ? len : SB_SERIES_VALUE_BYTES_MAX);
	if (!value)
		return -ENOMEM;
	sb_replace_controls(value, strlen(value));
	*ret_value = value;
	return 0;
}

/* "a=b,service.name=x,c=d" */
static const char *attribute(const char *list, const char *name, size_t *ret_len)
{
	size_t len = strlen(name), nr;

	for (; *list; list += nr + (list[nr] == ',')) {
		list += strspn(list, " ");
		nr = strcspn(list, ",");
		if (nr > len && !strncmp(list, name, len) && list[len] == '=') {
			*ret_len = nr - len - 1;
			return list + len + 1;
		}
	}
	return NULL;
}

int sb_series_service(const char *env, size_t len, struct sb_str *service)
{
	static const char name[] = "OTEL_SERVICE_NAME=", list[] = "OTEL_RESOURCE_ATTRIBUTES=";
	const char *at, *end = env + len, *found = NULL;
	size_t nr, found_len = 0;

	/* The last one may be cut: the rest was not read. */
	for (at = env; at < end; at += nr + 1) {
		nr = strnlen(at, (size_t)(end - at));
		if (at + nr == end)
			break;
		if (!strncmp(at, name, strlen(name)) && nr > strlen(name))
			return sb_str_addn(service, at + strlen(name), nr - strlen(name));
		if (!found && !strncmp(at, list, strlen(list)))
			found = attribute(at + strlen(list), "service.name", &found_len);
	}
	return found && found_len ? sb_str_addn(service, found, found_len) : -ENOENT;
}

/* The first @max bytes of a file of /proc that waits for nobody. Return: how many, or a negative
 * errno. */
static ssize_t read_some(uint32_t tgid, const char *name, char *buf, size_t max)
{
	sb_cleanup(sb_closep) int fd = -1;
	size_t nr = 0;
	ssize_t got;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%u/%s", tgid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (nr < max && (got = read(fd, buf + nr, max - nr)) > 0)
		nr += (size_t)got;
	return (ssize_t)nr;
}

/* Its environment is memory of the process. Return: as read_some(). */
static ssize_t read_environ(uint32_t tgid, char *buf, size_t max)
{
	size_t nr = 0, want;
	ssize_t got;

	do {
		want = max - nr < SB_READER_CODE_BYTES ? max - nr : SB_READER_CODE_BYTES;
		got = sb_reader_entry(tgid, SB_READER_ENVIRON, nr, buf + nr, want);
		nr += got > 0 ? (size_t)got : 0;
	} while (nr < max && got == (ssize_t)want);
	return nr || got >= 0 ? (ssize_t)nr : got;
}

/* A process without an environment is a kernel thread, or one that has ended: note the runtime
 * "kernel" if it is the first. */
static void note_kernel(struct proc_tags *proc)
{
	struct sb_procfs_stat stat;

	if (!proc->tgid || proc->tgid == KTHREADD_TGID ||
	    (!sb_procfs_stat(proc->tgid, &stat) && stat.ppid == KTHREADD_TGID))
		proc->runtime = "kernel";
}

static int read_service(struct proc_tags *proc)
{
	sb_cleanup(sb_freep) char *env = malloc(ENVIRON_BYTES_MAX + 1);
	sb_cleanup(sb_str_release) struct sb_str text = {};
	ssize_t nr;
	int err;

	if (!env)
		return -ENOMEM;
	nr = read_environ(proc->tgid, env, ENVIRON_BYTES_MAX);
	if (!nr)
		note_kernel(proc);
	if (nr <= 0)
		return 0;
	env[nr] = '\0';
	err = sb_series_service(env, (size_t)nr, &text);
	if (!err)
		err = value_of(text.s, text.len, &proc->service);
	return err == -ENOENT ? 0 : err;
}

/* The line of the hierarchy whose controllers are @name: "0::/a/b", "1:name=systemd:/a/b". */
static const char *line_of(const char *text, const char *name, size_t *ret_len)
{
	const char *at, *path;
	size_t nr;

	for (at = text; *at; at += nr + (at[nr] == '\n')) {
		nr = strcspn(at, "\n");
		path = memchr(at, ':', nr);
		if (!path || strncmp(path + 1, name, strlen(name)) || path[1 + strlen(name)] != ':')
			continue;
		path += strlen(name) + 2;
		*ret_len = nr - (size_t)(path - at);
		return path;
	}
	return NULL;
}

int sb_series_cgroup(const char *text, struct sb_str *path)
{
	/* Where one of them says no more than the root, another one may. */
	static const char *const names[] = { "", "name=systemd", "memory", "pids" };
	const char *found;
	size_t i, len;

	for (i = 0; i < SB_ARRAY_SIZE(names); i++) {
		found = line_of(text, names[i], &len);
		if (found && len > 1 && found[0] == '/')
			return sb_str_addn(path, found, len);
	}
	return -ENOENT;
}

static int remember_cgroup(struct sb_series_table *table, uint64_t id, const char *path)
{
	struct known_cgroup cgroup = { .id = id };
	size_t i;
	int err;

	for (i = 0; i < table->cgroups.nr; i++)
		if (table->cgroups.at[i].id == id)
			return 0;
	/* There are none where the machine has no cgroup2: all have the id of its root. */
	if (id <= 1 || table->cgroups.nr == CGROUPS_MAX)
		return 0;
	cgroup.path = strdup(path);
	err = cgroup.path ? sb_vec_push(&table->cgroups, cgroup) : -ENOMEM;
	if (err)
		free(cgroup.path);
	return err;
}

static int recall_cgroup(const struct sb_series_table *table, uint64_t id, struct sb_str *path)
{
	size_t i;
	int err;

	/* The root, which is all that there is without cgroup2. */
	if (id <= 1)
		return 0;
	for (i = 0; i < table->cgroups.nr; i++)
		if (table->cgroups.at[i].id == id)
			return sb_str_add(path, table->cgroups.at[i].path);
	err = sb_cgroup_path(id, path);
	return err == -ENOMEM ? err : 0;
}

/* The last component that is a unit: "/user.slice/.../app.slice/foo.service". */
static int unit_of(const char *path, char **ret_unit)
{
	static const char *const ends[] = { ".service", ".scope", ".socket", ".mount" };
	const char *found = NULL;
	size_t nr, found_len = 0, i;

	for (; *path; path += nr) {
		path += strspn(path, "/");
		nr = strcspn(path, "/");
		for (i = 0; i < SB_ARRAY_SIZE(ends); i++) {
			size_t len = strlen(ends[i]);

			if (nr > len && !memcmp(path + nr - len, ends[i], len)) {
				found = path;
				found_len = nr;
			}
		}
	}
	return found ? value_of(found, found_len, ret_unit) : 0;
}

static int read_cgroup(struct sb_series_table *table, struct proc_tags *proc, uint64_t id)
{
	sb_cleanup(sb_freep) char *text = malloc(CGROUP_BYTES_MAX + 1);
	sb_cleanup(sb_str_release) struct sb_str path = {};
	sb_cleanup(sb_str_release) struct sb_str container = {};
	ssize_t nr;
	int err = text ? 0 : -ENOMEM;

	if (err)
		return err;
	nr = read_some(proc->tgid, "cgroup", text, CGROUP_BYTES_MAX);
	if (nr > 0) {
		text[nr] = '\0';
		err = sb_series_cgroup(text, &path);
		if (!err)
			err = remember_cgroup(table, id, path.s);
	} else {
		err = recall_cgroup(table, id, &path);
	}
	if (err || path.len <= 1)
		return err == -ENOENT ? 0 : err;
	err = value_of(path.s, path.len, &proc->cgroup);
	if (!err)
		err = sb_cgroup_container(path.s, &container);
	if (!err)
		err = value_of(container.s, container.len, &proc->container);
	/* The scope of a container has its number for a name. */
	if (err == -ENOENT)
		err = unit_of(path.s, &proc->unit);
	return err;
}

/*
 * The real user ID. The directory in /proc says the effective one without a file to be read and
 * parsed, but says root of any process that may not be dumped.
 */
static void read_uid(struct proc_tags *proc)
{
	struct sb_procfs_ids ids;
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", proc->tgid);
	if (!proc->tgid || stat(path, &st))
		return;
	ids.uid = st.st_uid;
	if (!ids.uid && sb_procfs_ids(proc->tgid, &ids))
		return;
	snprintf(proc->uid, sizeof(proc->uid), "%u", ids.uid);
}

static uint32_t owner_of(struct sb_series_table *table, const struct proc_tags *proc)
{
	const struct sb_tag tags[] = {
		{ .key = "cgroup", .value = proc->cgroup ? proc->cgroup : "" },
		{ .key = "uid", .value = proc->uid },
	};

	return sb_share_owner(&table->owners, tags, SB_ARRAY_SIZE(tags));
}

/* The name of the program, which is that of its first thread. */
static int read_comm(struct proc_tags *proc, const struct sb_sample_key *key)
{
	sb_cleanup(sb_freep) char *comm = NULL;

	if (sb_procfs_comm(proc->tgid, &comm))
		return value_of(key->comm, strnlen(key->comm, sizeof(key->comm)), &proc->service);
	return value_of(comm, strlen(comm), &proc->service);
}

static int look_at(struct sb_series_table *table, struct proc_tags *proc,
		   const struct sb_sample_key *key)
{
	const char *instead;
	int err = read_cgroup(table, proc, key->cgroup_id);

	read_uid(proc);
	/*
	 * What the kernel runs by itself has no environment. A process that has ended, as most
	 * short ones have by now, has neither a user nor an environment, so no reader is asked.
	 */
	if (!err && !key->tgid)
		note_kernel(proc);
	else if (!err && proc->uid[0])
		err = read_service(proc);
	if (err || proc->service)
		return err;
	instead = proc->unit ? proc->unit : proc->container;
	return instead ? value_of(instead, strlen(instead), &proc->service) : read_comm(proc, key);
}

/* Have it in the slot of its address space. Return: 0, -ENOMEM, -E2BIG: there is no room for
 * one. */
static int register_proc(struct sb_series_table *table, const struct sb_sample_key *key,
			 struct proc_tags *proc)
{
	int err = sb_vec_reserve(&table->procs, table->procs.nr + 1);

	if (!err)
		err = sb_processes_get(table->processes, &SB_SPACE_KEY(key), &proc->space);
	if (err)
		return err;
	table->procs.at[table->procs.nr++] = *proc;
	sb_space_set(table->processes, proc->space, SB_SLOT_TAGS, (void *)table->procs.nr);
	return 0;
}

/* Return: 0; -E2BIG: its owner has no share left, *ret_owner is who that is; -ENOMEM. */
static int proc_new(struct sb_series_table *table, const struct sb_sample_key *key,
		    uint32_t *ret_owner)
{
	struct owner *owner;
	struct proc_tags proc = { .tgid = key->tgid, .start_ns = key->start_ns };
	int err = look_at(table, &proc, key);

	*ret_owner = proc.owner = owner_of(table, &proc);
	owner = &table->owner[proc.owner];
	if (!err && !sb_share_allows(PROCS_MAX, table->procs.nr, owner->nr_procs))
		err = -E2BIG;
	if (!err)
		err = register_proc(table, key, &proc);
	if (err) {
		proc_release(&proc);
		return err;
	}
	if (!owner->nr_procs++)
		owner->proc = (uint32_t)table->procs.nr - 1;
	return 0;
}

int sb_series_find_proc(struct sb_series_table *table, const struct sb_sample_key *key,
			uint32_t *ret_proc, uint32_t *ret_owner)
{
	size_t nr = (size_t)sb_processes_find(table->processes, &SB_SPACE_KEY(key), SB_SLOT_TAGS);
	int err;

	if (!nr) {
		err = proc_new(table, key, ret_owner);
		if (err)
			return err;
		nr = table->procs.nr;
	}
	*ret_proc = (uint32_t)nr - 1;
	*ret_owner = table->procs.at[nr - 1].owner;
	table->procs.at[nr - 1].block = table->block;
	return 0;
}

void sb_series_note_runtime(struct sb_series_table *table, struct proc_tags *proc)
{
	const char *name = table->interp
				   ? sb_interp_runtime_of(table->interp, sb_space_key(proc->space))
				   : NULL;

	if (name)
		proc->runtime = name;
}

static void keep_proc(struct sb_series_table *table, const struct proc_tags *proc, uint32_t at)
{
	uint32_t id = owner_of(table, proc);
	struct owner *owner = &table->owner[id];

	table->procs.at[at] = *proc;
	table->procs.at[at].owner = id;
	sb_space_set(table->processes, proc->space, SB_SLOT_TAGS, (void *)(size_t)(at + 1));
	if (!owner->nr_procs++)
		owner->proc = at;
}

void sb_series_forget_procs(struct sb_series_table *table)
{
	size_t i, nr = 0;

	/* Owners come and go, as containers do. */
	memset(&table->owners, 0, sizeof(table->owners));
	memset(table->owner, 0, sizeof(table->owner));
	for (i = 0; i < table->procs.nr; i++) {
		struct proc_tags *proc = &table->procs.at[i];

		if (proc->block + 1 >= table->block) {
			keep_proc(table, proc, (uint32_t)nr++);
			continue;
		}
		sb_space_set(table->processes, proc->space, SB_SLOT_TAGS, NULL);
		sb_processes_put(table->processes, proc->space);
		proc_release(proc);
	}
	table->procs.nr = nr;
}

void sb_series_release_procs(struct sb_series_table *table)
{
	size_t i;

	for (i = 0; i < table->procs.nr; i++)
		proc_release(&table->procs.at[i]);
	for (i = 0; i < table->cgroups.nr; i++)
		free(table->cgroups.at[i].path);
	sb_vec_release(&table->procs);
	sb_vec_release(&table->cgroups);
}
