// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions to a small store: the first byte is the route, the rest the query. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "must.h"
#include "serve/routes.h"
#include "serve/worker.h"
#include "store/store.h"
#include "store_dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sb_serve_opts opts;

static struct sb_profile *make_profile(void)
{
	static const char *const names[] = { "main", "f<\"\\\xff", "g\xe2\x80\xa8" };
	struct sb_profile *profile;
	uint32_t frames[3];
	size_t i;

	must(!sb_profile_new(&profile));
	for (i = 0; i < 3; i++) {
		struct sb_frame frame = { .name = names[i], .module = "m", .kind = SB_FRAME_USER };

		must(!sb_profile_frame(profile, &frame, &frames[i]));
		must(!sb_profile_add(profile, frames, i + 1, 10 * i + 1));
	}
	must(!sb_profile_seal(profile));
	return profile;
}

static void make_store(void)
{
	const struct sb_store_opts write = { .no_sync = true };
	const struct sb_tag tags[] = { { "host", "h", false },
				       { "pid", "1", true },
				       { "service", "car", false } };
	struct sb_profile *profile = make_profile();
	const struct sb_store_series series = { tags, 3 };
	struct sb_store_block block = { .kind = "oncpu",
					.unit = "samples",
					.series = &series,
					.nr = 1,
					.profile = profile,
					.figure = { [SB_BLOCK_SAMPLED_MS] = 10000 } };
	struct sb_store *store;
	int i;

	must(mkdtemp(dir));
	atexit(forget_dir);
	must(!sb_store_open_to_write(dir, &write, &store));
	for (i = 0; i < 100; i++) {
		block.begin_s = T0 + 10 * i;
		must(!sb_store_put(store, &block));
	}
	sb_store_close(store);
	sb_profile_free(profile);
	opts.store_path = dir;
	must(!sb_store_open(dir, &opts.store));
}

/* Whatever is asked, the answer is JSON or one sentence. */
static void check_answer(const struct sb_answer *answer, int fd)
{
	char first;

	must(answer->status == 200 || (answer->status >= 400 && answer->status < 600));
	must((answer->status == 200) == (fd >= 0));
	must((answer->status == 200) == !answer->error[0]);
	must(memchr(answer->error, '\0', sizeof(answer->error)));
	must(memchr(answer->file_name, '\0', sizeof(answer->file_name)));
	if (fd >= 0)
		must(pread(fd, &first, 1, 0) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sb_question question;
	static struct sb_answer answer;
	int fd;

	if (!opts.store)
		make_store();
	if (!size || size - 1 > sizeof(question.query))
		return 0;
	question.route = data[0] % 9;
	question.accepts_gzip = data[0] >> 7;
	question.query_len = (uint32_t)size - 1;
	memcpy(question.query, data + 1, size - 1);
	sb_worker_answer(&opts, &question, &answer, &fd);
	check_answer(&answer, fd);
	if (fd >= 0)
		close(fd);
	return 0;
}
