// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/uwprocs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/time.h"
#include "base/vec.h"
#include "process/process.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

/* Kernel addresses are above. They are not searched, and comparisons are signed. */
#define USER_END  (1ull << 56)
/* A process that maps code all the time is read again no sooner than this; those with long lists
 * have a share of a CPU's time (base/ration.h). */
#define REREAD_NS 10000000ull
/* A published list. It is in the slot of its address space; there is one for each tgid. */
struct proc_mappings {
	struct sb_space_key key;
	struct sb_space *space; /* a reference */
	struct sb_uwpool_place place;
	uint32_t nr_segs;
	uint64_t exec_vm; /* pages of executable mappings, as the kernel counts them */
	uint64_t read_ns; /* when that began */
	uint64_t published_ns, next_read_ns;
	uint32_t nr_early; /* reads without a rest */
	bool is_plain;	   /* no file of it has an interpreter */
};

struct sb_uwprocs {
	struct sb_uwprocs_opts opts;
	struct sb_ration ration;
	struct sb_uwprocs_stats stats;
};

typedef SB_VEC(struct sb_uw_seg) seg_list;

int sb_uwprocs_new(const struct sb_uwprocs_opts *opts, struct sb_uwprocs **ret_procs)
{
	struct sb_uwprocs *procs = calloc(1, sizeof(*procs));

	if (!procs)
		return -ENOMEM;
	procs->opts = *opts;
	if (!procs->opts.now_ns)
		procs->opts.now_ns = sb_now_ns;
	if (!procs->opts.cpu_ns)
		procs->opts.cpu_ns = sb_reader_thread_cpu_ns;
	*ret_procs = procs;
	return 0;
}

static void free_proc(void *arg, void *value)
{
	struct sb_uwprocs *procs = arg;
	struct proc_mappings *proc = value;

	sb_processes_put(procs->opts.processes, proc->space);
	free(proc);
}

void sb_uwprocs_free(struct sb_uwprocs *procs)
{
	if (!procs)
		return;
	sb_processes_own(procs->opts.processes, SB_SLOT_MAPPINGS, free_proc, procs);
	sb_processes_disown(procs->opts.processes, SB_SLOT_MAPPINGS);
	free(procs);
}

struct sb_ration *sb_uwprocs_ration(struct sb_uwprocs *procs)
{
	return &procs->ration;
}

static struct proc_mappings *find_proc(const struct sb_uwprocs *procs, uint32_t tgid)
{
	return sb_processes_of(procs->opts.processes, tgid, SB_SLOT_MAPPINGS);
}

static const struct sb_uw_seg *segs_of(const struct sb_uwprocs *procs,
				       const struct proc_mappings *proc)
{
	return (const struct sb_uw_seg *)(sb_uwpool_words(procs->opts.pool) + proc->place.word);
}

static void drop_bins(struct sb_uwprocs *procs, const struct sb_uw_seg *segs, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!(segs[i].flags & SB_UW_SEG_ANON))
			sb_uwtables_drop(procs->opts.tables, segs[i].bin);
}

static void release_list(struct sb_uwprocs *procs, const struct proc_mappings *proc)
{
	drop_bins(procs, segs_of(procs, proc), proc->nr_segs);
	sb_uwpool_release(procs->opts.pool, proc->place);
}

/* Free a list that is not published any more, or was replaced. */
static void remove_proc(struct sb_uwprocs *procs, struct proc_mappings *proc)
{
	release_list(procs, proc);
	sb_space_set(procs->opts.processes, proc->space, SB_SLOT_MAPPINGS, NULL);
	free_proc(procs, proc);
	procs->stats.nr_processes--;
}

static void drop_proc(struct sb_uwprocs *procs, struct proc_mappings *proc)
{
	procs->opts.unpublish(procs->opts.arg, proc->key.tgid);
	remove_proc(procs, proc);
}

void sb_uwprocs_forget(struct sb_uwprocs *procs, uint32_t tgid)
{
	struct proc_mappings *proc = find_proc(procs, tgid);

	if (proc)
		drop_proc(procs, proc);
}

static void choose_older(void *arg, void *value, uint64_t ended_ns)
{
	struct proc_mappings **oldest = arg, *proc = value;

	if (!*oldest || proc->published_ns < (*oldest)->published_ns)
		*oldest = proc;
}

