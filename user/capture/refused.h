/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Turns errors of the kernel and of libbpf into a sentence for the user, which is put into @reason
 * unless that has one already. Internal to capture. One thread at a time, as the messages of the
 * last sb_load() are kept in a static buffer. @reason may be NULL everywhere, when nobody wants the
 * sentence; other pointers may not. */
#ifndef SB_CAPTURE_REFUSED_H
#define SB_CAPTURE_REFUSED_H

#include "base/reason.h"

struct sampler_bpf;

/* Put "cannot @what: ..." into @reason, with advice for the common causes.
 * @err: a negative errno, or one of libbpf's own (-4000 and below, LIBBPF_ERRNO__*). @what: a verb
 * with its object ("open a sampling timer"), not kept. It looks at the capabilities of the calling
 * thread, so call it in the thread that was refused, and before that drops any. Return: a negative
 * errno, mostly @err; -EIO for an error of libbpf's own; -EOPNOTSUPP when the kernel is too old. */
int sb_explain(struct sb_reason *reason, int err, const char *what);

/* Put "cannot prepare @what before the BPF programs are loaded" into @reason, for a setting of a
 * BPF map or program that libbpf refuses: unless memory is short, that is an error of stackbpf.
 * @what: the noun, not kept. Return: @err, a negative errno. */
int sb_explain_setting(struct sb_reason *reason, int err, const char *what);

/*
 * Load the BPF object, which is open and prepared; its programs are attached next. Listens to
 * libbpf's messages, because only they say what the kernel refuses. Return: 0; or a negative errno
 * or error of libbpf's own, which sb_load_explain() explains: @skel can only be destroyed then.
 */
int sb_load(struct sampler_bpf *skel);
/* Return: the name of the program that the kernel refused in the last sb_load(), which returned
 * @err; NULL when it failed for another reason, such as missing privileges. Valid until the next
 * sb_load(). */
const char *sb_load_refused(int err);
/* Put the cause of the last sb_load(), which returned the error @err, not 0, into @reason. Return:
 * -EOPNOTSUPP when the kernel refuses a program or is too old; -EPERM, -EACCES without privilege;
 * -EMFILE: no descriptor was left; -EIO: the kernel's type information cannot be read, or an error
 * of libbpf's own; or another negative errno, mostly @err. */
int sb_load_explain(struct sb_reason *reason, int err);

#endif
