// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interp/core/interp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "base/utf8.h"
#include "interp/core/interp_priv.h"
#include "symbolizer/elf/disasm.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/process/procfs.h"

#define NAMES_BYTES_DEFAULT (64u << 20)
/* Mappings of one process that are looked at. The kernel's own limit is 65,530. */
#define MAPS_MAX	    65536u
/* Self-tests of one runtime in a process that may fail. On a busy machine a process is preempted
 * for many milliseconds, perhaps while it changes what the test reads; all tries of one test see
 * that. The pauses between tests double from 2 ms on, so ten take a second, however often a process
 * that maps much code is looked at. */
#define DOUBTS_MAX	    10u
#define DOUBT_NS	    (2 * SB_NS_PER_MS)
/* Reads of memory to find out how a runtime is laid out. Each takes half a microsecond while all
 * others wait. No runtime that was tried needs a tenth of it, but a hostile process can make lists
 * without end. */
#define READS_MAX	    20000u

int sb_interp_new(const struct sb_interp_opts *opts, struct sb_interp **ret_interp)
{
	struct sb_interp *interp = calloc(1, sizeof(*interp));
	int err;

	if (!interp)
		return -ENOMEM;
	interp->opts = *opts;
	if (!opts->processes) {
		err = sb_processes_new(NULL, &interp->own_processes);
		if (err) {
			free(interp);
			return err;
		}
		interp->opts.processes = interp->own_processes;
	}
	sb_interp_own_spaces(interp);
	if (!interp->opts.names_bytes_max)
		interp->opts.names_bytes_max = NAMES_BYTES_DEFAULT;
	pthread_mutex_init(&interp->lock, NULL);
	*ret_interp = interp;
	return 0;
}

void sb_interp_free(struct sb_interp *interp)
{
	size_t i;

	if (!interp)
		return;
	sb_interp_free_spaces(interp);
	for (i = 0; i < interp->files.nr; i++)
		sb_image_file_free(interp->files.at[i].file);
	sb_interp_release_past(interp);
	sb_processes_free(interp->own_processes);
	sb_vec_release(&interp->files);
	sb_index_release(&interp->files_index);
	sb_str_release(&interp->text.name);
	sb_str_release(&interp->text.file);
	sb_str_release(&interp->inlined.name);
	sb_str_release(&interp->inlined.file);
	pthread_mutex_destroy(&interp->lock);
	free(interp);
}

uint32_t sb_interp_wanted(const struct sb_interp *interp)
{
	uint32_t wanted = 0;
	size_t i;

	for (i = 0; !interp->opts.no_frames && sb_runtimes[i]->runtime; i++)
		wanted |= 1u << sb_runtimes[i]->runtime;
	return wanted;
}

uint32_t sb_interp_guess(const struct sb_interp *interp, const char *program)
{
	uint32_t guessed = 0;
	size_t i, j;

	for (i = 0; !interp->opts.no_frames && sb_runtimes[i]->runtime; i++) {
		const char *const *names = sb_runtimes[i]->programs;

		for (j = 0; j < SB_RUNTIME_PROGRAMS_MAX && names[j]; j++)
			if (!strncmp(program, names[j], strlen(names[j])))
				guessed |= 1u << sb_runtimes[i]->runtime;
	}
	return guessed;
}

uint32_t sb_interp_found_in(struct sb_interp *interp, const struct sb_space_key *key)
{
	const struct space *space;
	uint32_t found = 0;
	size_t i;

	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	for (i = 0; space && i < space->nr_found; i++)
		found |= 1u << space->found[i]->rt.conf.runtime;
	if (!space || space->is_full)
		found = UINT32_MAX;
	pthread_mutex_unlock(&interp->lock);
	return found;
}

/* Files without a runtime that are remembered for one process. Others are looked at again. */
#define PLAIN_MAX 256u

/* Mappings. */

struct map_list {
	SB_VEC(struct sb_maps_line) maps;
	struct sb_arena arena;
};

