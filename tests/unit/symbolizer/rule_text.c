// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rule_text.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static void x86_format_cfa(const struct sb_uw_rule *rule, char *buf, size_t len)
{
	static const char *const regs[] = {
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};
	static const char *const words[] = {
		[SB_UW_CFA_PLT10] = "rsp+8+((rip&15)>=10)*8",
		[SB_UW_CFA_PLT11] = "rsp+8+((rip&15)>=11)*8",
	};
	const char *reg = rule->cfa == SB_UW_CFA_FP || rule->cfa == SB_UW_CFA_AT_FP ||
					  rule->cfa == SB_UW_CFA_SWITCH
				  ? "rbp"
				  : "rsp";

	if (rule->cfa < SB_ARRAY_SIZE(words) && words[rule->cfa])
		snprintf(buf, len, "%s", words[rule->cfa]);
	else if (rule->cfa == SB_UW_CFA_SP || rule->cfa == SB_UW_CFA_FP ||
		 rule->cfa == SB_UW_CFA_CLONE || rule->cfa == SB_UW_CFA_SWITCH)
		snprintf(buf, len, "%s%+d", reg, rule->cfa_off);
	else if (rule->cfa == SB_UW_CFA_AT_SP || rule->cfa == SB_UW_CFA_AT_FP)
		snprintf(buf, len, "*(%s%+d)+%u", reg, (int16_t)rule->cfa_off,
			 (uint32_t)rule->cfa_off >> 16);
	else if (rule->cfa == SB_UW_CFA_AT_SP_R9)
		snprintf(buf, len, "*(rsp%+d+r9*8)+%u", (int16_t)rule->cfa_off,
			 (uint32_t)rule->cfa_off >> 16);
	else if (rule->cfa == SB_UW_CFA_RA_REG)
		snprintf(buf, len, "rsp%+d ra=%s", rule->cfa_off, regs[rule->fp_off & 15]);
	else if (rule->cfa >= SB_UW_CFA_REG && rule->cfa < SB_UW_CFA_REG + SB_ARRAY_SIZE(regs))
		snprintf(buf, len, "%s%+d", regs[rule->cfa - SB_UW_CFA_REG], rule->cfa_off);
	else
		snprintf(buf, len, "?");
}

static void x86_format_fp(const struct sb_uw_rule *rule, char *buf, size_t len)
{
	if (rule->fp == SB_UW_FP_AT_CFA)
		snprintf(buf, len, "rbp=*(cfa%+d)", rule->fp_off);
	else if (rule->fp == SB_UW_FP_AT_FP)
		snprintf(buf, len, "rbp=*(rbp%+d)", rule->fp_off);
	else
		snprintf(buf, len, "rbp=%s", rule->fp == SB_UW_FP_SAME ? "same" : "lost");
}

static void x86_format(const struct sb_uw_rule *rule, char *buf, size_t len)
{
	char cfa[48], fp[32], bx[32] = "";

	x86_format_cfa(rule, cfa, sizeof(cfa));
	x86_format_fp(rule, fp, sizeof(fp));
	if (rule->bx == SB_UW_BX_LOST)
		snprintf(bx, sizeof(bx), " rbx=lost");
	else if (rule->bx != SB_UW_BX_SAME)
		snprintf(bx, sizeof(bx), " rbx=*(cfa-%d)", 8 * rule->bx);
	snprintf(buf, len, "%s %s%s%s", cfa, fp, bx,
		 rule->cfa == SB_UW_CFA_CLONE	 ? " stop-if-rax=0"
		 : rule->cfa == SB_UW_CFA_SWITCH ? " other-stack"
						 : "");
}

static void arm64_format(const struct sb_uw_rule *rule, char *buf, size_t len)
{
	char reg[8] = "x29", cfa[32], fp[32], ra[32];
	const char *base = rule->fp == SB_UW_FP_AT_CFA ? "cfa" : reg, *after = "";

	if (rule->cfa >= SB_UW_CFA_REG)
		snprintf(reg, sizeof(reg), "x%d", rule->cfa & 31);
	else if (rule->cfa == SB_UW_CFA_GO_SYSTEM || rule->cfa == SB_UW_CFA_GO_C)
		snprintf(reg, sizeof(reg), "go-sp");
	else if (rule->cfa != SB_UW_CFA_FP && rule->cfa != SB_UW_CFA_SWITCH)
		snprintf(reg, sizeof(reg), "sp");
	snprintf(cfa, sizeof(cfa), "%s%+d", reg, rule->cfa_off);
	if (rule->fp == SB_UW_FP_AT_CFA || rule->fp == SB_UW_FP_AT_FP)
		snprintf(fp, sizeof(fp), "x29=*(%s%+d)", base, 8 * rule->fp_off);
	else
		snprintf(fp, sizeof(fp), "x29=%s", rule->fp == SB_UW_FP_SAME ? "same" : "lost");
	if (rule->bx == SB_UW_RA_LR)
		snprintf(ra, sizeof(ra), "x30=same");
	else if (rule->bx == SB_UW_RA_PAIR)
		snprintf(ra, sizeof(ra), "x30=*(%s%+d)", base, 8 * rule->fp_off + 8);
	else
		snprintf(ra, sizeof(ra), "x30=*(cfa-%d)", 8 * rule->bx);
	if (rule->cfa == SB_UW_CFA_CLONE)
		after = " stop-if-x0=0";
	else if (rule->cfa == SB_UW_CFA_GO_PUSHED)
		after = " interrupted";
	else if (rule->cfa == SB_UW_CFA_SWITCH || !strcmp(reg, "go-sp"))
		after = " other-stack";
	snprintf(buf, len, "%s %s %s%s", cfa, fp, ra, after);
}

void rule_text(uint16_t machine, const struct sb_uw_rule *rule, char *buf, size_t len)
{
	static const char *const words[] = {
		[SB_UW_CFA_FP_CHAIN] = "frame-pointer",
		[SB_UW_CFA_STOP] = "stop",
		[SB_UW_CFA_SIGNAL] = "signal",
		[SB_UW_CFA_UNSUP] = "unsupported",
		[SB_UW_CFA_GO_GROW] = "go-pc other-stack",
	};

	if (rule->cfa < SB_ARRAY_SIZE(words) && words[rule->cfa])
		snprintf(buf, len, "%s", words[rule->cfa]);
	else if (machine == EM_AARCH64)
		arm64_format(rule, buf, len);
	else
		x86_format(rule, buf, len);
}