static void drop_oldest(struct sb_uwprocs *procs)
{
	struct proc_mappings *oldest = NULL;

	sb_processes_each(procs->opts.processes, SB_SLOT_MAPPINGS, choose_older, &oldest);
	if (!oldest)
		return;
	procs->stats.nr_refused++;
	drop_proc(procs, oldest);
}

/* Identify the file of a line of /proc/PID/maps. */

/* Whether it is known if the file has an interpreter. Then *@ret_is_plain: it has none. */
static bool find_by_stat(const struct sb_uwprocs *procs, uint32_t tgid,
			 const struct sb_maps_line *line, struct sb_uwtables_spot *ret_spot,
			 bool *ret_is_plain)
{
	struct stat st;

	if (sb_procfs_stat_line(tgid, line, &st) ||
	    !sb_uwtables_find(procs->opts.tables, &st, line->pgoff, ret_spot))
		return false;
	*ret_is_plain = procs->opts.is_plain && procs->opts.is_plain(procs->opts.arg, &st);
	return true;
}

/* Return: 0, with a bin that the caller holds; -ENODATA when such a mapping has none; -ENOENT when
 * the mapping is gone; or another negative errno. */
static int identify(const struct sb_uwprocs *procs, uint32_t tgid, const struct sb_maps_line *line,
		    struct sb_uwtables_spot *ret_spot, bool *ret_is_plain)
{
	sb_cleanup(sb_closep) int fd = -1;
	int err;

	*ret_is_plain = true;
	switch (sb_map_kind(line->path, line->path_len)) {
	case SB_MAP_VDSO:
		err = sb_uwtables_add_vdso(procs->opts.tables, ret_spot);
		return err == -ENOENT ? -ENODATA : err;
	case SB_MAP_FILE:
	case SB_MAP_MEMORY:
		break;
	default:
		return -ENODATA;
	}
	if (find_by_stat(procs, tgid, line, ret_spot, ret_is_plain))
		return 0;
	*ret_is_plain = false;
	fd = sb_procfs_open_line(tgid, line);
	if (fd < 0)
		return fd == -EINVAL ? -ENODATA : fd; /* a device */
	err = sb_uwtables_add(procs->opts.tables, fd, line->pgoff, ret_spot);
	return err == -ENOEXEC ? -ENODATA : err;
}

/* Reading one process. */

#define NO_SEG SIZE_MAX

struct reading {
	struct sb_uwprocs *procs;
	uint32_t tgid;
	seg_list segs;
	struct sb_moved_text moved;
	size_t seg_of[3]; /* of the lines of @moved */
	uint64_t exec_bytes;
	bool is_cut, is_plain;
};

static int add_seg(struct reading *reading, const struct sb_maps_line *line)
{
	struct sb_uw_seg seg = {
		.begin = line->start,
		.end = line->end,
		.bin = SB_UW_BINS_MAX,
		.flags = SB_UW_SEG_ANON,
	};
	struct sb_uwtables_spot spot;
	bool is_plain;
	int err;

	if (reading->segs.nr == SB_UW_SEGS_MAX) {
		reading->is_cut = true;
		return 0;
	}
	err = identify(reading->procs, reading->tgid, line, &spot, &is_plain);
	reading->is_plain &= is_plain;
	if (err == -ENOMEM || err == -ESRCH)
		return err;
	if (err == -ENOENT)
		return 0; /* unmapped since the line was written */
	if (!err) {
		seg.bin = spot.bin;
		seg.bias = line->start - spot.elf_addr;
		seg.flags = 0;
	} else if (err != -ENODATA) {
		reading->procs->stats.nr_refused++;
	}
	err = sb_vec_push(&reading->segs, seg);
	if (err)
		drop_bins(reading->procs, &seg, 1);
	else
		reading->seg_of[2] = reading->segs.nr - 1;
	return err;
}

/* Anonymous memory that replaced a part of a file (moved text) holds the same code at the same
 * addresses. */
