// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who made readers wait: processes, file systems, and directories on the way to a file. The time
 * that each one took is added up, and whoever took too much is left alone for a while. Local file
 * systems are never blamed: a slow disk slows all of them down.
 */
#include <linux/limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/index.h"
#include "base/log.h"
#include "base/time.h"
#include "base/utf8.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader_priv.h"

/*
 * Bound of the time blocked in answered requests of one process or file system. It recovers by a
 * fiftieth of the time that passes.
 */
#define SLOW_NS	       (2 * SB_NS_PER_SEC)
#define SLOW_PART      50
/*
 * How long somebody is left alone for the first time; then twice as long each time. Even a good
 * disk has bad moments, and a recorder runs for months.
 */
#define LEFT_ALONE_NS  (60 * SB_NS_PER_SEC)
#define OFFENCES_MAX   12u
#define LOCAL_DEVS_MAX 64u
/* Culprits: what is left alone, or slow. When the table is full, the least slow one is evicted. */
#define CULPRITS_MAX   128u

enum culprit_kind { PROCESS, FILE_SYSTEM, DIRECTORY };

struct culprit {
	enum culprit_kind kind;
	uint64_t id; /* tgid, device, or hash of the directory */
	uint64_t start_ticks;
	uint64_t slow_ns, noted_ns; /* up to when time that went by is taken off */
	uint64_t left_until_ns;	    /* 0: it has not been left alone */
	uint32_t nr_offences;
	char text[SB_READER_CULPRIT_BYTES];
};

static struct {
	pthread_mutex_t lock;
	struct culprit all[CULPRITS_MAX];
	uint32_t nr, nr_left_alone;	     /* the second is read without the lock */
	uint64_t local_devs[LOCAL_DEVS_MAX]; /* a ring; 0: none */
	uint32_t next_local;
} culprits = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t start_ticks_of(uint32_t tgid)
{
	struct sb_procfs_stat stat;

	return sb_procfs_stat(tgid, &stat) ? 0 : stat.start_ticks;
}

static uint64_t hash_dir(const struct sb_reader_request *request)
{
	const char *slash = strrchr(request->path, '/');

	return sb_hash(request->path, slash ? (size_t)(slash - request->path) : 0, request->tgid);
}

/* Below the lock. */
static struct culprit *find_culprit(enum culprit_kind kind, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < culprits.nr; i++)
		if (culprits.all[i].kind == kind && culprits.all[i].id == id)
			return &culprits.all[i];
	return NULL;
}

/* A reused tgid does not count: the start time of the process must be the same. */
static bool is_left_alone(enum culprit_kind kind, uint64_t id)
{
	uint64_t start_ticks = 0;
	struct culprit *culprit;
	bool ret;

	pthread_mutex_lock(&culprits.lock);
	culprit = find_culprit(kind, id);
	ret = culprit && culprit->left_until_ns > sb_now_ns();
	if (ret)
		start_ticks = culprit->start_ticks;
	pthread_mutex_unlock(&culprits.lock);
	return ret && (kind != PROCESS || start_ticks_of((uint32_t)id) == start_ticks);
}

bool sb_reader_is_refused(const struct sb_reader_request *request)
{
	if (!__atomic_load_n(&culprits.nr_left_alone, __ATOMIC_RELAXED))
		return false;
	if (request->tgid && is_left_alone(PROCESS, request->tgid))
		return true;
	return sb_reader_is_of_file(request) && request->path[0] &&
	       is_left_alone(DIRECTORY, hash_dir(request));
}

void sb_reader_add_devs(struct sb_reader_request *request)
{
	uint64_t now_ns;
	uint32_t i;

	request->nr_devs = 0;
	if (!__atomic_load_n(&culprits.nr_left_alone, __ATOMIC_RELAXED))
		return;
	now_ns = sb_now_ns();
	pthread_mutex_lock(&culprits.lock);
	for (i = 0; i < culprits.nr && request->nr_devs < SB_READER_DEVS_MAX; i++)
		if (culprits.all[i].kind == FILE_SYSTEM && culprits.all[i].left_until_ns > now_ns)
			request->devs[request->nr_devs++] = culprits.all[i].id;
	pthread_mutex_unlock(&culprits.lock);
}

static void describe(struct culprit *culprit, const struct sb_reader_request *request)
{
	char path[PATH_MAX], comm[32] = "";
	sb_cleanup(sb_freep) char *text = NULL;

	snprintf(path, sizeof(path), "%s", request->path);
	switch (culprit->kind) {
	case PROCESS:
		snprintf(path, sizeof(path), "/proc/%u/comm", request->tgid);
		if (!sb_read_file(path, sizeof(comm), &text, NULL))
			snprintf(comm, sizeof(comm), "%.*s", (int)strcspn(text, "\n"), text);
		snprintf(culprit->text, sizeof(culprit->text), "process %u ('%s')", request->tgid,
			 comm);
		break;
	case FILE_SYSTEM:
		if (!path[0])
			snprintf(path, sizeof(path), "mapped by process %u", request->tgid);
		snprintf(culprit->text, sizeof(culprit->text), "file system %u:%u ('%.120s')",
			 major(culprit->id), minor(culprit->id), path);
		break;
	case DIRECTORY:
		snprintf(culprit->text, sizeof(culprit->text), "the path to '%.120s'", path);
		break;
	}
	sb_replace_controls(culprit->text, strlen(culprit->text));
}

