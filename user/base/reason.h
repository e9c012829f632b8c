/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why something failed, as text for whoever tells the user. A library function that can fail for
 * many reasons keeps the reason of its failure in one of these, besides its negative errno, instead
 * of logging it. The caller zeroes it before, and prints it after the failure; there is nothing to
 * free.
 */
#ifndef SB_BASE_REASON_H
#define SB_BASE_REASON_H

#include <stdbool.h>

#define SB_REASON_BYTES 384

/* Zeroed: nothing failed. */
struct sb_reason {
	int err; /* a negative errno that the text does not say yet; 0: the text is all */
	char text[SB_REASON_BYTES]; /* a sentence without a full stop; "": nothing failed */
};

/**
 * sb_reason_set() - keep why something failed
 * @reason: an earlier reason in it stays, because later failures follow from the first; NULL:
 * nothing is kept
 * @err: a negative errno to be explained after the text, or 0
 * @fmt: as for printf(); what does not fit is cut
 *
 * Thread: one at a time for each @reason.
 * Return: @err, so that a caller can `return sb_reason_set(...)`.
 */
int sb_reason_set(struct sb_reason *reason, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Return: whether there is a reason. @reason is not NULL. Thread: one at a time for each
 * @reason. */
static inline bool sb_reason_is_set(const struct sb_reason *reason)
{
	return reason->text[0];
}

#endif
