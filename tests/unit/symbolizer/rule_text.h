/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unwind rules as text, for tests that compare them. */
#ifndef SB_TEST_RULE_TEXT_H
#define SB_TEST_RULE_TEXT_H

#include "symbolizer/unwind/cfi.h"

/*
 * Write a rule as text: "rsp+8 rbp=*(cfa-16)"; arm64: "sp+32 x29=*(cfa-32) x30=*(cfa-24)".
 * @machine: EM_*
 */
void rule_text(uint16_t machine, const struct sb_uw_rule *rule, char *buf, size_t len);

#endif
