// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Answers that are kept for another seat. At the start of a run, the first samples of each process
 * are walked in user space (SB_PARSER_NAMES), and the tables of the same files are built for the
 * kernel (SB_PARSER_TABLES). Each answer is handed out once, so memory does not hold what both
 * seats have. An answer comes from a worker that parses files of one owner only, and belongs to one
 * state of one file, so that no owner can speak for the file of another.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "symbolizer/elf/elf_file.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/unwind/parser_priv.h"

static int identify(const struct sb_elf *elf, struct sb_parser_file *ret_file)
{
	struct stat st;
	int err = sb_reader_fstat(elf->fd, &st);

	if (err)
		return err;
	*ret_file = (struct sb_parser_file){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.uid = st.st_uid,
		.size = (uint64_t)st.st_size,
		.mtime = st.st_mtim,
		.ctime = st.st_ctim,
	};
	return 0;
}

int sb_parser_key_init(struct sb_parser_key *key, const struct sb_elf *elf,
		       const struct sb_elf *debug)
{
	int err;

	memset(key, 0, sizeof(*key));
	if (elf->image || (debug && debug->image))
		return -ENOENT;
	err = identify(elf, &key->file);
	return err || !debug ? err : identify(debug, &key->debug);
}

/* Take the answer out. Return: its bytes, which the caller owns. */
static void *remove_at(struct sb_parser_kept *kept, size_t i)
{
	void *bytes = kept->at[i].bytes;

	kept->nr_bytes -= kept->at[i].len;
	kept->nr--;
	memmove(&kept->at[i], &kept->at[i + 1], (kept->nr - i) * sizeof(kept->at[0]));
	return bytes;
}

/* Return: where the answer is, or kept->nr: there is none. */
static size_t find(const struct sb_parser_kept *kept, const struct sb_parser_key *key)
{
	size_t i;

	for (i = 0; i < kept->nr; i++)
		if (!memcmp(&kept->at[i].key, key, sizeof(*key)))
			break;
	return i;
}

void *sb_parser_kept_take(struct sb_parser_kept *kept, const struct sb_parser_key *key,
			  const struct sb_parser_seat *seat, size_t *ret_len)
{
	void *bytes = NULL;
	size_t i;

	pthread_mutex_lock(&kept->lock);
	i = find(kept, key);
	if (i < kept->nr && kept->at[i].seat != seat) {
		*ret_len = kept->at[i].len;
		bytes = remove_at(kept, i);
	}
	pthread_mutex_unlock(&kept->lock);
	return bytes;
}

void sb_parser_kept_put(struct sb_parser_kept *kept, const struct sb_parser_key *key,
			const struct sb_parser_seat *seat, const void *bytes, size_t len)
{
	void *copy = len <= SB_PARSER_KEPT_BYTES_MAX ? malloc(len) : NULL;
	size_t i;

	if (!copy)
		return;
	memcpy(copy, bytes, len);
	pthread_mutex_lock(&kept->lock);
	i = find(kept, key);
	if (i < kept->nr)
		free(remove_at(kept, i));
	while (kept->nr == SB_PARSER_KEPT_MAX || kept->nr_bytes + len > SB_PARSER_KEPT_BYTES_MAX)
		free(remove_at(kept, 0));
	kept->nr_bytes += len;
	kept->at[kept->nr++] = (struct sb_parser_answer_kept){
		.key = *key, .seat = seat, .bytes = copy, .len = len
	};
	pthread_mutex_unlock(&kept->lock);
}

void sb_parser_kept_release(struct sb_parser_kept *kept)
{
	while (kept->nr)
		free(remove_at(kept, 0));
}
