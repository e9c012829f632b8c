/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel would not have, in one sentence. Internal to capture. */
#ifndef SB_CAPTURE_REFUSED_H
#define SB_CAPTURE_REFUSED_H

struct sampler_bpf;

/* Say that we cannot do @what, and for what most often goes wrong, what to do about it. @err: a negative
 * errno, or one of libbpf's own. Return: a negative errno; -EOPNOTSUPP: the kernel is too old. */
int sb_explain(int err, const char *what);

/*
 * Load @skel, from one thread at a time. Return: 0 or what sb_load_explain() takes. libbpf says in its
 * messages alone what the kernel refuses.
 */
int sb_load(struct sampler_bpf *skel);
/* Of the last sb_load(), which returned @err: the program that the kernel refuses, though we have the
 * privileges; NULL: it was something else. Valid until the next sb_load(). */
const char *sb_load_refused(int err);
/* Say why it failed. Return: -EOPNOTSUPP: the kernel refuses a program; -EPERM, -EACCES: no privilege; or
 * another negative errno. */
int sb_load_explain(int err);

#endif
