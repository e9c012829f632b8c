/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parsers for options that only `stackbpf record` has; their rows are in record_opts.c. They add to
 * the field what @value says. @ret_why: points to NULL before the call. Return: 0; -EINVAL, and
 * *ret_why is the end of a sentence about the value, static, valid until the next call; -ENOMEM.
 * One thread. Pointers are not NULL. */
#ifndef SB_CLI_RECORDER_OPTS_H
#define SB_CLI_RECORDER_OPTS_H

#include "recorder/recorder.h"

/* For sb_opt.parse; @opts is a struct sb_recorder_config. A value is "oncpu,offcpu" (kinds),
 * "KEY=VALUE" (a tag, copied), or "10s=7d,10min=30d" (retention). When an element of a list is
 * wrong, those before it have been added; a wrong tag may have been, too. */
int sb_recorder_parse_kinds(void *opts, const char *value, const char **ret_why);
int sb_recorder_parse_tag(void *opts, const char *value, const char **ret_why);
int sb_recorder_parse_retain(void *opts, const char *value, const char **ret_why);
/* For sb_opt.parse, too; @opts is a struct sb_run_config, which borrows @value, one key of a
 * label. */
int sb_recorder_parse_label(void *opts, const char *value, const char **ret_why);
/* Return: whether @key can be the key of a label: 1 to 64 letters, digits, '_', '.', '-' and '/',
 * the first a letter or '_'. */
bool sb_recorder_is_label(const char *key);

/* Free the tags; none are left. Again is harmless. */
void sb_recorder_opts_release(struct sb_recorder_config *opts);

#endif
