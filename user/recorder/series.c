// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recorder/series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/time.h"
#include "base/utf8.h"
#include "recorder/series_priv.h"

/* series_key.labels: all that an owner has beyond its share; proc is any process of the owner. */
#define OTHER_OF_OWNER UINT32_MAX

/* Series are for owners by their shares; one more for each owner is "(other)", and one for each
 * kind. */
#define SERIES_MAX     (SB_BLOCK_SERIES_MAX - SB_SHARE_OWNERS_MAX - 1)

int sb_series_new(const struct sb_series_opts *opts, struct sb_series_table **ret_table)
{
	struct sb_series_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->opts = *opts;
	table->began_boot_ns = sb_boot_ns();
	*ret_table = table;
	return 0;
}

void sb_series_free(struct sb_series_table *table)
{
	if (!table)
		return;
	sb_series_release_procs(table);
	sb_vec_release(&table->keys);
	sb_vec_release(&table->tags);
	sb_index_release(&table->keys_index);
	sb_strtab_release(&table->label_sets);
	sb_str_release(&table->text);
	sb_arena_release(&table->arena);
	free(table);
}

void sb_series_begin(struct sb_series_table *table, struct sb_processes *processes,
		     struct sb_interp *interp)
{
	table->processes = processes;
	table->interp = interp;
}

uint32_t sb_series_by(const struct sb_series_table *table)
{
	return SB_BY_CGROUP | (table->opts.by_thread ? SB_BY_THREAD : 0);
}

/* Room for all tags of a sample. */
struct tag_list {
	struct sb_tag at[SB_DICT_TAGS_MAX];
	size_t nr;
};

static int add_tag(struct sb_series_table *table, struct tag_list *list, const char *key,
		   const char *value, bool is_wide)
{
	struct sb_tag *tag = &list->at[list->nr];

	if (!value || !value[0] || list->nr == SB_ARRAY_SIZE(list->at))
		return 0;
	tag->key = key;
	tag->is_wide = is_wide;
	tag->value = sb_arena_strndup(&table->arena, value, strlen(value));
	list->nr += !!tag->value;
	return tag->value ? 0 : -ENOMEM;
}

static int add_number(struct sb_series_table *table, struct tag_list *list, const char *key,
		      uint32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	return add_tag(table, list, key, text, true);
}

/* Those from inside the code: a label that is asked for is kept as long as other tags. */
static int add_labels(struct sb_series_table *table, uint32_t set, struct tag_list *list)
{
	const char *at = sb_strtab_get(&table->label_sets, set, NULL);
	size_t i;
	int err = 0;

	for (i = 0; i < table->opts.nr_labels && !err; i++, at += strlen(at) + 1)
		err = add_tag(table, list, table->opts.labels[i], at, false);
	return err;
}

/*
 * A thousand compilers of a build would be a thousand rows for each of their stacks. Who was there
 * when the block began, or is there still, is not one of many that come and go.
 */
static bool lasts(const struct sb_series_table *table, const struct proc_tags *proc)
{
	char path[32];

	if (proc->start_ns <= table->began_boot_ns)
		return true;
	snprintf(path, sizeof(path), "/proc/%u", proc->tgid);
	return sb_can_access(path, F_OK);
}

/* More that is known of a sample becomes a tag here, and a part of struct series_key. */
static int add_tags(struct sb_series_table *table, const struct series_key *key,
		    struct tag_list *list)
{
	const struct proc_tags *proc = &table->procs.at[key->proc];
	const bool has_number = lasts(table, proc);
	char comm[SB_COMM_LEN + 1] = {};
	int err;

	memcpy(comm, key->comm, sizeof(key->comm));
	sb_replace_controls(comm, strlen(comm));
	err = add_tag(table, list, "cgroup", proc->cgroup, false);
	if (!err)
		err = add_tag(table, list, "comm", comm, false);
	if (!err)
		err = add_tag(table, list, "container", proc->container, false);
	if (!err && has_number)
		err = add_number(table, list, "pid", proc->tgid);
	if (!err)
		err = add_tag(table, list, "runtime", proc->runtime, false);
	if (!err)
		err = add_tag(table, list, "service", proc->service, false);
	if (!err && key->labels)
		err = add_labels(table, key->labels, list);
	if (!err && table->opts.by_thread && has_number)
		err = add_number(table, list, "tid", key->tid);
	if (!err)
		err = add_tag(table, list, "uid", proc->uid, false);
	return err ? err : add_tag(table, list, "unit", proc->unit, false);
}

static int by_key(const void *a, const void *b)
{
	const struct sb_tag *x = a, *y = b;

	return strcmp(x->key, y->key);
}

static int push_tags(struct sb_series_table *table, struct tag_list *list, uint32_t kind)
{
	size_t nr_bytes = list->nr * sizeof(list->at[0]);
	struct sb_tag *tags = sb_arena_alloc(&table->arena, nr_bytes + 1);

	if (!tags)
		return -ENOMEM;
	qsort(list->at, list->nr, sizeof(list->at[0]), by_key);
	memcpy(tags, list->at, nr_bytes);
	return sb_vec_push(&table->tags,
			   (struct sb_block_tags){ .at = tags, .nr = list->nr, .kind = kind });
}

/* The first series: its number is that of the kind. */
static int make_other(struct sb_series_table *table, uint32_t kind)
{
	struct tag_list list = {};
	int err = add_tag(table, &list, "comm", "(other)", false);

	if (!err)
		err = add_tag(table, &list, "service", "(other)", false);
	return err ? err : push_tags(table, &list, kind);
}

