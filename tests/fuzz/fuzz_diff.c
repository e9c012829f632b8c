// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Folded text with two counts a line: as that with one, and drawn in each way there is. */
#include "fg_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(const uint8_t *data, size_t size, const char *name, const char *value)
{
	struct sb_fg *fg = read_text(DIFF, (const char *)data, size, NULL);
	struct sb_fg_opts *opts = NULL;
	FILE *out = fopen("/dev/null", "we");
	int err;

	must(out && !sb_fg_opts_new(&opts) && !sb_fg_opts_set(opts, name, value));
	/* What is drawn is what is kept. */
	must(!sb_fg_opts_set(opts, "no-embed", NULL));
	err = sb_fg_render(fg, opts, out);
	must(!err || err == -ENODATA);
	fclose(out);
	sb_fg_opts_free(opts);
	sb_fg_free(fg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_input(DIFF, data, size);
	check_input("", data, size);
	draw(data, size, "norm", "raw");
	draw(data, size, "diff-width", "both");
	draw(data, size, "diff-width", "a");
	return 0;
}
