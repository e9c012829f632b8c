// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is known of a file that contains V8. Finding it takes tens of milliseconds, because node has
 * a hundred thousand symbols, so it is cached for later processes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "interp/v8/v8_priv.h"

/* The builtins of any version are larger, and smaller than this. */
#define BUILTINS_BYTES_MIN (512u << 10)
#define BUILTINS_BYTES_MAX (64u << 20)
#define FILES_MAX	   8

/* The files that were looked at last, by build ID. Addresses are the files' own. */
static struct kept {
	char build_id[96];
	struct sb_v8_file file;
} kept[FILES_MAX];
static size_t next_kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

/* Where the file has its builtins: generated code, without unwind information. */
struct gap_search {
	struct sb_image *image;
	uint64_t end;		/* of the function before */
	struct sb_range widest; /* gap between two functions */
};

static int look_at_gap(void *arg, uint64_t begin, uint64_t end)
{
	struct gap_search *search = arg;

	if (search->end && begin > search->end &&
	    begin - search->end > search->widest.end - search->widest.begin)
		search->widest = (struct sb_range){ search->end, begin };
	if (end > search->end)
		search->end = end;
	return 0;
}

static int find_builtins(struct sb_image *image, struct sb_range *ret)
{
	/* The second name was that of a pointer as long as the first one existed: to V8 10. */
	static const char *const names[] = { "v8_Default_embedded_blob_code_data_",
					     "v8_Default_embedded_blob_code_" };
	struct gap_search search = { .image = image };
	uint64_t begin, size_at;
	uint32_t size;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sb_image_symbol(image, names[i], &begin, NULL) ||
		    sb_image_symbol(image, "v8_Default_embedded_blob_code_size_", &size_at, NULL) ||
		    sb_image_read(image, size_at, &size, sizeof(size)) ||
		    size < BUILTINS_BYTES_MIN || size > BUILTINS_BYTES_MAX)
			continue;
		*ret = (struct sb_range){ begin, begin + size };
		return 0;
	}
	/* A stripped file: nothing else that large is without it. */
	sb_image_functions(image, look_at_gap, &search);
	if (search.widest.end - search.widest.begin < BUILTINS_BYTES_MIN ||
	    search.widest.end - search.widest.begin > BUILTINS_BYTES_MAX)
		return -ENOENT;
	*ret = search.widest;
	return 0;
}

/* Bytecodes::kBytecodeSizes, for lines in code that was compiled without optimisation. */
static void read_bytecode_sizes(struct sb_image *image, struct sb_v8_file *file)
{
	uint64_t addr, size;

	if (sb_image_symbol(image, "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE", &addr,
			    &size) ||
	    !size || size % 3 || size > sizeof(file->bytecode_sizes) ||
	    sb_image_read(image, addr, file->bytecode_sizes, size))
		return;
	file->nr_bytecodes = size / 3;
}

/* What V8::GetVersion() is made of. */
static void read_version(struct sb_image *image, struct sb_v8_file *file)
{
	static const char *const names[] = { "_ZN2v88internal7Version6major_E",
					     "_ZN2v88internal7Version6minor_E",
					     "_ZN2v88internal7Version6build_E" };
	uint64_t addr;
	size_t i;

	for (i = 0; i < 3; i++)
		if (sb_image_symbol(image, names[i], &addr, NULL) ||
		    sb_image_read(image, addr, &file->version[i], sizeof(file->version[i])))
			file->version[i] = 0;
}

static int read_file(struct sb_image *image, struct sb_v8_file *file, struct sb_str *why)
{
	int err = sb_v8_layout_read(image, &file->layout, why);

	if (!err)
		err = sb_image_symbol(image, SB_V8_MARKER, &file->marker, NULL);
	if (err)
		return err;
	if (find_builtins(image, &file->builtins)) {
		sb_str_add(why, "its builtins were not found");
		return -ENOTSUP;
	}
	read_version(image, file);
	read_bytecode_sizes(image, file);
	return 0;
}

static void move(struct sb_v8_file *file, uint64_t by)
{
	file->marker += by;
	file->builtins.begin += by;
	file->builtins.end += by;
}

static struct kept *find_kept(const char *build_id)
{
	size_t i;

	for (i = 0; i < FILES_MAX; i++)
		if (sb_streq(kept[i].build_id, build_id))
			return &kept[i];
	return NULL;
}

int sb_v8_file_get(struct sb_image *image, struct sb_v8_file *ret_file, struct sb_str *why)
{
	/* "no build ID" cannot be told from another one. */
	const char *build_id = sb_image_build_id(image);
	bool is_known = strncmp(build_id, "no ", 3) != 0;
	struct sb_v8_file file = {};
	struct kept *at;
	int err;

	pthread_mutex_lock(&kept_lock);
	at = is_known ? find_kept(build_id) : NULL;
	if (at) {
		*ret_file = at->file;
		move(ret_file, sb_image_bias(image));
		pthread_mutex_unlock(&kept_lock);
		return 0;
	}
	err = read_file(image, &file, why);
	if (!err)
		*ret_file = file;
	if (!err && is_known) {
		at = &kept[next_kept++ % FILES_MAX];
		snprintf(at->build_id, sizeof(at->build_id), "%s", build_id);
		at->file = file;
		move(&at->file, -sb_image_bias(image));
	}
	pthread_mutex_unlock(&kept_lock);
	return err;
}
