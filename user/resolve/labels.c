// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/labels.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

/* A program may make a new set for each request. */
#define SETS_MAX  32768u
/* Of what they say; beyond it, "(other)", which is counted. */
#define BYTES_MAX (16u << 20)

void sb_labels_table_release(struct sb_labels_table *table)
{
	size_t i;

	for (i = 0; i < table->at.nr; i++)
		free(table->at.at[i].text);
	sb_vec_release(&table->at);
	sb_vec_release(&table->evicted);
	sb_index_release(&table->index);
}

static struct sb_known_labels *find(struct sb_labels_table *table, uint64_t id)
{
	struct sb_index_iter it;

	for (it = sb_index_first(&table->index, id); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&table->index, it))
		if (table->at.at[it.id].id == id)
			return &table->at.at[it.id];
	return NULL;
}

/* Copy a text. If there is no room for it, *ret_text is NULL. Return: 0 or -ENOMEM. */
static int copy_text(struct sb_labels_table *table, const struct sb_batch_labels *from,
		     char **ret_text)
{
	*ret_text = NULL;
	if (!from->nr_bytes || table->nr_bytes + from->nr_bytes > BYTES_MAX)
		return 0;
	*ret_text = malloc(from->nr_bytes);
	if (!*ret_text)
		return -ENOMEM;
	memcpy(*ret_text, from->text, from->nr_bytes);
	table->nr_bytes += from->nr_bytes;
	return 0;
}

/* A known set was shipped again: the BPF side had no room to remember it, or more of its keys are
 * known by now. */
static int keep_again(struct sb_labels_table *table, struct sb_known_labels *labels,
		      const struct sb_batch_labels *from)
{
	char *text;
	int err;

	if (labels->nr_bytes == from->nr_bytes && labels->text &&
	    !memcmp(labels->text, from->text, from->nr_bytes))
		return 0;
	err = copy_text(table, from, &text);
	if (err)
		return err;
	table->nr_bytes -= labels->text ? labels->nr_bytes : 0;
	free(labels->text);
	labels->text = text;
	labels->nr_bytes = from->nr_bytes;
	return 0;
}

int sb_labels_table_keep(struct sb_labels_table *table, const struct sb_batch_labels *from,
			 uint64_t batch)
{
	struct sb_known_labels labels = { .id = from->id,
					  .batch = batch,
					  .nr_bytes = from->nr_bytes },
			       *known = find(table, from->id);
	int err;

	if (known)
		return keep_again(table, known, from);
	err = sb_vec_reserve(&table->at, table->at.nr + 1);
	if (!err)
		err = copy_text(table, from, &labels.text);
	if (err)
		return err;
	table->at.at[table->at.nr++] = labels;
	return sb_index_add(&table->index, from->id, (uint32_t)table->at.nr - 1);
}

const struct sb_known_labels *sb_labels_table_find(struct sb_labels_table *table, uint64_t id,
						   uint64_t batch)
{
	struct sb_known_labels *labels = find(table, id);

	if (!labels)
		return NULL;
	labels->batch = batch;
	table->nr_other += labels->nr_bytes && !labels->text;
	return labels;
}

const char *sb_known_labels_value(const struct sb_known_labels *labels, size_t i)
{
	const char *at = labels->text, *end = at + labels->nr_bytes;

	if (!labels->nr_bytes)
		return NULL;
	if (!at)
		return "(other)";
	for (; i && at < end; i--)
		at += strlen(at) + 1;
	return at < end && *at ? at : NULL;
}

int sb_labels_table_shed(struct sb_labels_table *table, uint64_t batch)
{
	size_t i, nr = 0;
	int err = 0;

	table->evicted.nr = 0;
	if (table->at.nr < SETS_MAX && table->nr_bytes < BYTES_MAX / 2)
		return 0;
	for (i = 0; i < table->at.nr && !err; i++) {
		struct sb_known_labels *labels = &table->at.at[i];

		if (labels->batch + 1 >= batch) {
			table->at.at[nr++] = *labels;
			continue;
		}
		err = sb_vec_push(&table->evicted, labels->id);
		table->nr_bytes -= labels->text ? labels->nr_bytes : 0;
		table->nr_evicted++;
		free(labels->text);
	}
	for (; i < table->at.nr; i++)
		table->at.at[nr++] = table->at.at[i];
	table->at.nr = nr;
	sb_index_release(&table->index);
	memset(&table->index, 0, sizeof(table->index));
	for (i = 0; i < nr && !err; i++)
		err = sb_index_add(&table->index, table->at.at[i].id, (uint32_t)i);
	return err;
}
