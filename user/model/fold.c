// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/fold.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"

/* Replace bytes that would break the line: ';' separates frames, control characters end lines. */
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

static const char *const forms[SB_ATTR_KIND_MAX] = {
#define SB_MARK(form, kind, attr) [SB_ATTR_##attr] = (form),
#include "tree/frames.def"
};

int sb_fold_attr(struct sb_str *str, const struct sb_attr *attr)
{
	const char *form = forms[attr->kind];

	switch (attr->kind) {
	case SB_ATTR_PROCESS:
		return sb_str_addf(str, "%s-%u", attr->text, attr->pid);
	case SB_ATTR_THREAD:
		return sb_str_addf(str, "%s-%u/%u", attr->text, attr->pid, attr->tid);
	case SB_ATTR_CPU:
		return sb_str_addf(str, "cpu %u", attr->cpu);
	case SB_ATTR_LABEL:
		return sb_str_addf(str, "%s=%s", attr->key, attr->text);
	case SB_ATTR_TRUNCATED:
		return sb_str_addf(str, "[%s%s%s%s]", attr->key ? attr->key : "",
				   attr->key ? " " : "", form, attr->text);
	default:
		if (form && form[strlen(form) - 1] != ']')
			return sb_str_addf(str, "%s%s]", form, attr->text);
		return sb_str_add(str, form ? form : attr->text);
	}
}

enum sb_attr_kind sb_fold_mark_kind(const char *name)
{
	size_t len = strlen(name);
	int kind;

	if (name[0] != '[' || name[len - 1] != ']')
		return SB_ATTR_NONE;
	if (strstr(name, forms[SB_ATTR_TRUNCATED]))
		return SB_ATTR_TRUNCATED;
	for (kind = SB_ATTR_IDLE; kind < SB_ATTR_KIND_MAX; kind++)
		if (sb_frame_has_form(name, len, forms[kind]))
			return (enum sb_attr_kind)kind;
	return SB_ATTR_NONE;
}

int sb_fold_unnamed(struct sb_str *str, const char *module, const uint64_t *addr)
{
	size_t len = strlen(module);

	if (!len)
		return sb_str_add(str, "[unknown]");
	if (module[0] == '[' && module[len - 1] == ']') {
		module++;
		len -= 2;
	}
	if (!addr)
		return sb_str_addf(str, "[%.*s]", (int)len, module);
	return sb_str_addf(str, "[%.*s+0x%llx]", (int)len, module, (unsigned long long)*addr);
}

static bool is_code(const struct sb_frame *frame)
{
	return frame->kind != SB_FRAME_ROOT && frame->kind != SB_FRAME_DELIMITER &&
	       frame->kind != SB_FRAME_MARK && frame->kind != SB_FRAME_FILE;
}

/* Append where in the code the frame is, as the options ask. */
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
	const struct sb_fg_kind_row *shown = &sb_fg_kinds[sb_frame_kinds[frame->kind].picture];
	int err = add_clean(str, frame->name);

	if (!err && is_code(frame))
		err = add_place(str, frame, opts);
	if (!err && opts->annotate && !shown->is_told)
		err = sb_str_add(str, shown->suffix);
	return err;
}

bool sb_fold_next_meta(const struct sb_profile *profile, struct sb_fold_meta *meta)
{
	if (!meta->is_other && sb_metadata_next(sb_profile_metadata(profile), &meta->known)) {
		meta->key = meta->known.key;
		meta->value = meta->known.value;
		return true;
	}
	meta->is_other = true;
	meta->key = sb_profile_meta_at(profile, meta->next++, &meta->value);
	return meta->key;
}

int sb_fold_header(struct sb_str *str, const struct sb_profile *profile)
{
	struct sb_metadata metadata = *sb_profile_metadata(profile);
	const char *key, *value;
	int err;

	metadata.version = SB_METADATA_VERSION;
	err = sb_metadata_print(str, &metadata);
	for (size_t i = 0; !err && (key = sb_profile_meta_at(profile, i, &value)); i++)
		err = sb_metadata_print_part(str, key, value);
	return err;
}

int sb_fold_frames(struct sb_str *str, const struct sb_profile *profile, const struct sb_row *row,
		   const struct sb_fold_opts *opts)
{
	size_t i;
	int err = 0;

	for (i = 0; i < row->nr && !err; i++) {
		err = i ? sb_str_addc(str, ';') : 0;
		err = err ?: sb_fold_frame(str, sb_profile_frame_at(profile, row->frames[i]), opts);
	}
	return err;
}

int sb_fold_stack(struct sb_str *str, const struct sb_profile *profile, size_t i,
		  const struct sb_fold_opts *opts)
{
	const struct sb_row row = sb_profile_row_at(profile, i);
	size_t begin = str->len;
	int err = sb_fold_frames(str, profile, &row, opts);

	/* Otherwise the line would be a comment. */
	if (!err && str->len > begin && str->s[begin] == '#')
		str->s[begin] = '?';
	if (!err)
		err = sb_str_addc(str, ' ');
	return err ? err : sb_str_addu(str, row.weight);
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
