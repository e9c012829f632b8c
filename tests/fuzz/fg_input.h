/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any input gives a tree that holds its weight, and whose folded text, read again, gives the same
 * text. Shared by the fuzzers of the input formats.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/str.h"
#include "flamegraph/fg.h"
#include "flamegraph/opts.h"
#include "flamegraph/reader.h"
#include "must.h"

/* Or a first frame "<svg" would make it a picture (see is_other_file()), and one "a 1" a
 * comparison. */
#define FOLDED	  "#stackbpf;v=1\n"
#define DIFF	  "#stackbpf;norm=share\n"
#define EXACT_MAX 9007199254740992.0 /* 2^53: sums beyond are rounded */

static int put_str(void *arg, const char *s, size_t len)
{
	return sb_str_addn(arg, s, len);
}

static struct sb_fg *read_text(const char *head, const char *text, size_t len, const char *option)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	struct sb_fg_opts *opts = NULL;
	struct sb_fg *fg = NULL;
	int err;

	must(fd >= 0 && !sb_write_all(fd, head, strlen(head)) && !sb_write_all(fd, text, len));
	must(!lseek(fd, 0, SEEK_SET) && !sb_fg_opts_new(&opts) && !sb_fg_new(&fg));
	must(!option || !sb_fg_opts_set(opts, option, NULL));
	sb_fg_shape(fg, opts);
	err = sb_fg_read(fg, fd);
	must(!err || (err == -EINVAL && fg->hint));
	while (sb_fg_complaint(fg))
		;
	sb_fg_opts_free(opts);
	close(fd);
	return fg;
}

static void fold(struct sb_fg *fg, struct sb_str *text)
{
	double total = sb_fg_total(fg), sum;

	must(!sb_tree_seal(&fg->tree, SB_TREE_SORT_WEIGHT));
	must(!sb_tree_seal(&fg->tree, SB_TREE_SORT_NAME));
	sum = fg->tree.nodes.at[0].total;
	must(fg->tree.has_fractions || total > EXACT_MAX || sum == total);
	must(!sb_fg_tree_fold(&fg->tree, put_str, text));
	sb_fg_free(fg);
}

static void check_input(const char *head, const uint8_t *data, size_t size)
{
	struct sb_str once = {}, twice = {}, other = {};
	struct sb_fg *fg = read_text(head, (const char *)data, size, NULL);
	double total = sb_fg_total(fg);
	size_t i;
	const char *comment = fg->tree.pairs.nr ? DIFF : FOLDED;
	bool has_fractions = fg->tree.has_fractions; /* which beyond 2^52 are rounded away */

	fold(fg, &once);
	if (once.len && total < EXACT_MAX) {
		fg = read_text(comment, once.s, once.len, NULL);
		for (i = 0; i < SB_FG_BAD_BYTES; i++)
			must(!fg->problems[i].nr);
		must(has_fractions || sb_fg_total(fg) == total);
		fold(fg, &twice);
		fg = read_text(comment, twice.s, twice.len, NULL);
		fold(fg, &other);
		must(other.len == twice.len && !memcmp(other.s, twice.s, twice.len));
	}
	sb_str_clear(&other);
	fold(read_text(head, (const char *)data, size, "flamechart"), &other);
	fold(read_text(head, (const char *)data, size, "reverse"), &other);
	sb_str_release(&once);
	sb_str_release(&twice);
	sb_str_release(&other);
}