static void set_moved_text(struct reading *reading)
{
	const struct sb_uw_seg *before;
	struct sb_uw_seg *anon;

	if (reading->seg_of[0] == NO_SEG || reading->seg_of[1] == NO_SEG)
		return;
	before = &reading->segs.at[reading->seg_of[0]];
	anon = &reading->segs.at[reading->seg_of[1]];
	if (before->flags & SB_UW_SEG_ANON)
		return;
	anon->bin = before->bin;
	anon->bias = before->bias;
	anon->flags = 0;
	sb_uwtables_hold(reading->procs->opts.tables, anon->bin);
}

static int on_line(void *arg, const struct sb_maps_line *line)
{
	struct reading *reading = arg;
	int err = 0;

	if (line->end > USER_END)
		return 0;
	reading->seg_of[0] = reading->seg_of[1];
	reading->seg_of[1] = reading->seg_of[2];
	reading->seg_of[2] = NO_SEG;
	/* As in is_exec_mapping() of the kernel. */
	if (line->is_exec && !line->is_writable)
		reading->exec_bytes += line->end - line->start;
	if (line->is_exec)
		err = add_seg(reading, line);
	if (!err && sb_moved_text_feed(&reading->moved, line))
		set_moved_text(reading);
	return err;
}

/* Read the list, and set in @new what is published with it. Return: as read_proc(). */
static int read_segs(struct sb_uwprocs *procs, struct proc_mappings *new, seg_list *ret_segs)
{
	struct reading reading = {
		.procs = procs,
		.tgid = new->key.tgid,
		.seg_of = { NO_SEG, NO_SEG, NO_SEG },
		.is_plain = true,
	};
	int err = sb_procfs_code(new->key.tgid, on_line, &reading);

	procs->stats.nr_reads++;
	if (err == -EFBIG || err == -EBADMSG)
		reading.is_cut = true;
	else if (!err && !reading.segs.nr)
		err = -ESRCH; /* it is ending */
	if (err && !reading.is_cut) {
		drop_bins(procs, reading.segs.at, reading.segs.nr);
		sb_vec_release(&reading.segs);
		return err;
	}
	procs->stats.nr_refused += reading.is_cut;
	*ret_segs = reading.segs;
	new->exec_vm = reading.exec_bytes / (uint64_t)getpagesize();
	new->is_plain = reading.is_plain && !reading.is_cut;
	return 0;
}

/* Publishing. */

static int show(struct sb_uwprocs *procs, const struct proc_mappings *proc, bool is_same)
{
	const struct sb_uw_proc shown = {
		.start_ns = proc->key.start_ns,
		.exec_id = proc->key.exec_id,
		.exec_vm = proc->exec_vm,
		.segs_word = proc->place.word,
		.nr_segs = proc->nr_segs,
	};

	return procs->opts.publish(procs->opts.arg, proc->key.tgid, &shown, is_same);
}

static bool is_same_space(const struct proc_mappings *have, const struct proc_mappings *new)
{
	return have && sb_space_key_is(&have->key, &new->key);
}

static bool is_same_list(const struct sb_uwprocs *procs, const struct proc_mappings *have,
			 const struct proc_mappings *new, const seg_list *segs)
{
	return is_same_space(have, new) && have->exec_vm == new->exec_vm &&
	       have->nr_segs == segs->nr &&
	       !memcmp(segs_of(procs, have), segs->at, segs->nr * sizeof(*segs->at));
}

/* Publish a list to the walker; if there is no room, the oldest one goes. */
static int show_new(struct sb_uwprocs *procs, const struct proc_mappings *new)
{
	int err;

	if (!find_proc(procs, new->key.tgid) &&
	    procs->stats.nr_processes >= procs->opts.nr_procs_max)
		drop_oldest(procs);
	err = show(procs, new, false);
	if (err == -E2BIG) {
		drop_oldest(procs);
		err = show(procs, new, false);
	}
	return err;
}

/* Make a copy of @new that is not in its slot yet. */
static int make_proc(struct sb_uwprocs *procs, const struct proc_mappings *new,
		     struct proc_mappings **ret_proc)
{
	struct proc_mappings *proc = malloc(sizeof(*proc));
	int err;

	if (!proc)
		return -ENOMEM;
	*proc = *new;
	err = sb_processes_get(procs->opts.processes, &new->key, &proc->space);
	if (!err)
		err = sb_uwtables_alloc_list(procs->opts.tables, new->nr_segs *SB_UW_SEG_WORDS,
					     &proc->place);
	if (!err) {
		*ret_proc = proc;
		return 0;
	}
	sb_processes_put(procs->opts.processes, proc->space);
	free(proc);
	return err;
}