static int add_owner_tags(struct sb_series_table *table, const struct proc_tags *proc,
			  struct tag_list *list)
{
	const struct sb_tag tags[] = {
		{ .key = "cgroup", .value = proc->cgroup ? proc->cgroup : "" },
		{ .key = "uid", .value = proc->uid },
	};
	struct sb_share_tags owner;
	size_t i;
	int err = 0;

	sb_share_tags(proc->owner, tags, SB_ARRAY_SIZE(tags), &owner);
	for (i = 0; i < owner.nr && !err; i++)
		err = add_tag(table, list, owner.at[i].key, owner.at[i].value, false);
	return err;
}

static int make_tags(struct sb_series_table *table, const struct series_key *key)
{
	struct tag_list list = {};
	int err = key->labels == OTHER_OF_OWNER
			  ? add_owner_tags(table, &table->procs.at[key->proc], &list)
			  : add_tags(table, key, &list);

	return err ? err : push_tags(table, &list, key->kind);
}

/* Return: 0; -E2BIG: @owner has no share left; -ENOMEM. */
static int find_series(struct sb_series_table *table, const struct series_key *key,
		       struct owner *owner, uint32_t *ret_series)
{
	uint64_t hash = sb_hash(key, sizeof(*key), 0);
	int err;

	sb_index_each(it, &table->keys_index, hash) {
		if (!memcmp(&table->keys.at[it.id], key, sizeof(*key))) {
			*ret_series = table->opts.nr_kinds + it.id;
			return 0;
		}
	}
	if (key->labels != OTHER_OF_OWNER &&
	    !sb_share_allows(SERIES_MAX, table->nr_keys[key->kind], owner->nr_keys[key->kind]))
		return -E2BIG;
	err = sb_index_push(&table->keys_index, hash, &table->keys, *key);
	if (err)
		return err;
	table->nr_keys[key->kind] += key->labels != OTHER_OF_OWNER;
	owner->nr_keys[key->kind]++;
	*ret_series = table->opts.nr_kinds + (uint32_t)table->keys.nr - 1;
	return 0;
}

/* Number the values of a thread's labels. Longer ones are cut, as those of all tags. */
static int find_label_set(struct sb_series_table *table, const char *const *labels,
			  uint32_t *ret_number)
{
	bool has_any = false;
	int err = 0;
	size_t i;

	*ret_number = 0;
	sb_str_clear(&table->text);
	for (i = 0; i < table->opts.nr_labels && !err; i++) {
		if (labels[i])
			err = sb_str_addn(&table->text, labels[i],
					  strnlen(labels[i], SB_SERIES_VALUE_BYTES_MAX));
		if (!err)
			err = sb_str_addc(&table->text, '\0');
		has_any |= labels[i] != NULL;
	}
	if (err || !has_any)
		return err;
	if (!table->label_sets.strs.nr)
		err = sb_strtab_init(&table->label_sets);
	return err ? err
		   : sb_strtab_add(&table->label_sets, table->text.s, table->text.len, ret_number);
}

/* What has no place of its own is its owner's; who has no process here has none, either. */
static int find_other(struct sb_series_table *table, struct owner *owner, uint32_t kind,
		      uint32_t *ret_series)
{
	struct series_key key;

	*ret_series = kind;
	if (!owner->nr_procs)
		return 0;
	memset(&key, 0, sizeof(key));
	key.kind = kind;
	key.proc = owner->proc;
	key.labels = OTHER_OF_OWNER;
	return find_series(table, &key, owner, ret_series);
}

int sb_series_of(void *arg, const struct sb_sample_key *sample, const char *const *labels,
		 uint32_t *ret_series)
{
	struct sb_series_table *table = arg;
	struct series_key key;
	uint32_t owner = 0;
	int err;

	table->is_in_use = true;
	memset(&key, 0, sizeof(key));
	key.kind = sample->view;
	key.tid = table->opts.by_thread ? sample->tid : 0;
	memcpy(key.comm, sample->comm, strnlen(sample->comm, sizeof(sample->comm)));
	err = find_label_set(table, labels, &key.labels);
	if (!err)
		err = sb_series_find_proc(table, sample, &key.proc, &owner);
	if (!err)
		sb_series_note_runtime(table, &table->procs.at[key.proc]);
	if (!err)
		err = find_series(table, &key, &table->owner[owner], ret_series);
	return err == -E2BIG ? find_other(table, &table->owner[owner], key.kind, ret_series) : err;
}

int sb_series_all(struct sb_series_table *table, const struct sb_block_tags **ret_tags,
		  size_t *ret_nr)
{
	uint32_t kind;
	size_t i;
	int err = 0;

	table->tags.nr = 0;
	sb_arena_release(&table->arena);
	for (kind = 0; kind < table->opts.nr_kinds && table->is_in_use && !err; kind++)
		err = make_other(table, kind);
	for (i = 0; i < table->keys.nr && !err; i++)
		err = make_tags(table, &table->keys.at[i]);
	*ret_tags = table->tags.at;
	*ret_nr = table->tags.nr;
	return err;
}

void sb_series_next_block(struct sb_series_table *table)
{
	table->block++;
	table->began_boot_ns = sb_boot_ns();
	sb_series_forget_procs(table);
	table->keys.nr = 0;
	memset(table->nr_keys, 0, sizeof(table->nr_keys));
	table->is_in_use = false;
	sb_index_release(&table->keys_index);
	sb_strtab_release(&table->label_sets);
	memset(&table->label_sets, 0, sizeof(table->label_sets));
}
