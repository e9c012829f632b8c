// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/fold.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"

/* What stackcollapse-perf.pl appends and flamegraph.pl understands. */
static const char *const annotations[SB_FRAME_KIND_MAX] = {
	[SB_FRAME_INLINED] = "_[i]",
	[SB_FRAME_JIT] = "_[j]",
	[SB_FRAME_KERNEL] = "_[k]",
	[SB_FRAME_KERNEL_INLINED] = "_[k]",
	/* Ours: flamegraph(1). */
	[SB_FRAME_FILE] = "_[f]",
	[SB_FRAME_INTERP] = "_[p]",
	[SB_FRAME_WAKER] = "_[w]",
};

/* Bytes that would break the line apart: ; separates frames, controls separate lines. */
static int add_clean(struct sb_str *str, const char *s)
{
	size_t len = strlen(s);
	int err = sb_str_addn(str, s, len);
	char *at, *end;

	if (err)
		return err;
	at = str->s + str->len - len;
	end = at + len;
	sb_replace_controls(at, len);
	while ((at = memchr(at, ';', (size_t)(end - at))))
		*at = ':';
	return 0;
}

static bool is_code(const struct sb_frame *frame)
{
	return frame->kind != SB_FRAME_ROOT && frame->kind != SB_FRAME_DELIMITER &&
	       frame->kind != SB_FRAME_MARK && frame->kind != SB_FRAME_FILE;
}

/* Where in the code it is, as far as it was asked for. */
static int add_place(struct sb_str *str, const struct sb_frame *frame,
		     const struct sb_fold_opts *opts)
{
	int err = 0;

	if (opts->offsets && !frame->is_unnamed && frame->kind != SB_FRAME_INLINED &&
	    frame->kind != SB_FRAME_INTERP)
		err = sb_str_addf(str, "+0x%llx", (unsigned long long)frame->func_offset);
	if (!err && opts->lines && frame->file && frame->line) {
		err = sb_str_addc(str, ' ');
		if (!err)
			err = add_clean(str, sb_base_name(frame->file));
		if (!err)
			err = sb_str_addf(str, ":%u", frame->line);
	}
	if (!err && opts->modules && frame->module && frame->module[0] && !frame->is_unnamed) {
		bool bracketed = frame->module[0] == '[';

		err = sb_str_add(str, bracketed ? " " : " [");
		if (!err)
			err = add_clean(str, frame->module);
		if (!err && !bracketed)
			err = sb_str_addc(str, ']');
	}
	return err;
}

int sb_fold_frame(struct sb_str *str, const struct sb_frame *frame, const struct sb_fold_opts *opts)
{
	int err = add_clean(str, frame->name);

	if (!err && is_code(frame))
		err = add_place(str, frame, opts);
	if (!err && opts->annotate && annotations[frame->kind])
		err = sb_str_add(str, annotations[frame->kind]);
	return err;
}

/* Readers skip a line that has no space (and so no weight); hence none may be in it. */
static int add_header_value(struct sb_str *str, const char *value)
{
	size_t at = str->len;
	int err = add_clean(str, value);

	for (; !err && at < str->len; at++)
		if (str->s[at] == ' ')
			str->s[at] = '_';
	return err;
}

int sb_fold_header(struct sb_str *str, const struct sb_profile *profile)
{
	const char *key, *value;
	size_t i;
	int err = sb_str_add(str, "#stackbpf;v=1");

	for (i = 0; !err && (key = sb_profile_meta_at(profile, i, &value)); i++) {
		err = sb_str_addf(str, ";%s=", key);
		if (!err)
			err = add_header_value(str, value);
	}
	return err;
}

int sb_fold_stack(struct sb_str *str, const struct sb_profile *profile, size_t i,
		  const struct sb_fold_opts *opts)
{
	uint64_t weight;
	size_t nr, at, begin = str->len;
	const uint32_t *ids = sb_profile_stack_at(profile, i, &nr, &weight);
	int err = 0;

	for (at = 0; at < nr && !err; at++) {
		if (at)
			err = sb_str_addc(str, ';');
		if (!err)
			err = sb_fold_frame(str, sb_profile_frame_at(profile, ids[at]), opts);
	}
	/* Else the line would be a comment. */
	if (!err && str->len > begin && str->s[begin] == '#')
		str->s[begin] = '?';
	if (!err)
		err = sb_str_addc(str, ' ');
	return err ? err : sb_str_addu(str, weight);
}

int sb_fold(const struct sb_profile *profile, const struct sb_fold_opts *opts,
	    int (*fn)(void *arg, const char *line, size_t len), void *arg)
{
	sb_cleanup(sb_str_release) struct sb_str line = {};
	size_t i, nr = sb_profile_nr_stacks(profile);
	int err = 0;

	if (opts->limit && nr > opts->limit)
		nr = opts->limit;
	if (opts->header) {
		err = sb_fold_header(&line, profile);
		if (!err)
			err = fn(arg, line.s, line.len);
	}
	for (i = 0; i < nr && err >= 0; i++) {
		sb_str_clear(&line);
		err = sb_fold_stack(&line, profile, i, opts);
		if (!err)
			err = fn(arg, line.s, line.len);
	}
	return err < 0 ? err : 0;
}
