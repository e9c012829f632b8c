/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options that only `stackbpf record` has; their rows are in record_opts.c.
 *
 * sb_recorder_parse_*() are for sb_opt.parse: they add to the field @opts what @value says.
 * @ret_why: points to NULL before the call. Return: 0; -EINVAL if the value is wrong, and *ret_why
 * is the end of a sentence about it, static, valid until the next call; -ENOMEM. @opts begins with
 * its defaults; after an error it is only to be released.
 * One thread. Pointers are not NULL. */
#ifndef SB_CLI_RECORDER_OPTS_H
#define SB_CLI_RECORDER_OPTS_H

#include "recorder/recorder.h"

/* Add kinds to @opts, a struct sb_recorder_config. @value: "oncpu,offcpu", copied. When one of them
 * is wrong, those before it have been added. Return: 0; -EINVAL with *ret_why. */
int sb_recorder_parse_kinds(void *opts, const char *value, const char **ret_why);
/* Add a tag to @opts, a struct sb_recorder_config, which owns a copy. @value: "KEY=VALUE".
 * Return: 0; -ENOMEM; -EINVAL with *ret_why, and the wrong tag may have been added. */
int sb_recorder_parse_tag(void *opts, const char *value, const char **ret_why);
/* Set how long blocks are kept in @opts, a struct sb_recorder_config. @value: "10s=7d,10min=30d".
 * When an element is wrong, those before it have been added. Return: 0; -EINVAL with *ret_why. */
int sb_recorder_parse_retain(void *opts, const char *value, const char **ret_why);
/* Add the key of a label to @opts, a struct sb_run_config, which borrows @value as long as @opts is
 * used. Return: 0; -EINVAL with *ret_why if it is no key, was given before, or is one too many, and
 * nothing is added. */
int sb_recorder_parse_label(void *opts, const char *value, const char **ret_why);

/* Free the tags of @opts, which owns nothing else; none are left, so that calling it again is
 * harmless. */
void sb_recorder_opts_release(struct sb_recorder_config *opts);

#endif
