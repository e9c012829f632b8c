// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of frames. They are read once and kept, because the process may be gone a moment later. */
#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "interp/core/interp.h"
#include "interp/core/interp_priv.h"
#include "interp/core/pages.h"
#include "symbolizer/process/procfs.h"

/* Functions inlined into one another at one place. */
#define INLINED_MAX 64u
/* Of one process: a generator of code must not fill our memory. */
#define NAMES_MAX   1000000u
/* Names that could not be read, and not one that could: then the layout is another one. */
#define NR_BAD_MAX  32u
/* Rounds of reading ahead for names: a name in Python is two pointers away from its frame, in Ruby
 * four. */
#define ROUNDS_MAX  6u

bool sb_interp_is_unreadable(const struct found *found)
{
	return !found->nr_ok && found->nr_bad >= NR_BAD_MAX;
}

void sb_interp_release_names(struct space *space)
{
	sb_vec_release(&space->names);
	sb_vec_release(&space->texts);
	sb_index_release(&space->names_index);
	sb_arena_release(&space->arena);
}

static uint64_t hash_frame(uint64_t obj, uint64_t where)
{
	const uint64_t words[] = { obj, where };

	return sb_hash(words, sizeof(words), 0);
}

static struct name *find_name(const struct space *space, const struct sb_interp_frame *frame)
{
	uint64_t where = frame->where & ~SB_WHERE_END;

	sb_index_each(it, &space->names_index, hash_frame(frame->obj, where))
		if (space->names.at[it.id].obj == frame->obj &&
		    space->names.at[it.id].where == where)
			return &space->names.at[it.id];
	return NULL;
}

static void clear_text(struct sb_runtime_text *text)
{
	sb_str_clear(&text->name);
	sb_str_clear(&text->file);
	text->is_glue = false;
	text->line = 0;
	text->native = 0;
}

static int keep_text(struct space *space, const struct sb_runtime_text *text, bool is_unnamed)
{
	struct text kept = {
		.name = sb_arena_strndup(&space->arena, text->name.s, text->name.len),
		.line = text->line,
		.is_unnamed = is_unnamed,
		.native = text->native,
		.is_glue = text->is_glue,
	};

	if (text->file.len)
		kept.file = sb_arena_strndup(&space->arena, text->file.s, text->file.len);
	if (!kept.name || (text->file.len && !kept.file))
		return -ENOMEM;
	return sb_vec_push(&space->texts, kept);
}

static int keep_unreadable(struct sb_interp *interp, struct space *space, const struct found *found)
{
	int err;

	clear_text(&interp->text);
	err = sb_str_addf(&interp->text.name, "[unreadable %s frame]",
			  found ? found->rt.ops->name : "interpreter");
	return err ? err : keep_text(space, &interp->text, true);
}

/* Keep the names of the functions that were inlined into a frame. Return: 0; -ENOMEM. */
static int keep_inlined(struct sb_interp *interp, struct space *space, struct found *found,
			const struct sb_interp_frame *frame)
{
	const struct sb_runtime_ops *ops = found->rt.ops;
	uint32_t i;
	int err;

	for (i = 0; ops->describe_inlined && i < INLINED_MAX; i++) {
		clear_text(&interp->inlined);
		err = ops->describe_inlined(&found->rt, frame, i, &interp->inlined);
		if (!err && interp->inlined.name.len)
			err = keep_text(space, &interp->inlined, false);
		if (err)
			return err == -ENOMEM ? err : 0;
	}
	return 0;
}

/* Return: as ops->describe(). After an error other than -ENOMEM it has kept nothing in the arena,
 * which only grows, because a name that cannot be read is tried again and again. */
static int describe(struct sb_interp *interp, struct space *space, struct found *found,
		    const struct sb_interp_frame *frame)
{
	int err, own;

	found->rt.wants_lines = interp->opts.lines;
	clear_text(&interp->text);
	own = found->rt.ops->describe(&found->rt, frame, &interp->text);
	if (!own && !interp->text.name.len)
		return -EBADMSG;
	/* -ENODATA: the frame stands for inlined functions only, or for nothing. */
	if (own && own != -ENODATA)
		return own;
	err = keep_inlined(interp, space, found, frame);
	return err || own ? err : keep_text(space, &interp->text, false);
}