static int on_line(void *arg, const struct sb_maps_line *line)
{
	struct map_list *list = arg;
	struct sb_maps_line map = *line;

	if (list->maps.nr >= MAPS_MAX)
		return -EFBIG;
	map.path = sb_arena_strndup(&list->arena, line->path, line->path_len);
	return map.path ? sb_vec_push(&list->maps, map) : -ENOMEM;
}

/* Looking. */

/* A virtual machine whose container has little of a CPU takes that long to start. */
#define START_NS_MAX (60 * SB_NS_PER_SEC)

static bool is_tried_again(const struct found *found)
{
	return found->is_pending || found->is_doubtful;
}

static struct found *find_found(struct space *space, const struct sb_runtime_ops *ops,
				const struct sb_image *image)
{
	size_t i;

	for (i = 0; i < space->nr_found; i++)
		if (space->found[i]->rt.ops == ops && !is_tried_again(space->found[i]) &&
		    space->found[i]->image.file == image->file &&
		    space->found[i]->image.bias == image->bias)
			return space->found[i];
	return NULL;
}

static void look_again(struct found *found, const struct sb_process_maps *maps)
{
	if (!found->is_attached || !found->rt.ops->look_again)
		return;
	found->rt.maps = maps;
	found->rt.ops->look_again(&found->rt);
	found->rt.maps = NULL;
}

/* Whether the self-test of @ops failed so short a time before this look that it is not made
 * again. */
static bool rests(const struct space *space, const struct sb_runtime_ops *ops)
{
	return space->doubts[ops->runtime].until_ns > space->look_ns;
}

/* Note a self-test that failed. Return: whether it is made again. */
static bool doubt(struct space *space, const struct sb_runtime_ops *ops)
{
	struct doubts *doubts = &space->doubts[ops->runtime];

	doubts->until_ns = sb_now_ns() + (DOUBT_NS << doubts->nr);
	if (++doubts->nr < DOUBTS_MAX)
		return true;
	/* A second file with this runtime has doubts of its own. */
	doubts->nr = 0;
	return false;
}

static void drop_pending(struct space *space)
{
	size_t i;

	for (i = space->nr_found; i--;)
		if (is_tried_again(space->found[i]) && !rests(space, space->found[i]->rt.ops))
			sb_interp_drop_found(space, i);
}

/* Return: as ops->attach(). */
static int attach_bounded(struct space *space, struct sb_runtime *rt)
{
	struct sb_memory_recent recent = { .nr = 0 };
	uint64_t nr_left = READS_MAX;
	int err;

	if (SB_INSN_HERE != &sb_insn_x86 && !rt->ops->is_for_any_machine) {
		err = sb_str_add(&rt->why, "stackbpf walks this interpreter on x86-64 only");
		return err ? err : -ENOTSUP;
	}
	space->memory.nr_left = &nr_left;
	/* A runtime that is just beginning is looked at again. */
	space->memory.recent = &recent;
	err = rt->ops->attach(rt);
	space->memory.recent = NULL;
	space->memory.nr_left = NULL;
	/* These come from the process, and are printed. */
	sb_replace_controls(rt->version, strlen(rt->version));
	if (rt->why.len)
		sb_replace_controls(rt->why.s, rt->why.len);
	sb_debug("%s in process %u: %llu reads", rt->ops->name, space->key.tgid,
		 (unsigned long long)(READS_MAX - nr_left));
	/* What it did not find may be there. */
	if (err && rt->image->file->has_lacked_memory)
		return -ENOMEM;
	if (!err || nr_left || err == -ESRCH || err == -ENOMEM)
		return err;
	sb_str_clear(&rt->why);
	err = sb_str_addf(&rt->why,
			  "its data structures seem endless, so they were not read "
			  "completely (%s)",
			  sb_image_build_id(rt->image));
	return err ? err : -ENOTSUP;
}

static size_t nr_attached(const struct space *space)
{
	size_t i, nr = 0;

	for (i = 0; i < space->nr_found; i++)
		nr += space->found[i]->is_attached;
	return nr;
}