/* Takes over the holds on the bins, also on failure. */
static int publish_new(struct sb_uwprocs *procs, struct proc_mappings *new, const seg_list *segs)
{
	struct proc_mappings *proc, *have;
	int err;

	new->nr_segs = (uint32_t)segs->nr;
	new->space = NULL;
	err = make_proc(procs, new, &proc);
	if (err) {
		drop_bins(procs, segs->at, segs->nr);
		return err;
	}
	memcpy(sb_uwpool_words(procs->opts.pool) + proc->place.word, segs->at,
	       segs->nr * sizeof(*segs->at));
	err = show_new(procs, proc);
	if (err) {
		release_list(procs, proc);
		free_proc(procs, proc);
		return err;
	}
	have = find_proc(procs, new->key.tgid);
	if (have)
		remove_proc(procs, have);
	sb_space_set(procs->opts.processes, proc->space, SB_SLOT_MAPPINGS, proc);
	procs->stats.nr_processes++;
	return 0;
}

/* Set when the process may be read again, by the CPU time that this read took. */
static void set_next_read(struct sb_uwprocs *procs, struct proc_mappings *new,
			  const struct proc_mappings *have, uint64_t own_ns)
{
	uint64_t now_ns = new->published_ns;

	new->nr_early = is_same_space(have, new) ? have->nr_early : 0;
	if (own_ns < SB_RATION_CHEAP_NS && new->nr_early < SB_UWPROCS_NR_EARLY_MAX) {
		new->nr_early++;
		new->next_read_ns = now_ns;
		return;
	}
	new->next_read_ns = sb_ration_next_ns(&procs->ration, now_ns, own_ns);
	if (new->next_read_ns < now_ns + REREAD_NS)
		new->next_read_ns = now_ns + REREAD_NS;
}

/* Read a process and publish its list. @new: its address space. */
static int read_proc(struct sb_uwprocs *procs, struct proc_mappings *new)
{
	uint64_t begin_ns = procs->opts.cpu_ns(), end_ns;
	struct proc_mappings *have;
	seg_list segs;
	int err;

	new->read_ns = procs->opts.now_ns();
	err = read_segs(procs, new, &segs);
	if (err) {
		if (err != -ENOMEM)
			sb_uwprocs_forget(procs, new->key.tgid);
		return err;
	}
	new->published_ns = procs->opts.now_ns();
	have = find_proc(procs, new->key.tgid);
	end_ns = procs->opts.cpu_ns();
	set_next_read(procs, new, have, end_ns > begin_ns ? end_ns - begin_ns : 0);
	if (is_same_list(procs, have, new, &segs)) {
		have->read_ns = new->read_ns;
		have->next_read_ns = new->next_read_ns;
		have->nr_early = new->nr_early;
		have->is_plain = new->is_plain;
		drop_bins(procs, segs.at, segs.nr);
		err = show(procs, have, true);
	} else {
		err = publish_new(procs, new, &segs);
	}
	sb_vec_release(&segs);
	if (err) {
		sb_debug("no list of mappings for process %u: %s", new->key.tgid, strerror(-err));
		procs->stats.nr_refused++;
	}
	return err;
}

bool sb_uwprocs_bin_at(const struct sb_uwprocs *procs, uint32_t tgid, uint64_t addr,
		       uint32_t *ret_bin)
{
	const struct proc_mappings *proc = find_proc(procs, tgid);
	const struct sb_uw_seg *segs;
	uint32_t i;

	if (!proc)
		return false;
	segs = segs_of(procs, proc);
	for (i = 0; i < proc->nr_segs; i++) {
		if (addr >= segs[i].begin && addr < segs[i].end) {
			*ret_bin = segs[i].bin;
			return !(segs[i].flags & SB_UW_SEG_ANON);
		}
	}
	return false;
}

int sb_uwprocs_need(struct sb_uwprocs *procs, const struct sb_uw_need_event *need)
{
	const struct proc_mappings *have = find_proc(procs, need->tgid);
	struct proc_mappings new = { .key = SB_SPACE_KEY(need) };

	if (is_same_space(have, &new) && procs->opts.now_ns() < have->next_read_ns)
		return -EAGAIN;
	return read_proc(procs, &new);
}