static int add_name(struct sb_interp *interp, struct space *space, const struct name *name)
{
	int err = sb_vec_push(&space->names, *name);

	if (err)
		return err;
	err = sb_index_add(&space->names_index, hash_frame(name->obj, name->where),
			   (uint32_t)space->names.nr - 1);
	if (err) {
		space->names.nr--;
		return err;
	}
	interp->stats.nr_names++;
	interp->stats.nr_unreadable += name->nr_bad > 0;
	return 0;
}

/* The time in ms. It wraps, and is used for differences only. */
static uint32_t now_ms(void)
{
	return (uint32_t)(sb_now_ns() / 1000000);
}

/* Read the name of a frame that is not known, or that could not be read before. */
static int read_name(struct sb_interp *interp, struct space *space,
		     const struct sb_interp_frame *frame)
{
	struct found *found = sb_interp_found_of(space, sb_where_runtime(frame->where));
	struct name *known = find_name(space, frame);
	struct name name = {
		.obj = frame->obj,
		.where = frame->where & ~SB_WHERE_END,
		.first = (uint32_t)space->texts.nr,
	};
	int err = found ? describe(interp, space, found, frame) : -EFAULT;

	if (found && err != -ENOMEM)
		*(err ? &found->nr_bad : &found->nr_ok) += 1;
	if (err && err != -ENOMEM) {
		if (known) {
			known->nr_bad++;
			known->bad_ms = now_ms();
			return 0;
		}
		name.nr_bad = 1;
		name.bad_ms = now_ms();
		err = keep_unreadable(interp, space, found);
	}
	name.nr = (uint32_t)space->texts.nr - name.first;
	if (!err && !known)
		err = add_name(interp, space, &name);
	if (err) {
		space->texts.nr = name.first;
		return err;
	}
	if (known) {
		*known = name;
		interp->stats.nr_unreadable--;
	}
	return 0;
}

/*
 * A function that cannot be read may just have been created or freed, and one that is made again
 * and again lies at the same place the next time. So it is read again when a sample has it. Many
 * such samples come at the same moment, and a process that waits for a CPU does not change: the
 * next attempts are made after 1, 4, 9, ... ms, 14 in the first second. They do not end before the
 * address space does, because a recorder runs for months, but become rare. After its end, another
 * process or program may have its number.
 */
static bool needs_name(const struct sb_interp *interp, const struct space *space,
		       const struct sb_interp_frame *frame)
{
	const struct name *known = find_name(space, frame);

	if (!known)
		return space->names.nr < NAMES_MAX;
	return known->nr_bad &&
	       now_ms() - known->bad_ms >= (uint64_t)known->nr_bad * known->nr_bad &&
	       !sb_processes_has_ended(interp->opts.processes, &space->key);
}

/* Return: whether a runtime has turned out to be unreadable since the last call, so that it is
 * reported once. */
static bool has_gone_bad(struct space *space)
{
	bool is_new = false;
	size_t i;

	for (i = 0; i < space->nr_found; i++) {
		struct found *found = space->found[i];

		if (!found->is_attached || found->has_gone_bad || !sb_interp_is_unreadable(found))
			continue;
		found->has_gone_bad = is_new = true;
	}
	return is_new;
}

/* Describe a frame with the pages that are there, or note which one it lacks. */
static void note_pages(struct sb_interp *interp, struct space *space,
		       const struct sb_interp_frame *frame, struct sb_pages *pages)
{
	struct found *found = sb_interp_found_of(space, sb_where_runtime(frame->where));

	pages->is_short = false;
	if (!found || !found->rt.ops->describes_purely)
		return;
	found->rt.wants_lines = interp->opts.lines;
	clear_text(&interp->text);
	(void)found->rt.ops->describe(&found->rt, frame, &interp->text);
}

/* Each page that a name needs is one access to the process: read those of all names at once. What
 * is not read here is read when the name is. */
static void read_ahead(struct sb_interp *interp, struct space *space,
		       const struct sb_interp_frame *frames, size_t nr, struct sb_pages *pages)
{
	size_t round, i;

	if (pages->ended_tgid)
		return;
	pages->is_noting = true;
	for (round = 0; round < ROUNDS_MAX && (!round || sb_pages_fetch(pages)); round++)
		for (i = 0; i < nr; i++)
			if (needs_name(interp, space, &frames[i]))
				note_pages(interp, space, &frames[i], pages);
	pages->is_noting = pages->is_short = false;
}

