/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel would not have, in one sentence. Internal to capture. */
#ifndef SB_CAPTURE_REFUSED_H
#define SB_CAPTURE_REFUSED_H

struct sampler_bpf;

/* Say that we cannot do @what, and for what most often goes wrong, what to do about it. @err: a negative
 * errno, or one of libbpf's own. Return: a negative errno; -EOPNOTSUPP: the kernel is too old. */
int sb_explain(int err, const char *what);

/*
 * Load @skel, from one thread at a time. If the kernel refuses a program or a map, the sentence names it;
 * libbpf tells of it, and of the verifier's log, in its messages alone.
 * Return: 0, -EOPNOTSUPP: the kernel refuses a program; -EPERM: no privilege; or another negative errno, after a sentence.
 */
int sb_load(struct sampler_bpf *skel);

#endif