int sb_uwprocs_reread(struct sb_uwprocs *procs, uint32_t tgid, uint64_t *ret_when_ns)
{
	const struct proc_mappings *have = find_proc(procs, tgid);
	struct proc_mappings new;

	if (!have)
		return 0;
	if (procs->opts.now_ns() < have->next_read_ns) {
		*ret_when_ns = have->next_read_ns;
		return -EAGAIN;
	}
	new = *have;
	read_proc(procs, &new);
	return 0;
}

bool sb_uwprocs_is_read_since(const struct sb_uwprocs *procs, uint32_t tgid, uint64_t time_ns)
{
	const struct proc_mappings *have = find_proc(procs, tgid);

	return have && have->read_ns > time_ns;
}

bool sb_uwprocs_is_plain(const struct sb_uwprocs *procs, const struct sb_uw_need_event *need)
{
	const struct proc_mappings *have = find_proc(procs, need->tgid);

	return have && sb_space_key_is(&have->key, &SB_SPACE_KEY(need)) && have->is_plain;
}

/* All bins. */
#define ANY_BIN UINT32_MAX

struct building {
	struct sb_uwprocs *procs;
	uint32_t tgid;
	uint32_t bin; /* or ANY_BIN */
	int ret;      /* of sb_uwtables_build() */
};

static int build_held(const struct building *building, const struct sb_maps_line *line,
		      uint32_t bin)
{
	struct sb_uwtables *tables = building->procs->opts.tables;
	sb_cleanup(sb_closep) int fd = -1;

	if (!sb_uwtables_is_absent(tables, bin))
		return 0;
	if (!sb_uwtables_is_vdso(tables, bin)) {
		fd = sb_procfs_open_line(building->tgid, line);
		if (fd < 0)
			return -ESTALE;
	}
	return sb_uwtables_build(tables, bin, fd, building->tgid);
}

static int build_if_it_is(void *arg, const struct sb_maps_line *line)
{
	struct building *building = arg;
	struct sb_uwprocs *procs = building->procs;
	struct sb_uwtables_spot spot;
	bool is_plain;
	int err;

	if (!line->is_exec || line->end > USER_END ||
	    identify(procs, building->tgid, line, &spot, &is_plain))
		return 0;
	if (building->bin == spot.bin || building->bin == ANY_BIN) {
		err = build_held(building, line, spot.bin);
		/* The file was replaced; another mapping may still be of the old one. */
		if (err != -ESTALE)
			building->ret = err;
	}
	sb_uwtables_drop(procs->opts.tables, spot.bin);
	return building->bin == ANY_BIN || building->ret == -ESRCH ? 0 : -ECANCELED;
}

int sb_uwprocs_need_bin(struct sb_uwprocs *procs, const struct sb_uw_need_event *need)
{
	struct building building = {
		.procs = procs,
		.tgid = need->tgid,
		.bin = need->bin,
		.ret = -ESRCH,
	};
	int err;

	if (!sb_uwtables_is_absent(procs->opts.tables, need->bin))
		return 0;
	if (sb_uwtables_is_vdso(procs->opts.tables, need->bin))
		return sb_uwtables_build(procs->opts.tables, need->bin, -1, need->tgid);
	err = sb_procfs_code(need->tgid, build_if_it_is, &building);
	return err && err != -ECANCELED ? err : building.ret;
}

void sb_uwprocs_build_all(struct sb_uwprocs *procs, uint32_t tgid)
{
	struct building building = { .procs = procs, .tgid = tgid, .bin = ANY_BIN };

	/* Tables that are still missing are built when the BPF side asks. */
	if (sb_uwprocs_has(procs, tgid))
		sb_procfs_code(tgid, build_if_it_is, &building);
}

bool sb_uwprocs_has(const struct sb_uwprocs *procs, uint32_t tgid)
{
	return find_proc(procs, tgid);
}

void sb_uwprocs_stats(const struct sb_uwprocs *procs, struct sb_uwprocs_stats *ret_stats)
{
	*ret_stats = procs->stats;
}