static int read_names(struct sb_interp *interp, struct space *space,
		      const struct sb_interp_frame *frames, size_t nr)
{
	const struct sb_memory before = space->memory;
	/* After execve() the process is there, but another program is at these addresses. */
	const bool is_there = sb_procfs_exists(before.tgid) &&
			      !sb_processes_has_ended(interp->opts.processes, &space->key);
	struct sb_pages pages = {
		.tgid = before.tgid,
		.ended_tgid = is_there ? 0 : before.tgid,
	};
	struct sb_memory_recent recent = { .nr = 0 };
	const size_t nr_bytes = space->arena.nr_bytes;
	size_t i;
	int err = 0;

	space->memory.read = sb_pages_read;
	space->memory.read_again = sb_pages_read_again;
	space->memory.want = sb_pages_want;
	space->memory.want_target = sb_pages_want_target;
	space->memory.arg = &pages;
	read_ahead(interp, space, frames, nr, &pages);
	space->memory.recent = &recent;
	for (i = 0; i < nr && !err; i++)
		if (needs_name(interp, space, &frames[i]))
			err = read_name(interp, space, &frames[i]);
	interp->stats.nr_bytes += space->arena.nr_bytes - nr_bytes;
	space->memory = before;
	sb_pages_release(&pages);
	return err;
}

int sb_interp_fetch(struct sb_interp *interp, const struct sb_space_key *key,
		    const struct sb_interp_frame *frames, size_t nr)
{
	uint64_t start_ns = sb_now_ns();
	struct space *space;
	int err;

	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	err = space ? read_names(interp, space, frames, nr) : 0;
	if (!err && space && has_gone_bad(space))
		err = -ENOTSUP;
	interp->stats.fetch_ns += sb_now_ns() - start_ns;
	pthread_mutex_unlock(&interp->lock);
	return err;
}

static int copy_text(const struct text *text, struct sb_interp_name *name)
{
	int err = sb_str_add(&name->name, text->name);

	if (!err && text->file)
		err = sb_str_add(&name->file, text->file);
	name->line = text->line;
	name->is_unnamed = text->is_unnamed;
	name->is_glue = text->is_glue;
	return err;
}

static int get_name(struct sb_interp *interp, struct space *space,
		    const struct sb_interp_frame *frame, uint32_t i, struct sb_interp_name *name)
{
	static const struct text forgotten = { .name = "[forgotten frame]", .is_unnamed = true };
	const struct name *known = space ? find_name(space, frame) : NULL;
	int err = 0;

	if (space && needs_name(interp, space, frame)) {
		interp->stats.nr_late++;
		err = read_names(interp, space, frame, 1);
		known = find_name(space, frame);
	}
	if (err)
		return err;
	if (!known)
		return i ? -ENODATA : copy_text(&forgotten, name);
	return i < known->nr ? copy_text(&space->texts.at[known->first + i], name) : -ENODATA;
}

int sb_interp_name(struct sb_interp *interp, const struct sb_space_key *key,
		   const struct sb_interp_frame *frame, uint32_t i, struct sb_interp_name *name)
{
	int err;

	sb_str_clear(&name->name);
	sb_str_clear(&name->file);
	pthread_mutex_lock(&interp->lock);
	err = get_name(interp, sb_interp_find(interp, key), frame, i, name);
	pthread_mutex_unlock(&interp->lock);
	return err;
}

uint64_t sb_interp_c_function(struct sb_interp *interp, const struct sb_space_key *key,
			      const struct sb_interp_frame *frame)
{
	const struct name *known;
	struct space *space;
	uint64_t native = 0;

	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	known = space ? find_name(space, frame) : NULL;
	if (known && known->nr)
		native = space->texts.at[known->first + known->nr - 1].native;
	pthread_mutex_unlock(&interp->lock);
	return native;
}

void sb_interp_name_release(struct sb_interp_name *name)
{
	sb_str_release(&name->name);
	sb_str_release(&name->file);
}