/* With the lock held. If the table is full, evict the one that was waited for least. */
static struct culprit *new_culprit(void)
{
	struct culprit *least = NULL;
	uint32_t i;

	if (culprits.nr < CULPRITS_MAX)
		return &culprits.all[culprits.nr++];
	for (i = 0; i < CULPRITS_MAX; i++)
		if (!culprits.all[i].left_until_ns &&
		    (!least || culprits.all[i].slow_ns < least->slow_ns))
			least = &culprits.all[i];
	return least;
}

/* Find out who is to blame for a wait: the file system, else the directory, else the process. */
static void find_fault(const struct sb_reader_request *request, uint64_t dev,
		       struct culprit *ret_culprit)
{
	*ret_culprit = (struct culprit){ .kind = PROCESS, .id = request->tgid };
	if (sb_reader_is_of_file(request) && dev) {
		ret_culprit->kind = FILE_SYSTEM;
		ret_culprit->id = dev;
	} else if (sb_reader_is_of_file(request) && request->place != SB_READER_MAPPED) {
		ret_culprit->kind = DIRECTORY;
		ret_culprit->id = hash_dir(request);
	} else {
		ret_culprit->start_ticks = start_ticks_of(request->tgid);
	}
	describe(ret_culprit, request);
}

/* With the lock held. Return: NULL: there is no room for it. */
static struct culprit *note_culprit(const struct culprit *new)
{
	struct culprit *culprit = find_culprit(new->kind, new->id);

	if (culprit && culprit->start_ticks == new->start_ticks)
		return culprit;
	if (!culprit)
		culprit = new_culprit();
	if (culprit)
		*culprit = *new;
	return culprit;
}

void sb_reader_blame(const struct sb_reader_request *request, uint64_t dev, uint64_t ns,
		     bool is_late)
{
	struct culprit new, *culprit;
	uint64_t now_ns = sb_now_ns(), gone_ns;

	find_fault(request, dev, &new);
	new.noted_ns = now_ns;
	pthread_mutex_lock(&culprits.lock);
	culprit = note_culprit(&new);
	if (culprit) {
		gone_ns = (now_ns - culprit->noted_ns) / SLOW_PART;
		culprit->slow_ns -= gone_ns < culprit->slow_ns ? gone_ns : culprit->slow_ns;
		culprit->slow_ns += ns;
		culprit->noted_ns = now_ns;
	}
	if (culprit && (is_late || culprit->slow_ns > SLOW_NS)) {
		if (!culprit->left_until_ns)
			__atomic_fetch_add(&culprits.nr_left_alone, 1, __ATOMIC_RELAXED);
		culprit->left_until_ns = now_ns + (LEFT_ALONE_NS << culprit->nr_offences);
		culprit->nr_offences += culprit->nr_offences < OFFENCES_MAX;
		culprit->slow_ns = 0;
		sb_debug("skipping %s, which made the reader wait", culprit->text);
	}
	pthread_mutex_unlock(&culprits.lock);
}

bool sb_reader_is_local(uint64_t dev)
{
	bool ret = false;
	uint32_t i;

	pthread_mutex_lock(&culprits.lock);
	for (i = 0; dev && i < LOCAL_DEVS_MAX && !ret; i++)
		ret = culprits.local_devs[i] == dev;
	pthread_mutex_unlock(&culprits.lock);
	return ret;
}

void sb_reader_note_local(uint64_t dev)
{
	if (sb_reader_is_local(dev))
		return;
	pthread_mutex_lock(&culprits.lock);
	culprits.local_devs[culprits.next_local++ % LOCAL_DEVS_MAX] = dev;
	pthread_mutex_unlock(&culprits.lock);
}

bool sb_reader_culprit(size_t i, char text[SB_READER_CULPRIT_BYTES])
{
	bool is_there = false;
	uint32_t at;

	pthread_mutex_lock(&culprits.lock);
	for (at = 0; at < culprits.nr && !is_there; at++) {
		if (!culprits.all[at].left_until_ns || i--)
			continue;
		memcpy(text, culprits.all[at].text, SB_READER_CULPRIT_BYTES);
		is_there = true;
	}
	pthread_mutex_unlock(&culprits.lock);
	return is_there;
}

void sb_reader_culprits_clear(void)
{
	pthread_mutex_lock(&culprits.lock);
	culprits.nr = culprits.nr_left_alone = 0;
	memset(culprits.local_devs, 0, sizeof(culprits.local_devs));
	pthread_mutex_unlock(&culprits.lock);
}