/* Refuse a runtime because others of the process use all places. Return: -ENOTSUP or -ENOMEM. */
static int refuse(struct sb_interp *interp, struct sb_runtime *rt)
{
	int err = sb_str_addf(&rt->why,
			      "the process has %u other interpreters already, "
			      "which is the limit",
			      SB_INTERP_PER_PROC);

	interp->stats.nr_refused++;
	return err ? err : -ENOTSUP;
}

/* Return: nanoseconds since the process began, perhaps with another program; if that is not known,
 * it counts as old. */
static uint64_t age_of(const struct space *space)
{
	uint64_t start_ns = space->key.start_ns;

	return sb_boot_ns() - (start_ns ? start_ns : space->expected.start_ticks * sb_tick_ns());
}

static int attach(struct sb_interp *interp, struct space *space, const struct sb_runtime_ops *ops,
		  const struct sb_image *image, const struct sb_process_maps *maps)
{
	struct found *found = find_found(space, ops, image);
	const bool has_room = nr_attached(space) < SB_INTERP_PER_PROC;
	uint64_t age_ns, known_ns;
	bool may_settle;
	int err;

	if (found) {
		look_again(found, maps);
		return 0;
	}
	if (rests(space, ops))
		return -EAGAIN;
	if (space->nr_found == FOUND_MAX) {
		interp->stats.nr_refused += !space->is_full;
		space->is_full = true;
		return 0;
	}
	found = calloc(1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	space->found[space->nr_found++] = found;
	found->image = *image;
	found->rt.ops = ops;
	found->rt.memory = &space->memory;
	found->rt.image = &found->image;
	found->rt.maps = maps;
	found->rt.conf.runtime = ops->runtime;
	err = has_room ? attach_bounded(space, &found->rt) : refuse(interp, &found->rt);
	found->rt.maps = NULL;
	age_ns = age_of(space);
	/* A process that has waited for long before it executes this program has just been met. */
	known_ns = sb_now_ns() - space->met_ns;
	may_settle = ((err == -ENOTSUP || err == -EBADMSG || err == -EFAULT) && has_room &&
		      ops->settles_ns && (age_ns < START_NS_MAX || known_ns < START_NS_MAX)) ||
		     (err == -EBADMSG && doubt(space, ops));
	if (err == -EBADMSG)
		err = -ENOTSUP;
	if (err == -ENOTSUP && age_ns < ops->settles_ns)
		err = -EAGAIN;
	found->is_attached = !err;
	found->is_pending = err == -EAGAIN;
	found->is_doubtful = may_settle;
	if (err == -ENOTSUP || err == -EAGAIN)
		sb_debug("%s in process %u: %s", ops->name, space->key.tgid,
			 err == -EAGAIN	     ? "not begun"
			 : found->rt.why.len ? found->rt.why.s
					     : "unknown layout");
	else if (err)
		sb_interp_drop_found(space, space->nr_found - 1);
	if (may_settle)
		return -EAGAIN;
	return err == -ENOTSUP || err == -EFAULT ? 0 : err;
}

/* Find the difference between addresses of the process and of the file, from one mapping. */
static int image_of(const struct seen_file *seen, const struct sb_maps_line *map,
		    struct sb_image *ret_image)
{
	uint64_t addr;

	if (!sb_elf_offset_to_addr(seen->file->elf, map->pgoff, &addr))
		return -ENOENT;
	*ret_image = (struct sb_image){ .file = seen->file, .bias = map->start - addr };
	return 0;
}

/* Whether a mapped file is known to have nothing for us. Most are, and a process is looked at again
 * whenever it maps more. */
static bool is_plain(const struct space *space, uint64_t hash)
{
	size_t i;

	for (i = 0; i < space->plain.nr; i++)
		if (space->plain.at[i] == hash)
			return true;
	return false;
}

/* Remember it. If that fails, it is looked at again. */
static void note_plain(struct space *space, uint64_t hash)
{
	if (space->plain.nr < PLAIN_MAX)
		(void)sb_vec_push(&space->plain, hash);
}

/* Return: 0, with the file if it has runtimes or labels, else NULL; -ENOMEM. */
static int find_file(struct sb_interp *interp, struct space *space, const struct sb_maps_line *map,
		     struct seen_file **ret_seen)
{
	const uint64_t hash = sb_hash(map->path, strlen(map->path), map->ino);
	struct seen_file *seen;
	int err;

	*ret_seen = NULL;
	if (is_plain(space, hash))
		return 0;
	err = sb_interp_look_at_file(interp, space->key.tgid, map, &seen);
	if (err)
		return err == -ENOENT ? 0 : err;
	space->is_go |= seen && seen->runtimes & FILE_GO;
	if (seen && seen->file) {
		*ret_seen = seen;
		return 0;
	}
	note_plain(space, hash);
	sb_interp_note_plain(interp, map->path);
	return 0;
}

static int look_at_map(struct sb_interp *interp, struct space *space,
		       const struct sb_process_maps *maps, const struct sb_maps_line *map)
{
	struct seen_file *seen;
	struct sb_image image;
	int err = find_file(interp, space, map, &seen), ret = 0;
	size_t i;

	if (err || !seen || image_of(seen, map, &image))
		return err;
	if (seen->runtimes & FILE_LABELS)
		ret = sb_labels_look_at(interp, space, &image, maps);
	for (i = 0; sb_runtimes[i]->runtime; i++) {
		if (!(seen->runtimes & 1u << sb_runtimes[i]->runtime))
			continue;
		err = attach(interp, space, sb_runtimes[i], &image, maps);
		if (err)
			ret = err;
	}
	sb_image_file_unload(seen->file);
	return ret;
}

/* Find the next mapping from *@from on that has code of another file than the one before, since the
 * mappings of one file are adjacent. Return: NULL when there is none. */
static const struct sb_maps_line *next_file(const struct map_list *list, size_t *from,
					    uint64_t *last_ino)
{
	for (; *from < list->maps.nr; ++*from) {
		const struct sb_maps_line *map = &list->maps.at[*from];

		if (!map->is_exec || map->path[0] != '/' || map->ino == *last_ino)
			continue;
		*last_ino = map->ino;
		++*from;
		return map;
	}
	return NULL;
}

/* Whether any runtime in @seen needs the mappings of data, too. */
static bool wants_all(const struct sb_interp *interp, const struct seen_file *seen)
{
	size_t i;

	if (sb_interp_wants_labels(interp))
		return true;
	for (i = 0; sb_runtimes[i]->runtime; i++)
		if (seen->runtimes & 1u << sb_runtimes[i]->runtime &&
		    sb_runtimes[i]->needs_all_maps)
			return true;
	return false;
}

/* Whether any file of the process does. In most processes none does. */
static bool needs_all(struct sb_interp *interp, struct space *space, const struct map_list *list)
{
	const struct sb_maps_line *map;
	struct seen_file *seen;
	uint64_t last_ino = 0;
	size_t from = 0;

	while ((map = next_file(list, &from, &last_ino)))
		if (find_file(interp, space, map, &seen) || (seen && wants_all(interp, seen)))
			return true;
	return false;
}

static void release_list(struct map_list *list)
{
	sb_vec_release(&list->maps);
	sb_arena_release(&list->arena);
	*list = (struct map_list){};
}

static int look_at_all(struct sb_interp *interp, struct space *space, struct map_list *list)
{
	const struct sb_maps_line *map;
	struct sb_process_maps maps = { .tgid = space->key.tgid };
	uint64_t last_ino = 0;
	size_t from = 0;
	int err, ret = 0;

	if (needs_all(interp, space, list)) {
		release_list(list);
		err = sb_procfs_maps(maps.tgid, on_line, list);
		if (err && err != -EFBIG)
			return err;
	}
	maps.at = list->maps.at;
	maps.nr = list->maps.nr;
	space->look_ns = sb_now_ns();
	drop_pending(space);
	sb_labels_look_begin(space, &maps);
	while ((map = next_file(list, &from, &last_ino))) {
		err = look_at_map(interp, space, &maps, map);
		if (err && (!ret || err != -EAGAIN))
			ret = err;
	}
	sb_labels_look_end(space);
	return ret;
}

/* Set which process is meant by a number. What was found in another process or program under that
 * number is dropped. */
static void expect(struct sb_interp *interp, struct space *space, const struct sb_procfs_stat *now)
{
	if (space->expected.start_ticks != now->start_ticks ||
	    space->expected.stack_addr != now->stack_addr) {
		while (space->nr_found)
			sb_interp_drop_found(space, space->nr_found - 1);
		free(sb_take(space->labels));
		interp->stats.nr_bytes -= space->arena.nr_bytes;
		sb_interp_release_names(space);
		space->has_memory = space->is_go = space->is_full = false;
		memset(space->doubts, 0, sizeof(space->doubts));
		space->met_ns = sb_now_ns();
		space->plain.nr = 0;
	}
	space->expected = *now;
}

static void confs_of(struct space *space, struct sb_interp_confs *ret)
{
	size_t i;

	ret->nr = 0;
	ret->has_labels = space->labels && space->labels->has_conf;
	if (ret->has_labels) {
		memset(&ret->labels, 0, sizeof(ret->labels));
		memcpy(ret->labels.word, &space->labels->conf, sizeof(space->labels->conf));
	}
	for (i = 0; i < space->nr_found; i++) {
		struct found *found = space->found[i];

		if (!found->is_attached || sb_interp_is_unreadable(found))
			continue;
		ret->conf[ret->nr++] = found->rt.conf;
	}
}

/* Read the mappings of code. A process that ends has none long before its parent waits for it, and
 * nothing else tells. */
static int look_at_code(uint32_t tgid, uint64_t since_ns, struct map_list *list)
{
	struct sb_procfs_stat stat;
	int err = -ESRCH;

	/* The last look at a process is mostly when it has ended. */
	if (sb_procfs_exists(tgid))
		err = sb_procfs_code_since(tgid, since_ns, on_line, list);
	if (!err && !list->maps.nr && (sb_procfs_stat(tgid, &stat) || !stat.is_kernel))
		err = -ESRCH;
	return err;
}

int sb_interp_look(struct sb_interp *interp, const struct sb_space_key *key,
		   struct sb_interp_confs *ret_confs)
{
	return sb_interp_look_since(interp, key, UINT64_MAX, ret_confs);
}

int sb_interp_look_since(struct sb_interp *interp, const struct sb_space_key *key,
			 uint64_t since_ns, struct sb_interp_confs *ret_confs)
{
	struct map_list list = {};
	uint64_t start_ns = sb_now_ns();
	struct sb_procfs_stat now = {};
	struct space *space = NULL;
	int err;

	/* Read it before the mappings: they belong to this process, or to a later one. */
	if (!key->start_ns && sb_procfs_stat(key->tgid, &now))
		now.start_ticks = 0;
	err = look_at_code(key->tgid, since_ns, &list);
	pthread_mutex_lock(&interp->lock);
	if (!err || err == -EFBIG)
		err = sb_interp_make_space(interp, key, &space);
	ret_confs->nr = 0;
	ret_confs->has_labels = false;
	if (!err) {
		space->used = ++interp->clock;
		if (!key->start_ns)
			expect(interp, space, &now);
		err = space->has_memory && !list.maps.nr ? -ESRCH
							 : look_at_all(interp, space, &list);
		if (err != -ESRCH)
			sb_processes_alive(interp->opts.processes, key);
		space->has_memory |= list.maps.nr > 0;
		confs_of(space, ret_confs);
	}
	interp->stats.nr_looks++;
	interp->stats.look_ns += sb_now_ns() - start_ns;
	pthread_mutex_unlock(&interp->lock);
	release_list(&list);
	return err;
}
